"""The graph that is refined: cells of ranks known to be alike, and the groups they form.

Where layout and cluster cut rank numbers at the same places, a cell is a box of coordinates
that no override tells apart; else each rank is a cell of its own.
"""

from __future__ import annotations

import itertools
import math
import operator

from simcore.cluster import Cluster, GroupShape, TransferShape, group_shape, transfer_shape
from simcore.layout import DATA_FASTEST, Layout
from simcore.overrides import Overrides
from simcore.ranks import Block, RankSet
from simcore.records import NamedTuple, Struct, field
from simcore.workload.model import GroupKind

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
        for number, rank_class in enumerate(self.classes):
            if rank in rank_class.ranks:
                return number
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
        expert = experts[layout.expert_place(rank)] if experts else 0
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
    axes = axes_of(layout)
    if axes is None:
        return False
    boundaries = {tp, order[0] * order[1], layout.world}
    if axes.within_tp:
        boundaries.add(axes.sizes[0])
    else:
        # Where dp is cut, as ranks are numbered.
        step = tp * pp if layout.rank_order == "tp-pp-dp" else tp
        boundaries |= {step * reach for reach in itertools.accumulate(axes.sizes[1:-1], operator.mul)}
    reach = 1
    for dimension in cluster.dims[:-1]:
        reach *= dimension.size
        boundaries.add(min(reach, layout.world))
    # The last dimension may be larger than the world uses; only what lies below cuts ranks.
    ascending = sorted(boundaries)
    return all(high % low == 0 for low, high in itertools.pairwise(ascending))


class Axes(NamedTuple):
    """The number q = tp + TP * dp of a rank in its stage as digits, which every group varies or keeps.

    sizes: of the digits, inner first; their product is TP * DP. varied: per kind of group the digits that
    its members differ in. within_tp: of three digits the two inner ones make up tp; else the first is tp and
    the others make up dp.
    """

    sizes: tuple[int, ...]
    varied: dict[GroupKind, tuple[int, ...]]
    within_tp: bool

    def digits(self, number: int) -> tuple[int, ...]:
        """Those of a q."""
        reversed_digits = []
        for size in self.sizes:
            number, digit = divmod(number, size)
            reversed_digits.append(digit)
        return tuple(reversed_digits)


def axes_of(layout: Layout) -> Axes | None:
    """The digits of a layout (where ep does not divide dp: EP groups are EP consecutive q); None for none."""
    tp, ep, dp = layout.tp, layout.ep, layout.dp
    if layout.cp > 1 or layout.shard:
        return _axes_of_cuts(layout)
    if dp % ep == 0:
        return Axes((tp, ep, dp // ep), {"tp": (0,), "ep": (1,), "dp_ep": (2,), "dp": (1, 2)}, False)
    if tp % ep == 0:
        return Axes((ep, tp // ep, dp), {"tp": (0, 1), "ep": (0,), "dp_ep": (1, 2), "dp": (2,)}, True)
    if ep % tp == 0:
        sizes = (tp, ep // tp, tp * dp // ep)
        return Axes(sizes, {"tp": (0,), "ep": (0, 1), "dp_ep": (2,), "dp": (1, 2)}, False)
    return None


def _axes_of_cuts(layout: Layout) -> Axes | None:
    """The digits of a layout whose dp is cut by cp, by ep and by shards; None where one cut does not divide
    the next.
    """
    tp, ep, dp, cp, shard = layout.tp, layout.ep, layout.dp, layout.cp, layout.shard or 1
    cuts = sorted({cp, ep, shard} - {1})
    if any(high % low for low, high in itertools.pairwise((*cuts, dp))):
        return None
    sizes = [tp, *(cut // below for below, cut in itertools.pairwise((1, *cuts))), dp // cuts[-1]]

    def below(cut: int) -> tuple[int, ...]:
        return tuple(range(1, 2 + cuts.index(cut))) if cut > 1 else ()

    digits = range(1, len(sizes))
    varied: dict[GroupKind, tuple[int, ...]] = {
        "tp": (0,),
        "cp": below(cp),
        "ep": below(ep),
        "dp": tuple(digits),
        "dp_ep": tuple(digit for digit in digits if digit not in below(ep)),
        "dp_shard": below(shard),
        "dp_replicate": tuple(digit for digit in digits if digit not in below(shard)),
    }
    return Axes(tuple(sizes), varied, False)


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
    axes = axes_of(layout)
    assert axes is not None, "the layout is not aligned"
    named = set(overrides.slow_ranks) | {rank for _, rank in overrides.slow_links}
    places = [layout.position(rank) for rank in sorted(named)]
    digits = [axes.digits(tp + layout.tp * dp) for tp, dp, _ in places]
    parts = [_parts(size, {digit[axis] for digit in digits}) for axis, size in enumerate(axes.sizes)]
    if experts:
        parts = [
            _parts_of_experts(size, {digit[axis] for digit in digits}, axis, axes, experts)
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
            expert = experts[layout.expert_place(ranks.first)] if experts else 0
            cells.append(Cell(ranks, ranks.first, stage, slowdown, ports, expert))
        for kind in kinds:
            # Copies to the host are of one rank.
            varied = axes.varied[kind] if kind != "offload" else ()
            group_of: dict[tuple[int, ...], int] = {}
            for box in boxes:
                kept = _kept(varied, box)
                if kept not in group_of:
                    group_of[kept] = len(groups)
                    members = {
                        base + index_of[other]: math.prod(len(parts[axis][other[axis]]) for axis in varied)
                        for other in boxes
                        if _kept(varied, other) == kept
                    }
                    ports = _ports_of_cells(cells, members, len(cluster.dims))
                    groups.append(CellGroup(kind, shapes[kind], ports, members))
                cells[base + index_of[box]].groups[kind] = group_of[kept]
    for number, cell in enumerate(cells):
        for step in steps:
            if 0 <= cell.stage + step < layout.pp:
                neighbour = number + step * len(boxes)
                other = layout.neighbour(cell.first, cell.stage + step)
                ports = ports_of(overrides, cluster, (cell.first, other))
                cell.links[step] = (neighbour, transfer_shape(cluster, cell.first, other), ports)
    return CellGraph(cells, groups)


def _parts(size: int, named: set[int]) -> list[tuple[int, ...]]:
    """The values 0..size-1 of an axis: each named one alone, the others together (if there are any)."""
    alone = [(value,) for value in sorted(named)]
    others = tuple(value for value in range(size) if value not in named)
    return [others, *alone] if others else list(alone)


def _parts_of_experts(
    size: int, named: set[int], axis: int, axes: Axes, experts: tuple[int, ...]
) -> list[tuple[int, ...]]:
    """`_parts`, with the values of an axis of the expert groups apart where their loads differ.

    Where expert groups have several axes, each value of them is a part.
    """
    varied = axes.varied["ep"]
    if axis not in varied:
        return _parts(size, named)
    if len(varied) > 1:
        return [(value,) for value in range(size)]
    alike: dict[object, list[int]] = {}
    for value in range(size):
        alike.setdefault(("named", value) if value in named else experts[value], []).append(value)
    return [tuple(values) for values in alike.values()]


def _kept(varied: tuple[int, ...], box: tuple[int, ...]) -> tuple[int, ...]:
    """The parts of a box that a group keeps which varies these axes."""
    return tuple(part for axis, part in enumerate(box) if axis not in varied)


def _ports_of_cells(cells: list[Cell], members: dict[int, int], dimensions: int) -> PortFactors:
    """Per dimension the slowest port among the members' cells."""
    factors = [1.0] * dimensions
    for number in members:
        for dimension, factor in enumerate(cells[number].ports):
            factors[dimension] = min(factors[dimension], factor)
    return tuple(factors) if any(factor != 1.0 for factor in factors) else ()


def _ranks_of_box(layout: Layout, axes: Axes, stage: int, values: list[tuple[int, ...]]) -> RankSet:
    """The ranks of a stage whose digits are among these, without listing all of them."""
    if axes.within_tp:
        inner, middle, outer = values
        size = axes.sizes[0]
        tps = RankSet.of(low + size * high for high in middle for low in inner)
        dps = RankSet.of(outer)
    else:
        tps = RankSet.of(values[0])
        offsets: list[int] = [0]
        reach = 1
        for size, digit in zip(axes.sizes[1:], values[1:], strict=True):
            offsets = [low + reach * high for high in digit for low in offsets]
            reach *= size
        dps = RankSet.of(offsets)
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
