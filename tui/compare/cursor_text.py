"""What a lane of the compare screen does at a time of its step, in words."""

from __future__ import annotations

from simcore.analysis.span_words import find_op_facts
from simcore.runs.simulated import SimulatedRun
from simcore.sources.simulated import ACCOUNTS
from simcore.trace.lane_spans import KINDS
from simcore.trace.lanes import PHASE_WORDS
from simcore.trace.run import Run
from simcore.trace.track import Track
from tui.frame import cells
from tui.timeline.lanes import SpanLane

# Compute in the words of the screen.
COMPUTE = {f"compute {phase}": words for phase, words in PHASE_WORDS.items()}
_WORDS = {"fwd": "forward", "bwd": "backward", "wg": "weight grad", "opt": "optimizer"}
_NOT_NAMED = ("wait", "bubble", "idle")
_NAME = 28


def describe_op(run: SimulatedRun, lane: SpanLane, time_ns: int) -> str:
    """Returns the account of a rank class at a time of its step, and the op that it is of."""
    index = lane.content.find_span(time_ns)
    if index is None or not 0 <= time_ns < run.step_time_ns:
        return "nothing: the step is over" if time_ns > 0 else "nothing yet"
    accounts = run.accounts[lane.track_id]
    account = ACCOUNTS[accounts.account[index]]
    account = COMPUTE.get(account, account)
    facts = find_op_facts(run.simulation, lane.track_id, accounts.op[index])
    if facts is None:
        return account
    name = cells(facts.name, _NAME) if facts.name else facts.kind
    batch = f", micro-batch {facts.microbatch}" if facts.microbatch >= 0 else ""
    waits = "for " if account in ("wait", "bubble") or account.startswith("exposed") else ""
    return f"{account} {waits}{name}{batch}"


def describe_span(run: Run, track: Track, lane: SpanLane, time_ns: int) -> str:
    """Returns what a rank of a track does at a time of its step. lane: that of the track."""
    index = lane.content.find_span(time_ns)
    if index is None or not 0 <= time_ns < run.step_time_ns:
        return "nothing" + (": the step is over" if time_ns >= run.step_time_ns else "")
    kind = KINDS[lane.spans.category[index]]
    words = _WORDS.get(kind, kind)
    name = "" if lane.spans.op[index] < 0 or kind in _NOT_NAMED else lane.label(lane.spans.op[index], _NAME)
    batch = next(
        (
            timed_pass.microbatch
            for timed_pass in run.figures.passes(track)
            if timed_pass.start_ns <= time_ns < timed_pass.end_ns
        ),
        None,
    )
    return f"{words} {cells(name, _NAME)}".rstrip() + ("" if batch is None else f", micro-batch {batch}")
