"""What is sent: the cells that changed, once, and no more than the terminal takes."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

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
        found.settle(0.5)
        yield found


def idle_bytes(terminal: Terminal, seconds: float = 1.0) -> int:
    """What comes in a while in which nobody does anything."""
    terminal.settle()
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
    for keys, words in (("3", "4069.623"), ("?", "Esc closes this"), ("\x1b", "from: mlp_row")):
        terminal.press_each((keys, words))
        assert idle_bytes(terminal, 0.4) == 0
    terminal.press_each(("5", ">  world"), ("\r", "world [ranks]"))
    # A prompt whose cursor blinks.
    assert idle_bytes(terminal) == 0
    terminal.press_each(("\x1b", "Enter type"), ("2", "At the cursor"))
    # The first key on a screen that comes back.
    assert terminal.answer_to("l") < 2000


def test_a_summary_is_idle_when_its_table_is_there(terminal: Terminal) -> None:
    terminal.press_each(("1", "-41.1%"))
    assert idle_bytes(terminal) == 0
    assert 0 < terminal.answer_to("j") < 2000


@pytest.mark.parametrize("key", ["l", "h", "j", "k", ".", ","])
def test_a_cursor_move_sends_less_than_2_kilobytes(terminal: Terminal, key: str) -> None:
    terminal.press_each(("2gj", ">+ stage  1"))
    assert 0 < terminal.answer_to(key) < 2000


def test_keys_that_change_nothing_send_nothing(terminal: Terminal) -> None:
    terminal.press("g0")
    for key in ("k", "Z", "9", "\x1b[24~", "g", "2"):
        assert terminal.bytes_for(key) == 0


def test_a_pan_of_16_lanes_sends_less_than_12_kilobytes(terminal: Terminal) -> None:
    terminal.press("0w")
    for key in ("d", "a"):
        assert 0 < terminal.answer_to(key) < 12_000


def test_with_the_critical_path_shown_a_pan_sends_no_more(terminal: Terminal) -> None:
    terminal.press("0w")
    terminal.press_each(("P", "critical path on, in colour"))
    try:
        for key in ("d", "a"):
            assert 0 < terminal.answer_to(key) < 12_000
    finally:
        terminal.press_each(("P", "critical path off"))


def test_zoom_and_fold_send_less_than_a_picture(terminal: Terminal) -> None:
    for key in ("w", "s", " ", " "):
        assert 0 < terminal.answer_to(key) < PICTURE


def test_opening_a_screen_is_one_picture(terminal: Terminal) -> None:
    # The first time the rows' critical path and what made them come as pictures of their own.
    terminal.press_each(("3", "4069.623"), ("!", "AICB's rows"), ("2", "At the cursor"))
    terminal.settle()
    # The parameters have the bars of the stages beside them.
    screens = (("3", "[3 Layers]", 6000), ("5", "[5 Parameters]", PICTURE), ("!", "[! Notes]", PICTURE))
    for key, words, most in (*screens, ("?", "Esc closes", 6000)):
        before = terminal.pictures
        assert terminal.answer_to(key, words) < most
        assert terminal.pictures == before + 1
    for key, words in (("q", "[! Notes]"), ("2", "[2 Timeline]")):
        before = terminal.pictures
        assert terminal.answer_to(key, words) < PICTURE
        assert terminal.pictures == before + 1


@pytest.mark.parametrize(("keys", "words"), [("2", "At the cursor"), ("5\r", "world [ranks]")])
def test_ctrl_l_sends_everything_again(terminal: Terminal, keys: str, words: str) -> None:
    terminal.press(keys)
    terminal.wait_for(words)
    terminal.settle(0.5)
    before = seen_cells(terminal.screen)
    terminal.screen.reset()
    assert terminal.answer_to("\x0c", words) > 1000
    assert differences(seen_cells(terminal.screen), before) == []
    terminal.press("\x1b")
    terminal.settle(0.3)


# -- another Textual -----------------------------------------------------------------

_OTHER_TEXTUAL = (
    "import sys; from tui.terminal import display; display.TESTED_TEXTUAL = (); "
    "from tui.cli import main; sys.exit(main(sys.argv[1:]))"
)


def test_with_a_textual_that_was_not_tested_its_own_way_of_sending_is_used(terminal: Terminal) -> None:
    program = [sys.executable, "-c", _OTHER_TEXTUAL, SEED]
    with Terminal(program, columns=200, rows=50, answers=True) as other:
        other.wait_for("q quit")
        other.settle(0.5)
        assert len(other.raw) > 2 * PICTURE
        # What one of them has found the other one would still be looking for.
        for one in (terminal, other):
            one.press("1")
            one.wait_for("virtual-stages 8, overlap-grad-reduce")
            one.settle(0.5)
        for keys, words in (("0w3", "from: mlp_row"), ("5\r", "world [ranks]"), ("\x1b", ">  world")):
            for one in (terminal, other):
                one.settle(0.3)
                one.press(keys)
                one.wait_for(words)
                one.settle(0.5)
            assert differences(seen_cells(other.screen), seen_cells(terminal.screen)) == []
        # Lines that did not change are left alone there, too.
        assert other.answer_to("2", "At the cursor") > 2 * PICTURE
        other.answer_to("l")
        assert 0 < other.answer_to("l") < 4096
        assert idle_bytes(other) == 0
        other.press("q")
        assert other.wait_for_end() == 0
