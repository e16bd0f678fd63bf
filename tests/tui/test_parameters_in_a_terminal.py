"""The form in a real terminal: what a user presses to see another step time, and that no key is lost."""

from __future__ import annotations

from pathlib import Path

from tests.tui.pseudo_terminal import SEED, wltui

SHIFT_RIGHT = "\x1b[1;2C"


def test_every_key_of_the_form_counts_and_what_is_saved_is_the_same_run_on_the_command_line(
    tmp_path: Path,
) -> None:
    with wltui(SEED) as form:
        form.wait_for("q quit")
        form.press_each(("5", "the run as opened: change a value"))
        form.settle()
        # Twice the bandwidth between servers is found in a few keys.
        assert "dim 1 between servers" in form.text
        form.press_each(("\t\tjjjjj", "dim 1 (dp, pp), between servers, switch 128"))
        form.press_each((SHIFT_RIGHT, "step 14.597 s  -177.4 ms (-1.2 %)"))
        assert "was 50 " in form.line_with("dim 1  bandwidth")
        form.press_each(("u", "the run as opened: change a value"))
        # Ten keys in one read are ten steps.
        form.press_each(("2", "At the cursor"), ("5g", ">  world"), ("\tj", ">  microbatches"))
        form.press_each(("l" * 10, "1f1b, 26 micro-batches"))
        assert "< 26 >" in form.line_with("microbatches")
        form.press_each(("u" * 10, "the run as opened: change a value"))
        assert "< 16 >" in form.line_with("microbatches")
        # A value typed in one read is taken whole.
        form.press_each(("=24\r", "1f1b, 24 micro-batches"))
        assert "< 24 >" in form.line_with("microbatches")
        path = tmp_path / "mine.toml"
        form.press_each(("ukll", "step 10.695 s"), ("S", "save the parameters as"), (f"{path}\r", "saved: "))
    with wltui(SEED, "--params", str(path)) as other:
        other.wait_for("step 10.695 s")
