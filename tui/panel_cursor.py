"""Panels with a cursor each, one of which has the focus: of a run and the what-if table of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from simcore.analysis import Results
    from simcore.analysis.what_if import WhatIf
    from simcore.cluster import Dimension
    from simcore.replay.what_if import Knob

# The panel of the what-if table.
WHAT_IF = "what-if"


class Target(NamedTuple):
    """A place in the timeline: the rank class `number`, from start_ns to end_ns. stream: the lane under its
    own that shows it, as in `LaneKey`; None for its own.
    """

    number: int
    start_ns: int
    end_ns: int
    stream: str | None = None


def dims_of(results: Results) -> Sequence[Dimension]:
    """The dimensions of a run's network; none of one without."""
    simulation = results.simulation
    return simulation.cluster.dims if simulation.has_dimensions else ()


@dataclass(slots=True, kw_only=True)
class PanelCursor:
    """panels: those that are drawn, in the order of Tab. panel: the one with the focus. at: the cursor in
    each: row and column. knobs: the what-if table, the best first; None while it is not there yet.
    """

    panels: tuple[str, ...]
    panel: str
    at: dict[str, tuple[int, int]] = field(default_factory=dict)
    knobs: Sequence[WhatIf | Knob] | None = None

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

    def place_all(self) -> None:
        """Of another run: the cursor stays where it is, as far as there is such a place."""
        for panel in self.panels:
            self.place(panel, *self.cursor(panel))

    def chosen(self) -> WhatIf | Knob | None:
        """The change under the cursor, where the what-if table has the focus."""
        return self.knobs[self.row(WHAT_IF)] if self.panel == WHAT_IF and self.knobs else None

    def best(self) -> WhatIf | Knob | None:
        """The change that gains most."""
        return self.knobs[0] if self.knobs else None

    @property
    def base_ns(self) -> int:
        """The step time that the changes of the what-if table are held against, ns."""
        raise NotImplementedError

    @property
    def base_words(self) -> str:
        """Behind the title of the what-if table: what its base is where that is not the run on the screen."""
        return ""

    @property
    def dims(self) -> Sequence[Dimension]:
        """The dimensions of the network that changes may be of; none where there are none."""
        return ()

    def extent(self, panel: str) -> tuple[int, int]:
        """(rows, columns) of a panel."""
        raise NotImplementedError

    def target(self) -> Target | None:
        """Where Enter leads in the timeline; None where it leads elsewhere or nowhere."""
        raise NotImplementedError
