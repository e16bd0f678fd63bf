"""How the ops of two runs differ: which moved, take longer or wait longer, and what is unchanged."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import chain
from typing import Literal

from simcore.collectives import WITH_COPIES
from simcore.comparison.changes import Alike
from simcore.comparison.matching import ClassPair, MatchedOps, matched_ops
from simcore.program.ops import COMPUTE, PHASES, CollectiveCost, ComputeCost, Ops, TransferCost
from simcore.records import NamedTuple, Struct, field
from simcore.simulation import Simulation
from simcore.workload.model import base_name

Measure = Literal["duration", "wait", "start"]
# What ops take and wait, the largest first, stands before when they start, which follows from it.
MEASURES: tuple[Measure, ...] = ("duration", "wait", "start")
_MOST_OF_A_MEASURE = 3
# An op that takes less than this part of what it moved by has nothing to say: cells of 1 us that stand for
# no compute begin 32 ms later where an optimizer does.
_LEAST_OP = 10_000
# Beside one that differs by seconds, microseconds are not what differs most.
_LEAST_PART = 100


class Mover(NamedTuple):
    """One op with what differs most about it, ns in the one run and in the other.

    wait: how long compute stands still right before it. a_start_ns: when it starts in the one. place:
    (stage, dp, tp) of the lowest rank that it is of. kind: `compute`, `send` or a collective's name.
    name: "" for a transfer. pieces: in how many it is sent in the one run and in the other.
    """

    measure: Measure
    place: tuple[int, int, int]
    ranks: int
    name: str
    phase: str
    kind: str
    microbatch: int
    a_ns: int
    b_ns: int
    a_start_ns: int
    pieces: tuple[int, int] = (1, 1)


class Matched(Struct):
    """What matching found, ops of all ranks. differs: which durations or bytes do, by kind of op."""

    ops: int = 0
    a_ops: int = 0
    b_ops: int = 0
    ranks: int = 0
    compared: set[str] = field(default_factory=set)
    differs: set[str] = field(default_factory=set)

    @property
    def whole(self) -> bool:
        """Whether every op of both runs has its like."""
        return self.ops == self.a_ops == self.b_ops


def compared_ops(
    a: Simulation, b: Simulation, pairs: list[ClassPair], rows: Sequence[int]
) -> tuple[Matched, list[Mover]]:
    """All matched ops of the ranks that both runs have, and those that differ most: a few a measure, by
    duration and wait together the largest first, then by start; none below a hundredth of the first.
    """
    counts = Matched(a_ops=a.timeline.spans, b_ops=b.timeline.spans, ranks=sum(pair.ranks for pair in pairs))
    # By measure, by what an op is: the one that differs most, with a key that settles ties.
    most: dict[Measure, dict[tuple[str, str, str], tuple[tuple[int, ...], Mover]]] = {
        measure: {} for measure in MEASURES
    }
    known: dict[tuple[int, int], MatchedOps] = {}
    for pair in pairs:
        ops, start, end = a.timeline.columns(pair.a)
        other, other_start, other_end = b.timeline.columns(pair.b)
        stages = (id(ops), id(other))
        if stages not in known:
            known[stages] = matched_ops(ops, other, rows)
        matched = known[stages]
        counts.ops += (len(matched.pairs) + len(matched.cut)) * pair.ranks
        _note_costs(a, b, ops, other, matched.pairs, counts)
        if matched.cut:
            counts.differs.add("bytes")
        waits, other_waits = _waits(ops, start, end), _waits(other, other_start, other_end)
        for mine, likes in chain(([[op], [like]] for op, like in matched.pairs), matched.cut):
            op, like = mine[0], likes[0]
            # Of what the one has in pieces: all of them, and when the first begins.
            duration = sum(end[piece] - start[piece] for piece in mine)
            other_duration = sum(other_end[piece] - other_start[piece] for piece in likes)
            if duration != other_duration:
                counts.differs.add(_what(a, ops, op))
            values = (
                (duration, other_duration),
                (waits[op], other_waits[like]),
                (start[op], other_start[like]),
            )
            for measure, (of_a, of_b) in zip(MEASURES, values, strict=True):
                if of_a == of_b:
                    continue
                if measure == "start" and _LEAST_OP * max(duration, other_duration) < abs(of_b - of_a):
                    continue
                kind = _kind(a, ops, op)
                name = a.workload.name[ops.row[op]] if ops.row[op] >= 0 else ""
                phase = PHASES[ops.phase[op]]
                key = (base_name(name), phase, kind)
                rank = (-abs(of_b - of_a), *pair.first, ops.row[op], ops.phase[op], ops.microbatch[op])
                if key not in most[measure] or rank < most[measure][key][0]:
                    mover = Mover(
                        measure, pair.first, pair.ranks, name, phase, kind, ops.microbatch[op], of_a, of_b,
                        start[op], (len(mine), len(likes)),
                    )  # fmt: skip
                    most[measure][key] = (rank, mover)
    movers = []
    largest = {
        measure: sorted(found.values(), key=lambda entry: entry[0])[:_MOST_OF_A_MEASURE]
        for measure, found in most.items()
    }
    moved = largest.pop("start")
    for entries in (sorted(chain(*largest.values()), key=lambda entry: entry[0]), moved):
        movers += [mover for rank, mover in entries if rank[0] * _LEAST_PART <= entries[0][0][0]]
    return counts, movers


def computed_ops(a: Simulation, b: Simulation, numbers: tuple[int, int], rows: Sequence[int]) -> list[Alike]:
    """The compute ops that two classes have both and that take time, in the order of issue of A."""
    ops, start, end = a.timeline.columns(numbers[0])
    other, other_start, _ = b.timeline.columns(numbers[1])
    return [
        Alike(start[op], end[op], other_start[like])
        for op, like in matched_ops(ops, other, rows).pairs
        if ops.stream[op] == COMPUTE and end[op] > start[op]
    ]


def _note_costs(
    a: Simulation, b: Simulation, ops: Ops, other: Ops, matched: list[tuple[int, int]], counts: Matched
) -> None:
    """Note which kinds of op were compared, and whether their bytes differ."""
    for mine, like in {(ops.cost[op], other.cost[twin]) for op, twin in matched}:
        cost, twin_cost = a.program.costs[mine], b.program.costs[like]
        if isinstance(cost, ComputeCost):
            counts.compared.add("compute")
            continue
        counts.compared.add("collective" if isinstance(cost, CollectiveCost) else "transfer")
        if isinstance(twin_cost, ComputeCost) or cost.bytes != twin_cost.bytes:
            counts.differs.add("bytes")


def _what(simulation: Simulation, ops: Ops, op: int) -> str:
    cost = simulation.program.costs[ops.cost[op]]
    if isinstance(cost, ComputeCost):
        return "compute"
    return "transfer" if isinstance(cost, TransferCost) else "collective"


def _kind(simulation: Simulation, ops: Ops, op: int) -> str:
    cost = simulation.program.costs[ops.cost[op]]
    if isinstance(cost, CollectiveCost):
        return f"{cost.group} {WITH_COPIES[cost.collective]}"
    return "send" if isinstance(cost, TransferCost) else "compute"


def _waits(ops: Ops, start: array[int], end: array[int]) -> list[int]:
    """How long the compute stream stands still right before each compute op, ns; 0 for other ops."""
    waits = [0] * len(ops)
    before = 0
    op = ops.stream.find(COMPUTE)
    while op >= 0:
        waits[op] = start[op] - before
        before = end[op]
        op = ops.stream.find(COMPUTE, op + 1)
    return waits
