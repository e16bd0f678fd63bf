"""What the summary has the cursor on, and where Enter leads from there."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass, field

from simcore.diagnostics import Diagnostic, by_weight
from simcore.trace.findings import Spot, WhatIf, different_changes
from tui.panels import WHAT_IF, PanelCursor, with_most_a_microbatch
from tui.session import Run
from tui.summary.bars import Bars, bars_of
from tui.summary.beside import BesidePanel, beside_of

STAGES, MAP, WORST, NOTES = "stages", "map", "worst", "notes"
PANELS = (STAGES, MAP, WORST, WHAT_IF, NOTES)


@dataclass(slots=True, kw_only=True)
class SummaryModel(PanelCursor):
    """bars: where the time goes, the panel STAGES. beside: what stands beside them, the panel MAP. behind:
    the model behind a file, "" while nobody knows it. notes: what weighs most first. left_out: how many rows
    of the what-if table are another one but for its overlap, and not here. opened: the run that the one on
    the screen is a change of, None where it is that run. tells_where_all_are: whether the title of the
    advice, as it was last drawn, has the key of the screen with all changes.
    """

    panels: tuple[str, ...] = PANELS
    panel: str = STAGES
    behind: str = ""
    left_out: int = 0
    opened: Run | None = None
    tells_where_all_are: bool = True
    bars: Bars = field(init=False)
    beside: BesidePanel = field(init=False)
    notes: list[Diagnostic] = field(init=False)

    def __post_init__(self) -> None:
        self.beside = beside_of(self.results)
        self.bars = bars_of(self.results)
        self.notes = by_weight(self.results.diagnostics)

    def begin(self) -> None:
        self.beside.show(self.results)
        self.bars = bars_of(self.results, self.bars.room)
        self.notes = by_weight(self.results.diagnostics)

    def take(self, knobs: Sequence[WhatIf] | None) -> None:
        """The what-if table; of changes that differ in overlap alone the best, and what is seen in the step
        where anything is: screen 4 has all. What was found with it is in the notes, too.
        """
        self.knobs, self.left_out = None, 0
        if knobs is not None:
            self.notes = by_weight(self.results.diagnostics)
            base = self.results.figures.what_if_base_ns
            different = different_changes(knobs)
            seen = [knob for knob in different if knob.is_seen(base)] or different
            # In one order, whether the panel has the focus or not.
            self.knobs = with_most_a_microbatch(seen)
            self.left_out = len(knobs) - len(self.knobs)
            self.place(WHAT_IF, *self.cursor(WHAT_IF))

    def extent(self, panel: str) -> tuple[int, int]:
        if panel == MAP:
            return self.beside.extent
        results = self.results
        rows: dict[str, Sized] = {
            STAGES: self.bars.rows, WORST: results.figures.worst, WHAT_IF: self.knobs or (),
            NOTES: self.notes,
        }  # fmt: skip
        return len(rows[panel]), 1

    def fit(self, room: int) -> None:
        """As many rows of bars as there is room for; the cursor stays on what it is on."""
        row = self.row(STAGES)
        track = self.bars.rows[row].tracks[0]
        self.bars.fit(room)
        self.place(STAGES, self.bars.row_of(track))

    def more_memory(self) -> list[str]:
        """What the change needs more of memory, in words, the shortest last; nothing where it is no more."""
        if self.opened is None:
            return []
        # Imported here: of traces nobody knows.
        from simcore.analysis.file_memory import more_memory

        return more_memory(self.opened, self.results)

    def next_beside(self) -> None:
        """Something else beside the bars."""
        title = self.beside.title
        self.beside.next()
        self.place(MAP, *self.cursor(MAP) if self.beside.title == title else (0, 0))

    def target(self) -> Spot | None:
        """Where Enter leads in the timeline; None where it leads elsewhere or nowhere."""
        at = self.cursor(self.panel)
        if self.panel == STAGES:
            return self.bars.spot(at[0])
        if self.panel == MAP:
            return self.beside.spot(at)
        if self.panel == WORST and self.results.figures.worst:
            return self.results.figures.worst[at[0]].spot
        return None
