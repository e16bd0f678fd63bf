"""A cell of a text file with its place, and the number that is written in it."""

from __future__ import annotations

import re
from itertools import islice

from simcore.diagnostics import printable
from simcore.workload.model import LARGEST

_LARGEST_DIGITS = len(str(LARGEST))
SAFE_DIGITS = _LARGEST_DIGITS - 1  # any number of so many digits is below LARGEST
_SHOWN = 40  # characters of a cell that a message repeats

_CELL = re.compile(r"\S+")
# Four digits of exponent are far beyond int64. Compiled when the first odd number comes.
_NUMBER = r"([+-]?)([0-9]*)(?:(\.)([0-9]*))?(?:[eE]([+-]?[0-9]{1,4}))?"


class Cell:
    """One run of characters between blanks; line and column count from 1, in characters."""

    __slots__ = ("column", "line", "text")

    def __init__(self, text: str, line: int, column: int) -> None:
        self.text = text
        self.line = line
        self.column = column

    def shown(self) -> str:
        """The text as a message repeats it."""
        return quoted(self.text)


class Number:
    """A number as it is written, rounded half to even.

    value: the whole number, LARGEST + 1 for everything above LARGEST. below_zero: whether it
    is negative (-0.2 is, though its value is 0). integer: whether it is written without point
    or exponent. exact: whether rounding changed nothing.
    """

    __slots__ = ("below_zero", "exact", "integer", "value")

    def __init__(self, value: int, below_zero: bool, integer: bool, exact: bool) -> None:
        self.value = value
        self.below_zero = below_zero
        self.integer = integer
        self.exact = exact


def quoted(text: str) -> str:
    """Text of a file in quotes, safe for a terminal and not long."""
    return f"'{printable(text, _SHOWN)}'"


def cells_of(text: str, line: int, most: int | None = None, start: int = 0) -> list[Cell]:
    """The cells of one line of text from character `start` on, the first `most` if that is given."""
    found = islice(_CELL.finditer(text, start), most)
    return [Cell(match.group(), line, match.start() + 1) for match in found]


def read_number(text: str, shift: int = 0) -> Number | None:
    """The decimal number in `text` times 10^shift, None when it is not one.

    Works on the digits: a float would lose sizes above 2^53, and int() takes `1_0` and the
    digits of other scripts.
    """
    match = re.fullmatch(_NUMBER, text)
    if match is None:
        return None
    sign, whole, point, fraction, exponent = match.groups(default="")
    written = whole + fraction
    if not written:
        return None
    integer = not point and not exponent
    digits = written.lstrip("0")
    if not digits:
        return Number(0, False, integer, True)
    left = len(digits) - len(fraction) + int(exponent or 0) + shift  # digits left of the point
    if left > _LARGEST_DIGITS:
        return Number(_signed(LARGEST + 1, sign), sign == "-", integer, True)
    if left < 0:
        return Number(0, sign == "-", integer, False)
    value = int(digits[:left].ljust(left, "0") or "0")
    rest = digits[left:].rstrip("0")
    if rest > "5" or (rest == "5" and value % 2 == 1):
        value += 1
    value = min(value, LARGEST + 1)
    return Number(_signed(value, sign), sign == "-", integer, not rest)


def _signed(value: int, sign: str) -> int:
    return -value if sign == "-" else value
