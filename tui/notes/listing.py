"""The notes that contain all words of the filter; and the line of the file that a note is about.

The column of a note is marked; and whether the file is still the one that was read.
"""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

from simcore.diagnostics import WEIGHTS, Diagnostic, InputError, sort_by_weight
from simcore.units import plural
from simcore.workload.formats.cell import lines_of
from simcore.workload.formats.format import without_bom
from simcore.workload.opening import read_file
from tui.frame import Glyphs, Line, cells, wrapped
from tui.session import Stamp, stamp_of

ROLES = {"error": "worse", "warning": "warn", "assumption": "bright", "note": "dim"}
# Includes the blank behind it.
CHANGED, UNREADABLE = "the file has changed since it was opened", "the file cannot be read any more"
_SHORT = {"assumption": "assumed"}
WEIGHT_CELLS = 8


def describe_weights(diagnostics: Iterable[Diagnostic]) -> str:
    """Returns `: 2 warnings, 4 assumptions, 1 note`, behind how many notes there are; "" where all are plain
    ones.
    """
    weights = Counter(diagnostic.weight for diagnostic in diagnostics)
    if set(weights) <= {"note"}:
        return ""
    return ": " + ", ".join(plural(weights[weight], weight) for weight in WEIGHTS if weights[weight])


def weight_word(diagnostic: Diagnostic) -> str:
    """Returns `warning `, `assumed ` or `note  `: the weight of a note, as a column in front of it."""
    return f"{_SHORT.get(diagnostic.weight, diagnostic.weight):<{WEIGHT_CELLS}}"


class NoteList:
    """The diagnostics of a run, the largest weight first.

    `path` is what was opened, `typed` the filter, "" without one. Lines are made only for the notes in view:
    a file can have a hundred thousand.
    """

    def __init__(self, path: str, diagnostics: Sequence[Diagnostic], typed: str = "") -> None:
        self._path = path
        self.all = sort_by_weight(diagnostics)
        self.typed = ""
        self.filtered: Sequence[int] = range(len(diagnostics))
        self.filter(typed)

    def __len__(self) -> int:
        return len(self.filtered)

    def __getitem__(self, index: int) -> Diagnostic:
        return self.all[self.filtered[index]]

    @cached_property
    def _texts(self) -> list[str]:
        """The text of each note that the filter searches."""
        return [
            f"{note.weight} {self.location_text(note)} {self.file_text(note)}{note.message} "
            f"{note.code}".casefold()
            for note in self.all
        ]

    @cached_property
    def _location_cells(self) -> int:
        """The cells of the column of locations, with two blanks behind it; 0 where no note has one."""
        longest = max((len(self.location_text(note)) for note in self.all), default=0)
        return longest + 2 if longest else 0

    def filter(self, typed: str) -> None:
        """Shows only the notes that contain every word of `typed`, ignoring case."""
        self.typed = typed.strip()
        words = self.typed.casefold().split()
        if not words:
            self.filtered = range(len(self.all))
            return
        self.filtered = [
            index for index, text in enumerate(self._texts) if all(word in text for word in words)
        ]

    def index_of(self, diagnostic: Diagnostic) -> int:
        """Returns the index of a note among those that are left, 0 if it is not."""
        matches = (index for index in range(len(self)) if self[index] is diagnostic)
        return next(matches, 0)

    @staticmethod
    def location_text(diagnostic: Diagnostic) -> str:
        """Returns `line 3, column 12`; "" where no file has it."""
        if diagnostic.line is None:
            return ""
        return f"line {diagnostic.line}" + (
            f", column {diagnostic.column}" if diagnostic.column is not None else ""
        )

    def file_text(self, diagnostic: Diagnostic) -> str:
        """Returns the file that a note is about, where that is not the one that was opened."""
        return (
            ""
            if diagnostic.file in ("", self._path)
            else f"{cells(os.path.basename(diagnostic.file.rstrip(os.sep)), 80)}: "
        )

    def lines(self, index: int, width: int) -> list[Line]:
        """Returns a note as lines: severity, location, and its words, wrapped."""
        diagnostic = self[index]
        text = f"{self.file_text(diagnostic)}{cells(diagnostic.message, 2000)}  [{diagnostic.code}]"
        indent = WEIGHT_CELLS + self._location_cells
        message = textwrap.wrap(text, max(width - indent - 2, 20), break_on_hyphens=False)
        first: Line = [
            (weight_word(diagnostic), ROLES[diagnostic.weight]),
            (f"{self.location_text(diagnostic):<{self._location_cells}}", ""),
        ]
        lines: list[Line] = [[*first, (message[0], "")]]
        return lines + [[(" " * indent + more, "")] for more in message[1:]]

    def first_in_view(self, top: int, focus: int, rows: int, width: int) -> int:
        """Returns the first note to draw: `top`, moved so that `focus` is complete and no row is spare."""
        top = min(top, focus)
        return max(
            min(top, self._first_that_fits(len(self) - 1, rows, width)),
            self._first_that_fits(focus, rows, width),
        )

    def fits(self, first: int, rows: int, width: int) -> bool:
        """Returns whether the notes from `first` to the last one fit completely in `rows`."""
        return (
            self._first_that_fits(len(self) - 1, rows, width) <= first
            and len(self.lines(first, width)) <= rows
        )

    def _first_that_fits(self, last: int, rows: int, width: int) -> int:
        """Returns the first of the notes that fit above `last`, with it; `last` itself where it is
        too long.
        """
        first = last
        room = rows - len(self.lines(last, width))
        while first > 0 and (room := room - len(self.lines(first - 1, width))) >= 0:
            first -= 1
        return first


# Lines shown before and behind the marked one.
_AROUND = 2
# The most cells of an escaped character of a file: \U0010ffff.
_MOST_CELLS = 10


class SourceLines:
    """Some lines of a file around one of them. `problem` says why there are none, or not those that were
    read.
    """

    def __init__(self, path: str, line: int, before: Stamp | None, around: int = _AROUND) -> None:
        """Reads the lines.

        before: the state of the file when it was read, None where that is not known. line: from 1. around:
        lines before and behind it.
        """
        self.line = line
        self.problem = ""
        self.around: list[tuple[int, str]] = []
        try:
            lines = lines_of(without_bom(read_file(path)).decode("utf-8", "surrogateescape"))
        except InputError as error:
            self.problem = f"{UNREADABLE}: {error.diagnostics[0].message}"
            return
        if before is not None and stamp_of(path) != before:
            self.problem = f"{CHANGED}: this is how it is now"
        if line > len(lines):
            self.problem = f"{CHANGED}: it ends before line {line} now"
            return
        first = max(line - around, 1)
        # A tab becomes one blank: columns count it so.
        source_lines = [text.replace("\t", " ") for text in lines[first - 1 : line + around]]
        self.around = list(enumerate(source_lines, first))

    def draw(self, column: int | None, width: int, glyphs: Glyphs) -> list[Line]:
        """Returns the lines in `width` cells; all begin at the same column, so that `column` (from 1) is in
        view.
        """
        size = len(str(self.around[-1][0])) if self.around else 0
        room = max(width - size - 6, 1)
        source_line = next((text for line_number, text in self.around if line_number == self.line), "")
        at = min(column - 1, len(source_line)) if column is not None else 0
        # Where the text before the column has too little room, half of the width goes to it.
        start = 0 if _width(source_line[:at][: room + 1]) < room - 1 else max(at - room // 2, 0)
        lines: list[Line] = []
        for line_number, text in self.around:
            is_source_line = line_number == self.line
            sign, role = (">", "accent") if is_source_line else (" ", "dim")
            head = f" {sign} {line_number:>{size}} {glyphs.vertical} "
            if is_source_line and column is not None:
                before, after = _escape_text(text[start:at], start > 0), text[at : at + room]
                # Escaped, the text before the column may be longer than it was.
                if len(before) > (most := room * 3 // 4):
                    before = f"...{before[len(before) - most + 3 :]}"
                lines.append([(head, role), (_truncate(before + _escape_text(after, False), room), "bright")])
                blank = " " * (len(head) - 2)
                lines.append([(f"{blank}{glyphs.vertical} ", "dim"), (f"{' ' * len(before)}^", "accent")])
            else:
                escaped = _escape_text(text[start : start + room + 1], start > 0)
                lines.append(
                    [(head, role), (_truncate(escaped, room), "bright" if is_source_line else "dim")]
                )
        return lines


def _escape_text(text: str, is_cut: bool) -> str:
    """Returns text of a file, each special character escaped; `...` in front of truncated text."""
    safe = cells(text, len(text) * _MOST_CELLS + 3)
    return f"...{safe[3:]}" if is_cut else safe


def _width(text: str) -> int:
    return len(_escape_text(text, False))


def _truncate(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: max(room - 3, 0)]}..."


def note_lines(
    diagnostic: Diagnostic, source: SourceLines | None, width: int, glyphs: Glyphs, role: str
) -> list[Line]:
    """Returns all of a note: its full words, and the lines of the file."""
    lines: list[Line] = [[(f" {diagnostic.weight} {diagnostic.code}", role)]]
    lines += [[(f" {line}", "")] for line in wrapped(cells(diagnostic.message, 4000), width - 2)]
    if source is None:
        return lines
    lines.append([])
    if source.problem:
        lines += [[(f" {line}", "warn")] for line in wrapped(source.problem, width - 2)]
        lines.append([])
    return lines + source.draw(diagnostic.column, width, glyphs)
