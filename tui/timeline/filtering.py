"""The filter: spans that do not match are not drawn and not stepped to."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress

from simcore.run.lanes import Spans
from tui.frame import Line
from tui.timeline.lanes import LaneSource
from tui.timeline.query import Query
from tui.timeline.spans import LaneKey, SpanLane
from tui.timeline.understanding import understood


class FilteredLane(SpanLane):
    """A lane of which some spans are left."""

    def __init__(self, lane: SpanLane, flags: bytes) -> None:
        self.whole = lane
        self.number, self.stream = lane.number, lane.stream
        self._flags = flags

    @property
    def key(self) -> LaneKey:
        return self.whole.key

    def lets(self, index: int) -> bool:
        """Whether span `index` of the whole lane is left."""
        return bool(self._flags[index])

    @property
    def title(self) -> str:
        return self.whole.title

    @property
    def count(self) -> str:
        return self.whole.count

    @property
    def busy(self) -> str:
        return self.whole.busy

    @cached_property
    def spans(self) -> Spans:
        return _picked(self.whole.spans, self._flags)

    @cached_property
    def drawn(self) -> Spans:
        whole, spans = self.whole.drawn, self.spans
        if whole is self.whole.spans:
            return spans
        left = set(spans.op)
        flags = bytes(op in left for op in whole.op)
        return _picked(whole, flags)

    @property
    def may_overlap(self) -> bool:
        return self.whole.may_overlap

    @property
    def covers_all(self) -> bool:
        return False

    def label(self, op: int, room: int) -> str:
        return self.whole.label(op, room)

    def told(self, index: int | None, others: str, width: int, wide: bool) -> list[Line]:
        return self.whole.told(index, others, width, wide)


def _picked(spans: Spans, flags: bytes) -> Spans:
    return Spans(
        array("q", compress(spans.start, flags)), array("q", compress(spans.end, flags)),
        array(spans.op.typecode, compress(spans.op, flags)), bytearray(compress(spans.category, flags)),
    )  # fmt: skip


@dataclass(slots=True)
class Filter:
    """query: what spans have to be; an empty one lets all through."""

    query: Query = field(default_factory=Query)
    # The query as the run on the screen understands it; found when it is first looked for.
    _understood: Query | None = None
    _lanes: dict[LaneKey, FilteredLane] = field(default_factory=dict)

    def set(self, query: Query) -> None:
        """Another filter."""
        self.query = query
        self.forget_lanes()

    def forget_lanes(self) -> None:
        """The lanes are those of another run."""
        self._understood = None
        self._lanes.clear()

    @property
    def is_on(self) -> bool:
        return not self.query.is_empty

    def of(self, lane: SpanLane, source: LaneSource) -> SpanLane:
        """What the filter leaves of a lane."""
        if not self.is_on:
            return lane
        found = self._lanes.get(lane.key)
        if found is None or found.whole is not lane:
            found = FilteredLane(lane, self.flags(lane, source))
            self._lanes[lane.key] = found
        return found

    def hides(self, lane: SpanLane, index: int, source: LaneSource) -> bool:
        """Whether a span of a lane is one that is not drawn."""
        shown = self.of(lane, source)
        return isinstance(shown, FilteredLane) and not shown.lets(index)

    def flags(self, lane: SpanLane, source: LaneSource) -> bytes:
        """A byte for each span of a lane: 1 if it is left."""
        if self._understood is None:
            self._understood = understood(self.query, source)
        query, rank = self._understood, lane.key.rank
        elsewhere = query.stage is not None and source.of.stage_of(lane.number) != query.stage
        if query.rank is not None:
            elsewhere |= rank != query.rank if rank >= 0 else source.of.number_of(query.rank) != lane.number
        return bytes(len(lane.spans.start)) if elsewhere else lane.matches(query)
