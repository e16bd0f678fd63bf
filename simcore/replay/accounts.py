"""Accounts of a measured or replayed run: every nanosecond of every rank in exactly one.

A wait for a message is `bubble` until it is sent, then `exposed pp`; a wait in a collective is `wait`
until the last member has come, then `exposed` by its kind. `idle` is the time without an operation:
host gaps, and what lies before a rank's first and behind its last operation.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from simcore.measured.matching import Call, name_of
from simcore.measured.places import MODEL_PARALLEL
from simcore.measured.vocabulary import COMPUTE, COPY, KERNEL, category_of_group
from simcore.names import GROUP_KINDS
from simcore.records import NamedTuple, Struct
from simcore.run.accounts import Accounts, account_names
from simcore.run.measured import MeasuredGraph, covered, flights
from simcore.run.pieces import AWAIT, GAP, LAUNCH, MEET, TRANSFER

EXPOSED = (*GROUP_KINDS, COPY)
# What profiler traces alone have: it is said only where there is some.
PROFILED = (KERNEL, COPY)
NAMES = account_names(
    COMPUTE, EXPOSED, ("wait", "bubble", "host", "idle"),
    {f"compute {name}": name for name in COMPUTE}
    | {"exposed expert": "exposed ep"},
    rare=PROFILED,
)  # fmt: skip
ACCOUNTS, FIRST_EXPOSED, WAIT = NAMES.all, NAMES.first_exposed, NAMES.first_other
BUBBLE, HOST, IDLE = WAIT + 1, WAIT + 2, WAIT + 3
OF_CATEGORY = {name: ACCOUNTS.index(f"compute {name}") for name in COMPUTE}
OF_CATEGORY |= {name: ACCOUNTS.index(f"exposed {name}") for name in EXPOSED}
OF_CATEGORY["host"] = HOST
# What gives way to a collective that runs at the same time.
_BESIDE = (IDLE, HOST, ACCOUNTS.index(f"exposed {COPY}"))
# No piece of a rank: the time behind its last operation.
OVER = -1


def own_account(graph: MeasuredGraph, rank: int, piece: int) -> int:
    """The account of what a piece does when it does not wait."""
    ties = graph.ties
    pieces, trace = ties.pieces[rank], ties.run.ranks[rank]
    kind, op, sub = pieces.kind[piece], pieces.op[piece], pieces.sub[piece]
    if kind == GAP:
        return IDLE
    if kind in (MEET, AWAIT, LAUNCH):
        meeting = ties.matches.meetings[pieces.meeting[piece]]
        if meeting.kind != MODEL_PARALLEL:
            return OF_CATEGORY[category_of_group(meeting.kind)]
        if graph.waits(rank, piece):
            return WAIT
    if kind == TRANSFER:
        return OF_CATEGORY["pp"]
    if sub >= 0:
        return OF_CATEGORY[category_of_group(trace.subs.group[sub])]
    return OF_CATEGORY[trace.ops.category(op)]


def rank_accounts(graph: MeasuredGraph, ends: Sequence[int], rank: int, step_ns: int) -> Accounts:
    """The accounts of the `rank`-th rank by pieces, OVER behind the last. ends: of a pass of the graph."""
    accounts = Accounts(NAMES)
    now = 0

    def book(until: int, account: int, piece: int) -> None:
        nonlocal now
        if until > now:
            accounts.book(now, until, account, piece)
            now = until

    kinds = graph.ties.pieces[rank].kind
    covers = covered(list(flights(graph, ends, rank))) if graph.ties.run.of_devices else None
    for piece, node in enumerate(graph.over[rank]):
        end = ends[node]
        if graph.waits(rank, piece):
            waiting = BUBBLE if kinds[piece] == TRANSFER else WAIT
            book(min(graph.begins(rank, piece, ends), end), waiting, piece)
        account = own_account(graph, rank, piece)
        if covers is not None and account in _BESIDE:
            # Nothing computes: what a collective takes of this time is communication, not a gap.
            starts, overs, waiting_of, launches = covers
            at = bisect_right(overs, now)
            while at < len(starts) and starts[at] < end:
                book(min(starts[at], end), account, piece)
                launch = launches[at]
                book(
                    min(overs[at], end), WAIT if waiting_of[at] else own_account(graph, rank, launch), launch
                )
                at += 1
        book(end, account, piece)
    book(step_ns, IDLE, OVER)
    accounts.edge.append(step_ns)
    return accounts


class Late(NamedTuple):
    """A time that a rank waits in `piece`, ns, for the rank `rank` (its index), which comes or sends with its
    piece `came`.
    """

    piece: int
    ns: int
    rank: int
    came: int


def waits_of(graph: MeasuredGraph, ends: Sequence[int], rank: int, accounts: Accounts) -> Iterator[Late]:
    """Each time that a rank (its index) waits for another, in order."""
    for segment, account in enumerate(accounts.account):
        if account in (WAIT, BUBBLE):
            piece = accounts.op[segment]
            ns = accounts.edge[segment + 1] - accounts.edge[segment]
            yield Late(piece, ns, *graph.late(rank, piece, ends))


class RankWaiting(Struct, frozen=True):
    """Rank `early` waits `ns` for rank `late` in the operation `name`: in collectives for the one that comes
    last, in receives for the sender. sub: whether `name` is a sub-operation.
    """

    early: int
    late: int
    name: str
    sub: bool
    ns: int


def who_waits(graph: MeasuredGraph, ends: Sequence[int], accounts: list[Accounts]) -> list[RankWaiting]:
    """Who waits for whom, the longest first; ranks by their numbers."""
    waited: dict[tuple[int, int, str, bool], int] = {}
    ranks = graph.ties.run.ranks
    for rank, account in enumerate(accounts):
        pieces = graph.ties.pieces[rank]
        for wait in waits_of(graph, ends, rank, account):
            call = Call(rank, pieces.op[wait.piece], pieces.sub[wait.piece])
            key = (ranks[rank].number, ranks[wait.rank].number, name_of(ranks[rank], call), call.sub >= 0)
            waited[key] = waited.get(key, 0) + wait.ns
    waits = [RankWaiting(*key, ns) for key, ns in waited.items()]
    return sorted(waits, key=lambda wait: (-wait.ns, wait.early, wait.late, wait.name))
