"""The critical path of a measured or replayed run: walked along, and by the lanes that show it."""

from __future__ import annotations

from functools import cached_property

from simcore.measured import MeasuredRun
from simcore.measured.replay import MeasuredResults
from simcore.measured.replay.critical_path import REASONS, Segment
from simcore.units import duration
from tui.timeline.critical import PathLanes
from tui.timeline.walking import Step


class MeasuredPath:
    """Segments of a run's path; none where its ranks have no common time, or no times at all."""

    def __init__(self, run: MeasuredRun) -> None:
        self._run = run

    @cached_property
    def _segments(self) -> list[Segment]:
        run = self._run
        return MeasuredResults(run).critical_path if run.timed and run.concurrent else []

    def lanes(self) -> PathLanes | None:
        """The path by lanes: those of ranks, not those below them."""
        ranks = self._run.ranks
        if not self._segments:
            return None
        return PathLanes((one.start, one.end, one.rank, ranks[one.rank].number, "") for one in self._segments)

    def step(self, time_ns: int, direction: int) -> Step | None:
        """The segment behind (1) or before (-1) the one at a time; None past the ends."""
        path, ranks = self._segments, self._run.ranks
        here = sum(one.start <= time_ns for one in path) - 1
        index = here + direction
        if not 0 <= index < len(path):
            return None
        one = path[index]
        reason = REASONS[one.reason].format(rank=ranks[one.of].number)
        words = (
            f"critical path {index + 1} of {len(path)}: {one.kind}, {duration(one.end - one.start)}; {reason}"
        )
        return Step(one.rank, None, one.start, ranks[one.rank].number, words)
