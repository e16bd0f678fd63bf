"""Saving a file so that it is there whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from simcore.diagnostics import Diagnostic, InputError, UsageError, printable

_ATTEMPTS = 100


def save(path: str, pieces: Iterable[bytes], force: bool) -> int:
    """Writes `pieces` to a new file at `path` and returns its size, bytes.

    They go to a temporary file beside it that is given the name when it is complete, so nobody
    ever sees half of it. Raises `UsageError` where something is in the way (a file, unless
    `force`; what is no regular file, always), `InputError` where the system refuses.
    """
    try:
        # A symbolic link is followed: what it points to is replaced, not the link.
        target = os.path.realpath(path)
        mode = os.stat(target).st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = None
    except ValueError:  # a NUL character
        raise UsageError(f"{printable(path) or '-'}: no file can have this name") from None
    except OSError as error:
        raise _unwritable(path, error) from None
    if mode is not None:
        if not stat.S_ISREG(mode):
            kind = "a directory" if stat.S_ISDIR(mode) else "no regular file"
            raise UsageError(f"{printable(path)} is {kind}: name a file to write")
        if not force:
            raise _exists(path)
    try:
        temporary, descriptor = _temporary(os.path.dirname(target))
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        with open(descriptor, "wb") as file:
            if mode is not None:
                os.chmod(temporary, stat.S_IMODE(mode))
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        if force:
            os.replace(temporary, target)
        else:
            _name_new(temporary, target)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise _unwritable(path, error) from None
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)
    return size


def _temporary(folder: str) -> tuple[str, int]:
    """A new file in `folder` with the permissions of any new file (those of `tempfile` are the owner's)."""
    for attempt in range(_ATTEMPTS):
        name = os.path.join(folder, f".wltui-{os.getpid()}-{attempt}.tmp")
        try:
            return name, os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            continue
    raise FileExistsError(None, "too many temporary files are left there")


def _name_new(temporary: str, target: str) -> None:
    """Gives a finished file its name. Raises: FileExistsError if another has come to have it meanwhile."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(target):
            raise FileExistsError from None
        os.rename(temporary, target)


def _exists(path: str) -> UsageError:
    return UsageError(f"{printable(path)} is there already: --force overwrites it")


def _unwritable(path: str, error: OSError) -> InputError:
    message = f"the file cannot be written: {error.strerror or error}"
    return InputError(Diagnostic("error", "unwritable-file", message, path))
