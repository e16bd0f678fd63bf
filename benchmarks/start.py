"""How long wltui takes from the command to the report and to the first screen, whole processes.

Each figure is a ratio to `python -c "import textual.app"`, run in turn with it on the same
machine, because machines differ. Usage: python benchmarks/start.py [RUNS]
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

FILE = str(Path(__file__).resolve().parents[1] / "fixtures" / "002_gpt_1024npu.txt")
YARDSTICK = [sys.executable, "-c", "import textual.app"]
REPORT = [sys.executable, "-m", "tui", "report", FILE]
SCREEN = [sys.executable, "-m", "tui", FILE]
ROWS, COLUMNS = 50, 200
# The words, the last panels and the last row: with these the summary is complete, but for the
# table of changes, which is simulated behind it.
COMPLETE = ("waits 6.987 s", "What would help most", "Notes (3)", "quit")
BUDGETS = {"report": 1.7, "first screen": 2.5}
STATE = tempfile.TemporaryDirectory()


def process_seconds(command: list[str]) -> float:
    """Wall time of a whole process."""
    begin = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


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


def main(runs: int) -> int:
    """Print the table. Exit status 1 when a budget is missed."""
    figures: dict[str, list[float]] = {"report": [], "first screen": []}
    ratios: dict[str, list[float]] = {"report": [], "first screen": []}
    yardsticks = []
    sent = 0
    for run in range(runs + 1):
        yardstick = process_seconds(YARDSTICK)
        report = process_seconds(REPORT)
        screen, sent = first_screen(SCREEN)
        if run == 0:
            continue
        yardsticks.append(yardstick)
        for name, seconds in (("report", report), ("first screen", screen)):
            figures[name].append(seconds)
            ratios[name].append(seconds / yardstick)
    usage = subprocess.run(
        [sys.executable, "-c", f"import resource,subprocess;subprocess.run({REPORT!r},stdout=-3);"
         "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    print(f"python {sys.version.split()[0]}, {os.cpu_count()} cores, {runs} runs, medians, seed 002")
    print(f"import textual.app        {statistics.median(yardsticks) * 1000:6.0f} ms")
    missed = False
    for name, seconds_list in figures.items():
        ratio = statistics.median(ratios[name])
        missed |= ratio > BUDGETS[name]
        print(
            f"{name:<24}  {statistics.median(seconds_list) * 1000:6.0f} ms   {ratio:.2f} times it "
            f"(budget {BUDGETS[name]}; lowest {min(ratios[name]):.2f}, highest {max(ratios[name]):.2f})"
        )
    print(f"report, peak memory       {int(usage.stdout) / 1024:6.1f} MiB (budget 100 MB)")
    print(f"first screen, sent        {sent / 1000:6.1f} kB at {COLUMNS}x{ROWS}, 256 colours")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 15))
