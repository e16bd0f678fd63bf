"""Bandwidths of the collectives of a profiler trace whose bytes are known, as nccl-tests define them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from statistics import median_low

from simcore.measured.facts import no_bandwidth
from simcore.measured.matching import Call
from simcore.measured.vocabulary import buffer_bytes
from simcore.records import NamedTuple
from simcore.replay.replayed_run import ReplayedRun
from simcore.sources.rendezvous import NONE


class Bandwidth(NamedTuple):
    """Equal collectives: of one operation, group and size."""

    operation: str
    group: str | None
    """None if the trace states none."""
    ranks: int
    """How many ranks the group has."""
    bytes: int
    """Of the larger of the two buffers, as nccl-tests count."""
    times: int
    """How many collectives these are."""
    least_ns: int
    """The least time that one takes by itself, counted from the arrival of its last member."""
    middle_ns: int
    """The median of those times, the lower of two."""
    most_ns: int
    """The longest of those times."""
    waits_included: bool
    """Whether members are missing, so that the waiting in those times is not known."""
    factor: float
    """busbw over algbw."""
    members: tuple[int, ...] | None = None
    """The ranks of the first of these collectives, None where they are not known."""

    def algbw(self, ns: int) -> float:
        """Returns bytes over time, GB/s."""
        return self.bytes / ns if ns else 0.0

    def busbw(self, ns: int) -> float:
        """Returns what each link carries, GB/s."""
        return self.algbw(ns) * self.factor


class UnpricedCollectives(NamedTuple):
    """Collectives of one operation and group that have no bandwidth."""

    operation: str
    group: str | None
    times: int
    """How many these are."""
    reason: str
    """Why they have no bandwidth, in few words."""


def find_bandwidths(results: ReplayedRun) -> list[Bandwidth]:
    """Returns the bandwidths by operation, group and size, the most time in all first; none of runs that no
    profiler recorded.
    """
    ns_of: dict[tuple[str, str | None, int, int, bool], list[int]] = {}
    members: dict[tuple[str, str | None, int, int, bool], tuple[int, ...] | None] = {}
    for calls, ranks, ns, is_message in _timed_collectives(results):
        if _reason(results, calls, ranks) is not None:
            continue
        call = calls[0]
        trace = results.measured.ranks[call.rank]
        size = buffer_bytes(trace.ops.shape[call.op], trace.ops.dtype[call.op])
        assert size is not None
        assert trace.device is not None
        info = trace.device.collectives[call.op]
        alone = not results.graph.together or (len(calls) < ranks and not is_message)
        key = info.operation, info.group, ranks, size, alone
        ns_of.setdefault(key, []).append(ns)
        there = tuple(results.measured.ranks[call.rank].rank for call in calls)
        who = info.ranks if info.ranks and not is_message else there
        members.setdefault(key, tuple(sorted(who)) if len(set(who)) == ranks else None)
    some = [
        Bandwidth(*key[:4], len(ns), min(ns), median_low(ns), max(ns), key[4], _factor(key[0], key[2]),
                  members[key])
        for key, ns in ns_of.items()
    ]  # fmt: skip
    return sorted(
        some,
        key=lambda bandwidth: (-bandwidth.middle_ns * bandwidth.times, bandwidth.operation, bandwidth.bytes),
    )


def without_bandwidth(results: ReplayedRun) -> list[UnpricedCollectives]:
    """Returns the collectives that `find_bandwidths` leaves out, the most frequent first."""
    counts: Counter[tuple[str, str | None, str]] = Counter()
    for calls, ranks, _, _ in _timed_collectives(results):
        device = results.measured.ranks[calls[0].rank].device
        reason = _reason(results, calls, ranks)
        if reason is not None and device is not None:
            info = device.collectives[calls[0].op]
            counts[info.operation, info.group, reason] += 1
    most = sorted(counts.items(), key=lambda one: (-one[1], str(one[0])))
    return [
        UnpricedCollectives(operation, group, times, reason) for (operation, group, reason), times in most
    ]


def _timed_collectives(results: ReplayedRun) -> Iterator[tuple[tuple[Call, ...], int, int, bool]]:
    """Yields (calls, number of ranks, ns by itself, whether it is a message) for each collective that takes
    time in the run.
    """
    if not results.measured.of_devices:
        return
    graph, ends, rendezvous = results.graph, results.ends, results.rendezvous
    for meeting, node in zip(rendezvous.matches.meetings, graph.meetings, strict=True):
        call = meeting.calls[0]
        device = results.measured.ranks[call.rank].device
        if device is None or node == NONE:
            continue
        # A collective with one call lasts as long as its kernel; any other lasts from its last arrival.
        ns = ends[node] - graph.graph.start(node, ends)
        if ns > 0:
            # Where ranks are missing, or may be, the calls that are there may not be all of them.
            is_whole = len(meeting.calls) > 1 and not len(results.measured.missing)
            there = len(meeting.calls) if is_whole else 0
            ranks = 2 if meeting.is_message else device.collectives[call.op].size or there
            yield meeting.calls, ranks, ns, meeting.is_message


def _reason(results: ReplayedRun, calls: tuple[Call, ...], ranks: int) -> str | None:
    """Returns why a collective has no bandwidth; None if it has one."""
    every = (no_bandwidth(results.measured.ranks[call.rank], call.op) for call in calls)
    # The bytes are split evenly only if they are for all members.
    reasons = sorted({reason for reason in every if reason is not None}, reverse=True)
    if reasons:
        return reasons[0]
    return None if ranks > 1 else "a group of one" if ranks else "number of ranks not in the trace"


def _factor(operation: str, ranks: int) -> float:
    """Returns busbw over algbw (nccl-tests, PERFORMANCE.md)."""
    if operation.startswith("allreduce"):
        return 2 * (ranks - 1) / ranks
    if operation.startswith(("allgather", "reducescatter", "alltoall")):
        return (ranks - 1) / ranks
    return 1.0
