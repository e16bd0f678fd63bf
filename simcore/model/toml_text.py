"""TOML with positions, for the files that users of wltui write themselves.

The standard reader returns values without their positions; a message needs the line and column.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from typing import Any

from simcore.diagnostics import is_shown, printable

Location = tuple[int, int]

# Such files have some dozens of lines; a larger one is another kind of file.
_MOST_BYTES = 1 << 20
# Python refuses numbers of more than 4300 digits, or (older ones) takes seconds for them; no file needs one.
_MOST_DIGITS = 1000
_LONG_NUMBER = re.compile(rf"(?<![\w.])[0-9][0-9A-Fa-fxob_]{{{_MOST_DIGITS}}}")
# `a.b.c`: the standard reader's time grows with the square of the number of parts.
_MOST_PARTS = 32
_PART = r"(?:[\w-]+|\"[^\"\n]*\"|'[^'\n]*')[ \t]*\.[ \t]*"
_LONG_KEY = re.compile(rf"(?<![\w-])(?:{_PART}){{{_MOST_PARTS}}}")

# A part of a key: a quoted one may have anything in it, also escapes.
_NAME = re.compile(r"[\w-]+|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'")
_NAMES = rf"(?:{_NAME.pattern})(?:[ \t]*\.[ \t]*(?:{_NAME.pattern}))*"
_HEAD = re.compile(rf"^[ \t]*(?:(\[\[?)[ \t]*)?({_NAMES})[ \t]*[\]=]", re.MULTILINE)


class TomlProblem(Exception):
    """Raised for text that is not TOML. location: (line, column), from 1; None where it is unknown."""

    def __init__(self, message: str, location: Location | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.location = location


def read_text(path: str, what: str) -> str:
    """Returns the text of the file at `path`. what: the kind of file that is expected, for messages.

    Raises FileNotFoundError, and `TomlProblem` where the file is no text.
    """
    try:
        # FIFOs and devices are refused: opening or reading one of those may never end.
        status = os.stat(path)
        is_of_system = not status.st_size and os.path.realpath(path).startswith("/proc/")
        piped = None
        if stat.S_ISFIFO(status.st_mode):
            from simcore.pipes import read_open_pipe

            piped = read_open_pipe(path, status.st_mode, _MOST_BYTES)
        if piped is None and (not stat.S_ISREG(status.st_mode) or is_of_system):
            raise TomlProblem(f"found no regular file, expected {what}")
        if piped is None:
            with open(path, "rb") as file:
                piped = file.read(_MOST_BYTES + 1)
        data = piped
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
    """Returns the top table. expected: what such a file has instead of nested lists. Raises `TomlProblem`."""
    if match_ := _LONG_NUMBER.search(text):
        message = f"found a number of more than {_MOST_DIGITS} digits, expected a shorter one"
        raise TomlProblem(message, location_at(text, match_.start()))
    if match_ := _LONG_KEY.search(text):
        message = f"found a key of more than {_MOST_PARTS} parts, expected {expected}"
        raise TomlProblem(message, location_at(text, match_.start()))
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        table: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, _, where = str(error).partition(" (at ")
        at = re.match(r"line (\d+), column (\d+)", where)
        location = (int(at[1]), int(at[2])) if at else None
        # The message may quote a key that is as long as the file.
        raise TomlProblem(f"this is not TOML: {printable(message)}", location) from None
    except RecursionError:
        raise TomlProblem(f"found too many nested lists, expected {expected}") from None
    return table


def location_at(text: str, offset: int) -> Location:
    """Returns line and column of the character at `offset`, from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def locate_key(text: str, key: str, item: str = "") -> Location | None:
    """Returns the position of `item` in the value of a key of the top level, or else that of the key.

    None where the key is not at the beginning of a line.
    """
    for path, start, end in _heads(text):
        if path[0] == key:
            at = text.find(item, end) if item else -1
            return location_at(text, at if at >= 0 else start)
    return None


def locate_in_table(text: str, table: str, key: str | None = None) -> Location | None:
    """Returns the position of a table, or of a key in it; None where neither is at the beginning of a
    line.
    """
    of_table = None
    for path, start, _ in _heads(text):
        if path[0] != table:
            continue
        if key is None or path[1:2] == [key]:
            return location_at(text, start)
        of_table = start if of_table is None else of_table
    return None if of_table is None else location_at(text, of_table)


def _heads(text: str) -> Iterator[tuple[list[str], int, int]]:
    """Yields (the whole name, its offset, the offset of what follows it) of every table and key of a text."""
    table: list[str] = []
    for match_ in _HEAD.finditer(text):
        path = [_name(part) for part in _NAME.findall(match_[2])]
        if match_[1]:
            table = path
        else:
            path = table + path
        yield path, match_.start(2), match_.end()


def _name(part: str) -> str:
    """Returns the name that a part of a key, as it is written, stands for."""
    if part[0] == "'":
        return part[1:-1]
    if part[0] != '"':
        return part
    try:
        return str(parse_toml(f"name = {part}", "")["name"])
    except TomlProblem:
        # A line of a multi-line text that only looks like a key.
        return part


def quote_toml(text: str) -> str:
    """Returns a text as a string of TOML, in which a terminal just shows each character."""
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    return char if is_shown(char) else f"\\U{ord(char):08x}"


def format_toml_value(value: object) -> str:
    """Returns a value as TOML writes it, on one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return quote_toml(value)
    if isinstance(value, list):
        return f"[{', '.join(map(format_toml_value, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name} = {format_toml_value(item)}' for name, item in value.items())}}}"
    # Numbers, and dates and times, whose `str` has a blank in place of a T.
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
