"""The kinds of runs, and which of them an input makes.

A new kind is a file here: a class below `Run` (`simcore/trace/run.py`). Import from here: `results_of`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simcore.parameters import Given
    from simcore.trace.run import Run


def results_of(given: Given) -> Run:
    """A workload simulated with its parameters; a trace as measured, or replayed if they change it.

    Raises `UsageError` for parameters that it does not have.
    """
    # Loaded here: a run is of one kind.
    from simcore.workload import Workload

    source, parameters = given.opened, given.parameters
    if isinstance(source, Workload):
        from simcore.runs.simulated import simulated_results

        return simulated_results(given)
    if source.source == "executed":
        from simcore.executing.executed import Execution
        from simcore.runs.executed import executed_results

        return executed_results(Execution(source, parameters))
    from simcore.runs.measured import measured_results

    return measured_results(source, parameters)
