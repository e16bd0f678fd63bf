"""With stdin or stdout not a terminal: the text report, exit status 0, and no Textual."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line.running import SEED_001, wltui_here
from tests.tui.pseudo_terminal import ROOT, Terminal, environment, wltui
from tui.commands.on_screen import _can_draw

# Runs the program and says which modules of the screen it has imported.
_MAIN = (
    "import sys; from tui.cli import main; status = main(sys.argv[1:]); "
    "print('SCREEN', *sorted({m.split('.')[0] for m in sys.modules} & {'textual', 'rich'}), 'END', "
    "file=sys.stderr); sys.exit(status)"
)


def run_program(*words: str) -> subprocess.CompletedProcess[str]:
    """Run with pipes for all three streams."""
    return subprocess.run(
        [sys.executable, "-c", _MAIN, *words],
        cwd=ROOT, env=environment(), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60,
        check=False,
    )  # fmt: skip


def test_pipes_get_the_report_without_the_screens_libraries() -> None:
    done = run_program(SEED_001)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert done.stderr == "SCREEN END\n"
    assert done.stdout == wltui_here("report", SEED_001).stdout


def test_no_file_means_the_bundled_example() -> None:
    assert "002_gpt_1024npu.txt" in wltui_here().stdout


def test_a_terminal_on_stdin_alone_gets_the_report(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    with out.open("wb") as stream, wltui(SEED_001, stdout=stream.fileno()) as terminal:
        assert terminal.wait_for_end() == 0
        assert terminal.raw == b""
        assert terminal.attributes == terminal.attributes_before
    assert "174.1 ms" in out.read_text()


@pytest.mark.parametrize("words", [[], ["--ascii"]], ids=["utf-8", "ascii"])
def test_a_terminal_on_stdout_alone_gets_the_report(words: list[str]) -> None:
    with (
        open(os.devnull, "rb") as nothing,
        wltui(SEED_001, *words, screen=None, stdin=nothing.fileno(), rows=400) as terminal,
    ):
        assert terminal.wait_for_end() == 0
        assert "174.1 ms" in terminal.text
        assert not terminal.entered_alternate_screen
        assert terminal.text.isascii() or "--ascii" not in words
        assert terminal.attributes == terminal.attributes_before


def test_a_terminal_that_cannot_move_its_cursor_gets_the_report() -> None:
    with Terminal([sys.executable, "-c", _MAIN, SEED_001], env={"TERM": "dumb"}, rows=400) as terminal:
        assert terminal.wait_for_end() == 0
        assert "174.1 ms" in terminal.text
        assert "SCREEN END" in terminal.text
        assert b"\x1b" not in terminal.raw
        assert terminal.attributes == terminal.attributes_before
    for name in ("dumb", "Dumb", "unknown", ""):
        assert not _can_draw({"TERM": name}), name
    assert not _can_draw({})
    assert _can_draw({"TERM": "xterm"})
