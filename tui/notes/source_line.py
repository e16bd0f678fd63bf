"""The line that a note is about, its column marked; and whether the file is still the one that was read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from simcore.diagnostics import Diagnostic, InputError
from simcore.workload.formats.format import without_bom
from simcore.workload.formats.text import lines_of
from simcore.workload.opening import read_file
from tui.frame import Glyphs, Line, cells, wrapped

# Lines shown before the one that is meant, and behind it.
_AROUND = 2
# Cells that a character of a file may take when it is escaped: \U0010ffff.
_MOST_CELLS = 10


class Stamp(NamedTuple):
    """What tells one state of a file from another: when it was written (ns), its bytes, which file it is."""

    written_ns: int
    bytes: int
    inode: int


def stamp_of(path: str) -> Stamp | None:
    """The state of a file now; None without one."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return Stamp(found.st_mtime_ns, found.st_size, found.st_ino)


def stamps_of(path: str, diagnostics: Iterable[Diagnostic]) -> dict[str, Stamp | None]:
    """The state of the file at `path` and of all that the diagnostics are about."""
    return {one: stamp_of(one) for one in {path, *(one.file for one in diagnostics if one.file)}}


class SourceLines:
    """Some lines of a file around one of them. problem: why there are none, or not those that were read."""

    def __init__(self, path: str, line: int, before: Stamp | None) -> None:
        """before: the state of the file when it was read, None where that is not known. line: from 1."""
        self.line = line
        self.problem = ""
        self.around: list[tuple[int, str]] = []
        try:
            lines = lines_of(without_bom(read_file(path)).decode("utf-8", "surrogateescape"))
        except InputError as error:
            self.problem = f"the file cannot be read any more: {error.diagnostics[0].message}"
            return
        if before is not None and stamp_of(path) != before:
            self.problem = "the file has changed since it was opened: this is how it is now"
        if line > len(lines):
            self.problem = f"the file has changed since it was opened: it ends before line {line} now"
            return
        first = max(line - _AROUND, 1)
        # A tab as one blank: columns count it so.
        around = [text.replace("\t", " ") for text in lines[first - 1 : line + _AROUND]]
        self.around = list(enumerate(around, first))

    def drawn(self, column: int | None, width: int, glyphs: Glyphs) -> list[Line]:
        """The lines in `width` cells; all are cut at the same place, so that `column` (from 1) is in view."""
        size = len(str(self.around[-1][0])) if self.around else 0
        room = max(width - size - 6, 1)
        meant = next((text for number, text in self.around if number == self.line), "")
        at = min(column - 1, len(meant)) if column is not None else 0
        # Where there is no room for all that is before the column, half of it is.
        start = 0 if _width(meant[:at][: room + 1]) < room - 1 else max(at - room // 2, 0)
        found: list[Line] = []
        for number, text in self.around:
            here = number == self.line
            sign, role = (">", "accent") if here else (" ", "dim")
            head = f" {sign} {number:>{size}} {glyphs.vertical} "
            if here and column is not None:
                before, after = _shown(text[start:at], start > 0), text[at : at + room]
                # Escaped, the text before the column may be longer than it was.
                if len(before) > (most := room * 3 // 4):
                    before = f"...{before[len(before) - most + 3 :]}"
                found.append([(head, role), (_cut(before + _shown(after, False), room), "bright")])
                blank = " " * (len(head) - 2)
                found.append([(f"{blank}{glyphs.vertical} ", "dim"), (f"{' ' * len(before)}^", "accent")])
            else:
                shown = _shown(text[start : start + room + 1], start > 0)
                found.append([(head, role), (_cut(shown, room), "bright" if here else "dim")])
        return found


def _shown(text: str, is_cut: bool) -> str:
    """Text of a file, each character that is no plain one escaped; `...` in front of what is cut there."""
    safe = cells(text, len(text) * _MOST_CELLS + 3)
    return f"...{safe[3:]}" if is_cut else safe


def _width(text: str) -> int:
    return len(_shown(text, False))


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: max(room - 3, 0)]}..."


def note_lines(
    diagnostic: Diagnostic, source: SourceLines | None, width: int, glyphs: Glyphs, role: str
) -> list[Line]:
    """All of a note: its words whole, and the lines of the file."""
    lines: list[Line] = [[(f" {diagnostic.severity} {diagnostic.code}", role)]]
    lines += [[(f" {words}", "")] for words in wrapped(cells(diagnostic.message, 4000), width - 2)]
    if source is None:
        return lines
    lines.append([])
    if source.problem:
        lines += [[(f" {words}", "warn")] for words in wrapped(source.problem, width - 2)]
        lines.append([])
    return lines + source.drawn(diagnostic.column, width, glyphs)
