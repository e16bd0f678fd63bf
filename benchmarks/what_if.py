"""What the what-if table takes on a run of 324,224 ops: 128 ranks simulated one by one.

Once as it is, where equal ranks are folded for the answer; once with jitter on each rank, which leaves no
two equal. There the rows of other schedules take as long as the run itself, since they are runs; they come
last and are not judged. Times are those of the processor: what else runs on the machine does not count.
Usage: python benchmarks/what_if.py [SECONDS] [--write]; of the run with jitter it stops after so many SECONDS
(60); --write puts the table into benchmarks/README.md. Exit status 1 when a budget is missed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import contextlib
import itertools

from benchmarks.measuring import SEED_002, Table, finished, number_of
from simcore.analysis.rerun import Rerun
from simcore.analysis.what_if.knobs import make_knobs
from simcore.diagnostics import Cancelled
from simcore.parameters import Parameters
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.workload import open_workload

FLAGS = "--world 128 --no-fold"
RUNS = {
    "": Parameters(world=128, no_fold=True),
    " --jitter 0.01": Parameters(world=128, no_fold=True, jitter=0.01),
}
FIRST_S, FURTHER_S = 2.0, 0.3


def rows_done(results: SimulatedRun, most_s: float) -> list[float]:
    """Seconds of the processor from the call until each row was done."""
    begin = time.process_time()
    done_at: list[float] = []

    def progress(done: int, total: int) -> None:
        if done:
            done_at.append(time.process_time() - begin)

    with contextlib.suppress(Cancelled):
        results.what_if(progress, lambda: bool(done_at) and time.process_time() - begin > most_s)
    return done_at


def add_run(table: Table, flag: str, parameters: Parameters, most_s: float) -> None:
    """Adds the lines of one run."""
    begin = time.process_time()
    results = SimulatedRun(simulate(open_workload(SEED_002), parameters))
    simulated_s = time.process_time() - begin
    done_at = rows_done(results, most_s)
    steps = [after - before for before, after in itertools.pairwise(done_at)]
    rerun = Rerun(results.fold_run(), results.dependencies)
    # Sensitivity comes first, a pass of the graph a row; the changes behind it are runs.
    of_passes = len(make_knobs(rerun, results.path_source.stage_ops(results.critical_path))) - 1
    passes, runs = steps[:of_passes], steps[of_passes:]
    table.add(f"seed 002 {FLAGS}{flag}")
    table.add(f"  the run itself                {simulated_s:8.2f} s")
    table.add(f"  to the first row              {done_at[0]:8.2f} s   (budget {FIRST_S:g})")
    table.judge(f"{FLAGS}{flag}: to the first row, s", done_at[0], FIRST_S)
    mean = sum(passes) / len(passes)
    table.add(f"  a further row, mean of {len(passes):3}    {mean:8.2f} s   (budget {FURTHER_S:g})")
    table.judge(f"{FLAGS}{flag}: a further row, mean s", mean, FURTHER_S)
    if runs:
        table.add(f"  a row that is a run, mean of {len(runs)}{sum(runs) / len(runs):8.2f} s")


def main(words: list[str]) -> int:
    """Print or write the table. Exit status 1 when a budget is missed."""
    most_s = number_of(words, 60.0)
    table = Table("324,224 ops, s of the processor")
    for flag, parameters in RUNS.items():
        add_run(table, flag, parameters, most_s)
    return finished(__file__, table, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
