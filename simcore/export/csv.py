"""A timeline as comma-separated values: one line a span, equal ranks in one line.

Written as RFC 4180 says, with a header line, in UTF-8, lines ended by a newline alone. A name that a
spreadsheet would take for a formula (it begins with = + - @) has an apostrophe in front.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, cast

from simcore.export.format import Export, Progress, RankFile, Request, choose, of_run, ranks_in_words
from simcore.export.spans import ClassSpans, Fact
from simcore.program.ops import STREAMS
from simcore.simulation import Simulation, simulate
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.workload import Workload

COLUMNS = (
    "ranks", "rank_count", "stage", "stream", "phase", "kind", "layer", "row", "line", "microbatch",
    "start_ns", "end_ns", "duration_ns", "bytes", "group", "group_size", "blocking", "other_stage",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@")
_QUOTED = (",", '"', "\n", "\r")
_LINES_A_PIECE = 4096
_MOST_KNOWN = 10_000


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


def field(text: str) -> str:
    """One field, from text that has been made safe: quoted where it must be, and no formula."""
    if text.startswith(_FORMULA):
        text = "'" + text
    if any(sign in text for sign in _QUOTED):
        return '"' + text.replace('"', '""') + '"'
    return text


def head() -> bytes:
    """The header line."""
    return (",".join(COLUMNS) + "\n").encode()


def in_pieces(lines: Iterable[str], progress: Progress) -> Iterator[bytes]:
    """Lines as bytes, many at a time."""
    batch: list[str] = []
    for line in lines:
        batch.append(line)
        if len(batch) == _LINES_A_PIECE:
            yield "".join(batch).encode()
            progress.done += len(batch)
            batch.clear()
    yield "".join(batch).encode()
    progress.done += len(batch)


def _pieces(
    simulation: Simulation, classes: list[tuple[int, list[int]]], progress: Progress
) -> Iterator[bytes]:
    yield head()
    for number, ranks in classes:
        spans = ClassSpans(simulation, number)
        whose = f"{field(ranks_in_words(ranks))},{len(ranks)},{spans.rank_class.stage}"
        yield from in_pieces(_op_lines(spans, whose), progress)
        # Received transfers are the senders' spans, said once more.
        yield from in_pieces(_received_lines(spans, whose), Progress(0))


def _op_lines(spans: ClassSpans, whose: str) -> Iterator[str]:
    ops = spans.ops
    known: dict[tuple[int, int, int, int], tuple[str, str]] = {}
    columns = zip(
        ops.cost, ops.row, ops.phase, ops.blocking, ops.stream, spans.start, spans.end, ops.microbatch,
        strict=True,
    )  # fmt: skip
    for op, (cost, row, phase, blocking, lane, start, end, batch) in enumerate(columns):
        key = (cost, row, phase, blocking)
        ends = known.get(key)
        if ends is None:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            ends = known[key] = _ends(spans.fact(op), f"{whose},{STREAMS[lane]}")
        where = batch if batch >= 0 else ""
        yield f"{ends[0]}{where},{start},{end},{end - start}{ends[1]}"


def _received_lines(spans: ClassSpans, whose: str) -> Iterator[str]:
    for received in spans.received():
        before, behind = _ends(received.fact, f"{whose},{received.stream}")
        where = received.microbatch if received.microbatch >= 0 else ""
        yield f"{before}{where},{received.start},{received.end},{received.end - received.start}{behind}"


def _ends(fact: Fact, before: str) -> tuple[str, str]:
    """A line as far as the micro-batch, and behind the duration. Unknown numbers are empty."""
    row_and_line = f"{fact.row},{fact.line}" if fact.row >= 0 else ","
    first = f"{before},{fact.phase},{fact.kind},{field(fact.layer)},{row_and_line},"
    numbers = (fact.bytes, fact.group, fact.members or "", fact.blocking, fact.other_stage)
    return first, "".join(f",{'' if number == -1 else number}" for number in numbers) + "\n"
