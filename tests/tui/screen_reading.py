"""Reads the screen of an app under a pilot, and waits for its runs."""

from __future__ import annotations

import asyncio
import time
import unicodedata
from collections.abc import Callable

from textual.events import Key
from textual.keys import REPLACED_KEYS, _character_to_key, _get_unicode_name_from_key
from textual.pilot import Pilot

from tui.app import WltuiApp

PATIENCE = 300.0


def screen_text(app: WltuiApp) -> str:
    """The whole screen as text, as the compositor would send it."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


def screen_rows(app: WltuiApp) -> list[str]:
    """The rows of the screen."""
    return screen_text(app).split("\n")


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Press keys, each when all that the one before has set off is done, layout included."""
    for key in keys:
        await pilot.press(key)
        await pilot.pause()
        await pilot.pause()


async def burst(pilot: Pilot[None], *keys: str) -> None:
    """Send keys all at once, as somebody who types ahead: what they lead to is drawn once."""
    driver = pilot.app._driver
    assert driver is not None
    for name in keys:
        key = _character_to_key(name) if len(name) == 1 and not name.isalnum() else name
        try:
            char = unicodedata.lookup(_get_unicode_name_from_key(REPLACED_KEYS.get(key, key)))
        except KeyError:
            char = key if len(key) == 1 else None
        event = Key(key, char)
        event.set_sender(pilot.app)
        driver.send_message(event)
    await pilot.pause()
    await pilot.pause()


async def resize(pilot: Pilot[None], columns: int, rows: int) -> None:
    """Give the terminal another size."""
    await pilot.resize_terminal(columns, rows)
    await pilot.pause()
    await pilot.pause()


async def wait_until(pilot: Pilot[None], is_true: Callable[[], object], patience: float = PATIENCE) -> None:
    """Let the app work until something is true."""
    until = time.monotonic() + patience
    while not is_true():
        if time.monotonic() > until:
            assert isinstance(pilot.app, WltuiApp)
            raise AssertionError(f"did not come true; the screen:\n{screen_text(pilot.app)}")
        await pilot.pause()
        await asyncio.sleep(0.005)
    await pilot.pause()


async def run_over(pilot: Pilot[None], patience: float = PATIENCE) -> None:
    """Wait until the draft has been run, and all that screens look for in the background is found."""
    app = pilot.app
    assert isinstance(app, WltuiApp)
    # What a picture asks for is begun behind it.
    for _ in range(3):
        await pilot.pause()
    await begun_over(pilot, patience)
    for _ in range(3):
        await pilot.pause()


async def begun_over(pilot: Pilot[None], patience: float = PATIENCE) -> None:
    """As `run_over`, of what has begun: enough after keys that were waited for, and half the time."""
    app = pilot.app
    assert isinstance(app, WltuiApp)
    workers = app.workers
    await wait_until(
        pilot, lambda: not app.session.running and all(one.is_finished for one in workers), patience
    )


async def draft_run(pilot: Pilot[None]) -> None:
    """Wait until the draft has been run, and for nothing that screens look for in the background."""
    app = pilot.app
    assert isinstance(app, WltuiApp)
    await wait_until(pilot, lambda: not app.session.running)


async def frames_after(
    app: WltuiApp, sizes: list[tuple[int, int]], keys: tuple[str, ...], *, before: bool = False
) -> dict[str, str]:
    """The screen after some keys, on a terminal of the first size and as it gets each of the others; blanks
    at the ends of rows left out.

    before: whether the keys wait for what is looked for behind the picture.
    """
    frames = {}
    async with app.run_test(size=sizes[0]) as pilot:
        if before:
            await run_over(pilot)
        await press(pilot, *keys)
        for columns, rows in sizes:
            await resize(pilot, columns, rows)
            await run_over(pilot)
            shown = screen_rows(app)
            assert [len(row) for row in shown] == [columns] * rows
            frames[f"{columns}x{rows}"] = "\n".join(row.rstrip() for row in shown)
    return frames
