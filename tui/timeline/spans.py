"""Lanes as the timeline sees them: spans, their names, their words."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate, compress
from operator import sub
from typing import NamedTuple

from simcore.analysis.shares import Shares, columns_of_spans
from simcore.run.lanes import COMPUTE_STREAM, NAMELESS, Spans
from simcore.units import whole_percent
from tui.frame import Line
from tui.timeline.query import Query

_HAS_NAME = bytes(category not in NAMELESS for category in range(256))
# Up to so many spans a column they are added up one by one.
_FEW = 20
# Instead of a rank in a key: all that the lane stands for, or those that have no lane of their own.
ALL, OTHERS = -1, -2


class LaneKey(NamedTuple):
    """Which lane, the same in every arrangement.

    path: the headings down to a lane that heads others; () for lanes of ranks. number: their
    group. rank: ALL, OTHERS, or the only rank that the lane is of. stream: as in `SpanLane`.
    """

    path: tuple[str, ...] = ()
    number: int = -1
    rank: int = ALL
    stream: str | None = None


class Kind(NamedTuple):
    """An entry of the legend: a fill, its role, what it is; `parts`: (role, word) of its kinds."""

    fill: str
    role: str
    words: str
    parts: tuple[tuple[str, str], ...] = ()


def busy_words(busy_ns: int, length: int) -> str:
    """A share as a lane shows it: `49%`, `<1%` for anything below that is not nothing."""
    return "<1%" if 0 < 100 * busy_ns < length else f"{whole_percent(busy_ns, length)}%"


class SpanLane:
    """A lane of the timeline. Subclasses give what it has and what is said of it.

    number: which ranks it is of. stream: None for the lane that stands for them when folded,
    else the name of one of the lanes below it.
    """

    number: int
    stream: str | None

    @property
    def key(self) -> LaneKey:
        """Which lane it is."""
        return LaneKey((), self.number, ALL, self.stream)

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

    def share(self, measure: str) -> str:
        """The share of the step that lanes are ordered by, as `busy` writes it."""
        return self.busy

    @cached_property
    def spans(self) -> Spans:
        """The lane's spans, none of them empty."""
        raise NotImplementedError

    @property
    def drawn(self) -> Spans:
        """What its cells are drawn from: its spans, or the parts of them that are of other kinds."""
        return self.spans

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
        return self.stream in (None, COMPUTE_STREAM)

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
    def seams(self) -> Sequence[int]:
        """When a step ends here and the next one begins, ns: none in a lane of one step."""
        return ()

    @property
    def whose(self) -> str:
        """The ranks of a stream's lane, in few words."""
        return f"rank {self.key.rank}" if self.key.rank >= 0 else str(self.number)

    @property
    def short_title(self) -> str:
        """The title on a narrow terminal."""
        short = self.title.replace("stage ", "").replace("rank ", "").replace("compute", "comp")
        return short.split(" ")[0] if self.stream is not None else short

    @cached_property
    def shares(self) -> Shares:
        """How much of any stretch each category fills; what overlaps in a category counts once."""
        spans = self.drawn
        if not self.may_overlap:
            return Shares.of_columns(spans.start, spans.end, spans.category)
        start, end, category = array("q"), array("q"), bytearray()
        last: dict[int, int] = {}
        for begin, over, one in zip(spans.start, spans.end, spans.category, strict=True):
            place = last.get(one)
            if place is not None and begin <= end[place]:
                end[place] = max(over, end[place])
            else:
                last[one] = len(start)
                start.append(begin)
                end.append(over)
                category.append(one)
        return Shares.of_columns(start, end, category)

    def column_sums(self, edges: Sequence[int]) -> dict[int, list[int]]:
        """ns of each category between each two neighbouring `edges`, of those that have any there."""
        spans = self.drawn
        inside = bisect_left(spans.start, edges[-1]) - bisect_right(spans.start, edges[0])
        if self.may_overlap or inside > _FEW * len(edges):
            return self.shares.columns(edges)
        return columns_of_spans(spans.start, spans.end, spans.category, edges)

    @cached_property
    def _latest_end(self) -> array[int]:
        """Of each span, the latest end of it and of all that begin before it."""
        return array("q", accumulate(self.spans.end, max))

    @cached_property
    def longest_ns(self) -> int:
        """How long the longest span that can have a name in it lasts, 0 where there is none."""
        spans = self.spans
        named = spans.category.translate(_HAS_NAME)
        return max(compress(map(sub, spans.end, spans.start), named), default=0)

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
