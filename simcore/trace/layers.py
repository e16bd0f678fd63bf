"""The layer table of any run: its lines are rows of a workload, equal ones together, operations of a trace,
or nodes of one name. A column of it is declared once, in `COLUMNS`; report, JSON and screen take it from
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

# The kinds of lines, and the subject of a column: the line, each phase of a row, or what a phase sends.
Lines = Literal["rows", "operations", "names"]
Of = Literal["line", "cell", "sent"]
# The unit of a column's value, by which it is written. ns: a time; share: ns, shown as a part of the step;
# slack: ns by which something may take longer; times: a multiple of another figure; rate: GB/s; rows: equal
# ones; raw: text of a file.
Unit = Literal["ns", "share", "slack", "count", "times", "bytes", "rate", "rank", "rows", "text", "raw"]
# What takes no part in the step sorts as if it had more slack than anything else.
NO_SLACK = 1 << 62


class RowLines(Protocol):
    """The lines of a workload's rows: which rows they stand for, and what these have in the file.

    each: whether each row has its own line. sizes: how many rows each line has.
    """

    each: bool

    @property
    def sizes(self) -> Sequence[int]: ...
    def members(self, index: int) -> Sequence[int]:
        """Returns the rows of a line, by its index."""

    def in_file(self, index: int) -> tuple[int, int | None]:
        """Returns (line of the file, micro-batch) of row `index`; None as micro-batch outside of them."""

    def cell(self, index: int, phase: Any) -> Any:
        """Returns the cell of row `index` of the file in one phase."""


class Runs(Struct, frozen=True, gc=False):
    """The runs of an operation, or of nodes of one name, on `ranks` together; None where not known."""

    count: int | None = None
    """How many runs there are."""
    ranks: Sequence[int] = ()
    """The ranks they are on."""
    rank: int | None = None
    """The rank of all of them, None for several ranks."""
    measured: int = 0
    """How many of the `count` have a duration; total_ns, least_ns and most_ns are of these."""
    total_ns: int | None = None
    """How long they take together, ns."""
    waits_ns: int | None = None
    """The waiting in total_ns, ns; where total_ns excludes waiting, the waiting besides it."""
    least_ns: int | None = None
    """The shortest, ns."""
    least_rank: int = NONE
    """The rank of the shortest."""
    most_ns: int | None = None
    """The longest, ns."""
    most_batch: int = NONE
    """The micro-batch of the longest, -1 without one."""
    longest: tuple[int, int] | None = None
    """(rank, index there) of the longest."""
    own_ns: int | None = None
    """The time without waiting on the rank where it is most, ns."""
    own_rank: int = NONE
    """That rank."""
    mean_own_ns: float = 0
    """The time without waiting, mean of all ranks, ns."""
    work: str | None = None
    """What they do."""

    def mean(self, ns: int | None) -> float | None:
        """Returns the mean of a rank of some ns of all ranks."""
        return None if ns is None else ns / len(self.ranks)

    @property
    def run_ns(self) -> float | None:
        """How long one run takes on average, ns."""
        return self.total_ns / self.measured if self.measured and self.total_ns is not None else None

    @property
    def times_mean(self) -> float | None:
        """The largest `own_ns` over the mean of all ranks; None without any."""
        return self.own_ns / self.mean_own_ns if self.mean_own_ns and self.own_ns is not None else None


_NO_RUNS = Runs()


class LayerUse(Struct, frozen=True, gc=False):
    """A line of the layer table."""

    index: int
    """Its index."""
    name: str
    """The name of its first row, raw text of the file."""
    use: LineTimes
    """What it takes of a step."""
    cost_ns: int
    """The part of that of which its share of the step is formed, ns."""
    of_rows: RowLines | None = None
    """All lines of rows, where it is a line of rows of a file."""
    kinds: tuple[str, ...] = ()
    """The kinds of an operation or of nodes."""
    parent: str | None = None
    """The operation that it is or, `inside`, that it is a part of."""
    inside: bool = False
    """Whether it is a sub-operation."""
    runs: Runs = _NO_RUNS
    """The runs of an operation or of nodes."""

    @property
    def title(self) -> str:
        """Its name: of equal rows without a number, of a sub-operation followed by what it is a part of."""
        return f"{self.name} in {self.parent}" if self.inside else self.outer

    @property
    def outer(self) -> str:
        """Its name, of a sub-operation preceded by what it is a part of: so it sorts."""
        if self.of_rows is not None:
            return self.name if self.of_rows.each else base_name(self.name)
        return f"{self.parent} {self.name}" if self.inside else self.name

    @property
    def rows(self) -> Sequence[int]:
        """The rows of the file that it stands for, all of the same cells."""
        return () if self.of_rows is None else self.of_rows.members(self.index)

    @property
    def kind(self) -> str | None:
        """Its kinds in words, mostly one."""
        return "/".join(self.kinds) or None

    @property
    def key(self) -> tuple[str, str | None]:
        """(operation, sub-operation of it or None) that it is."""
        return self.parent or "", self.name if self.inside else None

    def cell(self, phase: str) -> Any:
        """Returns the cell of its rows in a phase; None of a line without rows."""
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
    """How lines of one kind show a column on the screen."""

    priority: int = LAST
    """Its rank among the columns that fit, the lowest first; LAST: only where names have all their cells."""
    of: str = ""
    """What its figures are of, as the mean of the ranks, or the rank with most; "" where the heading says it.
    """
    heading: str = ""
    """Another heading."""


EVERYWHERE: Mapping[Lines, ScreenColumn] = MappingProxyType(
    {"rows": ScreenColumn(), "operations": ScreenColumn(), "names": ScreenColumn()}
)


class Column(Struct, frozen=True):
    """A column of the layer table."""

    key: str
    """Its name for sorting."""
    heading: str = ""
    """Its heading, of times without their unit."""
    unit: Unit = "ns"
    """The unit of `value`."""
    value: Callable[[Any], Any] = lambda of: None
    """Returns the value of a line or cell, None without one."""
    on: Mapping[Lines, ScreenColumn] = EVERYWHERE
    """Which lines have it, on the screen and in a report."""
    page: str = ""
    """Its heading in a report, where it differs."""
    of: Of = "line"
    """The subject of `value`."""
    has_each_row: bool = True
    """Whether it says anything where each row stands alone with its cells."""
    largest_first: bool | None = True
    """Whether sorting begins with the largest; None of a column that does not sort."""
    order: Callable[[Any], Any] | None = None
    """What lines sort by, where it is not `value`."""
    of_path: bool = False
    """Whether its values need the critical path."""
    json: str = ""
    """Its key in JSON."""
    raw: Callable[[Any], Any] | None = None
    """What JSON has, where it is not `value`."""
    optional: bool = False
    """Whether it is left out where a line has none."""
    cells: int = 0
    """Its least width on the screen."""
    short: str = ""
    """Its heading on the screen where there is little room."""

    @property
    def missing_sort_value(self) -> float:
        """The sort value of a line without a value."""
        return NO_SLACK if self.unit == "slack" else -1

    def sort_values(self, subjects: Iterable[Any]) -> list[Any]:
        """Returns what lines, or cells, are sorted by."""
        value_of, last = self.order or self.value, self.missing_sort_value
        return [last if (value := value_of(of)) is None else value for of in subjects]

    def json_value(self, step_ns: int) -> Callable[[Any], Any]:
        """Returns a function that gives the value in JSON: of a share percent of the step."""
        value_of = self.raw or self.value
        if self.unit != "share" or self.raw is not None or not step_ns:
            return value_of

        def percent_of(of: Any) -> float | None:
            value = value_of(of)
            return None if value is None else 100 * value / step_ns

        return percent_of


def _of_phase(phase: str) -> Column:
    """Returns the column for the JSON key of a phase, with the cell of a row as its value."""

    def values(line: LayerUse) -> dict[str, Any] | None:
        cell = line.cell(phase)
        return None if cell is None else {key: value(cell) for key, value in _cell_keys()}

    return Column(phase, on={}, json=phase, raw=values)


# In the order in which they stand.
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
    # Cells have their own `compute`, by phase: this one is for lines without rows.
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
    """Returns the columns that lines of a kind have, in their order."""
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

    lines: in their first order. words: returns what each line is searched by, in small letters. sort_values:
    returns what each line is sorted by in a column.
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
        """Replaces the lines by the same lines with more known of them."""
        self.lines = lines
        self._cached_values.clear()

    def values(self, column: Column) -> Sequence[Any]:
        """Returns what each line is sorted by in a column."""
        if column.key not in self._cached_values:
            self._cached_values[column.key] = self._sort_values(column)
        return self._cached_values[column.key]

    def sort_indices(self, indices: Iterable[int], column: Column, descending: bool) -> list[int]:
        """Returns some indices of lines sorted by a column; equal ones keep their order."""
        return sorted(indices, key=self.values(column).__getitem__, reverse=descending)

    @cached_property
    def words(self) -> Sequence[str]:
        """What each line is searched by, in small letters."""
        return self._words()

    def filter_indices(self, typed: str, indices: Sequence[int]) -> Sequence[int]:
        """Returns those of some indices whose lines hold every word of what was typed."""
        for word in typed.lower().split():
            indices = [index for index in indices if word in self.words[index]]
        return indices
