"""The operations of a trace as a table: equal ones of all ranks together, or each rank's alone.

Where their figures come from is said in words: runs, ranks, bytes, the step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any

from simcore.measured.vocabulary import POINT_TO_POINT
from simcore.ranks import RankSet
from simcore.replay.operations import WORK, Operation, Operations, groupings
from simcore.units import byte_size, duration, percent, plural
from tui.frame import cells, name_cut, wrapped
from tui.layers.columns import COLUMNS, Shown
from tui.layers.table import RowTable, TablePlace
from tui.listing import ListColumn

# A name's cells: as many where the other columns of a width leave no more, as many where they do.
_LEAST_NAME, _LEAST_NAME_OF_RANK, _MOST_NAME = 26, 20, 48
# On a terminal of less than 80 columns.
_NARROWEST_NAME = 12
# Which columns a screen has room for: from the front, as far as they fit.
_FIRST = (
    "name", "rank", "kind", "count", "time ms", "exposed ms", "% step", "critical ms", "most on",
    "to mean", "slack ms", "waits ms", "compute ms", "ranks", "run ms", "most ms", "MB", "algbw", "work",
)  # fmt: skip
# What the figures of a column are of where ranks stand together: the mean of the ranks, the rank with most.
_OF = {
    "time ms": "mean", "waits ms": "mean", "run ms": "mean", "most ms": "one", "compute ms": "max",
    "exposed ms": "max", "% step": "max", "critical ms": "the path", "slack ms": "least",
    "most on": "own x mean",
}  # fmt: skip
_WITH_WAITS = " mean+wait"
# What a screen of any width has.
_ALWAYS = ("name", "kind", "count", "time ms")
_UNTIMED = frozenset(("name", "rank", "kind", "work", "count", "ranks"))
_SHORT_WORK = dict(zip(WORK, ("compute", "comm.", "host"), strict=True))
# What an operation says by itself.
_VALUES: dict[str, Callable[[Operation], float | str | None]] = {
    "kind": lambda operation: cells("/".join(operation.kinds), 9),
    "work": lambda operation: _SHORT_WORK[operation.work],
    "count": lambda operation: operation.count,
    "ranks": lambda operation: len(operation.ranks),
    "time": lambda operation: operation.rank_ns if operation.measured else None,
    "run": lambda operation: operation.run_ns,
    "most": lambda operation: operation.most_ns if operation.measured else None,
    "waits": lambda operation: operation.waits_ns / len(operation.ranks),
    "compute": lambda operation: operation.use.compute_ns,
    "exposed": lambda operation: operation.use.exposed_ns,
    "times mean": lambda operation: operation.times_mean,
    "cost": lambda operation: operation.own_ns,
}
_OF_PATH = ("critical", "slack")


class OpTable(RowTable):
    """The table of a measured run: see `Table`.

    each: whether each rank's operations have lines of their own. key: of `_COLUMNS`.
    """

    of_path: Collection[str] = _OF_PATH

    def __init__(self, operations: Operations, each: bool) -> None:
        self._operations = operations
        run = operations.results.run
        self._ranks, self._step_ns = run.ranks, run.step_time_ns
        self._unit, self._of_devices = run.unit, run.of_devices
        self._several = len(run.ranks) > 1
        self.each = each and self._several
        self.hint = f"each {self._unit} / all {self._unit}s together" if self._several else ""
        self._all = operations.of_each_rank if self.each else operations.together
        self.step_ns = self._step_ns
        self.shown = self._shown()
        super().__init__()

    def _shown(self) -> Shown:
        there = self._headings()
        of = {} if self.each or not self._several else dict(_OF)
        number = len(str(self._ranks[-1].number))
        return Shown(
            [name for name in _FIRST if name in there], _ALWAYS, "operation",
            (_LEAST_NAME_OF_RANK if self.each else _LEAST_NAME, _NARROWEST_NAME, _MOST_NAME),
            self._of_devices,
            {name: self._heading(name) for name in ("rank", "ranks")},
            {"rank": number, "most on": number + len(" x1.00")},
            of,
        )  # fmt: skip

    def _headings(self) -> set[str]:
        """The columns that say something of this run."""
        headings = set(_FIRST) if self._operations.timed else set(_UNTIMED)
        of_all = {"ranks", "most on"}
        headings -= of_all if self.each else {"rank", "to mean"}
        if not self._several:
            headings -= of_all
        if self._operations.timed and not self._operations.results.waiting:
            headings.discard("waits ms")
        if self._operations.timed and not self._operations.results.together:
            # What they took without waiting was not measured.
            headings.discard("algbw")
        return headings

    def _heading(self, name: str) -> str:
        """A plan has stages in place of ranks."""
        return name.replace("rank", self._unit) if name in ("rank", "ranks") else name

    def _opening(self) -> list[int]:
        every = range(len(self._all))
        if not self._operations.timed:
            return list(every)
        return sorted(
            every,
            key=lambda at: (self._all[at].rank or 0, -self._all[at].own_ns, -self._all[at].total_ns),
        )

    @property
    def subject(self) -> object:
        return self._operations

    def apart(self, each: bool) -> OpTable:
        return OpTable(self._operations, each)

    @cached_property
    def can_regroup(self) -> bool:
        return len(groupings(self._operations.whole.measured)) > 1

    def regrouped(self) -> OpTable | None:
        there = groupings(self._operations.whole.measured)
        if len(there) < 2:
            return None
        after = there[(there.index(self._operations.by) + 1) % len(there)]
        return OpTable(Operations(self._operations.whole, after), self.each)

    def operation(self, line: int) -> Operation:
        """What a line is of."""
        return self._all[self.lines[line]]

    # -- columns and texts -----------------------------------------------------------------

    # -- words -----------------------------------------------------------------------------

    def counted(self) -> str:
        if self.each:
            return f"{self._count}, each {self._unit}'s alone"
        inside = sum(operation.sub is not None for operation in self._all)
        others = f" ({inside} inside others)" if inside else ""
        return f"{self._count}{others}, {self._whose()}"

    @property
    def _count(self) -> str:
        """How many there are of what the lines are."""
        noun = {"operation": "launching operation", "layer": "layer"}.get(self._operations.by, "operation")
        return plural(len(self._all), noun)

    def _whose(self) -> str:
        if not self._several:
            return f"{self._unit} {self._ranks[0].number}"
        return f"{plural(len(self._ranks), self._unit)} together"

    def left(self) -> str:
        whose = f"each {self._unit}'s alone" if self.each else self._whose()
        return f"{len(self.lines)} of {self._count}, {whose}"

    def order(self) -> tuple[str, str]:
        if not self._operations.timed:
            return "in file order, no times", "in file order, no times"
        by = f"by {self._unit}, " if self.each else ""
        return f"{by}most of the step first", f"{by}most first"

    def legend(self, columns: Sequence[ListColumn], short: bool) -> str:
        if not self._operations.timed or not self._several:
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
        return "no operation has these words" if typed.strip() else "the run has no operations"

    # -- order -----------------------------------------------------------------------------

    def value(self, key: str, at: int) -> Any:
        operation, operations = self._all[at], self._operations
        if key in _VALUES:
            return _VALUES[key](operation)
        if key == "name":
            return (name_cut if self._of_devices else cells)(operation.name, _MOST_NAME)
        if key == "rank":
            return None if operation.rank is None else self._ranks[operation.rank].number
        if key == "algbw":
            return operations.moved(operation).algbw or None
        if key == "bytes":
            sizes = operations.sizes(operation)
            return None if sizes is None else sizes[1]
        return operations.critical_ns(operation) if key == "critical" else operations.slack_ns(operation)

    def columns_for(self, width: int) -> list[ListColumn]:
        columns = super().columns_for(width)
        if "waits ms" not in self.shown.first or any(one.heading == "waits ms" for one in columns):
            return columns
        # A mean of 390 ms was held against 2.7 % of the step, which has no waits in it.
        wider = []
        for one in columns:
            if one.heading == "time ms" and one.of:
                one = one._replace(size=len(_WITH_WAITS), of=_WITH_WAITS)
            elif one.heading == self.shown.heading and self.shown.of:
                less = len(_WITH_WAITS) - COLUMNS["time ms"].cells
                one = one._replace(size=max(one.size - less, _NARROWEST_NAME))
            wider.append(one)
        return wider

    def values(self, key: str) -> Sequence[Any]:
        # A sub-operation stands behind what it is in.
        names = (one.name if one.sub is None else f"{one.op} {one.sub}" for one in self._all)
        return list(names) if key == "name" else super().values(key)

    def texts(self, line: int) -> dict[str, str]:
        operation, texts = self.operation(line), super().texts(line)
        if operation.times_mean is not None and "most on" in texts:
            texts["most on"] = f"{self._ranks[operation.own_rank].number} {texts['most on']}"
        return texts

    def cannot_sort(self, heading: str) -> str:
        if self.sorted_by[heading][0] in _OF_PATH and not self.learn_path():
            return "the critical path is not ready yet: press o when the column has figures"
        return ""

    def learn_path(self) -> bool:
        return self._operations.path_known

    def find_path(self, cancelled: Callable[[], bool]) -> object:
        self._operations.find_path()
        return self._operations

    # -- find and filter -------------------------------------------------------------------

    def _matching(self, typed: str, of: Sequence[int]) -> list[int]:
        """Those whose name, kind or rank hold every word; a number is a rank's own, not a part of one's."""
        rows = list(of)
        for word in typed.lower().split():
            texts = self._texts
            rows = [at for at in rows if word in texts[at] or word == self._number(at)]
        return rows

    def _number(self, at: int) -> str:
        rank = self._all[at].rank
        return "" if rank is None else str(self._ranks[rank].number)

    @cached_property
    def _texts(self) -> list[str]:
        words = f" {self._unit}" if self.each else ""
        return [f"{op.name} {' '.join(op.kinds)} {op.work}{words}".lower() for op in self._all]

    # -- places ----------------------------------------------------------------------------

    def mark(self, line: int) -> tuple[str, str | None, int | None]:
        operation = self.operation(line)
        return operation.op, operation.sub, operation.rank

    def line_of(self, mark: Hashable) -> int:
        """The line of an operation now: of its rank, else the first one of that name."""
        assert isinstance(mark, tuple)
        named = [line for line, at in enumerate(self.lines) if self._is(self._all[at], mark)]
        own = (line for line in named if self.operation(line).rank == mark[2])
        return next(own, named[0] if named else 0)

    @staticmethod
    def _is(operation: Operation, mark: tuple[object, ...]) -> bool:
        return (operation.op, operation.sub) == mark[:2]

    def place(self, line: int) -> TablePlace | None:
        rank, start, end, stream = self._operations.place(self.operation(line))
        # An instant is drawn 1 ns wide.
        return TablePlace(rank, start, max(end, start + 1), stream)

    def origin(self, line: int, width: int) -> tuple[str, list[tuple[str, str]]]:
        operation = self.operation(line)
        whose = "" if operation.rank is None else f", {self._unit} {self._ranks[operation.rank].number}"
        sentences = _sentences(self._operations, operation)
        lines = [(line, role) for words, role in sentences for line in wrapped(words, width)]
        return f"{name_cut(operation.name, 60)}{whose}", lines

    def more(self, line: int, width: int) -> list[tuple[str, str]]:
        """The same operation on each of its ranks, the one that it takes most of the step on first."""
        operation = self.operation(line)
        if operation.rank is not None or len(operation.ranks) < 2 or not self._operations.timed:
            return []
        key = (operation.op, operation.sub)
        ranks = [other for other in self._operations.of_each_rank if (other.op, other.sub) == key]
        ranks.sort(key=lambda other: (-other.own_ns, other.rank))
        lines = [
            (
                f"{self._unit:>6}{'runs':>7}{'a run':>11}{'the longest':>13}{'waits':>11}{'% step':>8}",
                "bright",
            )
        ]
        for other in ranks:
            assert other.rank is not None
            run, most = ("-", "-") if not other.measured else (
                duration(round(other.total_ns / other.measured)), duration(other.most_ns)
            )  # fmt: skip
            lines.append(
                (
                    f"{self._ranks[other.rank].number:>6}{other.count:>7}{run:>11}{most:>13}"
                    f"{duration(round(other.waits_ns)):>11}{percent(other.own_ns, self._step_ns):>8}",
                    "",
                )
            )
        return lines


def _sentences(operations: Operations, operation: Operation) -> Iterator[tuple[str, str]]:
    """Where its figures come from: sentences and their roles."""
    yield _runs(operations, operation), ""
    if not operations.timed:
        return
    if operation.measured:
        yield _lengths(operations, operation), ""
    sent = _sent(operations, operation)
    if sent:
        yield sent, ""
    yield _step(operations, operation), "dim"


def _runs(operations: Operations, operation: Operation) -> str:
    """How often it runs, and where."""
    run = operations.results.run
    whose = _ranks_words(operations, operation)
    words = f"{plural(operation.count, 'run')} {whose}"
    without = operation.count - operation.measured
    if run.timed and without:
        words += f", {without} of them without a duration in the file"
    return words if run.timed else f"{words}; the file has no times"


def _ranks_words(operations: Operations, operation: Operation) -> str:
    run = operations.results.run
    numbers = [run.ranks[rank].number for rank in operation.ranks]
    on = "on" if run.unit == "rank" else "of"
    if len(numbers) == 1:
        return f"{on} {run.unit} {numbers[0]}"
    text = RankSet.of(numbers).text()
    return f"{on} {plural(len(numbers), run.unit)} ({text if len(text) <= 40 else cells(text, 40)})"


def _lengths(operations: Operations, operation: Operation) -> str:
    """How long its runs are, and how much of the longest is waiting."""
    mean = duration(round(operation.total_ns / operation.measured))
    if operation.measured == 1:
        return f"it takes {mean}{_waiting(operations, operation)}"
    least = f"the fastest {duration(operation.least_ns)}"
    most = f"the slowest {duration(operation.most_ns)}"
    if len(operation.ranks) > 1:
        least += f" ({_rank(operations, operation.least_rank)})"
        most += f" ({_rank(operations, operation.most_rank)}{_batch(operation)})"
    elif operation.most_batch >= 0:
        most += f" ({_batch(operation)[2:]})"
    return f"a run takes {mean} on average, {least}, {most}{_waiting(operations, operation)}"


def _waiting(operations: Operations, operation: Operation) -> str:
    """What the longest run waits, for whom it waits most."""
    waits = operations.waits_of_longest(operation)
    if not waits:
        return ""
    ns = sum(wait.ns for wait in waits)
    late: dict[int, int] = {}
    for wait in waits:
        late[wait.late] = late.get(wait.late, 0) + wait.ns
    most = max(late, key=lambda rank: late[rank])
    others = " and others" if len(late) > 1 else ""
    return f", of which it waits {duration(ns)} for {_rank(operations, most)}{others}"


def _sent(operations: Operations, operation: Operation) -> str:
    """Its bytes, and how fast they went where that is known."""
    sizes = operations.sizes(operation)
    if sizes is None:
        return ""
    words = f"a buffer of {byte_size(sizes[1])} a run"
    if sizes[0] != sizes[1]:
        words = f"buffers of {byte_size(sizes[0])} to {byte_size(sizes[1])}"
    moved = operations.moved(operation)
    if moved.ns:
        mean = duration(round(moved.ns / moved.times))
        when = f"through {mean} after the last rank comes"
        if operation.op in POINT_TO_POINT:
            when = f"there {mean} after the send begins"
        of = f", mean of {moved.times}" if moved.times > 1 else ""
        words += f"; {when}{of}: algbw {moved.algbw:.1f} GB/s"
    alone = operations.without_partner(operation)
    if alone:
        runs = "it has" if operation.count == 1 else f"{alone} of {plural(operation.count, 'run')} have"
        unknown = "so waiting counts as communication"
        if operations.is_beside_compute(operation):
            unknown = "so what compute waited for is not known"
        words += f"; {runs} no partner that waited, {unknown}"
    return words


def _step(operations: Operations, operation: Operation) -> str:
    """What it takes of the step on the rank with most of it, and what the critical path has of it."""
    results = operations.results
    parts = {"compute": operation.use.compute_ns, "exposed": operation.use.exposed_ns}
    own = [f"{word} {duration(ns)}" for word, ns in parts.items() if ns]
    if not own and operation.own_ns:
        own = [f"host {duration(operation.own_ns)}"]
    if not own:
        words = (
            "of the step: nothing but waiting" if operation.waits_ns else "of the step: nothing of its own"
        )
        words += ", it runs beside compute" if operations.is_beside_compute(operation) else ""
    else:
        words = f"of the step: {', '.join(own)} ({percent(operation.own_ns, results.step_time_ns)} %)"
        if operation.rank is None and len(operation.ranks) > 1:
            words += f" on {_rank(operations, operation.own_rank)}, the most of a rank"
        if operation.times_mean is not None and len(results.run.ranks) > 1:
            words += f", {operation.times_mean:.2f} times the mean of all that run it"
            if operation.waits_ns:
                # Above stands another mean, of what it takes with its waits.
                words += f" ({duration(round(operation.mean_own_ns))} without waits)"
    if operations.path_known:
        critical = operations.critical_ns(operation)
        several = " of all ranks" if critical and len(results.run.ranks) > 1 else ""
        words += f"; {duration(critical) if critical else 'not'} on the critical path{several}"
        slack = operations.slack_ns(operation)
        words += "" if slack is None else f", slack {duration(slack)}" if slack else ", no slack"
    return words


def _rank(operations: Operations, rank: int) -> str:
    return f"{operations.results.run.unit} {operations.results.run.ranks[rank].number}"


def _batch(operation: Operation) -> str:
    return f", micro-batch {operation.most_batch}" if operation.most_batch >= 0 else ""
