"""Open pipes that a shell names as files: `--expert-imbalance <(command)`."""

from __future__ import annotations

import re
import stat

_DESCRIPTOR = re.compile(r"/(?:dev|proc/(?:self|[0-9]+))/fd/[0-9]+")
# By path: a pipe can be read once, and a file is read several times.
_contents: dict[str, bytes] = {}


def read_open_pipe(path: str, mode: int, most: int) -> bytes | None:
    """Returns the bytes of an open pipe, at most one more than `most`; None for anything else, also for a
    named pipe, which would wait for a writer for ever.

    mode: of the path's status. Raises OSError.
    """
    if not stat.S_ISFIFO(mode) or _DESCRIPTOR.fullmatch(path) is None:
        return None
    if path not in _contents:
        with open(path, "rb") as file:
            _contents[path] = file.read(most + 1)
    return _contents[path]
