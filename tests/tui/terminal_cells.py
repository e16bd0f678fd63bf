"""The cells of a pyte screen as people see them, to be compared with what a picture should be."""

from __future__ import annotations

import functools
import unicodedata

import pyte
from pyte.screens import Char

# pyte knows neither dim nor hidden text; on an empty cell only these can be seen.
Cell = tuple[str, str, str, frozenset[str]]


@functools.lru_cache(10_000)
def seen(char: Char) -> Cell:
    """(text, colour, background, attributes) of a cell; of an empty one only what shows on it."""
    on_blanks = {name for name in ("reverse", "underscore", "strikethrough") if getattr(char, name)}
    if char.data == " " and not on_blanks:
        return " ", "", char.bg, frozenset()
    flags = on_blanks | {name for name in ("bold", "italics", "blink") if getattr(char, name)}
    return unicodedata.normalize("NFC", char.data), char.fg, char.bg, frozenset(flags)


def seen_cells(screen: pyte.Screen) -> list[list[Cell]]:
    """All cells, row by row."""
    return [[seen(screen.buffer[y][x]) for x in range(screen.columns)] for y in range(screen.lines)]


def differences(found: list[list[Cell]], expected: list[list[Cell]]) -> list[str]:
    """Where two screens differ, in words."""
    if found == expected:
        return []
    if [len(row) for row in found] != [len(row) for row in expected]:
        return ["another size"]
    return [
        f"row {y}, cell {x}: {one} instead of {other}"
        for y, rows in enumerate(zip(found, expected, strict=True))
        for x, (one, other) in enumerate(zip(*rows, strict=True))
        if one != other
    ]
