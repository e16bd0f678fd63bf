"""The spans of a measured run, or of its replay, for formats that write them down."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from simcore.diagnostics import Diagnostic, UsageError, printable
from simcore.measured import MeasuredRun
from simcore.measured.columns import FUSED, INSTANT, MEASURED, PLACED, RankTrace
from simcore.measured.vocabulary import buffer_bytes, category_of_group, group_of_op
from simcore.parameters import Parameters
from simcore.records import NamedTuple
from simcore.render.export.format import Export, Progress, Request
from simcore.render.export.spans import Fact
from simcore.units import plural

# Of a run, those of its ranks that are asked for, and what counts the spans.
PiecesOf = Callable[[MeasuredRun, list[RankTrace], Progress], Iterator[bytes]]
# How the times of a span are known, in a word.
KNOWN = {MEASURED: "measured", INSTANT: "launch", PLACED: "placed", FUSED: "fused"}


class MeasuredSpan(NamedTuple):
    """An operation or sub-operation, times in ns. Texts are safe to show and cut.

    kind: `operation` or `sub-operation`. category: what it is (`forward`, `tp` ...). group: the
    trace's group kind, "" without. number: of the rank's operations or sub-operations. bytes: -1
    if not known. known: `measured`; `launch`, where only its start is known; `placed` at the end
    of the one before, for want of a time; `fused`, the times of the other line of the same operation.
    """

    kind: str
    name: str
    category: str
    group: str
    state: str
    number: int
    line: int
    batch: int
    start: int
    end: int
    bytes: int
    known: str

    @property
    def fact(self) -> Fact:
        """What it is, in the words of a simulated one: its row is its number."""
        return Fact(
            self.kind, self.name, self.category, self.number, self.line, self.bytes, "", self.group, 0, -1, -1
        )


def measured_export(run: MeasuredRun, request: Request, pieces_of: PiecesOf) -> Export:
    """The ranks that are asked for, all by itself, as measured or replayed.

    Raises `UsageError` for what a trace cannot give.
    """
    name = printable(run.path, 60)
    if request.per_rank:
        raise UsageError(f"--per-rank: {name} is a measured run, which goes into one file")
    run, diagnostics = _asked_for(run, request)
    if not run.timed:
        raise UsageError(f"FILE {name}: found an order without times, expected a run with times to export")
    ranks = _ranks(run, request)
    spans = sum(len(rank.ops) + len(rank.subs) for rank in ranks)
    progress = Progress(spans)
    how = "replayed" if run.replayed else "as measured"
    what = f"{plural(len(ranks), run.unit)}, {plural(spans, 'span')} {how}"
    return Export(pieces_of(run, ranks, progress), what, diagnostics, progress)


def _asked_for(run: MeasuredRun, request: Request) -> tuple[MeasuredRun, tuple[Diagnostic, ...]]:
    """The run as it stands, or its replay and what is said of that beside what is said of the run."""
    if request.parameters == Parameters():
        return run, ()
    # Imported here: a run that is exported as it was measured needs nothing of replays.
    from simcore.runs.measured import measured_results

    results = measured_results(run, request.parameters)
    return results.run, results.diagnostics[len(run.diagnostics) :]


def _ranks(run: MeasuredRun, request: Request) -> list[RankTrace]:
    """The ranks that are asked for. Raises `UsageError` for one that is not there."""
    if request.ranks is None:
        return list(run.ranks)
    there = {rank.number: rank for rank in run.ranks}
    for number in request.ranks:
        if number not in there:
            name = printable(run.path, 60)
            raise UsageError(f"--ranks: found {run.unit} {number}, which {name} does not have")
    return [there[number] for number in request.ranks]


def measured_spans(rank: RankTrace) -> Iterator[MeasuredSpan]:
    """The operations of a rank, then its sub-operations."""
    ops, subs = rank.ops, rank.subs
    for index, name in enumerate(ops.name):
        group = ops.group[index]
        size = buffer_bytes(ops.shape[index], ops.dtype[index])
        yield MeasuredSpan(
            "operation", printable(name), ops.category(index), _safe(group_of_op(name, group)),
            _safe(ops.state[index]), index, ops.line[index], ops.batch[index], ops.start[index],
            ops.end[index], -1 if size is None else size, KNOWN[ops.known[index]],
        )  # fmt: skip
    for index, name in enumerate(subs.name):
        parent = subs.parent[index]
        size = buffer_bytes(subs.shape[index], subs.dtype[index])
        yield MeasuredSpan(
            "sub-operation", printable(name), category_of_group(subs.group[index]), _safe(subs.group[index]),
            _safe(ops.state[parent]), index, ops.line[parent], ops.batch[parent], subs.start[index],
            subs.end[index], -1 if size is None else size, KNOWN[subs.known[index]],
        )  # fmt: skip


def _safe(text: str | None) -> str:
    return "" if text is None else printable(text)
