"""A timeline in the Trace Event Format that Perfetto and chrome://tracing open: one process a rank.

Each stream is a thread; `waiting` holds what the compute stream waits for, from the accounts.
Times are microseconds with three decimals, so exact to the nanosecond. Source of the format:
"Trace Event Format" by the Chromium project.

The events of a class are written once, with a mark wherever a rank's own numbers belong, and
each of its ranks takes that text with the marks replaced. JSON text has no control characters,
so marks are control characters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from simcore import __version__
from simcore.analysis.accounts import IDLE_OP
from simcore.collectives import algorithm_bandwidth, bus_bandwidth
from simcore.diagnostics import printable
from simcore.layout import GROUP_KINDS
from simcore.program.ops import RANK_STREAMS, STREAMS
from simcore.ranks import place_words
from simcore.records import NamedTuple
from simcore.render.export.format import (
    Chosen,
    Export,
    Progress,
    Request,
    choose,
    left_out,
    of_run,
    ranks_in_words,
)
from simcore.render.export.spans import ClassSpans, Fact, in_pieces, made_once
from simcore.render.report.json_text import microseconds, quoted_json
from simcore.simulation import Simulation, simulate
from simcore.sources.simulated import ACCOUNTS, FIRST_EXPOSED
from simcore.trace.account_walk import track_accounts
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.workload import Workload

# Threads of a rank in the order in which they are shown.
_THREADS = ("compute", "waiting", *RANK_STREAMS[1:])
_RANK = "\x00"
# The rank at the other end of a flow, and the ranks of a group by its kind.
_SENDER = "\x01"
_GROUP = {kind: chr(2 + index) for index, kind in enumerate(GROUP_KINDS)}


def export(request: Request) -> Export:
    """The timeline of the ranks that are asked for: by itself one of each class of equal ranks."""
    # What `ExportFormat.requested` has told apart.
    workload = cast("Workload", request.opened)
    if request.per_rank:
        from simcore.render.export.hta import export_per_rank

        return export_per_rank(workload, request)
    simulation = simulate(workload, request.parameters)
    chosen = choose(simulation, request, folded=True)
    spans = chosen.spans(simulation)
    progress = Progress(spans)
    what = f"{chosen.count} of {plural(simulation.layout.world, 'rank')}, {plural(spans, 'span')}"
    diagnostics = (*of_run(simulation), *left_out(simulation, chosen))
    return Export(_pieces(simulation, chosen, progress), what, diagnostics, progress)


def head(path: str, more: dict[str, str]) -> str:
    """The beginning of a file, up to its first event. more: what is said of the run besides its file."""
    facts = {"wltui": __version__, "file": printable(path), **more}
    entries = ",".join(f"{quoted_json(key)}:{quoted_json(value)}" for key, value in facts.items())
    return f'{{"displayTimeUnit":"ns","otherData":{{{entries}}},\n"traceEvents":[\n'


TAIL = b"\n]}\n"


def run_facts(simulation: Simulation) -> dict[str, str]:
    """What is said of a simulated run, besides its file."""
    return {
        "parameters": printable(" ".join(simulation.parameters.as_flags()), 4000),
        "schedule": simulation.program.schedule,
        "network": simulation.parameters.network,
        "step_time_ns": str(simulation.step_time_ns),
    }


def metadata(pid: int | str, name: str, labels: str, order: int, threads: list[tuple[int, str, int]]) -> str:
    """The names and places of a process and its threads (tid, name, place), comma-separated events."""
    events = [
        f'{{"ph":"M","pid":{pid},"name":"process_name","args":{{"name":{quoted_json(name)}}}}}',
        f'{{"ph":"M","pid":{pid},"name":"process_labels","args":{{"labels":{quoted_json(labels)}}}}}',
        f'{{"ph":"M","pid":{pid},"name":"process_sort_index","args":{{"sort_index":{order}}}}}',
    ]
    for tid, thread, row in threads:
        begin = f'{{"ph":"M","pid":{pid},"tid":{tid},"name":'
        events.append(f'{begin}"thread_name","args":{{"name":{quoted_json(thread)}}}}}')
        events.append(f'{begin}"thread_sort_index","args":{{"sort_index":{row}}}}}')
    return ",\n".join(events)


def _pieces(simulation: Simulation, chosen: Chosen, progress: Progress) -> Iterator[bytes]:
    yield head(simulation.workload.path, run_facts(simulation)).encode()
    everyone = {rank for ranks in chosen.of_class.values() for rank in ranks}
    between = b""
    for number, ranks in chosen.of_class.items():
        events = _ClassEvents(simulation, number)
        threads = events.threads()
        for rank in ranks:
            yield between + _process(simulation, chosen, number, rank, threads).encode()
            between = b",\n"
        marks = [(rank, _marks(simulation, number, rank)) for rank in ranks]
        senders = {
            source: [_sender(simulation, chosen, everyone, rank, source, other) for rank in ranks]
            for source, other in events.sources.items()
        }
        for piece in events.pieces():
            for index, (rank, groups) in enumerate(marks):
                text = piece.text
                if piece.source is not None:
                    sender = senders[piece.source][index]
                    if sender is None:
                        continue
                    text = text.replace(_SENDER.encode(), b"%d" % sender)
                for mark, filled in groups:
                    text = text.replace(mark, filled)
                yield text.replace(_RANK.encode(), b"%d" % rank)
                progress.done += piece.spans
    yield TAIL


def _process(
    simulation: Simulation, chosen: Chosen, number: int, rank: int, threads: list[tuple[int, str, int]]
) -> str:
    labels = place_words(simulation.layout.position(rank))
    name = f"rank {rank}"
    alike = simulation.timeline.ranks_of(number)
    if chosen.stand_ins and len(alike) > 1:
        name += f" (x{len(alike)})"
        labels += f", ranks {printable(alike.text())} alike"
    return metadata(rank, name, labels, rank, threads)


def _marks(simulation: Simulation, number: int, rank: int) -> list[tuple[bytes, bytes]]:
    """What stands in a rank's events for the groups it is in."""
    layout = simulation.layout
    marks = []
    for kind in simulation.timeline.groups_of(number):
        if kind not in _GROUP:
            continue  # copies to the host are of one rank
        if kind == "all":
            ranks = f"0-{layout.world - 1}"
        else:
            ranks = ranks_in_words(sorted(layout.group_of(kind, rank)))
        marks.append((_GROUP[kind].encode(), ranks.encode()))
    return marks


def _sender(
    simulation: Simulation, chosen: Chosen, everyone: set[int], rank: int, source: int, other: int
) -> int | None:
    """The rank of stage `source`, of class `other`, that sends to a rank; None if it is not in the file."""
    if chosen.stand_ins:
        return chosen.of_class[other][0]
    neighbour = simulation.layout.neighbour(rank, source)
    return neighbour if neighbour in everyone else None


class _Piece(NamedTuple):
    """Events of a class with marks in them. source: of flows, the stage they come from."""

    text: bytes
    spans: int
    source: int | None = None


class _ClassEvents:
    """The events of a rank class. sources: the stages that it receives from, and the class there."""

    def __init__(self, simulation: Simulation, number: int) -> None:
        timeline = simulation.timeline
        self.spans = ClassSpans(simulation, number)
        self.accounts = track_accounts(simulation.trace, number)
        self.rows = self.spans.rows()
        self.received = list(self.spans.received())
        self.arrivals = list(simulation.trace.arrivals(number))
        self.sources = {
            received.source: timeline.received(number, received.message)[0] for received in self.received
        }

    def threads(self) -> list[tuple[int, str, int]]:
        """(tid, name, place) of the threads that have spans."""
        stream = self.spans.ops.stream
        used = {(_OF_STREAM[lane], 0) for lane in set(stream)}
        used |= {(_thread("compute"), 0), (_thread("waiting"), 0)}
        used |= {(_thread(received.stream), 0) for received in self.received}
        if self.rows is not None:
            used |= {(_OF_STREAM[lane], row) for lane, row in zip(stream, self.rows, strict=True)}
        return [
            (_tid(thread, row), _THREADS[thread] + (f" ({row + 1})" if row else ""), index)
            for index, (thread, row) in enumerate(sorted(used))
        ]

    def pieces(self) -> Iterator[_Piece]:
        """All events, those of ops first."""
        for text, count in in_pieces(self._op_events()):
            yield _Piece(text, count)
        for texts, source in (
            (self._received_events(), None),
            (self._waiting_events(), None),
            *((self._flows(source), source) for source in self.sources),
        ):
            for text, _ in in_pieces(texts):
                yield _Piece(text, 0, source)

    def _op_events(self) -> Iterator[str]:
        spans, rows = self.spans, self.rows
        ops, starts, ends = spans.ops, spans.start, spans.end
        # Bandwidths depend on the duration; compute has none.
        lengths = (
            end - start if lane else 0 for lane, start, end in zip(ops.stream, starts, ends, strict=True)
        )
        bodies = made_once(
            zip(spans.kinds(), lengths, strict=True), lambda op: _body(spans.fact(op), ends[op] - starts[op])
        )
        columns = zip(bodies, ops.stream, starts, ends, ops.microbatch, strict=True)
        for op, (body, lane, start, end, batch) in enumerate(columns):
            yield _event(body, _tid(_OF_STREAM[lane], rows[op] if rows is not None else 0), start, end, batch)

    def _received_events(self) -> Iterator[str]:
        for received in self.received:
            body = _body(received.fact, received.end - received.start)
            yield _event(
                body, _thread(received.stream) + 1, received.start, received.end, received.microbatch
            )

    def _waiting_events(self) -> Iterator[str]:
        """What the compute stream waits for: all segments of the accounts in which it does not compute."""
        accounts = self.accounts
        tid = _tid(_thread("waiting"), 0)
        codes = [code for code, _, _ in self.arrivals]
        arrived = dict(zip(codes, (received.fact for received in self.received), strict=True))
        for index, (account, op) in enumerate(zip(accounts.account, accounts.op, strict=True)):
            start, end = accounts.edge[index], accounts.edge[index + 1]
            if account < FIRST_EXPOSED or end == start:
                continue
            name = ACCOUNTS[account]
            args = ""
            if op != IDLE_OP:
                fact = self.spans.fact(op) if op >= 0 else arrived[op]
                args = f'"for":{quoted_json(_name(fact))}'
            yield (
                f',\n{{"ph":"X","pid":{_RANK},"tid":{tid},"ts":{microseconds(start)},'
                f'"dur":{microseconds(end - start)},"name":"{name}","cat":"waiting","args":{{{args}}}}}'
            )

    def _flows(self, source: int) -> Iterator[str]:
        """Arrows from transfers on the sender to the compute that waits for them."""
        width = len(str(self.spans.timeline.program.messages))
        for received in self.received:
            if received.source != source or received.consumer < 0 or received.end == received.start:
                continue
            # This rank and the message make the id: nobody else receives it here. Perfetto takes
            # a text for a hexadecimal number, and a JavaScript number could not hold all of them.
            same = f'"id":"0x{_RANK}{received.message:0{width}d}",'
            same += f'"name":"{received.fact.phase}","cat":"transfer"'
            begins = microseconds(self.spans.start[received.consumer])
            yield (
                f',\n{{"ph":"s",{same},"pid":{_SENDER},"tid":{_thread(received.sent_on) + 1},'
                f'"ts":{microseconds(received.start)}}}'
                f',\n{{"ph":"f","bp":"e",{same},"pid":{_RANK},"tid":{_thread("compute") + 1},"ts":{begins}}}'
            )


def _event(body: str, tid: int, start: int, end: int, batch: int) -> str:
    """A span with its micro-batch, if it has one. start, end: ns."""
    ns = end - start
    where = f',"microbatch":{batch}}}}}' if batch >= 0 else "}}"
    return (
        f',\n{{"ph":"X","pid":{_RANK},"tid":{tid},"ts":{start // 1000}.{start % 1000:03d},'
        f'"dur":{ns // 1000}.{ns % 1000:03d},{body}{where}'
    )


def _thread(name: str) -> int:
    return _THREADS.index(name)


_OF_STREAM = tuple(map(_thread, STREAMS))


def _tid(thread: int, row: int) -> int:
    """The number of a thread, from 1; further rows of it lie behind all others."""
    return 1 + thread + row * len(_THREADS)


def _name(fact: Fact) -> str:
    """The name of a span: what it is, of which row, in which phase."""
    if fact.kind == "compute":
        return f"{fact.layer} {fact.phase}"
    name = f"{fact.kind} {fact.layer}".rstrip()
    if fact.other_stage >= 0:
        name += f" {'from' if fact.kind == 'receive' else 'to'} stage {fact.other_stage}"
    return f"{name} {fact.phase}"


def _body(fact: Fact, ns: int) -> str:
    """Name, category and arguments of a span, as far as the micro-batch."""
    sort = "compute" if fact.kind == "compute" else "transfer" if fact.other_stage >= 0 else (
        "collective" if fact.group else "copy"
    )  # fmt: skip
    args = [f'"phase":"{fact.phase}"']
    if fact.row >= 0:
        args.append(f'"layer":{quoted_json(fact.layer)},"row":{fact.row},"line":{fact.line}')
    if fact.bytes >= 0:
        args.append(f'"bytes":{fact.bytes}')
    if fact.group:
        args.append(
            f'"group":"{fact.group}","members":{fact.members},"ranks":"{_GROUP[fact.group]}",'  # type: ignore[index]
            f'"blocking":{"true" if fact.blocking else "false"}'
        )
    if fact.bytes > 0 and ns:
        args.append(f'"algbw_gbps":{algorithm_bandwidth(fact.bytes, ns):.3f}')
        if fact.group:
            bus = bus_bandwidth(fact.collective, fact.members, fact.bytes, ns)
            args.append(f'"busbw_gbps":{bus:.3f}')
    return f'"name":{quoted_json(_name(fact))},"cat":"{sort},{fact.phase}","args":{{{",".join(args)}'
