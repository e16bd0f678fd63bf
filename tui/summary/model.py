"""What the summary has the cursor on, and where Enter leads from there."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simcore.diagnostics import Diagnostic, sort_by_weight
from simcore.trace.findings import Finding, TrackInterval, WhatIf, drop_overlap_variants
from simcore.trace.run import count_spans, is_described
from tui.panels import WHAT_IF, PanelCursor, with_most_a_microbatch
from tui.session import Run
from tui.summary.bars import Bars, make_bars
from tui.summary.side_panels import LateRanks, RankMap, SidePanel, choose_side_panel

if TYPE_CHECKING:
    from simcore.render.report.hang import MemberLine
    from simcore.trace.figures import SnapshotTables

STAGES, MAP, WORST, NOTES = "stages", "map", "worst", "notes"
# Of a hung job: how far each group has come.
HANG_GROUPS = "groups"
# Of memory snapshots: what a device holds at its peak.
HOLDERS = "holders"
PANELS = (STAGES, MAP, WORST, WHAT_IF, NOTES)

# A run of more spans is described behind its first picture: the critical path, the sentences and the worst
# findings of the 40,560 spans of seed 002 take 0.13 s of a first picture of 0.28 s. Where several tracks of a
# stage wait for each other, a span takes five times as long: 0.8 s for 162,240 spans.
_FEW_SPANS, _FEW_SHARED_SPANS = 60_000, 12_000
# Sentences take some runs like this one: of 20,000 flows a second each.
_FEW_FLOWS = 1000
# The room for a description that is not there yet: five sentences, and six findings with the cells of the
# longest.
_TYPICAL_SENTENCES = tuple(" ".join(["typical"] * count) for count in (30, 20, 28, 30, 8))
_TYPICAL_FINDINGS = 6, 72


def is_long(run: Run) -> bool:
    """Returns whether the sentences and the worst findings of a run are too long in coming for its first
    picture.
    """
    report = None if run.network is None else run.network.flow_report
    if report is not None and report.flows > _FEW_FLOWS:
        return True
    tracks = run.tracks
    shares_stages = len({track.stage for track in tracks}) < len(tracks)
    return count_spans(run) > (_FEW_SHARED_SPANS if shares_stages else _FEW_SPANS)


def has_description_behind(run: Run) -> bool:
    """Returns whether the description of a run is still to be computed behind its picture."""
    return run.timed and is_long(run) and not is_described(run)


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
    keys_to_more: frozenset[str] = frozenset()
    """The keys that lead to the sentences and changes that the screen, as it was last drawn, has no room
    for.
    """
    is_described: bool = True
    """Whether the sentences and the worst findings are there: those of a long run come behind its picture."""
    is_long: bool = field(init=False)
    """Whether the rows of the panels depend on nothing that comes behind the first picture."""
    bars: Bars = field(init=False)
    """Where the time goes, the panel STAGES."""
    side_panel: SidePanel = field(init=False)
    """What stands next to the bars, the panel MAP."""
    notes: list[Diagnostic] = field(init=False)
    """The largest weight first."""
    hang_rows: Sequence[MemberLine] = field(init=False, default=())
    """How far each group has come, of flight recorder dumps; else empty."""
    snapshot: SnapshotTables | None = field(init=False, default=None)
    """What devices hold, of memory snapshots; else None."""

    def __post_init__(self) -> None:
        self.is_long = is_long(self.results)
        self.side_panel = choose_side_panel(self.results)
        recording = self.results.recording
        if recording is not None and recording.run.has_kernels and len(self.results.tracks) == 1:
            # One rank has one bar: a small screen shows its kernels, or what a replay changes.
            self.panel = MAP
        self.bars = make_bars(self.results)
        self.notes = sort_by_weight(self.results.diagnostics)
        self.cursors[MAP] = self.side_panel.outlier or (0, 0)
        tables = self.results.figures.hang
        if tables is not None:
            from tui.summary.hang_rows import hang_lines

            self.hang_rows, self.panel = hang_lines(tables), HANG_GROUPS
        self.snapshot = self.results.figures.snapshot
        if self.snapshot is not None:
            self.panel = HOLDERS
            self.cursors[HOLDERS] = 0, self.snapshot.highest.track_id

    def begin(self) -> None:
        self.is_long = is_long(self.results)
        # A replay shows what it changes, in place of the kernels or who waits.
        if isinstance(self.side_panel, RankMap | LateRanks):
            self.side_panel.show(self.results)
        else:
            self.side_panel = choose_side_panel(self.results)
        # Also where no screen has room for it now.
        self.set_cursor(MAP, *self.cursor(MAP))
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

    @property
    def words(self) -> Sequence[str]:
        """The sentences; empty until they are there."""
        return self.results.figures.words if self.is_described else ()

    @property
    def findings(self) -> Sequence[Finding]:
        """The worst findings; empty until they are there."""
        return self.results.figures.worst_findings if self.is_described else ()

    @property
    def words_to_fit(self) -> Sequence[str]:
        """The sentences that the panels leave room for; typical ones where they come behind the picture."""
        return _TYPICAL_SENTENCES if self.is_long else self.results.figures.words

    @property
    def findings_to_fit(self) -> tuple[int, int]:
        """How many worst findings the panels leave room for, and the cells of the longest."""
        if self.is_long:
            return _TYPICAL_FINDINGS
        findings = self.results.figures.worst_findings
        return len(findings), max((len(finding.words) for finding in findings), default=0)

    @property
    def knobs_to_fit(self) -> Sequence[WhatIf] | None:
        """The changes that the panels leave room for; None where they are not known, or come behind the
        picture of a long run.
        """
        return None if self.is_long else self.knobs

    def panel_size(self, panel: str) -> tuple[int, int]:
        if panel == MAP:
            return self.side_panel.size
        if panel == HOLDERS and self.snapshot is not None:
            # A column is a device.
            device = self.snapshot.devices[self.cursor(HOLDERS)[1]]
            return len(device.holders), len(self.snapshot.devices)
        rows: dict[str, Sized] = {
            STAGES: self.bars.rows, WORST: self.findings, WHAT_IF: self.knobs or (), NOTES: self.notes,
            HANG_GROUPS: self.hang_rows,
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
        """Shows the next table next to the bars; the cursor goes to the rank that differs most in it."""
        title = self.side_panel.title
        self.side_panel = self.side_panel.next()
        stays_at = self.cursor(MAP) if self.side_panel.title == title else (0, 0)
        self.set_cursor(MAP, *self.side_panel.outlier or stays_at)

    def target(self) -> TrackInterval | None:
        """Returns where Enter leads in the timeline; None where it leads elsewhere or nowhere."""
        at = self.cursor(self.panel)
        if self.panel == HOLDERS and self.snapshot is not None:
            device = self.snapshot.devices[at[1]]
            if not device.holders:
                return None
            one = device.holders[at[0]]
            end = max(device.peak_ns, one.start_ns + 1)
            return TrackInterval(device.track_id, one.start_ns, end, one.stream)
        if self.panel == HANG_GROUPS:
            from tui.summary.hang_rows import find_interval

            return find_interval(self.results, self.hang_rows[at[0]]) if self.hang_rows else None
        if self.panel == STAGES:
            return self.bars.find_interval(at[0])
        if self.panel == MAP:
            return self.side_panel.find_interval(at)
        if self.panel == WORST and self.findings:
            return self.findings[at[0]].interval
        return None
