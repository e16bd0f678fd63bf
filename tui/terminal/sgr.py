"""Styles as terminals have them (SGR, ECMA-48 8.3.117), and the shortest way from one to another."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache

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
