"""One simulated run, from a workload and parameters to its timeline: the caller of all rooms.

Import from here: `simulate`, `simulate_setup`, `Simulation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from simcore.cluster import Cluster, TransferShape, group_shape
from simcore.collectives import NAMES
from simcore.collectives.exact import scaled
from simcore.diagnostics import Diagnostic, InputError, UsageError
from simcore.engine import Times
from simcore.engine.pricing import rounds_phases
from simcore.engine.running import DurationChange, RunPricing
from simcore.engine.timeline import Timeline
from simcore.folding import Folding, fold
from simcore.layout import Layout
from simcore.networks import GroupCollective, Network, Sharing, check_flags
from simcore.networks.model import MOST_BALANCED_RANKS
from simcore.parameters import Parameters, SetupValue
from simcore.program import SCHEDULES, Program, build_policy_program, build_program
from simcore.program.building import MOST_OPS
from simcore.program.ops import CollectiveCost, OverlapCost, TransferCost
from simcore.records import NamedTuple, Struct, replace
from simcore.setup import Setup
from simcore.units import format_number, plural
from simcore.workload import Workload
from simcore.workload.memory import check_memory, run_bytes
from simcore.workload.model import GroupKind

if TYPE_CHECKING:
    from simcore.flows.traffic import FlowReport
    from simcore.messages.network import LinkHeat, LinkUse
    from simcore.program.order import Order
    from simcore.trace.spans import Trace


# Memory was free when it was checked, and was taken by another process since.
_NO_MEMORY = "the memory that was free was not enough for the run"


class Simulation(SetupValue, Struct, frozen=True, dict=True):
    """A run and everything it came from."""

    setup: Setup
    """What was run."""
    network: Network
    """The network of the run."""
    timeline: Timeline
    """The start and end of every op."""
    diagnostics: tuple[Diagnostic, ...]
    """Of the file, then of the run."""
    links: list[LinkUse] | None = None
    """The traffic of each link; None on a network without links."""
    link_heat: LinkHeat | None = None
    """How busy all links are over the run; None on a network without links."""
    flow_report: FlowReport | None = None
    """What flows sent over the links of a topology; None without flows."""
    other_job: Simulation | None = None
    """The run of the other job on the same topology, at the same time; None without one."""

    @property
    def workload(self) -> Workload:
        return self.setup.workload

    @property
    def layout(self) -> Layout:
        return self.setup.layout

    @property
    def cluster(self) -> Cluster:
        return self.setup.cluster

    @property
    def can_be_scheduled(self) -> bool:
        """Whether a pipeline's schedule runs the same step.

        One stage under layer-loop has such a schedule where its rows are micro-batches that each run once; an
        op table and a policy have a loop of their own.
        """
        if self.workload.header.inference:
            return False
        if self.program.has_pipeline_schedule:
            return True
        once = self.layout.pp == 1 and self.setup.schedule.passes == 1 and self.program.microbatches > 0
        return once and not self.workload.is_table and not self.program.queued

    @property
    def has_many_flows(self) -> bool:
        """Whether it took 10 s or more, as flows of all ranks that only an explicit network runs."""
        if self.flow_report is None or not self.setup.has_all_ranks:
            return False
        # Imported here: as in `_simulate`.
        from simcore.networks.flows import MOST_FLOWS_AT_FIRST

        return self.flow_report.flows > MOST_FLOWS_AT_FIRST

    @property
    def has_dimensions(self) -> bool:
        """Whether the network's prices depend on the dimensions of the cluster."""
        return self.setup.rules.network.make_cluster is None

    def priced_bytes(self, phase: str, size: int) -> int:
        """Returns the bytes that the collective of a cell is priced by: `size`, or the least that counts."""
        return max(size, self.setup.least_forward_bytes) if phase == "fwd" and size else size

    @cached_property
    def trace(self) -> Trace:
        """What ran on each rank class; a class and its track have the same index."""
        # Imported here: a sweep needs step times alone.
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
    """Returns the run of one step of `workload` under `parameters`.

    Raises `UsageError` for parameters that cannot be used, `InputError` for a workload that cannot be
    simulated, `Cancelled` when `cancelled()` becomes true.
    """
    try:
        return _simulate(Setup(workload, parameters), cancelled)
    except MemoryError:
        raise UsageError(_NO_MEMORY) from None
    except UsageError as error:
        if parameters != Parameters():
            raise
        # No parameter was given: it is the file that cannot be simulated.
        location = (workload.path, workload.header.line)
        raise InputError(Diagnostic("error", "cannot-simulate", str(error), *location, 1)) from None


def simulate_setup(setup: Setup, cancelled: Callable[[], bool] = lambda: False) -> Simulation:
    """Returns the run of a setup.

    Raises as `simulate` does, but `UsageError` also where the file is the cause.
    """
    try:
        return _simulate(setup, cancelled)
    except MemoryError:
        raise UsageError(_NO_MEMORY) from None


def simulate_like(
    base: Simulation,
    fields: Mapping[str, Any],
    cancelled: Callable[[], bool] = lambda: False,
    workload: Workload | None = None,
) -> Simulation:
    """Returns a run with other values of some fields of its `Parameters`, to be compared with it.

    What the base left to its size, which network it has and whether equal ranks are simulated once, is as in
    the base where it can be: then the difference is that of the parameters.

    workload: by default that of the base. Raises as `simulate_setup` does.
    """
    parameters = replace(base.parameters, **fields)
    if not base.setup.rules.network.needs_all_ranks:
        # Folding gives the same figure at a fraction of the cost.
        parameters = replace(parameters, no_fold=False)
    opened = base.workload if workload is None else workload
    return simulate_setup(Setup(opened, parameters, as_in=base.setup.network_choice), cancelled)


def other_method(base: Simulation, other: Simulation) -> str:
    """Returns the networks of two runs in words, "" where nothing but their parameters differs."""
    base_setup, other_setup = base.setup, other.setup
    if base_setup.method_words == other_setup.method_words:
        return ""
    is_stated = any(
        getattr(base.parameters, name) != getattr(other.parameters, name)
        for name in ("network", "ecmp", "cluster", "no_fold")
    )
    return "" if is_stated else f"{other_setup.method_words}, before {base_setup.method_words}"


def network_fields_of(simulation: Simulation) -> dict[str, Any]:
    """Returns the fields of `Parameters` that give a run of `simulate_like` its network where it would have
    another one by itself. None do where only the number of flows makes few ranks be simulated once.
    """
    setup, network = simulation.setup, simulation.network
    if setup.as_in is None or simulation.parameters.network is not None or simulation.flow_report is None:
        return {}
    # Imported here: as in `_simulate`.
    from simcore.networks.flows import MOST_FLOWS_AT_FIRST, FlowNetwork

    assert isinstance(network, FlowNetwork)
    is_large = network.count_flows(simulation.program, simulation.timeline.folding) > MOST_FLOWS_AT_FIRST
    choice = setup.network_choice
    if is_large == choice.folds or (choice.folds and setup.layout.world <= MOST_BALANCED_RANKS):
        return {}
    return {"network": "flows", "ecmp": choice.ecmp}


def _simulate(setup: Setup, cancelled: Callable[[], bool]) -> Simulation:
    """Returns the run of a setup, on the first of its networks whose flows are not too many."""
    if setup.next_choice is None:
        return _search(setup, cancelled)
    # Imported here: most runs have no flows.
    from simcore.networks.flows import TooManyFlows

    try:
        return _search(setup, cancelled)
    except TooManyFlows as refused:
        return _simulate(setup.without_flows(str(refused)), cancelled)


def _search(setup: Setup, cancelled: Callable[[], bool]) -> Simulation:
    """Returns the run of a setup, in the order with the shorter step where its schedule is searched."""
    orders: tuple[Order | None, ...] = (None,)
    if setup.is_searched:
        # Imported here: few runs search their order.
        from simcore.engine.searched_orders import find_orders

        orders = find_orders(setup)
    runs = (_run(setup, order, cancelled) for order in orders)
    return min(runs, key=lambda simulation: simulation.step_time_ns)


class PricedRun(NamedTuple):
    """A run before it is timed."""

    setup: Setup
    network: Network
    pricing: RunPricing
    program: Program
    folding: Folding
    diagnostics: tuple[Diagnostic, ...]
    """What its program and its network have found."""

    def simulated(self, times: Times, other_job: Simulation | None = None) -> Simulation:
        """Returns the run with its times."""
        setup, workload = self.setup, self.setup.workload
        timeline = Timeline(self.program, self.folding, times)
        flat = [] if setup.rules.network.make_cluster else _flat_groups(workload, self.folding)
        flat += _straddling_groups(workload, setup.cluster, self.folding)
        zero = _zero_step(workload, timeline)
        diagnostics = (*workload.diagnostics, *setup.placement.diagnostics, *self.diagnostics, *flat, *zero)
        transport = self.pricing.transport
        links, heat = (None, None) if transport is None else (transport.uses(), transport.heat())
        flow_report = None if transport is None else transport.flow_report()
        return Simulation(setup, self.network, timeline, diagnostics, links, heat, flow_report, other_job)


def _run(setup: Setup, order: Order | None, cancelled: Callable[[], bool]) -> Simulation:
    other_run = None if setup.other_job is None else _price(setup.other_job, None)
    priced_run = _price(setup, order, other_run)
    try:
        times = priced_run.pricing.times(cancelled)
    except OverflowError:
        raise UsageError("the step would take 2^63 ns (292 years) or more: too long for its times") from None
    if other_run is None:
        return priced_run.simulated(times)
    assert other_run.pricing.other_times is not None
    return priced_run.simulated(times, other_run.simulated(other_run.pricing.other_times))


def price_other_job(simulation: Simulation) -> RunPricing | None:
    """Returns the other job of a run, priced, for further runs beside it; None without one."""
    other = simulation.other_job
    if other is None:
        return None
    folding = other.timeline.folding
    return RunPricing(other.cluster, other.network, other.program, folding, other.setup.overrides)


def _price(setup: Setup, order: Order | None, other_run: PricedRun | None = None) -> PricedRun:
    workload, layout, cluster, overrides = setup.workload, setup.layout, setup.cluster, setup.overrides
    unused = check_flags(setup.rules.network, setup.network, setup.schedule.explicit_names)
    program, program_found = _build_program(setup, order)
    network = setup.open_network()
    network_found = [
        diagnostic if diagnostic.file else replace(diagnostic, file=workload.path)
        for diagnostic in (*unused, *network.diagnostics(workload, program.structure))
    ]
    changes: list[DurationChange] = []
    if overrides.time_scales:
        # Imported here: few runs have one.
        from simcore.engine.time_scales import time_changes

        changes = time_changes(overrides.time_scales, program, workload.name)
    if setup.next_choice is not None and setup.next_choice.name == "flows":
        _check_flows(setup, network, program)
    folding = fold(layout, cluster, program, overrides, setup.unfolded)
    check_size(setup, program, folding)
    try:
        other_job = None if other_run is None else other_run.pricing
        pricing = RunPricing(
            cluster, network, program, folding, overrides, changes=changes, other_job=other_job
        )
    except OverflowError:
        raise UsageError("the step would take 2^63 ns (292 years) or more: too long for its times") from None
    return PricedRun(setup, network, pricing, program, folding, (*program_found, *network_found))


def _check_flows(setup: Setup, network: Network, program: Program) -> None:
    """Raises `TooManyFlows` where the next network of the setup has far fewer."""
    # Imported here: as in `_simulate`.
    from simcore.networks.flows import FlowNetwork

    if isinstance(network, FlowNetwork) and setup.has_all_ranks:
        folding = fold(setup.layout, setup.cluster, program, setup.overrides, False)
        network.check_flows(program, folding, setup.as_in is not None)


def _build_program(setup: Setup, order: Order | None) -> tuple[Program, list[Diagnostic]]:
    """Returns the program of a run, by the rules of its dialect, and what was assumed for it."""
    workload, layout, scales = setup.workload, setup.layout, setup.overrides.layer_scales
    if setup.rules.queued:
        return build_policy_program(workload, layout, setup.schedule, setup.cluster.newest_first, scales)
    program, notes = build_program(workload, layout, setup.schedule, scales, setup.least_forward_bytes, order)
    if setup.rules.is_one_stream:
        program = replace(program, after_ns=workload.process_ns)
    return program, notes


def check_size(setup: Setup, program: Program, folding: Folding) -> None:
    """Raises `UsageError` for more ops than are simulated, or than there is memory for."""
    classes, no_fold = len(folding.classes), setup.parameters.no_fold
    ops = sum(len(program.stages[rank_class.stage].ops) for rank_class in folding.classes)
    if ops > MOST_OPS:
        raise UsageError(
            f"{classes} rank classes have {ops} ops: at most {MOST_OPS} are simulated"
            + (" (without --no-fold equal ranks are simulated once)" if no_fold else "")
        )
    has_equal_ranks = no_fold and not setup.overrides.jitter and not program.packings
    needed = run_bytes(
        program.stage_ops, ops, classes, queued=program.queued, has_equal_ranks=has_equal_ranks
    )
    what = f"{plural(classes, 'rank class')} with {ops} ops"
    check_memory(needed, what, "fewer micro-batches or passes would need less")


def _zero_step(workload: Workload, timeline: Timeline) -> list[Diagnostic]:
    """Returns a warning for a step of 0 ns, with its cause."""
    if timeline.step_time_ns:
        return []
    ops = timeline.ops_simulated
    why = (
        "all that runs takes 0 ns"
        if ops
        else "no row runs: nothing computes, and no group of two communicates"
    )
    return [Diagnostic("warning", "zero-step", f"the step takes 0 ns: {why}", workload.path)]


def _flat_groups(workload: Workload, folding: Folding) -> list[Diagnostic]:
    """Returns a note for each kind with groups that are no grid of the cluster."""
    kinds = dict.fromkeys(
        group_class.kind for group_class in folding.group_classes if group_class.shape.is_flat
    )
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
    """Returns a note for each kind with groups on two servers (or racks) and others on one."""
    inside = cluster.dims[0].size
    within_by_kind: dict[GroupKind, set[bool]] = {}
    for group_class in folding.group_classes:
        if len(cluster.dims) > 1 and group_class.shape.members > 1:
            group_dimensions = group_class.shape.dimensions
            within = all(group_dimension.dimension == 0 for group_dimension in group_dimensions)
            within_by_kind.setdefault(group_class.kind, set()).add(within)
    return [
        Diagnostic(
            "note",
            "group-straddles",
            f"some {kind} groups lie within {inside} ranks of dimension 0 and others across two such, "
            f"which pay for dimension 1: groups of a size that divides {inside} would not",
            workload.path,
        )
        for kind, within in within_by_kind.items()
        if len(within) == 2
    ]


def collective_alone_ns(simulation: Simulation, collective: str, group: GroupKind, size: int) -> int:
    """Returns the time of one collective alone on the idle network, scaled, ns.

    size: the whole buffer, bytes. Where groups of one kind are placed differently, the time of the slowest; 0
    for a collective that makes no op (0 bytes, a group of one).
    """
    if group == "pp":
        return _transfer_alone_ns(simulation, size)
    if group == "offload":
        return scaled(round(size / simulation.workload.host_link), simulation.setup.overrides.comm_scale)
    price, scale = simulation.network.collective_ns, simulation.setup.overrides.comm_scale
    return max(
        [
            price(placed_collective, scale)
            for placed_collective in _list_collectives(simulation, collective, group, size)
        ],
        default=0,
    )


def _transfer_alone_ns(simulation: Simulation, size: int) -> int:
    """Returns the time of one transfer to a neighbouring stage on the slowest link of the run, scaled, ns; 0
    without a link.
    """
    slowest = _slowest_link(simulation, size)
    alone = 0 if slowest is None else simulation.network.transfer_ns(slowest, (), size)
    return scaled(alone, simulation.setup.overrides.comm_scale)


def _slowest_link(simulation: Simulation, size: int) -> TransferShape | None:
    """Returns the link between neighbouring stages on which `size` bytes take longest; None without any."""
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
    """Returns how `collective_alone_ns` is computed, in one or two lines of text."""
    if group == "pp":
        return _explain_transfer(simulation, size)
    if group == "offload":
        rate = format_number(simulation.workload.host_link)
        return _scaled_words(simulation, f"{size} B over the link to the host, {rate} GB/s")
    collectives = _list_collectives(simulation, collective, group, size)
    if not collectives:
        members = simulation.layout.group_size(group)
        return f"{NAMES[collective]}, {size} B in a group of {members}: no op, no time"
    network, scale = simulation.network, simulation.setup.overrides.comm_scale
    slowest = max(collectives, key=lambda group: network.collective_ns(group, scale))
    words = _scaled_words(simulation, network.explain_collective(slowest))
    return f"{words}, each phase of a chunk rounded" if rounds_phases(network, slowest, scale) else words


def _scaled_words(simulation: Simulation, words: str) -> str:
    scale = simulation.setup.overrides.comm_scale
    return words if scale == 1.0 else f"{words}, times comm scale {format_number(scale)}"


def _list_collectives(
    simulation: Simulation, collective: str, group: GroupKind, size: int
) -> list[GroupCollective]:
    """Returns a collective in each shape that groups of a kind have; none where it makes no op."""
    if not size or simulation.layout.group_size(group) == 1:
        return []
    classes = simulation.timeline.folding.group_classes
    shapes = list(dict.fromkeys(rank_class.shape for rank_class in classes if rank_class.kind == group))
    # A kind that no op of this run uses has no group classes: its first group stands for it.
    shapes = shapes or [group_shape(simulation.cluster, next(simulation.layout.groups(group)))]
    return [GroupCollective(group, shape, (), collective, size) for shape in shapes]


# The rows that AICB writes in front of the layers are among this many first ones.
_PROLOGUE = 16


def runs_optimizer_first(workload: Workload) -> bool:
    """Returns whether a loop over the rows of AICB runs the optimizer before the reduction of gradients: in
    backward it goes through the file from its end.
    """
    rows = [name for name in workload.name[:_PROLOGUE] if name in ("grad_param_comm", "grad_param_compute")]
    return rows == ["grad_param_comm", "grad_param_compute"]


def find_assumptions(simulation: Simulation) -> Iterator[Diagnostic]:
    """Returns notes on what a run assumes about its schedule and about overlap.

    A default schedule where another one would change the run; a schedule that is made for more micro-batches;
    and that compute and communication do not slow each other, where there is both.
    """
    workload, layout, program = simulation.workload, simulation.layout, simulation.program
    is_loop = workload.is_table or program.queued
    sends = any(isinstance(cost, CollectiveCost | OverlapCost | TransferCost) for cost in program.costs)
    # One stage of a model runs its micro-batches in turn, whatever the schedule.
    requested_schedule = simulation.setup.schedule.schedule
    is_loop = is_loop or workload.header.inference
    if requested_schedule is None and not is_loop and (layout.pp > 1 or not program.pipelined):
        message = f"no --schedule given: assuming {program.schedule}"
        if layout.pp == 1:
            message += ", as pp is 1"
        first = ""
        if not program.has_pipeline_schedule:
            message += ": all rows of the file forward, then all backward, as SimAI runs them"
            if runs_optimizer_first(workload):
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
        # On such networks the sharing of ports and links by collectives is simulated.
        shares = program.queued or isinstance(simulation.network, Sharing)
        what = "compute beside a collective is" if shares else "compute and collectives beside it are"
        message = f"{what} taken to be as fast as alone, "
        message += "in the changes that are tried, too; a measured step would tell"
        if workload.format == "model" and not workload.header.inference:
            # Rows of a model include it (docs/models.md, Scale).
            message += ". Only beside gradients and weights of ZeRO 0 and 1 compute loses NCCL's SMs"
        brief = "overlap slows nothing"
        yield Diagnostic("note", "overlap-assumed", message, workload.path, brief=brief)
