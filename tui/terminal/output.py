"""What is written to the terminal, and how much of it is still on its way."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from threading import Lock
from typing import TextIO


class Picture(str):
    """Sequences that draw: what may be left out when the program ends before they are written."""


class Output:
    """The file that Textual's writer thread writes to: unbuffered, and counted.

    expected: pieces of text that were given to the writer and not written yet. written: called
    in the writer's thread when there are none any more. gone: called once, when writing fails.
    """

    def __init__(self, stream: TextIO, written: Callable[[], None], gone: Callable[[], None]) -> None:
        self._descriptor = stream.fileno()
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

    def drop_pictures(self) -> None:
        """From now on write only what is no picture."""
        self._drops_pictures = True

    def write(self, text: str) -> None:
        """Write one piece. A terminal that is gone takes everything."""
        if not self._is_gone and not (self._drops_pictures and isinstance(text, Picture)):
            try:
                self._write_all(text.encode(self._encoding, self._errors))
            except OSError:
                self._is_gone = True
                self._gone()
        with self._lock:
            self.expected -= 1
            all_written = not self.expected
        if all_written:
            self._written()

    def _write_all(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:
                # Somebody who shares the terminal has made it non-blocking.
                select.select([], [self._descriptor], [])

    def flush(self) -> None:
        """Nothing is held back."""

    def fileno(self) -> int:
        return self._descriptor
