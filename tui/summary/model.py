"""What the summary has the cursor on, and where Enter leads from there."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass, field

from simcore.diagnostics import Diagnostic, sort_by_weight
from simcore.trace.findings import TrackInterval, WhatIf, drop_overlap_variants
from tui.panels import WHAT_IF, PanelCursor, with_most_a_microbatch
from tui.session import Run
from tui.summary.bars import Bars, make_bars
from tui.summary.side_panels import SidePanel, choose_side_panel

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
    model_title: str = ""
    left_out_count: int = 0
    opened_run: Run | None = None
    shows_all_key: bool = True
    bars: Bars = field(init=False)
    side_panel: SidePanel = field(init=False)
    notes: list[Diagnostic] = field(init=False)

    def __post_init__(self) -> None:
        self.side_panel = choose_side_panel(self.results)
        self.bars = make_bars(self.results)
        self.notes = sort_by_weight(self.results.diagnostics)

    def begin(self) -> None:
        self.side_panel.show(self.results)
        self.bars = make_bars(self.results, self.bars.room)
        self.notes = sort_by_weight(self.results.diagnostics)

    def set_what_if(self, knobs: Sequence[WhatIf] | None) -> None:
        """The what-if table; of changes that differ in overlap alone the best, and what is seen in the step
        where anything is: screen 4 has all. What was found with it is in the notes, too.
        """
        self.knobs, self.left_out_count = None, 0
        if knobs is not None:
            self.notes = sort_by_weight(self.results.diagnostics)
            base = self.results.figures.what_if_base_ns
            different = drop_overlap_variants(knobs)
            visible_changes = [knob for knob in different if knob.is_notable(base)] or different
            # In one order, whether the panel has the focus or not.
            self.knobs = with_most_a_microbatch(visible_changes)
            self.left_out_count = len(knobs) - len(self.knobs)
            self.set_cursor(WHAT_IF, *self.cursor(WHAT_IF))

    def extent(self, panel: str) -> tuple[int, int]:
        if panel == MAP:
            return self.side_panel.extent
        results = self.results
        rows: dict[str, Sized] = {
            STAGES: self.bars.rows, WORST: results.figures.worst_findings, WHAT_IF: self.knobs or (),
            NOTES: self.notes,
        }  # fmt: skip
        return len(rows[panel]), 1

    def fit(self, room: int) -> None:
        """As many rows of bars as there is room for; the cursor stays on what it is on."""
        row = self.row(STAGES)
        track = self.bars.rows[row].tracks[0]
        self.bars.fit(room)
        self.set_cursor(STAGES, self.bars.row_of(track))

    def more_memory(self) -> list[str]:
        """What the change needs more of memory, in words, the shortest last; nothing where it is no more."""
        if self.opened_run is None:
            return []
        # Imported here: of traces nobody knows.
        from simcore.analysis.file_memory import compare_memory

        return compare_memory(self.opened_run, self.results)

    def next_side_panel(self) -> None:
        """Something else beside the bars."""
        title = self.side_panel.title
        self.side_panel.next()
        self.set_cursor(MAP, *self.cursor(MAP) if self.side_panel.title == title else (0, 0))

    def target(self) -> TrackInterval | None:
        """Where Enter leads in the timeline; None where it leads elsewhere or nowhere."""
        at = self.cursor(self.panel)
        if self.panel == STAGES:
            return self.bars.find_interval(at[0])
        if self.panel == MAP:
            return self.side_panel.find_interval(at)
        if self.panel == WORST and self.results.figures.worst_findings:
            return self.results.figures.worst_findings[at[0]].interval
        return None
