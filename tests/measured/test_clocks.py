"""Clocks of hosts that differ, by a little or by much: found, taken back and said; the answers are known."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from simcore.measured import MeasuredRun, open_directory
from simcore.replay.parameters import Scales
from simcore.runs.measured import RecordedRun

from .test_replay_of_real_runs import folder_of
from .test_replay_of_real_runs import opened as real_run
from .traces import Op, Sub, later, noted, said, write_set

MS = 10**6


def op(
    rank: int, name: str, start: float, end: float, group: str | None = None, stage: int = 0, **more: object
) -> str:
    """A line; times in ms."""
    made = Op(name, f"{5000 + end:.2f}", f"{end - start:.2f}", group=group, stage=stage, **more)  # type: ignore[arg-type]
    return made.line(rank) + "\n"


def without(text: str, name: str) -> str:
    return "".join(line for line in text.splitlines(True) if name not in line)


def opened(folder: Path, ranks: dict[int, str], **named: int) -> MeasuredRun:
    write_set(folder, ranks, world=len(ranks), **named)
    return open_directory(str(folder))


# Two stages, two micro-batches; the second stage computes 300 ms a micro-batch, all messages take 1 ms.
PIPELINE = {
    0: op(0, "forward_step", 0, 100)
    + op(0, "send_forward", 100, 101, "pp")
    + op(0, "recv_backward", 101, 402, "pp")
    + op(0, "backward_step", 402, 602)
    + op(0, "recv_backward", 602, 703, "pp", batch=1)
    + op(0, "backward_step", 703, 903, batch=1)
    + op(0, "ep_allreduce", 903, 905, "ep")
    + op(0, "optimizer_step", 905, 915),
    1: op(1, "recv_forward", 0, 101, "pp", stage=1)
    + op(1, "forward_step", 101, 201, stage=1)
    + op(1, "backward_step", 201, 401, stage=1)
    + op(1, "send_backward", 401, 402, "pp", stage=1)
    + op(1, "backward_step", 402, 702, stage=1, batch=1)
    + op(1, "send_backward", 702, 703, "pp", stage=1, batch=1)
    + op(1, "ep_allreduce", 703, 905, "ep", stage=1)
    + op(1, "optimizer_step", 905, 915, stage=1),
}


@pytest.mark.parametrize("ahead", ["2", "3", "5", "9.99", "-8", "50", "-300", "900000"])
@pytest.mark.parametrize("collective", [True, False])
def test_an_offset_of_any_size_is_taken_back(tmp_path: Path, ahead: str, collective: bool) -> None:
    """Of a pipeline: by the end of its one collective, or by the messages there and back."""
    ranks = (
        PIPELINE if collective else {rank: without(text, "ep_allreduce") for rank, text in PIPELINE.items()}
    )
    run = opened(tmp_path, {0: ranks[0], 1: later(ranks[1], float(ahead))})
    words = {"50": "+50.000 ms", "-300": "-300.0 ms", "900000": "+900.0 s"}
    offset = words.get(ahead, f"{float(ahead):+.3f} ms")
    assert said(run)[0] == f"note clock-offset: 0, 1, {offset}, {1 if collective else 3}"
    results = RecordedRun(run)
    assert (run.concurrent, run.step_time_ns) == (True, 915 * MS)
    # Rank 0 waits 300 and 100 ms until the second stage sends; each of the three messages takes 1 ms.
    assert [one.ns("bubble") for one in results.accounts] == [400 * MS, 100 * MS]
    assert [one.ns("exposed pp") for one in results.accounts] == [3 * MS, 3 * MS]
    # Forward, forward, 200 and 300 ms of backward, then the last backward and the optimizer step.
    if collective:
        assert results.with_scales(Scales(compute=2)).step_time_ns == (2 * 910 + 5) * MS


def test_what_one_collective_tells_is_taken_where_ranks_overlap(tmp_path: Path) -> None:
    """Rank 1 computes 110 ms more; its clock is 300 ms ahead, and nothing but the all-reduce is common."""
    own = {
        rank: op(rank, "forward_step", 0, forward)
        + op(rank, "dp_allreduce", forward, 412, "dp")
        + op(rank, "optimizer_step", 412, 422)
        for rank, forward in ((0, 300), (1, 410))
    }
    run = opened(tmp_path, {0: own[0], 1: later(own[1], 300)}, pp=1)
    assert said(run) == ["note clock-offset: 0, 1, +300.0 ms, 1"]
    results = RecordedRun(run)
    assert (run.concurrent, run.step_time_ns) == (True, 422 * MS)
    assert [(one.ns("wait"), one.ns("exposed dp")) for one in results.accounts] == [
        (110 * MS, 2 * MS),
        (0, 2 * MS),
    ]


def test_of_ranks_that_lie_apart_one_collective_tells_nothing(tmp_path: Path) -> None:
    text = op(0, "forward_step", 0, 10) + op(0, "dp_allreduce", 10, 12, "dp")
    run = opened(tmp_path, {0: text, 1: later(text.replace("rank:0", "rank:1"), 300)}, pp=1)
    assert noted(run) == ["not-concurrent"]


def leaving(rank: int, *late: float) -> str:
    """A forward step with an all-reduce every 12 ms, 1 ms long, that this rank leaves `late` ms later."""
    subs = tuple(Sub(f"{5000 + 12 * number + 1 + ms:.2f}", f"{1 + ms:.2f}") for number, ms in enumerate(late))
    return op(rank, "forward_step", 0, 100, subs=subs)


@pytest.mark.parametrize(
    ("late", "offset"),
    [
        # Once, or now and then, it may be anything; always by the same time, and it is the clock.
        ((3,), None),
        ((12,), "+12.000 ms"),
        ((0.1, 0.1), None),
        ((0.4,) * 7, None),
        ((0.4,) * 8, "+400.0 us"),
        ((0.6, 0.6), "+600.0 us"),
        ((5, 6), None),
        ((0, 3, 7, 0.5, 5), None),
        # More than the 1 ms of the third one is not possible.
        ((3, 3, 0, 3), "+1.000 ms"),
    ],
)
def test_who_leaves_every_collective_by_the_same_time_later_has_another_clock(
    tmp_path: Path, late: tuple[float, ...], offset: str | None
) -> None:
    run = opened(tmp_path, {0: leaving(0, *(0 for _ in late)), 1: leaving(1, *late)}, tp=2, pp=1)
    assert said(run) == ([] if offset is None else [f"note clock-offset: 0, 1, {offset}, {len(late)}"])


def test_what_no_offset_explains_is_said(tmp_path: Path) -> None:
    """Rank 1 has what rank 0 sends 5 ms before that, and rank 0 what rank 1 sends 7 ms before that."""
    ranks = {
        0: op(0, "send_forward", 10, 11, "pp") + op(0, "recv_backward", 11, 20, "pp"),
        1: op(1, "recv_forward", 0, 5, "pp", stage=1) + op(1, "send_backward", 27, 28, "pp", stage=1),
    }
    run = opened(tmp_path, ranks)
    assert said(run) == ["warning clocks-disagree: 0, recv_backward, 7.000 ms, 1, send_backward"]


def test_a_rank_that_shares_nothing_with_the_others_stays_as_written(tmp_path: Path) -> None:
    alone = op(2, "forward_step", 0, 100, stage=2)
    run = opened(tmp_path, {0: PIPELINE[0], 1: later(PIPELINE[1], 5), 2: alone}, pp=3)
    assert said(run)[-1] == "note clock-offset: 0, 1, +5.000 ms, 1, 2"


def test_the_fewest_clocks_are_found_among_many_ranks(tmp_path: Path) -> None:
    """Four stages on hosts of two: a small offset lies between the hosts, none inside one."""
    ranks = {}
    for stage in range(4):
        at = 10 * stage
        ranks[stage] = (
            (op(stage, "recv_forward", at - 1, at + 0.5, "pp", stage) if stage else "")
            + op(stage, "forward_step", at + 0.5, at + 8, None, stage)
            + (op(stage, "send_forward", at + 8, at + 10.4, "pp", stage) if stage < 3 else "")
            + (op(stage, "recv_backward", 90 - at - 1, 90 - at + 0.5, "pp", stage) if stage < 3 else "")
            + op(stage, "backward_step", 90 - at + 0.5, 90 - at + 8, None, stage)
            + (op(stage, "send_backward", 90 - at + 8, 90 - at + 10.4, "pp", stage) if stage else "")
        )
    moved = {rank: later(text, 3 if rank >= 2 else 0) for rank, text in ranks.items()}
    run = opened(tmp_path, moved, pp=4)
    assert said(run) == ["note clock-offset: 0-1, 2-3, +3.000 ms, 2"]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("ms", [1, 2, 3, 5, 10, 20, -2])
@pytest.mark.parametrize("first", [2, 4, 6])
def test_a_real_run_has_the_same_accounts_on_clocks_that_differ(tmp_path: Path, ms: int, first: int) -> None:
    """The ranks from `first` on run on a host whose clock is ahead."""
    for path in sorted(folder_of("wd8_tp2_pp4").iterdir()):
        found = re.search(r"rank(\d+)_", path.name)
        assert found is not None
        (tmp_path / path.name).write_text(later(path.read_text(), ms if int(found[1]) >= first else 0))
    plain, run = real_run("wd8_tp2_pp4", "20240923205004"), open_directory(str(tmp_path))
    assert noted(plain) == []
    assert noted(run) == ["clock-offset"]
    one, other = RecordedRun(plain), RecordedRun(run)
    for account, moved in zip(one.accounts, other.accounts, strict=True):
        assert [name for name in ("bubble", "wait", "exposed pp", "exposed tp", "exposed embedding")
                if abs(account.ns(name) - moved.ns(name)) > 50_000] == []  # fmt: skip
    faster = Scales(ranks={7: 0.4858})
    assert abs(one.with_scales(faster).step_time_ns - other.with_scales(faster).step_time_ns) < 50_000
