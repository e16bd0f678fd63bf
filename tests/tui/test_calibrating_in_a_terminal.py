"""Calibrating in a real terminal: what a user presses to fit a workload, to try it and to save it."""

from __future__ import annotations

from pathlib import Path

from tests.command_line.running import wltui as command
from tests.command_line.test_calibrate_command import inputs
from tests.tui.pseudo_terminal import wltui

DIMS = ("--dim", "switch:2:20:0", "--dim", "switch:2:20:0")


def test_what_is_fitted_is_tried_and_saved_as_the_command_saves_it(tmp_path: Path) -> None:
    workload, traces = inputs(tmp_path)
    by_key, by_command = tmp_path / "by_key.toml", tmp_path / "by_command.toml"
    assert command("calibrate", workload, traces, *DIMS, "-o", str(by_command)).returncode == 0
    with wltui(workload, "--against", traces, *DIMS, screen=None, columns=80, rows=24) as terminal:
        terminal.wait_for("F calibrate")
        terminal.press_each(
            ("F", "compute scale  1 -> 2, by forward and backward"),
            ("S", "save the fitted parameters as"),
            (f"{by_key}\r", "Saved in "),
        )
        assert by_key.read_bytes() == by_command.read_bytes()
        terminal.press("t")
        terminal.wait_for("run 2 of 2: 36.000 ms; x shows run 1 again")
        assert terminal.line_with(" B  run 2").startswith(" B  run 2    36.000 ms  made.txt, simulated")
        terminal.press_each(("2", "At the cursor"), ("x", "step 17.500 ms"), ("x", "step 36.000 ms"))
        terminal.press("q")
        assert terminal.wait_for_end() == 0
    # Another session takes the file, and has the step that was tried.
    with wltui(workload, "--params", str(by_key), screen=None) as terminal:
        terminal.wait_for("step 36.000 ms")


def test_a_trace_alone_says_what_is_to_be_opened(tmp_path: Path) -> None:
    _, traces = inputs(tmp_path)
    with wltui(traces, screen="compare", columns=80, rows=24) as terminal:
        terminal.wait_for("There is only one run: change a parameter (5)")
        terminal.press("F")
        terminal.wait_for("To fit a workload to a trace open both: wltui WORKLOAD --against DIR")
