"""Where the lanes of a pair differ, column by column."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from simcore.comparison import SpanPair
from simcore.trace.lane_spans import COMPUTING
from tui.timeline.column_kinds import majority_kinds
from tui.timeline.lanes import SpanLane
from tui.timeline.window import Window

# Where only A computes, only B, where what both do differs or has moved, and where it is the same.
ONLY_A, ONLY_B, OTHER, SAME = "A", "B", "~", " "


def difference_marks(
    lanes: Sequence[SpanLane], windows: Sequence[Window], columns: int, shifted_spans: Sequence[SpanPair]
) -> str:
    """Returns a mark for each column. windows: of A and of B. shifted_spans: what both compute at other
    times, by their start in A.
    """
    of_a, of_b = _column_kinds(lanes, windows, columns)
    edges = windows[0].edges(columns)
    starts = [span_pair.a_start_ns for span_pair in shifted_spans]
    marks = []
    for column, (kind, other) in enumerate(zip(of_a, of_b, strict=True)):
        computes = kind in COMPUTING, other in COMPUTING
        if computes[0] != computes[1]:
            marks.append(ONLY_A if computes[0] else ONLY_B)
            continue
        middle = (edges[column] + edges[column + 1]) // 2
        index = bisect_right(starts, middle) - 1
        is_shifted = computes[0] and index >= 0 and shifted_spans[index].a_end_ns > middle
        marks.append(OTHER if kind != other or is_shifted else SAME)
    return "".join(marks)


def are_equal(lanes: Sequence[SpanLane], windows: Sequence[Window], columns: int) -> bool:
    """Returns whether both lanes do the same in each column, or in one beside it."""
    of_a, of_b = _column_kinds(lanes, windows, columns)
    return all(
        kind in others[max(column - 1, 0) : column + 2]
        for kinds, others in ((of_a, of_b), (of_b, of_a))
        for column, kind in enumerate(kinds)
    )


def _column_kinds(lanes: Sequence[SpanLane], windows: Sequence[Window], columns: int) -> list[list[int]]:
    """Returns the kind that fills most of each column, of A and of B."""
    return [
        majority_kinds(lane.content.column_sums(window.edges(columns)), columns)
        for lane, window in zip(lanes, windows, strict=True)
    ]
