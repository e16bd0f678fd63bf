"""Executed traces with the interface of every run; their figures are in `ExecutionAnalysis`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.cached_methods import cached_method
from simcore.diagnostics import Cancelled, Diagnostic, InputError
from simcore.executing.execution_analysis import ExecutionAnalysis
from simcore.executing.execution_result import Execution
from simcore.executing.retimed import run_at_scales
from simcore.executing.run import execute
from simcore.executing.sibling_files import note_untaken_files
from simcore.trace.contexts import NoModel
from simcore.trace.findings import WhatIf

if TYPE_CHECKING:
    from simcore.executing.what_if import ChangeResults
    from simcore.trace.lanes import Lanes
    from simcore.words.executed import TraceFigures

# Parameters of collectives and messages, which may have no effect on a set of traces.
COLLECTIVE_FIELDS = (
    "algorithm", "splits", "active_chunks", "endpoint_delay", "local_mem_bw", "collective_optimization",
    "injection_scale", "rendezvous_protocol", "num_queues_per_dim",
)  # fmt: skip


class ExecutedRun(ExecutionAnalysis):
    """The run of execution traces: screen, report and JSON take it from here and nowhere else."""

    model = NoModel("execution traces give no parameter sizes")

    @cached_property
    def lanes(self) -> Lanes:
        """Its ranks and their streams as a timeline shows them."""
        from simcore.executing.lanes import TraceLanes

        return TraceLanes(self)

    @cached_property
    def figures(self) -> TraceFigures:
        from simcore.words.executed import TraceFigures

        return TraceFigures(self, lambda: self._change_results.cached_value)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The diagnostics of reading and running, of sibling files, and of parameters without effect."""
        return (
            *note_untaken_files(self.setup), *self.executed.diagnostics, *self._warn_of_topology(),
            *self._warn_of_ignored(),
        )  # fmt: skip

    def _warn_of_topology(self) -> list[Diagnostic]:
        """Returns a warning where the traces run on a topology whose links they do not use."""
        topology = self.executed.cluster.topology
        if topology is None:
            return []
        from simcore.networks import topology_unused

        refusal = "" if self.parameters.network else "execution traces run on analytical or links"
        return [topology_unused(self.setup.network_name, topology.name, refusal)]

    def _warn_of_ignored(self) -> list[Diagnostic]:
        """Returns a warning for each given parameter of collectives and messages that has no effect."""
        if not any(flag.field in COLLECTIVE_FIELDS for flag in self.parameters.explicit_flags()):
            return []
        from simcore.executing.what_if import warn_of_ignored

        return warn_of_ignored(self, self._rerun_now, COLLECTIVE_FIELDS)

    def _rerun_now(self, setup: Execution) -> ExecutedRun:
        return self.rerun(setup, lambda: False)

    def rerun(self, setup: Execution, cancelled: Callable[[], bool]) -> ExecutedRun:
        """Returns the same traces with other parameters. Raises `UsageError`, `InputError`, `Cancelled`."""
        if cancelled():
            raise Cancelled
        return run_execution(setup, cancelled)

    def _find_what_if(
        self, progress: Callable[[int, int], None], cancelled: Callable[[], bool]
    ) -> list[WhatIf]:
        return self._change_results(progress, cancelled).rows

    @cached_method
    def _change_results(
        self, progress: Callable[[int, int], None], cancelled: Callable[[], bool]
    ) -> ChangeResults:
        # Imported here: only what-if runs the set again.
        from simcore.executing.what_if import what_if

        return what_if(self, self._rerun_now, progress, cancelled)


def run_execution(setup: Execution, cancelled: Callable[[], bool] = lambda: False) -> ExecutedRun:
    """Returns a set of traces that has run. Raises `UsageError`, `InputError`, `Cancelled`."""
    try:
        plain = ExecutedRun(execute(setup.with_changes(time_scale=())))
    except InputError as error:
        # The cause may be files that were not read.
        raise InputError(*error.diagnostics, *note_untaken_files(setup)) from None
    return ExecutedRun(run_at_scales(plain, setup, cancelled)) if setup.parameters.time_scale else plain
