"""The nodes of execution traces as a table: by name, a `#` for each number, all ranks together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from simcore.runs.executed import TraceResults
from simcore.trace.figures import NameUse
from simcore.units import duration, plural
from tui.frame import cells
from tui.layers.columns import Shown
from tui.layers.table import RowTable, TablePlace
from tui.listing import ListColumn

_SHOWN = Shown(
    first=("name", "count", "time ms", "% step", "kind", "waits ms", "critical ms", "slack ms"),
    always=("name", "count", "time ms", "% step"),
    heading="nodes", name_cells=(30, 12, 48), cells={"kind": 14},
    of={"time ms": "mean", "waits ms": "mean", "critical ms": "path", "slack ms": "least", "% step": "path"},
)  # fmt: skip
_VALUES: dict[str, Callable[[NameUse], float | str]] = {
    "name": lambda name_use: name_use.name,
    "kind": lambda name_use: name_use.what,
    "count": lambda name_use: name_use.nodes,
    "time": lambda name_use: name_use.own_ns,
    "waits": lambda name_use: name_use.waits_ns,
    "cost": lambda name_use: name_use.critical_ns,
    "critical": lambda name_use: name_use.critical_ns,
    "slack": lambda name_use: name_use.slack_ns,
}


class TraceTable(RowTable):
    """The table of execution traces: see `Table`."""

    shown = _SHOWN
    each = False
    hint = ""

    def __init__(self, results: TraceResults) -> None:
        self._results = results
        self._all, self.step_ns = results.name_table, results.step_time_ns
        super().__init__()

    @property
    def subject(self) -> object:
        return self._results

    def apart(self, each: bool) -> TraceTable:
        return TraceTable(self._results)

    @property
    def can_regroup(self) -> bool:
        return False

    def regrouped(self) -> None:
        return None

    def value(self, key: str, at: int) -> float | str:
        value, ranks = _VALUES[key](self._all[at]), len(self._results.ranks)
        if isinstance(value, str):
            return cells(value, 48 if key == "name" else 14)
        # Of all ranks together: the mean of them.
        return value / ranks if key in ("time", "waits") else value

    def counted(self) -> str:
        return (
            f"{plural(len(self._all), 'name')} of {plural(self._results.held_ops, 'node')}, all ranks "
            f"together"
        )

    def left(self) -> str:
        return f"{len(self.lines)} of {plural(len(self._all), 'name')}"

    def order(self) -> tuple[str, str]:
        return "most of the step first", "most first"

    def legend(self, columns: Sequence[ListColumn], short: bool) -> str:
        return "mean: of a rank; path: of all ranks"

    def _opening(self) -> list[int]:
        return list(range(len(self._all)))

    def cannot_sort(self, heading: str) -> str:
        return ""

    def find_path(self, cancelled: Callable[[], bool]) -> object:
        return self._results

    def _matching(self, typed: str, of: Sequence[int]) -> list[int]:
        asked = typed.lower().split()
        return [
            at
            for at in of
            if all(word in f"{self._all[at].name} {self._all[at].what}".lower() for word in asked)
        ]

    def no_match(self, typed: str) -> str:
        return "no node has these words" if typed.strip() else "the run has no nodes"

    def mark(self, line: int) -> tuple[str, str]:
        name_use = self._all[self.lines[line]]
        return name_use.name, name_use.what

    def line_of(self, mark: Hashable) -> int:
        here = (
            line for line, at in enumerate(self.lines) if (self._all[at].name, self._all[at].what) == mark
        )
        return next(here, 0)

    def place(self, line: int) -> TablePlace | None:
        name_use, executed = self._all[self.lines[line]], self._results.executed
        start, end = (
            executed.start[name_use.rank][name_use.place],
            executed.end[name_use.rank][name_use.place],
        )
        return TablePlace(name_use.rank, start, max(end, start + 1))

    def origin(self, line: int, width: int) -> tuple[str, list[tuple[str, str]]]:
        name_use, results = self._all[self.lines[line]], self._results
        node = results.executed.nodes[name_use.rank].id[name_use.place]
        lines = [
            f"{plural(name_use.nodes, 'node')} of all ranks take {duration(name_use.own_ns)} and wait "
            f"{duration(name_use.waits_ns)}",
            f"on the critical path {duration(name_use.critical_ns)}; a long one is node {node} "
            f"of rank {name_use.rank}",
        ]
        return f"{cells(name_use.name, 60)} ({name_use.what})", [(text[:width], "") for text in lines]

    def more(self, line: int, width: int) -> list[tuple[str, str]]:
        """Nothing: its nodes are on the timeline."""
        return []
