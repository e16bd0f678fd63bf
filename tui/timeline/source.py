"""Lanes of a run and what one moves by: the one place that tells a simulated from a measured run."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from simcore.analysis import Results
from tui.session import Run
from tui.timeline.lanes import SimulatedLanes
from tui.timeline.moves import Moves
from tui.timeline.simulated_moves import SimulatedMoves
from tui.timeline.spans import LaneSource

if TYPE_CHECKING:
    from simcore.executing import TraceResults
    from simcore.replay import MeasuredResults


def lane_source(run: Run) -> LaneSource:
    """The lanes of a run."""
    if isinstance(run, Results):
        return SimulatedLanes(run)
    if run.origin == "executed":
        from tui.timeline.trace_lanes import TraceLanes

        return TraceLanes(cast("TraceResults", run))
    from tui.timeline.measured_lanes import MeasuredLanes

    return MeasuredLanes(cast("MeasuredResults", run))


def moves_of(run: Run) -> Moves:
    """What one moves by in a run."""
    if isinstance(run, Results):
        return SimulatedMoves(run)
    if run.origin == "executed":
        from tui.timeline.trace_moves import TraceMoves

        return TraceMoves(cast("TraceResults", run))
    from tui.timeline.measured_moves import MeasuredMoves

    return MeasuredMoves(cast("MeasuredResults", run))
