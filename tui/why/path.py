"""What the why screen has the cursor on, of any kind of run: sums of the critical path, its legs, the
what-if table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple

if TYPE_CHECKING:
    from simcore.analysis.what_if import WhatIf
    from simcore.measured.replay.what_if import Knob

SUMS, LEGS, WHAT_IF = "sums", "legs", "what-if"
PANELS = (SUMS, WHAT_IF, LEGS)


class LegLine(NamedTuple):
    """A leg as it is told. stage: "" where it is not known. microbatch: -1 outside of them."""

    start_ns: int
    ns: int
    stage: str
    rank: int
    what: str
    microbatch: int
    reason: str


@dataclass(slots=True, kw_only=True)
class PathModel:
    """panel: the one with the focus. grouping: what the sums are by, of GROUPINGS. at: the row of the
    cursor in each.
    """

    GROUPINGS: ClassVar[tuple[str, ...]] = ()
    # Cells for what a leg is, on a wide and on a narrow screen.
    WHAT_CELLS: ClassVar[tuple[int, int]] = (25, 15)

    panel: str = SUMS
    grouping: str = "kind"
    at: dict[str, int] = field(default_factory=dict)

    @property
    def step_ns(self) -> int:
        """The step time."""
        raise NotImplementedError

    @property
    def changes(self) -> Sequence[WhatIf | Knob] | None:
        """The what-if table, None while it is not there yet."""
        raise NotImplementedError

    @property
    def leg_count(self) -> int:
        """How many legs the path has."""
        raise NotImplementedError

    def leg_line(self, index: int) -> LegLine:
        """A leg as it is told."""
        raise NotImplementedError

    def sums(self) -> list[tuple[str, int]]:
        """(what, ns) of the critical path by the chosen grouping, the longest first."""
        raise NotImplementedError

    def place_all(self) -> None:
        """Of another run; the cursor stays where it is as far as there is such a row."""
        for panel in PANELS:
            self._place(panel, self.at.get(panel, 0))

    def next_panel(self, by: int) -> None:
        """The focus to the next panel, or to the one before."""
        self.panel = PANELS[(PANELS.index(self.panel) + by) % len(PANELS)]

    def next_grouping(self) -> None:
        """Sum by something else."""
        names = self.GROUPINGS
        self.grouping = names[(names.index(self.grouping) + 1) % len(names)]
        self._place(SUMS, 0)

    def move(self, by: int) -> None:
        """The cursor of the panel with the focus, `by` rows down."""
        self._place(self.panel, self.at.get(self.panel, 0) + by)

    def _place(self, panel: str, row: int) -> None:
        rows = {SUMS: len(self.sums()), LEGS: self.leg_count, WHAT_IF: len(self.changes or ())}[panel]
        self.at[panel] = max(0, min(row, rows - 1))

    def row(self, panel: str) -> int:
        """The row of the cursor in a panel."""
        return self.at.get(panel, 0)
