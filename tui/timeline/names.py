"""Names inside spans: from five cells on, cut at the span's end, never wrapped."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import takewhile

from simcore.run.lanes import KINDS, NAMELESS
from tui.frame import Glyphs
from tui.timeline.edges import Edge
from tui.timeline.spans import SpanLane
from tui.timeline.window import Window

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
    glyphs: Glyphs,
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
            framed = f"{glyphs.span_left}{label.ljust(room - 2)}{glyphs.span_right}"
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
