"""What each operation of a measured run takes of the step: its own time, its waiting, its slack."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from simcore.replay.accounts import FIRST_EXPOSED, HOST, IDLE, WAIT
from simcore.replay.results import MeasuredResults
from simcore.run.pieces import GAP

# (operation, sub-operation of equal ones); None for what of the operations lies in no sub-operation.
OpKey = tuple[str, str | None]
# Of each operation something of each rank, by the rank's index.
ByRank = dict[OpKey, dict[int, int]]


class OpUse(NamedTuple):
    """Equal operations, or sub-operations of equal ones (`sub`), ns.

    compute_ns, exposed_ns: of all of them on the rank where the two together are most. critical_ns: of the
    critical path. slack_ns: the least of all.
    """

    op: str
    sub: str | None
    compute_ns: int
    exposed_ns: int
    critical_ns: int
    slack_ns: int | None


class Spent(NamedTuple):
    """What equal operations take of the step of one rank, ns, without what lies in their sub-operations.

    waits_ns: for other ranks, in receives and collectives.
    """

    compute_ns: int = 0
    exposed_ns: int = 0
    host_ns: int = 0
    waits_ns: int = 0

    @property
    def own_ns(self) -> int:
        """What is not waiting."""
        return self.compute_ns + self.exposed_ns + self.host_ns


def op_uses(results: MeasuredResults) -> list[OpUse]:
    """Each operation and sub-operation by name, in the order in which they first come; host gaps are none."""
    critical, slack, uses = critical_ns(results), slack_ns(results), spent(results)
    found = []
    # The path can go through a collective beside compute that no rank has waited for: it has no account.
    for key in dict.fromkeys((*uses, *critical)):
        most = most_used(uses[key].values()) if key in uses else Spent()
        least = min(slack[key].values()) if key in slack else None
        on_path = sum(critical.get(key, {}).values())
        found.append(OpUse(*key, most.compute_ns, most.exposed_ns, on_path, least))
    return found


def most_used(uses: Iterable[Spent]) -> Spent:
    """Of what several ranks take the most compute and exposed communication together; the first of equals."""
    return max(uses, key=lambda one: one.compute_ns + one.exposed_ns)


def spent(results: MeasuredResults) -> dict[OpKey, dict[int, Spent]]:
    """What each operation and sub-operation takes of the step of each rank (its index) that has it.

    In the order in which they first come. All of a rank sum to its step without `idle`.
    """
    sums: dict[OpKey, dict[int, list[int]]] = {}
    for rank, accounts in enumerate(results.accounts):
        keys = _keys(results, rank)
        edge = accounts.edge
        for segment, account in enumerate(accounts.account):
            piece = accounts.piece[segment]
            key = keys[piece] if piece >= 0 else None
            if key is None or account == IDLE:
                continue
            if account < FIRST_EXPOSED:
                part = 0
            elif account < WAIT:
                part = 1
            else:
                part = 2 if account == HOST else 3
            of_rank = sums.setdefault(key, {}).setdefault(rank, [0, 0, 0, 0])
            of_rank[part] += edge[segment + 1] - edge[segment]
    return {key: {rank: Spent(*ns) for rank, ns in by_rank.items()} for key, by_rank in sums.items()}


def critical_ns(results: MeasuredResults) -> ByRank:
    """What the critical path has of each operation and sub-operation on each rank, ns; host gaps left out."""
    found: ByRank = {}
    names = [_keys(results, rank) for rank in results.all_ranks]
    for one in results.critical_path:
        key = names[one.rank][one.piece] if one.piece >= 0 else None
        if key is not None:
            by_rank = found.setdefault(key, {})
            by_rank[one.rank] = by_rank.get(one.rank, 0) + one.end - one.start
    return found


def slack_ns(results: MeasuredResults) -> ByRank:
    """The least slack of each by rank, ns; an operation's is that of all that lies in it."""
    found: ByRank = {}
    for rank, column in enumerate(results.slack_ns):
        for key, ns in zip(_keys(results, rank), column, strict=True):
            if key is None:
                continue
            for one in {key, (key[0], None)}:
                by_rank = found.setdefault(one, {})
                by_rank[rank] = min(ns, by_rank.get(rank, ns))
    return found


def _keys(results: MeasuredResults, rank: int) -> list[OpKey | None]:
    """The operation of each piece of a rank (its index); None where no operation runs."""
    pieces, trace = results.ties.pieces[rank], results.measured.ranks[rank]
    names, subs = trace.ops.name, trace.subs.name
    return [
        None if kind == GAP else (names[op], subs[sub] if sub >= 0 else None)
        for kind, op, sub in zip(pieces.kind, pieces.op, pieces.sub, strict=True)
    ]
