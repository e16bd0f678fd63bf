"""Whether what is opened is what was opened last time."""

from __future__ import annotations

import os
import zlib
from typing import Any, NamedTuple

from tui.state import checking

# Up to here a file's content is looked at: a copy, or one that was only touched, is the same.
_SMALL = 1 << 20
_MOST_TIME_NS = 2**63 - 1


class Identity(NamedTuple):
    """size: bytes, of all files of a directory. mtime_ns: the newest. content: a checksum of a small
    file, or of a directory's names and sizes; None of a large file.
    """

    size: int
    mtime_ns: int
    content: int | None

    def is_of(self, other: Identity) -> bool:
        """Whether both are the same input: by content where it was looked at, else by size and time."""
        if self.content is not None and other.content is not None:
            return (self.size, self.content) == (other.size, other.content)
        return self == other

    def as_json(self) -> dict[str, Any]:
        return self._asdict()

    @classmethod
    def read(cls, value: object, where: str) -> Identity:
        """Checked. Raises `Damaged`."""
        found = checking.table(value, where)
        return cls(
            checking.whole(found.get("size"), f"{where}.size"),
            checking.whole(found.get("mtime_ns"), f"{where}.mtime_ns", -_MOST_TIME_NS, _MOST_TIME_NS),
            checking.optional(
                found.get("content"), f"{where}.content",
                lambda one, place: checking.whole(one, place, 0, 2**32 - 1),
            ),
        )  # fmt: skip


def identity_of(path: str) -> Identity:
    """Of a file, or of a directory of rank traces. Raises OSError."""
    if os.path.isdir(path):
        return _of_directory(path)
    with open(path, "rb") as file:
        found = os.fstat(file.fileno())
        content = zlib.crc32(file.read(_SMALL)) if found.st_size <= _SMALL else None
    return Identity(found.st_size, found.st_mtime_ns, content)


def _of_directory(path: str) -> Identity:
    """Its files are not read: thousands of traces would take longer than opening them."""
    with os.scandir(path) as entries:
        files = sorted((one.name, one.stat()) for one in entries if one.is_file())
    size, newest = sum(one.st_size for _, one in files), max((one.st_mtime_ns for _, one in files), default=0)
    listed = "".join(f"{name}\0{one.st_size}\0{one.st_mtime_ns}\n" for name, one in files)
    return Identity(size, newest, zlib.crc32(os.fsencode(listed)))
