"""What the graph of a measured run says: where its time goes, and what it would be with other durations.

Import from here: `MeasuredResults`, `measured_results`.
"""

from simcore.measured.run import MeasuredRun
from simcore.parameters import Parameters
from simcore.replay.results import MeasuredResults


def measured_results(run: MeasuredRun, parameters: Parameters) -> MeasuredResults:
    """A trace as it was measured, or replayed if a parameter asks for it. Raises `UsageError`."""
    return MeasuredResults(run).with_parameters(parameters)


__all__ = ["MeasuredResults", "measured_results"]
