"""What is written to the terminal, and how much of it is still on its way."""

from __future__ import annotations

import os
import select
from collections import deque
from collections.abc import Callable
from itertools import groupby
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


class SentPicture(str):
    """Sequences that draw: what may be left out when the program ends before they are written."""


class Output:
    """The file that Textual's writer thread writes to: it counts what is still on its way.

    written: called in the writer's thread when nothing is. gone: called once, when writing fails.
    """

    def __init__(self, stream: TextIO, written: Callable[[], None], gone: Callable[[], None]) -> None:
        self._descriptor = _own_descriptor(stream.fileno())
        self._encoding, self._errors = stream.encoding, stream.errors or "strict"
        self._written, self._gone = written, gone
        # An entry for each text that was given to the writer: no lock, which a signal handler that
        # writes could find held by what it has interrupted.
        self._expected: deque[None] = deque()
        self._held: list[str] = []
        self._drops_pictures = False
        self._is_gone = False

    @property
    def expected(self) -> int:
        """How many texts were given to the writer and are not written yet."""
        return len(self._expected)

    def expect(self) -> None:
        """A text will be written."""
        self._expected.append(None)

    def drop_pictures(self, drop: bool = True) -> None:
        """From now on write only what is no picture, or everything again."""
        self._drops_pictures = drop

    def write(self, text: str) -> None:
        """Hold a text until the writer has no more for now, and flushes."""
        self._held.append(text)

    def flush(self) -> None:
        """Write what is held. A terminal that is gone takes everything."""
        held, self._held = self._held, []
        for is_picture, texts in groupby(held, lambda text: isinstance(text, SentPicture)):
            if not self._is_gone and not (is_picture and self._drops_pictures):
                try:
                    self._write_all("".join(texts).encode(self._encoding, self._errors), is_picture)
                except OSError:
                    self._is_gone = True
                    self._gone()
        for _ in held:
            self._expected.popleft()
        if held and not self._expected:
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

    def fileno(self) -> int:
        return self._descriptor
