"""What points of a sweep cost: points a second of one core, with the yardstick in the same run, and a sweep.

The yardstick: heapreplace of (time, id) on a heap of 10, 100,000 times. Machines differ, the ratio much less.
Usage: python benchmarks/sweeping.py [POINTS] [--write]; --write puts the table into benchmarks/README.md.
Exit status 1 when a budget is missed.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.engine import bare_heap_seconds
from benchmarks.measuring import WLTUI, Table, finished, number_of, process
from simcore.parameters import Parameters
from simcore.setup import Setup
from simcore.simulation import simulate
from simcore.sources.inputs import open_model
from simcore.sweeping import step_time
from simcore.sweeping.step_time import StepTimes

# 45 points a second where a whole run made 13 of them, and the yardstick took 12 ms: a point in 1.8 of it; as
# many with overlaps.
MOST_YARDSTICKS = 1.8
# s for 3,000 points on two cores, and MB of the largest process.
MOST_SECONDS, MOST_MB = 60.0, 300.0
# s of processor time for all layouts of 256 GPUs: two minutes of two processes, with room.
MOST_LAYOUTS_SECONDS = 120.0
_GPT = {"world": 1024, "pp": 8, "global_batch": 1536}
_SWEEP = (
    "--model", "llama-3-70b", "--world", "512", "--gpu", "h100", "--global-batch", "1024", "--vary",
    "tp=4,8", "--vary", "pp=4,8", "--vary", "microbatch-size=1,2", "--vary",
    "recompute=none,selective,full", "--vary", "zero=0,1", "--vary", "grad-dtype=fp32,bf16", "--vary",
    "precision=bf16,fp8", "--jobs", "2",
)  # fmt: skip
_LAYOUTS = (
    "--world", "256", "--gpu", "h100", "--memory-limit", "80GB", "--global-batch", "1024", "--layouts",
    "--jobs", "2",
)  # fmt: skip


def gpt_points(count: int) -> list[Parameters]:
    """Layouts of 175 B parameters on 1,024 GPUs with pp 8 and 96 micro-batches, in turn."""
    choices = itertools.product(
        ("none", "selective", "full"), ("0", "1"), ("on", "off"), ("fp32", "bf16"), (8, 4, 2)
    )
    found = []
    for recompute, zero, sequence, grad, tp in itertools.islice(choices, count):
        batch = 96 * 1024 // (8 * tp)
        found.append(
            Parameters(
                world=1024,
                pp=8,
                tp=tp,
                global_batch=batch,
                recompute=recompute,
                zero=zero,
                sequence_parallel=sequence,
                grad_dtype=grad,
            )
        )
    return found


def overlap_points() -> list[Parameters]:
    """Layouts of Llama-3 70B on 64 H100 with all overlaps that go with each, in turn."""
    found = []
    degrees = itertools.product((8, 4, 2), (4, 8, 2), (1, 2), ("0", "1"), (None, 2, 5))
    for tp, pp, cp, zero, chunks in degrees:
        if tp * pp * cp > 64:
            continue
        found.append(
            Parameters(
                gpu="h100",
                world=64,
                global_batch=128,
                tp=tp,
                pp=pp,
                cp=cp,
                zero=zero,
                schedule="interleaved" if chunks else None,
                virtual_stages=chunks,
                sequence_parallel="on",
                overlap_tp=True,
                overlap_grad_reduce=True,
                overlap_param_gather=zero == "1",
            )
        )
    return found


def main(words: list[str]) -> int:
    """Measures, prints the table and writes it if asked to."""
    count = int(number_of(words, 72))
    table = Table(f"{count} points of GPT-3 175B")
    heap = min(bare_heap_seconds(100_000, 10) for _ in range(5))
    table.add(f"yardstick                  {1e3 * heap:8.2f} ms")
    _points(table, "GPT-3 175B, 1,024 GPUs, pp 8, 96 micro-batches", "gpt-3-175b", gpt_points(count), heap)
    title = "Llama-3 70B, 64 H100, overlaps of tp, gradients and parameters"
    _points(table, title, "llama-3-70b", overlap_points(), heap)
    with tempfile.TemporaryDirectory() as folder:
        done = process([*WLTUI, "sweep", *_SWEEP, "-o", str(Path(folder) / "r.jsonl"), "--json"])
        lines = (Path(folder) / "r.jsonl").read_bytes().splitlines()
    ran = sum(b'"step_time_ns":null' not in line for line in lines)
    table.add("Llama-3 70B, 512 H100, --jobs 2")
    table.add(
        f"  {len(lines)} points, {ran} simulated  {done.seconds:8.1f} s, {ran / done.seconds:.0f} a second, "
        f"{done.own_seconds:.1f} s of processor time; {done.peak_mb:.0f} MB the largest process"
    )
    table.judge("the sweep, s for 3,000 points", done.seconds * 3000 / max(ran, 1), MOST_SECONDS)
    table.judge("the largest process, MB", done.peak_mb, MOST_MB)
    for model in ("llama-3-8b", "llama-3-70b"):
        _layouts(table, model)
    return finished(__file__, table, words)


def _points(table: Table, title: str, model: str, points: list[Parameters], heap: float) -> None:
    """Points one after another, as a sweep runs them, against whole runs. heap: the yardstick, s."""
    workload = open_model(model)
    whole = []
    for parameters in points[:6]:
        begin = time.process_time()
        simulate(workload, parameters)
        whole.append(time.process_time() - begin)
    times = StepTimes()
    whole_runs: list[Setup] = []
    simulated = step_time._simulated

    def count_simulated(setup: Setup) -> step_time.StepTime:
        whole_runs.append(setup)
        return simulated(setup)

    each = []
    with mock.patch.object(step_time, "_simulated", count_simulated):
        for parameters in points:
            begin = time.process_time()
            times.find_step_time(Setup(workload, parameters))
            each.append(time.process_time() - begin)
    mean, run = sum(each) / len(each), sum(whole) / len(whole)
    table.add(title)
    table.add(f"  a whole run, mean        {1e3 * run:8.2f} ms, {run / heap:.2f} yardsticks")
    table.add(
        f"  a point, mean            {1e3 * mean:8.2f} ms, {mean / heap:.2f} yardsticks, {1 / mean:.0f} a "
        f"second; the first of an order {1e3 * max(each):.1f} ms, the others {1e3 * min(each):.1f} and more"
    )
    table.add(f"  {len(points)} points, {len(whole_runs)} by whole runs")
    table.judge(f"a point of {model}, yardsticks", mean / heap, MOST_YARDSTICKS)


def _layouts(table: Table, model: str) -> None:
    """All layouts of 256 H100 with 80 GB each."""
    with tempfile.TemporaryDirectory() as folder:
        done = process([*WLTUI, "sweep", "--model", model, *_LAYOUTS, "-o", str(Path(folder) / "r.jsonl")])
        counts = {b"null": 0, b'"memory': 0, b'"bound': 0, b'"cannot be': 0}
        with (Path(folder) / "r.jsonl").open("rb") as file:
            for line in file:
                _, is_point, why = line.rpartition(b'"skipped":')
                if is_point:
                    counts[why.partition(b":")[0].strip(b"}\n")] += 1
    ran, too_large, left_out, impossible = counts.values()
    table.add(f"{model}, 256 H100 with 80 GB, --layouts --jobs 2")
    table.add(
        f"  {sum(counts.values())} layouts  {done.seconds:8.1f} s, {done.own_seconds:.1f} s of processor "
        f"time; {done.peak_mb:.0f} MB the largest process"
    )
    table.add(
        f"  {ran} simulated, {too_large} do not fit, {left_out} left out by what they take at least, "
        f"{impossible} cannot be"
    )
    table.judge(f"{model}, s of processor time", done.own_seconds, MOST_LAYOUTS_SECONDS)
    table.judge(f"{model}, the largest process, MB", done.peak_mb, MOST_MB)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
