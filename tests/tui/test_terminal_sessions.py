"""A whole session in a real pseudo-terminal: the screen, keys, sizes, and the ways out."""

from __future__ import annotations

import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.command_line.running import SEED_001
from tests.tui.pseudo_terminal import SEED, TABLE, Terminal, wltui

TIMELINE = "At the cursor"


def opened(file: str = SEED, *words: str, **keywords: object) -> Terminal:
    """wltui on seed 002 or another file, its timeline on the screen."""
    terminal = wltui(file, *words, **keywords)
    try:
        terminal.wait_for(lambda: TIMELINE in terminal.text and "q quit" in terminal.lines[-1])
    except BaseException:
        terminal.__exit__()
        raise
    return terminal


def check_restored(terminal: Terminal) -> None:
    """The terminal is as it was before the program began."""
    assert terminal.entered_alternate_screen
    assert not terminal.in_alternate_screen
    assert terminal.cursor_is_visible
    assert terminal.attributes == terminal.attributes_before


def test_the_timeline_is_there_and_keys_and_sizes_are_answered() -> None:
    with opened() as terminal:
        rows = terminal.lines
        assert rows[0].startswith(" wltui  002_gpt_1024npu.txt   1024 ranks = tp 8 x dp 8 x pp 16   1f1b")
        assert "[2 Timeline]" in rows[1]
        assert "step 14.774 s" in rows[1]
        assert rows[4].startswith("  lane          x  busy│0 s   1 ")
        assert rows[6].startswith(">+ stage  0     x64 49%│▄▄▄▄")
        assert rows[21].startswith(" + stage 15     x64 49%│▁▁▁▁")
        assert "forward" in terminal.line_with("█ backward")
        assert rows[35].endswith(" ? keys  q quit ")
        # Another size is drawn at once, and the one before again.
        terminal.resize(80, 24)
        terminal.wait_for(lambda: terminal.lines[23].endswith(" ? keys  q quit "))
        terminal.wait_for(" lane    busy│")
        assert "step 14.774 s" in terminal.lines[0]
        terminal.resize(120, 36)
        terminal.wait_for(lambda: terminal.lines == rows)
        # Keys move the cursor, fold, zoom and open the screens.
        terminal.press_each(("jj", ">+ stage  2"), (" ", ">- stage  2"))
        assert "    tp x8" in terminal.text
        view = terminal.line_with(" view ")
        terminal.press("w\x1b[C")
        terminal.wait_for(lambda: terminal.line_with(" view ") != view)
        terminal.press_each(
            ("3", "Where it comes from: mlp_row"),
            ("!", "[cluster-default]"),
            ("?", "Keys of this screen: notes"),
        )
        terminal.settle()
        terminal.press("\x1b")
        terminal.wait_for(lambda: "Keys of this screen" not in terminal.text and "[! Notes]" in terminal.text)
        # An escape with a digit right behind it would be Alt and the digit.
        terminal.settle()
        terminal.press_each(("2", ">- stage  2"), (" k", ">+ stage  1"))
        # Keys typed ahead go to the screen that they opened.
        terminal.press_each(("5jjj", ">  pp "), ("2", ">+ stage  1"), ("5", ">  pp "))
        # A typed value is run, and old and new step time are on the screen.
        terminal.press_each(("\r", "pp [stages]"), ("8\r", "was 14.774 s"))
        assert "-25.0 %, other model" in terminal.lines[1]
        assert "tp 8 x dp 16 x pp 8" in terminal.lines[0]
        terminal.press_each(("2", " + stage  7    x128"))
        assert "stage  8" not in terminal.text


@pytest.mark.parametrize("key", ["q", "\x03"], ids=["q", "ctrl+c"])
def test_quit_restores_the_terminal_and_ends_with_status_0(key: str) -> None:
    with opened(TABLE) as terminal:
        assert terminal.in_alternate_screen
        assert terminal.attributes != terminal.attributes_before
        terminal.press(key)
        assert terminal.wait_for_end() == 0
        check_restored(terminal)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_restores_the_terminal_and_ends_with_its_status(number: signal.Signals) -> None:
    with opened(TABLE) as terminal:
        terminal.kill(number)
        assert terminal.wait_for_end() == 128 + number
        check_restored(terminal)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_while_the_screen_comes_up_restores_the_terminal(number: signal.Signals) -> None:
    with wltui(TABLE) as terminal:
        terminal.wait_for(lambda: terminal.entered_alternate_screen)
        terminal.kill(number)
        assert terminal.wait_for_end() == 128 + number
        check_restored(terminal)


@pytest.mark.parametrize("number", [signal.SIGTERM, None], ids=["SIGTERM", "q"])
def test_a_long_run_does_not_hold_up_the_end(number: signal.Signals | None) -> None:
    with opened() as terminal:
        terminal.press_each(("5", ">  world"), ("j" * 60, ">  no fold"), ("l", "simulating"))
        if number is None:
            terminal.press("q")
        else:
            terminal.kill(number)
        assert terminal.wait_for_end() == (0 if number is None else 128 + number)
        check_restored(terminal)


def test_a_signal_in_the_prompt_restores_the_terminal() -> None:
    with opened(SEED_001) as terminal:
        terminal.press_each(("5", ">  world"), ("\r", "world [ranks]"))
        terminal.kill(signal.SIGTERM)
        assert terminal.wait_for_end() == 128 + signal.SIGTERM
        check_restored(terminal)


def test_a_screen_needs_no_standard_error(tmp_path: Path) -> None:
    log = tmp_path / "errors.txt"
    with log.open("wb") as stream, wltui(TABLE, stderr=stream.fileno()) as terminal:
        terminal.wait_for(lambda: TIMELINE in terminal.text)
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        assert log.read_bytes() == b""


@pytest.mark.parametrize(
    ("words", "message", "status"),
    [
        (["no/such/file.txt"], "there is no such file", 1),
        (["{tmp}/not_a_workload.txt"], "error unknown-format", 1),
        ([SEED_001, "--tp", "3"], "world 128 is not a multiple of tp 3 x pp 4", 2),
        ([SEED_001, "--bogus"], "wltui: unrecognized arguments: --bogus", 2),
    ],
)
def test_what_cannot_be_opened_is_a_line_on_the_terminal_and_no_screen(
    tmp_path: Path, words: list[str], message: str, status: int
) -> None:
    (tmp_path / "not_a_workload.txt").write_text("hello\x1b[31m world\n")
    with wltui(*(word.replace("{tmp}", str(tmp_path)) for word in words)) as terminal:
        assert terminal.wait_for_end() == status
        assert message in " ".join(terminal.text.split())
        assert "Traceback" not in terminal.text
        assert not terminal.entered_alternate_screen
        assert b"\x1b" not in terminal.raw
        assert terminal.attributes == terminal.attributes_before


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs a shell with job control")
def test_ctrl_z_gives_the_shell_its_terminal_back_and_fg_the_screen() -> None:
    shell = ["bash", "--norc", "--noprofile", "-i"]
    with Terminal(shell, env={"PS1": "ready> ", "HISTFILE": None}) as terminal:
        terminal.wait_for("ready> ")
        terminal.press(f"{sys.executable} -m tui {SEED_001} --screen timeline\r")
        terminal.wait_for(TIMELINE)
        terminal.press("j")
        terminal.wait_for(">+ stage  1")
        terminal.press("\x1a")
        terminal.wait_for(lambda: not terminal.in_alternate_screen and terminal.cursor_is_visible)
        terminal.screen.reset()
        terminal.press("fg\r")
        terminal.wait_for(lambda: terminal.in_alternate_screen)
        terminal.wait_for(">+ stage  1")
        terminal.press("q")
        terminal.wait_for(lambda: not terminal.in_alternate_screen)
        # The shell takes what is typed only when it has its prompt back.
        terminal.wait_for(lambda: b"ready> " in bytes(terminal.raw).rpartition(b"\x1b[?1049l")[2])
        terminal.press("exit\r")
        assert terminal.wait_for_end() == 0


def test_two_runs_beside_each_other() -> None:
    words = ("--compute-scale", "0.8", "--against", "fixtures/004_megatron_rank7_trace.txt")
    with wltui(SEED, *words, screen=None) as terminal:
        terminal.wait_for("1 stage paired, ranks are not")
        assert "[6 Compare]" in terminal.lines[1]
        assert terminal.lines[3].startswith(" B  run 1 ")
        terminal.press("i")
        terminal.wait_for("A alone shown")
        terminal.press("ii")
        terminal.wait_for(lambda: "shown" not in terminal.text)
        terminal.press("|\t")
        terminal.wait_for("ends aligned")
        terminal.press("\r.")
        terminal.wait_for("moved by over 1 % of the step")
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        check_restored(terminal)
