"""From the spans of a lane to cells: what fills most of a cell decides its glyph and colour."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise, takewhile

from tui.frame import Glyphs, Line
from tui.timeline.spans import DRAWN, SpanLane
from tui.timeline.window import Window

_IDLE = DRAWN.index("idle")
# From this many cells on a span has its name inside.
_NAMED_FROM = 5
_GLYPH = {
    name: name if name in ("fwd", "bwd", "opt", "host", "wait", "bubble", "idle") else "exposed"
    for name in DRAWN
} | {"recompute": "fwd"}


def draw_lane(lane: SpanLane, window: Window, columns: int, glyphs: Glyphs, colour: bool) -> Line:
    """A lane's cells over the window, `columns` wide."""
    edges = window.edges(columns)
    found = lane.shares.cells(edges)
    for column in range(columns - 2, -1, -1):
        if edges[column] == edges[column + 1]:
            # More columns than nanoseconds: columns of one instant look alike.
            found[column] = found[column + 1]
    if lane.by_majority:
        pieces = [_by_majority(one, glyphs) for one in found]
    else:
        half = [(after - before) / 2 for before, after in pairwise(edges)]
        pieces = [_by_busy(one, half[column], glyphs) for column, one in enumerate(found)]
    _write_names(pieces, lane, window, edges, glyphs, colour)
    line: Line = []
    for text, role in pieces:
        if line and line[-1][1] == role:
            line[-1] = (line[-1][0] + text, role)
        else:
            line.append((text, role))
    return line


def _by_majority(found: dict[int, int], glyphs: Glyphs) -> tuple[str, str]:
    if not found:
        return " ", ""
    category = max(found, key=lambda one: (found[one], -one))
    name = DRAWN[category]
    return glyphs.fills[_GLYPH[name]], "" if category == _IDLE else name


def _by_busy(found: dict[int, int], half: float, glyphs: Glyphs) -> tuple[str, str]:
    """A communication lane: over half of the cell busy, or less; the shortest span leaves a trace."""
    if not found:
        return " ", ""
    category, busy = max(found.items(), key=lambda item: item[1])
    return glyphs.busy if busy > half else glyphs.partly, DRAWN[category]


def _write_names(
    pieces: list[tuple[str, str]],
    lane: SpanLane,
    window: Window,
    edges: list[int],
    glyphs: Glyphs,
    colour: bool,
) -> None:
    """Write each wide span's name over its cells, cut at the span's end."""
    spans = lane.spans
    columns = len(pieces)
    least_ns = window.span_ns * _NAMED_FROM // columns
    first = max(bisect_right(spans.start, window.first_ns) - 1, 0)
    inside = range(first, bisect_left(spans.start, window.last_ns))
    # Of many spans in view only the long ones can have a name, of few any.
    few = len(inside) < 4 * columns
    candidates: list[int] = list(inside) if few else _longest(lane, least_ns, inside)
    for index in candidates:
        start, end = max(spans.start[index], window.first_ns), min(spans.end[index], window.last_ns)
        if end - start < least_ns:
            continue
        name = DRAWN[spans.category[index]]
        if name in ("idle", "bubble", "wait"):
            continue
        left, right = window.column(start, columns), min(window.column(end - 1, columns) + 1, columns)
        while left > 0 and edges[left - 1] == edges[left]:
            left -= 1
        # The cells at both ends may belong to a neighbour that fills more of them.
        while left < right and pieces[left][1] != name:
            left += 1
        while left < right and pieces[right - 1][1] != name:
            right -= 1
        room = right - left
        if room < _NAMED_FROM:
            continue
        label = lane.label(spans.op[index], room - 2)
        if colour:
            pieces[left:right] = [(char, f"{name} reversed") for char in f" {label}".ljust(room)]
        else:
            framed = f"{glyphs.span_left}{label.ljust(room - 2)}{glyphs.span_right}"
            pieces[left:right] = [(char, name) for char in framed]


def _longest(lane: SpanLane, least_ns: int, inside: range) -> list[int]:
    """The spans of `inside` that last at least `least_ns`."""
    spans = lane.spans
    long_ones = takewhile(lambda index: spans.end[index] - spans.start[index] >= least_ns, lane.by_length)
    return [index for index in long_ones if index in inside]
