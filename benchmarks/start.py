"""How long wltui takes from the command to its answer and to the first screen, whole processes.

Each figure is a ratio to `python -c "import textual.app"` or to `python -c pass`, run in turn with it
on the same machine, because machines differ.
Usage: python benchmarks/start.py [RUNS] [--write]; --write puts the table into benchmarks/README.md.
Exit status 1 when a budget is missed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measuring import (
    IMPORT_TEXTUAL,
    SEED_002,
    TRACE_004,
    WLTUI,
    Table,
    finished,
    number_of,
    succeeded,
)
from benchmarks.terminal import COLUMNS, ROWS, Terminal

NOTHING = (sys.executable, "-c", "pass")
COMMANDS = {
    "--version": ["--version"],
    "--help": ["--help"],
    "report --help": ["report", "--help"],
    "export --help": ["export", "--help"],
    "check": ["check", SEED_002],
    "report": ["report", SEED_002],
    "report --json": ["report", SEED_002, "--json"],
    "compare": ["compare", SEED_002, "--with", "--schedule gpipe"],
}
FIRST = "first screen"
# The words, the last panels and the last row: with these the summary is complete, but for the
# table of changes, which is simulated behind it.
COMPLETE = ("6.987 s (47.3 %)", "What would help most", "8 notes", "quit")
# Inputs whose sentences, worst findings and changes take longer than the rest: their first picture has the
# step, the bars and the notes, and says that these come.
_MODEL = "--model llama-3-70b --gpu h100 --world 256 --tp 8 --pp 8 --microbatches 16"
FIRST_PICTURES = {
    "slow rank": [SEED_002, "--slow-rank", "77=1.5"],
    "slow link": [SEED_002, "--slow-link", "0:77=0.1"],
    "model, slow rank": [*_MODEL.split(), "--slow-rank", "37=1.3"],
    "trace": [TRACE_004],
}
IN_FIRST_PICTURE = ("% of step", "What would help most", "Notes", "quit")
# Times `import textual.app`; and what answers at once, ms of processor time more than
# `python -c pass`.
BUDGETS = {"report": 1.4, "report --json": 1.6, FIRST: 1.9} | dict.fromkeys(FIRST_PICTURES, 2.0)
AT_ONCE, AT_ONCE_MS = ("--version", "--help", "report --help", "export --help"), 100
REPORT_MB = 100


def first_screen() -> tuple[float, int]:
    """(seconds until the first screen is complete, bytes sent until then) in a pseudo-terminal."""
    terminal = Terminal([*WLTUI, SEED_002])
    terminal.read_first(20.0)
    terminal.kill()
    return terminal.first_screen(COMPLETE)


def first_picture(words: list[str]) -> float:
    """Seconds until the first picture of an input."""
    terminal = Terminal([*WLTUI, *words])
    seconds = terminal.first_picture(IN_FIRST_PICTURE)
    terminal.kill()
    return seconds


def table(runs: int) -> Table:
    """The table of so many runs. One more is made before them, for bytecode and caches."""
    walls: dict[str, list[float]] = {name: [] for name in (*COMMANDS, FIRST, *FIRST_PICTURES)}
    ratios: dict[str, list[float]] = {name: [] for name in walls}
    more_ms: dict[str, list[float]] = {name: [] for name in COMMANDS}
    yardsticks: dict[str, list[float]] = {"python -c pass": [], "import textual.app": []}
    peaks: list[float] = []
    sent = 0
    for run in range(runs + 1):
        least, textual = succeeded(NOTHING), succeeded(IMPORT_TEXTUAL)
        found = {name: succeeded([*WLTUI, *words]) for name, words in COMMANDS.items()}
        first, sent = first_screen()
        firsts = {FIRST: first, **{name: first_picture(words) for name, words in FIRST_PICTURES.items()}}
        if run == 0:
            continue
        yardsticks["python -c pass"].append(least.seconds)
        yardsticks["import textual.app"].append(textual.seconds)
        for name, seconds in {**{name: one.seconds for name, one in found.items()}, **firsts}.items():
            walls[name].append(seconds)
            ratios[name].append(seconds / (textual if name in BUDGETS else least).seconds)
        for name, one in found.items():
            more_ms[name].append(1000 * (one.own_seconds - least.own_seconds))
        peaks.append(found["report"].peak_mb)
    made = Table(f"{runs} runs, medians, seed 002")
    for title, times in yardsticks.items():
        made.add(f"{title:<31}  {1000 * median(times):6.0f} ms")
    for name, times in walls.items():
        ratio = median(ratios[name])
        title = f"first picture, {name}" if name in FIRST_PICTURES else name
        line = f"{title:<31}  {1000 * median(times):6.0f} ms   {ratio:5.2f} times "
        if name in BUDGETS:
            made.judge(f"{name}, times import textual.app", ratio, BUDGETS[name])
            line += f"import textual.app (budget {BUDGETS[name]}; "
        elif name in AT_ONCE:
            # Processor time: what the answer takes when nobody else wants the machine.
            own_ms = median(more_ms[name])
            made.judge(f"{name}, ms of its own more than python -c pass", own_ms, AT_ONCE_MS)
            line += f"python -c pass, {own_ms:.0f} ms of its own more (budget {AT_ONCE_MS}; "
        else:
            line += "python -c pass ("
        made.add(f"{line}lowest {min(ratios[name]):.2f}, highest {max(ratios[name]):.2f})")
    made.add(f"{'report, peak memory':<31}  {max(peaks):6.1f} MB (budget {REPORT_MB})")
    made.judge("report, peak memory, MB", max(peaks), REPORT_MB)
    made.add(f"{'first screen, sent':<31}  {sent / 1000:6.1f} kB at {COLUMNS}x{ROWS}, 256 colours")
    return made


def main(words: list[str]) -> int:
    """Print or write the table. Exit status 1 when a budget is missed."""
    return finished(__file__, table(int(number_of(words, 15))), words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
