"""The figures of a simulated run in the form that all runs have, and the values of its parameters.

See `simcore/trace/figures.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from simcore.analysis.equal_ranks import find_longest_wait
from simcore.analysis.layer_order import find_longest_span
from simcore.cluster import parameter_values
from simcore.collectives import collectives_of
from simcore.compat.simai_network import simai_bandwidths
from simcore.names import STAGE_LAYOUTS
from simcore.program.ops import OFFLOAD, RANK_STREAMS
from simcore.records import replace
from simcore.simulation import Simulation
from simcore.sources.simulated import ACCOUNTS, EXPOSED_KINDS, FIRST_EXPOSED
from simcore.trace.accounts import used_accounts
from simcore.trace.figures import Insight, Origin, StreamUse, WaitFor, throughput_words
from simcore.trace.findings import TrackInterval
from simcore.trace.layers import LayerUse
from simcore.trace.run import Figures
from simcore.trace.streams import TrackStreams, compute_stream, track_streams
from simcore.trace.track import RARE_ACCOUNTS, TimedPass
from simcore.trace.worst import Contexts, find_busiest_link, find_worst_findings
from simcore.units import duration
from simcore.workload.model import base_name

if TYPE_CHECKING:
    from simcore.analysis.path_words import SimulatedPath
    from simcore.analysis.simulation_figures import SimulationFigures
    from simcore.layout import Layout
    from simcore.trace.contexts import EstimateLine, PortUse
    from simcore.trace.findings import Finding
    from simcore.trace.gradients import Gradient
    from simcore.trace.track import Track
    from simcore.words.sentences.model import Weighed


def find_parameters(simulation: Simulation) -> dict[str, Any]:
    """Returns the values of all parameters by field, also of those taken from the file or left at their
    default.
    """
    setup, layout, maker = simulation.setup, simulation.layout, simulation.workload.maker
    # The stages of a model have rows of their own.
    of_model = {} if maker is None else {"stage_layout": "megatron"} | maker.values(setup.model)
    return (
        replace(simulation.parameters, network=setup.network_name).as_dict(
            "workload" if maker is None else "model"
        )
        | {"stage_layout": simulation.parameters.stage_layout or STAGE_LAYOUTS[0]}
        | of_model
        | {
            "world": layout.world,
            "tp": layout.tp,
            "ep": layout.ep,
            "pp": layout.pp,
            "schedule": simulation.program.schedule,
            "microbatches": simulation.program.microbatches,
            "virtual_stages": simulation.program.virtual_stages,
            "layers": simulation.program.layers,
            "dialect": simulation.parameters.dialect or simulation.workload.dialect,
            "dim": (
                [dimension.flag() for dimension in simulation.cluster.dims]
                if simulation.has_dimensions
                else list(simulation.parameters.dim)
            ),
            **simai_bandwidths(setup.network),
            **parameter_values(simulation.cluster),
            **({"ecmp": setup.network.ecmp} if setup.network_name == "flows" else {}),
        }
    )


class SimulatedFigures(Figures["SimulationFigures"]):
    """The figures of a simulated run."""

    kind = "simulated"
    states_shares = True
    path_groupings = ("kind", "layer", "stage", "rank")

    def __init__(self, run: SimulationFigures, sentences: Callable[[], list[Weighed]]) -> None:
        """sentences: returns those of the run, which stores them: they may need further runs."""
        super().__init__(run)
        self._sentences = sentences

    @property
    def path_source(self) -> SimulatedPath:
        return self.run.path_source

    @property
    def title(self) -> str:
        total, steady = duration(self.run.step_time_ns), self.origin.steady_step_ns
        step = f"Step time  {total}"
        if steady is not None:
            steps = self.run.shape.steps
            ends = f"the end of step {steps} less that of step {steps - 1}"
            step = f"Step time  {duration(steady)} once it runs: {ends}"
        figures = self.run.model.model_figures
        # Of an inference step tokens are what counts.
        is_inference = figures is not None and figures.inference is not None
        each = "" if is_inference else throughput_words(self.run.shape)
        step += f"\n           {each}" if each else ""
        if figures is None:
            return step
        # Imported here: files have no figures of a model.
        from simcore.analysis.model_figures import throughput_facts

        lines = [", ".join(throughput_facts(figures))]
        lines += [] if figures.trust is None else [figures.trust.words]
        return "\n           ".join([step, *lines])

    @property
    def facts(self) -> list[tuple[str, str]]:
        # Imported here: JSON has no facts in words.
        from simcore.words.simulated_run import facts

        return facts(self.run)

    @property
    def gradients(self) -> Sequence[Gradient] | None:
        return self.run.gradients

    def headline(self, wide: bool) -> list[str]:
        from simcore.words.simulated_run import headline

        return headline(self.run, wide)

    @property
    def insights(self) -> list[Insight]:
        return [
            Insight(sentence.rule, sentence.text_with_lead, sentence.ns) for sentence in self._sentences()
        ]

    @cached_property
    def streams(self) -> list[TrackStreams]:
        """The streams of each track, compute first."""
        return self.run.trace.map_tracks(self._find_streams)

    def _find_streams(self, track_id: int) -> TrackStreams:
        accounts = self.run.accounts[track_id]
        streams_of_track = track_streams(self.run.trace, track_id, accounts)
        others = sorted(streams_of_track.streams, key=self.stream_order)
        return streams_of_track._replace(streams=[compute_stream(accounts), *others])

    def stream_order(self, use: StreamUse) -> int:
        return RANK_STREAMS.index(use.stream)

    def peaks(self, track_id: int) -> tuple[int, int | None]:
        program = self.run.simulation.timeline.stage_program(track_id)
        is_model = self.run.simulation.workload.maker is not None
        return program.peak_microbatches, program.peak_chunks if is_model else None

    def exposed_ns(self, track_id: int) -> dict[str, int]:
        return {kind: ns for kind, ns in super().exposed_ns(track_id).items() if kind in self._exposed_kinds}

    @cached_property
    def worst_findings(self) -> list[Finding]:
        timeline, rows, wait = self.run.simulation.timeline, self.run.layer_groups, None
        if self.run.class_waits:
            longest = find_longest_wait(timeline.classes, self.run.class_waits)
            wait = WaitFor(longest.early, longest.late, longest.kind, longest.ns)
        find_rows = partial(find_longest_span, timeline)
        return find_worst_findings(
            self.run,
            Contexts(longest_wait=wait, rows=rows, find_rows=find_rows, find_sent=self._find_longest_sent),
        )

    @property
    def worst_link(self) -> Finding | None:
        return next(find_busiest_link(self.run, Contexts(find_sent=self._find_longest_sent)), None)

    def _find_longest_sent(self, port: PortUse) -> TrackInterval | None:
        from simcore.analysis.dimensions import find_longest_op

        class_id = port.rank_class
        op = find_longest_op(self.run.simulation, class_id, port.index)
        if op is None:
            return None
        _, start, end = self.run.simulation.timeline.columns(class_id)
        return TrackInterval(
            class_id, start[op], end[op], self.run.find_stream(class_id, op, start[op], end[op])
        )

    @property
    def simai_comparison(self) -> tuple[str, Sequence[EstimateLine]]:
        from simcore.compat.simai_estimate import compare_estimate

        class_id, lines = compare_estimate(self.run)
        return self.run.simulation.timeline.ranks_of(class_id).text(), lines

    def layers(self, grouped: bool) -> Sequence[LayerUse]:
        # Computed before the table is made: a page shows figures of the critical path.
        _ = self.run.rows.critical_ns, self.run.rows.slack_ns
        return self.run.layer_groups if grouped else self.run.layers

    @cached_property
    def origin(self) -> Origin:
        simulation = self.run.simulation
        workload, layout, timeline = simulation.workload, simulation.layout, simulation.timeline
        return Origin(
            workload.format, workload.policy, len(workload), workload.declared_rows,
            timeline.program.microbatches,
            self._degrees(layout),
            simulation.setup.network_name, timeline.program.schedule, find_parameters(simulation),
            self.run.pass_end_ns, timeline.spans, timeline.ops_simulated, self.run.step_end_ns,
        )  # fmt: skip

    def _degrees(self, layout: Layout) -> dict[str, int | None]:
        """Returns the degrees of the layout: context parallelism for models alone, dp as replicas."""
        degrees: dict[str, int | None] = {"tp": layout.tp, "ep": layout.ep, "dp": layout.replicas}
        degrees |= {"pp": layout.pp, "world": layout.world}
        return degrees | ({} if self.run.simulation.workload.maker is None else {"cp": layout.cp})

    @cached_property
    def account_columns(self) -> list[tuple[str, tuple[str, ...]]]:
        columns = used_accounts(self.run.accounts, self.headings, ("bubble", "idle"))
        others = [column for column in columns if column[1][0] not in ACCOUNTS[:FIRST_EXPOSED]]
        return [("compute", ACCOUNTS[:FIRST_EXPOSED]), *others]

    @cached_property
    def _exposed_kinds(self) -> set[str]:
        """The kinds of exposed communication that are listed for the run, also at 0: some are of models
        alone.
        """
        simulation = self.run.simulation
        there = {kind for kind in EXPOSED_KINDS if f"exposed {kind}" not in RARE_ACCOUNTS}
        if simulation.layout.shard:
            there |= {"dp_shard", "dp_replicate"}
        if simulation.layout.cp_inner:
            there |= {"cp_a2a", "cp_p2p"}
        if simulation.layout.ep_node:
            there |= {"ep_intra", "ep_inter"}
        if any(OFFLOAD in stage.ops.stream for stage in simulation.program.stages):
            there.add("offload")
        return there if simulation.workload.maker is not None else there - {"cp"}

    @cached_property
    def waits_for(self) -> Sequence[WaitFor]:
        classes = self.run.simulation.timeline.classes
        return [
            WaitFor(
                classes[wait.early].ranks,
                classes[wait.late].ranks,
                f"{wait.kind} collectives",
                wait.ns,
                summary=collectives_of(wait.kind),
            )
            for wait in self.run.class_waits
        ]

    def path_interval(self, index: int) -> TrackInterval:
        path = self.run.critical_path
        track_id, (start, end) = path.track[index], path.edge[index : index + 2]
        return TrackInterval(
            track_id, start, end, self.run.find_stream(track_id, path.span[index], start, end)
        )

    def passes(self, track: Track) -> list[TimedPass]:
        """Returns the passes of a rank in the order of its compute stream."""
        return [
            TimedPass(a_pass.direction, a_pass.microbatch, a_pass.part, a_pass.start_ns, a_pass.end_ns)
            for a_pass in self.run.passes(track.track_id)
        ]

    def path_words(self, index: int) -> tuple[str, str]:
        """Returns what a segment does and its row: `fwd` and attention_row, `dp all-gather` and
        grad_gather.
        """
        segment = self.run.path_source.segment(self.run.critical_path, index)
        name = base_name(segment.layer or "")
        if segment.phase is None:
            return segment.kind, name
        return segment.phase if segment.kind == "compute" else f"{segment.stream} {segment.kind}", name
