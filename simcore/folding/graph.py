"""The graph that is refined: cells of ranks known to be alike, and the groups they form.

Where layout and cluster cut rank numbers at the same places, a cell is a box of coordinates
that no override tells apart; else each rank is a cell of its own.
"""

from __future__ import annotations

import itertools
import math

from simcore.cluster import Cluster, GroupShape, TransferShape, group_shape, transfer_shape
from simcore.layout import BY_REMAINDER, DATA_FASTEST, Layout
from simcore.program.overrides import Overrides
from simcore.ranks import Block, RankSet
from simcore.records import NamedTuple, Struct, field
from simcore.workload.model import GroupKind

# The kinds whose groups cut the ranks of a stage.
_STAGE_KINDS: tuple[GroupKind, ...] = ("tp", "cp", "ep", "dp", "dp_ep", "dp_shard", "dp_replicate")
# Per dimension of the cluster, the factor on the bandwidth of a port; () when all are whole.
PortFactors = tuple[float, ...]


class GroupClass(Struct, frozen=True):
    """Groups of one kind with equal price signature and equal member classes.

    shape and ports are the signature: where the group lies, and the slowest port that it
    has on each dimension. members: the classes that take part, each once.
    """

    kind: GroupKind
    shape: GroupShape
    ports: PortFactors
    members: tuple[int, ...]


class Link(Struct, frozen=True):
    """The way to a pipeline neighbour: its class, and the price signature of the link."""

    neighbour: int
    shape: TransferShape
    ports: PortFactors


class RankClass(Struct, frozen=True):
    """Ranks with equal timelines.

    slowdown: factor on their compute durations. expert: their place in an expert group, where its ranks
    differ, or one with the same loads. ports: factors on their own ports. groups:
    number of the group class per group kind. links: per step (stages on, negative for back) the
    link to the neighbour there.
    """

    ranks: RankSet
    stage: int
    slowdown: float
    ports: PortFactors
    groups: dict[GroupKind, int]
    links: dict[int, Link]
    expert: int = 0


class Folding(Struct, frozen=True):
    """All rank classes and group classes of a run."""

    classes: tuple[RankClass, ...]
    group_classes: tuple[GroupClass, ...]

    def class_of(self, rank: int) -> int:
        """The number of the class that a rank belongs to. Raises ValueError for no rank."""
        # Where ranks are not folded, a class has the number of its rank.
        if 0 <= rank < len(self.classes) and rank in self.classes[rank].ranks:
            return rank
        for class_id, rank_class in enumerate(self.classes):
            if rank in rank_class.ranks:
                return class_id
        raise ValueError(f"no rank {rank}")


class Cell(Struct):
    """Ranks that are alike. first: the lowest. slowdown, ports: their overrides. expert: their place in an
    expert group, where its ranks differ, or the first one with the same loads.

    groups: of each kind, the group's number.
    links: per step the neighbour's cell, the link's shape and its port factors.
    """

    ranks: RankSet
    first: int
    stage: int
    slowdown: float
    ports: PortFactors
    expert: int = 0
    groups: dict[GroupKind, int] = field(default_factory=dict)
    links: dict[int, tuple[int, TransferShape, PortFactors]] = field(default_factory=dict)


class CellGroup(Struct):
    """A group, or equal ones: its signature, and how many members each cell has in it."""

    kind: GroupKind
    shape: GroupShape
    ports: PortFactors
    members: dict[int, int]


class CellGraph(Struct):
    """Cells and the groups they form."""

    cells: list[Cell]
    groups: list[CellGroup]


def listed_graph(
    layout: Layout,
    cluster: Cluster,
    kinds: list[GroupKind],
    steps: list[int],
    overrides: Overrides,
    experts: tuple[int, ...] = (),
) -> CellGraph:
    """The graph whose cells are single ranks."""
    cells = []
    for rank in range(layout.world):
        stage = layout.position(rank)[2]
        slowdown = overrides.slow_ranks.get(rank, 1.0)
        ports = ports_of(overrides, cluster, (rank,))
        expert = experts[layout.expert_group_index(rank)] if experts else 0
        cells.append(Cell(RankSet([Block(rank, rank)]), rank, stage, slowdown, ports, expert))
    groups: list[CellGroup] = []
    for kind in kinds:
        for members in layout.groups(kind):
            for rank in members:
                cells[rank].groups[kind] = len(groups)
            ports = ports_of(overrides, cluster, members)
            groups.append(CellGroup(kind, group_shape(cluster, members), ports, dict.fromkeys(members, 1)))
    for cell in cells:
        for step in steps:
            if 0 <= cell.stage + step < layout.pp:
                other = layout.neighbour(cell.first, cell.stage + step)
                shape = transfer_shape(cluster, cell.first, other)
                cell.links[step] = (other, shape, ports_of(overrides, cluster, (cell.first, other)))
    return CellGraph(cells, groups)


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
    axes = find_axes(layout)
    if axes is None:
        return False
    # Where dp is cut, as ranks are numbered.
    step = tp * pp if layout.rank_order == "tp-pp-dp" else tp
    boundaries = {tp, order[0] * order[1], layout.world}
    boundaries |= {boundary if boundary < tp else step * (boundary // tp) for boundary in axes.cuts}
    extent = 1
    for dimension in cluster.dims[:-1]:
        extent *= dimension.size
        boundaries.add(min(extent, layout.world))
    # The last dimension may be larger than the world uses; only what lies below cuts ranks.
    ascending = sorted(boundaries)
    return all(high % low == 0 for low, high in itertools.pairwise(ascending))


class Axes(NamedTuple):
    """The number q = tp + TP * dp of a rank in its stage as digits, which every group varies or keeps.

    cuts: what a digit counts, 1 of the innermost, ascending. sizes: of the digits; their product is TP * DP.
    varied: per kind of group the digits that its members differ in. of_tp: how many digits make up tp; the
    others make up dp.
    """

    cuts: tuple[int, ...]
    sizes: tuple[int, ...]
    varied: dict[GroupKind, tuple[int, ...]]
    of_tp: int

    def digits(self, position: int) -> tuple[int, ...]:
        """Those of a q."""
        reversed_digits = []
        for size in self.sizes:
            position, digit = divmod(position, size)
            reversed_digits.append(digit)
        return tuple(reversed_digits)


def find_axes(layout: Layout) -> Axes | None:
    """The digits of a layout; None where groups of two kinds overlap in part."""
    ends: dict[GroupKind, tuple[int, int]] = {}
    whole = layout.tp * layout.dp
    for kind in _STAGE_KINDS:
        step, count = layout.steps(kind)
        ends[kind] = (step * count, whole) if kind in BY_REMAINDER else (step, step * count)
    cuts = sorted({1, whole}.union(*ends.values()))
    if any(high % low for low, high in itertools.pairwise(cuts)):
        return None
    varied: dict[GroupKind, tuple[int, ...]] = {
        kind: tuple(digit for digit, step_size in enumerate(cuts[:-1]) if low <= step_size < high)
        for kind, (low, high) in ends.items()
    }
    sizes = tuple(high // low for low, high in itertools.pairwise(cuts))
    return Axes(tuple(cuts[:-1]), sizes, varied, cuts.index(layout.tp))


def boxed_graph(
    layout: Layout,
    cluster: Cluster,
    kinds: list[GroupKind],
    steps: list[int],
    overrides: Overrides,
    experts: tuple[int, ...] = (),
) -> CellGraph:
    """The graph of an aligned layout: as many cells as the overrides need, however many ranks.

    Along each axis a value that an override names is a part of its own, all others together are
    one: swapping two of the others changes nothing.
    """
    axes = find_axes(layout)
    assert axes is not None, "the layout is not aligned"
    overridden_ranks = set(overrides.slow_ranks) | {rank for _, rank in overrides.slow_links}
    positions = [layout.position(rank) for rank in sorted(overridden_ranks)]
    digits = [axes.digits(tp + layout.tp * dp) for tp, dp, _ in positions]
    parts = [_split_axis(size, {digit[axis] for digit in digits}) for axis, size in enumerate(axes.sizes)]
    if experts:
        parts = [
            _split_expert_axis(size, {digit[axis] for digit in digits}, axis, axes, experts)
            for axis, size in enumerate(axes.sizes)
        ]
    boxes = list(itertools.product(*(range(len(values)) for values in parts)))
    index_of = {box: index for index, box in enumerate(boxes)}
    cells: list[Cell] = []
    groups: list[CellGroup] = []
    shapes = {kind: group_shape(cluster, next(layout.groups(kind))) for kind in kinds}
    for stage in range(layout.pp):
        base = stage * len(boxes)
        for box in boxes:
            values = [parts[axis][part] for axis, part in enumerate(box)]
            ranks = _ranks_of_box(layout, axes, stage, values)
            slowdown = overrides.slow_ranks.get(ranks.first, 1.0)
            ports = ports_of(overrides, cluster, (ranks.first,))
            expert = experts[layout.expert_group_index(ranks.first)] if experts else 0
            cells.append(Cell(ranks, ranks.first, stage, slowdown, ports, expert))
        for kind in kinds:
            # Copies to the host are of one rank.
            varied = axes.varied[kind] if kind != "offload" else ()
            group_of: dict[tuple[int, ...], int] = {}
            for box in boxes:
                group_key = _group_key(varied, box)
                if group_key not in group_of:
                    group_of[group_key] = len(groups)
                    members = {
                        base + index_of[other]: math.prod(len(parts[axis][other[axis]]) for axis in varied)
                        for other in boxes
                        if _group_key(varied, other) == group_key
                    }
                    ports = _ports_of_cells(cells, members, len(cluster.dims))
                    groups.append(CellGroup(kind, shapes[kind], ports, members))
                cells[base + index_of[box]].groups[kind] = group_of[group_key]
    for cell_index, cell in enumerate(cells):
        for step in steps:
            if 0 <= cell.stage + step < layout.pp:
                neighbour = cell_index + step * len(boxes)
                other = layout.neighbour(cell.first, cell.stage + step)
                ports = ports_of(overrides, cluster, (cell.first, other))
                cell.links[step] = (neighbour, transfer_shape(cluster, cell.first, other), ports)
    return CellGraph(cells, groups)


def _split_axis(size: int, distinct: set[int]) -> list[tuple[int, ...]]:
    """The values 0..size-1 of an axis: each named one alone, the others together (if there are any)."""
    alone = [(value,) for value in sorted(distinct)]
    others = tuple(value for value in range(size) if value not in distinct)
    return [others, *alone] if others else list(alone)


def _split_expert_axis(
    size: int, distinct: set[int], axis: int, axes: Axes, experts: tuple[int, ...]
) -> list[tuple[int, ...]]:
    """`_parts`, with the values of an axis of the expert groups apart where their loads differ.

    Where expert groups have several axes, each value of them is a part.
    """
    varied = axes.varied["ep"]
    if axis not in varied:
        return _split_axis(size, distinct)
    if len(varied) > 1:
        return [(value,) for value in range(size)]
    by_load: dict[object, list[int]] = {}
    for value in range(size):
        by_load.setdefault(("named", value) if value in distinct else experts[value], []).append(value)
    return [tuple(values) for values in by_load.values()]


def _group_key(varied: tuple[int, ...], box: tuple[int, ...]) -> tuple[int, ...]:
    """The parts of a box that a group keeps which varies these axes."""
    return tuple(part for axis, part in enumerate(box) if axis not in varied)


def _ports_of_cells(cells: list[Cell], members: dict[int, int], dimensions: int) -> PortFactors:
    """Per dimension the slowest port among the members' cells."""
    factors = [1.0] * dimensions
    for cell_index in members:
        for dimension, factor in enumerate(cells[cell_index].ports):
            factors[dimension] = min(factors[dimension], factor)
    return tuple(factors) if any(factor != 1.0 for factor in factors) else ()


def _ranks_of_box(layout: Layout, axes: Axes, stage: int, values: list[tuple[int, ...]]) -> RankSet:
    """The ranks of a stage whose digits are among these, without listing all of them."""
    tps = _compose_digits(axes.sizes[: axes.of_tp], values[: axes.of_tp])
    dps = _compose_digits(axes.sizes[axes.of_tp :], values[axes.of_tp :])
    stride = layout.rank(0, 1, stage) - layout.rank(0, 0, stage) if layout.dp > 1 else layout.tp
    blocks = []
    for first_dp, last_dp, dp_stride, repeats in dps.blocks:
        for step in range(repeats):
            low, high = first_dp + step * dp_stride, last_dp + step * dp_stride
            for first_tp, last_tp, tp_stride, tp_repeats in tps.blocks:
                for tp_step in range(tp_repeats):
                    first = layout.rank(first_tp + tp_step * tp_stride, low, stage)
                    last = first + last_tp - first_tp
                    if last - first + 1 == stride:
                        blocks.append(Block(first, last + (high - low) * stride))
                    else:
                        blocks.append(Block(first, last, stride if high > low else 0, high - low + 1))
    return RankSet(sorted(blocks))


def _compose_digits(sizes: tuple[int, ...], values: list[tuple[int, ...]]) -> RankSet:
    """The numbers whose digits, the innermost first, are among these."""
    values_so_far, extent = [0], 1
    for size, digit in zip(sizes, values, strict=True):
        values_so_far = [low + extent * high for high in digit for low in values_so_far]
        extent *= size
    return RankSet.of(values_so_far)
