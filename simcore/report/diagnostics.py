"""What was noticed in the input, with its places."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from simcore.diagnostics import Diagnostic, printable
from simcore.report.section import PageAsked, wrapped
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.analysis.run import Run


def lines(run: Run, asked: PageAsked) -> list[str]:
    """A line a diagnostic; those of another file than the one that was opened name theirs."""
    counts = Counter(one.severity for one in run.diagnostics)
    words = [plural(counts[one], one) for one in ("error", "warning", "note") if counts[one]]
    told = [line for one in run.diagnostics for line in _lines(one, run.path)]
    return [f"Diagnostics: {', '.join(words) or 'none'}", *told]


def _lines(found: Diagnostic, path: str) -> list[str]:
    place = f"line {found.line}" if found.line is not None else "run"
    if found.line is not None and found.column is not None:
        place += f", column {found.column}"
    first = f"  {found.severity:<8} {place:<20} "
    of_file = "" if found.file in ("", path) else f"{printable(os.path.basename(found.file))}: "
    return wrapped(f"{of_file}{found.message}  [{found.code}]", first, " " * len(first))


def values(run: Run, asked: PageAsked) -> dict[str, Any]:
    """`diagnostics`."""
    return {"diagnostics": [one.values() for one in run.diagnostics]}
