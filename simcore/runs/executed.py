"""Execution traces that have run, as every kind of run is asked; the figures are those of `RanTraces`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.diagnostics import Cancelled, Diagnostic, InputError
from simcore.executing.executed import Execution
from simcore.executing.ran import RanTraces
from simcore.executing.retimed import run_at_scales
from simcore.executing.run import execute
from simcore.executing.untaken import untaken
from simcore.once import once
from simcore.trace.contexts import NoModel
from simcore.trace.findings import WhatIf

if TYPE_CHECKING:
    from simcore.executing.what_if import TriedChanges
    from simcore.trace.lanes import Lanes
    from simcore.words.executed import TraceFigures

# Parameters of collectives and messages, which may change nothing.
COLLECTIVE_FIELDS = (
    "algorithm", "splits", "active_chunks", "endpoint_delay", "local_mem_bw", "collective_optimization",
    "injection_scale", "rendezvous_protocol", "num_queues_per_dim",
)  # fmt: skip


class TraceResults(RanTraces):
    """What execution traces gave: screen, report and JSON take it from here and nowhere else."""

    model = NoModel("execution traces give no parameter sizes")

    @cached_property
    def lanes(self) -> Lanes:
        """Its ranks and their streams as a timeline shows them."""
        from simcore.executing.lanes import TraceLanes

        return TraceLanes(self)

    @cached_property
    def figures(self) -> TraceFigures:
        from simcore.words.executed import TraceFigures

        return TraceFigures(self, lambda: self._found.known)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What was found in reading and running, what lies beside it, and which parameters have no effect."""
        return (*untaken(self.setup), *self.executed.diagnostics, *self._ignored())

    def _ignored(self) -> list[Diagnostic]:
        """A warning for each parameter of collectives and messages that was given and has no effect."""
        if not any(flag.field in COLLECTIVE_FIELDS for flag in self.parameters.stated()):
            return []
        from simcore.executing.what_if import ignored

        return ignored(self, self._again, COLLECTIVE_FIELDS)

    def _again(self, setup: Execution) -> TraceResults:
        return self.rerun(setup, lambda: False)

    def rerun(self, setup: Execution, cancelled: Callable[[], bool]) -> TraceResults:
        """The same traces with other parameters. Raises `UsageError`, InputError, `Cancelled`."""
        if cancelled():
            raise Cancelled
        return executed_results(setup, cancelled)

    def _find_what_if(
        self, progress: Callable[[int, int], None], cancelled: Callable[[], bool]
    ) -> list[WhatIf]:
        return self._found(progress, cancelled).rows

    @once
    def _found(self, progress: Callable[[int, int], None], cancelled: Callable[[], bool]) -> TriedChanges:
        # Imported here: only who asks runs the set again.
        from simcore.executing.what_if import what_if

        return what_if(self, self._again, progress, cancelled)


def executed_results(setup: Execution, cancelled: Callable[[], bool] = lambda: False) -> TraceResults:
    """A set that has run. Raises `UsageError`, InputError, `Cancelled`."""
    try:
        plain = TraceResults(execute(setup.changed(time_scale=())))
    except InputError as error:
        # What is wrong may be that they were not taken.
        raise InputError(*error.diagnostics, *untaken(setup)) from None
    return TraceResults(run_at_scales(plain, setup, cancelled)) if setup.parameters.time_scale else plain
