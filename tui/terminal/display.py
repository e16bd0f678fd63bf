"""The picture that a terminal shows, as cells: it is sent only the cells that changed, when it is ready.

Textual sends every refreshed line completely, each segment with its style and a reset. Here its updates are
written into a picture in memory, and what is sent is the difference between that picture and the one the
terminal shows, in the shortest sequences. So a slow terminal gets fewer pictures, never old ones: all changes
since the last one are one difference. Styles are those that terminals have (SGR, ECMA-48 8.3.117).
"""

from __future__ import annotations

import asyncio
import inspect
import os
import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from time import monotonic
from typing import Any

import textual
from rich.cells import get_character_cell_size
from rich.console import RenderableType
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App
from textual.screen import Screen
from textual.strip import Strip

from tui.terminal.driver import TerminalDriver

# The parameters that switch each attribute off.
_OFF = {
    "1": "22", "2": "22", "3": "23", "4": "24", "21": "24", "5": "25", "6": "25", "7": "27", "8": "28",
    "9": "29", "51": "54", "52": "54", "53": "55",
}  # fmt: skip
# Attributes that are visible on an empty cell: underlines, reverse, strike, frames, overline.
_ON_BLANKS = frozenset(("4", "21", "7", "9", "51", "52", "53"))
_COLOURS = frozenset(map(str, (*range(30, 39), *range(90, 98))))
_BACKGROUNDS = frozenset(map(str, (*range(40, 49), *range(100, 108))))


class Sgr:
    """A style: its attributes, and the parameters of its colour and of its background, "" for the default.

    Only `parse_sgr` and `_style` make these, one object a style: equal styles are the same object. `blank` is
    the smallest style that looks the same on an empty cell.
    """

    __slots__ = ("background", "blank", "colour", "flags")

    def __init__(self, flags: frozenset[str], colour: str, background: str) -> None:
        self.flags, self.colour, self.background = flags, colour, background
        if flags & _ON_BLANKS:
            self.blank = self
        elif flags or colour:
            self.blank = _style(frozenset(), "", background)
        else:
            self.blank = self

    @property
    def parameters(self) -> str:
        """All parameters, as they would follow a reset."""
        return ";".join(filter(None, (*sorted(self.flags, key=int), self.colour, self.background)))


@cache
def _style(flags: frozenset[str], colour: str, background: str) -> Sgr:
    return Sgr(flags, colour, background)


PLAIN = _style(frozenset(), "", "")


def parse_sgr(parameters: str) -> Sgr:
    """Returns the style that these parameters make of the default one, such as `1;38;5;81`."""
    flags: set[str] = set()
    colour = background = ""
    for group in _groups(parameters):
        code = group.partition(";")[0]
        if code in _COLOURS:
            colour = group
        elif code in _BACKGROUNDS:
            background = group
        elif code == "39":
            colour = ""
        elif code == "49":
            background = ""
        elif code in _OFF:
            flags.add(code)
    return _style(frozenset(flags), colour, background)


def _groups(parameters: str) -> Iterator[str]:
    """Yields the parameters, those of an extended colour together."""
    parts = iter(parameters.split(";"))
    for part in parts:
        if part in ("38", "48"):
            kind = next(parts, "")
            more = [next(parts, "") for _ in range({"5": 1, "2": 3}.get(kind, 0))]
            yield ";".join((part, kind, *more))
        else:
            yield part


@lru_cache(maxsize=4096)
def style_change(old: Sgr, new: Sgr) -> str:
    """Returns the sequence that changes `old` into `new`, "" when they are the same."""
    if old is new:
        return ""
    removed = {_OFF[flag] for flag in old.flags - new.flags}
    # One code ends both bold and dim: the one that stays is set again.
    added = {flag for flag in new.flags if flag not in old.flags or _OFF[flag] in removed}
    steps = [*sorted(removed, key=int), *sorted(added, key=int)]
    if new.colour != old.colour:
        steps.append(new.colour or "39")
    if new.background != old.background:
        steps.append(new.background or "49")
    by_steps = ";".join(steps)
    from_reset = f"0;{new.parameters}" if new is not PLAIN else ""
    return f"\x1b[{min(from_reset, by_steps, key=len)}m"


# Every terminal draws these characters in one cell: ASCII, Latin, Greek, Cyrillic, boxes and blocks.
_ONE_CELL_EACH = re.compile("[ -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0482\u048a-\u052f\u2500-\u259f]*")
CLEAR = "\x1b[m\x1b[H\x1b[2J"
_TO_END = "\x1b[K"


class CellGrid:
    """A picture of width x height cells: characters and styles, row by row.

    A character that fills two cells is followed by an empty string; one that fills none is in the cell before
    it.
    """

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.chars: list[list[str]] = [[" "] * width for _ in range(height)]
        self.styles: list[list[Sgr]] = [[PLAIN] * width for _ in range(height)]

    @property
    def size(self) -> tuple[int, int]:
        return self.width, self.height

    def copy_from(self, other: CellGrid) -> None:
        """Becomes equal to a picture of the same size."""
        for y in range(self.height):
            self.chars[y][:] = other.chars[y]
            self.styles[y][:] = other.styles[y]

    def write(self, y: int, x: int, parts: Iterable[tuple[str, Sgr]]) -> int:
        """Writes text segments into row `y` from cell `x` on, truncated at the edges; returns the cell behind
        them.
        """
        chars: list[str] = []
        styles: list[Sgr] = []
        for text, style in parts:
            if _ONE_CELL_EACH.fullmatch(text):
                chars += text
            else:
                _write_odd(text, chars)
            first = len(styles)
            if style.blank is style or " " not in text:
                styles += [style] * (len(chars) - first)
            else:
                styles += [style.blank if char == " " else style for char in chars[first:]]
        end = x + len(chars)
        first, last = max(-x, 0), len(chars) - max(end - self.width, 0)
        if last > first and 0 <= y < self.height:
            self.chars[y][x + first : x + last] = chars[first:last]
            self.styles[y][x + first : x + last] = styles[first:last]
        return end

    def is_odd(self, y: int) -> bool:
        """Returns whether a row has characters of ambiguous width, which terminals draw in
        different widths.
        """
        text = "".join(self.chars[y])
        return len(text) != self.width or not _ONE_CELL_EACH.fullmatch(text)


def _write_odd(text: str, chars: list[str]) -> None:
    """Writes text whose characters may fill two cells or none; control characters are dropped."""
    for char in text:
        size = get_character_cell_size(char)
        if size > 0:
            chars += [char, ""] if size == 2 else [char]
        elif chars and char.isprintable():
            chars[-1] += char


def grid_changes(old: CellGrid, new: CellGrid, cursor: tuple[int, int] | None = None) -> str:
    """Returns the sequences that change `old` into `new` on a terminal, "" when nothing differs.

    Both have one size. The terminal's style is the default before and after, and it does not wrap lines.
    cursor: where the terminal's cursor is (column, row), None when that is unknown; afterwards it is unknown.
    """
    pen = _Pen(cursor)
    for y in range(new.height):
        chars, styles = new.chars[y], new.styles[y]
        old_chars, old_styles = old.chars[y], old.styles[y]
        if chars == old_chars and styles == old_styles:
            continue
        if new.is_odd(y) or old.is_odd(y):
            pen.write_odd(y, chars, styles)
            continue
        pairs = zip(chars, old_chars, styles, old_styles, strict=True)
        changed = [
            x for x, (char, before, style, was) in enumerate(pairs) if char != before or style is not was
        ]
        pen.write_row(y, chars, styles, changed)
    return pen.finish()


@lru_cache(maxsize=1024)
def _forward(cells: int) -> str:
    return "\x1b[C" if cells == 1 else f"\x1b[{cells}C"


class _Pen:
    """Writes cells, and tracks the terminal's cursor and its current style."""

    def __init__(self, cursor: tuple[int, int] | None) -> None:
        self._sequences: list[str] = []
        self._x, self._y = cursor or (-1, -1)
        self._style = PLAIN

    def write_row(self, y: int, chars: list[str], styles: list[Sgr], changed: list[int]) -> None:
        """Writes the changed cells of a row; an empty end of it is erased."""
        tail = len(chars)
        while tail and chars[tail - 1] == " " and styles[tail - 1] is PLAIN:
            tail -= 1
        in_tail = 0
        while in_tail < len(changed) and changed[-1 - in_tail] >= tail:
            in_tail += 1
        erases = in_tail > len(_TO_END) + len(style_change(self._style, PLAIN))
        append, pen = self._sequences.append, self._style
        for x in changed[: len(changed) - in_tail] if erases else changed:
            if x != self._x or y != self._y:
                self._move(x, y, chars, styles)
            char, style = chars[x], styles[x]
            # As `_write`, inlined: this runs for every cell that changed.
            if style is not pen and not (char == " " and style is pen.blank):
                append(style_change(pen, style))
                pen = self._style = style
            append(char)
            self._x = x + 1
        if erases:
            start = changed[-in_tail]
            if start != self._x or y != self._y:
                self._move(start, y, chars, styles)
            self._sequences.append(style_change(self._style, PLAIN) + _TO_END)
            self._style = PLAIN

    def write_odd(self, y: int, chars: list[str], styles: list[Sgr]) -> None:
        """Writes a complete row; behind each character of ambiguous width the position is set again."""
        sure = False
        for x, char in enumerate(chars):
            if not char:
                continue
            if not sure:
                self._sequences.append(f"\x1b[{y + 1};{x + 1}H")
            self._write(char, styles[x])
            sure = _ONE_CELL_EACH.fullmatch(char) is not None
        self._x = self._y = -1

    def _needs_no_change(self, char: str, style: Sgr) -> bool:
        return style is self._style or (char == " " and style is self._style.blank)

    def _write(self, char: str, style: Sgr) -> None:
        if not self._needs_no_change(char, style):
            self._sequences.append(style_change(self._style, style))
            self._style = style
        self._sequences.append(char)

    def _move(self, x: int, y: int, chars: list[str], styles: list[Sgr]) -> None:
        """Moves to a cell: over cells that are written once more, by a relative or an absolute move."""
        if y == self._y and 0 <= self._x < x:
            best = _forward(x - self._x)
            over = zip(chars[self._x : x], styles[self._x : x], strict=True)
            if x - self._x <= len(best) and all(self._needs_no_change(char, style) for char, style in over):
                best = min(best, "".join(chars[self._x : x]), key=lambda text: len(text.encode()))
        else:
            best = f"\x1b[{y + 1};{x + 1}H" if x else f"\x1b[{y + 1}H"
            if self._y >= 0 and y == self._y + 1:
                below = "\r\n" + (_forward(x) if x else "")
                best = min(best, below, key=len)
        self._sequences.append(best)
        self._x, self._y = x, y

    def finish(self) -> str:
        """Returns all that was written, and the default style again."""
        self._sequences.append(style_change(self._style, PLAIN))
        return "".join(self._sequences)


# The versions whose updates were tested with `Display._apply_update`.
TESTED_TEXTUAL = ("8.2",)
# A network line has buffers of its own, which a held key would fill with pictures.
_REMOTE_PICTURES_PER_SECOND = 10
_RESIZED_WITHIN_S = 0.05
_PARAMETERS = re.compile(r"\x1b\[([\d;]+)mx")
_SYNC_START, _SYNC_END = "\x1b[?2026h", "\x1b[?2026l"


def textual_version() -> str:
    """Returns the version of Textual, by the name of its directory: importlib.metadata costs 20 ms."""
    packages = Path(textual.__file__).resolve().parent.parent
    versions = [path.name for path in packages.glob("textual-*.dist-info")]
    return versions[0].split("-")[1].removesuffix(".dist") if len(versions) == 1 else textual.__version__


@cache
def knows_textual() -> bool:
    """Returns whether this Textual's updates are understood here; if not, it sends them itself."""
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
            # As in Textual: what is refreshed in a batch is refreshed once more at its end.
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
        """Makes the next picture be sent completely: the terminal may show anything."""
        self._pictures.forget()


class Display:
    """The picture of the app, and the one that the terminal shows."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._driver: TerminalDriver | None = None
        self._target = CellGrid(0, 0)
        self._displayed: CellGrid | None = None
        self._cursor: tuple[int, int] | None = None
        self._sgr: dict[Style | None, Sgr] = {None: PLAIN}
        # sshd sets SSH_CONNECTION. A set TEXTUAL_FPS is a chosen rate, which Textual itself keeps.
        paced = os.environ.get("SSH_CONNECTION") and not os.environ.get("TEXTUAL_FPS")
        self._least_apart_s = 1 / _REMOTE_PICTURES_PER_SECOND if paced else 0.0
        self._sent_at = 0.0
        # Whether everything is sent, and whether sending will be tried in a moment.
        self._is_current = True
        self._is_called = False
        self._alarm: asyncio.TimerHandle | None = None

    def forget(self) -> None:
        """Forgets what the terminal shows, when that is no longer known."""
        self._displayed = None

    def show(self, update: LayoutUpdate | ChopsUpdate, driver: TerminalDriver) -> None:
        """Takes an update, and sends it when the terminal is ready."""
        self._driver = driver
        driver.when_ready = self._send
        self._apply_update(update)
        self.send_soon()

    def send_soon(self) -> None:
        """Sends what the terminal lacks, after all updates that Textual makes now."""
        self._is_current = False
        if not self._is_called:
            self._is_called = True
            asyncio.get_running_loop().call_soon(self._send)

    # -- what Textual wants ----------------------------------------------------------

    def _apply_update(self, update: LayoutUpdate | ChopsUpdate) -> None:
        """Writes an update into the picture, as its `render_segments` would on the terminal."""
        if isinstance(update, LayoutUpdate):
            left, top, width, height = update.region
            self._resize(left + width, top + height)
            for y, line in enumerate(update.strips, top):
                x = left
                for strip in line:
                    x = self._target.write(y, x, self._styled_parts(strip))
            return
        self._resize(max(ends[-1] for ends in update.chop_ends), len(update.chops))
        for y, first, last in update.spans:
            for end, (x, chop) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
                if chop is None or x > last or end <= first:
                    continue
                if x < first or end > last:
                    chop = chop.crop(0, min(end, last) - x)
                self._target.write(y, x, self._styled_parts(chop))

    def _resize(self, width: int, height: int) -> None:
        if self._target.size != (width, height):
            self._target = CellGrid(width, height)
            self._displayed = None

    def _styled_parts(self, strip: Iterable[Segment]) -> Iterator[tuple[str, Sgr]]:
        for text, style, control in strip:
            if not control:
                sgr = self._sgr.get(style)
                yield text, self._learn(style) if sgr is None else sgr

    def _learn(self, style: Style | None) -> Sgr:
        """Returns the parameters that Textual would send for a style, with the terminal's own colours."""
        if len(self._sgr) > 4096:
            self._sgr = {None: PLAIN}
        match_ = _PARAMETERS.search(Strip([Segment("x", style)]).render(self._app.console))
        self._sgr[style] = parse_sgr(match_[1]) if match_ else PLAIN
        return self._sgr[style]

    # -- what the terminal gets ------------------------------------------------------

    def _send(self) -> None:
        self._is_called = False
        driver, target = self._driver, self._target
        if self._is_current or driver is None or self._app._closed:
            return
        if target.size != self._app.size or not target.width:
            # The picture in the new size is being laid out, and will be sent.
            return
        seconds_to_answer = driver.seconds_to_answer
        if seconds_to_answer or not driver.is_written:
            # It calls when it is ready; its answer may never come.
            self._wake_in(seconds_to_answer)
            return
        if (too_early := self._sent_at + self._least_apart_s - monotonic()) > 0:
            self._wake_in(too_early)
            return
        self._is_current = True
        if self._displayed is None:
            self._displayed = CellGrid(*target.size)
            sequences = CLEAR + grid_changes(self._displayed, target, (0, 0))
        else:
            sequences = grid_changes(self._displayed, target, self._cursor)
        # An input method draws what is being typed where the terminal's cursor is.
        x, y = self._app.screen.outer_size.clamp_offset(self._app.cursor_position)
        if not sequences and self._cursor == (x, y):
            return
        sequences += f"\x1b[{y + 1};{x + 1}H" if x or y else "\x1b[H"
        self._cursor = (x, y)
        self._displayed.copy_from(target)
        if self._app._sync_available:
            sequences = f"{_SYNC_START}{sequences}{_SYNC_END}"
        self._sent_at = monotonic()
        driver.write_picture(sequences)

    def _wake_in(self, seconds: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = asyncio.get_running_loop().call_later(seconds, self._send) if seconds else None
