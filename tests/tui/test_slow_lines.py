"""A line that is slow gets fewer pictures, never old ones: the picture stops when the key does."""

from __future__ import annotations

import time

import pytest

from tests.tui.pseudo_terminal import SEED, Terminal, wltui
from tests.tui.terminal_cells import differences, seen_cells

SLOW = 50_000
# A machine with other work takes its time: what is fast enough is so once in a few times.
BUSY = "not once"
SSH = {"SSH_CONNECTION": "192.0.2.1 50000 192.0.2.2 22"}


def opened(answers: bool, **env: str | None) -> Terminal:
    """wltui on seed 002 at 200x50, unfolded and zoomed: most cells of most rows change in a pan."""
    terminal = wltui(SEED, columns=200, rows=50, answers=answers, env=env)
    terminal.wait_for("q quit")
    terminal.press("wwwwwwww")
    terminal.settle(0.4)
    return terminal


def seconds_to_the_end(terminal: Terminal) -> float:
    """Read slowly until all is there; seconds until the last byte."""
    begin = time.monotonic()
    last = begin
    while time.monotonic() - last < 1.0:
        if terminal.pump(0.02, SLOW // 50):
            last = time.monotonic()
            time.sleep(1 / 50)
    return last - begin


def check_final(terminal: Terminal, expected: Terminal) -> None:
    expected.settle(0.5)
    assert differences(seen_cells(terminal.screen), seen_cells(expected.screen)) == []


@pytest.mark.parametrize("answers", [True, False], ids=["knows sync", "knows nothing"])
def test_60_keys_at_once_are_few_pictures_and_the_last_is_right(answers: bool) -> None:
    with opened(answers) as terminal, opened(True) as fast:
        before, pictures = len(terminal.raw), terminal.pictures
        terminal.press("d" * 60)
        fast.press("d" * 60)
        took = seconds_to_the_end(terminal)
        check_final(terminal, fast)
        sent = len(terminal.raw) - before
        assert sent < 60_000, f"{sent} bytes in {took:.2f} s"
        assert terminal.pictures - pictures <= 6


def hold(key: str, times: int, *terminals: Terminal, limit: int = 1 << 16) -> float:
    """Press a key 30 times a second, and read meanwhile, the first terminal at most `limit` a time."""
    begin = time.monotonic()
    for number in range(times):
        for terminal in terminals:
            terminal.press(key)
        while time.monotonic() < begin + (number + 1) / 30:
            for terminal in terminals:
                terminal.pump(0.001, limit if terminal is terminals[0] else 1 << 16)
            time.sleep(0.02 if limit < 1 << 16 else 0)
    return time.monotonic() - begin


@pytest.mark.sampled(1)
@pytest.mark.parametrize("answers", [True, False], ids=["knows sync", "knows nothing"])
def test_when_a_held_key_is_released_the_picture_stops(answers: bool) -> None:
    def seconds_after(key: str) -> float:
        hold(key, 60, terminal, fast, limit=SLOW // 50)
        took = seconds_to_the_end(terminal)
        check_final(terminal, fast)
        return took

    with opened(answers) as terminal, opened(True) as fast:
        # What the kernel holds of pictures, 17 kB, takes a third of a second at this speed.
        assert any(seconds_after(key) < (0.5 if answers else 1.0) for key in "dad"), BUSY


def test_over_ssh_there_are_at_most_10_pictures_a_second() -> None:
    with opened(True, **SSH) as terminal, opened(True) as fast:
        before = terminal.pictures
        took = hold("d", 60, terminal, fast)
        for one in (terminal, fast):
            one.settle(0.5)
        assert differences(seen_cells(terminal.screen), seen_cells(fast.screen)) == []
        assert 2 < terminal.pictures - before <= 10 * took + 3


def test_over_ssh_a_single_key_is_answered_at_once() -> None:
    with opened(True, **SSH) as terminal:

        def seconds_to_a_picture() -> float:
            terminal.settle(0.3)
            begin, before = time.monotonic(), terminal.pictures
            terminal.press("d")
            terminal.wait_for(lambda: terminal.pictures > before)
            return time.monotonic() - begin

        assert any(seconds_to_a_picture() < 0.09 for _ in range(15)), BUSY


def test_a_rate_that_somebody_chose_is_kept_over_ssh() -> None:
    with opened(True, **SSH, TEXTUAL_FPS="60") as terminal:

        def pictures_a_second(key: str) -> float:
            before = terminal.pictures
            took = hold(key, 20, terminal)
            return (terminal.pictures - before) / took

        assert any(pictures_a_second(key) > 12 for key in "dadadadada"), BUSY


def test_a_terminal_that_stops_answering_gets_pictures_all_the_same() -> None:
    with opened(True) as terminal:
        terminal._answers = False
        for key, words in (
            ("3", "from: mlp_row"),
            ("5", ">  world"),
            ("!", "[! Notes]"),
            ("2", "At the cursor"),
        ):
            terminal.press(key)
            terminal.wait_for(words, patience=4)
