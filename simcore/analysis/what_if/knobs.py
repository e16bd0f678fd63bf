"""The knobs of a run: what could be cheaper in it."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.analysis.rerun import Rerun
from simcore.analysis.variants import cluster_fields
from simcore.cluster import Cluster
from simcore.engine.time_scales import TimeParts
from simcore.records import replace
from simcore.simulation import simulated
from simcore.trace.knobs import BETTER, Knob

# GB/s at which no number of bytes takes a ns.
_NO_TIME_GBPS = 1e30


def knobs(rerun: Rerun, on_path: set[tuple[int, int]]) -> list[Knob]:
    """All knobs of a run, in the order of their families. on_path: (stage, op) of its critical path."""
    return [*_parts(rerun, on_path), *_dimensions(rerun)]


def _parts(rerun: Rerun, on_path: set[tuple[int, int]]) -> Iterator[Knob]:
    """Compute of each phase, all that rows of one name do, names without digits, and each stream."""
    setup, step = rerun.simulation.setup, rerun.simulation.step_time_ns
    parts = TimeParts(rerun.program, rerun.simulation.workload.name)
    for part in parts.words:

        def step_ns(factor: float, part: str = part) -> int:
            masks = [parts.mask(part, stage) for stage in rerun.program.stages]
            if rerun.is_fixed and not any(masks[stage][op] for stage, op in on_path):
                # The path takes what it took, and nothing takes longer.
                return step
            return rerun.step_ns(masks, factor)

        scales = (*setup.parameters.time_scale, f"{part}={BETTER}")
        yield Knob(part, step_ns, setup.changed(time_scale=scales).parameters)


def _dimensions(rerun: Rerun) -> Iterator[Knob]:
    """Bandwidth and latency of each dimension of the network; none where a network has no dimensions."""
    simulation = rerun.simulation
    if not simulation.has_dimensions:
        return
    setup, cluster = simulation.setup, simulation.cluster
    # A group that is no grid goes over the slowest dimension that it crosses, which may be another one then:
    # such a run is simulated anew, as its parameters ask for it.
    may_move = any(group.shape.flat for group in rerun.folding.group_classes)
    for number in range(len(cluster.dims)):
        for what in ("bandwidth", "latency"):

            def step_ns(factor: float, number: int = number, what: str = what) -> int:
                other = cheaper_dimension(cluster, number, what, factor)
                if may_move and factor:
                    return simulated(
                        setup.changed(**cluster_fields(simulation, other)), rerun.cancelled
                    ).step_time_ns
                return rerun.step_ns_on(other)

            asked = setup.changed(
                **cluster_fields(simulation, cheaper_dimension(cluster, number, what, BETTER))
            )
            yield Knob(f"dimension {number} {what}", step_ns, asked.parameters)


def cheaper_dimension(cluster: Cluster, number: int, what: str, factor: float) -> Cluster:
    """The cluster whose dimension has its latency times `factor`, or its bandwidth over `factor`."""
    dims = list(cluster.dims)
    dims[number] = dims[number].cheaper(what, factor, _NO_TIME_GBPS)
    return replace(cluster, dims=tuple(dims))
