"""What the summary has the cursor on, and where Enter leads from there."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass, field

from simcore.diagnostics import Diagnostic, sort_by_weight
from simcore.trace.findings import TrackInterval, WhatIf, drop_overlap_variants
from tui.panels import WHAT_IF, PanelCursor, with_most_a_microbatch
from tui.session import Run
from tui.summary.bars import Bars, make_bars
from tui.summary.side_panels import LateRanks, RankMap, SidePanel, choose_side_panel

STAGES, MAP, WORST, NOTES = "stages", "map", "worst", "notes"
PANELS = (STAGES, MAP, WORST, WHAT_IF, NOTES)


@dataclass(slots=True, kw_only=True)
class SummaryModel(PanelCursor):
    """State of the summary."""

    panels: tuple[str, ...] = PANELS
    panel: str = STAGES
    model_title: str = ""
    """The model behind a file, "" where it is unknown."""
    left_out_count: int = 0
    """How many rows of the what-if table are only on screen 4."""
    opened_run: Run | None = None
    """The run that the one on the screen is a change of, None where it is that run."""
    shows_all_key: bool = True
    """Whether the title of the advice, as it was last drawn, has the key of the screen with all changes."""
    bars: Bars = field(init=False)
    """Where the time goes, the panel STAGES."""
    side_panel: SidePanel = field(init=False)
    """What stands next to the bars, the panel MAP."""
    notes: list[Diagnostic] = field(init=False)
    """The largest weight first."""

    def __post_init__(self) -> None:
        self.side_panel = choose_side_panel(self.results)
        recording = self.results.recording
        if recording is not None and recording.run.has_kernels and len(self.results.tracks) == 1:
            # One rank has one bar: a small screen shows its kernels, or what a replay changes.
            self.panel = MAP
        self.bars = make_bars(self.results)
        self.notes = sort_by_weight(self.results.diagnostics)

    def begin(self) -> None:
        # A replay shows what it changes, in place of the kernels or who waits.
        if isinstance(self.side_panel, RankMap | LateRanks):
            self.side_panel.show(self.results)
        else:
            self.side_panel = choose_side_panel(self.results)
        self.bars = make_bars(self.results, self.bars.room)
        self.notes = sort_by_weight(self.results.diagnostics)

    def set_what_if(self, knobs: Sequence[WhatIf] | None) -> None:
        """Sets the what-if table: of changes that differ only in overlap the best, and of the others those
        with an effect on the step where any have one; screen 4 has all. Diagnostics of the table are in the
        notes, too.
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

    def panel_size(self, panel: str) -> tuple[int, int]:
        if panel == MAP:
            return self.side_panel.size
        results = self.results
        rows: dict[str, Sized] = {
            STAGES: self.bars.rows, WORST: results.figures.worst_findings, WHAT_IF: self.knobs or (),
            NOTES: self.notes,
        }  # fmt: skip
        return len(rows[panel]), 1

    def fit(self, room: int) -> None:
        """Makes as many rows of bars as there is room for; the cursor stays on the same track."""
        row = self.row(STAGES)
        track = self.bars.rows[row].tracks[0]
        self.bars.fit(room)
        self.set_cursor(STAGES, self.bars.row_of(track))

    def more_memory(self) -> list[str]:
        """Returns the additional memory that the change needs, in words, the shortest last; empty where it
        needs no more.
        """
        if self.opened_run is None:
            return []
        # Imported here: traces have no memory.
        from simcore.analysis.file_memory import compare_memory

        return compare_memory(self.opened_run, self.results)

    def next_side_panel(self) -> None:
        """Shows the next table next to the bars."""
        title = self.side_panel.title
        self.side_panel = self.side_panel.next()
        self.set_cursor(MAP, *self.cursor(MAP) if self.side_panel.title == title else (0, 0))

    def target(self) -> TrackInterval | None:
        """Returns where Enter leads in the timeline; None where it leads elsewhere or nowhere."""
        at = self.cursor(self.panel)
        if self.panel == STAGES:
            return self.bars.find_interval(at[0])
        if self.panel == MAP:
            return self.side_panel.find_interval(at)
        if self.panel == WORST and self.results.figures.worst_findings:
            return self.results.figures.worst_findings[at[0]].interval
        return None
