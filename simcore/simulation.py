"""One run, from a workload and parameters to its timeline: the caller of all rooms.

Import from here: `simulate`, `Simulation`, `choices`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simcore.cluster import (
    DEFAULT_PRESET,
    OPTIMIZATIONS,
    Cluster,
    ClusterChoice,
    GroupShape,
    choose_cluster,
    group_shape,
)
from simcore.collectives import NAMES, collective_ns, explain_collective, transfer_ns
from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.engine import run_engine
from simcore.folding import Folding, fold
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
        "collective_optimization": OPTIMIZATIONS,
    }[field]


def simulate(
    workload: Workload, parameters: Parameters, cancelled: Callable[[], bool] = lambda: False
) -> Simulation:
    """One step of `workload` under `parameters`.

    Raises `UsageError` for parameters that cannot be, `InputError` for a workload that
    cannot be simulated, `Cancelled` when `cancelled()` becomes true.
    """
    try:
        return _simulate(workload, parameters, cancelled)
    except UsageError as error:
        if parameters != Parameters():
            raise
        # Nobody asked for anything: it is the file that cannot be simulated.
        place = (workload.path, workload.header.line)
        raise InputError(Diagnostic("error", "cannot-simulate", str(error), *place, 1)) from None


def _simulate(workload: Workload, parameters: Parameters, cancelled: Callable[[], bool]) -> Simulation:
    if parameters.network not in NETWORKS:
        raise UsageError(
            f"--network {printable(parameters.network, 60)}: one of {', '.join(NETWORKS)} is expected"
        )
    choice = choose_cluster(parameters)
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
    durations = prices.durations(program, folding)
    try:
        times = run_engine(program, folding, durations, cancelled)
    except OverflowError:
        raise UsageError("the step would take 2^63 ns (292 years) or more: too long for its times") from None
    timeline = Timeline(program, folding, times)
    flat = _flat_groups(workload, folding)
    zero = _zero_step(workload, timeline)
    diagnostics = (*workload.diagnostics, *found, *cluster_found, *program_found, *flat, *zero)
    return Simulation(workload, parameters, layout, cluster, timeline, diagnostics)


def _zero_step(workload: Workload, timeline: Timeline) -> list[Diagnostic]:
    """A step of 0 ns is never left without a word."""
    if timeline.step_time_ns:
        return []
    ops = timeline.ops_simulated
    why = (
        "all that runs takes 0 ns"
        if ops
        else "no row runs: nothing computes, and no group of two communicates"
    )
    return [Diagnostic("warning", "zero-step", f"the step takes 0 ns: {why}", workload.path)]


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
    if group == "pp":
        return _transfer_alone_ns(simulation, size)
    priced = [
        scaled(collective_ns(simulation.cluster, shape, collective, size), simulation.parameters.comm_scale)
        for shape in _shapes(simulation, group, size)
    ]
    return max(priced, default=0)


def _transfer_alone_ns(simulation: Simulation, size: int) -> int:
    """ns of one transfer to a neighbouring stage, scaled: the slowest link of the run; 0 without one."""
    links = [link for found in simulation.timeline.classes for link in found.links.values()]
    alone = [transfer_ns(simulation.cluster, link.shape, size) for link in links]
    return scaled(max(alone, default=0), simulation.parameters.comm_scale)


def explain_alone(simulation: Simulation, collective: str, group: GroupKind, size: int) -> str:
    """Where `collective_alone_ns` comes from, in one or two lines of text."""
    if group == "pp":
        return f"send-recv of {size} B to a neighbouring stage: the slowest link of the run"
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
