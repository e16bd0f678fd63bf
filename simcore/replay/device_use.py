"""What a rank of a profiler trace takes of the step, as unions of its operations' times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from simcore.measured.columns import RankTrace
from simcore.measured.vocabulary import CATEGORIES, COMPUTE, COPY
from simcore.replay.accounts import FIRST_EXPOSED, WAIT
from simcore.run.figures import StreamUse

if TYPE_CHECKING:
    from simcore.replay.results import MeasuredResults

_COMPUTE = frozenset(map(CATEGORIES.index, COMPUTE))
_COPY = CATEGORIES.index(COPY)
Spans = list[tuple[int, int]]


class DeviceUse(NamedTuple):
    """ns of one rank. comm_ns: the union of what communicates; overlapped_ns: of that beside compute.
    exposed_ns: by the name of the group as the trace has it, and `copy`; they sum to the rank's exposed
    accounts. streams: of each group.
    """

    comm_ns: int
    overlapped_ns: int
    exposed_ns: dict[str, int]
    streams: list[StreamUse]


class Unions(NamedTuple):
    """Disjoint spans, ascending: what computes, what communicates by group, what copies."""

    compute: Spans
    comm: dict[str, Spans]
    copies: Spans


def unions_of(rank: RankTrace) -> Unions:
    """The unions of a rank's operations by what they are."""
    ops = rank.ops
    compute: Spans = []
    copies: Spans = []
    comm: dict[str, Spans] = {}
    for op, (start, end) in enumerate(zip(ops.start, ops.end, strict=True)):
        kind = ops.stated[op]
        spans = (
            compute
            if kind in _COMPUTE
            else copies
            if kind == _COPY
            else comm.setdefault(ops.group[op] or "comm", [])
        )
        spans.append((start, end))
    return Unions(merged(compute), {name: merged(spans) for name, spans in comm.items()}, merged(copies))


def merged(spans: Iterable[tuple[int, int]]) -> Spans:
    """Their union as disjoint spans, ascending."""
    found: Spans = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            if end > found[-1][1]:
                found[-1] = (found[-1][0], end)
        elif end > start:
            found.append((start, end))
    return found


def total(spans: Sequence[tuple[int, int]]) -> int:
    """How long disjoint spans are together."""
    return sum(end - start for start, end in spans)


def both(one: Spans, other: Spans) -> Spans:
    """What lies in both of two unions."""
    found: Spans = []
    at = 0
    for start, end in one:
        while at < len(other) and other[at][1] <= start:
            at += 1
        index = at
        while index < len(other) and other[index][0] < end:
            found.append((max(start, other[index][0]), min(end, other[index][1])))
            index += 1
    return found


def device_use(results: MeasuredResults, rank: int) -> DeviceUse | None:
    """Of the `rank`-th rank, in the run that is shown; None of a run that no profiler recorded."""
    if not results.measured.of_devices:
        return None
    trace = results.run.ranks[rank]
    unions = unions_of(trace)
    comm = merged(span for spans in unions.comm.values() for span in spans)
    exposed = dict.fromkeys(unions.comm, 0) | {COPY: 0}
    accounts, pieces = results.accounts[rank], results.ties.pieces[rank]
    for segment, account in enumerate(accounts.account):
        if FIRST_EXPOSED <= account < WAIT:
            op = pieces.op[accounts.piece[segment]]
            name = COPY if trace.ops.stated[op] == _COPY else trace.ops.group[op] or "comm"
            exposed[name] = exposed.get(name, 0) + accounts.edge[segment + 1] - accounts.edge[segment]
    streams = [
        StreamUse(name, total(spans), total(both(spans, unions.compute)), exposed[name])
        for name, spans in unions.comm.items()
    ]
    return DeviceUse(total(comm), total(both(comm, unions.compute)), exposed, streams)
