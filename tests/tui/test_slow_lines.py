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
    terminal.settle()
    return terminal


def bytes_to_the_end(terminal: Terminal) -> int:
    """Read slowly until all is there; how many bytes still came. At this speed they say how long the picture
    went on, however busy the machine is.
    """
    before, quiet = len(terminal.raw), time.monotonic() + 0.5
    while time.monotonic() < quiet:
        came = terminal.pump(0.02, SLOW // 50)
        if came or terminal.is_working:
            quiet = time.monotonic() + 0.5
        if came:
            time.sleep(1 / 50)
    return len(terminal.raw) - before


def check_final(terminal: Terminal, expected: Terminal) -> None:
    for one in (terminal, expected):
        one.settle()
    assert differences(seen_cells(terminal.screen), seen_cells(expected.screen)) == []


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


@pytest.mark.parametrize("answers", [True, False], ids=["knows sync", "knows nothing"])
def test_60_keys_at_once_are_few_pictures_and_when_a_held_key_is_released_the_picture_stops(
    answers: bool,
) -> None:
    with opened(answers) as terminal, opened(True) as fast:
        before, pictures = len(terminal.raw), terminal.pictures
        terminal.press("d" * 60)
        fast.press("d" * 60)
        bytes_to_the_end(terminal)
        check_final(terminal, fast)
        assert len(terminal.raw) - before < 60_000
        assert terminal.pictures - pictures <= 6
        hold("a", 40, terminal, limit=SLOW // 50)
        fast.press("a" * 40)
        # The kernel holds 17 kB of pictures; there is no more than one behind it, two where nothing answers.
        assert bytes_to_the_end(terminal) < SLOW * (0.5 if answers else 1.0)
        check_final(terminal, fast)


def test_over_ssh_there_are_at_most_10_pictures_a_second_and_a_single_key_is_answered_at_once() -> None:
    def seconds_to_a_picture(terminal: Terminal) -> float:
        terminal.settle()
        begin, before = time.monotonic(), terminal.pictures
        terminal.press("d")
        terminal.wait_for(lambda: terminal.pictures > before)
        return time.monotonic() - begin

    with opened(True, **SSH) as terminal, opened(True) as fast:
        before = terminal.pictures
        took = hold("d", 40, terminal)
        fast.press("d" * 40)
        check_final(terminal, fast)
        assert 2 < terminal.pictures - before <= 10 * took + 3

        over, plain = [], []
        # Here a picture takes what the machine takes; one that had to wait came 100 ms later than that.
        while not over or min(over) >= min(plain) + 0.05:
            assert len(over) < 15, BUSY
            over.append(seconds_to_a_picture(terminal))
            plain.append(seconds_to_a_picture(fast))


def test_a_rate_that_somebody_chose_is_kept_over_ssh() -> None:
    with opened(True, **SSH, TEXTUAL_FPS="60") as terminal, opened(True) as fast:

        def has_as_many(key: str) -> bool:
            """Not a third of what there is without a rate, as at 10 a second."""
            before = terminal.pictures, fast.pictures
            hold(key, 20, terminal, fast)
            return 2 * (terminal.pictures - before[0]) > fast.pictures - before[1]

        assert any(has_as_many(key) for key in "dadadadada"), BUSY


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
            terminal.wait_for(words)
