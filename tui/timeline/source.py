"""Lanes of a run and what one moves by: the one place that tells a simulated from a measured run."""

from __future__ import annotations

from simcore.analysis import Results
from tui.session import Run
from tui.timeline.lanes import SimulatedLanes
from tui.timeline.moves import Moves
from tui.timeline.simulated_moves import SimulatedMoves
from tui.timeline.spans import LaneSource


def lane_source(run: Run) -> LaneSource:
    """The lanes of a run."""
    if isinstance(run, Results):
        return SimulatedLanes(run)
    from simcore.replay import MeasuredResults
    from tui.timeline.measured_lanes import MeasuredLanes

    assert isinstance(run, MeasuredResults)
    return MeasuredLanes(run)


def moves_of(run: Run) -> Moves:
    """What one moves by in a run."""
    if isinstance(run, Results):
        return SimulatedMoves(run)
    from simcore.replay import MeasuredResults
    from tui.timeline.measured_moves import MeasuredMoves

    assert isinstance(run, MeasuredResults)
    return MeasuredMoves(run)
