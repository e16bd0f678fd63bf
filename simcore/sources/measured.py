"""A measured or replayed run as a trace: a track is a rank, a span a segment of it.

A wait for a message is `bubble` until it is sent, then `exposed pp`; a wait in a collective is `wait` until
the last member has come, then `exposed` by its kind. `idle` is the time without an operation: host gaps, and
what lies before a rank's first and behind its last operation.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, compress, repeat
from operator import add, and_, getitem, le

from simcore.measured.columns import RankTrace
from simcore.measured.rank_positions import MODEL_PARALLEL
from simcore.measured.vocabulary import CATEGORIES, COMPUTE, COPY, KERNEL, category_of_group
from simcore.names import GROUP_KINDS
from simcore.sources.measured_graph import MeasuredGraph, flights
from simcore.sources.rendezvous import Rendezvous
from simcore.sources.segments import AWAIT, GAP, LAUNCH, MEET, TRANSFER, SegmentColumns
from simcore.trace.accounts import account_names
from simcore.trace.graph import START
from simcore.trace.named_work import CallTime
from simcore.trace.spans import COMMUNICATES, COMPUTES, LAUNCHED, NONE, UNDER, Column, Spans, Trace, Waits
from simcore.trace.trace_graph import TraceGraph
from simcore.units import select

EXPOSED = (*GROUP_KINDS, COPY)
# What profiler traces alone have: these accounts are reported only where they have time.
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
# Accounts that a collective at the same time takes precedence over: nothing computes then.
_UNDER = (IDLE, HOST, ACCOUNTS.index(f"exposed {COPY}"))
# Tables for `translate`: the level of an account; the account of a category; 1 for categories that
# communicate or copy; all bits of a gap; 1 for segments that take part in what several ranks do.
_LEVEL = bytes(
    UNDER if account in _UNDER else COMPUTES if account < FIRST_EXPOSED else COMMUNICATES
    for account in range(256)
)
_OF_STATED = bytes(OF_CATEGORY.get(name, IDLE) for name in CATEGORIES).ljust(256, b"\0")
_ON_STREAMS = bytes(name not in ("host", *COMPUTE) for name in CATEGORIES).ljust(256, b"\0")
_GAPS = bytes(255 * (kind == GAP) for kind in range(256))
_IS_GAP = bytes(kind == GAP for kind in range(256))
_IS_NO_GAP = bytes(kind != GAP for kind in range(256))
_OF_SEVERAL = bytes(kind in (MEET, LAUNCH, AWAIT, TRANSFER) for kind in range(256))


def own_account(graph: MeasuredGraph, rank: int, segment: int) -> int:
    """Returns the account of what a segment does when it does not wait."""
    rendezvous = graph.rendezvous
    segments, trace = rendezvous.segments[rank], rendezvous.run.ranks[rank]
    kind, op, sub = segments.kind[segment], segments.op[segment], segments.sub[segment]
    if kind == GAP:
        return IDLE
    if kind in (MEET, AWAIT, LAUNCH):
        meeting = rendezvous.matches.meetings[segments.meeting[segment]]
        if meeting.kind != MODEL_PARALLEL:
            return OF_CATEGORY[category_of_group(meeting.kind)]
        if graph.can_wait(rank, segment):
            return WAIT
    if kind == TRANSFER:
        return OF_CATEGORY["pp"]
    if sub >= 0:
        return OF_CATEGORY[category_of_group(trace.subs.group[sub])]
    return OF_CATEGORY[trace.ops.category(op)]


def measured_trace(
    graph: MeasuredGraph, ends: Sequence[int], step_ns: int, named_ranks: Sequence[RankTrace]
) -> Trace:
    """Returns the trace of a run. ends: those of a pass of its graph, or as measured. named_ranks: its ranks,
    with the names that operations are counted under.
    """
    ranks = range(len(graph.end_nodes))
    spans = [_make_spans(graph, ends, rank) for rank in ranks]
    waits = [Waits() for _ in ranks]
    # A kernel that receives is on its stream before anything is sent: no bubble can be derived from it.
    of_devices = graph.rendezvous.run.of_devices
    bubbles = NONE if of_devices else OF_CATEGORY["pp"]
    columns = {
        "name": lambda: _names(graph.rendezvous, named_ranks),
        "operation": lambda: _operations(graph.rendezvous, named_ranks),
        "op": lambda: _ops(graph.rendezvous),
    }
    if of_devices:
        columns["stream"] = lambda: _streams(graph.rendezvous)
    # A profile reports the accounts that it alone has even where they are empty.
    names = NAMES._replace(rare=()) if of_devices else NAMES
    return Trace(spans, waits, step_ns, names, [1] * len(spans), bubbles, of_devices, columns)


def _operations(rendezvous: Rendezvous, ranks: Sequence[RankTrace]) -> Column:
    """Returns (operation, sub-operation or None) by name of each segment; NONE where no operation runs."""
    number_of: dict[tuple[str, str | None], int] = {}
    of = []
    for segments, trace in zip(rendezvous.segments, ranks, strict=True):
        names, subs = trace.ops.name, trace.subs.name
        if not subs:
            of.append(_label_operations(segments, names, number_of))
            continue
        label_ids = array("i")
        for kind, op, sub in zip(segments.kind, segments.op, segments.sub, strict=True):
            if kind == GAP:
                label_ids.append(NONE)
                continue
            for key in (names[op], None), (names[op], subs[sub] if sub >= 0 else None):
                label_id = number_of.setdefault(key, len(number_of))
            label_ids.append(label_id)
        of.append(label_ids)
    within = [NONE if sub is None else number_of[name, None] for name, sub in number_of]
    return Column([*number_of], of, within=within)


def _label_operations(
    segments: SegmentColumns, names: Sequence[str], number_of: dict[tuple[str, str | None], int]
) -> array[int]:
    """Returns the label of each segment of a rank without sub-operations, and adds those that are new."""
    runs = segments.kind.translate(_IS_NO_GAP)
    in_order = dict.fromkeys(map(names.__getitem__, compress(segments.op, runs)))
    labels = {name: number_of.setdefault((name, None), len(number_of)) for name in in_order}
    of_op = array("i", [labels.get(name, NONE) for name in names])
    tables = array("i", (NONE,)) * len(of_op), of_op
    return array("i", map(getitem, map(tables.__getitem__, runs), segments.op))


def _ops(rendezvous: Rendezvous) -> Column:
    """Returns the operation of each segment, by its index on the rank."""
    most = max(len(rank.ops) for rank in rendezvous.run.ranks)
    return Column(range(most), [segments.op for segments in rendezvous.segments])


def _streams(rendezvous: Rendezvous) -> Column:
    """Returns the groups of a device's communication, by name, and its copies."""
    number_of = {COPY: 0}
    of = []
    for segments, trace in zip(rendezvous.segments, rendezvous.run.ranks, strict=True):
        ops, label_ids = trace.ops, array("i", (NONE,)) * len(segments)
        on_streams = map(ops.stated_category.translate(_ON_STREAMS).__getitem__, segments.op)
        runs = map(and_, segments.kind.translate(_IS_NO_GAP), on_streams)
        for segment in compress(range(len(segments)), runs):
            op = segments.op[segment]
            name = COPY if CATEGORIES[ops.stated_category[op]] == COPY else ops.group[op] or "comm"
            label_ids[segment] = number_of.setdefault(name, len(number_of))
        of.append(label_ids)
    return Column([*number_of], of)


def _names(rendezvous: Rendezvous, ranks: Sequence[RankTrace]) -> Column:
    """Returns operations by name, sub-operations with the operation that they are in."""
    operations = _operations(rendezvous, ranks)
    return Column([operation_label(*key) for key in operations.labels], operations.of)


def operation_label(op: str, sub: str | None) -> str:
    """Returns the label of an operation, for a sub-operation both names: `layernorm in forward_step`."""
    return op if sub is None else f"{sub} in {op}"


def measured_calls(rank: RankTrace) -> Iterator[CallTime]:
    """Yields the operations of a rank, each without its sub-operations, and these; one may have several
    segments.
    """
    ops, subs = rank.ops, rank.subs
    inside = [0] * len(ops)
    for sub, (parent, start, end) in enumerate(zip(subs.parent, subs.start, subs.end, strict=True)):
        inside[parent] += end - start
        account = OF_CATEGORY[category_of_group(subs.group[sub])]
        yield CallTime(account, operation_label(ops.name[parent], subs.name[sub]), end - start)
    for op, (name, start, end) in enumerate(zip(ops.name, ops.start, ops.end, strict=True)):
        # Overlapping sub-operations may last longer than the operation that they are in.
        yield CallTime(OF_CATEGORY[ops.category(op)], name, max(end - start - inside[op], 0))


def measured_graph(
    graph: MeasuredGraph,
    ends: Sequence[int],
    step_ns: int,
    get_durations: Callable[[], array[int]],
    replayed_ends: Sequence[int] | None = None,
) -> TraceGraph:
    """Returns the graph of a trace. ends: as in `measured_trace`. get_durations: returns the
    durations, ns. replayed_ends: as in `TraceGraph`.
    """
    rendezvous = graph.rendezvous

    def member(rank: int, segment_index: int, other: int) -> int:
        return graph.waiting_segment(rendezvous.segments[rank].meeting[segment_index], other)

    return TraceGraph(
        graph.graph,
        ends,
        step_ns,
        [nodes[-1] if nodes else START for nodes in graph.end_nodes],
        ranks=[rank.rank for rank in rendezvous.run.ranks],
        nodes=graph.end_nodes,
        row_of=graph.row_of,
        find_member_span=member,
        make_durations=get_durations,
        message_sends=[
            (node, *of) for node, (of, _) in zip(graph.messages, rendezvous.transfers, strict=True)
        ],
        is_launched=lambda node, rank: _is_launched(graph, node, rank),
        # A rank's idle time is one segment, though the step may begin within it or an instant split it.
        idle=[segments.kind.translate(_IS_GAP) for segments in rendezvous.segments],
        hides_instants=True,
        replayed_ends=replayed_ends,
    )


def _is_launched(graph: MeasuredGraph, node: int, rank: int) -> bool:
    """Returns whether a node is a collective of several that a rank has launched alongside its own work."""
    meeting = NONE if graph.graph.is_join(node) else graph.meeting_of(node)
    # For a call without a partner no arrival is known: its rank is not the last.
    if meeting == NONE or graph.rendezvous.count_coming(meeting) < 2:
        return False
    return graph.rendezvous.segments[rank].kind[graph.waiting_segment(meeting, rank)] == AWAIT


def _make_spans(graph: MeasuredGraph, ends: Sequence[int], rank: int) -> Spans:
    """Returns the spans of a rank. Clocks that differ can end one a little too early: spans never overlap."""
    rendezvous, nodes = graph.rendezvous, graph.end_nodes[rank]
    end = select(ends, nodes)
    if not all(map(le, end, end[1:])):
        end = array("q", accumulate(end, max))
    start = array("q", (0,))[: len(end)] + end[:-1]
    category = _categories(graph, rank)
    level = category.translate(_LEVEL)
    of_several = rendezvous.segments[rank].kind.translate(_OF_SEVERAL)
    ready = start[:] if 1 in of_several else start
    for segment in compress(range(len(nodes)), of_several):
        if graph.can_wait(rank, segment):
            ready[segment] = max(start[segment], min(graph.begin_ns(rank, segment, ends), end[segment]))
            level[segment] = COMPUTES if category[segment] < FIRST_EXPOSED else COMMUNICATES
    if rendezvous.run.of_devices:
        for flight in flights(graph, ends, rank):
            start[flight.segment], ready[flight.segment] = flight.start, flight.began
            end[flight.segment], level[flight.segment] = flight.end, LAUNCHED
    return Spans(start, ready, end, category, level)


def _categories(graph: MeasuredGraph, rank: int) -> bytearray:
    """Returns the account of what each segment of a rank does when it does not wait."""
    segments, ops = graph.rendezvous.segments[rank], graph.rendezvous.run.ranks[rank].ops
    if ops.stated_category:
        of_op = ops.stated_category.translate(_OF_STATED)
    else:
        of_op = bytearray(OF_CATEGORY[ops.category(op)] for op in range(len(ops)))
    own = bytes(map(of_op.__getitem__, segments.op)) if of_op else bytes(len(segments))
    of_several = segments.kind.translate(_OF_SEVERAL)
    # The whole column is one integer.
    gaps, idle, mine = (
        int.from_bytes(column, "little")
        for column in (segments.kind.translate(_GAPS), bytes((IDLE,)) * len(segments), own)
    )
    category = bytearray((mine ^ (mine ^ idle) & gaps).to_bytes(len(segments), "little"))
    # Segments with a sub-operation (-1 for none), and those of several ranks.
    has_subs = len(graph.rendezvous.run.ranks[rank].subs) > 0
    others = map(le, repeat(0), map(add, of_several, segments.sub)) if has_subs else of_several
    for segment in compress(range(len(segments)), others):
        category[segment] = own_account(graph, rank, segment)
    return category
