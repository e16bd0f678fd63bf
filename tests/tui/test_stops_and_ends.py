"""Signals, terminals that go away or take nothing, and sizes that change while a run is simulated."""

from __future__ import annotations

import random
import re
import resource
import signal
import time

import pytest

from tests.command_line.running import SEED_001
from tests.tui.pseudo_terminal import PATIENCE, SEED, TABLE, Terminal, wltui
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


def test_a_stop_gives_the_terminal_back_and_the_screen_comes_again_with_one_reader() -> None:
    with opened(SEED_001) as terminal:
        running = threads(terminal)
        # SIGSTOP is announced to nobody, and SIGCONT may come without any stop.
        for how in ("\x1a", signal.SIGTSTP, "\x1a", None, signal.SIGSTOP):
            terminal.settle()
            shown = seen_cells(terminal.screen)
            if isinstance(how, str):
                terminal.press(how)
            elif how is not None:
                terminal.kill(how)
            if how is not None:
                terminal.wait_for(lambda: state(terminal) == "T")
            if how not in (None, signal.SIGSTOP):
                check_restored(terminal)
            # A shell writes over what was there.
            terminal.screen.reset()
            terminal.kill(signal.SIGCONT)
            terminal.wait_for(TIMELINE)
            terminal.settle()
            assert terminal.in_alternate_screen
            assert differences(seen_cells(terminal.screen), shown) == []
            assert threads(terminal) == running
        terminal.press("jjj")
        terminal.wait_for(">+ stage  3")
        assert threads(terminal) == running
        # Another size while it is stopped is drawn when it goes on.
        terminal.press("\x1a")
        terminal.wait_for(lambda: state(terminal) == "T")
        terminal.resize(80, 24)
        terminal.screen.reset()
        terminal.kill(signal.SIGCONT)
        terminal.wait_for(lambda: terminal.lines[23].endswith(" ? keys  q quit "))
        assert " lane    busy│" in terminal.text
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        check_restored(terminal)


# Sends itself a signal while it holds the lock of what is to be written, once, as it leaves the screen.
_SIGNALLED = """
import os, queue, signal
import textual.drivers._writer_thread as writer

class Queue(queue.Queue):
    def _put(self, item):
        super()._put(item)
        if "\x1b[?2004l" in str(item) and SENT:
            os.kill(os.getpid(), SENT.pop())

SENT = [signal.{}]
writer.Queue = Queue
"""


@pytest.mark.parametrize("name", ["SIGCONT", "SIGTSTP", "SIGWINCH"])
def test_a_signal_while_it_writes_its_last_does_not_hold_up_the_end(name: str) -> None:
    """A server of terminals that ends hangs up and continues its processes: one ran on for 35 minutes."""
    with opened(SEED_001, columns=80, rows=24, planted=_SIGNALLED.format(name)) as terminal:
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        check_restored(terminal)


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "while it simulates"])
@pytest.mark.parametrize("controls", [True, False], ids=["controlling", "not controlling"])
def test_a_terminal_that_goes_away_ends_the_program_as_sighup_does(controls: bool, busy: bool) -> None:
    with opened(SEED if busy else SEED_001, controls=controls) as terminal:
        if busy:
            terminal.press_each(("5", ">  world"), ("j" * 60, ">  no fold"), ("l", "simulating"))
        else:
            terminal.settle()
        terminal.hang_up()
        assert terminal.wait_for_end() == 128 + signal.SIGHUP


def test_a_terminal_that_takes_nothing_does_not_hold_up_the_end() -> None:
    with opened(columns=400, rows=120) as terminal:
        # More than the kernel holds: pictures wait, and nobody reads them.
        for key in "wdwdwd325wd":
            terminal.press(key)
            time.sleep(0.05)
        terminal.kill(signal.SIGTERM)
        until = time.monotonic() + PATIENCE
        while terminal.process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        assert terminal.process.poll() == 128 + signal.SIGTERM
        terminal.settle()
        check_restored(terminal)


def test_a_hundred_sizes_while_a_run_is_simulated() -> None:
    choose = random.Random(1)
    with opened(SEED, "--microbatches", "6") as terminal:
        terminal.press_each(("5", ">  world"), ("j" * 60, ">  no fold"), ("l", "simulating"))
        some = [(choose.randint(1, 250), choose.randint(1, 70)) for _ in range(97)]
        for size in ((1, 1), (10, 3), (400, 120), *some):
            terminal.resize(*size)
            until = time.monotonic() + choose.choice([0, 0, 0, 0, 0.01, 0.02])
            while time.monotonic() < until:
                terminal.pump(0.01)
        terminal.resize(120, 36)
        terminal.wait_for(lambda: "  no change" in terminal.lines[1])
        terminal.settle()
        shown = seen_cells(terminal.screen)
        terminal.screen.reset()
        terminal.press("\x0c")
        terminal.settle()
        assert differences(seen_cells(terminal.screen), shown) == []
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        check_restored(terminal)


# The terminal gets another size while the program, which has read one, has not used it yet.
_RESIZED_AGAIN = """
import fcntl, signal, struct, sys, termios
from textual.drivers.linux_driver import LinuxDriver
read_size = LinuxDriver._get_terminal_size
def read_and_resize(self):
    size = read_size(self)
    if size == (100, 30):
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 36, 120, 0, 0))
        signal.raise_signal(signal.SIGWINCH)
    return size
LinuxDriver._get_terminal_size = read_and_resize
"""


def test_of_two_sizes_that_come_together_the_later_one_stays() -> None:
    """Seen to fail with Textual's handler."""
    with opened(SEED_001, planted=_RESIZED_AGAIN) as terminal:
        terminal.settle()
        shown = terminal.lines
        terminal.screen.reset()
        terminal._set_size(100, 30)
        terminal.wait_for(lambda: terminal.lines == shown)


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux limits a process that runs")
def test_a_change_for_which_there_is_no_memory_is_refused_and_the_picture_stays() -> None:
    with opened() as terminal:
        terminal.press_each(("5", ">  world"), ("j" * 60, ">  no fold"))
        terminal.settle()
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


def test_a_size_and_back_at_once() -> None:
    with opened(SEED_001) as terminal:
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
                terminal.settle()
                assert differences(seen_cells(terminal.screen), shown) == [], (size, is_drawn)


def test_a_screen_may_begin_in_any_size() -> None:
    for columns, rows in ((1, 1), (10, 3), (400, 120)):
        with wltui(TABLE, columns=columns, rows=rows) as terminal:
            terminal.wait_for(lambda: terminal.in_alternate_screen)
            terminal.settle()
            assert "Traceback" not in terminal.text
            terminal.press("q")
            assert terminal.wait_for_end() == 0
            check_restored(terminal)
