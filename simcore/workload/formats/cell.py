"""The text of a workload file: its lines, a cell with its place and number, what a reader finds on its way.

Diagnostics come without a flood, and errors for all bad places at once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from simcore.diagnostics import Diagnostic, InputError, Severity, printable
from simcore.records import replace
from simcore.workload.formats.format import is_comment, without_bom
from simcore.workload.model import LARGEST, GroupKind

_LARGEST_DIGITS = len(str(LARGEST))
SAFE_DIGITS = _LARGEST_DIGITS - 1  # any number of so many digits is below LARGEST
_MAX_QUOTED = 40  # characters of a cell that a message repeats

_CELL = re.compile(r"\S+")
# Four digits of exponent are far beyond int64. Compiled when the first odd number comes.
_NUMBER_PATTERN = r"([+-]?)([0-9]*)(?:(\.)([0-9]*))?(?:[eE]([+-]?[0-9]{1,4}))?"


class TextCell:
    """One run of characters between blanks; line and column count from 1, in characters."""

    __slots__ = ("column", "line", "text")

    def __init__(self, text: str, line: int, column: int) -> None:
        self.text = text
        self.line = line
        self.column = column

    def quote(self) -> str:
        """The text as a message repeats it."""
        return quoted(self.text)


class WrittenNumber:
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
    return f"'{printable(text, _MAX_QUOTED)}'"


def cells_of(text: str, line: int, most: int | None = None, start: int = 0) -> list[TextCell]:
    """The cells of one line of text from character `start` on, the first `most` if that is given."""
    matches = islice(_CELL.finditer(text, start), most)
    return [TextCell(match.group(), line, match.start() + 1) for match in matches]


def read_number(text: str, shift: int = 0) -> WrittenNumber | None:
    """The decimal number in `text` times 10^shift, None when it is not one.

    Works on the digits: a float would lose sizes above 2^53, and int() takes `1_0` and the
    digits of other scripts.
    """
    match = re.fullmatch(_NUMBER_PATTERN, text)
    if match is None:
        return None
    sign, whole, point, fraction, exponent = match.groups(default="")
    all_digits = whole + fraction
    if not all_digits:
        return None
    integer = not point and not exponent
    digits = all_digits.lstrip("0")
    if not digits:
        return WrittenNumber(0, False, integer, True)
    left = len(digits) - len(fraction) + int(exponent or 0) + shift  # digits left of the point
    if left > _LARGEST_DIGITS:
        return WrittenNumber(_signed(LARGEST + 1, sign), sign == "-", integer, True)
    if left < 0:
        return WrittenNumber(0, sign == "-", integer, False)
    value = int(digits[:left].ljust(left, "0") or "0")
    rest = digits[left:].rstrip("0")
    if rest > "5" or (rest == "5" and value % 2 == 1):
        value += 1
    value = min(value, LARGEST + 1)
    return WrittenNumber(_signed(value, sign), sign == "-", integer, not rest)


def _signed(value: int, sign: str) -> int:
    return -value if sign == "-" else value


# A file can repeat a mistake in every one of 200,000 rows: that many of a code are shown.
_LISTED = 20
# Errors after which a file is not read on: it is refused by the first, and each takes its time.
_MOST_ERRORS = 10_000

_Key = tuple[str, str]


class Findings:
    """Collects the diagnostics of one file: equal ones once, with a count and the first place."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._first: dict[_Key, Diagnostic] = {}
        self._count: dict[_Key, int] = {}
        self._listed: dict[str, int] = {}
        self._unlisted: dict[str, Diagnostic] = {}
        self._unlisted_count: dict[str, int] = {}
        self._errors = 0

    def add(
        self,
        severity: Severity,
        code: str,
        message: str,
        cell: TextCell | None = None,
        same: str | None = None,
        times: int = 1,
        brief: str = "",
    ) -> None:
        """Adds a finding at `cell`, or one that occurs `times` from there on.

        Those of one code with an equal `same` (default: the message) are told once, in the
        words of the first. Raises: InputError when it is the 10,000th error.
        """
        key = (code, message if same is None else same)
        line, column = (cell.line, cell.column) if cell else (None, None)
        if key in self._first:
            self._count[key] += times
        elif self._listed.get(code, 0) == _LISTED:
            self._unlisted.setdefault(code, Diagnostic(severity, code, "", self._path, line, column))
            self._unlisted_count[code] = self._unlisted_count.get(code, 0) + times
        else:
            self._first[key] = Diagnostic(severity, code, message, self._path, line, column, brief)
            self._count[key] = times
            self._listed[code] = self._listed.get(code, 0) + 1
        if severity == "error":
            self._errors += times
            if self._errors >= _MOST_ERRORS:
                self.diagnostics()

    def has(self, code: str, same: str) -> bool:
        """Whether a finding of this code and `same` is there already: one more is only counted."""
        return (code, same) in self._first

    def count(self, code: str, same: str) -> None:
        """Counts one more of a finding that is known."""
        self._count[code, same] += 1

    def parse_number(
        self, cell: TextCell, what: str, expected: str, floats_as: str | None = None, lenient: bool = False
    ) -> int | None:
        """The number in a cell, 0 or more, rounded half to even; None after an error.

        A bad cell is an error of code `not-a-number`, `negative-value` or `value-too-large`.
        A number with a point or an exponent is a note, with `lenient` only if it is not whole;
        `floats_as` puts these notes together, as `same` does in `add`.
        """
        text = cell.text
        if text.isdecimal() and text.isascii() and len(text) <= SAFE_DIGITS:
            return int(text)
        parsed = read_number(text)
        if parsed is None:
            self.add("error", "not-a-number", f"{what}: found {cell.quote()}, expected {expected}", cell)
            return None
        if parsed.below_zero:
            self.add("error", "negative-value", f"{what}: found {cell.quote()}, expected 0 or more", cell)
            return None
        if parsed.value > LARGEST:
            expected = f"at most {LARGEST}"
            self.add("error", "value-too-large", f"{what}: found {cell.quote()}, expected {expected}", cell)
            return None
        if not (parsed.exact if lenient else parsed.integer):
            message = f"{what}: found {cell.quote()}, expected a whole number; read as {parsed.value}"
            self.add("note", "float-value", message, cell, floats_as)
        return parsed.value

    def has_errors(self) -> bool:
        """Whether one of the findings is an error."""
        return any(diagnostic.severity == "error" for diagnostic in self._first.values())

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All findings in the order of their places.

        Raises: InputError with the errors, if there are any.
        """
        diagnostics = [_with_count(first, self._count[key]) for key, first in self._first.items()]
        diagnostics.sort(key=lambda diagnostic: (diagnostic.line or 0, diagnostic.column or 0))
        for code, diagnostic in self._unlisted.items():
            message = f"{self._unlisted_count[code]} more of this kind from here on are not listed"
            if self._errors >= _MOST_ERRORS:
                message += f"; reading ends at {_MOST_ERRORS} errors"
            diagnostics.append(replace(diagnostic, message=message))
        errors = [diagnostic for diagnostic in diagnostics if diagnostic.severity == "error"]
        if errors:
            raise InputError(*errors, all_diagnostics=tuple(diagnostics))
        return tuple(diagnostics)


def _with_count(first: Diagnostic, count: int) -> Diagnostic:
    if count == 1:
        return first
    message = f"{first.message} ({count} times, first here)"
    return Diagnostic(first.severity, first.code, message, first.file, first.line, first.column)


def decode_text(data: bytes, findings: Findings) -> str:
    """The characters of a file; bytes that are not UTF-8 are kept, and said."""
    data = without_bom(data)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        bad = error.start
    before = lines_of(data[:bad].decode("utf-8"))
    cell = TextCell("", len(before), len(before[-1]) + 1)
    del before
    text = data.decode("utf-8", "surrogateescape")
    count = len(text) - len(data.decode("utf-8", "ignore"))
    message = f"found the byte 0x{data[bad]:02x}, expected UTF-8 text; kept, and shown escaped"
    findings.add("warning", "not-utf-8", message, cell, times=count)
    return text


def lines_of(text: str) -> list[str]:
    """The lines of a text. Not splitlines(): that breaks at form feeds and other blanks as well."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.split("\n")


def skips_comment(cells: Sequence[TextCell], findings: Findings) -> bool:
    """Whether the cells are those of a comment line, which is noted then."""
    if not is_comment(cells[0].text):
        return False
    message = f"a comment: {cells[0].quote()}; the line is ignored"
    findings.add("note", "comment", message, cells[0], "line")
    return True


def skip_to_content(lines: Sequence[str], start: int, findings: Findings) -> int:
    """The index of the first line from `start` on that is neither blank nor a comment."""
    while start < len(lines):
        cells = cells_of(lines[start], start + 1, most=1)
        if cells and not skips_comment(cells, findings):
            break
        start += 1
    return start


# What a collective cell says: which collective, on which kind of group. Without a suffix a forward or
# input-gradient collective runs on the tensor-parallel group, a weight-gradient one on the data-parallel
# group (SimAI, Layer.cc); `_EP` is the expert-parallel group, `_DP_EP` the data-parallel group of an expert
# shard.
Kind = tuple[str | None, GroupKind | None]

COLLECTIVES = ("ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL")
NO_COLLECTIVE: Kind = (None, None)
# Written by some generator, run by none of our collectives: still tells a row from other text.
_RELATIVES = ("BROADCAST", "NONE")


def _kinds_of(unmarked: GroupKind) -> dict[str, Kind]:
    suffixes: tuple[tuple[str, GroupKind], ...] = (("", unmarked), ("_EP", "ep"), ("_DP_EP", "dp_ep"))
    table: dict[str, Kind] = {"NONE": NO_COLLECTIVE}
    for collective in COLLECTIVES:
        for suffix, group in suffixes:
            table[collective + suffix] = (collective, group)
    return table


# By upper-case token, for the cells of fwd, ig and wg.
KINDS: tuple[dict[str, Kind], ...] = (_kinds_of("tp"), _kinds_of("tp"), _kinds_of("dp"))


def looks_like_collective(token: str) -> bool:
    """Whether a token begins like the name of a collective, known to us or not."""
    return token.upper().startswith((*COLLECTIVES, *_RELATIVES))
