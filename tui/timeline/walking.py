"""Walking along causes: what a span waited for, what it holds back, and the critical path."""

from __future__ import annotations

from typing import NamedTuple

from simcore.analysis import Results
from simcore.analysis.accounts import IDLE_OP, received_op
from simcore.analysis.dependencies import Dependency
from simcore.analysis.reasons import op_kind
from simcore.program.ops import COMPUTE, PHASES, STREAMS, TO_NEXT
from simcore.units import duration
from tui.frame import cells
from tui.timeline.spans import SpanLane

_PIPELINE = "pp"


class Step(NamedTuple):
    """A span to go to. number: its group of ranks; stream: of the lane that shows it. words: what it
    is, and why it is a cause or an effect.
    """

    number: int
    stream: str | None
    start_ns: int
    rank: int
    words: str


def causes(results: Results, lane: SpanLane, index: int, rank: int | None) -> list[Step]:
    """What span `index` of a lane waited for, what bound it first; nothing for what starts with the step."""
    number, dependencies = lane.number, results.dependencies
    if lane.stream is None:
        accounts = results.accounts[number]
        found = dependencies.segment_causes(number, accounts, index, rank)
        op = accounts.op[index]
        if found and (found[0].number, found[0].op) == (number, op) and _is_shown(results, number, op, index):
            # It runs here: what is asked for is what held it back.
            found = found[1:]
    else:
        op = lane.spans.op[index]
        if op >= 0:
            found = dependencies.causes(number, op, rank)
        else:
            sender, sent = results.simulation.timeline.received(number, received_op(op))
            found = dependencies.causes(sender, sent)
    return [_step(results, lane, one) for one in found]


def effects(results: Results, lane: SpanLane, index: int, rank: int | None) -> list[Step]:
    """What span `index` of a lane holds back."""
    number, dependencies = lane.number, results.dependencies
    if lane.stream is None:
        found = dependencies.segment_effects(number, results.accounts[number], index, rank)
    else:
        op = lane.spans.op[index]
        if op >= 0:
            found = dependencies.effects(number, op, rank)
        else:
            sender, sent = results.simulation.timeline.received(number, received_op(op))
            found = [one for one in dependencies.effects(sender, sent) if one.number == number]
    return [_step(results, lane, one) for one in found]


def critical(results: Results, time_ns: int, direction: int) -> Step | None:
    """The segment of the critical path behind (1) or before (-1) the one at a time; None past its ends."""
    path = results.critical_path
    index = path.at(time_ns) + direction
    if not 0 <= index < len(path):
        return None
    segment = path.segment(index)
    what = segment.kind if segment.op == IDLE_OP else _what(results, segment.number, segment.op)
    words = f"critical path {index + 1} of {len(path)}: {what}, {duration(segment.ns)}; {segment.reason}"
    stream = lane_of(results, segment.number, segment.op, segment.start_ns, segment.end_ns)
    return Step(segment.number, stream, segment.start_ns, segment.rank, words)


def slack_words(results: Results, lane: SpanLane, index: int) -> str:
    """How much longer a span may take, or that it is critical; "" where there is no slack."""
    if results.slacks is None:
        return ""
    op = lane.spans.op[index]
    if op < 0:
        return ""
    if lane.stream is None and not _is_shown(results, lane.number, op, index):
        return ""
    slack = results.slacks[lane.number][op]
    return f"slack {duration(slack)}, not critical" if slack else "on a critical path"


def _is_shown(results: Results, number: int, op: int, segment: int) -> bool:
    """Whether a segment of the accounts is the op itself, and not a wait for it."""
    accounts = results.accounts[number]
    start = results.simulation.timeline.times.start[number][op]
    return accounts.edge[segment] >= start


def _step(results: Results, lane: SpanLane, one: Dependency) -> Step:
    what = "idle" if one.op == IDLE_OP else _what(results, one.number, one.op)
    stream = lane_of(results, one.number, one.op, one.start_ns, one.end_ns)
    if lane.stream == "compute" and stream is None:
        # Someone who looks at streams stays with streams.
        stream = "compute"
    stage = results.simulation.timeline.classes[one.number].stage
    own = results.simulation.timeline.classes[lane.number].stage
    where = (
        ""
        if one.number == lane.number
        else f", rank {one.rank}" + (f" of stage {stage}" if stage != own else "")
    )
    words = f"{what}{where}, {duration(one.end_ns - one.start_ns)}: {one.reason}"
    return Step(one.number, stream, one.start_ns, one.rank, words)


def _what(results: Results, number: int, op: int) -> str:
    """`fwd mlp_row`, `tp all-gather of mlp_row`, `transfer`."""
    simulation = results.simulation
    ops = simulation.timeline.stage_program(number).ops
    kind, row = op_kind(simulation, number, op, with_group=True), ops.row[op]
    name = cells(simulation.workload.name[row], 24) if row >= 0 else ""
    if kind == "compute":
        return f"{PHASES[ops.phase[op]]} {name}"
    return f"{kind} of {name}" if name else kind


def lane_of(results: Results, number: int, op: int, start_ns: int, end_ns: int) -> str | None:
    """The stream of the lane that shows an op; None for the folded lane, where compute does it or stands
    still for it.
    """
    if op == IDLE_OP:
        return None
    accounts = results.accounts[number]
    segment = accounts.at(start_ns)
    if accounts.op[segment] == op and accounts.edge[segment] <= start_ns < end_ns:
        return None
    stream = results.simulation.timeline.stage_program(number).ops.stream[op]
    if stream == COMPUTE:
        return None
    return STREAMS[stream] if stream < TO_NEXT else _PIPELINE
