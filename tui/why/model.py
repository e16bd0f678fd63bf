"""What the why screen shows and has the cursor on: sums of the critical path, its legs, the what-if table."""

from __future__ import annotations

from dataclasses import dataclass, field

from simcore.analysis import Results
from simcore.analysis.legs import Leg
from simcore.analysis.what_if import WhatIf

SUMS, LEGS, WHAT_IF = "sums", "legs", "what-if"
PANELS = (SUMS, WHAT_IF, LEGS)
GROUPINGS = ("kind", "layer", "stage", "rank")


@dataclass(slots=True)
class WhyModel:
    """panel: the one with the focus. grouping: what the sums are by. at: the row of the cursor in each.

    knobs: the what-if table, None while it is not there yet.
    """

    results: Results
    panel: str = SUMS
    grouping: str = "kind"
    knobs: list[WhatIf] | None = None
    at: dict[str, int] = field(default_factory=dict)

    def show(self, results: Results) -> None:
        """Another run; the cursor stays where it is as far as there is such a row."""
        self.results, self.knobs = results, None
        for panel in PANELS:
            self._place(panel, self.at.get(panel, 0))

    def next_panel(self, by: int) -> None:
        """The focus to the next panel, or to the one before."""
        self.panel = PANELS[(PANELS.index(self.panel) + by) % len(PANELS)]

    def next_grouping(self) -> None:
        """Sum by something else."""
        self.grouping = GROUPINGS[(GROUPINGS.index(self.grouping) + 1) % len(GROUPINGS)]
        self._place(SUMS, 0)

    def move(self, by: int) -> None:
        """The cursor of the panel with the focus, `by` rows down."""
        self._place(self.panel, self.at.get(self.panel, 0) + by)

    def _place(self, panel: str, row: int) -> None:
        rows = {SUMS: len(self.sums()), LEGS: len(self.legs), WHAT_IF: len(self.knobs or ())}[panel]
        self.at[panel] = max(0, min(row, rows - 1))

    def row(self, panel: str) -> int:
        """The row of the cursor in a panel."""
        return self.at.get(panel, 0)

    def sums(self) -> list[tuple[str, int]]:
        """(what, ns) of the critical path by the chosen grouping, the longest first."""
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

    def target(self) -> tuple[int, int, int] | None:
        """(rank class, start, end) that Enter leads to; None where it leads nowhere."""
        if self.panel == LEGS and self.legs:
            leg = self.legs[self.row(LEGS)]
            return leg.number, leg.start_ns, leg.end_ns
        return None

    def knob(self) -> WhatIf | None:
        """The change under the cursor of the what-if table."""
        return self.knobs[self.row(WHAT_IF)] if self.panel == WHAT_IF and self.knobs else None
