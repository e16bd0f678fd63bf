"""Bandwidths of the collectives of a profiler trace whose bytes are known, as nccl-tests define them."""

from __future__ import annotations

from statistics import median_low

from simcore.measured.vocabulary import buffer_bytes
from simcore.records import NamedTuple
from simcore.replay.timed import Timed
from simcore.run.ties import NONE


class Bandwidth(NamedTuple):
    """Equal collectives: operation, group (None if not told), ranks of it, bytes of the larger of its two
    buffers, which is what nccl-tests count. times: how many; least_ns, middle_ns, most_ns: how long they take
    by themselves, from the last member's coming on. waits_included: that members are missing, so that nobody
    knows what of it is waiting. factor: busbw over algbw. members: the ranks of the first of them, None where
    they are not known.
    """

    operation: str
    group: str | None
    ranks: int
    bytes: int
    times: int
    least_ns: int
    middle_ns: int
    most_ns: int
    waits_included: bool
    factor: float
    members: tuple[int, ...] | None = None

    def algbw(self, ns: int) -> float:
        """Bytes over time, GB/s."""
        return self.bytes / ns if ns else 0.0

    def busbw(self, ns: int) -> float:
        """What each link carries of it, GB/s."""
        return self.algbw(ns) * self.factor


def bandwidths(results: Timed) -> list[Bandwidth]:
    """By operation, group and size, the most time in all first; none of runs that no profiler recorded."""
    if not results.measured.of_devices:
        return []
    graph, ends, ties = results.graph, results.ends, results.ties
    ns_of: dict[tuple[str, str | None, int, int, bool], list[int]] = {}
    members: dict[tuple[str, str | None, int, int, bool], tuple[int, ...] | None] = {}
    for meeting, node in zip(ties.matches.meetings, graph.meetings, strict=True):
        call = meeting.calls[0]
        trace = results.measured.ranks[call.rank]
        size = buffer_bytes(trace.ops.shape[call.op], trace.ops.dtype[call.op])
        if size is None or trace.device is None or node == NONE:
            continue
        said = trace.device.collectives[call.op]
        ranks = 2 if meeting.is_message else said.size or len(meeting.calls)
        alone = not graph.together or (len(meeting.calls) < ranks and not meeting.is_message)
        # Alone it lasts as long as its kernel; else from the last arrival on.
        ns = ends[node] - graph.graph.start(node, ends)
        if ns > 0 and ranks > 1:
            key = said.operation, said.group, ranks, size, alone
            ns_of.setdefault(key, []).append(ns)
            there = tuple(results.measured.ranks[call.rank].number for call in meeting.calls)
            who = said.ranks if said.ranks and not meeting.is_message else there
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


def _factor(operation: str, ranks: int) -> float:
    """busbw over algbw (nccl-tests, PERFORMANCE.md)."""
    if operation.startswith("allreduce"):
        return 2 * (ranks - 1) / ranks
    if operation.startswith(("allgather", "reducescatter", "alltoall")):
        return (ranks - 1) / ranks
    return 1.0
