"""The figures of execution traces that have run, in the form that all runs have: see
`simcore/trace/figures.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.diagnostics import printable
from simcore.executing.execution_result import describe_rules
from simcore.kernel_names import display_name
from simcore.names import ASTRA_SIM_2
from simcore.trace.figures import Insight, NodeTables, Origin, RankEnd, StreamUse
from simcore.trace.findings import Finding
from simcore.trace.lane_spans import COMPUTE_STREAM
from simcore.trace.run import Figures
from simcore.trace.streams import TrackStreams, track_streams
from simcore.trace.track import Track
from simcore.trace.worst import Contexts, find_worst_findings
from simcore.units import duration, plural

if TYPE_CHECKING:
    from simcore.executing.execution_analysis import ExecutionAnalysis
    from simcore.executing.path_words import ExecutionPath
    from simcore.executing.what_if import ChangeResults
    from simcore.trace.named_work import NamedWork


# Streams of a rank that send nothing.
_NO_MESSAGES = (COMPUTE_STREAM, "cpu", "memory")


class TraceFigures(Figures["ExecutionAnalysis"]):
    """The figures of execution traces. Names of nodes have a table of their own; there are no layers."""

    kind = "executed"
    path_groupings = ("kind", "op", "group", "rank")

    def __init__(self, run: ExecutionAnalysis, find_changes: Callable[[], ChangeResults | None]) -> None:
        """find_changes: returns the results of the what-if changes; None where none were tried."""
        super().__init__(run)
        self._find_changes = find_changes

    @property
    def path_source(self) -> ExecutionPath:
        return self.run.path_source

    @property
    def title(self) -> str:
        step = self.run.step_time_ns
        unit = "cycles of ASTRA-sim, 1 ns each" if self.run.is_in_cycles else "ns"
        return f"Step time  {duration(step)} ({step} {unit})"

    @property
    def facts(self) -> list[tuple[str, str]]:
        executed = self.run.executed
        dims = " x ".join(dim.text() for dim in executed.cluster.dims)
        return [
            ("file", printable(executed.traces.path)),
            ("format", f"execution traces (Chakra), schema {executed.traces.schema}"),
            ("rules", describe_rules(executed)),
            ("read", self.run.counts_text()),
            ("network", f"{executed.setup.network_name}: {dims}"),
        ]

    def headline(self, wide: bool) -> list[str]:
        """Returns the ranks, the rules that they ran by and their network."""
        ranks = plural(len(self.run.ranks), "rank")
        rules = ASTRA_SIM_2 if self.run.is_astra else "wltui's rules"
        if not wide:
            return [ranks, rules]
        return [f"{ranks}, {plural(self.run.held_ops, 'node')}", rules, self.run.setup.network_name]

    @property
    def insights(self) -> list[Insight]:
        from simcore.words.executed_sentences import find_sentences

        return [Insight(sentence.rule, sentence.text) for sentence in find_sentences(self.run)]

    @cached_property
    def worst_findings(self) -> list[Finding]:
        return find_worst_findings(
            self.run, Contexts(find_last_start=lambda rank: 0, describe_node=self._node_name)
        )

    def _node_name(self, rank: int, index: int) -> str:
        return display_name(self.run.name_of(rank, index))

    @property
    def changes_summary(self) -> str:
        results = self._find_changes()
        return "" if results is None else results.summary

    @cached_property
    def origin(self) -> Origin:
        executed = self.run.executed
        degrees = {"tp": None, "ep": None, "dp": None, "pp": None, "world": len(executed.nodes)}
        values = self.run.parameters.as_dict("execution") | dict(executed.used)
        nodes = executed.traces.count
        return Origin(
            "chakra", executed.traces.schema, nodes, None, 0, degrees, executed.setup.network_name,
            executed.rules, values, [], nodes,
            sum(len(executed.nodes[rank]) for rank in executed.units.first),
        )  # fmt: skip

    @property
    def nodes(self) -> NodeTables:
        results = self.run
        exposed_words = "end less GPU compute" + (", as ASTRA-sim prints it" if results.is_in_cycles else "")
        ranks = [RankEnd(*rank) for rank in results.executed.ranks]
        return NodeTables(ranks, results.name_table, results.group_table, exposed_words, results.is_in_cycles)

    @cached_property
    def streams(self) -> list[TrackStreams]:
        run = self.run
        of_units = [
            track_streams(run.trace, unit, run.accounts[rank], _NO_MESSAGES)
            for unit, rank in enumerate(run.executed.units.first)
        ]
        return [self._rank_streams(rank, of_units[unit]) for rank, unit in enumerate(run.executed.units.of)]

    def _rank_streams(self, rank: int, of_unit: TrackStreams) -> TrackStreams:
        """Returns the streams of a rank from those of its unit: equal ranks have different groups."""
        column, uses = self.run.trace.column("stream"), []
        of_nodes = column.of[self.run.executed.units.of[rank]]
        for use in of_unit.streams:
            stream = self.run.stream_of(rank, of_nodes.index(column.labels.index(use.stream)))
            overlapped_ns = 0 if stream == COMPUTE_STREAM else use.overlapped_ns
            uses.append(StreamUse(stream, use.busy_ns, overlapped_ns, use.exposed_ns))
        return of_unit._replace(streams=uses)

    def stream_order(self, use: StreamUse) -> tuple[bool, int, str]:
        return use.kind != COMPUTE_STREAM, -use.busy_ns, use.stream

    def named_work(self, track: Track) -> NamedWork:
        from simcore.trace.named_work import named_work

        unit = self.run.executed.units.of[track.track_id]
        return named_work(self.run.trace, unit, self.run.accounts[track.track_id])
