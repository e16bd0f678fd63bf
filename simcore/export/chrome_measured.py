"""A measured run, or its replay, in the Trace Event Format: one process a rank, host gaps left blank.

Sub-operations lie in their operations; what overlaps without lying inside has a thread of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from simcore.export.chrome import TAIL, head, metadata
from simcore.export.format import Export, Progress, Request
from simcore.export.json_text import microseconds, quoted_json
from simcore.export.measured_spans import MeasuredSpan, measured_export, measured_spans
from simcore.export.rows import nested_rows
from simcore.measured import MeasuredRun
from simcore.measured.columns import RankTrace

_EVENTS_A_PIECE = 1024


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
        rows = nested_rows((span.start, span.end) for span in spans)
        names = [
            (1 + row, "operations" if row == 0 else f"operations ({row + 1})", row)
            for row in range(max(rows, default=0) + 1)
        ]
        labels = "" if rank.stage is None else f"stage {rank.stage}"
        yield (
            between + metadata(rank.number, f"{run.unit} {rank.number}", labels, rank.number, names)
        ).encode()
        between = ",\n"
        for first in range(0, len(spans), _EVENTS_A_PIECE):
            some = zip(
                spans[first : first + _EVENTS_A_PIECE], rows[first : first + _EVENTS_A_PIECE], strict=True
            )
            events = [_event(rank.number, span, row) for span, row in some]
            yield "".join(events).encode()
            progress.done += len(events)
    yield TAIL


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
