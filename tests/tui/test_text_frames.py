"""Whole screens of seed 002 as text. After a wanted change: `pytest tests/tui --snapshot-update`."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from simcore.flight.names import wall_clock
from tests.hangs.incidents import BEGIN_NS
from tests.tui.conftest import MakeApp
from tests.tui.screen_reading import burst, run_over, screen_rows
from tui.app import WltuiApp

SIZES = [(120, 36), (80, 24)]
FRAMES = {
    "timeline, whole step": (),
    "timeline, zoomed in": ("j", "j", *"wwwwwwwww"),
    "timeline, unfolded": ("j", "j", "space", "j", "j"),
    "timeline, the path": ("j", "j", "space", "j", "P"),
    "timeline, the path zoomed in": ("C", *"wwwwwwww"),
    "summary": ("1",),
    "summary, the map": ("1", "tab", "l", "l", "i"),
    "why": ("4", "tab", "j"),
    "why, the legs": ("4", "shift+tab", *"jjjjj"),
    "compare": ("5", *"jjjjj", "enter", *"zb-h1", "enter", "6"),
    "compare, what differs": ("5", *"jjjjj", "enter", *"zb-h1", "enter", "6", "tab", "j"),
    "compare, at what moved": (
        "5",
        *"jjjjj",
        "enter",
        *"zb-h1",
        "enter",
        "6",
        "full_stop",
        "w",
        "vertical_line",
    ),
    "compare, A alone": ("5", *"jjjjj", "enter", *"zb-h1", "enter", "6", "i"),
    "compare, one run": ("6",),
    "layers": ("3", "j", "j"),
    "layers, each row": ("3", "space", "pagedown"),
    "layers, sorted": ("3", *"lllls", "j"),
    "layers, filtered": ("3", "backslash", *"grad", "enter"),
    "layers, the filter is typed": ("3", "backslash", *"dp"),
    "parameters": ("5", *"jjjj"),
    "parameters, changed": ("5", *("j" * 12), "greater_than_sign"),
    "parameters, refused": ("5", "j", "enter", "3", "enter"),
    "parameters, a refused choice": ("5", *"jjjjjl"),
    "parameters, editing": ("5", *"jjj", "equals_sign", "7", "x"),
    "parameters, each change alone": ("5", *"jjjjjll", *("j" * 15), "greater_than_sign"),
    "notes": ("exclamation_mark",),
    "help": ("question_mark",),
    "commands": ("colon", *"zoom", "down"),
    "marks": ("m", "l", "l", "m", "d", "apostrophe"),
    "prompt": ("5", "enter", "2", "0"),
}
# What these open or choose is drawn before the next key; others may come at once.
_LEADING = {*"123456l", "space", "enter", "tab", "shift+tab", "greater_than_sign"}
SNAPSHOTS = Path(__file__).with_name("__snapshots__")


async def frame_after(app: WltuiApp, size: tuple[int, int], keys: tuple[str, ...]) -> str:
    """The screen after some keys; blanks at the ends of rows left out."""
    async with app.run_test(size=size) as pilot:
        begin = 0
        for end, key in enumerate(keys, 1):
            if key in _LEADING or end == len(keys):
                await burst(pilot, *keys[begin:end])
                begin = end
        await run_over(pilot)
        rows = screen_rows(app)
        assert [len(row) for row in rows] == [size[0]] * size[1]
        return "\n".join(row.rstrip() for row in rows)


@pytest.mark.sampled(15)
@pytest.mark.parametrize("size", SIZES, ids=["120x36", "80x24"])
@pytest.mark.parametrize("name", FRAMES)
async def test_the_screen_is_drawn_as_before(
    make_app: MakeApp, snapshot: SnapshotAssertion, name: str, size: tuple[int, int]
) -> None:
    assert await frame_after(make_app(), size, FRAMES[name]) == snapshot


@pytest.mark.parametrize(
    "name", ["timeline, whole step", "timeline, zoomed in", "timeline, unfolded", "timeline, the path"]
)
async def test_the_timeline_in_ascii_is_drawn_as_before(
    make_app: MakeApp, snapshot: SnapshotAssertion, name: str
) -> None:
    text = await frame_after(make_app(ascii_only=True), (120, 36), FRAMES[name])
    assert text.isascii()
    assert text == snapshot


async def test_the_timeline_without_colour_is_drawn_as_before(
    make_app: MakeApp, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app()
    monkeypatch.setenv("NO_COLOR", "1")
    coloured = await frame_after(app, (120, 36), FRAMES["timeline, zoomed in"])
    mono = await frame_after(
        make_app_without_colour(make_app, monkeypatch), (120, 36), FRAMES["timeline, zoomed in"]
    )
    assert mono != coloured
    assert mono == snapshot


def make_app_without_colour(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> WltuiApp:
    """An app that found NO_COLOR when it started."""
    app = make_app()
    monkeypatch.setattr(app, "no_color", True)
    return app


def test_frames_hold_nothing_of_the_machine_that_drew_them() -> None:
    files = [path for path in SNAPSHOTS.rglob("*") if path.is_file()]
    assert files
    words = [str(Path.cwd()), str(Path.home()), os.uname().nodename, "/tmp/", "/home/"]
    words.append(f"/{Path.cwd().parts[1]}/")
    for path in files:
        text = path.read_text()
        for word in words:
            assert len(word) < 4 or word not in text, f"{word} in {path.name}"
        # The clock of the made dumps is always the same.
        for word in wall_clock(BEGIN_NS, 0).split():
            text = text.replace(word, "")
        assert not re.search(r"\b20\d\d-\d\d-\d\d\b|\b\d\d:\d\d:\d\d\b", text)


def test_frames_are_small() -> None:
    assert sum(path.stat().st_size for path in SNAPSHOTS.rglob("*") if path.is_file()) < 1_500_000
