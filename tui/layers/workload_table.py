"""The rows of a workload file as a table: equal ones together, or each; one line a phase."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from functools import cached_property, partial
from itertools import accumulate
from operator import add
from typing import Any

from simcore.analysis.blocks import find_rows_not_run
from simcore.analysis.explain import collective_factors, compute_factors, packed_words
from simcore.analysis.layer_order import find_longest_span, find_row_inside, search_texts, sort_values
from simcore.analysis.layers import NOT_MODELLED, LayerCell, LayerLines
from simcore.collectives import NAMES
from simcore.records import NamedTuple
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import explain_alone
from simcore.trace.figures import LazySequence
from simcore.trace.layers import LayerOrder, LayerUse, Of
from simcore.units import duration, group_digits, percent, plural
from simcore.workload.model import PHASES, base_name
from tui.frame import cells, wrapped
from tui.layers.columns import ShownColumns
from tui.layers.table import Table, TableSelection
from tui.listing import ListColumn


class PhaseLine(NamedTuple):
    """One line: a phase of `group`."""

    group: LayerUse
    cell: LayerCell
    first: bool
    """Whether it is the first line of its group, which has the name and the sums of all phases."""

    @property
    def phase(self) -> str:
        """Which phase it is."""
        return self.cell.phase


# By the phases of a unit that have a line, as bits: the lines of the unit.
_PHASES_OF = [
    [phase for phase in range(len(PHASES)) if bits >> phase & 1] for bits in range(1 << len(PHASES))
]


class TableLines(LazySequence[PhaseLine]):
    """The lines of the table, each made on demand.

    `units` is what the lines are of, `has_line` for each unit the phases that have a line, as bits,
    `unit_indices` some units, in this order.
    """

    def __init__(self, units: LayerLines, has_line: Sequence[int], unit_indices: Sequence[int]) -> None:
        self._units, self._has_line, self.unit_indices = units, has_line, unit_indices
        counts = map(
            [len(phases) for phases in _PHASES_OF].__getitem__, map(has_line.__getitem__, unit_indices)
        )
        # For each unit its first line, and how many lines there are.
        self._first_lines = list(accumulate(counts, initial=0))
        super().__init__(self._first_lines[-1])

    def _index_of_line(self, line: int) -> int:
        """Returns the index, among the units here, of the one that a line is of."""
        return bisect_right(self._first_lines, line) - 1

    def make(self, line: int) -> PhaseLine:
        at = self._index_of_line(line)
        unit, offset = self.unit_indices[at], line - self._first_lines[at]
        phase = PHASES[_PHASES_OF[self._has_line[unit]][offset]]
        group = self._units[unit]
        return PhaseLine(group, self._units.table.cell(group.rows[0], phase), not offset)

    def unit_of(self, line: int) -> int:
        """Returns the index of the unit that a line is of."""
        return self.unit_indices[self._index_of_line(line)]

    def line_of(self, row: int) -> int:
        """Returns the first line of the unit that row `row` of the file is in; 0 where it has none."""
        unit = self._units.index_of_row(row)
        if unit not in self.unit_indices:
            return 0
        at = self.unit_indices.index(unit)
        return self._first_lines[at] if self._first_lines[at] < self._first_lines[at + 1] else 0

    def next_of(self, units: Collection[int], line: int, direction: int) -> int | None:
        """Returns the first line of one of some units, from `line` on (1) or back (-1), wrapping around."""
        begin = self._first_lines
        begins = [
            begin[at]
            for at, unit in enumerate(self.unit_indices)
            if unit in units and begin[at] < begin[at + 1]
        ]
        if not begins:
            return None
        if direction > 0:
            return next((start for start in begins if start >= line), begins[0])
        return next((start for start in reversed(begins) if start <= line), begins[-1])


# Sorting by these prices a collective for each row, 25 us each: a key must not take seconds.
PRICED_COLUMNS = ("alone", "algbw", "busbw")
MOST_PRICED = 2000
WORKLOAD_COLUMNS = ShownColumns("rows", 5, "layer", (18, 18, 40))


class WorkloadTable(Table):
    """The table of a simulated run: see `Table`.

    `each` says whether each row of the file has its own lines.
    """

    hint = "each row / equal rows together"
    lines: TableLines

    def __init__(self, results: SimulatedRun, each: bool) -> None:
        self.each, self._results = each, results
        self.units = units = results.layers if each else results.layer_groups
        # ns of the critical path by layer, once it is known.
        self._path_of: dict[str, int] = {}
        self._not_run = frozenset(find_rows_not_run(results.simulation))
        names = results.simulation.workload.name
        self._not_run_of = Counter(base_name(names[row]) for row in self._not_run)
        columns = [results.simulation.workload.cells(phase) for phase in PHASES]
        pairs = zip(
            *(
                column
                for phase_columns in columns
                for column in (phase_columns.compute_ns, phase_columns.bytes)
            ),
            strict=True,
        )
        phase_bits = [
            (1 if fwd_bytes or fwd not in NOT_MODELLED else 0)
            | (2 if ig_bytes or ig not in NOT_MODELLED else 0)
            | (4 if wg_bytes or wg not in NOT_MODELLED else 0)
            for fwd, fwd_bytes, ig, ig_bytes, wg, wg_bytes in pairs
        ]
        self._has_line = phase_bits if each else [phase_bits[row] for row in units.first_row]
        layers = LayerOrder(units, lambda: search_texts(units), partial(sort_values, units))
        super().__init__(layers, WORKLOAD_COLUMNS, results.simulation.step_time_ns)

    def learn_path(self) -> bool:
        """Returns whether the figures of the critical path are known; fills in those of each layer once they
        are.
        """
        results = self._results
        is_known = results.rows.path_known
        if is_known and not self._path_of:
            names = results.simulation.workload.name
            for row, ns in enumerate(results.rows.critical_ns):
                if ns:
                    name = base_name(names[row])
                    self._path_of[name] = self._path_of.get(name, 0) + ns
        return is_known

    def show(self, indices: Sequence[int]) -> None:
        self.lines = TableLines(self.units, self._has_line, indices)

    def rows(self) -> tuple[int, int]:
        """Returns (rows of the file that the filter leaves, all, including those that do nothing and have no
        line).
        """
        with_line = [unit for unit, phases in enumerate(self._has_line) if phases]
        left = self.layers.filter_indices(self.typed, with_line)
        return self._count_rows(left), len(self._results.simulation.workload)

    def _count_rows(self, units: Iterable[int]) -> int:
        """Returns how many rows of the file are in some units."""
        return sum(map(self.units.sizes.__getitem__, units))

    @cached_property
    def _without_line(self) -> list[int]:
        """The units without a line; cached, because each drawing needs them."""
        return [unit for unit, phases in enumerate(self._has_line) if not phases]

    def count_empty(self, typed: str) -> int:
        """Returns how many rows of the file contain every word of `typed` and do nothing: they have
        no line.
        """
        return self._count_rows(self.layers.filter_indices(typed, self._without_line))

    def inside(self, typed: str, line: int) -> str:
        row = find_row_inside(self.units, typed, self.lines.unit_of(line)) if len(self.lines) else None
        if row is None:
            return ""
        workload = self._results.simulation.workload
        name = cells(workload.name[row], 30)
        return f"{name}, line {workload.line[row]}, is one of these; Space shows each"

    def no_match(self, typed: str) -> str:
        """Returns that no line has these words, and how many rows without one have them."""
        if not typed.strip():
            return "no row does anything"
        empty = self.count_empty(typed)
        if not empty:
            return "no row has these words"
        return f"only {plural(empty, 'empty row')} of the file {'has' if empty == 1 else 'have'} these words"

    def find(self, typed: str, line: int, direction: int) -> int | None:
        """Returns the first line that contains every word of `typed`, from `line` on (1) or back (-1),
        wrapping around.
        """
        if not typed.strip():
            return None
        return self.lines.next_of(
            frozenset(self.layers.filter_indices(typed, self.lines.unit_indices)), line, direction
        )

    @property
    def subject(self) -> object:
        return self._results

    def apart(self, each: bool) -> WorkloadTable:
        return WorkloadTable(self._results, each)

    def texts(self, line: int) -> dict[str, str]:
        is_path_known, (group, cell, first) = self.learn_path(), self.lines[line]
        sends = cell.collective and cell.group and cell.bytes
        of: dict[Of, Any] = {"line": group if first else None, "cell": cell, "sent": cell if sends else None}
        return self.cell_texts(of, is_path_known)

    # -- words -----------------------------------------------------------------------------

    def count_text(self) -> str:
        not_run = f", {len(self._not_run)} not run" if self._not_run else ""
        return plural(len(self._results.simulation.workload), "row") + not_run + self._empty_words()

    def left(self) -> str:
        remaining, total = self.rows()
        return f"{remaining} of {plural(total, 'row')}{self._empty_words()}"

    def _empty_words(self) -> str:
        # Rows that do nothing have no line: the lines alone would not add up.
        count = self.count_empty(self.typed)
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
        if heading not in self.sorted_by:
            return "the phases of a row stay together: another column sorts"
        if self.sorted_by[heading][0] in PRICED_COLUMNS and len(self.units) > MOST_PRICED:
            return f"{heading} is priced row by row: not for more than {MOST_PRICED} rows"
        return super().cannot_sort(heading)

    # -- positions -------------------------------------------------------------------------

    def find_path(self, cancelled: Callable[[], bool]) -> object:
        return self._results.compute_layer_path(cancelled)

    def mark(self, line: int) -> tuple[int, str]:
        """Returns (row of the file, phase) of a line, the first of equal rows."""
        phase_line = self.lines[line]
        return phase_line.group.rows[0], phase_line.phase

    def line_of(self, mark: Hashable) -> int:
        """Returns the line of a row and phase now; the row's first line where its phase has none."""
        assert isinstance(mark, tuple)
        lines, (row, phase) = self.lines, mark
        first = lines.line_of(row)
        phase_lines = range(first, min(first + len(PHASES), len(lines)))
        return next(
            (at for at in phase_lines if row in lines[at].group.rows and lines[at].phase == phase), first
        )

    def first_line(self, line: int) -> int:
        while line > 0 and not self.lines[line].first:
            line -= 1
        return line

    def find_selection(self, line: int) -> TableSelection | None:
        """Returns the longest span of a line's phase, else of its rows."""
        phase_line = self.lines[line]
        rows, timeline = frozenset(phase_line.group.rows), self._results.simulation.timeline
        span = find_longest_span(timeline, rows, phase_line.phase) or find_longest_span(timeline, rows)
        return None if span is None else TableSelection(*span)

    def origin(self, line: int, width: int) -> tuple[str, list[tuple[str, str]]]:
        phase_line = self.lines[line]
        rows = phase_line.group.rows
        location = f"line {phase_line.group.in_file[0]}" + (
            f" and {len(rows) - 1} more" if len(rows) > 1 else ""
        )
        same = self._same_name(phase_line)
        more = [(text, "") for text in wrapped(same, width)] if same else []
        return f"{cells(phase_line.group.title, 40)}, {phase_line.phase}, {location}", [
            *self._cell_words(line, width),
            *more,
        ]

    def _cell_words(self, line: int, width: int) -> list[tuple[str, str]]:
        """Returns how the collective of a line is priced, and where its compute comes from."""
        phase_line = self.lines[line]
        cell, rows = phase_line.cell, phase_line.group.rows
        simulation = self._results.simulation
        if cell.collective and cell.group and cell.bytes:
            explanation = explain_alone(
                simulation, cell.collective, cell.group, simulation.priced_bytes(phase_line.phase, cell.bytes)
            )
            factors = collective_factors(simulation, rows[0], cell)
            explanation += f"{factors} = {group_digits(cell.comm_ns)} ns" if factors else ""
        else:
            explanation = "no collective in this phase"
            if cell.collective and cell.bytes:
                explanation = f"{NAMES[cell.collective]}: the policy lets nobody take part in it"
        factors = compute_factors(simulation, rows[0], phase_line.phase)
        compute = f"compute {duration(cell.compute_ns)} a run, from the file"
        if factors:
            compute += f": {duration(cell.stated_ns)}{factors}"
        if not cell.is_modelled:
            compute = f"compute not modelled in the file ({duration(cell.compute_ns)})"
        maker = simulation.workload.maker
        if maker is not None:
            # A model's cells are sums of ops, which `report --explain` lists one a line.
            phase = next(name for name in PHASES if name == phase_line.phase)
            ops = maker.summarize_ops(simulation.setup.model, rows[0], phase)
            compute = f"compute {duration(cell.compute_ns)} a run"
            if factors:
                compute += f" = {f'({ops})' if ops else duration(cell.stated_ns)}{factors}"
            elif ops:
                compute += f" = {ops}"
            compute += packed_words(simulation, rows[0], phase)
        return [*((text, "") for text in wrapped(explanation, width)), (compute, "dim")]

    def extra_lines(self, line: int, width: int) -> list[tuple[str, str]]:
        """Returns the other phases of the row's lines."""
        first = self.first_line(line)
        last = first + 1
        while last < len(self.lines) and not self.lines[last].first:
            last += 1
        lines: list[tuple[str, str]] = []
        for other in range(first, last):
            if other != line:
                lines += [(f"{self.lines[other].phase}:", "bright"), *self._cell_words(other, width)]
        return lines

    @cached_property
    def _use_of_name(self) -> dict[str, tuple[int, int]]:
        """By layer how many rows it has, and what they take on a rank, ns: 0.1 s for 100,000 rows."""
        groups = self._results.layer_groups
        rows = groups.sum_by_name(groups.sizes)
        ns = groups.sum_by_name(list(map(add, groups.compute_ns, groups.exposed_ns)))
        return {name: (count, ns[name]) for name, count in rows.items()}

    def _same_name(self, line: PhaseLine) -> str:
        """Returns what all rows of the layer take, where it has others than those of this line; ""
        where not.
        """
        here = line.group.rows
        name = base_name(self._results.simulation.workload.name[here[0]])
        rows, ns = self._use_of_name[name]
        if rows <= len(here):
            return ""
        rows -= self._not_run_of[name]
        step = self._results.simulation.step_time_ns
        share = percent(ns, step)
        words = f"all {rows} rows of {cells(name, 40)}: {duration(ns)} on a rank, {share} % of the step; "
        if name in self._path_of:
            # Screen 4 has this share, several times the other: the path goes from stage to stage.
            path = self._path_of[name]
            words += f"{duration(path)}, {percent(path, step)} %, on the critical path through all ranks; "
        return f"{words}this line has {len(here) - len(self._not_run.intersection(here))} of them"
