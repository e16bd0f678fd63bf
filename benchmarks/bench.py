"""Runs every program that measures, writes their tables and lists the missed budgets (`make bench`).

The programs run one after another, and each runs to its end whatever another one missed.
Usage: python benchmarks/bench.py [PROGRAM]...; without a name, all of them. Exit status 1 when a budget is
missed or a program fails.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measuring import OVER, environment

FOLDER = Path(__file__).resolve().parent

PROGRAMS = (
    "start",
    "screen",
    "scrubbing",
    "calls",
    "engine",
    "sweeping",
    "what_if",
    "layer_table",
    "reading",
    "execution_traces",
    "profiles",
    "steps",
    "dumps",
    "flows",
    "shared_network",
    "accuracy",
)
# Commands of their own: they make the constants of operations out of ../shared, with numpy and scipy.
FITS = ("fit_attention", "fit_experts", "fit_products", "fit_servers", "fit_sustained")
# No part of `make bench`: they search for as long as they are given, or (`suite`) run the tests.
SEARCHES = ("damaged_traces", "fuzz_readers", "mutants", "soak", "suite", "trace_shapes")


def missed_by(program: str) -> list[str]:
    """Runs a program with --write and passes on what it prints. Gives what it was over."""
    found = []
    command = [sys.executable, str(FOLDER / f"{program}.py"), "--write"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            if line.startswith(OVER) and line.strip() != f"{OVER}nothing":
                found.append(line.removeprefix(OVER).strip())
    if running.returncode and not found:
        found.append(f"ended with status {running.returncode}")
    return found


def main(programs: Sequence[str]) -> int:
    """Runs the programs and prints the list. Gives the exit status."""
    if unknown := [name for name in programs if name not in PROGRAMS]:
        raise SystemExit(f"no such program: {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    begin = time.monotonic()
    missed = []
    for program in programs or PROGRAMS:
        print(f"--- {program}, after {time.monotonic() - begin:.0f} s", flush=True)
        missed += [f"{program}: {words}" for words in missed_by(program)]
    print(f"--- {time.monotonic() - begin:.0f} s; {len(missed) or 'no'} budgets missed")
    print("".join(f"{words}\n" for words in missed), end="")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
