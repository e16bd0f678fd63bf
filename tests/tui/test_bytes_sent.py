"""What is sent: the cells that changed, once, and no more than the terminal takes."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from functools import partial

import pytest

from tests.tui.pseudo_terminal import SEED, Terminal, wltui
from tests.tui.terminal_cells import differences, seen_cells

# One picture of the timeline, whole, at 200x50.
PICTURE = 24_000


@pytest.fixture(scope="module")
def terminal() -> Iterator[Terminal]:
    """wltui on seed 002 at 200x50, 256 colours, in a terminal that knows synchronized output."""
    with wltui(SEED, columns=200, rows=50, answers=True) as found:
        found.wait_for("q quit")
        found.settle()
        yield found


def sent_for(terminal: Terminal, keys: str, found: str | None = None, *, answers: bool = True) -> int:
    """How many bytes the answer to keys has. A terminal is quiet when nothing comes while no thread of the
    program runs: twice the time between two pictures is enough.
    """
    terminal.settle(0.05)
    before = len(terminal.raw)
    terminal.press(keys)
    if answers:
        terminal.wait_for(lambda: len(terminal.raw) > before)
    if found is not None:
        terminal.wait_for(found)
    terminal.settle(0.1)
    return len(terminal.raw) - before


def idle_bytes(terminal: Terminal, seconds: float = 0.6) -> int:
    """What comes in a while in which nobody does anything."""
    terminal.settle(0.1)
    before, until = len(terminal.raw), time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        terminal.pump(left)
    return len(terminal.raw) - before


def test_the_first_screen_is_one_picture_of_less_than_24_kilobytes(terminal: Terminal) -> None:
    # On a busy machine the first picture is there before the terminal's answer, and has no mark.
    assert terminal.pictures <= 1
    assert len(terminal.raw) < PICTURE


def test_an_idle_screen_sends_nothing(terminal: Terminal) -> None:
    assert idle_bytes(terminal) == 0
    # The critical path of the rows is found behind the table and drawn when it is there.
    terminal.press_each(("3", "4069.623"))
    assert idle_bytes(terminal) == 0
    terminal.press_each(("?", "Esc closes this"), ("\x1b", "from: mlp_row"))
    terminal.press_each(("5", ">  world"), ("\r", "world [ranks]"))
    # Textual's cursors blink twice a second, and the first change is not always seen.
    assert idle_bytes(terminal, 1.2) == 0
    terminal.press_each(("\x1b", "Enter type"), ("2", "At the cursor"))
    # The first key on a screen that comes back.
    assert sent_for(terminal, "l") < 2000


def test_a_summary_is_idle_when_its_table_is_there(terminal: Terminal) -> None:
    terminal.press_each(("1", "-41.1%"))
    assert idle_bytes(terminal) == 0
    assert 0 < sent_for(terminal, "j") < 2000


def test_a_cursor_move_sends_less_than_2_kilobytes(terminal: Terminal) -> None:
    terminal.press_each(("2gj", ">+ stage  1"))
    for key in ("l", "h", "j", "k", ".", ","):
        assert 0 < sent_for(terminal, key) < 2000, key


def test_keys_that_change_nothing_send_nothing(terminal: Terminal) -> None:
    terminal.press("g0")
    for key in ("k", "Z", "\x1b[24~", "g", "2"):
        assert sent_for(terminal, key, answers=False) == 0, key


def test_a_pan_of_16_lanes_sends_less_than_12_kilobytes(terminal: Terminal) -> None:
    terminal.press("0w")
    for key in ("d", "a"):
        assert 0 < sent_for(terminal, key) < 12_000


def test_with_the_critical_path_shown_a_pan_sends_no_more(terminal: Terminal) -> None:
    terminal.press("0w")
    terminal.press_each(("P", "critical path on, in colour"))
    try:
        for key in ("d", "a"):
            assert 0 < sent_for(terminal, key) < 12_000
    finally:
        terminal.press_each(("P", "critical path off"))


def test_zoom_and_fold_send_less_than_a_picture(terminal: Terminal) -> None:
    for key in ("w", "s", " ", " "):
        assert 0 < sent_for(terminal, key) < PICTURE


def test_opening_a_screen_is_one_picture(terminal: Terminal) -> None:
    # The first time the rows' critical path and what made them come as pictures of their own.
    terminal.press_each(("3", "4069.623"), ("!", "AICB's rows"), ("2", "At the cursor"))
    terminal.settle()
    # The parameters have the bars of the stages beside them.
    screens = (("3", "[3 Layers]", 6000), ("5", "[5 Parameters]", PICTURE), ("!", "[! Notes]", PICTURE))
    for key, words, most in (*screens, ("?", "Esc closes", 6000)):
        before = terminal.pictures
        assert sent_for(terminal, key, words) < most
        assert terminal.pictures == before + 1
    for key, words in (("q", "[! Notes]"), ("2", "[2 Timeline]")):
        before = terminal.pictures
        assert sent_for(terminal, key, words) < PICTURE
        assert terminal.pictures == before + 1


@pytest.mark.parametrize(("keys", "words"), [("2", "At the cursor"), ("5\r", "world [ranks]")])
def test_ctrl_l_sends_everything_again(terminal: Terminal, keys: str, words: str) -> None:
    terminal.press(keys)
    terminal.wait_for(words)
    terminal.settle()
    before = seen_cells(terminal.screen)
    terminal.screen.reset()
    assert sent_for(terminal, "\x0c", words) > 1000
    assert differences(seen_cells(terminal.screen), before) == []
    terminal.press("\x1b")
    terminal.settle()


# -- another Textual -----------------------------------------------------------------

_OTHER_TEXTUAL = (
    "import sys; from tui.terminal import display; display.TESTED_TEXTUAL = (); "
    "from tui.cli import main; sys.exit(main(sys.argv[1:]))"
)


def test_with_a_textual_that_was_not_tested_its_own_way_of_sending_is_used(terminal: Terminal) -> None:
    program = [sys.executable, "-c", _OTHER_TEXTUAL, SEED]
    with Terminal(program, columns=200, rows=50, answers=True) as other:
        other.wait_for("q quit")
        other.settle()
        assert len(other.raw) > 2 * PICTURE

        def has_answered(one: Terminal, before: int, words: str) -> bool:
            return len(one.raw) > before and words in one.text

        def are_equal() -> bool:
            terminal.pump(0)
            return not differences(seen_cells(other.screen), seen_cells(terminal.screen))

        # What one of them has found of the assumptions the other one would not know.
        for one in (terminal, other):
            one.press_each(("1", "-41.1%"))
        # A screen, a prompt over another one, and what was below it.
        for keys, words in (("3", "4069.623"), ("\\", ""), ("\x1b", "from: mlp_row"), ("!", "AICB's rows")):
            sent = {one: len(one.raw) for one in (terminal, other)}
            for one in sent:
                one.press(keys)
            for one, before in sent.items():
                one.wait_for(partial(has_answered, one, before, words))
            other.wait_for(are_equal)
        # Lines that did not change are left alone there, too.
        assert sent_for(other, "2", "At the cursor") > 2 * PICTURE
        sent_for(other, "l")
        assert 0 < sent_for(other, "l") < 4096
        assert idle_bytes(other) == 0
        other.press("q")
        assert other.wait_for_end() == 0
