"""A timeline in the Trace Event Format that Perfetto and chrome://tracing open: one process for each rank.

Each stream is a thread; `waiting` has what the compute stream waits for, from the accounts. In a recording
sub-operations are inside their operations; spans that overlap without being nested have threads of their own.
Of memory snapshots a process is a device, with its levels as counters.

Times are microseconds with three decimals, so exact to the nanosecond. Source of the format: "Trace Event
Format" by the Chromium project.

The events of a track are written once, with marks for the numbers of a rank, and each of its ranks gets that
text with the marks replaced. JSON text has no control characters, so marks are control characters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from simcore import __version__
from simcore.collectives import algorithm_bandwidth, bus_bandwidth
from simcore.diagnostics import printable
from simcore.layout import GROUP_KINDS
from simcore.records import NamedTuple
from simcore.render.export.format import Export, Progress, Request
from simcore.render.export.span_selection import select_spans
from simcore.render.export.spans import (
    NO_END,
    OPEN,
    STEPS,
    ArrivedTransfer,
    Arrow,
    ExportedSpans,
    Fact,
    Threads,
    TrackSpans,
    build_cached,
    encode_in_chunks,
)
from simcore.render.report.json_text import microseconds, quoted_json
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.render.export.held_memory import HeldMemory

_RANK = "\x00"
# The rank at the other end of a flow, and the ranks of a group by its kind; no character that JSON contains.
_SENDER = "\x01"
_GROUP = {str(kind): chr(14 + index) for index, kind in enumerate(GROUP_KINDS)}


def export(request: Request) -> Export:
    """Returns the timeline of the requested ranks; by default one of each class of equal ranks."""
    if request.opened.format == "memory-snapshot":
        return _level_export(request)
    spans = select_spans(request, folded=True)
    progress = Progress(spans.total)
    if request.per_rank:
        from simcore.render.export.hta import rank_files

        return Export(
            (), spans.what, spans.diagnostics, progress, rank_files(request.results, spans, progress)
        )
    return Export(_json_chunks(spans, progress), spans.what, spans.diagnostics, progress)


def _head(path: str, more_facts: Mapping[str, str]) -> bytes:
    facts = {"wltui": __version__, "file": printable(path), **more_facts}
    entries = ",".join(f"{quoted_json(key)}:{quoted_json(value)}" for key, value in facts.items())
    return f'{{"displayTimeUnit":"ns","otherData":{{{entries}}},\n"traceEvents":[\n'.encode()


def _level_export(request: Request) -> Export:
    from simcore.render.export.held_memory import select_held_memory

    memory = select_held_memory(request)
    progress = Progress(memory.event_count())

    def chunks() -> Iterator[bytes]:
        yield _head(memory.path, {})
        between = ""
        for track_id in memory.track_ids:
            device = memory.device(track_id)
            yield (between + _process(device.id, device.name, "", Threads((), ()))).encode()
            between = ",\n"
            for events, count in encode_in_chunks(_level_events(memory, track_id)):
                yield events
                progress.written_count += count
        yield b"\n]}\n"

    return Export(chunks(), f"{memory.devices}, {plural(progress.total, 'event')}", (), progress)


def _level_events(memory: HeldMemory, track_id: int) -> Iterator[str]:
    """Yields a counter for each level, and an instant for each request that could not be met."""
    begin = f',\n{{"pid":{memory.device(track_id).id},"ts":'
    for time, allocated, reserved in memory.levels(track_id):
        args = f'"allocated":{allocated},"reserved":{reserved}'
        yield f'{begin}{microseconds(time)},"ph":"C","name":"memory","args":{{{args}}}}}'
    for time, one, site in memory.failures(track_id):
        args = f'"asked":{one.size},"free":{one.free},"allocated":{one.allocated},"reserved":{one.reserved}'
        yield (
            f'{begin}{microseconds(time)},"ph":"i","s":"p","tid":0,"name":"out of memory","cat":"memory",'
            f'"args":{{{args},"site":{quoted_json(site)}}}}}'
        )


def _json_chunks(spans: ExportedSpans, progress: Progress) -> Iterator[bytes]:
    yield _head(spans.path, spans.facts)
    between = ""
    for track in spans.tracks:
        received = list(track.received())
        ordered_track, threads = track.assign_threads(received)
        for rank in track.ranks:
            yield (between + _process(rank, *track.title(rank), threads)).encode()
            between = ",\n"
        sources = list(dict.fromkeys(one.source for one in received))
        marks = [
            [(_GROUP[kind].encode(), ranks.encode()) for kind, ranks in track.groups(rank).items()]
            for rank in track.ranks
        ]
        senders = {source: [track.sender(rank, source) for rank in track.ranks] for source in sources}
        for events in _track_events(ordered_track, threads, received, sources):
            for index, rank in enumerate(track.ranks):
                text = events.text
                if events.source is not None:
                    sender = senders[events.source][index]
                    if sender is None:
                        continue
                    text = text.replace(_SENDER.encode(), b"%d" % sender)
                for mark, replacement in marks[index]:
                    text = text.replace(mark, replacement)
                yield text.replace(_RANK.encode(), b"%d" % rank)
                progress.written_count += events.spans
    for arrows, _ in encode_in_chunks(map(_format_arrow, enumerate(spans.arrows(), 1))):
        yield arrows
    yield b"\n]}\n"


def _process(rank: int, name: str, labels: str, threads: Threads) -> str:
    """Returns the names and sort indices of a process and its threads, comma-separated events."""
    begin = f'{{"ph":"M","pid":{rank},'
    events = [
        f'{begin}"name":"process_name","args":{{"name":{quoted_json(name)}}}}}',
        f'{begin}"name":"process_labels","args":{{"labels":{quoted_json(labels)}}}}}',
        f'{begin}"name":"process_sort_index","args":{{"sort_index":{rank}}}}}',
    ]
    for sort_index, (tid, thread) in enumerate(threads.names):
        events.append(f'{begin}"tid":{tid},"name":"thread_name","args":{{"name":{quoted_json(thread)}}}}}')
        events.append(f'{begin}"tid":{tid},"name":"thread_sort_index","args":{{"sort_index":{sort_index}}}}}')
    return ",\n".join(events)


class _TrackEvents(NamedTuple):
    """Events of a track with marks in them."""

    text: bytes
    spans: int
    """How many spans the text has."""
    source: int | None = None
    """The stage that flows come from; None for other events."""


def _track_events(
    track: TrackSpans, threads: Threads, received: Sequence[ArrivedTransfer], sources: Sequence[int]
) -> Iterator[_TrackEvents]:
    """Yields all events of a track, those of its spans first."""
    tid_by_name = {name: tid for tid, name in threads.names}
    for text, count in encode_in_chunks(_span_events(track, threads)):
        yield _TrackEvents(text, count)
    for texts, source in (
        (_received_events(received, tid_by_name), None),
        (_waiting_events(track, received, tid_by_name), None),
        (_step_events(track, tid_by_name), None),
        *((_flows(track, received, source, tid_by_name), source) for source in sources),
    ):
        for text, _ in encode_in_chunks(texts):
            yield _TrackEvents(text, 0, source)


def _span_events(track: TrackSpans, threads: Threads) -> Iterator[str]:
    starts, ends, batches = track.start, track.end, track.microbatch

    def body(span: int) -> tuple[str, str]:
        fact, ns = track.fact(span), ends[span] - starts[span]
        return _recorded_body(fact, ns, batches[span]) if fact.time_source else _body(fact, ns)

    bodies = build_cached(track.kinds(), body)
    for values in zip(bodies, threads.span_threads, starts, ends, batches, strict=True):
        yield _format_event(*values)


def _received_events(received: Sequence[ArrivedTransfer], tid_by_name: Mapping[str, int]) -> Iterator[str]:
    for one in received:
        body = _body(one.fact, one.end - one.start)
        yield _format_event(body, tid_by_name[one.fact.stream], one.start, one.end, one.microbatch)


def _waiting_events(
    track: TrackSpans, received: Sequence[ArrivedTransfer], tid_by_name: Mapping[str, int]
) -> Iterator[str]:
    for name, start, end, fact in track.waiting(received):
        args = "" if fact is None else f'"for":{quoted_json(_name(fact))}'
        yield (
            f',\n{{"ph":"X","pid":{_RANK},"tid":{tid_by_name["waiting"]},"ts":{microseconds(start)},'
            f'"dur":{microseconds(end - start)},"name":"{name}","cat":"waiting","args":{{{args}}}}}'
        )


def _step_events(track: TrackSpans, tid_by_name: Mapping[str, int]) -> Iterator[str]:
    for step, start, end in track.steps():
        yield (
            f',\n{{"ph":"X","pid":{_RANK},"tid":{tid_by_name[STEPS]},"ts":{microseconds(start)},'
            f'"dur":{microseconds(end - start)},"name":"step {step}","cat":"step","args":{{}}}}'
        )


def _flows(
    track: TrackSpans, received: Sequence[ArrivedTransfer], source: int, tid_by_name: Mapping[str, int]
) -> Iterator[str]:
    """Yields arrows from transfers of a stage to the compute that waits for them."""
    for one in received:
        if one.source != source or one.consumer < 0 or one.end == one.start:
            continue
        # This rank and the message make the id: no other rank here receives it. Perfetto reads a text as a
        # hexadecimal number; a JavaScript number could not hold all of them.
        shared_fields = f'"id":"0x{_RANK}{one.message}","name":"{one.fact.phase}","cat":"transfer"'
        begins = microseconds(track.start[one.consumer])
        yield (
            f',\n{{"ph":"s",{shared_fields},"pid":{_SENDER},"tid":{one.sent_on},"ts":{microseconds(one.start)}}}'
            f',\n{{"ph":"f","bp":"e",{shared_fields},"pid":{_RANK},"tid":{tid_by_name["compute"]},"ts":{begins}}}'
        )


def _format_arrow(id_and_arrow: tuple[int, Arrow]) -> str:
    """Returns an arrow between any two ranks."""
    arrow_id, arrow = id_and_arrow
    return "".join(
        f',\n{{{side},"id":{arrow_id},"pid":{rank},"tid":{tid},"ts":{microseconds(time_ns)},'
        '"name":"collective","cat":"collective"}'
        for side, (rank, tid, time_ns) in zip(('"ph":"s"', '"ph":"f","bp":"e"'), arrow, strict=True)
    )


def _format_event(body: tuple[str, str], tid: int, start: int, end: int, batch: int) -> str:
    """Returns a span with its micro-batch, if it has one. start, end: ns."""
    shape, fields = body
    if shape:
        return f',\n{{{shape},"pid":{_RANK},"tid":{tid},"ts":{microseconds(start)},{fields}'
    ns = end - start
    ending = f',"microbatch":{batch}}}}}' if batch >= 0 else "}}"
    return (
        f',\n{{"ph":"X","pid":{_RANK},"tid":{tid},"ts":{start // 1000}.{start % 1000:03d},'
        f'"dur":{ns // 1000}.{ns % 1000:03d},{fields}{ending}'
    )


def _name(fact: Fact) -> str:
    """Returns the name of a span: its kind, row and phase."""
    if fact.kind == "compute":
        return f"{fact.layer} {fact.phase}"
    name = f"{fact.kind} {fact.layer}".rstrip()
    if fact.other_stage >= 0:
        name += f" {'from' if fact.kind == 'receive' else 'to'} stage {fact.other_stage}"
    return f"{name} {fact.phase}"


def _body(fact: Fact, ns: int) -> tuple[str, str]:
    """Returns ("", the fields of a span up to the micro-batch: name, category and arguments)."""
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
    fields = f'"name":{quoted_json(_name(fact))},"cat":"{sort},{fact.phase}","args":{{{",".join(args)}'
    return "", fields


def _recorded_body(fact: Fact, ns: int, batch: int) -> tuple[str, str]:
    """Returns (shape of the event, name, category and all arguments) of a recorded span."""
    args = [f'"kind":{quoted_json(fact.kind)},"line":{fact.line}']
    for name, text in (
        ("group", fact.group), ("collective", fact.collective), ("ranks", fact.ranks), ("state", fact.state)
    ):  # fmt: skip
        if text:
            args.append(f'"{name}":{quoted_json(text)}')
    if fact.step >= 0:
        args.append(f'"step":{fact.step}')
    if batch >= 0:
        args.append(f'"microbatch":{batch}')
    if fact.bytes >= 0:
        args.append(f'"bytes":{fact.bytes}')
    args.append(f'"known":"{fact.time_source}"')
    # A call without a duration is an instant, not a span of 0 ns; what has not ended has a begin alone.
    if fact.time_source == OPEN:
        return '"ph":"B"', _recorded_fields(fact, args)
    shape = '"ph":"i","s":"t"' if fact.time_source in NO_END else f'"ph":"X","dur":{microseconds(ns)}'
    return shape, _recorded_fields(fact, args)


def _recorded_fields(fact: Fact, args: Sequence[str]) -> str:
    return f'"name":{quoted_json(fact.layer)},"cat":{quoted_json(fact.phase)},"args":{{{",".join(args)}}}}}'
