"""The table of screen 8: a line a step, in an order, those that a filter leaves."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from simcore.replay.step_table import StepTable
from simcore.units import change_percent, duration
from simcore.words.log_figures import LOG_FIGURES
from simcore.words.step_words import describe_difference
from tui.frame import cells
from tui.listing import ListColumn, Listing, find_from

STEP, TIME, CHANGE, SLOWEST, LATE = "step", "time", "change", "slowest", "late by"
# A blank in front: `late by` ends where it begins.
DIFFERS = " rank most off median"
# Columns of the figures: (heading, size, left). With few cells what the others say is dropped first.
_FIGURES = ((STEP, 4, False), (TIME, 9, False), (CHANGE, 7, False), (SLOWEST, 7, False), (LATE, 9, False))
_LEAST_WORDS, _MOST_WORDS = 21, 30
# Cells of a duration at the least, and of how many the longest is looked for.
_LEAST_TIME, _MEASURED = 7, 1_000
_FIGURE_CELLS = 12


def _cells_of(ns: Sequence[int]) -> int:
    """Returns the cells of the longest of these durations, of many of those of some."""
    some = ns[:: -(-len(ns) // _MEASURED)]
    return max(_LEAST_TIME, *(len(duration(value)) for value in (*some, max(ns))))


class StepListing(Listing):
    """The steps of a run: see `Listing`."""

    def __init__(self, steps: StepTable, figures: Mapping[int, Mapping[str, float]]) -> None:
        """figures: by step what a log states of it."""
        self.steps, self._figures = steps, figures
        names = {name for of_step in figures.values() for name in of_step}
        self._names = {LOG_FIGURES[name][0]: name for name in LOG_FIGURES if name in names}
        self.key, self.descending, self.typed = "", False, ""
        self.lines: list[int] = list(range(len(steps)))
        self._differences: dict[int, str] = {}
        self._sizes = {
            STEP: max(len(str(steps.steps[-1])), len(STEP)), TIME: _cells_of(steps.ns),
            SLOWEST: max(len(str(steps.ranks[-1])), len(SLOWEST)),
            LATE: _cells_of([row.late_ns for row in steps.rows]),
        }  # fmt: skip

    @property
    def sorted_by(self) -> Mapping[str, tuple[str, bool]]:
        return {
            STEP: ("step", False), TIME: ("ns", True), CHANGE: ("ns", True), SLOWEST: ("slowest", False),
            LATE: ("late", True), **{heading: (name, True) for heading, name in self._names.items()},
        }  # fmt: skip

    def columns_for(self, width: int) -> list[ListColumn]:
        figures = [
            figure for figure in _FIGURES
            if len(self.steps.ranks) > 1 or figure[0] not in (SLOWEST, LATE)
        ]  # fmt: skip
        room = width - 1 - sum(self._sizes.get(heading, size) + 1 for heading, size, _ in figures)
        if room < 0:
            figures = [figure for figure in figures if figure[0] != CHANGE]
        columns = [
            ListColumn(heading, self._sizes.get(heading, size), left) for heading, size, left in figures
        ]
        for heading in self._names:
            if room > _FIGURE_CELLS:
                columns.append(ListColumn(heading, _FIGURE_CELLS, False))
                room -= _FIGURE_CELLS + 1
        if room > _LEAST_WORDS and not self._names:
            columns.append(ListColumn(DIFFERS, min(room - 1, _MOST_WORDS), True))
        return columns

    def width_for(self, room: int) -> int:
        """Returns the cells that the columns take, of at most `room`."""
        return 1 + sum(column.size + 1 for column in self.columns_for(room))

    def texts(self, line: int) -> dict[str, str]:
        at = self.lines[line]
        row, median = self.steps.rows[at], self.steps.median_ns
        is_multiple = 0 < 2 * median <= row.ns
        change = f"x {row.ns / median:.1f}" if is_multiple else change_percent(median, row.ns)
        return {
            STEP: str(row.step), TIME: duration(row.ns), CHANGE: "=" if row.ns == median else change,
            SLOWEST: "" if row.last_rank is None else str(row.last_rank),
            LATE: "" if row.last_rank is None else duration(row.late_ns), DIFFERS: self._difference(at),
            **{heading: self._figure(row.step, name) for heading, name in self._names.items()},
        }  # fmt: skip

    def _figure(self, step: int, name: str) -> str:
        value = self._figures.get(step, {}).get(name)
        return "" if value is None else LOG_FIGURES[name][1](value)

    def _difference(self, at: int) -> str:
        if at not in self._differences:
            # The heading has the word.
            words = describe_difference(self.steps.find_difference(at)).removeprefix("rank ")
            self._differences[at] = f" {cells(words, _MOST_WORDS - 1)}"
        return self._differences[at]

    def count_text(self) -> str:
        return f"{len(self.steps)} steps"

    def left(self) -> str:
        return f"{len(self.lines)} of {len(self.steps)} steps"

    def order(self) -> tuple[str, str]:
        return "in their order", "in order"

    def legend(self, columns: Sequence[ListColumn], short: bool) -> str:
        if not any(column.heading == LATE for column in columns):
            return ""
        how = "its peers wait for it" if self.steps.has_waits else "computes longer than its peers"
        return f"slowest: {how}"

    def sort(self, key: str, descending: bool) -> None:
        self.key, self.descending = key, descending
        self.filter(self.typed)

    def _order_key(self, at: int) -> Any:
        row = self.steps.rows[at]
        if self.key in LOG_FIGURES:
            return self._figures.get(row.step, {}).get(self.key, -1.0)
        if self.key == "slowest":
            return row.last_rank is None, row.last_rank or 0
        return {"step": row.step, "ns": row.ns, "late": row.late_ns}[self.key]

    def cannot_sort(self, heading: str) -> str:
        return "" if heading in self.sorted_by else "what is off has no order: another column sorts"

    def filter(self, typed: str) -> None:
        self.typed = typed
        words = typed.lower().split()
        count = len(self.steps)
        self.lines = [at for at in range(count) if not words or self._has(at, words)]
        if self.key:
            self.lines.sort(key=self._order_key, reverse=self.descending)

    def _has(self, at: int, words: Sequence[str]) -> bool:
        row = self.steps.rows[at]
        text = f"{row.step} rank {row.last_rank} {self._difference(at)}".lower()
        return all(word in text for word in words)

    def find(self, typed: str, line: int, direction: int) -> int | None:
        words = typed.lower().split()
        if not words:
            return None
        if len(words) == 1 and words[0].isdecimal():
            # A number is that of a step.
            targets = {at for at, step in enumerate(self.steps.steps) if step == int(words[0])}
        else:
            targets = {at for at in self.lines if self._has(at, words)}
        return find_from(self.lines, targets, line, direction)

    def no_match(self, typed: str) -> str:
        return "no step has these words"

    def mark(self, line: int) -> Hashable:
        return self.steps.steps[self.lines[line]]
