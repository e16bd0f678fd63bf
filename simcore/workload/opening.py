"""Opens workload files: finds the format of a file and passes it to the reader of that format."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from io import BytesIO
from typing import BinaryIO

from simcore.diagnostics import Diagnostic, InputError
from simcore.workload.formats import format_of, head_of
from simcore.workload.formats.cell import quoted
from simcore.workload.formats.format import is_text
from simcore.workload.model import Workload
from simcore.workload.source import GZIP, MOST_BYTES, Source, too_large

# Bytes of an unknown file that a message quotes.
_BYTES_SHOWN = 8
_SPECIAL_FILES = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISSOCK, "a socket"),
)


def open_workload(path: str) -> Workload:
    """Returns the workload in the file at `path`; the content tells its format, never the name.

    Raises: InputError when there is no such file, it cannot be read, or it is of another format.
    """
    try:
        with open_regular(path) as file:
            return read_source(path, Source(path, file.read))
    except OSError as error:
        raise _unreadable(path, error) from None


def stream_source(stream: BinaryIO | None, name: str = "standard input") -> Source:
    """Returns the bytes of an open stream, None for one that is closed. Raises: InputError, now or later."""
    if stream is None:
        raise _refusal(name, "unreadable-file", "it is closed")

    def read(size: int) -> bytes:
        try:
            return stream.read(size)
        except OSError as error:
            raise _refusal(name, "unreadable-file", f"it cannot be read: {error.strerror or error}") from None

    return Source(name, read)


def read_source(path: str, source: Source) -> Workload:
    """Returns the workload in these bytes; `path` is for messages. Raises: InputError for another format."""
    try:
        reader = _choose_reader(path, source.head)
    except InputError:
        # The format of gzip data that ends early is unknown.
        source.refuse_cut()
        raise
    return reader(path, source.all())


def read_beginning(path: str) -> bytes:
    """Returns as much of the file at `path` as tells its format. Raises InputError as `open_workload`
    does.
    """
    try:
        with open_regular(path) as file:
            return Source(path, file.read).head
    except OSError as error:
        raise _unreadable(path, error) from None


def read_file(path: str, most: int = 0, is_part_enough: bool = False) -> bytes:
    """Returns all bytes of the file at `path`, unpacked from gzip. Raises InputError as `open_workload` does.

    most: the most bytes that it may have; 0 for the limit of workloads. is_part_enough: whether gzip data
    that ends early is returned as far as it goes.
    """
    try:
        with open_regular(path) as file:
            if file.read(len(GZIP)) == GZIP:
                file.seek(0)
                return Source(path, file.read).all(most, is_part_enough)
            file.seek(0)
            # Read at once: joining chunks would need two copies.
            data = file.read((most or MOST_BYTES) + 1)
    except OSError as error:
        raise _unreadable(path, error) from None
    if len(data) > (most or MOST_BYTES):
        raise too_large(path, most or MOST_BYTES)
    return data


def open_regular(path: str) -> BinaryIO:
    """Returns the open file, or an open pipe. A named pipe would wait for a writer for ever, so the kind is
    checked before.
    """
    try:
        status = os.stat(path)
        mode = status.st_mode
    except (FileNotFoundError, ValueError):  # ValueError: a NUL character in the path
        raise _refusal(path, "no-such-file", "there is no such file") from None
    if stat.S_ISDIR(mode):
        raise _refusal(path, "is-a-directory", "found a directory, expected a file")
    if stat.S_ISFIFO(mode):
        # Imported here, as where other files are read: few are pipes.
        from simcore.pipes import read_open_pipe

        piped = read_open_pipe(path, mode, MOST_BYTES)
        if piped is not None:
            return BytesIO(piped)
    for is_kind, kind in _SPECIAL_FILES:
        if is_kind(mode):
            raise _refusal(path, "not-a-regular-file", f"found {kind}, expected a regular file")
    # A file of the system without a size may wait like a pipe (/proc/kmsg), or be the memory of a process.
    return open(path, "rb") if status.st_size else BytesIO()


def _choose_reader(path: str, raw: bytes) -> Callable[[str, bytes], Workload]:
    file_format = format_of(raw)
    if file_format is not None and file_format.read is not None:
        return file_format.read
    head = head_of(raw)
    if not head.first:
        raise _refusal(path, "empty-file", "the file is empty, expected a workload", 1)
    if file_format is None and not is_text(raw):
        message = f"found binary data ({raw[:_BYTES_SHOWN].hex(' ')}), expected a known format"
        raise _refusal(path, "unknown-format", message, 1)
    if file_format is None:
        message = f"found {quoted(head.first)}, expected the first line of a known format"
        raise _refusal(path, "unknown-format", message, head.line)
    if file_format.kind == "model":
        raise _refusal(path, "is-a-model", f"found a {file_format.name}, expected a workload file")
    if file_format.kind != "workload":
        raise _refusal(path, "measured-run", f"found a {file_format.name}, expected a workload to simulate")
    raise _refusal(path, "unsupported-format", file_format.refusal, head.line if is_text(raw) else 1)


def _unreadable(path: str, error: OSError) -> InputError:
    return _refusal(path, "unreadable-file", f"the file cannot be read: {error.strerror or error}")


def _refusal(path: str, code: str, message: str, line: int | None = None) -> InputError:
    column = 1 if line is not None else None
    return InputError(Diagnostic("error", code, message, path, line, column))
