"""What the engine costs, against a bare heap loop in the same process and run.

The yardstick: heapreplace of (time, id) on a heap as large as the number of streams, once an
op. Machines differ, the ratio much less. Usage: python benchmarks/engine.py [RUNS]
"""

from __future__ import annotations

import heapq
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from simcore.cluster import choose_cluster  # noqa: E402
from simcore.engine import run_engine  # noqa: E402
from simcore.folding import Folding, fold  # noqa: E402
from simcore.layout import resolve_layout  # noqa: E402
from simcore.networks import open_network  # noqa: E402
from simcore.overrides import Overrides  # noqa: E402
from simcore.parameters import Parameters  # noqa: E402
from simcore.pricing import Prices  # noqa: E402
from simcore.program import Program, build_program  # noqa: E402
from simcore.workload import open_workload  # noqa: E402

FILE = str(Path(__file__).resolve().parents[1] / "fixtures" / "002_gpt_1024npu.txt")
# SimAI's own example of 9216 GPUs; it is not ours to ship.
EXAMPLE = Path(FILE).parents[2] / "shared" / "corpus" / "simai" / "aliyun__SimAI__workload_analytical.txt"
Prepared = tuple[Program, Folding, list[list[int]]]


def prepared(parameters: Parameters, every_rank: bool = False) -> Prepared:
    """A program with its classes and durations: all that the engine is given."""
    workload = open_workload(FILE)
    layout, _ = resolve_layout(workload, parameters, None)
    cluster = choose_cluster(parameters).cluster(layout.world)
    program, _ = build_program(workload, layout, parameters)
    folding = fold(layout, cluster, program, every_rank=every_rank)
    network = open_network(parameters, layout, cluster)
    return program, folding, Prices(network, 1.0, 1.0, Overrides()).durations(program, folding)


def bare_heap_seconds(ops: int, streams: int) -> float:
    """The yardstick's time."""
    heap = [(stream, stream) for stream in range(streams)]
    heapq.heapify(heap)
    replace = heapq.heapreplace
    begin = time.perf_counter()
    for _ in range(ops):
        now, stream = heap[0]
        replace(heap, (now + 5, stream))
    return time.perf_counter() - begin


def counts(program: Program, folding: Folding) -> tuple[int, int]:
    """(ops, streams with ops) over all classes."""
    stages = [program.stages[rank_class.stage] for rank_class in folding.classes]
    return sum(len(stage.ops) for stage in stages), sum(len(set(stage.ops.stream)) for stage in stages)


def median_seconds(run: Callable[[], object], runs: int) -> float:
    """Median time of a call."""
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def report_figures(*flags: str, file: str = FILE) -> tuple[float, float]:
    """(seconds, MiB) of a whole `wltui report` process, on seed 002 unless another file is given."""
    command = [sys.executable, "-m", "tui", "report", file, *flags]
    script = (
        "import resource,subprocess,time;b=time.perf_counter();"
        f"subprocess.run({command!r},stdout=subprocess.DEVNULL,check=True);"
        "print(time.perf_counter()-b, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    seconds, kib = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    return float(seconds), int(kib) / 1024


def main(runs: int) -> int:
    """Print the table. Exit status 1 when a budget is missed."""
    missed = False
    print(f"python {sys.version.split()[0]}, {os.cpu_count()} cores, medians of {runs}")
    for name, schedule in (
        ("1f1b", {}),
        ("interleaved, V 8", {"schedule": "interleaved", "virtual_stages": 8}),
    ):
        program, folding, durations = prepared(Parameters(**schedule))
        ops, streams = counts(program, folding)
        ratios = []
        for _ in range(runs):
            bare = bare_heap_seconds(ops, streams)
            begin = time.perf_counter()
            run_engine(program, folding, durations)
            ratios.append((time.perf_counter() - begin) / bare)
        engine = median_seconds(lambda p=program, f=folding, d=durations: run_engine(p, f, d), runs)
        ratio = statistics.median(ratios)
        missed |= ratio > 3
        print(f"engine, seed 002, {name:<17} {ops:8} ops  {engine * 1000:8.1f} ms  "
              f"{engine / ops * 1e9:5.0f} ns an op  "
              f"{ratio:.2f} times the bare heap loop (budget 3)")  # fmt: skip
    base = 0.0
    for world in (1024, 16384, 262144, 1048576):
        figures = [report_figures("--world", str(world)) for _ in range(runs)]
        seconds, mib = statistics.median(s for s, _ in figures), max(m for _, m in figures)
        base = base or seconds
        missed |= seconds > 1.3 * base
        print(f"report, {world:8} ranks               {seconds * 1000:8.0f} ms  {mib:6.1f} MiB  "
              f"{seconds / base:.2f} times 1024 ranks (budget 1.3)")  # fmt: skip
    seconds, mib = report_figures("--no-fold")
    missed |= seconds > 12 or mib > 600
    print(f"report, 1024 ranks, --no-fold        {seconds * 1000:8.0f} ms  {mib:6.1f} MiB  (12 s, 600 MB)")
    seconds, mib = report_figures("--what-if")
    missed |= seconds > 3
    print(f"report, --what-if                    {seconds * 1000:8.0f} ms  {mib:6.1f} MiB  (3 s)")
    for flags in (
        ("--slow-rank", "37=1.3"),
        ("--slow-rank", "37=1.3", "--what-if"),
        ("--network", "shared"),
        ("--network", "shared", "--slow-rank", "37=1.3"),
    ):
        seconds, mib = report_figures(*flags)
        print(f"report, {' '.join(flags):<28} {seconds * 1000:8.0f} ms  {mib:6.1f} MiB")
    if EXAMPLE.exists():
        for flags in ((), ("--network", "shared")):
            seconds, mib = report_figures(*flags, file=str(EXAMPLE))
            name = " ".join(("SimAI's 9216 GPUs", *flags[1:]))
            print(f"report, {name:<28} {seconds * 1000:8.0f} ms  {mib:6.1f} MiB")
    else:
        print(f"report, SimAI's 9216 GPUs: not run, {EXAMPLE.name} is not beside the project")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 7))
