"""What parts of random small jobs cost: as a slow replay says that shares no code with the program.

Planted, one at a time: reductions follow the last backwards in the order of chunks (it was so); a gather is
that of the other chunk; transfers without a partner are left out. Each failed here; that the first backward's
transfers do not follow the second compute before it failed in one of 60.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simcore.replay.slowdown import make_costs
from simcore.replay.step_findings import find_cause
from tests.kineto.made_jobs import COMPUTES, Job, durations, events, make_replay, publish
from tests.kineto.test_chrome import opened, trace
from tests.kineto.test_slowdown import slowdown


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    pp = draw(st.integers(1, 3))
    lane = draw(st.integers(0, 2)), draw(st.integers(0, pp - 1))
    return Job(
        draw(st.integers(1, 3)),
        pp,
        draw(st.integers(1, 2)) if pp > 1 else 1,
        draw(st.integers(2, 4)),
        draw(st.integers(2, 3)),
        draw(st.booleans()),
        draw(st.integers(0, 10_000)),
        {lane: draw(st.sampled_from((1.0, 1.7, 6.0)))},
        uneven=draw(st.sampled_from((0.0, 1.0))),
        has_lone_transfers=draw(st.booleans()),
        comm_us=(2, 5, 60, 200),
        gc_us=draw(st.sampled_from((0, 50))),
    )


@settings(max_examples=60, deadline=None)
@given(jobs())
def test_a_job_costs_what_a_slow_replay_says(job: Job) -> None:
    try:
        expected = publish(job)
    except RecursionError:
        # Sends and receives of this order wait for each other in a circle.
        assume(False)
    with tempfile.TemporaryDirectory() as folder:
        found = slowdown(trace(Path(folder), *events(job)))
    assert found.total == pytest.approx(expected.total, abs=1e-5)
    assert found.by_kind == pytest.approx(expected.by_kind, abs=1e-5)
    assert found.by_stage == pytest.approx(expected.by_stage, abs=1e-5)
    assert found.by_dp_rank == pytest.approx(expected.by_dp_rank, abs=1e-5)
    assert [*found.by_step.values()] == pytest.approx(expected.by_step, abs=1e-5)
    assert (found.m_w, found.m_s) == (
        pytest.approx(expected.m_w, abs=1e-3),
        pytest.approx(expected.m_s, abs=1e-3),
    )


@pytest.mark.parametrize("job", [Job(3, 2, 1, 4, 3, slow={(1, 0): 1.8}), Job(2, 3, 2, 3, 2, True, 7)])
def test_a_rank_as_its_peers_is_what_a_slow_replay_says(tmp_path: Path, job: Job) -> None:
    """One factor on all compute of dp rank 1 of stage 0, to the upper median of its peers, in each step."""
    replay, lane = make_replay(job), (1, 0)
    before, after = [], []
    for ns in durations(job, replay):
        compute = {
            dp: sum(length for task, length in ns.items() if task[:2] == (dp, 0) and task[2] in COMPUTES)
            for dp in range(job.dp)
        }
        peers = sorted(compute[dp] for dp in range(job.dp) if dp != 1)
        factor = peers[len(peers) // 2] / compute[1]
        scaled = {
            task: round(factor * length) if task[:2] == lane and task[2] in COMPUTES else length
            for task, length in ns.items()
        }
        before.append(replay.step_ns(ns))
        after.append(replay.step_ns(scaled))
    costs = make_costs(opened(trace(tmp_path, *events(job)), step="all"))
    assert costs is not None
    as_peers = costs.as_peers(1, lambda done, total: None)
    assert as_peers is not None
    assert ([*as_peers.before_ns], [*as_peers.after_ns]) == (before, after)
    assert as_peers.gain_ns == sum(before) - sum(after)


@pytest.mark.parametrize(
    ("job", "part", "which"),
    [
        (Job(4, 4, 1, 8, 3, slow={(2, 1): 2.0}), "rank", (6,)),
        (Job(2, 4, 1, 8, 3, slow_stage=3), "stage", (3,)),
        (Job(4, 2, 1, 6, 6, uneven=3.0), "sequence", ()),
        (Job(3, 2, 1, 6, 3, gc_us=900), "gc", ("gc",)),
        (Job(3, 3, 1, 6, 3), None, None),
    ],
)  # fmt: skip
def test_a_cause_is_named_where_one_part_explains_most(
    tmp_path: Path, job: Job, part: str | None, which: tuple[object, ...] | None
) -> None:
    found = slowdown(trace(tmp_path, *events(job)))
    cause = find_cause(found)
    assert (None if cause is None else (cause.part, cause.which)) == (None if part is None else (part, which))
