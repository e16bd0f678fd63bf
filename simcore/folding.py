"""Folding: which ranks have equal timelines for a proven reason, so that one of each is simulated.

Classes are colours refined on the bipartite graph of ranks and groups until nothing splits:
the first colour holds the stage; a group's colour its price signature and its members'
colours; a rank's colour those of its groups and of its pipeline neighbours, with the price
signature of the link to each. Equal colours then mean equal inputs at every instant, so equal
timelines (the coarsest equitable partition, as in colour refinement of graphs).

Import from here: `fold`, `Folding`, `RankClass`, `GroupClass`.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from simcore.cluster import Cluster, GroupShape, TransferShape, group_shape, transfer_shape
from simcore.diagnostics import UsageError
from simcore.layout import Layout
from simcore.program import Program
from simcore.program.ops import CollectiveCost, TransferCost
from simcore.ranks import Block, RankSet
from simcore.workload.model import GroupKind


@dataclass(frozen=True, slots=True)
class GroupClass:
    """Groups of one kind with equal price signature and equal member classes.

    members: the classes that take part, each once.
    """

    kind: GroupKind
    shape: GroupShape
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RankClass:
    """Ranks with equal timelines.

    groups: number of the group class per group kind. neighbours: per step (+1 next stage,
    -1 previous), the class there and the price signature of the link.
    """

    ranks: RankSet
    stage: int
    groups: dict[GroupKind, int]
    neighbours: dict[int, tuple[int, TransferShape]]


@dataclass(frozen=True, slots=True)
class Folding:
    """All rank classes and group classes of a run."""

    classes: tuple[RankClass, ...]
    group_classes: tuple[GroupClass, ...]

    def class_of(self, rank: int) -> int:
        """The number of the class that a rank belongs to. Raises ValueError for no rank."""
        for number, rank_class in enumerate(self.classes):
            if rank in rank_class.ranks:
                return number
        raise ValueError(f"no rank {rank}")


# Refinement lists every rank: about 20 us each.
MOST_LISTED_RANKS = 2**20


def fold(layout: Layout, cluster: Cluster, program: Program, every_rank: bool = False) -> Folding:
    """The rank classes of a run; with `every_rank` each rank is a class of its own."""
    kinds: list[GroupKind] = []
    steps: list[int] = []
    for cost in program.costs:
        if isinstance(cost, CollectiveCost) and cost.group not in kinds:
            kinds.append(cost.group)
        elif isinstance(cost, TransferCost) and cost.step not in steps:
            steps.append(cost.step)
    if not every_rank and "all" not in kinds and _is_aligned(layout, cluster):
        return _fold_aligned(layout, cluster, kinds, steps)
    if layout.world > MOST_LISTED_RANKS:
        raise UsageError(
            f"{layout.world} ranks whose groups do not align with the cluster (or with --no-fold) "
            f"are looked at one by one: at most {MOST_LISTED_RANKS}"
        )
    return _fold_refined(layout, cluster, kinds, steps, every_rank)


def _is_aligned(layout: Layout, cluster: Cluster) -> bool:
    """Whether layout and cluster cut rank numbers at boundaries that divide each other.

    Then a rank number is a row of digits, every group varies some digits and keeps the
    others, and so all groups of a kind and all links between two stages are translates of
    each other: equal price signatures, one class per stage.
    """
    tp, dp, pp = layout.tp, layout.dp, layout.pp
    order = (tp, pp, dp) if layout.rank_order == "tp-pp-dp" else (tp, dp, pp)
    boundaries = {tp, order[0] * order[1], layout.world}
    if layout.ep > 1:
        if dp % layout.ep:
            return False
        inner = tp if layout.rank_order != "tp-pp-dp" else tp * pp
        boundaries.add(inner * layout.ep)
    reach = 1
    for dimension in cluster.dims[:-1]:
        reach *= dimension.size
        boundaries.add(min(reach, layout.world))
    # The last dimension may be larger than the world uses; only what lies below cuts ranks.
    ascending = sorted(boundaries)
    return all(high % low == 0 for low, high in itertools.pairwise(ascending))


def _fold_aligned(layout: Layout, cluster: Cluster, kinds: list[GroupKind], steps: list[int]) -> Folding:
    group_classes: list[GroupClass] = []
    classes = []
    shapes = {kind: group_shape(cluster, next(layout.groups(kind))) for kind in kinds}
    for stage in range(layout.pp):
        first = layout.rank(0, 0, stage)
        groups: dict[GroupKind, int] = {}
        for kind in kinds:
            groups[kind] = len(group_classes)
            group_classes.append(GroupClass(kind, shapes[kind], (stage,)))
        neighbours: dict[int, tuple[int, TransferShape]] = {}
        for step in steps:
            if 0 <= stage + step < layout.pp:
                other = layout.neighbour(first, stage + step)
                neighbours[step] = (stage + step, transfer_shape(cluster, first, other))
        classes.append(RankClass(_ranks_of_stage(layout, stage), stage, groups, neighbours))
    return Folding(tuple(classes), tuple(group_classes))


def _ranks_of_stage(layout: Layout, stage: int) -> RankSet:
    first = layout.rank(0, 0, stage)
    if layout.rank_order == "tp-pp-dp" and layout.dp > 1 and layout.pp > 1:
        return RankSet([Block(first, first + layout.tp - 1, layout.tp * layout.pp, layout.dp)])
    return RankSet([Block(first, first + layout.tp * layout.dp - 1)])


def _fold_refined(
    layout: Layout, cluster: Cluster, kinds: list[GroupKind], steps: list[int], every_rank: bool
) -> Folding:
    world = layout.world
    stages = [layout.position(rank)[2] for rank in range(world)]
    groups: list[list[int]] = []
    group_kinds: list[GroupKind] = []
    shapes: list[GroupShape] = []
    groups_of: list[list[int]] = [[] for _ in range(world)]
    for kind in kinds:
        for members in layout.groups(kind):
            for rank in members:
                groups_of[rank].append(len(groups))
            groups.append(members)
            group_kinds.append(kind)
            shapes.append(group_shape(cluster, members))
    links: list[list[tuple[int, int, TransferShape]]] = []
    for rank in range(world):
        links.append([])
        for step in steps:
            if 0 <= stages[rank] + step < layout.pp:
                other = layout.neighbour(rank, stages[rank] + step)
                # A link is priced by the two ends alike, so the shape is the same from both.
                links[rank].append((step, other, transfer_shape(cluster, rank, other)))

    colours = _numbered(list(range(world)) if every_rank else stages)
    group_colours = _group_colours(groups, group_kinds, shapes, colours)
    while True:
        refined = _numbered(
            [
                (
                    colours[rank],
                    *[group_colours[group] for group in groups_of[rank]],
                    *[(step, colours[other], shape) for step, other, shape in links[rank]],
                )
                for rank in range(world)
            ]
        )
        group_colours = _group_colours(groups, group_kinds, shapes, refined)
        if max(refined) == max(colours):
            break
        colours = refined

    members_of: list[list[int]] = [[] for _ in range(max(refined) + 1)]
    for rank, colour in enumerate(refined):
        members_of[colour].append(rank)
    group_classes: list[GroupClass | None] = [None] * (max(group_colours, default=-1) + 1)
    for number, colour in enumerate(group_colours):
        if group_classes[colour] is None:
            member_classes = tuple(sorted({refined[rank] for rank in groups[number]}))
            group_classes[colour] = GroupClass(group_kinds[number], shapes[number], member_classes)
    classes = []
    for ranks in members_of:
        first = ranks[0]
        classes.append(
            RankClass(
                RankSet.of(ranks),
                stages[first],
                {group_kinds[group]: group_colours[group] for group in groups_of[first]},
                {step: (refined[other], shape) for step, other, shape in links[first]},
            )
        )
    return Folding(tuple(classes), tuple(group for group in group_classes if group is not None))


def _group_colours(
    groups: list[list[int]], kinds: list[GroupKind], shapes: list[GroupShape], colours: list[int]
) -> list[int]:
    return _numbered(
        [
            (kinds[number], shapes[number], tuple(sorted([colours[rank] for rank in members])))
            for number, members in enumerate(groups)
        ]
    )


def _numbered(keys: Sequence[Hashable]) -> list[int]:
    """Each key's number by first appearance: rank order decides, never a hash."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]
