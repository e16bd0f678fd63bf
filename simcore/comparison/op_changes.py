"""How the ops of two runs differ: which moved, take longer or wait longer, and what is unchanged."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import chain
from typing import Literal

from simcore.collectives import WITH_COPIES
from simcore.comparison.changes import SpanPair
from simcore.comparison.matching import ClassPair, OpMatch, match_ops
from simcore.program.ops import COMPUTE, PHASES, CollectiveCost, ComputeCost, Ops, TransferCost
from simcore.records import NamedTuple, Struct, field
from simcore.simulation import Simulation
from simcore.workload.model import base_name

Measure = Literal["duration", "wait", "start"]
# What ops take and wait, the largest first, stands before when they start, which follows from it.
MEASURES: tuple[Measure, ...] = ("duration", "wait", "start")
_MOST_PER_MEASURE = 3
# An op that takes less than this part of what it moved by has nothing to say: cells of 1 us that stand for
# no compute begin 32 ms later where an optimizer does.
_LEAST_OP = 10_000
# Beside one that differs by seconds, microseconds are not what differs most.
_LEAST_PART = 100


class OpChange(NamedTuple):
    """One op with what differs most about it, ns in the one run and in the other.

    wait: how long compute stands still right before it. a_start_ns: when it starts in the one. place:
    (stage, dp, tp) of the lowest rank that it is of. kind: `compute`, `send` or a collective's name.
    name: "" for a transfer. pieces: in how many it is sent in the one run and in the other.
    """

    measure: Measure
    position: tuple[int, int, int]
    ranks: int
    name: str
    phase: str
    kind: str
    microbatch: int
    a_ns: int
    b_ns: int
    a_start_ns: int
    splits: tuple[int, int] = (1, 1)


class OpMatches(Struct):
    """What matching found, ops of all ranks. differs: which durations or bytes do, by kind of op."""

    ops: int = 0
    a_ops: int = 0
    b_ops: int = 0
    ranks: int = 0
    compared_kinds: set[str] = field(default_factory=set)
    different_kinds: set[str] = field(default_factory=set)

    @property
    def is_complete(self) -> bool:
        """Whether every op of both runs has its like."""
        return self.ops == self.a_ops == self.b_ops


def compare_ops(
    a: Simulation, b: Simulation, pairs: list[ClassPair], rows: Sequence[int]
) -> tuple[OpMatches, list[OpChange]]:
    """All matched ops of the ranks that both runs have, and those that differ most: a few a measure, by
    duration and wait together the largest first, then by start; none below a hundredth of the first.
    """
    counts = OpMatches(
        a_ops=a.timeline.spans, b_ops=b.timeline.spans, ranks=sum(pair.ranks for pair in pairs)
    )
    # By measure, by what an op is: the one that differs most, with a key that settles ties.
    most: dict[Measure, dict[tuple[str, str, str], tuple[tuple[int, ...], OpChange]]] = {
        measure: {} for measure in MEASURES
    }
    op_matches: dict[tuple[int, int], OpMatch] = {}
    for pair in pairs:
        ops, start, end = a.timeline.columns(pair.a)
        other, other_start, other_end = b.timeline.columns(pair.b)
        stages = (id(ops), id(other))
        if stages not in op_matches:
            op_matches[stages] = match_ops(ops, other, rows)
        op_match = op_matches[stages]
        counts.ops += (len(op_match.pairs) + len(op_match.split_ops)) * pair.ranks
        _note_costs(a, b, ops, other, op_match.pairs, counts)
        if op_match.split_ops:
            counts.different_kinds.add("bytes")
        waits, other_waits = _compute_waits(ops, start, end), _compute_waits(other, other_start, other_end)
        for own_ops, other_ops in chain(
            ([[op], [other_op]] for op, other_op in op_match.pairs), op_match.split_ops
        ):
            op, other_op = own_ops[0], other_ops[0]
            # Of what the one has in pieces: all of them, and when the first begins.
            duration = sum(end[split] - start[split] for split in own_ops)
            other_duration = sum(other_end[split] - other_start[split] for split in other_ops)
            if duration != other_duration:
                counts.different_kinds.add(_differing_kind(a, ops, op))
            values = (
                (duration, other_duration),
                (waits[op], other_waits[other_op]),
                (start[op], other_start[other_op]),
            )
            for measure, (of_a, of_b) in zip(MEASURES, values, strict=True):
                if of_a == of_b:
                    continue
                if measure == "start" and _LEAST_OP * max(duration, other_duration) < abs(of_b - of_a):
                    continue
                kind = _op_kind(a, ops, op)
                name = a.workload.name[ops.row[op]] if ops.row[op] >= 0 else ""
                phase = PHASES[ops.phase[op]]
                key = (base_name(name), phase, kind)
                rank = (-abs(of_b - of_a), *pair.first, ops.row[op], ops.phase[op], ops.microbatch[op])
                if key not in most[measure] or rank < most[measure][key][0]:
                    op_change = OpChange(
                        measure, pair.first, pair.ranks, name, phase, kind, ops.microbatch[op], of_a, of_b,
                        start[op], (len(own_ops), len(other_ops)),
                    )  # fmt: skip
                    most[measure][key] = (rank, op_change)
    op_changes = []
    largest = {
        measure: sorted(entries_by_op.values(), key=lambda entry: entry[0])[:_MOST_PER_MEASURE]
        for measure, entries_by_op in most.items()
    }
    start_changes = largest.pop("start")
    for entries in (sorted(chain(*largest.values()), key=lambda entry: entry[0]), start_changes):
        op_changes += [op_change for rank, op_change in entries if rank[0] * _LEAST_PART <= entries[0][0][0]]
    return counts, op_changes


def find_computed_ops(
    a: Simulation, b: Simulation, class_ids: tuple[int, int], rows: Sequence[int]
) -> list[SpanPair]:
    """The compute ops that two classes have both and that take time, in the order of issue of A."""
    ops, start, end = a.timeline.columns(class_ids[0])
    other, other_start, _ = b.timeline.columns(class_ids[1])
    return [
        SpanPair(start[op], end[op], other_start[other_op])
        for op, other_op in match_ops(ops, other, rows).pairs
        if ops.stream[op] == COMPUTE and end[op] > start[op]
    ]


def _note_costs(
    a: Simulation, b: Simulation, ops: Ops, other: Ops, op_pairs: list[tuple[int, int]], counts: OpMatches
) -> None:
    """Note which kinds of op were compared, and whether their bytes differ."""
    for cost_id, other_cost_id in {(ops.cost[op], other.cost[other_op]) for op, other_op in op_pairs}:
        cost, other_cost = a.program.costs[cost_id], b.program.costs[other_cost_id]
        if isinstance(cost, ComputeCost):
            counts.compared_kinds.add("compute")
            continue
        counts.compared_kinds.add("collective" if isinstance(cost, CollectiveCost) else "transfer")
        if isinstance(other_cost, ComputeCost) or cost.bytes != other_cost.bytes:
            counts.different_kinds.add("bytes")


def _differing_kind(simulation: Simulation, ops: Ops, op: int) -> str:
    cost = simulation.program.costs[ops.cost[op]]
    if isinstance(cost, ComputeCost):
        return "compute"
    return "transfer" if isinstance(cost, TransferCost) else "collective"


def _op_kind(simulation: Simulation, ops: Ops, op: int) -> str:
    cost = simulation.program.costs[ops.cost[op]]
    if isinstance(cost, CollectiveCost):
        return f"{cost.group} {WITH_COPIES[cost.collective]}"
    return "send" if isinstance(cost, TransferCost) else "compute"


def _compute_waits(ops: Ops, start: array[int], end: array[int]) -> list[int]:
    """How long the compute stream stands still right before each compute op, ns; 0 for other ops."""
    waits = [0] * len(ops)
    before = 0
    op = ops.stream.find(COMPUTE)
    while op >= 0:
        waits[op] = start[op] - before
        before = end[op]
        op = ops.stream.find(COMPUTE, op + 1)
    return waits
