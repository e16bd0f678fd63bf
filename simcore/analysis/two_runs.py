"""Two runs beside each other: op by op where both were simulated, else in the words that both have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.analysis.results import Results

if TYPE_CHECKING:
    from simcore.analysis.beside import Beside
    from simcore.analysis.compare import Comparison
    from simcore.trace.run import Run

    # What a page of two runs asks both answer; a subject that two runs have nothing of is None, or empty.
    Compared = Comparison | Beside


def compared(a: Run, b: Run) -> Compared:
    """Run B against run A. Raises `UsageError` where nothing of them can be paired."""
    if isinstance(a, Results) and isinstance(b, Results):
        from simcore.analysis.compare import Comparison

        return Comparison(a, b)
    from simcore.analysis.beside import Beside

    return Beside(a, b)
