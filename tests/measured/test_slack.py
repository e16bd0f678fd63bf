"""Slack of a measured run: how much later a piece may end before the step of the replay is longer."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.render.report.pages import run_json
from simcore.runs.measured import RecordedRun
from simcore.trace.graph import START

from .damaged import DAMAGED
from .made_steps import Factors, Layout, actions, made_run, run_apart, simulated, trace_text
from .test_replay_by_hand import MS, SLOW_RANK, SLOW_STAGE, run_of
from .test_replay_of_real_runs import RUNS, opened


def by_name(results: RecordedRun, rank: int) -> dict[str, float]:
    """The slack of each operation of a rank, ms; each name stands once there."""
    slack, labels = results.operations.slack_by_track, results.operations.column.labels
    assert slack is not None
    return {labels[label][0]: ns / MS for label, ns in slack[rank].items()}


def test_who_waits_for_a_slow_rank_has_as_much_slack_as_it_waits() -> None:
    results = RecordedRun(run_of(SLOW_RANK, 2))
    assert by_name(results, 0) == {"forward_step": 20, "dp_allreduce": 0, "optimizer_step": 0}
    # Rank 1 ends half a ms before the step does.
    assert by_name(results, 1) == {"forward_step": 0, "dp_allreduce": 0, "optimizer_step": 0.5}
    operations = run_json(results)["measured"]["operations"]
    assert [(one["name"], one["slack_ns"]) for one in operations] == [
        ("forward_step", 0), ("dp_allreduce", 0), ("optimizer_step", 0),
    ]  # fmt: skip


def test_slack_of_ranks_that_did_not_run_together_is_that_of_their_replay() -> None:
    results = RecordedRun(run_apart(SLOW_STAGE, Layout(1, 1, 2, 1)))
    assert results.slacks == results.base.slacks
    # As measured nobody waits; in the replay rank 1 is what rank 0 waits for, and all are on the path.
    assert by_name(results, 1) == {
        "recv_forward": 0, "forward_step": 0, "backward_step": 0, "send_backward": 0,
    }  # fmt: skip


def assert_slack_is_what_a_piece_can_take(results: RecordedRun, draw: Random) -> None:
    """A piece that takes its slack longer leaves the step as it is; 1 ns more, and that is 1 ns longer."""
    base = results.base
    graph, step = base.graph.graph, base.step_time_ns
    taken = base.durations.scaled(base.scales)  # type: ignore[arg-type]
    assert graph.ends(taken) == list(base.ends)
    pairs = [(rank, piece) for rank, nodes in enumerate(base.graph.end_nodes) for piece in range(len(nodes))]
    for rank, piece in draw.sample(pairs, min(len(pairs), 12)):
        node, slack = base.graph.end_nodes[rank][piece], results.slacks[rank][piece]
        sent, received = (
            results.rendezvous.segments[rank].message[piece],
            results.rendezvous.segments[rank].received[piece],
        )
        assert slack >= 0
        if node == START or graph.is_join(node) or (sent >= 0 and received >= 0):
            continue
        for more, longer in ((slack, 0), (slack + 1, 1)):
            changed = list(taken)
            changed[graph.duration[node - 1]] += more
            if sent >= 0:
                changed[base.graph.message_duration(sent)] += more
            ends = graph.ends(changed)
            assert max(ends[nodes[-1]] for nodes in base.graph.end_nodes if nodes) == step + longer


@settings(max_examples=40, deadline=None)
@given(
    st.builds(
        Layout, st.sampled_from([1, 2, 3]), st.sampled_from([1, 2]), st.sampled_from([1, 2, 3]),
        st.integers(1, 2), st.booleans(),
    ),
    st.integers(0, 10**6),
    st.booleans(),
)  # fmt: skip
def test_slack_of_made_steps_is_what_a_piece_can_take(layout: Layout, seed: int, apart: bool) -> None:
    draw = Random(seed)
    steps = actions(layout, draw)
    text = trace_text(layout, steps, simulated(steps, Factors()))
    assert_slack_is_what_a_piece_can_take(RecordedRun((run_apart if apart else made_run)(text, layout)), draw)


@settings(max_examples=60, deadline=None)
@given(DAMAGED, st.integers(0, 10**6))
def test_slack_of_damaged_traces_is_what_a_piece_can_take(damaged: tuple[Layout, str], seed: int) -> None:
    layout, text = damaged
    if made_run(text, layout).timed:
        assert_slack_is_what_a_piece_can_take(RecordedRun(run_apart(text, layout)), Random(seed))


@pytest.mark.parametrize(("name", "stamp"), RUNS)
def test_on_the_critical_path_of_a_real_run_there_is_no_slack(name: str, stamp: str) -> None:
    results = RecordedRun(opened(name, stamp))
    base = results.base
    for rank, piece, _ in base.critical_path:
        assert results.slacks[rank][piece] == 0
    # Others have some: the ranks do not end at the same time.
    assert any(ns for rank in results.slacks for ns in rank)
    assert_slack_is_what_a_piece_can_take(results, Random(stamp))
