"""What holds of every replay: over steps that a simulation of its own wrote as traces."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.replay.parameters import Scales
from simcore.runs.measured import RecordedRun

from .damaged import DAMAGED
from .made_steps import Action, Factors, Layout, Times, actions, made_run, simulated, trace_text
from .test_trace_properties import assert_accounts_and_path

_LAYOUTS = st.builds(
    Layout, st.sampled_from([1, 2]), st.sampled_from([1, 2]), st.sampled_from([1, 2, 3]), st.integers(1, 3)
)


def step_of(times: Times) -> int:
    return max(done[-1][1] for done in times)


def replays(layout: Layout, seed: int) -> tuple[list[list[Action]], Times, RecordedRun]:
    steps = actions(layout, Random(seed))
    times = simulated(steps, Factors())
    return steps, times, RecordedRun(made_run(trace_text(layout, steps, times), layout))


@settings(max_examples=60, deadline=None)
@given(_LAYOUTS, st.integers(0, 10**6))
def test_a_consistent_step_is_replayed_to_the_nanosecond(layout: Layout, seed: int) -> None:
    _, times, results = replays(layout, seed)
    assert results.rendezvous.matches.unmatched == ()
    first = min(rank[0][1] for rank in times)
    assert results.step_time_ns == step_of(times) - first
    again = results.with_scales(Scales()).run
    for rank, other in zip(results.measured.ranks, again.ranks, strict=True):
        assert (rank.ops.start, rank.ops.end) == (other.ops.start, other.ops.end)
        assert (rank.subs.start, rank.subs.end) == (other.subs.start, other.subs.end)


@settings(max_examples=60, deadline=None)
@given(_LAYOUTS, st.integers(0, 10**6), st.integers(0, 4), st.integers(0, 4), st.integers(0, 3), st.data())
def test_with_other_durations_it_is_what_the_other_simulation_says(
    layout: Layout, seed: int, compute: int, comm: int, gaps: int, data: st.DataObject
) -> None:
    steps, times, results = replays(layout, seed)
    slow = data.draw(st.integers(0, layout.world - 1))
    factors = Factors(compute, comm, gaps, {slow: data.draw(st.integers(1, 3))})
    expected = simulated(steps, factors)
    first = min(rank[0][1] for rank in times)
    scales = Scales(compute=compute, comm=comm, gaps=gaps, ranks=dict(factors.ranks))
    found = results.with_scales(scales)
    assert found.step_time_ns == step_of(expected) - first
    for rank, done in enumerate(expected):
        assert found.times.end[rank][-1] == done[-1][1] - first


@settings(max_examples=60, deadline=None)
@given(_LAYOUTS, st.integers(0, 10**6), st.data())
def test_gradients_are_the_slopes_of_what_the_other_simulation_says(
    layout: Layout, seed: int, data: st.DataObject
) -> None:
    """With a factor of 0, 1 and 2: the step is convex, and straight down to 0 where its slope holds."""
    steps, times, results = replays(layout, seed)
    rank = data.draw(st.integers(0, layout.world - 1))
    ways = {
        "compute": lambda factor: Factors(factor, 1, 1),
        "comm": lambda factor: Factors(1, factor, 1),
        "host gaps": lambda factor: Factors(1, 1, factor),
        f"rank {rank}": lambda factor: Factors(1, 1, 1, {rank: factor}),
    }
    first = min(one[0][1] for one in times)
    for one in results.gradients:
        if one.scale not in ways:
            continue
        free, double = (step_of(simulated(steps, ways[one.scale](factor))) - first for factor in (0, 2))
        step = results.step_time_ns
        assert double - step >= one.right_ns >= one.left_ns >= step - free, one
        assert (step - free == one.left_ns) == (one.until == 0), one


@settings(max_examples=60, deadline=None)
@given(
    _LAYOUTS, st.integers(0, 10**6), st.sampled_from([Scales(), Scales(compute=3), Scales(comm=0, gaps=2)])
)
def test_accounts_sum_and_the_path_covers_the_step(layout: Layout, seed: int, scales: Scales) -> None:
    _, _, results = replays(layout, seed)
    assert_accounts_and_path(results)
    assert_accounts_and_path(results.with_scales(scales))


@settings(max_examples=40, deadline=None)
@given(_LAYOUTS, st.integers(0, 10**6))
def test_the_account_of_compute_is_what_was_computed(layout: Layout, seed: int) -> None:
    steps, _, results = replays(layout, seed)
    for todo, one in zip(steps, results.accounts, strict=True):
        assert sum(one.compute_ns().values()) == sum(action.ns for action in todo if action.what == "own")


@settings(max_examples=40, deadline=None)
@given(_LAYOUTS, st.integers(0, 10**6))
def test_free_compute_and_communication_leave_gaps_alone(layout: Layout, seed: int) -> None:
    steps, times, results = replays(layout, seed)
    first = min(rank[0][1] for rank in times)
    found = results.with_scales(Scales(compute=0, comm=0))
    assert found.step_time_ns == step_of(simulated(steps, Factors(compute=0, comm=0))) - first
    assert all(not sum(one.exposed_ns().values()) for one in found.accounts)


# ns; the steps are a few ms long.
_SHIFTS = [-700_000_000, -5_000_000, -1_000_000, 1_000_000, 2_000_000, 40_000_000, 3_000_000_000, 10**14]


@settings(max_examples=40, deadline=None)
@given(_LAYOUTS, st.integers(0, 10**6), st.data())
def test_clocks_that_differ_are_found_and_taken_back(layout: Layout, seed: int, data: st.DataObject) -> None:
    """The ranks of the last stage run on a host whose clock is another one."""
    if layout.pp == 1 or layout.world < 2:
        return
    steps = actions(layout, Random(seed))
    times = simulated(steps, Factors())
    last = range(layout.world - layout.tp * layout.dp, layout.world)
    shift = data.draw(st.sampled_from(_SHIFTS))
    run = made_run(trace_text(layout, steps, times, dict.fromkeys(last, shift)), layout)
    plain = made_run(trace_text(layout, steps, times), layout)
    assert run.concurrent
    assert [one.code for one in run.diagnostics if one.code == "clock-offset"] == ["clock-offset"]
    # The median of both directions is off by no more than half of what a message and a tail take.
    assert abs(run.step_time_ns - plain.step_time_ns) < 60_000


@settings(max_examples=200, deadline=None)
@given(DAMAGED, st.sampled_from([0, 0.5, 1, 3]))
def test_ranks_in_any_order_are_replayed_without_an_end_in_each_other(
    damaged: tuple[Layout, str], factor: float
) -> None:
    """Orders that no real step has: receives before their sends on both sides, calls in other orders."""
    layout, text = damaged
    results = RecordedRun(made_run(text, layout))
    if not results.measured.timed:
        return
    assert_accounts_and_path(results)
    assert_accounts_and_path(results.with_scales(Scales(compute=factor, gaps=2)))
    if results.measured.concurrent:
        # What the files' times allow comes out again: nobody is earlier than it was.
        assert results.with_scales(Scales()).step_time_ns >= results.step_time_ns
