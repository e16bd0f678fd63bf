"""Critical path and dependencies: every segment waits for the one before, and for a reason that is true.

The needs of an op come from the naive simulation's rules (`needs_of_rank`), not from simcore.

Seen to fail on these bugs, planted one at a time: the last cause taken for the first; other members of a
collective left out; the late member taken for the rank itself; the stream left out; in queues a
collective that had ended before.
"""

from __future__ import annotations

from hypothesis import given, settings

from simcore.analysis.accounts import IDLE_OP
from simcore.parameters import Parameters
from simcore.program.ops import COMPUTE, KIND_OF_STREAM
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate
from simcore.trace.critical_path import sum_by_part, sum_by_rank
from simcore.trace.graph import QUEUED
from simcore.workload.model import GroupKind
from tests.analysis.lengthening import lengthened
from tests.engine.policy_cases import PolicyCase, policy_cases
from tests.engine.reference_simulator import Reference, class_of_ranks
from tests.engine.test_engine_properties import needs_of_rank
from tests.engine.test_folding_with_overrides import NETWORKS, overridden
from tests.strategies import Case, Cell, Row, cases, make_workload
from tests.workload.texts import read

STATIC = tuple(name for name in NETWORKS if name != "shared")


def path_covers_the_step(results: SimulatedRun) -> None:
    path, step = results.critical_path, results.step_time_ns
    assert len(path.edge) == len(path) + 1
    assert (path.edge[0], path.edge[-1]) == (0, step)
    times = results.simulation.timeline.times
    told = list(results.path_source.segments(path))
    assert told == list(results.path_source.segments(path, range(len(path)))), "chains are told once"
    for index, segment in enumerate(told):
        number, op = path.track[index], path.span[index]
        assert segment.start_ns < segment.end_ns
        assert segment.rank in results.simulation.timeline.classes[number].ranks
        if op != IDLE_OP:
            assert times.start[number][op] == segment.start_ns
            assert segment.end_ns <= times.end[number][op]
        assert path.at(segment.start_ns) == path.at(segment.end_ns - 1) == index
        assert (segment.reason == "the step begins") == (index == 0)
    for parts in (
        sum_by_part(path, results.path_source.kind),
        sum_by_part(path, results.path_source.find_row),
        sum_by_rank(path),
    ):
        assert sum(parts.values()) == step
        assert list(parts.values()) == sorted(parts.values(), reverse=True)


@settings(max_examples=150)
@given(overridden() | cases())
def test_the_path_covers_the_step_from_0_to_its_end_under_every_network(case: Case) -> None:
    results = SimulatedRun(simulate(*case))
    path_covers_the_step(results)
    path, times = results.critical_path, results.simulation.timeline.times
    for number, op, end in zip(path.track, path.span, path.edge[1:], strict=True):
        # A segment is a whole span where nothing queues by priority.
        assert times.end[number][op] == end


@settings(max_examples=80)
@given(overridden() | cases())
def test_every_segment_waits_for_something_that_it_needs_on_a_rank_that_it_meets(case: Case) -> None:
    simulation = simulate(*case)
    reference, classes = rules_of(simulation), class_of_ranks(simulation)
    results = SimulatedRun(simulation)
    path = results.critical_path
    needs = {rank: needs_of_rank(reference, rank) for rank in set(path.rank)}
    for index in range(len(path)):
        number, op, rank = path.track[index], path.span[index], path.rank[index]
        assert classes[rank] == number
        causes = results.dependencies.causes(number, op, rank)
        assert bool(causes) or not index
        if causes and index:
            assert results.path_source.reason(path, index) == causes[0].reason
        for one in causes:
            assert one.end_ns == path.edge[index]
            assert classes[one.rank] == one.track_id
            assert (one.rank, one.span) in needs[rank][op]
        if causes and causes[0].start_ns < causes[0].end_ns and index:
            before = (causes[0].track_id, causes[0].span, causes[0].rank)
            assert before == (path.track[index - 1], path.span[index - 1], path.rank[index - 1])


def rules_of(simulation: Simulation) -> Reference:
    """The naive simulation of every rank, not run: who needs whom does not depend on times."""
    return Reference(
        simulation.program,
        simulation.layout,
        simulation.cluster,
        1.0,
        1.0,
        measured=[[0] * len(simulation.timeline.columns(number)[0]) for number in class_of_ranks(simulation)],
    )


@settings(max_examples=50)
@given(cases(16))
def test_an_op_has_a_cause_for_each_need_that_ended_as_it_started(case: Case) -> None:
    """All that ended then and is needed is a cause, or was waited for before by a cause in turn."""
    results = SimulatedRun(simulate(*case))
    simulation = results.simulation
    reference, classes = rules_of(simulation), class_of_ranks(simulation)
    times = simulation.timeline.times
    for rank, number in enumerate(classes):
        if simulation.timeline.classes[number].ranks.first != rank:
            continue
        for op, needed in enumerate(needs_of_rank(reference, rank)):
            now = times.start[number][op]
            binding = [one for one in needed if times.end[classes[one[0]]][one[1]] == now]
            causes = results.dependencies.causes(number, op)
            assert bool(causes) == bool(binding)
            assert {(one.track_id, one.span) for one in causes} <= {(classes[r], o) for r, o in binding}


@settings(max_examples=50)
@given(overridden() | cases())
def test_effects_are_causes_the_other_way_round(case: Case) -> None:
    results = SimulatedRun(simulate(*case))
    found = results.dependencies
    for number in range(len(results.simulation.timeline.classes)):
        for op in range(len(results.simulation.timeline.columns(number)[0])):
            for cause in found.causes(number, op):
                back = [one for one in found.effects(cause.track_id, cause.span) if one.track_id == number]
                assert (op, cause.reason.split("rank")[0]) in [
                    (one.span, one.reason.split("rank")[0]) for one in back
                ]
            for effect in found.effects(number, op):
                assert (number, op) in [
                    (one.track_id, one.span)
                    for one in found.causes(effect.track_id, effect.span, effect.rank)
                ]


@settings(max_examples=60)
@given(overridden(STATIC))
def test_one_ns_more_on_the_path_is_at_least_one_ns_more_of_the_step(case: Case) -> None:
    results = SimulatedRun(simulate(*case))
    simulation = results.simulation
    path = results.critical_path
    for index in sorted({0, len(path) // 3, len(path) // 2, len(path) - 1} & set(range(len(path)))):
        longer = lengthened(simulation, path.track[index], path.span[index], 1)
        assert longer >= results.step_time_ns + 1


@settings(max_examples=50)
@given(policy_cases(faults=True) | policy_cases(faults=False))
def test_the_path_covers_a_step_in_queues_too(case: PolicyCase) -> None:

    results = SimulatedRun(simulate(read(case.text), case.parameters))
    path_covers_the_step(results)


def queues_of(case: PolicyCase, results: SimulatedRun, number: int, op: int) -> set[tuple[int, bool]]:
    """(dimension, the data groups' half of it): where the ranks of a collective's group differ.

    Only what model groups cross too is halved (ASTRA-sim 1.0's break_dimension).
    """
    timeline, layout = results.simulation.timeline, results.simulation.layout

    def crossed(kind: GroupKind) -> set[int]:
        ranks = list(layout.group_of(kind, timeline.classes[number].ranks.first))
        found, reach = set(), 1
        for index, link in enumerate(case.setting.links):
            if len({rank // reach % link.size for rank in ranks}) > 1:
                found.add(index)
            reach *= link.size
        return found

    kind = KIND_OF_STREAM[timeline.columns(number)[0].stream[op]]
    return {(index, kind == "dp" and index in crossed("tp")) for index in crossed(kind)}


@settings(max_examples=200)
@given(policy_cases(faults=True))
def test_in_the_queues_a_collective_waits_for_the_last_that_was_served_before_it(case: PolicyCase) -> None:
    """Of all members' collectives that ran when it began, on a dimension that it goes over too."""
    results = SimulatedRun(case.simulated())
    dependencies, timeline = results.dependencies, results.simulation.timeline
    for number in range(len(timeline.classes)):
        ops, start, _ = timeline.columns(number)
        for op in range(len(ops)):
            cause = next(iter(dependencies.find_op_causes(number, op)), None)
            if cause is None or cause.why != QUEUED:
                continue
            begun = [
                other_start[other]
                for member, _ in dependencies.sim_graph.members(number, op)
                for other_ops, other_start, other_end in [timeline.columns(member)]
                for other in range(len(other_ops))
                if other_ops.stream[other] != COMPUTE
                and other_start[other] < start[op] <= other_end[other]
                and queues_of(case, results, number, op) & queues_of(case, results, member, other)
            ]
            assert cause.start_ns == max(begun)


def test_who_came_last_to_a_collective_is_one_of_its_own_members() -> None:
    """Ranks 0 and 1 reduce together, then 1 and 3 do: what 3 waited for is 1, of the two in one node."""
    rows = [
        Row("optimizer1", wg=Cell(0, "ALLREDUCE", "dp", 1)),
        Row("optimizer1", ig=Cell(0, "ALLREDUCE", "tp", 1)),
    ]
    workload = make_workload(rows, tp=2, ep=1, pp=1, all_gpus=4)
    parameters = Parameters(dim=("switch:4:1:0",), endpoint_delay=0, slow_rank=("0=1.3",))
    found = SimulatedRun(simulate(workload, parameters)).dependencies
    assert [(one.track_id, one.rank) for one in found.causes(3, 1)] == [(3, 3), (1, 1)]
    assert {one.track_id for one in found.effects(0, 0)} == {0, 2}
