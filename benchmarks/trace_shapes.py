"""What reading traces of five shapes takes, Chrome traces of three, and a trace of a million kernels in a
step: processor time against `json.load` of the same bytes, and the most memory against the size of the file.

Reports and json.load run in turns, and the middle of their ratios counts: what else the machine does
lengthens both. Usage: python benchmarks/trace_shapes.py [MB] [--runs N] [--million] [--collectives]
[--only SHAPE]; MB of each shape (116: of 40 the start is a fifth); --million adds the step of a million
kernels, --collectives one of 200,000 kernels, half of them collectives. Exit status 1 when a budget is
missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measuring import WLTUI, Table, succeeded

TIMES_JSON, TIMES_SIZE, MILLION_SECONDS = 0.5, 3.0, 8.0
MILLION = 1_000_000
WITH_COLLECTIVES = 200_000
_NAMES = [f"void at::native::vectorized_elementwise_kernel<4, op_{index}>(int)" for index in range(40)]
_Events = Iterator[dict[str, Any]]


def _event(cat: str, name: str, tid: int, ts: float, dur: float, **args: Any) -> dict[str, Any]:
    return {
        "ph": "X", "cat": cat, "name": name, "pid": 1 if cat != "kernel" else 0, "tid": tid,
        "ts": round(ts, 3), "dur": round(dur, 3), "args": args,
    }  # fmt: skip


def _launched(number: int, at: float, dur: float, stream: int = 7, **more: Any) -> _Events:
    """Yields an operation of the host, its launch, and the kernel."""
    yield _event("cpu_op", f"aten::op{number % 30}", 1, at, 3, **{"External id": number})
    yield _event("cuda_runtime", "cudaLaunchKernel", 1, at + 1, 1, cbid=211, correlation=number)
    yield _event(
        "kernel", _NAMES[number % 40], stream, at + 5, dur, **{"External id": number}, device=0,
        stream=stream, correlation=number, grid=[number % 512 + 1, 1, 1], block=[128, 1, 1],
        **{"est. achieved occupancy %": 40}, **more,
    )  # fmt: skip


def few_long() -> _Events:
    """Each kernel of 5 ms has 50 operations of the host."""
    for number in count(1):
        at = number * 6000.0
        for op in range(50):
            yield _event("cpu_op", f"aten::op{op}", 1, at + op * 20, 15, **{"External id": number * 100 + op})
        yield from _launched(number, at + 1100, 4900.0)


def many_short() -> _Events:
    """Each kernel lasts 3 us and has its operation and its launch."""
    for number in count(1):
        yield from _launched(number, number * 6.0, 3.0)


def deep_stacks() -> _Events:
    """Each kernel is launched in 40 calls of Python."""
    for number in count(1):
        at = number * 100.0
        for depth in range(40):
            yield _event(
                "python_function", f"torch/nn/modules/module.py({depth}): _call_impl", 1, at + depth * 0.1,
                95 - depth * 0.2, **{"Python id": number * 40 + depth, "Python parent id": number * 40},
            )  # fmt: skip
        yield from _launched(number, at + 10, 40.0)


def long_arguments() -> _Events:
    """Operations of the host state shapes, types and stacks; kernels state what is of no use here."""
    dims, types = [[4, 2048, 4096], [4096, 4096], [], [4, 2048, 4096]] * 3, ["c10::BFloat16"] * 12
    stack = "; ".join(f"train.py({line}): step" for line in range(30))
    for number in count(1):
        at = number * 30.0
        yield _event(
            "cpu_op", f"aten::op{number % 30}", 1, at, 9, **{"Input Dims": dims, "Input type": types},
            **{"Concrete Inputs": [""] * 12, "Call stack": stack},
        )  # fmt: skip
        notes = {f"note {key}": "x" * 40 for key in range(12)}
        yield from _launched(number, at + 2, 20.0, **notes)


def many_streams() -> _Events:
    """Kernels of 200 streams that overlap."""
    for number in count(1):
        yield from _launched(number, number * 6.0, 500.0, 7 + number % 200)


def bare_kernels() -> _Events:
    """Kernels with short names, and neither launches nor a host."""
    for number in count(1):
        yield _event(
            "kernel", f"kernel_{number % 40}", 7, number * 4, 3.25, **{"External id": number}, device=0,
            stream=7, correlation=number, grid=[number % 512 + 1, 1, 1], block=[128, 1, 1],
        )  # fmt: skip


def half_collectives() -> _Events:
    """Every other kernel is a collective, in three groups by turns, with all that a profiler states."""
    names = (
        ("AllReduce", "allreduce"), ("AllGather", "_allgather_base"),
        ("ReduceScatter", "_reduce_scatter_base"),
    )  # fmt: skip
    for number in count(1):
        at = number * 30.0
        if number % 2:
            yield from _launched(number, at, 20.0)
            continue
        group = number // 2 % 3
        kernel, call = names[group]
        stated = {
            "Collective name": call, "In msg nelems": 1024 * (1 + number % 7), "Out msg nelems": 1024,
            "Group size": 8, "dtype": "BFloat16", "Process Group Name": str(group),
            "Process Group Description": ("default_pg", "tp", "dp")[group],
            "Process Group Ranks": str([*range(8)]), "External id": number,
        }  # fmt: skip
        yield _event("cpu_op", "record_param_comms", 1, at, 9, **stated)
        yield _event("cuda_runtime", "cudaLaunchKernelExC", 1, at + 2, 2, cbid=211, correlation=number)
        yield _event(
            "kernel", f"ncclDevKernel_{kernel}_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            20 + group, at + 5, 25 + number % 9, device=0, stream=20 + group, correlation=number,
            grid=[24, 1, 1], block=[512, 1, 1], **stated,
        )  # fmt: skip


def _of_ranks(
    name: str, cat: str, rank: int, thread: str, ts: float, dur: float, **args: Any
) -> dict[str, Any]:
    return {
        "ph": "X", "cat": cat, "name": name, "pid": rank, "tid": thread, "ts": ts, "dur": dur, "args": args,
    }  # fmt: skip


def passes_of_ranks() -> _Events:
    """Steps of 8 stages and 32 micro-batches, each pass with its transfers, as a straggler study has them."""
    for step in count():
        for stage in range(8):
            yield {"ph": "M", "name": "process_name", "pid": stage, "args": {"name": f"PP rank {stage}"}}
            for mb in range(32):
                for name, at, dur in (("forward", 0.0, 900.0), ("backward", 40000.0, 1800.0)):
                    ts = step * 1e5 + stage * 1000 + mb * 1000 + at
                    args = {"step": step, "model_chunk": 0, "mb_id": mb, "seq_id": mb * 7}
                    yield _of_ranks(f"{name}-recv", f"{name}-recv", stage, "pp-comm", ts - 50, 50.0, **args)
                    yield _of_ranks(f"{name}-compute", f"{name}-compute", stage, "compute", ts, dur, **args)
                    yield _of_ranks(f"{name}-send", f"{name}-send", stage, "pp-comm", ts + dur, 50.0, **args)


def begins_and_ends() -> _Events:
    """Passes of 8 ranks as begins and ends, whose ends say what they are, as MegatronApp writes them."""
    for number in count():
        step, mb = divmod(number, 64)
        for rank in range(8):
            own = {"name": "forward", "cname": "thread_state_running", "pid": rank, "tid": 1}
            at = number * 1000 + rank * 10
            yield own | {"ph": "B", "ts": at, "args": {"iteration": step}}
            place = {"iteration": step, "microbatch": mb, "model_chunk": 0, "pp_rank": rank}
            yield own | {"ph": "E", "ts": at + 900, "args": place}


def calls_of_a_program() -> _Events:
    """Calls of Python eight deep, which no rule knows, as VizTracer writes them."""
    for number in count():
        for depth in range(8):
            yield {
                "pid": 7001, "tid": 7001, "ts": number * 20 + depth * 0.5, "ph": "X", "cat": "fee",
                "dur": 18.0 - depth, "name": f"call_{depth} (/home/me/module_{number % 50}.py:{depth})",
            }  # fmt: skip


CHROME: dict[str, Callable[[], _Events]] = {
    "passes of ranks": passes_of_ranks,
    "begins and ends": begins_and_ends,
    "calls of a program": calls_of_a_program,
}
SHAPES: dict[str, Callable[[], _Events]] = {
    "few long kernels": few_long,
    "many short ones": many_short,
    "deep stacks": deep_stacks,
    "long arguments": long_arguments,
    "many streams": many_streams,
}


def write(path: Path, events: _Events, most_bytes: float, is_chrome: bool = False, world: int = 1) -> float:
    """Writes a trace of about so many bytes, of a profiler in one step; returns its MB. world: ranks of its
    job.
    """
    parts, size, last = [""], 0, 0.0
    for event in events:
        text = json.dumps(event, separators=(",", ":"))
        parts.append(text)
        size += len(text) + 1
        last = max(last, event.get("ts", 0) + event.get("dur", 0))
        if size >= most_bytes:
            break
    if is_chrome:
        text = '{"traceEvents": [' + ",".join(parts[1:]) + "]}"
        path.write_text(text)
        return len(text) / 1e6
    parts[0] = json.dumps(_event("user_annotation", "ProfilerStep#1", 1, 0, last + 1))
    who = json.dumps({"rank": 0, "world_size": world})
    text = f'{{"distributedInfo": {who}, "traceEvents": [' + ",".join(parts) + "]}"
    path.write_text(text)
    return len(text) / 1e6


def measure(table: Table, name: str, path: Path, size: float, runs: int, most_seconds: float | None) -> None:
    """Adds what a report and json.load take, by turns."""
    load = (sys.executable, "-c", f"import json; json.load(open({str(path)!r}))")
    pairs = [(succeeded((*WLTUI, "report", "--no-cache", str(path))), succeeded(load)) for _ in range(runs)]
    ratio = median(one.own_seconds / other.own_seconds for one, other in pairs)
    own = median(one.own_seconds for one, _ in pairs)
    memory = max(one.peak_mb for one, _ in pairs) / size
    what = f"{name}, {size:.0f} MB"
    table.add(
        f"{what:<28} report {own:5.2f} s = {ratio:.2f} times json.load (budget {TIMES_JSON}), "
        f"{memory:.1f} times the file in memory (budget {TIMES_SIZE:.0f})"
    )
    table.judge(f"{name}: times json.load", ratio, TIMES_JSON)
    table.judge(f"{name}: memory over the file's size", memory, TIMES_SIZE)
    if most_seconds is not None:
        table.judge(f"{name}: seconds", own, most_seconds)


def main(words: list[str]) -> int:
    """Prints the table. Exit status 1 when a budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("megabytes", nargs="?", type=float, default=116.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--collectives", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args(words)
    table = Table(f"middle of {options.runs} pairs, s of the processor")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        for name, shape in {**SHAPES, **CHROME}.items():
            if options.only in name:
                size = write(path, shape(), options.megabytes * 1e6, name in CHROME)
                measure(table, name, path, size, options.runs, None)
        if options.million:
            size = write(path, islice(bare_kernels(), MILLION), float("inf"))
            measure(table, "a million kernels", path, size, options.runs, MILLION_SECONDS)
        if options.collectives:
            events = islice(half_collectives(), 3 * WITH_COLLECTIVES)
            size = write(path, events, float("inf"), world=8)
            measure(table, "many collectives", path, size, options.runs, None)
    print(table.text, end="")
    return int(bool(table.missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
