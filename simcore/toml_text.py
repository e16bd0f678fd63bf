"""TOML with places: what the files that wltui's users write themselves are read with.

The standard reader gives values without their places; a message needs the line and column.
"""

from __future__ import annotations

import re
import sys
from typing import Any

Place = tuple[int, int]


class TomlProblem(Exception):
    """The text is not TOML. message: why. place: (line, column), from 1; None where it is not known."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.place = place


def parse_toml(text: str, expected: str) -> dict[str, Any]:
    """The top table. expected: what stands in such a file instead of nested lists. Raises `TomlProblem`."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        table: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, _, where = str(error).partition(" (at ")
        at = re.match(r"line (\d+), column (\d+)", where)
        place = (int(at[1]), int(at[2])) if at else None
        raise TomlProblem(f"this is not TOML: {message}", place) from None
    except RecursionError:
        raise TomlProblem(f"found too many nested lists, expected {expected}") from None
    return table


def place_at(text: str, offset: int) -> Place:
    """Line and column of the character at `offset`, from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def place_of_key(text: str, key: str, item: str = "") -> Place | None:
    """Where `item` stands in the value of a key of the top level, or else the key itself.

    None where the key cannot be found as people write it.
    """
    head = re.search(rf"^[ \t]*\[*[ \t]*[\"']?({re.escape(key)})[\"']?[ \t]*[=.\]]", text, re.MULTILINE)
    if head is None:
        return None
    at = text.find(item, head.end()) if item else -1
    return place_at(text, at if at >= 0 else head.start(1))


def place_in_table(text: str, table: str, key: str = "") -> Place | None:
    """Where a table stands, or a key in it; None where it cannot be found as people write it."""
    quote = "[\"']?"
    head = re.search(rf"^[ \t]*\[?[ \t]*({quote}{re.escape(table)})\b", text, re.MULTILINE)
    if head is None:
        return None
    at = head.start(1)
    if key:
        inside = rf"^[ \t]*(?:{re.escape(table)}\.)?({quote}{re.escape(key)})\b"
        found = re.compile(inside, re.MULTILINE).search(text, head.start())
        at = at if found is None else found.start(1)
    return place_at(text, at)
