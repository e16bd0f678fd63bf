"""What the engine costs, against a bare heap loop in the same process and run, and whole reports beside it.

The yardstick: heapreplace of (time, id) on a heap as large as the number of streams, once an
op. Machines differ, the ratio much less. Times are those of the processor: what else runs on the machine
does not count.
Usage: python benchmarks/engine.py [RUNS] [--write]; --write puts the table into benchmarks/README.md.
Exit status 1 when a budget is missed.
"""

from __future__ import annotations

import heapq
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measuring import (
    ROOT,
    SEED_002,
    WLTUI,
    Process,
    Table,
    finished,
    median_seconds,
    number_of,
    succeeded,
)
from simcore.engine import Engine
from simcore.engine.pricing import Prices
from simcore.folding import Folding, fold
from simcore.model.known_models import MODELS
from simcore.model.maker import ModelMaker
from simcore.parameters import Parameters
from simcore.program import Program, build_program
from simcore.setup import Setup
from simcore.simulation import simulate
from simcore.workload import open_workload

# SimAI's own example of 9216 GPUs; it is not ours to ship.
EXAMPLE = ROOT.parent / "shared" / "corpus" / "simai" / "aliyun__SimAI__workload_analytical.txt"
# Times the bare heap loop; times the report of 1024 ranks.
ENGINE_RATIO, WORLD_RATIO = 3.0, 1.3
EXPERTS_SECONDS = 2.0
# Llama-3 405B on 576 H100, its collectives of tensor parallelism in pieces: 1.1 M ops, most of them repeated.
PIECES = (
    "--model", "llama-3-405b", "--gpu", "h100", "--world", "576", "--tp", "8", "--cp", "2", "--pp", "9",
    "--virtual-stages", "7", "--sequence-parallel", "on", "--overlap-tp", "--zero", "1",
    "--overlap-grad-reduce", "--overlap-param-gather", "--grad-dtype", "bf16",
    "--global-batch", "252", "--microbatch-size", "1", "--seq", "8192", "--json",
)  # fmt: skip
PIECES_SECONDS, PIECES_MB = 3.0, 300.0
WORLDS = (1024, 16384, 262144, 1048576)
# Flags of other reports, with the most seconds and MB that they may take.
REPORTS: tuple[tuple[str, float | None, float | None], ...] = (
    ("--no-fold", 6.0, 250.0),
    ("--what-if", 3.0, None),
    ("--slow-rank 37=1.3", None, None),
    ("--slow-rank 37=1.3 --what-if", None, None),
    ("--network shared", None, None),
    ("--network shared --slow-rank 37=1.3", None, None),
)
Prepared = tuple[Program, Folding, list[list[int]]]


def prepared(parameters: Parameters, every_rank: bool = False) -> Prepared:
    """A program with its classes and durations: all that the engine is given."""
    workload = open_workload(SEED_002)
    setup = Setup(workload, parameters)
    layout, cluster = setup.layout, setup.cluster
    program, _ = build_program(workload, layout, setup.schedule)
    folding = fold(layout, cluster, program, every_rank=every_rank)
    return program, folding, Prices(setup.open_network(), 1.0, 1.0).durations(program, folding)


def bare_heap_seconds(ops: int, streams: int) -> float:
    """The yardstick's time."""
    heap = [(stream, stream) for stream in range(streams)]
    heapq.heapify(heap)
    replace = heapq.heapreplace
    begin = time.process_time()
    for _ in range(ops):
        now, stream = heap[0]
        replace(heap, (now + 5, stream))
    return time.process_time() - begin


def counts(program: Program, folding: Folding) -> tuple[int, int]:
    """(ops, streams with ops) over all classes."""
    stages = [program.stages[rank_class.stage] for rank_class in folding.classes]
    return sum(len(stage.ops) for stage in stages), sum(len(set(stage.ops.stream)) for stage in stages)


def report(*flags: str, file: str = SEED_002) -> Process:
    """A whole `wltui report` process, of seed 002 unless another file is given."""
    return succeeded([*WLTUI, "report", file, *flags])


def add_engine(table: Table, runs: int) -> None:
    """The lines of the engine alone."""
    for name, schedule in (
        ("1f1b", {}),
        ("interleaved, V 8", {"schedule": "interleaved", "virtual_stages": 8}),
    ):
        program, folding, durations = prepared(Parameters(**schedule))
        ops, streams = counts(program, folding)
        ratios = []
        for _ in range(runs):
            bare = bare_heap_seconds(ops, streams)
            begin = time.process_time()
            Engine(program, folding, durations).run()
            ratios.append((time.process_time() - begin) / bare)
        engine = median_seconds(lambda p=program, f=folding, d=durations: Engine(p, f, d).run(), runs)
        ratio = statistics.median(ratios)
        table.judge(f"engine, {name}, times the bare heap loop", ratio, ENGINE_RATIO)
        table.add(
            f"engine, seed 002, {name:<17} {ops:8} ops  {engine * 1000:8.1f} ms  "
            f"{engine / ops * 1e9:5.0f} ns an op  {ratio:.2f} times the bare heap loop "
            f"(budget {ENGINE_RATIO:g})"
        )


def add_reports(table: Table, runs: int) -> None:
    """The lines of whole reports."""
    base = 0.0
    for world in WORLDS:
        found = [report("--world", str(world)) for _ in range(runs)]
        seconds = statistics.median(one.own_seconds for one in found)
        base = base or seconds
        table.judge(f"report of {world} ranks, times that of 1024", seconds / base, WORLD_RATIO)
        table.add(
            f"report, {world:8} ranks {seconds * 1000:22.0f} ms {max(one.peak_mb for one in found):7.1f} MB"
            f"   {seconds / base:.2f} times 1024 ranks (budget {WORLD_RATIO:g})"
        )
    for flags, most_s, most_mb in REPORTS:
        done = report(*flags.split())
        budgets = []
        for unit, figure, most in (("s", done.own_seconds, most_s), ("MB", done.peak_mb, most_mb)):
            if most is not None:
                table.judge(f"report {flags}, {unit}", figure, most)
                budgets.append(f"{most:g} {unit}")
        said = f"   (budget {', '.join(budgets)})" if budgets else ""
        table.add(f"report {flags:<36} {done.own_seconds * 1000:8.0f} ms {done.peak_mb:7.1f} MB{said}")
    if not EXAMPLE.exists():
        table.add(f"report, SimAI's 9216 GPUs: not run, {EXAMPLE.name} is not beside the project")
        return
    for network in ("analytical", "shared"):
        done = report("--network", network, file=str(EXAMPLE))
        name = f"report, SimAI's 9216 GPUs, {network}"
        table.add(f"{name:<43} {done.own_seconds * 1000:8.0f} ms {done.peak_mb:7.1f} MB")


def add_experts(table: Table, runs: int) -> None:
    """The line of uneven experts: every rank of an expert group is a class of its own."""
    model = MODELS["qwen3-235b-a22b"]
    parameters = Parameters(
        gpu="h100", world=1024, ep=128, global_batch=1024, expert_imbalance="lognormal:0.5"
    )
    simulation = simulate(ModelMaker(model.name, model).empty_workload(), parameters)
    seconds = median_seconds(
        lambda: simulate(ModelMaker(model.name, model).empty_workload(), parameters), runs
    )
    table.judge("1024 ranks with 128 loads of experts, s", seconds, EXPERTS_SECONDS)
    timeline = simulation.timeline
    table.add(
        f"uneven experts, 1024 ranks, {len(timeline.classes)} classes {timeline.ops_simulated:8} ops "
        f"{seconds * 1000:6.0f} ms (budget {EXPERTS_SECONDS:g} s)"
    )


def add_pieces(table: Table) -> None:
    """The line of a model whose layers run in pieces."""
    done = succeeded([*WLTUI, "report", *PIECES])
    table.judge("report of 405B in pieces, s", done.own_seconds, PIECES_SECONDS)
    table.judge("report of 405B in pieces, MB", done.peak_mb, PIECES_MB)
    table.add(
        f"{'report --json, 405B on 576 GPUs, --overlap-tp':<43} {done.own_seconds * 1000:8.0f} ms "
        f"{done.peak_mb:7.1f} MB   (budget {PIECES_SECONDS:g} s, {PIECES_MB:g} MB)"
    )


def main(words: list[str]) -> int:
    """Print or write the table. Exit status 1 when a budget is missed."""
    runs = int(number_of(words, 7))
    table = Table(f"medians of {runs}, times of the processor")
    add_engine(table, runs)
    add_experts(table, runs)
    add_pieces(table)
    add_reports(table, runs)
    return finished(__file__, table, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
