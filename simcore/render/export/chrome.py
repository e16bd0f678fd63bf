"""A timeline in the Trace Event Format that Perfetto and chrome://tracing open: one process a rank.

Each stream is a thread; `waiting` holds what the compute stream waits for, from the accounts. Of a recording
sub-operations lie in their operations; what overlaps without lying inside has a thread of its own.
Times are microseconds with three decimals, so exact to the nanosecond. Source of the format:
"Trace Event Format" by the Chromium project.

The events of a track are written once, with a mark wherever a rank's own numbers belong, and
each of its ranks takes that text with the marks replaced. JSON text has no control characters,
so marks are control characters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from simcore import __version__
from simcore.collectives import algorithm_bandwidth, bus_bandwidth
from simcore.diagnostics import printable
from simcore.layout import GROUP_KINDS
from simcore.records import NamedTuple
from simcore.render.export.format import Export, Progress, Request
from simcore.render.export.spans import (
    NO_END,
    Arrow,
    Fact,
    Received,
    Threads,
    Told,
    TrackSpans,
    in_pieces,
    made_once,
)
from simcore.render.export.told import told
from simcore.render.report.json_text import microseconds, quoted_json

_RANK = "\x00"
# The rank at the other end of a flow, and the ranks of a group by its kind.
_SENDER = "\x01"
_GROUP = {str(kind): chr(2 + index) for index, kind in enumerate(GROUP_KINDS)}


def export(request: Request) -> Export:
    """The timeline of the ranks that are asked for: by itself one of each class of equal ranks."""
    spans = told(request, folded=True)
    progress = Progress(spans.total)
    if request.per_rank:
        from simcore.render.export.hta import files_of

        return Export((), spans.what, spans.said, progress, files_of(request.results, spans, progress))
    return Export(_pieces(spans, progress), spans.what, spans.said, progress)


def _pieces(spans: Told, progress: Progress) -> Iterator[bytes]:
    facts = {"wltui": __version__, "file": printable(spans.path), **spans.facts}
    entries = ",".join(f"{quoted_json(key)}:{quoted_json(value)}" for key, value in facts.items())
    yield f'{{"displayTimeUnit":"ns","otherData":{{{entries}}},\n"traceEvents":[\n'.encode()
    between = ""
    for track in spans.tracks:
        received = list(track.received())
        drawn, threads = track.drawn(received)
        for rank in track.ranks:
            yield (between + _process(rank, *track.title(rank), threads)).encode()
            between = ",\n"
        sources = list(dict.fromkeys(one.source for one in received))
        marks = [
            [(_GROUP[kind].encode(), ranks.encode()) for kind, ranks in track.groups(rank).items()]
            for rank in track.ranks
        ]
        senders = {source: [track.sender(rank, source) for rank in track.ranks] for source in sources}
        for piece in _track_pieces(drawn, threads, received, sources):
            for index, rank in enumerate(track.ranks):
                text = piece.text
                if piece.source is not None:
                    sender = senders[piece.source][index]
                    if sender is None:
                        continue
                    text = text.replace(_SENDER.encode(), b"%d" % sender)
                for mark, filled in marks[index]:
                    text = text.replace(mark, filled)
                yield text.replace(_RANK.encode(), b"%d" % rank)
                progress.done += piece.spans
    for arrows, _ in in_pieces(map(_arrow, enumerate(spans.arrows(), 1))):
        yield arrows
    yield b"\n]}\n"


def _process(rank: int, name: str, labels: str, threads: Threads) -> str:
    """The names and places of a process and its threads, comma-separated events."""
    begin = f'{{"ph":"M","pid":{rank},'
    events = [
        f'{begin}"name":"process_name","args":{{"name":{quoted_json(name)}}}}}',
        f'{begin}"name":"process_labels","args":{{"labels":{quoted_json(labels)}}}}}',
        f'{begin}"name":"process_sort_index","args":{{"sort_index":{rank}}}}}',
    ]
    for place, (tid, thread) in enumerate(threads.named):
        events.append(f'{begin}"tid":{tid},"name":"thread_name","args":{{"name":{quoted_json(thread)}}}}}')
        events.append(f'{begin}"tid":{tid},"name":"thread_sort_index","args":{{"sort_index":{place}}}}}')
    return ",\n".join(events)


class _Piece(NamedTuple):
    """Events of a track with marks in them. source: of flows, the stage they come from."""

    text: bytes
    spans: int
    source: int | None = None


def _track_pieces(
    track: TrackSpans, threads: Threads, received: Sequence[Received], sources: Sequence[int]
) -> Iterator[_Piece]:
    """All events of a track, those of its spans first."""
    number = {name: tid for tid, name in threads.named}
    for text, count in in_pieces(_span_events(track, threads)):
        yield _Piece(text, count)
    for texts, source in (
        (_received_events(received, number), None),
        (_waiting_events(track, received, number), None),
        *((_flows(track, received, source, number), source) for source in sources),
    ):
        for text, _ in in_pieces(texts):
            yield _Piece(text, 0, source)


def _span_events(track: TrackSpans, threads: Threads) -> Iterator[str]:
    starts, ends, batches = track.start, track.end, track.microbatch

    def body(span: int) -> tuple[str, str]:
        fact, ns = track.fact(span), ends[span] - starts[span]
        return _recorded_body(fact, ns, batches[span]) if fact.known else _body(fact, ns)

    bodies = made_once(track.kinds(), body)
    for made in zip(bodies, threads.of, starts, ends, batches, strict=True):
        yield _event(*made)


def _received_events(received: Sequence[Received], number: Mapping[str, int]) -> Iterator[str]:
    for one in received:
        body = _body(one.fact, one.end - one.start)
        yield _event(body, number[one.fact.stream], one.start, one.end, one.microbatch)


def _waiting_events(
    track: TrackSpans, received: Sequence[Received], number: Mapping[str, int]
) -> Iterator[str]:
    for name, start, end, fact in track.waiting(received):
        args = "" if fact is None else f'"for":{quoted_json(_name(fact))}'
        yield (
            f',\n{{"ph":"X","pid":{_RANK},"tid":{number["waiting"]},"ts":{microseconds(start)},'
            f'"dur":{microseconds(end - start)},"name":"{name}","cat":"waiting","args":{{{args}}}}}'
        )


def _flows(
    track: TrackSpans, received: Sequence[Received], source: int, number: Mapping[str, int]
) -> Iterator[str]:
    """Arrows from transfers of a stage to the compute that waits for them."""
    for one in received:
        if one.source != source or one.consumer < 0 or one.end == one.start:
            continue
        # This rank and the message make the id: nobody else receives it here. Perfetto takes
        # a text for a hexadecimal number, and a JavaScript number could not hold all of them.
        same = f'"id":"0x{_RANK}{one.message}","name":"{one.fact.phase}","cat":"transfer"'
        begins = microseconds(track.start[one.consumer])
        yield (
            f',\n{{"ph":"s",{same},"pid":{_SENDER},"tid":{one.sent_on},"ts":{microseconds(one.start)}}}'
            f',\n{{"ph":"f","bp":"e",{same},"pid":{_RANK},"tid":{number["compute"]},"ts":{begins}}}'
        )


def _arrow(numbered: tuple[int, Arrow]) -> str:
    """An arrow between any two ranks."""
    number, arrow = numbered
    return "".join(
        f',\n{{{side},"id":{number},"pid":{rank},"tid":{tid},"ts":{microseconds(time_ns)},'
        '"name":"collective","cat":"collective"}'
        for side, (rank, tid, time_ns) in zip(('"ph":"s"', '"ph":"f","bp":"e"'), arrow, strict=True)
    )


def _event(body: tuple[str, str], tid: int, start: int, end: int, batch: int) -> str:
    """A span with its micro-batch, if it has one. start, end: ns."""
    shape, said = body
    if shape:
        return f',\n{{{shape},"pid":{_RANK},"tid":{tid},"ts":{microseconds(start)},{said}'
    ns = end - start
    where = f',"microbatch":{batch}}}}}' if batch >= 0 else "}}"
    return (
        f',\n{{"ph":"X","pid":{_RANK},"tid":{tid},"ts":{start // 1000}.{start % 1000:03d},'
        f'"dur":{ns // 1000}.{ns % 1000:03d},{said}{where}'
    )


def _name(fact: Fact) -> str:
    """The name of a span: what it is, of which row, in which phase."""
    if fact.kind == "compute":
        return f"{fact.layer} {fact.phase}"
    name = f"{fact.kind} {fact.layer}".rstrip()
    if fact.other_stage >= 0:
        name += f" {'from' if fact.kind == 'receive' else 'to'} stage {fact.other_stage}"
    return f"{name} {fact.phase}"


def _body(fact: Fact, ns: int) -> tuple[str, str]:
    """("", name, category and arguments of a span, as far as the micro-batch)."""
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
            f'"group":"{fact.group}","members":{fact.members},"ranks":"{_GROUP[fact.group]}",'
            f'"blocking":{"true" if fact.blocking else "false"}'
        )
    if fact.bytes > 0 and ns:
        args.append(f'"algbw_gbps":{algorithm_bandwidth(fact.bytes, ns):.3f}')
        if fact.group:
            bus = bus_bandwidth(fact.collective, fact.members, fact.bytes, ns)
            args.append(f'"busbw_gbps":{bus:.3f}')
    said = f'"name":{quoted_json(_name(fact))},"cat":"{sort},{fact.phase}","args":{{{",".join(args)}'
    return "", said


def _recorded_body(fact: Fact, ns: int, batch: int) -> tuple[str, str]:
    """(which event it is, name, category and all arguments) of what was recorded."""
    args = [f'"kind":"{fact.kind}","line":{fact.line}']
    for name, text in (("group", fact.group), ("state", fact.state)):
        if text:
            args.append(f'"{name}":{quoted_json(text)}')
    if batch >= 0:
        args.append(f'"microbatch":{batch}')
    if fact.bytes >= 0:
        args.append(f'"bytes":{fact.bytes}')
    args.append(f'"known":"{fact.known}"')
    # What has no duration is an instant, not a span of 0 ns.
    shape = '"ph":"i","s":"t"' if fact.known in NO_END else f'"ph":"X","dur":{microseconds(ns)}'
    said = f'"name":{quoted_json(fact.layer)},"cat":{quoted_json(fact.phase)},"args":{{{",".join(args)}}}}}'
    return shape, said
