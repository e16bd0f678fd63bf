"""The critical path is a chain of what waits for what: no replay is shorter than it with its durations."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.replay.parameters import Scales
from simcore.replay.span_words import find_causes, find_effects
from simcore.runs.measured import RecordedRun
from simcore.sources.measured import FIRST_EXPOSED
from simcore.sources.segments import AWAIT, LAUNCH
from simcore.trace import graph
from simcore.trace.reasons import BUSY, LATE, RECEIVED, Facts, reason_words
from simcore.trace.run import merged_segments_of

from .made_steps import Factors, Layout, actions, made_run, simulated, trace_text
from .paths import PathRow, path_rows
from .test_replay_by_hand import MS, op, path_of, run_of
from .test_replay_of_real_runs import RUNS, opened
from .test_trace_properties import assert_accounts_and_path
from .traces import Sub


def chain_ns(results: RecordedRun, compute: float) -> int:
    """The length of the path with its compute scaled."""
    return sum(
        round((one.end - one.start) * (compute if one.account < FIRST_EXPOSED else 1))
        for one in path_rows(results)
    )


def assert_no_replay_is_shorter_than_the_path(results: RecordedRun, compute: float) -> None:
    base = results.scales or Scales()
    slowed = results.with_scales(base.times(Scales(compute=compute)))
    assert slowed.step_time_ns >= chain_ns(results, compute)


def backward(rank: int, end: float, *subs: tuple[str, float, float], forward: float = 10) -> str:
    """A backward step with collectives beside it, each (name, launch, end), ms."""
    inner = tuple(Sub(f"{1000 + over:.2f}", f"{over - at:.2f}", name, "x_async") for name, at, over in subs)
    return op(rank, "forward_step", 0, forward) + op(rank, "backward_step", forward, end, subs=inner)


# Rank 1 launches last, at 60; the collective is over at 100. Beside it rank 0 computes for 44 ms of 80.
BESIDE = backward(0, 110, ("reduce", 20, 100)) + backward(1, 106, ("reduce", 60, 104), forward=5)


def beside() -> RecordedRun:
    return RecordedRun(run_of(BESIDE, 2, tp=2))


def test_the_path_leaves_out_compute_that_a_collective_hides() -> None:
    assert path_of(beside()) == [
        (1, 0, 5, "compute forward", "first", 1),
        (1, 5, 60, "compute backward", "behind", 1),
        (0, 60, 100, "tp", "late", 1),
        (0, 100, 110, "compute backward", "behind", 0),
    ]
    # 70 ms of compute lie on it.
    assert beside().with_scales(Scales(compute=0.9)).step_time_ns == 103 * MS
    assert beside().with_scales(Scales(ranks={1: 0.9})).step_time_ns == 104 * MS


def test_who_launches_last_and_waits_itself_is_on_the_path_up_to_its_launch() -> None:
    """With half the compute rank 1 launches at 11 and is through at 30; the collective takes 38 ms."""
    text = backward(0, 70, ("reduce", 20, 60)) + backward(1, 72, ("reduce", 22, 60))
    assert path_of(RecordedRun(run_of(text, 2, tp=2), Scales(compute=0.5))) == [
        (1, 0, 5, "compute forward", "first", 1),
        (1, 5, 11, "compute backward", "behind", 1),
        (1, 11, 49, "tp", "late", 1),
        (1, 49, 55, "compute backward", "behind", 1),
    ]


# Rank 1 comes at 50 to the first collective, which is over at 60, and at 52 to the one that waits for it.
QUEUE = backward(0, 110, ("one", 20, 60), ("two", 30, 90)) + backward(
    1, 100, ("one", 50, 65), ("two", 52, 95)
)


def test_a_collective_that_waits_for_the_one_before_it_leads_to_the_last_rank_of_that() -> None:
    results = RecordedRun(run_of(QUEUE, 2, tp=2))
    assert path_of(results) == [
        (1, 0, 10, "compute forward", "first", 1),
        (1, 10, 50, "compute backward", "behind", 1),
        (0, 50, 60, "tp", "late", 1),
        (0, 60, 90, "tp", "busy", 0),
        (0, 90, 110, "compute backward", "behind", 0),
    ]
    assert [leg.reason for leg in merged_segments_of(results)][-1] == reason_words(
        Facts(None, is_late=True, rank=1)
    )
    assert_no_replay_is_shorter_than_the_path(results, 2)
    # The second wait of rank 0 leads to its first, and back.
    pieces = results.rendezvous.segments[0]
    before = reason_words(Facts(graph.BUSY))
    first, second = (piece for piece, kind in enumerate(pieces.kind) if kind == AWAIT)
    assert [(one.span, one.reason) for one in find_causes(results, 0, [second])][:1] == [(first, before)]
    assert (0, second, before) in [
        (one.track_id, one.span, one.reason) for one in find_effects(results, 0, [first])
    ]


def test_of_a_send_and_a_receive_in_one_the_path_has_the_longer() -> None:
    """Rank 0 sends for 18 ms, as long as rank 1 receives; what it receives there is sent by 13."""
    text = op(0, "forward_step", 0, 10)
    text += "".join(op(0, name, 10, 30, "pp") for name in ("send_forward", "recv_backward"))
    text += op(0, "backward_step", 30, 40) + op(1, "forward_step", 0, 12, stage=1)
    text += op(1, "send_backward", 12, 13, "pp", stage=1) + op(1, "recv_forward", 13, 31, "pp", stage=1)
    results = RecordedRun(run_of(text, 2, pp=2))
    assert path_of(results) == [
        (0, 0, 10, "compute forward", "first", 0),
        (0, 10, 30, "pp", "behind", 0),
        (0, 30, 40, "compute backward", "behind", 0),
    ]
    assert results.with_scales(Scales(compute=0.5)).step_time_ns == chain_ns(results, 0.5) == 30 * MS


_LAYOUTS = st.builds(
    Layout, st.sampled_from([1, 2, 3]), st.sampled_from([1, 2]), st.sampled_from([1, 2, 3]),
    st.integers(1, 3), st.booleans(),
)  # fmt: skip
_BASES = st.builds(Scales, st.integers(0, 3), st.integers(0, 4), gaps=st.integers(0, 2))


@settings(max_examples=150, deadline=None)
@given(_LAYOUTS, st.integers(0, 10**6), st.none() | _BASES, st.integers(0, 5))
def test_no_replay_of_a_made_step_is_shorter_than_the_path(
    layout: Layout, seed: int, scales: Scales | None, compute: int
) -> None:
    steps = actions(layout, Random(seed))
    results = RecordedRun(made_run(trace_text(layout, steps, simulated(steps, Factors())), layout))
    assert results.rendezvous.matches.unmatched == ()
    assert results.with_scales(Scales()).step_time_ns == results.step_time_ns
    shown = results if scales is None else results.with_scales(scales)
    assert_accounts_and_path(shown)
    assert_no_replay_is_shorter_than_the_path(shown, compute)
    if scales is None or (scales.compute and scales.comm):
        assert_walks_along_the_path(shown)


@pytest.mark.parametrize(("name", "stamp"), RUNS)
@pytest.mark.parametrize("scales", [None, Scales(compute=2), Scales(comm=4, gaps=0)])
def test_no_replay_of_a_real_run_is_shorter_than_the_path(
    name: str, stamp: str, scales: Scales | None
) -> None:
    results = RecordedRun(opened(name, stamp), scales)
    for compute in (0, 0.9, 1, 1.1, 2, 10):
        assert_no_replay_is_shorter_than_the_path(results, compute)
    assert_walks_along_the_path(results)


def assert_walks_along_the_path(results: RecordedRun) -> None:
    """Where the path comes from another rank, or out of a queue, a step back from there leads the same way,
    and a step forward leads back.
    """
    path = path_rows(results)
    for before, one, after in zip(path, path[1:], [*path[2:], None], strict=False):
        if one.reason not in (LATE, RECEIVED, BUSY):
            assert one.rank == one.of == before.rank
            continue
        if after is not None and after.reason == BUSY:
            # A collective that another one waits for: its own member may have had compute to do longer.
            assert before.rank == one.of
            continue
        piece = held_piece(results, one)
        back = find_causes(results, one.rank, [piece])[0]
        assert (back.track_id, before.rank) == (one.of, one.of)
        assert before.piece <= back.span
        # A launch is no part of what its rank did before; what that holds back, it holds back by coming then.
        launch = back.span + 1
        own = (
            [back.span, launch]
            if results.rendezvous.segments[back.track_id].kind[launch] == LAUNCH
            else [back.span]
        )
        held = find_effects(results, back.track_id, own)
        assert (one.rank, piece) in [(found.track_id, found.span) for found in held]


def held_piece(results: RecordedRun, one: PathRow) -> int:
    """The piece of a segment, or the one of no length before it, that another rank held."""
    piece = one.piece
    while not results.graph.find_causes(one.rank, piece, results.ends):
        piece -= 1
        assert results.times.end[one.rank][piece] == one.start
    return piece


def test_a_collective_that_only_some_ranks_name_asynchronous_is_opened() -> None:
    one, other = (Sub("1018.00", f"{ms}.00", "bwd", source) for ms, source in ((10, "x_async"), (6, "x")))
    text = op(0, "backward_step", 0, 30, subs=(one,)) + op(1, "backward_step", 0, 30, subs=(other,))
    results = RecordedRun(run_of(text, 2, tp=2))
    assert [one.ns("exposed tp") for one in results.accounts] == [0, 6 * MS]
    assert_accounts_and_path(results)
