"""Brackets of JSON, those inside of texts not counted."""

from __future__ import annotations

import re
from collections.abc import Iterator

# A text without a backslash is one match; of another one its beginning is.
_BRACKET = re.compile(rb'"[^"\\]*"|["\[\]{}]')
_TEXT_ENDS = re.compile(rb'\\.|"', re.S)
# Traces have up to a dozen inside each other; msgspec reads as many as Python calls itself, a thousand.
_DEEP = 500


def text_end(data: bytes, at: int, stop: int) -> int:
    """Where the text that has begun before `at` ends, behind its quote; `stop` where it does not."""
    for found in _TEXT_ENDS.finditer(data, at, stop):
        if found[0] == b'"':
            return found.end()
    return stop


def _depths(data: bytes, at: int, stop: int, depth: int) -> Iterator[tuple[int, int]]:
    """(byte, brackets that are open behind it) of each bracket."""
    while at < stop:
        for found in _BRACKET.finditer(data, at, stop):
            bracket = found[0]
            if bracket == b"{" or bracket == b"[":
                depth += 1
            elif bracket == b"}" or bracket == b"]":
                depth -= 1
            elif bracket == b'"':
                at = text_end(data, found.end(), stop)
                break
            else:
                continue
            yield found.start(), depth
        else:
            return


def end_of(data: bytes, at: int, stop: int, depth: int = 0) -> int:
    """Where the object or list that begins at `at` ends, before `stop`; -1 where it does not. depth: how many
    brackets are open at `at`.
    """
    return next((byte + 1 for byte, open_ in _depths(data, at, stop, depth) if open_ <= 0), -1)


def deep_place(data: bytes) -> int | None:
    """The byte at which more than `_DEEP` brackets are open for the first time."""
    return next((byte for byte, depth in _depths(data, 0, len(data), 0) if depth > _DEEP), None)
