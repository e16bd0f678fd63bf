"""The nodes of execution traces as a table: by name, with `#` for each number, all ranks together."""

from __future__ import annotations

from collections.abc import Sequence

from simcore.runs.executed import ExecutedRun
from simcore.trace.layers import LayerOrder
from simcore.units import duration, plural
from tui.frame import cells
from tui.layers.columns import ShownColumns
from tui.layers.table import Table, TableSelection
from tui.listing import ListColumn

# Kinds of nodes have longer names than those of operations.
_COLUMNS = ShownColumns("names", 4, "nodes", (30, 12, 48), sizes={"kind": 14})


class TraceTable(Table):
    """The table of execution traces: see `Table`."""

    cannot_split = "nodes are counted by name on all ranks together: 2 shows each rank's"

    def __init__(self, results: ExecutedRun) -> None:
        self._results, names = results, results.name_table
        layers = LayerOrder(
            names,
            lambda: [f"{line.name} {line.kind}".lower() for line in names],
            lambda column: column.sort_values(names),
        )
        super().__init__(layers, _COLUMNS, results.step_time_ns)

    @property
    def subject(self) -> object:
        return self._results

    def count_text(self) -> str:
        return (
            f"{plural(len(self.layers.lines), 'name')} of {plural(self._results.held_ops, 'node')}, "
            "all ranks together"
        )

    def left(self) -> str:
        return f"{len(self.lines)} of {plural(len(self.layers.lines), 'name')}"

    def order(self) -> tuple[str, str]:
        return "most of the step first", "most first"

    def legend(self, columns: Sequence[ListColumn], short: bool) -> str:
        return "mean: of a rank; path: of all ranks"

    def no_match(self, typed: str) -> str:
        return "no node has these words" if typed.strip() else "the run has no nodes"

    def mark(self, line: int) -> tuple[str, str | None]:
        of = self.of_line(line)
        return of.name, of.kind

    def find_selection(self, line: int) -> TableSelection | None:
        (rank, node_index), executed = self._longest_node(line), self._results.executed
        start, end = executed.start[rank][node_index], executed.end[rank][node_index]
        return TableSelection(rank, start, max(end, start + 1))

    def _longest_node(self, line: int) -> tuple[int, int]:
        """Returns (rank, index) of the longest node: each name has nodes."""
        longest = self.of_line(line).runs.longest
        assert longest is not None
        return longest

    def origin(self, line: int, width: int) -> tuple[str, list[tuple[str, str]]]:
        of, (rank, node_index) = self.of_line(line), self._longest_node(line)
        node, runs = self._results.executed.nodes[rank].id[node_index], of.runs
        lines = [
            f"{plural(runs.count or 0, 'node')} of all ranks take {duration(runs.total_ns or 0)} and wait "
            f"{duration(runs.waits_ns or 0)}",
            f"on the critical path {duration(of.cost_ns)}; a long one is node {node} of rank {rank}",
        ]
        return f"{cells(of.name, 60)} ({of.kind})", [(text[:width], "") for text in lines]
