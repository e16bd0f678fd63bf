"""Why a rank ran nothing: what its host did in the gaps that a profiler's trace describes, and the words."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from simcore.diagnostics import printable_within
from simcore.kernel_names import short_name
from simcore.measured.columns import ANNOTATED, HOST_CALLS, RankTrace
from simcore.measured.lanes import host_lane
from simcore.records import NamedTuple
from simcore.units import duration

# A share of the step below which a gap is not worth a sentence.
_LEAST = 0.01
# Calls in which the host waits for its device, or for a copy that it makes itself.
_WAITS = re.compile(r"\w*Synchronize|(?:cuda|hip|cu)Memcpy(?!\w*Async)\w*|aten::(?:item|_local_scalar_dense)")
_NAME_CELLS, _THREAD_CELLS = 48, 20
# Why a rank ran nothing: its host was in a call, was in no single call, or had launched the next kernel.
CALL, NO_CALL, QUEUED = "call", "no single call", "queued"


class HostGap(NamedTuple):
    """A time in which a device runs nothing; a row of `GapColumns`, times in ns."""

    start: int
    end: int
    launched: int
    """When the call that launched the next kernel was over."""
    thread: str
    """The thread of the host that made that launch."""
    name: str | None
    """The call that covers most of the gap; None where there is none."""
    kind: str
    """What `name` is, one of HOST_CALLS."""
    begin: int
    """When that call begins."""
    over: int
    """When that call ends."""
    around: str | None
    """The name of the call that `name` was called in; None where there is none."""

    @property
    def ns(self) -> int:
        """The length of the gap."""
        return self.end - self.start

    @property
    def queued_ns(self) -> int:
        """How long in the gap the next kernel was launched already."""
        return max(0, self.end - max(self.start, self.launched))

    @property
    def cause(self) -> str:
        """CALL, NO_CALL or QUEUED."""
        if self.name is not None:
            return CALL
        return QUEUED if 2 * self.queued_ns > self.ns else NO_CALL

    @property
    def covered_ns(self) -> int:
        """How long the host is in the named call before the next kernel is launched."""
        if self.name is None:
            return 0
        return min(self.over, self.end, self.launched) - max(self.begin, self.start)


def gaps_of(rank: RankTrace) -> list[HostGap]:
    """Returns the gaps that the trace of a rank describes, as measured, by start."""
    if rank.device is None:
        return []
    gaps = rank.device.gaps
    kinds = [HOST_CALLS[kind] for kind in gaps.kind]
    columns = (gaps.start, gaps.end, gaps.launched, gaps.thread, gaps.name, kinds, gaps.begin, gaps.over,
               gaps.around)  # fmt: skip
    return [HostGap(*row) for row in zip(*columns, strict=True)]


def gap_in(gaps: Sequence[HostGap], start: int, end: int) -> HostGap | None:
    """Returns the longest gap of a rank in a span of its time; None where no gap is half as long as the span.
    gaps: by start.
    """
    first = bisect_left(gaps, start, key=lambda gap: gap.start)
    last = bisect_right(gaps, end, key=lambda gap: gap.end)
    longest = max(gaps[first:last], key=lambda gap: gap.ns, default=None)
    return longest if longest is not None and 2 * longest.ns >= end - start else None


def call_lane(rank: RankTrace, gap: HostGap) -> str | None:
    """Returns the lane of the host that shows the call of a gap; None where no lane does."""
    host = None if rank.device is None else rank.device.host
    if host is None:
        return None
    lane = host.lane.columns
    columns = zip(lane.start, lane.end, lane.name, lane.thread, strict=True)
    call = gap.begin, gap.over, gap.name
    lanes = (
        host_lane(host, thread) for *row, thread in columns if thread != ANNOTATED and tuple(row) == call
    )
    return next(lanes, None)


def long_gaps(by_rank: Sequence[Sequence[HostGap]], step_ns: int) -> list[tuple[int, HostGap]]:
    """Returns (index of the rank, gap) of the gaps worth a sentence. by_rank: the gaps of each rank."""
    least = max(1, step_ns * _LEAST)
    return [(rank, gap) for rank, gaps in enumerate(by_rank) for gap in gaps if gap.ns >= least]


def gap_values(gap: HostGap) -> dict[str, Any]:
    """Returns a gap as the JSON of a report has it."""
    is_call = gap.cause == CALL
    return {
        "start_ns": gap.start,
        "end_ns": gap.end,
        "cause": gap.cause,
        "thread": gap.thread,
        "launched_ns": gap.launched,
        "call": gap.name,
        "kind": gap.kind if is_call else None,
        "call_start_ns": gap.begin if is_call else None,
        "call_end_ns": gap.over if is_call else None,
        "covered_ns": gap.covered_ns,
        "called_in": gap.around,
    }


def call_words(gap: HostGap) -> str:
    """Returns what the host does in the call of a gap: `waits in cudaStreamSynchronize (in aten::item)`."""
    return f"{_verb(gap)} in {called_words(gap)}"


def called_words(gap: HostGap) -> str:
    """Returns the call of a gap: `cudaStreamSynchronize (in aten::item)`."""
    around = "" if gap.around is None else f" (in {short_name(gap.around, _NAME_CELLS)})"
    return f"{short_name(gap.name or '', _NAME_CELLS)}{around}"


def _verb(gap: HostGap) -> str:
    return "waits" if _WAITS.fullmatch(gap.name or "") else "is"


def thread_words(gap: HostGap) -> str:
    """Returns the thread that launches next: `host thread 5000`."""
    return f"host thread {printable_within(gap.thread, _THREAD_CELLS)}"


def was_queued(rank: RankTrace, before: int, after: int) -> bool | None:
    """Returns whether the call that launched an operation was over for more than half of the gap between it
    and the one before; None where the trace does not say.
    """
    host = rank.device.host if rank.device is not None else None
    if host is None or host.launcher[after] < 0:
        return None
    return _is_over(host.launched[after], rank.ops.end[before], rank.ops.start[after])


def _is_over(launched: int, start: int, end: int) -> bool:
    """Returns whether a call that ended at `launched` was over for more than half of a gap."""
    return 2 * (end - max(launched, start)) > end - start


class GapSums(NamedTuple):
    """The gaps between the operations of devices, by whether what ends them was queued in time."""

    queued: int
    """How many gaps end with an operation that was queued already."""
    queued_ns: int
    late: int
    """How many end with one that the host launched late."""
    late_ns: int


def sum_gaps(ranks: Sequence[RankTrace]) -> GapSums | None:
    """Returns the sums over all gaps in which a device runs nothing; None where a trace does not say when
    what ends them was launched.
    """
    queued = queued_ns = late = late_ns = 0
    for rank in ranks:
        host = rank.device.host if rank.device is not None else None
        if host is None:
            return None
        starts, launched, launcher = rank.ops.start, host.launched, host.launcher
        for op, (reached, start) in enumerate(
            zip(accumulate(rank.ops.end, max), starts[1:], strict=False), 1
        ):
            if start <= reached:
                continue
            if launcher[op] < 0:
                return None
            # As `_is_over`, without a call for each operation.
            if 2 * (start - max(launched[op], reached)) > start - reached:
                queued, queued_ns = queued + 1, queued_ns + start - reached
            else:
                late, late_ns = late + 1, late_ns + start - reached
    return GapSums(queued, queued_ns, late, late_ns)


def gap_words(gap: HostGap) -> str:
    """Returns why a rank runs nothing in a gap: `its host is in cudaLaunchKernel for 19.990 ms of it`."""
    if gap.cause == CALL:
        return f"its host {call_words(gap)} for {part_words(gap.covered_ns, gap.ns)} of it"
    if gap.cause == QUEUED:
        return f"what comes next was queued already for {part_words(gap.queued_ns, gap.ns)} of it"
    return f"{no_call_words(gap)} of it"


def host_words(gap: HostGap) -> str:
    """Returns what the host did, short: `is in cudaLaunchKernel`; "" without a call."""
    return "" if gap.name is None else f"{_verb(gap)} in {short_name(gap.name, _NAME_CELLS)}"


def no_call_words(gap: HostGap) -> str:
    """Returns `no single call of host thread 5000, which launches next, covers a third`."""
    return f"no single call of {thread_words(gap)}, which launches next, covers a third"


def part_words(ns: int, whole: int) -> str:
    """Returns a part of a time: `19.990 ms`, or `all`."""
    return "all" if ns == whole else duration(ns)


class GapCause(NamedTuple):
    """Gaps that have one cause. gaps: by the index of the rank, in order."""

    gaps: dict[int, list[HostGap]]

    @property
    def first(self) -> HostGap:
        """One of the gaps, which says what the cause is."""
        return next(self.all_gaps())

    def all_gaps(self) -> Iterator[HostGap]:
        """Yields all gaps, rank by rank."""
        for some in self.gaps.values():
            yield from some

    @property
    def most_ns(self) -> int:
        """The total of the rank whose gaps are longest together."""
        return max(total_ns(some) for some in self.gaps.values())


def total_ns(gaps: Iterable[HostGap]) -> int:
    """Returns the sum of the lengths of gaps."""
    return sum(gap.ns for gap in gaps)


def find_gap_causes(by_rank: Sequence[Sequence[HostGap]], step_ns: int) -> list[GapCause]:
    """Returns the gaps that are worth a sentence by their cause, that with the longest total on one rank
    first. by_rank: the gaps of each rank.
    """
    by_cause: dict[tuple[str, str | None, str | None], dict[int, list[HostGap]]] = {}
    for rank_index, gap in long_gaps(by_rank, step_ns):
        by_cause.setdefault(cause_of(gap), {}).setdefault(rank_index, []).append(gap)
    causes = [GapCause(gaps) for gaps in by_cause.values()]
    return sorted(causes, key=lambda one: -one.most_ns)


def cause_of(gap: HostGap) -> tuple[str, str | None, str | None]:
    """Returns what gaps with one cause share: names as displayed, without addresses of objects."""
    name, around = (
        None if text is None else short_name(text, _NAME_CELLS) for text in (gap.name, gap.around)
    )
    return gap.cause, name, around
