"""Brackets of JSON, those inside of texts not counted."""

from __future__ import annotations

import re

# A text that does not end reaches to the end: looked for from each of its quotes it would take squares.
TEXT = rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)'
_BRACKET = re.compile(TEXT + rb"|[\[\]{}]", re.S)
# Traces have up to a dozen inside each other; msgspec reads as many as Python calls itself, a thousand.
_DEEP = 500


def end_of(data: bytes, at: int, stop: int, depth: int = 0) -> int:
    """Where the object or list that begins at `at` ends, before `stop`; -1 where it does not. depth: how many
    brackets are open at `at`.
    """
    for found in _BRACKET.finditer(data, at, stop):
        bracket = found[0]
        if bracket in (b"{", b"["):
            depth += 1
        elif bracket in (b"}", b"]"):
            depth -= 1
            if depth <= 0:
                return found.end()
    return -1


def deep_place(data: bytes) -> int | None:
    """The byte at which more than `_DEEP` brackets are open for the first time."""
    depth = 0
    for bracket in _BRACKET.finditer(data):
        if bracket[0] in (b"{", b"["):
            depth += 1
            if depth > _DEEP:
                return bracket.start()
        elif bracket[0] in (b"}", b"]"):
            depth -= 1
    return None
