"""Names inside spans, from five cells on, cut at the span's end, never wrapped; and that end inside a cell.

Where a span ends inside a cell stands an eighth block, the left kind in front, the right one behind.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import compress, takewhile
from operator import ne

from simcore.records import NamedTuple
from simcore.run.lanes import KINDS, NAMELESS
from tui.timeline.lanes import SpanLane
from tui.timeline.window import Window

_EIGHTHS = " ▏▎▍▌▋▊▉█"
# Kinds that are a thin line or nothing: they leave their part of an edge cell empty.
_THIN = frozenset(KINDS.index(name) for name in ("idle", "bubble", "wait", "host"))
_FULL = frozenset(KINDS.index(name) for name in ("bwd", "wg", "opt"))
# Kinds that do not fill a cell: an edge that does, beside nothing, would look like a span of its own.
_LOW = frozenset(range(len(KINDS))) - _FULL - _THIN
_NOTHING = -1
# So many cells of one kind make the end of it worth telling.
_LONG = 4


class Edge(NamedTuple):
    """A cell in which one kind gives way to another.

    beside: 0, or where (-1 left, 1 right) a name must stand, which makes its kind as high as a cell.
    """

    glyph: str
    role: str
    beside: int


def edge_cells(kinds: Sequence[int], sums: dict[int, list[int]], edges: Sequence[int]) -> dict[int, Edge]:
    """The columns in which the kind on the left gives way to the one on the right.

    One of the two fills some cells: where short ones alternate, edges would say less than they cost.
    No other has more than half an eighth of the cell.

    kinds: what fills most of each column. sums: ns of each kind by column.
    """
    edge_at: dict[int, Edge] = {}
    columns = range(1, len(kinds) - 1)
    filled = list(map(sum, zip(*sums.values(), strict=True)))
    for column in compress(columns, map(ne, kinds, kinds[2:])):
        left, right = kinds[column - 1], kinds[column + 1]
        if not (
            _is_one_kind(kinds[max(column - _LONG, 0) : column])
            or _is_one_kind(kinds[column + 1 : column + 1 + _LONG])
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
        role, beside = _role(left, right)
        if role:
            edge_at[column] = Edge(_EIGHTHS[eighths], role, beside)
    return edge_at


def _is_one_kind(kinds: Sequence[int]) -> bool:
    """Whether some columns are of one kind; those beyond the ends of the row would be too."""
    return kinds.count(kinds[0]) == len(kinds)


def put_edges(pieces: list[tuple[str, str]], edges: dict[int, Edge]) -> None:
    """Put the edges into cells whose names are written."""
    for column, edge in edges.items():
        if not edge.beside or pieces[column + edge.beside][1].endswith(" reversed"):
            pieces[column] = edge.glyph, edge.role


def _role(left: int, right: int) -> tuple[str, int]:
    """(style, `beside`) of an edge; style "" where both are thin."""
    left_is_thin, right_is_thin = left in _THIN or left == _NOTHING, right in _THIN or right == _NOTHING
    if left_is_thin and right_is_thin:
        return "", 0
    if right_is_thin:
        return KINDS[left], -1 if left in _LOW else 0
    if left_is_thin:
        # A blank sliver at the left: what is in front and what is behind change places.
        return f"{KINDS[right]} reversed", 1 if right in _LOW else 0
    return f"{KINDS[left]} on {KINDS[right]}", 0


# First column of a name with its ends, and the one behind it.
Named = tuple[int, int]
# From this many cells on a span has its name inside.
_NAMED_FROM = 5


def write_names(
    pieces: list[tuple[str, str]],
    kinds: list[int],
    found_edges: dict[int, Edge],
    lane: SpanLane,
    window: Window,
    edges: list[int],
    colour: bool,
) -> list[Named]:
    """Write each wide span's name over its cells; a cell that ends it inside keeps its edge. Gives where.

    pieces: the cells, changed here. kinds: what fills most of each.
    """
    spans = lane.spans
    columns = len(pieces)
    least_ns = window.span_ns * _NAMED_FROM // columns
    first = max(bisect_right(spans.start, window.first_ns) - 1, 0)
    inside = range(first, bisect_left(spans.start, window.last_ns))
    written: list[Named] = []
    if lane.longest_ns < least_ns:
        return written
    # Of many spans in view only the long ones can have a name, of few any.
    in_parts = lane.drawn is not spans
    few = len(inside) < 4 * columns
    candidates: list[int] = list(inside) if few else _longest(lane, least_ns, inside)
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
        # An edge sets the name apart as a blank does.
        lead = "" if colour and starts_in_cell else " "
        label = lane.label(spans.op[index], room - len(lead) - (not ends_in_cell))
        if colour:
            pieces[left:right] = [(char, f"{name} reversed") for char in f"{lead}{label}".ljust(room)]
        else:
            framed = f"[{label.ljust(room - 2)}]"
            pieces[left:right] = [(char, name) for char in framed]
        written.append((left, right))
    return written


def _longest_part(
    kinds: list[int], kind: int, found_edges: dict[int, Edge], left: int, right: int
) -> tuple[int, int]:
    """The longest stretch of cells of one kind from `left` to `right`, the first of equal ones; edges end it.

    A name over all of them would hide where the span is something else, waiting for instance.
    """
    best, first = (left, left), left
    for column in range(left, right + 1):
        if column < right and kinds[column] == kind and (column == first or column not in found_edges):
            continue
        # The cell that ends it belongs to it where it is an edge.
        end = column + (column < right and column in found_edges)
        if end - first > best[1] - best[0]:
            best = first, end
        first = column if column in found_edges else column + 1
    return best


def _longest(lane: SpanLane, least_ns: int, inside: range) -> list[int]:
    """The spans of `inside` that last at least `least_ns`."""
    spans = lane.spans
    long_ones = takewhile(lambda index: spans.end[index] - spans.start[index] >= least_ns, lane.by_length)
    return [index for index in long_ones if index in inside]
