"""Search, ranges, marks and the mouse in a real terminal: keys and escape sequences, as they are sent."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from tests.says import said
from tests.tui.pseudo_terminal import SEED, TABLE, Terminal, wltui

LEFT, ABOVE = 24, 6


@pytest.fixture(scope="module")
def shared() -> Iterator[Terminal]:
    """One for all tests that leave it as they found it, but for its cursor where clicks move that."""
    with wltui(SEED) as found:
        found.wait_for("q quit")
        found.settle()
        yield found


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """One for a test that searches or sets marks."""
    with wltui(SEED) as found:
        found.wait_for("q quit")
        found.settle()
        yield found


@pytest.fixture
def unmoved(shared: Terminal) -> Terminal:
    """The same one as it was at first for the mouse: no range, all lanes folded, the cursor in the middle."""
    shared.press("\x1b")
    # For 0.1 s it may be the beginning of another key.
    shared.settle(0.2)
    shared.press("Z0g")
    shared.wait_for(lambda: ">+ stage  0" in shared.text and " view 0.0 s .. 14.8 s" in shared.text)
    shared.settle(0.05)
    shared.press_each((click(LEFT + 48, ABOVE), "At the cursor, 7.5 s"))
    shared.settle(0.2)
    return shared


def mouse(button: int, column: int, row: int, ending: str = "M") -> str:
    """A mouse report (SGR, mode 1006) about a cell of the screen, counted from 0."""
    return f"\x1b[<{button};{column + 1};{row + 1}{ending}"


def click(column: int, row: int) -> str:
    """Press and release."""
    return mouse(0, column, row) + mouse(0, column, row, "m")


def drag(first: int, last: int, row: int) -> str:
    """Press, move cell by cell, release."""
    step = 1 if last > first else -1
    moves = "".join(mouse(32, column, row) for column in range(first + step, last + step, step))
    return mouse(0, first, row) + moves + mouse(0, last, row, "m")


def view(terminal: Terminal) -> str:
    """The line of the view."""
    return terminal.line_with(" a column")


# -- keys ------------------------------------------------------------------------------


def test_a_search_jumps_while_one_types_and_escape_goes_back(shared: Terminal) -> None:
    before = shared.lines[:30]
    shared.press("/")
    shared.wait_for(lambda: shared.lines[-1].startswith(" / "))
    shared.press("37 bub")
    shared.wait_for("match 1 of 16: rank 37 3.1 s")
    shared.wait_for("for rank 101 = stage 1, dp 4, tp 5")
    shared.settle(0.2)
    shared.press("\x1b")
    shared.wait_for(lambda: shared.lines[:30] == before)


@pytest.mark.parametrize(
    ("first", "burst", "wanted"),
    [
        ("", "abc\x7fdef\x7f\x7f\x7f\x7f\x7fghijk", "ghijk"),
        ("rank 37 bubble", "\x7f\x7f\x7f\x7f\x7f\x7fwaits", "rank 37 waits"),
        ("", "bc\x1b[Ha\x1b[Fd", "abcd"),
    ],
    ids=["between letters", "before letters", "home and end"],
)
def test_keys_that_edit_keep_their_place_in_a_burst(
    shared: Terminal, first: str, burst: str, wanted: str
) -> None:
    shared.press("/")
    shared.wait_for(lambda: shared.lines[-1].startswith(" / "))
    shared.settle(0.2)
    if first:
        shared.press_each((first, f" / {first} "))
        shared.settle(0.2)
    shared.press(burst)
    shared.wait_for(lambda: shared.lines[-1].startswith(f" / {wanted} "))
    shared.settle(0.2)
    shared.press("\x1b")
    shared.wait_for(lambda: not shared.lines[-1].startswith(" / "))
    shared.settle(0.2)


def test_enter_stays_and_n_goes_on(terminal: Terminal) -> None:
    terminal.press("/37 bub\r")
    terminal.wait_for("── match 1 of 16 ──")
    terminal.wait_for("n N match")
    terminal.press_each(("n", "── match 2 of 16 ──"), ("N", "── match 1 of 16 ──"))
    terminal.press_each(("N", "── match 16 of 16, before its start ──"))


def test_what_is_not_there_is_said_and_one_stays(terminal: Terminal) -> None:
    terminal.press("/stage 16\r")
    terminal.wait_for("── no stage 16: stages are 0 to 15 ──")
    terminal.press("/zzz")
    terminal.wait_for("no match for zzz")


def test_the_four_questions_take_seconds(terminal: Terminal) -> None:
    # Which stage waits longest, and when?
    terminal.press("B")
    terminal.wait_for("longest of 255 waits of all lanes, 4.096 s")
    assert terminal.line_with(">+").startswith(">+ stage  0")
    # Where does rank 37 wait first, and for whom?
    terminal.press("/37 bubble\r")
    terminal.wait_for("3.063 753 958 s .. 7.159 761 194 s   4.096 s")
    terminal.wait_for("for rank 101 = stage 1, dp 4, tp 5")
    # How long does a forward micro-batch take on stage 5?
    terminal.press("/stage 5 forward mb 2\r")
    terminal.wait_for("forward of micro-batch 2 (3rd of 16) takes 191.5 ms here")
    # What part of the range from the third to the fourth micro-batch is bubble?
    terminal.press("v}")
    terminal.wait_for("── Range 1.3 s .. 1.5 s, 191.5 ms")
    wanted = re.compile(r" mean of all .*bubble 50.0 % 95.761 ms")
    terminal.wait_for(lambda: wanted.search(terminal.text) is not None)


def test_a_range_and_a_filter_are_left_one_after_the_other(shared: Terminal) -> None:
    shared.press_each(("\\", " filter "), ("bubble\r", "filter bubble: 16 of 2537 spans here"))
    shared.press_each(("V", "Range "))
    shared.settle(0.2)
    shared.press("\x1b")
    shared.wait_for(lambda: "── Range " not in shared.text)
    assert "filter bubble" in shared.text
    shared.settle(0.2)
    shared.press("\x1b")
    shared.wait_for(lambda: "filter bubble" not in shared.text)


def test_marks_are_listed_jumped_to_and_removed(terminal: Terminal) -> None:
    terminal.press_each(("m", "mark a is set"), ("jllm", "mark b is set"), ("'", "a letter or Enter"))
    assert "> b  " in terminal.text
    terminal.press_each(("a", ">+ stage  0"), ("'", "a letter or Enter"), ("\x1b[A", "> a  "))
    terminal.press("\x1b[3~")
    terminal.wait_for(lambda: " a  7.387" not in terminal.text)
    terminal.settle(0.2)
    terminal.press("\x1b")
    terminal.wait_for(" mark b ")


def test_enter_shows_all_details_and_comes_back(shared: Terminal) -> None:
    shared.press_each(("\r", "Esc closes this"))
    assert "row             attention_row, line 15 of " in shared.text
    shared.press_each(("\r", "q quit"))


# -- mouse -----------------------------------------------------------------------------


def test_a_click_moves_the_cursor_to_lane_and_time(shared: Terminal) -> None:
    shared.press(click(LEFT + 48, ABOVE + 5))
    shared.wait_for(">+ stage  5")
    shared.press(click(LEFT, ABOVE + 7))
    shared.wait_for(">+ stage  7")
    shared.wait_for("At the cursor, 0.1 s")


def test_a_click_on_the_sign_of_a_lane_unfolds_it(unmoved: Terminal) -> None:
    unmoved.press(click(1, ABOVE + 2))
    unmoved.wait_for(">- stage  2")
    unmoved.press(click(8, ABOVE + 9))
    unmoved.wait_for(">+ stage  5")


def test_the_wheel_zooms_at_the_pointer_and_scrolls_the_names(unmoved: Terminal) -> None:
    unmoved.resize(80, 24)
    try:
        unmoved.wait_for(lambda: unmoved.lines[5].startswith(">+  0 "))
        unmoved.settle(0.2)
        unmoved.press(mouse(65, 3, 8))
        unmoved.wait_for(lambda: unmoved.lines[5].startswith(">+  2 "))
        unmoved.press(mouse(64, 3, 8))
        unmoved.wait_for(lambda: unmoved.lines[5].startswith(" +  0 "))
        unmoved.press(mouse(64, 3, 8))
        unmoved.wait_for(lambda: unmoved.lines[5][:6] == " +  0 ")
        unmoved.press(mouse(64, 14, 8) * 3)
        unmoved.wait_for(lambda: re.search(r"│ +0\.2 s +0\.4 .* 1\.8 ", unmoved.text) is not None)
    finally:
        unmoved.resize(120, 36)
        unmoved.wait_for("Enter details")


def test_the_wheel_zooms_in_and_out_again_and_sideways_it_pans(unmoved: Terminal) -> None:
    before = view(unmoved)
    unmoved.press(mouse(64, LEFT + 90, ABOVE + 3))
    unmoved.wait_for(lambda: view(unmoved) != before)
    zoomed = view(unmoved)
    assert re.search(r" view [67]\.", zoomed)
    for turn in (mouse(65 + 4, LEFT, ABOVE), mouse(65 + 16, LEFT, ABOVE), mouse(67, LEFT, ABOVE)):
        unmoved.press(mouse(64 + 4, LEFT, ABOVE) * 9)
        unmoved.wait_for(" view 0.00")
        unmoved.press(turn)
        unmoved.wait_for(" view 0.92 s")
    unmoved.press(mouse(65, LEFT + 5, ABOVE) * 3)
    unmoved.wait_for(lambda: view(unmoved) == before)


def test_dragging_marks_out_a_range_as_it_goes(unmoved: Terminal) -> None:
    unmoved.press(mouse(0, LEFT + 20, ABOVE + 5) + mouse(32, LEFT + 25, ABOVE + 5))
    unmoved.wait_for("── Range ")
    title = unmoved.line_with("── Range ")
    unmoved.press(mouse(32, LEFT + 40, ABOVE + 6))
    unmoved.wait_for(lambda: unmoved.line_with("── Range ") != title)
    title = unmoved.line_with("── Range ")
    unmoved.press(mouse(0, LEFT + 40, ABOVE + 6, "m"))
    unmoved.settle()
    assert unmoved.line_with("── Range ") == title
    assert unmoved.lines[5].count("━") == 20
    unmoved.press(drag(LEFT + 50, LEFT + 10, ABOVE + 1))
    unmoved.wait_for(lambda: unmoved.lines[5].count("━") == 40)


def test_a_double_click_fits_the_span(unmoved: Terminal) -> None:
    unmoved.press(click(LEFT + 30, ABOVE) + click(LEFT + 30, ABOVE))
    unmoved.wait_for(lambda: " view 2.5" in unmoved.text)
    said(unmoved.lines, "bubble", "gradient", "stage 1")


def test_a_click_on_a_tab_opens_its_screen(shared: Terminal) -> None:
    shared.press(click(shared.lines[1].index("Layers"), 1))
    shared.wait_for("[3 Layers]")
    shared.press(click(shared.lines[1].index("Timeline"), 1))
    shared.wait_for("[2 Timeline]")
    shared.press(click(shared.lines[1].index("step") - 2, 1))
    shared.press(click(3, 0))
    shared.settle()
    assert "[2 Timeline]" in shared.text


def test_the_minimap_moves_the_view(unmoved: Terminal) -> None:
    unmoved.press("www")
    unmoved.wait_for(lambda: " view 6." in unmoved.text)
    unmoved.press(click(LEFT + 10, 2))
    unmoved.wait_for(lambda: " view 0." in unmoved.text)
    unmoved.press(drag(LEFT + 10, LEFT + 90, 3))
    unmoved.wait_for(lambda: " view 12." in unmoved.text)


# -- bytes -----------------------------------------------------------------------------


def test_motion_is_asked_for_only_while_a_button_is_held() -> None:
    with wltui(TABLE) as terminal:
        terminal.wait_for("q quit")
        asked = bytes(terminal.raw)
        assert b"\x1b[?1002h" in asked
        assert b"\x1b[?1003h" not in asked
        assert b"\x1b[?1016h" not in asked
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        for mode in (b"1000", b"1002", b"1006"):
            assert terminal.raw.rindex(b"\x1b[?" + mode + b"l") > terminal.raw.rindex(b"\x1b[?" + mode + b"h")


def test_a_click_sends_no_more_than_a_cursor_move_and_rest_sends_nothing(unmoved: Terminal) -> None:
    unmoved.press(click(LEFT + 48, ABOVE + 2))
    assert unmoved.bytes_for(click(LEFT + 49, ABOVE + 2)) < 4096
    before, until = len(unmoved.raw), time.monotonic() + 0.3
    while (left := until - time.monotonic()) > 0:
        unmoved.pump(left)
    assert len(unmoved.raw) == before
    for nothing in (click(60, ABOVE + 18), mouse(35, 40, 10), mouse(64, 40, 34), click(5, 34)):
        assert unmoved.bytes_for(nothing) == 0


def test_without_the_mouse_the_terminal_keeps_it() -> None:
    with wltui(TABLE, "--no-mouse") as terminal:
        terminal.wait_for("q quit")
        assert b"\x1b[?1000h" not in terminal.raw
        assert b"\x1b[?1002h" not in terminal.raw
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        assert b"\x1b[?1002l" not in terminal.raw
