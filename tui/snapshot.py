"""`--snapshot KEYS`: the real screen without a terminal, after some keys, as text or SVG."""

from __future__ import annotations

import asyncio
import re
import signal
from types import FrameType

from textual.pilot import Pilot, WaitForScreenTimeout
from textual.widgets import Input

from simcore.diagnostics import UsageError, did_you_mean, printable
from simcore.records import NamedTuple
from tui.app import WltuiApp
from tui.exporting import as_svg, as_text
from tui.keys.actions import key_name, key_of

DEFAULT_SIZE = (120, 36)
_MAX_SIZE = (1000, 500)
# Keys that people write by their names.
_KEY_NAMES = ("enter", "escape", "tab", "space", "up", "down", "left", "right", "home", "end", "pageup",
          "pagedown", "delete", "backspace")  # fmt: skip
_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class KeyPress(NamedTuple):
    """A key."""

    key: str
    word: str = ""
    """The word that it begins, where that looks like the name of a key and is none: in a prompt it is text,
    elsewhere an error; "" for all others.
    """


def parse_keys(text: str) -> list[KeyPress]:
    """Returns the keys of a text: words separated by blanks, a word the name of a key or else one key a
    character.

    `2 ww Ctrl+R /mlp Enter` -> 2, w, w, ctrl+r, /, m, l, p, enter.
    """
    keys: list[KeyPress] = []
    for word in text.split():
        key = key_of(word)
        if key is not None:
            keys.append(KeyPress(key))
        elif not word.isprintable():
            found_text = printable(word, 40)
            raise UsageError(f"--snapshot: found {found_text}, expected keys like: j Space ww Ctrl+R")
        else:
            key_word = word if re.match("[A-Z][a-z]", word) else ""
            keys += [KeyPress(char, "" if index else key_word) for index, char in enumerate(word)]
    return keys


def parse_size(text: str) -> tuple[int, int]:
    """Returns columns and rows of a text like `120x36`. Raises `UsageError`."""
    match_ = re.fullmatch(r"([0-9]{1,4})x([0-9]{1,3})", text)
    size = (int(match_[1]), int(match_[2])) if match_ else (0, 0)
    if not (1 <= size[0] <= _MAX_SIZE[0] and 1 <= size[1] <= _MAX_SIZE[1]):
        raise UsageError(
            f"--size: found {printable(text, 40)}, expected COLUMNSxROWS like 120x36, "
            f"at most {_MAX_SIZE[0]}x{_MAX_SIZE[1]}"
        )
    return size


class _Ending:
    """Handles SIGINT, SIGTERM and SIGHUP while a snapshot is taken: they end it, and it is cleaned up.

    asyncio's own handling of SIGINT cancels the app's task, and Textual goes on without a receiver.
    """

    def __init__(self, app: WltuiApp) -> None:
        self._app = app
        self._pressing: asyncio.Task[object] | None = None
        # The first signal; those after it must not interrupt the clean-up.
        self.signal_number = 0

    def __enter__(self) -> _Ending:
        for ending_signal in _ENDING_SIGNALS:
            signal.signal(ending_signal, self._end)
        return self

    def __exit__(self, *_: object) -> None:
        for ending_signal in _ENDING_SIGNALS:
            signal.signal(ending_signal, signal.SIG_DFL)
        if self.signal_number:
            raise SystemExit(128 + self.signal_number)

    def _end(self, received: int, frame: FrameType | None) -> None:
        """Records the signal; nothing is raised here: asyncio must not be left in the middle of anything."""
        if self.signal_number:
            return
        self.signal_number = received
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            # `pressing` or `__exit__` handles it.
            return
        loop.call_soon_threadsafe(self._leave)

    def _leave(self) -> None:
        self._app.exit()
        if self._pressing is not None:
            self._pressing.cancel()

    def pressing(self) -> None:
        """Records that the running task is about to press the keys."""
        self._pressing = asyncio.current_task()
        if self.signal_number:
            self._leave()


def take_snapshot(app: WltuiApp, keys: list[KeyPress], size: tuple[int, int], svg: bool) -> str:
    """Returns the screen of `size` columns and rows after `keys`, each pressed when the one before has
    finished.

    As text the glyphs tell kinds apart, as on a terminal without colour. A signal that ends it raises
    `SystemExit`; from here on signals have their default effect.
    """
    picture: str | None = None
    has_timed_out = False
    misspelt = ""

    async def settle(pilot: Pilot[object]) -> None:
        """Waits for what a key has started in the background, which is part of its effect."""
        await pilot.pause()
        while any(not worker.is_finished for worker in app.workers):
            await asyncio.sleep(0.005)
        await pilot.pause()

    async def press(pilot: Pilot[object]) -> None:
        nonlocal picture, has_timed_out, misspelt
        ending.pressing()
        try:
            await settle(pilot)
            for key, word in keys:
                if word and not isinstance(app.focused, Input):
                    misspelt = word
                    app.exit()
                    return
                await pilot.press(key)
                await settle(pilot)
                if app.return_code is not None:
                    return
            picture = as_svg(app) if svg else as_text(app)
        except WaitForScreenTimeout:
            has_timed_out = True
        except asyncio.CancelledError:
            if not ending.signal_number:
                raise
        app.exit()

    if not svg:
        app.no_color = True
    with _Ending(app) as ending:
        app.run(headless=True, size=size, auto_pilot=press)
    if misspelt:
        near = did_you_mean(misspelt, map(key_name, _KEY_NAMES))
        raise UsageError(
            f"--snapshot: {printable(misspelt, 40)} names no key, and there is no prompt for it here{near}"
        )
    if has_timed_out:
        raise UsageError("--snapshot: the screen did not answer for 30 s")
    if picture is None:
        raise UsageError("--snapshot: the keys end the program, so there is no screen left")
    return picture
