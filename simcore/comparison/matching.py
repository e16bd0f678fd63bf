"""Which op of one run is which op of another: the same rank, row, phase and micro-batch.

Ranks are the same where their places (tp, dp, stage) are, rows where their names are, counted in file
order, ops where row, phase, micro-batch and stream are, counted in issue order. So schedules that
take a backward apart match whole, and runs with other degrees or files as far as they agree.
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


# The micro-batch of ops that have none.
_OF_THE_STEP = -1
_ByIdentity = dict[tuple[int, int, int, int], list[int]]


class MatchedOps(NamedTuple):
    """Ops of two runs that are the same. pairs: (op of `a`, op of `b`), in the order of `a`. cut: collectives
    of a row that the one run has in more pieces than the other: (all of `a`, all of `b`) of each.
    """

    pairs: list[tuple[int, int]]
    cut: list[tuple[list[int], list[int]]]


def matched_ops(a: Ops, b: Ops, rows: Sequence[int]) -> MatchedOps:
    """All ops of `a` that `b` has, too. rows: see `rows_in`."""
    identical = (
        a.stream == b.stream
        and a.phase == b.phase
        and a.microbatch == b.microbatch
        and all(
            row == other or (row >= 0 and rows[row] == other) for row, other in zip(b.row, a.row, strict=True)
        )
    )
    if identical:
        return MatchedOps([(op, op) for op in range(len(a))], [])
    of_a, of_b = _by_identity(a), _by_identity(b, rows)
    _of_the_step(of_a, of_b)
    _of_the_step(of_b, of_a)
    pairs: list[tuple[int, int]] = []
    cut: list[tuple[list[int], list[int]]] = []
    for key, mine in of_a.items():
        theirs = of_b.get(key, [])
        row, _, _, stream = key
        if theirs and len(mine) != len(theirs) and row >= 0 and stream != COMPUTE:
            # The first piece of a collective is not the whole of it.
            cut.append((mine, theirs))
        else:
            pairs += zip(mine, theirs, strict=False)
    return MatchedOps(sorted(pairs), cut)


def _of_the_step(mine: _ByIdentity, theirs: _ByIdentity) -> None:
    """Call the collectives of a row those of no micro-batch where the other run has them behind the last one:
    gradients that are reduced beside a backward are of its micro-batch.
    """
    for key in list(mine):
        row, phase, microbatch, stream = key
        whole = (row, phase, _OF_THE_STEP, stream)
        if row < 0 or stream == COMPUTE or microbatch == _OF_THE_STEP:
            continue
        if key not in theirs and whole in theirs:
            mine.setdefault(whole, []).extend(mine.pop(key))


def _by_identity(ops: Ops, rows: Sequence[int] | None = None) -> _ByIdentity:
    """(row, phase, micro-batch, stream) -> its ops, in the order of issue."""
    found: _ByIdentity = {}
    columns = zip(ops.row, ops.phase, ops.microbatch, ops.stream, strict=True)
    for op, (row, phase, microbatch, stream) in enumerate(columns):
        key = (row if rows is None or row < 0 else rows[row], phase, microbatch, stream)
        found.setdefault(key, []).append(op)
    return found
