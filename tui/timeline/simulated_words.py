"""What is said of a span of a simulated run: what it is, whose, when, and where its length comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.analysis.facts import OpFacts, op_facts
from simcore.ranks import place_words
from simcore.units import duration
from tui.frame import Line, cells, width_of, wrapped
from tui.timeline.axis import clock
from tui.timeline.spans import DRAWN

if TYPE_CHECKING:
    from tui.timeline.lanes import Lane

PHASE_WORDS = {
    "fwd": "forward", "ig": "input grad", "wg": "weight grad", "opt": "optimizer", "recompute": "recompute",
}  # fmt: skip


def simulated_words(lane: Lane, index: int | None, others: str, width: int, wide: bool) -> list[Line]:
    """The span, its times, then where its duration comes from, in lines of at most `width` cells."""
    whose = _whose(lane) if wide else []
    whose.append(f"rank {lane.rank_set.first} x{len(lane.rank_set)}")
    if index is None:
        return [[("nothing runs here", ""), ("   ", ""), (whose[0], "dim")]]
    spans = lane.spans
    category = DRAWN[spans.category[index]]
    facts = op_facts(lane.results.simulation, lane.number, spans.op[index])
    over = spans.end[index] >= lane.results.simulation.step_time_ns
    what = _what(category, lane.stream is None, facts, over)
    times = f"{clock(spans.start[index])} .. {clock(spans.end[index])}"
    length = spans.end[index] - spans.start[index]
    second: Line = [(times, ""), ("   ", ""), (duration(length), "bright")]
    origin = facts.origin if facts is not None else ""
    if facts is not None and facts.end_ns - facts.start_ns != length:
        itself = "the transfer itself" if facts.other_stage is not None else "the collective itself"
        takes = f"   {itself} takes {duration(facts.end_ns - facts.start_ns)}"
        since = f", from {clock(facts.start_ns)}"
        fits = width_of(second) + len(takes) + len(since) <= width
        second += [(takes, "dim"), (since if fits else "", "dim")]
    room = width - len(what) - len(others) - 3
    # The lane at the cursor is named beside its cells, too.
    fitting = next((f"   {words}" for words in whose if len(words) <= room), "")
    first: Line = [(what, "bright"), (others, "warn"), (fitting, "dim")]
    return [first, second, *([(line, "")] for line in wrapped(origin, width - 4))]


def _whose(lane: Lane) -> list[str]:
    """The ranks of a lane in words, the most of them first."""
    simulation = lane.results.simulation
    ranks = lane.rank_set
    place = f"rank {ranks.first} = {place_words(simulation.layout.position(ranks.first))}"
    if len(ranks) == 1:
        return [place]
    alike = f"ranks {_short(ranks.text())} alike"
    return [f"{alike}, {place}", alike]


def _short(text: str) -> str:
    return text if len(text) <= 24 else text[:21] + "..."


def _what(category: str, by_accounts: bool, facts: OpFacts | None, is_last: bool) -> str:
    if facts is None:
        return "idle, the step of these ranks is over" if is_last else "idle, ASTRA-sim 1.0 changes its state"
    microbatch = f", micro-batch {facts.microbatch}" if facts.microbatch >= 0 else ""
    phase = PHASE_WORDS[facts.phase]
    if facts.other_stage is not None:
        way = "to" if facts.kind == "send" else "from"
        what = "activation" if facts.phase == "fwd" else "gradient"
        op = f"{what} {way} stage {facts.other_stage}{microbatch}"
    elif facts.kind == "compute":
        return f"{phase}   {cells(facts.name, 40)}{microbatch}"
    else:
        op = f"{facts.kind} ({facts.stream}) of {cells(facts.name, 40)}, {phase}{microbatch}"
    if not by_accounts:
        return op
    if category == "bubble":
        return f"bubble   waits for the {op}"
    return f"{'wait' if category == 'wait' else 'exposed'}   {op}"
