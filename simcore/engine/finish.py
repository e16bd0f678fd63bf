"""When every rank class is finished, and nothing else, by the rules of `event_queue`.

Classes that meet in collectives are walked together (`teams`); each of the others goes its own way.

A class's step is a script, built once of a stage's program: computes, collectives, transfers and waits, each
with the slot of its price. The script holds only what decides this time: an op has no times, and of several
ops that end in the order in which they were issued only the last one is waited for. What a schedule repeats
with each micro-batch is one stretch of the script.

A part of a micro-batch is one step of it: compute goes on when what it waits for is over, and a collective
begins when its stream is free and compute has come to it, which are maxima and sums. So each end is the
largest of a few sums, the time at which compute came to the part, or a stream was free, plus a duration (a
matrix over (max, +)), whatever lies in between.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import add
from typing import Any

from simcore.engine.teams import Clocks, Team, TeamPart
from simcore.program.ops import (
    ADVANCE,
    AWAIT,
    COMPUTE,
    MARK,
    TO_NEXT,
    AnyCost,
    Join,
    PartCost,
    Receive,
    StageProgram,
)
from simcore.program.ops import BEGIN as _PART_BEGIN
from simcore.program.ops import JOIN as _PART_JOIN
from simcore.program.ops import RUN as _PART_RUN
from simcore.records import NamedTuple
from simcore.workload.model import LARGEST

# A term that delays nothing.
_NEVER = -(1 << 80)
# The streams; then a row for compute and for each stream: the delays that are added to the times at which
# compute came and each stream was free.
PartTimes = tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]


def part_times(cost: PartCost, ns_of: Callable[[AnyCost], int]) -> PartTimes:
    """Returns the times of a part. ns_of: what a step takes alone."""
    streams = cost.streams
    if len(streams) == 1:
        return streams, _of_one_stream(cost, ns_of)
    count = len(streams) + 1
    now = [[0 if part == other else _NEVER for other in range(count)] for part in range(count)]
    ends: list[list[int]] = []
    advanced = [0] * len(streams)
    for code, what, stream in cost.steps:
        if code == _PART_JOIN:
            now[0] = [*map(max, now[0], ends[stream])]
            continue
        if code == MARK:
            now[stream + 2] = [*map(max, now[0], now[stream + 1])]
            continue
        if code == AWAIT:
            over = [begin + advanced[stream] for begin in now[stream + 1]]
            now[0] = [*map(max, now[0], over)]
            continue
        ns = ns_of(what)
        if code == ADVANCE:
            advanced[stream] += ns
            continue
        if code == _PART_RUN:
            now[0] = [before + ns for before in now[0]]
            continue
        over = now[stream + 1] = [max(pair) + ns for pair in zip(now[0], now[stream + 1], strict=True)]
        if code == _PART_BEGIN:
            ends.append(over)
        else:
            now[0] = over
    return streams, tuple(map(tuple, now))


def _of_one_stream(cost: PartCost, ns_of: Callable[[AnyCost], int]) -> tuple[tuple[int, ...], ...]:
    """Returns the rows of a part with one stream, as most have."""
    # What compute and the stream end after: the arrival of compute; the time at which the stream was free.
    compute, compute_free, busy, free = 0, _NEVER, _NEVER, 0
    ends: list[tuple[int, int]] = []
    advanced = 0
    for code, what, stream in cost.steps:
        if code == _PART_JOIN:
            end, end_free = ends[stream]
            compute, compute_free = max(compute, end), max(compute_free, end_free)
            continue
        if code == AWAIT:
            compute, compute_free = max(compute, busy + advanced), max(compute_free, free + advanced)
            continue
        ns = ns_of(what)
        if code == ADVANCE:
            advanced += ns
            continue
        if code == _PART_RUN:
            compute, compute_free = compute + ns, compute_free + ns
            continue
        busy, free = max(busy, compute) + ns, max(free, compute_free) + ns
        if code == _PART_BEGIN:
            ends.append((busy, free))
        else:
            compute, compute_free = busy, free
    return (compute, compute_free), (busy, free)


# What a step of a script does: (code, slot, stream or message, op or step of a transfer). Collectives have
# the stream, and the op where somebody waits for its end (else -1). The slot of a PART holds its index in
# `parts`; WAIT_STREAM waits for all that was begun on a stream, WAIT_SENDS for all that was sent.
RUN, BLOCK, BEGIN, SEND, RECEIVE, JOIN, PART, WAIT_STREAM, WAIT_SENDS = range(9)
ScriptStep = tuple[int, int, int, int, int]
_NOBODY = -1


class Script(NamedTuple):
    """What a class does in its step."""

    stretches: tuple[tuple[ScriptStep, ...], ...]
    """The different stretches."""
    order: array[int]
    """The indices of the stretches, in the order in which they run."""
    offsets: array[int]
    """What is added to the messages of each of them."""


def make_script(
    stage: StageProgram, slots: Sequence[int], steps: Mapping[int, int], parts: Collection[int] = ()
) -> tuple[list[ScriptStep], list[int]]:
    """Returns the script of a stage as one stretch, and the index in it of each op.

    slots: for each op, the slot of its price; steps: for the op of a transfer, how many stages on it goes;
    parts: the slots of whole parts (`PartCost`).
    """
    ops = stage.ops
    awaited: set[int] = set()
    waits: list[list[Join | Receive]] = []
    for run in stage.runs:
        kept_waits: list[Join | Receive] = []
        last: dict[tuple[int, int], int] = {}
        for wait in run.waits:
            if isinstance(wait, Receive):
                kept_waits.append(wait)
                continue
            assert isinstance(wait, Join)
            stream = ops.stream[wait.op]
            if stream == COMPUTE or ops.blocking[wait.op]:
                # It was over before the ops behind it were issued.
                continue
            lane = (stream, steps.get(wait.op, 0))
            last[lane] = max(last.get(lane, -1), wait.op)
        kept_waits += [Join(op) for op in last.values()]
        awaited |= {*last.values()}
        waits.append(kept_waits)
    script: list[ScriptStep] = []
    step_indices: list[int] = []
    for run, kept_waits in zip(stage.runs, waits, strict=True):
        for wait in kept_waits:
            if isinstance(wait, Receive):
                script.append((RECEIVE, 0, wait.message, 0, 0))
            else:
                script.append((JOIN, 0, wait.op, 0, 0))
        for op in range(run.first, run.last):
            stream, slot = ops.stream[op], slots[op]
            step_indices.append(len(script))
            awaited_op = op if op in awaited else _NOBODY
            if stream == COMPUTE:
                script.append((PART if slot in parts else RUN, slot, 0, 0, 0))
            elif stream >= TO_NEXT:
                script.append((SEND, slot, ops.message[op], steps[op], awaited_op))
            else:
                script.append((BLOCK if ops.blocking[op] else BEGIN, slot, stream, awaited_op, 0))
    return script, step_indices


def whole_script(steps: Sequence[ScriptStep]) -> Script:
    """Returns the script of one stretch."""
    return Script((tuple(steps),), array("i", [0]), array("i", [0]))


class Mail:
    """What classes send to each other, and who waits for it."""

    def __init__(self, classes: int) -> None:
        # By class the arrivals of messages, and the message that it waits for.
        self.inboxes: list[dict[int, int]] = [{} for _ in range(classes)]
        self.parked = [_NOBODY] * classes
        # Classes that go on.
        self.awake: list[int] = []

    def deliver(self, peer: int, message: int, over: int) -> None:
        """Delivers a message, for which a class that waits goes on."""
        self.inboxes[peer][message] = over
        if self.parked[peer] == message:
            self.parked[peer] = _NOBODY
            self.awake.append(peer)


def finish_ns(
    scripts: Sequence[Script],
    prices: Sequence[Sequence[int]],
    peers: Sequence[Mapping[int, int]],
    parts: Sequence[PartTimes] = (),
    teams: Sequence[tuple[Team, Sequence[Clocks | TeamPart | None]]] = (),
) -> int:
    """Returns when the last class is finished, ns. Takes by class: scripts, prices (ns by slot), peers (by
    step).

    parts: the times of parts, by the index that is their price. teams: classes that meet, and by slot what it
    takes each of them, or the part.

    Raises `OverflowError` from 2^63 ns on, RuntimeError where a class waits for what nobody does.
    """
    classes = range(len(scripts))
    mail = Mail(len(scripts))
    inboxes, parked, awake = mail.inboxes, mail.parked, mail.awake
    finish = [_NOBODY for _ in classes]
    in_teams = {class_id for team, _ in teams for class_id in team.classes}
    awake += [class_id for class_id in classes if class_id not in in_teams]

    def walk(class_id: int) -> Iterator[None]:
        time = 0
        table, inbox, mine = prices[class_id], inboxes[class_id], peers[class_id]
        free: dict[int, int] = {}
        channel: dict[int, int] = {}
        ends: dict[int, int] = {}
        stretches, order, offsets = scripts[class_id]
        for stretch, offset in zip(order, offsets, strict=True):
            for code, slot, operand, second, awaited_op in stretches[stretch]:
                if code == RUN:
                    time += table[slot]
                elif code == RECEIVE:
                    message = operand + offset
                    if message not in inbox:
                        parked[class_id] = message
                        yield
                    over = inbox.pop(message)
                    if over > time:
                        time = over
                elif code == SEND:
                    peer = mine[second]
                    begin = channel.get(peer, 0)
                    over = (begin if begin > time else time) + table[slot]
                    channel[peer] = over
                    if awaited_op >= 0:
                        ends[awaited_op] = over
                    message = operand + offset
                    inboxes[peer][message] = over
                    if parked[peer] == message:
                        parked[peer] = _NOBODY
                        awake.append(peer)
                elif code == PART:
                    streams, rows = parts[table[slot]]
                    if len(streams) == 1:
                        ((after, after_free), (busy, busy_free)) = rows
                        begin = free.get(streams[0], 0)
                        free[streams[0]] = max(time + busy, begin + busy_free)
                        time = max(time + after, begin + after_free)
                    else:
                        came = [time, *(free.get(stream, 0) for stream in streams)]
                        over_all = [max(map(add, came, row)) for row in rows]
                        time = over_all[0]
                        free.update(zip(streams, over_all[1:], strict=True))
                elif code == JOIN:
                    time = max(time, ends[operand])
                elif code == WAIT_STREAM:
                    time = max(time, free.get(operand, 0))
                elif code == WAIT_SENDS:
                    time = max(time, *channel.values())
                else:
                    begin = free.get(operand, 0)
                    over = (begin if begin > time else time) + table[slot]
                    free[operand] = over
                    if code == BLOCK:
                        time = over
                    elif second >= 0:
                        ends[second] = over
        finish[class_id] = time

    walks = [walk(class_id) for class_id in classes]
    for team, table in teams:
        together = _walk_together(team, scripts[team.classes[0]], table, peers, mail, finish)
        for class_id in team.classes:
            walks[class_id] = together
        awake.append(team.classes[0])
    while awake:
        next(walks[awake.pop()], None)
    if _NOBODY in finish:
        raise RuntimeError(f"class {finish.index(_NOBODY)} waits for what nobody does")
    if max(finish) > LARGEST:
        raise OverflowError
    return max(finish)


def _walk_together(
    team: Team,
    script: Script,
    table: Sequence[Clocks | TeamPart | None],
    peers: Sequence[Mapping[int, int]],
    mail: Mail,
    finish: list[int],
) -> Iterator[None]:
    """Walks the classes of a team through their script as `finish_ns` walks one, and sets their `finish`."""
    classes = team.classes
    count = len(classes)
    times = [0] * count
    nothing = [0] * count
    free: dict[int, Clocks] = {}
    channels: list[dict[int, int]] = [{} for _ in classes]
    ends: dict[int, Clocks] = {}
    stretches, order, offsets = script
    for stretch, offset in zip(order, offsets, strict=True):
        for code, slot, operand, second, awaited_op in stretches[stretch]:
            price: Any = table[slot]
            if code == RUN:
                times = [*map(add, times, price)]
            elif code == RECEIVE:
                message, arrivals = operand + offset, []
                for class_id in classes:
                    inbox = mail.inboxes[class_id]
                    if message not in inbox:
                        mail.parked[class_id] = message
                        yield
                    arrivals.append(inbox.pop(message))
                times = [*map(max, times, arrivals)]
            elif code == SEND:
                arrivals = []
                for class_id, channel, time, ns in zip(classes, channels, times, price, strict=True):
                    peer = peers[class_id][second]
                    over = channel[peer] = max(channel.get(peer, 0), time) + ns
                    mail.deliver(peer, operand + offset, over)
                    arrivals.append(over)
                if awaited_op >= 0:
                    ends[awaited_op] = arrivals
            elif code == PART:
                times = price.run(times, free)
            elif code == JOIN:
                times = [*map(max, times, ends[operand])]
            elif code == WAIT_STREAM:
                times = [*map(max, times, free.get(operand, nothing))]
            elif code == WAIT_SENDS:
                times = [max(time, *channel.values()) for time, channel in zip(times, channels, strict=True)]
            else:
                begins = team.begin(operand, times, free.get(operand, nothing))
                ends_of = free[operand] = [*map(add, begins, price)]
                if code == BLOCK:
                    times = ends_of
                elif second >= 0:
                    ends[second] = ends_of
    for class_id, time in zip(classes, times, strict=True):
        finish[class_id] = time
