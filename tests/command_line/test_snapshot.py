"""`--snapshot KEYS` prints the real screen without a terminal; `wltui keys` prints what keys there are."""

from __future__ import annotations

import contextlib
import errno
import os
import pty
import resource
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from textual.pilot import Pilot, WaitForScreenTimeout

from simcore.diagnostics import UsageError
from tests.command_line.running import SEED_001, TABLE, TRACE, environment, process, wltui, wltui_here
from tests.findings import finding
from tests.says import figures, said
from tui.keys import read_keymap
from tui.snapshot import parse_keys, parse_size


def test_the_first_screen_as_text() -> None:
    done = wltui(SEED_001, "--snapshot", "")
    assert (done.returncode, done.stderr) == (0, "")
    rows = done.stdout.split("\n")
    assert len(rows) == 37
    assert rows[0].startswith(" wltui  001_moe_128npu_with_mistakes.txt   128 ranks = tp 8 x dp 4 x pp 4")
    assert "159.6 ms" in done.stdout, "what is found in the background is awaited"
    assert "\x1b" not in done.stdout
    assert rows[35].endswith("q quit")


@pytest.mark.slow
def test_keys_are_pressed_and_their_runs_awaited() -> None:
    done = wltui_here(SEED_001, "--snapshot", "5 jjjjjjjjjj l", "--size", "80x24")
    assert "[5 Params]" in done.stdout
    assert "was 174.1 ms" in done.stdout
    assert len(done.stdout.split("\n")) == 25
    assert max(map(len, done.stdout.split("\n"))) <= 80


def test_the_screen_to_begin_with_can_be_chosen() -> None:
    assert "[3 Layers]" in wltui_here(TABLE, "--screen", "layers", "--snapshot", "").stdout
    done = wltui_here(TABLE, "--screen", "map", "--snapshot", "")
    names = "summary, timeline, layers, why, parameters, compare, sweep, steps, links, notes"
    assert (done.returncode, done.stderr) == (2, f"wltui: --screen: found map, expected {names}\n")


def test_a_picture_is_the_same_each_time_and_whatever_the_environment() -> None:
    words = (TRACE, "--snapshot", "2 Space www", "--svg", "--size", "100x30")
    shown = wltui(*words, TERM="dumb", COLORTERM="truecolor").stdout
    assert ElementTree.fromstring(shown).tag.endswith("svg")
    # Forward has its colour.
    assert "#5fafd7" in shown
    bare = process([sys.executable, "-m", "tui", *words], {"PATH": "", "PYTHONUTF8": "1"})
    assert bare.stdout == shown


@pytest.mark.slow
def test_ascii_is_ascii() -> None:
    shown = wltui_here(TABLE, "--snapshot", "j", "--ascii").stdout
    assert shown.isascii()
    assert wltui_here(TABLE, "--snapshot", "j", encoding="ascii").stdout == shown
    assert not wltui_here(TABLE, "--snapshot", "j").stdout.isascii()


def test_the_bundled_example_and_a_measured_run_have_one_too() -> None:
    words = ("--world", "128", "--microbatches", "1", "--screen", "layers", "--snapshot", "")
    assert "002_gpt_1024npu.txt" in wltui_here(*words).stdout
    done = wltui_here(TRACE, "--snapshot", "3")
    assert "[3 " in done.stdout


def test_words_that_are_keys_and_words_that_are_typed() -> None:
    assert [one.key for one in parse_keys("2 ww Ctrl+R /mlp Enter Space .,")] == [
        "2", "w", "w", "ctrl+r", "/", "m", "l", "p", "enter", "space", ".", ","
    ]  # fmt: skip
    assert parse_keys("") == []
    assert parse_size("80x24") == (80, 24)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("2 Enterr", "Enterr names no key, and there is no prompt for it here; did you mean Enter?"),
        ("Quux", "Quux names no key, and there is no prompt for it here"),
    ],
)
def test_a_word_that_looks_like_a_key_and_is_none_is_an_error(keys: str, said: str) -> None:
    done = wltui_here(TABLE, "--snapshot", keys)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"wltui: --snapshot: {said}\n")


@pytest.mark.slow
def test_in_a_prompt_such_a_word_is_what_is_typed() -> None:
    shown = wltui_here(TABLE, "--snapshot", "2 / Enterr").stdout
    said(shown.splitlines(), "no match", "Enterr")


def test_a_screen_that_there_is_not_is_an_error_without_a_terminal_too() -> None:
    for more in ([], ["--snapshot", "j"]):
        done = wltui_here(TABLE, "--screen", "Timeline", *more)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("wltui: --screen: found Timeline, expected summary, timeline")


@pytest.mark.parametrize("size", ["80", "0x3", "80x0", "2000x3", "80x501", "x", "8 0x3", "-1x5", "٣x٣"])
def test_sizes_that_cannot_be(size: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_size(size)
    assert str(caught.value) == (f"--size: found {size}, expected COLUMNSxROWS like 120x36, at most 1000x500")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--size", "80x24"], "wltui: --size is of --snapshot KEYS\n"),
        (["--svg"], "wltui: --svg is of --snapshot KEYS\n"),
        (["--snapshot", "\x1b[A"],
         "wltui: --snapshot: found \\x1b[A, expected keys like: j Space ww Ctrl+R\n"),
        (["--snapshot", "", "--size", "wide"],
         "wltui: --size: found wide, expected COLUMNSxROWS like 120x36, at most 1000x500\n"),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_line(words: list[str], said: str) -> None:
    done = wltui_here(TABLE, *words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def test_quitting_among_the_keys_is_no_error() -> None:
    done = wltui_here(TABLE, "--snapshot", "j q k")
    assert done.returncode == 2
    said(done.stderr.splitlines(), "wltui: --snapshot:", "the keys end", "no screen")


def test_a_screen_that_does_not_answer_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    async def timed_out(self: object, timeout: float = 30.0) -> None:
        raise WaitForScreenTimeout("Timed out")

    monkeypatch.setattr(Pilot, "_wait_for_screen", timed_out)
    done = wltui_here(TABLE, "--snapshot", "2")
    said = "wltui: --snapshot: the screen did not answer for 30 s\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


@pytest.mark.parametrize("limit", [5, 6])
def test_too_few_open_files_are_one_line(limit: int) -> None:
    done = process(
        [sys.executable, "-m", "tui", TABLE, "--snapshot", "2"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)),
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert figures(line)[:3] == ["--snapshot", "4", str(limit - 3)]
    assert line.endswith(f": {os.strerror(errno.EMFILE)} (ulimit -n)")


def test_a_screen_with_too_few_open_files_is_one_line() -> None:
    ours, theirs = pty.openpty()
    done = process(
        [sys.executable, "-m", "tui", TABLE],
        environment(TERM="xterm-256color"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9)),
        stdin=theirs,
        stdout=theirs,
    )
    os.close(theirs)
    os.set_blocking(ours, False)
    with contextlib.suppress(OSError):
        assert os.read(ours, 4096) == b""
    os.close(ours)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, figures(line)[:2]) == (2, ["8", "6"])
    assert line.startswith("wltui: the screen ")
    assert line.endswith(f": {os.strerror(errno.EMFILE)} (ulimit -n)")


def test_an_error_in_the_file_is_that_of_every_command() -> None:
    done = wltui_here("none.txt", "--snapshot", "")
    assert done.returncode == 1
    assert finding(done.stderr) == "none.txt: error no-such-file"


# -- wltui keys ----------------------------------------------------------------------


def test_what_keys_prints_is_a_keymap_that_changes_nothing(tmp_path: Path) -> None:
    from tui.app import WltuiApp
    from tui.screens import all_bindings

    done = wltui_here("keys")
    assert (done.returncode, done.stderr) == (0, "")
    assert 'zoom-in = ["w", "+", "="]' in done.stdout
    path = tmp_path / "wltui" / "keys.toml"
    path.parent.mkdir()
    path.write_text(done.stdout, encoding="utf-8")
    keymap = read_keymap(str(path), all_bindings(), WltuiApp.BINDINGS)
    assert len(keymap) > 40
    again = wltui_here("keys", XDG_CONFIG_HOME=str(tmp_path))
    assert again.stdout.split("\n")[1:] == done.stdout.split("\n")[1:]


def test_keys_prints_the_users_own_and_refuses_what_the_screen_would(tmp_path: Path) -> None:
    path = tmp_path / "wltui" / "keys.toml"
    path.parent.mkdir()
    path.write_text('[timeline]\nzoom-in = "F5"\n')
    assert 'zoom-in = ["F5"]' in wltui_here("keys", XDG_CONFIG_HOME=str(tmp_path)).stdout
    path.write_text('[timeline]\nzoom-in = "q"\n')
    for words in (["keys"], [TABLE, "--snapshot", ""]):
        done = wltui_here(*words, XDG_CONFIG_HOME=str(tmp_path))
        assert done.returncode == 1
        assert finding(done.stderr) == f'{path}:2:1: error keymap "q", timeline.zoom-in, app.quit, app.quit'
