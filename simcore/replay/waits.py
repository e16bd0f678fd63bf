"""What each operation of a rank waits: how long, for whom, and what that rank was at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simcore.measured.lanes import timed_ops
from simcore.measured.vocabulary import RECEIVES
from simcore.replay.accounts import BUBBLE, WAIT, late_rank
from simcore.replay.pieces import GAP, TRANSFER
from simcore.replay.worst import piece_name

if TYPE_CHECKING:
    from simcore.replay.results import MeasuredResults


@dataclass(frozen=True, slots=True)
class Wait:
    """Time that an operation waits. ns: in all; times: how often. late: index of the rank that it waits for.

    name: the operation or sub-operation that waits. sends: whether the late rank sends what is received
    there, else it comes last to a collective. after: what it did before, "" where that is not known.
    """

    late: int
    name: str
    sends: bool
    after: str
    ns: int
    times: int


def waits_by_item(results: MeasuredResults, rank: int) -> dict[int, list[Wait]]:
    """The waits of a rank (its index) by item of its lanes (`LaneSpans`), the longest first: of an operation
    those of its sub-operations too. They sum to the accounts `wait` and `bubble` of the rank.
    """
    one, pieces = results.accounts[rank], results.graph.pieces[rank]
    count = len(results.measured.ranks[rank].ops)
    found: dict[int, dict[tuple[int, str, bool, str], list[int]]] = {}
    for segment, account in enumerate(one.account):
        if account not in (WAIT, BUBBLE):
            continue
        piece, ns = one.piece[segment], one.edge[segment + 1] - one.edge[segment]
        key = _key(results, rank, piece)
        sub = pieces.sub[piece]
        for item in (pieces.op[piece], *([count + sub] if sub >= 0 else [])):
            sums = found.setdefault(item, {}).setdefault(key, [0, 0])
            sums[0] += ns
            sums[1] += 1
    return {
        item: sorted((Wait(*key, *sums) for key, sums in waits.items()), key=lambda wait: -wait.ns)
        for item, waits in found.items()
    }


def waited_ns(results: MeasuredResults, rank: int, waits: dict[int, list[Wait]]) -> dict[int, int]:
    """How long each operation of a rank (its index) waits, ns, by its item; those that do not are left out.

    waits: of `waits_by_item`. A receive of which no send is known counts in whole: its wait is not known.
    """
    trace, graph = results.run.ranks[rank], results.graph
    ops, pieces = trace.ops, graph.pieces[rank]
    found = {item: sum(one.ns for one in some) for item, some in waits.items() if item < len(ops)}
    known = {op for op, message in zip(pieces.op, pieces.received, strict=True) if message >= 0}
    for start, end, op, _ in timed_ops(trace):
        if ops.name[op] in RECEIVES and end > start and not (results.times.together and op in known):
            found[op] = end - start
    return found


def _key(results: MeasuredResults, rank: int, piece: int) -> tuple[int, str, bool, str]:
    """Who is late, where it is waited for, whether it sends, and what it did before."""
    graph, pieces = results.graph, results.graph.pieces[rank]
    late = late_rank(graph, results.times, rank, piece)
    sends = pieces.kind[piece] == TRANSFER
    if sends:
        at = graph.ends[pieces.received[piece]][0][1]
    else:
        at = next(came for who, came, _ in graph.members[pieces.meeting[piece]] if who == late)
    before = at - 1
    # A gap says nothing of what took so long.
    while before >= 0 and graph.pieces[late].kind[before] == GAP:
        before -= 1
    after = piece_name(results, late, before) if before >= 0 else ""
    return late, piece_name(results, rank, piece), sends, after
