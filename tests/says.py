"""What a text says apart from its wording: the figures and names in it, and which line has them."""

from __future__ import annotations

import re
from collections.abc import Iterable

# A flag; the name of a file; a number, a range or a list of them, with the unit that stands behind it.
_FIGURE = re.compile(
    r"--[a-z][a-z0-9-]*[a-z0-9]"
    r"|[\w./*-]*\w\.(?:csv|et|gz|json|sqlite|toml|txt|yml)\b"
    r"|(?<![\w.#-])[-+]?x?\d+(?:[.,-]\d+)*(?![\w-])(?: (?:ns|us|ms|s|%|[kMGT]?B|GB/s|TFLOP/s)(?!\w))?"
)


def figures(text: str) -> list[str]:
    """The figures in a text with their units, in their order, flags and names of files with them.

    >>> figures("ranks 0-3 wait 2.112 s (-14.2 %) in 7 calls; --run FILE opens a.txt")
    ['0-3', '2.112 s', '-14.2 %', '7', '--run', 'a.txt']
    """
    return [found[0] for found in _FIGURE.finditer(text)]


def said(lines: Iterable[str], *parts: str) -> str:
    """The one line in which all parts stand in this order: names, figures, flags, short words."""
    shown = list(lines)
    pattern = re.compile(".*?".join(rf"(?<![\w.]){re.escape(part)}(?!\w)" for part in parts))
    found = [line for line in shown if pattern.search(line)]
    listed = "\n  ".join(["", *(found or shown)])
    assert len(found) == 1, f"{len(found)} lines have {', '.join(parts)}:{listed}"
    return found[0]
