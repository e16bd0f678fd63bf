"""Turns the spans of a lane into cells: what fills most of a cell decides its glyph and colour.

Names stand inside spans of five cells and more, truncated at the span's end, never wrapped. Where a span ends
inside a cell stands an eighth block, the left kind in front, the right one behind.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import compress, groupby, islice, takewhile
from operator import add, and_, itemgetter, ne, sub

from simcore.records import NamedTuple
from simcore.trace.lane_spans import COMPUTING, KINDS, NAMELESS, Content
from tui.frame import ASCII, Glyphs, Line
from tui.timeline.critical import PathLanes, fade_cells, mark_fills, mark_names
from tui.timeline.lanes import SpanLane
from tui.timeline.window import Window

_IDLE, _BWD, _WG = (KINDS.index(name) for name in ("idle", "bwd", "wg"))
_NOTHING = -1
# Kinds that run, in contrast to waiting: no cell is blank in which one of these does.
_RUNNING = frozenset(range(len(KINDS))) - NAMELESS
# Where one column in so many differs from both its neighbours, passes of 1.2 columns look like a long one
# that moves from lane to lane; passes of 3 columns and bubbles of 2 are read correctly.
_LONE_OF = 4
# A kind may have a column from this part of it on, 1 of so many.
_SEEN_FROM = 8
# A row with more runs of one kind is drawn by how busy it is: each run is a segment to send to the terminal.
CROWDED = 80
_MOST_RUNS_SHADED = 40
# Edges cost one more segment for each run.
_MOST_RUNS_WITH_EDGES = 40
_OWN_GLYPH = ("fwd", "bwd", "wg", "opt", "host", "wait", "bubble", "idle", "kernel", "copy")
_GLYPH = {name: name if name in _OWN_GLYPH else "exposed" for name in KINDS} | {"recompute": "fwd"}


class LaneCells(NamedTuple):
    """A lane's cells."""

    line: Line
    crowded: bool
    """Whether the height of the cells is how busy the ranks are."""
    narrow: bool
    """Whether so many spans are narrower than two columns that it is chance which of them has a column to
    itself.
    """
    plain: Line
    """The cells without names and edges, for the upper rows of a lane of several rows; empty unless
    requested.
    """


def draw_lane(
    lane: SpanLane,
    window: Window,
    columns: int,
    glyphs: Glyphs,
    colour: bool,
    path: PathLanes | None = None,
    tall: bool = False,
    content: Content | None = None,
) -> LaneCells:
    """Returns a lane's cells over the window, `columns` wide, and how they are to be read.

    path: the critical path, if it is to stand out. tall: whether `plain` is needed too. content: what the
    filter leaves of the lane, None for all.
    """
    content = lane.content if content is None else content
    edges = window.edges(columns)
    sums = content.column_sums(edges)
    if window.span_ns < columns:
        _repeat_instants(sums, edges)
    kinds = majority_kinds(sums, columns)
    crowded = narrow = False
    found_edges: dict[int, _Edge] = {}
    if lane.by_majority:
        row_cells, kinds, visible_kinds = _kind_cells(kinds, content.covers_all, sums, edges, glyphs)
        if colour and _count_runs(visible_kinds) > CROWDED:
            crowded = True
            row_cells = _shaded_cells(visible_kinds, sums, edges, glyphs)
        else:
            narrow = _LONE_OF * _count_lone(kinds) > columns
            if narrow and content.covers_all:
                row_cells, kinds, _ = _kind_cells(alternating_kinds(sums, edges), True, sums, edges, glyphs)
            if colour and glyphs is not ASCII and _count_runs(kinds) <= _MOST_RUNS_WITH_EDGES:
                found_edges = _edge_cells(kinds, sums, edges)
    else:
        row_cells = _busy_cells(kinds, sums, edges, glyphs)
    path_flags = None if path is None else path.path_columns(lane, edges)
    if path_flags is not None:
        mark_fills(row_cells, path_flags, content.covers_all, glyphs, letters=not colour or glyphs is ASCII)
    plain: Line = (
        _merge_roles([(text, "") for text, _ in row_cells] if not colour else row_cells) if tall else []
    )
    name_columns = _write_names(row_cells, kinds, found_edges, lane, content, window, edges, colour)
    _put_edges(row_cells, found_edges)
    for seam in lane.seams:
        if edges[0] < seam < edges[-1]:
            row_cells[bisect_right(edges, seam) - 1] = (glyphs.vertical, "bright")
    if not colour:
        if path_flags is not None:
            mark_names(row_cells, path_flags, name_columns)
        # One style for all cells: glyphs tell kinds apart, and the row is one segment.
        row_cells = [(text, "") for text, _ in row_cells]
    line = _merge_roles(row_cells)
    if colour and path_flags is not None:
        line = fade_cells(line, path_flags)
        plain = fade_cells(plain, path_flags) if plain else plain
    return LaneCells(line, crowded, narrow, plain)


def _merge_roles(row_cells: list[tuple[str, str]]) -> Line:
    """Returns the cells with neighbours of one role merged."""
    return [
        ("".join(text for text, _ in cells), role) for role, cells in groupby(row_cells, key=itemgetter(1))
    ]


def _repeat_instants(sums: dict[int, list[int]], edges: Sequence[int]) -> None:
    """Copies values so that, with more columns than nanoseconds, the columns of one instant are equal."""
    for column in range(len(edges) - 3, -1, -1):
        if edges[column] == edges[column + 1]:
            for values in sums.values():
                values[column] = values[column + 1]


def majority_kinds(sums: dict[int, list[int]], columns: int) -> list[int]:
    """Returns the kind that fills most of each column, the first in KINDS of equal ones; _NOTHING where none
    does.

    Input and weight gradient count together as backward. Where a schedule separates them the cell is of the
    larger one, and plainly backward where both have over a third.
    """
    if not sums:
        return [_NOTHING] * columns
    together = _sum_backward(sums)
    order = sorted(together)
    if len(order) == 1:
        kinds = [order[0]] * columns
        most = together[order[0]]
    else:
        by_column = list(zip(*(together[kind] for kind in order), strict=True))
        most = list(map(max, by_column))
        kinds = [order[values.index(ns)] for values, ns in zip(by_column, most, strict=True)]
    if 0 in most:
        kinds = [kind if ns else _NOTHING for kind, ns in zip(kinds, most, strict=True)]
    return _with_weight_gradients(kinds, together, sums)


def _sum_backward(sums: dict[int, list[int]]) -> dict[int, list[int]]:
    """Returns ns of each kind by column, with input and weight gradient as one."""
    if _WG not in sums or _BWD not in sums:
        return sums
    together = {kind: values for kind, values in sums.items() if kind != _WG}
    together[_BWD] = list(map(add, sums[_BWD], sums[_WG]))
    return together


def _with_weight_gradients(
    kinds: list[int], together: dict[int, list[int]], sums: dict[int, list[int]]
) -> list[int]:
    """Returns the kinds, with backward changed in place where it is mostly weight gradient. together: the
    kinds of `sums` with both as one.
    """
    if together is not sums:
        for column, (kind, other) in enumerate(zip(kinds, sums[_WG], strict=True)):
            if kind == _BWD and 3 * other >= 2 * together[_BWD][column]:
                kinds[column] = _WG
    return kinds


def alternating_kinds(sums: dict[int, list[int]], edges: Sequence[int]) -> list[int]:
    """Returns the kinds of columns in which shorter spans alternate, each in as many of them as it has time.

    With the majority of each column, passes of 1.2 columns would now and then make a block of four, which
    reads as a straggler. A kind can have a column only if it fills an eighth of it: a shorter one, such as a
    collective in each pass, would be seen where it is not. The time that a kind lacks is carried on, one
    column's time at most.
    """
    together = _sum_backward(sums)
    order = sorted(together)
    carried, kinds = [0] * len(order), []
    widths = map(sub, islice(edges, 1, None), edges)
    for width, *values in zip(widths, *(together[kind] for kind in order), strict=True):
        best = _NOTHING
        for at, ns in enumerate(values):
            if _SEEN_FROM * ns >= width and ns:
                carried[at] = min(carried[at] + ns, 2 * width)
                if best < 0 or carried[at] > carried[best]:
                    best = at
        if best < 0 and any(values):
            best = values.index(max(values))
        if best >= 0:
            carried[best] = max(carried[best] - width, -width)
        kinds.append(order[best] if best >= 0 else _NOTHING)
    return _with_weight_gradients(kinds, together, sums)


def _kind_cells(
    kinds: list[int],
    covers_all: bool,
    sums: dict[int, list[int]],
    edges: Sequence[int],
    glyphs: Glyphs,
) -> tuple[list[tuple[str, str]], list[int], list[int]]:
    """Returns (cells, kinds, kinds with what runs where most is idle): cells that are mostly empty have a
    trace.
    """
    cell_of = {kind: _majority_cell(kind, glyphs) for kind in set(kinds)}
    row_cells = list(map(cell_of.__getitem__, kinds))
    visible_kinds = _trace_idle_cells(row_cells, kinds, sums, glyphs) if _IDLE in sums else kinds
    if not covers_all:
        kinds = _trace_half_empty(row_cells, kinds, sums, edges, glyphs)
    return row_cells, kinds, visible_kinds


def _majority_cell(kind: int, glyphs: Glyphs) -> tuple[str, str]:
    if kind in (_NOTHING, _IDLE):
        return " ", ""
    return glyphs.fills[_GLYPH[KINDS[kind]]], KINDS[kind]


def _trace_idle_cells(
    row_cells: list[tuple[str, str]], kinds: list[int], sums: dict[int, list[int]], glyphs: Glyphs
) -> list[int]:
    """Returns the kinds, with what runs in a cell that is mostly idle, and so blank: it leaves a trace."""
    visible_kinds = list(kinds)
    running = {kind: values for kind, values in sums.items() if kind in _RUNNING}
    if not running:
        return visible_kinds
    # Most idle cells hold nothing.
    runs_anything = map(any, zip(*running.values(), strict=True))
    idle = map(_IDLE.__eq__, kinds)
    for column in compress(range(len(kinds)), map(and_, runs_anything, idle)):
        most = max(running, key=lambda kind: (running[kind][column], -kind))
        visible_kinds[column] = most
        row_cells[column] = glyphs.partly, KINDS[most]
    return visible_kinds


def _trace_half_empty(
    row_cells: list[tuple[str, str]],
    kinds: list[int],
    sums: dict[int, list[int]],
    edges: Sequence[int],
    glyphs: Glyphs,
) -> list[int]:
    """Returns the kinds, _NOTHING where a cell is mostly empty; such a cell has a trace, whatever its
    neighbours are.

    Without that, gaps shorter than a cell, and spans of a few ns, would look like work without a break.
    """
    filled = list(map(sum, zip(*(values for kind, values in sums.items() if kind != _IDLE), strict=True)))
    remaining_kinds = list(kinds)
    for column, kind in enumerate(kinds):
        if kind not in (_NOTHING, _IDLE) and 2 * filled[column] < edges[column + 1] - edges[column]:
            remaining_kinds[column] = _NOTHING
            row_cells[column] = glyphs.partly, KINDS[kind]
    return remaining_kinds


def _busy_cells(
    kinds: list[int], sums: dict[int, list[int]], edges: Sequence[int], glyphs: Glyphs
) -> list[tuple[str, str]]:
    """Returns the cells of a communication lane: over half of a cell busy, or less; the shortest span leaves
    a trace.
    """
    row_cells = []
    role = ""
    for column, kind in enumerate(kinds):
        if kind == _NOTHING:
            # Blanks between spans share their role, which saves one segment each.
            row_cells.append((" ", role))
            continue
        role = KINDS[kind]
        is_busy = 2 * sums[kind][column] > edges[column + 1] - edges[column]
        row_cells.append((glyphs.busy if is_busy else glyphs.partly, role))
    return row_cells


def _shaded_cells(
    kinds: list[int], sums: dict[int, list[int]], edges: Sequence[int], glyphs: Glyphs
) -> list[tuple[str, str]]:
    """Returns cells as high as their ranks are busy; where kinds alternate, all have the colour of the
    largest.
    """
    smooth_kinds = _smooth_kinds(kinds, sums)
    computing = [values for kind, values in sums.items() if kind in COMPUTING]
    other = [values for kind, values in sums.items() if kind not in COMPUTING and kind != _IDLE]
    levels = len(glyphs.heat) - 1
    row_cells = []
    for column, kind in enumerate(smooth_kinds):
        if kind == _IDLE:
            # A column merged with idle neighbours keeps its own kind.
            kind = kinds[column]
        if kind in (_NOTHING, _IDLE):
            row_cells.append((" ", ""))
            continue
        busy = sum(values[column] for values in computing)
        room = max(edges[column + 1] - edges[column], 1)
        # A column that only waits or communicates is low, but not blank.
        level = -(-busy * levels // room) or any(values[column] for values in other)
        row_cells.append((glyphs.heat[min(level, levels)], KINDS[kind]))
    return row_cells


def _smooth_kinds(kinds: list[int], sums: dict[int, list[int]]) -> list[int]:
    """Returns the kinds with runs of few cells merged, until there are few runs; long runs keep
    their ends.
    """
    least, smoothed = 3, kinds
    while least < len(kinds) and _count_runs(smoothed) > _MOST_RUNS_SHADED:
        smoothed, first = [], 0
        short: list[int] = []
        for column in [*(at for at in range(1, len(kinds)) if kinds[at] != kinds[at - 1]), len(kinds)]:
            if column - first < least:
                short += range(first, column)
            else:
                smoothed += _majority_of_columns(short, sums) + kinds[first:column]
                short = []
            first = column
        smoothed += _majority_of_columns(short, sums)
        least *= 2
    return smoothed


def _majority_of_columns(columns: list[int], sums: dict[int, list[int]]) -> list[int]:
    """Returns for each of some neighbouring columns the kind that fills most of them together."""
    if not columns:
        return []
    first, last = columns[0], columns[-1] + 1
    together = {kind: [sum(values[first:last])] for kind, values in sums.items()}
    return majority_kinds(together, 1) * len(columns)


def _count_runs(kinds: list[int]) -> int:
    changes: int = sum(map(ne, kinds, islice(kinds, 1, None)))
    return 1 + changes


def _count_lone(kinds: list[int]) -> int:
    """Returns how many columns differ from both their neighbours."""
    changes = list(map(ne, kinds, islice(kinds, 1, None)))
    lone_count: int = sum(map(and_, changes, islice(changes, 1, None)))
    return lone_count


_EIGHTHS = " ▏▎▍▌▋▊▉█"
# Kinds that are a thin line or nothing: they leave their part of an edge cell empty.
_THIN = frozenset(KINDS.index(name) for name in ("idle", "bubble", "wait", "host"))
_FULL = frozenset(KINDS.index(name) for name in ("bwd", "wg", "opt"))
# Kinds that do not fill a cell: a full edge next to an empty cell would look like a span of its own.
_LOW = frozenset(range(len(KINDS))) - _FULL - _THIN
# Runs of one kind have exact ends from this many cells on.
_LONG_ENOUGH = 4


class _Edge(NamedTuple):
    """A cell in which one kind gives way to another."""

    glyph: str
    role: str
    name_side: int
    """The side (-1 left, 1 right) on which a name must stand, which makes its kind as high as a cell; 0 for
    none.
    """


def _edge_cells(kinds: Sequence[int], sums: dict[int, list[int]], edges: Sequence[int]) -> dict[int, _Edge]:
    """Returns the columns in which the kind on the left gives way to the one on the right.

    One of the two fills some cells: where short ones alternate, edges would say less than they cost. No third
    kind has more than half an eighth of the cell.

    kinds: what fills most of each column. sums: ns of each kind by column.
    """
    edge_at: dict[int, _Edge] = {}
    columns = range(1, len(kinds) - 1)
    filled = list(map(sum, zip(*sums.values(), strict=True)))
    for column in compress(columns, map(ne, kinds, kinds[2:])):
        left, right = kinds[column - 1], kinds[column + 1]
        if not (
            _is_one_kind(kinds[max(column - _LONG_ENOUGH, 0) : column])
            or _is_one_kind(kinds[column + 1 : column + 1 + _LONG_ENOUGH])
        ):
            continue
        whole = edges[column + 1] - edges[column]
        behind = sums[right][column] if right in sums else 0
        before = sums[left][column] if left in sums else 0
        others = filled[column] - before - behind
        if 16 * others > whole or (right != _NOTHING and not behind):
            continue
        part = before if left in sums else whole - others - behind
        eighths = (16 * part + whole) // (2 * whole) if whole else 0
        if not 0 < eighths < 8:
            continue
        role, name_side = _edge_role(left, right)
        if role:
            edge_at[column] = _Edge(_EIGHTHS[eighths], role, name_side)
    return edge_at


def _is_one_kind(kinds: Sequence[int]) -> bool:
    """Returns whether some columns are of one kind; columns beyond the ends of the row count as equal."""
    return kinds.count(kinds[0]) == len(kinds)


def _put_edges(row_cells: list[tuple[str, str]], edges: dict[int, _Edge]) -> None:
    """Puts the edges into cells whose names are written."""
    for column, edge in edges.items():
        if not edge.name_side or row_cells[column + edge.name_side][1].endswith(" reversed"):
            row_cells[column] = edge.glyph, edge.role


def _edge_role(left: int, right: int) -> tuple[str, int]:
    """Returns (style, `name_side`) of an edge; style "" where both kinds are thin."""
    left_is_thin, right_is_thin = left in _THIN or left == _NOTHING, right in _THIN or right == _NOTHING
    if left_is_thin and right_is_thin:
        return "", 0
    if right_is_thin:
        return KINDS[left], -1 if left in _LOW else 0
    if left_is_thin:
        # A blank sliver at the left: foreground and background are swapped.
        return f"{KINDS[right]} reversed", 1 if right in _LOW else 0
    return f"{KINDS[left]} on {KINDS[right]}", 0


# A span has its name inside from this many cells on.
_NAMED_FROM = 5


def _write_names(
    row_cells: list[tuple[str, str]],
    kinds: list[int],
    found_edges: dict[int, _Edge],
    lane: SpanLane,
    content: Content,
    window: Window,
    edges: list[int],
    colour: bool,
) -> list[tuple[int, int]]:
    """Writes each wide span's name over its cells and returns the columns of the names; an edge cell inside a
    name stays.

    row_cells: the cells, changed here. kinds: what fills most of each.
    """
    spans = content.spans
    columns = len(row_cells)
    least_ns = window.span_ns * _NAMED_FROM // columns
    first = max(bisect_right(spans.start, window.first_ns) - 1, 0)
    inside = range(first, bisect_left(spans.start, window.last_ns))
    name_columns: list[tuple[int, int]] = []
    if content.longest_named_ns < least_ns:
        return name_columns
    # With many spans in view only the long ones can have a name, with few any.
    in_parts = content.cell_spans is not spans
    are_few = len(inside) < 4 * columns
    candidates: list[int] = list(inside) if are_few else _long_spans(content, least_ns, inside)
    for index in candidates:
        start, end = max(spans.start[index], window.first_ns), min(spans.end[index], window.last_ns)
        kind = spans.category[index]
        if end - start < least_ns or kind in NAMELESS:
            continue
        left, right = window.column(start, columns), min(window.column(end - 1, columns) + 1, columns)
        while left > 0 and edges[left - 1] == edges[left]:
            left -= 1
        # The cells at both ends may belong to a neighbour that fills more of them.
        while left < right and left not in found_edges and kinds[left] != kind:
            left += 1
        while left < right and right - 1 not in found_edges and kinds[right - 1] != kind:
            right -= 1
        if in_parts:
            left, right = _longest_part(kinds, kind, found_edges, left, right)
        if right - left < _NAMED_FROM:
            continue
        starts_in_cell, ends_in_cell = left in found_edges, right - 1 in found_edges
        left, right = left + starts_in_cell, right - ends_in_cell
        name, room = KINDS[kind], right - left
        # An edge separates the name as a blank does.
        lead = "" if colour and starts_in_cell else " "
        label = lane.label(spans.op[index], room - len(lead) - (not ends_in_cell))
        if colour:
            row_cells[left:right] = [(char, f"{name} reversed") for char in f"{lead}{label}".ljust(room)]
        else:
            framed = f"[{label.ljust(room - 2)}]"
            row_cells[left:right] = [(char, name) for char in framed]
        name_columns.append((left, right))
    return name_columns


def _longest_part(
    kinds: list[int], kind: int, found_edges: dict[int, _Edge], left: int, right: int
) -> tuple[int, int]:
    """Returns the longest stretch of cells of one kind from `left` to `right`, the first of equal ones; edges
    end it.

    A name over all of the cells would hide where the span is something else, such as waiting.
    """
    best, first = (left, left), left
    for column in range(left, right + 1):
        if column < right and kinds[column] == kind and (column == first or column not in found_edges):
            continue
        # The cell behind it belongs to it where it is an edge.
        end = column + (column < right and column in found_edges)
        if end - first > best[1] - best[0]:
            best = first, end
        first = column if column in found_edges else column + 1
    return best


def _long_spans(content: Content, least_ns: int, inside: range) -> list[int]:
    """Returns the spans of `inside` that last at least `least_ns`."""
    spans, by_length = content.spans, content.by_length
    long_ones = takewhile(lambda index: spans.end[index] - spans.start[index] >= least_ns, by_length)
    return [index for index in long_ones if index in inside]
