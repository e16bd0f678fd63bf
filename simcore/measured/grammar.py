"""The grammar of a trace's line: `rank:7:forward_step(key=value,...,sub_operations=['...', ...])`.

Values are not quoted: a description has commas, parentheses and slashes in it, a shape has
commas in brackets. So a comma ends a value only where `key=` follows and no bracket is open.
The list of sub-operations is a Python list of strings, whatever order the keys stand in.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from simcore.workload.formats.cell import quoted

# A step of 128 layers and 64 micro-batches has lines of some 100,000 characters.
LONGEST_LINE = 1 << 24
_OPENING = re.compile(r"\s*(rank|stage):([0-9]{1,9}):(\w+)\(")
_KEY = re.compile(r"([A-Za-z_]\w*)=")
_BREAK = re.compile(r",\s*(?=[A-Za-z_]\w*=)")
_LIST = re.compile(r"(?:(?<=\()|,)\s*sub_operations=\s*")
# Unrolled: no two ways to match one text, so a string without its end fails in linear time.
_STRING = re.compile(r"'[^'\\]*(?:\\.[^'\\]*)*'|\"[^\"\\]*(?:\\.[^\"\\]*)*\"", re.DOTALL)
_BLANKS = re.compile(r"\s*")


class GrammarError(Exception):
    """What does not fit in a line. code: of the diagnostic. column: from 1, in characters."""

    def __init__(self, code: str, column: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.column = column
        self.message = message


class Field(NamedTuple):
    """A value with the column at which it begins, from 1; of a sub-operation, the list item's column."""

    text: str
    column: int


class TraceLine(NamedTuple):
    """One line: `rank` or `stage` and its number, the operation, its keys, its sub-operations' keys."""

    kind: str
    number: int
    op: str
    fields: dict[str, Field]
    subs: list[dict[str, Field]]


def parse_line(text: str) -> TraceLine:
    """A line of a trace. Raises `GrammarError` at the first place that does not fit."""
    opening = _OPENING.match(text)
    if opening is None:
        raise GrammarError("trace-line", 1, f"found {quoted(text)}, expected rank:N:operation(...)")
    if len(text) > LONGEST_LINE:
        found = f"found a line of {len(text)} characters, expected at most {LONGEST_LINE}"
        raise GrammarError("trace-line-length", 1, found)
    kind, number, op = opening.groups()
    start, end = opening.end(), len(text.rstrip())
    marker = _LIST.search(text, start)
    subs: list[dict[str, Field]] = []
    if marker is None:
        if text[end - 1] != ")" or end <= start:
            raise _no_end(text, end)
        return TraceLine(kind, int(number), op, split_fields(text[start : end - 1], start + 1), subs)
    fields = split_fields(text[start : marker.start()], start + 1)
    after, items = _list(text, marker.end())
    for item, column in items:
        subs.append(split_fields(item, column, fixed=True))
    rest = _BLANKS.match(text, after)
    after = rest.end() if rest is not None else after
    if text[after:end] == ")":
        return TraceLine(kind, int(number), op, fields, subs)
    if text[after : after + 1] != "," or text[end - 1] != ")":
        raise _no_end(text, max(after, 0))
    for key, field in split_fields(text[after + 1 : end - 1], after + 2).items():
        fields.setdefault(key, field)
    return TraceLine(kind, int(number), op, fields, subs)


def _no_end(text: str, at: int) -> GrammarError:
    at = min(at, len(text.rstrip()))
    found = quoted(text[at:]) if text[at:].strip() else "the end of the line"
    return GrammarError("trace-line-end", at + 1, f"found {found}, expected ) at the end of the operation")


def split_fields(text: str, column: int, fixed: bool = False) -> dict[str, Field]:
    """`key=value,key=value` as values by key; the first of a repeated key counts.

    column: where the text begins; `fixed`: every value gets that column. Brackets that never
    close (a description may hold any text) are taken as plain characters.
    """
    for opening, closing in (("[(", "])"), ("[", "]"), ("", "")):
        pieces, balanced = _split(text, opening, closing)
        if balanced:
            break
    fields: dict[str, Field] = {}
    for start, piece in pieces:
        blanks = len(piece) - len(piece.lstrip())
        match = _KEY.match(piece, blanks)
        if match is None:
            if not piece.strip():
                continue
            at = column if fixed else column + start + blanks
            raise GrammarError("trace-key", at, f"found {quoted(piece.strip())}, expected key=value")
        at = column if fixed else column + start + match.end()
        fields.setdefault(match.group(1), Field(piece[match.end() :].strip(), at))
    return fields


def _split(text: str, opening: str, closing: str) -> tuple[list[tuple[int, str]], bool]:
    """(start, piece) between the commas outside brackets, and whether every bracket was closed."""
    pieces: list[tuple[int, str]] = []
    first = last = depth = 0
    for comma in _BREAK.finditer(text):
        part = text[last : comma.start()]
        depth += sum(map(part.count, opening)) - sum(map(part.count, closing))
        last = comma.start()
        if depth <= 0:
            depth = 0
            pieces.append((first, text[first : comma.start()]))
            first = comma.end()
    part = text[last:]
    depth += sum(map(part.count, opening)) - sum(map(part.count, closing))
    pieces.append((first, text[first:]))
    return pieces, depth <= 0


def _list(text: str, at: int) -> tuple[int, list[tuple[str, int]]]:
    """(place behind it, [(item, column)]) of the list of strings that begins at `at`; None is empty."""
    if text.startswith("None", at):
        return at + 4, []
    if text[at : at + 1] != "[":
        raise _bad_list(text, at, "[ and a list of quoted strings")
    items: list[tuple[str, int]] = []
    at = _skip(text, at + 1)
    while text[at : at + 1] != "]":
        string = _STRING.match(text, at)
        if string is None:
            raise _bad_list(text, at, "a quoted string or ]")
        items.append((_unquoted(string.group(), at), at + 1))
        at = _skip(text, string.end())
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != "]":
            raise _bad_list(text, at, ", or ] behind a string")
    return at + 1, items


def _skip(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks is not None else at


def _bad_list(text: str, at: int, expected: str) -> GrammarError:
    found = quoted(text[at : at + 40]) if text[at:].strip() else "the end of the line"
    return GrammarError("trace-list", at + 1, f"sub_operations: found {found}, expected {expected}")


def _unquoted(literal: str, at: int) -> str:
    """The text of a string literal; one without a backslash needs no evaluation."""
    if "\\" not in literal:
        return literal[1:-1]
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            # `\d` is a mistake to Python, and its warning is no message for our user.
            warnings.simplefilter("ignore")
            return str(ast.literal_eval(literal))
    except (ValueError, SyntaxError):
        message = f"sub_operations: found {quoted(literal)}, expected a string without a broken escape"
        raise GrammarError("trace-list", at + 1, message) from None
