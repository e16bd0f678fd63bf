"""Slack: a span may take that much longer, and 1 ns more makes the step longer.

Seen to fail on these bugs, planted one at a time: no constraint by the next on the stream; the receiver of
a transfer not heard; a collective that knows the last member alone; the issue of an asynchronous op not
bounded by it; a collective over all stages that waits for its members to be walked back to it.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.analysis.dependencies import Dependencies
from simcore.diagnostics import Cancelled
from simcore.parameters import Parameters
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.trace.trace_graph import compute_slack as slacks_of
from simcore.workload import open_workload
from tests.analysis.lengthening import frozen_durations, lengthened
from tests.engine.policy_cases import PolicyCase, policy_cases
from tests.engine.reference_simulator import class_of_ranks, reference_of
from tests.engine.test_folding import SEED_001, unfolded
from tests.engine.test_folding_with_overrides import overridden
from tests.strategies import Case, cases
from tests.workload.texts import read


@settings(max_examples=80)
@given(overridden() | cases(), st.data())
def test_a_span_may_take_its_slack_longer_and_not_a_ns_more(case: Case, data: st.DataObject) -> None:
    """On the shared network as well: its slack freezes what traffic made of the durations."""
    results = SimulatedRun(simulate(*case))
    simulation, step = results.simulation, results.step_time_ns
    some = st.integers(0, max(simulation.timeline.ops_simulated - 1, 0))
    columns = [results.slacks[number] for number in range(len(simulation.timeline.classes))]
    places = [(number, op) for number, column in enumerate(columns) for op in range(len(column or ()))]
    for place in sorted(data.draw(st.sets(some, min_size=min(4, len(places)), max_size=4))) if places else ():
        number, op = places[place]
        slack = results.slacks[number]
        assert slack is not None
        assert 0 <= slack[op] <= step
        assert lengthened(simulation, number, op, slack[op]) == step
        assert lengthened(simulation, number, op, slack[op] + 1) == step + 1


@settings(max_examples=80)
@given(overridden() | cases())
def test_nothing_on_the_critical_path_has_slack(case: Case) -> None:
    results = SimulatedRun(simulate(*case))
    path = results.critical_path
    for number, op in zip(path.track, path.span, strict=True):
        slack = results.slacks[number]
        assert slack is not None
        assert slack[op] == 0
    assert all(min(column, default=0) >= 0 for column in results.slacks or ())


@settings(max_examples=60)
@given(overridden(("analytical",)) | cases(), st.data())
def test_a_span_has_the_same_slack_on_one_rank_as_on_all_equal_ranks(case: Case, data: st.DataObject) -> None:
    """Lengthened on one rank alone, in the naive simulation of every rank; a collective for its group."""
    folded, every_rank = SimulatedRun(simulate(*case)), SimulatedRun(unfolded(case))
    simulation = folded.simulation
    classes = class_of_ranks(simulation)
    ranks = class_of_ranks(every_rank.simulation)
    one_by_one = slacks_of(Dependencies(every_rank.simulation, every_rank.simulation).graph)
    for rank, number in enumerate(classes):
        assert folded.slacks[number] == every_rank.slacks[ranks[rank]] == one_by_one[ranks[rank]]
    rank = data.draw(st.integers(0, len(classes) - 1))
    slack = folded.slacks[classes[rank]]
    if not slack:
        return
    op = data.draw(st.integers(0, len(slack) - 1))
    frozen = frozen_durations(simulation)
    reference = reference_of(simulation, [frozen[number] for number in classes])
    for more in (0, 1):
        durations = [list(frozen[number]) for number in classes]
        members = reference.members(rank, op) if reference.is_collective(rank, op) else [(rank, op)]
        for member, its_op in members:
            durations[member][its_op] += slack[op] + more
        assert reference.step_ns(durations) == folded.step_time_ns + more


@settings(max_examples=20)
@given(policy_cases(faults=True))
def test_there_is_no_slack_where_collectives_queue_by_priority(case: PolicyCase) -> None:
    results = SimulatedRun(simulate(read(case.text), case.parameters))
    assert results.slacks is None
    assert results.slacks is None
    assert results.rows.slack_ns is None
    with pytest.raises(ValueError, match="queue by priority"):
        slacks_of(results.dependencies.graph)


def test_the_passes_back_stop_when_the_caller_asks() -> None:
    results = SimulatedRun(simulate(open_workload(SEED_001), Parameters()))
    with pytest.raises(Cancelled):
        slacks_of(results.dependencies.graph, lambda: True)
    with pytest.raises(Cancelled):
        results.compute_critical_path(lambda: True)
