"""What wltui says about its input: diagnostics, input errors, usage errors, and safe text.

A diagnostic names file, line and column, what was found, and what was done about it.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from typing import Literal

from simcore.records import Struct

Severity = Literal["error", "warning", "note"]
# The most important first.
WEIGHTS = ("error", "warning", "assumption", "note")
# Ends of the codes of notes that are assumptions.
_ASSUMPTION_SUFFIXES = ("-missing", "-assumed", "-default", "-not-taken")

# Controls, surrogates, breaks of lines, and format characters, which turn the direction of text among others.
_NOT_SHOWN = frozenset(("Cc", "Cs", "Zl", "Zp", "Cf"))
# What Unicode has displayed as nothing though it is a letter or a mark (Default_Ignorable_Code_Point): two
# names that differ in it look alike.
_INVISIBLE = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u2065\u3164\uffa0"
    "\ufe00\ufe01\ufe02\ufe03\ufe04\ufe05\ufe06\ufe07\ufe08\ufe09\ufe0a\ufe0b\ufe0c\ufe0d\ufe0e\ufe0f"
    "\ufff0\ufff1\ufff2\ufff3\ufff4\ufff5\ufff6\ufff7\ufff8"
)
_INVISIBLE_PLANE = range(0xE0000, 0xE1000)
_NAME_LIMIT = 200
# Combining marks on one letter: words have three at most, and more cover the lines above and below.
_MOST_MARKS = 4


def printable(text: str, limit: int = _NAME_LIMIT) -> str:
    """Returns text from a file made safe for a terminal: controls and bytes that are no text become `\\xNN`,
    and long text is truncated.

    A file's text may hold escape sequences, newlines or bidirectional controls; none of
    them may reach a terminal, nor marks piled up on one letter. `limit` is in characters;
    truncated text ends in `...`.
    """
    if len(text) > limit:
        text = text[: limit - 3] + "..."
    if text.isascii() and text.isprintable():
        return text
    safe = "".join(char if is_shown(char) else _escape(char) for char in text)
    return safe if safe.isascii() else _escape_piled_marks(safe)


def printable_within(text: str, limit: int = _NAME_LIMIT) -> str:
    """Returns text from a file as `printable` does, in at most `limit` characters, escapes included."""
    safe = printable(text, limit)
    return safe if len(safe) <= limit else safe[: limit - 3] + "..."


def is_unicode(encoding: str | None) -> bool:
    """Returns whether text of this encoding can hold block glyphs."""
    return (encoding or "").lower().replace("-", "").startswith("utf")


def _escape_piled_marks(text: str) -> str:
    """Returns the text with the marks beyond `_MOST_MARKS` on a letter escaped."""
    characters: list[str] = []
    marks = 0
    for char in text:
        marks = marks + 1 if is_mark(char) else 0
        characters.append(char if marks <= _MOST_MARKS else _escape(char))
    return "".join(characters)


def is_mark(char: str) -> bool:
    """Returns whether a character is drawn over the one before it."""
    return unicodedata.category(char) in ("Mn", "Me")


def is_shown(char: str) -> bool:
    """Returns whether a terminal just shows a character."""
    if unicodedata.category(char) in _NOT_SHOWN or char in _INVISIBLE:
        return False
    return ord(char) not in _INVISIBLE_PLANE


def _escape(char: str) -> str:
    code_point = ord(char)
    if 0xDC80 <= code_point <= 0xDCFF:
        # A byte that is not UTF-8: Python decodes it to a surrogate from 0xDC80 on.
        code_point -= 0xDC00
    if code_point < 0x100:
        return f"\\x{code_point:02x}"
    return f"\\u{code_point:04x}" if code_point < 0x10000 else f"\\U{code_point:08x}"


def did_you_mean(text: str, names: Iterable[str]) -> str:
    """Returns a suggestion for a mistyped word, `; did you mean 1f1b?`; "" where no name is similar."""
    # Imported here: most runs have no mistyped word.
    from difflib import get_close_matches

    by_lower_name = {name.lower(): name for name in names if name != text}
    close = get_close_matches(text.lower()[:100], by_lower_name, 1)
    return f"; did you mean {by_lower_name[close[0]]}?" if close else ""


class Diagnostic(Struct, frozen=True):
    """One thing that was assumed, ignored, or does not fit."""

    severity: Severity
    """How bad it is; `weight` tells assumptions from other notes."""
    code: str
    """What kind of diagnostic it is, `zero-step`."""
    message: str
    """What was found and what was done about it, in one line."""
    file: str = ""
    """The path of the file; "" where it is of none."""
    line: int | None = None
    """Its line, from 1; None where the file has no such place."""
    column: int | None = None
    """Its column, from 1; None where the file has no such place."""
    brief: str = ""
    """The part of the message that matters, in some 40 characters, for a panel that has one row for it; ""
    where the first words of `message` say it. It names an assumption and does not call it one: the panel
    shows the weight.
    """
    effect: float = 0.0
    """The share by which the step would be longer or shorter with another value of what was assumed; 0.0
    where none was tried.
    """

    def location_text(self) -> str:
        """Returns `file:line:column`, as compilers print it; unknown parts are left out."""
        parts = [printable(self.file) or "-"]
        if self.line is not None:
            parts.append(str(self.line))
            if self.column is not None:
                parts.append(str(self.column))
        return ":".join(parts)

    @property
    def weight(self) -> str:
        """One of `WEIGHTS`: the severity, or `assumption` for a note with a code of an assumption."""
        if self.severity == "note" and self.code.endswith(_ASSUMPTION_SUFFIXES):
            return "assumption"
        return self.severity

    def text(self) -> str:
        """Returns `file:line:column: severity code message`, with nothing that steers a terminal."""
        message = printable(self.message, len(self.message))
        return f"{self.location_text()}: {self.severity} {self.code} {message}"

    def values(self) -> dict[str, str | int | None]:
        """Returns the diagnostic as plain values, as every JSON prints it."""
        return {
            "severity": self.severity,
            "code": self.code,
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "message": self.message,
        }


# Assumptions that change the step by less than this share are printed as 0.0 or 0.1 %.
_NEGLIGIBLE_SHARE = 0.001


def sort_by_weight(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Returns the diagnostics, the most important first: warnings, assumptions, notes.

    Of assumptions those come first that change the step most; warnings that hardly change it come last of the
    warnings; others are in the order of their places.
    """
    unsorted = list(diagnostics)
    files: dict[str, int] = {}
    for diagnostic in unsorted:
        files.setdefault(diagnostic.file, len(files))

    def key(diagnostic: Diagnostic) -> tuple[int, bool, float, int, float, int]:
        weight = diagnostic.weight
        order = WEIGHTS.index(weight), 0 < diagnostic.effect < _NEGLIGIBLE_SHARE
        if weight == "assumption":
            return *order, -diagnostic.effect, 0, 0, 0
        if weight == "note":
            return *order, 0, 0, 0, 0
        # A diagnostic without a line comes after those with one.
        line = math.inf if diagnostic.line is None else diagnostic.line
        return *order, 0, files[diagnostic.file], line, diagnostic.column or 0

    return sorted(unsorted, key=key)


class InputError(Exception):
    """The input cannot be used. `str()` is the message for the user, one line a diagnostic.

    diagnostics: the errors. all_diagnostics: these and all others that were found, in the order of their
    places.
    """

    def __init__(self, *diagnostics: Diagnostic, all_diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        super().__init__("\n".join(diagnostic.text() for diagnostic in diagnostics))
        self.diagnostics = diagnostics
        self.all_diagnostics = all_diagnostics or diagnostics


class UsageError(Exception):
    """Parameters that cannot be used: the message says what was given and what would fit."""


class Cancelled(Exception):
    """Raised in a running simulation that its caller asked to stop."""


def never_cancelled() -> bool:
    """Returns False: nobody has cancelled."""
    return False
