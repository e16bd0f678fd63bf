"""What each op of a run takes on an idle network, in ns: costs, scales, overrides and jitter.

A duration is rounded once, half to even, after all its factors.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import pack, unpack
from typing import TYPE_CHECKING

from simcore.collectives.exact import scaled
from simcore.folding import Folding, RankClass
from simcore.networks import Network, PlacedCollective, Sharing
from simcore.overrides import Overrides
from simcore.program import Ops, Program
from simcore.program.ops import (
    COMPUTE,
    STREAM_OF_GROUP,
    TO_NEXT,
    CollectiveCost,
    ComputeCost,
    Cost,
    TransferCost,
)
from simcore.records import Struct, field

if TYPE_CHECKING:
    from simcore.sharing import Transmission

_UNIFORMS = 12
# What a jittered duration's hash is about: a rank's compute, a group's collective, a transfer.
OF_RANK, OF_GROUP, OF_SENDER = range(3)


class Prices(Struct):
    """Prices of one run, each computed once. compute_scale, comm_scale: factors on durations."""

    network: Network
    compute_scale: float
    comm_scale: float
    overrides: Overrides
    _known: dict[object, int] = field(default_factory=dict)

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
            placed = PlacedCollective.of(group, cost)
            if placed not in self._known:
                self._known[placed] = self.network.collective_ns(placed)
            return self._known[placed], self.comm_scale
        if cost.step not in rank_class.links:
            return 0, 1.0
        link = rank_class.links[cost.step]
        key = (link.shape, link.ports, cost.bytes)
        if key not in self._known:
            self._known[key] = self.network.transfer_ns(link.shape, link.ports, cost.bytes)
        return self._known[key], self.comm_scale

    def _jittered(self, number: int, program: Program, folding: Folding, ops: Ops) -> list[int]:
        """ns of each op of a class of one rank, each multiplied by its own hashed factor."""
        rank_class = folding.classes[number]
        priced = [self._price(cost, folding, rank_class) for cost in program.costs]
        factor = self._noise(number, program, folding)
        return [round(priced[cost][0] * (priced[cost][1] * factor(op))) for op, cost in enumerate(ops.cost)]

    def _noise(self, number: int, program: Program, folding: Folding) -> Callable[[int], float]:
        """The factor of jitter on each op of a class; 1 without jitter."""
        sigma, seed = self.overrides.jitter, self.overrides.seed
        if sigma <= 0:
            return lambda op: 1.0
        rank_class = folding.classes[number]
        rank = rank_class.ranks.first
        # Every rank is a class of its own here, so a group's lowest class has its lowest rank.
        lowest = {
            STREAM_OF_GROUP[kind]: folding.classes[folding.group_classes[group].members[0]].ranks.first
            for kind, group in rank_class.groups.items()
        }
        stream = program.stages[rank_class.stage].ops.stream

        def factor(op: int) -> float:
            lane = stream[op]
            if lane == COMPUTE:
                noise = normal(seed, OF_RANK, rank, op)
            elif lane < TO_NEXT:
                noise = normal(seed, OF_GROUP, lowest[lane], op)
            else:
                noise = normal(seed, OF_SENDER, rank, op)
            return max(0.0, 1.0 + sigma * noise)

        return factor

    def transmissions(
        self, program: Program, folding: Folding, sharing: Sharing
    ) -> Callable[[int, int], Transmission]:
        """What an op (rank class, op) that communicates puts on the ports, with its scale and jitter."""
        known: dict[object, Transmission] = {}
        noise = [self._noise(number, program, folding) for number in range(len(folding.classes))]

        def transmission(number: int, op: int) -> Transmission:
            rank_class = folding.classes[number]
            cost = program.costs[program.stages[rank_class.stage].ops.cost[op]]
            key: object
            if isinstance(cost, CollectiveCost):
                group = folding.group_classes[rank_class.groups[cost.group]]
                key = (group.shape, group.ports, cost.collective, cost.bytes)
                if key not in known:
                    known[key] = sharing.collective(group.shape, group.ports, cost.collective, cost.bytes)
            else:
                assert isinstance(cost, TransferCost)
                link = rank_class.links[cost.step]
                key = (link.shape, link.ports, cost.bytes)
                if key not in known:
                    known[key] = sharing.transfer(link.shape, link.ports, cost.bytes)
            return known[key].scaled(self.comm_scale * noise[number](op))

        return transmission


def rounds_phases(network: Network, placed: PlacedCollective, scale: float) -> bool:
    """Whether a scaled collective takes another time than its price times the scale, rounded once."""
    return network.collective_ns(placed, scale) != scaled(network.collective_ns(placed), scale)


def normal(seed: int, about: int, number: int, op: int) -> float:
    """A number of mean 0 and deviation 1 that depends on its arguments alone.

    The sum of 12 hashed uniforms less 6: no library of mathematics, so every machine and
    Python version gives the same. `number`: the rank or the group's lowest rank.
    """
    # Imported here: only jitter hashes, and the import takes 11 ms.
    from hashlib import blake2b

    digest = blake2b(pack("<QQQQ", seed, about, number, op), digest_size=4 * _UNIFORMS).digest()
    total: int = sum(unpack(f"<{_UNIFORMS}I", digest))
    return (total + _UNIFORMS / 2) / 2**32 - _UNIFORMS / 2
