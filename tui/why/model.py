"""What the why screen has the cursor on: sums of the critical path, its legs, the what-if table."""

from __future__ import annotations

from dataclasses import dataclass, field

from simcore.run.findings import Leg, Spot, longest_of_part, path_sums, spot_of
from tui.panel_cursor import WHAT_IF, PanelCursor

SUMS, LEGS = "sums", "legs"
PANELS = (SUMS, WHAT_IF, LEGS)

# Cells for what a leg is, with a gap behind it: where micro-batches are spelled out, where the times have
# all digits, and on a narrow screen; and where names are longer than that has room for.
_CELLS, _LONG_CELLS = (30, 25, 16), (33, 28, 20)
# The longest that stands in each of them behind the name.
_BATCHES = (" of micro-batch ", " mb ", " mb ")


@dataclass(slots=True, kw_only=True)
class WhyModel(PanelCursor):
    """The critical path of a run, summed and leg by leg. grouping: what the sums are by."""

    panels: tuple[str, ...] = field(default=PANELS)
    panel: str = field(default=SUMS)
    grouping: str = field(default="kind")
    _sums: dict[str, list[tuple[str, int]]] = field(default_factory=dict, init=False)
    _what_cells: tuple[int, int, int] | None = field(default=None, init=False)

    def begin(self) -> None:
        self._sums, self._what_cells = {}, None
        if self.grouping not in self.results.path_groupings:
            self.grouping = self.results.path_groupings[0]

    @property
    def legs(self) -> list[Leg]:
        """The path, one line for what a rank does of a micro-batch or in an operation."""
        return self.results.legs

    @property
    def what_cells(self) -> tuple[int, int, int]:
        """Cells for what a leg is, on a wide, a middling and a narrow screen."""
        if self._what_cells is None:
            longest = [
                max((len(leg.what) + _batch_cells(leg, words) for leg in self.legs), default=0) + 1
                for words in _BATCHES
            ]
            one, two, three = (
                few if cells <= few else more
                for cells, few, more in zip(longest, _CELLS, _LONG_CELLS, strict=True)
            )
            self._what_cells = one, two, three
        return self._what_cells

    def sums(self) -> list[tuple[str, int]]:
        """(part, ns) of the critical path by the chosen grouping, the longest first."""
        if self.grouping not in self._sums:
            self._sums[self.grouping] = path_sums(self.results, self.grouping)
        return self._sums[self.grouping]

    def next_grouping(self) -> None:
        """Sum by something else."""
        names = self.results.path_groupings
        self.grouping = names[(names.index(self.grouping) + 1) % len(names)]
        self.place(SUMS, 0)

    def extent(self, panel: str) -> tuple[int, int]:
        if panel == WHAT_IF:
            return len(self.knobs or ()), 1
        return len(self.legs if panel == LEGS else self.sums()), 1

    def target(self) -> Spot | None:
        """The place that Enter leads to, in the lane that shows it; None where it leads nowhere."""
        if self.panel == LEGS and self.legs:
            return spot_of(self.results, self.legs[self.row(LEGS)])
        sums = self.sums() if self.panel == SUMS else []
        if not sums:
            return None
        return longest_of_part(self.results, self.grouping, sums[self.row(SUMS)][0])


def _batch_cells(leg: Leg, words: str) -> int:
    return len(words) + len(str(leg.microbatch)) if leg.microbatch >= 0 else 0
