"""The why screen of a simulated run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from simcore.analysis import Results
from simcore.analysis.legs import Leg
from tui.panel_cursor import Target
from tui.why.path import LEGS, LegLine, PathModel

GROUPINGS = ("kind", "layer", "stage", "rank")


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

    def sums(self) -> list[tuple[str, int]]:
        path = self.results.critical_path
        if self.grouping == "kind":
            return list(path.by_kind().items())
        if self.grouping == "layer":
            return list(self.results.critical_by_layer.items())
        if self.grouping == "stage":
            return [(f"stage {stage}", ns) for stage, ns in path.by_stage().items()]
        return [(f"rank {rank}", ns) for rank, ns in path.by_rank().items()]

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
        """(rank class, start, end) that Enter leads to; None where it leads nowhere."""
        if self.panel == LEGS and self.legs:
            leg = self.legs[self.row(LEGS)]
            return Target(leg.number, leg.start_ns, leg.end_ns)
        return None
