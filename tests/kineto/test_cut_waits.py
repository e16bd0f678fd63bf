"""The critical path of files whose waiting was cut off: that of the replay, placed at the times of the file.

Planted, one at a time: the path by the times of the file alone (it stayed on ranks that waited); compute that
begins just before the end of what it received waits for nobody (it was so). Each failed here.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simcore.runs.measured import RecordedRun
from simcore.sources.measured import IDLE
from simcore.sources.segments import GAP
from tests.kineto.made_jobs import BACKWARD, FORWARD, JOINT, Job, Task, events, make_replay
from tests.kineto.test_chrome import results, trace

# What passes before compute in a made job at most, and by how much its timers are off, ns.
DELAY_NS, JITTER_NS = 2000, 1000


BY_MICROBATCH = {
    FORWARD, BACKWARD, "forward-send", "forward-recv", "backward-send", "backward-recv"
}  # fmt: skip


@st.composite
def cut_jobs(draw: st.DrawFn) -> Job:
    pp = draw(st.integers(1, 4))
    lane = draw(st.integers(0, 2)), draw(st.integers(0, pp - 1))
    return Job(
        draw(st.integers(1, 3)), pp, 1, draw(st.integers(2, 6)), 1,
        seed=draw(st.integers(0, 10_000)),
        slow={lane: draw(st.sampled_from((1.0, 2.0, 6.0)))},
        slow_stage=draw(st.sampled_from((-1, pp - 1))),
        uneven=draw(st.sampled_from((0.0, 1.0))),
        comm_us=(20, 25, 60), ends_together=True,
    )  # fmt: skip


def make_path(run: RecordedRun) -> list[tuple[int, int, Task | None, int]]:
    """Returns (start, end, task, its start in the file) of each segment, None for idle time."""
    rows = []
    path = run.critical_path
    for index, (track, span) in enumerate(zip(path.track, path.span, strict=True)):
        rank, segments = run.measured.ranks[track], run.rendezvous.segments[track]
        op = segments.op[span]
        assert rank.position is not None
        task: Task | None = (*rank.position[1:], rank.ops.name[op], 0, rank.ops.batch[op])
        if segments.kind[span] == GAP:
            task = None
        elif task[2] not in BY_MICROBATCH:
            task = (*task[:3], 0 if task[2] in JOINT else -1, -1)
        rows.append((path.edge[index], path.edge[index + 1], task, rank.ops.start[op]))
    return rows


def blur(found: list[dict[str, Any]], us: float) -> list[dict[str, Any]]:
    """Returns the events as a program times them: communication ends late, when compute behind it runs."""
    return [
        event | {"dur": event["dur"] + us} if event["ph"] == "X" and event["name"].endswith(("recv", "send"))
        else event
        for event in found
    ]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(cut_jobs(), st.sampled_from((0, JITTER_NS)))
def test_each_hop_of_the_path_is_a_dependency_and_no_rank_on_it_waits(job: Job, jitter_ns: int) -> None:
    try:
        replay = make_replay(job)
        found = events(job)
    except RecursionError:
        # Sends and receives of this order wait for each other in a circle.
        assume(False)
    with tempfile.TemporaryDirectory() as folder:
        run = results(trace(Path(folder), *blur(found, jitter_ns / 1000)))
        assume(run.durations.takes_idle_as_waiting)
        rows = make_path(run)
    assert (rows[0][0], rows[-1][1]) == (0, run.step_time_ns)
    last: Task | None = None
    for start, end, task, begin in rows:
        if task is None:
            assert end - start <= DELAY_NS + jitter_ns
        elif task != last:
            assert abs(start - begin) <= jitter_ns
            if last is not None and task[:2] != last[:2]:
                assert last[:2] in {member[:2] for member in replay.together.get(task, [])}
            last = task
    for index, rank in enumerate(run.measured.ranks):
        idle_ns = run.accounts[index].total_ns[IDLE]
        waits = [*run.waits_of(index)]
        for wait in waits:
            assert wait.rank != index
            assert not any(start < wait.end and wait.start < end for start, end in
                           zip(rank.ops.start, rank.ops.end, strict=True))  # fmt: skip
        behind_ns = run.step_time_ns - max(rank.ops.end)
        own_ns = idle_ns - behind_ns - sum(wait.ns for wait in waits)
        assert 0 <= own_ns <= 2 * (DELAY_NS + jitter_ns) * len(rank.ops)
