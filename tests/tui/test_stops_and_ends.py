"""Signals, terminals that go away or take nothing, and sizes that change while a run is simulated."""

from __future__ import annotations

import random
import re
import resource
import signal
import sys
import time

import pytest

from tests.command_line.running import SEED_001
from tests.tui.pseudo_terminal import PATIENCE, TABLE, Terminal, wltui
from tests.tui.terminal_cells import differences, seen_cells
from tests.tui.test_terminal_sessions import TIMELINE, check_restored, opened


def state(terminal: Terminal) -> str:
    """The state of the process: T is stopped (Linux)."""
    with open(f"/proc/{terminal.process.pid}/stat", encoding="ascii") as stream:
        return stream.read().rpartition(")")[2].split()[0]


def threads(terminal: Terminal) -> int:
    """How many threads the program has (Linux)."""
    with open(f"/proc/{terminal.process.pid}/status", encoding="ascii") as stream:
        return next(int(line.split()[1]) for line in stream if line.startswith("Threads:"))


def test_a_stop_gives_the_terminal_back_and_the_screen_comes_again() -> None:
    with opened() as terminal:
        running = threads(terminal)
        for how in ("key", "SIGTSTP", "key"):
            terminal.settle(0.3)
            shown = seen_cells(terminal.screen)
            if how == "key":
                terminal.press("\x1a")
            else:
                terminal.kill(signal.SIGTSTP)
            terminal.wait_for(lambda: state(terminal) == "T")
            check_restored(terminal)
            # A shell writes over what was there.
            terminal.screen.reset()
            terminal.kill(signal.SIGCONT)
            terminal.wait_for(TIMELINE)
            terminal.settle(0.3)
            assert terminal.in_alternate_screen
            assert differences(seen_cells(terminal.screen), shown) == []
        terminal.press("j")
        terminal.wait_for(">+ stage  1")
        assert threads(terminal) == running
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        check_restored(terminal)


def test_going_on_after_a_stop_that_nobody_announced_leaves_one_reader() -> None:
    with opened() as terminal:
        running, shown = threads(terminal), seen_cells(terminal.screen)
        # Without any stop, then after one.
        for stopped in (False, True):
            if stopped:
                terminal.kill(signal.SIGSTOP)
                terminal.wait_for(lambda: state(terminal) == "T")
            terminal.screen.reset()
            terminal.kill(signal.SIGCONT)
            terminal.wait_for(TIMELINE)
            terminal.settle(0.4)
            assert differences(seen_cells(terminal.screen), shown) == []
            assert threads(terminal) == running
        terminal.press("jjjj")
        terminal.wait_for(">+ stage  4")
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        check_restored(terminal)


# Sends itself a signal while it holds the lock of what is to be written, once, as it leaves the screen.
_SIGNALLED = """
import os, queue, signal, sys
import textual.drivers._writer_thread as writer

class Queue(queue.Queue):
    def _put(self, item):
        super()._put(item)
        if "\x1b[?2004l" in str(item) and SENT:
            os.kill(os.getpid(), SENT.pop())

SENT = [getattr(signal, sys.argv.pop(1))]
writer.Queue = Queue
from tui.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("name", ["SIGCONT", "SIGTSTP", "SIGWINCH"])
def test_a_signal_while_it_writes_its_last_does_not_hold_up_the_end(name: str) -> None:
    """A server of terminals that ends hangs up and continues its processes: one ran on for 35 minutes."""
    with Terminal([sys.executable, "-c", _SIGNALLED, name, SEED_001], columns=80, rows=24) as terminal:
        terminal.wait_for("q quit")
        terminal.settle(0.3)
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        check_restored(terminal)


def test_another_size_while_stopped_is_drawn_when_it_goes_on() -> None:
    with opened() as terminal:
        terminal.press("\x1a")
        terminal.wait_for(lambda: state(terminal) == "T")
        terminal.resize(80, 24)
        terminal.screen.reset()
        terminal.kill(signal.SIGCONT)
        terminal.wait_for(lambda: terminal.lines[23].endswith(" ? keys  q quit "))
        assert " lane    busy│" in terminal.text


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "while it simulates"])
@pytest.mark.parametrize("controls", [True, False], ids=["controlling", "not controlling"])
def test_a_terminal_that_goes_away_ends_the_program_as_sighup_does(controls: bool, busy: bool) -> None:
    with opened(controls=controls) as terminal:
        if busy:
            terminal.press_each(("5", ">  world"), ("j" * 60, ">  no fold"), ("l", "simulating"))
        else:
            terminal.settle()
        terminal.hang_up()
        assert terminal.wait_for_end() == 128 + signal.SIGHUP


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminal_that_takes_nothing_does_not_hold_up_the_end(number: signal.Signals) -> None:
    with opened(columns=400, rows=120) as terminal:
        # More than the kernel holds: pictures wait, and nobody reads them.
        for key in "wdwdwdwdwd3252525252wdwdwdwdwd":
            terminal.press(key)
            time.sleep(0.05)
        terminal.kill(number)
        until = time.monotonic() + PATIENCE
        while terminal.process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        assert terminal.process.poll() == 128 + number
        terminal.settle()
        check_restored(terminal)


def test_hundreds_of_sizes_while_a_run_is_simulated() -> None:
    choose = random.Random(1)
    with opened() as terminal:
        terminal.press_each(("5", ">  world"), ("j" * 60, ">  no fold"), ("l", "simulating"))
        some = [(choose.randint(1, 250), choose.randint(1, 70)) for _ in range(297)]
        for size in ((1, 1), (10, 3), (400, 120), *some):
            terminal.resize(*size)
            until = time.monotonic() + choose.choice([0, 0, 0, 0, 0.01, 0.02])
            while time.monotonic() < until:
                terminal.pump(0.01)
        terminal.resize(120, 36)
        terminal.wait_for(lambda: "step 14.774 s  no change" in terminal.lines[1])
        terminal.settle(0.5)
        shown = seen_cells(terminal.screen)
        terminal.screen.reset()
        terminal.press("\x0c")
        terminal.settle(0.5)
        assert differences(seen_cells(terminal.screen), shown) == []
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        check_restored(terminal)


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux limits a process that runs")
def test_a_change_for_which_there_is_no_memory_is_refused_and_the_picture_stays() -> None:
    with opened() as terminal:
        terminal.press_each(("5", ">  world"), ("j" * 60, ">  no fold"))
        terminal.settle(0.3)
        with open(f"/proc/{terminal.process.pid}/status", encoding="ascii") as stream:
            taken = next(int(line.split()[1]) for line in stream if line.startswith("VmSize:")) * 1024
        _, most = resource.prlimit(terminal.process.pid, resource.RLIMIT_AS)
        resource.prlimit(terminal.process.pid, resource.RLIMIT_AS, (taken + 50 * 2**20, most))
        terminal.press_each(("l", "62.8 MB of memory"))
        assert "step 14.774 s  change not run" in terminal.lines[1]
        said = " ".join(" ".join(row.split("││")[0].strip("│ ") for row in terminal.lines).split())
        assert re.search(r"\d MB are free: 1024 ranks\b.* 2595840 ops\b", said)
        terminal.press_each(("h", "step 14.774 s"), ("2", TIMELINE))
        assert terminal.line_with(">+ stage  0")
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        check_restored(terminal)


def test_a_size_and_back_at_once() -> None:
    with opened() as terminal:
        shown = seen_cells(terminal.screen)
        for size in ((1, 1), (10, 3), (400, 120)):
            for is_drawn in (False, True):
                before = terminal.pictures
                terminal.resize(*size)
                if is_drawn:
                    terminal.wait_for(lambda before=before: terminal.pictures > before)
                # The terminal has lost the picture: what is seen is sent again, and nothing else behind it.
                terminal.resize(120, 36)
                terminal.wait_for(lambda: differences(seen_cells(terminal.screen), shown) == [])
                terminal.settle(0.3)
                assert differences(seen_cells(terminal.screen), shown) == [], (size, is_drawn)


def test_a_screen_may_begin_in_any_size() -> None:
    for columns, rows in ((1, 1), (10, 3), (400, 120)):
        with wltui(TABLE, columns=columns, rows=rows) as terminal:
            terminal.wait_for(lambda: terminal.in_alternate_screen)
            terminal.settle(0.8)
            assert "Traceback" not in terminal.text
            terminal.press("q")
            assert terminal.wait_for_end() == 0
            check_restored(terminal)
