"""What is said of a span of a measured run: what it is, whose, when, and what the file says of it."""

from __future__ import annotations

from simcore.measured import MeasuredRun
from simcore.measured.columns import FUSED, INSTANT, MEASURED, PLACED, RankTrace
from simcore.measured.device_facts import device_facts
from simcore.measured.facts import SpanFacts, neighbours, span_facts
from simcore.measured.kernel_names import shown_name
from simcore.measured.vocabulary import COMPUTE
from simcore.ranks import place_words
from simcore.units import byte_size, duration, plural
from tui.frame import Line, cells, wrapped
from tui.timeline.axis import Axis

_UNKNOWN_LENGTH = {
    INSTANT: "an instant: no duration in the file",
    PLACED: "no time in the file: it stands behind the operation before it",
}


def measured_words(
    run: MeasuredRun,
    rank: RankTrace,
    item: int | None,
    span: tuple[int, int],
    axis: Axis,
    others: str,
    width: int,
    wide: bool,
) -> list[Line]:
    """The span, its times, then what the file says of it, in lines of at most `width` cells.

    item: of the lane's spans, None between them; span: its start and end as it is drawn.
    """
    whose = _whose(run, rank, wide)
    if item is None:
        return [[("nothing runs here", ""), ("   ", ""), (whose, "dim")]]
    if item < 0:
        start, end = span
        gap: Line = [
            (f"{axis.clock(start)} .. {axis.clock(end)}   ", ""),
            (axis.length(end - start), "bright"),
        ]
        return [[(_gap(rank, item), "bright"), ("   ", ""), (whose, "dim")], gap]
    facts = span_facts(rank, item)
    first: Line = [(_what(facts), "bright"), (others, "warn"), ("   ", ""), (whose, "dim")]
    times: Line = [(f"{axis.clock(facts.start_ns)} .. {axis.clock(facts.end_ns)}", "")]
    if not run.timed:
        times = [(axis.clock(facts.start_ns), "")]
    elif facts.known in (MEASURED, FUSED):
        times += [("   ", ""), (axis.length(facts.end_ns - facts.start_ns), "bright")]
    else:
        times = [(f"{axis.clock(facts.start_ns)}   {_UNKNOWN_LENGTH[facts.known]}", "")]
    said = ", ".join(_said(run, rank, item, facts))
    return [first, times, *([(line, "")] for line in wrapped(said, width - 4))]


def _whose(run: MeasuredRun, rank: RankTrace, wide: bool) -> str:
    if run.unit == "stage":
        return f"stage {rank.number}"
    position = run.degrees.position(rank.number)
    if wide and position is not None:
        return f"rank {rank.number} = {place_words(position)}"
    return f"rank {rank.number}" + (f", stage {rank.stage}" if wide and rank.stage is not None else "")


def _gap(rank: RankTrace, item: int) -> str:
    before, after = neighbours(rank, item)
    if before is None:
        return f"not running yet, the first operation is {cells(shown_name(after or '-'), 40)}"
    if after is None:
        return f"over, the last operation was {cells(shown_name(before), 40)}"
    return f"host gap between {cells(shown_name(before), 40)} and {cells(shown_name(after), 40)}"


def _what(facts: SpanFacts) -> str:
    name = cells(shown_name(facts.name), 40)
    if facts.parent is not None:
        collective = f"{cells(facts.collective, 20)}, " if facts.collective is not None else ""
        words = f"{name} ({collective}{facts.category}) in {cells(facts.parent, 40)}"
    else:
        words = name if facts.category in (*COMPUTE, "host") else f"{name} ({facts.category})"
    return words + (f", micro-batch {facts.batch}" if facts.batch >= 0 else "")


def _said(run: MeasuredRun, rank: RankTrace, item: int, facts: SpanFacts) -> list[str]:
    """What the file says besides times, as far as it does."""
    said = []
    if facts.state is not None:
        said.append(f"state {cells(facts.state, 20)}")
    if facts.bytes is not None:
        dtype = cells((facts.dtype or "").removeprefix("torch."), 20)
        said.append(f"{byte_size(facts.bytes)} = {cells(facts.shape or '', 60)} {dtype}")
    if facts.subs:
        length = f", {duration(facts.subs_ns)} together" if run.timed else ""
        said.append(f"{plural(facts.subs, 'sub-operation')}{length}")
    if facts.description is not None:
        said.append(cells(facts.description, 100))
    if rank.device is not None:
        return said + [f"{name} {cells(words, 60)}" for name, words in device_facts(rank, item)]
    said.append(f"line {facts.line}" + (" of its file" if facts.path != run.path else ""))
    return said
