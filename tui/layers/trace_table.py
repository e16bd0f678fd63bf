"""The nodes of execution traces as a table: by name, a `#` for each number, all ranks together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

from simcore.runs.executed import TraceResults
from simcore.trace.figures import NameUse
from simcore.units import duration, percent, plural
from tui.frame import cells
from tui.layers.table import RowTable, TablePlace, figure
from tui.listing import ListColumn

# Heading, cells, whether left-aligned, from which width on, what it sorts by, whether the largest comes
# first.
_COLUMNS: tuple[tuple[str, int, bool, int, str, bool], ...] = (
    ("nodes", 30, True, 0, "name", False),
    ("kind", 14, True, 70, "kind", False),
    ("count", 7, False, 0, "count", True),
    ("time ms", 10, False, 0, "time", True),
    ("waits ms", 10, False, 80, "waits", True),
    ("critical ms", 11, False, 100, "critical", True),
    ("slack ms", 10, False, 104, "slack", False),
    ("% step", 7, False, 0, "critical", True),
)
_OF = {"time ms": "mean", "waits ms": "mean", "critical ms": "path", "slack ms": "least", "% step": "path"}
_VALUES: dict[str, Callable[[NameUse], int | str]] = {
    "name": lambda name_use: name_use.name,
    "kind": lambda name_use: name_use.what,
    "count": lambda name_use: name_use.nodes,
    "time": lambda name_use: name_use.own_ns,
    "waits": lambda name_use: name_use.waits_ns,
    "critical": lambda name_use: name_use.critical_ns,
    "slack": lambda name_use: name_use.slack_ns,
}


class TraceTable(RowTable):
    """The table of execution traces: see `Table`."""

    of_path: Collection[str] = ()
    each = False
    hint = ""

    def __init__(self, results: TraceResults) -> None:
        self._results = results
        self._all = results.name_table
        super().__init__()
        self.sorted_by: Mapping[str, tuple[str, bool]] = {
            column[0]: (column[4], column[5]) for column in _COLUMNS
        }

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

    def columns_for(self, width: int) -> list[ListColumn]:
        return [
            ListColumn(heading, size, left, of=_OF.get(heading, ""))
            for heading, size, left, least, _, _ in _COLUMNS
            if width >= least
        ]

    def texts(self, line: int) -> dict[str, str]:
        name_use, results = self._all[self.lines[line]], self._results
        ranks = len(results.ranks)
        return {
            "nodes": cells(name_use.name, 30),
            "kind": cells(name_use.what, 14),
            "count": str(name_use.nodes),
            "time ms": figure(name_use.own_ns / ranks / 1e6, 10),
            "waits ms": figure(name_use.waits_ns / ranks / 1e6, 10),
            "critical ms": figure(name_use.critical_ns / 1e6, 10),
            "slack ms": figure(name_use.slack_ns / 1e6, 10),
            "% step": percent(name_use.critical_ns, results.step_time_ns),
        }

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

    def values(self, key: str) -> list[int | str]:
        return list(map(_VALUES[key], self._all))

    def cannot_sort(self, heading: str) -> str:
        return ""

    def learn_path(self) -> bool:
        return True

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
