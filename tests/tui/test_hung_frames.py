"""The screens of flight recorder dumps as text."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.hangs.test_screens import incident
from tests.tui.conftest import MakeApp
from tests.tui.screen_reading import frames_after
from tests.tui.test_text_frames import SIZES, frame_after
from tui.app import WltuiApp
from tui.session import Session

FRAMES = {
    "summary": (),
    "timeline, who waits": ("1", "enter", "]"),
    "collectives": ("3",),
    "why": ("4", "j"),
}


@pytest.mark.parametrize("name", FRAMES)
async def test_screen_of_a_hung_job_is_drawn_as_before(
    make_app: MakeApp, snapshot: SnapshotAssertion, name: str
) -> None:
    make_app()
    app = WltuiApp(Session(incident("sleeps")), first="summary")
    for size, text in (await frames_after(app, SIZES, FRAMES[name])).items():
        assert text == snapshot(name=size)


async def test_hung_job_in_ascii_is_drawn_as_before(make_app: MakeApp, snapshot: SnapshotAssertion) -> None:
    make_app()
    app = WltuiApp(Session(incident("sleeps")), first="summary", ascii_only=True)
    text = await frame_after(app, (120, 36), FRAMES["timeline, who waits"])
    assert text.isascii()
    assert text == snapshot
