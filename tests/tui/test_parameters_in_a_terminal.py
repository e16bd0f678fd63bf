"""The form in a real terminal: what a user presses to see another step time, and that no key is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tui.pseudo_terminal import SEED, Terminal, wltui

SHIFT_RIGHT = "\x1b[1;2C"


@pytest.fixture
def form() -> Iterator[Terminal]:
    """Screen 5 on seed 002 at 120x36."""
    with wltui(SEED) as found:
        found.wait_for("q quit")
        found.press("5")
        found.wait_for("Effect, against the run as opened")
        found.settle(0.3)
        yield found


def test_twice_the_bandwidth_between_servers_is_found_in_a_few_keys(form: Terminal) -> None:
    assert "dim 1 between servers" in form.text
    form.press("\t\t" + "jjjjj")
    form.wait_for("(between servers, switch 128)")
    form.press(SHIFT_RIGHT)
    form.wait_for("step 14.597 s  -177.4 ms (-1.2 %)")
    assert "was 50 " in form.line_with("dim 1  bandwidth")


def test_ten_keys_in_one_read_are_ten_steps(form: Terminal) -> None:
    form.press("\t" + "j")
    form.wait_for("> ")
    form.press("l" * 10)
    form.wait_for("1f1b, 26 micro-batches")
    assert "< 26 >" in form.line_with("microbatches")
    form.press("u" * 10)
    form.wait_for("the run as opened: change a value")
    assert "< 16 >" in form.line_with("microbatches")


def test_a_value_typed_in_one_read_is_taken_whole(form: Terminal) -> None:
    form.press("\t" + "j" + "=24\r")
    form.wait_for("1f1b, 24 micro-batches")
    assert "< 24 >" in form.line_with("microbatches")


def test_saved_parameters_give_the_same_run_on_the_command_line(form: Terminal, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    form.press("\t" + "ll")
    form.wait_for("step 10.695 s")
    form.press("S")
    form.wait_for("save the parameters as")
    form.press(f"{path}\r")
    form.wait_for("saved: ")
    with wltui(SEED, "--params", str(path)) as other:
        other.wait_for("step 10.695 s")
