"""Lanes as the timeline sees them, of a simulated or of a measured run: spans, their names, their words."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Protocol

from simcore.analysis.shares import Shares
from simcore.units import percent
from tui.frame import Line
from tui.timeline.axis import Axis
from tui.timeline.query import Query

# What a cell can show: compute by what it is for, communication by kind, and not computing. The
# last five before `wait` are of measured runs: groups of the embeddings, unknown kinds, the host.
DRAWN = (
    "fwd", "bwd", "opt", "recompute", "tp", "ep", "dp", "dp_ep", "all", "pp",
    "embedding", "position", "comm", "host", "wait", "bubble", "idle",
)  # fmt: skip
COMPUTING = tuple(DRAWN.index(name) for name in ("fwd", "bwd", "opt", "recompute"))


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans of a lane as columns, ascending by start, ns.

    op: what the lane's run knows the span by. category: index into DRAWN.
    """

    start: array[int]
    end: array[int]
    op: array[int]
    category: bytearray


def busy_words(busy_ns: int, length: int) -> str:
    """A share as a lane shows it: `49%`, `<1%` for anything below that is not nothing."""
    share = float(percent(busy_ns, length))
    return "<1%" if busy_ns and share < 1 else f"{share:.0f}%"


class SpanLane:
    """A lane of the timeline. Subclasses give what it has and what is said of it.

    number: which ranks it is of. stream: None for the lane that stands for them when folded,
    else the name of one of the lanes below it.
    """

    number: int
    stream: str | None

    @property
    def title(self) -> str:
        """What stands in the lane column, without sign and count."""
        raise NotImplementedError

    @property
    def count(self) -> str:
        """What stands between title and busy share: how many ranks, or whose."""
        raise NotImplementedError

    @property
    def busy(self) -> str:
        """The share of the step in which the lane is busy: `49%`, `<1%`."""
        raise NotImplementedError

    @cached_property
    def spans(self) -> Spans:
        """The lane's spans, none of them empty."""
        raise NotImplementedError

    @property
    def may_overlap(self) -> bool:
        """Whether spans of the lane may run at the same time."""
        raise NotImplementedError

    @property
    def covers_all(self) -> bool:
        """Whether there is a span at every time of the step."""
        raise NotImplementedError

    @property
    def by_majority(self) -> bool:
        """Whether a cell shows what fills most of it; else how busy it is."""
        return self.stream in (None, "compute")

    def label(self, op: int, room: int) -> str:
        """A span's name in at most `room` cells."""
        raise NotImplementedError

    def told(self, index: int | None, others: str, width: int, wide: bool) -> list[Line]:
        """The lines about span `index`, or about a time without one; `others`: what else is there."""
        raise NotImplementedError

    def matches(self, query: Query) -> bytes:
        """For each span 1 if a query means it, else 0; what the query says of lanes is not looked at."""
        raise NotImplementedError

    @property
    def short_title(self) -> str:
        """The title on a narrow terminal."""
        short = self.title.replace("stage ", "").replace("rank ", "").replace("compute", "comp")
        return short.split(" ")[0] if self.stream is not None else short

    @cached_property
    def shares(self) -> Shares:
        """How much of any stretch each category fills; what overlaps in a category counts once."""
        spans = self.spans
        if not self.may_overlap:
            return Shares(zip(spans.start, spans.end, spans.category, strict=True))
        union: list[tuple[int, int, int]] = []
        last: dict[int, int] = {}
        for start, end, category in zip(spans.start, spans.end, spans.category, strict=True):
            place = last.get(category)
            if place is not None and start <= union[place][1]:
                union[place] = (union[place][0], max(end, union[place][1]), category)
            else:
                last[category] = len(union)
                union.append((start, end, category))
        return Shares(union)

    @cached_property
    def _latest_end(self) -> array[int]:
        """Of each span, the latest end of it and of all that begin before it."""
        return array("q", accumulate(self.spans.end, max))

    @cached_property
    def by_length(self) -> list[int]:
        """The indices of the spans, the longest first."""
        spans = self.spans
        return sorted(range(len(spans.start)), key=lambda index: spans.start[index] - spans.end[index])

    def at(self, time_ns: int) -> int | None:
        """The index of the span that runs at `time_ns`, the latest to start; None between spans."""
        spans = self.spans
        index = bisect_right(spans.start, time_ns) - 1
        if self.covers_all and spans.start:
            return max(index, 0)
        # Transfers may overlap: go back as long as one that began before may still run.
        while index >= 0 and self._latest_end[index] > time_ns:
            if spans.end[index] > time_ns:
                return index
            index -= 1
        return None

    def starting_in(self, first_ns: int, last_ns: int) -> range:
        """The indices of the spans that begin from `first_ns` on and before `last_ns`."""
        starts = self.spans.start
        return range(bisect_left(starts, first_ns), bisect_left(starts, last_ns))

    def next_start(self, time_ns: int) -> int | None:
        """The start of the first span that begins after `time_ns`."""
        starts = self.spans.start
        index = bisect_right(starts, time_ns)
        return starts[index] if index < len(starts) else None

    def previous_start(self, time_ns: int) -> int | None:
        """The start of the last span that begins before `time_ns`."""
        starts = self.spans.start
        index = bisect_left(starts, time_ns) - 1
        return starts[index] if index >= 0 else None


class LaneSource(Protocol):
    """A run as the timeline needs it: its lanes, and the words around them."""

    @property
    def length(self) -> int:
        """The end of the axis, ns: the step time."""

    @property
    def groups(self) -> int:
        """How many lanes there are when all are folded."""

    @property
    def numbers(self) -> Sequence[int]:
        """The groups of ranks that are a lane each when all is folded, in their order."""

    def number_of(self, rank: int) -> int | None:
        """The group that a rank is in, None for no rank of this run."""

    @property
    def axis(self) -> Axis:
        """How times are written."""

    @property
    def count_heading(self) -> tuple[str, str]:
        """What the column between lane and busy share has, in a wide and in a narrow heading."""

    @property
    def counted(self) -> str:
        """How many ranks there are, and in how many lanes."""

    @property
    def legend(self) -> Sequence[tuple[str, str, str]]:
        """(fill, role, words) of each kind of cell."""

    @property
    def heat(self) -> Mapping[int, int]:
        """The lanes that `computing` gives, by number, each with the ranks that it counts for."""

    def lane(self, number: int) -> SpanLane:
        """The folded lane of a group."""

    def streams(self, number: int) -> list[SpanLane]:
        """The lanes below it."""

    def computing(self, number: int) -> SpanLane:
        """The lane of a group's compute alone."""
