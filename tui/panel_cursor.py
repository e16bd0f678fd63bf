"""Panels with a cursor each, one of which has the focus: of a run and the what-if table of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simcore.units import duration

if TYPE_CHECKING:
    from simcore.analysis.run import Run
    from simcore.cluster import Dimension
    from simcore.run.findings import Spot, WhatIf

# The panel of the what-if table.
WHAT_IF = "what-if"


@dataclass(slots=True, kw_only=True)
class PanelCursor:
    """panels: those that are drawn, in the order of Tab. panel: the one with the focus. at: the cursor in
    each: row and column. knobs: the what-if table, the best first; None while it is not there yet.
    """

    results: Run = field(kw_only=False)
    panels: tuple[str, ...]
    panel: str
    at: dict[str, tuple[int, int]] = field(default_factory=dict)
    knobs: Sequence[WhatIf] | None = None

    def show(self, results: Run) -> None:
        """Another run; the cursor stays where it is, as far as there is such a place."""
        self.results, self.knobs = results, None
        self.begin()
        for panel in self.panels:
            self.place(panel, *self.cursor(panel))

    def begin(self) -> None:
        """What a model makes ready for a run."""

    def set_panels(self, panels: tuple[str, ...]) -> None:
        """The panels that the screen has room for."""
        self.panels = panels
        if self.panel not in panels:
            self.panel = panels[0]

    def next_panel(self, by: int) -> None:
        """The focus to the next panel, or to the one before."""
        self.panel = self.panels[(self.panels.index(self.panel) + by) % len(self.panels)]

    def cursor(self, panel: str) -> tuple[int, int]:
        """(row, column) of the cursor in a panel."""
        return self.at.get(panel, (0, 0))

    def row(self, panel: str) -> int:
        """The row of the cursor in a panel."""
        return self.cursor(panel)[0]

    def move(self, rows: int, columns: int = 0) -> None:
        """The cursor of the panel that has the focus."""
        row, column = self.cursor(self.panel)
        self.place(self.panel, row + rows, column + columns)

    def place(self, panel: str, row: int, column: int = 0) -> None:
        """The cursor of a panel, as far as it has such a place."""
        rows, columns = self.extent(panel)
        self.at[panel] = (max(0, min(row, rows - 1)), max(0, min(column, columns - 1)))

    def chosen(self) -> WhatIf | None:
        """The change under the cursor, where the what-if table has the focus."""
        return self.knobs[self.row(WHAT_IF)] if self.panel == WHAT_IF and self.knobs else None

    def best(self) -> WhatIf | None:
        """The change that gains most."""
        return self.knobs[0] if self.knobs else None

    @property
    def base_ns(self) -> int:
        """The step time that the changes of the what-if table are held against, ns."""
        return self.results.what_if_base_ns

    @property
    def base_words(self) -> str:
        """Behind the title of the what-if table: the replay that it starts from, where that is not the run on
        the screen. Nothing is replayed for it before the table is there.
        """
        if not self.knobs or self.base_ns == self.results.step_time_ns:
            return ""
        return f", replayed from {duration(self.base_ns)}"

    @property
    def dims(self) -> Sequence[Dimension]:
        """The dimensions of the network that changes may be of; none where there are none."""
        return self.results.dims

    def extent(self, panel: str) -> tuple[int, int]:
        """(rows, columns) of a panel."""
        raise NotImplementedError

    def target(self) -> Spot | None:
        """Where Enter leads in the timeline; None where it leads elsewhere or nowhere."""
        raise NotImplementedError
