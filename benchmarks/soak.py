"""The screen under random keys, for as long as you like: crashes, silence, growing memory, wrong pictures.

Every binding of every screen and prompt, words typed into prompts, pastes, the mouse, other sizes, in a
pseudo-terminal read by a terminal emulator. Sessions are numbered: session N opens the kind of run N of RUNS,
and what it does follows from --seed and N alone (not what the machine's load makes of it). Every PROBE
actions the screen must answer Ctrl+L and draw what it showed before. Parameters may make a run of any size
(--jitter folds no ranks: 250 MB of 1,024): above MOST_MB the run that was opened is loaded again, and memory
must come back below. A session ends as a user ends it: the terminal is restored, the status 0.

Usage: python benchmarks/soak.py [--minutes N] [--seed N] [--session N] [--steps N] [--run KIND]...
       [--screens] [--flat] [--load N]
--session runs that session alone, --run sessions of these kinds of runs. --screens: a session of --steps
actions on each screen, which is opened again after each probe. --flat: one session for --minutes, which goes
back to the run that was opened every RETURN probes and measures its memory there; it fails where the least
of the last quarter is over MOST_GROWTH_MB above the least of the second: a leak adds to the least, the runs
that were kept, of 32 MB together, come and go. --load: so many processes compute beside.
On a failure: the seed, the session, the last keys, the screen; status 1.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from textual.binding import Binding  # noqa: E402

from tests.tui.pseudo_terminal import wltui  # noqa: E402
from tui.app import WltuiApp  # noqa: E402
from tui.keys import key_name  # noqa: E402
from tui.screens import SCREENS, all_bindings  # noqa: E402

RUNS = {
    "workload": "fixtures/002_gpt_1024npu.txt",
    "mistakes": "fixtures/001_moe_128npu_with_mistakes.txt",
    "unfolded": "fixtures/002_gpt_1024npu.txt --world 128 --no-fold --slow-rank 3=1.5",
    "trace": "fixtures/004_megatron_rank7_trace.txt",
    "table": "fixtures/003_gpt2_large_op_table.txt",
    "shared": "fixtures/000_gpt13b_tp4_old_header.txt --network shared",
    "kineto": "tests/kineto/cases/late_by_data_loading",
    "hang": "fixtures/hangs/other_order",
    "steps": "tests/kineto/cases/pipeline_chrome.json",
    "flows": "fixtures/000_gpt13b_tp4_old_header.txt --network flows --cluster spectrum-x:8 --world 8",
    "inference": "fixtures/inputs/infer_pp4.txt",
    "execution": "fixtures/inputs/group0",
    "model": "--model llama-3-8b --world 64 --tp 4 --pp 4",
    "replay": "tests/kineto/cases/late_by_data_loading --slow-rank 1=1.5",
    "pair": "fixtures/000_gpt13b_tp4_old_header.txt --against fixtures/002_gpt_1024npu.txt",
}
SIZES = ((80, 24), (120, 36), (200, 50), (60, 12), (30, 8), (12, 3), (240, 60), (81, 25), (1, 1))
WORDS = (
    "mlp", "att", "rank:3", "fwd", "0", "7", "-1", "1e400", "1.5", "37=1.3", "stage", "a", "\u00e9\u4e2d",
    "zz zz", "ring:8:400:500", "h200-8", "interleaved", "9" * 40, "'", '"[/]', "/nowhere", "help", "dur>1ms",
)  # fmt: skip
BYTES = {
    "Esc": "\x1b", "Enter": "\r", "Space": " ", "Tab": "\t", "Backspace": "\x7f", "Delete": "\x1b[3~",
    "Insert": "\x1b[2~", "PageUp": "\x1b[5~", "PageDown": "\x1b[6~", "Home": "\x1b[H", "End": "\x1b[F",
    "Up": "\x1b[A", "Down": "\x1b[B", "Right": "\x1b[C", "Left": "\x1b[D", "Shift+Tab": "\x1b[Z",
    "Shift+Up": "\x1b[1;2A", "Shift+Down": "\x1b[1;2B", "Shift+Right": "\x1b[1;2C", "Shift+Left": "\x1b[1;2D",
}  # fmt: skip
# These end the program, or stop it for the shell that is not there.
ENDS = {"app.quit", "quit", "suspend_process", "app.suspend_process"}
PROBE = 25
# Probes between two returns to the run that was opened.
RETURN = 4
PATIENCE_S = 60.0
# What `--no-fold` may take of 1024 ranks.
MOST_MB = 600.0
MOST_GROWTH_MB = 5.0
# Of what it sent last: a traceback with all its values.
KEPT_BYTES = 400_000
REDRAW, CLEAR, LOAD = "\x0c", "\x15", "\x0f"


class Found(Exception):
    """What went wrong."""


class Quit(Exception):
    """The palette was open and `quit` was chosen in it: the session ends there, as it may."""


class Action(NamedTuple):
    """Keys as a terminal sends them, or another size."""

    keys: str = ""
    size: tuple[int, int] | None = None

    def __str__(self) -> str:
        return f"size {self.size[0]}x{self.size[1]}" if self.size else repr(self.keys)


def bound_keys() -> list[str]:
    """What a terminal sends for each key of each binding; those that are the terminal's own are left out."""
    found = set()
    for bindings in (*all_bindings().values(), WltuiApp.BINDINGS):
        for one in bindings:
            assert isinstance(one, Binding)
            if one.action not in ENDS:
                found.update(filter(None, map(sent, one.key.split(","))))
    return sorted(found)


def sent(key: str) -> str:
    """The bytes of a key; nothing for one that terminals do not send."""
    name = key_name(key)
    if len(name) == 1:
        return name
    if name.startswith("Ctrl+") and len(name) == 6:
        return chr(ord(name[-1]) & 0x1F)
    return BYTES.get(name, "")


def actions(choose: random.Random) -> Iterator[Action]:
    """What a session does, without an end."""
    keys = bound_keys()
    columns, rows = 120, 36
    while True:
        kind = choose.random()
        if kind < 0.62:
            yield Action(choose.choice(keys))
        elif kind < 0.72:
            yield Action(choose.choice(keys) * choose.choice((2, 3, 10, 40)))
        elif kind < 0.80:
            # A prompt, something in it, and out again in one way or another.
            yield Action(choose.choice("/\\:m'x") if choose.random() < 0.8 else "5" + "j" * 3 + "\r")
            yield Action(choose.choice(WORDS))
            yield Action(choose.choice(["\r", "\x1b", "\t", "\x1b[A", "\x7f", "\x1b[B\r"]))
        elif kind < 0.84:
            yield Action(choose.choice(WORDS) + choose.choice(("\r", "\x1b", "")))
        elif kind < 0.93:
            x, y = choose.randint(1, columns), choose.randint(1, rows)
            button = choose.choice((0, 0, 0, 2, 64, 65, 68, 69))
            across, down = choose.randint(1, columns), choose.randint(1, rows)
            press = f"\x1b[<{button};{x};{y}M"
            drag = f"\x1b[<32;{across};{down}M\x1b[<0;{across};{down}m" if button == 0 else ""
            yield Action(press + (drag or f"\x1b[<{button};{x};{y}m"))
        elif kind < 0.95:
            yield Action(f"\x1b[200~{choose.choice(WORDS)}\n{choose.choice(WORDS)}\x1b[201~")
        elif kind < 0.97:
            yield Action("\x1b" * choose.randint(1, 3))
        else:
            columns, rows = choose.choice(SIZES)
            yield Action(size=(columns, rows))


class Session:
    """One run of the program under its actions, on one screen where that is given. last: the latest of
    them.
    """

    def __init__(self, seed: int, number: int, folder: str, screen: str | None = None) -> None:
        self.number = number
        self.screen = screen
        # The parameters of the run that was opened, once they are saved: not every run has some.
        self._opened = Path(folder, "opened.toml")
        self.last: deque[Action] = deque(maxlen=80)
        self.memory: list[float] = []
        self.times: list[float] = []
        self.slowest = 0.0
        self.done = 0
        self.sent = 0
        self._choose = random.Random(f"{seed} {number} {screen}" if screen else seed * 1_000_003 + number)
        kind = list(RUNS)[number % len(RUNS)]
        words = [str(ROOT / word) if (ROOT / word).exists() else word for word in RUNS[kind].split()]
        answers = number % 2 == 0
        # An answer that a terminal gives between the bytes of a key is lost: the program waits 2 s for it,
        # with the picture that it has to send, and asks no more.
        self._excused = 1 if answers else 0
        self.repeated = f"--seed {seed} --session {number}" + (f" --screens {screen}" if screen else "")
        self.words = kind if screen is None else f"{kind}, {screen}"
        variables = {"HOME": folder, "XDG_STATE_HOME": folder, "XDG_CONFIG_HOME": folder}
        variables["PYTHONFAULTHANDLER"] = "1"
        self.terminal = wltui(*words, screen=screen, env=variables, answers=answers, cwd=folder)

    def run(self, steps: int, until: float, *, returns: bool = False) -> None:
        """Act, look, and end it. returns: goes back to the run that was opened now and then, and measures
        memory there alone. Raises Found.
        """
        with self.terminal as terminal:
            self._wait(lambda: terminal.in_alternate_screen, "the first screen")
            self._settle("the start")
            self._answer("S")
            self._show_screen()
            for action in actions(self._choose):
                self._act(action)
                self.done += 1
                if self.done % PROBE == 0:
                    is_back = returns and self.done % (PROBE * RETURN) == 0
                    if is_back:
                        self._load_opened()
                    self._probe()
                    self._check_memory(is_kept=is_back or not returns)
                    self._show_screen()
                if self.done >= steps or time.monotonic() > until:
                    break
                if terminal.process.poll() is not None:
                    self._over("the next key")
            self._end()

    def _press(self, *pressed: str) -> None:
        """Each of what is pressed, after what came of the one before."""
        for keys in pressed:
            self.last.append(Action(keys))
            self.terminal.press(keys)
            self._settle(keys)

    def _show_screen(self) -> None:
        """Out of a prompt, of one over it, and to the session's screen."""
        if self.screen is not None:
            self._press("\x1b", "\x1b", SCREENS[self.screen].key)

    def _answer(self, key: str) -> None:
        """Saves the parameters as the file of those that were opened, or loads that."""
        self._press("\x1b", "\x1b", SCREENS["parameters"].key, key, CLEAR, str(self._opened), "\r", "\x1b")

    def _load_opened(self) -> None:
        """Goes back to the run that was opened. The run before it, which the program keeps where it has up
        to 100 MB, is one that differs in the first field.
        """
        if self._opened.exists():
            self._answer(LOAD)
            self._press(SCREENS["parameters"].key, "g", "l")
            self._answer(LOAD)

    def _act(self, action: Action) -> None:
        self.last.append(action)
        if action.size:
            self.terminal.resize(*action.size)
        else:
            self.terminal.press(action.keys)
        # Now and then faster than it can draw.
        if self._choose.random() < 0.8:
            self._read(0.02)

    def _read(self, quiet: float) -> None:
        """Read until nothing has come for `quiet` seconds, and forget what was read."""
        begin = time.monotonic()
        while (size := self.terminal.pump(quiet)) and time.monotonic() - begin < PATIENCE_S:
            self.sent += size
        del self.terminal.raw[:-KEPT_BYTES]

    def _wait(self, there: object, what: str) -> None:
        assert callable(there)
        begin = time.monotonic()
        while not there():
            if self.terminal.process.poll() is not None:
                self._over(what)
            if time.monotonic() - begin > PATIENCE_S:
                # Where each of its threads is: see PYTHONFAULTHANDLER. T is stopped, as by the palette.
                states = "".join(_thread_states(self.terminal.process.pid))
                self.terminal.process.send_signal(signal.SIGABRT)
                self._read(1)
                raise Found(f"no answer within {PATIENCE_S:.0f} s: {what}; its threads: {states}")
            self.sent += self.terminal.pump(0.05)
        self.slowest = max(self.slowest, time.monotonic() - begin)

    def _over(self, before: str) -> None:
        """The program has ended of itself. Raises Quit where the palette may have done it, else Found."""
        self._read(0.1)
        status = self.terminal.process.returncode
        if status == 0 and any(":" in one.keys or "\x10" in one.keys for one in self.last):
            self._check_restored()
            raise Quit
        raise Found(f"the program ended with {status}, before {before}")

    def _check_memory(self, is_kept: bool) -> None:
        """Memory is within its budget, or is so once the run that was opened is back. is_kept: whether it
        is one of `memory`.
        """
        pid = self.terminal.process.pid
        memory = _resident_mb(pid)
        if memory > MOST_MB:
            self._load_opened()
            if (after := _resident_mb(pid)) > MOST_MB:
                raise Found(f"{memory:.0f} MB, {after:.0f} on the run that was opened, budget {MOST_MB:.0f}")
        if is_kept:
            self.memory.append(memory)
            self.times.append(time.monotonic())

    def _probe(self) -> None:
        """The screen answers, with the picture that it showed."""
        is_asleep = self._settle("what was pressed")
        before = self.terminal.lines
        self._wait_for_redraw("Ctrl+L")
        is_asleep = self._settle("Ctrl+L") and is_asleep
        after = self.terminal.lines
        # What is said in the last row stays until the next key, which this one is.
        pairs = zip(before[:-1], after[:-1], strict=True)
        wrong = [pair for pair in pairs if is_asleep and pair[0] != pair[1]]
        if wrong and self._excused:
            self._excused -= 1
        elif wrong:
            shown = "\n".join(
                [
                    *(f"  {old.rstrip()}" for old, _ in wrong),
                    "and then:",
                    *(f"  {new.rstrip()}" for _, new in wrong),
                ]
            )
            raise Found(f"{len(wrong)} rows differ when the same is drawn again:\n{shown}")

    def _wait_for_redraw(self, what: str) -> None:
        """Presses Ctrl+L and waits for its answer."""
        count = self.sent
        self.terminal.press(REDRAW)
        self._wait(lambda: self.sent > count, what)

    def _settle(self, what: str) -> bool:
        """Reads until the program sleeps: on a busy machine it may be quiet and not be done. Returns False
        where it works on behind a screen that answers, as with what would make a run of millions of spans
        shorter.
        """
        quiet, stopped = 0, False
        begin = time.monotonic()
        while quiet < 3:
            size = self.terminal.pump(0.1)
            self.sent += size
            quiet = 0 if size or _awake(self.terminal.process.pid) else quiet + 1
            if time.monotonic() - begin > PATIENCE_S:
                if stopped or "simulating" not in self.terminal.text:
                    self._wait_for_redraw(what)
                    return False
                # Random values make a run of minutes now and then: what the screen offers must end it.
                stopped, begin = True, time.monotonic()
                self.terminal.press("5\x1b\x1b\x1b")
        self.slowest = max(self.slowest, time.monotonic() - begin)
        del self.terminal.raw[:-KEPT_BYTES]
        return True

    def _end(self) -> None:
        terminal = self.terminal
        terminal.resize(120, 36)
        begin = time.monotonic()
        while terminal.process.poll() is None:
            # Out of a prompt, of one over it, and of the program.
            terminal.press("\x1b")
            self._read(0.3)
            if terminal.process.poll() is None:
                terminal.press("q")
                self._read(0.3)
            if time.monotonic() - begin > PATIENCE_S:
                raise Found(f"it did not end within {PATIENCE_S:.0f} s")
        self._read(0.1)
        if terminal.process.returncode:
            raise Found(f"the program ended with {terminal.process.returncode}")
        self._check_restored()

    def _check_restored(self) -> None:
        terminal = self.terminal
        if terminal.in_alternate_screen or not terminal.cursor_is_visible:
            raise Found("the terminal was not restored")
        if terminal.attributes != terminal.attributes_before:
            raise Found("the terminal's settings were not restored")

    def places(self) -> list[str]:
        """Where a traceback on the terminal went through and its last line; what was last on the terminal
        where there are none.
        """
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.terminal.raw.decode("utf-8", "replace"))
        lines = [line.strip("│ \r") for line in text.split("\n")]
        found = re.compile(r'File ".+", line \d+,? in |\w+(Error|Exception|Found): ')
        return [line for line in lines if found.match(line)] or [repr(text[-1000:])]

    def growth_mb(self) -> float:
        """How much more the least memory is in the last quarter of the time than in the second; infinite
        where it was not measured in both.
        """
        quarters: tuple[list[float], ...] = ([], [], [], [])
        for mb, at in zip(self.memory, self.times, strict=True):
            part = (at - self.times[0]) / (self.times[-1] - self.times[0] or 1.0)
            quarters[min(int(4 * part), 3)].append(mb)
        return min(quarters[3], default=math.inf) - min(quarters[1], default=0.0)

    def figures(self) -> str:
        """One line: steps, bytes, the slowest answer, memory at the first probe, halfway, last and most."""
        memory = self.memory or [0.0]
        first, half, last = memory[0], memory[len(memory) // 2], memory[-1]
        return (
            f"{self.number:7} {self.done:7} {self.sent / 1e6:6.1f} {self.slowest:9.2f} "
            f"{first:9.0f} {half:8.0f} {last:7.0f} {max(memory):7.0f}   {self.words}"
        )


def _awake(pid: int) -> bool:
    """Whether a thread of the program runs, or would if it were let."""
    try:
        return not {"R", "D"}.isdisjoint(_thread_states(pid))
    except OSError:  # a thread that has just ended
        return True


def _thread_states(pid: int) -> list[str]:
    """The state of each thread of a process, as proc(5) names it."""
    tasks = Path(f"/proc/{pid}/task").glob("*/stat")
    return [path.read_text(encoding="ascii").rpartition(")")[2].split()[0] for path in tasks]


def _resident_mb(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def run_session(session: Session, steps: int, until: float, *, returns: bool = False) -> bool:
    """Runs a session (returns: see Session.run) and prints its line, and what went wrong; whether something
    did.
    """
    found: Found | None = None
    try:
        session.run(steps, until, returns=returns)
    except Quit:
        pass
    except Found as error:
        found = error
        keys = "\n".join(f"  {action}" for action in session.last)
        print(f"FAILED: {session.repeated}, step {session.done}: {found}")
        print(f"the last keys:\n{keys}\nthe screen:\n{session.terminal.text}")
        print("\n".join(["the traceback's places:", *session.places()]))
    print(session.figures(), flush=True)
    return found is not None


def main() -> int:
    """Sessions one after the other. Exit status 1 when one failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--session", type=int)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--run", action="append", choices=RUNS, default=[])
    parser.add_argument("--screens", nargs="?", const=",".join(SCREENS))
    parser.add_argument("--flat", action="store_true")
    parser.add_argument("--load", type=int, default=0)
    given = parser.parse_args()
    print(f"python {sys.version.split()[0]}, seed {given.seed}, {given.steps} steps a session")
    print("session   steps     MB  slowest s  first MB  half MB  last MB  most MB   run")
    beside = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(given.load)]
    try:
        return int(run_all(given, time.monotonic() + given.minutes * 60))
    finally:
        for one in beside:
            one.kill()


def run_all(given: argparse.Namespace, until: float) -> bool:
    """Runs what was asked for; whether a session failed."""
    kinds = [list(RUNS).index(kind) for kind in given.run]
    if given.session is not None:
        numbers = iter([given.session])
    elif given.screens or given.flat:
        numbers = iter(kinds or range(len(RUNS)))
    else:
        numbers = (number for number in itertools.count() if not kinds or number % len(RUNS) in kinds)
    failed = False
    for number in numbers:
        for screen in given.screens.split(",") if given.screens else (None,):
            if time.monotonic() > until:
                return failed
            with tempfile.TemporaryDirectory() as folder:
                session = Session(given.seed, number, folder, screen)
                steps = sys.maxsize if given.flat else given.steps
                failed |= run_session(session, steps, until, returns=given.flat)
                if given.flat:
                    growth = session.growth_mb()
                    print(f"memory of the last quarter: {growth:+.1f} MB, budget {MOST_GROWTH_MB:.0f}")
                    return failed or growth > MOST_GROWTH_MB
    return failed


if __name__ == "__main__":
    sys.exit(main())
