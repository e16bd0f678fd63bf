"""Which lanes a run has: the one place that tells a simulated run from a measured one."""

from __future__ import annotations

from simcore.analysis import Results
from simcore.measured import MeasuredRun
from tui.session import Run
from tui.timeline.spans import LaneSource


def lane_source(run: Run) -> LaneSource:
    """The lanes of a run."""
    if isinstance(run, MeasuredRun):
        from tui.timeline.measured_lanes import MeasuredLanes

        return MeasuredLanes(run)
    from tui.timeline.lanes import SimulatedLanes

    assert isinstance(run, Results)
    return SimulatedLanes(run)
