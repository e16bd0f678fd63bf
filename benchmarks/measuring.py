"""What the programs that measure share: whole processes and what they take, budgets, tables and their pages.

A program makes a `Table`, judges its figures by their budgets and ends with `finished`, which prints the
table, writes it into its page under --write and gives the exit status: 1 when a budget is missed.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "benchmarks" / "README.md"
SEED_002 = str(ROOT / "fixtures" / "002_gpt_1024npu.txt")
TRACE_004 = str(ROOT / "fixtures" / "004_megatron_rank7_trace.txt")
WLTUI = (sys.executable, "-m", "tui")
IMPORT_TEXTUAL = (sys.executable, "-c", "import textual.app")
# Begins the line of each budget that is missed; `bench.py` gathers these.
OVER = "over budget: "

# A process begins with the peak memory of the one that starts it: a small one stands between.
_RUNNER = """
import json, resource, subprocess, sys, time
begin = time.perf_counter()
status = subprocess.run(sys.argv[1:], stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL).returncode
seconds = time.perf_counter() - begin
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([status, seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024]), file=sys.stderr)
"""


class Process(NamedTuple):
    """A whole process that has ended: its exit status, s from start to end, s of processor time, the most
    memory it had in MB (10^6 bytes), and the last line that it wrote.
    """

    status: int
    seconds: float
    own_seconds: float
    peak_mb: float
    said: str


def environment() -> dict[str, str]:
    """The environment of what is measured: bytecode is kept, as it is for whoever has wltui installed."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def process(command: Sequence[str]) -> Process:
    """Runs a command in the checkout without a terminal."""
    done = subprocess.run(
        [sys.executable, "-ISc", _RUNNER, *command],
        capture_output=True, text=True, errors="replace", check=True, cwd=ROOT, env=environment(),
    )  # fmt: skip
    status, seconds, own_seconds, peak_bytes = json.loads(done.stderr.splitlines()[-1])
    said = done.stdout.strip().split("\n")[-1]
    return Process(status, seconds, own_seconds, peak_bytes / 1e6, said)


def succeeded(command: Sequence[str]) -> Process:
    """As `process`, and ends this program when the command fails."""
    done = process(command)
    if done.status:
        raise SystemExit(f"{' '.join(command)} ended with {done.status}: {done.said}")
    return done


def median_seconds(run: Callable[[], object], runs: int) -> float:
    """Median s of the processor of a call in this process."""
    times = []
    for _ in range(runs):
        begin = time.process_time()
        run()
        times.append(time.process_time() - begin)
    return statistics.median(times)


def number_of(words: Sequence[str], default: float) -> float:
    """The first number among the words of the command line."""
    return next((float(word) for word in words if word.replace(".", "", 1).isdigit()), default)


class Table:
    """The lines of a table, and the budgets that its figures miss."""

    def __init__(self, heading: str) -> None:
        self.lines = [f"python {sys.version.split()[0]}, {os.cpu_count()} cores, {heading}"]
        self.missed: list[str] = []

    def add(self, line: str = "") -> None:
        """One line more."""
        self.lines.append(line.rstrip())

    def judge(self, what: str, figure: float, budget: float) -> None:
        """Notes that `what` is over its budget, if it is."""
        if figure > budget:
            self.missed.append(f"{what}: {figure:.4g}, budget {budget:g}")

    @property
    def text(self) -> str:
        """All lines, those of the missed budgets last."""
        over = [f"{OVER}{words}" for words in self.missed or ["nothing"]]
        return "\n".join([*self.lines, *over]) + "\n"


def marks(program: str, name: str = "") -> tuple[str, str]:
    """The lines around a table in its page; name: which one, where a program makes several."""
    title, ended = (f"table {name}", name) if name else ("table", "table")
    return f"<!-- {title}: python benchmarks/{program}.py --write -->\n", f"<!-- end of {ended} -->\n"


def put(page: Path, program: str, made: str, name: str = "") -> None:
    """Writes a table between its marks in a page, which must have them."""
    begin, end = marks(program, name)
    head, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, ended, rest = rest.partition(end)
    if not found or not ended:
        raise SystemExit(f"{page.name} has no place for a table: {begin.strip()} ... {end.strip()}")
    page.write_text(f"{head}{begin}{made}{end}{rest}", encoding="utf-8")


def finished(program: str, table: Table, words: Sequence[str]) -> int:
    """Prints the table of a program, and writes it into the README under --write. Gives the exit status."""
    print(table.text, end="", flush=True)
    if "--write" in words:
        put(PAGE, Path(program).stem, f"```text\n{table.text}```\n")
    return int(bool(table.missed))
