"""The spans of a simulated run, for formats that write spans: a track is a rank class, a span an op."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterator, Sequence

from simcore.analysis.accounts import IDLE_OP
from simcore.collectives import WITH_COPIES
from simcore.diagnostics import Diagnostic, UsageError, printable
from simcore.layout import GROUP_KINDS
from simcore.program.ops import (
    COMPUTE,
    PHASES,
    RANK_STREAMS,
    RECEIVING,
    STREAMS,
    CollectiveCost,
    TransferCost,
)
from simcore.ranks import describe_position
from simcore.records import NamedTuple
from simcore.render.export.format import Request
from simcore.render.export.spans import (
    ArrivedTransfer,
    ExportedSpans,
    Fact,
    Threads,
    TrackSpans,
    Waiting,
    disjoint_rows,
    ranks_in_words,
)
from simcore.sources.simulated import ACCOUNTS, FIRST_EXPOSED
from simcore.trace.account_walk import track_accounts
from simcore.trace.contexts import Simulated
from simcore.trace.spans import Trace
from simcore.units import plural

# The threads of a rank in their order on the screen.
_THREADS = ("compute", "waiting", *RANK_STREAMS[1:])
# Their numbers, from 1, by name, and as a table to `translate` a column of streams.
_TID = {name: tid for tid, name in enumerate(_THREADS, 1)}
_TID_OF_STREAM = bytes(_TID[name] for name in STREAMS).ljust(256, b"\0")


def select_simulated_spans(request: Request, simulated: Simulated, folded: bool) -> ExportedSpans:
    """Returns the requested ranks. folded: by default one of each class, else all of them.

    Raises `UsageError` for a rank that the world does not have.
    """
    run, world, path = request.results, simulated.layout.world, simulated.workload.path
    classes = [rank_class.ranks for rank_class in simulated.timeline.classes]
    stand_in = folded and request.ranks is None and not request.every_rank
    if stand_in:
        ranks_by_class = [[ranks.first] for ranks in classes]
    elif request.ranks is None:
        ranks_by_class = [sorted(ranks) for ranks in classes]
    else:
        last, requested_ranks = max(request.ranks), set(request.ranks)
        if last >= world:
            raise UsageError(f"--ranks: found rank {last}, expected ranks from 0 to {world - 1}")
        ranks_by_class = [sorted(requested_ranks.intersection(ranks)) for ranks in classes]
    everyone = {rank for ranks in ranks_by_class for rank in ranks}
    source = _SpanSource(simulated, run.trace, ranks_by_class, everyone, stand_in)
    tracks = [ClassSpans(source, class_id) for class_id, ranks in enumerate(ranks_by_class) if ranks]
    facts = {
        "parameters": printable(" ".join(run.parameters.as_flags()), 4000),
        "schedule": simulated.timeline.program.schedule,
        "network": run.setup.network_name,
        "step_time_ns": str(run.step_time_ns),
    }
    diagnostics = simulated.diagnostics[len(simulated.workload.diagnostics) :]
    if stand_in and len(everyone) < world:
        message = (
            f"{plural(len(everyone), 'rank')} of {world} written, one of each class of equal ranks: "
            "--ranks all writes every rank"
        )
        diagnostics = (*diagnostics, Diagnostic("note", "equal-ranks", message, path))
    who = f"{len(everyone)} of {plural(world, 'rank')}"
    return ExportedSpans(path, facts, tracks, who, diagnostics, in_one_line=", equal ranks in one line")


class _SpanSource(NamedTuple):
    """What is written of a simulated run."""

    simulated: Simulated
    trace: Trace
    ranks_by_class: Sequence[Sequence[int]]
    """The written ranks of each class, ascending."""
    written_ranks: set[int]
    """All of them."""
    is_representative: bool
    """Whether a rank stands for all that are equal to it, also as the end of transfers."""


class ClassSpans(TrackSpans):
    """The spans of a rank class, in the order of issue."""

    stage: int

    def __init__(self, source: _SpanSource, class_id: int) -> None:
        self.source, self.class_id = source, class_id
        self.timeline, self.layout = source.simulated.timeline, source.simulated.layout
        self.ops, self.start, self.end = self.timeline.columns(class_id)
        self.microbatch, self.stage = self.ops.microbatch, self.timeline.stage_of(class_id)
        self.ranks = source.ranks_by_class[class_id]

    def title(self, rank: int) -> tuple[str, str]:
        name, labels = f"rank {rank}", describe_position(self.layout.position(rank))
        equal_ranks = self.timeline.ranks_of(self.class_id)
        if self.source.is_representative and len(equal_ranks) > 1:
            return f"{name} (x{len(equal_ranks)})", f"{labels}, equal ranks {printable(equal_ranks.text())}"
        return name, labels

    def groups(self, rank: int) -> dict[str, str]:
        every = f"0-{self.layout.world - 1}"
        return {
            kind: every if kind == "all" else ranks_in_words(sorted(self.layout.group_of(kind, rank)))
            for kind in self.timeline.groups_of(self.class_id)
            if kind in GROUP_KINDS  # copies to the host are of one rank
        }

    def sender(self, rank: int, source: int) -> int | None:
        if self.source.is_representative:
            sender_class = self.timeline.classes[self.class_id].links[source - self.stage].neighbour
            return self.source.ranks_by_class[sender_class][0]
        neighbour = self.layout.neighbour(rank, source)
        return neighbour if neighbour in self.source.written_ranks else None

    # -- what spans are --------------------------------------------------------------

    def kinds(self) -> Iterator[Hashable]:
        ops = self.ops
        # Compute has no bandwidth.
        ns = map(lambda lane, start, end: end - start if lane else 0, ops.stream, self.start, self.end)
        return zip(ops.cost, ops.row, ops.phase, ops.blocking, ns, strict=True)

    def fact(self, span: int) -> Fact:
        ops = self.ops
        return self._build_fact(
            ops.stream[span], ops.cost[span], ops.row[span], ops.phase[span], ops.blocking[span]
        )

    def _build_fact(self, stream: int, cost: int, row: int, phase: int, blocking: int) -> Fact:
        workload, op_cost = self.source.simulated.workload, self.timeline.program.costs[cost]
        layer, line = (printable(workload.name[row]), workload.line[row]) if row >= 0 else ("", -1)
        kind, bytes, group, collective, members, other_stage = "compute", -1, "", "", 0, -1
        if isinstance(op_cost, CollectiveCost):
            kind, bytes = WITH_COPIES[op_cost.collective], op_cost.bytes
            # A copy to the host is of one rank.
            if not op_cost.ns:
                group, collective = op_cost.group, op_cost.collective
                members = self.layout.group_size(op_cost.group)
        elif isinstance(op_cost, TransferCost):
            kind, bytes, collective, other_stage = (
                "send",
                op_cost.bytes,
                "SENDRECV",
                self.stage + op_cost.step,
            )
        return Fact(
            kind, STREAMS[stream], layer, PHASES[phase], row, line, bytes, collective, group, members,
            blocking if group else -1, other_stage,
        )  # fmt: skip

    def received(self) -> Iterator[ArrivedTransfer]:
        timeline = self.timeline
        facts: dict[tuple[int, int, int, int], Fact] = {}
        width = len(str(timeline.program.messages))
        for message, sender, op, source, first, last in timeline.arrivals(self.class_id):
            sender_ops, start, end = timeline.columns(sender)
            key = (sender_ops.stream[op], sender_ops.cost[op], sender_ops.row[op], sender_ops.phase[op])
            fact = facts.get(key)
            if fact is None:
                sent_fact = self._build_fact(*key, 0)
                fact = facts[key] = sent_fact._replace(
                    kind="receive", stream=RECEIVING[sender_ops.stream[op]], other_stage=source
                )
            consumer = self._first_that_takes_time(first, last)
            yield ArrivedTransfer(
                f"{message:0{width}d}", fact, _TID_OF_STREAM[sender_ops.stream[op]], start[op], end[op],
                sender_ops.microbatch[op], source, consumer,
            )  # fmt: skip

    def _first_that_takes_time(self, first: int, last: int) -> int:
        stream, start, end = self.ops.stream, self.start, self.end
        for op in range(first, last):
            if stream[op] == COMPUTE and end[op] > start[op]:
                return op
        return -1

    def waiting(self, received: Sequence[ArrivedTransfer]) -> Iterator[Waiting]:
        """Yields all segments of the accounts in which the compute stream does not compute."""
        trace, class_id = self.source.trace, self.class_id
        codes = [code for code, _, _ in trace.arrivals(class_id)]
        arrived = dict(zip(codes, (one.fact for one in received), strict=True))
        accounts = track_accounts(trace, class_id)
        columns = zip(accounts.account, accounts.op, accounts.edge, accounts.edge[1:], strict=False)
        for account, op, start, end in columns:
            if account >= FIRST_EXPOSED and end > start:
                fact = None if op == IDLE_OP else self.fact(op) if op >= 0 else arrived[op]
                yield Waiting(ACCOUNTS[account], start, end, fact)

    # -- threads ---------------------------------------------------------------------

    def assign_threads(self, received: Sequence[ArrivedTransfer]) -> tuple[TrackSpans, Threads]:
        stream, rows = self.ops.stream, self._rows()
        used = {(_TID["compute"], 0), (_TID["waiting"], 0)}
        used |= {(_TID[one.fact.stream], 0) for one in received}
        span_threads: Sequence[int]
        if rows is None:
            used |= {(_TID_OF_STREAM[lane], 0) for lane in set(stream)}
            span_threads = stream.translate(_TID_OF_STREAM)
        else:
            used |= {(_TID_OF_STREAM[lane], row) for lane, row in zip(stream, rows, strict=True)}
            # Further rows of a thread come after all others.
            span_threads = [
                _TID_OF_STREAM[lane] + row * len(_THREADS) for lane, row in zip(stream, rows, strict=True)
            ]
        thread_names = [
            (thread + row * len(_THREADS), _THREADS[thread - 1] + (f" ({row + 1})" if row else ""))
            for thread, row in sorted(used)
        ]
        return self, Threads(thread_names, span_threads)

    def _rows(self) -> Sequence[int] | None:
        """Returns the row of each op within its stream, from 0; None where one row holds every stream.

        Only the queues of dialect astra-sim-1 serve several collectives of a stream at a time.
        """
        if not self.timeline.program.queued:
            return None
        rows = array("i", bytes(4 * len(self.ops)))
        for lane in range(len(STREAMS)):
            ops = [op for op, stream in enumerate(self.ops.stream) if stream == lane]
            ops.sort(key=lambda op: (self.start[op], self.end[op], op))
            op_rows = disjoint_rows([(self.start[op], self.end[op]) for op in ops])
            for op, row in zip(ops, op_rows, strict=True):
                rows[op] = row
        return rows
