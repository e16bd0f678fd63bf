"""What a format is to the registry, and the beginning of a file by which it is recognised."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from simcore.diagnostics import Diagnostic
from simcore.workload.model import Workload

if TYPE_CHECKING:
    from simcore.workload.spans import SpanTable

BLANKS = b" \t\r\n\f\v"
_BOM = b"\xef\xbb\xbf"
# The first byte of a pickle, and of no UTF-8.
_NO_TEXT = b"\x80"
_COMMENTS = ("#", "//")
# What a file is: rows to simulate, a run as its ranks printed it, one that a profiler recorded, a model, what
# a flight recorder left of a job, or what an allocator did.
Kind = Literal["workload", "rank traces", "profile", "model", "dump", "snapshot"]


class FileHead:
    """The beginning of a file, for the decision by content.

    raw: the first bytes, without a byte order mark. first: the first line that is not blank
    ("" when there is none), and line: which it is, from 1. lines: the first two lines that are
    neither blank nor comments.
    """

    __slots__ = ("first", "line", "lines", "raw")

    def __init__(self, raw: bytes, first: str, lines: tuple[str, ...], line: int = 1) -> None:
        self.raw = raw
        self.first = first
        self.line = line
        self.lines = lines

    def tokens(self) -> list[str]:
        """The first line's tokens, blanks and tabs taken away."""
        return self.lines[0].split() if self.lines else []


class Format:
    """One entry of the registry.

    name: what a message calls it. sniff: whether a head is of this format. read: makes a
    `Workload` of (path, all bytes), or None for a format that is known but not opened; instead:
    what its user can do then, in words that follow a semicolon. kind: of what is no workload, which
    `simcore.measured`, `simcore.kineto`, `simcore.model`, `simcore.flight` or `simcore.snapshots` opens. key,
    words: of a profile, what JSON and pages call it. spans: makes a table of its spans of (path, all bytes),
    with what it found; None where `simcore.kineto` has a reader for what a profiler tells beside them.
    """

    __slots__ = ("instead", "key", "kind", "name", "read", "sniff", "spans", "words")

    def __init__(
        self,
        name: str,
        sniff: Callable[[FileHead], bool],
        read: Callable[[str, bytes], Workload] | None = None,
        instead: str = "",
        kind: Kind = "workload",
        key: str = "",
        words: str = "",
        spans: Callable[[str, bytes], tuple[SpanTable, tuple[Diagnostic, ...]]] | None = None,
    ) -> None:
        self.name = name
        self.sniff = sniff
        self.kind = kind
        self.read = read
        self.instead = instead
        self.key = key
        self.words = words
        self.spans = spans

    @property
    def refusal(self) -> str:
        """What is said of a format that is known and not opened."""
        instead = f"; {self.instead}" if self.instead else ""
        return f"found {self.name}, a format that this version does not open{instead}"


def head_of(raw: bytes) -> FileHead:
    """The head of a file that begins with `raw`."""
    raw = without_bom(raw)
    if raw[:1] == _NO_TEXT:
        # A directory may have thousands of pickles: to decode the head of one takes 0.5 ms.
        text = raw[:1].decode("utf-8", "surrogateescape")
        return FileHead(raw, text, (text,))
    first, line_number = "", 1
    lines: list[str] = []
    text = raw.decode("utf-8", "surrogateescape")
    for match in re.finditer(r"[^\r\n]+", text):
        line = match.group().strip()
        if not line:
            continue
        if not first:
            first, line_number = line, len(re.findall(r"\r\n?|\n", text[: match.start()])) + 1
        if not is_comment(line):
            lines.append(line)
            if len(lines) == 2:
                break
    return FileHead(raw, first, tuple(lines), line_number)


def is_text(raw: bytes) -> bool:
    """Whether a file begins as text does: without control characters, and nearly all of it UTF-8."""
    start = raw[:512]
    if any(byte < 32 and byte not in BLANKS and byte != 27 for byte in start):
        return False
    wrong = sum("\udc80" <= char <= "\udcff" for char in start.decode("utf-8", "surrogateescape"))
    return wrong * 10 <= len(start)


def without_bom(data: bytes) -> bytes:
    """The bytes after a UTF-8 byte order mark, if there is one."""
    return data[len(_BOM) :] if data.startswith(_BOM) else data


def is_comment(text: str) -> bool:
    """Whether a line that begins with `text` is a comment: `#` or `//`, as people write them."""
    return text.startswith(_COMMENTS)
