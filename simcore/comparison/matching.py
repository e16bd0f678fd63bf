"""The matching of ops of two runs: the same rank, row, phase and micro-batch.

Ranks are the same where their positions (tp, dp, stage) are; rows where their names are, counted in file
order; ops where row, phase, micro-batch and stream are, counted in issue order. So schedules that split a
backward match completely, and runs with other degrees or files as far as they agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simcore.engine.timeline import Timeline
from simcore.layout import Layout
from simcore.program import Ops
from simcore.program.ops import COMPUTE
from simcore.records import NamedTuple
from simcore.simulation import Simulation
from simcore.workload import Workload


class ClassPair(NamedTuple):
    """Ranks that are in class `a` of A and in class `b` of B."""

    first: tuple[int, int, int]
    """(stage, dp, tp) of the lowest of these ranks, which orders pairs in either direction."""
    a: int
    """The class in A."""
    b: int
    """The class in B."""
    ranks: int
    """How many ranks they have in common."""


def find_class_pairs(a: Simulation, b: Simulation) -> list[ClassPair]:
    """Returns every pair of classes with ranks in common, in the order of their lowest positions."""
    shared: dict[tuple[int, int], list[int]] = {}
    if _layout_key(a.layout) == _layout_key(b.layout):
        overlaps = _find_common_runs(_list_runs(a.timeline), _list_runs(b.timeline))
    else:
        overlaps = _find_common_positions(a, b)
    for first, count, of_a, of_b in overlaps:
        entry = shared.setdefault((of_a, of_b), [first, 0])
        entry[0] = min(entry[0], first)
        entry[1] += count
    pairs = []
    for (of_a, of_b), (first, count) in shared.items():
        tp, dp, stage = a.layout.position(first)
        pairs.append(ClassPair((stage, dp, tp), of_a, of_b, count))
    return sorted(pairs, key=lambda pair: pair.first)


def _layout_key(layout: Layout) -> tuple[int, int, int, str]:
    return layout.tp, layout.dp, layout.pp, layout.rank_order


def _list_runs(timeline: Timeline) -> list[tuple[int, int, int]]:
    """Returns (first, last, class) of each run of consecutive ranks, ascending."""
    runs = [
        (first + step * stride, last + step * stride, class_id)
        for class_id, rank_class in enumerate(timeline.classes)
        for first, last, stride, repeats in rank_class.ranks.blocks
        for step in range(repeats)
    ]
    return sorted(runs)


def _find_common_runs(
    a: list[tuple[int, int, int]], b: list[tuple[int, int, int]]
) -> Iterator[tuple[int, int, int, int]]:
    """Yields (lowest rank, ranks, class in A, class in B) of every run of ranks that both have."""
    left = right = 0
    while left < len(a) and right < len(b):
        first, last = max(a[left][0], b[right][0]), min(a[left][1], b[right][1])
        if last >= first:
            yield first, last - first + 1, a[left][2], b[right][2]
        if a[left][1] <= b[right][1]:
            left += 1
        else:
            right += 1


def _find_common_positions(a: Simulation, b: Simulation) -> Iterator[tuple[int, int, int, int]]:
    """Yields the same, position by position, where ranks are numbered or arranged differently."""
    of_a, of_b = _class_by_rank(a.timeline), _class_by_rank(b.timeline)
    here, there = a.layout, b.layout
    for stage in range(min(here.pp, there.pp)):
        for dp in range(min(here.dp, there.dp)):
            for tp in range(min(here.tp, there.tp)):
                rank = here.rank(tp, dp, stage)
                yield rank, 1, of_a[rank], of_b[there.rank(tp, dp, stage)]


def _class_by_rank(timeline: Timeline) -> list[int]:
    class_ids = [0] * sum(len(rank_class.ranks) for rank_class in timeline.classes)
    for first, last, class_id in _list_runs(timeline):
        class_ids[first : last + 1] = [class_id] * (last - first + 1)
    return class_ids


def identify_rows(workload: Workload) -> list[tuple[str, int]]:
    """Returns the identity of each row: its name, and how many rows before it have that name."""
    name_counts: dict[str, int] = {}
    identities = []
    for name in workload.name:
        identities.append((name, name_counts.get(name, 0)))
        name_counts[name] = name_counts.get(name, 0) + 1
    return identities


def map_rows(a: Workload, b: Workload) -> list[int]:
    """Returns for each row of `b` its row in `a`; a number below -1 where `a` does not have it."""
    if a.name == b.name:
        return list(range(len(b)))
    row_of = {identity: row for row, identity in enumerate(identify_rows(a))}
    return [row_of.get(identity, -2 - row) for row, identity in enumerate(identify_rows(b))]


# The micro-batch of ops that have none.
_NO_MICROBATCH = -1
_OpGroups = dict[tuple[int, int, int, int], list[int]]


class OpMatch(NamedTuple):
    """The ops that two runs have in common."""

    pairs: list[tuple[int, int]]
    """(op of `a`, op of `b`), in the order of `a`."""
    split_ops: list[tuple[list[int], list[int]]]
    """Collectives of a row that one run has in more splits than the other: (all ops of `a`, all of `b`) of
    each.
    """


def match_ops(a: Ops, b: Ops, rows: Sequence[int]) -> OpMatch:
    """Returns the ops of `a` that `b` has, too. rows: as `map_rows` returns them."""
    identical = (
        a.stream == b.stream
        and a.phase == b.phase
        and a.microbatch == b.microbatch
        and all(
            row == other or (row >= 0 and rows[row] == other) for row, other in zip(b.row, a.row, strict=True)
        )
    )
    if identical:
        return OpMatch([(op, op) for op in range(len(a))], [])
    of_a, of_b = _group_by_identity(a), _group_by_identity(b, rows)
    _merge_step_collectives(of_a, of_b)
    _merge_step_collectives(of_b, of_a)
    pairs: list[tuple[int, int]] = []
    split_ops: list[tuple[list[int], list[int]]] = []
    for key, a_ops in of_a.items():
        b_ops = of_b.get(key, [])
        row, _, _, stream = key
        if b_ops and len(a_ops) != len(b_ops) and row >= 0 and stream != COMPUTE:
            # The first split of a collective is not all of it.
            split_ops.append((a_ops, b_ops))
        else:
            pairs += zip(a_ops, b_ops, strict=False)
    return OpMatch(sorted(pairs), split_ops)


def _merge_step_collectives(mine: _OpGroups, theirs: _OpGroups) -> None:
    """Moves collectives of a row to those without a micro-batch where the other run has them so.

    Gradients that are reduced while a backward runs are of its micro-batch; those reduced after the last
    backward are of none.
    """
    for key in list(mine):
        row, phase, microbatch, stream = key
        step_key = (row, phase, _NO_MICROBATCH, stream)
        if row < 0 or stream == COMPUTE or microbatch == _NO_MICROBATCH:
            continue
        if key not in theirs and step_key in theirs:
            mine.setdefault(step_key, []).extend(mine.pop(key))


def _group_by_identity(ops: Ops, rows: Sequence[int] | None = None) -> _OpGroups:
    """Returns the ops of each (row, phase, micro-batch, stream), in the order of issue."""
    groups: _OpGroups = {}
    columns = zip(ops.row, ops.phase, ops.microbatch, ops.stream, strict=True)
    for op, (row, phase, microbatch, stream) in enumerate(columns):
        key = (row if rows is None or row < 0 else rows[row], phase, microbatch, stream)
        groups.setdefault(key, []).append(op)
    return groups
