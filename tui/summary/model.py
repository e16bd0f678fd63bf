"""What the summary has the cursor on, and where Enter leads from there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from simcore.analysis import Results
from simcore.analysis.rank_map import MEASURES, MapRow
from simcore.analysis.stages import StageAccounts
from simcore.cluster import Dimension
from tui.panel_cursor import WHAT_IF, PanelCursor, Target, dims_of
from tui.timeline.walking import lane_of

STAGES, MAP, WORST, NOTES = "stages", "map", "worst", "notes"
PANELS = (STAGES, MAP, WORST, WHAT_IF, NOTES)


@dataclass(slots=True)
class SummaryModel(PanelCursor):
    """measure: what the map shows, a name of MEASURES. joined: how many stages stand in one row."""

    results: Results
    measure: str = "bubble"
    joined: int = 1
    panels: tuple[str, ...] = field(default=PANELS, kw_only=True)
    panel: str = field(default=STAGES, kw_only=True)

    def show(self, results: Results) -> None:
        """Another run; the cursor stays where it is, as far as there is such a place."""
        self.results, self.knobs = results, None
        self.place_all()

    def extent(self, panel: str) -> tuple[int, int]:
        results = self.results
        if panel == STAGES:
            return len(self.stage_rows()), 1
        if panel == MAP:
            return len(results.rank_map), len(results.stages)
        rows = {WORST: len(results.worst), WHAT_IF: len(self.knobs or ()), NOTES: len(results.diagnostics)}
        return rows[panel], 1

    @property
    def base_ns(self) -> int:
        return self.results.step_time_ns

    @property
    def dims(self) -> Sequence[Dimension]:
        return dims_of(self.results)

    def next_measure(self) -> None:
        """Show another measure in the map."""
        names = list(MEASURES)
        self.measure = names[(names.index(self.measure) + 1) % len(names)]

    def stage_rows(self) -> list[list[StageAccounts]]:
        """The stages in rows: `joined` neighbours in each."""
        stages = self.results.stages
        return [stages[first : first + self.joined] for first in range(0, len(stages), self.joined)]

    def join(self, rows: int) -> None:
        """As many stages in a row as it takes to show all of them in `rows` rows."""
        joined = -(-len(self.results.stages) // max(rows, 1))
        if joined != self.joined:
            row, _ = self.cursor(STAGES)
            self.at[STAGES] = (row * self.joined // joined, 0)
            self.joined = joined

    def measured(self, row: MapRow, stage: int) -> int:
        """The measure of a cell of the map, ns."""
        return MEASURES[self.measure](self.results.accounts[row.classes[stage]])

    @property
    def mean_ns(self) -> int:
        """The measure of the map, the mean of all ranks."""
        results = self.results
        return results.mean_of_ranks(map(MEASURES[self.measure], results.accounts))

    def target(self) -> Target | None:
        """Where Enter leads in the timeline; None where it leads elsewhere or nowhere."""
        row, column = self.cursor(self.panel)
        step = self.results.step_time_ns
        if self.panel == STAGES:
            return Target(self.stage_rows()[row][0].classes[0], 0, step)
        if self.panel == MAP:
            return Target(self.results.rank_map[row].classes[column], 0, step)
        if self.panel == WORST and self.results.worst:
            place = self.results.worst[row]
            where = place.number, place.start_ns, place.end_ns
            stream = None if place.op < 0 else lane_of(self.results, place.number, place.op, *where[1:])
            return Target(*where, stream)
        return None
