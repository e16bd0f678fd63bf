"""How much each part of a run matters: the step when it takes no time, and when it takes a tenth less."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from simcore.diagnostics import Cancelled
from simcore.parameters import Parameters
from simcore.records import Struct
from simcore.trace.findings import WhatIf

# What takes 10 % less time takes 0.9 of it; 10 % faster is 1 / 0.9 of the bandwidth.
BETTER, WORSE = 0.9, 1.1


class Knob(Struct, frozen=True):
    """A part of a run that takes time."""

    name: str
    """What takes the time, as tables name it."""
    step_ns: Callable[[float], int | None]
    """step_ns(factor): the step, ns, when it takes `factor` of that time; None where that cannot be run."""
    parameters: Parameters
    """The parameters of the run with `BETTER` of that time."""
    has_worse: bool = False
    """Whether the step with a tenth more time is computed too."""
    unknown_reason: str = ""
    """Why the gain is not known where the step does not change, "" where it is known."""
    meaning: str = ""
    """As in `WhatIf`."""

    def sensitivity(self, base_ns: int) -> WhatIf | None:
        """Returns the step with less of it; None where that cannot be run. base_ns: the step of the run."""
        free, better = self.step_ns(0.0), self.step_ns(BETTER)
        if free is None or better is None:
            return None
        return WhatIf(
            self.name,
            free,
            better,
            self.step_ns(WORSE) if self.has_worse else None,
            anomaly=max(free, better) > base_ns,
            unknown=self.unknown_reason if free == better == base_ns else "",
            parameters=self.parameters,
            meaning=self.meaning,
        )


def sort_by_gain(rows: Iterable[WhatIf]) -> list[WhatIf]:
    """Returns the rows, the greatest gain first."""
    return sorted(rows, key=lambda row: (row.better10_ns, row.best_ns, row.name))


class Search:
    """The progress of a search for what helps: it reports how far it has come and whether it goes on.

    total: about how many things are tried; it grows as more are found. begun_items: how many were begun.
    """

    def __init__(
        self, total: int, progress: Callable[[int, int], None], cancelled: Callable[[], bool]
    ) -> None:
        self.total = total
        self.begun_items = 0
        self.cancelled = cancelled
        self._progress = progress

    def begin_next(self) -> None:
        """Reports the progress before each thing that is tried. Raises `Cancelled`."""
        self._progress(self.begun_items, max(self.total, self.begun_items + 1))
        self.begun_items += 1
        if self.cancelled():
            raise Cancelled

    def end(self) -> None:
        """Reports that everything has been tried."""
        self._progress(self.begun_items, self.begun_items)
