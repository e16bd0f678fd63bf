"""Why a device ran nothing: what the thread of the host that launched next was doing meanwhile.

A gap is a time in which no stream of a device runs anything. The next operation ends it, so the calls of the
thread that launched that one count, up to the end of the launching call: the deepest of those that cover at
least a third of the gap.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, compress
from typing import Any

from simcore.kineto.host import Ranges, Threads
from simcore.kineto.values import MOST_US
from simcore.kineto.vocabulary import MODULE
from simcore.measured.columns import CALLS, HOST_CALLS, GapColumns, LaneColumns
from simcore.records import NamedTuple

# From this share of a step on a gap matters; the least length is the time in which a host launches one
# operation (a median of 42 to 45 us in real traces).
SHARE = 0.01
LEAST_NS = 30_000
# A call counts where it covers at least one third of a gap.
PART = 3
# Shorter calls cover no such part: 60 % of the functions of Python, and 83 % of the calls of the runtime.
LEAST_CALL_NS = LEAST_NS / PART
# A caller is named with the call where so much of its time is in the gap: the caller that runs a step is no
# cause.
_OF_CALLER = 0.9
# In whole us, as old files have them, a call may seem to end after its caller.
_ROUNDING_NS = 1000
_EVER = 1 << 63
_NEAR = 1 - 1e-6
PYTHON, ANNOTATION, OPERATION, RUNTIME, OVERHEAD = range(len(HOST_CALLS))

# Times as written -> ns.
Times = Callable[[list[Any]], list[int]]


class Call(NamedTuple):
    """What a thread did from start to -minus_end, ns: in sorted order a caller comes before its calls."""

    start: int
    minus_end: int
    kind: int
    """Index into HOST_CALLS."""
    event_index: int
    """Position in the file."""
    name: str

    @property
    def length(self) -> int:
        """Its length, ns."""
        return -self.minus_end - self.start

    def inside_ns(self, start: int, end: int) -> int:
        """Returns how long it is between two times."""
        return min(-self.minus_end, end) - max(self.start, start)

    def makes(self, other: Call) -> bool:
        """Returns whether a call behind it in sorted order lies in it."""
        return other.start < -self.minus_end and self.minus_end <= other.minus_end + _ROUNDING_NS


class HostCalls:
    """Calls of the host that may cover a part of a gap, as columns in the order of the file, times as
    written.

    thread: index into `threads`, which the reader of the file has. kind: of an array of such times.
    """

    def __init__(self, threads: dict[object, int], kind: str = "d") -> None:
        self.start: array[Any] = array(kind)
        self.length: array[Any] = array(kind)
        self.kind, self.thread, self.event_index = bytearray(), array("i"), array("i")
        self.name: list[str] = []
        self.threads = threads

    def add(self, kind: int, thread: object, start: Any, length: Any, event_index: int, name: str) -> None:
        """Adds a call."""
        thread_index = self.threads.setdefault(thread, len(self.threads))
        self.start.append(start)
        self.length.append(length)
        self.kind.append(kind)
        self.thread.append(thread_index)
        self.event_index.append(event_index)
        self.name.append(name)


class Launch(NamedTuple):
    """The call that launched an operation: when it ended, ns, and its thread."""

    over: int
    thread: object


class Gap(NamedTuple):
    """A time in which a device runs nothing, ns."""

    start: int
    end: int
    op: int
    """The operation that ends it."""


class HostActivity:
    """What the threads of a host did.

    operations, ranges: by thread, the latter annotations and modules; calls: of the runtime, of Python, and
    the profiler's own. is_step: whether a name is that of a step. ns: converts times as written to ns, of
    which `per_ns` make one; most: a time too long for any axis.
    """

    def __init__(
        self,
        operations: Threads,
        ranges: Threads,
        calls: HostCalls,
        is_step: Callable[[str], object],
        ns: Times,
        per_ns: float = 0.001,
        most: float = MOST_US,
    ) -> None:
        self.operations, self.ranges, self.calls = operations, ranges, calls
        self.is_step, self.ns, self.per_ns, self.most = is_step, ns, per_ns, most

    def calls_of(self, least_ns: Mapping[object, float]) -> dict[object, list[Call]]:
        """Returns the calls of each thread that last so long, in order, without steps. Those of the profiler
        itself on an unknown thread are under None.
        """
        calls_by_thread: dict[object, list[tuple[Any, Any, int, int, str]]] = {
            thread: [] for thread in least_ns
        }
        calls_by_thread[None] = []
        shortest = min(least_ns.values()) * self.per_ns
        for thread, least in least_ns.items():
            least_length = least * self.per_ns
            # Those close to the limit are compared again.
            threshold = least_length * _NEAR
            for kind, threads in ((OPERATION, self.operations), (ANNOTATION, self.ranges)):
                if thread in threads:
                    self._add(calls_by_thread[thread], kind, threads[thread], threshold)
        calls = self.calls
        thread_of = self._threads_by_index(least_ns)
        for row in [row for row, length in enumerate(calls.length) if length >= shortest]:
            thread_index, begin = calls.thread[row], calls.start[row]
            if thread_index in thread_of:
                call = (
                    begin,
                    begin + calls.length[row],
                    calls.kind[row],
                    calls.event_index[row],
                    calls.name[row],
                )
                calls_by_thread[thread_of[thread_index]].append(call)
        return {thread: self._in_order(some) for thread, some in calls_by_thread.items()}

    def _add(
        self, calls: list[tuple[Any, Any, int, int, str]], kind: int, ranges: Ranges, threshold: float
    ) -> None:
        for row in compress(range(len(ranges)), map(threshold.__le__, ranges.length)):
            name = ranges.name[row]
            # Calls of modules are calls of Python, too.
            if not self.is_step(name) and not (kind == ANNOTATION and name.startswith(MODULE)):
                begin = ranges.start[row]
                calls.append((begin, begin + ranges.length[row], kind, ranges.event_index[row], name))

    def _threads_by_index(self, requested: Mapping[object, float]) -> dict[int, object]:
        """Returns index among the threads of the calls -> the requested thread.

        The profiler's own time may be on a process of its own, with the id of the thread, or with an unknown
        one: None.
        """
        calls = self.calls
        thread_of = {
            thread_index: thread for thread, thread_index in calls.threads.items() if thread in requested
        }
        if OVERHEAD not in calls.kind:
            return thread_of
        overheads, others = set[int](), set[int]()
        for thread_index, kind in zip(calls.thread, calls.kind, strict=True):
            (overheads if kind == OVERHEAD else others).add(thread_index)
        by_number = {_thread_id(thread): thread for thread in requested}
        for thread, thread_index in calls.threads.items():
            is_known = (
                thread_index in thread_of
                or thread_index in others
                or thread in self.operations
                or thread in self.ranges
            )
            if thread_index in overheads and not is_known:
                thread_of[thread_index] = by_number.get(_thread_id(thread))
        return thread_of

    def _in_order(self, some: list[tuple[Any, Any, int, int, str]]) -> list[Call]:
        most = self.most
        some = [call for call in some if -most < call[0] and call[1] < most]
        starts, ends = self.ns([call[0] for call in some]), self.ns([call[1] for call in some])
        return sorted(
            Call(start, -end, *call[2:]) for start, end, call in zip(starts, ends, some, strict=True)
        )


def _thread_id(thread: object) -> object:
    """Returns the id of a thread without that of its process."""
    return thread[1] if isinstance(thread, tuple) else thread


def find_relevant_gaps(
    start: Sequence[int], end: Sequence[int], windows: Sequence[tuple[int, int]]
) -> list[Gap]:
    """Returns the gaps of a device that matter in a window, clipped to it, ascending.

    start, end: of its operations in order of start. Before the first one the device ran nothing, from however
    early.
    """
    least = [max(LEAST_NS, (last - first) * SHARE) for first, last in windows]
    shortest = int(min(least, default=0))
    idle, reached = [], -_EVER
    # `accumulate` with `max` takes three times as long.
    for op, (begin, over) in enumerate(zip(start, end, strict=True)):
        if begin - reached >= shortest:
            idle.append(Gap(reached, begin, op))
        if over > reached:
            reached = over
    starts, ends = [gap.start for gap in idle], [gap.end for gap in idle]
    relevant = set()
    for (first, last), least_of_it in zip(windows, least, strict=True):
        for gap in idle[bisect_right(ends, first) : bisect_left(starts, last)]:
            inside = Gap(max(gap.start, first), min(gap.end, last), gap.op)
            if inside.end - inside.start >= least_of_it:
                relevant.add(inside)
    return sorted(relevant)


def gap_columns(
    gaps: Sequence[Gap], launches: Mapping[int, Launch], host: HostActivity, words: Mapping[object, str]
) -> tuple[GapColumns, list[tuple[object, Call]]]:
    """Returns (why a device ran nothing; the calls that are named, with their threads).

    Gaps that end with an operation of which the file states no launch are left out. launches: by operation,
    of those that end gaps; words: of the threads.
    """
    columns, named_calls = GapColumns(), list[tuple[object, Call]]()
    thread_gaps = _ThreadGaps([gap for gap in gaps if gap.op in launches], launches)
    covering_calls = thread_gaps.find_covering_calls(host) if thread_gaps.gaps else []
    for gap, calls in zip(thread_gaps.gaps, covering_calls, strict=True):
        launch = launches[gap.op]
        call, around = _find_deepest(gap, min(gap.end, launch.over), calls)
        columns.start.append(gap.start)
        columns.end.append(gap.end)
        columns.launched.append(launch.over)
        columns.thread.append(words[launch.thread])
        columns.name.append(None if call is None else call.name)
        columns.kind.append(0 if call is None else call.kind)
        columns.begin.append(gap.start if call is None else call.start)
        columns.over.append(gap.start if call is None else -call.minus_end)
        columns.around.append(None if around is None else around.name)
        if call is not None:
            named_calls.append((launch.thread, call))
    return columns, named_calls


class _ThreadGaps:
    """Gaps in order, each of a thread."""

    def __init__(self, gaps: list[Gap], launches: Mapping[int, Launch]) -> None:
        self.gaps, self.launches = gaps, launches
        self.rows: dict[object, list[int]] = {}
        for row, gap in enumerate(gaps):
            if not _is_queued(gap, launches[gap.op]):
                self.rows.setdefault(launches[gap.op].thread, []).append(row)

    def find_covering_calls(self, host: HostActivity) -> list[list[Call]]:
        """Returns for each gap the calls of its thread that cover PART of it, in order; none where most of it
        comes after the launch.
        """
        by_gap: list[list[Call]] = [[] for _ in self.gaps]
        if not self.rows:
            return by_gap
        least = {
            thread: min(self.gaps[row].end - self.gaps[row].start for row in rows) / PART
            for thread, rows in self.rows.items()
        }
        calls = host.calls_of(least)
        for thread, rows in self.rows.items():
            self._add(by_gap, rows, calls[thread])
            loose: list[list[Call]] = [[] for _ in self.gaps]
            self._add(loose, rows, calls[None])
            if any(loose):
                begin_times = _BeginTimes(host, thread)
                for row in rows:
                    by_gap[row] += [call for call in loose[row] if not begin_times.is_inside(call)]
                    by_gap[row].sort()
        return by_gap

    def _add(self, by_gap: list[list[Call]], rows: list[int], calls: Iterable[Call]) -> None:
        """Adds each call to the gaps of which it covers PART."""
        starts = [self.gaps[row].start for row in rows]
        reached = list(accumulate((self.gaps[row].end for row in rows), max))
        for call in calls:
            for at in range(bisect_right(reached, call.start), bisect_left(starts, -call.minus_end)):
                gap = self.gaps[rows[at]]
                until = min(gap.end, self.launches[gap.op].over)
                if PART * call.inside_ns(gap.start, until) >= gap.end - gap.start:
                    by_gap[rows[at]].append(call)


class _BeginTimes:
    """When a thread began anything, ns ascending."""

    def __init__(self, host: HostActivity, thread: object) -> None:
        raw_times: list[Any] = [
            start
            for threads in (host.operations, host.ranges)
            if thread in threads
            for start in threads[thread].start
        ]
        thread_index = host.calls.threads.get(thread)
        raw_times += [
            start for start, by in zip(host.calls.start, host.calls.thread, strict=True) if by == thread_index
        ]
        self.times = sorted(host.ns([time for time in raw_times if -host.most < time < host.most]))

    def is_inside(self, call: Call) -> bool:
        """Returns whether something begins in a call of an unknown thread: then it is not of this one."""
        at = bisect_right(self.times, call.start + _ROUNDING_NS)
        return at < len(self.times) and self.times[at] < -call.minus_end - _ROUNDING_NS


def _is_queued(gap: Gap, launch: Launch) -> bool:
    """Returns whether the next operation was launched already for most of a gap."""
    return 2 * (gap.end - max(gap.start, launch.over)) > gap.end - gap.start


def _find_deepest(gap: Gap, until: int, calls: Sequence[Call]) -> tuple[Call | None, Call | None]:
    """Returns (the deepest call, of several the one that covers most of the gap; the outermost of its callers
    that has _OF_CALLER of its time in the gap, or in this call).

    calls: in order, those that cover PART of the gap.
    """
    leaves: list[int] = []
    for at, call in enumerate(calls):
        while leaves and calls[leaves[-1]].makes(call):
            leaves.pop()
        leaves.append(at)
    if not leaves:
        return None, None
    most = max(leaves, key=lambda at: calls[at].inside_ns(gap.start, until))
    deepest = calls[most]
    for caller in calls[:most]:
        inside = max(caller.inside_ns(gap.start, gap.end), deepest.length)
        if caller.makes(deepest) and inside >= _OF_CALLER * caller.length:
            return deepest, caller
    return deepest, None


def add_calls(
    lane: LaneColumns, named_calls: Iterable[tuple[object, Call]], thread_indices: Mapping[object, int]
) -> None:
    """Adds named calls to what the host did, each once.

    The outermost operations of a thread are there already, and annotations too, but among others that may
    hide them. thread_indices: of the threads.
    """
    named_calls = [*named_calls]
    # Few are named: a set of all takes more memory than the columns.
    keys = {
        (call.start, -call.minus_end, at, call.name)
        for thread, call in named_calls
        for at in (thread_indices[thread], CALLS - thread_indices[thread])
    }
    there = keys.intersection(zip(lane.start, lane.end, lane.thread, lane.name, strict=True))
    for thread, call in named_calls:
        thread_index = thread_indices[thread]
        times = call.start, -call.minus_end
        if not there.isdisjoint({(*times, at, call.name) for at in (thread_index, CALLS - thread_index)}):
            continue
        there.add((*times, CALLS - thread_index, call.name))
        lane.name.append(call.name)
        lane.start.append(times[0])
        lane.end.append(times[1])
        lane.thread.append(CALLS - thread_index)
        lane.line.append(call.event_index)
