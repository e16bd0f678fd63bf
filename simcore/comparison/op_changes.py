"""The differences of matched ops: which start later, take or wait longer, and what is unchanged."""

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
# Durations and waits, the largest first, stand before starts, which follow from them.
MEASURES: tuple[Measure, ...] = ("duration", "wait", "start")
_MOST_PER_MEASURE = 3
# An op that takes less than 1 / 10,000 of the shift of its start is left out: cells of 1 us that stand for no
# compute start 32 ms later where an optimizer does.
_LEAST_OP = 10_000
# Changes below 1 / 100 of the largest are left out: where one op differs by seconds, microseconds say
# nothing.
_LEAST_PART = 100


class OpChange(NamedTuple):
    """One matched op and the measure that differs, ns in A and in B."""

    measure: Measure
    """`wait` is how long compute stands still right before the op."""
    position: tuple[int, int, int]
    """(stage, dp, tp) of the lowest rank that runs it."""
    ranks: int
    """How many ranks run it."""
    name: str
    """The name of its row; "" for a transfer."""
    phase: str
    """Its phase, of PHASES."""
    kind: str
    """`compute`, `send` or a collective's name."""
    microbatch: int
    """Its micro-batch; below 0 for none."""
    a_ns: int
    """The measure in A."""
    b_ns: int
    """The measure in B."""
    a_start_ns: int
    """When the op starts in A."""
    splits: tuple[int, int] = (1, 1)
    """In how many splits it is sent in A and in B."""


class OpMatches(Struct):
    """Counts of matched ops, those of all ranks."""

    ops: int = 0
    """Ops that both runs have."""
    a_ops: int = 0
    """Ops of A."""
    b_ops: int = 0
    """Ops of B."""
    ranks: int = 0
    """Ranks that both runs have."""
    compared_kinds: set[str] = field(default_factory=set)
    """Kinds of op that were compared."""
    different_kinds: set[str] = field(default_factory=set)
    """Kinds of op whose durations differ; "bytes" where the bytes of any do."""

    @property
    def is_complete(self) -> bool:
        """Whether every op of both runs is matched."""
        return self.ops == self.a_ops == self.b_ops


def compare_ops(
    a: Simulation, b: Simulation, pairs: list[ClassPair], rows: Sequence[int]
) -> tuple[OpMatches, list[OpChange]]:
    """Returns the counts of matched ops of the ranks that both runs have, and the ops that differ most.

    These are a few a measure: durations and waits together, the largest first, then starts; none below a
    hundredth of the first.
    """
    counts = OpMatches(
        a_ops=a.timeline.spans, b_ops=b.timeline.spans, ranks=sum(pair.ranks for pair in pairs)
    )
    # By measure and identity of an op, the largest change, with a key that settles equal ones.
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
            # Of a collective in splits: the sum of all, and the start of the first.
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
    """Returns the compute ops that take time and that both classes have, in the order of issue of A."""
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
    """Adds to the counts which kinds of op were compared, and whether their bytes differ."""
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
    """Returns how long the compute stream stands still right before each compute op, ns; 0 for other ops."""
    waits = [0] * len(ops)
    before = 0
    op = ops.stream.find(COMPUTE)
    while op >= 0:
        waits[op] = start[op] - before
        before = end[op]
        op = ops.stream.find(COMPUTE, op + 1)
    return waits
