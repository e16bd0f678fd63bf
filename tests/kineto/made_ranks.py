"""Small sets of ranks made for tests: what each rank runs, and the files that a profiler writes of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from simcore.measured import MeasuredRun
from simcore.parameters import OpeningOptions, Parameters
from simcore.runs.measured import RecordedRun, run_recording
from simcore.sources.inputs import open_input

COMPUTE, COMM = 7, 20


class Kernel(NamedTuple):
    """A kernel, us. said: what a profiler tells of a communication. phase: of the annotation around its
    launch.
    """

    name: str
    start: float
    dur: float
    stream: int = COMPUTE
    said: dict[str, Any] = {}  # noqa: RUF012
    phase: str = ""


def gemm(start: float, dur: float, name: str = "gemm", phase: str = "") -> Kernel:
    """A kernel that computes."""
    return Kernel(name, start, dur, phase=phase)


def called(
    what: str, start: float, end: float, size: int, *, elements: int = 1024, stream: int = COMM, **said: Any
) -> Kernel:
    """A kernel of a collective, or of a send or receive, in a group of `size`. said: `Src Rank` and such,
    with _ for a space.
    """
    kind = {"allreduce": "AllReduce", "broadcast": "Broadcast"}.get(what, "SendRecv")
    told = {name.replace("_", " "): value for name, value in said.items()}
    return Kernel(
        f"ncclDevKernel_{kind}", start, end - start, stream,
        {"Collective name": what, "Group size": size, "In msg nelems": elements, "Out msg nelems": elements,
         "dtype": "Float"} | told,
    )  # fmt: skip


def in_group(name: str, ranks: Sequence[int] | None = None) -> dict[str, Any]:
    """What a profiler tells of a group."""
    told: dict[str, Any] = {"Process_Group_Name": name, "Process_Group_Description": name}
    return told if ranks is None else told | {"Process_Group_Ranks": str(list(ranks))}


def write(
    folder: Path,
    ranks: dict[int, list[Kernel]],
    world: int | None = None,
    late_us: dict[int, float] | None = None,
) -> Path:
    """The files of ranks, by their numbers. late_us: by how much the clock of a rank is ahead."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, kernels in ranks.items():
        late = 1000.0 + (late_us or {}).get(number, 0.0)
        events: list[dict[str, Any]] = [
            {"ph": "X", "cat": "kernel", "name": kernel.name, "pid": 0, "tid": kernel.stream,
             "ts": late + kernel.start, "dur": kernel.dur,
             "args": {"stream": kernel.stream, "device": 0} | kernel.said}
            for kernel in kernels
        ]  # fmt: skip
        for place, kernel in enumerate(kernels):
            if kernel.phase:
                events[place]["args"]["correlation"] = place + 1
                begins = late + kernel.start - 1
                host = {"ph": "X", "pid": 1, "tid": 1, "ts": begins}
                events += [
                    host | {"cat": "user_annotation", "name": f"## {kernel.phase} ##", "dur": 1},
                    host | {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 0.5,
                            "args": {"correlation": place + 1}},
                ]  # fmt: skip
        who = {"rank": number, "world_size": world or len(ranks), "backend": "nccl"}
        (folder / f"rank{number}.json").write_text(
            json.dumps({"distributedInfo": who, "traceEvents": events})
        )
    return folder


def opened(folder: Path) -> RecordedRun:
    """The set as it was measured."""
    run = open_input(str(folder), OpeningOptions())
    assert isinstance(run, MeasuredRun)
    return run_recording(run, Parameters())


def waits_us(results: RecordedRun) -> dict[int, float]:
    """What each rank waits, us, by its number."""
    accounts = zip(results.measured.ranks, results.accounts, strict=True)
    return {rank.rank: account.ns("wait") / 1000 for rank, account in accounts}


def said(results: RecordedRun) -> set[str]:
    """The codes of what is said of a run."""
    return {one.code for one in results.measured.diagnostics}


def members(results: RecordedRun) -> list[tuple[int, ...]]:
    """The ranks of each collective, and of each send and receive that is held by the other."""
    numbers = [rank.rank for rank in results.measured.ranks]
    return [
        tuple(sorted(numbers[call.rank] for call in meeting.calls))
        for meeting in results.rendezvous.matches.meetings
    ]
