"""A search: what matches in which lane, and which match comes next from a place.

Matches are in the order of time; of those that begin together the upper lane's comes first. The
folded lanes are looked through, and the streams of those that are unfolded; if nothing is found
there, the streams of all.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator

from simcore.records import NamedTuple
from tui.timeline.filtering import Filter, missing, understood
from tui.timeline.lanes import ALL, LaneKey, LaneSource, SpanLane
from tui.timeline.query import Query, both


class Match(NamedTuple):
    """A span of a lane, which is given by its place among those searched; span -1: the lane itself."""

    time_ns: int
    lane: int
    span: int


class LaneMatches(NamedTuple):
    """A lane and a byte for each of its spans, 1 if it matches. matches: how many do."""

    lane: SpanLane
    flags: bytes
    matches: int

    def first_from(self, time_ns: int, after: bool) -> int:
        """The first match that begins at a time or later (`after`: later); -1 if none does."""
        start = self.lane.spans.start
        index = bisect_right(start, time_ns) if after else bisect_left(start, time_ns)
        return self.flags.find(1, index)

    def last_before(self, time_ns: int, including: bool) -> int:
        """The last match that begins before a time (`including`: or at it); -1 if none does."""
        start = self.lane.spans.start
        index = bisect_right(start, time_ns) if including else bisect_left(start, time_ns)
        return self.flags.rfind(1, 0, index)

    def until(self, index: int) -> int:
        """How many matches come before span `index`."""
        return self.flags.count(1, 0, index)


class Search:
    """Looks through the lanes of a run, some of them at a time."""

    def __init__(
        self,
        source: LaneSource,
        query: Query,
        unfolded: Collection[int],
        among: Filter | None = None,
        held: Collection[int] = (),
    ) -> None:
        """unfolded: groups of ranks whose streams are shown; these are looked through, too.
        among: the filter whose spans alone are matches. held: groups of ranks that another lane stands for.
        """
        self.problem = query.problem or missing(source, query)
        self.query = query if self.problem else understood(query, source)
        # A copy: the user may set another one.
        self._filter = Filter()
        if among is not None:
            self._filter.set(among.query)
        self.found: list[LaneMatches] = []
        # Whether nothing was found in the lanes that are shown.
        self.beyond = False
        self.count = 0
        self._source = source
        self._unfolded = frozenset(unfolded)
        self._held = frozenset(held)
        self._left: Iterator[SpanLane] | None = None
        if not self.problem and not query.is_empty:
            self._left = self._lanes(of_streams=False)

    @property
    def of_lanes(self) -> bool:
        """Whether lanes are looked for, and not spans."""
        return not self.query.of_spans

    @property
    def among(self) -> Query:
        """The filter that the matches are left by."""
        return self._filter.query

    @property
    def done(self) -> bool:
        """Whether all lanes were looked through."""
        return self._left is None

    def advance(self, seconds: float) -> bool:
        """Look on for so long (at least through one lane); True when done."""
        until = time.perf_counter() + seconds
        while self._left is not None:
            lane = next(self._left, None)
            if lane is None:
                more = not self.found and not self.beyond and self.query.of_spans
                self.beyond = self.beyond or more
                self._left = self._lanes(of_streams=True) if more else None
            elif self.of_lanes:
                self.found.append(LaneMatches(lane, b"", 1))
                self.count += 1
            else:
                flags = lane.matches(self.query)
                if self._filter.is_on and 1 in flags:
                    flags = both([flags, self._filter.flags(lane, self._source)])
                if count := flags.count(1):
                    self.found.append(LaneMatches(lane, flags, count))
                    self.count += count
            if time.perf_counter() > until:
                break
        return self.done

    def _lanes(self, of_streams: bool) -> Iterator[SpanLane]:
        query, source = self.query, self._source
        numbers, rank = source.numbers, ALL
        if query.rank is not None:
            number = source.of.number_of(query.rank)
            numbers = [] if number is None else [number]
            # A rank that has equals has a lane of its own for the asking.
            rank = query.rank if numbers and source.count(numbers[0]) > 1 else ALL
        for number in numbers:
            if number in self._held and query.rank is None:
                continue
            if query.stage is not None and self._source.of.track(number).stage != query.stage:
                continue
            if not of_streams:
                yield source.lane(number, rank)
            if not self.of_lanes and of_streams != (number in self._unfolded):
                yield from source.streams(number, rank)

    # -- matches -----------------------------------------------------------------------

    def next(self, time_ns: int, lane: LaneKey, direction: int) -> tuple[Match, bool] | None:
        """The match behind (1) or before (-1) a place: (match, whether it is past the end of the step).

        lane: of the place. None if nothing matches.
        """
        if not self.found:
            return None
        here = self._place_of(lane)
        if self.of_lanes:
            lane_number = (here + direction) if here >= 0 else (0 if direction > 0 else -1)
            wrapped = not 0 <= lane_number < len(self.found)
            return Match(time_ns, lane_number % len(self.found), -1), wrapped
        # A trace may state that a sub-operation began before its step.
        for from_ns, wrapped in ((time_ns, False), (-(2**63) if direction > 0 else 2**63 - 1, True)):
            matches = [
                Match(lane_matches.lane.spans.start[index], lane_number, index)
                for lane_number, lane_matches in enumerate(self.found)
                if (index := self._beside(lane_matches, from_ns, lane_number - here, direction, wrapped)) >= 0
            ]
            if matches:
                return (min if direction > 0 else max)(matches), wrapped
        return None

    def first(self, time_ns: int, lane: LaneKey) -> tuple[Match, bool] | None:
        """The first match at a time or later, the place's own lane or another."""
        if self.of_lanes:
            lane_number = max(self._place_of(lane), 0)
            return (Match(time_ns, lane_number, -1), False) if self.found else None
        return self.next(time_ns, LaneKey(), 1)

    def ordinal(self, match: Match) -> int:
        """Which match it is, from 1."""
        if self.of_lanes:
            return match.lane + 1
        before = 0
        for index, lane_matches in enumerate(self.found):
            start = lane_matches.lane.spans.start
            if index == match.lane:
                before += lane_matches.until(match.span)
            elif index < match.lane:
                before += lane_matches.until(bisect_right(start, match.time_ns))
            else:
                before += lane_matches.until(bisect_left(start, match.time_ns))
        return before + 1

    def _place_of(self, lane: LaneKey) -> int:
        return next(
            (index for index, lane_matches in enumerate(self.found) if lane_matches.lane.key == lane), -1
        )

    @staticmethod
    def _beside(
        lane_matches: LaneMatches, time_ns: int, lanes_down: int, direction: int, wrapped: bool
    ) -> int:
        """The next or previous match in a lane that is so many below that of the place."""
        if direction > 0:
            return lane_matches.first_from(time_ns, after=lanes_down <= 0 or wrapped)
        return lane_matches.last_before(time_ns, including=lanes_down < 0 or wrapped)
