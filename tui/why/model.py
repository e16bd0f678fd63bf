"""The why screen of a simulated run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from simcore.analysis import Results
from simcore.analysis.legs import Leg
from simcore.analysis.path_parts import PARTS, longest_of_part, path_parts
from simcore.cluster import Dimension
from tui.panel_cursor import Target, dims_of
from tui.timeline.walking import lane_of
from tui.why.path import LEGS, SUMS, LegLine, PathModel

GROUPINGS = PARTS


@dataclass(slots=True)
class WhyModel(PathModel):
    """The critical path of a run, summed and leg by leg."""

    GROUPINGS: ClassVar[tuple[str, ...]] = GROUPINGS

    results: Results

    def show(self, results: Results) -> None:
        """Another run; the cursor stays where it is as far as there is such a row."""
        self.results, self.knobs = results, None
        self.place_all()

    @property
    def step_ns(self) -> int:
        return self.results.step_time_ns

    @property
    def base_ns(self) -> int:
        return self.results.step_time_ns

    @property
    def dims(self) -> Sequence[Dimension]:
        return dims_of(self.results)

    def sums(self) -> list[tuple[str, int]]:
        return path_parts(self.results, self.grouping)

    @property
    def legs(self) -> list[Leg]:
        """The path, one line for what a rank does of a micro-batch."""
        return self.results.legs

    @property
    def leg_count(self) -> int:
        return len(self.legs)

    def leg_line(self, index: int) -> LegLine:
        leg = self.legs[index]
        stage = self.results.simulation.timeline.classes[leg.number].stage
        return LegLine(leg.start_ns, leg.ns, str(stage), leg.rank, leg.what, leg.microbatch, leg.reason)

    def target(self) -> Target | None:
        """The place that Enter leads to, in the lane that shows it; None where it leads nowhere."""
        if self.panel == LEGS and self.legs:
            leg = self.legs[self.row(LEGS)]
            # Of several segments in several lanes, what compute did or waited for is the story.
            lanes = {self._lane(index) for index in range(leg.first, leg.last)}
            lane = lanes.pop() if len(lanes) == 1 else None
            return Target(leg.number, leg.start_ns, leg.end_ns, lane)
        sums = self.sums() if self.panel == SUMS else []
        if not sums:
            return None
        place = longest_of_part(self.results, self.grouping, sums[self.row(SUMS)][0])
        if place is None:
            return None
        return Target(*place, self._lane(self.results.critical_path.at(place[1])))

    def _lane(self, index: int) -> str | None:
        """The lane that shows a segment of the path, as `Target` has it."""
        path = self.results.critical_path
        return lane_of(self.results, path.number[index], path.op[index], *path.edge[index : index + 2])
