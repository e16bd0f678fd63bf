"""The filter: spans that do not match are not drawn and not visited; which lanes its words mean."""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from itertools import compress

from simcore.records import replace
from simcore.trace.lane_spans import Content, Spans
from tui.timeline.lanes import LaneKey, LaneSource, SpanLane
from tui.timeline.query import Query, Word


def filter_content(whole: Content, flags: bytes) -> Content:
    """Returns what a filter leaves of a lane. flags: 1 for each of its spans that is left."""
    spans = _select_spans(whole.spans, flags)
    if whole.cell_spans is whole.spans:
        return Content(spans, spans)
    remaining_ops = set(spans.op)
    return Content(
        spans, _select_spans(whole.cell_spans, bytes(op in remaining_ops for op in whole.cell_spans.op))
    )


def _select_spans(spans: Spans, flags: bytes) -> Spans:
    return Spans(
        array("q", compress(spans.start, flags)), array("q", compress(spans.end, flags)),
        array(spans.op.typecode, compress(spans.op, flags)), bytearray(compress(spans.category, flags)),
    )  # fmt: skip


def _merge(parts: list[Spans]) -> Content:
    """Returns the spans of several lanes as those of one."""
    rows = sorted(
        row for spans in parts for row in zip(spans.start, spans.end, spans.op, spans.category, strict=True)
    )
    starts, ends, ops, categories = zip(*rows, strict=True) if rows else ((), (), (), ())
    spans = Spans(array("q", starts), array("q", ends), array("q", ops), bytearray(categories))
    return Content(spans, spans)


@dataclass(slots=True)
class Filter:
    """What is drawn of each lane. `query` is what spans have to be; an empty one, as at first, lets all
    through.
    """

    query: Query = field(default_factory=Query, init=False)
    is_on: bool = field(default=False, init=False)
    # The query as the run on the screen understands it; resolved when it is first needed.
    _resolved: Query | None = None
    # By lane: all its content, the flags of its spans, and what they leave.
    _lanes: dict[LaneKey, tuple[Content, bytes, Content]] = field(default_factory=dict)

    def set(self, query: Query) -> None:
        """Sets another filter."""
        self.query, self.is_on = query, not query.is_empty
        self.forget_lanes()

    def forget_lanes(self) -> None:
        """Forgets the lanes, when those of another run are shown."""
        self._resolved = None
        self._lanes.clear()

    def filter_lane(self, lane: SpanLane, source: LaneSource) -> Content:
        """Returns what the filter leaves of a lane."""
        return self._cached_lane(lane, source)[2] if self.is_on else lane.content

    def hides(self, lane: SpanLane, index: int, source: LaneSource) -> bool:
        """Returns whether a span of a lane is not drawn."""
        return self.is_on and not self._cached_lane(lane, source)[1][index]

    def _cached_lane(self, lane: SpanLane, source: LaneSource) -> tuple[Content, bytes, Content]:
        cached = self._lanes.get(lane.key)
        if cached is None or cached[0] is not lane.content:
            flags = self.flags(lane, source)
            parts = source.searched_lanes(lane)
            if parts == [lane]:
                remaining = filter_content(lane.content, flags)
            else:
                remaining = _merge(
                    [filter_content(part.content, self.flags(part, source)).spans for part in parts]
                )
            cached = self._lanes[lane.key] = lane.content, flags, remaining
        return cached

    def flags(self, lane: SpanLane, source: LaneSource) -> bytes:
        """Returns a byte for each span of a lane: 1 if the filter leaves it."""
        if self._resolved is None:
            self._resolved = resolve_query(self.query, source)
        return find_matches(self._resolved, lane, source)


def find_matches(query: Query, lane: SpanLane, source: LaneSource) -> bytes:
    """Returns a byte for each span of a lane: 1 if the query means it, and the lane."""
    rank = lane.key.rank
    is_elsewhere = query.stage is not None and source.of.track(lane.track_id).stage != query.stage
    if query.rank is not None:
        is_elsewhere |= (
            rank != query.rank if rank >= 0 else source.of.lane_track_id(query.rank) != lane.track_id
        )
    return bytes(len(lane.spans.start)) if is_elsewhere else lane.matches(query)


_LIST = r"(\d{1,9}(?:-\d{1,9})?(?:\s*,\s*\d{1,9}(?:-\d{1,9})?)*)"
_RANK_WORDS = re.compile(rf"(?:ranks?\s+)?{_LIST}", re.ASCII | re.IGNORECASE)
_STAGE_WORDS = re.compile(rf"stages?\s+{_LIST}", re.ASCII | re.IGNORECASE)
# No pipeline has more stages than there can be simulated ranks.
_MOST_STAGES = 100_000


def find_tracks(source: LaneSource, text: str) -> set[int]:
    """Returns the groups of ranks that a filter's words mean."""
    rank_match = _RANK_WORDS.fullmatch(text)
    if rank_match is not None:
        track_ids = set()
        for part in rank_match[1].replace(" ", "").split(","):
            first, _, last = part.partition("-")
            track_ids |= _tracks_of_ranks(source, range(int(first), int(last or first) + 1))
        return track_ids
    stage_match = _STAGE_WORDS.fullmatch(text)
    if stage_match is not None:
        requested_stages = {
            f"stage {stage}"
            for part in stage_match[1].replace(" ", "").split(",")
            for stage in _stage_range(part)
        }
        return {
            track_id for track_id in source.track_ids if _stage_words(source, track_id) & requested_stages
        }
    # `stage 1` is not stage 10: a number at the end must not continue.
    ending = r"(?!\d)" if text[-1:].isdecimal() else ""
    pattern = re.compile(r"\s+".join(re.escape(word) for word in text.split()) + ending, re.IGNORECASE)
    return {track_id for track_id in source.track_ids if any(map(pattern.search, _titles(source, track_id)))}


def _titles(source: LaneSource, track_id: int) -> tuple[str, ...]:
    """Returns the headings of a group of ranks, and the title of its lane."""
    track = source.of.track(track_id)
    return (*track.headings, track.title)


def _stage_range(part: str) -> range:
    """Returns the stages of a part of a list: `3`, `2-4`."""
    first, _, last = part.partition("-")
    return range(int(first), min(int(last or first), int(first) + _MOST_STAGES) + 1)


def _stage_words(source: LaneSource, track_id: int) -> set[str]:
    """Returns `stage 5` where a group of ranks is of it, from its headings or the title of its lane."""
    return {" ".join(words.split()) for words in _titles(source, track_id)}


def _tracks_of_ranks(source: LaneSource, requested_ranks: range) -> set[int]:
    """Returns the groups that have one of these ranks; the shorter of the two is iterated."""
    if len(requested_ranks) <= sum(map(source.count_ranks, source.track_ids)):
        return {
            track_id for track_id in map(source.of.lane_track_id, requested_ranks) if track_id is not None
        }
    tracks = map(source.of.track, source.track_ids)
    return {track.track_id for track in tracks if any(rank in requested_ranks for rank in track.ranks)}


def resolve_query(query: Query, source: LaneSource) -> Query:
    """Returns the query, where words that occur only in names are taken as names: `ep` finds `ep_allreduce`
    where nothing is of group ep.
    """
    words = tuple(_resolve_word(word, source) for word in query.words)
    return query if words == query.words else replace(query, words=words)


def describe_missing(source: LaneSource, query: Query) -> str:
    """Returns which rank, stage or micro-batch of a query the run does not have; "" if it has all."""
    return source.of.missing_text(query.rank, query.stage, query.microbatch)


def _resolve_word(word: Word, source: LaneSource) -> Word:
    name_word = Word((), "", word.whole)
    # Lanes are searched only for a word that a name has.
    if not word.whole or not any(map(name_word.is_in, source.of.names())) or _occurs(word, source):
        return word
    return name_word


def _occurs(word: Word, source: LaneSource) -> bool:
    word_query = Query(words=(word,))
    for track_id in source.track_ids:
        if 1 in source.lane(track_id).matches(word_query):
            return True
    return any(
        1 in lane.matches(word_query) for track_id in source.track_ids for lane in source.streams(track_id)
    )
