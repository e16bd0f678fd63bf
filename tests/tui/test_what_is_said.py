"""What is said in the last row stays until a key does something."""

from __future__ import annotations

from tests.tui.conftest import MakeApp
from tests.tui.screen_reading import press, screen_rows


async def test_a_key_that_does_nothing_leaves_what_was_said(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        app.say("as left last time: view")
        await pilot.pause()
        await press(pilot, "f9", "Q")
        assert screen_rows(app)[-1].startswith(" as left last time: view")
        await press(pilot, "j")
        assert "as left last time" not in screen_rows(app)[-1]


async def test_a_letter_that_is_typed_is_a_key_that_does_something(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "/")
        app.said = "nothing found"
        await press(pilot, "Q")
        assert app.said == ""
