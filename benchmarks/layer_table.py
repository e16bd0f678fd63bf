"""How long the layer table of 100,000 rows takes that all differ, beside the run that it is of.

What a key press waits for: the table when it is first opened, each row on its own line, equal rows
together again, each sort, the filter, and one frame. Usage: python benchmarks/layer_table.py [ROWS]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from simcore.analysis import Results  # noqa: E402
from simcore.parameters import Parameters  # noqa: E402
from simcore.simulation import simulate  # noqa: E402
from simcore.workload import open_workload  # noqa: E402
from tui.layers.table import PRICED, SORTED_BY, Table  # noqa: E402
from tui.layers.view import LayersView  # noqa: E402
from tui.session import Session  # noqa: E402

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


def main(rows: int) -> int:
    """Print the table. Exit status 1 when a budget is missed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.txt"
        path.write_text(workload_text(rows), encoding="utf-8")
        workload = open_workload(str(path))
    begin = time.thread_time()
    simulation = simulate(workload, Parameters())
    run_ms = 1000 * (time.thread_time() - begin)
    results = Results(simulation)
    accounts = results.accounts
    path = "critical_path", "layer_critical_ns", "slacks", "layer_slack_ns"

    def forget() -> None:
        # A worker finds the critical path while the table is open.
        for name in [name for name in results.__dict__ if name not in ("simulation", "accounts", *path)]:
            del results.__dict__[name]

    begin = time.thread_time()
    results.compute_layer_path(lambda: False)
    path_ms = 1000 * (time.thread_time() - begin)
    view = LayersView(Session(workload, results), ascii_only=False)
    table = Table(results, False)
    sorts = [(name, key) for name, (key, _) in SORTED_BY.items() if key not in PRICED]

    def sort_by(key: str) -> Callable[[], object]:
        return lambda: table.sort(key, True)

    # Once: what a key press waits for that sorts by a column for the first time.
    first = {}
    for name, key in sorts:
        begin = time.thread_time()
        table.sort(key, True)
        first[name] = 1000 * (time.thread_time() - begin)
    figures = [
        ("open: sums, groups and lines", fastest(lambda: Table(results, False).lines, forget), OPEN_MS),
        ("each row on its own line", fastest(lambda: Table(results, True).lines), SORT_MS),
        ("equal rows together again", fastest(lambda: Table(results, False).lines), SORT_MS),
        *((f"sorted by {name}, the first time", ms, SORT_MS) for name, ms in first.items()),
        *((f"sorted by {name}", fastest(sort_by(key)), SORT_MS) for name, key in sorts),
        ("filtered", fastest(lambda: table.filter("layer_a")), SORT_MS),
        ("a frame of 200x50", fastest(lambda: view.frame(200, 50)), SORT_MS),
    ]
    print(f"python {sys.version.split()[0]}, {os.cpu_count()} cores, fastest of {ROUNDS}, {rows} rows")
    print(f"{'simulate, once':<36}{run_ms:>8.0f} ms   {len(accounts)} rank class")
    print(f"{'critical path and slack, in a worker':<36}{path_ms:>8.0f} ms")
    missed = False
    for name, ms, budget in figures:
        missed |= ms > budget
        print(f"{name:<36}{ms:>8.1f} ms   (budget {budget:.0f}){'!' if ms > budget else ''}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
