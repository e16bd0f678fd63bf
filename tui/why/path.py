"""What the why screen has the cursor on, of any kind of run: sums of the critical path, its legs, the
what-if table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from tui.panel_cursor import WHAT_IF, PanelCursor

SUMS, LEGS = "sums", "legs"
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
class PathModel(PanelCursor):
    """grouping: what the sums are by, of GROUPINGS."""

    GROUPINGS: ClassVar[tuple[str, ...]] = ()
    # Cells for what a leg is, with a gap behind it: where micro-batches are spelled out, where the times
    # have all digits, and on a narrow screen.
    WHAT_CELLS: ClassVar[tuple[int, int, int]] = (30, 25, 16)

    panels: tuple[str, ...] = PANELS
    panel: str = SUMS
    grouping: str = "kind"

    @property
    def step_ns(self) -> int:
        """The step time."""
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

    def next_grouping(self) -> None:
        """Sum by something else."""
        names = self.GROUPINGS
        self.grouping = names[(names.index(self.grouping) + 1) % len(names)]
        self.place(SUMS, 0)

    def extent(self, panel: str) -> tuple[int, int]:
        if panel == WHAT_IF:
            return len(self.knobs or ()), 1
        return self.leg_count if panel == LEGS else len(self.sums()), 1
