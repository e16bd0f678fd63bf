"""What the summary of a measured run has the cursor on, and where Enter leads from there."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass, field
from typing import NamedTuple

from simcore.ranks import RankSet
from simcore.replay import MeasuredResults
from simcore.replay.difference import Difference, differences
from simcore.replay.scales import Scales
from simcore.replay.worst import longest_wait
from simcore.units import duration
from tui.panel_cursor import WHAT_IF, PanelCursor, Target
from tui.summary.model import MAP, NOTES, PANELS, STAGES, WORST

# What the panel beside the accounts has: who waits for whom, or the replay's difference to the measured run.
WAITS, DIFFERENCE = "waits", "difference"


class Row(NamedTuple):
    """Ranks (their indices) that share a bar. label: their numbers; stage: theirs, "" if not known."""

    label: str
    stage: str
    ranks: tuple[int, ...]


@dataclass(slots=True)
class MeasuredSummaryModel(PanelCursor):
    """beside: WAITS or DIFFERENCE.
    room: rows that there are for the bars.
    """

    results: MeasuredResults
    beside: str = WAITS
    room: int = 16
    panels: tuple[str, ...] = field(default=PANELS, kw_only=True)
    panel: str = field(default=STAGES, kw_only=True)
    _replay: list[Difference] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._begin()

    def show(self, results: MeasuredResults) -> None:
        """Another run; the cursor stays where it is, as far as there is such a place."""
        self.results, self.knobs, self._replay = results, None, None
        self._begin()
        self.place_all()

    def _begin(self) -> None:
        """A changed run is asked what changed."""
        self.beside = WAITS if self.results.scales is None else DIFFERENCE

    def extent(self, panel: str) -> tuple[int, int]:
        results = self.results
        found: dict[str, Sized] = {
            STAGES: self.rows, WORST: results.worst, WHAT_IF: self.knobs or (), NOTES: results.diagnostics,
            MAP: results.waiting if self.beside == WAITS else self.differences,
        }  # fmt: skip
        return len(found[panel]), 1

    @property
    def base_ns(self) -> int:
        return self.results.base.step_time_ns

    @property
    def base_words(self) -> str:
        return base_words(self.results) if self.knobs else ""

    def next_beside(self) -> None:
        """The other of the two tables."""
        self.beside = DIFFERENCE if self.beside == WAITS else WAITS
        self.place(MAP, 0, 0)

    @property
    def rows(self) -> list[Row]:
        """A row a rank where there is room, else a row a stage, else a few neighbouring ranks in each."""
        ranks = self.results.measured.ranks
        rows = [Row(str(one.number), _stage(one.stage), (index,)) for index, one in enumerate(ranks)]
        if len(rows) <= self.room:
            return rows
        stages: dict[int | None, list[int]] = {}
        for index, one in enumerate(ranks):
            stages.setdefault(one.stage, []).append(index)
        groups = [(_stage(stage), members) for stage, members in stages.items()]
        if len(groups) > self.room or len(groups) == 1:
            size = -(-len(ranks) // max(self.room, 1))
            every = range(len(ranks))
            groups = [("", list(every[first : first + size])) for first in range(0, len(ranks), size)]
        return [
            Row(RankSet.of(ranks[index].number for index in members).text(), stage, tuple(members))
            for stage, members in groups
        ]

    @property
    def differences(self) -> list[Difference]:
        """Each rank's replayed end against the measured one; of a measured run, its own replay's."""
        if self._replay is None:
            results = self.results
            replayed = results if results.scales is not None else results.with_scales(Scales())
            self._replay = differences(replayed)
        return self._replay

    def target(self) -> Target | None:
        """Where Enter leads in the timeline; None where it leads elsewhere or nowhere."""
        row, _ = self.cursor(self.panel)
        results = self.results
        if self.panel == STAGES:
            return Target(self.rows[row].ranks[0], 0, results.step_time_ns)
        if self.panel == WORST and results.worst:
            place = results.worst[row]
            return Target(place.number, place.start_ns, place.end_ns)
        if self.panel == MAP and self.beside == DIFFERENCE:
            return Target(row, 0, results.step_time_ns)
        if self.panel == MAP and results.waiting:
            one = results.waiting[row]
            early = next(
                index for index, rank in enumerate(results.measured.ranks) if rank.number == one.early
            )
            found = longest_wait(results, early, one.name)
            return None if found is None else Target(early, *found)
        return None


def base_words(results: MeasuredResults) -> str:
    """Behind a title: the replay that what-if starts from, where it is not what the screen shows."""
    base = results.base.step_time_ns
    return "" if base == results.step_time_ns else f", replayed from {duration(base)}"


def _stage(stage: int | None) -> str:
    return "" if stage is None else str(stage)
