"""The saving of a file or a folder of files so that it is complete or does not exist."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.render.export.format import Export, RankFile
from simcore.units import byte_size, plural

# The files that `save_folder` writes, and so may replace.
_EXPORTED_FILES = re.compile(
    r"(?:rank-[0-9]+\.(json|csv)|stage-[0-9]+\.txt)(\.gz)?"
    r"|wl\.[0-9]+\.et|network\.yml|(system|memory|comm_group)\.json"
)

# What an export writes to until it is complete, with the process that does; and the folder that it replaces,
# which has the user's files until then.
_TEMPORARY = re.compile(r"\.wltui-([0-9]{1,10})-[0-9]{1,3}\.tmp")
_NEW, _OLD = "tmp", "old"
_ATTEMPTS = 100
_Created = TypeVar("_Created")


def check_file(path: str, force: bool) -> tuple[str, int | None]:
    """Returns (the file that `path` names, its mode or None if it does not exist yet).

    Raises `UsageError` where something is in the way (a file, unless `force`; anything but a regular file,
    always) or `path` can only name a directory, `InputError` where the system refuses to look.
    """
    if not path:
        raise UsageError("--output: found an empty name, expected a file to write")
    if os.path.basename(path) in ("", os.curdir, os.pardir):
        # Checked even where it does not exist: `realpath` would make a file `out` of `out/`.
        raise UsageError(f"{printable(path)} is a directory: name a file to write")
    target = _resolve_target(path)
    try:
        mode = os.stat(target).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return target, None
    except OSError as error:
        raise _unwritable_error(path, error) from None
    if not stat.S_ISREG(mode):
        kind = "a directory" if stat.S_ISDIR(mode) else "no regular file"
        raise UsageError(f"{printable(path)} is {kind}: name a file to write")
    if not force:
        raise _exists_error(path)
    return target, mode


def save(path: str, chunks: Iterable[bytes], force: bool) -> int:
    """Writes `chunks` to a new file at `path` and returns its size, bytes.

    They go to a temporary file in the same folder that gets the name when it is complete, so that a
    half-written file is never visible. Raises what `check_file` does, and `InputError` where the system
    refuses.
    """
    target, mode = check_file(path, force)
    temporaries: list[str] = []
    try:
        descriptor = _create_temporary(os.path.dirname(target), _open_new, temporaries)
        _lock(descriptor)
        with open(descriptor, "wb") as file:
            if mode is not None:
                os.chmod(temporaries[0], stat.S_IMODE(mode))
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        if force:
            os.replace(temporaries[0], target)
        else:
            _name_new(temporaries[0], target)
    except FileExistsError:
        raise _exists_error(path) from None
    except OSError as error:
        raise _unwritable_error(path, error) from None
    finally:
        for temporary in temporaries:
            if os.path.lexists(temporary):
                os.unlink(temporary)
    return size


def check_folder(path: str, force: bool) -> tuple[str, bool]:
    """Returns (the folder that `path` names, whether it exists).

    Raises `UsageError` where something is in the way (a folder, unless `force` and all in it are files of
    ranks; anything else, always), `InputError` where the system refuses to look.
    """
    if not path:
        raise UsageError("--output: found an empty name, expected a folder to make")
    target = _resolve_target(path)
    try:
        if not os.path.lexists(target):
            return target, False
        if not os.path.isdir(target):
            raise UsageError(f"{printable(path)} is there already, and no folder: name a folder to make")
        if not force:
            raise _exists_error(path)
        _check_exported_only(path, target)
    except OSError as error:
        raise _unwritable_error(path, error) from None
    return target, True


def _resolve_target(path: str) -> str:
    """Returns what `path` names: a symbolic link is followed, so that its target is replaced, not the link.

    Raises `UsageError` for a name that no file can have, `InputError` where the system refuses to look, for
    example because the working directory no longer exists.
    """
    try:
        return os.path.realpath(path)
    except ValueError:  # a NUL character
        raise UsageError(f"{printable(path) or '-'}: no file can have this name") from None
    except OSError as error:
        raise _unwritable_error(path, error) from None


def _check_exported_only(path: str, folder: str) -> None:
    """Raises `UsageError` where `folder` has more than files of ranks. path: its name for the user."""
    with os.scandir(folder) as entries:
        others = [
            entry.name
            for entry in entries
            if not _EXPORTED_FILES.fullmatch(entry.name) or entry.is_dir(follow_symlinks=False)
        ]
    if others:
        other = printable(min(others), 60)
        raise UsageError(f"{printable(path)} holds {other}, which no export wrote: name another folder")


def save_folder(path: str, files: Iterable[RankFile], force: bool) -> tuple[int, int]:
    """Makes a folder at `path` with these files and returns (how many, their total size in bytes).

    They are written into a temporary folder in the same directory that gets the name when it is complete.
    Raises what `check_folder` does, and `InputError` where the system refuses.
    """
    target, exists = check_folder(path, force)
    folder = os.path.dirname(target)
    count = size = 0
    temporary_folders: list[str] = []
    replaced: list[str] = []
    descriptor = -1
    try:
        _create_temporary(folder, os.mkdir, temporary_folders)
        descriptor = os.open(temporary_folders[0], os.O_RDONLY)
        _lock(descriptor)
        for file in files:
            count += 1
            size += _write_file(os.path.join(temporary_folders[0], file.name), file.chunks)
        if exists:
            _create_temporary(folder, os.mkdir, replaced, _OLD)
            os.replace(target, replaced[0])
            # Files that were added since the first check, minutes ago, must not be removed.
            _check_exported_only(path, replaced[0])
        os.rename(temporary_folders[0], target)
    except OSError as error:
        raise _unwritable_error(path, error) from None
    finally:
        if descriptor >= 0:
            os.close(descriptor)
        if replaced and not os.path.lexists(target):
            os.rename(replaced[0], target)
        for temporary in (*temporary_folders, *replaced):
            _remove(temporary)
    return count, size


def check_output(path: str, is_folder: bool, force: bool) -> None:
    """Raises what `check_folder` or `check_file` does, before anything long starts."""
    if is_folder:
        check_folder(path, force)
    else:
        check_file(path, force)


def write(
    export: Export,
    path: str,
    force: bool,
    watch: Callable[[Iterable[bytes]], Iterable[bytes]] = lambda chunks: chunks,
) -> str:
    """Writes an export to a file, or to a folder of files, and returns what was written, in words.

    It is compressed by gzip where the name ends in .gz. watch: takes the chunks, and yields them as they are
    taken. Raises what `save` and `save_folder` do.
    """

    def prepare(file_chunks: Iterable[bytes]) -> Iterable[bytes]:
        return gzip_chunks(watch(file_chunks)) if packed else watch(file_chunks)

    packed = path.lower().endswith(".gz")
    if export.files is None:
        return f"{export.what}, {byte_size(save(path, prepare(export.chunks), force))}"
    ending = ".gz" if packed else ""
    files = (RankFile(file.name + ending, prepare(file.chunks)) for file in export.files)
    count, size = save_folder(path, files, force)
    return f"{export.what}, {plural(count, 'file')}, {byte_size(size)}"


def gzip_chunks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the chunks as a gzip file, which depends only on its content: it states no name and no time."""
    import zlib

    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    for chunk in chunks:
        if packed := packer.compress(chunk):
            yield packed
    yield packer.flush()


def _write_file(path: str, chunks: Iterable[bytes]) -> int:
    with open(path, "xb") as file:
        for chunk in chunks:
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
        return file.tell()


def _lock(descriptor: int) -> None:
    """Shows other runs that a temporary file or folder is written to, wherever they see it."""
    import fcntl

    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_leftovers(folder: str) -> None:
    """Removes what killed exports of this user have left in a folder: no process of that number is here, and
    none elsewhere, in another container, holds the lock.
    """
    import fcntl

    for name in os.listdir(folder):
        match = _TEMPORARY.fullmatch(name)
        if match is None or os.path.exists(f"/proc/{match[1]}") or not os.path.isdir("/proc/self"):
            continue
        path = os.path.join(folder, name)
        with contextlib.suppress(OSError):
            status = os.lstat(path)
            is_folder = stat.S_ISDIR(status.st_mode)
            if status.st_uid != os.getuid() or not (is_folder or stat.S_ISREG(status.st_mode)):
                continue
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not is_folder:
                    os.unlink(path)
                elif all(map(_EXPORTED_FILES.fullmatch, os.listdir(path))):
                    _remove(path)
            finally:
                os.close(descriptor)


def _create_temporary(
    folder: str, make: Callable[[str], _Created], temporaries: list[str], ending: str = _NEW
) -> _Created:
    """Returns the result of `make` for a new name in `folder`, from which leftovers are removed.

    temporaries: gets the name before it exists, so that an interrupt at any moment can remove it.
    """
    with contextlib.suppress(OSError):
        _remove_leftovers(folder)
    for attempt in range(_ATTEMPTS):
        temporaries.append(os.path.join(folder, f".wltui-{os.getpid()}-{attempt}.{ending}"))
        try:
            return make(temporaries[-1])
        except FileExistsError:
            temporaries.pop()
    raise OSError(None, "too many temporary files are left there")


def _open_new(name: str) -> int:
    """Returns a file with the permissions of any new file: `tempfile` gives them to the owner alone."""
    return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)


def _remove(folder: str) -> None:
    """Removes a folder of files, if it exists."""
    if os.path.lexists(folder):
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)


def _name_new(temporary: str, target: str) -> None:
    """Gives a finished file its name. Raises `FileExistsError` where another file got the name meanwhile."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        # An empty file takes the name first, which can succeed only once.
        os.close(_open_new(target))
        os.replace(temporary, target)


def _exists_error(path: str) -> UsageError:
    return UsageError(f"{printable(path)} is there already: --force overwrites it")


def _unwritable_error(path: str, error: OSError) -> InputError:
    message = f"the file cannot be written: {error.strerror or error}"
    return InputError(Diagnostic("error", "unwritable-file", message, path))
