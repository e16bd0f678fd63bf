"""What each op of a run takes on an idle network, in ns: costs, scales, overrides and jitter.

A duration is rounded once, half to even, after all its factors.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import blake2b
from struct import pack, unpack

from simcore.cluster import Cluster, GroupShape, TransferShape
from simcore.collectives import collective_ns, transfer_ns
from simcore.folding import Folding, RankClass
from simcore.folding.classes import PortFactors
from simcore.overrides import Overrides
from simcore.program import Ops, Program
from simcore.program.ops import COMPUTE, TO_NEXT, CollectiveCost, ComputeCost, Cost

_UNIFORMS = 12
# What a jittered duration's hash is about: a rank's compute, a group's collective, a transfer.
_OF_RANK, _OF_GROUP, _OF_SENDER = range(3)


def scaled(ns: int, scale: float) -> int:
    """A duration times a scale, rounded half to even; a scale of 1 leaves large ints exact."""
    return ns if scale == 1.0 else round(ns * scale)


@dataclass(slots=True)
class Prices:
    """Prices of one run, each computed once. compute_scale, comm_scale: factors on durations."""

    cluster: Cluster
    compute_scale: float
    comm_scale: float
    overrides: Overrides
    _known: dict[object, int] = field(default_factory=dict)
    _clusters: dict[PortFactors, Cluster] = field(default_factory=dict)

    def collective(self, collective: str, size: int, shape: GroupShape, ports: PortFactors = ()) -> int:
        """ns of one collective alone, before any scale; `size` is the whole buffer in bytes."""
        key = (collective, size, shape, ports)
        if key not in self._known:
            self._known[key] = collective_ns(self._slowed(ports), shape, collective, size)
        return self._known[key]

    def transfer(self, size: int, shape: TransferShape, ports: PortFactors = ()) -> int:
        """ns of one point-to-point transfer of `size` bytes alone, before any scale."""
        key = (size, shape, ports)
        if key not in self._known:
            self._known[key] = transfer_ns(self._slowed(ports), shape, size)
        return self._known[key]

    def durations(self, program: Program, folding: Folding) -> list[list[int]]:
        """Per rank class, ns of each op. Equal classes share one list, unless there is jitter."""
        tables: dict[object, list[int]] = {}
        durations = []
        for number, rank_class in enumerate(folding.classes):
            ops = program.stages[rank_class.stage].ops
            signature = tuple(
                (kind, folding.group_classes[group].shape, folding.group_classes[group].ports)
                for kind, group in rank_class.groups.items()
            )
            links = tuple((step, link.shape, link.ports) for step, link in rank_class.links.items())
            key = (rank_class.stage if program.pipelined else 0, rank_class.slowdown, signature, links)
            if self.overrides.jitter > 0:
                durations.append(self._jittered(number, program, folding, ops))
                continue
            if key not in tables:
                priced = [self._price(cost, folding, rank_class) for cost in program.costs]
                table = [scaled(ns, scale) for ns, scale in priced]
                tables[key] = list(map(table.__getitem__, ops.cost))
            durations.append(tables[key])
        return durations

    def _price(self, cost: Cost, folding: Folding, rank_class: RankClass) -> tuple[int, float]:
        """(ns, factor on it) of a cost for a class; 0 for a transfer to a neighbour it does not have."""
        if isinstance(cost, ComputeCost):
            return cost.ns, self.compute_scale * cost.scale * rank_class.slowdown
        if isinstance(cost, CollectiveCost):
            if cost.group not in rank_class.groups:
                return 0, 1.0
            group = folding.group_classes[rank_class.groups[cost.group]]
            return self.collective(cost.collective, cost.bytes, group.shape, group.ports), self.comm_scale
        if cost.step not in rank_class.links:
            return 0, 1.0
        link = rank_class.links[cost.step]
        return self.transfer(cost.bytes, link.shape, link.ports), self.comm_scale

    def _jittered(self, number: int, program: Program, folding: Folding, ops: Ops) -> list[int]:
        """ns of each op of a class of one rank, each multiplied by its own hashed factor."""
        rank_class = folding.classes[number]
        rank = rank_class.ranks.first
        priced = [self._price(cost, folding, rank_class) for cost in program.costs]
        # Every rank is a class of its own here, so a group's lowest class has its lowest rank.
        lowest = {
            cost: folding.classes[folding.group_classes[rank_class.groups[cost.group]].members[0]].ranks.first
            for cost in program.costs
            if isinstance(cost, CollectiveCost) and cost.group in rank_class.groups
        }
        sigma, seed = self.overrides.jitter, self.overrides.seed
        durations = []
        for op, cost_number in enumerate(ops.cost):
            ns, scale = priced[cost_number]
            lane = ops.stream[op]
            if lane == COMPUTE:
                noise = normal(seed, _OF_RANK, rank, op)
            elif lane < TO_NEXT:
                noise = normal(seed, _OF_GROUP, lowest[program.costs[cost_number]], op)  # type: ignore[index]
            else:
                noise = normal(seed, _OF_SENDER, rank, op)
            durations.append(round(ns * (scale * max(0.0, 1.0 + sigma * noise))))
        return durations

    def _slowed(self, ports: PortFactors) -> Cluster:
        """The cluster with each dimension at the bandwidth of its slowest port."""
        if not ports:
            return self.cluster
        if ports not in self._clusters:
            dims = zip(self.cluster.dims, ports, strict=True)
            slowed = tuple(
                replace(dimension, bandwidth=dimension.bandwidth * factor) for dimension, factor in dims
            )
            self._clusters[ports] = replace(self.cluster, dims=slowed)
        return self._clusters[ports]


def normal(seed: int, about: int, number: int, op: int) -> float:
    """A number of mean 0 and deviation 1 that depends on its arguments alone.

    The sum of 12 hashed uniforms less 6: no library of mathematics, so every machine and
    Python version gives the same. `number`: the rank or the group's lowest rank.
    """
    digest = blake2b(pack("<QQQQ", seed, about, number, op), digest_size=4 * _UNIFORMS).digest()
    total: int = sum(unpack(f"<{_UNIFORMS}I", digest))
    return (total + _UNIFORMS / 2) / 2**32 - _UNIFORMS / 2
