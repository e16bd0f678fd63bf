"""The spans of a simulated run, for formats that write them down: a track is a rank class, a span an op."""

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
from simcore.ranks import place_words
from simcore.records import NamedTuple
from simcore.render.export.format import Request
from simcore.render.export.spans import (
    Fact,
    Received,
    Threads,
    Told,
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

# Threads of a rank in the order in which they are shown.
_THREADS = ("compute", "waiting", *RANK_STREAMS[1:])
# Their numbers, from 1, by name, and as a table for `translate` of a column of streams.
_NUMBER = {name: number for number, name in enumerate(_THREADS, 1)}
_OF_STREAM = bytes(_NUMBER[name] for name in STREAMS).ljust(256, b"\0")


def told_simulation(request: Request, simulated: Simulated, folded: bool) -> Told:
    """The ranks that are asked for. folded: without a choice, one of each class, else all of them.

    Raises `UsageError` for a rank that the world does not have.
    """
    run, world, path = request.results, simulated.layout.world, simulated.workload.path
    classes = [rank_class.ranks for rank_class in simulated.timeline.classes]
    stand_in = folded and request.ranks is None and not request.every_rank
    if stand_in:
        chosen = [[ranks.first] for ranks in classes]
    elif request.ranks is None:
        chosen = [sorted(ranks) for ranks in classes]
    else:
        last, wanted = max(request.ranks), set(request.ranks)
        if last >= world:
            raise UsageError(f"--ranks: found rank {last}, expected ranks from 0 to {world - 1}")
        chosen = [sorted(wanted.intersection(ranks)) for ranks in classes]
    everyone = {rank for ranks in chosen for rank in ranks}
    written = _Written(simulated, run.trace, chosen, everyone, stand_in)
    tracks = [ClassSpans(written, number) for number, ranks in enumerate(chosen) if ranks]
    facts = {
        "parameters": printable(" ".join(run.parameters.as_flags()), 4000),
        "schedule": simulated.timeline.program.schedule,
        "network": run.parameters.network,
        "step_time_ns": str(run.step_time_ns),
    }
    said = simulated.diagnostics[len(simulated.workload.diagnostics) :]
    if stand_in and len(everyone) < world:
        message = (
            f"{plural(len(everyone), 'rank')} of {world} written, one of each class of equal ranks: "
            "--ranks all writes every rank"
        )
        said = (*said, Diagnostic("note", "equal-ranks", message, path))
    who = f"{len(everyone)} of {plural(world, 'rank')}"
    return Told(path, facts, tracks, who, said, in_one_line=", equal ranks in one line")


class _Written(NamedTuple):
    """What is written of a simulated run. chosen: the ranks of each class, ascending; everyone: all of them.
    stand_in: whether a rank stands for all that are equal to it, here too where it talks to others.
    """

    simulated: Simulated
    trace: Trace
    chosen: Sequence[Sequence[int]]
    everyone: set[int]
    stand_in: bool


class ClassSpans(TrackSpans):
    """The spans of rank class `number`, in issue order."""

    stage: int

    def __init__(self, written: _Written, number: int) -> None:
        self.written, self.number = written, number
        self.timeline, self.layout = written.simulated.timeline, written.simulated.layout
        self.ops, self.start, self.end = self.timeline.columns(number)
        self.microbatch, self.stage = self.ops.microbatch, self.timeline.stage_of(number)
        self.ranks = written.chosen[number]

    def title(self, rank: int) -> tuple[str, str]:
        name, labels = f"rank {rank}", place_words(self.layout.position(rank))
        alike = self.timeline.ranks_of(self.number)
        if self.written.stand_in and len(alike) > 1:
            return f"{name} (x{len(alike)})", f"{labels}, ranks {printable(alike.text())} alike"
        return name, labels

    def groups(self, rank: int) -> dict[str, str]:
        every = f"0-{self.layout.world - 1}"
        return {
            kind: every if kind == "all" else ranks_in_words(sorted(self.layout.group_of(kind, rank)))
            for kind in self.timeline.groups_of(self.number)
            if kind in GROUP_KINDS  # copies to the host are of one rank
        }

    def sender(self, rank: int, source: int) -> int | None:
        if self.written.stand_in:
            of = self.timeline.classes[self.number].links[source - self.stage].neighbour
            return self.written.chosen[of][0]
        neighbour = self.layout.neighbour(rank, source)
        return neighbour if neighbour in self.written.everyone else None

    # -- what spans are --------------------------------------------------------------

    def kinds(self) -> Iterator[Hashable]:
        ops = self.ops
        # Compute has no bandwidth.
        ns = map(lambda lane, start, end: end - start if lane else 0, ops.stream, self.start, self.end)
        return zip(ops.cost, ops.row, ops.phase, ops.blocking, ns, strict=True)

    def fact(self, span: int) -> Fact:
        ops = self.ops
        return self._fact(
            ops.stream[span], ops.cost[span], ops.row[span], ops.phase[span], ops.blocking[span]
        )

    def _fact(self, stream: int, cost: int, row: int, phase: int, blocking: int) -> Fact:
        workload, what = self.written.simulated.workload, self.timeline.program.costs[cost]
        layer, line = (printable(workload.name[row]), workload.line[row]) if row >= 0 else ("", -1)
        kind, bytes, group, collective, members, other = "compute", -1, "", "", 0, -1
        if isinstance(what, CollectiveCost):
            kind, bytes = WITH_COPIES[what.collective], what.bytes
            # A copy to the host is of one rank.
            if not what.ns:
                group, collective = what.group, what.collective
                members = self.layout.group_size(what.group)
        elif isinstance(what, TransferCost):
            kind, bytes, collective, other = "send", what.bytes, "SENDRECV", self.stage + what.step
        return Fact(
            kind, STREAMS[stream], layer, PHASES[phase], row, line, bytes, collective, group, members,
            blocking if group else -1, other,
        )  # fmt: skip

    def received(self) -> Iterator[Received]:
        timeline = self.timeline
        facts: dict[tuple[int, int, int, int], Fact] = {}
        width = len(str(timeline.program.messages))
        for message, sender, op, source, first, last in timeline.arrivals(self.number):
            sent, start, end = timeline.columns(sender)
            key = (sent.stream[op], sent.cost[op], sent.row[op], sent.phase[op])
            fact = facts.get(key)
            if fact is None:
                made = self._fact(*key, 0)
                fact = facts[key] = made._replace(
                    kind="receive", stream=RECEIVING[sent.stream[op]], other_stage=source
                )
            consumer = self._first_that_takes_time(first, last)
            yield Received(
                f"{message:0{width}d}", fact, _OF_STREAM[sent.stream[op]], start[op], end[op],
                sent.microbatch[op], source, consumer,
            )  # fmt: skip

    def _first_that_takes_time(self, first: int, last: int) -> int:
        stream, start, end = self.ops.stream, self.start, self.end
        for op in range(first, last):
            if stream[op] == COMPUTE and end[op] > start[op]:
                return op
        return -1

    def waiting(self, received: Sequence[Received]) -> Iterator[Waiting]:
        """All segments of the accounts in which the compute stream does not compute."""
        trace, number = self.written.trace, self.number
        codes = [code for code, _, _ in trace.arrivals(number)]
        arrived = dict(zip(codes, (one.fact for one in received), strict=True))
        accounts = track_accounts(trace, number)
        columns = zip(accounts.account, accounts.op, accounts.edge, accounts.edge[1:], strict=False)
        for account, op, start, end in columns:
            if account >= FIRST_EXPOSED and end > start:
                fact = None if op == IDLE_OP else self.fact(op) if op >= 0 else arrived[op]
                yield Waiting(ACCOUNTS[account], start, end, fact)

    # -- threads ---------------------------------------------------------------------

    def drawn(self, received: Sequence[Received]) -> tuple[TrackSpans, Threads]:
        stream, rows = self.ops.stream, self._rows()
        used = {(_NUMBER["compute"], 0), (_NUMBER["waiting"], 0)}
        used |= {(_NUMBER[one.fact.stream], 0) for one in received}
        of: Sequence[int]
        if rows is None:
            used |= {(_OF_STREAM[lane], 0) for lane in set(stream)}
            of = stream.translate(_OF_STREAM)
        else:
            used |= {(_OF_STREAM[lane], row) for lane, row in zip(stream, rows, strict=True)}
            # Further rows of a thread lie behind all others.
            of = [_OF_STREAM[lane] + row * len(_THREADS) for lane, row in zip(stream, rows, strict=True)]
        named = [
            (thread + row * len(_THREADS), _THREADS[thread - 1] + (f" ({row + 1})" if row else ""))
            for thread, row in sorted(used)
        ]
        return self, Threads(named, of)

    def _rows(self) -> Sequence[int] | None:
        """The row of each op within its stream, from 0; None where one row holds every stream.

        Only the queues of dialect astra-sim-1 serve several collectives of a stream at a time.
        """
        if not self.timeline.program.queued:
            return None
        rows = array("i", bytes(4 * len(self.ops)))
        for lane in range(len(STREAMS)):
            ops = [op for op, stream in enumerate(self.ops.stream) if stream == lane]
            ops.sort(key=lambda op: (self.start[op], self.end[op], op))
            taken = disjoint_rows([(self.start[op], self.end[op]) for op in ops])
            for op, row in zip(ops, taken, strict=True):
                rows[op] = row
        return rows
