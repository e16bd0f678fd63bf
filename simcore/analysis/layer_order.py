"""What rows of the layer table are sorted by for their cells, and searched by, and where in a step some of
them are best seen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from simcore.analysis.layers import NOT_MODELLED, LayerLines
from simcore.collectives import cell_name
from simcore.engine.timeline import Timeline
from simcore.program.ops import PHASES as OP_PHASES
from simcore.trace.findings import TrackInterval
from simcore.trace.layers import Column
from simcore.workload.model import PHASES, Cells, base_name

# Columns of the file by which cells are sorted as they are: to make a cell takes 2 us.
_FILE_COLUMNS: dict[str, Callable[[Cells], Sequence[int]]] = {
    "bytes": lambda cells: cells.bytes,
    # One factor applies to all cells: the largest as written stays the largest.
    "cell": lambda cells: [-1 if ns in NOT_MODELLED else ns for ns in cells.compute_ns],
}


def sort_values(lines: LayerLines, column: Column) -> Sequence[Any]:
    """Returns what lines are sorted by in a column; for a column of cells the largest, or all their texts."""
    if column.of == "line":
        # For 100,000 names it takes half the time.
        return lines.titles if column.key == "name" else column.sort_values(lines)
    if column.unit == "text":
        return _cell_texts(lines, column.key)
    table, first, file_column = lines.table, lines.first_row, _FILE_COLUMNS.get(column.key)
    if file_column is None or (column.key == "cell" and table.has_scales):
        return [max(column.sort_values(table.cell(row, phase) for phase in PHASES)) for row in first]
    largest = list(map(max, *(file_column(table.simulation.workload.cells(phase)) for phase in PHASES)))
    return [largest[row] for row in first]


def _cell_texts(lines: LayerLines, key: str) -> list[str]:
    """Returns the names of collectives or groups of each line, or both."""
    workload = lines.table.simulation.workload
    columns = [workload.cells(phase) for phase in PHASES]
    pairs = [(cells.collective, cells.group) for cells in columns]
    rows = zip(*(column for pair in pairs for column in pair), strict=True)
    text_of: dict[tuple[str | None, ...], str] = {}
    texts = [text_of.get(row) or text_of.setdefault(row, _row_words(row, key)) for row in rows]
    return [texts[row] for row in lines.first_row]


def search_texts(lines: LayerLines) -> list[str]:
    """Returns what each line is searched by, in small letters: its name and those of its rows, each once, its
    collectives and groups.
    """
    names, texts = lines.table.simulation.workload.name, _cell_texts(lines, "words")
    if lines.each:
        return [f"{names[row]}\n{text}".lower() for row, text in zip(lines.first_row, texts, strict=True)]
    texts_of_lines = []
    for index, text in enumerate(texts):
        row_names = dict.fromkeys(names[row] for row in lines.members(index))
        # A row without a number in its name has the name of its group.
        words = "\n".join({base_name(next(iter(row_names))): None, **row_names})
        texts_of_lines.append(f"{words}\n{text}".lower())
    return texts_of_lines


def find_row_inside(lines: LayerLines, typed: str, index: int) -> int | None:
    """Returns the first row of a group whose own name has every word that was typed, where the group's name
    does not; None for a row that stands alone.
    """
    words = typed.lower().split()
    if lines.each or not words:
        return None
    names = lines.table.simulation.workload.name
    members = lines.members(index)
    group = base_name(names[members[0]]).lower()
    if all(word in group for word in words):
        return None
    return next((row for row in members if all(word in names[row].lower() for word in words)), None)


def _row_words(row: tuple[str | None, ...], key: str) -> str:
    """Returns the collectives or the groups of a row's three phases, in words."""
    collectives = [cell_name(name) for name in row[::2] if name is not None]
    groups = [group for group in row[1::2] if group is not None]
    return " ".join({"collective": collectives, "group": groups}.get(key, [*collectives, *groups]))


def find_longest_span(
    timeline: Timeline, rows: Collection[int], phase: str | None = None
) -> TrackInterval | None:
    """Returns the longest span of some rows on the first class that has any, the earliest of equal ones.

    phase: only spans of this one. None where they take no time in the step.
    """
    of_phase = None if phase is None else OP_PHASES.index(phase)
    for class_id in range(len(timeline.classes)):
        ops, start, end = timeline.columns(class_id)
        inside = [
            op
            for op, (row, op_phase) in enumerate(zip(ops.row, ops.phase, strict=True))
            if row in rows and (of_phase is None or op_phase == of_phase) and end[op] > start[op]
        ]
        if inside:
            op = max(inside, key=lambda op: (end[op] - start[op], -start[op]))
            return TrackInterval(class_id, start[op], end[op])
    return None
