"""How long the layer table of 100,000 rows takes that all differ, beside the run that it is of.

What a key press waits for: the table when it is first opened, each row on its own line, equal rows
together again, each sort, the filter, and one frame; in its thread's own time, so that other work on the
machine does not count.
Usage: python benchmarks/layer_table.py [ROWS] [--write]; --write puts the table into benchmarks/README.md.
Exit status 1 when a budget is missed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measuring import Table, finished, number_of
from simcore.parameters import Parameters
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.workload import open_workload
from tui.layers.view import LayersView
from tui.layers.workload_table import PRICED_COLUMNS, WORKLOAD_COLUMNS
from tui.layers.workload_table import WorkloadTable as LayerTable
from tui.session import Session

OPEN_MS, SORT_MS, ROUNDS = 200.0, 100.0, 5
HEADER = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 8\n"


def workload_text(rows: int) -> str:
    """A file of `rows` rows; no two have the same name, compute or bytes."""
    lines = [
        f"layer_{'abc'[row % 3]}_{row}\t-1\t{2000 + row}\tALLREDUCE\t{4096 + 8 * row}\t{3000 + row}\tNONE\t0"
        f"\t{4000 + row}\tALLGATHER\t{8192 + 8 * row}\t100"
        for row in range(rows)
    ]
    return "\n".join([HEADER.rstrip(), str(rows), *lines, ""])


def fastest(action: Callable[[], object], prepare: Callable[[], object] = lambda: None) -> float:
    """Own ms of the fastest of some rounds; `prepare` is not counted, and what else the machine does."""
    found = []
    for _ in range(ROUNDS):
        prepare()
        begin = time.thread_time()
        action()
        found.append(1000 * (time.thread_time() - begin))
    return min(found)


def main(words: list[str]) -> int:
    """Print or write the table. Exit status 1 when a budget is missed."""
    rows = int(number_of(words, 100_000))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.txt"
        path.write_text(workload_text(rows), encoding="utf-8")
        workload = open_workload(str(path))
    begin = time.thread_time()
    simulation = simulate(workload, Parameters())
    run_ms = 1000 * (time.thread_time() - begin)
    results = SimulatedRun(simulation)
    accounts = results.accounts
    path = "critical_path", "rows", "slacks"

    def forget() -> None:
        # A worker finds the critical path while the table is open.
        kept = (
            "simulation",
            "accounts",
            *path,
            *(name for name in results.__dict__ if name.startswith("once ")),
        )
        for name in [name for name in results.__dict__ if name not in kept]:
            del results.__dict__[name]

    begin = time.thread_time()
    results.compute_layer_path(lambda: False)
    path_ms = 1000 * (time.thread_time() - begin)
    view = LayersView(Session(results), ascii_only=False)
    table = LayerTable(results, False)
    sorts = [
        (name, key) for name, (key, _) in WORKLOAD_COLUMNS.sorted_by.items() if key not in PRICED_COLUMNS
    ]

    def sort_by(key: str) -> Callable[[], object]:
        return lambda: table.sort(key, True)

    # Once: what a key press waits for that sorts by a column for the first time.
    first = {}
    for name, key in sorts:
        begin = time.thread_time()
        table.sort(key, True)
        first[name] = 1000 * (time.thread_time() - begin)
    figures = [
        ("open: sums, groups and lines", fastest(lambda: LayerTable(results, False).lines, forget), OPEN_MS),
        ("each row on its own line", fastest(lambda: LayerTable(results, True).lines), SORT_MS),
        ("equal rows together again", fastest(lambda: LayerTable(results, False).lines), SORT_MS),
        *((f"sorted by {name}, the first time", ms, SORT_MS) for name, ms in first.items()),
        *((f"sorted by {name}", fastest(sort_by(key)), SORT_MS) for name, key in sorts),
        ("filtered", fastest(lambda: table.filter("layer_a")), SORT_MS),
        ("a frame of 200x50", fastest(lambda: view.frame(200, 50)), SORT_MS),
    ]
    made = Table(f"fastest of {ROUNDS}, {rows} rows")
    made.add(f"{'simulate, once':<36}{run_ms:>8.0f} ms   {len(accounts)} rank class")
    made.add(f"{'critical path and slack, in a worker':<36}{path_ms:>8.0f} ms")
    for name, ms, budget in figures:
        made.judge(f"{name}, ms", ms, budget)
        made.add(f"{name:<36}{ms:>8.1f} ms   (budget {budget:.0f})")
    return finished(__file__, made, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
