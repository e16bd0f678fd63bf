"""From the spans of a lane to cells: what fills most of a cell decides its glyph and colour."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import compress, groupby, islice
from operator import add, and_, itemgetter, ne

from simcore.records import NamedTuple
from simcore.run.lanes import COMPUTING, KINDS, NAMELESS
from tui.frame import ASCII, Glyphs, Line
from tui.timeline.critical import PathLanes, faded, mark_fills, mark_names
from tui.timeline.lanes import SpanLane
from tui.timeline.names import Edge, edge_cells, put_edges, write_names
from tui.timeline.window import Window

_IDLE, _BWD, _WG = (KINDS.index(name) for name in ("idle", "bwd", "wg"))
NOTHING = -1
# What runs, as against waiting for something: no cell is blank in which one of these does.
_RUNNING = frozenset(range(len(KINDS))) - NAMELESS
# A row of more runs of one kind is drawn by how busy it is: each run is a segment to send.
CROWDED = 80
_MOST_RUNS_SHADED = 40
# Edges cost a segment more for each run.
_MOST_RUNS_WITH_EDGES = 40
_OWN_GLYPH = ("fwd", "bwd", "wg", "opt", "host", "wait", "bubble", "idle", "kernel", "copy")
_GLYPH = {name: name if name in _OWN_GLYPH else "exposed" for name in KINDS} | {"recompute": "fwd"}


class Drawn(NamedTuple):
    """A lane's cells. crowded: whether their height is how busy the ranks are. plain: the cells without names
    and edges, as they stand above them in a lane of several rows; none where that was not asked for.
    """

    line: Line
    crowded: bool
    plain: Line


def drawn_lane(
    lane: SpanLane,
    window: Window,
    columns: int,
    glyphs: Glyphs,
    colour: bool,
    path: PathLanes | None = None,
    tall: bool = False,
) -> Drawn:
    """A lane's cells over the window, `columns` wide, and how they are to be read.

    path: the critical path, where it is to stand out. tall: whether `plain` is asked for, too.
    """
    edges = window.edges(columns)
    sums = lane.column_sums(edges)
    if window.span_ns < columns:
        _repeat_instants(sums, edges)
    kinds = kinds_of(sums, columns)
    crowded = False
    found_edges: dict[int, Edge] = {}
    if lane.by_majority:
        cell_of = {kind: _majority_piece(kind, glyphs) for kind in set(kinds)}
        pieces = list(map(cell_of.__getitem__, kinds))
        seen = kinds
        if _IDLE in sums:
            seen = _running_in_idle(pieces, kinds, sums, glyphs)
        if not lane.covers_all:
            kinds = _half_empty(pieces, kinds, sums, edges, glyphs)
        if colour and _runs(seen) > CROWDED:
            crowded = True
            pieces = _shaded(seen, sums, edges, glyphs)
        elif colour and glyphs is not ASCII and _runs(kinds) <= _MOST_RUNS_WITH_EDGES:
            found_edges = edge_cells(kinds, sums, edges)
    else:
        pieces = _by_busy(kinds, sums, edges, glyphs)
    on_path = None if path is None else path.columns(lane, edges)
    if on_path is not None:
        mark_fills(pieces, on_path, lane, glyphs, letters=not colour or glyphs is ASCII)
    plain: Line = _joined([(text, "") for text, _ in pieces] if not colour else pieces) if tall else []
    named = write_names(pieces, kinds, found_edges, lane, window, edges, colour)
    put_edges(pieces, found_edges)
    for seam in lane.seams:
        if edges[0] < seam < edges[-1]:
            pieces[bisect_right(edges, seam) - 1] = (glyphs.vertical, "bright")
    if not colour:
        if on_path is not None:
            mark_names(pieces, on_path, named)
        # One style for all: glyphs tell kinds apart, and the row is one segment.
        pieces = [(text, "") for text, _ in pieces]
    line = _joined(pieces)
    if colour and on_path is not None:
        line = faded(line, on_path)
        plain = faded(plain, on_path) if plain else plain
    return Drawn(line, crowded, plain)


def _joined(pieces: list[tuple[str, str]]) -> Line:
    """Cells of one role side by side in one piece."""
    return [("".join(text for text, _ in cells), role) for role, cells in groupby(pieces, key=itemgetter(1))]


def _repeat_instants(sums: dict[int, list[int]], edges: Sequence[int]) -> None:
    """More columns than nanoseconds: columns of one instant look alike."""
    for column in range(len(edges) - 3, -1, -1):
        if edges[column] == edges[column + 1]:
            for values in sums.values():
                values[column] = values[column + 1]


def kinds_of(sums: dict[int, list[int]], columns: int) -> list[int]:
    """Which category fills most of each column, the first in KINDS of equal ones; NOTHING where none does.

    Input and weight gradient count together as backward. Where a schedule takes them apart the cell
    is of the larger one, and plainly backward where both have over a third.
    """
    if not sums:
        return [NOTHING] * columns
    together = sums
    if _WG in sums and _BWD in sums:
        together = {kind: values for kind, values in sums.items() if kind != _WG}
        together[_BWD] = list(map(add, sums[_BWD], sums[_WG]))
    order = sorted(together)
    if len(order) == 1:
        kinds = [order[0]] * columns
        most = together[order[0]]
    else:
        by_column = list(zip(*(together[kind] for kind in order), strict=True))
        most = list(map(max, by_column))
        kinds = [order[values.index(ns)] for values, ns in zip(by_column, most, strict=True)]
    if 0 in most:
        kinds = [kind if ns else NOTHING for kind, ns in zip(kinds, most, strict=True)]
    if together is not sums:
        for column, (kind, other) in enumerate(zip(kinds, sums[_WG], strict=True)):
            if kind == _BWD and 3 * other >= 2 * together[_BWD][column]:
                kinds[column] = _WG
    return kinds


def _majority_piece(kind: int, glyphs: Glyphs) -> tuple[str, str]:
    if kind in (NOTHING, _IDLE):
        return " ", ""
    return glyphs.fills[_GLYPH[KINDS[kind]]], KINDS[kind]


def _running_in_idle(
    pieces: list[tuple[str, str]], kinds: list[int], sums: dict[int, list[int]], glyphs: Glyphs
) -> list[int]:
    """The kinds, where a cell is mostly idle, that is blank, of what runs there: that leaves a trace."""
    seen = list(kinds)
    running = {kind: values for kind, values in sums.items() if kind in _RUNNING}
    if not running:
        return seen
    # Nothing in most idle cells.
    anything = map(any, zip(*running.values(), strict=True))
    idle = map(_IDLE.__eq__, kinds)
    for column in compress(range(len(kinds)), map(and_, anything, idle)):
        most = max(running, key=lambda kind: (running[kind][column], -kind))
        seen[column] = most
        pieces[column] = glyphs.partly, KINDS[most]
    return seen


def _half_empty(
    pieces: list[tuple[str, str]],
    kinds: list[int],
    sums: dict[int, list[int]],
    edges: Sequence[int],
    glyphs: Glyphs,
) -> list[int]:
    """The kinds, NOTHING where a cell is mostly empty: that has a trace, no matter what its neighbours are.

    Else gaps shorter than a cell, and spans of a few ns, would look like work without a break.
    """
    filled = list(map(sum, zip(*(values for kind, values in sums.items() if kind != _IDLE), strict=True)))
    left = list(kinds)
    for column, kind in enumerate(kinds):
        if kind not in (NOTHING, _IDLE) and 2 * filled[column] < edges[column + 1] - edges[column]:
            left[column] = NOTHING
            pieces[column] = glyphs.partly, KINDS[kind]
    return left


def _by_busy(
    kinds: list[int], sums: dict[int, list[int]], edges: Sequence[int], glyphs: Glyphs
) -> list[tuple[str, str]]:
    """A communication lane: over half of a cell busy, or less; the shortest span leaves a trace."""
    pieces = []
    role = ""
    for column, kind in enumerate(kinds):
        if kind == NOTHING:
            # Blanks between spans have their role: a segment less each.
            pieces.append((" ", role))
            continue
        role = KINDS[kind]
        busy = 2 * sums[kind][column] > edges[column + 1] - edges[column]
        pieces.append((glyphs.busy if busy else glyphs.partly, role))
    return pieces


def _shaded(
    kinds: list[int], sums: dict[int, list[int]], edges: Sequence[int], glyphs: Glyphs
) -> list[tuple[str, str]]:
    """Cells as high as their ranks are busy; where kinds alternate, all in the colour of the largest."""
    calm = _calmed(kinds, sums)
    computing = [values for kind, values in sums.items() if kind in COMPUTING]
    other = [values for kind, values in sums.items() if kind not in COMPUTING and kind != _IDLE]
    levels = len(glyphs.heat) - 1
    pieces = []
    for column, kind in enumerate(calm):
        if kind == _IDLE:
            # Merged with neighbours that are idle: what is not keeps its own kind.
            kind = kinds[column]
        if kind in (NOTHING, _IDLE):
            pieces.append((" ", ""))
            continue
        busy = sum(values[column] for values in computing)
        room = max(edges[column + 1] - edges[column], 1)
        # What waits or communicates all the time is low, but not gone.
        level = -(-busy * levels // room) or any(values[column] for values in other)
        pieces.append((glyphs.heat[min(level, levels)], KINDS[kind]))
    return pieces


def _calmed(kinds: list[int], sums: dict[int, list[int]]) -> list[int]:
    """Kinds with runs of few cells merged, until there are few runs; long ones keep their ends."""
    least, calm = 3, kinds
    while least < len(kinds) and _runs(calm) > _MOST_RUNS_SHADED:
        calm, first = [], 0
        short: list[int] = []
        for column in [*(at for at in range(1, len(kinds)) if kinds[at] != kinds[at - 1]), len(kinds)]:
            if column - first < least:
                short += range(first, column)
            else:
                calm += _merged(short, sums) + kinds[first:column]
                short = []
            first = column
        calm += _merged(short, sums)
        least *= 2
    return calm


def _merged(columns: list[int], sums: dict[int, list[int]]) -> list[int]:
    """What fills most of some neighbouring columns, for each of them."""
    if not columns:
        return []
    first, last = columns[0], columns[-1] + 1
    together = {kind: [sum(values[first:last])] for kind, values in sums.items()}
    return kinds_of(together, 1) * len(columns)


def _runs(kinds: list[int]) -> int:
    changes: int = sum(map(ne, kinds, islice(kinds, 1, None)))
    return 1 + changes
