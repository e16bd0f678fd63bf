"""Passes over a graph, chain by chain, are those of a walk node by node; the first cause is the first of all.

Seen to fail on these bugs, planted one at a time: an op behind one that compute does not wait for taken for
chained; the first op of a stretch taken for chained; `latest` that cuts chains at their heads alone; a chain
whose tail is left out of `ends`.
"""

from __future__ import annotations

from array import array

from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.sources.simulated_graph import SimulatedGraph
from simcore.trace.graph import START
from tests.engine.test_folding_with_overrides import overridden
from tests.strategies import Case, cases


def built_of(case: Case) -> SimulatedGraph:
    return SimulatedRun(simulate(*case)).dependencies.sim_graph


@settings(max_examples=100)
@given(overridden() | cases(), st.randoms(use_true_random=False))
def test_a_pass_by_chains_is_one_by_nodes(case: Case, random) -> None:  # type: ignore[no-untyped-def]
    built = built_of(case)
    graph = built.graph
    # Any durations do: nothing may depend on those of the run.
    taken = built.durations()
    drawn = [random.randrange(4) for _ in taken[1 : len(taken) - graph.tracks]]
    durations = array("q", (0, *drawn, *[0] * graph.tracks))
    columns = list(zip(graph.first, graph.second, graph.duration, strict=True))

    ends = [0]
    for first, second, duration in columns:
        ends.append(max(ends[first], ends[second]) + durations[duration])
    assert list(graph.ends(durations)) == ends

    step = max(ends) + random.randrange(3)
    latest = [step] * len(ends)
    for node in range(len(columns), START, -1):
        first, second, duration = columns[node - 1]
        for before in (first, second):
            latest[before] = min(latest[before], latest[node] - durations[duration])
    assert list(graph.latest(durations, step))[1:] == latest[1:]


@settings(max_examples=100)
@given(overridden() | cases())
def test_a_chain_is_of_ops_of_one_class_each_behind_the_one_before(case: Case) -> None:
    of = SimulatedRun(simulate(*case)).dependencies
    built, graph = of.sim_graph, of.sim_graph.graph
    for node in range(1, len(graph) + 1):
        if not graph.chained[node - 1]:
            continue
        (number,) = graph.tracks_of(node)
        op = of.graph.span_at(node, number)
        assert (graph.first[node - 1], graph.second[node - 1]) == (node - 1, START)
        assert built.node(number, op - 1) == node - 1
        assert graph.duration[node - 1] == graph.duration[node - 2] + 1


@settings(max_examples=100)
@given(overridden() | cases())
def test_the_first_cause_is_the_first_of_all_causes(case: Case) -> None:
    built = built_of(case)
    graph, ends = built.graph, built.ends
    for node in range(1, len(graph) + 1):
        if graph.is_join(node):
            continue
        for own in graph.tracks_of(node):
            begin = graph.start(node, ends)
            first = graph.find_first_cause(node, begin, ends, own) if begin else None
            assert first == next(iter(graph.find_causes(node, ends, own) if begin else ()), None)
