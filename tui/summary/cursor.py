"""Panels with a cursor each, one of which has the focus."""

from __future__ import annotations

from dataclasses import dataclass, field

STAGES, MAP, WORST, HELP, NOTES = "stages", "map", "worst", "help", "notes"


@dataclass(slots=True, kw_only=True)
class PanelCursor:
    """panels: those that are drawn, in the order of Tab. panel: the one with the focus. at: the cursor in
    each: row and column.
    """

    panels: tuple[str, ...] = (STAGES, MAP, WORST, HELP, NOTES)
    panel: str = STAGES
    at: dict[str, tuple[int, int]] = field(default_factory=dict)

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

    def move(self, rows: int, columns: int) -> None:
        """The cursor of the panel that has the focus."""
        row, column = self.cursor(self.panel)
        self.place(self.panel, row + rows, column + columns)

    def place(self, panel: str, row: int, column: int) -> None:
        """The cursor of a panel, as far as it has such a place."""
        rows, columns = self.extent(panel)
        self.at[panel] = (max(0, min(row, rows - 1)), max(0, min(column, columns - 1)))

    def extent(self, panel: str) -> tuple[int, int]:
        """(rows, columns) of a panel."""
        raise NotImplementedError
