"""When every rank class is done, and nothing else: the rules of `event_queue` for groups of one class alone.

A class's step is a script, made once of a stage's program: computes, collectives, transfers and waits, each
with the slot of its price. What nobody asks for is not kept: an op has no times, and of several that end in
the order in which they were issued only the last is waited for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from simcore.program.ops import COMPUTE, TO_NEXT, Join, Receive, StageProgram
from simcore.workload.model import LARGEST

# What a step of a script does: (code, slot, stream or message, op or transfer's step). Of collectives the
# stream, and the op where somebody waits for its end (else -1).
RUN, BLOCK, BEGIN, SEND, RECEIVE, JOIN = range(6)
Script = tuple[tuple[int, int, int, int, int], ...]
_NOBODY = -1


def script_of(stage: StageProgram, slots: Sequence[int], steps: Mapping[int, int]) -> Script:
    """The script of a stage. slots: of each op where its price stands; steps: of a transfer's op, how many
    stages on it goes.
    """
    ops = stage.ops
    awaited: set[int] = set()
    waits: list[list[Join | Receive]] = []
    for run in stage.runs:
        kept: list[Join | Receive] = []
        last: dict[tuple[int, int], int] = {}
        for wait in run.waits:
            if isinstance(wait, Receive):
                kept.append(wait)
                continue
            assert isinstance(wait, Join)
            stream = ops.stream[wait.op]
            if stream == COMPUTE or ops.blocking[wait.op]:
                # It was over before what came behind it was issued.
                continue
            lane = (stream, steps.get(wait.op, 0))
            last[lane] = max(last.get(lane, -1), wait.op)
        kept += [Join(op) for op in last.values()]
        awaited |= {*last.values()}
        waits.append(kept)
    script: list[tuple[int, int, int, int, int]] = []
    for run, kept in zip(stage.runs, waits, strict=True):
        for wait in kept:
            if isinstance(wait, Receive):
                script.append((RECEIVE, 0, wait.message, 0, 0))
            else:
                script.append((JOIN, 0, wait.op, 0, 0))
        for op in range(run.first, run.last):
            stream, slot = ops.stream[op], slots[op]
            told = op if op in awaited else _NOBODY
            if stream == COMPUTE:
                script.append((RUN, slot, 0, 0, 0))
            elif stream >= TO_NEXT:
                script.append((SEND, slot, ops.message[op], steps[op], told))
            else:
                script.append((BLOCK if ops.blocking[op] else BEGIN, slot, stream, told, 0))
    return tuple(script)


def finish_ns(
    scripts: Sequence[Script], prices: Sequence[Sequence[int]], peers: Sequence[Mapping[int, int]]
) -> int:
    """When the last class is done, ns. By class: scripts, prices (ns by slot), peers (so many stages on).

    Raises `OverflowError` from 2^63 ns on, RuntimeError where a class waits for what nobody does.
    """
    classes = range(len(scripts))
    inboxes: list[dict[int, int]] = [{} for _ in classes]
    parked = [_NOBODY for _ in classes]
    finish = [_NOBODY for _ in classes]
    awake = [*classes]

    def walk(number: int) -> Iterator[None]:
        time = 0
        table, inbox, mine = prices[number], inboxes[number], peers[number]
        free: dict[int, int] = {}
        channel: dict[int, int] = {}
        ends: dict[int, int] = {}
        for code, slot, what, other, told in scripts[number]:
            if code == RUN:
                time += table[slot]
            elif code == RECEIVE:
                if what not in inbox:
                    parked[number] = what
                    yield
                over = inbox.pop(what)
                if over > time:
                    time = over
            elif code == SEND:
                peer = mine[other]
                begin = channel.get(peer, 0)
                over = (begin if begin > time else time) + table[slot]
                channel[peer] = over
                if told >= 0:
                    ends[told] = over
                inboxes[peer][what] = over
                if parked[peer] == what:
                    parked[peer] = _NOBODY
                    awake.append(peer)
            elif code == JOIN:
                over = ends[what]
                if over > time:
                    time = over
            else:
                begin = free.get(what, 0)
                over = (begin if begin > time else time) + table[slot]
                free[what] = over
                if code == BLOCK:
                    time = over
                elif other >= 0:
                    ends[other] = over
        finish[number] = time

    walks = [walk(number) for number in classes]
    while awake:
        next(walks[awake.pop()], None)
    if _NOBODY in finish:
        raise RuntimeError(f"class {finish.index(_NOBODY)} waits for what nobody does")
    if max(finish) > LARGEST:
        raise OverflowError
    return max(finish)
