"""Two runs beside each other: op by op where both were simulated, else in the words that both have."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from simcore.compare import Comparison
    from simcore.compare.beside import Beside
    from simcore.runs.simulated import Results
    from simcore.trace.run import Run

    # What a page of two runs asks both answer; a subject that two runs have nothing of is None, or empty.
    Compared = Comparison | Beside


def compared(a: Run, b: Run) -> Compared:
    """Run B against run A. Raises `UsageError` where nothing of them can be paired."""
    if a.setup.of == b.setup.of == "workload":
        from simcore.compare import Comparison

        return Comparison(cast("Results", a), cast("Results", b))
    from simcore.compare.beside import Beside

    return Beside(a, b)
