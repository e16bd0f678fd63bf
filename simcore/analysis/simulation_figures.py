"""A finished simulation and everything that is computed from it, each figure once and on first use."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.analysis.accounts import IDLE_OP
from simcore.analysis.assumption_effects import (
    BACKWARD_UNSENT,
    LAYOUT_ASSUMED,
    OTHER_FILES,
    WEIGHED_CODES,
    AssumptionEffect,
    append_effect,
    find_other_file_ns,
    find_otherwise_ns,
    make_effect,
    sum_assumed_compute,
)
from simcore.analysis.blocks import add_header_fix
from simcore.analysis.equal_ranks import ClassWaiting, find_waits
from simcore.analysis.file_memory import make_memory_note
from simcore.analysis.layers import LayerLines, LayerTable
from simcore.analysis.model_use import SimulatedModel
from simcore.analysis.shape import SimulatedShape
from simcore.analysis.variants import Variants
from simcore.cached_methods import cached_method, forget
from simcore.diagnostics import Cancelled, Diagnostic, UsageError
from simcore.program.ops import COMPUTE, LANE_OF_STREAM
from simcore.setup import Setup
from simcore.simulation import Simulation, find_assumptions, simulate_like
from simcore.trace.contexts import DimensionUse, PortUse, TwoJobs
from simcore.trace.run import Run
from simcore.trace.spans import Trace
from simcore.trace.tables import Table
from simcore.trace.track import Track, sort_tracks
from simcore.workload.model import Workload, base_name
from simcore.workload.traffic import traffic_warnings

if TYPE_CHECKING:
    from simcore.analysis.dependencies import Dependencies
    from simcore.analysis.dimensions import ClassUse
    from simcore.analysis.fitting import MemorySaving
    from simcore.analysis.microbatch_passes import Pass
    from simcore.analysis.model_figures import LowerBound
    from simcore.analysis.path_words import SimulatedPath
    from simcore.flows.traffic import FlowReport
    from simcore.messages.network import LinkHeat, LinkUse
    from simcore.trace.gradients import Gradient
    from simcore.trace.ports import Ports
    from simcore.trace.trace_graph import TraceGraph


class SimulationFigures(Run):
    """The figures of a simulation, including those that runs of other kinds do not have."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation

    @property
    def setup(self) -> Setup:
        """The setup that it was simulated from."""
        return self.simulation.setup

    @property
    def trace(self) -> Trace:
        return self.simulation.trace

    @property
    def step_time_ns(self) -> int:
        """When the last rank has joined all its work, ns."""
        return self.simulation.step_time_ns

    @cached_property
    def shape(self) -> SimulatedShape:
        return SimulatedShape(self.simulation, self.tracks)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The diagnostics of the file, then of the run, with the effects of what was assumed.

        The effects of the stage layout and of what is not sent backward are there once `weigh_assumptions`
        has found them. Last are what its rows send unlike a trainer, and what every run assumes.
        """
        return self._weighed if self._weighing.is_cached else self._read_notes

    @cached_property
    def _weighed(self) -> tuple[Diagnostic, ...]:
        return tuple(
            append_effect(one, self.step_time_ns, self._effects[one.code])
            if one.code in self._effects
            else one
            for one in self._read_notes
        )

    @property
    def _effects(self) -> dict[str, AssumptionEffect]:
        """By code of a note, what the step would be otherwise, for the codes that `weigh_assumptions`
        weighed.
        """
        return self._weighing.cached_value or {}

    @cached_method
    def _weighing(self) -> dict[str, AssumptionEffect]:
        return {}

    def _find_other_ns(self, code: str) -> int | None:
        return self._effects[code].ns if code in self._effects else None

    @cached_property
    def _read_notes(self) -> tuple[Diagnostic, ...]:
        notes = (
            *(add_header_fix(one, self.simulation) for one in self.simulation.diagnostics),
            *traffic_warnings(self.simulation.workload),
            *find_assumptions(self.simulation),
            *(
                make_memory_note(self.model.file_memory, self.path)
                if self.model.model_figures is None
                else ()
            ),
        )
        return tuple(
            append_effect(
                one, self.step_time_ns, make_effect(one.code, self._find_other_file_ns(OTHER_FILES[one.code]))
            )
            if one.code in OTHER_FILES
            else one
            for one in notes
        )

    def _find_other_file_ns(self, changed: Callable[[Workload], Workload | None]) -> int | None:
        return find_other_file_ns(self.simulation, self.variants, changed)

    @property
    def other_layout_ns(self) -> int | None:
        """The step with Megatron's stage layout where another one is assumed, ns; None before
        `weigh_assumptions` has found it, and where there is none.
        """
        return self._find_other_ns(LAYOUT_ASSUMED)

    @property
    def is_layout_assumed(self) -> bool:
        """Whether it was not given which stages run the rows that a model has once."""
        return any(one.code == LAYOUT_ASSUMED for one in self.simulation.diagnostics)

    @cached_property
    def assumed_compute_ns(self) -> int:
        """The compute of the rows that a model has once and every stage runs by assumption, ns in all
        micro-batches; 0 where nothing is assumed of them.
        """
        return sum_assumed_compute(self.simulation) if self.is_layout_assumed else 0

    @property
    def with_backward_sends_ns(self) -> int | None:
        """The step with what rows do not send backward, ns; None until `weigh_assumptions` has found it."""
        return self._find_other_ns(BACKWARD_UNSENT)

    def weigh_assumptions(
        self, cancelled: Callable[[], bool] = lambda: False, include_all: bool = True
    ) -> None:
        """Finds what the step would be without what is assumed, each by a separate run: with the other stage
        layout; with `include_all` also for `WEIGHED_CODES`. Raises `Cancelled` when `cancelled()` becomes
        true.
        """
        effects = dict(self._effects)
        for code in dict.fromkeys(one.code for one in self._read_notes):
            if code not in effects and (code == LAYOUT_ASSUMED or (include_all and code in WEIGHED_CODES)):
                effects[code] = make_effect(code, self._find_otherwise_ns(code, cancelled))
        self._store_effects(effects)

    def _store_effects(self, effects: dict[str, AssumptionEffect]) -> None:
        if effects != self._effects:
            forget(self, "_weighed")
            self._weighing.store(effects)

    def _find_otherwise_ns(self, code: str, cancelled: Callable[[], bool]) -> int | None:
        if cancelled():
            raise Cancelled
        if code == LAYOUT_ASSUMED:
            return self._find_megatron_step(cancelled)
        return find_otherwise_ns(self.simulation, self.variants, code)

    @cached_property
    def tracks(self) -> tuple[Track, ...]:
        """A track for each rank class, by stage and then by rank."""
        classes = self.simulation.timeline.classes
        return sort_tracks(
            [
                Track(class_id, rank_class.stage, rank_class.ranks)
                for class_id, rank_class in enumerate(classes)
            ]
        )

    def find_stream(self, class_id: int, op: int, start_ns: int, end_ns: int) -> str | None:
        """Returns the stream whose lane shows an op of a class; None for the lane of the class, where compute
        runs it or stands still for it.
        """
        if op == IDLE_OP:
            return None
        accounts = self.accounts[class_id]
        segment = accounts.at(start_ns)
        if accounts.op[segment] == op and accounts.edge[segment] <= start_ns < end_ns:
            return None
        stream = self.simulation.timeline.stage_program(class_id).ops.stream[op]
        return None if stream == COMPUTE else LANE_OF_STREAM[stream]

    @cached_property
    def layers(self) -> LayerLines:
        """The lines of the layer table, one for each row of the file."""
        table = LayerTable(self.simulation, self.rows)
        return LayerLines(table, range(len(self.simulation.workload)), each=True)

    @cached_property
    def rows(self) -> Table:
        """The table of what each row of the file takes."""
        trace, path, slacks = self.simulation.trace, lambda: self.critical_path, lambda: self.slacks
        return Table(trace, self.accounts, trace.column("row"), path, slacks)

    @cached_property
    def layer_groups(self) -> LayerLines:
        """The lines of the layer table with equal rows together, the costliest first."""
        return LayerLines(self.layers.table, self.layers.indices, each=False)

    @cached_property
    def class_waits(self) -> list[ClassWaiting]:
        """Who waits for whom in collectives, the longest wait first."""
        return find_waits(self.simulation.timeline, self.accounts)

    @cached_property
    def critical_by_layer(self) -> dict[str, int]:
        """ns of the critical path by base name of the rows, the longest first; "" for no row."""
        from simcore.trace.critical_path import sort_longest_first, sum_by_part

        names = self.simulation.workload.name
        ns_of: dict[str, int] = {}
        for row, ns in sum_by_part(self.critical_path, self.path_source.find_row).items():
            name = base_name(names[row]) if row >= 0 else ""
            ns_of[name] = ns_of.get(name, 0) + ns
        return sort_longest_first(ns_of)

    @cached_property
    def model(self) -> SimulatedModel:
        return SimulatedModel(
            self.simulation, lambda *changes, **values: self.variants.step_ns(*changes, **values)
        )

    @cached_property
    def lower_bound(self) -> LowerBound | None:
        """The least that a model without a given schedule takes; None of any other run."""
        if self.simulation.workload.maker is None:
            return None
        from simcore.analysis.model_figures import find_lower_bound

        return find_lower_bound(self.simulation, self.accounts)

    @cached_property
    def memory_savings(self) -> tuple[MemorySaving, ...]:
        """Changes with which a model that does not fit needs less memory; none where it fits."""
        figures = self.model.model_figures
        if figures is None or figures.fits or self.simulation.workload.maker is None:
            return ()
        from simcore.analysis.fitting import find_memory_savings

        return tuple(find_memory_savings(self.simulation))

    @cached_property
    def dependencies(self) -> Dependencies:
        """The graph of what each op waited for, and what it holds back."""
        # Imported here and below: the screen opens without these modules.
        return self.compute_dependencies(lambda: False)

    @cached_method
    def compute_dependencies(self, cancelled: Callable[[], bool]) -> Dependencies:
        """Returns the graph of the run, built now unless it is there. Raises `Cancelled`."""
        from simcore.analysis.dependencies import Dependencies

        return Dependencies(self.simulation, self.fold_run(cancelled), cancelled)

    @cached_method
    def fold_run(self, cancelled: Callable[[], bool] = lambda: False) -> Simulation:
        """Returns the run with equal ranks folded: of `--no-fold` simulated anew, with the same times to the
        ns.

        Jitter leaves no ranks equal, and on links all of them count: such a run is returned as it is.
        """
        simulation = self.simulation
        parameters, needs_all = simulation.parameters, simulation.setup.rules.network.needs_all_ranks
        if parameters.no_fold and not parameters.jitter and not needs_all:
            return simulate_like(simulation, {}, cancelled)
        return simulation

    def _make_graph(self, cancelled: Callable[[], bool]) -> TraceGraph:
        return self.compute_dependencies(cancelled).graph

    @cached_property
    def path_source(self) -> SimulatedPath:
        """The words for its critical path."""
        from simcore.analysis.path_words import SimulatedPath

        return SimulatedPath(self.simulation, self.dependencies)

    @property
    def has_slack(self) -> bool:
        """Whether there is slack: in queues (dialect astra-sim-1) the order depends on times."""
        return not self.simulation.program.queued

    @cached_method
    def compute_slacks(self, cancelled: Callable[[], bool]) -> Sequence[array[int]] | None:
        if not self.has_slack:
            return None
        from simcore.trace.trace_graph import compute_slack

        slacks = compute_slack(self._compute_graph(cancelled), cancelled)
        if self.fold_run() is not self.simulation:
            class_of = self.fold_run().timeline.folding.class_of
            classes = self.simulation.timeline.classes
            slacks = [slacks[class_of(rank_class.ranks.first)] for rank_class in classes]
        return slacks

    @cached_property
    def gradients(self) -> list[Gradient] | None:
        """The slopes of the step time over each scale; None where there is no slack (`slacks`)."""
        if not self.has_slack:
            return None
        from simcore.analysis.slack import compute_gradients

        return compute_gradients(self.fold_run(), self.dependencies.graph)

    @cached_property
    def class_uses(self) -> list[ClassUse]:
        """What a rank of each class sends over the dimensions of the network, by class id."""
        from simcore.analysis.dimensions import compute_class_uses

        return compute_class_uses(self.simulation)

    @cached_property
    def dimensions(self) -> list[DimensionUse]:
        """The traffic of each dimension of the network; empty on SimAI's, which have none, and under flows,
        whose ports are those of links.
        """
        if self.flow_report is not None:
            return []
        from simcore.analysis.dimensions import compute_dimension_use

        return compute_dimension_use(self.simulation, self.class_uses)

    @property
    def link_heat(self) -> LinkHeat | None:
        """How busy all links are over the run, of a network that has links."""
        return self.simulation.link_heat

    @property
    def flow_report(self) -> FlowReport | None:
        """What flows sent over the links of a topology; None without flows."""
        return self.simulation.flow_report

    @cached_property
    def slowed_step_ns(self) -> int | None:
        """The step time under congestion control; None where it would change nothing or is not told."""
        if self.flow_report is None:
            return None
        from simcore.networks.flows import FlowNetwork

        network = self.simulation.network
        if not isinstance(network, FlowNetwork) or network.slowed_rules(self.flow_report) is None:
            return None
        return simulate_like(self.simulation, {"congestion": "dcqcn"}).step_time_ns

    @cached_property
    def ports(self) -> Ports | None:
        """What each port carried; None of a network without links."""
        if self.links is None and self.flow_report is None:
            return None
        from simcore.analysis.ports import find_ports

        return find_ports(self.simulation)

    @cached_property
    def two_jobs(self) -> TwoJobs | None:
        """How this job and another one on the same topology slow each other down; None without another."""
        if self.simulation.other_job is None or self.ports is None:
            return None
        from simcore.analysis.ports import find_two_jobs

        return find_two_jobs(self.simulation, self.ports)

    @property
    def links(self) -> Sequence[LinkUse] | None:
        """What each link carried, of a network that has links."""
        return self.simulation.links

    @cached_property
    def busiest_port(self) -> PortUse | None:
        """The port that is busy longest, None where nothing is sent over dimensions, and under flows."""
        if self.flow_report is not None:
            return None
        from simcore.analysis.dimensions import find_busiest_port

        return find_busiest_port(self.simulation, self.class_uses)

    @cached_property
    def variants(self) -> Variants:
        """The same workload with other parameters."""
        return Variants(self.fold_run(), lambda: self.dependencies)

    @cached_property
    def _passes(self) -> dict[int, list[Pass]]:
        return {}

    def passes(self, class_id: int) -> list[Pass]:
        """Returns when a class does the forward and backward of each micro-batch: see `Pass`."""
        if class_id not in self._passes:
            # Imported here: a report names no pass.
            from simcore.analysis.microbatch_passes import find_passes

            self._passes[class_id] = find_passes(self.simulation.timeline, class_id)
        return self._passes[class_id]

    @cached_property
    def megatron_step_ns(self) -> int | None:
        """The step time with Megatron's stage layout, ns.

        None where it is used, where it cannot be (the rows that it leaves out of stages may hold collectives
        over all ranks), where there is no pipeline, and under jitter, which makes the second run as long as
        the first.
        """
        return self._find_megatron_step(lambda: False)

    @cached_method
    def _find_megatron_step(self, cancelled: Callable[[], bool]) -> int | None:
        simulation = self.simulation
        if not simulation.program.has_pipeline_schedule or simulation.layout.pp == 1:
            return None
        megatron = bool(simulation.workload.stages) or simulation.parameters.stage_layout == "megatron"
        if megatron or simulation.parameters.jitter > 0 or simulation.has_many_flows:
            return None
        try:
            return simulate_like(simulation, {"stage_layout": "megatron"}, cancelled).step_time_ns
        except UsageError:
            return None

    @property
    def step_end_ns(self) -> list[int]:
        """When each step of a pipeline was over on its last rank, ns; empty for a single step."""
        timeline = self.simulation.timeline
        if timeline.program.steps == 1 or not timeline.program.has_pipeline_schedule:
            return []
        return [max(ends) for ends in zip(*timeline.times.pass_ends, strict=True)]

    @property
    def pass_end_ns(self) -> list[int]:
        """When each pass of a layer-loop was over, ns (asynchronous collectives may still run)."""
        timeline = self.simulation.timeline
        if timeline.program.schedule != "layer-loop":
            return []
        return [max(ends) for ends in zip(*timeline.times.pass_ends, strict=True)]
