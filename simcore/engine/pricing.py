"""What each op of a run takes on an idle network, in ns: costs, scales, overrides and jitter.

A duration is rounded once, half to even, after all its factors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from simcore.collectives.exact import scaled
from simcore.folding import Folding, RankClass
from simcore.networks import Network, PlacedCollective, Sharing
from simcore.program import Ops, Program
from simcore.program.ops import (
    AnyCost,
    BesideCost,
    CollectiveCost,
    ComputeCost,
    JoinedCost,
    TransferCost,
)
from simcore.records import Struct, field

if TYPE_CHECKING:
    from simcore.engine.jitter import Jitter
    from simcore.networks.model import Moved


class Prices(Struct):
    """Prices of one run, each computed once. compute_scale, comm_scale: factors on durations.

    jitter: None without; several prices of one program and folding may share it.
    """

    network: Network
    compute_scale: float
    comm_scale: float
    jitter: Jitter | None = None
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
            stage = rank_class.stage if program.pipelined else 0
            key = (stage, rank_class.slowdown, rank_class.expert, signature, links)
            if self.jitter is not None:
                durations.append(self._jittered(number, program, folding, ops))
                continue
            if key not in tables:
                priced = [self._price(cost, folding, rank_class) for cost in program.costs]
                table = [scaled(ns, scale) for ns, scale in priced]
                for index, cost in enumerate(program.costs):
                    if isinstance(cost, CollectiveCost) and cost.pieces > 1:
                        table[index] = cost.share_of(table[index])
                tables[key] = list(map(table.__getitem__, ops.cost))
            durations.append(tables[key])
        return durations

    def of_class(self, cost: AnyCost, folding: Folding, rank_class: RankClass) -> int:
        """ns of a cost for a rank class, without jitter."""
        return scaled(*self._price(cost, folding, rank_class))

    def _price(self, cost: AnyCost, folding: Folding, rank_class: RankClass) -> tuple[int, float]:
        """(ns, factor on it) of a cost for a class; 0 for a transfer to a neighbour it does not have."""
        if isinstance(cost, ComputeCost):
            return cost.ns_of(rank_class.expert), self.compute_scale * cost.scale * rank_class.slowdown
        if isinstance(cost, JoinedCost | BesideCost):
            each = (
                (scaled(*self._price(beside_cost, folding, rank_class)), count)
                for beside_cost, count in cost.costs
            )
            ns = sum(ns * count for ns, count in each)
            if isinstance(cost, BesideCost):
                ns = max(ns, scaled(*self._price(cost.collective, folding, rank_class)))
            return ns, 1.0
        if isinstance(cost, CollectiveCost):
            if cost.ns:
                return cost.ns, self.comm_scale
            if cost.group not in rank_class.groups:
                return 0, 1.0
            group = folding.group_classes[rank_class.groups[cost.group]]
            placed = PlacedCollective.of(group, cost)
            if placed not in self._known:
                self._known[placed] = self.network.collective_ns(placed)
            return self._known[placed], self.comm_scale
        assert isinstance(cost, TransferCost)
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
        assert self.jitter is not None
        factors = self.jitter.factors(number, program, folding)
        for index, cost in enumerate(program.costs):
            if isinstance(cost, CollectiveCost) and cost.pieces > 1:
                priced[index] = cost.share_of(priced[index][0]), priced[index][1]
        return [
            round(priced[number][0] * (priced[number][1] * factor))
            for number, factor in zip(ops.cost, factors, strict=True)
        ]

    def transmissions(
        self, program: Program, folding: Folding, sharing: Sharing
    ) -> Callable[[int, int], Moved]:
        """What an op (rank class, op) that communicates puts on the ports, with its scale and jitter."""
        known: dict[object, Moved] = {}
        jitter = self.jitter

        def transmission(number: int, op: int) -> Moved:
            rank_class = folding.classes[number]
            cost = program.costs[program.stages[rank_class.stage].ops.cost[op]]
            key: object
            if isinstance(cost, CollectiveCost):
                group = folding.group_classes[rank_class.groups[cost.group]]
                size = cost.priced_bytes
                key = (group.shape, group.ports, cost.collective, size, cost.pieces)
                if key not in known:
                    known[key] = sharing.collective(group.shape, group.ports, cost.collective, size)
                    if cost.pieces > 1:
                        known[key] = known[key].scaled(1 / cost.pieces)
            else:
                assert isinstance(cost, TransferCost)
                link = rank_class.links[cost.step]
                key = (link.shape, link.ports, cost.bytes)
                if key not in known:
                    known[key] = sharing.transfer(link.shape, link.ports, cost.bytes)
            noise = 1.0 if jitter is None else jitter.factors(number, program, folding)[op]
            return known[key].scaled(self.comm_scale * noise)

        return transmission


def rounds_phases(network: Network, placed: PlacedCollective, scale: float) -> bool:
    """Whether a scaled collective takes another time than its price times the scale, rounded once."""
    return network.collective_ns(placed, scale) != scaled(network.collective_ns(placed), scale)
