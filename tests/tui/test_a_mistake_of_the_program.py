"""A mistake of the program itself ends it at once and tidily, in a real terminal."""

from __future__ import annotations

import sys
import time

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


def test_a_mistake_of_the_program_ends_it_at_once_with_the_calls_that_led_to_it() -> None:
    """Seen with Textual's own page of it: no key worked for more than 20 s, while all values were printed."""
    with Terminal([sys.executable, "-c", PLANTED]) as terminal:
        terminal.wait_for("What would help most")
        terminal.wait_for(lambda: "simulating" not in terminal.text)
        begun = time.monotonic()
        terminal.press("x")
        terminal.wait_for("please report it with these lines")
        status = terminal.wait_for_end()
        assert time.monotonic() - begun < 5
        assert status == 1
        text = bytes(terminal.raw).rpartition(b"Traceback")[2].decode()
        assert "in action_other_run" in text
        assert "NameError: " in text
        assert "[bold]" in text
        # Nothing raw of the file, no values beside the calls.
        assert "\x1b]0;" not in text
        assert "locals" not in text
