"""Whole screens with a range, a search, a filter, marks. After a wanted change: `--snapshot-update`."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.tui.conftest import MakeApp
from tests.tui.test_text_frames import SIZES, frame_after, make_app_without_colour

SEARCH = ("slash", *"37", "space", *"bub")
FRAMES = {
    "search, typing": SEARCH,
    "search, found": (*SEARCH, "enter", "n"),
    "search, nothing there": ("slash", *"stage", "space", *"44"),
    "filter, typing": ("backslash", *"bubble"),
    "filter": ("backslash", *"bubble", "enter", "full_stop"),
    "range, live": ("j", "v", *"llll"),
    "range, of a pass": ("j", "V", "V", "f"),
    "marks": ("j", "m", "l", "l", "m", "h", "h", "h"),
    "marks, listed": ("j", "m", "l", "l", "m", "apostrophe"),
    "range, filter and mark": ("m", "backslash", *"exposed", "enter", "V", "V", "l"),
    "longest wait": ("j", "b"),
    "next pass": ("j", "right_curly_bracket"),
    "all details": ("V", "V", "enter"),
    "all details of a collective": ("space", "j", "j", "full_stop", "enter"),
}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("size", SIZES, ids=["120x36", "80x24"])
@pytest.mark.parametrize("name", FRAMES)
async def test_the_screen_is_drawn_as_before(
    make_app: MakeApp, snapshot: SnapshotAssertion, name: str, size: tuple[int, int]
) -> None:
    assert await frame_after(make_app(), size, FRAMES[name]) == snapshot


@pytest.mark.parametrize("name", ["range, filter and mark", "marks, listed", "all details"])
async def test_in_ascii_it_is_drawn_as_before(
    make_app: MakeApp, snapshot: SnapshotAssertion, name: str
) -> None:
    text = await frame_after(make_app(ascii_only=True), (80, 24), FRAMES[name])
    assert text.isascii()
    assert text == snapshot


async def test_without_colour_it_is_drawn_as_before(
    make_app: MakeApp, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = make_app_without_colour(make_app, monkeypatch)
    assert await frame_after(app, (120, 36), FRAMES["range, filter and mark"]) == snapshot
