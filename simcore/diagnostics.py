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
# What a reader has to know first. The code of a note that something was taken for granted ends so.
WEIGHTS = ("error", "warning", "assumption", "note")
_ASSUMPTION_SUFFIXES = ("-missing", "-assumed", "-default", "-not-taken")

# Bidirectional controls reorder what follows them on some terminals; they are category Cf
# like harmless joiners, so they are named. Everything of category Cc, Cs, Zl, Zp goes too.
_BIDIRECTIONAL = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_NAME_LIMIT = 200
# On one letter: words have three at most, and a pile of them covers the lines above and below.
_MOST_MARKS = 4


def printable(text: str, limit: int = _NAME_LIMIT) -> str:
    """Text from a file, made safe for a terminal: controls and bytes that are no text become `\\xNN`, long
    text is cut.

    A file's text may hold escape sequences, newlines or bidirectional controls; none of
    them may reach a terminal, nor marks piled up on one letter. `limit` is in characters; a
    cut is shown as `...`.
    """
    if len(text) > limit:
        text = text[: limit - 3] + "..."
    if text.isascii() and text.isprintable():
        return text
    safe = "".join(char if _is_safe(char) else _escape(char) for char in text)
    return safe if safe.isascii() else _escape_piled_marks(safe)


def printable_within(text: str, limit: int = _NAME_LIMIT) -> str:
    """Text from a file as `printable`, in at most `limit` characters with what was escaped in it."""
    safe = printable(text, limit)
    return safe if len(safe) <= limit else safe[: limit - 3] + "..."


def is_unicode(encoding: str | None) -> bool:
    """Whether text of this encoding can hold block glyphs."""
    return (encoding or "").lower().replace("-", "").startswith("utf")


def _escape_piled_marks(text: str) -> str:
    """The text with the marks beyond `_MOST_MARKS` on a letter escaped."""
    characters: list[str] = []
    marks = 0
    for char in text:
        marks = marks + 1 if unicodedata.category(char) in ("Mn", "Me") else 0
        characters.append(char if marks <= _MOST_MARKS else _escape(char))
    return "".join(characters)


def _is_safe(char: str) -> bool:
    return unicodedata.category(char) not in ("Cc", "Cs", "Zl", "Zp", "Cf") and char not in _BIDIRECTIONAL


def _escape(char: str) -> str:
    code_point = ord(char)
    if 0xDC80 <= code_point <= 0xDCFF:
        # A byte that is not UTF-8, as Python keeps it in a text.
        code_point -= 0xDC00
    if code_point < 0x100:
        return f"\\x{code_point:02x}"
    return f"\\u{code_point:04x}" if code_point < 0x10000 else f"\\U{code_point:08x}"


def did_you_mean(text: str, names: Iterable[str]) -> str:
    """What a mistyped word may have been meant for: `; did you mean 1f1b?`, "" where nothing is near."""
    # Imported here: nothing is mistyped in most runs.
    from difflib import get_close_matches

    by_lower_name = {name.lower(): name for name in names if name != text}
    close = get_close_matches(text.lower()[:100], by_lower_name, 1)
    return f"; did you mean {by_lower_name[close[0]]}?" if close else ""


class Diagnostic(Struct, frozen=True):
    """One thing that was assumed, ignored, or does not fit.

    `line` and `column` count from 1 and are None where a file has no such place.
    `message` says what was found and what was done about it, in one line. `brief` is what of it matters, in
    some 40 characters, for a panel that has one row for it; "" where the first words of `message` say it. Who
    shows it says the weight: an assumption is named there and not called one. stake: by what share of it the
    step would be longer or shorter with another value of what was assumed, as far as that was tried.
    """

    severity: Severity
    code: str
    message: str
    file: str = ""
    line: int | None = None
    column: int | None = None
    brief: str = ""
    effect: float = 0.0

    def location_text(self) -> str:
        """`file:line:column`, as compilers print it; parts that are not known are left out."""
        parts = [printable(self.file) or "-"]
        if self.line is not None:
            parts.append(str(self.line))
            if self.column is not None:
                parts.append(str(self.column))
        return ":".join(parts)

    @property
    def weight(self) -> str:
        """One of `WEIGHTS`: the severity, and of a note whether something was taken for granted."""
        if self.severity == "note" and self.code.endswith(_ASSUMPTION_SUFFIXES):
            return "assumption"
        return self.severity

    def text(self) -> str:
        """`file:line:column: severity code message`."""
        return f"{self.location_text()}: {self.severity} {self.code} {self.message}"

    def values(self) -> dict[str, str | int | None]:
        """The diagnostic as plain values: what every JSON prints of it."""
        return {
            "severity": self.severity,
            "code": self.code,
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "message": self.message,
        }


# Of a step that would be another one by less than this share 0.0 or 0.1 % is said.
_NEGLIGIBLE_SHARE = 0.001


def sort_by_weight(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """What weighs most first: warnings, assumptions, notes; of assumptions those with which the step would
    differ most, of warnings last those with which it would hardly, others in the order of their places.
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
        # The count of rows, of line 2, stood before the header: beside its fix it told of another one.
        line = math.inf if diagnostic.line is None else diagnostic.line
        return *order, 0, files[diagnostic.file], line, diagnostic.column or 0

    return sorted(unsorted, key=key)


class InputError(Exception):
    """The input cannot be used. `str()` is the message for the user, one line a diagnostic.

    diagnostics: the errors. found: these and what else was found, in the order of their places.
    """

    def __init__(self, *diagnostics: Diagnostic, all_diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        super().__init__("\n".join(diagnostic.text() for diagnostic in diagnostics))
        self.diagnostics = diagnostics
        self.all_diagnostics = all_diagnostics or diagnostics


class UsageError(Exception):
    """Parameters that cannot be: the message says what was given and what would fit."""


class Cancelled(Exception):
    """The caller asked a running simulation to stop."""


def never_cancelled() -> bool:
    """Says that nobody has cancelled."""
    return False
