"""The why screen of a measured run: its critical path, and the what-if table of its replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from simcore.measured.replay import MeasuredResults
from simcore.measured.replay.legs import Leg, path_sums
from simcore.measured.replay.what_if import Knob
from tui.why.path import LEGS, WHAT_IF, LegLine, PathModel

if TYPE_CHECKING:
    from simcore.analysis.what_if import WhatIf


@dataclass(slots=True)
class MeasuredWhyModel(PathModel):
    """knobs: the what-if table, None while it is not there yet."""

    GROUPINGS: ClassVar[tuple[str, ...]] = ("kind", "op", "stage", "rank")
    WHAT_CELLS: ClassVar[tuple[int, int]] = (33, 20)

    results: MeasuredResults
    knobs: list[Knob] | None = None

    def show(self, results: MeasuredResults) -> None:
        """Another run; the cursor stays where it is as far as there is such a row."""
        self.results, self.knobs = results, None
        self.place_all()

    @property
    def step_ns(self) -> int:
        return self.results.step_time_ns

    @property
    def changes(self) -> Sequence[WhatIf | Knob] | None:
        return self.knobs

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

    def target(self) -> tuple[int, int, int] | None:
        """(rank, start, end) that Enter leads to; None where it leads nowhere."""
        if self.panel == LEGS and self.legs:
            leg = self.legs[self.row(LEGS)]
            return leg.rank, leg.start_ns, leg.end_ns
        return None

    def knob(self) -> Knob | None:
        """The change under the cursor of the what-if table."""
        return self.knobs[self.row(WHAT_IF)] if self.panel == WHAT_IF and self.knobs else None
