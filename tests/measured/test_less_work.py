"""Less work never makes a replay longer, and what-if holds replays against a replay."""

from __future__ import annotations

import re
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.measured import MeasuredRun
from simcore.render.report.pages import run_json, run_page
from simcore.replay.parameters import Scales
from simcore.runs.measured import RecordedRun
from simcore.trace.findings import WhatIf
from tests.findings import named
from tests.says import said

from .damaged import DAMAGED
from .made_steps import Factors, Layout, actions, made_run, run_apart, simulated, trace_text
from .test_replay_by_hand import MS, SLOW_STAGE, op, run_of
from .test_replay_of_real_runs import RUNS, folder_of, opened

_LAYOUTS = st.builds(
    Layout, st.sampled_from([1, 2]), st.sampled_from([1, 2]), st.sampled_from([1, 2, 3]), st.integers(1, 3),
    st.booleans(),
)  # fmt: skip
_FACTORS = st.sampled_from([0.0, 0.001, 0.3, 0.9, 1.0, 1.1, 2.0])
_PAIRS = st.tuples(_FACTORS, _FACTORS).map(sorted)


@cache
def real_apart(name: str, stamp: str) -> MeasuredRun:
    """A real run whose ranks were profiled one after another, as far as its files tell."""
    found = re.match(r"wd(\d+)_tp(\d+)_pp(\d+)", name)
    assert found is not None
    world, tp, pp = map(int, found.groups())
    text = "".join(path.read_text() for path in folder_of(name).glob(f"*_{stamp}.txt"))
    return run_apart(text, Layout(tp, world // tp // pp, pp, 1))


def less_and_more(run: MeasuredRun, draw: Random, pairs: list[list[float]]) -> tuple[Scales, Scales]:
    """Two scales, each factor of the first at most that of the second."""
    rank, stage = draw.choice(run.ranks).rank, draw.choice(run.ranks).stage
    name = draw.choice(list(run.op_names))
    first, second = (
        Scales(
            compute, comm, gaps, host, ops={name: own}, kinds={"tp": kind, "pp": kind}, ranks={rank: slow},
            stages={stage: of_stage},
        )
        for compute, comm, gaps, host, own, kind, slow, of_stage in zip(*pairs, strict=True)
    )  # fmt: skip
    return first, second


def assert_less_is_no_longer(run: MeasuredRun, draw: Random, pairs: list[list[float]]) -> None:
    """Of all pieces: none ends later with less work."""
    if not run.timed:
        return
    results = RecordedRun(run)
    less, more = (results.with_scales(one) for one in less_and_more(run, draw, pairs))
    assert less.step_time_ns <= more.step_time_ns
    for early, late in zip(less.times.end, more.times.end, strict=True):
        assert all(one <= other for one, other in zip(early, late, strict=True))


_EIGHT = st.lists(_PAIRS, min_size=8, max_size=8)


@settings(max_examples=60, deadline=None)
@given(_LAYOUTS, st.integers(0, 10**6), _EIGHT, st.booleans())
def test_less_work_never_lengthens_a_made_step(
    layout: Layout, seed: int, pairs: list[list[float]], apart: bool
) -> None:
    draw = Random(seed)
    steps = actions(layout, draw)
    text = trace_text(layout, steps, simulated(steps, Factors()))
    assert_less_is_no_longer((run_apart if apart else made_run)(text, layout), draw, pairs)


@settings(max_examples=200, deadline=None)
@given(DAMAGED, st.integers(0, 10**6), _EIGHT, st.booleans())
def test_less_work_never_lengthens_a_replay_of_ranks_that_wait_in_circles(
    damaged: tuple[Layout, str], seed: int, pairs: list[list[float]], apart: bool
) -> None:
    layout, text = damaged
    timed = made_run(text, layout).timed
    run = run_apart(text, layout) if apart and timed else made_run(text, layout)
    assert_less_is_no_longer(run, Random(seed), pairs)


@pytest.mark.parametrize(("name", "stamp"), RUNS)
@pytest.mark.parametrize("apart", [False, True])
def test_less_work_never_lengthens_a_real_run(name: str, stamp: str, apart: bool) -> None:
    run = real_apart(name, stamp) if apart else opened(name, stamp)
    draw = Random(stamp)
    for _ in range(6):
        pairs = [sorted(draw.choice([0, 0.001, 0.5, 0.9, 1, 1.5]) for _ in range(2)) for _ in range(8)]
        assert_less_is_no_longer(run, draw, pairs)
    results = RecordedRun(run)
    base = results.base.step_time_ns
    for rank in run.ranks:
        assert results.with_scales(Scales(ranks={rank.rank: 0.001})).step_time_ns <= base


# Rank 0 waits in the all-reduce for rank 1, and that before it for what rank 0 sends behind it.
CIRCLE = (
    op(0, "forward_step", 0, 21)
    + op(0, "ep_allreduce", 21, 22, "ep")
    + op(0, "send_forward", 22, 72, "pp")
    + op(1, "forward_step", 0, 20, stage=1)
    + op(1, "recv_forward", 20, 21, "pp", stage=1)
    + op(1, "ep_allreduce", 21, 22, "ep", stage=1)
    + op(1, "backward_step", 22, 32, stage=1)
)


def test_which_rank_breaks_a_circle_does_not_depend_on_who_comes_first() -> None:
    """With 0.9 of its compute rank 0 comes first instead of rank 1. If who comes first goes on, the step is
    72 ms without and 79.9 ms with that.
    """
    results = RecordedRun(run_apart(CIRCLE, Layout(1, 1, 2, 1)))
    # Rank 0 goes on: 21, 1, 50; then what rank 1 receives is there, 1 of the all-reduce, 10.
    assert results.base.step_time_ns == 83 * MS
    assert results.with_scales(Scales(ranks={0: 0.9})).step_time_ns == 80_900_000
    said = [named(one.message) for one in results.base.diagnostics if one.code == "circular-waits"]
    assert said == [["0", "ep_allreduce"]]
    # As measured, no rank waits for another; and a step in order has no circle.
    assert "circular-waits" not in {one.code for one in results.diagnostics}
    whole = RecordedRun(run_apart(SLOW_STAGE, Layout(1, 1, 2, 1))).base
    assert "circular-waits" not in {one.code for one in whole.diagnostics}


def test_a_rank_that_only_waits_for_a_circle_keeps_its_own_wait() -> None:
    """Rank 0 waits for rank 1 and rank 1 for rank 2, which waits for rank 1: that circle is of 1 and 2."""
    ranks = {
        0: [("recv_backward", 0, 1, "pp"), ("backward_step", 1, 5, None)],
        1: [("ep_allreduce", 0, 1, "ep"), ("send_forward", 1, 3, "pp"), ("send_backward", 3, 7, "pp")],
        2: [("recv_forward", 0, 1, "pp"), ("ep_allreduce", 1, 2, "ep")],
    }  # fmt: skip
    text = "".join(op(rank, *one, stage=rank) for rank, ops in ranks.items() for one in ops)
    base = RecordedRun(run_apart(text, Layout(1, 1, 3, 1))).base
    assert base.graph.circles == [(1, 0)]
    # Rank 0 has what rank 1 sends at 1 + 2 + 4, and computes 4 ms.
    assert base.times.end[0][-1] == 11 * MS


def harm(knobs: list[WhatIf], base_ns: int) -> list[str]:
    """The knobs that make the step longer than the base."""
    return [knob.name for knob in knobs if max(knob.better10_ns, knob.free_ns or 0) > base_ns]


@pytest.mark.parametrize(("name", "stamp"), RUNS)
@pytest.mark.parametrize("apart", [False, True])
def test_no_question_that_takes_work_away_of_a_real_run_is_answered_with_harm(
    name: str, stamp: str, apart: bool
) -> None:
    results = RecordedRun(real_apart(name, stamp) if apart else opened(name, stamp))
    knobs = results.what_if()
    base = run_json(results, with_what_if=True)["what_if_base_ns"]
    assert base == results.with_scales(Scales()).step_time_ns
    assert (base == results.step_time_ns) is not apart
    assert set(harm(knobs, base)) <= {"balanced stages"}
    assert [knob.name for knob in knobs if knob.moves] == ["balanced stages"]
    if apart and name == "wd8_tp2_pp4":
        # Held against the 3.851 s that were measured, 20 XX.
        assert (base, results.step_time_ns) == (4_736_470_000, 3_851_380_000)
        assert len(harm(knobs, results.step_time_ns)) == len(knobs) == 25


@settings(max_examples=30, deadline=None)
@given(_LAYOUTS, st.integers(0, 10**6), st.booleans())
def test_no_question_that_takes_work_away_is_answered_with_harm(
    layout: Layout, seed: int, apart: bool
) -> None:
    steps = actions(layout, Random(seed))
    text = trace_text(layout, steps, simulated(steps, Factors()))
    results = RecordedRun((run_apart if apart else made_run)(text, layout))
    assert set(harm(results.what_if(), results.base.step_time_ns)) <= {"balanced stages"}


def test_the_page_says_that_what_if_is_of_the_replay_where_the_ranks_did_not_run_together() -> None:
    results = RecordedRun(run_apart(SLOW_STAGE, Layout(1, 1, 2, 1)))
    # The receives hold 78 ms of waiting as measured: 96 ms, where the replay takes 10 + 2 + 60 + 2 + 20.
    lines = run_page(results, with_what_if=True).splitlines()
    assert results.base.step_time_ns == 94 * MS
    title = lines.index(said(lines, "What if", "94.000 ms"))
    note = lines.index(said(lines, "not run together", "96.000 ms"))
    assert (note > title, "replayed" in lines[note + 1]) == (True, True)
    # Of ranks that ran together, and of a replay, there is nothing to say.
    together = RecordedRun(run_of(SLOW_STAGE, 2, pp=2))
    for other in (together, results.base):
        assert "not run together" not in run_page(other, with_what_if=True)


def test_balanced_stages_may_lengthen_the_step_and_is_marked() -> None:
    """Rank 0 computes 30 ms, of which the step waits for 10; rank 1 computes 20 ms and loads for 20."""
    text = op(0, "forward_step", 0, 10) + op(0, "send_forward", 10, 12, "pp") + op(0, "backward_step", 12, 32)
    text += op(1, "recv_forward", 0, 12, "pp", stage=1) + op(1, "forward_step", 12, 32, stage=1)
    text += op(1, "get_batch", 32, 52, stage=1)
    results = RecordedRun(run_of(text, 2, pp=2))
    knobs = results.what_if()
    (balanced,) = [knob for knob in knobs if knob.moves]
    # Each 25 ms: 10 x 25 / 30, 2, 25 and 20.
    assert (results.base.step_time_ns, balanced.better10_ns) == (52 * MS, 55_333_333)
    assert harm(knobs, 52 * MS) == ["balanced stages"]
    values = {one["knob"]: one for one in run_json(results, with_what_if=True)["what_if"]}
    assert values["balanced stages"]["moves_work"] is True
    assert [name for name, one in values.items() if "moves_work" in one] == ["balanced stages"]
    assert balanced.knob == f"balanced stages ({balanced.moves})"
    assert balanced.knob in run_page(results, with_what_if=True)
