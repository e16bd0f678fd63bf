"""How long each operation of a rank waits, for whom, and what that rank was doing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

from simcore.cached_methods import cached_on
from simcore.measured.lanes import timed_ops
from simcore.measured.vocabulary import RECEIVES
from simcore.records import Struct
from simcore.replay.late import LateArrival, waits_of
from simcore.replay.segment_names import segment_name
from simcore.sources.segments import GAP, TRANSFER

if TYPE_CHECKING:
    from simcore.replay.replayed_run import ReplayedRun


class Wait(Struct, frozen=True):
    """Time that an operation waits for one rank."""

    late: int
    """Index of the rank that it waits for."""
    name: str
    """The operation or sub-operation that waits."""
    sends: bool
    """Whether the late rank sends what is received there; else it arrives last at a collective."""
    after: str
    """What the late rank did before, "" where that is not known."""
    ns: int
    """The total."""
    times: int
    """How often it waits."""


def waits_by_item(results: ReplayedRun, rank: int) -> dict[int, list[Wait]]:
    """Returns the waits of a rank (its index) by item of its lanes (`LaneSpans`), the longest first; those of
    an operation include those of its sub-operations.

    They sum to the accounts `wait` and `bubble` of the rank. Found once.
    """
    return cached_on(results, f"waits of rank {rank}", lambda: _find_waits(results, rank))


def _find_waits(results: ReplayedRun, rank: int) -> dict[int, list[Wait]]:
    segments = results.rendezvous.segments[rank]
    count = len(results.measured.ranks[rank].ops)
    sums_of: dict[int, dict[tuple[int, str, bool, str], list[int]]] = {}
    for wait in waits_of(results.last_arrivals, rank, results.accounts[rank]):
        key = _key(results, rank, wait)
        sub = segments.sub[wait.segment]
        for item in (segments.op[wait.segment], *([count + sub] if sub >= 0 else [])):
            sums = sums_of.setdefault(item, {}).setdefault(key, [0, 0])
            sums[0] += wait.ns
            sums[1] += 1
    return {
        item: sorted((Wait(*key, *sums) for key, sums in waits.items()), key=lambda wait: -wait.ns)
        for item, waits in sums_of.items()
    }


def waited_ns(results: ReplayedRun, rank: int) -> dict[int, int]:
    """Returns how long each operation of a rank (its index) waits, ns, by its item; those that do not are
    left out.

    A receive without a known send counts entirely: its wait is not known.
    """
    trace, waits = results.run.ranks[rank], waits_by_item(results, rank)
    ops, segments = trace.ops, results.rendezvous.segments[rank]
    ns_of = {item: sum(wait.ns for wait in some) for item, some in waits.items() if item < len(ops)}
    waiting_ops = {op for segment, op in enumerate(segments.op) if results.graph.can_wait(rank, segment)}
    for start, end, op, _ in timed_ops(trace):
        if ops.name[op] in RECEIVES and end > start and op not in waiting_ops:
            ns_of[op] = end - start
    return ns_of


def _key(results: ReplayedRun, rank: int, wait: LateArrival) -> tuple[int, str, bool, str]:
    """Returns who is late, where it is waited for, whether it sends, and what it did before."""
    segments, before = results.rendezvous.segments[wait.rank], wait.late_segment - 1
    # A gap does not say what took so long.
    while before >= 0 and segments.kind[before] == GAP:
        before -= 1
    after = segment_name(results, wait.rank, before) if before >= 0 else ""
    sends = results.rendezvous.segments[rank].kind[wait.segment] == TRANSFER
    return wait.rank, segment_name(results, rank, wait.segment), sends, after


# With more waits no chain is looked for: each of them is followed through those of other ranks.
_MOST_WAITS = 20_000


def wait_stretches(results: ReplayedRun) -> list[list[LateArrival]]:
    """Returns the waits of each rank, in order; an empty list if there are more than `_MOST_WAITS`."""
    waits = [[*results.waits_of(rank)] for rank in results.all_ranks]
    return waits if sum(map(len, waits)) <= _MOST_WAITS else []


def clip_waits(waits: list[LateArrival], start: int, end: int) -> Iterator[LateArrival]:
    """Yields the waits of a rank from start to end, ns, clipped to that time."""
    at = max(bisect_right(waits, start, key=lambda wait: wait.start) - 1, 0)
    while at < len(waits) and waits[at].start < end:
        wait = waits[at]
        begin, until = max(wait.start, start), min(wait.end, end)
        if begin < until:
            yield wait._replace(start=begin, end=until)
        at += 1


def longest_wait(results: ReplayedRun, early: int, name: str) -> tuple[int, int] | None:
    """Returns (start, end) of the longest time that a rank (its index) waits in an operation of this name."""
    waits_of_name = (
        wait for wait in results.waits_of(early) if segment_name(results, early, wait.segment) == name
    )
    longest = max(waits_of_name, key=lambda wait: wait.ns, default=None)
    return None if longest is None else (longest.start, longest.end)


def late_waits_itself(
    results: ReplayedRun, stretches: list[list[LateArrival]], early: int, late: int, name: str
) -> dict[tuple[int, str], int]:
    """Returns (rank, name) -> ns: for whom and in what a late rank waits itself while `early` waits for it in
    the operation or sub-operation `name`. Ranks are indices; stretches: of `wait_stretches`.
    """
    ns_of: dict[tuple[int, str], int] = {}
    for wait in stretches[early]:
        if wait.rank != late or segment_name(results, early, wait.segment) != name:
            continue
        for own in clip_waits(stretches[late], wait.start, wait.end):
            key = (own.rank, segment_name(results, late, own.segment))
            ns_of[key] = ns_of.get(key, 0) + own.ns
    return ns_of
