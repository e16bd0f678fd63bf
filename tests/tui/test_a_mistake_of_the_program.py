"""A mistake of the program itself ends it at once and tidily, in a real terminal."""

from __future__ import annotations

import os
import resource
import sys

from tests.tui.pseudo_terminal import Terminal

# A key fails with the run at hand, and with text of the file.
PLANTED = """
from tui.app import WltuiApp

def action_other_run(app):
    run = app.session.current
    raise NameError(run.simulation.workload.name[0] + "\\x1b]0;title\\x07[bold]")

WltuiApp.action_other_run = action_other_run

import sys
from tui.cli import main

sys.argv = ["wltui", "fixtures/002_gpt_1024npu.txt", "--no-session"]
sys.exit(main())
"""


def processor_seconds(pid: int) -> float:
    """What a process has taken so far (Linux)."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stream:
        user, system = stream.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def children_seconds() -> float:
    """What all processes have taken that were started here and are over."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_a_mistake_of_the_program_ends_it_at_once_with_the_calls_that_led_to_it() -> None:
    """Seen with Textual's own page of it: no key worked for more than 20 s, while all values were printed."""
    with Terminal([sys.executable, "-c", PLANTED]) as terminal:
        terminal.wait_for("What would help most")
        terminal.wait_for(lambda: "simulating" not in terminal.text)
        before, reaped = processor_seconds(terminal.process.pid), children_seconds()
        terminal.press("x")
        terminal.wait_for("please report it with these lines")
        status = terminal.wait_for_end()
        # Of a processor: on a machine with other work that takes longer.
        assert children_seconds() - reaped - before < 5
        assert status == 1
        text = bytes(terminal.raw).rpartition(b"Traceback")[2].decode()
        assert "in action_other_run" in text
        assert "NameError: " in text
        assert "[bold]" in text
        # Nothing raw of the file, no values beside the calls.
        assert "\x1b]0;" not in text
        assert "locals" not in text
