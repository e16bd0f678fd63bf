"""A measured run as comma-separated values, in the columns of a simulated one."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.export.csv import field, head, in_pieces
from simcore.export.format import Export, Progress, Request
from simcore.export.measured_spans import MeasuredSpan, measured_export, measured_spans
from simcore.measured import MeasuredRun
from simcore.measured.columns import RankTrace


def export_measured(run: MeasuredRun, request: Request) -> Export:
    """The spans of a measured run's ranks. Raises `UsageError` for what a trace cannot give."""
    return measured_export(run, request, _pieces)


def _pieces(_: MeasuredRun, ranks: list[RankTrace], progress: Progress) -> Iterator[bytes]:
    yield head()
    for rank in ranks:
        whose = f"{rank.number},1,{'' if rank.stage is None else rank.stage}"
        yield from in_pieces((_line(whose, span) for span in measured_spans(rank)), progress)


def _line(whose: str, span: MeasuredSpan) -> str:
    """What was not measured is empty: the end and duration of a launch, all times of what has none."""
    start = "" if span.known == "placed" else span.start
    end, ns = ("", "") if span.known in ("launch", "placed") else (span.end, span.end - span.start)
    batch = "" if span.batch < 0 else span.batch
    size = "" if span.bytes < 0 else span.bytes
    return (
        f"{whose},{field(span.group)},{field(span.category)},{span.kind},{field(span.name)},{span.number},"
        f"{span.line},{batch},{start},{end},{ns},{size},{field(span.group)},,,\n"
    )
