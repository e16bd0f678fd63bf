"""Screen 4 of a hung job: who waits for whom, in what, and behind which culprit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.frame import Glyphs, Line, cells, end_cut, filled, middle_cut, rows_around, rule, wrapped

if TYPE_CHECKING:
    from tui.why.frame import WhyModel

# From this many cells on a group has its whole name.
_WIDE = 110


def draw_waits(model: WhyModel, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Returns the lines of the screen: a row a wait; where nobody waits, the sentences on the dumps."""
    figures, row, count = model.results.figures, model.row(model.panel), len(model.waits)
    assert figures.hang is not None
    if not count:
        texts = [line for text in figures.words for line in wrapped(text, max(width - 4, 20))]
        lines: list[Line] = [[(f"  {text}", "")] for text in texts]
        return filled([rule(f"Hang: {figures.hang.headline}", width, glyphs), *lines], width, height)
    rows = rows_around(row, count, max(height - 2, 1))
    part = "" if len(rows) == count else f"{rows.start + 1}-{rows.stop} of {count}"
    is_blamed = not model.waits[0].behind and any(wait.behind for wait in model.waits)
    title = rule(f"Who waits for whom{', for a culprit first' if is_blamed else ''}", width, glyphs, part)
    name_cells = 38 if width >= _WIDE else 8
    heads = f"{'group':<{name_cells}} {'of ranks':<9} {'no.':>8} {'collective':<16} since, UTC"
    lines = [title, [(f"{'rank':>6} {'for':>5}  {'behind':<8} {heads}"[:width], "accent")]]
    for index in rows:
        wait, is_focused = model.waits[index], index == row
        group = middle_cut(wait.group.group if name_cells > 8 else wait.group.short, name_cells)
        text = (
            f"{'>' if is_focused else ' '}{wait.rank:>5} {wait.for_rank:>5}  {end_cut(wait.behind, 8):<8} "
            f"{group:<{name_cells}} {end_cut(wait.group.ranks, 9):<9} {wait.sequence:>8} "
            f"{end_cut(cells(wait.operation, 40), 16):<16} {wait.since}"
        )
        lines.append([(text, "accent" if is_focused else "" if wait.behind else "worse")])
    return filled(lines, width, height)
