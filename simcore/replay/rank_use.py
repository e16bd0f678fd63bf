"""What a rank of a measured run and its operations take of the step, in the words of simulated runs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import NamedTuple

from simcore.measured.columns import MEASURED, PASSES, RankTrace
from simcore.measured.vocabulary import LAUNCH, category_of_group
from simcore.replay.accounts import FIRST_EXPOSED, WAIT, RankAccounts
from simcore.replay.results import MeasuredResults
from simcore.run.pieces import GAP

# The trace's words for what simulated runs have too. A trace does not tell input and weight gradients and
# what is recomputed apart: `bwd` is all of a backward step. `other`: of groups without a name.
PHASES = {"forward": "fwd", "backward": "bwd", "optimizer": "opt"}
KINDS = {"expert": "ep", "expert dp": "dp_ep", "comm": "other"}


class StreamTime(NamedTuple):
    """A stream of a rank, ns. overlapped_ns: beside compute, None where the trace does not say."""

    stream: str
    busy_ns: int
    overlapped_ns: int | None
    exposed_ns: int


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


def compute_ns(accounts: RankAccounts) -> dict[str, int]:
    """Compute by phase, ns."""
    return {PHASES[name]: ns for name, ns in accounts.compute_ns().items()}


def exposed_ns(accounts: RankAccounts) -> dict[str, int]:
    """Exposed communication by kind of group, ns."""
    return {KINDS.get(name, name): ns for name, ns in accounts.exposed_ns().items()}


def stream_times(rank: RankTrace, accounts: RankAccounts) -> list[StreamTime]:
    """The streams that a rank has, compute first. rank: with the times that the accounts are of.

    Where compute waits for it, communication is busy from when the last member has come.
    """
    found = [StreamTime("compute", accounts.busy_ns, 0, 0)]
    computed = _computed(accounts)
    spans = _communication(rank)
    # Never said when it runs.
    unknown = LAUNCH in rank.ops.name
    for category, ns in accounts.exposed_ns().items():
        beside = sum(computed(end) - computed(start) for start, end in _merged(spans.get(category, [])))
        if ns or beside:
            name = KINDS.get(category, category)
            found.append(StreamTime(name, ns + beside, None if unknown else beside, ns))
    return found


def overlapped_ns(rank: RankTrace, accounts: RankAccounts) -> int | None:
    """Communication beside compute, ns; None of a rank that launches some and never says when it runs."""
    if LAUNCH in rank.ops.name:
        return None
    computed = _computed(accounts)
    spans = [span for of_kind in _communication(rank).values() for span in of_kind]
    return sum(computed(end) - computed(start) for start, end in _merged(spans))


def _communication(rank: RankTrace) -> dict[str, list[tuple[int, int]]]:
    """(start, end) of the sub-operations by category: beside compute only those can run."""
    found: dict[str, list[tuple[int, int]]] = {}
    subs = rank.subs
    for group, known, start, end in zip(subs.group, subs.known, subs.start, subs.end, strict=True):
        if known == MEASURED and end > start:
            found.setdefault(category_of_group(group), []).append((start, end))
    return found


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The union of spans, as disjoint ones."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def _computed(accounts: RankAccounts) -> Callable[[int], int]:
    """How much the rank has computed until a moment, ns."""
    edge = accounts.edge
    lengths = [
        over - begin if account < FIRST_EXPOSED else 0
        for account, (begin, over) in zip(accounts.account, pairwise(edge), strict=True)
    ]
    before = list(accumulate(lengths, initial=0))

    def until(time_ns: int) -> int:
        segment = min(bisect_right(edge, time_ns), len(edge) - 1) - 1
        if segment < 0:
            return 0
        inside = time_ns - edge[segment] if accounts.account[segment] < FIRST_EXPOSED else 0
        return before[segment] + min(inside, lengths[segment])

    return until


def peak_microbatches(rank: RankTrace) -> int | None:
    """The most micro-batches that are forward and not yet backward; None where the trace names none."""
    held: dict[int, int] = {}
    most = 0
    ops = rank.ops
    for op in rank.passes:
        if ops.batch[op] < 0:
            continue
        forward = PASSES[ops.name[op]] == "forward"
        held[ops.batch[op]] = held.get(ops.batch[op], 0) + (1 if forward else -1)
        most = max(most, sum(count > 0 for count in held.values()))
    return most or None


def op_uses(results: MeasuredResults) -> list[OpUse]:
    """Each operation and sub-operation by name, in the order in which they first come; host gaps are none."""
    uses: dict[tuple[str, str | None], dict[int, list[int]]] = {}
    for number, (rank, accounts) in enumerate(zip(results.measured.ranks, results.accounts, strict=True)):
        for segment, account in enumerate(accounts.account):
            name = _name(results, rank, number, accounts.piece[segment])
            if name is None:
                continue
            sums = uses.setdefault(name, {}).setdefault(number, [0, 0])
            ns = accounts.edge[segment + 1] - accounts.edge[segment]
            if account < FIRST_EXPOSED:
                sums[0] += ns
            elif account < WAIT:
                sums[1] += ns
    critical: dict[tuple[str, str | None], int] = {}
    for one in results.critical_path:
        name = _name(results, results.measured.ranks[one.rank], one.rank, one.piece)
        if name is not None:
            critical[name] = critical.get(name, 0) + one.end - one.start
    slack = _least_slack(results)
    found = []
    for name, by_rank in uses.items():
        compute, exposed = max(by_rank.values(), key=sum)
        found.append(OpUse(*name, compute, exposed, critical.get(name, 0), slack.get(name)))
    return found


def _least_slack(results: MeasuredResults) -> dict[tuple[str, str | None], int]:
    """The least slack by name; an operation's is that of all that lies in it."""
    found: dict[tuple[str, str | None], int] = {}
    for number, (rank, column) in enumerate(zip(results.measured.ranks, results.slack_ns, strict=True)):
        for piece, ns in enumerate(column):
            name = _name(results, rank, number, piece)
            if name is not None:
                for one in {name, (name[0], None)}:
                    found[one] = min(ns, found.get(one, ns))
    return found


def _name(
    results: MeasuredResults, rank: RankTrace, number: int, piece: int
) -> tuple[str, str | None] | None:
    """(operation, sub-operation) of a piece of the rank with this index; None where no operation runs."""
    pieces = results.ties.pieces[number]
    if not 0 <= piece < len(pieces) or pieces.kind[piece] == GAP:
        return None
    sub = pieces.sub[piece]
    return rank.ops.name[pieces.op[piece]], rank.subs.name[sub] if sub >= 0 else None
