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
import os
import pty
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Sequence
from fcntl import ioctl
from pathlib import Path
from struct import pack
from typing import Any, NamedTuple

import pyte

ROOT = Path(__file__).resolve().parents[1]
FILE = str(ROOT / "fixtures" / "002_gpt_1024npu.txt")
# The timeline is what the budgets are about; the summary is measured by start.py.
_TIMELINE = ["--screen", "timeline"]
RUNS = {
    "seed 002": [FILE, *_TIMELINE],
    "1 M spans": [FILE, "--world", "512", "--no-fold", *_TIMELINE],
}
ROWS, COLUMNS = 50, 200
QUESTION, ANSWER, PICTURE = b"\x1b[?2026$p", b"\x1b[?2026;2$y", b"\x1b[?2026h"
COMPLETE = ("At the cursor", "keys", "quit")
# An answer is over when nothing has come for this long.
QUIET_S = 0.2
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
BEGIN, END = "<!-- table: python benchmarks/screen.py --write -->\n", "<!-- end of table -->\n"

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
STATE = tempfile.TemporaryDirectory()


class Answer(NamedTuple):
    """What came for a key: seconds to the last byte, bytes, pictures."""

    seconds: float
    sent: int
    pictures: int


class Terminal:
    """A program in a pseudo-terminal that is read as fast as it comes."""

    def __init__(self, command: Sequence[str]) -> None:
        self.begun = time.perf_counter()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm-256color"
            # Each begins without a session, and none is kept for who runs this.
            os.environ["XDG_STATE_HOME"] = f"{STATE.name}/{os.getpid()}"
            for name in ("COLORTERM", "NO_COLOR", "SSH_CONNECTION", "TEXTUAL_FPS"):
                os.environ.pop(name, None)
            os.chdir(ROOT)
            os.execv(command[0], list(command))
        ioctl(self.master, termios.TIOCSWINSZ, pack("HHHH", ROWS, COLUMNS, 0, 0))
        # Only read while it runs: an emulator is slow and would hold the program back.
        self.chunks: list[tuple[float, bytes]] = []
        self._tail = b""
        self.pictures = 0

    def read(self, first_within: float) -> Answer:
        """All that comes until it is quiet."""
        begin = last = time.perf_counter()
        chunks = []
        while select.select([self.master], [], [], QUIET_S if chunks else first_within)[0]:
            try:
                data = os.read(self.master, 1 << 16)
            except OSError:
                break
            last = time.perf_counter()
            chunks.append(data)
            self.chunks.append((last - self.begun, data))
            os.write(self.master, ANSWER * (self._tail + data).count(QUESTION))
            self._tail = data[1 - len(QUESTION) :]
        joined = b"".join(chunks)
        pictures = joined.count(PICTURE)
        self.pictures += pictures
        return Answer(last - begin, len(joined), pictures)

    def press(self, key: str, within: float = 5.0) -> Answer:
        """The answer to a key."""
        os.write(self.master, key.encode())
        return self.read(within)

    def first_screen(self) -> tuple[float, int]:
        """(seconds from the start until the first screen was complete, bytes until then)."""
        screen = pyte.Screen(COLUMNS, ROWS)
        stream = pyte.ByteStream(screen)
        sent = 0
        for seconds, data in self.chunks:
            sent += len(data)
            stream.feed(data.replace(QUESTION, b""))
            if all(words in "\n".join(screen.display) for words in COMPLETE):
                return seconds, sent
        raise SystemExit("no first screen")

    def end(self, key: str = "q") -> None:
        """Quit, and give up after a while."""
        self.press(key, 1.0)
        until = time.perf_counter() + 5
        while not os.waitpid(self.pid, os.WNOHANG)[0]:
            if time.perf_counter() > until:
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.01)
        os.close(self.master)


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
        while not terminal.read(60.0).pictures:
            pass
        terminal.read(1.0)
        start = terminal.first_screen()
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
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import textual.app"], check=True)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def inside(log: str, words: list[str]) -> int:
    """The program, with a clock around what makes a picture of its own: frames, lines, differences.

    It is the processor time of the thread that draws, which other work on the machine does not lengthen.
    """
    sys.path.insert(0, str(ROOT))
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


class Budgets:
    """What was over its budget."""

    def __init__(self, run: str) -> None:
        self._run = run
        self.missed: list[str] = []

    def judge(self, what: str, figure: float, budget: float) -> None:
        if figure > budget:
            self.missed.append(f"{self._run}, {what}: {figure:.4g}, budget {budget:g}")


def lines_of(run: str, found: Figures, one_line: float, imported: float, budgets: Budgets) -> Iterator[str]:
    """The lines of one run. Only that of the seed has a budget for its start: the other simulates a while."""
    peers = PEERS if run == "seed 002" else {}
    yield f"{run:<12}   median  slowest   times the yardstick    bytes  pictures   others"
    seconds, sent = found.start
    first = f"first screen {seconds * 1000:6.0f} ms {seconds / imported:19.2f} {sent:20}"
    yield f"{first}             {peers.get('start', '')}".rstrip()
    if peers:
        budgets.judge("first screen, times import textual.app", seconds / imported, START_RATIO)
    for name, answers in found.answers.items():
        times = sorted(answer.seconds * 1000 for answer in answers)
        median, slowest = statistics.median(times), times[-1]
        most, pictures = max(answer.sent for answer in answers), max(answer.pictures for answer in answers)
        line = f"{name:<12} {median:6.1f} ms {slowest:5.0f} ms {median / one_line / 1000:10.2f} {most:20}"
        yield f"{line}  {pictures:8}   {peers.get(name, '')}".rstrip()
        if name.startswith("screen"):
            budgets.judge(f"{name}, median ms", median, SLOWEST_MS)
        else:
            budgets.judge(f"{name}, median ms", median, KEY_MS)
            budgets.judge(f"{name}, slowest ms", slowest, SLOWEST_MS)
        budgets.judge(f"{name}, bytes", most, BYTES.get(name, MOST_BYTES))
        budgets.judge(f"{name}, pictures", pictures, 1)
    own = [seconds * 1000 for seconds, _ in found.frames]
    full = min(loop for _, loop in found.frames)
    # As it would be had the loop beside it taken as long as the fastest one.
    steady = [seconds * 1000 * full / loop for seconds, loop in found.frames]
    p95 = statistics.quantiles(steady, n=20)[-1]
    for name, times in (("", own), (", by the loop beside each", steady)):
        middle, high = statistics.median(times), statistics.quantiles(times, n=20)[-1]
        yield f"own time of a frame of a zoom or pan{name}: median {middle:.1f} ms, p95 {high:.1f} ms"
    yield f"  {p95 / one_line / 1000:.1f} times the yardstick"
    yield f"an idle second: {found.idle} bytes"
    budgets.judge("own time of a frame of a zoom or pan, p95 ms", p95, FRAME_MS)
    budgets.judge("an idle second, bytes", found.idle, 0)


def table(rounds: int) -> tuple[str, bool]:
    """The table, and whether a budget was missed."""
    one_line, imported = yardstick(rounds), import_seconds()
    python = f"python {sys.version.split()[0]}, {os.cpu_count()} cores"
    lines = [
        f"{python}, {COLUMNS}x{ROWS}, 256 colours, {rounds} rounds",
        f"yardsticks: import textual.app {imported * 1000:.0f} ms; a key in a Textual app of one line "
        f"{one_line * 1000:.1f} ms",
    ]
    missed: list[str] = []
    for run, words in RUNS.items():
        budgets = Budgets(run)
        lines += ["", *lines_of(run, measured(words, rounds), one_line, imported, budgets)]
        missed += budgets.missed
    lines += ["", *(f"over budget: {words}" for words in missed or ["nothing"])]
    return "\n".join(lines) + "\n", bool(missed)


def main(words: list[str]) -> int:
    """Print or write the table. Exit status 1 when a budget is missed."""
    if words[:1] == ["--inside"]:
        return inside(words[1], words[2:])
    rounds = next((int(word) for word in words if word.isdigit()), 15)
    made, missed = table(rounds)
    print(made, end="")
    if "--write" in words:
        page = ROOT / "benchmarks" / "README.md"
        head, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
        page.write_text(f"{head}{BEGIN}```text\n{made}```\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
