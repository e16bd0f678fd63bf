"""Gradients: the slopes at 1 are those of the same forward pass with a little more and a little less.

Seen to fail on these bugs, planted one at a time: the least slope taken for both sides, at the end or at each
tie; a chain that is summed without its last op; `until` 0 where half of the slope is left.
"""

from __future__ import annotations

from array import array
from fractions import Fraction

import pytest
from hypothesis import given, settings

from simcore.parameters import Parameters
from simcore.program.ops import COMPUTE, STREAMS, TO_NEXT
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.trace.gradients import Chains, Gradient
from simcore.trace.graph import JOINS, Graph
from simcore.workload import open_workload
from simcore.workload.model import base_name
from tests.engine.policy_cases import PolicyCase, policy_cases
from tests.engine.test_folding import SEED_001
from tests.engine.test_folding_with_overrides import overridden
from tests.strategies import Case, cases
from tests.workload.texts import read

# A part so small that no other path comes in between: durations are below 10^9 ns, sums below 10^13.
SMALL = 10**15


def scaled_step(results: SimulatedRun, scale: str, factor: Fraction) -> Fraction:
    """The step time of the frozen order with a factor on the durations that a scale is about, exactly."""
    graph, simulation = results.dependencies.graph, results.fold_run()
    columns = []
    for number, rank_class in enumerate(simulation.timeline.classes):
        ops, start, end = simulation.timeline.columns(number)
        ranks = rank_class.ranks.text()
        column = []
        for stream, row, begin, over in zip(ops.stream, ops.row, start, end, strict=True):
            names = {"compute", f"rank {ranks}", f"ranks {ranks}"}
            if stream != COMPUTE:
                names = {"comm", f"comm {'pp' if stream >= TO_NEXT else STREAMS[stream]}"}
            if row >= 0:
                names.add(f"layer {base_name(simulation.workload.name[row])}")
            part = factor.numerator if scale in names else factor.denominator
            column.append((over - begin) * part)
        columns.append(column)
    flat = [0, *(ns for column in columns for ns in column), *[0] * len(columns)]
    return Fraction(graph.compute_step_ns(flat), factor.denominator)


@settings(max_examples=60)
@given(overridden() | cases())
def test_the_slopes_are_those_of_a_little_more_and_a_little_less(case: Case) -> None:
    results = SimulatedRun(simulate(*case))
    step = results.step_time_ns
    for one in results.gradients or ():
        more = scaled_step(results, one.scale, Fraction(SMALL + 1, SMALL))
        less = scaled_step(results, one.scale, Fraction(SMALL - 1, SMALL))
        assert (more - step) * SMALL == one.right_ns, one
        assert (step - less) * SMALL == one.left_ns, one
        assert 0 <= one.left_ns <= one.right_ns <= step


@settings(max_examples=60)
@given(overridden() | cases())
def test_the_left_slope_holds_down_to_its_factor_and_no_further(case: Case) -> None:
    results = SimulatedRun(simulate(*case))
    step = results.step_time_ns
    for one in results.gradients or ():
        until = Fraction(one.until)
        assert 0 <= until <= 1

        def line(factor: Fraction, one: Gradient = one) -> Fraction:
            return step - one.left_ns * (1 - factor)

        between = (1 + until) / 2
        assert abs(scaled_step(results, one.scale, between) - line(between)) <= Fraction(step, 10**9)
        if until:
            below = until / 2
            assert scaled_step(results, one.scale, below) > line(below), one


def test_at_a_tie_less_and_more_differ() -> None:
    """Two tracks of 10 ns meet: more of one is more of the step, less of it is not less."""
    graph = Graph(2, lambda node: (graph.duration[node - 1] - 1,))
    first, second = graph.add(1, 0), graph.add(2, 0)
    last = graph.add_join(0, first, second, JOINS)
    chains = Chains(graph, graph.flatten([[10], [10]]), array("i", (0, 1, 2, 0, 0)), [last])
    assert chains.find_slopes([1]) == (0, 10, 0.0)
    assert chains.find_slopes([1, 2]) == (10, 10, 0.0)


def test_a_slope_holds_until_another_path_is_the_longest() -> None:
    """Of 10 ns beside 4 ns on another track, 60 % may go."""
    graph = Graph(2, lambda node: (graph.duration[node - 1] - 1,))
    first, second = graph.add(1, 0), graph.add(2, 0)
    last = graph.add_join(0, first, second, JOINS)
    chains = Chains(graph, graph.flatten([[10], [4]]), array("i", (0, 1, 2, 0, 0)), [last])
    assert chains.find_slopes([1]) == (10, 10, pytest.approx(0.4))
    assert chains.find_slopes([2]) == (0, 0, 0.0)


def test_a_slow_rank_alone_is_a_scale() -> None:
    """At 1.0001 times its peers a rank's own compute holds the step for one part in 10,000."""
    results = SimulatedRun(simulate(open_workload(SEED_001), Parameters(slow_rank=("37=1.0001",))))
    (one,) = (one for one in results.gradients or () if one.scale == "rank 37")
    assert one.left_ns == one.right_ns > 0
    assert one.until == pytest.approx(1 / 1.0001, abs=2e-5)


@settings(max_examples=5)
@given(policy_cases())
def test_there_are_no_gradients_where_collectives_queue_by_priority(case: PolicyCase) -> None:
    assert SimulatedRun(simulate(read(case.text), case.parameters)).gradients is None
