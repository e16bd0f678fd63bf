"""What the cells mean: the kinds that occur in a run, as many of them as the width takes."""

from __future__ import annotations

from collections.abc import Sequence

from tui.frame import Glyphs, Line, width_of
from tui.timeline.spans import Kind

_WIDE = 100


def legend(
    kinds: Sequence[Kind], glyphs: Glyphs, width: int, colour: bool, crowded: bool, streams: bool,
    path: bool = False, wide: bool | None = None, partly: bool = False, seams: bool = False,
) -> Line:  # fmt: skip
    """One line of at most `width` cells; an entry that does not fit whole is left out.

    crowded: whether a row is drawn by how busy it is. streams: whether a stream's lane is shown.
    path: whether the critical path stands out. seams: whether steps end in lanes. partly: whether lanes
    are shown that are empty at times.
    wide: whether whole words are written and communication by its kinds; None: from 100 cells on.
    """
    wide = width >= _WIDE if wide is None else wide
    entries: list[Line] = [_entry(kind, glyphs, wide and colour, wide) for kind in kinds]
    if crowded:
        height = f"{glyphs.heat[2]}{glyphs.heat[5]}{glyphs.heat[8]}"
        words = " crowded: height is busy share" if wide else " busy share"
        # In front of all else: it changes what the others say.
        entries.insert(0, [(height, "bright"), (f"{words} ", "")])
    if seams:
        entries.insert(0, [(glyphs.vertical, "bright"), (" step ends ", "")])
    if path and not colour:
        entries.insert(0, [("FBX* <>", "bright"), (" critical path ", "")])
    if streams and wide:
        entries.append([("   comm lanes: ", "dim"), (glyphs.busy, "comm"), (" busy  ", "")])
    if partly:
        # In lanes of compute as in those of communication: less than half of the cell.
        entries.append([(glyphs.partly, "comm"), (" partly", "")])
    line: Line = []
    for entry in entries:
        if width_of(line) + width_of(entry) + 1 <= width:
            line += [(" ", ""), *entry]
    return line


def _entry(kind: Kind, glyphs: Glyphs, named: bool, wide: bool) -> Line:
    """named: whether communication is told apart, each kind in its colour."""
    found: Line = [(glyphs.fills[kind.fill], kind.role)]
    if kind.parts and named:
        found.append((f" {kind.words}", ""))
        for role, word in kind.parts:
            found += [(" ", ""), (word, role)]
        return [*found, (" ", "")]
    return [*found, (f" {kind.words if wide else kind.words.split()[0]} ", "")]
