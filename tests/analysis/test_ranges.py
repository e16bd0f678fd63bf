"""Any stretch of the step: its accounts sum to its length, and are those of the segments in it."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.runs.simulated import SimulatedRun
from simcore.sources.simulated import ACCOUNTS
from simcore.trace.accounts import RangeSums, longest_in
from tests.tui.made_runs import four_stages, lonely, small

RUNS = (four_stages, small, lonely, lambda: lonely(1))


def naive(results: SimulatedRun, number: int, first: int, last: int) -> list[int]:
    """The sums, segment by segment."""
    accounts = results.accounts[number]
    found = [0] * len(ACCOUNTS)
    for index, account in enumerate(accounts.account):
        found[account] += max(min(accounts.edge[index + 1], last) - max(accounts.edge[index], first), 0)
    return found


@given(st.sampled_from(RUNS), st.data())
def test_the_accounts_of_a_stretch_sum_to_its_length_on_every_rank(run: object, data: st.DataObject) -> None:
    results: SimulatedRun = run()  # type: ignore[operator]
    step = results.step_time_ns
    first, last = sorted(data.draw(st.tuples(st.integers(0, step), st.integers(0, step))))
    ranks = [len(one.ranks) for one in results.simulation.timeline.classes]
    together = [0] * len(ACCOUNTS)
    for number, count in enumerate(ranks):
        found = results.lanes.account_sums.ranges.of_class(number, first, last)
        assert sum(found) == last - first
        assert min(found) >= 0
        assert found == naive(results, number, first, last)
        together = [one + ns * count for one, ns in zip(together, found, strict=True)]
    assert results.lanes.account_sums.ranges.of_all(first, last) == together
    assert sum(together) == (last - first) * sum(ranks)


@pytest.mark.parametrize("run", RUNS)
def test_the_whole_step_has_the_totals_of_the_accounts(run: object) -> None:
    results: SimulatedRun = run()  # type: ignore[operator]
    for number, accounts in enumerate(results.accounts):
        assert (
            results.lanes.account_sums.ranges.of_class(number, 0, results.step_time_ns) == accounts.total_ns
        )


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 3)), max_size=300), st.integers(0, 99))
def test_sums_over_blocks_equal_sums_over_segments(parts: list[tuple[int, int]], share: int) -> None:
    edge = array("q", [10])
    for length, _ in parts:
        edge.append(edge[-1] + length)
    category = bytearray(kind for _, kind in parts)
    time_ns = 10 + (edge[-1] - 10) * share // 99
    found = [0] * 4
    for index, kind in enumerate(category):
        found[kind] += max(min(edge[index + 1], time_ns) - edge[index], 0)
    assert RangeSums(edge, category, 4).until(time_ns) == found


def test_a_time_outside_counts_as_the_nearest_end() -> None:
    sums = RangeSums(array("q", [0, 4, 6]), bytearray((1, 0)), 2)
    assert sums.until(-5) == [0, 0]
    assert sums.until(99) == [2, 4]
    assert RangeSums(array("q", [0]), bytearray(), 2).between(0, 10) == [0, 0]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=40), st.integers(0, 200), st.integers(0, 200))
def test_the_longest_span_of_a_stretch_is_cut_at_its_ends(lengths: list[int], one: int, other: int) -> None:
    first, last = sorted((one, other))
    edge = array("q", [0])
    for length in lengths:
        edge.append(edge[-1] + length)
    found = longest_in(edge, first, last)
    inside = [max(min(edge[i + 1], last) - max(edge[i], first), 0) for i in range(len(lengths))]
    assert found.count == sum(length > 0 for length in inside)
    assert found.ns == max(inside)
    assert found.index == (inside.index(found.ns) if found.ns else -1)
