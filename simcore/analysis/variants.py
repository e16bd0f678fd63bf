"""The same workload run again with a few parameters changed, to say what they cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from simcore.diagnostics import InputError, UsageError, never_cancelled
from simcore.engine.running import RunPricing, is_fixed
from simcore.engine.time_scales import time_changes
from simcore.folding import fold
from simcore.names import COLLECTIVES
from simcore.program.ops import IS_COMMUNICATION, ComputeCost, Cost
from simcore.records import replace
from simcore.simulation import Simulation, price_other_job, simulate_like

if TYPE_CHECKING:
    from simcore.analysis.dependencies import Dependencies
    from simcore.cluster import Cluster
    from simcore.workload import Workload

# A second run for a sentence is worthwhile while it is short: about a second for so many ops.
MOST_OPS = 500_000


class Variants:
    """Other runs of the workload of one run, each simulated once and on first use."""

    def __init__(self, simulation: Simulation, dependencies: Callable[[], Dependencies]) -> None:
        """dependencies: returns those of this run."""
        self._simulation = simulation
        self._dependencies = dependencies
        self._cached_runs: dict[tuple[tuple[str, Any], ...], Simulation | None] = {}

    def run(self, **changes: Any) -> Simulation | None:
        """Returns the run with these fields of its `Parameters` changed.

        None where a second run would take long (jitter, which folds nothing, and many ops), and where the
        changed parameters are impossible.
        """
        key = tuple(sorted(changes.items()))
        if key not in self._cached_runs:
            self._cached_runs[key] = self._run(changes) if self._is_short else None
        return self._cached_runs[key]

    def step_ns(self, **changes: Any) -> int | None:
        """Returns the step time of the run with these fields changed, ns; None as in `run`."""
        simulation = self.run(**changes)
        return None if simulation is None else simulation.step_time_ns

    def step_ns_of_workload(self, workload: Workload, **changes: Any) -> int | None:
        """Returns the step time of another workload with these fields of the run's `Parameters` changed, ns;
        None as in `run`.
        """
        other = self._run(changes, workload) if self._is_short else None
        return None if other is None else other.step_time_ns

    def step_ns_on_cluster(self, cluster: Cluster) -> int | None:
        """Returns the step time with communication priced on a cluster of the same dimensions, ns; None as in
        `run`.

        It is a pass over the graph where the network allows it: a fifth of the time of another simulation.
        """
        simulation = self._simulation
        flat = any(group.shape.is_flat for group in simulation.timeline.folding.group_classes)
        if not self._is_short or flat or not is_fixed(simulation.program, simulation.network):
            # A group that is no grid may then use another dimension.
            return self.step_ns(**make_cluster_fields(simulation, cluster))
        from simcore.analysis.rerun import Rerun

        return Rerun(simulation, self._dependencies()).step_ns_on(cluster)

    def step_ns_without_communication(self) -> int | None:
        """Returns the step time with all communication free, ns; None where it would take long.

        It is a pass over the graph where the network allows it: a third of the time of another simulation.
        """
        if not self._is_short:
            return None
        simulation = self._simulation
        if not is_fixed(simulation.program, simulation.network):
            return self.step_ns(comm_scale=0.0)
        # Imported here: an export goes without the graph.
        from simcore.analysis.rerun import Rerun

        masks = [bytes(stage.ops.stream).translate(IS_COMMUNICATION) for stage in simulation.program.stages]
        return Rerun(simulation, self._dependencies()).step_ns(masks, 0.0)

    @cached_property
    def step_ns_with_even_sequences(self) -> int | None:
        """The step time if all micro-batches took the mean of attention, ns; None where they do not differ,
        and where it would take long.
        """
        simulation = self._simulation
        program, setup = simulation.program, simulation.setup
        if not program.packings or simulation.parameters.jitter or program.stage_ops > MOST_OPS:
            return None
        counts = Counter(packing for of_one in program.packings for packing in of_one)

        def even(cost: Cost) -> Cost:
            if not isinstance(cost, ComputeCost) or not cost.by_packing:
                return cost
            ns = sum(cost.by_packing[packing] * count for packing, count in counts.items())
            return cost._replace(ns=round(ns / sum(counts.values())), by_packing=())

        other = replace(program, costs=tuple(map(even, program.costs)), packings=())
        folding = fold(setup.layout, setup.cluster, other, setup.overrides, setup.has_all_ranks)
        changes = time_changes(setup.overrides.time_scales, other, simulation.workload.name)
        other_job = price_other_job(simulation)
        run = RunPricing(
            setup.cluster,
            simulation.network,
            other,
            folding,
            setup.overrides,
            changes=changes,
            other_job=other_job,
        )
        return max(run.times(never_cancelled).finish)

    @property
    def _is_short(self) -> bool:
        simulation = self._simulation
        is_short = simulation.timeline.ops_simulated <= MOST_OPS and not simulation.has_many_flows
        return simulation.parameters.jitter == 0 and is_short

    def _run(self, changes: dict[str, Any], workload: Workload | None = None) -> Simulation | None:
        try:
            return simulate_like(self._simulation, changes, workload=workload)
        except (InputError, UsageError):
            return None


def make_cluster_fields(simulation: Simulation, cluster: Cluster) -> dict[str, Any]:
    """Returns the fields of `Parameters` that give a run another cluster, exact to the last digit.

    A file that does not state its world may take it from a given cluster: then the world is among the fields.
    Given dimensions replace the network of a model's GPU: then its memory and algorithms are.
    """
    parameters, setup = simulation.parameters, simulation.setup
    fields: dict[str, Any] = {"dim": tuple(dim.exact_flag() for dim in cluster.dims)}
    if parameters.world is simulation.workload.header.all_gpus is None:
        fields["world"] = simulation.layout.world
    if setup.input_network is not None:
        fields["local_mem_bw"] = cluster.local_mem_bandwidth
        words = {collective: word for word, collective in COLLECTIVES.items()}
        fields["algorithm"] = tuple(
            f"{words[collective]}:{index}={name}" if collective else f"{index}={name}"
            for collective, names in (("", cluster.algorithms), *cluster.by_collective)
            for index, name in enumerate(names)
            if name is not None
        )
    return fields
