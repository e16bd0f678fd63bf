"""A line on a terminal that says how far a long command is, and that is gone when it is over."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TextIO

from simcore.export import Progress

# What takes less is over before it could be read.
_FIRST_AFTER_S = 0.3
_EVERY_S = 0.1
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Written to stderr if that is a terminal, else nowhere. what: stands before the percentage."""

    def __init__(self, what: str, progress: Progress | None, stream: TextIO | None = None) -> None:
        self.what = what
        self.progress = progress
        self.stream = sys.stderr if stream is None else stream
        self.shown = False
        self.next = time.monotonic() + _FIRST_AFTER_S
        self.active = progress is not None and self.stream is not None and self.stream.isatty()

    def watch(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The same pieces; the line goes on as they are taken."""
        if not self.active:
            yield from pieces
            return
        for piece in pieces:
            yield piece
            if time.monotonic() >= self.next:
                self._show()

    def _show(self) -> None:
        progress = self.progress
        if progress is None:
            return
        share = 100 * progress.done // progress.total if progress.total else 0
        self.stream.write(f"{_CLEAR}{self.what}  {min(share, 100)} %")
        self.stream.flush()
        self.shown = True
        self.next = time.monotonic() + _EVERY_S

    def clear(self) -> None:
        """Takes the line away."""
        if self.shown:
            self.stream.write(_CLEAR)
            self.stream.flush()
            self.shown = False
