"""How much each thing of a run matters: the step when it takes no time, and when it takes a tenth less."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from simcore.diagnostics import Cancelled
from simcore.parameters import Parameters
from simcore.records import Struct
from simcore.trace.findings import WhatIf

# What takes 10 % less time takes 0.9 of it; 10 % faster is 1 / 0.9 of the bandwidth.
BETTER, WORSE = 0.9, 1.1


class Knob(Struct, frozen=True):
    """Something of a run that takes time.

    step_ns(factor): the step, ns, when it takes `factor` of that time; None where that cannot be run.
    parameters: of the run with `BETTER` of it. has_worse: whether a tenth more is asked, too. still: why
    nobody knows what it brings where the step stays as it is, "" where that is known. meaning: as in
    `WhatIf`.
    """

    name: str
    step_ns: Callable[[float], int | None]
    parameters: Parameters
    has_worse: bool = False
    unknown_reason: str = ""
    meaning: str = ""

    def sensitivity(self, base_ns: int) -> WhatIf | None:
        """The step with less of it, beside the step `base_ns`; None where that cannot be run."""
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
    """The rows, the greatest gain first."""
    return sorted(rows, key=lambda row: (row.better10_ns, row.best_ns, row.name))


class Search:
    """How far a search for what helps has come, told as it goes on, and whether it goes on.

    total: how many things are asked, about, more as more are known to be. done: how many were begun.
    """

    def __init__(
        self, total: int, progress: Callable[[int, int], None], cancelled: Callable[[], bool]
    ) -> None:
        self.total = total
        self.begun_items = 0
        self.cancelled = cancelled
        self._progress = progress

    def begin_next(self) -> None:
        """Before each thing that is asked. Raises `Cancelled`."""
        self._progress(self.begun_items, max(self.total, self.begun_items + 1))
        self.begun_items += 1
        if self.cancelled():
            raise Cancelled

    def end(self) -> None:
        """When all has been asked."""
        self._progress(self.begun_items, self.begun_items)
