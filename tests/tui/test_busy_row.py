"""The sums behind the busy row are those of `Shares`, for any spans and edges."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from simcore.trace.lane_spans import Spans
from simcore.trace.shares import Shares
from tui.timeline.margins import filled_ns


@st.composite
def lanes(draw: st.DrawFn) -> Spans:
    """Spans one after another, some side by side, of five categories."""
    time_ns = draw(st.integers(0, 5))
    columns: tuple[list[int], list[int], bytearray] = [], [], bytearray()
    for gap, length, category in draw(
        st.lists(st.tuples(st.integers(0, 9), st.integers(1, 30), st.integers(0, 4)), max_size=20)
    ):
        columns[0].append(time_ns + gap)
        columns[1].append(time_ns + gap + length)
        columns[2].append(category)
        time_ns += gap + length
    return Spans(array("q", columns[0]), array("q", columns[1]), array("q", columns[0]), columns[2])


@given(lanes(), st.lists(st.integers(0, 700), min_size=2, max_size=12), st.sets(st.integers(0, 5)))
def test_they_are_the_sums_of_shares(spans: Spans, edges: list[int], categories: set[int]) -> None:
    edges.sort()
    shares = Shares(zip(spans.start, spans.end, spans.category, strict=True))
    expected = [
        sum(ns for category, ns in cell.items() if category in categories) for cell in shares.cells(edges)
    ]
    assert filled_ns(spans, categories, edges) == expected
