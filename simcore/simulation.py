"""One run, from a workload and parameters to its timeline: the caller of all rooms.

Import from here: `simulate`, `Simulation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.cluster import (
    DEFAULT_PRESET,
    Cluster,
    ClusterChoice,
    TransferShape,
    changes_of_default,
    choose_cluster,
    group_shape,
)
from simcore.collectives import NAMES
from simcore.collectives.exact import scaled
from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.folding import Folding, fold
from simcore.layout import Layout, resolve_layout
from simcore.memory import check_memory, run_bytes
from simcore.networks import (
    NETWORKS,
    Network,
    PlacedCollective,
    Sharing,
    check_flags,
    network_model,
    open_network,
)
from simcore.networks.simai import least_forward_bytes
from simcore.overrides import parse_overrides
from simcore.parameters import Parameters, refuse_others
from simcore.policies import chosen_dialect, policy_layout, with_scopes
from simcore.pricing import rounds_phases
from simcore.program import SCHEDULES, Program, build_policy_program, build_program
from simcore.program.building import MOST_OPS
from simcore.program.ops import BesideCost, CollectiveCost, TransferCost
from simcore.program.schedule_choice import with_stages_of_schedule
from simcore.records import Struct, replace
from simcore.running import DurationChange, PricedRun
from simcore.timeline import Timeline
from simcore.units import number, plural
from simcore.workload import Workload
from simcore.workload.model import GroupKind

if TYPE_CHECKING:
    from simcore.messages.network import LinkHeat, LinkUse
    from simcore.trace.spans import Trace


class Simulation(Struct, frozen=True, dict=True):
    """A run and everything it came from. diagnostics: of the file, then of the run.

    least_forward_bytes: what a smaller forward collective counts as under the run's network. links: what each
    link carried, link_heat: how busy all are over the run, of a network that has them.
    """

    workload: Workload
    parameters: Parameters
    layout: Layout
    cluster: Cluster
    network: Network
    timeline: Timeline
    diagnostics: tuple[Diagnostic, ...]
    least_forward_bytes: int = 0
    links: list[LinkUse] | None = None
    link_heat: LinkHeat | None = None

    @property
    def can_be_scheduled(self) -> bool:
        """Whether a pipeline's schedule runs the same step: of one stage under layer-loop it does, where its
        rows are micro-batches that each run once; an op table and a policy have a loop of their own.
        """
        if self.program.has_pipeline_schedule:
            return True
        once = self.layout.pp == 1 and self.parameters.passes == 1 and self.program.microbatches > 0
        return once and not self.workload.is_table and not self.program.queued

    @property
    def has_dimensions(self) -> bool:
        """Whether the network's prices depend on the dimensions of the cluster."""
        return network_model(self.parameters).place is None

    def priced_bytes(self, phase: str, size: int) -> int:
        """The bytes that the collective of a cell is priced by: `size`, or what it counts as."""
        return max(size, self.least_forward_bytes) if phase == "fwd" and size else size

    @cached_property
    def trace(self) -> Trace:
        """What ran on each rank class, whose numbers are those of its tracks."""
        # Imported here: a sweep asks for step times alone.
        from simcore.sources.simulated import simulated_trace

        return simulated_trace(self.timeline, self.workload.name)

    @property
    def program(self) -> Program:
        return self.timeline.program

    @property
    def step_time_ns(self) -> int:
        return self.timeline.step_time_ns


def simulate(
    workload: Workload, parameters: Parameters, cancelled: Callable[[], bool] = lambda: False
) -> Simulation:
    """One step of `workload` under `parameters`.

    Raises `UsageError` for parameters that cannot be, `InputError` for a workload that
    cannot be simulated, `Cancelled` when `cancelled()` becomes true.
    """
    try:
        return _simulate(workload, parameters, cancelled)
    except MemoryError:
        # It was there when it was looked for.
        raise UsageError("the memory that was free was not enough for the run") from None
    except UsageError as error:
        if parameters != Parameters():
            raise
        # Nobody asked for anything: it is the file that cannot be simulated.
        place = (workload.path, workload.header.line)
        raise InputError(Diagnostic("error", "cannot-simulate", str(error), *place, 1)) from None


def _simulate(workload: Workload, parameters: Parameters, cancelled: Callable[[], bool]) -> Simulation:
    # The workload of a run has its groups and sizes; another run begins with those of the file.
    workload = made(workload.as_written, parameters)
    model = network_model(parameters)
    unused = check_flags(parameters)
    queued = chosen_dialect(workload, parameters) == "astra-sim-1"
    if queued:
        _check_queued(parameters)
    layout, cluster, cluster_found = placed(workload, parameters)
    least_bytes = 0
    if queued:
        workload = with_scopes(workload, layout)
        program, program_found = build_policy_program(workload, layout, parameters, cluster.newest_first)
    else:
        least_bytes = least_forward_bytes(workload) if model.lifts_forward else 0
        program, program_found = build_program(workload, layout, parameters, least_bytes)
    network = open_network(parameters, layout, cluster)
    network_found = [
        diagnostic if diagnostic.file else replace(diagnostic, file=workload.path)
        for diagnostic in (*unused, *network.diagnostics(workload, program.structure))
    ]
    overrides = parse_overrides(parameters, layout.world, len(cluster.dims))
    changes: list[DurationChange] = []
    if parameters.time_scale:
        # Imported here: few runs have one.
        from simcore.time_scales import time_changes

        changes = time_changes(parameters, program, workload.name)
    folding = fold(layout, cluster, program, overrides, parameters.no_fold or model.unfolded)
    ops = sum(len(program.stages[rank_class.stage].ops) for rank_class in folding.classes)
    if ops > MOST_OPS:
        raise UsageError(
            f"{len(folding.classes)} rank classes have {ops} ops: at most {MOST_OPS} are simulated"
            + (" (without --no-fold equal ranks are simulated once)" if parameters.no_fold else "")
        )
    alike = parameters.no_fold and not parameters.jitter
    needed = run_bytes(program.stage_ops, ops, len(folding.classes), queued=program.queued, alike=alike)
    what = f"{plural(len(folding.classes), 'rank class')} with {ops} ops"
    check_memory(needed, what, "fewer micro-batches or passes would need less")
    try:
        run = PricedRun(cluster, network, program, folding, parameters, overrides, changes=changes)
        times = run.times(cancelled)
    except OverflowError:
        raise UsageError("the step would take 2^63 ns (292 years) or more: too long for its times") from None
    timeline = Timeline(program, folding, times)
    flat = [] if model.place else _flat_groups(workload, folding)
    flat += _straddling_groups(workload, cluster, folding)
    zero = _zero_step(workload, timeline)
    diagnostics = (
        *workload.diagnostics, *cluster_found, *program_found, *network_found, *flat, *zero
    )  # fmt: skip
    carrier = run.carrier
    links, heat = (None, None) if carrier is None else (carrier.uses(), carrier.heat())
    return Simulation(
        workload, parameters, layout, cluster, network, timeline, diagnostics, least_bytes, links, heat
    )


def made(workload: Workload, parameters: Parameters) -> Workload:
    """The workload of a run: of a model the rows that these parameters make, of a file its own.

    Raises `UsageError` for parameters that such an input does not have.
    """
    refuse_others(parameters, "workload" if workload.maker is None else "model")
    if workload.maker is None and (parameters.gpu is not None or parameters.memory_limit is not None):
        _check_recovered(workload, parameters)
    if parameters.without_lines:
        # Imported here, as below: few runs ask for it.
        from simcore.workload.without_lines import without_lines

        workload = without_lines(workload, parameters.without_lines)
    if parameters.rescale == "on":
        return _rescaled(workload, parameters)
    return workload if workload.maker is None else workload.maker.workload(parameters)


def _check_recovered(workload: Workload, parameters: Parameters) -> None:
    """Raises `UsageError` where a GPU is given to a file whose model is not known."""
    if parameters.gpu is None:
        raise UsageError("--memory-limit of a file goes with --gpu: --gpu NAME|FILE would fit")
    # Imported here, as below: few runs ask for it.
    from simcore.recovery.rescale import known

    recovered = known(workload) if workload.dialect == "simai" else None
    if recovered is None or recovered.config is None:
        why = recovered.line() if recovered is not None else f"not AICB's: found {workload.format}"
        raise UsageError(f"--gpu: {printable(workload.path, 60)} is {why}; --model NAME|FILE would fit")


def _rescaled(workload: Workload, parameters: Parameters) -> Workload:
    """The rows of a file for the degrees that are asked for, as AICB would write them."""
    if chosen_dialect(workload, parameters) == "astra-sim-1":
        raise UsageError("--rescale on is of dialect simai: found astra-sim-1; off would fit")
    # Imported here: few runs ask for it.
    from simcore.recovery.rescale import rescaled

    rescaling = rescaled(workload, parameters)
    return workload if rescaling is None else rescaling.workload


def place(workload: Workload, parameters: Parameters) -> tuple[Layout, Cluster, list[Diagnostic]]:
    """The ranks and the network of the run of `workload` under `parameters`, and what was assumed for them.

    Without a program or times: a thousandth of the run. Raises as `simulate` does.
    """
    return placed(made(workload.as_written, parameters), parameters)


def placed(workload: Workload, parameters: Parameters) -> tuple[Layout, Cluster, list[Diagnostic]]:
    """`place`, of a workload as `made` gives it, whose rows are not made a second time."""
    model = network_model(parameters)
    given = None
    if workload.maker is not None and not parameters.dim and parameters.cluster is None:
        given = workload.maker.network(parameters)
    choice = choose_cluster(parameters, given)
    queued = chosen_dialect(workload, parameters) == "astra-sim-1"
    if queued:
        layout, diagnostics = policy_layout(workload, parameters, choice.npus, choice.first_dimension)
    else:
        of_stages, found_stages = with_stages_of_schedule(workload, parameters)
        layout, diagnostics = resolve_layout(workload, of_stages, choice.npus)
        diagnostics = [*found_stages, *diagnostics]
    if model.place:
        cluster, cluster_found = model.place(parameters, layout), choice.diagnostics
    else:
        cluster, cluster_found = _cluster(workload, choice, layout, parameters)
    if queued:
        cluster = replace(cluster, last_chunk_is_rest=True)
    return layout, cluster, [*diagnostics, *cluster_found]


def _check_queued(parameters: Parameters) -> None:
    """Raises `UsageError` for a network model that the queues of dialect astra-sim-1 cannot have."""
    if not network_model(parameters).queues:
        fitting = " or ".join(name for name, model in NETWORKS.items() if model.queues)
        raise UsageError(
            f"--network {printable(parameters.network, 60)}: dialect astra-sim-1 has its own queues, "
            f"{fitting} fits (--dialect simai takes the rows as SimAI does)"
        )


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
    workload: Workload, choice: ClusterChoice, layout: Layout, parameters: Parameters
) -> tuple[Cluster, tuple[Diagnostic, ...]]:
    """The cluster of a run: the one given, else the default one, which is said; also of `--dim` alone what it
    has of the default one: a form that changes one figure gives all of them.
    """
    cluster = choice.cluster(layout.world)
    diagnostics = choice.diagnostics
    if choice.is_default:
        text = " x ".join(f"{dimension.kind} {dimension.size}" for dimension in cluster.dims)
        message = f"no cluster given: assuming {DEFAULT_PRESET} ({text})"
        brief = f"cluster {DEFAULT_PRESET}: none given"
        said = Diagnostic("note", "cluster-default", message, workload.path, brief=brief)
        diagnostics = (*diagnostics, said)
    elif parameters.dim and parameters.cluster is parameters.system is None and workload.maker is None:
        changed = changes_of_default(cluster.dims, layout.world)
        if changed is not None:
            message = f"no --cluster given: the dimensions are those of {DEFAULT_PRESET}, the default"
            message += f", but {', '.join(changed)}" if changed else ""
            brief = f"cluster {DEFAULT_PRESET}{', changed' * bool(changed)}"
            said = Diagnostic("note", "cluster-default", message, workload.path, brief=brief)
            diagnostics = (*diagnostics, said)
    return cluster, diagnostics


def _flat_groups(workload: Workload, folding: Folding) -> list[Diagnostic]:
    """What is said of groups that are no grid of the cluster, one note a kind."""
    kinds = dict.fromkeys(group_class.kind for group_class in folding.group_classes if group_class.shape.flat)
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


def _straddling_groups(workload: Workload, cluster: Cluster, folding: Folding) -> list[Diagnostic]:
    """What is said of groups that lie on two servers (or racks) where others of their kind lie on one."""
    inside = cluster.dims[0].size
    lies: dict[GroupKind, set[bool]] = {}
    for group_class in folding.group_classes:
        if len(cluster.dims) > 1 and group_class.shape.members > 1:
            crossings = group_class.shape.crossings
            within = all(crossing.dimension == 0 for crossing in crossings)
            lies.setdefault(group_class.kind, set()).add(within)
    return [
        Diagnostic(
            "note",
            "group-straddles",
            f"some {kind} groups lie within {inside} ranks of dimension 0 and others across two such, "
            f"which pay for dimension 1: groups of a size that divides {inside} would not",
            workload.path,
        )
        for kind, within in lies.items()
        if len(within) == 2
    ]


def collective_alone_ns(simulation: Simulation, collective: str, group: GroupKind, size: int) -> int:
    """ns of one collective alone on the idle network, scaled; `size` is the whole buffer in bytes.

    Where groups of one kind are placed differently, the slowest of them; 0 for a collective
    that makes no op (0 bytes, a group of one).
    """
    if group == "pp":
        return _transfer_alone_ns(simulation, size)
    if group == "offload":
        return scaled(round(size / simulation.workload.host_link), simulation.parameters.comm_scale)
    price, scale = simulation.network.collective_ns, simulation.parameters.comm_scale
    return max(
        [
            price(placed_collective, scale)
            for placed_collective in _placed(simulation, collective, group, size)
        ],
        default=0,
    )


def _transfer_alone_ns(simulation: Simulation, size: int) -> int:
    """ns of one transfer to a neighbouring stage, scaled: the slowest link of the run; 0 without one."""
    slowest = _slowest_link(simulation, size)
    alone = 0 if slowest is None else simulation.network.transfer_ns(slowest, (), size)
    return scaled(alone, simulation.parameters.comm_scale)


def _slowest_link(simulation: Simulation, size: int) -> TransferShape | None:
    """The link between neighbouring stages on which `size` bytes take longest; None without any."""
    links = [link.shape for rank_class in simulation.timeline.classes for link in rank_class.links.values()]
    return max(links, key=lambda shape: simulation.network.transfer_ns(shape, (), size), default=None)


def _explain_transfer(simulation: Simulation, size: int) -> str:
    slowest = _slowest_link(simulation, size)
    if slowest is None:
        return f"send-recv of {size} B: no neighbouring stage, no time"
    formula = simulation.network.explain_transfer(slowest, (), size)
    return _scaled_words(
        simulation, f"send-recv to a neighbouring stage, the slowest link of the run\n{formula}"
    )


def explain_alone(simulation: Simulation, collective: str, group: GroupKind, size: int) -> str:
    """Where `collective_alone_ns` comes from, in one or two lines of text."""
    if group == "pp":
        return _explain_transfer(simulation, size)
    if group == "offload":
        rate = number(simulation.workload.host_link)
        return _scaled_words(simulation, f"{size} B over the link to the host, {rate} GB/s")
    placed = _placed(simulation, collective, group, size)
    if not placed:
        members = simulation.layout.group_size(group)
        return f"{NAMES[collective]}, {size} B in a group of {members}: no op, no time"
    network, scale = simulation.network, simulation.parameters.comm_scale
    slowest = max(placed, key=lambda group: network.collective_ns(group, scale))
    words = _scaled_words(simulation, network.explain_collective(slowest))
    return f"{words}, each phase of a chunk rounded" if rounds_phases(network, slowest, scale) else words


def _scaled_words(simulation: Simulation, words: str) -> str:
    scale = simulation.parameters.comm_scale
    return words if scale == 1.0 else f"{words}, times comm scale {number(scale)}"


def _placed(simulation: Simulation, collective: str, group: GroupKind, size: int) -> list[PlacedCollective]:
    """A collective in each shape that groups of a kind have; none where it makes no op."""
    if not size or simulation.layout.group_size(group) == 1:
        return []
    classes = simulation.timeline.folding.group_classes
    shapes = list(dict.fromkeys(rank_class.shape for rank_class in classes if rank_class.kind == group))
    # A kind that no op of this run uses has no group classes: its first group stands for it.
    shapes = shapes or [group_shape(simulation.cluster, next(simulation.layout.groups(group)))]
    return [PlacedCollective(group, shape, (), collective, size) for shape in shapes]


# Rows that AICB writes in front of the layers, and some more.
_PROLOGUE = 16


def optimizer_first(workload: Workload) -> bool:
    """Whether a loop over the rows of AICB comes to the optimizer before the gradients are reduced: backward
    it goes through the file from its end.
    """
    rows = [name for name in workload.name[:_PROLOGUE] if name in ("grad_param_comm", "grad_param_compute")]
    return rows == ["grad_param_comm", "grad_param_compute"]


def taken_for_granted(simulation: Simulation) -> Iterator[Diagnostic]:
    """The schedule that nobody gave, where another one would be another run; one that is made for more
    micro-batches; and that compute and communication do not slow each other, where there is both.
    """
    workload, layout, program = simulation.workload, simulation.layout, simulation.program
    is_loop = workload.is_table or program.queued
    sends = any(isinstance(cost, CollectiveCost | BesideCost | TransferCost) for cost in program.costs)
    # One stage of a model runs its micro-batches in turn, whatever the schedule.
    if simulation.parameters.schedule is None and not is_loop and (layout.pp > 1 or not program.pipelined):
        message = f"no --schedule given: assuming {program.schedule}"
        if layout.pp == 1:
            message += ", as pp is 1"
        first = ""
        if not program.has_pipeline_schedule:
            message += ": all rows of the file forward, then all backward, as SimAI runs them"
            if optimizer_first(workload):
                message += ", the optimizer before the gradients are reduced"
                first = ", optimizer first"
        brief = f"schedule {program.schedule}{first}: none given"
        yield Diagnostic("note", "schedule-default", message, workload.path, brief=brief)
    schedule = SCHEDULES.get(program.schedule) if program.pipelined else None
    few = schedule.too_few(layout.pp, program.microbatches) if schedule is not None else ""
    if few:
        message, brief = f"{program.schedule} has its {few}", f"{program.schedule} with few micro-batches"
        yield Diagnostic("note", "few-microbatches-assumed", message, workload.path, brief=brief)
    if layout.world > 1 and workload.has_compute and sends:
        # Ports and links that collectives share are simulated.
        shares = program.queued or isinstance(simulation.network, Sharing)
        what = "compute beside a collective is" if shares else "compute and collectives beside it are"
        message = f"{what} taken to be as fast as alone, "
        message += "in the changes that are tried, too; a measured step would tell"
        if workload.format == "model":
            # Rows of a model count it (docs/models.md, Scale).
            message += ". Only beside gradients and weights of ZeRO 0 and 1 compute loses NCCL's SMs"
        brief = "overlap slows nothing"
        yield Diagnostic("note", "overlap-assumed", message, workload.path, brief=brief)
