"""What a text says apart from its wording: the figures and names in it, and which line has them."""

from __future__ import annotations

import re
from collections.abc import Iterable

# A flag; what stands in quotes; the name of a file; a name with underscores or dots, as traces have them; a
# number, a range or a list of them, with the unit that stands behind it.
_FIGURE = re.compile(
    r"--[a-z][a-z0-9-]*[a-z0-9]"
    r"|(?<![\w'])'[^']+'(?!\w)"
    r"|[\w./*-]*[\w*]\.(?:csv|et|gz|json|sqlite|toml|txt|yml)\b"
    r"|(?<![\w.])[A-Za-z][\w#]*(?:[._][\w#]+)+"
    r"|(?<![\w.#-])[-+]?x?\d+(?:[.,-]\d+)*(?![\w-])(?: (?:ns|us|ms|s|%|[kMGT]?B|GB/s|TFLOP/s)(?!\w))?"
)


def figures(text: str) -> list[str]:
    """The figures in a text with their units, flags, files and names like `send_forward`, in their order.

    >>> figures("ranks 0-3 wait 2.112 s (-14.2 %) in send_forward; --run STAMP opens a.txt")
    ['0-3', '2.112 s', '-14.2 %', 'send_forward', '--run', 'a.txt']
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
