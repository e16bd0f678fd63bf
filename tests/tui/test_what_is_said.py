"""What is said in the last row stays until a key does something."""

from __future__ import annotations

from tests.tui.conftest import MakeApp
from tests.tui.screen_reading import press, screen_rows


async def test_a_key_that_does_nothing_leaves_what_was_said(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        app.say("restored: the view")
        await pilot.pause()
        await press(pilot, "f9", "Q")
        assert screen_rows(app)[-1].startswith(" restored: the view")
        await press(pilot, "j")
        assert "restored" not in screen_rows(app)[-1]


async def test_a_letter_that_is_typed_is_a_key_that_does_something(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "/")
        app.status_text = "nothing found"
        await press(pilot, "Q")
        assert app.status_text == ""


async def test_what_is_said_of_a_restored_session_stays_for_two_keys_or_until_the_screen_is_left(
    make_app: MakeApp,
) -> None:
    for keys in (("j", "k", "j"), ("j", "1")):
        app = make_app()
        app.status_text = app._notice = (
            "restored: run 2 of 2; x shows run 1, as opened; --no-session starts fresh"
        )
        app._unread_keys = 2
        async with app.run_test(size=(120, 36)) as pilot:
            for key in keys:
                assert screen_rows(app)[-1].startswith(" restored: run 2 of 2; x shows run 1")
                await press(pilot, key)
            assert "restored" not in screen_rows(app)[-1]
