"""Opens a workload file: refuses what is none, and gives the rest to the reader of its format."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import BinaryIO

from simcore.diagnostics import Diagnostic, InputError
from simcore.workload.formats import FORMATS, Head, head_of
from simcore.workload.formats.cell import quoted
from simcore.workload.model import Workload

# Enough to tell a format: a trace of gigabytes is refused without reading it all.
_HEAD_BYTES = 1 << 20

_SPECIAL_FILES = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISSOCK, "a socket"),
)


def open_workload(path: str) -> Workload:
    """The workload in the file at `path`; its format is found from the content, never from the name.

    Raises: InputError when there is no such file, it cannot be read, or it is of another format.
    """
    try:
        with _open_regular(path) as file:
            raw = file.read(_HEAD_BYTES)
            read = _choose_reader(path, head_of(raw))
            data = raw + file.read()
    except OSError as error:
        raise _unreadable(path, error) from None
    return read(path, data)


def read_workload(path: str, data: bytes) -> Workload:
    """The workload in `data`, for example the bytes of standard input; `path` is for messages.

    Raises: InputError when the bytes are of another format.
    """
    return _choose_reader(path, head_of(data[:_HEAD_BYTES]))(path, data)


def read_beginning(path: str) -> bytes:
    """As much of the file at `path` as tells its format. Raises InputError as `open_workload` does."""
    try:
        with _open_regular(path) as file:
            return file.read(_HEAD_BYTES)
    except OSError as error:
        raise _unreadable(path, error) from None


def read_file(path: str) -> bytes:
    """All bytes of the file at `path`. Raises InputError as `open_workload` does."""
    try:
        with _open_regular(path) as file:
            return file.read()
    except OSError as error:
        raise _unreadable(path, error) from None


def is_measured(data: bytes) -> bool:
    """Whether a file that begins so is a measured run and no workload."""
    head = head_of(data[:_HEAD_BYTES])
    return next((known.measured for known in FORMATS if known.sniff(head)), False)


def _open_regular(path: str) -> BinaryIO:
    """The open file. A named pipe would wait for a writer for ever, so the kind is asked before."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, ValueError):  # ValueError: a NUL character in the path
        raise _refusal(path, "no-such-file", "there is no such file") from None
    if stat.S_ISDIR(mode):
        raise _refusal(path, "is-a-directory", "found a directory, expected a file")
    for is_kind, kind in _SPECIAL_FILES:
        if is_kind(mode):
            raise _refusal(path, "not-a-regular-file", f"found {kind}, expected a regular file")
    return open(path, "rb")


def _choose_reader(path: str, head: Head) -> Callable[[str, bytes], Workload]:
    if not head.first:
        raise _refusal(path, "empty-file", "the file is empty, expected a workload")
    for known in FORMATS:
        if known.sniff(head):
            if known.measured:
                message = f"found a {known.name}, expected a workload to simulate"
                raise _refusal(path, "measured-run", message)
            if known.read is None:
                message = f"found {known.name}, a format that this version does not open"
                raise _refusal(path, "unsupported-format", message)
            return known.read
    message = f"found {quoted(head.first)}, expected the first line of a known format"
    raise _refusal(path, "unknown-format", message)


def _unreadable(path: str, error: OSError) -> InputError:
    return _refusal(path, "unreadable-file", f"the file cannot be read: {error.strerror or error}")


def _refusal(path: str, code: str, message: str) -> InputError:
    return InputError(Diagnostic("error", code, message, path))
