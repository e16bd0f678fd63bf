"""Executed traces, and all that is computed from them, each figure once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from simcore.chakra.nodes import (
    COLL,
    Kinds,
)  # fmt: skip
from simcore.executing.columns import columns_of, group_word, node_kind, node_name, node_stream
from simcore.executing.execution_result import Execution, ExecutionResult
from simcore.executing.graph import NONE, ExecutionGraph, build_graph
from simcore.executing.path_words import ExecutionPath
from simcore.executing.trace import executed_graph, executed_trace
from simcore.ranks import RankSet
from simcore.trace.accounts import Accounts
from simcore.trace.contexts import Links, StepShape
from simcore.trace.figures import GroupUse
from simcore.trace.layers import LayerUse, Runs
from simcore.trace.run import Run
from simcore.trace.spans import Trace
from simcore.trace.tables import Table, count_spans, count_track_spans
from simcore.trace.trace_graph import TraceGraph
from simcore.trace.track import Track
from simcore.units import percent, plural

if TYPE_CHECKING:
    pass


Figure = TypeVar("Figure")


class ExecutionAnalysis(Run):
    """A set of execution traces that has run, with its figures."""

    def __init__(self, executed: ExecutionResult) -> None:
        self.executed = executed

    @property
    def kinds(self) -> Kinds:
        """The attributes of nodes."""
        return self.executed.kinds

    @property
    def setup(self) -> Execution:
        """The set and the parameters of this run."""
        return self.executed.setup

    @property
    def held_ops(self) -> int:
        """The number of nodes that it holds in memory."""
        return self.executed.traces.count

    @property
    def is_astra(self) -> bool:
        """Whether it ran by ASTRA-sim's rules."""
        return self.executed.is_astra

    @property
    def is_in_cycles(self) -> bool:
        """Whether ASTRA-sim prints its times, as cycles of 1 ns: it does not for scaled durations of
        parts.
        """
        return self.is_astra and self.executed.graph is None

    @property
    def step_time_ns(self) -> int:
        """When the last rank ends, ns."""
        return self.executed.step_time_ns

    @cached_property
    def network(self) -> Links:
        executed = self.executed
        ports = None
        if executed.links is not None:
            # Imported here: most traces run on a network without links.
            from simcore.trace.ports import ports_of_links

            ports = ports_of_links(executed.links, executed.cluster.dims, executed.step_time_ns)
        return Links(executed.cluster.dims, executed.links, executed.link_heat, ports=ports)

    @cached_property
    def shape(self) -> StepShape:
        """The step time and the tracks: execution traces state no degrees, micro-batches or amount of
        work.
        """
        return StepShape(self.step_time_ns, self.tracks)

    @property
    def ranks(self) -> range:
        """All ranks."""
        return range(len(self.executed.nodes))

    def type_of(self, rank: int, index: int) -> int:
        """Returns the type of a node."""
        nodes = self.executed.nodes[rank]
        return nodes.columns.type[nodes.row[index]]

    def name_of(self, rank: int, index: int) -> str:
        """Returns the name of a node, raw text of the file; its type and id where it has none."""
        return node_name(self.executed, rank, index)

    def attributes_of(self, rank: int, index: int) -> dict[str, object]:
        """Returns the attributes of a node by name, with their values."""
        nodes = self.executed.nodes[rank]
        attributes = self.kinds.attributes(nodes.columns.attributes[nodes.row[index]])
        return {name: value.value for name, value in attributes.items()}

    def kind_word(self, rank: int, index: int) -> str:
        """Returns the kind of a node in a word: `ALL_REDUCE`, `COMP`, `COMM_SEND`."""
        return node_kind(self.executed, rank, index)

    def group_of(self, rank: int, index: int) -> tuple[str, tuple[int, ...]] | None:
        """Returns (name, ranks) of the group of a collective, None for any other node."""
        return self.executed.group_of(rank, index)

    def group_word(self, rank: int, index: int) -> str:
        """Returns `all ranks`, `group 3`; "" for what is no collective."""
        return group_word(self.executed, rank, index) if self.type_of(rank, index) == COLL else ""

    def stream_of(self, rank: int, index: int) -> str:
        """Returns the lane of a node: compute, cpu, memory, messages, or that of its group."""
        return node_stream(self.executed, rank, index)

    def last_member(self, rank: int, index: int) -> tuple[int, int] | None:
        """Returns (rank, index) of the last member to come to a node's collective, the lowest rank of
        several.
        """
        meeting = self.executed.meetings[rank][index]
        group = self.group_of(rank, index)
        if group is None:
            return None
        executed = self.executed
        begin_ns = executed.begin[rank][index]
        for who in sorted(group[1]):
            at = self._meeting_indices[executed.units.of[who]].get(meeting, NONE)
            if at != NONE and executed.start[who][at] == begin_ns:
                return who, at
        return None

    @cached_property
    def tracks(self) -> tuple[Track, ...]:
        """A track for each rank."""
        return tuple(Track(rank, None, RankSet.of([rank])) for rank in self.ranks)

    def _accounts(self, cancelled: Callable[[], bool]) -> list[Accounts]:
        return self.executed.units.spread(super()._accounts(cancelled))

    @cached_property
    def trace(self) -> Trace:
        """The trace of one rank of each class of ranks with equal times."""
        return executed_trace(self.executed, columns_of(self.executed))

    @cached_property
    def graph(self) -> ExecutionGraph:
        """The graph of which node waits for which."""
        executed = self.executed
        if executed.graph is not None:
            return executed.graph
        first = executed.units.first
        return build_graph(
            [executed.nodes[rank] for rank in first], [executed.start[rank] for rank in first],
            [executed.end[rank] for rank in first], executed.order, [executed.lanes[rank] for rank in first],
            [executed.meetings[rank] for rank in first], executed.sends, executed.before,
        )  # fmt: skip

    def _make_graph(self, cancelled: Callable[[], bool]) -> TraceGraph:
        return executed_graph(self.executed, self.graph)

    def slack_of(self, rank: int, index: int) -> int:
        """Returns how much later a node may end before the step is longer, ns."""
        assert self.slacks is not None
        return self.slacks[self.executed.units.of[rank]][index]

    @cached_property
    def path_source(self) -> ExecutionPath:
        """The texts and facts of its critical path."""
        return ExecutionPath(self.executed)

    @cached_property
    def _meeting_indices(self) -> list[dict[int, int]]:
        """For each class of ranks the node of each collective."""
        executed = self.executed
        return [
            {meeting: index for index, meeting in enumerate(executed.meetings[rank]) if meeting != NONE}
            for rank in executed.units.first
        ]

    @cached_property
    def patterns(self) -> Table:
        """The table of nodes by name pattern and kind; its tracks are the classes of ranks with equal
        times.
        """
        accounts = [self.accounts[rank] for rank in self.executed.units.first]
        column = self.trace.column("pattern")
        return Table(self.trace, accounts, column, lambda: self.critical_path, lambda: self.slacks)

    @cached_property
    def name_table(self) -> list[LayerUse]:
        """The use of time by name pattern, all ranks together, the largest first; times without waiting."""
        table = self.patterns
        rows = [
            (table.column.labels[label], label, one)
            for label, one in count_spans(self.trace, table.column).items()
        ]
        rows.sort(key=lambda each: (-each[2].own_ns, each[0]))
        uses = ((key, table.use([label]), one) for key, label, one in rows)
        return [
            LayerUse(
                index, name, use, use.critical_ns or 0, kinds=(what,), parent=what,
                runs=Runs(
                    one.spans, self.ranks, total_ns=one.own_ns, waits_ns=one.waits_ns,
                    longest=(self.executed.units.first[one.track], one.span),
                ),
            )
            for index, ((name, what), use, one) in enumerate(uses)
        ]  # fmt: skip

    @cached_property
    def group_table(self) -> list[GroupUse]:
        """The use of time by the collectives of each group, the largest first."""
        units = self.executed.units
        of_units = [self._groups_of(unit) for unit in range(len(units.first))]
        sums: dict[tuple[str, tuple[int, ...]], list[int]] = {}
        for rank, unit in enumerate(units.of):
            for index, count, size, own_ns, waits_ns in of_units[unit]:
                group = self.executed.group_of(rank, index)
                assert group is not None
                # As many collectives as its first rank has.
                row = sums.setdefault(group, [count, size, 0, 0])
                row[2] += own_ns
                row[3] += waits_ns
        table = [
            GroupUse(name or "all ranks", RankSet.of(sorted(ranks)).text(), *row)
            for (name, ranks), row in sums.items()
        ]
        return sorted(table, key=lambda use: (-use.own_ns, use.group))

    def _groups_of(self, unit: int) -> list[list[int]]:
        """Returns [an index, collectives, bytes, own ns, waits ns] of each group of a class of ranks."""
        column = self.trace.column("group")
        of_groups: dict[str, list[int]] = {}
        for label, (count, own_ns, waits_ns, _, index) in count_track_spans(self.trace, unit, column).items():
            name, size = column.labels[label]
            row = of_groups.setdefault(name, [index, 0, 0, 0, 0])
            for at, more in enumerate((count, count * size, own_ns, waits_ns), start=1):
                row[at] += more
        return [*of_groups.values()]

    def share_text(self, ns: int) -> str:
        """Returns a share of the step in words."""
        return f"{percent(ns, self.step_time_ns)} %" if self.step_time_ns else "-"

    def counts_text(self) -> str:
        """Returns the numbers of ranks and nodes in words."""
        return f"{plural(len(self.ranks), 'rank')}, {plural(self.held_ops, 'node')}"
