"""The lines about what is under the cursor: what it is, whose, when, and where its length comes from."""

from __future__ import annotations

from simcore.analysis.facts import OpFacts, op_facts
from simcore.units import duration
from tui.frame import Line, cells
from tui.timeline.lanes import DRAWN
from tui.timeline.model import TimelineModel

_PHASE_WORDS = {
    "fwd": "forward", "ig": "input grad", "wg": "weight grad", "opt": "optimizer", "recompute": "recompute",
}  # fmt: skip


def details(model: TimelineModel, wide: bool) -> list[Line]:
    """Four lines: the span, its times, where its duration comes from (two)."""
    lane = model.current
    index = lane.at(model.cursor_ns)
    whose = _whose(model, wide)
    if index is None:
        return [[("nothing runs here", ""), ("   ", ""), (whose, "dim")], [], [], []]
    spans = lane.spans
    category = DRAWN[spans.category[index]]
    facts = op_facts(lane.results.simulation, lane.number, spans.op[index])
    what = _what(category, lane.stream is None, facts)
    times = f"{_clock(spans.start[index])} .. {_clock(spans.end[index])}"
    length = spans.end[index] - spans.start[index]
    second: Line = [(times, ""), ("   ", ""), (duration(length), "bright")]
    origin = facts.origin.split("\n") if facts is not None else [""]
    if facts is not None and facts.end_ns - facts.start_ns != length:
        second.append(
            (f"   of {duration(facts.end_ns - facts.start_ns)} from {_clock(facts.start_ns)}", "dim")
        )
    first: Line = [(what, "bright"), ("   ", ""), (whose, "dim")]
    return [first, second, [(origin[0], "")], [(origin[1] if len(origin) > 1 else "", "")]]


def _whose(model: TimelineModel, wide: bool) -> str:
    simulation = model.results.simulation
    lane = model.current
    ranks = simulation.timeline.classes[lane.number].ranks
    if not wide:
        return f"rank {ranks.first} x{len(ranks)}"
    tp, dp, stage = simulation.layout.position(ranks.first)
    words = f"rank {ranks.first} = stage {stage}, dp {dp}, tp {tp}"
    return words + (f"   stands for {len(ranks)} equal ranks" if len(ranks) > 1 else "")


def _what(category: str, by_accounts: bool, facts: OpFacts | None) -> str:
    if facts is None:
        return "idle, the step of these ranks is over"
    microbatch = f", micro-batch {facts.microbatch}" if facts.microbatch >= 0 else ""
    phase = _PHASE_WORDS[facts.phase]
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


def _clock(time_ns: int) -> str:
    """A time of the step in groups of three: `6.204 608 123 s`."""
    whole, rest = divmod(time_ns, 10**9)
    digits = f"{rest:09d}"
    return f"{whole}.{digits[:3]} {digits[3:6]} {digits[6:]} s"
