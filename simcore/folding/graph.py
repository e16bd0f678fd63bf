"""The graph that is refined: cells of ranks known to be alike, and the groups they form.

Where layout and cluster cut rank numbers at the same places, a cell is a box of coordinates
that no override tells apart; else each rank is a cell of its own.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from simcore.cluster import Cluster, GroupShape, TransferShape, group_shape, transfer_shape
from simcore.folding.classes import PortFactors
from simcore.layout import DATA_FASTEST, Layout
from simcore.overrides import Overrides
from simcore.ranks import Block, RankSet
from simcore.workload.model import GroupKind


@dataclass(slots=True)
class Cell:
    """Ranks that are alike. first: the lowest. slowdown, ports: their overrides.

    groups: of each kind, the group's number.
    links: per step the neighbour's cell, the link's shape and its port factors.
    """

    ranks: RankSet
    first: int
    stage: int
    slowdown: float
    ports: PortFactors
    groups: dict[GroupKind, int] = field(default_factory=dict)
    links: dict[int, tuple[int, TransferShape, PortFactors]] = field(default_factory=dict)


@dataclass(slots=True)
class Group:
    """A group, or equal ones: its signature, and how many members each cell has in it."""

    kind: GroupKind
    shape: GroupShape
    ports: PortFactors
    members: dict[int, int]


@dataclass(slots=True)
class Graph:
    """Cells and the groups they form."""

    cells: list[Cell]
    groups: list[Group]


def listed_graph(
    layout: Layout, cluster: Cluster, kinds: list[GroupKind], steps: list[int], overrides: Overrides
) -> Graph:
    """The graph whose cells are single ranks."""
    cells = []
    for rank in range(layout.world):
        stage = layout.position(rank)[2]
        slowdown = overrides.slow_ranks.get(rank, 1.0)
        ports = ports_of(overrides, cluster, (rank,))
        cells.append(Cell(RankSet([Block(rank, rank)]), rank, stage, slowdown, ports))
    groups: list[Group] = []
    for kind in kinds:
        for members in layout.groups(kind):
            for rank in members:
                cells[rank].groups[kind] = len(groups)
            ports = ports_of(overrides, cluster, members)
            groups.append(Group(kind, group_shape(cluster, members), ports, dict.fromkeys(members, 1)))
    for cell in cells:
        for step in steps:
            if 0 <= cell.stage + step < layout.pp:
                other = layout.neighbour(cell.first, cell.stage + step)
                shape = transfer_shape(cluster, cell.first, other)
                cell.links[step] = (other, shape, ports_of(overrides, cluster, (cell.first, other)))
    return Graph(cells, groups)


def ports_of(overrides: Overrides, cluster: Cluster, ranks: tuple[int, ...] | list[int]) -> PortFactors:
    """Per dimension the slowest port among `ranks`; () when none is slowed."""
    if not overrides.slow_links:
        return ()
    factors = [1.0] * len(cluster.dims)
    slowed = overrides.slow_links
    members = set(ranks) if len(ranks) > 4 else ranks
    for (dimension, rank), factor in slowed.items():
        if rank in members:
            factors[dimension] = min(factors[dimension], factor)
    return tuple(factors) if any(factor != 1.0 for factor in factors) else ()


def is_aligned(layout: Layout, cluster: Cluster) -> bool:
    """Whether layout and cluster cut rank numbers at boundaries that divide each other.

    Then a rank number is a row of digits, every group varies some digits and keeps the
    others, and so all groups of a kind and all links between two stages are translates of
    each other: equal price signatures.
    """
    if layout.rank_order == DATA_FASTEST:
        return False
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


def boxed_graph(
    layout: Layout, cluster: Cluster, kinds: list[GroupKind], steps: list[int], overrides: Overrides
) -> Graph:
    """The graph of an aligned layout: as many cells as the overrides need, however many ranks.

    Along each axis (tp, ep, the rest of dp) a value that an override names is a part of its
    own, all others together are one: swapping two of the others changes nothing.
    """
    named = set(overrides.slow_ranks) | {rank for _, rank in overrides.slow_links}
    places = [layout.position(rank) for rank in sorted(named)]
    tp_parts = _parts(layout.tp, {tp for tp, _, _ in places})
    ep_parts = _parts(layout.ep, {dp % layout.ep for _, dp, _ in places})
    edp_parts = _parts(layout.dp // layout.ep, {dp // layout.ep for _, dp, _ in places})
    boxes = list(itertools.product(range(len(tp_parts)), range(len(ep_parts)), range(len(edp_parts))))
    index_of = {box: index for index, box in enumerate(boxes)}
    cells: list[Cell] = []
    groups: list[Group] = []
    shapes = {kind: group_shape(cluster, next(layout.groups(kind))) for kind in kinds}
    for stage in range(layout.pp):
        base = stage * len(boxes)
        for box in boxes:
            parts = (tp_parts[box[0]], ep_parts[box[1]], edp_parts[box[2]])
            ranks = _ranks_of_box(layout, stage, *parts)
            slowdown = overrides.slow_ranks.get(ranks.first, 1.0)
            ports = ports_of(overrides, cluster, (ranks.first,))
            cells.append(Cell(ranks, ranks.first, stage, slowdown, ports))
        for kind in kinds:
            found: dict[tuple[int, ...], int] = {}
            for box in boxes:
                kept = _kept(kind, box)
                if kept not in found:
                    found[kept] = len(groups)
                    members = {
                        base + index_of[other]: _count(kind, other, tp_parts, ep_parts, edp_parts)
                        for other in boxes
                        if _kept(kind, other) == kept
                    }
                    ports = _ports_of_cells(cells, members, len(cluster.dims))
                    groups.append(Group(kind, shapes[kind], ports, members))
                cells[base + index_of[box]].groups[kind] = found[kept]
    for number, cell in enumerate(cells):
        for step in steps:
            if 0 <= cell.stage + step < layout.pp:
                neighbour = number + step * len(boxes)
                other = layout.neighbour(cell.first, cell.stage + step)
                ports = ports_of(overrides, cluster, (cell.first, other))
                cell.links[step] = (neighbour, transfer_shape(cluster, cell.first, other), ports)
    return Graph(cells, groups)


def _parts(size: int, named: set[int]) -> list[tuple[int, ...]]:
    """The values 0..size-1 of an axis: each named one alone, the others together (if there are any)."""
    alone = [(value,) for value in sorted(named)]
    others = tuple(value for value in range(size) if value not in named)
    return [others, *alone] if others else list(alone)


def _kept(kind: GroupKind, box: tuple[int, int, int]) -> tuple[int, ...]:
    """The parts of a box that a group of this kind keeps; it varies the others."""
    tp, ep, edp = box
    if kind == "tp":
        return ep, edp
    if kind == "ep":
        return tp, edp
    if kind == "dp_ep":
        return tp, ep
    return (tp,)


def _count(
    kind: GroupKind,
    box: tuple[int, int, int],
    tp_parts: list[tuple[int, ...]],
    ep_parts: list[tuple[int, ...]],
    edp_parts: list[tuple[int, ...]],
) -> int:
    """How many ranks of a box one group of this kind has."""
    tp, ep, edp = len(tp_parts[box[0]]), len(ep_parts[box[1]]), len(edp_parts[box[2]])
    return {"tp": tp, "ep": ep, "dp_ep": edp, "dp": ep * edp}[kind]


def _ports_of_cells(cells: list[Cell], members: dict[int, int], dimensions: int) -> PortFactors:
    """Per dimension the slowest port among the members' cells."""
    factors = [1.0] * dimensions
    for number in members:
        for dimension, factor in enumerate(cells[number].ports):
            factors[dimension] = min(factors[dimension], factor)
    return tuple(factors) if any(factor != 1.0 for factor in factors) else ()


def _ranks_of_box(
    layout: Layout, stage: int, tps: tuple[int, ...], eps: tuple[int, ...], edps: tuple[int, ...]
) -> RankSet:
    """The ranks of a stage whose coordinates lie in these parts, without listing all of them."""
    dps = RankSet.of(ep + layout.ep * edp for edp in edps for ep in eps)
    stride = layout.rank(0, 1, stage) - layout.rank(0, 0, stage) if layout.dp > 1 else layout.tp
    blocks = []
    for first_dp, last_dp, dp_stride, repeats in dps.blocks:
        for step in range(repeats):
            low, high = first_dp + step * dp_stride, last_dp + step * dp_stride
            for first_tp, last_tp, tp_stride, tp_repeats in RankSet.of(tps).blocks:
                for tp_step in range(tp_repeats):
                    first = layout.rank(first_tp + tp_step * tp_stride, low, stage)
                    last = first + last_tp - first_tp
                    if last - first + 1 == stride:
                        blocks.append(Block(first, last + (high - low) * stride))
                    else:
                        blocks.append(Block(first, last, stride if high > low else 0, high - low + 1))
    return RankSet(sorted(blocks))
