"""The rows of a workload file as a table: equal ones together, or each; one line a phase."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import add
from typing import Any

from simcore.analysis.blocks import rows_not_run
from simcore.analysis.explain import collective_factors, compute_factors
from simcore.analysis.layer_order import NO_SLACK, LayerOrder, longest_span
from simcore.analysis.layers import NOT_MODELLED, LayerCell, LayerGroup, LayerRows
from simcore.collectives import NAMES, cell_name
from simcore.runs.simulated import Results
from simcore.simulation import explain_alone
from simcore.trace.figures import OnDemand
from simcore.units import digits, duration, percent, plural
from simcore.workload.model import PHASES, base_name
from tui.frame import cells, wrapped
from tui.layers.columns import Shown
from tui.layers.table import TablePlace
from tui.listing import ListColumn


@dataclass(frozen=True, slots=True)
class PhaseLine:
    """One line: a phase of `group`; `first` lines carry the name and the sums of all phases.

    critical_ns, slack_ns: of the group; None while the critical path is not known.
    """

    group: LayerGroup
    phase: str
    cell: LayerCell
    first: bool
    critical_ns: int | None = None
    slack_ns: int | None = None


# Of a unit in which some phases have a line, what its lines are: by those phases as bits.
_PHASES_OF = [
    [phase for phase in range(len(PHASES)) if bits >> phase & 1] for bits in range(1 << len(PHASES))
]


class TableLines(OnDemand[PhaseLine]):
    """The lines of the table, each made when it is asked for.

    layers: what the lines are of. units: which of them, in this order; has_line: of each of all
    units the phases that have a line, as bits.
    """

    def __init__(self, layers: LayerOrder, has_line: Sequence[int], units: Sequence[int]) -> None:
        self._layers = layers
        self._table = layers.rows.table
        self._groups = layers.groups
        self._has_line = has_line
        self.units = units
        counts = map([len(phases) for phases in _PHASES_OF].__getitem__, map(has_line.__getitem__, units))
        # Of each unit its first line, and how many lines there are.
        self._begin = list(accumulate(counts, initial=0))
        super().__init__(self._begin[-1])

    def _place(self, line: int) -> int:
        """The place among the units of the one that a line is of."""
        return bisect_right(self._begin, line) - 1

    def make(self, line: int) -> PhaseLine:
        at = self._place(line)
        unit, inside = self.units[at], line - self._begin[at]
        phase = PHASES[_PHASES_OF[self._has_line[unit]][inside]]
        group = self._alone(unit) if self._groups is None else self._groups[unit]
        cell = self._table.cell(group.rows.indices[0], phase)
        if not self._layers.knows_path:
            return PhaseLine(group, phase, cell, not inside)
        critical, slack = (int(self._layers.values(key)[unit]) for key in OF_PATH)
        return PhaseLine(group, phase, cell, not inside, critical, slack)

    def unit_of(self, line: int) -> int:
        """The group, or row, that a line is of."""
        return self.units[self._place(line)]

    def line_of(self, row: int) -> int:
        """The first line of the group that row `row` of the file is in; 0 where it has none."""
        unit = row if self._groups is None else self._groups.place_of(row)
        if unit not in self.units:
            return 0
        at = self.units.index(unit)
        return self._begin[at] if self._begin[at] < self._begin[at + 1] else 0

    def next_of(self, units: Collection[int], line: int, direction: int) -> int | None:
        """The first line of one of some units, from `line` on (1) or back (-1), past the end if need be."""
        begin = self._begin
        begins = [
            begin[at] for at, unit in enumerate(self.units) if unit in units and begin[at] < begin[at + 1]
        ]
        if not begins:
            return None
        if direction > 0:
            return next((place for place in begins if place >= line), begins[0])
        return next((place for place in reversed(begins) if place <= line), begins[-1])

    def _alone(self, index: int) -> LayerGroup:
        row = self._table.row(index)
        return LayerGroup(row.name, LayerRows(self._table, (index,)), row.compute_ns, row.exposed_ns)


# From the front, as far as a screen has room. What the figures of a column are of: one run of a row, the rank
# on which all its runs take most, the critical path.
SHOWN = Shown(
    first=("name", "rows", "phase", "compute ms", "collective", "exposed ms", "% step", "alone ms", "group",
           "MB", "critical ms", "algbw", "busbw", "all ms", "slack ms"),
    always=("name", "rows", "phase", "compute ms", "collective"),
    heading="layer", name_cells=(18, 18, 40),
    of={
        "compute ms": "each", "MB": "each", "alone ms": "each", "algbw": "each", "busbw": "each",
        "all ms": "max", "exposed ms": "max", "critical ms": "the path", "slack ms": "least", "% step": "max",
    },
)  # fmt: skip
SORTED_BY = SHOWN.sorted_by

# What only the critical path knows, which a worker looks for.
OF_PATH = ("critical", "slack")
# Sorting by these prices a collective for each row, 25 us: a key must not take seconds.
PRICED = ("alone", "algbw", "busbw")
MOST_PRICED = 2000


def row_texts(line: PhaseLine, step_ns: int) -> dict[str, str]:
    """The texts of a line, by heading."""
    group, cell = line.group, line.cell
    values: dict[str, Any] = {"phase": line.phase, "compute": cell.compute_ns if cell.is_modelled else None}
    if line.first:
        values |= {
            "name": cells(group.name, SHOWN.name_cells[-1]), "rows": len(group.rows), "all": group.compute_ns,
            "exposed": group.exposed_ns, "cost": group.cost_ns, "critical": line.critical_ns,
            "slack": None if line.slack_ns == NO_SLACK else line.slack_ns,
        }  # fmt: skip
    if cell.collective and cell.group and cell.bytes:
        values |= {
            "collective": cell_name(cell.collective), "group": f"{cell.group} {cell.members}",
            "bytes": cell.bytes, "alone": cell.comm_ns,
        }  # fmt: skip
        if cell.comm_ns:
            values |= {"algbw": cell.algbw, "busbw": cell.busbw}
    texts = SHOWN.texts(values, step_ns)
    if line.first and line.critical_ns is None:
        texts["critical ms"] = texts["slack ms"] = "..."
    return texts


class WorkloadTable:
    """The table of a simulated run: see `Table`.

    each: whether each row of the file has its own lines. key: as in `LayerOrder`.
    """

    sorted_by: Mapping[str, tuple[str, bool]] = SORTED_BY
    of_path: Collection[str] = OF_PATH
    hint = "each row / equal rows together"

    def __init__(self, results: Results, each: bool) -> None:
        self.each = each
        self.layers = LayerOrder(results.layers, None if each else results.layer_groups)
        self._results = results
        # ns of the critical path by layer, once it is known.
        self._path_of: dict[str, int] = {}
        self._not_run = frozenset(rows_not_run(results.simulation))
        names = results.simulation.workload.name
        self._not_run_of = Counter(base_name(names[row]) for row in self._not_run)
        self.learn_path()
        self.key, self.descending, self.typed = "", True, ""
        columns = [results.simulation.workload.cells(phase) for phase in PHASES]
        pairs = zip(
            *(
                column
                for phase_columns in columns
                for column in (phase_columns.compute_ns, phase_columns.bytes)
            ),
            strict=True,
        )
        shown = [
            (1 if fwd_bytes or fwd not in NOT_MODELLED else 0)
            | (2 if ig_bytes or ig not in NOT_MODELLED else 0)
            | (4 if wg_bytes or wg not in NOT_MODELLED else 0)
            for fwd, fwd_bytes, ig, ig_bytes, wg, wg_bytes in pairs
        ]
        self._has_line = shown if each else [shown[row] for row in self.layers.first_row]
        self._order: Sequence[int] = range(len(self._has_line))
        self.lines = TableLines(self.layers, self._has_line, self._order)

    def learn_path(self) -> bool:
        """The figures of the critical path into the lines, where they are known; whether they are."""
        results = self._results
        if not self.layers.knows_path and results.rows.path_known:
            self.layers.know_path(results.rows.critical_ns, results.rows.slack_ns)
            names = results.simulation.workload.name
            for row, ns in enumerate(results.rows.critical_ns):
                if ns:
                    name = base_name(names[row])
                    self._path_of[name] = self._path_of.get(name, 0) + ns
        return self.layers.knows_path

    def sort(self, key: str, descending: bool) -> None:
        """Another order; "" for the first one."""
        self.key, self.descending = key, descending
        units = range(len(self._has_line))
        self._order = self.layers.sorted(key, descending) if key else units
        self.filter(self.typed)

    def filter(self, typed: str) -> None:
        """Only what holds every word of `typed`."""
        self.typed = typed.strip()
        self.lines = TableLines(self.layers, self._has_line, self.layers.matching(typed, self._order))

    def rows(self) -> tuple[int, int]:
        """(rows of the file that the filter leaves, all: those too that do nothing and have no line)."""
        sizes = self.layers.values("rows")
        with_line = [unit for unit in range(len(self._has_line)) if self._has_line[unit]]
        left = self.layers.matching(self.typed, with_line)
        return sum(int(sizes[unit]) for unit in left), sum(map(int, sizes))

    @cached_property
    def _without_line(self) -> list[int]:
        """Asked for at each picture, found once."""
        return [unit for unit, phases in enumerate(self._has_line) if not phases]

    def empty(self, typed: str) -> int:
        """How many rows of the file hold every word of `typed` and do nothing: they have no line."""
        sizes = self.layers.values("rows")
        return sum(int(sizes[unit]) for unit in self.layers.matching(typed, self._without_line))

    def inside(self, typed: str, line: int) -> str:
        row = self.layers.inside(typed, self.lines.unit_of(line)) if len(self.lines) else None
        if row is None:
            return ""
        workload = self._results.simulation.workload
        name = cells(workload.name[row], 30)
        return f"{name}, line {workload.line[row]}, is one of these; Space shows each"

    def no_match(self, typed: str) -> str:
        """That no line has these words, and how many rows without one have them."""
        if not typed.strip():
            return "no row does anything"
        empty = self.empty(typed)
        if not empty:
            return "no row has these words"
        return f"only {plural(empty, 'empty row')} of the file {'has' if empty == 1 else 'have'} these words"

    def find(self, typed: str, line: int, direction: int) -> int | None:
        """The first line of what holds every word of `typed`, from `line` on (1) or back (-1), and round."""
        if not typed.strip():
            return None
        return self.lines.next_of(frozenset(self.layers.matching(typed, self.lines.units)), line, direction)

    @property
    def subject(self) -> object:
        return self._results

    def apart(self, each: bool) -> WorkloadTable:
        return WorkloadTable(self._results, each)

    @property
    def can_regroup(self) -> bool:
        return False

    def regrouped(self) -> None:
        return None

    def columns_for(self, width: int) -> list[ListColumn]:
        return SHOWN.columns_for(width)

    def texts(self, line: int) -> dict[str, str]:
        return row_texts(self.lines[line], self._results.simulation.step_time_ns)

    # -- words -----------------------------------------------------------------------------

    def counted(self) -> str:
        not_run = f", {len(self._not_run)} not run" if self._not_run else ""
        return plural(len(self._results.simulation.workload), "row") + not_run + self._empty_words()

    def left(self) -> str:
        left, whole = self.rows()
        return f"{left} of {plural(whole, 'row')}{self._empty_words()}"

    def _empty_words(self) -> str:
        # What does nothing has no line: the lines alone would not add up.
        count = self.empty(self.typed)
        return f", {count} empty" if count else ""

    def order(self) -> tuple[str, str]:
        if self.each:
            return "in file order", "in file order"
        return "equal ones together, most of the step first", "most first"

    def legend(self, columns: Sequence[ListColumn], short: bool) -> str:
        compute = "all: compute; " if any(column.heading == "all ms" for column in columns) else ""
        path = any(column.of == "the path" for column in columns)
        through = "; the path: through all ranks" if path else ""
        return f"{compute}max: the rank with most{through}"

    def cannot_sort(self, heading: str) -> str:
        if heading not in SORTED_BY:
            return "the phases of a row stay together: another column sorts"
        key, _ = SORTED_BY[heading]
        if key in OF_PATH and not self.learn_path():
            return "the critical path is not ready yet: press o when the column has figures"
        if key in PRICED and len(self.layers.first_row) > MOST_PRICED:
            return f"{heading} is priced row by row: not for more than {MOST_PRICED} rows"
        return ""

    # -- places ----------------------------------------------------------------------------

    def find_path(self, cancelled: Callable[[], bool]) -> object:
        return self._results.compute_layer_path(cancelled)

    def mark(self, line: int) -> tuple[int, str]:
        """(row of the file, phase) of a line, the first of equal rows."""
        phase_line = self.lines[line]
        return phase_line.group.rows.indices[0], phase_line.phase

    def line_of(self, mark: Hashable) -> int:
        """Where a row and phase are now; the row's first line where its phase has none."""
        assert isinstance(mark, tuple)
        lines, (row, phase) = self.lines, mark
        first = lines.line_of(row)
        own = range(first, min(first + len(PHASES), len(lines)))
        return next(
            (at for at in own if row in lines[at].group.rows.indices and lines[at].phase == phase), first
        )

    def first_line(self, line: int) -> int:
        while line > 0 and not self.lines[line].first:
            line -= 1
        return line

    def place(self, line: int) -> TablePlace | None:
        """The longest span of a line's phase, else of its rows."""
        phase_line = self.lines[line]
        rows, timeline = frozenset(phase_line.group.rows.indices), self._results.simulation.timeline
        seen = longest_span(timeline, rows, phase_line.phase) or longest_span(timeline, rows)
        return None if seen is None else TablePlace(*seen)

    def origin(self, line: int, width: int) -> tuple[str, list[tuple[str, str]]]:
        phase_line = self.lines[line]
        rows = phase_line.group.rows
        where = f"line {rows[0].line}" + (f" and {len(rows) - 1} more" if len(rows) > 1 else "")
        same = self._same_name(phase_line)
        more = [(text, "") for text in wrapped(same, width)] if same else []
        return f"{cells(phase_line.group.name, 40)}, {phase_line.phase}, {where}", [
            *self._cell_words(line, width),
            *more,
        ]

    def _cell_words(self, line: int, width: int) -> list[tuple[str, str]]:
        """How the collective of a line is priced, and where its compute comes from."""
        phase_line = self.lines[line]
        cell, rows = phase_line.cell, phase_line.group.rows
        simulation = self._results.simulation
        if cell.collective and cell.group and cell.bytes:
            explained = explain_alone(
                simulation, cell.collective, cell.group, simulation.priced_bytes(phase_line.phase, cell.bytes)
            )
            factors = collective_factors(simulation, rows[0], cell)
            explained += f"{factors} = {digits(cell.comm_ns)} ns" if factors else ""
        else:
            explained = "no collective in this phase"
            if cell.collective and cell.bytes:
                explained = f"{NAMES[cell.collective]}: the policy lets nobody take part in it"
        factors = compute_factors(simulation, rows[0], phase_line.phase)
        compute = f"compute {duration(cell.compute_ns)} a run, from the file"
        if factors:
            compute += f": {duration(cell.stated_ns)}{factors}"
        if not cell.is_modelled:
            compute = f"compute not modelled in the file ({duration(cell.compute_ns)})"
        maker = simulation.workload.maker
        if maker is not None:
            # A model's cells are sums of ops, which `report --explain` has one a line.
            phase = next(known for known in PHASES if known == phase_line.phase)
            ops = maker.summed(simulation.setup.model, rows[0].index, phase)
            compute = f"compute {duration(cell.compute_ns)} a run"
            if factors:
                compute += f" = {f'({ops})' if ops else duration(cell.stated_ns)}{factors}"
            elif ops:
                compute += f" = {ops}"
        return [*((text, "") for text in wrapped(explained, width)), (compute, "dim")]

    def more(self, line: int, width: int) -> list[tuple[str, str]]:
        """The other phases of the row's lines."""
        first = self.first_line(line)
        last = first + 1
        while last < len(self.lines) and not self.lines[last].first:
            last += 1
        lines: list[tuple[str, str]] = []
        for other in range(first, last):
            if other != line:
                lines += [(f"{self.lines[other].phase}:", "bright"), *self._cell_words(other, width)]
        return lines

    def _same_name(self, line: PhaseLine) -> str:
        """What all rows of the layer take, where it has others than those of this line; "" where not."""
        groups, names = self._results.layer_groups, self._results.simulation.workload.name
        name = base_name(names[line.group.rows.indices[0]])
        rows = sum(
            size
            for first, size in zip(groups.first_row, groups.sizes, strict=True)
            if base_name(names[first]) == name
        )
        here = line.group.rows.indices
        if rows <= len(here):
            return ""
        rows -= self._not_run_of[name]
        ns = groups.by_name(list(map(add, groups.compute_ns, groups.exposed_ns)))[name]
        step = self._results.simulation.step_time_ns
        share = percent(ns, step)
        words = f"all {rows} rows of {cells(name, 40)}: {duration(ns)} on a rank, {share} % of the step; "
        if name in self._path_of:
            # Screen 4 has this share, several times the other: the path goes from stage to stage.
            path = self._path_of[name]
            words += f"{duration(path)}, {percent(path, step)} %, on the critical path through all ranks; "
        return f"{words}this line has {len(here) - len(self._not_run.intersection(here))} of them"
