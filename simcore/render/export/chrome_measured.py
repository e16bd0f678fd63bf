"""A measured run, or its replay, in the Trace Event Format: one process a rank, host gaps left blank.

Sub-operations lie in their operations; what overlaps without lying inside has a thread of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

from simcore.measured import MeasuredRun
from simcore.measured.columns import RankTrace
from simcore.measured.device_matching import match_devices
from simcore.measured.facts import stream_name, stream_word
from simcore.render.export.chrome import TAIL, head, metadata
from simcore.render.export.format import Export, Progress, Request
from simcore.render.export.measured_spans import MeasuredSpan, measured_export, measured_spans
from simcore.render.export.spans import in_pieces, nested_rows
from simcore.render.report.json_text import microseconds, quoted_json


def export_measured(run: MeasuredRun, request: Request) -> Export:
    """The timeline of a measured run's ranks. Raises `UsageError` for what a trace cannot give."""
    return measured_export(run, request, _pieces)


def _pieces(run: MeasuredRun, ranks: list[RankTrace], progress: Progress) -> Iterator[bytes]:
    facts = {"measured": "true", "step_time_ns": str(run.step_time_ns)}
    if run.replayed:
        facts["replayed"] = "true"
    if not run.concurrent:
        facts["concurrent"] = "false"
    yield head(run.path, facts).encode()
    between = ""
    for rank in ranks:
        spans = sorted(measured_spans(rank), key=lambda span: (span.start, -span.end, span.kind, span.number))
        rows, names = _threads(rank, spans)
        labels = "" if rank.stage is None else f"stage {rank.stage}"
        yield (
            between + metadata(rank.number, f"{run.unit} {rank.number}", labels, rank.number, names)
        ).encode()
        between = ",\n"
        for piece, count in in_pieces(map(_event, repeat(rank.number), spans, rows)):
            yield piece
            progress.done += count
    if run.of_devices:
        yield from _flows(run, {rank.number for rank in ranks})
    yield TAIL


def _threads(rank: RankTrace, spans: list[MeasuredSpan]) -> tuple[list[int], list[tuple[int, str, int]]]:
    """(the thread of each span, counted from 0; number, name and place of each): of a device its streams."""
    if rank.device is None:
        rows = nested_rows((span.start, span.end) for span in spans)
        count = max(rows, default=0) + 1
        names = ["operations", *(f"operations ({row + 1})" for row in range(1, count))]
        return rows, [(1 + row, name, row) for row, name in enumerate(names)]
    threads = [0] * len(spans)
    names = []
    for stream in sorted(set(rank.device.stream)):
        own = [index for index, span in enumerate(spans) if rank.device.stream[span.number] == stream]
        rows = nested_rows((spans[place].start, spans[place].end) for place in own)
        for place, row in zip(own, rows, strict=True):
            threads[place] = len(names) + row
        word = f"{stream_word(rank)} {stream_name(rank, stream)}"
        names += [word if row == 0 else f"{word} ({row + 1})" for row in range(max(rows, default=0) + 1)]
    return threads, [(1 + row, name, row) for row, name in enumerate(names)]


def _flows(run: MeasuredRun, numbers: set[int]) -> Iterator[bytes]:
    """An arrow from the last member of each collective to come to each of the others, and from a send that
    waits for nobody to its receive.
    """
    matches = match_devices(run.ranks, run.degrees, run.concurrent)
    threads = {}
    for index, rank in enumerate(run.ranks):
        spans = sorted(measured_spans(rank), key=lambda span: (span.start, -span.end, span.kind, span.number))
        rows, _ = _threads(rank, spans)
        threads[index] = {span.number: 1 + row for span, row in zip(spans, rows, strict=True)}
    count = 0
    for meeting in matches.meetings:
        come = meeting.calls if meeting.sender is None else (*meeting.calls, meeting.sender)
        calls = [call for call in come if run.ranks[call.rank].number in numbers]
        if len(calls) < 2:
            continue
        late = meeting.sender or max(
            calls, key=lambda call: (run.ranks[call.rank].ops.start[call.op], -call.rank)
        )
        begins = run.ranks[late.rank].ops.start[late.op]
        for call in calls:
            if call == late:
                continue
            count += 1
            events = []
            for flow_call, end in ((late, '"ph":"s"'), (call, '"ph":"f","bp":"e"')):
                rank = run.ranks[flow_call.rank]
                time = max(begins, rank.ops.start[flow_call.op])
                events.append(
                    f',\n{{{end},"id":{count},"pid":{rank.number},"tid":{threads[flow_call.rank][flow_call.op]},'
                    f'"ts":{microseconds(time)},"name":"collective","cat":"collective"}}'
                )
            yield "".join(events).encode()


def _event(pid: int, span: MeasuredSpan, row: int) -> str:
    args = [f'"kind":"{span.kind}","line":{span.line}']
    for name, text in (("group", span.group), ("state", span.state)):
        if text:
            args.append(f'"{name}":{quoted_json(text)}')
    if span.batch >= 0:
        args.append(f'"microbatch":{span.batch}')
    if span.bytes >= 0:
        args.append(f'"bytes":{span.bytes}')
    args.append(f'"known":"{span.known}"')
    # What has no duration is an instant, not a span of 0 ns.
    shape = f'"ph":"X","dur":{microseconds(span.end - span.start)}'
    if span.known in ("launch", "placed"):
        shape = '"ph":"i","s":"t"'
    return (
        f',\n{{{shape},"pid":{pid},"tid":{1 + row},"ts":{microseconds(span.start)},'
        f'"name":{quoted_json(span.name)},"cat":{quoted_json(span.category)},"args":{{{",".join(args)}}}}}'
    )
