"""A measured run beside a simulated one, and beside another: pairs, accounts in the same words, passes."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from simcore.comparison import Comparison
from simcore.diagnostics import UsageError
from simcore.measured import read_run
from simcore.parameters import Parameters
from simcore.render.report.comparison import comparison_json, comparison_page
from simcore.replay.parameters import Scales
from simcore.runs.measured import RecordedRun
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.trace.track import COMMON_ACCOUNTS, mean_ns
from tests.measured.made_steps import Factors, Layout, actions, made_run, simulated, trace_text
from tests.measured.traces import STAMP, Op
from tests.says import figures
from tests.says import said as says
from tests.strategies import Cell, Row, make_workload

_LAYOUTS = st.builds(
    Layout, st.sampled_from([1, 2]), st.sampled_from([1, 2]), st.sampled_from([1, 2, 3]), st.integers(1, 3)
)


def made_trace(layout: Layout, seed: int) -> RecordedRun:
    """A trace of this layout, with made up durations."""
    steps = actions(layout, Random(seed))
    return RecordedRun(made_run(trace_text(layout, steps, simulated(steps, Factors())), layout))


def made_simulation(layout: Layout, **parameters: object) -> SimulatedRun:
    """A workload of this layout: 5 ms forward, 7 and 4 ms backward a layer and micro-batch."""
    row = Row("mlp_row", Cell(5_000_000, "ALLGATHER", "tp", 4000), Cell(7_000_000), Cell(4_000_000))
    world = layout.tp * layout.dp * layout.pp
    workload = make_workload([row] * layout.microbatches, tp=layout.tp, pp=layout.pp, all_gpus=world)
    given = Parameters(microbatches=layout.microbatches, schedule="1f1b", **parameters)  # type: ignore[arg-type]
    return SimulatedRun(simulate(workload, given))


def beside(a: SimulatedRun | RecordedRun, b: SimulatedRun | RecordedRun) -> Comparison:
    return Comparison(a, b)


@settings(max_examples=40, deadline=None)
@given(_LAYOUTS, st.integers(0, 10**6))
def test_stages_of_one_layout_sum_to_both_steps_and_every_rank_has_its_pair(
    layout: Layout, seed: int
) -> None:
    found = beside(made_simulation(layout), made_trace(layout, seed))
    assert (found.layout_differences, found.is_by_rank) == ([], True)
    assert [stage.stage for stage in found.stages] == list(range(layout.pp))
    steps = (found.a.step_time_ns, found.b.step_time_ns)
    for stage in (*found.stages, found.all_stages):
        assert [one.name for one in stage.accounts] == list(COMMON_ACCOUNTS)
        sums = (sum(one.a_ns for one in stage.accounts), sum(one.b_ns for one in stage.accounts))
        assert sums == steps
    paired = {pair.b.first_rank: pair for pair in found.pairs}
    # Each measured rank has a lane.
    assert set(paired) == set(range(layout.world))
    assert isinstance(found.a, SimulatedRun)
    for rank, pair in paired.items():
        of_class = found.a.simulation.timeline.classes[pair.a.track_id]
        assert rank in of_class.ranks
        assert pair.stage == of_class.stage
    assert comparison_page(found).count("\n") <= 40
    assert comparison_json(found)["difference_ns"] == steps[1] - steps[0]


@settings(max_examples=30, deadline=None)
@given(_LAYOUTS, st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_other_way_round_every_difference_has_the_other_sign(layout: Layout, one: int, two: int) -> None:
    a, b = made_trace(layout, one), made_trace(layout, two)
    there, back = beside(a, b), beside(b, a)
    assert there.difference_ns == -back.difference_ns
    for stage, other in zip(there.stages, back.stages, strict=True):
        assert [change.ns for change in stage.accounts] == [-change.ns for change in other.accounts]
        assert [(two, one) for one, two in stage.passes] == sorted_as(other.passes, stage.passes)
    itself = beside(a, a)
    assert (itself.kind_changes, itself.difference_ns) == ([], 0)
    assert all(one.a == one.b for stage in itself.stages for one in stage.passes)


def sorted_as(passes: list[tuple[object, object]], like: list[tuple[object, object]]) -> list[object]:
    """`passes` in the order of their other side in `like`."""
    order = {b: place for place, (_, b) in enumerate(like)}
    return [(a, b) for a, b in sorted(passes, key=lambda one: order[one[0]])]


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=15), st.integers(1, 9))
def test_means_sum_to_the_mean_of_the_whole(sums: list[int], count: int) -> None:
    means = mean_ns(sums, count)
    assert sum(means) == sum(sums) // count
    assert all(abs(mean - ns / count) <= 1 for mean, ns in zip(means, sums, strict=True))


def two_stage_trace(first_forward_ms: int) -> RecordedRun:
    """Two stages, one micro-batch: forward of so many ms on stage 0, 5 on 1; backward 11 ms on both."""
    f = first_forward_ms
    lines = [
        Op("forward_step", str(1000 + f), str(f), batch=0, stage=0).line(0),
        Op("send_forward", str(1001 + f), "1", batch=0, group="pp", stage=0).line(0),
        Op("recv_backward", str(1018 + f), "17", batch=0, group="pp", stage=0).line(0),
        Op("backward_step", str(1029 + f), "11", batch=0, stage=0).line(0),
        Op("recv_forward", str(1001 + f), str(1 + f), batch=0, group="pp", stage=1).line(1),
        Op("forward_step", str(1006 + f), "5", batch=0, stage=1).line(1),
        Op("backward_step", str(1017 + f), "11", batch=0, stage=1).line(1),
        Op("send_backward", str(1018 + f), "1", batch=0, group="pp", stage=1).line(1),
    ]
    text = "".join(f"{line}\n" for line in lines)
    return RecordedRun(read_run(f"wd2_tp1_pp2_rank0_{STAMP}.txt", text.encode()))


def test_a_forward_that_takes_longer_than_simulated_is_what_differs_most() -> None:
    simulation = made_simulation(Layout(1, 1, 2, 1))
    found = beside(simulation, two_stage_trace(45))
    first, second = found.stages
    forward = {stage.stage: stage.accounts[COMMON_ACCOUNTS.index("forward")] for stage in found.stages}
    assert (forward[0].a_ns, forward[0].b_ns) == (5_000_000, 45_000_000)
    assert (forward[1].a_ns, forward[1].b_ns) == (5_000_000, 5_000_000)
    backward = first.accounts[COMMON_ACCOUNTS.index("backward")]
    # Input and weight gradient are one.
    assert (backward.a_ns, backward.b_ns) == (11_000_000, 11_000_000)
    # Stage 1 waits for the forward in both: what is more is bubble there.
    bubble = second.accounts[COMMON_ACCOUNTS.index("bubble")]
    assert bubble.b_ns == 45_000_000
    assert [(one.stage, one.change.name) for one in found.kind_changes[:2]] == [(0, "forward"), (1, "bubble")]
    one = first.pass_ns("forward")
    assert one is not None
    assert (one.a_ns, one.b_ns) == (5_000_000, 45_000_000)
    # The stage's only rank.
    assert says([found.why_text], "rank 0", "40.000 ms more", "compute +20.000 ms", "bubble +19.999 ms")
    page = comparison_page(found)
    assert "B - A  +41.998 ms (+131.2 %)" in page
    assert "2 ranks paired" in page


def test_another_layout_is_said_and_paired_by_stage() -> None:
    found = beside(made_simulation(Layout(2, 1, 2, 3)), two_stage_trace(5))
    assert found.layout_differences == [("tp", 2, 1), ("micro-batches", 3, 1)]
    assert not found.is_by_rank
    assert [(pair.stage, pair.ranks) for pair in found.pairs] == [(0, 1), (1, 1)]
    (notice,) = found.notices
    assert figures(notice) == ["2", "1", "3", "1", "--world", "2", "--tp", "1", "--microbatches", "1"]
    assert says([notice], "tp 2", "micro-batches 3", "by stage alone", "--world 2 --tp 1 --microbatches 1")


@pytest.mark.parametrize("trace_first", [True, False])
def test_the_flags_that_are_said_make_the_layouts_match(trace_first: bool) -> None:
    trace = made_trace(Layout(1, 2, 2, 2), 3)
    mine = made_simulation(Layout(2, 1, 1, 2))

    def notices_beside(simulated: SimulatedRun) -> list[str]:
        return (beside(trace, simulated) if trace_first else beside(simulated, trace)).notices

    (said,) = notices_beside(mine)
    assert figures(said)[-6:] == ["--world", "4", "--tp", "1", "--pp", "2"]
    parameters = replace(mine.simulation.parameters, world=4, tp=1, pp=2)
    assert notices_beside(SimulatedRun(simulate(mine.simulation.workload, parameters))) == []
    # Two traces have no such flags.
    (said,) = beside(trace, made_trace(Layout(2, 1, 1, 2), 3)).notices
    assert said.endswith("by stage alone.")


def test_what_a_trace_does_not_tell_is_said() -> None:
    trace = RecordedRun(read_run("trace.txt", (Op(batch=0, stage=1).line(3) + "\n").encode()))
    found = beside(made_simulation(Layout(1, 1, 2, 1)), trace)
    (notice,) = found.notices
    assert says([notice], "B", "tp, dp, pp", "not known", "by stage alone")
    assert figures(notice) == []
    assert [pair.stage for pair in found.pairs] == [1]


def test_nothing_in_common_is_an_error() -> None:
    trace = RecordedRun(read_run("trace.txt", (Op(batch=0, stage=7).line(3) + "\n").encode()))
    with pytest.raises(UsageError) as caught:
        beside(made_simulation(Layout(1, 1, 2, 1)), trace)
    assert says([str(caught.value)], "compare", "no rank", "stage", "stage_id", "degrees")


def test_a_run_beside_its_replay_at_twice_the_speed() -> None:
    trace = made_trace(Layout(1, 1, 2, 2), 5)
    found = beside(trace, trace.with_scales(Scales(compute=0.5)))
    assert (found.a.figures.kind, found.b.figures.kind) == ("measured", "replayed")
    for stage in found.stages:
        for name in ("forward", "backward"):
            change = stage.accounts[COMMON_ACCOUNTS.index(name)]
            assert abs(change.b_ns * 2 - change.a_ns) <= 20


def replayed_beside(layout: Layout, seed: int, scales: Scales) -> Comparison:
    """A made trace, and its replay with scales beside it."""
    trace = made_trace(layout, seed)
    return beside(trace, trace.with_scales(scales))


@settings(max_examples=40, deadline=None)
@given(_LAYOUTS.filter(lambda one: one.tp * one.dp > 1), st.integers(0, 10**6), st.data())
def test_a_rank_whose_compute_is_scaled_is_the_cause_and_stands_for_its_stage(
    layout: Layout, seed: int, data: st.DataObject
) -> None:
    rank = data.draw(st.integers(0, layout.world - 1))
    factor = data.draw(st.sampled_from([0.0, 0.5, 2.0]))
    found = replayed_beside(layout, seed, Scales(ranks={rank: factor}))
    (track,) = [one for one in found.a.tracks if one.first_rank == rank]
    assert found.compute_cause is not None
    assert (found.compute_cause.rank, found.compute_cause.stage) == (rank, track.stage)
    computed = sum(found.a.accounts[track.track_id].compute_ns().values())  # type: ignore[union-attr]
    change = found.compute_cause.change
    assert change.a_ns == computed
    # Each piece is rounded by itself.
    assert abs(change.b_ns - factor * computed) <= 200
    assert {(one.rank, one.stage) for one in found.kind_changes if one.change.name == "forward"} == {
        (rank, track.stage)
    }
    # The other way round it is the same cause.
    back = beside(found.b, found.a).compute_cause
    assert back is not None
    assert (back.rank, back.change.ns) == (rank, -change.ns)


@pytest.mark.parametrize(
    ("scales", "why"),
    [
        (Scales(ranks={3: 3.0}), r"rank 3 computes [\d.]+ ms more; .* on the mean rank"),
        (Scales(stages={1: 0.1}), r"the mean rank of stage 1 computes [\d.]+ ms less; .* on the mean rank"),
        # Communication alone: no compute explains it.
        (Scales(comm=9.0), r"[a-z ]+ \+[\d.]+ ms .* on the mean rank, most on (stage|rank) \d(: | and ).*"),
    ],
)  # fmt: skip
def test_why_names_whose_compute_it_is(scales: Scales, why: str) -> None:
    found = replayed_beside(Layout(2, 1, 2, 3), 5, scales)
    assert re.fullmatch(why, found.why_text), found.why_text
    assert comparison_json(found)["why"] == found.why_text
    assert f"Why: {found.why_text}." in " ".join(comparison_page(found).split())


@settings(max_examples=40, deadline=None)
@given(_LAYOUTS, st.integers(0, 10**6), st.integers(0, 10**6))
def test_what_why_names_first_changes_as_the_step_does(layout: Layout, seed: int, other: int) -> None:
    """Of a made trace beside a simulation and beside another trace. Seen to fail on the account that changes
    most whatever its sign, and on the rank whose compute does."""
    trace = made_trace(layout, seed)
    for b in (made_simulation(layout), made_trace(layout, other)):
        found = beside(trace, b)
        words = found.why_text
        signs = (r"more|\+", r"less|-")
        wanted, unwanted = signs if found.difference_ns > 0 else signs[::-1]
        if found.difference_ns:
            first = re.search(r"computes [\d.]+ [mun]?s (more|less)|^[a-z ]+ ([+-])\d", words)
            assert first is not None, words
            assert re.fullmatch(wanted, first[1] or first[2]), words
            on_mean = re.search(r"(?:^|; )[a-z ]+ ([+-])\d.* on the mean rank", words)
            assert on_mean is not None, words
            assert re.fullmatch(wanted, on_mean[1]), words
            though = re.search(r"though [a-z ]+ ([+-])", words)
            assert though is None or re.fullmatch(unwanted, though[1]), words
            most = re.search(r"most on [a-z\d, ]+?(?:: |, each about )[a-z ]+ ([+-])", words)
            assert most is None or re.fullmatch(wanted, most[1]), words


def test_less_compute_is_no_reason_for_a_longer_step() -> None:
    found = replayed_beside(Layout(2, 1, 2, 3), 5, Scales(stages={1: 0.2}, comm=20.0))
    assert found.difference_ns > 0
    assert found.compute_cause is not None
    assert (found.compute_cause.stage, found.compute_cause.change.ns < 0) == (1, True)
    assert re.fullmatch(r"[a-z ]+ \+.* mean rank, .* stage \d: [a-z ]+ \+.*", found.why_text)


def test_all_ranks_alike_are_the_mean_rank_which_is_said_once() -> None:
    found = replayed_beside(Layout(2, 1, 1, 2), 5, Scales(compute=4.0))
    assert found.compute_cause is not None
    assert (found.compute_cause.rank, found.compute_cause.stage, found.compute_cause.change.name) == (
        None,
        None,
        "compute",
    )
    assert says([found.why_text], "compute +4.521 ms", "mean rank", "6.028 ms", "1.507 ms")
    # With the rest of B - A.
    assert len(figures(found.why_text)) == 4


def test_a_stage_that_pairs_alone_has_no_ranks() -> None:
    found = beside(made_simulation(Layout(2, 1, 2, 3)), two_stage_trace(45))
    assert not found.is_by_rank
    assert {one.rank for one in found.kind_changes} == {None}
