"""The why screen of a measured run: its critical path, and the what-if table of its replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from simcore.replay import MeasuredResults
from simcore.replay.legs import Leg, longest_of_part, path_sums
from tui.measured.summary_model import base_words
from tui.panel_cursor import Target
from tui.why.path import LEGS, SUMS, LegLine, PathModel


@dataclass(slots=True)
class MeasuredWhyModel(PathModel):
    """The critical path of a run, summed and leg by leg."""

    GROUPINGS: ClassVar[tuple[str, ...]] = ("kind", "op", "stage", "rank")
    WHAT_CELLS: ClassVar[tuple[int, int, int]] = (33, 28, 20)

    results: MeasuredResults

    def show(self, results: MeasuredResults) -> None:
        """Another run; the cursor stays where it is as far as there is such a row."""
        self.results, self.knobs = results, None
        self.place_all()

    @property
    def step_ns(self) -> int:
        return self.results.step_time_ns

    @property
    def base_ns(self) -> int:
        return self.results.base.step_time_ns

    @property
    def base_words(self) -> str:
        return base_words(self.results) if self.knobs else ""

    def sums(self) -> list[tuple[str, int]]:
        return path_sums(self.results, self.grouping) if self.results.measured.timed else []

    @property
    def legs(self) -> list[Leg]:
        """The path, one line for what a rank does in one operation."""
        return self.results.legs if self.results.measured.timed else []

    @property
    def leg_count(self) -> int:
        return len(self.legs)

    def leg_line(self, index: int) -> LegLine:
        leg = self.legs[index]
        rank = self.results.measured.ranks[leg.rank]
        stage = "" if rank.stage is None else str(rank.stage)
        return LegLine(leg.start_ns, leg.ns, stage, rank.number, leg.what, leg.microbatch, leg.reason)

    def target(self) -> Target | None:
        """(rank, start, end) that Enter leads to; None where it leads nowhere."""
        if self.panel == LEGS and self.legs:
            leg = self.legs[self.row(LEGS)]
            return Target(leg.rank, leg.start_ns, leg.end_ns)
        sums = self.sums() if self.panel == SUMS else []
        if not sums:
            return None
        place = longest_of_part(self.results, self.grouping, sums[self.row(SUMS)][0])
        return None if place is None else Target(*place)
