"""Which notes are listed: those that hold all words of the filter, as many as fit."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from functools import cached_property

from simcore.diagnostics import Diagnostic
from tui.frame import Line, cells

ROLES = {"error": "worse", "warning": "warn", "note": "dim"}
_INDENT = 30


class NoteList:
    """The diagnostics of a run. path: what was opened. typed: the filter, "" without one.

    Lines are made of notes in view alone: a file can have a hundred thousand.
    """

    def __init__(self, path: str, diagnostics: Sequence[Diagnostic], typed: str = "") -> None:
        self._path = path
        self.all = diagnostics
        self.typed = ""
        self.left: Sequence[int] = range(len(diagnostics))
        self.filter(typed)

    def __len__(self) -> int:
        return len(self.left)

    def __getitem__(self, place: int) -> Diagnostic:
        return self.all[self.left[place]]

    @cached_property
    def _texts(self) -> list[str]:
        """What the filter looks at, of each note."""
        return [
            f"{one.severity} {self.place(one)} {self.file(one)}{one.message} {one.code}".casefold()
            for one in self.all
        ]

    def filter(self, typed: str) -> None:
        """Only the notes that hold every word of `typed`, in small letters or capitals."""
        self.typed = typed.strip()
        words = self.typed.casefold().split()
        if not words:
            self.left = range(len(self.all))
            return
        self.left = [index for index, text in enumerate(self._texts) if all(word in text for word in words)]

    def place_of(self, diagnostic: Diagnostic) -> int:
        """Where a note is among those that are left, 0 if it is not."""
        places = (place for place in range(len(self)) if self[place] is diagnostic)
        return next(places, 0)

    @staticmethod
    def place(one: Diagnostic) -> str:
        """`line 3, column 12`; `run` for what is no file's."""
        if one.line is None:
            return "run"
        return f"line {one.line}" + (f", column {one.column}" if one.column is not None else "")

    def file(self, one: Diagnostic) -> str:
        """Which file a note is about, where that is not the one that was opened."""
        return (
            ""
            if one.file in ("", self._path)
            else f"{cells(os.path.basename(one.file.rstrip(os.sep)), 80)}: "
        )

    def lines(self, place: int, width: int) -> list[Line]:
        """A note as lines: severity, place, and its words, wrapped."""
        one = self[place]
        text = f"{self.file(one)}{cells(one.message, 2000)}  [{one.code}]"
        words = textwrap.wrap(text, max(width - _INDENT - 1, 20))
        first: Line = [(f"{one.severity:<8}", ROLES[one.severity]), (f"{self.place(one):<{_INDENT - 9}}", "")]
        found: list[Line] = [[*first, (words[0], "")]]
        return found + [[(" " * (_INDENT - 1) + more, "")] for more in words[1:]]

    def first_in_view(self, top: int, focus: int, rows: int, width: int) -> int:
        """The first note to draw: `top`, moved so that `focus` is whole and no row is left over."""
        top = min(top, focus)
        return max(min(top, self._first_of(len(self) - 1, rows, width)), self._first_of(focus, rows, width))

    def _first_of(self, last: int, rows: int, width: int) -> int:
        """The first of the notes that fit above `last`, with it; itself where it is too long."""
        first = last
        room = rows - len(self.lines(last, width))
        while first > 0 and (room := room - len(self.lines(first - 1, width))) >= 0:
            first -= 1
        return first
