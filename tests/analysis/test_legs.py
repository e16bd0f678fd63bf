"""The legs of the critical path: they cover the step, and each is one rank in one pass.

Planted: a leg that ends one segment early; the transfer counted to the pass before it; placeholders that are
legs of their own. The properties failed on the first and the last, the hand-made path on the second.
"""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings

from simcore.analysis.layers import NOT_MODELLED
from simcore.parameters import Parameters
from simcore.program.ops import ComputeCost
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.trace.findings import MergedSegment
from simcore.trace.run import merged_segments_of
from simcore.workload import open_workload
from tests.engine.test_policies import made
from tests.strategies import Case, cases
from tests.tui.made_runs import seed


def is_placeholder(results: SimulatedRun, index: int) -> bool:
    """Whether a segment is compute outside of micro-batches of which the file knows nothing."""
    path, timeline = results.critical_path, results.simulation.timeline
    segment = results.path_source.segment(path, index)
    if segment.kind != "compute" or segment.microbatch is not None:
        return False
    cost = timeline.program.costs[timeline.stage_program(path.track[index]).ops.cost[path.span[index]]]
    return isinstance(cost, ComputeCost) and cost.ns in NOT_MODELLED


def is_of_placeholders(results: SimulatedRun, leg: MergedSegment) -> bool:
    return all(is_placeholder(results, index) for index in range(leg.first, leg.last))


@settings(max_examples=60)
@given(cases())
def test_the_legs_cover_the_path_and_their_sums_are_its_own(case: Case) -> None:
    results = SimulatedRun(simulate(*case))
    path, legs = results.critical_path, merged_segments_of(results)
    if not results.step_time_ns:
        assert legs == []
        return
    assert (legs[0].start_ns, legs[-1].end_ns) == (0, results.step_time_ns)
    assert (legs[0].first, legs[-1].last) == (0, len(path))
    for one, two in pairwise(legs):
        assert one.end_ns == two.start_ns
        assert one.last == two.first
        assert (one.rank, one.what, one.microbatch) != (two.rank, two.what, two.microbatch)
        # A placeholder is a leg only where its rank does nothing next to it.
        if is_of_placeholders(results, one):
            assert one.rank != two.rank
        if is_of_placeholders(results, two):
            assert one.rank != two.rank
    for leg in legs:
        segments = list(results.path_source.segments(path, range(leg.first, leg.last)))
        assert {one.rank for one in segments} == {leg.rank}
        told = [
            one for index, one in enumerate(segments, leg.first) if not is_placeholder(results, index)
        ] or segments
        assert {one.microbatch for one in told} == {None if leg.microbatch < 0 else leg.microbatch}
        assert segments[0].reason == leg.reason
        assert leg.ns == sum(one.end_ns - one.start_ns for one in segments)
    assert sum(results.critical_by_layer.values()) == results.step_time_ns


def test_placeholders_of_a_nanosecond_are_part_of_what_comes_next_and_collectives_have_their_layer() -> None:
    """Seed 000: compute outside of micro-batches is 1 ns in the file, and was eleven legs of twenty."""
    legs = merged_segments_of(
        SimulatedRun(simulate(open_workload("fixtures/000_gpt13b_tp4_old_header.txt"), Parameters()))
    )
    assert [(leg.what, leg.microbatch) for leg in legs] == [
        ("forward", 0),
        ("tp of cross_entropy", -1),
        ("backward", 0),
        ("tp of embedding_grads", -1),
        ("tp of layernorm", -1),
        ("optimizer", -1),
        ("dp of grad_param_comm", -1),
        ("dp of grad_gather", -1),
    ]
    assert min(leg.ns for leg in legs) > 1000


def test_the_path_of_seed_002_goes_down_the_pipeline_and_back() -> None:
    legs = [leg for leg in merged_segments_of(seed(schedule="1f1b")) if leg.microbatch >= 0]
    told = [(leg.what, leg.microbatch, leg.rank) for leg in legs]
    assert told[:3] == [("forward", 0, 0), ("pp", 0, 0), ("forward", 0, 64)]
    assert told[-3:] == [("backward", 15, 64), ("pp", 15, 64), ("backward", 15, 0)]
    assert legs[2].reason == "stage 0 sends the activation"


def test_a_change_of_state_is_a_leg_of_its_own_outside_of_micro_batches() -> None:
    """ASTRA-sim's loop: the row's forward, and the 2 ns in which the loop goes on to end the pass."""
    legs = merged_segments_of(SimulatedRun(made(["mlp -1 50 NONE 0 0 NONE 0 0 NONE 0 0"])))
    assert [(leg.what, leg.microbatch, leg.start_ns, leg.end_ns) for leg in legs] == [
        ("forward", 0, 0, 50),
        ("idle", -1, 50, 52),
    ]
