"""Sums of a measured run: each rank's time by category, and each operation's figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise, repeat

from simcore.measured.columns import MEASURED, OpColumns, RankTrace, SubColumns
from simcore.measured.lanes import rank_segments
from simcore.measured.run import MeasuredRun
from simcore.measured.vocabulary import CATEGORIES, category_of_group
from simcore.records import Struct


class RankTime(Struct, frozen=True):
    """One rank's step: ns by category, which sum to the step time (`rank_segments`)."""

    rank: int
    stage: int | None
    ns: dict[str, int]


class OpFigures(Struct, frozen=True):
    """Equal operations of all ranks together, durations in ns."""

    name: str
    parent: str | None
    """For a sub-operation the operation that it lies in."""
    category: str
    count: int
    measured: int
    """How many have a duration; the times below are of these."""
    total_ns: int
    least_ns: int
    most_ns: int
    most_rank: int
    """The rank of the longest one."""
    most_batch: int
    """The micro-batch of the longest one."""
    most_item: int
    """The longest one as an item of that rank's lanes (`LaneSpans`)."""


def rank_times(run: MeasuredRun) -> list[RankTime]:
    """Returns each rank's time by category."""
    times = []
    for rank in run.ranks:
        ns = dict.fromkeys(CATEGORIES, 0)
        edge, kinds = rank_segments(run, rank)
        for (start, end), kind in zip(pairwise(edge), kinds, strict=True):
            ns[CATEGORIES[kind]] += end - start
        times.append(RankTime(rank.rank, rank.stage, ns))
    return times


def op_figures(run: MeasuredRun) -> list[OpFigures]:
    """Returns the operations by name, in the order in which they first come in the files."""
    return op_figures_of(run.ranks)


def sub_figures(run: MeasuredRun) -> list[OpFigures]:
    """Returns the sub-operations by parent, name and group, in the order in which they first come."""
    return sub_figures_of(run.ranks)


def op_figures_of(ranks: Sequence[RankTrace]) -> list[OpFigures]:
    """Returns `op_figures` of some ranks."""
    sums = _Sums()
    for rank in ranks:
        ops = rank.ops
        categories = map(ops.category, range(len(ops)))
        if ops.stated_category:
            categories = map(CATEGORIES.__getitem__, ops.stated_category)
        keys = zip(ops.name, repeat(None), categories, strict=False)
        sums.add(keys, ops, rank.rank, ops.batch.__getitem__, 0)
    return sums.figures()


def sub_figures_of(ranks: Sequence[RankTrace]) -> list[OpFigures]:
    """Returns `sub_figures` of some ranks."""
    sums = _Sums()
    for rank in ranks:
        ops, subs = rank.ops, rank.subs
        parents = map(ops.name.__getitem__, subs.parent)
        keys = zip(subs.name, parents, map(category_of_group, subs.group), strict=True)
        batches = [ops.batch[parent] for parent in subs.parent]
        sums.add(keys, subs, rank.rank, batches.__getitem__, len(ops))
    return sums.figures()


# The name, its parent, the category.
_Key = tuple[str, "str | None", str]


class _Sums:
    """The figures of operations while they are added up: a tuple for each of a million took 200 MB."""

    def __init__(self) -> None:
        self.by_key: dict[_Key, list[int]] = {}

    def add(
        self, keys: Iterable[_Key], of: OpColumns | SubColumns, rank: int, batch_of: Callable[[int], int],
        first_item: int,
    ) -> None:  # fmt: skip
        """Adds operations of a rank."""
        by_key = self.by_key
        columns = zip(keys, of.timing, of.start, of.end, strict=True)
        for index, (key, timing, start, end) in enumerate(columns):
            figures = by_key.get(key)
            if figures is None:
                figures = by_key[key] = [0, 0, 0, 0, 0, -1, -1, -1]
            figures[0] += 1
            if timing != MEASURED:
                continue
            ns, is_first = end - start, not figures[1]
            figures[1] += 1
            figures[2] += ns
            if is_first or ns < figures[3]:
                figures[3] = ns
            # It is the first of the longest: files and lines come in a fixed order.
            if is_first or ns > figures[4]:
                figures[4:] = ns, rank, batch_of(index), first_item + index

    def figures(self) -> list[OpFigures]:
        """Returns the figures, in the order in which operations first came."""
        return [OpFigures(*key, *figures) for key, figures in self.by_key.items()]
