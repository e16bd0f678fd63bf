"""The screen as cells, and the shortest sequences that make one picture of another.

Styles are those that terminals have (SGR, ECMA-48 8.3.117), with the shortest way from one to another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache

from rich.cells import get_character_cell_size

# What takes each attribute away again.
_OFF = {
    "1": "22", "2": "22", "3": "23", "4": "24", "21": "24", "5": "25", "6": "25", "7": "27", "8": "28",
    "9": "29", "51": "54", "52": "54", "53": "55",
}  # fmt: skip
# Attributes that an empty cell shows: underlines, reverse, strike, frames, overline.
_ON_BLANKS = frozenset(("4", "21", "7", "9", "51", "52", "53"))
_COLOURS = frozenset(map(str, (*range(30, 39), *range(90, 98))))
_BACKGROUNDS = frozenset(map(str, (*range(40, 49), *range(100, 108))))


class Sgr:
    """A style: its attributes, the parameters of its colour and of its background, "" for the default.

    Made by `parsed` and `_style` alone, one object a style: equal styles are the same object.
    blank: the style with the least in it that shows the same on an empty cell.
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


def parsed(parameters: str) -> Sgr:
    """The style that these parameters make of the default one, such as `1;38;5;81`."""
    flags: set[str] = set()
    colour = background = ""
    for group in _groups(parameters):
        number = group.partition(";")[0]
        if number in _COLOURS:
            colour = group
        elif number in _BACKGROUNDS:
            background = group
        elif number == "39":
            colour = ""
        elif number == "49":
            background = ""
        elif number in _OFF:
            flags.add(number)
    return _style(frozenset(flags), colour, background)


def _groups(parameters: str) -> Iterator[str]:
    """The parameters, those of an extended colour together."""
    parts = iter(parameters.split(";"))
    for part in parts:
        if part in ("38", "48"):
            kind = next(parts, "")
            more = [next(parts, "") for _ in range({"5": 1, "2": 3}.get(kind, 0))]
            yield ";".join((part, kind, *more))
        else:
            yield part


@lru_cache(maxsize=4096)
def change(old: Sgr, new: Sgr) -> str:
    """The sequence that makes `new` of `old`, "" when they are the same."""
    if old is new:
        return ""
    gone = {_OFF[flag] for flag in old.flags - new.flags}
    # One code ends both bold and dim: what stays of them is said again.
    added = {flag for flag in new.flags if flag not in old.flags or _OFF[flag] in gone}
    steps = [*sorted(gone, key=int), *sorted(added, key=int)]
    if new.colour != old.colour:
        steps.append(new.colour or "39")
    if new.background != old.background:
        steps.append(new.background or "49")
    by_steps = ";".join(steps)
    anew = f"0;{new.parameters}" if new is not PLAIN else ""
    return f"\x1b[{min(anew, by_steps, key=len)}m"


# Every character fills one cell, whoever counts: ASCII, Latin, Greek, Cyrillic, boxes and blocks.
_ONE_CELL_EACH = re.compile("[ -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0482\u048a-\u052f\u2500-\u259f]*")
CLEAR = "\x1b[m\x1b[H\x1b[2J"
_TO_END = "\x1b[K"


class CellGrid:
    """A picture of width x height cells: characters and styles, row by row.

    A character that fills two cells is followed by an empty string; one that fills none is in
    the cell before it.
    """

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.chars: list[list[str]] = [[" "] * width for _ in range(height)]
        self.styles: list[list[Sgr]] = [[PLAIN] * width for _ in range(height)]

    @property
    def size(self) -> tuple[int, int]:
        return self.width, self.height

    def take(self, other: CellGrid) -> None:
        """Become equal to a picture of the same size."""
        for y in range(self.height):
            self.chars[y][:] = other.chars[y]
            self.styles[y][:] = other.styles[y]

    def put(self, y: int, x: int, pieces: Iterable[tuple[str, Sgr]]) -> int:
        """Write pieces of text into row `y` from cell `x` on, cut at the edges; the cell behind them."""
        chars: list[str] = []
        styles: list[Sgr] = []
        for text, style in pieces:
            if _ONE_CELL_EACH.fullmatch(text):
                chars += text
            else:
                _put_odd(text, chars)
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
        """Whether a row has characters of doubtful width: terminals differ in how wide they are."""
        text = "".join(self.chars[y])
        return len(text) != self.width or not _ONE_CELL_EACH.fullmatch(text)


def _put_odd(text: str, chars: list[str]) -> None:
    """Text whose characters may fill two cells or none; control characters are not sent at all."""
    for char in text:
        size = get_character_cell_size(char)
        if size > 0:
            chars += [char, ""] if size == 2 else [char]
        elif chars and char.isprintable():
            chars[-1] += char


def changes(old: CellGrid, new: CellGrid, cursor: tuple[int, int] | None = None) -> str:
    """The sequences that make `new` of `old` on a terminal, "" when nothing differs.

    Both have one size. The terminal's style is the default before and after, and it does not
    wrap lines. cursor: where the terminal's cursor is (column, row), None when nobody knows;
    afterwards nobody does.
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
    return pen.finished()


@lru_cache(maxsize=1024)
def _forward(cells: int) -> str:
    return "\x1b[C" if cells == 1 else f"\x1b[{cells}C"


class _Pen:
    """Writes cells, and knows where the terminal's cursor stands and in which style it writes."""

    def __init__(self, cursor: tuple[int, int] | None) -> None:
        self._sent: list[str] = []
        self._x, self._y = cursor or (-1, -1)
        self._style = PLAIN

    def write_row(self, y: int, chars: list[str], styles: list[Sgr], changed: list[int]) -> None:
        """The changed cells of a row; an empty end of it is erased."""
        tail = len(chars)
        while tail and chars[tail - 1] == " " and styles[tail - 1] is PLAIN:
            tail -= 1
        in_tail = 0
        while in_tail < len(changed) and changed[-1 - in_tail] >= tail:
            in_tail += 1
        erases = in_tail > len(_TO_END) + len(change(self._style, PLAIN))
        append, pen = self._sent.append, self._style
        for x in changed[: len(changed) - in_tail] if erases else changed:
            if x != self._x or y != self._y:
                self._move(x, y, chars, styles)
            char, style = chars[x], styles[x]
            # As `_write`, in place: this is done for every cell that changed.
            if style is not pen and not (char == " " and style is pen.blank):
                append(change(pen, style))
                pen = self._style = style
            append(char)
            self._x = x + 1
        if erases:
            start = changed[-in_tail]
            if start != self._x or y != self._y:
                self._move(start, y, chars, styles)
            self._sent.append(change(self._style, PLAIN) + _TO_END)
            self._style = PLAIN

    def write_odd(self, y: int, chars: list[str], styles: list[Sgr]) -> None:
        """A whole row; behind each character of doubtful width the place is said anew."""
        sure = False
        for x, char in enumerate(chars):
            if not char:
                continue
            if not sure:
                self._sent.append(f"\x1b[{y + 1};{x + 1}H")
            self._write(char, styles[x])
            sure = _ONE_CELL_EACH.fullmatch(char) is not None
        self._x = self._y = -1

    def _needs_no_change(self, char: str, style: Sgr) -> bool:
        return style is self._style or (char == " " and style is self._style.blank)

    def _write(self, char: str, style: Sgr) -> None:
        if not self._needs_no_change(char, style):
            self._sent.append(change(self._style, style))
            self._style = style
        self._sent.append(char)

    def _move(self, x: int, y: int, chars: list[str], styles: list[Sgr]) -> None:
        """To a cell: over cells that are written once more, by a relative or an absolute move."""
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
        self._sent.append(best)
        self._x, self._y = x, y

    def finished(self) -> str:
        """All that was written, and the default style again."""
        self._sent.append(change(self._style, PLAIN))
        return "".join(self._sent)
