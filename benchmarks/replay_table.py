"""Measured steps beside their replays: the table of docs/measured.md, for the traces of ../shared.

Prints the table; with --write puts it into the page. Usage: python benchmarks/replay_table.py [--write]
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from simcore.inputs import open_input  # noqa: E402
from simcore.measured import MeasuredRun  # noqa: E402
from simcore.measured.parameters import measured_results  # noqa: E402
from simcore.parameters import Parameters  # noqa: E402
from tests.measured.naive_replay import naive_ns, read_set  # noqa: E402
from tests.measured.test_replay_of_real_runs import SETS  # noqa: E402

TRACES = ROOT.parent / "shared" / "corpus" / "rank_trace"
PAGE = ROOT / "docs" / "measured.md"
BEGIN, END = "<!-- table: python benchmarks/replay_table.py --write -->\n", "<!-- end of the table -->\n"
HEAD = (
    "| set | ranks | measured | replayed | off | whole operations | off | compute x 2 | slowest rank / 2 |\n"
    "|---|---|---|---|---|---|---|---|---|\n"
)


def table() -> str:
    """A row for each complete set."""
    rows = []
    for name, stamp, _ in SETS:
        run = open_input(str(TRACES / name), stamp)
        assert isinstance(run, MeasuredRun)
        plain = measured_results(run, Parameters(), replay=True)
        double = measured_results(run, Parameters(compute_scale=2.0))
        compute = [sum(one.compute_ns().values()) for one in plain.accounts]
        slow = run.ranks[compute.index(max(compute))].number
        half = measured_results(run, Parameters(slow_rank=(f"{slow}=0.5",)))
        naive = naive_ns(read_set(TRACES / name, stamp))
        cells = [
            f"{name} {stamp}", str(len(run.ranks)), ms(run.step_time_ns), ms(plain.step_time_ns),
            off(plain.step_time_ns, run.step_time_ns), ms(naive), off(naive, run.step_time_ns),
            ms(double.step_time_ns), f"{ms(half.step_time_ns)} (rank {slow})",
        ]  # fmt: skip
        rows.append(f"| {' | '.join(cells)} |\n")
    return HEAD + "".join(rows)


def ms(ns: int) -> str:
    """ns as ms, as the files have them."""
    return f"{ns / 1e6:.2f} ms"


def off(ns: int, measured_ns: int) -> str:
    """How far it is from what was measured."""
    return f"{100 * (ns - measured_ns) / measured_ns:.3f} %"


def main() -> None:
    """Print the table, or write it."""
    made = table()
    if "--write" not in sys.argv[1:]:
        print(made, end="")
        return
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    PAGE.write_text(before + BEGIN + made + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
