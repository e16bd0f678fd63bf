"""Idle time is said by one word, whole, and no reason calls a rank busy that was idle."""

from __future__ import annotations

from simcore.measured import MeasuredRun
from simcore.ranks import RankSet
from simcore.runs.measured import RecordedRun
from simcore.sources.inputs import open_input
from simcore.sources.measured import IDLE
from simcore.trace import graph
from simcore.trace.findings import Finding
from simcore.trace.reasons import Facts, reason_words
from simcore.trace.run import merged_segments_of
from simcore.words.sentences.waits import find_waits
from tests.kineto.corpus import DLRM, needs_corpus
from tests.measured.paths import path_rows
from tests.measured.test_replay_by_hand import MS, SLOW_RANK, SLOW_STAGE, op, run_of


def worst_idle(results: RecordedRun) -> Finding:
    return next(place for place in results.figures.worst_findings if place.what == "idle")


def joined(results: RecordedRun) -> int:
    """The longest time without an operation, a plain sweep over the accounts."""
    longest = 0
    for one in results.accounts:
        now = 0
        for index, account in enumerate(one.account):
            now = now + one.edge[index + 1] - one.edge[index] if account == IDLE else 0
            longest = max(longest, now)
    return longest


def test_legs_of_idle_time_and_those_behind_it_say_what_the_rank_did_before() -> None:
    results = RecordedRun(run_of(SLOW_RANK, 2))
    begins = reason_words(Facts(None))
    told = [(leg.what, leg.reason) for leg in merged_segments_of(results)]
    assert told == [
        ("forward_step", begins),
        ("dp_allreduce", reason_words(Facts(graph.JOINS, is_late=True, rank=1))),
        ("idle", reason_words(Facts(graph.BEFORE, idles=True))),
        ("optimizer_step", reason_words(Facts(graph.BEFORE, was_idle=True))),
    ]
    # Where nothing idles between two operations the rank was busy.
    assert {leg.reason for leg in merged_segments_of(RecordedRun(run_of(SLOW_STAGE, 2, pp=2)))} == {
        begins, reason_words(Facts(graph.BEFORE)),
        *(reason_words(Facts(graph.RECEIVED, rank=rank)) for rank in range(2)),
    }  # fmt: skip


def test_ranks_that_wait_for_each_other_are_said_to() -> None:
    """Rank 0 is late to the first all-reduce, rank 1 to the second: as long."""
    text = op(0, "forward_step", 0, 30) + op(0, "dp_allreduce", 30, 35, "dp")
    text += op(0, "backward_step", 35, 45) + op(0, "dp_allreduce", 45, 70, "dp")
    text += op(1, "forward_step", 0, 10) + op(1, "dp_allreduce", 10, 35, "dp")
    text += op(1, "backward_step", 35, 65) + op(1, "dp_allreduce", 65, 70, "dp")
    results, both = RecordedRun(run_of(text, 2)), RankSet.of([0, 1])
    waits = {(one.early, one.late): one.ns for one in results.waiting}
    assert waits == {(0, 1): 20 * MS, (1, 0): 20 * MS}
    (wait,) = find_waits(results)
    assert (wait.early, wait.early_stage, wait.operation, wait.ns) == (both, 0, "dp_allreduce", 20 * MS)
    assert wait.late == both
    assert all(one.early != one.late for one in find_waits(RecordedRun(run_of(SLOW_RANK, 2))))


@needs_corpus
def test_the_longest_idle_time_is_that_of_the_timeline_also_where_the_step_begins_in_it() -> None:
    run = open_input(str(DLRM))
    assert isinstance(run, MeasuredRun)
    results = RecordedRun(run)
    place = worst_idle(results)
    assert place.words.startswith("7.644 ms (39.1 %) at a stretch from 0 s on: rank 7")
    assert place.ns == joined(results)
    lane = results.lanes.spans(place.track_id, None)
    assert (place.start_ns, place.end_ns) in zip(lane.start, lane.end, strict=True)
    idle = [leg for leg in merged_segments_of(results) if leg.what == "idle"]
    # One rule joins what a rank idles: its leg, its segment of the report and its place are one.
    segments = [one for one in path_rows(results) if one.account == IDLE]
    assert [(leg.start_ns, leg.end_ns) for leg in idle] == [(one.start, one.end) for one in segments]
    assert (place.start_ns, place.end_ns) == (segments[0].start, segments[0].end) == (0, 7_644_000)
    assert not any("busy" in leg.reason for leg in idle)
