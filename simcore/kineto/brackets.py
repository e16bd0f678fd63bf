"""Brackets of JSON, those inside texts not counted."""

from __future__ import annotations

import re
from collections.abc import Iterator

# A text without a backslash is one match; of any other text its beginning is.
_BRACKET = re.compile(rb'"[^"\\]*"|["\[\]{}]')
_TEXT_ENDS = re.compile(rb'\\.|"', re.S)
# Traces nest up to a dozen deep; msgspec reads as deep as Python calls itself, a thousand.
_MOST_DEPTH = 500


def text_end(data: bytes, at: int, stop: int) -> int:
    """Returns where the text that has begun before `at` ends, behind its quote; `stop` where it does not."""
    for match in _TEXT_ENDS.finditer(data, at, stop):
        if match[0] == b'"':
            return match.end()
    return stop


def _depths(data: bytes, at: int, stop: int, depth: int) -> Iterator[tuple[int, int]]:
    """Yields (byte, number of brackets open behind it) of each bracket."""
    while at < stop:
        for match in _BRACKET.finditer(data, at, stop):
            bracket = match[0]
            if bracket == b"{" or bracket == b"[":
                depth += 1
            elif bracket == b"}" or bracket == b"]":
                depth -= 1
            elif bracket == b'"':
                at = text_end(data, match.end(), stop)
                break
            else:
                continue
            yield match.start(), depth
        else:
            return


def end_of(data: bytes, at: int, stop: int, depth: int = 0) -> int:
    """Returns where the object or list that begins at `at` ends, before `stop`; -1 where it does not. depth:
    the number of brackets that are open at `at`.
    """
    return next((byte + 1 for byte, open_ in _depths(data, at, stop, depth) if open_ <= 0), -1)


def find_too_deep_byte(data: bytes) -> int | None:
    """Returns the byte at which more than `_MOST_DEPTH` brackets are open for the first time."""
    return next((byte for byte, depth in _depths(data, 0, len(data), 0) if depth > _MOST_DEPTH), None)
