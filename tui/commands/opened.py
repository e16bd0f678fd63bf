"""What a command compares: workloads, simulated, and traces, as measured or replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simcore.parameters import Parameters

if TYPE_CHECKING:
    from simcore.analysis import Results
    from simcore.analysis.beside import Beside
    from simcore.analysis.compare import Comparison
    from simcore.measured import MeasuredRun
    from simcore.replay import MeasuredResults
    from simcore.workload import Workload

    AnyResults = Results | MeasuredResults


def results_of(found: Workload | MeasuredRun, parameters: Parameters) -> AnyResults:
    """A workload simulated with these parameters; a trace as measured, or replayed if they change it.

    Raises `UsageError` for parameters that it does not have.
    """
    from simcore.workload import Workload

    if isinstance(found, Workload):
        from simcore.analysis import Results
        from simcore.simulation import simulate

        return Results(simulate(found, parameters))
    from simcore.replay import measured_results

    return measured_results(found, parameters)


def own_parameters(
    found: Workload | MeasuredRun, other: Workload | MeasuredRun, given: Parameters
) -> Parameters:
    """What of the parameters of the command line is for `found`: a trace beside a workload is as measured."""
    from simcore.workload import Workload

    measured_alone = not isinstance(found, Workload) and isinstance(other, Workload)
    return Parameters() if measured_alone else given


def compared(a: AnyResults, b: AnyResults) -> Comparison | Beside:
    """Two simulated runs op by op; where one was measured, in the words that both have."""
    from simcore.analysis import Results

    if isinstance(a, Results) and isinstance(b, Results):
        from simcore.analysis.compare import Comparison

        return Comparison(a, b)
    from simcore.analysis.beside import Beside

    return Beside(a, b)


def say_warnings(*opened: Workload | MeasuredRun) -> None:
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


def as_page(found: Comparison | Beside, everything: bool) -> str:
    """The page of a comparison. everything: as long as it is."""
    from simcore.analysis.compare import Comparison

    if isinstance(found, Comparison):
        from simcore.report.compare_text import compare_text

        return compare_text(found, everything)
    from simcore.report.beside_text import beside_text

    return beside_text(found, everything)


def as_json(found: Comparison | Beside) -> dict[str, Any]:
    """A comparison as plain values."""
    from simcore.analysis.compare import Comparison

    if isinstance(found, Comparison):
        from simcore.report.compare_json import compare_json

        return compare_json(found)
    from simcore.report.beside_json import beside_json

    return beside_json(found)
