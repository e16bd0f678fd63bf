"""TOML with places: what the files that wltui's users write themselves are read with.

The standard reader gives values without their places; a message needs the line and column.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from typing import Any

from simcore.diagnostics import printable

Place = tuple[int, int]

# Some dozens of lines; more is another kind of file.
_MOST_BYTES = 1 << 20
# Python refuses numbers of more than 4300 digits, or (older ones) takes seconds for them; no file needs one.
_MOST_DIGITS = 1000
_LONG_NUMBER = re.compile(rf"(?<![\w.])[0-9][0-9A-Fa-fxob_]{{{_MOST_DIGITS}}}")
# `a.b.c`: the standard reader's time grows with the square of the number of parts.
_MOST_PARTS = 32
_PART = r"(?:[\w-]+|\"[^\"\n]*\"|'[^'\n]*')[ \t]*\.[ \t]*"
_LONG_KEY = re.compile(rf"(?<![\w-])(?:{_PART}){{{_MOST_PARTS}}}")


class TomlProblem(Exception):
    """The text is not TOML. message: why. place: (line, column), from 1; None where it is not known."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.place = place


def read_text(path: str, what: str) -> str:
    """The text of the file at `path`. what: the kind of file that is expected, for messages.

    Raises FileNotFoundError, and `TomlProblem` where there is no such text.
    """
    try:
        # Not a FIFO or a device: opening or reading one of those may never end.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise TomlProblem(f"found no regular file, expected {what}")
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise TomlProblem(f"the file cannot be read: {error.strerror or error}") from None
    except ValueError:  # a NUL character in the path
        raise TomlProblem("there is no such file") from None
    if len(data) > _MOST_BYTES:
        raise TomlProblem(f"found more than 1 MiB, expected {what}")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        message = f"found byte 0x{data[error.start]:02x}, expected UTF-8 text"
        raise TomlProblem(message, (line, column)) from None


def parse_toml(text: str, expected: str) -> dict[str, Any]:
    """The top table. expected: what stands in such a file instead of nested lists. Raises `TomlProblem`."""
    if found := _LONG_NUMBER.search(text):
        message = f"found a number of more than {_MOST_DIGITS} digits, expected a shorter one"
        raise TomlProblem(message, place_at(text, found.start()))
    if found := _LONG_KEY.search(text):
        message = f"found a key of more than {_MOST_PARTS} parts, expected {expected}"
        raise TomlProblem(message, place_at(text, found.start()))
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
        # The message may quote a key that is as long as the file.
        raise TomlProblem(f"this is not TOML: {printable(message)}", place) from None
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
