"""Replay of made sets against a second one that shares no code: ranks as arrays of a cell a microsecond."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from simcore.measured import MeasuredRun
from simcore.parameters import Parameters
from simcore.replay.parameters import Scales
from simcore.runs.measured import run_recording
from simcore.sources.inputs import open_input

_RANKS, _COLLECTIVES = 3, 5


class Made(NamedTuple):
    """A rank, us: compute as (start, end, name), collectives as (start, end), in order."""

    compute: list[tuple[int, int, str]]
    collectives: list[tuple[int, int]]

    @property
    def length(self) -> int:
        return max(end for _, end, *_ in (*self.compute, *self.collectives))


def made_set(seed: int) -> list[Made]:
    """Ranks with kernels anywhere, several at once too, and collectives that end together within 2 us."""
    drawn = random.Random(seed)
    starts = [[0] * _COLLECTIVES for _ in range(_RANKS)]
    ends = [[0] * _COLLECTIVES for _ in range(_RANKS)]
    over = 10
    for number in range(_COLLECTIVES):
        for rank in range(_RANKS):
            begin = max(ends[rank][number - 1] if number else 0, over) if number else 10
            starts[rank][number] = begin + drawn.randrange(0, 120, 2)
        over = max(one[number] for one in starts) + drawn.randrange(4, 60, 2)
        for rank in range(_RANKS):
            ends[rank][number] = over + drawn.choice((0, 2))
    found = []
    for rank in range(_RANKS):
        compute = [(0, 4, "gemm")]
        for _ in range(drawn.randint(5, 25)):
            start = drawn.randrange(0, over + 60, 2)
            compute.append((start, start + drawn.randrange(2, 60, 2), drawn.choice(("gemm", "norm"))))
        found.append(Made(sorted(compute), list(zip(starts[rank], ends[rank], strict=True))))
    return found


def program(one: Made) -> list[tuple[Any, ...]]:
    """What a rank does, in order: ("gap", us), (name, us), ("launch", k), ("wait", k, since when)."""
    owner: list[str | None] = [None] * one.length
    for start, end, name in one.compute:
        for cell in range(start, end):
            if owner[cell] is None:
                owner[cell] = name
    events = [(start, 1, number) for number, (start, _) in enumerate(one.collectives)]
    waited = {}
    for number, (start, end) in enumerate(one.collectives):
        hidden = owner[end - 1] is not None
        events.append((one.length if hidden else end, 0, number))
        if not hidden:
            before = max((cell + 1 for cell in range(end) if owner[cell] is not None), default=0)
            waited[number] = max(start, before)
    # Of several that are over at once the one that is waited for longest comes first: that time is no gap.
    events.sort(
        key=lambda event: (event[0], event[1], 0 if event[1] else waited.get(event[2], event[0]), event[2])
    )
    steps: list[tuple[Any, ...]] = []
    at = 0

    def until(cell: int) -> None:
        nonlocal at
        while at < cell:
            first = at
            while at < cell and owner[at] == owner[first]:
                at += 1
            steps.append((owner[first] or "gap", at - first))

    for time, launches, number in events:
        if launches:
            until(time)
            steps.append(("launch", number))
        else:
            until(min(waited.get(number, time), time))
            steps.append(("wait", number, at, time))
            at = max(at, time)
    until(one.length)
    return steps


def replayed(ranks: list[Made], factors: dict[str, float]) -> float:
    """us that the set takes with kernels of these names times their factors."""
    programs = [program(one) for one in ranks]
    measured_end: list[int] = []
    lasts: list[int] = []
    for number in range(_COLLECTIVES):
        come = max(one.collectives[number][0] for one in ranks)
        begins = max(come, measured_end[-1] if measured_end else 0)
        measured_end.append(min(one.collectives[number][1] for one in ranks))
        lasts.append(measured_end[-1] - begins)
    now = [0.0] * len(ranks)
    next_step = [0] * len(ranks)
    came: list[dict[int, float]] = [{} for _ in lasts]
    over: list[float | None] = [None] * len(lasts)
    moved = True
    while moved:
        moved = False
        for rank, steps in enumerate(programs):
            while next_step[rank] < len(steps):
                what, *of = steps[next_step[rank]]
                if what == "launch":
                    came[of[0]][rank] = now[rank]
                    if len(came[of[0]]) == len(ranks):
                        before = over[of[0] - 1] if of[0] else 0.0
                        assert before is not None
                        over[of[0]] = max(before, *came[of[0]].values()) + lasts[of[0]]
                elif what == "wait":
                    number, began, ended = of
                    end = over[number]
                    if end is None:
                        break
                    now[rank] = max(now[rank], end) + max(0, ended - max(began, measured_end[number]))
                else:
                    now[rank] += of[0] * factors.get(what, 1.0)
                next_step[rank] += 1
                moved = True
    assert all(at == len(steps) for at, steps in zip(next_step, programs, strict=True))
    return max(now)


def written(folder: Path, ranks: list[Made]) -> Path:
    """The set as files of a profiler."""
    for number, one in enumerate(ranks):
        kernels = [(start, end, name, 7) for start, end, name in one.compute]
        kernels += [(start, end, "ncclDevKernel_AllReduce", 20) for start, end in one.collectives]
        events = [
            {"ph": "X", "cat": "kernel", "name": name, "pid": number, "tid": stream, "ts": 1000 + start,
             "dur": end - start, "args": {"stream": stream, "device": number}}
            for start, end, name, stream in kernels
        ]  # fmt: skip
        top = {"distributedInfo": {"rank": number, "world_size": len(ranks)}, "traceEvents": events}
        (folder / f"rank{number}.json").write_text(json.dumps(top))
    return folder


@pytest.mark.parametrize("seed", range(30))
def test_a_kernel_halved_takes_as_long_as_in_a_second_replay(seed: int, tmp_path: Path) -> None:
    ranks = made_set(seed)
    run = open_input(str(written(tmp_path, ranks)))
    assert isinstance(run, MeasuredRun)
    results = run_recording(run, Parameters())
    assert len(results.rendezvous.matches.meetings) == _COLLECTIVES
    for factors in ({}, {"gemm": 0.5}, {"norm": 0.5}, {"gemm": 0.0, "norm": 2.0}):
        found = results.with_scales(Scales(ops=factors)).step_time_ns
        assert abs(found - replayed(ranks, factors) * 1000) <= 10_000, factors
    assert results.with_scales(Scales()).step_time_ns == results.step_time_ns
