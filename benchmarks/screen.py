"""The screen from outside: how long a key takes to its last byte, how many bytes, how many pictures.

Drives the real program in a pseudo-terminal of 200x50 cells that knows synchronized output, on seed
002 and on the same file with 512 ranks simulated one by one, which is a million spans. Beside each
figure stand its budget and what other programs need; beside each time the same of a Textual app that
changes one line, on the same machine in the same run.

Usage: python benchmarks/screen.py [ROUNDS] [--write]; --write puts the table into benchmarks/README.md.
Exit status 1 when a budget is missed.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measuring import (
    IMPORT_TEXTUAL,
    SEED_002,
    Table,
    finished,
    number_of,
    succeeded,
)
from benchmarks.terminal import COLUMNS, ROWS, Answer, Terminal

# The timeline is what the budgets are about; the summary is measured by start.py.
_TIMELINE = ["--screen", "timeline"]
RUNS = {
    "seed 002": [SEED_002, *_TIMELINE],
    "1 M spans": [SEED_002, "--world", "512", "--no-fold", *_TIMELINE],
}
COMPLETE = ("At the cursor", "keys", "quit")
# What is measured, in this order in each round; the keys behind "" only lead back to the beginning.
KEYS = {
    "zoom": "w", "pan": "d", "cursor": "l", "lane": "j", "next span": ".", "unfold": " ", "fold": " ",
    "screen 3": "3", "screen 5": "5", "screen 2": "2", "": "ah0g",
}  # fmt: skip
START_RATIO, KEY_MS, SLOWEST_MS, FRAME_MS = 2.5, 50.0, 100.0, 16.0
BYTES = {"cursor": 2_000, "lane": 2_000, "next span": 2_000, "screen 2": 40_000}
MOST_BYTES = 30_000
# Turns of a loop that is timed beside each frame: a shared machine is slower by half for seconds at a time.
LOOP = 20_000
PEERS = {
    "start": "htop 94, flameshow 330, memray 370, visidata 417, posting 850 ms",
    "zoom": "nsys-ai 339 ms a frame at 100 k spans",
    "pan": "flameshow 49 kB, memray 22-25 kB",
    "cursor": "visidata 0.9 kB, htop 0.46 kB",
}

# A Textual app that answers each key with one changed line: no program with Textual is faster.
YARDSTICK = """
from textual.app import App
from textual.widgets import Static

class One(App):
    count = 0
    def compose(self):
        yield Static("0")
    def on_key(self):
        self.count += 1
        self.query_one(Static).update(str(self.count))

One().run(mouse=False)
"""


class Figures(NamedTuple):
    """Of one run: the start, the answers to each key, of each frame of a zoom or pan its own seconds and
    those of a loop beside it, bytes of an idle second.
    """

    start: tuple[float, int]
    answers: dict[str, list[Answer]]
    frames: list[tuple[float, float]]
    idle: int


def measured(words: list[str], rounds: int) -> Figures:
    """One session of the program."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "frames.json"
        terminal = Terminal([sys.executable, __file__, "--inside", str(log), *words])
        terminal.read_first(60.0)
        start = terminal.first_screen(COMPLETE)
        answers: dict[str, list[Answer]] = {name: [] for name in KEYS if name}
        # Which of all pictures were those of a zoom or pan.
        moves: list[int] = []
        for number in range(rounds + 1):
            for name, key in KEYS.items():
                before = terminal.pictures
                answer = terminal.press(key)
                if name in ("zoom", "pan") and number:
                    moves += range(before, terminal.pictures)
                # The first round imports what the screens need; it is the start's, not the key's.
                if name and number:
                    answers[name].append(answer)
        idle = terminal.read(1.0).sent
        terminal.end()
        own = json.loads(log.read_text(encoding="utf-8"))
        return Figures(start, answers, [own[index] for index in moves], idle)


def yardstick(rounds: int) -> float:
    """Median seconds of a key in the app of one line."""
    terminal = Terminal([sys.executable, "-c", YARDSTICK])
    terminal.read(20.0)
    terminal.read(1.0)
    found = statistics.median(terminal.press("x").seconds for _ in range(rounds * 2))
    terminal.end("\x11")
    return found


def import_seconds() -> float:
    """Median of a whole process that imports Textual."""
    return statistics.median(succeeded(IMPORT_TEXTUAL).seconds for _ in range(5))


def inside(log: str, words: list[str]) -> int:
    """The program, with a clock around what makes a picture of its own: frames, lines, differences.

    It is the processor time of the thread that draws, which other work on the machine does not lengthen.
    """
    from tui.cli import main as wltui
    from tui.frame_view import FrameView
    from tui.terminal.display import Display
    from tui.terminal.driver import TerminalDriver

    frames: list[tuple[float, float]] = []
    now = {"spent": 0.0, "since": 0.0}

    def timed(owner: type, name: str) -> None:
        original = getattr(owner, name)

        def method(self: Any, *arguments: Any) -> Any:
            if now["since"]:
                return original(self, *arguments)
            now["since"] = time.thread_time()
            try:
                return original(self, *arguments)
            finally:
                now["spent"] += time.thread_time() - now["since"]
                now["since"] = 0.0

        setattr(owner, name, method)

    def sent(self: Any, sequences: str, original: Any = TerminalDriver.write_picture) -> None:
        spent = now["spent"] + (time.thread_time() - now["since"] if now["since"] else 0.0)
        begin = time.thread_time()
        for _ in range(LOOP):
            pass
        frames.append((spent, time.thread_time() - begin))
        # What is still to come of this picture is the next one's; what was counted is not counted again.
        now["spent"] = 0.0
        if now["since"]:
            now["since"] = time.thread_time()
        original(self, sequences)

    for owner, name in (
        (FrameView, "redraw_now"),
        (FrameView, "render_line"),
        (Display, "show"),
        (Display, "_send"),
    ):
        timed(owner, name)
    TerminalDriver.write_picture = sent  # type: ignore[method-assign]
    status = wltui(words)
    Path(log).write_text(json.dumps(frames), encoding="utf-8")
    return status


def add_run(table: Table, run: str, found: Figures, one_line: float, imported: float) -> None:
    """The lines of one run. Only that of the seed has a budget for its start: the other simulates a while."""
    peers = PEERS if run == "seed 002" else {}
    table.add(f"{run:<12}   median  slowest   times the yardstick    bytes  pictures   others")
    seconds, sent = found.start
    first = f"first screen {seconds * 1000:6.0f} ms {seconds / imported:19.2f} {sent:20}"
    table.add(f"{first}             {peers.get('start', '')}".rstrip())
    if peers:
        table.judge(f"{run}, first screen, times import textual.app", seconds / imported, START_RATIO)
    for name, answers in found.answers.items():
        times = sorted(answer.seconds * 1000 for answer in answers)
        median, slowest = statistics.median(times), times[-1]
        most, pictures = max(answer.sent for answer in answers), max(answer.pictures for answer in answers)
        line = f"{name:<12} {median:6.1f} ms {slowest:5.0f} ms {median / one_line / 1000:10.2f} {most:20}"
        table.add(f"{line}  {pictures:8}   {peers.get(name, '')}".rstrip())
        if name.startswith("screen"):
            table.judge(f"{run}, {name}, median ms", median, SLOWEST_MS)
        else:
            table.judge(f"{run}, {name}, median ms", median, KEY_MS)
            table.judge(f"{run}, {name}, slowest ms", slowest, SLOWEST_MS)
        table.judge(f"{run}, {name}, bytes", most, BYTES.get(name, MOST_BYTES))
        table.judge(f"{run}, {name}, pictures", pictures, 1)
    own = [seconds * 1000 for seconds, _ in found.frames]
    full = min(loop for _, loop in found.frames)
    # As it would be had the loop beside it taken as long as the fastest one.
    steady = [seconds * 1000 * full / loop for seconds, loop in found.frames]
    p95 = statistics.quantiles(steady, n=20)[-1]
    for name, times in (("", own), (", by the loop beside each", steady)):
        middle, high = statistics.median(times), statistics.quantiles(times, n=20)[-1]
        table.add(f"own time of a frame of a zoom or pan{name}: median {middle:.1f} ms, p95 {high:.1f} ms")
    table.add(f"  {p95 / one_line / 1000:.1f} times the yardstick")
    table.add(f"an idle second: {found.idle} bytes")
    table.judge(f"{run}, own time of a frame of a zoom or pan, p95 ms", p95, FRAME_MS)
    table.judge(f"{run}, an idle second, bytes", found.idle, 0)


def main(words: list[str]) -> int:
    """Print or write the table. Exit status 1 when a budget is missed."""
    if words[:1] == ["--inside"]:
        return inside(words[1], words[2:])
    rounds = int(number_of(words, 15))
    one_line, imported = yardstick(rounds), import_seconds()
    table = Table(f"{COLUMNS}x{ROWS}, 256 colours, {rounds} rounds")
    table.add(
        f"yardsticks: import textual.app {imported * 1000:.0f} ms; a key in a Textual app of one line "
        f"{one_line * 1000:.1f} ms"
    )
    for run, flags in RUNS.items():
        table.add()
        add_run(table, run, measured(flags, rounds), one_line, imported)
    table.add()
    return finished(__file__, table, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
