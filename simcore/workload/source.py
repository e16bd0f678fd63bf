"""The bytes of a workload: from a file or a stream such as standard input, unpacked from gzip.

They are read in chunks, so that the format is known before all is read, and memory is limited
for a pipe without an end and for a gzip file that unpacks to terabytes.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

from simcore.diagnostics import Diagnostic, InputError

if TYPE_CHECKING:
    from zlib import _Decompress

# Unpacked bytes: about 8 million rows, more than can be simulated.
MOST_BYTES = 512 * 2**20
# Enough to tell a format: a trace of gigabytes is refused without reading it all.
HEAD_BYTES = 1 << 20
_CHUNK = 1 << 20
# Bytes fed to zlib at a time: it copies what remains behind a member, and a file may have a million members.
_FED = 1 << 12
GZIP = b"\x1f\x8b"
# A gzip file can contain itself, without end.
_MOST_LAYERS = 3
_GZIP_WINDOW = 31  # zlib's word for a gzip header with the largest window

Read = Callable[[int], bytes]


class Source:
    """Bytes that are read once.

    head: the first of them, unpacked from gzip. read: returns at most the requested number of bytes, none at
    the end. Raises: InputError for gzip data that cannot be unpacked; what `read` raises.
    """

    def __init__(self, path: str, read: Read) -> None:
        self._path = path
        self._read = read
        self._layers: list[_Gunzip] = []
        self.head = _read_exactly(read, HEAD_BYTES)
        while self.head.startswith(GZIP):
            if len(self._layers) == _MOST_LAYERS:
                raise self._refusal("bad-gzip", f"found gzip inside gzip more than {_MOST_LAYERS} times")
            self._layers.append(_Gunzip(path, self.head, self._read))
            self._read = self._layers[-1].read
            self.head = _read_exactly(self._read, HEAD_BYTES)
            if not self.head:
                self.refuse_cut()

    def all(self, most: int = 0, is_part_enough: bool = False) -> bytes:
        """Returns the head and all that follows.

        Raises: InputError for more than `most` bytes (MOST_BYTES), and where gzip data ends early, unless a
        part of it is enough.
        """
        most = most or MOST_BYTES
        # The buffer grows in place; joining chunks would need two copies.
        buffer = io.BytesIO()
        size = buffer.write(self.head)
        while chunk := self._read(_CHUNK):
            size += len(chunk)
            if size > most:
                raise too_large(self._path, most)
            buffer.write(chunk)
        if not is_part_enough:
            self.refuse_cut()
        return buffer.getvalue()

    def refuse_cut(self) -> None:
        """Raises InputError where gzip data was found to end early."""
        ended = next((layer.bytes_read for layer in self._layers if layer.ends_early), None)
        if ended is not None:
            raise self._refusal("bad-gzip", f"the gzip data ends early, at byte {ended}")

    def _refusal(self, code: str, message: str) -> InputError:
        return InputError(Diagnostic("error", code, message, self._path, 1, 1))


def too_large(path: str, most: int) -> InputError:
    """Returns the error for a file of more than `most` bytes, unpacked."""
    limit = f"{most // 2**20} MiB"
    message = f"found more than {limit}, expected at most {limit}"
    return InputError(Diagnostic("error", "too-large", message, path, 1, 1))


class _Gunzip:
    """Unpacks gzip data, member after member, as the gzip program does.

    bytes_read: how many packed bytes were unpacked. ends_early: whether the data ended inside a member.
    """

    def __init__(self, path: str, start: bytes, read: Read) -> None:
        self._path = path
        self._packed = start
        self._at = 0
        self._read_packed = read
        self._member: _Decompress | None = None
        self.bytes_read = 0
        self.ends_early = False

    def read(self, size: int) -> bytes:
        """Returns at most `size` unpacked bytes, none at the end."""
        import zlib

        while True:
            if self._at == len(self._packed):
                self._packed, self._at = self._read_packed(_CHUNK), 0
            chunk = self._packed[self._at : self._at + _FED]
            if self._member is None:
                if not chunk:
                    return b""
                if not chunk.strip(b"\0"):  # padding of a tape block
                    self._advance(len(chunk))
                    continue
                self._member = zlib.decompressobj(_GZIP_WINDOW)
            try:
                unpacked = self._member.decompress(chunk, size)
            except zlib.error:
                message = f"the gzip data is damaged, before byte {self.bytes_read + len(chunk)}"
                raise InputError(Diagnostic("error", "bad-gzip", message, self._path, 1, 1)) from None
            left = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            self._advance(len(chunk) - len(left))
            if self._member.eof:
                self._member = None
            elif not chunk and not unpacked:
                self.ends_early = True
                return b""
            if unpacked:
                return unpacked

    def _advance(self, count: int) -> None:
        self._at += count
        self.bytes_read += count


def _read_exactly(read: Read, size: int) -> bytes:
    """Returns the first `size` bytes, fewer only at the end: a pipe gives only what has arrived so far."""
    chunks: list[bytes] = []
    while size and (chunk := read(size)):
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)
