"""The first screen of a hung job: who is waited for, in sentences, and how far each group has come."""

from __future__ import annotations

from collections.abc import Sequence

from simcore.ranks import RankSet
from simcore.render.report.hang import MemberLine
from tui.frame import (
    Glyphs,
    Line,
    cells,
    count_title,
    end_cut,
    fitted,
    middle_cut,
    rows_around,
    rule,
)
from tui.summary.model import HANG_GROUPS, NOTES, SummaryModel
from tui.summary.panels import first_sentences, note_lines

# The most rows for sentences, of what the screen has; the least for the table.
_WORDS_PERCENT, _LEAST_TABLE, _MOST_NOTES = 45, 6, 3
_ROLE_STYLES = {"culprit": "worse", "stuck": "warn"}


def draw_hang(model: SummaryModel, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Returns the lines of the screen: the verdict, the groups, the notes."""
    model.set_panels((HANG_GROUPS, NOTES))
    figures = model.results.figures
    tables = figures.hang
    assert tables is not None
    notes = model.notes
    note_rows = min(len(notes), _MOST_NOTES)
    below = [
        rule(count_title("Notes", note_rows, len(notes)), width, glyphs),
        *note_lines(notes, model.row(NOTES), width, note_rows, model.panel == NOTES),
    ]
    most = max(height * _WORDS_PERCENT // 100, height - len(below) - len(model.hang_rows) - 3, 2)
    words = first_sentences(figures.words, width, most)
    above = [rule(f"Hang: {tables.headline}", width, glyphs), *words]
    rows = max(height - len(above) - len(below) - 2, 1)
    table, left = _table_lines(model, width, rows)
    count = len(tables.groups)
    title = f"How far each of {count} groups has come: numbers of the last collective; those behind in front"
    frame: list[Line] = [*above, rule(end_cut(title, width - 10 - len(left)), width, glyphs, left), *table,
             *([[]] * (rows + 1 - len(table))), *below]  # fmt: skip
    return [fitted(line, width) for line in frame[:height]]


def _table_lines(model: SummaryModel, width: int, rows: int) -> tuple[list[Line], str]:
    """Returns a heading and so many rows around the cursor, and how many rows are below them."""
    wide = width >= 116
    name_cells, rank_cells = (38, 14) if wide else (22, 9)
    heading = f"   {'group':<{name_cells}} {'of ranks':<{rank_cells}} {'ranks':<{rank_cells}}"
    figures = ("enqueued", "started", "completed") if wide else ("enq", "start", "compl")
    heading += "".join(f"{figure:>{11 if wide else 8}}" for figure in figures)
    lines: list[Line] = [[(heading[:width], "accent")]]
    visible = rows_around(model.row(HANG_GROUPS), len(model.hang_rows), rows)
    for index in visible:
        line = model.hang_rows[index]
        is_focused = model.panel == HANG_GROUPS and index == model.row(HANG_GROUPS)
        lines.append(_row(line, is_focused, (name_cells, rank_cells, 11 if wide else 8), width))
    below = len(model.hang_rows) - visible.stop
    return lines, f"{below} more {'row' if below == 1 else 'rows'} below" if below > 0 else ""


def _row(line: MemberLine, is_focused: bool, sizes: tuple[int, int, int], width: int) -> Line:
    name_cells, rank_cells, figure_cells = sizes
    member = line.members[0]
    group = middle_cut(line.group.group, name_cells) if line.heads or is_focused else ""
    of = end_cut(line.group.ranks, rank_cells) if line.heads or is_focused else ""
    ranks = end_cut(RankSet.of(one.rank for one in line.members).text(), rank_cells)
    figures = _figures((member.enqueued, member.started, member.completed), figure_cells)
    names = f"{group:<{name_cells}} {of:<{rank_cells}} {ranks:<{rank_cells}}"
    text = f" {'>' if is_focused else ' '} {names}{figures}"
    role = "accent" if is_focused else ""
    return [(text[:width], role), (cells(f"  {member.role}"), _ROLE_STYLES.get(member.role, "dim"))]


def _figures(values: Sequence[int | None], figure_cells: int) -> str:
    return "".join(f"{'-' if value is None else value:>{figure_cells}}" for value in values)
