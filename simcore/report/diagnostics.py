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
    counts = Counter(diagnostic.severity for diagnostic in run.diagnostics)
    counted = [
        plural(counts[severity], severity) for severity in ("error", "warning", "note") if counts[severity]
    ]
    told = [line for diagnostic in run.diagnostics for line in _lines(diagnostic, run.path)]
    return [f"Diagnostics: {', '.join(counted) or 'none'}", *told]


def _lines(diagnostic: Diagnostic, path: str) -> list[str]:
    where = f"line {diagnostic.line}" if diagnostic.line is not None else "run"
    if diagnostic.line is not None and diagnostic.column is not None:
        where += f", column {diagnostic.column}"
    first = f"  {diagnostic.severity:<8} {where:<20} "
    of_file = "" if diagnostic.file in ("", path) else f"{printable(os.path.basename(diagnostic.file))}: "
    return wrapped(f"{of_file}{diagnostic.message}  [{diagnostic.code}]", first, " " * len(first))


def values(run: Run, asked: PageAsked) -> dict[str, Any]:
    """`diagnostics`."""
    return {"diagnostics": [diagnostic.values() for diagnostic in run.diagnostics]}
