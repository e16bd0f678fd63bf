"""Examples of what is said of profiler traces: files as a profiler writes them, one fault each."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from simcore.diagnostics import Diagnostic, InputError
from simcore.parameters import OpeningOptions
from simcore.sources.inputs import open_input
from tests.diagnostic_examples_measured import relative

Example = Callable[[Path], list[Diagnostic]]
_NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def _event(start: float = 0, name: str = "gemm", dur: float | None = 10, **given: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 1000 + start, "dur": dur,
            "args": {"stream": 7, "device": 0}} | given  # fmt: skip


def _step(number: int, start: float, dur: float) -> dict[str, Any]:
    return _event(start, f"ProfilerStep#{number}", dur, cat="user_annotation", tid=1, args={})


def _launched(number: int, start: float) -> dict[str, Any]:
    return _event(start, "cudaLaunchKernel", 1, cat="cuda_runtime", tid=1, args={"correlation": number})


def _ran(number: int, start: float, dur: float, **given: Any) -> dict[str, Any]:
    return _event(start, dur=dur, args={"stream": 7, "device": 0, "correlation": number}, **given)


def _trace(*events: dict[str, Any], rank: int | None = 0, world: int = 2, **top: Any) -> str:
    who: dict[str, Any] = {"world_size": world} | ({} if rank is None else {"rank": rank})
    return json.dumps({"distributedInfo": who, "traceEvents": list(events)} | top)


def _named_spans(*some: str | dict[str, Any]) -> str:
    """A Chrome trace of spans with these names, and of other events."""
    return json.dumps(
        [
            {"ph": "X", "name": one, "pid": 0, "tid": 0, "ts": 10 * at, "dur": 5}
            if isinstance(one, str)
            else one
            for at, one in enumerate(some)
        ]
    )


def _log(folder: Path) -> list[Diagnostic]:
    line = " iteration        7/     500 | elapsed time per iteration (ms): 3.5 | lm loss: 1.09E+01 |\n"
    (folder / "train.log").write_text(line * 2)
    return relative(open_input(str(folder / "train.log")).diagnostics, folder)


def _bad_map(folder: Path) -> list[Diagnostic]:
    (folder / "t.json").write_text(_named_spans("forward"))
    (folder / "map.toml").write_text('[[rule]]\nname = "zap"\nkind = "fwd"\n')
    with pytest.raises(InputError) as caught:
        open_input(str(folder / "t.json"), OpeningOptions(trace_map=str(folder / "map.toml")))
    return relative(caught.value.diagnostics, folder)


def _files(asked: OpeningOptions | None = None, **content: str) -> Example:
    """What opening a directory, of one file that file, says. content: by the file's name without `.json`."""

    def example(folder: Path) -> list[Diagnostic]:
        job = folder / "job"
        job.mkdir()
        for name, text in content.items():
            (job / f"{name}.json").write_text(text)
        path = job if len(content) > 1 else next(job.iterdir())
        try:
            found = open_input(str(path), asked).diagnostics
        except InputError as error:
            found = error.diagnostics
        return relative(found, folder)

    return example


def _spans(*rows: str) -> Example:
    """What opening a CSV of spans with these rows says."""

    def example(folder: Path) -> list[Diagnostic]:
        path = folder / "spans.csv"
        path.write_text("\n".join(["rank,start_ns,end_ns,name,kind,group", *rows]))
        try:
            found = open_input(str(path)).diagnostics
        except InputError as error:
            found = error.diagnostics
        return relative(found, folder)

    return example


def _export(folder: Path) -> list[Diagnostic]:
    path = folder / "export.sqlite"
    path.write_bytes(b"SQLite format 3\0" + bytes(100))
    with pytest.raises(InputError) as caught:
        open_input(str(path))
    return relative(caught.value.diagnostics, folder)


def _killed(path: str, part: object, told: object) -> NoReturn:
    os._exit(9)


def _ended(folder: Path) -> list[Diagnostic]:
    """A process that reads is gone before it is through."""
    from simcore.kineto import loading
    from simcore.kineto.progress import ReadingLine
    from simcore.kineto.sets import ProfilerFile

    kept = loading._read_guarded
    paths = [folder / f"rank{rank}.json" for rank in (0, 1)]
    for path in paths:
        path.write_text(_trace(_event()))
    loading._read_guarded = _killed
    try:
        files = [ProfilerFile(str(path), 0, 1) for path in paths]
        with pytest.raises(InputError) as caught:
            list(loading._read_in_processes(files, loading.ReadOptions(), 2, ReadingLine([])))
    finally:
        loading._read_guarded = kept
    return relative(caught.value.diagnostics, folder)


_WHOLE = _trace(_event(), _event(20, _NCCL), rank=1)
_CALL = _event(20, "gloo:all_reduce", cat="user_annotation", args={"Input Dims": [[4]]})
_TWO = {"pg_config": [{"pg_name": "1", "pg_desc": "tp", "pg_size": 2, "ranks": [0, 1]}]}


def _of_three() -> dict[str, Any]:
    return _event(20, _NCCL, args={"stream": 7, "Collective name": "allreduce", "Group size": 3})


def _host(rank: int) -> str:
    who = {"rank": rank, "world_size": 2} | _TWO
    return json.dumps({"distributedInfo": who, "traceEvents": [_event(cat="cpu_op", name="aten::mm"), _CALL]})


def _call(what: str, dur: float, size: int = 2) -> dict[str, Any]:
    """A call that ends at 500 us."""
    name = "ncclDevKernel_SendRecv" if what in ("send", "recv") else _NCCL
    return _event(500 - dur, name, dur, args={"stream": 20, "Collective name": what, "Group size": size})


# The host begins the second step while the device is at the first.
_AHEAD = (
    _step(1, 0, 10), _launched(1, 1), _ran(1, 5, 500), _step(2, 10, 10), _launched(2, 11), _ran(2, 505, 400),
)  # fmt: skip


EXAMPLES: dict[str, Example] = {
    "bad-trace": _files(a='{"traceEvents": 7}'),
    "no-events": _files(a='{"traceEvents": [{"ph": "M"}]}'),
    "cut-file": _files(a=_trace(_event(), _event(20))[:-60]),
    "damaged-file": _files(a=_trace(_event(dur=7), _event(20)).replace("7", "NaN", 1)),
    "lost-events": _files(a=_trace(_event(), _event(20), _event(40)).replace("1020", "x")),
    "no-device": _files(a=_trace(_event(cat="cpu_op", name="aten::mm"))),
    "unknown-category": _files(a=_trace(_event(), _event(20, cat="custom_range", args={}))),
    "collective-by-name": _files(a=_trace(_event(), _event(20, "void mine::all_reduce_kernel<float>(int)"))),
    "negative-duration": _files(a=_trace(_event(), _event(20, dur=-1))),
    "no-time": _files(a=_trace(_event(), _event(ts=None))),
    "bad-export": _export,
    "reading-ended": _ended,
    "rank-from-name": _files(rank0=_trace(_event(), rank=None), rank1=_WHOLE),
    "several-devices": _files(
        rank0=_trace(_event(), _event(20, _NCCL), _event(args={"stream": 7, "device": 1})), rank1=_WHOLE
    ),
    "repeated-step": _log,
    "unknown-span": _files(a=_named_spans("forward", "zap")),
    "spans-not-shown": _files(a=_named_spans("forward", {"ph": "C", "name": "memory", "ts": 1})),
    "bad-trace-map": _bad_map,
    "no-steps": _files(a=_trace(_event())),
    "step-begin-assumed": _files(a=_trace(*_AHEAD)),
    "beside-other-steps": _files(a=_trace(*_AHEAD, _launched(3, 12), _ran(3, 480, 50, tid=8))),
    "empty-step": _files(
        rank0=_trace(_event(), _step(1, -5, 50)), rank1=_trace(_event(90), _step(1, -5, 50), rank=1)
    ),
    "several-windows": _files(
        OpeningOptions(step="all"),
        a_rank0=_trace(_event(), _step(1, -5, 50)),
        b_rank0=_trace(_event(90), _step(2, 85, 50)),
    ),
    "step-not-whole": _files(
        OpeningOptions(step="1"),
        rank0=_trace(_event(), _step(1, -5, 50)),
        rank1=_trace(_event(), _step(2, -5, 50), rank=1),
    ),
    "loose-clock": _files(rank0=_trace(_event()), rank1=_trace(_event(), rank=1)),
    "bound-clock": _files(
        rank0=_trace(_event(), _call("send", 40)), rank1=_trace(_event(), _call("recv", 90), rank=1)
    ),
    "group-unknown": _files(
        None,
        **{
            f"rank{rank}": _trace(_event(), _call("allreduce", 100 * (rank + 1)), rank=rank, world=4)
            for rank in range(4)
        },
    ),
    "bad-rank": _files(a=_trace(_event(), rank=2)),
    "missing-members": _files(
        rank0=_trace(_of_three(), world=3),
        rank1=_trace(_of_three(), rank=1, world=3),
    ),
    "group-by-ends": _files(rank0=_host(0), rank1=_host(1)),
    "bad-csv": _spans(f"0,0,10,{'a' * 140_000},compute,0"),
    "unknown-kind": _spans("0,0,10,gemm,kernel,0"),
    "reversed-times": _spans("0,20,10,gemm,compute,0"),
    "repeated-span": _spans(*["0,0,10,gemm,compute,0"] * 2),
    "overlapping-spans": _spans("0,0,10,layer,compute,0", "0,2,8,gemm,compute,0"),
    "rank-not-in-group": _spans("5,0,10,sum,all-reduce,0-3"),
}
