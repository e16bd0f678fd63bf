"""Sessions as a user has them: what one leaves in a terminal is there when the same file is opened again."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest

from tests.command_line.running import SEED_001, wltui_here
from tests.tui.pseudo_terminal import ROOT, Terminal, wltui
from tui.state.keeper import NOT_RESTORED, NOT_SAVED

TIMELINE = "At the cursor"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state directory for the programs of one test."""
    return tmp_path / "state"


def opened(state: Path, *words: str, file: str = SEED_001, **keywords: object) -> Terminal:
    """wltui with its sessions in a directory."""
    return wltui(file, *words, screen=None, env={"XDG_STATE_HOME": str(state)}, **keywords)


def begun(state: Path, file: str = SEED_001, **keywords: object) -> Terminal:
    """The same for the first time, on the timeline: there nothing is searched in the background."""
    terminal = opened(state, "--screen", "timeline", file=file, **keywords)
    terminal.wait_for(TIMELINE)
    return terminal


def quit(terminal: Terminal) -> None:
    """Quit; nothing is left on the terminal."""
    terminal.press("q")
    assert terminal.wait_for_end() == 0


def session_files(state: Path) -> list[str]:
    """What is in the directory, without the checksum of the path."""
    return sorted(path.name.rsplit("-", 1)[0] for path in state.glob("wltui/*.json*"))


def test_what_was_left_is_there_when_the_file_is_opened_again(state: Path) -> None:
    with opened(state) as terminal:
        terminal.wait_for("[1 Summary]")
        terminal.press_each(
            ("5", ">  world"), ("jjj", ">  pp "), ("\r", "pp [stages]"), ("2\r", "was 174.1 ms")
        )
        terminal.press_each(
            ("r", "kept as run 2"), ("2", TIMELINE), ("j", ">+ stage  1"), ("p", ">+ stage  1")
        )
        terminal.press_each(("wwm", "mark a is set"), ("l", "a .. cursor 472.5 us"))
        # What the mark had to say is gone with the next key.
        terminal.settle()
        rows = terminal.lines[:34]
        quit(terminal)
    assert session_files(state) == ["001_moe_128npu_with_mistakes.txt"]
    with opened(state) as terminal:
        terminal.wait_for("restored: run 2 of 2; x shows run 1, as opened; --no-session starts fresh")
        terminal.wait_for(lambda: terminal.lines[:34] == rows)
        terminal.press_each(("'", "stage 1"), ("\x1b", TIMELINE))
        terminal.settle()
        terminal.press_each(("R", ">  *  2"))
        assert "--pp 2" in terminal.line_with(">  *  2")


def test_a_signal_and_a_terminal_that_goes_away_keep_the_session(state: Path) -> None:
    """Each goes one lane on from where the one before was left."""
    with begun(state) as terminal:
        terminal.press_each(("j", ">+ stage  1"))
        terminal.kill(signal.SIGTERM)
        assert terminal.wait_for_end() == 128 + signal.SIGTERM
    with opened(state) as terminal:
        terminal.press_each(("", ">+ stage  1"), ("j", ">+ stage  2"))
        terminal.kill(signal.SIGHUP)
        assert terminal.wait_for_end() == 128 + signal.SIGHUP
    with opened(state) as terminal:
        terminal.press_each(("", ">+ stage  2"), ("j", ">+ stage  3"))
        terminal.settle()
        terminal.hang_up()
        terminal.wait_for_end()
    with opened(state) as terminal:
        terminal.wait_for(">+ stage  3")


def test_the_session_is_kept_some_time_after_a_change_and_kill_9_loses_no_more(state: Path) -> None:
    soon = "import tui.state.keeper; tui.state.keeper.SAVE_AFTER = 0.3"
    with begun(state, planted=soon) as terminal:
        terminal.press_each(("jjj", ">+ stage  3"))
        terminal.settle()
        before = len(terminal.raw)
        terminal.wait_for(
            lambda: any('"lane":[[],3,' in path.read_text() for path in state.glob("wltui/*.json"))
        )
        # Keeping it shows nothing: an idle screen sends nothing.
        terminal.settle()
        assert len(terminal.raw) == before
        terminal.kill(signal.SIGKILL)
        terminal.wait_for_end()
    with opened(state) as terminal:
        terminal.wait_for(">+ stage  3")


def test_flags_of_the_command_line_win_and_what_was_there_is_in_the_history(state: Path) -> None:
    with opened(state) as terminal:
        terminal.wait_for("[1 Summary]")
        terminal.press_each(
            ("5", ">  world"), ("jjj", ">  pp "), ("\r", "pp [stages]"), ("2\r", "was 174.1 ms")
        )
        quit(terminal)
    with opened(state, "--tp", "4") as terminal:
        terminal.wait_for("restored from last time: 2 more runs (R); --no-session starts fresh")
        assert "tp 4 x dp 8 x pp 4" in terminal.lines[0]
        assert "run 1 of 3" in terminal.lines[1]
        terminal.press_each(("R", "--pp 2"))
        assert terminal.line_with("(as in the").split()[:2] == ["2", "174.1"]
        assert "not run yet" in terminal.line_with("--pp 2")
        terminal.press("\x1b")
        terminal.wait_for("[5 Param")
        terminal.settle()
        quit(terminal)
    # What the command line stated was not the session's.
    with opened(state) as terminal:
        terminal.wait_for("restored from last time: 2 more runs (R)")
        assert "tp 8 x dp 4 x pp 4" in terminal.lines[0]


def test_no_session_neither_restores_nor_keeps(state: Path) -> None:
    with begun(state) as terminal:
        terminal.press("2jjj")
        terminal.wait_for(">+ stage  3")
        quit(terminal)
    files = {path: path.read_bytes() for path in state.glob("wltui/*.json*")}
    with opened(state, "--no-session") as terminal:
        terminal.wait_for("[1 Summary]")
        terminal.press("2j")
        terminal.wait_for(">+ stage  1")
        quit(terminal)
    assert {path: path.read_bytes() for path in state.glob("wltui/*.json*")} == files


def test_of_a_file_that_changed_the_runs_are_kept_and_the_place_is_not(state: Path, tmp_path: Path) -> None:
    file = tmp_path / "workload.txt"
    shutil.copy(ROOT / SEED_001, file)
    with begun(state, file=str(file)) as terminal:
        terminal.press_each(
            ("5", ">  world"), ("jjj", ">  pp "), ("\r", "pp [stages]"), ("2\r", "was 174.1 ms")
        )
        terminal.press_each(("2", TIMELINE))
        terminal.press("www")
        terminal.settle()
        quit(terminal)
    text = file.read_text().replace("attention_row", "attention_RoW")
    file.write_text(text)
    with opened(state, file=str(file)) as terminal:
        terminal.wait_for("the input changed since: lanes, marks, 1 more run (R) kept, not the place in it")
        assert "[2 Timeline]" in terminal.lines[1]
        assert "run 1 of 2" in terminal.lines[1]
        terminal.wait_for("view 0.000 s .. 0.174 s")


def test_parameters_that_fit_no_more_are_refused_as_if_typed(state: Path) -> None:
    with begun(state) as terminal:
        terminal.press_each(
            ("5", ">  world"), ("jjj", ">  pp "), ("\r", "pp [stages]"), ("2\r", "was 174.1 ms")
        )
        quit(terminal)
    (path,) = state.glob("wltui/*.json*")
    values = json.loads(path.read_text())
    values["parameters"] = {"tp": 3}
    path.write_text(json.dumps(values))
    with opened(state) as terminal:
        terminal.wait_for("change not run")
        terminal.wait_for("world 128 is not a multiple of tp 3 x pp 4")


def test_a_damaged_session_is_said_on_the_screen_and_nothing_of_it_reaches_the_terminal(state: Path) -> None:
    with begun(state) as terminal:
        quit(terminal)
    (path,) = state.glob("wltui/*.json*")
    path.write_text('{"format": "\x7f\\u001b[2JHELLO"}')
    with opened(state) as terminal:
        terminal.wait_for(f"session damaged, set aside as {path.name}.damaged: format: found")
        assert b"[2JHELLO" not in bytes(terminal.raw).replace(b"\\u001b[2JHELLO", b"")
        quit(terminal)
    assert len(session_files(state)) == 2


def test_a_state_directory_that_cannot_be_is_one_line_at_the_end(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.write_text("mine")
    with opened(state) as terminal:
        terminal.wait_for(f"{NOT_RESTORED}: ")
        terminal.press("2")
        terminal.wait_for(TIMELINE)
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        terminal.settle()
        behind = bytes(terminal.raw).rpartition(b"\x1b[?1049l")[2]
        assert f"wltui: {NOT_SAVED}: {state}/wltui: Not a directory\r\n".encode() in behind


def test_a_measured_run_has_a_session_too(state: Path) -> None:
    file = "fixtures/004_megatron_rank7_trace.txt"
    with begun(state, file=file) as terminal:
        terminal.press("2")
        terminal.wait_for(TIMELINE)
        terminal.press("wwm")
        terminal.wait_for("mark a ")
        terminal.press("R")
        terminal.wait_for("r on screen 5 keeps the run that is shown")
        terminal.press("\x1b")
        terminal.wait_for(TIMELINE)
        terminal.press("l")
        terminal.settle()
        rows = terminal.lines[2:35]
        quit(terminal)
    with opened(state, file=file) as terminal:
        terminal.wait_for("restored from last time: view; --no-session starts fresh")
        terminal.wait_for(lambda: terminal.lines[2:35] == rows)


def test_a_replay_is_there_again_with_the_measured_run_beside_it(state: Path) -> None:
    file = "fixtures/004_megatron_rank7_trace.txt"
    with begun(state, file=file) as terminal:
        terminal.press_each(("5", ">  compute  "), (">", "replayed: compute x2"), ("2", TIMELINE))
        quit(terminal)
    with opened(state, file=file) as terminal:
        terminal.wait_for("restored: draft after run 1; x shows run 1, as opened; --no-session starts fresh")
        terminal.wait_for("replayed: compute x2")
        terminal.press_each(("6", "A  run 1 "), ("5", "replayed: compute x2"), ("r", "kept as run 2"))
        terminal.press_each(("x", "run 1 of 2, 3.851 s"))
        quit(terminal)
    # The measured run was on the screen: the replay that was kept is in the history.
    with opened(state, file=file) as terminal:
        terminal.wait_for("restored from last time: view, 1 more run (R); --no-session starts fresh")
        assert "replayed" not in terminal.lines[0]
        terminal.press_each(("R", "--compute-scale 2.0"), ("j\r", "replayed: compute x2"))
        quit(terminal)
    # What the command line states wins.
    with opened(state, "--replay", file=file) as terminal:
        terminal.wait_for("restored from last time: view, 1 more run (R); --no-session starts fresh")
        assert "replayed, 1 micro-batch" in terminal.lines[0]


@pytest.mark.slow
def test_without_a_terminal_nothing_is_read_or_written(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    for words in ([SEED_001], [SEED_001, "--snapshot", "2jj"], ["report", SEED_001]):
        assert wltui_here(*words).returncode == 0
    assert list(state.iterdir()) == []
