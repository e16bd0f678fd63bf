"""One run, from a workload and parameters to its timeline: the caller of all rooms.

Import from here: `simulate`, `Simulation`, `choices`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from simcore.cluster import (
    DEFAULT_PRESET,
    OPTIMIZATIONS,
    Cluster,
    ClusterChoice,
    GroupShape,
    choose_cluster,
    group_shape,
)
from simcore.collectives import NAMES, collective_ns, explain_collective
from simcore.diagnostics import Diagnostic, UsageError, printable
from simcore.engine import Times, run_engine
from simcore.folding import Folding, fold
from simcore.layout import RANK_ORDERS, Layout, resolve_layout
from simcore.overrides import parse_overrides
from simcore.parameters import Parameters
from simcore.policies import chosen_dialect, policy_layout, with_scopes
from simcore.pricing import Prices, scaled
from simcore.program import SCHEDULES, Program, build_policy_program, build_program
from simcore.program.building import MOST_OPS, STAGE_LAYOUTS
from simcore.queue_pricing import QueuePrices
from simcore.timeline import Timeline
from simcore.units import number
from simcore.workload import Workload
from simcore.workload.model import DIALECTS, GroupKind

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
        "dialect": DIALECTS,
        "collective_optimization": OPTIMIZATIONS,
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
    # The workload of a run has its groups and sizes; another run begins with those of the file.
    workload = workload.as_read or workload
    choice = choose_cluster(parameters)
    if chosen_dialect(workload, parameters) == "astra-sim-1":
        _check_queued(parameters)
        layout, found = policy_layout(workload, parameters, choice.npus, choice.first_dimension)
        workload = with_scopes(workload, layout)
        cluster, cluster_found = _cluster(workload, choice, layout)
        cluster = replace(cluster, last_chunk_is_rest=True)
        program, program_found = build_policy_program(workload, layout, parameters, cluster.newest_first)
    else:
        layout, found = resolve_layout(workload, parameters, choice.npus)
        cluster, cluster_found = _cluster(workload, choice, layout)
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
    try:
        if program.queued:
            queued = QueuePrices(cluster, parameters, overrides, program, folding)
            times = _run_queued(queued, cancelled)
        else:
            times = run_engine(program, folding, prices.durations(program, folding), cancelled)
    except OverflowError:
        raise UsageError("the step would take 2^63 ns (292 years) or more: too long for its times") from None
    flat = _flat_groups(workload, folding)
    diagnostics = (*workload.diagnostics, *found, *cluster_found, *program_found, *flat)
    return Simulation(workload, parameters, layout, cluster, Timeline(program, folding, times), diagnostics)


def _check_queued(parameters: Parameters) -> None:
    """Raises `UsageError` for a network model that the queues of dialect astra-sim-1 cannot have."""
    if parameters.network != "analytical":
        raise UsageError(
            f"--network {printable(parameters.network, 60)}: dialect astra-sim-1 has its own queues, "
            "analytical fits (--dialect simai takes the rows as SimAI does)"
        )


def _run_queued(prices: QueuePrices, cancelled: Callable[[], bool]) -> Times:
    """The times of a program whose collectives queue at the dimensions."""
    # Imported here: most runs are of the other dialect.
    from simcore.engine.dimension_queues import DimensionQueues

    prices.check_size()
    active = prices.cluster.active_chunks
    queues = DimensionQueues(prices.program, prices.folding, prices.compute(), prices.collective, active)
    return queues.run(cancelled)


def _cluster(
    workload: Workload, choice: ClusterChoice, layout: Layout
) -> tuple[Cluster, tuple[Diagnostic, ...]]:
    """The cluster of a run: the one given, else the default one, which is said."""
    cluster = choice.cluster(layout.world)
    found = choice.diagnostics
    if choice.is_default:
        text = " x ".join(f"{dimension.kind} {dimension.size}" for dimension in cluster.dims)
        message = f"no cluster given: {DEFAULT_PRESET} taken ({text})"
        found = (*found, Diagnostic("note", "cluster-default", message, workload.path))
    return cluster, found


def _flat_groups(workload: Workload, folding: Folding) -> list[Diagnostic]:
    """What is said of groups that are no grid of the cluster, one note a kind."""
    kinds = dict.fromkeys(one.kind for one in folding.group_classes if one.shape.flat)
    return [
        Diagnostic(
            "note",
            "group-flat",
            f"some {kind} groups are no grid of the cluster's dimensions: "
            "each is priced as one flat group on the slowest dimension it crosses",
            workload.path,
        )
        for kind in kinds
    ]


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
