"""What is written to the terminal, and how much of it is still on its way."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from threading import Lock
from typing import TextIO

_LOOK_AGAIN_S = 0.1
# No more synchronized output, the default style.
_END_OF_PICTURE = b"\x1b[?2026l\x1b[m"


def _own_descriptor(shared: int) -> int:
    """The same terminal, opened anew so that writing never blocks; the shell's descriptor stays as it is."""
    try:
        return os.open(os.ttyname(shared), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return shared


class Picture(str):
    """Sequences that draw: what may be left out when the program ends before they are written."""


class Output:
    """The file that Textual's writer thread writes to: unbuffered, and counted.

    expected: pieces of text that were given to the writer and not written yet. written: called
    in the writer's thread when there are none any more. gone: called once, when writing fails.
    """

    def __init__(self, stream: TextIO, written: Callable[[], None], gone: Callable[[], None]) -> None:
        self._descriptor = _own_descriptor(stream.fileno())
        self._encoding, self._errors = stream.encoding, stream.errors or "strict"
        self._written, self._gone = written, gone
        self._lock = Lock()
        self._drops_pictures = False
        self._is_gone = False
        self.expected = 0

    def expect(self) -> None:
        """A piece of text will be written."""
        with self._lock:
            self.expected += 1

    def drop_pictures(self, drop: bool = True) -> None:
        """From now on write only what is no picture, or everything again."""
        self._drops_pictures = drop

    def write(self, text: str) -> None:
        """Write one piece. A terminal that is gone takes everything."""
        if not self._is_gone and not (self._drops_pictures and isinstance(text, Picture)):
            try:
                self._write_all(text.encode(self._encoding, self._errors), isinstance(text, Picture))
            except OSError:
                self._is_gone = True
                self._gone()
        with self._lock:
            self.expected -= 1
            all_written = not self.expected
        if all_written:
            self._written()

    def _write_all(self, data: bytes, is_picture: bool) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:
                select.select([], [self._descriptor], [], _LOOK_AGAIN_S)
                if is_picture and self._drops_pictures:
                    # A sequence may be cut in two: the terminal forgets it at the next one.
                    left = memoryview(_END_OF_PICTURE)
                    is_picture = False

    def flush(self) -> None:
        """Nothing is held back."""

    def fileno(self) -> int:
        return self._descriptor
