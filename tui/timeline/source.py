"""Which lanes a run has: the one place that tells a simulated run from a measured one."""

from __future__ import annotations

from simcore.analysis import Results
from tui.session import Run
from tui.timeline.lanes import SimulatedLanes
from tui.timeline.spans import LaneSource


def lane_source(run: Run) -> LaneSource:
    """The lanes of a run."""
    if isinstance(run, Results):
        return SimulatedLanes(run)
    from simcore.measured import MeasuredRun
    from tui.timeline.measured_lanes import MeasuredLanes

    assert isinstance(run, MeasuredRun)
    return MeasuredLanes(run)
