"""Rank classes and group classes: what the engine simulates instead of ranks and groups."""

from __future__ import annotations

from simcore.cluster import GroupShape, TransferShape
from simcore.ranks import RankSet
from simcore.records import Struct
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
