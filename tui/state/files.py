"""Session files on the disk: where they are, and how they are written so that each is always complete."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
import zlib
from collections.abc import Mapping
from typing import Any

from simcore.records import NamedTuple
from tui.state import checking
from tui.state.checking import InvalidSession

# A session is some kilobytes; a larger file is of another kind.
MOST_BYTES = 4 << 20
_MOST_NAME = 60
# Age of a temporary file that a killed program has left: writing takes less.
_STALE_SECONDS = 3600


def state_directory(environ: Mapping[str, str] = os.environ) -> str:
    """Returns the directory wltui in the user's state directory: $XDG_STATE_HOME, which must be absolute, or
    ~/.local/state.
    """
    base = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.local/state")
    return os.path.join(base, "wltui")


def session_path(opened: str, run: str = "", environ: Mapping[str, str] = os.environ) -> str:
    """Returns the session file of what was opened: its name, and a checksum of its real path.

    run: which of a directory's measured runs.
    """
    real = os.path.realpath(opened)
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", os.path.basename(real))[:_MOST_NAME].lstrip(".") or "input"
    return os.path.join(state_directory(environ), f"{name}-{short_sha(os.fsencode(real), run)}.json")


def short_sha(data: bytes, run: str = "") -> str:
    """Returns twelve digits of the SHA-256 of a path and a run."""
    import hashlib

    return hashlib.sha256(data + b"\0" + run.encode("utf-8", "replace")).hexdigest()[:12]


def read_text(path: str) -> str | None:
    """Returns the text of a session file, None if there is none. Raises OSError, and `InvalidSession` for
    another file, or one that somebody else may have written.
    """
    try:
        # A link leads elsewhere, and a FIFO would wait.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return None
    except OSError:
        if os.path.islink(path):
            raise InvalidSession("found a link, expected a file") from None
        raise
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidSession("found no regular file")
        if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
            raise InvalidSession("found a file that somebody else may have written")
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise InvalidSession(f"found more than {MOST_BYTES >> 20} MiB")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidSession(f"found byte 0x{data[error.start]:02x}, expected UTF-8 text") from None


def write_text(path: str, text: str) -> None:
    """Replaces a file by a text; the file is complete at every moment: the old one or the new one.

    Raises OSError; the old file is then unchanged.
    """
    directory, name = os.path.split(path)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    _remove_stale(directory, name)
    temporary = os.path.join(directory, f".{name}.{os.getpid()}.{time.monotonic_ns():x}.tmp")
    try:
        # The temporary file must be new: it must not be a link to somewhere, either.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def set_aside(path: str) -> str:
    """Renames a file that cannot be read to `NAME.damaged`; returns the new path. Raises OSError."""
    aside = path + ".damaged"
    os.replace(path, aside)
    return aside


def _remove_stale(directory: str, name: str) -> None:
    """Removes what killed programs have left of this file."""
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(f".{name}.") and entry.name.endswith(".tmp"):
                with contextlib.suppress(OSError):
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime > _STALE_SECONDS:
                        os.unlink(entry.path)


# Up to this size a file's content is compared: a copy, or one that was only touched, is the same.
_SMALL = 1 << 20
_MOST_TIME_NS = 2**63 - 1


class Identity(NamedTuple):
    """What tells two inputs apart."""

    size: int
    """Bytes, of all files of a directory."""
    mtime_ns: int
    """The newest time."""
    content: int | None
    """A checksum of a small file, or of a directory's names and sizes; None of a large file."""

    def is_same_input(self, other: Identity) -> bool:
        """Returns whether both are the same input: by content where it was read, else by size and time."""
        if self.content is not None and other.content is not None:
            return (self.size, self.content) == (other.size, other.content)
        return self == other

    def as_json(self) -> dict[str, Any]:
        return self._asdict()

    @classmethod
    def read(cls, value: object, where: str) -> Identity:
        """Returns the checked values. Raises `InvalidSession`."""
        entries = checking.check_table(value, where)
        return cls(
            checking.check_whole(entries.get("size"), f"{where}.size"),
            checking.check_whole(entries.get("mtime_ns"), f"{where}.mtime_ns", -_MOST_TIME_NS, _MOST_TIME_NS),
            checking.check_optional(
                entries.get("content"), f"{where}.content",
                lambda checksum, location: checking.check_whole(checksum, location, 0, 2**32 - 1),
            ),
        )  # fmt: skip


def read_identity(path: str) -> Identity:
    """Returns the identity of a file, or of a directory of rank traces. Raises OSError."""
    if os.path.isdir(path):
        return _directory_identity(path)
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        content = zlib.crc32(file.read(_SMALL)) if status.st_size <= _SMALL else None
    return Identity(status.st_size, status.st_mtime_ns, content)


def _directory_identity(path: str) -> Identity:
    """Returns the identity of a directory. Its files are not read: thousands of traces would take longer than
    opening them.
    """
    with os.scandir(path) as entries:
        files = sorted((entry.name, entry.stat()) for entry in entries if entry.is_file())
    size, newest = (
        sum(status.st_size for _, status in files),
        max((status.st_mtime_ns for _, status in files), default=0),
    )
    listed = "".join(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\n" for name, status in files)
    return Identity(size, newest, zlib.crc32(os.fsencode(listed)))
