"""A search: what matches in which lane, and which match comes next from a position.

Matches are in the order of time; of those that begin together the upper lane's comes first. The folded lanes
are searched, and the streams of those that are unfolded; if nothing matches there, the streams of all. Where
a lane shows only one of the spans that run at a time, its streams are searched for it.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator

from simcore.records import NamedTuple
from tui.timeline.filtering import Filter, describe_missing, find_matches, resolve_query
from tui.timeline.lanes import ALL, LaneKey, LaneSource, SpanLane
from tui.timeline.query import Query, intersect_flags


class Match(NamedTuple):
    """A span of a lane."""

    time_ns: int
    lane: int
    """The index of the lane among those searched."""
    span: int
    """The index of the span; -1 for the lane itself."""


class LaneMatches(NamedTuple):
    """The matches of a lane."""

    lane: SpanLane
    flags: bytes
    """A byte for each of its spans, 1 if it matches."""
    matches: int
    """How many match."""

    def first_from(self, time_ns: int, after: bool) -> int:
        """Returns the first match that begins at a time or later (`after`: later); -1 if none does."""
        start = self.lane.spans.start
        index = bisect_right(start, time_ns) if after else bisect_left(start, time_ns)
        return self.flags.find(1, index)

    def last_before(self, time_ns: int, including: bool) -> int:
        """Returns the last match that begins before a time (`including`: or at it); -1 if none does."""
        start = self.lane.spans.start
        index = bisect_right(start, time_ns) if including else bisect_left(start, time_ns)
        return self.flags.rfind(1, 0, index)

    def count_before(self, index: int) -> int:
        """Returns how many matches come before span `index`."""
        return self.flags.count(1, 0, index)


class Search:
    """Searches the lanes of a run, some of them at a time."""

    def __init__(
        self,
        source: LaneSource,
        query: Query,
        unfolded: Collection[int],
        among: Filter | None = None,
        folded_tracks: Collection[int] = (),
    ) -> None:
        """Prepares the search.

        unfolded: groups of ranks whose streams are shown; these are searched, too. among: the filter whose
        spans alone are matches. folded_tracks: groups of ranks that another lane stands for.
        """
        self.problem = query.problem or describe_missing(source, query)
        self.query = query if self.problem else resolve_query(query, source)
        # A copy: the user may set another filter meanwhile.
        self._filter = Filter()
        if among is not None:
            self._filter.set(among.query)
        self.matched_lanes: list[LaneMatches] = []
        # Whether nothing matched in the visible lanes.
        self.searches_folded = False
        self.count = 0
        self._source = source
        self._of_all_streams = source.of.facts.layered and not self.of_lanes
        self._unfolded = frozenset(unfolded)
        self._folded_tracks = frozenset(folded_tracks)
        self._remaining_lanes: Iterator[SpanLane] | None = None
        if not self.problem and (query.of_spans or query.of_lanes):
            self._remaining_lanes = self._iterate_lanes(of_streams=False)

    @property
    def of_lanes(self) -> bool:
        """Whether lanes are searched for, and not spans."""
        return not self.query.of_spans

    @property
    def among(self) -> Query:
        """The filter that the matches have passed."""
        return self._filter.query

    @property
    def is_finished(self) -> bool:
        """Whether all lanes were searched."""
        return self._remaining_lanes is None

    def is_of(self, among: Filter, unfolded: Collection[int], folded_tracks: Collection[int]) -> bool:
        """Returns whether it is of these: see the preparation. One that went through all streams is of those
        that are shown, whichever they are.
        """
        return (
            self.among == among.query
            and (self.searches_folded or self._of_all_streams or self._unfolded == unfolded)
            and self._folded_tracks == folded_tracks
        )

    def searched_lanes(self, lane: SpanLane) -> list[SpanLane]:
        """Returns the lanes that have all spans of a lane."""
        return self._source.searched_lanes(lane)

    def flags(self, lane: SpanLane) -> bytes:
        """Returns a byte for each span of a lane, whether or not it is among those searched: 1 for a
        match.
        """
        if self.of_lanes:
            return bytes(len(lane.spans.start))
        flags = find_matches(self.query, lane, self._source)
        if self._filter.is_on and 1 in flags:
            flags = intersect_flags([flags, self._filter.flags(lane, self._source)])
        return flags

    def advance(self, seconds: float) -> bool:
        """Searches for this many seconds (at least one lane); returns True when finished."""
        until = time.perf_counter() + seconds
        while self._remaining_lanes is not None:
            lane = next(self._remaining_lanes, None)
            if lane is None:
                more = not (
                    self.matched_lanes or self.searches_folded or self._of_all_streams or self.of_lanes
                )
                self.searches_folded = self.searches_folded or more
                self._remaining_lanes = self._iterate_lanes(of_streams=True) if more else None
            elif self.of_lanes:
                self.matched_lanes.append(LaneMatches(lane, b"", 1))
                self.count += 1
            else:
                flags = self.flags(lane)
                if count := flags.count(1):
                    self.matched_lanes.append(LaneMatches(lane, flags, count))
                    self.count += count
            if time.perf_counter() > until:
                break
        return self.is_finished

    def _iterate_lanes(self, of_streams: bool) -> Iterator[SpanLane]:
        query, source = self.query, self._source
        track_ids, rank = source.track_ids, ALL
        if query.rank is not None:
            track_id = source.of.lane_track_id(query.rank)
            track_ids = [] if track_id is None else [track_id]
            # A rank that has equals has a lane of its own on demand.
            rank = query.rank if track_ids and source.count_ranks(track_ids[0]) > 1 else ALL
        for track_id in track_ids:
            if track_id in self._folded_tracks and query.rank is None:
                continue
            if query.stage is not None and self._source.of.track(track_id).stage != query.stage:
                continue
            if self._of_all_streams:
                yield from source.streams(track_id, rank)
                continue
            if not of_streams:
                yield source.lane(track_id, rank)
            if not self.of_lanes and of_streams != (track_id in self._unfolded):
                yield from source.streams(track_id, rank)

    # -- matches -----------------------------------------------------------------------

    def next(self, time_ns: int, lane: LaneKey, direction: int) -> tuple[Match, bool] | None:
        """Returns the match behind (1) or before (-1) a position: (match, whether it is past the end of the
        step).

        lane: that of the position. None if nothing matches.
        """
        if not self.matched_lanes:
            return None
        start_index = self._index_of_lane(lane)
        if self.of_lanes:
            lane_index = (start_index + direction) if start_index >= 0 else (0 if direction > 0 else -1)
            wrapped = not 0 <= lane_index < len(self.matched_lanes)
            return Match(time_ns, lane_index % len(self.matched_lanes), -1), wrapped
        # A trace may state that a sub-operation began before its step.
        for from_ns, wrapped in ((time_ns, False), (-(2**63) if direction > 0 else 2**63 - 1, True)):
            matches = [
                Match(lane_matches.lane.spans.start[index], lane_index, index)
                for lane_index, lane_matches in enumerate(self.matched_lanes)
                if (
                    index := self._neighbour_match(
                        lane_matches, from_ns, lane_index - start_index, direction, wrapped
                    )
                )
                >= 0
            ]
            if matches:
                return (min if direction > 0 else max)(matches), wrapped
        return None

    def first(self, time_ns: int, lane: LaneKey) -> tuple[Match, bool] | None:
        """Returns the first match at a time or later, in the given lane or another."""
        if self.of_lanes:
            lane_index = max(self._index_of_lane(lane), 0)
            return (Match(time_ns, lane_index, -1), False) if self.matched_lanes else None
        return self.next(time_ns, LaneKey(), 1)

    def ordinal(self, match: Match) -> int:
        """Returns the ordinal of a match, from 1."""
        if self.of_lanes:
            return match.lane + 1
        before = 0
        for index, lane_matches in enumerate(self.matched_lanes):
            start = lane_matches.lane.spans.start
            if index == match.lane:
                before += lane_matches.count_before(match.span)
            elif index < match.lane:
                before += lane_matches.count_before(bisect_right(start, match.time_ns))
            else:
                before += lane_matches.count_before(bisect_left(start, match.time_ns))
        return before + 1

    def _index_of_lane(self, lane: LaneKey) -> int:
        return next(
            (index for index, lane_matches in enumerate(self.matched_lanes) if lane_matches.lane.key == lane),
            -1,
        )

    @staticmethod
    def _neighbour_match(
        lane_matches: LaneMatches, time_ns: int, lanes_down: int, direction: int, wrapped: bool
    ) -> int:
        """Returns the next or previous match in a lane that is so many below that of the position."""
        if direction > 0:
            return lane_matches.first_from(time_ns, after=lanes_down <= 0 or wrapped)
        return lane_matches.last_before(time_ns, including=lanes_down < 0 or wrapped)
