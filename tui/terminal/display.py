"""Sends the terminal the cells that changed, when it is ready for them.

Textual sends every line that was refreshed, whole and each piece with its style and a reset.
Here its updates are written into a picture in memory, and what goes out is the difference
between that picture and the one the terminal shows. So a slow terminal gets fewer pictures,
never old ones: whatever became of the picture meanwhile is one difference.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any

import textual
from rich.console import RenderableType
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App
from textual.screen import Screen
from textual.strip import Strip

from tui.terminal.cells import CLEAR, PLAIN, CellGrid, Sgr, changes, parsed
from tui.terminal.driver import TerminalDriver

# The versions whose updates were tested to be what `Display._take` makes of them.
TESTED_TEXTUAL = ("8.2",)
# A network line has buffers of its own, which a held key would fill with pictures.
_REMOTE_PICTURES_PER_SECOND = 10
_RESIZED_WITHIN_S = 0.05
_PARAMETERS = re.compile(r"\x1b\[([\d;]+)mx")
_SYNC_START, _SYNC_END = "\x1b[?2026h", "\x1b[?2026l"


def textual_version() -> str:
    """The version of Textual, by the name of its directory: importlib.metadata costs 20 ms."""
    packages = Path(textual.__file__).resolve().parent.parent
    versions = [path.name for path in packages.glob("textual-*.dist-info")]
    return versions[0].split("-")[1].removesuffix(".dist") if len(versions) == 1 else textual.__version__


@cache
def knows_textual() -> bool:
    """Whether this Textual's updates are those that are read here; if not, it sends them itself."""
    return (
        textual_version().rpartition(".")[0] in TESTED_TEXTUAL
        and list(inspect.signature(App._display).parameters) == ["self", "screen", "renderable"]
        and {"strips", "region"} <= set(inspect.signature(LayoutUpdate).parameters)
        and {"chops", "spans", "chop_ends"} <= set(inspect.signature(ChopsUpdate).parameters)
    )


class CellApp(App[None]):
    """An app whose pictures are sent as differences, where its terminal and Textual allow it."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self._pictures = Display(self)

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        driver = self._driver
        if not isinstance(driver, TerminalDriver) or not knows_textual():
            super()._display(screen, renderable)
            return
        if isinstance(renderable, (LayoutUpdate, ChopsUpdate)):
            # As Textual does: what is refreshed in a batch is refreshed once more at its end.
            if self._running and not self._closed and not self._batch_count:
                self._pictures.show(renderable, driver)
        elif renderable is not None:
            self._pictures.forget()
            super()._display(screen, renderable)
            return
        self.post_display_hook()

    def on_resize(self, event: events.Resize) -> None:
        # Terminals rearrange their lines when their size changes, even when it changes back.
        self._pictures.forget()
        # Where it has changed back, Textual has nothing to lay out and sends nothing.
        self.set_timer(_RESIZED_WITHIN_S, self._pictures.send_soon)

    def send_all_again(self) -> None:
        """The terminal may show anything: the next picture is sent whole."""
        self._pictures.forget()


class Display:
    """The picture that the app wants, and the one that the terminal shows."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._driver: TerminalDriver | None = None
        self._wanted = CellGrid(0, 0)
        self._shown: CellGrid | None = None
        self._cursor: tuple[int, int] | None = None
        self._sgr: dict[Style | None, Sgr] = {None: PLAIN}
        # sshd sets SSH_CONNECTION. Whoever sets TEXTUAL_FPS has chosen a rate, which Textual itself keeps.
        paced = os.environ.get("SSH_CONNECTION") and not os.environ.get("TEXTUAL_FPS")
        self._least_apart_s = 1 / _REMOTE_PICTURES_PER_SECOND if paced else 0.0
        self._sent_at = 0.0
        # Whether everything is sent, and whether sending will be tried in a moment.
        self._is_current = True
        self._is_called = False
        self._alarm: asyncio.TimerHandle | None = None

    def forget(self) -> None:
        """Nobody knows what the terminal shows."""
        self._shown = None

    def show(self, update: LayoutUpdate | ChopsUpdate, driver: TerminalDriver) -> None:
        """Take an update, and send it when the terminal is ready."""
        self._driver = driver
        driver.when_ready = self._send
        self._take(update)
        self.send_soon()

    def send_soon(self) -> None:
        """Send what the terminal lacks, when Textual has made all updates that it has to make now."""
        self._is_current = False
        if not self._is_called:
            self._is_called = True
            asyncio.get_running_loop().call_soon(self._send)

    # -- what Textual wants ----------------------------------------------------------

    def _take(self, update: LayoutUpdate | ChopsUpdate) -> None:
        """Write an update into the picture, as its `render_segments` would on the terminal."""
        if isinstance(update, LayoutUpdate):
            left, top, width, height = update.region
            self._sized(left + width, top + height)
            for y, line in enumerate(update.strips, top):
                x = left
                for strip in line:
                    x = self._wanted.put(y, x, self._pieces(strip))
            return
        self._sized(max(ends[-1] for ends in update.chop_ends), len(update.chops))
        for y, first, last in update.spans:
            for end, (x, chop) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
                if chop is None or x > last or end <= first:
                    continue
                if x < first or end > last:
                    chop = chop.crop(0, min(end, last) - x)
                self._wanted.put(y, x, self._pieces(chop))

    def _sized(self, width: int, height: int) -> None:
        if self._wanted.size != (width, height):
            self._wanted = CellGrid(width, height)
            self._shown = None

    def _pieces(self, strip: Iterable[Segment]) -> Iterator[tuple[str, Sgr]]:
        for text, style, control in strip:
            if not control:
                sgr = self._sgr.get(style)
                yield text, self._learn(style) if sgr is None else sgr

    def _learn(self, style: Style | None) -> Sgr:
        """The parameters that Textual would send for a style: the terminal's colours are its matter."""
        if len(self._sgr) > 4096:
            self._sgr = {None: PLAIN}
        match_ = _PARAMETERS.search(Strip([Segment("x", style)]).render(self._app.console))
        self._sgr[style] = parsed(match_[1]) if match_ else PLAIN
        return self._sgr[style]

    # -- what the terminal gets ------------------------------------------------------

    def _send(self) -> None:
        self._is_called = False
        driver, wanted = self._driver, self._wanted
        if self._is_current or driver is None or self._app._closed:
            return
        if wanted.size != self._app.size or not wanted.width:
            # The picture in the new size is being laid out, and will be sent.
            return
        if not driver.is_ready:
            # It calls when it is; its answer may never come.
            self._wake_in(driver.seconds_to_answer)
            return
        if (too_early := self._sent_at + self._least_apart_s - monotonic()) > 0:
            self._wake_in(too_early)
            return
        self._is_current = True
        if self._shown is None:
            self._shown = CellGrid(*wanted.size)
            sequences = CLEAR + changes(self._shown, wanted, (0, 0))
        else:
            sequences = changes(self._shown, wanted, self._cursor)
        # An input method draws what is being typed where the terminal's cursor is.
        x, y = self._app.screen.outer_size.clamp_offset(self._app.cursor_position)
        if not sequences and self._cursor == (x, y):
            return
        sequences += f"\x1b[{y + 1};{x + 1}H" if x or y else "\x1b[H"
        self._cursor = (x, y)
        self._shown.take(wanted)
        if self._app._sync_available:
            sequences = f"{_SYNC_START}{sequences}{_SYNC_END}"
        self._sent_at = monotonic()
        driver.write_picture(sequences)

    def _wake_in(self, seconds: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = asyncio.get_running_loop().call_later(seconds, self._send) if seconds else None
