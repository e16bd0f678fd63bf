"""The graph that is refined: cells of ranks that are known to be equal, and the groups they form.

Where layout and cluster divide rank numbers at the same boundaries, a cell is a box of coordinates
that no override distinguishes; else each rank is a cell of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

from simcore.cluster import Cluster, GroupShape, TransferShape, group_shape, transfer_shape
from simcore.layout import BY_REMAINDER, DATA_FASTEST, Layout
from simcore.program.overrides import Overrides
from simcore.ranks import Block, RankSet
from simcore.records import NamedTuple, Struct, field
from simcore.workload.model import GroupKind

# The kinds whose groups divide the ranks of a stage.
_STAGE_KINDS: tuple[GroupKind, ...] = (
    "tp", "cp", "ep", "dp", "dp_ep", "dp_shard", "dp_replicate", "cp_a2a", "cp_p2p", "ep_intra",
    "ep_inter",
)  # fmt: skip
# Per dimension of the cluster, the factor on the bandwidth of a port; () when all are 1.
PortFactors = tuple[float, ...]


class GroupClass(Struct, frozen=True):
    """Groups of one kind with equal price signature (shape and ports) and equal member classes."""

    kind: GroupKind
    """The kind of group."""
    shape: GroupShape
    """How the groups are placed on the cluster."""
    ports: PortFactors
    """The slowest port of a group on each dimension."""
    members: tuple[int, ...]
    """The classes that take part, each once."""


class Link(Struct, frozen=True):
    """The link to a pipeline neighbour: its class, and the price signature of the link."""

    neighbour: int
    """The class of the neighbour."""
    shape: TransferShape
    """How the link is placed on the cluster."""
    ports: PortFactors
    """The slowest port on each dimension."""


class RankClass(Struct, frozen=True):
    """Ranks with equal timelines."""

    ranks: RankSet
    """The ranks."""
    stage: int
    """Their stage."""
    slowdown: float
    """The factor on their compute durations."""
    ports: PortFactors
    """The factors on their own ports."""
    groups: dict[GroupKind, int]
    """The index of the group class per kind of group."""
    links: dict[int, Link]
    """Per step (stages forward, negative for backward) the link to the neighbour there."""
    expert: int = 0
    """Their index in an expert group, where its ranks differ, or the first index with the same loads."""
    replica: int = 0
    """Their replica, where these differ, or the first one whose micro-batches are the same."""


class Folding(Struct, frozen=True):
    """All rank classes and group classes of a run."""

    classes: tuple[RankClass, ...]
    group_classes: tuple[GroupClass, ...]

    def class_of(self, rank: int) -> int:
        """Returns the index of the class that a rank belongs to. Raises ValueError for an unknown rank."""
        # Where ranks are not folded, a class has the index of its rank.
        if 0 <= rank < len(self.classes) and rank in self.classes[rank].ranks:
            return rank
        for class_id, rank_class in enumerate(self.classes):
            if rank in rank_class.ranks:
                return class_id
        raise ValueError(f"no rank {rank}")

    def price_key(self, rank_class: RankClass) -> object:
        """Returns what decides the prices of a class, without jitter: equal ones have equal prices."""
        groups = tuple(
            (kind, self.group_classes[group].shape, self.group_classes[group].ports)
            for kind, group in rank_class.groups.items()
        )
        links = tuple((step, link.shape, link.ports) for step, link in rank_class.links.items())
        return rank_class.slowdown, rank_class.expert, rank_class.replica, groups, links


class Cell(Struct):
    """Ranks that are known to be equal."""

    ranks: RankSet
    """The ranks."""
    first: int
    """The lowest of them."""
    stage: int
    """Their stage."""
    slowdown: float
    """The factor on their compute durations."""
    ports: PortFactors
    """The factors on their own ports."""
    expert: int = 0
    """Their index in an expert group, where its ranks differ, or the first index with the same loads."""
    replica: int = 0
    """Their replica, where these differ, or the first one whose micro-batches are the same."""
    groups: dict[GroupKind, int] = field(default_factory=dict)
    """The index of the group per kind of group."""
    links: dict[int, tuple[int, TransferShape, PortFactors]] = field(default_factory=dict)
    """Per step the neighbour's cell, the link's shape and its port factors."""


class CellGroup(Struct):
    """A group, or equal ones."""

    kind: GroupKind
    """The kind of group."""
    shape: GroupShape
    """How it is placed on the cluster."""
    ports: PortFactors
    """The slowest port on each dimension."""
    members: dict[int, int]
    """Cell -> how many members of the group it has."""


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
    replicas: tuple[int, ...] = (),
) -> CellGraph:
    """Returns the graph whose cells are single ranks."""
    cells = []
    for rank in range(layout.world):
        _, dp, stage = layout.position(rank)
        slowdown = overrides.slow_ranks.get(rank, 1.0)
        ports = ports_of(overrides, cluster, (rank,))
        expert = experts[layout.expert_group_index(rank)] if experts else 0
        replica = replicas[dp // layout.cp] if replicas else 0
        cells.append(Cell(RankSet([Block(rank, rank)]), rank, stage, slowdown, ports, expert, replica))
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
    """Returns per dimension the slowest port among `ranks`; () when none is slowed."""
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
    """Returns whether layout and cluster divide rank numbers at boundaries that divide each other.

    Then a rank number is a row of digits, every group varies some digits and keeps the others, and so all
    groups of a kind and all links between two stages are translates of each other: equal price signatures.
    """
    if layout.rank_order == DATA_FASTEST:
        return False
    tp, dp, pp = layout.tp, layout.dp, layout.pp
    order = (tp, pp, dp) if layout.rank_order == "tp-pp-dp" else (tp, dp, pp)
    axes = find_axes(layout)
    if axes is None:
        return False
    # The distance of neighbours on dp, as ranks are numbered.
    step = tp * pp if layout.rank_order == "tp-pp-dp" else tp
    boundaries = {tp, order[0] * order[1], layout.world}
    boundaries |= {boundary if boundary < tp else step * (boundary // tp) for boundary in axes.cuts}
    extent = 1
    for dimension in cluster.dims[:-1]:
        extent *= dimension.size
        boundaries.add(min(extent, layout.world))
    # The last dimension may be larger than the world; only the boundaries below divide ranks.
    ascending = sorted(boundaries)
    return all(high % low == 0 for low, high in itertools.pairwise(ascending))


class Axes(NamedTuple):
    """The index q = tp + TP * dp of a rank in its stage as digits, which every group varies or keeps."""

    cuts: tuple[int, ...]
    """The value of each digit, 1 of the innermost, ascending."""
    sizes: tuple[int, ...]
    """The size of each digit; their product is TP * DP."""
    varied: dict[GroupKind, tuple[int, ...]]
    """Per kind of group the digits that its members differ in."""
    of_tp: int
    """How many digits make up tp; the others make up dp."""

    def digits(self, position: int) -> tuple[int, ...]:
        """Returns the digits of an index q."""
        reversed_digits = []
        for size in self.sizes:
            position, digit = divmod(position, size)
            reversed_digits.append(digit)
        return tuple(reversed_digits)


def find_axes(layout: Layout) -> Axes | None:
    """Returns the digits of a layout; None where groups of two kinds overlap in part."""
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
    replicas: tuple[int, ...] = (),
) -> CellGraph:
    """Returns the graph of an aligned layout: as many cells as the overrides need, however many ranks.

    Along each axis a value that an override names is a part of its own, all others together are one: swapping
    two of the others changes nothing.
    """
    axes = find_axes(layout)
    assert axes is not None, "the layout is not aligned"
    overridden_ranks = set(overrides.slow_ranks) | {rank for _, rank in overrides.slow_links}
    positions = [layout.position(rank) for rank in sorted(overridden_ranks)]
    digits = [axes.digits(tp + layout.tp * dp) for tp, dp, _ in positions]
    named_values = [{digit[axis] for digit in digits} for axis in range(len(axes.sizes))]
    parts = [_split_axis(size, of_axis) for size, of_axis in zip(axes.sizes, named_values, strict=True)]
    if experts or replicas:
        kinds_of = [
            zip(_expert_kinds(axis, axes, experts), _replica_kinds(axis, axes, layout, replicas), strict=True)
            for axis in range(len(axes.sizes))
        ]
        parts = [
            _split_by_kind(by_value, of_axis)
            for by_value, of_axis in zip(kinds_of, named_values, strict=True)
        ]
    boxes = list(itertools.product(*(range(len(values)) for values in parts)))
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
            replica = replicas[layout.position(ranks.first)[1] // layout.cp] if replicas else 0
            cells.append(Cell(ranks, ranks.first, stage, slowdown, ports, expert, replica))
        for kind in kinds:
            # A copy to the host has one rank.
            varied = axes.varied[kind] if kind != "offload" else ()
            members_of: dict[tuple[int, ...], dict[int, int]] = {}
            for index, box in enumerate(boxes, base):
                members_of.setdefault(_group_key(varied, box), {})[index] = math.prod(
                    len(parts[axis][box[axis]]) for axis in varied
                )
            for members in members_of.values():
                for index in members:
                    cells[index].groups[kind] = len(groups)
                ports = _ports_of_cells(cells, members, len(cluster.dims))
                groups.append(CellGroup(kind, shapes[kind], ports, members))
    for cell_index, cell in enumerate(cells):
        for step in steps:
            if 0 <= cell.stage + step < layout.pp:
                neighbour = cell_index + step * len(boxes)
                other = layout.neighbour(cell.first, cell.stage + step)
                ports = ports_of(overrides, cluster, (cell.first, other))
                cell.links[step] = (neighbour, transfer_shape(cluster, cell.first, other), ports)
    return CellGraph(cells, groups)


def _split_axis(size: int, distinct: set[int]) -> list[tuple[int, ...]]:
    """Returns the values 0..size-1 of an axis in parts: each distinct one alone, the others together (if
    any).
    """
    alone = [(value,) for value in sorted(distinct)]
    others = tuple(value for value in range(size) if value not in distinct)
    return [others, *alone] if others else list(alone)


def _split_by_kind(kinds: Iterable[object], named_values: set[int]) -> list[tuple[int, ...]]:
    """Returns the values of an axis in parts: each named one alone, the others of one kind together."""
    parts: dict[object, list[int]] = {}
    for value, kind in enumerate(kinds):
        parts.setdefault(("named", value) if value in named_values else kind, []).append(value)
    return [tuple(values) for values in parts.values()]


def _expert_kinds(axis: int, axes: Axes, experts: tuple[int, ...]) -> list[object]:
    """Returns by value of an axis what its ranks have of the loads of experts.

    Where expert groups have several axes, each value of them is a kind.
    """
    size, varied = axes.sizes[axis], axes.varied["ep"]
    if not experts or axis not in varied:
        return [0] * size
    return list(range(size)) if len(varied) > 1 else [*experts]


def _replica_kinds(axis: int, axes: Axes, layout: Layout, replicas: tuple[int, ...]) -> list[object]:
    """Returns by value of an axis which replicas its ranks belong to, in the order of the other axes."""
    kinds: list[list[int]] = [[] for _ in range(axes.sizes[axis])]
    for dp in range(layout.dp if replicas else 0):
        kinds[axes.digits(layout.tp * dp)[axis]].append(replicas[dp // layout.cp])
    # All values of an axis of tp have the ranks of all replicas.
    return [0] * len(kinds) if axis < axes.of_tp else [*map(tuple, kinds)]


def _group_key(varied: tuple[int, ...], box: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the parts of a box that a group keeps which varies these axes."""
    return tuple(part for axis, part in enumerate(box) if axis not in varied)


def _ports_of_cells(cells: list[Cell], members: dict[int, int], dimensions: int) -> PortFactors:
    """Returns per dimension the slowest port among the members' cells."""
    factors = [1.0] * dimensions
    for cell_index in members:
        for dimension, factor in enumerate(cells[cell_index].ports):
            factors[dimension] = min(factors[dimension], factor)
    return tuple(factors) if any(factor != 1.0 for factor in factors) else ()


def _ranks_of_box(layout: Layout, axes: Axes, stage: int, values: list[tuple[int, ...]]) -> RankSet:
    """Returns the ranks of a stage whose digits are among these, without listing all of them."""
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
    """Returns the numbers whose digits, the innermost first, are among these."""
    values_so_far, extent = [0], 1
    for size, digit in zip(sizes, values, strict=True):
        values_so_far = [low + extent * high for high in digit for low in values_so_far]
        extent *= size
    return RankSet.of(values_so_far)
