"""Flight recorder dumps with the interface of every run; their figures are in `HangAnalysis`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.hangs.run import HangAnalysis, HangInput
from simcore.parameters import RunInput

if TYPE_CHECKING:
    from simcore.trace.lanes import Lanes
    from simcore.words.hung import HangFigures


class HungRun(HangAnalysis):
    """The dumps of a job: screen, report and JSON take it from here and nowhere else."""

    @cached_property
    def lanes(self) -> Lanes:
        # Imported here: only the screen needs it.
        from simcore.hangs.lanes import HungLanes

        return HungLanes(self)

    @cached_property
    def figures(self) -> HangFigures:
        from simcore.words.hung import HangFigures

        return HangFigures(self)

    def rerun(self, setup: HangInput, cancelled: Callable[[], bool]) -> HungRun:
        """Returns the same dumps. Raises `UsageError` for any parameter."""
        return run_dumps(setup)


def run_dumps(run_input: RunInput) -> HungRun:
    """Returns the dumps as a run. Raises `UsageError` for any parameter."""
    run_input.parameters.refuse_others("dumps")
    return HungRun(HangInput(run_input.opened, run_input.parameters))
