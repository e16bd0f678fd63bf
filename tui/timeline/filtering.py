"""The filter: spans that do not match are not drawn and not stepped to; which lanes its words mean."""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from itertools import compress

from simcore.records import replace
from simcore.trace.lane_spans import Content, Spans
from tui.timeline.lanes import LaneKey, LaneSource, SpanLane
from tui.timeline.query import Query, Word


def left_of(whole: Content, flags: bytes) -> Content:
    """What is left of a lane. flags: 1 for each of its spans that is."""
    spans = _picked(whole.spans, flags)
    if whole.drawn is whole.spans:
        return Content(spans, spans)
    left = set(spans.op)
    return Content(spans, _picked(whole.drawn, bytes(op in left for op in whole.drawn.op)))


def _picked(spans: Spans, flags: bytes) -> Spans:
    return Spans(
        array("q", compress(spans.start, flags)), array("q", compress(spans.end, flags)),
        array(spans.op.typecode, compress(spans.op, flags)), bytearray(compress(spans.category, flags)),
    )  # fmt: skip


@dataclass(slots=True)
class Filter:
    """query: what spans have to be; an empty one, as at first, lets all through."""

    query: Query = field(default_factory=Query, init=False)
    is_on: bool = field(default=False, init=False)
    # The query as the run on the screen understands it; found when it is first looked for.
    _understood: Query | None = None
    # Of each lane all that is on it, its flags and what they leave.
    _lanes: dict[LaneKey, tuple[Content, bytes, Content]] = field(default_factory=dict)

    def set(self, query: Query) -> None:
        """Another filter."""
        self.query, self.is_on = query, not query.is_empty
        self.forget_lanes()

    def forget_lanes(self) -> None:
        """The lanes are those of another run."""
        self._understood = None
        self._lanes.clear()

    def of(self, lane: SpanLane, source: LaneSource) -> Content:
        """What the filter leaves of a lane."""
        return self._left(lane, source)[2] if self.is_on else lane.content

    def hides(self, lane: SpanLane, index: int, source: LaneSource) -> bool:
        """Whether a span of a lane is one that is not drawn."""
        return self.is_on and not self._left(lane, source)[1][index]

    def _left(self, lane: SpanLane, source: LaneSource) -> tuple[Content, bytes, Content]:
        left = self._lanes.get(lane.key)
        if left is None or left[0] is not lane.content:
            flags = self.flags(lane, source)
            left = self._lanes[lane.key] = lane.content, flags, left_of(lane.content, flags)
        return left

    def flags(self, lane: SpanLane, source: LaneSource) -> bytes:
        """A byte for each span of a lane: 1 if it is left."""
        if self._understood is None:
            self._understood = understood(self.query, source)
        query, rank = self._understood, lane.key.rank
        elsewhere = query.stage is not None and source.of.track(lane.number).stage != query.stage
        if query.rank is not None:
            elsewhere |= rank != query.rank if rank >= 0 else source.of.number_of(query.rank) != lane.number
        return bytes(len(lane.spans.start)) if elsewhere else lane.matches(query)


_LIST = r"(\d{1,9}(?:-\d{1,9})?(?:\s*,\s*\d{1,9}(?:-\d{1,9})?)*)"
_RANK_WORDS = re.compile(rf"(?:ranks?\s+)?{_LIST}", re.ASCII | re.IGNORECASE)
_STAGE_WORDS = re.compile(rf"stages?\s+{_LIST}", re.ASCII | re.IGNORECASE)
# No pipeline has more stages than ranks that are simulated.
_MOST_STAGES = 100_000


def matching(source: LaneSource, text: str) -> set[int]:
    """The groups of ranks that a filter's words mean."""
    numbers = _RANK_WORDS.fullmatch(text)
    if numbers is not None:
        matched = set()
        for part in numbers[1].replace(" ", "").split(","):
            first, _, last = part.partition("-")
            matched |= _with_ranks(source, range(int(first), int(last or first) + 1))
        return matched
    stages = _STAGE_WORDS.fullmatch(text)
    if stages is not None:
        wanted = {
            f"stage {stage}" for part in stages[1].replace(" ", "").split(",") for stage in _stages(part)
        }
        return {number for number in source.numbers if _stage_words(source, number) & wanted}
    # `stage 1` is not stage 10: a number at the end is a whole one.
    ending = r"(?!\d)" if text[-1:].isdigit() else ""
    pattern = re.compile(r"\s+".join(re.escape(word) for word in text.split()) + ending, re.IGNORECASE)
    return {number for number in source.numbers if any(map(pattern.search, _titles(source, number)))}


def _titles(source: LaneSource, number: int) -> tuple[str, ...]:
    """The headings of a group of ranks, and the title of its lane."""
    track = source.of.track(number)
    return (*track.headings, track.title)


def _stages(part: str) -> range:
    """The stages of a part of a list: `3`, `2-4`."""
    first, _, last = part.partition("-")
    return range(int(first), min(int(last or first), int(first) + _MOST_STAGES) + 1)


def _stage_words(source: LaneSource, number: int) -> set[str]:
    """`stage 5` where a group of ranks is of it: from its headings, or from the title of its lane."""
    return {" ".join(words.split()) for words in _titles(source, number)}


def _with_ranks(source: LaneSource, wanted: range) -> set[int]:
    """The groups that have one of these ranks; the shorter of the two is gone through."""
    if len(wanted) <= sum(map(source.count, source.numbers)):
        return {number for number in map(source.of.number_of, wanted) if number is not None}
    tracks = map(source.of.track, source.numbers)
    return {track.number for track in tracks if any(rank in wanted for rank in track.ranks)}


def understood(query: Query, source: LaneSource) -> Query:
    """The query with such words in names: `ep` finds `ep_allreduce` where nothing is of group ep."""
    words = tuple(_understood(word, source) for word in query.words)
    return query if words == query.words else replace(query, words=words)


def missing(source: LaneSource, query: Query) -> str:
    """Which rank, stage or micro-batch of a query the run does not have; "" if it has all."""
    return source.of.missing(query.rank, query.stage, query.microbatch)


def _understood(word: Word, source: LaneSource) -> Word:
    named = Word((), "", word.whole)
    # Lanes are looked through only for a word that a name has.
    if not word.whole or not any(map(named.is_in, source.of.names())) or _occurs(word, source):
        return word
    return named


def _occurs(word: Word, source: LaneSource) -> bool:
    alone = Query(words=(word,))
    for number in source.numbers:
        if 1 in source.lane(number).matches(alone):
            return True
    return any(1 in lane.matches(alone) for number in source.numbers for lane in source.streams(number))
