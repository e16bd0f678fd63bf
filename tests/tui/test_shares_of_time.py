"""Shares: any stretch of time, against a naive sum over the spans."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.trace.shares import Shares, sum_span_columns
from tests.strategies import Case, cases
from tests.tui.made_runs import all_lanes, naive_cell

Spans = list[tuple[int, int, int]]


@st.composite
def span_lists(draw: st.DrawFn) -> Spans:
    """Spans of up to three categories; those of one category do not overlap, empty ones included."""
    found: Spans = []
    for category in range(draw(st.integers(0, 3))):
        now = 0
        for _ in range(draw(st.integers(0, 8))):
            start = now + draw(st.integers(0, 5))
            now = start + draw(st.integers(0, 6))
            found.append((start, now, category))
    return sorted(found)


def naive(spans: Spans, category: int, first_ns: int, last_ns: int) -> int:
    """ns of a category between two times, nanosecond by nanosecond."""
    return sum(
        any(start <= time_ns < end and one == category for start, end, one in spans)
        for time_ns in range(first_ns, last_ns)
    )


@given(span_lists(), st.integers(0, 60))
def test_the_sum_until_a_time_is_the_naive_sum(spans: Spans, time_ns: int) -> None:
    shares = Shares(spans)
    for category in range(4):
        assert shares.until(category, time_ns) == naive(spans, category, 0, time_ns)


@given(span_lists(), st.lists(st.integers(0, 60), min_size=2, max_size=2).map(sorted))
def test_the_sum_between_two_times_is_the_naive_sum(spans: Spans, stretch: list[int]) -> None:
    first, last = stretch
    found = Shares(spans).between(first, last)
    assert found == {category: naive(spans, category, first, last) for category in {one[2] for one in spans}}


@given(span_lists(), st.lists(st.integers(0, 60), min_size=1, max_size=12).map(sorted))
def test_cells_are_the_naive_sums_and_leave_out_what_is_not_there(spans: Spans, edges: list[int]) -> None:
    found = Shares(spans).cells(edges)
    assert len(found) == len(edges) - 1
    for cell, (first, last) in zip(found, pairwise(edges), strict=True):
        expected = {category: naive(spans, category, first, last) for category in range(4)}
        assert cell == {category: ns for category, ns in expected.items() if ns}


@st.composite
def single_files(draw: st.DrawFn) -> Spans:
    """Spans one after another, of three categories, none empty."""
    found: Spans = []
    now = 0
    for _ in range(draw(st.integers(1, 12))):
        start = now + draw(st.integers(0, 5))
        now = start + draw(st.integers(1, 9))
        found.append((start, now, draw(st.integers(0, 2))))
    return found


@given(single_files(), st.lists(st.integers(0, 90), min_size=2, max_size=12).map(sorted))
def test_spans_of_one_file_are_added_up_as_their_prefix_sums_say(spans: Spans, edges: list[int]) -> None:
    start, end, category = zip(*spans, strict=True)
    found = sum_span_columns(start, end, bytes(category), edges)
    assert found == Shares(spans).columns(edges)
    for one, column in found.items():
        assert column == [naive(spans, one, first, last) for first, last in pairwise(edges)]


@settings(max_examples=25)
@given(cases(12), st.integers(1, 40), st.integers(0, 1000), st.integers(1, 1000))
def test_a_lane_adds_up_alike_by_spans_and_by_prefix_sums(
    case: Case, columns: int, first: int, length: int
) -> None:
    results = SimulatedRun(simulate(*case))
    step = results.simulation.step_time_ns
    begin = step * first // 1000
    width = max(step * length // 1000, 1)
    edges = [begin + width * column // columns for column in range(columns + 1)]
    for lane in all_lanes(results):
        assert lane.content.column_sums(edges) == lane.content.shares.columns(edges)


def test_no_spans_fill_nothing() -> None:
    shares = Shares([])
    assert shares.categories == ()
    assert shares.until(0, 100) == 0
    assert shares.between(0, 100) == {}
    assert shares.cells([0, 50, 100]) == [{}, {}]


def test_times_beyond_64_bit_sums_of_one_span_are_exact() -> None:
    shares = Shares([(10**18, 2 * 10**18, 0)])
    assert shares.between(0, 2 * 10**18) == {0: 10**18}


@settings(max_examples=40)
@given(cases(12), st.integers(1, 40))
def test_the_shares_of_every_lane_are_the_naive_sums_of_its_spans(case: Case, columns: int) -> None:
    results = SimulatedRun(simulate(*case))
    step = results.simulation.step_time_ns
    edges = [step * column // columns for column in range(columns + 1)]
    for lane in all_lanes(results):
        for cell, found in enumerate(lane.content.shares.cells(edges)):
            assert found == naive_cell(lane, edges[cell], edges[cell + 1])
