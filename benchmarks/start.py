"""How long wltui takes from the command to its answer and to the first screen, whole processes.

Each figure is a ratio to `python -c "import textual.app"` or to `python -c pass`, run in turn with it
on the same machine, because machines differ.
Usage: python benchmarks/start.py [RUNS] [--write]; --write puts the table into benchmarks/README.md.
"""

from __future__ import annotations

import os
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from fcntl import ioctl
from pathlib import Path

import pyte

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- table: python benchmarks/start.py --write -->\n", "<!-- end of table -->\n"
FILE = str(ROOT / "fixtures" / "002_gpt_1024npu.txt")
NOTHING = [sys.executable, "-c", "pass"]
YARDSTICK = [sys.executable, "-c", "import textual.app"]
WLTUI = [sys.executable, "-m", "tui"]
COMMANDS = {
    "--version": ["--version"],
    "--help": ["--help"],
    "report --help": ["report", "--help"],
    "export --help": ["export", "--help"],
    "check": ["check", FILE],
    "report": ["report", FILE],
    "compare": ["compare", FILE, "--with", "--schedule gpipe"],
}
SCREEN = [*WLTUI, FILE]
ROWS, COLUMNS = 50, 200
# The words, the last panels and the last row: with these the summary is complete, but for the
# table of changes, which is simulated behind it.
COMPLETE = ("waits 6.987 s", "What would help most", "Notes (3)", "quit")
# Times `import textual.app`; and what answers at once, ms of processor time more than
# `python -c pass`.
BUDGETS = {"report": 1.7, "first screen": 2.5}
STATE = tempfile.TemporaryDirectory()
AT_ONCE, AT_ONCE_MS = ("--version", "--help", "report --help", "export --help"), 100


def process_seconds(command: list[str]) -> tuple[float, float]:
    """(wall time of a whole process, its own processor time), s."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    return time.perf_counter() - begin, usage.ru_utime + usage.ru_stime


def first_screen(command: list[str]) -> tuple[float, int]:
    """(seconds until the first screen is complete, bytes sent until then) in a pseudo-terminal."""
    begin = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        # Each begins without a session, and none is kept for who runs this.
        os.environ["XDG_STATE_HOME"] = f"{STATE.name}/{os.getpid()}"
        os.environ.pop("COLORTERM", None)
        os.execv(command[0], command)
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    # Only read while it runs: the emulator is slow and would hold the program back.
    chunks: list[tuple[float, bytes]] = []
    while select.select([terminal], [], [], 1.0 if chunks else 20.0)[0]:
        chunks.append((time.perf_counter() - begin, os.read(terminal, 1 << 16)))
    # Nobody reads the terminal any more: an orderly end would wait for its writes.
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(terminal)

    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    sent = 0
    for seconds, data in chunks:
        stream.feed(data)
        sent += len(data)
        text = "\n".join(screen.display)
        if all(words in text for words in COMPLETE):
            return seconds, sent
    raise SystemExit("no first screen")


def peak_mib(command: list[str]) -> float:
    """The most memory that a process had, MiB."""
    code = (
        f"import resource,subprocess;subprocess.run({command!r},stdout=-3);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    usage = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(usage.stdout) / 1024


def table(runs: int) -> tuple[str, bool]:
    """(the table, whether a budget is missed). One run more is made before, for bytecode and caches."""
    figures: dict[str, list[float]] = {}
    ratios: dict[str, list[float]] = {}
    more: list[dict[str, float]] = []
    sent = 0
    for run in range(runs + 1):
        least, textual = process_seconds(NOTHING), process_seconds(YARDSTICK)
        found = {name: process_seconds([*WLTUI, *words]) for name, words in COMMANDS.items()}
        seconds, sent = first_screen(SCREEN)
        if run == 0:
            continue
        walls = {name: wall for name, (wall, _) in found.items()} | {"first screen": seconds}
        for name, wall in {"": least[0], "import": textual[0], **walls}.items():
            figures.setdefault(name, []).append(wall * 1000)
            ratios.setdefault(name, []).append(wall / (textual[0] if name in BUDGETS else least[0]))
        more.append({name: (own - least[1]) * 1000 for name, (_, own) in found.items()})
    median = statistics.median
    lines = [
        f"python {sys.version.split()[0]}, {os.cpu_count()} cores, {runs} runs, medians, seed 002",
        f"python -c pass            {median(figures.pop('')):6.0f} ms",
        f"import textual.app        {median(figures.pop('import')):6.0f} ms",
    ]
    missed = False
    for name, walls_ms in figures.items():
        line = f"{name:<24}  {median(walls_ms):6.0f} ms   {median(ratios[name]):5.2f} times "
        if name in BUDGETS:
            missed |= median(ratios[name]) > BUDGETS[name]
            line += f"import textual.app (budget {BUDGETS[name]}; "
        elif name in AT_ONCE:
            # Processor time: what the answer takes when nobody else wants the machine.
            own_ms = median(one[name] for one in more)
            missed |= own_ms > AT_ONCE_MS
            line += f"python -c pass, {own_ms:.0f} ms of its own more (budget {AT_ONCE_MS}; "
        else:
            line += "python -c pass ("
        lines.append(f"{line}lowest {min(ratios[name]):.2f}, highest {max(ratios[name]):.2f})")
    report = [*WLTUI, *COMMANDS["report"]]
    lines += [
        f"report, peak memory       {peak_mib(report):6.1f} MiB (budget 100 MB)",
        f"first screen, sent        {sent / 1000:6.1f} kB at {COLUMNS}x{ROWS}, 256 colours",
    ]
    return "\n".join(lines) + "\n", missed


def main(words: list[str]) -> int:
    """Print or write the table. Exit status 1 when a budget is missed."""
    made, missed = table(next((int(word) for word in words if word.isdigit()), 15))
    print(made, end="")
    if "--write" in words:
        page = ROOT / "benchmarks" / "README.md"
        head, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
        page.write_text(f"{head}{BEGIN}```text\n{made}```\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
