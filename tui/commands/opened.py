"""What a command compares: workloads, simulated, and traces, as measured or replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.parameters import Parameters

if TYPE_CHECKING:
    from simcore.analysis.run import Run
    from simcore.chakra import TraceSet
    from simcore.measured import MeasuredRun
    from simcore.workload import Workload


def results_of(found: Workload | MeasuredRun | TraceSet, parameters: Parameters) -> Run:
    """A workload simulated with these parameters; a trace as measured, or replayed if they change it.

    Raises `UsageError` for parameters that it does not have.
    """
    from simcore.workload import Workload

    if isinstance(found, Workload):
        from simcore.analysis import Results
        from simcore.simulation import simulate

        return Results(simulate(found, parameters))
    if found.format == "chakra":
        from simcore.executing import executed_results

        return executed_results(found, parameters)
    from simcore.replay import measured_results

    return measured_results(found, parameters)


def own_parameters(
    found: Workload | MeasuredRun | TraceSet, other: Workload | MeasuredRun | TraceSet, given: Parameters
) -> Parameters:
    """What of the parameters of the command line is for `found`: a trace beside a workload is as measured."""
    from simcore.workload import Workload

    measured_alone = not isinstance(found, Workload) and isinstance(other, Workload)
    return Parameters() if measured_alone else given


def say_warnings(*opened: Workload | MeasuredRun | TraceSet) -> None:
    """The warnings of traces on standard error, each once: a page or JSON of figures is taken for granted."""
    import sys

    from simcore.workload import Workload

    said = dict.fromkeys(
        one.text()
        for run in opened
        if not isinstance(run, Workload)
        for one in run.diagnostics
        if one.severity != "note"
    )
    for text in said:
        print(text, file=sys.stderr)
