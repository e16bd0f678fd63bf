"""Clocks of different hosts, brought together by what their ranks did together.

`perf_counter` counts from each host's own start. Ranks whose matching communication ends at the same
time are on one clock; between two clocks the offset is the median of the differences of those ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median_low

from simcore.measured.columns import RankTrace
from simcore.measured.matching import Call, Matches, match, times_of
from simcore.measured.names import Degrees
from simcore.measured.places import MODEL_PARALLEL

# Ends of one communication lie up to 7 ms apart in real runs on one clock; a smaller offset is no finding.
_ONE_CLOCK_NS = 10_000_000
# What a receive may be over before its send begins, or a member gone before the last has come.
_SLACK_NS = 1_000_000
# One communication alone fits any offset.
_LEAST_MATCHED = 2


@dataclass(frozen=True, slots=True)
class Clock:
    """Ranks of one clock. members: indices of ranks. shift_ns: to add to their times. matched: how many
    communications it is the median of, 0 of the clock that the others are brought to.
    """

    members: tuple[int, ...]
    shift_ns: int
    matched: int


def common_clock(ranks: Sequence[RankTrace], degrees: Degrees, apart: bool) -> list[Clock]:
    """The clocks of these ranks, the first of them unshifted; one or none where there is nothing to do.

    apart: whether there is a time at which no rank runs. Nothing is shifted either if no offsets make the
    run possible: a receive that ends before its send begins then means that the ranks did not run together.
    """
    matches = match(ranks, degrees, on_one_clock=False)
    differences = _differences(ranks, matches)
    if not apart and _is_possible(ranks, matches, [0] * len(ranks)):
        return []
    clocks = _clocks(len(ranks), differences)
    found = _shifts(clocks, differences)
    if len(found) < len(clocks) or len(clocks) < 2:
        return []
    shifts = [0] * len(ranks)
    for clock in found:
        for member in clock.members:
            shifts[member] = clock.shift_ns
    return found if _is_possible(ranks, matches, shifts) else []


def _bound(ranks: Sequence[RankTrace], matches: Matches) -> Iterator[tuple[Call, ...]]:
    """The calls of each collective that ends for all of its members at once."""
    for meeting in matches.meetings:
        first = meeting.calls[0]
        collective = ranks[first.rank].subs.collective[first.sub] if first.sub >= 0 else None
        # The root of a broadcast does not wait for the others.
        if meeting.kind != MODEL_PARALLEL and not meeting.is_async and collective != "broadcast":
            yield meeting.calls


_Differences = dict[tuple[int, int], list[int]]


def _differences(ranks: Sequence[RankTrace], matches: Matches) -> _Differences:
    """(rank, rank) -> how much later the second one's clock shows the end of what both did, ns."""
    found: _Differences = {}

    def add(one: Call, other: Call) -> None:
        if one.rank > other.rank:
            one, other = other, one
        ends = (times_of(ranks[one.rank], one)[1], times_of(ranks[other.rank], other)[1])
        found.setdefault((one.rank, other.rank), []).append(ends[1] - ends[0])

    for message in matches.messages:
        add(message.send, message.receive)
    for calls in _bound(ranks, matches):
        for call in calls[1:]:
            add(calls[0], call)
    return found


def _is_possible(ranks: Sequence[RankTrace], matches: Matches, shifts: Sequence[int]) -> bool:
    """Whether nothing ends before what it needs begins."""

    def span(call: Call) -> tuple[int, int]:
        start, end = times_of(ranks[call.rank], call)
        return start + shifts[call.rank], end + shifts[call.rank]

    for message in matches.messages:
        if span(message.receive)[1] < span(message.send)[0] - _SLACK_NS:
            return False
    for calls in _bound(ranks, matches):
        spans = [span(call) for call in calls]
        if min(end for _, end in spans) < max(start for start, _ in spans) - _SLACK_NS:
            return False
    return True


def _clocks(count: int, differences: _Differences) -> list[tuple[int, ...]]:
    """Ranks whose common ends are equal, together; clocks and ranks ascending."""
    root = list(range(count))

    def find(rank: int) -> int:
        while root[rank] != rank:
            rank = root[rank]
        return rank

    for (one, other), ns in differences.items():
        if abs(median_low(ns)) <= _ONE_CLOCK_NS:
            first, second = sorted((find(one), find(other)))
            root[second] = first
    clocks: dict[int, list[int]] = {}
    for rank in range(count):
        clocks.setdefault(find(rank), []).append(rank)
    return [tuple(members) for members in clocks.values()]


def _shifts(clocks: list[tuple[int, ...]], differences: _Differences) -> list[Clock]:
    """The clocks that can be brought to the first one, by the most matched communications first."""
    clock_of = {rank: number for number, members in enumerate(clocks) for rank in members}
    between: _Differences = {}
    for (one, other), ns in differences.items():
        first, second = clock_of[one], clock_of[other]
        if first != second:
            between.setdefault((first, second), []).extend(ns)
            between.setdefault((second, first), []).extend(-value for value in ns)
    found = {0: Clock(clocks[0], 0, 0)}
    while True:
        edges = [(len(ns), -one, -other) for (one, other), ns in between.items()
                 if one in found and other not in found and len(ns) >= _LEAST_MATCHED]  # fmt: skip
        if not edges:
            return list(found.values())
        matched, one, other = max(edges)
        shift = found[-one].shift_ns - median_low(between[-one, -other])
        found[-other] = Clock(clocks[-other], shift, matched)
