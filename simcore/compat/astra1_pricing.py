"""The durations of ops in dialect astra-sim-1: compute, and collectives chunk by chunk.

A duration is rounded once, half to even, after all its factors; in a collective, each phase of
each chunk is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from simcore.cluster import Cluster
from simcore.collectives.exact import scaled
from simcore.collectives.pricing import QueuedPhase, Walk, queued_phases
from simcore.diagnostics import UsageError
from simcore.folding import Folding, GroupClass
from simcore.program import Program
from simcore.program.ops import CollectiveCost, ComputeCost
from simcore.program.overrides import Overrides
from simcore.records import NamedTuple, Struct, field

if TYPE_CHECKING:
    from simcore.engine.jitter import Jitter

# Each phase of a chunk is an event: about 5 us.
MOST_CHUNK_PHASES = 10_000_000


class Chunks(NamedTuple):
    """A collective in the queues: its number of chunks, the phases of each and those of the last."""

    chunk_count: int
    each: Walk
    last: Walk

    def scaled(self, factor: float) -> Chunks:
        """Returns the chunks with the time of each phase times `factor`, rounded half to even."""
        return self.timed(lambda ns: scaled(ns, factor))

    def timed(self, ns: Callable[[int], int]) -> Chunks:
        """Returns the chunks with `ns` of the time of each phase as its time."""
        each, last = (
            tuple(phase._replace(ns=ns(phase.ns)) for phase in walk) for walk in (self.each, self.last)
        )
        return Chunks(self.chunk_count, each, last)


def queue_of(folding: Folding, dims: int, group: GroupClass, dimension: int) -> int:
    """Returns the id of the queue in which a phase of a group waits for a dimension, one of `dims`.

    A dimension that both model and data groups use is split in two, each part with a queue of its
    own (ASTRA-sim 1.0's break_dimension): the data groups' part is numbered after all dimensions.
    """
    if group.kind != "dp":
        return dimension
    crossed = {
        group_dimension.dimension
        for other in folding.group_classes
        if other.kind == "tp"
        for group_dimension in other.shape.dimensions
    }
    return dimension + (dims if dimension in crossed else 0)


class QueuePrices(Struct):
    """The prices of one run; the dimension of a phase is the id of its queue. jitter: None without."""

    cluster: Cluster
    overrides: Overrides
    jitter: Jitter | None
    program: Program
    folding: Folding
    _cache: dict[tuple[int, int], Chunks] = field(default_factory=dict)

    def compute(self) -> list[list[int]]:
        """Returns the ns of each op per rank class; 0 for collectives."""
        durations = []
        for class_id, rank_class in enumerate(self.folding.classes):
            ops = self.program.stages[rank_class.stage].ops
            scale = self.overrides.compute_scale
            table = [
                (cost.ns, scale * cost.scale * rank_class.slowdown)
                if isinstance(cost, ComputeCost)
                else (0, 1.0)
                for cost in self.program.costs
            ]
            if self.jitter is None:
                by_cost = [scaled(ns, factor) for ns, factor in table]
                durations.append(list(map(by_cost.__getitem__, ops.cost)))
                continue
            factors = self.jitter.factors(class_id, self.program, self.folding)
            durations.append(
                [
                    round(table[cost][0] * (table[cost][1] * factor))
                    for cost, factor in zip(ops.cost, factors, strict=True)
                ]
            )
        return durations

    def collective(self, group: int, op: int) -> Chunks:
        """Returns the chunks of collective `op` in the groups of group class `group`."""
        chunks = self._chunks(group, self.program.stages[0].ops.cost[op])
        if self.jitter is None:
            return chunks
        member = self.folding.group_classes[group].members[0]
        factor = self.overrides.comm_scale * self.jitter.factors(member, self.program, self.folding)[op]
        return chunks.timed(lambda ns: round(ns * factor))

    def check_size(self) -> None:
        """Raises `UsageError` where the chunks would take minutes."""
        times = Counter(self.program.stages[0].ops.cost)
        phases = 0
        for group in range(len(self.folding.group_classes)):
            for cost, count in times.items():
                if getattr(self.program.costs[cost], "group", None) == self.folding.group_classes[group].kind:
                    chunks = self._chunks(group, cost)
                    phases += count * chunks.chunk_count * len(chunks.each)
        if phases > MOST_CHUNK_PHASES:
            raise UsageError(
                f"{phases} phases of chunks are to be simulated, at most {MOST_CHUNK_PHASES}: "
                "fewer --splits or --passes would fit"
            )

    def _chunks(self, group: int, cost_number: int) -> Chunks:
        """Returns the chunks of a cost in the groups of a group class; scaled, unless there is jitter."""
        key = (group, cost_number)
        chunks = self._cache.get(key)
        if chunks is None:
            cost = self.program.costs[cost_number]
            assert isinstance(cost, CollectiveCost)
            chunks = self._cache[key] = self._price_chunks(self.folding.group_classes[group], cost)
        return chunks

    def _price_chunks(self, group: GroupClass, cost: CollectiveCost) -> Chunks:
        cluster = self.cluster.slowed(group.ports)
        # With jitter a phase is rounded after its jitter.
        scale = self.overrides.comm_scale if self.jitter is None else 1.0
        count, each, last = queued_phases(cluster, group.shape, cost.collective, cost.bytes, scale)
        return Chunks(count, *(
            tuple(
                QueuedPhase(queue_of(self.folding, len(self.cluster.dims), group, phase.dimension), phase.ns)
                for phase in walk
            )
            for walk in (each, last)
        ))  # fmt: skip
