"""A measured or replayed run as a trace: a track is a rank, a span a piece of it.

A wait for a message is `bubble` until it is sent, then `exposed pp`; a wait in a collective is `wait` until
the last member has come, then `exposed` by its kind. `idle` is the time without an operation: host gaps, and
what lies before a rank's first and behind its last operation.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, compress, repeat
from operator import add, le

from simcore.measured.columns import RankTrace
from simcore.measured.places import MODEL_PARALLEL
from simcore.measured.vocabulary import CATEGORIES, COMPUTE, COPY, KERNEL, category_of_group
from simcore.names import GROUP_KINDS
from simcore.sources.measured_graph import MeasuredGraph, flights
from simcore.sources.pieces import AWAIT, GAP, LAUNCH, MEET, TRANSFER
from simcore.sources.ties import Ties
from simcore.trace.accounts import account_names
from simcore.trace.graph import START
from simcore.trace.named_work import OneCall
from simcore.trace.spans import COMMUNICATES, COMPUTES, LAUNCHED, NONE, UNDER, Column, Spans, Trace, Waits
from simcore.trace.trace_graph import TraceGraph, first_rows

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
# What gives way to a collective that runs at the same time: nothing computes then.
_UNDER = (IDLE, HOST, ACCOUNTS.index(f"exposed {COPY}"))
# Tables for `translate`: the level of an account; the account of a category; all bits of a gap; 1 of pieces
# that take part in what several ranks do.
_LEVEL = bytes(
    UNDER if account in _UNDER else COMPUTES if account < FIRST_EXPOSED else COMMUNICATES
    for account in range(256)
)
_OF_STATED = bytes(OF_CATEGORY.get(name, IDLE) for name in CATEGORIES).ljust(256, b"\0")
_GAPS = bytes(255 * (kind == GAP) for kind in range(256))
_OF_SEVERAL = bytes(kind in (MEET, LAUNCH, AWAIT, TRANSFER) for kind in range(256))


def own_account(graph: MeasuredGraph, rank: int, piece: int) -> int:
    """Returns the account of what a piece does when it does not wait."""
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


def measured_trace(
    graph: MeasuredGraph, ends: Sequence[int], step_ns: int, named: Sequence[RankTrace]
) -> Trace:
    """Returns the trace of a run. ends: of a pass of its graph, or as measured. named: its ranks, with the
    names that operations are counted under.
    """
    ranks = range(len(graph.over))
    spans = [_spans_of(graph, ends, rank) for rank in ranks]
    waits = [Waits() for _ in ranks]
    # A kernel that receives is on its stream before anything is sent: nothing of a pipeline is known of it.
    of_devices = graph.ties.run.of_devices
    bubbles = NONE if of_devices else OF_CATEGORY["pp"]
    columns = {
        "name": lambda: _names(graph.ties, named),
        "operation": lambda: _operations(graph.ties, named),
        "op": lambda: _ops(graph.ties),
    }
    if of_devices:
        columns["stream"] = lambda: _streams(graph.ties)
    # Of a profile what it alone has is said, none of it too.
    names = NAMES._replace(rare=()) if of_devices else NAMES
    return Trace(spans, waits, step_ns, names, [1] * len(spans), bubbles, of_devices, columns)


def _operations(ties: Ties, ranks: Sequence[RankTrace]) -> Column:
    """(operation, sub-operation or None) by name of each piece; NONE where no operation runs."""
    number_of: dict[tuple[str, str | None], int] = {}
    of = []
    for pieces, trace in zip(ties.pieces, ranks, strict=True):
        names, subs = trace.ops.name, trace.subs.name
        numbers = array("i")
        for kind, op, sub in zip(pieces.kind, pieces.op, pieces.sub, strict=True):
            if kind == GAP:
                numbers.append(NONE)
                continue
            for key in (names[op], None), (names[op], subs[sub] if sub >= 0 else None):
                number = number_of.setdefault(key, len(number_of))
            numbers.append(number)
        of.append(numbers)
    within = [NONE if sub is None else number_of[name, None] for name, sub in number_of]
    return Column([*number_of], of, within=within)


def _ops(ties: Ties) -> Column:
    """The operation of each piece, by its number on the rank."""
    most = max(len(rank.ops) for rank in ties.run.ranks)
    return Column(range(most), [pieces.op for pieces in ties.pieces])


def _streams(ties: Ties) -> Column:
    """The groups of what a device sends, by name, and its copies."""
    number_of = {COPY: 0}
    of = []
    for pieces, trace in zip(ties.pieces, ties.run.ranks, strict=True):
        ops, numbers = trace.ops, array("i")
        for kind, op in zip(pieces.kind, pieces.op, strict=True):
            stated = CATEGORIES[ops.stated[op]] if kind != GAP else None
            if stated in (None, "host", *COMPUTE):
                numbers.append(NONE)
            else:
                name = COPY if stated == COPY else ops.group[op] or "comm"
                numbers.append(number_of.setdefault(name, len(number_of)))
        of.append(numbers)
    return Column([*number_of], of)


def _names(ties: Ties, ranks: Sequence[RankTrace]) -> Column:
    """Operations by name, sub-operations with what they lie in."""
    operations = _operations(ties, ranks)
    return Column([called(*key) for key in operations.labels], operations.of)


def called(op: str, sub: str | None) -> str:
    """Returns what an operation is called, a sub-operation by both: `layernorm in forward_step`."""
    return op if sub is None else f"{sub} in {op}"


def measured_calls(rank: RankTrace) -> Iterator[OneCall]:
    """Yields the operations of a rank, each without its sub-operations, and these: one may be of several
    pieces.
    """
    ops, subs = rank.ops, rank.subs
    inside = [0] * len(ops)
    for sub, (parent, start, end) in enumerate(zip(subs.parent, subs.start, subs.end, strict=True)):
        inside[parent] += end - start
        account = OF_CATEGORY[category_of_group(subs.group[sub])]
        yield OneCall(account, called(ops.name[parent], subs.name[sub]), end - start)
    for op, (name, start, end) in enumerate(zip(ops.name, ops.start, ops.end, strict=True)):
        # Sub-operations that run beside each other may last longer than what they lie in.
        yield OneCall(OF_CATEGORY[ops.category(op)], name, max(end - start - inside[op], 0))


def measured_graph(
    graph: MeasuredGraph, ends: Sequence[int], step_ns: int, taken: Callable[[], array[int]]
) -> TraceGraph:
    """Returns the graph of a trace. ends: as of `measured_trace`. taken: gives what the durations are."""
    ties = graph.ties
    first = first_rows(map(len, graph.over))
    rows = range(first[-1])
    met = (first[rank] + piece for (rank, _, piece), *_ in ties.members)
    sent = (first[rank] + piece for (rank, piece), _ in ties.transfers)

    def member(rank: int, piece: int, other: int) -> int:
        return graph.waiting_piece(ties.pieces[rank].meeting[piece], other)

    def is_one(rank: int, piece: int, behind: int) -> bool:
        # A rank's idle time is one segment, though the step may begin within it or an instant cut it.
        return piece == behind or own_account(graph, rank, piece) == own_account(graph, rank, behind) == IDLE

    return TraceGraph(
        graph.graph, ends, step_ns, [nodes[-1] if nodes else START for nodes in graph.over],
        ranks=[rank.number for rank in ties.run.ranks], nodes=graph.over,
        row_of=array("i", (NONE, *rows, *rows, *met, *sent)), met=member, taken=taken,
        sent=[(node, *of) for node, (of, _) in zip(graph.messages, ties.transfers, strict=True)],
        launched=lambda node, rank: _is_launched(graph, node, rank), is_one=is_one, hides_instants=True,
    )  # fmt: skip


def _is_launched(graph: MeasuredGraph, node: int, rank: int) -> bool:
    """Whether a node is a collective of several that a rank has launched beside what it does."""
    meeting = NONE if graph.graph.is_join(node) else graph.meeting_of(node)
    # Nobody is known to come to a call without a partner: its rank is not the last.
    if meeting == NONE or len(graph.ties.coming(meeting)) < 2:
        return False
    return graph.ties.pieces[rank].kind[graph.waiting_piece(meeting, rank)] == AWAIT


def _spans_of(graph: MeasuredGraph, ends: Sequence[int], rank: int) -> Spans:
    """The spans of a rank. By their own clocks ranks may be through a little too early: none then overlap."""
    ties, nodes = graph.ties, graph.over[rank]
    # By a list: an array that is made of an iterator grows by each element.
    end = array("q", [*accumulate(map(ends.__getitem__, nodes), max)])
    start = array("q", (0,))[: len(end)] + end[:-1]
    ready = start[:]
    category = _categories(graph, rank)
    level = category.translate(_LEVEL)
    for piece in compress(range(len(nodes)), ties.pieces[rank].kind.translate(_OF_SEVERAL)):
        if graph.waits(rank, piece):
            ready[piece] = max(start[piece], min(graph.begins(rank, piece, ends), end[piece]))
            level[piece] = COMPUTES if category[piece] < FIRST_EXPOSED else COMMUNICATES
    if ties.run.of_devices:
        for flight in flights(graph, ends, rank):
            start[flight.piece], ready[flight.piece] = flight.start, flight.began
            end[flight.piece], level[flight.piece] = flight.end, LAUNCHED
    return Spans(start, ready, end, category, level)


def _categories(graph: MeasuredGraph, rank: int) -> bytearray:
    """The account of what each piece of a rank does when it does not wait."""
    pieces, ops = graph.ties.pieces[rank], graph.ties.run.ranks[rank].ops
    if ops.stated:
        of_op = ops.stated.translate(_OF_STATED)
    else:
        of_op = bytearray(OF_CATEGORY[ops.category(op)] for op in range(len(ops)))
    own = bytes(map(of_op.__getitem__, pieces.op)) if of_op else bytes(len(pieces))
    # All of a column in one number.
    gaps, idle, mine = (
        int.from_bytes(column, "little")
        for column in (pieces.kind.translate(_GAPS), bytes((IDLE,)) * len(pieces), own)
    )
    category = bytearray((mine ^ (mine ^ idle) & gaps).to_bytes(len(pieces), "little"))
    # Of no sub-operation, -1, alone.
    others = map(add, pieces.kind.translate(_OF_SEVERAL), pieces.sub)
    for piece in compress(range(len(pieces)), map(le, repeat(0), others)):
        category[piece] = own_account(graph, rank, piece)
    return category
