"""The accounts of a trace: every nanosecond of a track, from 0 to the end of the step, is in exactly one.

What runs has its own category. While a track waits [start, ready) for a span that has yet to begin, the time
is `bubble` if that span is a transfer of a pipeline; else it counts for what runs meanwhile on the lane of
the awaited span, the first issued of several; else it is `wait`. From `ready` on the time has the category of
the awaited span.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, compress, pairwise
from operator import and_, eq, ge, le, lt

from simcore.diagnostics import Cancelled, never_cancelled
from simcore.records import NamedTuple
from simcore.trace.accounts import Accounts
from simcore.trace.spans import (
    BUBBLES,
    LAUNCHED,
    LEVELS,
    NEVER,
    NONE,
    OVERLAP_WAITS,
    OVERLAPS,
    SEND_WAITS,
    SENDS,
    WAITS,
    Repeat,
    Trace,
    wait_code,
)
from simcore.units import add_to_column, differences

# Booking fewer spans than this one by one takes less time.
_STRETCH = 8
_NO_TIME = bytes(8)
# So many spans are no stretch that comes again.
_LONG = 2**14
# The level at which a span of a level waits, where that is not the level of all waits.
_WAITING = {SENDS: SEND_WAITS, OVERLAPS: OVERLAP_WAITS, LAUNCHED: LAUNCHED}


def accounts_of(trace: Trace, cancelled: Callable[[], bool] = never_cancelled) -> list[Accounts]:
    """Returns the accounts of each track. Raises `Cancelled`.

    A segment's op is a span of the track, its `wait_code` where it waits for another track, NONE where idle.
    """
    cache: _Cache = {}, {}

    def of_track(track: int) -> Accounts:
        if cancelled():
            raise Cancelled
        return _walk(trace, track, cache)

    return trace.map_tracks(of_track)


def track_accounts(trace: Trace, track: int) -> Accounts:
    """Returns the accounts of one track alone."""
    return _walk(trace, track, ({}, {}))


def _walk(trace: Trace, track: int, cache: _Cache) -> Accounts:
    return (_Swept if trace.overlaps else _Line)(trace, track, cache).accounts


class _Booked(NamedTuple):
    """What was booked of a repeat, relative to its begin and to its first span."""

    edge: array[int]
    """When each segment begins, ns from the begin of the repeat."""
    account: bytes
    """The account of each segment."""
    op: array[int]
    """The code of each segment, counted from the first span of the repeat."""
    sums: list[tuple[int, int]]
    """(account, ns) of each account that has any time."""
    over: int
    """When the repeat is over, ns from its begin."""


# The sums of stretches by their content, and what was booked of repeats by their content.
_Cache = tuple[dict[tuple[bytes, bytes], list[tuple[int, int]]], dict[object, _Booked]]


class _Walk(ABC):
    """Books the accounts of one track."""

    def __init__(self, trace: Trace, track: int, cache: _Cache) -> None:
        self.spans, self.waits, self.step_ns = trace.spans[track], trace.waits[track], trace.step_ns
        self.track = track
        names = trace.categories
        self.idle, self.bubble = names.all.index("idle"), names.all.index("bubble")
        self.wait, self.bubbles = names.first_other, trace.bubbles
        self.idle_before_input = trace.idle_before_input
        self.accounts = Accounts(names)
        self.sums, self.booked = cache
        self.lanes: dict[int, tuple[list[int], list[int], list[int]]] = {}
        self.lengths = differences(self.spans.end, self.spans.ready).tobytes()
        self.walk()
        self.accounts.edge.append(trace.step_ns)

    @abstractmethod
    def walk(self) -> None:
        """Books the whole step."""

    def book_span(self, now: int, times: tuple[int, int, int], category: int, code: int, span: int) -> int:
        """Books a span that holds the track; returns when it is over, ns.

        times: (start, ready, end). span: the span of the track that runs or is waited for.
        """
        start, ready, end = times
        book = self.accounts.book
        if start > now:
            book(now, start, self.idle, NONE)
            now = start
        if ready > now:
            if category == self.bubbles and self.idle_before_input and not now:
                book(now, ready, self.idle, NONE)
            elif category == self.bubbles:
                book(now, ready, self.bubble, code)
            else:
                self.book_waiting(now, ready, code, span)
            now = ready
        if end > now:
            book(now, end, category, code)
            now = end
        return now

    def book_waiting(self, start: int, ready: int, code: int, span: int) -> None:
        """Books start..ready, in which the track waits for one of its own spans."""
        spans = self.spans
        running = self.find_running(spans.lane[span], start, ready, span) if spans.lane else []
        if not running:
            self.accounts.book(start, ready, self.wait, code)
            return
        edges = {start, ready}
        for other in running:
            edges.update((max(spans.ready[other], start), min(spans.end[other], ready)))
        for first, last in pairwise(sorted(edges)):
            here = [other for other in running if spans.ready[other] <= first and spans.end[other] >= last]
            issued = min(here) if here else NONE
            account, of = (spans.category[issued], issued) if here else (self.wait, code)
            self.accounts.book(first, last, account, of)

    def find_running(self, lane: int, start: int, ready: int, span: int) -> list[int]:
        """Returns the other spans of a lane that run between two times."""
        spans = self.spans
        if lane not in self.lanes:
            span_ids = sorted(
                (at for at, of in enumerate(spans.lane) if of == lane), key=spans.ready.__getitem__
            )
            reached = list(accumulate((spans.end[at] for at in span_ids), max))
            self.lanes[lane] = span_ids, [spans.ready[at] for at in span_ids], reached
        span_ids, begins, reached = self.lanes[lane]
        at = bisect_left(begins, ready)
        running = []
        while at and reached[at - 1] > start:
            at -= 1
            if spans.end[span_ids[at]] > start and span_ids[at] != span:
                running.append(span_ids[at])
        return running

    def book_stretch(self, now: int, first: int, last: int) -> bool:
        """Books spans at once; returns False where one waits, leaves a gap, or takes no time."""
        ready, end = self.spans.ready, self.spans.end
        if ready[first] != now:
            return False
        if last - first < _LONG:
            follow = ready[first + 1 : last] == end[first : last - 1]
        else:
            # No parts are copied.
            follow = memoryview(ready)[first + 1 : last] == memoryview(end)[first : last - 1]
        if not follow:
            return False
        lengths = self.lengths[8 * first : 8 * last]
        # Eight zero bytes may lie across two neighbours.
        if _NO_TIME in lengths and 0 in array("q", lengths):
            return False
        kinds = bytes(self.spans.category[first:last])
        sums = self.sums.get((kinds, lengths))
        if sums is None:
            sums = _sum_by_kind(kinds, array("q", lengths))
            if last - first < _LONG:
                self.sums[kinds, lengths] = sums
        accounts = self.accounts
        accounts.edge.extend(ready[first:last])
        accounts.account += kinds
        accounts.op.extend(range(first, last))
        for kind, ns in sums:
            accounts.total_ns[kind] += ns
        return True


def _sum_by_kind(kinds: bytes, lengths: array[int]) -> list[tuple[int, int]]:
    """Returns (kind, ns) of each kind."""
    if len(kinds) >= _LONG:
        # In a third of the time: most stretches of a device have two kinds.
        masks = ((kind, bytes(kind == other for other in range(256))) for kind in set(kinds))
        return [(kind, sum(compress(lengths, kinds.translate(mask)))) for kind, mask in masks]
    of = dict.fromkeys(kinds, 0)
    for kind, ns in zip(kinds, lengths, strict=True):
        of[kind] += ns
    return [*of.items()]


class _Line(_Walk):
    """A track that does one thing after another, booked by stretches."""

    def walk(self) -> None:
        """Books repeats and what lies between them."""
        spans, waits = self.spans, self.waits
        now = at = wait = 0
        for repeat in spans.repeats:
            now = self.book_until_wait(now, at, repeat.first, wait, repeat.first_wait)
            now = self.book_repeat(now, repeat)
            at, wait = repeat.last, repeat.last_wait
        now = self.book_until_wait(now, at, len(spans), wait, len(waits))
        # A step of 0 ns has a segment too, so that every time of it is in one.
        if now < self.step_ns or not self.accounts.edge:
            self.accounts.book(now, self.step_ns, self.idle, NONE)

    def book_until_wait(self, now: int, first: int, last: int, first_wait: int, last_wait: int) -> int:
        """Books spans first..last - 1 and the waits before them."""
        waits, at = self.waits, first
        for wait in range(first_wait, last_wait):
            before = waits.before[wait]
            if before > at:
                now = self.book_issued(now, at, before)
                at = before
            times = waits.start[wait], waits.ready[wait], waits.end[wait]
            if times[2] > now:
                of, span = waits.of[wait], waits.span[wait]
                code = span if of in (self.track, NONE) else wait_code(wait)
                now = self.book_span(now, times, waits.category[wait], code, span)
        return self.book_issued(now, at, last)

    def book_repeat(self, now: int, repeat: Repeat) -> int:
        """Books a repeat, as a copy of an earlier one of its pattern that ran with the same times."""
        spans, accounts = self.spans, self.accounts
        own = slice(repeat.first, repeat.last)
        before = [spans.lane.rfind(lane, 0, first) for lane, first in repeat.lanes]
        key = None
        if all(span < 0 or spans.end[span] <= now for span in before):
            # Nothing issued before the repeat still runs: its own times decide everything.
            lengths = self.lengths[8 * repeat.first : 8 * repeat.last]
            begins = add_to_column(spans.ready[own], -now).tobytes()
            key = repeat.pattern, bytes(spans.category[own]), begins, lengths
        booked = self.booked.get(key)
        if booked is not None:
            accounts.edge += add_to_column(booked.edge, now)
            accounts.account += booked.account
            accounts.op += add_to_column(booked.op, repeat.first)
            for kind, ns in booked.sums:
                accounts.total_ns[kind] += ns
            return now + booked.over
        first, start, sums = len(accounts.edge), now, [*accounts.total_ns]
        now = self.book_until_wait(now, repeat.first, repeat.last, repeat.first_wait, repeat.last_wait)
        if key is not None:
            more = [after - ns for ns, after in zip(sums, accounts.total_ns, strict=True)]
            self.booked[key] = _Booked(
                add_to_column(accounts.edge[first:], -start),
                bytes(accounts.account[first:]),
                add_to_column(accounts.op[first:], -repeat.first),
                [(kind, ns) for kind, ns in enumerate(more) if ns],
                now - start,
            )
        return now

    def book_issued(self, now: int, first: int, last: int) -> int:
        """Books spans first..last - 1, which wait for nothing between them."""
        level = self.spans.level
        while first < last:
            other = level.find(NEVER, first, last)
            over = last if other < 0 else other
            if over - first >= _STRETCH and self.book_stretch(now, first, over):
                now = self.spans.end[over - 1]
            else:
                now = self.book_each(now, first, over)
            first = over + 1
        return now

    def book_each(self, now: int, first: int, last: int) -> int:
        """Books spans first..last - 1, which hold the track, one by one."""
        spans, accounts = self.spans, self.accounts
        ready, end, category = spans.ready, spans.end, spans.category
        edge, account, op, total = accounts.edge, accounts.account, accounts.op, accounts.total_ns
        for at in range(first, last):
            if ready[at] > now:
                now = self.book_span(now, (spans.start[at], ready[at], end[at]), category[at], at, at)
            elif (over := end[at]) > now:
                kind = category[at]
                edge.append(now)
                account.append(kind)
                op.append(at)
                total[kind] += over - now
                now = over
        return now


# A table for `translate`: 1 for levels that count for accounts.
_COUNTS = bytes(level != NEVER for level in range(256))
# (span, account) -> when it began, ns.
_Running = dict[tuple[int, int], int]


class _Swept(_Walk):
    """A track on which several spans may run at once: the lowest level counts."""

    def walk(self) -> None:
        """Books by islands: spans that overlap are swept, a span that stands alone is booked as on a line."""
        if self.book_line():
            return
        indices, starts, ends = self.sort_by_start()
        # An island begins where all spans before it are over.
        begins = compress(range(1, len(indices)), map(ge, starts[1:], accumulate(ends, max)))
        edges = array("i", (0, *begins, len(indices)))
        alone = bytes(map(eq, edges[1:], map((1).__add__, edges)))
        now = at = 0
        while at < len(alone):
            until = alone.find(0, at)
            until = len(alone) if until < 0 else until
            if until - at >= _STRETCH:
                now = self.book_disjoint(now, indices[edges[at] : edges[until]])
                at = until
            else:
                now = self.book_island(now, indices[edges[at] : edges[at + 1]])
                at += 1
        self.book_until(now, self.step_ns, [])

    def book_line(self) -> bool:
        """Books all spans at once; returns False where any overlaps another, waits, or takes no time."""
        spans, count = self.spans, len(self.spans)
        is_line = count > 0 and NEVER not in spans.level and spans.end[-1] <= self.step_ns
        if not is_line or spans.start != spans.ready or not self.book_stretch(0, 0, count):
            return False
        self.book_until(spans.end[-1], self.step_ns, [])
        return True

    def sort_by_start(self) -> tuple[array[int], array[int], array[int]]:
        """Returns (indices, starts, ends) of the spans that take time and count, by their start."""
        spans = self.spans
        counts = bytes(map(and_, spans.level.translate(_COUNTS), map(lt, spans.start, spans.end)))
        indices = array("i", compress(range(len(spans)), counts))
        starts, ends = (array("q", compress(column, counts)) for column in (spans.start, spans.end))
        if all(map(le, starts, starts[1:])):
            return indices, starts, ends
        indices = array("i", sorted(indices, key=spans.start.__getitem__))
        starts, ends = (array("q", map(column.__getitem__, indices)) for column in (spans.start, spans.end))
        return indices, starts, ends

    def book_disjoint(self, now: int, spans: Sequence[int]) -> int:
        """Books spans that do not overlap each other."""
        first, last = spans[0], spans[-1] + 1
        over = self.spans.end[last - 1]
        if last - first == len(spans) and over <= self.step_ns and self.book_stretch(now, first, last):
            return over
        for at in spans:
            now = self.book_island(now, (at,))
        return now

    def book_island(self, now: int, island: Sequence[int]) -> int:
        """Books spans that begin when all before them are over."""
        spans = self.spans
        if len(island) == 1 and spans.end[island[0]] <= self.step_ns:
            at = island[0]
            times = spans.start[at], spans.ready[at], spans.end[at]
            return self.book_span(now, times, spans.category[at], at, at)
        running: list[_Running] = [{} for _ in range(LEVELS)]
        for time, begins, level, key in sorted(self.list_events(island)):
            now = self.book_until(now, min(time, self.step_ns), running)
            if begins:
                running[level][key] = time
            else:
                del running[level][key]
        return now

    def list_events(self, island: Sequence[int]) -> Iterator[tuple[int, int, int, tuple[int, int]]]:
        """Yields (time, whether something begins, level, (span, account)) for each span and its waiting."""
        spans = self.spans
        for at in island:
            start, ready, end = spans.start[at], spans.ready[at], spans.end[at]
            level, category = spans.level[at], spans.category[at]
            if ready > start:
                bubbles = category == self.bubbles
                waiting = _WAITING.get(level, BUBBLES if bubbles else WAITS)
                key = at, self.bubble if bubbles else self.wait
                yield start, 1, waiting, key
                yield ready, 0, waiting, key
            if end > ready:
                key = at, category
                yield ready, 1, level, key
                yield end, 0, level, key

    def book_until(self, now: int, time: int, running: Sequence[_Running]) -> int:
        """Books now..time for the span that counts of all that run; returns when that is over, ns."""
        if time <= now:
            return now
        code, account = NONE, self.idle
        for level_id, spans in enumerate(running):
            if spans:
                code, account = self._find_counting_span(level_id, spans)
                break
        of = self.accounts
        if of.account and of.account[-1] == account and of.op[-1] == code:
            of.total_ns[account] += time - now
        else:
            of.book(now, time, account, code)
        return time

    def _find_counting_span(self, level_id: int, spans: _Running) -> tuple[int, int]:
        """Returns the (span, account) that counts among those that run at one level."""
        if len(spans) == 1:
            return next(iter(spans))
        if level_id == LAUNCHED:
            return min(spans, key=self._launch)
        # What began last counts.
        return min(spans, key=lambda key: (-spans[key], key))

    def _launch(self, key: tuple[int, int]) -> tuple[int, int, int, int]:
        spans, at = self.spans, key[0]
        return spans.start[at], spans.ready[at], spans.end[at], at
