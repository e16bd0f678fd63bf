"""The kinds of runs, and which of them an input makes.

A new kind is a file here: a subclass of `Run` (`simcore/trace/run.py`). Import from here: `open_run`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simcore.parameters import RunInput
    from simcore.trace.run import Run


def open_run(run_input: RunInput) -> Run:
    """Returns a workload simulated with its parameters; a trace as measured, or replayed if they change it.

    Raises `UsageError` for parameters that it does not have.
    """
    # Imported here: a run is of one kind.
    from simcore.workload import Workload

    source, parameters = run_input.opened, run_input.parameters
    if isinstance(source, Workload):
        from simcore.runs.simulated import run_simulation

        return run_simulation(run_input)
    if source.source == "executed":
        from simcore.executing.execution_result import Execution
        from simcore.runs.executed import run_execution

        return run_execution(Execution(source, parameters))
    if source.source == "hung":
        from simcore.runs.hung import run_dumps

        return run_dumps(run_input)
    if source.source == "snapshot":
        from simcore.runs.snapshot import run_snapshots

        return run_snapshots(run_input)
    from simcore.runs.measured import run_recording

    return run_recording(source, parameters)
