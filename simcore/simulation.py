"""One run, from a workload and parameters to its timeline: the caller of all rooms.

Import from here: `simulate`, `Simulation`, `choices`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simcore.cluster import (
    Cluster,
    Dimension,
    GroupShape,
    default_cluster,
    group_shape,
    parse_algorithm,
    parse_dimension,
)
from simcore.collectives import NAMES, collective_ns, explain_collective
from simcore.diagnostics import Diagnostic, UsageError, printable
from simcore.engine import run_engine
from simcore.folding import fold
from simcore.layout import RANK_ORDERS, Layout, resolve_layout
from simcore.overrides import parse_overrides
from simcore.parameters import Parameters
from simcore.pricing import Prices, scaled
from simcore.program import SCHEDULES, Program, build_program
from simcore.program.building import MOST_OPS, STAGE_LAYOUTS
from simcore.timeline import Timeline
from simcore.units import number
from simcore.workload import Workload
from simcore.workload.model import GroupKind

NETWORKS = ("analytical",)


@dataclass(frozen=True, slots=True)
class Simulation:
    """A run and everything it came from. diagnostics: of the file, then of the run."""

    workload: Workload
    parameters: Parameters
    layout: Layout
    cluster: Cluster
    timeline: Timeline
    diagnostics: tuple[Diagnostic, ...]

    @property
    def program(self) -> Program:
        return self.timeline.program

    @property
    def step_time_ns(self) -> int:
        return self.timeline.step_time_ns


def choices(field: str) -> tuple[str, ...]:
    """What a parameter that is a word may be."""
    return {
        "schedule": tuple(SCHEDULES),
        "rank_order": RANK_ORDERS,
        "stage_layout": STAGE_LAYOUTS,
        "network": NETWORKS,
        "dialect": ("simai", "astra-sim-1"),
    }[field]


def simulate(
    workload: Workload, parameters: Parameters, cancelled: Callable[[], bool] = lambda: False
) -> Simulation:
    """One step of `workload` under `parameters`.

    Raises `UsageError` for parameters that cannot be, `InputError` for a workload that
    cannot be simulated, `Cancelled` when `cancelled()` becomes true.
    """
    if parameters.network not in NETWORKS:
        raise UsageError(
            f"--network {printable(parameters.network, 60)}: one of {', '.join(NETWORKS)} is expected"
        )
    dims = tuple(parse_dimension(text) for text in parameters.dim)
    npus = None
    if dims:
        npus = 1
        for dimension in dims:
            npus *= dimension.size
    layout, found = resolve_layout(workload, parameters, npus)
    cluster, cluster_found = _cluster(workload, parameters, dims, layout)
    program, program_found = build_program(workload, layout, parameters)
    overrides = parse_overrides(parameters, layout.world, len(cluster.dims))
    folding = fold(layout, cluster, program, overrides, parameters.no_fold)
    ops = sum(len(program.stages[rank_class.stage].ops) for rank_class in folding.classes)
    if ops > MOST_OPS:
        raise UsageError(
            f"{len(folding.classes)} rank classes have {ops} ops: at most {MOST_OPS} are simulated"
            + (" (without --no-fold equal ranks are simulated once)" if parameters.no_fold else "")
        )
    prices = Prices(cluster, parameters.compute_scale, parameters.comm_scale, overrides)
    durations = prices.durations(program, folding)
    try:
        times = run_engine(program, folding, durations, cancelled)
    except OverflowError:
        raise UsageError("the step would take 2^63 ns (292 years) or more: too long for its times") from None
    diagnostics = (*workload.diagnostics, *found, *cluster_found, *program_found)
    return Simulation(workload, parameters, layout, cluster, Timeline(program, folding, times), diagnostics)


def _cluster(
    workload: Workload, parameters: Parameters, dims: tuple[Dimension, ...], layout: Layout
) -> tuple[Cluster, list[Diagnostic]]:
    """The cluster of a run: the one given, else the default one, which is said."""
    found = []
    if not dims:
        dims = default_cluster(layout.world).dims
        text = " x ".join(f"{dimension.kind} {dimension.size}" for dimension in dims)
        found.append(
            Diagnostic("note", "cluster-default", f"no cluster given: h100-8 taken ({text})", workload.path)
        )
    algorithms: list[str | None] = [None] * len(dims)
    for text in parameters.algorithm:
        dimension, algorithm = parse_algorithm(text, dims)
        algorithms[dimension] = algorithm
    cluster = Cluster(dims, tuple(algorithms), parameters.endpoint_delay, parameters.local_mem_bw)
    cluster.check_world(layout.world)
    return cluster, found


def collective_alone_ns(simulation: Simulation, collective: str, group: GroupKind, size: int) -> int:
    """ns of one collective alone on the idle network, scaled; `size` is the whole buffer in bytes.

    Where groups of one kind are placed differently, the slowest of them; 0 for a collective
    that makes no op (0 bytes, a group of one).
    """
    priced = [
        scaled(collective_ns(simulation.cluster, shape, collective, size), simulation.parameters.comm_scale)
        for shape in _shapes(simulation, group, size)
    ]
    return max(priced, default=0)


def explain_alone(simulation: Simulation, collective: str, group: GroupKind, size: int) -> str:
    """Where `collective_alone_ns` comes from, in one or two lines of text."""
    shapes = _shapes(simulation, group, size)
    if not shapes:
        members = simulation.layout.group_size(group)
        return f"{NAMES[collective]}, {size} B in a group of {members}: no op, no time"
    slowest = max(shapes, key=lambda shape: collective_ns(simulation.cluster, shape, collective, size))
    words = explain_collective(simulation.cluster, slowest, collective, size)
    scale = simulation.parameters.comm_scale
    return words if scale == 1.0 else f"{words}, times comm scale {number(scale)}"


def _shapes(simulation: Simulation, group: GroupKind, size: int) -> list[GroupShape]:
    """The shapes that groups of a kind have, each once; none where the collective makes no op."""
    if not size or simulation.layout.group_size(group) == 1:
        return []
    classes = simulation.timeline.folding.group_classes
    shapes = list(dict.fromkeys(one.shape for one in classes if one.kind == group))
    # A kind that no op of this run uses has no group classes: its first group stands for it.
    return shapes or [group_shape(simulation.cluster, next(simulation.layout.groups(group)))]
