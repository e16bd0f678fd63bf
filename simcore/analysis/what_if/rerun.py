"""A finished run once more, with some durations changed: same program, same classes.

Under `analytical` and SimAI's networks the order of everything is fixed: one pass over it gives what
the engine would, and shorter durations never make the step longer. Where ports are shared, and
in queues that go by priority, the engine itself runs again, and the step may get longer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simcore.analysis.program_index import ProgramIndex
from simcore.analysis.what_if.fixed_order import FixedOrder
from simcore.cluster import Cluster
from simcore.collectives.exact import scaled
from simcore.engine import Times, run_engine
from simcore.networks import Network, Sharing, open_network
from simcore.overrides import parse_overrides
from simcore.pricing import Prices
from simcore.program import StageProgram
from simcore.simulation import Simulation

# Of a stage's program, 1 for each op whose duration is changed.
Chosen = Callable[[StageProgram], bytes]


class Rerun:
    """Reruns of one simulation; what does not change is priced once."""

    def __init__(self, simulation: Simulation, cancelled: Callable[[], bool] = lambda: False) -> None:
        self.simulation = simulation
        self.program = simulation.program
        self.folding = simulation.timeline.folding
        self.cancelled = cancelled
        parameters = simulation.parameters
        self._overrides = parse_overrides(parameters, simulation.layout.world, len(simulation.cluster.dims))
        self._prices = self._priced(simulation.network)
        self._order: FixedOrder | None = None
        self._durations = [] if self.program.queued else self._prices.durations(self.program, self.folding)

    @property
    def is_fixed(self) -> bool:
        """Whether durations decide nothing but when things happen: then shorter ones never do harm."""
        return not self.program.queued and not isinstance(self.simulation.network, Sharing)

    def step_ns(self, chosen: Chosen, factor: float) -> int:
        """The step time, ns, with the durations of the chosen ops times `factor`, rounded half to even."""
        masks = [chosen(stage) for stage in self.program.stages]
        if self.program.queued:
            return self._queued_step_ns(self.simulation.cluster, masks, factor)
        changed: dict[tuple[int, int], list[int]] = {}
        durations = []
        for rank_class, column in zip(self.folding.classes, self._durations, strict=True):
            # Equal classes of a stage share one column.
            key = (rank_class.stage, id(column))
            if key not in changed:
                shorter = {ns: scaled(ns, factor) for ns in set(column)}
                mask = masks[rank_class.stage]
                changed[key] = [shorter[ns] if one else ns for ns, one in zip(column, mask, strict=True)]
            durations.append(changed[key])
        return self._run(self.simulation.network, self._prices, durations, masks, factor)

    def step_ns_on(self, cluster: Cluster) -> int:
        """The step time, ns, with communication priced on another cluster; groups stay where they lie."""
        if self.program.queued:
            return self._queued_step_ns(cluster, (), 1.0)
        network = open_network(self.simulation.parameters, self.simulation.layout, cluster)
        prices = self._priced(network)
        durations = prices.durations(self.program, self.folding)
        return self._run(network, prices, durations, (), 1.0)

    def _priced(self, network: Network) -> Prices:
        parameters = self.simulation.parameters
        return Prices(network, parameters.compute_scale, parameters.comm_scale, self._overrides)

    def _run(
        self,
        network: Network,
        prices: Prices,
        durations: list[list[int]],
        masks: Sequence[bytes],
        factor: float,
    ) -> int:
        if self.is_fixed:
            if self._order is None:
                self._order = FixedOrder(self.simulation.timeline, ProgramIndex(self.simulation.timeline))
            return self._order.step_ns(durations, self.cancelled)
        from simcore.engine.shared_queue import Traffic
        from simcore.sharing import Transmission

        assert isinstance(network, Sharing)
        whole = prices.transmissions(self.program, self.folding, network)
        stages = [rank_class.stage for rank_class in self.folding.classes]

        def transmission(number: int, op: int) -> Transmission:
            found = whole(number, op)
            return found.scaled(factor) if masks and masks[stages[number]][op] else found

        capacities = [network.capacities(rank_class.ports) for rank_class in self.folding.classes]
        traffic = Traffic(transmission, capacities)
        return _step(run_engine(self.program, self.folding, durations, self.cancelled, traffic))

    def _queued_step_ns(self, cluster: Cluster, masks: Sequence[bytes], factor: float) -> int:
        """In dialect astra-sim-1 every phase of a chunk is a duration."""
        from simcore.engine.dimension_queues import DimensionQueues
        from simcore.queue_pricing import Chunks, QueuePrices

        parameters = self.simulation.parameters
        prices = QueuePrices(cluster, parameters, self._overrides, self.program, self.folding)
        # One program, whatever the rank.
        mask = masks[0] if masks else bytes(len(self.program.stages[0].ops))

        def price(group: int, op: int) -> Chunks:
            chunks = prices.collective(group, op)
            if not mask[op]:
                return chunks
            each, last = (
                tuple(phase._replace(ns=scaled(phase.ns, factor)) for phase in walk)
                for walk in (chunks.each, chunks.last)
            )
            return Chunks(chunks.number, each, last)

        compute = [
            [scaled(ns, factor) if one else ns for ns, one in zip(column, mask, strict=True)]
            for column in prices.compute()
        ]
        queues = DimensionQueues(self.program, self.folding, compute, price, cluster.active_chunks)
        return _step(queues.run(self.cancelled))


def _step(times: Times) -> int:
    return max(times.finish)
