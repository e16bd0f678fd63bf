"""The layer table of any run: its lines are rows of a workload, equal ones together, operations of a trace,
or nodes of one name. A column of it is declared once, in `COLUMNS`: report, JSON and screen have it from
there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Literal, Protocol

from simcore.records import NamedTuple, Struct
from simcore.trace.spans import NONE
from simcore.trace.tables import LineTimes
from simcore.workload.model import PHASES, base_name

# What lines are, and what of one a column is of: of itself, of each phase of a row, of what one sends.
Lines = Literal["rows", "operations", "names"]
Of = Literal["line", "cell", "sent"]
# What the value of a column is, by which it is written. ns: a time; share: ns, shown as a part of the step;
# slack: ns that something may take longer for nothing; times: how many times another figure; rate: GB/s;
# rows: equal ones; raw: text of a file.
Unit = Literal["ns", "share", "slack", "count", "times", "bytes", "rate", "rank", "rows", "text", "raw"]
# The slack of what takes no part in the step sorts as more than any.
NO_SLACK = 1 << 62


class RowLines(Protocol):
    """The lines of a workload's rows: which rows they stand for, and what these have in the file.

    each: whether each row has its own line. sizes: how many rows each line has.
    """

    each: bool

    @property
    def sizes(self) -> Sequence[int]: ...
    def members(self, index: int) -> Sequence[int]:
        """The rows of a line, by its place."""

    def in_file(self, index: int) -> tuple[int, int | None]:
        """(line of the file, micro-batch) of row `index`; None of one that is in none."""

    def cell(self, index: int, phase: Any) -> Any:
        """The cell of row `index` of the file in one phase."""


class Runs(Struct, frozen=True, gc=False):
    """The runs of an operation, or of nodes of one name, on `ranks` together; None where nobody knows.

    rank: the number of the one that they are of, None of several. measured: how many of the `count` have a
    duration, which total_ns, least_ns and most_ns are of. waits_ns: what of it is waiting, or where total_ns
    is without, as much beside it. least_rank: where the shortest is; longest: (rank, place there) of the
    longest, most_batch: its micro-batch, -1 without. own_ns: what is not waiting, of own_rank, where it is
    most; mean_own_ns: on the mean of all ranks. work: what they do.
    """

    count: int | None = None
    ranks: Sequence[int] = ()
    rank: int | None = None
    measured: int = 0
    total_ns: int | None = None
    waits_ns: int | None = None
    least_ns: int | None = None
    least_rank: int = NONE
    most_ns: int | None = None
    most_batch: int = NONE
    longest: tuple[int, int] | None = None
    own_ns: int | None = None
    own_rank: int = NONE
    mean_own_ns: float = 0
    work: str | None = None

    def mean(self, ns: int | None) -> float | None:
        """What of some ns of all is on one rank."""
        return None if ns is None else ns / len(self.ranks)

    @property
    def run_ns(self) -> float | None:
        """How long one run takes on average."""
        return self.total_ns / self.measured if self.measured and self.total_ns is not None else None

    @property
    def times_mean(self) -> float | None:
        """How many times the mean of all ranks the largest `own_ns` is; None of nothing."""
        return self.own_ns / self.mean_own_ns if self.mean_own_ns and self.own_ns is not None else None


_NO_RUNS = Runs()


class LayerUse(Struct, frozen=True, gc=False):
    """A line of the layer table.

    index: its place. name: raw text of the file, of its first row. use: what it takes of a step; cost_ns:
    what of that its share of the step is of. of_rows: of rows of a file, all lines of them. kinds: of an
    operation or of nodes; parent: the operation that it is or, `inside`, that it is a part of; runs: of both.
    """

    index: int
    name: str
    use: LineTimes
    cost_ns: int
    of_rows: RowLines | None = None
    kinds: tuple[str, ...] = ()
    parent: str | None = None
    inside: bool = False
    runs: Runs = _NO_RUNS

    @property
    def title(self) -> str:
        """Its name: of equal rows without a number, of a sub-operation with what it is a part of."""
        return f"{self.name} in {self.parent}" if self.inside else self.outer

    @property
    def outer(self) -> str:
        """Its name, of a sub-operation the other way round: what is a part of something comes behind it."""
        if self.of_rows is not None:
            return self.name if self.of_rows.each else base_name(self.name)
        return f"{self.parent} {self.name}" if self.inside else self.name

    @property
    def rows(self) -> Sequence[int]:
        """The rows of the file that it stands for, all of the same cells."""
        return () if self.of_rows is None else self.of_rows.members(self.index)

    @property
    def kind(self) -> str | None:
        """Its kinds, mostly one."""
        return "/".join(self.kinds) or None

    @property
    def key(self) -> tuple[str, str | None]:
        """(operation, sub-operation of it) that it is."""
        return self.parent or "", self.name if self.inside else None

    def cell(self, phase: str) -> Any:
        """The cell of its rows in a phase; None of a line without rows."""
        return None if self.of_rows is None else self.of_rows.cell(self.rows[0], phase)

    @property
    def cells(self) -> dict[str, Any]:
        """The cells of its rows, by phase."""
        return {phase: self.cell(phase) for phase in PHASES}

    @property
    def in_file(self) -> tuple[int, int | None]:
        """(line of the file, micro-batch) of its first row."""
        return (0, None) if self.of_rows is None else self.of_rows.in_file(self.rows[0])


LAST = 99


class ScreenColumn(NamedTuple):
    """How lines of one kind have a column on the screen. place: how far from the front it stands among those
    that fit; LAST: only where names have all their cells. of: what its figures are of, as the mean of the
    ranks, or the rank with most; "" where the heading says it. heading: another one.
    """

    priority: int = LAST
    of: str = ""
    heading: str = ""


EVERYWHERE: Mapping[Lines, ScreenColumn] = MappingProxyType(
    {"rows": ScreenColumn(), "operations": ScreenColumn(), "names": ScreenColumn()}
)


class Column(Struct, frozen=True):
    """A column of the layer table.

    key: its name for sorting. heading: over it, times without their unit. unit: what `value` is, None where
    there is none. of: what that is asked for. on: which lines have it, on the screen
    and in a report. page: its heading in a report, where it is another one. each: whether it says anything
    where each row stands alone with its cells. largest_first: whether sorting begins with the largest; None
    of a column that does not sort. order: what lines sort by, where it is not `value`. of_path: whether only
    the critical path knows it. json: its key there; raw: what stands there, where it is not `value`;
    optional: whether it is left out where a line has none. cells: its width on the screen, at least; short:
    its heading there where there is no room.
    """

    key: str
    heading: str = ""
    unit: Unit = "ns"
    value: Callable[[Any], Any] = lambda of: None
    on: Mapping[Lines, ScreenColumn] = EVERYWHERE
    page: str = ""
    of: Of = "line"
    has_each_row: bool = True
    largest_first: bool | None = True
    order: Callable[[Any], Any] | None = None
    of_path: bool = False
    json: str = ""
    raw: Callable[[Any], Any] | None = None
    optional: bool = False
    cells: int = 0
    short: str = ""

    @property
    def missing_sort_value(self) -> float:
        """What a line without a value sorts as."""
        return NO_SLACK if self.unit == "slack" else -1

    def sort_values(self, subjects: Iterable[Any]) -> list[Any]:
        """What lines, or cells, are sorted by."""
        value_of, last = self.order or self.value, self.missing_sort_value
        return [last if (value := value_of(of)) is None else value for of in subjects]

    def json_value(self, step_ns: int) -> Callable[[Any], Any]:
        """Gives what stands in JSON: of a share percent of the step."""
        value_of = self.raw or self.value
        if self.unit != "share" or self.raw is not None or not step_ns:
            return value_of

        def percent_of(of: Any) -> float | None:
            value = value_of(of)
            return None if value is None else 100 * value / step_ns

        return percent_of


def _of_phase(phase: str) -> Column:
    """A key of the JSON with the cell of a row."""

    def values(line: LayerUse) -> dict[str, Any] | None:
        cell = line.cell(phase)
        return None if cell is None else {key: value(cell) for key, value in _cell_keys()}

    return Column(phase, on={}, json=phase, raw=values)


# In the order in which they stand beside each other.
COLUMNS: list[Column] = [
    Column("index", on={}, json="index", raw=lambda line: line.index),
    Column(
        "name",
        "name",
        "raw",
        lambda line: line.title,
        {"rows": ScreenColumn(0), "operations": ScreenColumn(0), "names": ScreenColumn(0)},
        largest_first=False,
        order=attrgetter("outer"),
        json="name",
        raw=lambda line: line.name,
    ),
    Column(
        "rank",
        "rank",
        "rank",
        lambda line: line.runs.rank,
        {"operations": ScreenColumn(1)},
        largest_first=False,
        optional=True,
    ),
    Column(
        "rows",
        "rows",
        "rows",
        lambda line: line.of_rows.sizes[line.index],
        {"rows": ScreenColumn(1)},
        has_each_row=False,
    ),
    Column(
        "phase",
        "phase",
        "text",
        lambda cell: cell.phase,
        {"rows": ScreenColumn(2)},
        page="cell",
        of="cell",
        largest_first=None,
        cells=5,
        short="ph.",
    ),
    Column(
        "kind",
        "kind",
        "raw",
        lambda line: line.kind,
        {"operations": ScreenColumn(2), "names": ScreenColumn(4)},
        largest_first=False,
        json="operation",
        raw=lambda line: line.parent,
        optional=True,
        cells=9,
    ),
    *map(_of_phase, PHASES),
    Column(
        "work",
        "work",
        "text",
        lambda line: line.runs.work,
        {"operations": ScreenColumn(18)},
        largest_first=False,
        optional=True,
        cells=7,
    ),
    Column(
        "count",
        "count",
        "count",
        lambda line: line.runs.count,
        {"operations": ScreenColumn(3), "names": ScreenColumn(1)},
        json="count",
        optional=True,
    ),
    Column(
        "ranks",
        "ranks",
        "count",
        lambda line: len(line.runs.ranks) or None,
        {"operations": ScreenColumn(13)},
        optional=True,
    ),
    Column(
        "time",
        "time",
        "ns",
        lambda line: line.runs.mean(line.runs.total_ns),
        {"operations": ScreenColumn(4, "mean"), "names": ScreenColumn(2, "mean")},
        json="own_ns",
        raw=lambda line: line.runs.total_ns,
        optional=True,
        page="time a rank",
    ),
    Column(
        "run",
        "run",
        "ns",
        lambda line: line.runs.run_ns,
        {"operations": ScreenColumn(14, "mean")},
        optional=True,
    ),
    Column(
        "most",
        "most",
        "ns",
        lambda line: line.runs.most_ns,
        {"operations": ScreenColumn(15, "one")},
        optional=True,
    ),
    Column(
        "waits",
        "waits",
        "ns",
        lambda line: line.runs.mean(line.runs.waits_ns),
        {"operations": ScreenColumn(11, "mean"), "names": ScreenColumn(5, "mean")},
        json="wait_ns",
        raw=lambda line: line.runs.waits_ns,
        optional=True,
    ),
    Column(
        "cell",
        "compute",
        "ns",
        lambda cell: cell.compute_ns if cell.is_modelled else None,
        {"rows": ScreenColumn(3, "each")},
        of="cell",
        json="compute_ns",
        raw=lambda cell: cell.compute_ns,
        short="comp. ms",
    ),
    Column(
        "collective",
        "collective",
        "text",
        lambda cell: cell.collective_name,
        {"rows": ScreenColumn(4)},
        of="sent",
        largest_first=False,
        json="comm",
        raw=lambda cell: cell.collective,
        cells=14,
    ),
    Column(
        "group",
        "group",
        "text",
        lambda cell: f"{cell.group} {cell.members}",
        {"rows": ScreenColumn(8)},
        of="sent",
        largest_first=False,
        json="group",
        raw=lambda cell: cell.group,
        cells=7,
    ),
    Column(
        "bytes",
        "MB",
        "bytes",
        lambda cell: cell.bytes,
        {"rows": ScreenColumn(9, "each"), "operations": ScreenColumn(16)},
        page="bytes",
        of="sent",
        json="bytes",
    ),
    Column(
        "alone",
        "alone",
        "ns",
        lambda cell: cell.comm_ns,
        {"rows": ScreenColumn(7, "each")},
        of="sent",
        json="comm_ns",
    ),
    Column(
        "algbw",
        "algbw",
        "rate",
        lambda cell: cell.algbw,
        {"rows": ScreenColumn(11, "each"), "operations": ScreenColumn(17)},
        of="sent",
        json="algbw_gbps",
    ),
    Column(
        "busbw",
        "busbw",
        "rate",
        lambda cell: cell.busbw,
        {"rows": ScreenColumn(12, "each")},
        of="sent",
        json="busbw_gbps",
    ),
    # Of a row with cells these have it, by phase.
    Column(
        "compute",
        "compute",
        "ns",
        lambda line: line.use.compute_ns,
        {
            "rows": ScreenColumn(13, "max", "all ms"),
            "operations": ScreenColumn(12, "max"),
            "names": ScreenColumn(LAST, "max"),
        },
        has_each_row=False,
        json="compute_ns",
        raw=lambda line: line.use.compute_ns if line.of_rows is None else None,
        optional=True,
        short="comp. ms",
    ),
    Column(
        "exposed",
        "exposed",
        "ns",
        lambda line: line.use.exposed_ns,
        {
            "rows": ScreenColumn(5, "max"),
            "operations": ScreenColumn(5, "max"),
            "names": ScreenColumn(LAST, "max"),
        },
        json="exposed_ns",
    ),
    Column(
        "times mean",
        "most on",
        "times",
        lambda line: line.runs.times_mean,
        {"operations": ScreenColumn(8, "own x mean")},
        optional=True,
    ),
    Column(
        "cost",
        "% step",
        "share",
        lambda line: line.cost_ns,
        {
            "rows": ScreenColumn(6, "max"),
            "operations": ScreenColumn(6, "max"),
            "names": ScreenColumn(3, "path"),
        },
        page="% of step",
        has_each_row=False,
    ),
    Column(
        "critical",
        "critical",
        "ns",
        lambda line: line.use.critical_ns,
        {
            "rows": ScreenColumn(10, "the path"),
            "operations": ScreenColumn(7, "the path"),
            "names": ScreenColumn(6, "path"),
        },
        of_path=True,
        json="critical_ns",
        short="crit. ms",
    ),
    Column(
        "slack",
        "slack",
        "slack",
        lambda line: line.use.slack_ns,
        {
            "rows": ScreenColumn(14, "least"),
            "operations": ScreenColumn(10, "least"),
            "names": ScreenColumn(7, "least"),
        },
        page="least slack",
        largest_first=False,
        of_path=True,
        json="slack_ns",
    ),
]


@cache
def _cell_keys() -> list[tuple[str, Callable[[Any], Any]]]:
    return [(column.json, column.json_value(0)) for column in COLUMNS if column.json and column.of != "line"]


def columns_of(lines: Lines) -> list[Column]:
    """Returns the columns that lines of a kind have, in the order in which they stand."""
    return [column for column in COLUMNS if lines in column.on]


def json_rows(lines: Iterable[LayerUse], step_ns: int) -> list[dict[str, Any]]:
    """Returns lines as JSON has them."""
    columns = [column for column in COLUMNS if column.json and column.of == "line"]
    values = [(column.json, column.json_value(step_ns)) for column in columns]
    rows = [{key: value(line) for key, value in values} for line in lines]
    for key in (column.json for column in columns if column.optional):
        for of_line in rows:
            if of_line[key] is None:
                del of_line[key]
    return rows


class LayerOrder:
    """Lines in any order, and searched; each thing that they are sorted or searched by is found once.

    lines: in their first order. words: of each line what it is searched by, in small letters. sort_values:
    what they are sorted by in a column, each.
    """

    def __init__(
        self,
        lines: Sequence[LayerUse],
        words: Callable[[], Sequence[str]],
        sort_values: Callable[[Column], Sequence[Any]],
    ) -> None:
        self.lines, self._words, self._sort_values = lines, words, sort_values
        self._cached_values: dict[str, Sequence[Any]] = {}

    def replace_lines(self, lines: Sequence[LayerUse]) -> None:
        """The same lines, of which more is known."""
        self.lines = lines
        self._cached_values.clear()

    def values(self, column: Column) -> Sequence[Any]:
        """What each line is sorted by."""
        if column.key not in self._cached_values:
            self._cached_values[column.key] = self._sort_values(column)
        return self._cached_values[column.key]

    def sort_indices(self, indices: Iterable[int], column: Column, descending: bool) -> list[int]:
        """Some places of lines by a column; equal ones as they come."""
        return sorted(indices, key=self.values(column).__getitem__, reverse=descending)

    @cached_property
    def words(self) -> Sequence[str]:
        """What each line is searched by."""
        return self._words()

    def filter_indices(self, typed: str, indices: Sequence[int]) -> Sequence[int]:
        """Those of some places whose lines hold every word of what was typed."""
        for word in typed.lower().split():
            indices = [index for index in indices if word in self.words[index]]
        return indices
