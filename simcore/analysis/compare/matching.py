"""Which op of one run is which op of another: the same rank, row, phase and micro-batch.

Ranks are the same where their places (tp, dp, stage) are, rows where their names are, counted in file
order, ops where row, phase, micro-batch and stream are, counted in issue order. So schedules that
take a backward apart match whole, and runs with other degrees or files as far as they agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simcore.layout import Layout
from simcore.program import Ops
from simcore.records import NamedTuple
from simcore.simulation import Simulation
from simcore.timeline import Timeline
from simcore.workload import Workload


class ClassPair(NamedTuple):
    """`ranks` ranks that are in class `a` of the one run and in class `b` of the other.

    first: (stage, dp, tp) of the lowest of them, which orders pairs in either direction.
    """

    first: tuple[int, int, int]
    a: int
    b: int
    ranks: int


def class_pairs(a: Simulation, b: Simulation) -> list[ClassPair]:
    """Every pair of classes with ranks in common, in the order of their lowest places."""
    shared: dict[tuple[int, int], list[int]] = {}
    if _places(a.layout) == _places(b.layout):
        overlaps = _common_runs(_runs(a.timeline), _runs(b.timeline))
    else:
        overlaps = _common_places(a, b)
    for first, count, of_a, of_b in overlaps:
        entry = shared.setdefault((of_a, of_b), [first, 0])
        entry[0] = min(entry[0], first)
        entry[1] += count
    pairs = []
    for (of_a, of_b), (first, count) in shared.items():
        tp, dp, stage = a.layout.position(first)
        pairs.append(ClassPair((stage, dp, tp), of_a, of_b, count))
    return sorted(pairs, key=lambda pair: pair.first)


def _places(layout: Layout) -> tuple[int, int, int, str]:
    return layout.tp, layout.dp, layout.pp, layout.rank_order


def _runs(timeline: Timeline) -> list[tuple[int, int, int]]:
    """(first, last, class) of ranks that follow each other, ascending."""
    runs = [
        (first + step * stride, last + step * stride, number)
        for number, rank_class in enumerate(timeline.classes)
        for first, last, stride, repeats in rank_class.ranks.blocks
        for step in range(repeats)
    ]
    return sorted(runs)


def _common_runs(
    a: list[tuple[int, int, int]], b: list[tuple[int, int, int]]
) -> Iterator[tuple[int, int, int, int]]:
    """(lowest rank, ranks, class, class) of every stretch that both have."""
    left = right = 0
    while left < len(a) and right < len(b):
        first, last = max(a[left][0], b[right][0]), min(a[left][1], b[right][1])
        if last >= first:
            yield first, last - first + 1, a[left][2], b[right][2]
        if a[left][1] <= b[right][1]:
            left += 1
        else:
            right += 1


def _common_places(a: Simulation, b: Simulation) -> Iterator[tuple[int, int, int, int]]:
    """The same where ranks are numbered or arranged in another way: place by place."""
    of_a, of_b = _class_by_rank(a.timeline), _class_by_rank(b.timeline)
    here, there = a.layout, b.layout
    for stage in range(min(here.pp, there.pp)):
        for dp in range(min(here.dp, there.dp)):
            for tp in range(min(here.tp, there.tp)):
                rank = here.rank(tp, dp, stage)
                yield rank, 1, of_a[rank], of_b[there.rank(tp, dp, stage)]


def _class_by_rank(timeline: Timeline) -> list[int]:
    numbers = [0] * sum(len(rank_class.ranks) for rank_class in timeline.classes)
    for first, last, number in _runs(timeline):
        numbers[first : last + 1] = [number] * (last - first + 1)
    return numbers


def row_names(workload: Workload) -> list[tuple[str, int]]:
    """Each row's identity: its name, and how often the name stood before it."""
    seen: dict[str, int] = {}
    numbered = []
    for name in workload.name:
        numbered.append((name, seen.get(name, 0)))
        seen[name] = seen.get(name, 0) + 1
    return numbered


def rows_in(a: Workload, b: Workload) -> list[int]:
    """For each row of `b` the row of `a` that it is; numbers below -1 for rows that `a` has not."""
    if a.name == b.name:
        return list(range(len(b)))
    number = {identity: row for row, identity in enumerate(row_names(a))}
    return [number.get(identity, -2 - row) for row, identity in enumerate(row_names(b))]


def matched_ops(a: Ops, b: Ops, rows: Sequence[int]) -> list[tuple[int, int]]:
    """(op of `a`, op of `b`) of all ops that are the same, in the order of `a`. rows: see `rows_in`."""
    identical = (
        a.stream == b.stream
        and a.phase == b.phase
        and a.microbatch == b.microbatch
        and all(
            row == other or (row >= 0 and rows[row] == other) for row, other in zip(b.row, a.row, strict=True)
        )
    )
    if identical:
        return [(op, op) for op in range(len(a))]
    of_b = {key: op for op, key in enumerate(_identities(b, rows))}
    return [(op, of_b[key]) for op, key in enumerate(_identities(a)) if key in of_b]


def _identities(ops: Ops, rows: Sequence[int] | None = None) -> Iterator[tuple[int, int, int, int, int]]:
    """(row, phase, micro-batch, stream, how often that came before) of each op."""
    seen: dict[tuple[int, int, int, int], int] = {}
    for row, phase, microbatch, stream in zip(ops.row, ops.phase, ops.microbatch, ops.stream, strict=True):
        key = (row if rows is None or row < 0 else rows[row], phase, microbatch, stream)
        count = seen.get(key, 0)
        seen[key] = count + 1
        yield (*key, count)
