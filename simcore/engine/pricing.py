"""What each op of a run takes on an idle network, in ns: costs, scales, overrides and jitter.

A duration is rounded once, half to even, after all its factors.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter, mul
from typing import TYPE_CHECKING

from simcore.collectives.exact import scaled
from simcore.folding import Folding, RankClass
from simcore.networks import GroupCollective, Network, Sharing
from simcore.program import Program
from simcore.program.ops import (
    AnyCost,
    CollectiveCost,
    ComputeCost,
    OverlapCost,
    SequenceCost,
    SplitCost,
    TransferCost,
)
from simcore.records import Struct, field

if TYPE_CHECKING:
    from simcore.engine.jitter import Jitter
    from simcore.networks.model import OpTraffic


class Prices(Struct):
    """The prices of one run, each computed once."""

    network: Network
    """The network that prices communication."""
    compute_scale: float
    """The factor on durations of compute."""
    comm_scale: float
    """The factor on durations of communication."""
    jitter: Jitter | None = None
    """None without; several prices of one program and folding may share it."""
    _cache: dict[object, int] = field(default_factory=dict)

    def durations(self, program: Program, folding: Folding, is_shared: bool = False) -> list[Sequence[int]]:
        """Returns the ns of each op per rank class. Equal classes share one list, unless there is jitter.

        is_shared: whether what crosses the network takes 0: its end depends on all else there, and to
        simulate each collective alone takes a quarter of the time of a run of flows.
        """
        tables: dict[object, list[int]] = {}
        packed_ops = _find_packed_ops(program)
        durations: list[Sequence[int]] = []
        for class_id, rank_class in enumerate(folding.classes):
            ops = program.stages[rank_class.stage].ops
            key = (rank_class.stage if program.pipelined else 0, folding.price_key(rank_class))
            if self.jitter is not None:
                durations.append(
                    self._jittered_ns(class_id, program, folding, is_shared, packed_ops[rank_class.stage])
                )
                continue
            if key not in tables:
                prices = self._prices(program, folding, rank_class, is_shared)
                table = [scaled(ns, scale) for ns, scale in prices]
                for index, cost in enumerate(program.costs):
                    if isinstance(cost, CollectiveCost) and cost.split_count > 1:
                        table[index] = cost.share_of(table[index])
                column = tables[key] = list(map(table.__getitem__, ops.cost))
                for op, ns in _packed_ns(program, rank_class, packed_ops[rank_class.stage]):
                    column[op] = scaled(ns, prices[ops.cost[op]][1])
            durations.append(tables[key])
        return durations

    def of_class(self, cost: AnyCost, folding: Folding, rank_class: RankClass) -> int:
        """Returns the ns of a cost for a rank class, without jitter."""
        ns = scaled(*self._price(cost, folding, rank_class))
        return cost.share_of(ns) if isinstance(cost, CollectiveCost) and cost.split_count > 1 else ns

    def _prices(
        self, program: Program, folding: Folding, rank_class: RankClass, is_shared: bool
    ) -> list[tuple[int, float]]:
        return [
            (0, 1.0) if is_shared and _crosses_network(cost) else self._price(cost, folding, rank_class)
            for cost in program.costs
        ]

    def _price(self, cost: AnyCost, folding: Folding, rank_class: RankClass) -> tuple[int, float]:
        """Returns (ns, factor on it) of a cost for a class; 0 for a transfer to a neighbour it does not
        have.
        """
        if isinstance(cost, ComputeCost):
            return cost.ns_of(rank_class.expert), self.compute_scale * cost.scale * rank_class.slowdown
        if isinstance(cost, SequenceCost | OverlapCost):
            each = (
                (scaled(*self._price(part_cost, folding, rank_class)), count)
                for part_cost, count in cost.costs
            )
            ns = sum(ns * count for ns, count in each)
            if isinstance(cost, OverlapCost):
                ns = max(ns, scaled(*self._price(cost.collective, folding, rank_class)))
            return ns, 1.0
        if isinstance(cost, SplitCost):
            return cost.ns_of(lambda part: scaled(*self._price(part, folding, rank_class))), 1.0
        if isinstance(cost, CollectiveCost):
            if cost.ns:
                return cost.ns, self.comm_scale
            if cost.group not in rank_class.groups:
                return 0, 1.0
            group = folding.group_classes[rank_class.groups[cost.group]]
            group_collective = GroupCollective.of(group, cost)
            if group_collective not in self._cache:
                self._cache[group_collective] = self.network.collective_ns(group_collective)
            return self._cache[group_collective], self.comm_scale
        assert isinstance(cost, TransferCost)
        if cost.step not in rank_class.links:
            return 0, 1.0
        link = rank_class.links[cost.step]
        key = (link.shape, link.ports, cost.bytes)
        if key not in self._cache:
            self._cache[key] = self.network.transfer_ns(link.shape, link.ports, cost.bytes)
        return self._cache[key], self.comm_scale

    def _jittered_ns(
        self, class_id: int, program: Program, folding: Folding, is_shared: bool, packed_ops: Sequence[int]
    ) -> array[int]:
        """Returns the ns of each op of a class of one rank, each multiplied by its own hashed factor, as "q":
        no other class shares them, and a list of 1,024 ranks takes 100 MB.
        """
        rank_class = folding.classes[class_id]
        ops = program.stages[rank_class.stage].ops
        prices = self._prices(program, folding, rank_class, is_shared)
        assert self.jitter is not None
        factors = self.jitter.factors(class_id, program, folding)
        for index, cost in enumerate(program.costs):
            if isinstance(cost, CollectiveCost) and cost.split_count > 1:
                prices[index] = cost.share_of(prices[index][0]), prices[index][1]
        ns_of, scale_of = ([*map(itemgetter(index), prices)].__getitem__ for index in (0, 1))
        scales = map(mul, map(scale_of, ops.cost), factors)
        column = array("q", map(round, map(mul, map(ns_of, ops.cost), scales)))
        for op, ns in _packed_ns(program, rank_class, packed_ops):
            column[op] = round(ns * (prices[ops.cost[op]][1] * factors[op]))
        return column

    def transmissions(
        self, program: Program, folding: Folding, sharing: Sharing
    ) -> Callable[[int, int], OpTraffic]:
        """Returns a function of (rank class, op) that gives what an op puts on the ports, scaled and
        jittered.
        """
        cache: dict[object, OpTraffic] = {}
        jitter = self.jitter
        # By rank class and cost, scaled: without jitter all ops of a cost move the same.
        known_traffic: dict[tuple[int, int], OpTraffic] = {}

        def transmission(class_id: int, op: int) -> OpTraffic:
            rank_class = folding.classes[class_id]
            cost_index = program.stages[rank_class.stage].ops.cost[op]
            if (class_id, cost_index) in known_traffic:
                return known_traffic[class_id, cost_index]
            cost = program.costs[cost_index]
            key: object
            if isinstance(cost, CollectiveCost):
                group = folding.group_classes[rank_class.groups[cost.group]]
                size = cost.priced_bytes
                key = (group.shape, group.ports, cost.collective, size, cost.split_count)
                if key not in cache:
                    cache[key] = sharing.collective(group.shape, group.ports, cost.collective, size)
                    if cost.split_count > 1:
                        cache[key] = cache[key].scaled(1 / cost.split_count)
            else:
                assert isinstance(cost, TransferCost)
                link = rank_class.links[cost.step]
                key = (link.shape, link.ports, cost.bytes)
                if key not in cache:
                    cache[key] = sharing.transfer(link.shape, link.ports, cost.bytes)
            if jitter is not None:
                noise = jitter.factors(class_id, program, folding)[op]
                return cache[key].scaled(self.comm_scale * noise)
            known_traffic[class_id, cost_index] = scaled_traffic = cache[key].scaled(self.comm_scale)
            return scaled_traffic

        return transmission


def _crosses_network(cost: AnyCost) -> bool:
    """Returns whether a cost is that of an op with other ranks; a copy to the host's memory is not."""
    return isinstance(cost, TransferCost) or (isinstance(cost, CollectiveCost) and cost.group != "offload")


def _find_packed_ops(program: Program) -> list[Sequence[int]]:
    """Returns for each stage the ops that take another time in each of the different micro-batches."""
    packed = {
        index for index, cost in enumerate(program.costs) if isinstance(cost, ComputeCost) and cost.by_packing
    }
    if not packed:
        return [()] * len(program.stages)
    return [[op for op, cost in enumerate(stage.ops.cost) if cost in packed] for stage in program.stages]


def _packed_ns(
    program: Program, rank_class: RankClass, packed_ops: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Yields (op, ns) of these ops of a rank class, without its factors."""
    ops = program.stages[rank_class.stage].ops
    for op in packed_ops:
        cost = program.costs[ops.cost[op]]
        assert isinstance(cost, ComputeCost)
        yield op, cost.ns_of(rank_class.expert, program.packing_of(rank_class.replica, ops.microbatch[op]))


def rounds_phases(network: Network, group_collective: GroupCollective, scale: float) -> bool:
    """Returns whether a scaled collective differs from its price times the scale, rounded once."""
    return network.collective_ns(group_collective, scale) != scaled(
        network.collective_ns(group_collective), scale
    )
