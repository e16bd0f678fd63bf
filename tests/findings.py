"""What a diagnostic says beside its prose: place, severity and code, figures and names of its message."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable

_FACT = re.compile(
    r"""(?<!\w)'[^']*'(?!\w) | `[^`]*` | "[^"]*"                              # what stands in quotes
    | (?<![\w.])/[\w./-]*\w | [\w./*-]*\w\.(?:json|toml|txt|yaml)\b           # a path
    | (?<!\w)--[a-z-]*[a-z] (?:\ (?!or\ |and\ )[^\s:;,]+(?=[:;,]|\ --))?      # a flag, with its value
    | (?<![\w.#-])\d{1,3}(?:\ \d{3})+(?![\w.-])(?:\ (?:ns|B)(?!\w))?          # thousands that stand apart
    | (?<![\w.#-])[-+]?x?\d+(?:[.,-]\d+)*(?![\w-])(?:\ (?:ns|us|ms|s|%|[kMGT]?B|Gi?B/s|TFLOP/s)(?![\w/]))?
    | \b(?=[\w\\-]*[\d_])(?=[\w\\-]*[A-Za-z])\w[\w\\-]*\w | \b\d+=[\w-]+      # a name, by what is in it
    | \b[A-Za-z]\w*(?:\.|::)[A-Za-z_][\w.:-]*\w
    | \b(?:[A-Z]{4,}|tp|dp|pp|ep|vpp|ga)\b                                    # one that is known
    """,
    re.VERBOSE,
)
_REASONS = {os.strerror(code) for code in errno.errorcode}
_FINDING = re.compile(r"(?s)(?:(.*?): )?(error|warning|note) ([a-z0-9-]+) (.*)")


def named(text: str) -> list[str]:
    """The figures of a text and the names in it, in their order."""
    return _FACT.findall(text)


def facts(text: str) -> str:
    """The figures of a text and the names in it, in their order, and the system's reason that it ends with.

    >>> facts("the row 'b': found 4 cells, expected 12; ALLREDUCE of 8 B of mlp_row")
    "'b', 4, 12, ALLREDUCE, 8 B, mlp_row"
    """
    reason = text.rstrip("\n").rpartition(": ")[2]
    return ", ".join([*named(text), *([reason] if reason in _REASONS else [])])


def finding(line: str) -> str:
    """A printed diagnostic without its prose: place, severity, code, and the facts of its message.

    >>> finding("w.txt:3:6: error not-a-number forward compute time: found 'x', expected a whole number")
    "w.txt:3:6: error not-a-number 'x'"
    """
    found = _FINDING.fullmatch(line.rstrip("\n"))
    assert found is not None, f"no diagnostic: {line}"
    place, severity, code, message = found.groups()
    return " ".join(one for one in (f"{place}:" if place else "", severity, code, facts(message)) if one)


def findings(lines: str | Iterable[str]) -> list[str]:
    """Each line, a printed diagnostic, as `finding` has it."""
    return [finding(line) for line in (lines.splitlines() if isinstance(lines, str) else lines)]
