"""Memory snapshots with the interface of every run; their figures are in `SnapshotAnalysis`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.allocators.run import SnapshotAnalysis, SnapshotInput
from simcore.parameters import RunInput

if TYPE_CHECKING:
    from simcore.trace.lanes import Lanes
    from simcore.words.snapshot import SnapshotFigures


class SnapshotRun(SnapshotAnalysis):
    """The snapshots of a job: screen, report and JSON take it from here and nowhere else."""

    @cached_property
    def lanes(self) -> Lanes:
        # Imported here: only the screen needs it.
        from simcore.allocators.lanes import AllocatorLanes

        return AllocatorLanes(self)

    @cached_property
    def figures(self) -> SnapshotFigures:
        from simcore.words.snapshot import SnapshotFigures

        return SnapshotFigures(self)

    def rerun(self, setup: SnapshotInput, cancelled: Callable[[], bool]) -> SnapshotRun:
        """Returns the same snapshots. Raises `UsageError` for any parameter."""
        return run_snapshots(setup)


def run_snapshots(run_input: RunInput) -> SnapshotRun:
    """Returns the snapshots as a run. Raises `UsageError` for any parameter."""
    run_input.parameters.refuse_others("snapshot")
    return SnapshotRun(SnapshotInput(run_input.opened, run_input.parameters))
