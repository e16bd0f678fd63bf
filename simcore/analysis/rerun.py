"""A finished run once more, with some durations changed: same program, same classes.

Under `analytical` and SimAI's networks the order is fixed: one pass over the graph gives what the engine
would, and shorter durations never make the step longer. Where ports are shared, and in queues that go by
priority, the engine itself runs again, and the step may get longer.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import compress

from simcore.analysis.dependencies import Dependencies
from simcore.cluster import Cluster
from simcore.diagnostics import never_cancelled
from simcore.engine.running import DurationChange, RunPricing, is_fixed, jitter_of
from simcore.engine.time_scales import time_changes
from simcore.networks import Network
from simcore.simulation import Simulation, price_other_job
from simcore.trace.trace_graph import scale_durations


class Rerun:
    """Reruns of one simulation; what does not change is priced once."""

    def __init__(
        self,
        simulation: Simulation,
        dependencies: Dependencies,
        cancelled: Callable[[], bool] = never_cancelled,
    ) -> None:
        """dependencies: of this run."""
        self.simulation = simulation
        self._sim_graph, self._graph = dependencies.sim_graph, dependencies.graph
        self.program = simulation.program
        self.folding = simulation.timeline.folding
        self.cancelled = cancelled
        overrides = simulation.setup.overrides
        self._jitter = jitter_of(overrides)
        self._changes = time_changes(overrides.time_scales, self.program, simulation.workload.name)
        # With a fixed order shorter durations never make the step longer.
        self.is_fixed = is_fixed(self.program, simulation.network)

    @cached_property
    def _run(self) -> RunPricing:
        """The run with its own prices, for the engine."""
        return self._price_run(self.simulation.cluster, self.simulation.network)

    @cached_property
    def _durations(self) -> array[int]:
        """The durations of the nodes of the graph."""
        return self._sim_graph.durations()

    def step_ns(self, masks: Sequence[bytes], factor: float) -> int:
        """Returns the step time, ns, with the durations of some ops times `factor`, rounded half to even.

        masks: by stage, 1 for each op whose duration is changed.
        """
        if not self.is_fixed:
            return self._run_engine(self._run, DurationChange(masks, factor))
        mask = b"\0" + b"".join(masks[rank_class.stage] for rank_class in self.folding.classes)
        return self._run_pass(scale_durations(self._durations, compress(range(len(mask)), mask), factor))

    def step_ns_on(self, cluster: Cluster) -> int:
        """Returns the step time with communication priced on another cluster, ns."""
        run = self._price_run(cluster, self.simulation.setup.open_network(cluster))
        return (
            self._run_pass(self._sim_graph.durations(run.durations()))
            if self.is_fixed
            else self._run_engine(run)
        )

    def _price_run(self, cluster: Cluster, network: Network) -> RunPricing:
        overrides = self.simulation.setup.overrides
        other_job = price_other_job(self.simulation)
        return RunPricing(
            cluster, network, self.program, self.folding, overrides, self._jitter, self._changes, other_job
        )

    def _run_pass(self, durations: array[int]) -> int:
        return self._graph.compute_step_ns(durations, self.cancelled)

    def _run_engine(self, run: RunPricing, change: DurationChange | None = None) -> int:
        return max(run.times(self.cancelled, change).finish)
