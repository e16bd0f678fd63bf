"""Where a group lies on the dimensions of a cluster: all that its price depends on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

from simcore.cluster.model import Cluster, Dimension
from simcore.records import NamedTuple, Struct

if TYPE_CHECKING:
    from simcore.layout import Layout
    from simcore.workload.model import GroupKind

_GROUP_KINDS: tuple[GroupKind, ...] = (
    "tp", "ep", "dp", "cp", "pp", "dp_shard", "dp_replicate", "cp_a2a", "cp_p2p", "ep_intra",
    "ep_inter",
)  # fmt: skip
# (dimension, hops) of each dimension in which the two ends differ, inner first.
TransferShape = tuple[tuple[int, int], ...]


class GroupDimension(NamedTuple):
    """One dimension of a group: its members differ in their positions on it."""

    dimension: int
    """The index of the dimension."""
    members: int
    """How many of the group's ranks take part in it."""
    gaps: tuple[int, ...] = ()
    """On a ring, the steps from each member to the next one and from the last back to the first, so that they
    sum to the ring's size; elsewhere (), because hops do not depend on the position.
    """


class GroupShape(Struct, frozen=True):
    """The price signature of a group; hashable, and equal for translates of a group.

    dimensions: those in which members differ, inner first; none for a group of one.
    is_flat: whether the group is no grid, so that it is priced as one flat group on a single dimension.
    """

    dimensions: tuple[GroupDimension, ...]
    is_flat: bool = False

    @property
    def members(self) -> int:
        """The number of ranks of the group."""
        return count_members(self.dimensions)


def count_members(dimensions: Sequence[GroupDimension]) -> int:
    """Returns the number of ranks of a grid over these dimensions."""
    return prod(dimension.members for dimension in dimensions)


def group_shape(cluster: Cluster, ranks: Sequence[int]) -> GroupShape:
    """Returns the shape of the group of `ranks`, which are distinct and in ascending order.

    A group is a grid if its coordinates are a product of one set a dimension; its dimensions are then
    those on which that set has several members. Any other group is flat on the
    slowest dimension on which members differ. Raises ValueError when the cluster has no such rank.
    """
    if ranks[0] < 0 or ranks[-1] >= cluster.npus:
        raise ValueError(f"ranks {ranks[0]} to {ranks[-1]} on {cluster.npus} NPUs")
    crossed: list[tuple[int, set[int]]] = []
    cells = 1
    stride = 1
    for index, dimension in enumerate(cluster.dims):
        positions = {rank // stride % dimension.size for rank in ranks}
        stride *= dimension.size
        if len(positions) > 1:
            crossed.append((index, positions))
            cells *= len(positions)
    if cells == len(ranks):
        return GroupShape(
            tuple(
                _make_group_dimension(cluster.dims[index], index, sorted(positions))
                for index, positions in crossed
            )
        )
    slowest = max((index for index, _ in crossed), key=lambda index: _slowness_key(cluster, index))
    stride = 1
    for dimension in cluster.dims[:slowest]:
        stride *= dimension.size
    dimension = cluster.dims[slowest]
    # Members that share a position stay in: the flat group has them all.
    flat_positions = sorted([rank // stride % dimension.size for rank in ranks])
    return GroupShape((_make_group_dimension(dimension, slowest, flat_positions),), is_flat=True)


def crossed_dimensions(cluster: Cluster, layout: Layout) -> dict[str, tuple[int, ...]]:
    """Returns the dimensions that the groups of each kind cross, by the group of rank 0; of groups of one
    rank there are none.
    """
    shapes = {
        kind: group_shape(cluster, sorted(layout.group_of(kind, 0)))
        for kind in _GROUP_KINDS
        if layout.group_size(kind) > 1
    }
    return {kind: tuple(one.dimension for one in shape.dimensions) for kind, shape in shapes.items()}


class CrossedDimension(Dimension, frozen=True):
    """A dimension of the network of a run, with what crosses it."""

    crossed_by: tuple[str, ...]
    """The kinds of groups whose ranks differ in their positions on it."""

    @property
    def groups(self) -> tuple[str, ...]:
        return self.crossed_by


@lru_cache(maxsize=8)
def name_groups(cluster: Cluster, layout: Layout) -> tuple[Dimension, ...]:
    """Returns the dimensions of a cluster, with the kinds of groups of a layout that cross each; without
    them where the cluster has too few NPUs for it.
    """
    if layout.world > cluster.npus:
        return cluster.dims
    crossed = crossed_dimensions(cluster, layout)
    if layout.group_size("dp_shard") == layout.dp:
        # They are the groups of dp.
        crossed.pop("dp_shard", None)
    return tuple(
        CrossedDimension(
            dim.kind,
            dim.size,
            dim.bandwidth,
            dim.latency_ns,
            tuple(kind for kind, indices in crossed.items() if index in indices),
        )
        for index, dim in enumerate(cluster.dims)
    )


def transfer_shape(cluster: Cluster, source: int, destination: int) -> TransferShape:
    """Returns what a point-to-point price depends on: the hops on each dimension in which two ranks differ.

    The same in both directions; () when they are one rank. Raises ValueError when the cluster
    has no such rank.
    """
    coordinates = zip(
        cluster.dims, cluster.coordinates(source), cluster.coordinates(destination), strict=True
    )
    return tuple(
        (index, hops(dimension, abs(here - there)))
        for index, (dimension, here, there) in enumerate(coordinates)
        if here != there
    )


def hops(dimension: Dimension, steps: int) -> int:
    """Returns the hops of one message between two NPUs that are `steps` positions apart on `dimension`.

    Two members of a flat group may share a position (0 steps); a message between them is one hop.
    """
    if dimension.kind == "switch":
        return 2
    if dimension.kind == "fully-connected":
        return 1
    return max(1, min(steps, dimension.size - steps))


def _slowness_key(cluster: Cluster, index: int) -> tuple[float, float, int]:
    """Returns a key that sorts dimensions: least bandwidth, then highest latency, then outermost, is
    slowest.
    """
    dimension = cluster.dims[index]
    return -dimension.bandwidth, dimension.latency_ns, index


def _make_group_dimension(dimension: Dimension, index: int, positions: list[int]) -> GroupDimension:
    if dimension.kind != "ring":
        return GroupDimension(index, len(positions))
    following = [*positions[1:], positions[0] + dimension.size]
    gaps = tuple([after - before for before, after in zip(positions, following, strict=True)])
    return GroupDimension(index, len(positions), _rotate_gaps(gaps))


def _rotate_gaps(gaps: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the gaps of a ring, rotated so that translates are equal: the widest gap comes last.

    A contiguous group thus starts at its first member wherever it lies. Among several widest
    gaps the least sequence wins.
    """
    widest = max(gaps)
    if min(gaps) == widest:
        return gaps
    return min(gaps[start:] + gaps[:start] for start in range(len(gaps)) if gaps[start - 1] == widest)


def group_ranks(cluster: Cluster, shape: GroupShape) -> tuple[int, ...] | None:
    """Returns the ranks of a group of a shape that begins with rank 0; None for one that is no grid, whose
    ranks are not known.
    """
    if shape.is_flat:
        return None
    lines = []
    for group_dimension in shape.dimensions:
        stride = 1
        for dimension in cluster.dims[: group_dimension.dimension]:
            stride *= dimension.size
        steps = group_dimension.gaps[:-1] if group_dimension.gaps else (1,) * (group_dimension.members - 1)
        lines.append([step * stride for step in itertools.accumulate(steps, initial=0)])
    return tuple(sorted(sum(offsets) for offsets in itertools.product(*lines)))
