"""The knobs of a run: what could be cheaper in it."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.analysis.rerun import Rerun
from simcore.analysis.variants import make_cluster_fields
from simcore.cluster import Cluster
from simcore.engine.time_scales import TimeParts
from simcore.records import replace
from simcore.simulation import simulate_setup
from simcore.trace.knobs import BETTER, Knob

# The GB/s at which no number of bytes takes a ns.
_NO_TIME_GBPS = 1e30


def make_knobs(rerun: Rerun, on_path: set[tuple[int, int]]) -> list[Knob]:
    """Returns all knobs of a run, in the order of families. on_path: (stage, op) of its critical path."""
    return [*_make_part_knobs(rerun, on_path), *_make_dimension_knobs(rerun)]


def _make_part_knobs(rerun: Rerun, on_path: set[tuple[int, int]]) -> Iterator[Knob]:
    """Yields a knob for the compute of each phase, for all rows of one base name, and for each stream."""
    setup, step = rerun.simulation.setup, rerun.simulation.step_time_ns
    parts = TimeParts(rerun.program, rerun.simulation.workload.name)
    for part in parts.words:

        def step_ns(factor: float, part: str = part) -> int:
            masks = [parts.mask(part, stage) for stage in rerun.program.stages]
            if rerun.is_fixed and not any(masks[stage][op] for stage, op in on_path):
                # The path keeps its length, and nothing takes longer.
                return step
            return rerun.step_ns(masks, factor)

        scales = (*setup.parameters.time_scale, f"{part}={BETTER}")
        yield Knob(part, step_ns, setup.with_changes(time_scale=scales).parameters)


def _make_dimension_knobs(rerun: Rerun) -> Iterator[Knob]:
    """Yields a knob for bandwidth and latency of each dimension; none where a network has no dimensions, or
    links of a topology in their place.
    """
    simulation = rerun.simulation
    if not simulation.has_dimensions or simulation.flow_report is not None:
        return
    setup, cluster = simulation.setup, simulation.cluster
    # A group that is no grid uses the slowest dimension that it crosses, which may then be another one: such
    # a run is simulated anew with its parameters.
    may_move = any(group.shape.is_flat for group in rerun.folding.group_classes)
    for index in range(len(cluster.dims)):
        for property_name in ("bandwidth", "latency"):

            def step_ns(factor: float, index: int = index, property_name: str = property_name) -> int:
                other = make_cheaper(cluster, index, property_name, factor)
                if may_move and factor:
                    return simulate_setup(
                        setup.with_changes(**make_cluster_fields(simulation, other)), rerun.cancelled
                    ).step_time_ns
                return rerun.step_ns_on(other)

            cheaper_setup = setup.with_changes(
                **make_cluster_fields(simulation, make_cheaper(cluster, index, property_name, BETTER))
            )
            yield Knob(f"dimension {index} {property_name}", step_ns, cheaper_setup.parameters)


def make_cheaper(cluster: Cluster, index: int, property_name: str, factor: float) -> Cluster:
    """Returns the cluster with the latency of a dimension times `factor`, or its bandwidth over `factor`."""
    dims = list(cluster.dims)
    dims[index] = dims[index].cheaper(property_name, factor, _NO_TIME_GBPS)
    return replace(cluster, dims=tuple(dims))
