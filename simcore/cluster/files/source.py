"""The text of a cluster file, its top level, and locations in it for messages.

The top level is that of a JSON object, or of `key: value` lines, with the locations that JSON's reader drops.
"""

from __future__ import annotations

import json
import os
import re
import stat
from typing import Any

from simcore.diagnostics import Diagnostic, InputError, printable
from simcore.model.toml_text import location_at
from simcore.records import NamedTuple

# A cluster is a page of text; more is another kind of file.
_MOST_BYTES = 1 << 20
# But for a topology, a line for each link: 50,000 GPUs have half a million.
_MOST_TOPOLOGY_BYTES = 1 << 25


class ClusterText:
    """The text of the file at `path`; two are equal if both are. Raises InputError when there is no such
    text.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.text = self._read()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterText) and (self.path, self.text) == (other.path, other.text)

    def __hash__(self) -> int:
        return hash((self.path, self.text))

    def _read(self) -> str:
        try:
            status = os.stat(self.path)
            mode = status.st_mode
            piped = None
            if stat.S_ISFIFO(mode):
                from simcore.pipes import read_open_pipe

                piped = read_open_pipe(self.path, mode, _MOST_BYTES)
            if piped is None and not stat.S_ISREG(mode):
                kind = "a directory" if stat.S_ISDIR(mode) else "no regular file"
                raise self.make_error("not-a-cluster-file", f"found {kind}, expected a file")
            if piped is None:
                with open(self.path, "rb") as file:
                    # A file of the system without a size may wait like a pipe.
                    piped = file.read(_MOST_BYTES + 1) if status.st_size else b""
                    if piped[:1].isdigit():
                        piped += file.read(_MOST_TOPOLOGY_BYTES - _MOST_BYTES)
            data = piped
        except OSError as error:
            raise self.make_error("unreadable-file", f"the file cannot be read: {error.strerror}") from None
        except ValueError:  # a NUL character in the path
            raise self.make_error("no-such-file", "there is no such file") from None
        if len(data) > (_MOST_TOPOLOGY_BYTES if data[:1].isdigit() else _MOST_BYTES):
            raise self.make_error("not-a-cluster-file", "found more than 1 MiB, expected a cluster file")
        try:
            return data.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            message = f"found byte 0x{data[error.start]:02x}, expected UTF-8 text"
            raise InputError(Diagnostic("error", "not-a-cluster-file", message, self.path, line)) from None

    def locate(self, offset: int) -> tuple[int, int]:
        """Returns line and column of the character at `offset`, from 1."""
        return location_at(self.text, offset)

    def make_error(self, code: str, message: str, location: tuple[int, int] | None = None) -> InputError:
        """Returns an error for a (line, column); its message names what was found and what was expected."""
        line, column = location or (None, None)
        return InputError(Diagnostic("error", code, message, self.path, line, column))

    def note_ignored(self, keys: list[tuple[str, tuple[int, int]]]) -> tuple[Diagnostic, ...]:
        """Returns a note for each key that means nothing here."""
        return tuple(
            Diagnostic("note", "cluster-key-ignored", f"{quoted(key)} is ignored", self.path, *location)
            for key, location in keys
        )


def quoted(value: object) -> str:
    """Returns a value of a file in backquotes, safe for a terminal."""
    return f"`{printable(str(value), 40)}`"


_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+)')
_LINE = re.compile(r"^[ \t]*([\w-]+)[ \t]*:[ \t]*(\S+)[ \t]*$", re.MULTILINE)


class KeyEntry(NamedTuple):
    """One value of the top level."""

    value: Any
    """The value."""
    key_at: int
    """The offset of its key in the text."""
    at: int
    """The offset of the value."""
    items_at: list[int]
    """The offsets of the items of a list."""


class Entries:
    """The entries of one file by key. code: that of its errors. file_kind: the kind of file, for messages."""

    def __init__(self, source: ClusterText, code: str, file_kind: str, by_key: dict[str, KeyEntry]) -> None:
        self.source = source
        self.code = code
        self.file_kind = file_kind
        self.by_key = by_key

    def make_value_error(self, key: str, expected: str, item: int | None = None) -> InputError:
        """Returns the error that a value does not fit, or with `item` that a list's item does not."""
        entry = self.by_key[key]
        value, at = (entry.value, entry.at) if item is None else (entry.value[item], entry.items_at[item])
        value_text = value if isinstance(value, str) else json.dumps(value)
        message = f"found {quoted(value_text)} {'for' if item is None else 'in'} {key}, expected {expected}"
        return self.source.make_error(self.code, message, self.source.locate(at))

    def count(self, key: str, default: int, least: int, most: int) -> int:
        """Returns a whole number. Raises InputError."""
        if key not in self.by_key:
            return default
        value = self.by_key[key].value
        if not is_number(value) or value != int(value) or not least <= value <= most:
            raise self.make_value_error(key, f"a whole number from {least} to {most}")
        return int(value)

    def list_of(self, key: str, length: int | None = None) -> list[Any]:
        """Returns a list that is not empty and, with `length`, has so many items. Raises InputError."""
        if key not in self.by_key:
            message = f"found no {key}, expected {self.file_kind}: a list of values, one a dimension"
            raise self.source.make_error(self.code, message, self.source.locate(0))
        value = self.by_key[key].value
        if not isinstance(value, list) or not value or (length is not None and len(value) != length):
            raise self.make_value_error(key, f"a list of {length or 'values'}, one a dimension")
        if any(isinstance(item, list | dict) for item in value):
            raise self.make_value_error(key, "a list of single values")
        return value


def is_number(value: object) -> bool:
    """Returns whether a value is a number, and of a size that an int takes without harm."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def json_entries(source: ClusterText, code: str, file_kind: str) -> Entries:
    """Returns the entries of a JSON object. Raises InputError when it is none."""
    try:
        root = json.loads(source.text)
    except json.JSONDecodeError as error:
        raise source.make_error(code, f"this is not JSON: {error.msg}", source.locate(error.pos)) from None
    except RecursionError:
        raise source.make_error(code, "found too many nested lists, expected an object") from None
    except ValueError:  # a number of more than 4300 digits
        raise source.make_error(code, f"found a number that is too long, expected {file_kind}") from None
    if not isinstance(root, dict):
        raise source.make_error(code, f"found no object, expected {file_kind}", source.locate(0))
    entries: dict[str, KeyEntry] = {}
    depth = 0
    before = key = ""
    for token in _TOKEN.finditer(source.text):
        text, at = token[1], token.start(1)
        if text in "]}":
            depth -= 1
        elif depth == 1 and before in ("{", ",") and text.startswith('"'):
            key = json.loads(text)
            key_at = at
        elif depth == 1 and before == ":":
            entries[key] = KeyEntry(root[key], key_at, at, [])
        elif depth == 2 and before in ("[", ","):
            entries[key].items_at.append(at)
        if text in "[{":
            depth += 1
        before = text
    return Entries(source, code, file_kind, entries)


def line_entries(source: ClusterText, code: str, file_kind: str) -> Entries:
    """Returns the entries of `key: value` lines, numbers as numbers; other lines are an error."""
    entries: dict[str, KeyEntry] = {}
    offset = 0
    for line in source.text.split("\n"):
        entry = _LINE.match(line)
        if entry is not None:
            text = entry[2]
            value: Any = text
            if re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,15})?", text):
                value = float(text) if "." in text else int(text)
            entries[entry[1]] = KeyEntry(value, offset + entry.start(1), offset + entry.start(2), [])
        elif line.strip():
            message = f"found {quoted(line.strip())}, expected {file_kind}: lines of `key: value`"
            raise source.make_error(code, message, source.locate(offset))
        offset += len(line) + 1
    return Entries(source, code, file_kind, entries)
