"""A finished run once more, with some durations changed: same program, same classes.

Under `analytical` and SimAI's networks the order of everything is fixed: one pass over it gives what
the engine would, and shorter durations never make the step longer. Where ports are shared, and
in queues that go by priority, the engine itself runs again, and the step may get longer.
"""

from __future__ import annotations

from collections.abc import Callable

from simcore.cluster import Cluster
from simcore.networks import Network, open_network
from simcore.overrides import parse_overrides
from simcore.program import StageProgram
from simcore.run.graph import never
from simcore.run.simulated import SimulatedGraph
from simcore.running import Change, PricedRun
from simcore.simulation import Simulation

# Of a stage's program, 1 for each op whose duration is changed.
Chosen = Callable[[StageProgram], bytes]


class Rerun:
    """Reruns of one simulation; what does not change is priced once."""

    def __init__(
        self, simulation: Simulation, built: SimulatedGraph, cancelled: Callable[[], bool] = never
    ) -> None:
        """built: the graph of this run."""
        self.simulation = simulation
        self._built = built
        self.program = simulation.program
        self.folding = simulation.timeline.folding
        self.cancelled = cancelled
        dimensions = len(simulation.cluster.dims)
        self._overrides = parse_overrides(simulation.parameters, simulation.layout.world, dimensions)
        self._run = self._priced(simulation.cluster, simulation.network)

    @property
    def is_fixed(self) -> bool:
        """Whether durations decide nothing but when things happen: then shorter ones never do harm."""
        return self._run.is_fixed

    def step_ns(self, chosen: Chosen, factor: float) -> int:
        """The step time, ns, with the durations of the chosen ops times `factor`, rounded half to even."""
        masks = [chosen(stage) for stage in self.program.stages]
        return self._step_ns(self._run, Change(masks, factor))

    def step_ns_on(self, cluster: Cluster) -> int:
        """The step time, ns, with communication priced on another cluster; groups stay where they lie."""
        network = open_network(self.simulation.parameters, self.simulation.layout, cluster)
        return self._step_ns(self._priced(cluster, network))

    def _priced(self, cluster: Cluster, network: Network) -> PricedRun:
        parameters, overrides = self.simulation.parameters, self._overrides
        return PricedRun(cluster, network, self.program, self.folding, parameters, overrides)

    def _step_ns(self, run: PricedRun, change: Change | None = None) -> int:
        if not self.is_fixed:
            return max(run.times(self.cancelled, change).finish)
        durations = self._built.durations(run.durations(change))
        return self._built.step_ns(self._built.graph.ends(durations, self.cancelled))
