"""Sums of a measured run: each rank's time by category, and each operation's figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from simcore.measured.columns import MEASURED, RankTrace
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
    return _figures(
        (name, None, ops.category(index), ops.timing[index],
         ops.start[index], ops.end[index], rank.rank, ops.batch[index], index)
        for rank in ranks
        for ops in (rank.ops,)
        for index, name in enumerate(ops.name)
    )  # fmt: skip


def sub_figures_of(ranks: Sequence[RankTrace]) -> list[OpFigures]:
    """Returns `sub_figures` of some ranks."""
    return _figures(
        (name, rank.ops.name[subs.parent[index]], category_of_group(subs.group[index]), subs.timing[index],
         subs.start[index], subs.end[index], rank.rank, rank.ops.batch[subs.parent[index]],
         len(rank.ops) + index)
        for rank in ranks
        for subs in (rank.subs,)
        for index, name in enumerate(subs.name)
    )  # fmt: skip


# name, parent, category, timing, start, end, rank, micro-batch, item
_One = tuple[str, "str | None", str, int, int, int, int, int, int]


def _figures(ones: Iterable[_One]) -> list[OpFigures]:
    # Sums alone: a tuple for each of a million operations took 200 MB.
    by_key: dict[tuple[str, str | None, str], list[int]] = {}
    for name, parent, category, timing, start, end, *where in ones:
        key = name, parent, category
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
            figures[4:] = ns, *where
    return [OpFigures(*key, *figures) for key, figures in by_key.items()]
