"""A timeline of any source as comma-separated values: one line a span, equal ranks in one line.

Written as RFC 4180 says, with a header line, in UTF-8, lines ended by a newline alone. A name that a
spreadsheet would take for a formula (it begins with = + - @) has an apostrophe in front.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, cast

from simcore.program.ops import STREAMS
from simcore.render.export.format import Export, Progress, RankFile, Request, choose, of_run, ranks_in_words
from simcore.render.export.measured_spans import MeasuredSpan, measured_export, measured_spans
from simcore.render.export.spans import ClassSpans, Fact, in_pieces, made_once
from simcore.simulation import Simulation, simulate
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.measured import MeasuredRun
    from simcore.measured.columns import RankTrace
    from simcore.workload import Workload

COLUMNS = (
    "ranks", "rank_count", "stage", "stream", "phase", "kind", "layer", "row", "line", "microbatch",
    "start_ns", "end_ns", "duration_ns", "bytes", "group", "group_size", "blocking", "other_stage",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@")
_QUOTED = (",", '"', "\n", "\r")


def export(request: Request) -> Export:
    """The spans of the ranks that are asked for, by itself of all: equal ranks share their lines."""
    # What `ExportFormat.requested` has told apart.
    workload = cast("Workload", request.opened)
    simulation = simulate(workload, request.parameters)
    chosen = choose(simulation, request, folded=False)
    world = plural(simulation.layout.world, "rank")
    if request.per_rank:
        spans = chosen.spans(simulation)
        progress = Progress(spans)
        files = (
            RankFile(f"rank-{rank}.csv", _pieces(simulation, [(number, [rank])], progress))
            for number, ranks in chosen.of_class.items()
            for rank in ranks
        )
        what = f"{chosen.count} of {world}, {plural(spans, 'span')}"
        return Export((), what, of_run(simulation), progress, files)
    program = simulation.timeline.stage_program
    lines = sum(len(program(number).ops) for number in chosen.of_class)
    progress = Progress(lines)
    pieces = _pieces(simulation, list(chosen.of_class.items()), progress)
    what = f"{chosen.count} of {world}, {plural(chosen.spans(simulation), 'span')}, equal ranks in one line"
    return Export(pieces, what, of_run(simulation), progress)


def export_measured(run: MeasuredRun, request: Request) -> Export:
    """The spans of a measured run's ranks. Raises `UsageError` for what a trace cannot give."""
    return measured_export(run, request, _measured_pieces)


def field(text: str) -> str:
    """One field, from text that has been made safe: quoted where it must be, and no formula."""
    if text.startswith(_FORMULA):
        text = "'" + text
    if any(sign in text for sign in _QUOTED):
        return '"' + text.replace('"', '""') + '"'
    return text


_HEAD = (",".join(COLUMNS) + "\n").encode()


def _in_pieces(lines: Iterable[str], progress: Progress) -> Iterator[bytes]:
    """Lines as bytes, many at a time; `progress` goes on with them."""
    for piece, count in in_pieces(lines):
        yield piece
        progress.done += count


def _pieces(
    simulation: Simulation, classes: list[tuple[int, list[int]]], progress: Progress
) -> Iterator[bytes]:
    yield _HEAD
    for number, ranks in classes:
        spans = ClassSpans(simulation, number)
        whose = f"{field(ranks_in_words(ranks))},{len(ranks)},{spans.rank_class.stage}"
        yield from _in_pieces(_op_lines(spans, whose), progress)
        # Received transfers are the senders' spans, said once more.
        yield from _in_pieces(_received_lines(spans, whose), Progress(0))


def _op_lines(spans: ClassSpans, whose: str) -> Iterator[str]:
    ops = spans.ops
    every = made_once(spans.kinds(), lambda op: _ends(spans.fact(op), f"{whose},{STREAMS[ops.stream[op]]}"))
    for ends, start, end, batch in zip(every, spans.start, spans.end, ops.microbatch, strict=True):
        where = batch if batch >= 0 else ""
        yield f"{ends[0]}{where},{start},{end},{end - start}{ends[1]}"


def _received_lines(spans: ClassSpans, whose: str) -> Iterator[str]:
    for received in spans.received():
        ends = _ends(received.fact, f"{whose},{received.stream}")
        yield _line(ends, received.microbatch, received.start, received.end)


def _measured_pieces(_: MeasuredRun, ranks: list[RankTrace], progress: Progress) -> Iterator[bytes]:
    yield _HEAD
    for rank in ranks:
        whose = f"{rank.number},1,{'' if rank.stage is None else rank.stage}"
        lines = (_measured_line(span, f"{whose},{field(span.group)}") for span in measured_spans(rank))
        yield from _in_pieces(lines, progress)


def _measured_line(span: MeasuredSpan, before: str) -> str:
    """What was not measured is empty: the end and duration of a launch, all times of what has none."""
    start = None if span.known == "placed" else span.start
    end = None if span.known in ("launch", "placed") else span.end
    return _line(_ends(span.fact, before), span.batch, start, end)


def _line(ends: tuple[str, str], batch: int, start: int | None, end: int | None) -> str:
    """A line. ends: of `_ends`. batch: its micro-batch, -1 of none. start, end: ns, None where not known."""
    where = batch if batch >= 0 else ""
    if start is None or end is None:
        return f"{ends[0]}{where},{'' if start is None else start},,{ends[1]}"
    return f"{ends[0]}{where},{start},{end},{end - start}{ends[1]}"


def _ends(fact: Fact, before: str) -> tuple[str, str]:
    """A line as far as the micro-batch, and behind the duration. Unknown numbers are empty."""
    row_and_line = f"{fact.row},{fact.line}" if fact.row >= 0 else ","
    first = f"{before},{field(fact.phase)},{fact.kind},{field(fact.layer)},{row_and_line},"
    numbers = (fact.bytes, field(fact.group), fact.members or "", fact.blocking, fact.other_stage)
    return first, "".join(f",{'' if number == -1 else number}" for number in numbers) + "\n"
