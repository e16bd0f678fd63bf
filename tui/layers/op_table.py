"""The operations of a trace as a table: equal ones of all ranks together, or each rank's alone.

The origin of their figures is explained in words: runs, ranks, bytes, the step.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any

from simcore.measured.vocabulary import POINT_TO_POINT
from simcore.ranks import RankSet
from simcore.replay.operations import Operations, groupings
from simcore.trace.layers import Column, LayerOrder, LayerUse, columns_of
from simcore.units import byte_size, duration, percent, plural
from tui.frame import cells, name_cut, wrapped
from tui.layers.columns import ShownColumns
from tui.layers.table import Table, TableSelection
from tui.listing import ListColumn

NONE_MATCHES, NO_OPERATIONS = "no operation has these words", "the run has no operations"
# A name's cells: the least, where the other columns of a width leave no more, and the most.
_LEAST_NAME, _LEAST_NAME_OF_RANK, _MOST_NAME = 26, 20, 48
# On a terminal of less than 80 columns.
_NARROWEST_NAME = 12
_WITH_WAITS = " mean+wait"
_UNTIMED = frozenset(("name", "rank", "kind", "work", "count", "ranks"))


class OpTable(Table):
    """The table of a measured run: see `Table`. Each rank's operations may have their own lines."""

    def __init__(self, operations: Operations, each: bool) -> None:
        self._operations = operations
        run = operations.results.run
        self._ranks = run.ranks
        self._unit, self._of_devices = run.unit, run.of_devices
        self._has_several = len(run.ranks) > 1
        self.each = each and self._has_several
        self.hint = f"each {self._unit} / all {self._unit}s together" if self._has_several else ""
        self._has_path = False
        self._rows = operations.of_each_rank if self.each else operations.together
        layers = LayerOrder(self._rows, self._words, self._sort_values)
        super().__init__(layers, self._make_columns(), run.step_time_ns)

    def _make_columns(self) -> ShownColumns:
        id_cells = len(str(self._ranks[-1].rank))
        # A plan has stages in place of ranks.
        headings = {name: name.replace("rank", self._unit) for name in ("rank", "ranks")}
        sizes = {"rank": id_cells}
        if self.each:
            headings["times mean"] = "to mean"
        else:
            sizes["times mean"] = id_cells + len(" x1.00")
        return ShownColumns(
            "operations",
            5,
            "operation",
            (_LEAST_NAME_OF_RANK if self.each else _LEAST_NAME, _NARROWEST_NAME, _MOST_NAME),
            self._of_devices,
            frozenset(self._hidden_columns()),
            headings,
            sizes,
            self._has_several and not self.each,
        )

    def _hidden_columns(self) -> set[str]:
        """Returns the columns that say nothing of this run."""
        without = {"ranks"} if self.each else {"rank"}
        if not self._has_several:
            without |= {"ranks", "times mean"}
        if not self._operations.timed:
            return without | {column.key for column in columns_of("operations") if column.key not in _UNTIMED}
        if not self._operations.results.waiting:
            without.add("waits")
        if not self._operations.results.together:
            # Their time without waiting was not measured.
            without.add("algbw")
        return without

    def first_order(self) -> list[int]:
        all_rows = range(len(self._rows))
        if not self._operations.timed:
            return list(all_rows)

        def most_first(at: int) -> tuple[int, int, int]:
            one = self._rows[at]
            return one.runs.ranks[0] if self.each else 0, -one.cost_ns, -(one.runs.total_ns or 0)

        return sorted(all_rows, key=most_first)

    @property
    def subject(self) -> object:
        return self._operations

    def apart(self, each: bool) -> OpTable:
        return OpTable(self._operations, each)

    @cached_property
    def can_regroup(self) -> bool:
        return len(groupings(self._operations.whole.measured)) > 1

    def regrouped(self) -> OpTable | None:
        available = groupings(self._operations.whole.measured)
        if len(available) < 2:
            return None
        next_grouping = available[(available.index(self._operations.by) + 1) % len(available)]
        return OpTable(Operations(self._operations.whole, next_grouping), self.each)

    # -- words -----------------------------------------------------------------------------

    def count_text(self) -> str:
        if self.each:
            return f"{self._count_text}, each {self._unit}'s alone"
        inside = sum(operation.inside for operation in self._rows)
        others = f" ({inside} inside others)" if inside else ""
        return f"{self._count_text}{others}, {self._whose()}"

    @property
    def _count_text(self) -> str:
        """How many lines there are, with their noun."""
        noun = {"operation": "launching operation", "layer": "layer"}.get(self._operations.by, "operation")
        return plural(len(self._rows), noun)

    def _whose(self) -> str:
        if not self._has_several:
            return f"{self._unit} {self._ranks[0].rank}"
        return f"{plural(len(self._ranks), self._unit)} together"

    def left(self) -> str:
        whose = f"each {self._unit}'s alone" if self.each else self._whose()
        return f"{len(self.lines)} of {self._count_text}, {whose}"

    def order(self) -> tuple[str, str]:
        if not self._operations.timed:
            return "in file order, no times", "in file order, no times"
        by = f"by {self._unit}, " if self.each else ""
        return f"{by}most of the step first", f"{by}most first"

    def legend(self, columns: Sequence[ListColumn], short: bool) -> str:
        if not self._operations.timed or not self._has_several:
            return ""
        if self.each:
            has_mean = any(column.heading == "to mean" for column in columns)
            return f"to mean: of all {self._unit}s" if has_mean else ""
        most = f"max: the {self._unit} with most"
        path = (
            f"; the path: through all {self._unit}s"
            if any(column.of == "the path" for column in columns)
            else ""
        )
        if short:
            return f"{most}{path}"
        return f"mean: of a {self._unit}, with waiting; {most}{path}"

    def no_match(self, typed: str) -> str:
        return NONE_MATCHES if typed.strip() else NO_OPERATIONS

    def columns_for(self, width: int) -> list[ListColumn]:
        columns = super().columns_for(width)
        if (
            "waits" in self.columns.without
            or not self._operations.timed
            or any(one.heading == "waits ms" for one in columns)
        ):
            return columns
        # The mean duration includes waits, the share of the step does not: a mean of 390 ms and 2.7 % of the
        # step cannot be compared.
        wider = []
        for one in columns:
            if one.heading == "time ms" and one.of:
                one = one._replace(size=len(_WITH_WAITS), of=_WITH_WAITS)
            elif one.heading == self.columns.heading and self.columns.of_several:
                less = len(_WITH_WAITS) - next(one.size for one in columns if one.heading == "time ms")
                one = one._replace(size=max(one.size - less, _NARROWEST_NAME))
            wider.append(one)
        return wider

    def find_volume(self, of: LayerUse) -> Any:
        return self._operations.find_volume(self._rows[of.index])

    def _sort_values(self, column: Column) -> list[Any]:
        of_lines = column.of == "line"
        return column.sort_values(self._rows if of_lines else map(self._operations.find_volume, self._rows))

    def texts(self, line: int) -> dict[str, str]:
        operation, texts = self.of_line(line), super().texts(line)
        if operation.runs.times_mean is not None and "most on" in texts:
            texts["most on"] = f"{self._ranks[operation.runs.own_rank].rank} {texts['most on']}"
        return texts

    def learn_path(self) -> bool:
        is_known = self._operations.path_known
        if is_known and self._operations.timed and not self._has_path:
            self._has_path = True
            self._rows = self._operations.with_path(self._rows)
            self.layers.replace_lines(self._rows)
        return is_known

    def find_path(self, cancelled: Callable[[], bool]) -> object:
        self._operations.find_path()
        return self._operations

    # -- find and filter -------------------------------------------------------------------

    def matching(self, typed: str, indices: Sequence[int]) -> list[int]:
        """Returns those whose name, kind or rank contain every word; a number must be a complete rank."""
        matches = list(indices)
        for word in typed.lower().split():
            words = self.layers.words
            matches = [at for at in matches if word in words[at] or word == str(self._rows[at].runs.rank)]
        return matches

    def _words(self) -> list[str]:
        words = f" {self._unit}" if self.each else ""
        return [f"{op.title} {' '.join(op.kinds)} {op.runs.work}{words}".lower() for op in self._rows]

    # -- positions -------------------------------------------------------------------------

    def mark(self, line: int) -> tuple[str, str | None, int | None]:
        operation = self.of_line(line)
        return *operation.key, operation.runs.rank

    def line_of(self, mark: Hashable) -> int:
        """Returns the line of an operation now: that of its rank, else the first one of that name."""
        assert isinstance(mark, tuple)
        same_name = [line for line, at in enumerate(self.lines) if self._is(self._rows[at], mark)]
        same_rank = (line for line in same_name if self.of_line(line).runs.rank == mark[2])
        return next(same_rank, same_name[0] if same_name else 0)

    @staticmethod
    def _is(operation: LayerUse, mark: tuple[object, ...]) -> bool:
        return operation.key == mark[:2]

    def find_selection(self, line: int) -> TableSelection | None:
        rank, start, end, stream = self._operations.find_longest_run(self.of_line(line))
        # An instant is drawn 1 ns wide.
        return TableSelection(rank, start, max(end, start + 1), stream)

    def origin(self, line: int, width: int) -> tuple[str, list[tuple[str, str]]]:
        operation = self.of_line(line)
        whose = "" if operation.runs.rank is None else f", {self._unit} {operation.runs.rank}"
        sentences = _sentences(self._operations, operation)
        lines = [(line, role) for words, role in sentences for line in wrapped(words, width)]
        return f"{name_cut(operation.title, 60)}{whose}", lines

    def extra_lines(self, line: int, width: int) -> list[tuple[str, str]]:
        """Returns the same operation on each of its ranks, the one with the largest share of the
        step first.
        """
        operation = self.of_line(line)
        if operation.runs.rank is not None or len(operation.runs.ranks) < 2 or not self._operations.timed:
            return []
        ranks = [other for other in self._operations.of_each_rank if other.key == operation.key]
        ranks.sort(key=lambda other: (-other.cost_ns, other.runs.ranks))
        lines = [
            (
                f"{self._unit:>6}{'runs':>7}{'a run':>11}{'the longest':>13}{'waits':>11}{'% step':>8}",
                "bright",
            )
        ]
        for other in ranks:
            runs = other.runs
            run, most = ("-" if ns is None else duration(round(ns)) for ns in (runs.run_ns, runs.most_ns))
            lines.append(
                (
                    f"{runs.rank:>6}{runs.count:>7}{run:>11}{most:>13}{duration(runs.waits_ns or 0):>11}"
                    f"{percent(other.cost_ns, self.step_ns):>8}",
                    "",
                )
            )
        return lines


def _sentences(operations: Operations, operation: LayerUse) -> Iterator[tuple[str, str]]:
    """Yields the sentences on the origin of its figures, with their roles."""
    yield _runs_text(operations, operation), ""
    if not operations.timed:
        return
    if operation.runs.measured:
        yield _durations_text(operations, operation), ""
    traffic_text = _traffic_text(operations, operation)
    if traffic_text:
        yield traffic_text, ""
    yield _step_text(operations, operation), "dim"


def _runs_text(operations: Operations, operation: LayerUse) -> str:
    """Returns how often it runs, and where."""
    run = operations.results.run
    whose = _ranks_text(operations, operation)
    words = f"{plural(operation.runs.count or 0, 'run')} {whose}"
    without = (operation.runs.count or 0) - operation.runs.measured
    if run.timed and without:
        words += f", {without} of them without a duration in the file"
    return words if run.timed else f"{words}; the file has no times"


def _ranks_text(operations: Operations, operation: LayerUse) -> str:
    run = operations.results.run
    rank_ids = [run.ranks[rank].rank for rank in operation.runs.ranks]
    on = "on" if run.unit == "rank" else "of"
    if len(rank_ids) == 1:
        return f"{on} {run.unit} {rank_ids[0]}"
    text = RankSet.of(rank_ids).text()
    return f"{on} {plural(len(rank_ids), run.unit)} ({text if len(text) <= 40 else cells(text, 40)})"


def _durations_text(operations: Operations, operation: LayerUse) -> str:
    """Returns how long its runs are, and how much of the longest is waiting."""
    mean = duration(round(operation.runs.run_ns or 0))
    if operation.runs.measured == 1:
        return f"it takes {mean}{_waiting_text(operations, operation)}"
    least = f"the fastest {duration(operation.runs.least_ns or 0)}"
    most = f"the slowest {duration(operation.runs.most_ns or 0)}"
    if len(operation.runs.ranks) > 1 and operation.runs.longest is not None:
        least += f" ({_rank_text(operations, operation.runs.least_rank)})"
        most += f" ({_rank_text(operations, operation.runs.longest[0])}{_batch_text(operation)})"
    elif operation.runs.most_batch >= 0:
        most += f" ({_batch_text(operation)[2:]})"
    return f"a run takes {mean} on average, {least}, {most}{_waiting_text(operations, operation)}"


def _waiting_text(operations: Operations, operation: LayerUse) -> str:
    """Returns how long the longest run waits, and for whom most."""
    waits = operations.waits_of_longest(operation)
    if not waits:
        return ""
    ns = sum(wait.ns for wait in waits)
    late: dict[int, int] = {}
    for wait in waits:
        late[wait.late] = late.get(wait.late, 0) + wait.ns
    most = max(late, key=lambda rank: late[rank])
    others = " and others" if len(late) > 1 else ""
    return f", of which it waits {duration(ns)} for {_rank_text(operations, most)}{others}"


def _traffic_text(operations: Operations, operation: LayerUse) -> str:
    """Returns its bytes, and their rate where that is known."""
    sizes = operations.sizes(operation)
    if sizes is None:
        return ""
    words = f"a buffer of {byte_size(sizes[1])} a run"
    if sizes[0] != sizes[1]:
        words = f"buffers of {byte_size(sizes[0])} to {byte_size(sizes[1])}"
    transfers = operations.find_transfers(operation)
    if transfers.ns:
        mean = duration(round(transfers.ns / transfers.times))
        when = f"through {mean} after the last rank comes"
        if operation.parent in POINT_TO_POINT:
            when = f"there {mean} after the send begins"
        of = f", mean of {transfers.times}" if transfers.times > 1 else ""
        words += f"; {when}{of}: algbw {transfers.algbw:.1f} GB/s"
    unmatched = operations.without_partner(operation)
    if unmatched:
        runs = (
            "it has"
            if (operation.runs.count or 0) == 1
            else f"{unmatched} of {plural(operation.runs.count or 0, 'run')} have"
        )
        unknown = "so waiting counts as communication"
        if operations.overlaps_compute(operation):
            unknown = "so what compute waited for is not known"
        words += f"; {runs} no partner that waited, {unknown}"
    return words


def _step_text(operations: Operations, operation: LayerUse) -> str:
    """Returns its share of the step on the rank with most of it, and its share of the critical path."""
    results = operations.results
    parts = {"compute": operation.use.compute_ns, "exposed": operation.use.exposed_ns}
    own_parts = [f"{word} {duration(ns)}" for word, ns in parts.items() if ns]
    if not own_parts and operation.cost_ns:
        own_parts = [f"host {duration(operation.cost_ns)}"]
    if not own_parts:
        words = (
            "of the step: nothing but waiting"
            if operation.runs.waits_ns
            else "of the step: nothing of its own"
        )
        words += ", it runs beside compute" if operations.overlaps_compute(operation) else ""
    else:
        words = f"of the step: {', '.join(own_parts)} ({percent(operation.cost_ns, results.step_time_ns)} %)"
        if operation.runs.rank is None and len(operation.runs.ranks) > 1:
            words += f" on {_rank_text(operations, operation.runs.own_rank)}, the most of a rank"
        if operation.runs.times_mean is not None and len(results.run.ranks) > 1:
            words += f", {operation.runs.times_mean:.2f} times the mean of all that run it"
            if operation.runs.waits_ns:
                # The mean above is another one, of its duration with its waits.
                words += f" ({duration(round(operation.runs.mean_own_ns))} without waits)"
    if operations.path_known:
        critical = operations.critical_ns(operation)
        several = " of all ranks" if critical and len(results.run.ranks) > 1 else ""
        words += f"; {duration(critical) if critical else 'not'} on the critical path{several}"
        slack = operations.slack_ns(operation)
        words += "" if slack is None else f", slack {duration(slack)}" if slack else ", no slack"
    return words


def _rank_text(operations: Operations, rank: int) -> str:
    return f"{operations.results.run.unit} {operations.results.run.ranks[rank].rank}"


def _batch_text(operation: LayerUse) -> str:
    return f", micro-batch {operation.runs.most_batch}" if operation.runs.most_batch >= 0 else ""
