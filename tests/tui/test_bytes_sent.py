"""Only lines that changed are sent: a terminal may be a slow line away."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.tui.pseudo_terminal import SEED, Terminal, wltui


@pytest.fixture(scope="module")
def terminal() -> Iterator[Terminal]:
    """wltui on seed 002 at 120x36, 256 colours."""
    with wltui(SEED) as found:
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


def test_an_idle_screen_sends_nothing(terminal: Terminal) -> None:
    assert idle_bytes(terminal) == 0
    for keys, words in (("3", "from: mlp_row"), ("?", "Esc closes this"), ("\x1b", "from: mlp_row")):
        terminal.press_each((keys, words))
        assert idle_bytes(terminal, 0.4) == 0
    terminal.press_each(("5", ">  world"), ("\r", "world [ranks]"))
    assert idle_bytes(terminal) == 0, "a prompt whose cursor blinks"
    terminal.press_each(("\x1b", "Enter type a value"), ("2", "At the cursor"))
    # The first key on a screen that comes back makes Textual paint it once more.
    assert terminal.bytes_for("l") < 30_000


@pytest.mark.parametrize("key", ["l", "h", "j", "k", ".", ","])
def test_a_cursor_move_sends_less_than_4_kilobytes(terminal: Terminal, key: str) -> None:
    assert 0 < terminal.bytes_for(key) < 4096


def test_keys_that_change_nothing_send_nothing(terminal: Terminal) -> None:
    terminal.press("g0")
    for key in ("k", "Z", "9", "\x1b[24~", "g", "2"):
        assert terminal.bytes_for(key) == 0


def test_zoom_pan_and_fold_send_less_than_30_kilobytes(terminal: Terminal) -> None:
    for key in ("w", "d", "a", "s", " ", " "):
        assert terminal.bytes_for(key) < 30_000


def test_opening_a_screen_sends_less_than_40_kilobytes(terminal: Terminal) -> None:
    screens = (("3", "[3 Layers]"), ("5", "[5 Parameters]"), ("!", "[! Notes]"), ("2", "[2 Timeline]"))
    sent = {words: terminal.bytes_for(key, words) for key, words in screens}
    assert {words: count for words, count in sent.items() if count >= 40_000} == {}
