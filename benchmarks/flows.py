"""What flows on a topology cost, against a bare heap loop in the same process, in processor time.

Usage: python benchmarks/flows.py [ROUNDS] [--write]; --write puts the table into benchmarks/README.md.
Exit status 1 when a budget is missed.
"""

from __future__ import annotations

import heapq
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measuring import SEED_002, Table, finished, number_of
from simcore.flows.alone import run_collectives
from simcore.flows.traffic import FlowRules
from simcore.parameters import Parameters
from simcore.simulation import simulate
from simcore.topology import generate_topology
from simcore.workload import open_workload

ROUNDS = 5
# The yardstick: as many replacements on a heap as the flows of an all-to-all of 64.
STREAMS, REPLACEMENTS = 64 * 63, 500_000
# An all-to-all of 64 GPUs, 256 KiB a flow.
SIZE = 16 << 20
GPUS = range(64)


def heap_loop() -> None:
    """The yardstick."""
    heap = [(stream, stream) for stream in range(STREAMS)]
    replace = heapq.heapreplace
    for _ in range(REPLACEMENTS):
        now, stream = heap[0]
        replace(heap, (now + STREAMS, stream))


def all_to_all(cluster: str) -> Callable[[], object]:
    """An all-to-all of all GPUs of a generated topology; that is made before."""
    topology = generate_topology(cluster)
    return lambda: run_collectives(topology, [list(GPUS)], "ALLTOALL", SIZE, FlowRules())


def balanced_step() -> None:
    """Seed 002 on 1,024 GPUs, from its file to its times."""
    simulate(open_workload(SEED_002), Parameters(cluster="spectrum-x:1024", network="flows", ecmp="balanced"))


# What is run, and the most times the yardstick that it takes: 0.5, 3 and 5 s where that takes 0.2 s.
RUNS: tuple[tuple[str, Callable[[], object], float], ...] = (
    ("all-to-all of 64 GPUs, Spectrum-X", all_to_all("spectrum-x:64"), 2.5),
    ("all-to-all of 64 GPUs, DCN+ by hash", all_to_all("dcn:64:npa=16:psn=8"), 15.0),
    ("seed 002 on 1,024 GPUs, balanced", balanced_step, 25.0),
)


def own_seconds(run: Callable[[], object]) -> float:
    """Processor time of a call."""
    begin = time.process_time()
    run()
    return time.process_time() - begin


def main(words: list[str]) -> int:
    """Print or write the table. Exit status 1 when a budget is missed."""
    rounds = int(number_of(words[:1], ROUNDS))
    # In turn, so that each has what the machine does besides.
    times = [[own_seconds(run) for run in (heap_loop, *(run for _, run, _ in RUNS))] for _ in range(rounds)]
    bare, *seconds = (min(column) for column in zip(*times, strict=True))
    table = Table(f"fastest of {rounds}, processor time")
    table.add(f"{'a bare heap loop':<38} {bare:6.2f} s")
    for (name, _, budget), took in zip(RUNS, seconds, strict=True):
        table.judge(name, took / bare, budget)
        table.add(f"{name:<38} {took:6.2f} s   {took / bare:6.2f} times (budget {budget:g})")
    return finished(__file__, table, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
