"""What the what-if table takes on a run of 324,224 ops: 128 ranks simulated one by one, each with jitter.

Jitter makes the ranks different, so that folding cannot answer in the place of the run. The rows of other
schedules are simulations and count like the others.
Usage: python benchmarks/what_if.py [SECONDS] [--write]; it stops after so many SECONDS (60) and judges the
rows that are there by then; --write puts the table into benchmarks/README.md. Exit status 1 when a budget
is missed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import contextlib
import itertools

from benchmarks.measuring import SEED_002, Table, finished, number_of
from simcore.analysis import Results
from simcore.diagnostics import Cancelled
from simcore.parameters import Parameters
from simcore.simulation import simulate
from simcore.workload import open_workload

FLAGS = "--world 128 --no-fold --jitter 0.01"
PARAMETERS = Parameters(world=128, no_fold=True, jitter=0.01)
FIRST_S, FURTHER_S = 2.0, 0.3


def rows_done(results: Results, most_s: float) -> tuple[list[float], int]:
    """(seconds from the call until each row was done, number of rows that the whole table has)."""
    begin = time.perf_counter()
    done_at: list[float] = []
    rows = 0

    def progress(done: int, total: int) -> None:
        nonlocal rows
        rows = total
        if done:
            done_at.append(time.perf_counter() - begin)

    with contextlib.suppress(Cancelled):
        results.what_if(progress, lambda: bool(done_at) and time.perf_counter() - begin > most_s)
    return done_at, rows


def main(words: list[str]) -> int:
    """Print or write the table. Exit status 1 when a budget is missed."""
    most_s = number_of(words, 60.0)
    workload = open_workload(SEED_002)
    begin = time.perf_counter()
    simulation = simulate(workload, PARAMETERS)
    simulated_s = time.perf_counter() - begin
    ops = sum(len(simulation.program.stages[one.stage].ops) for one in simulation.timeline.classes)
    done_at, rows = rows_done(Results(simulation), most_s)
    table = Table(f"seed 002 {FLAGS}, {ops} ops")
    table.add(f"the run itself           {simulated_s:8.2f} s")
    table.add(f"to the first row         {done_at[0]:8.2f} s   (budget {FIRST_S:g})")
    table.judge("to the first row, s", done_at[0], FIRST_S)
    steps = [after - before for before, after in itertools.pairwise(done_at)]
    if steps:
        mean = sum(steps) / len(steps)
        table.add(
            f"a further row, mean      {mean:8.2f} s   (budget {FURTHER_S:g}); "
            f"slowest {max(steps):.2f} s; {len(done_at)} of {rows} rows in {done_at[-1]:.1f} s"
        )
        table.judge("a further row, mean s", mean, FURTHER_S)
    return finished(__file__, table, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
