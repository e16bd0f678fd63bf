"""What the layer table is sorted and searched by, and where in a step some of its rows are seen best."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import add

from simcore.analysis.layers import LayerGroups, LayerRows
from simcore.collectives import cell_name
from simcore.engine.timeline import Timeline
from simcore.program.ops import PHASES as OP_PHASES
from simcore.records import NamedTuple, Struct, field
from simcore.workload.model import PHASES, base_name

# The slack of what takes no part in the step: more than any.
NO_SLACK = 1 << 62
# What a key makes of a unit's cells: the largest of its phases.
_OF_CELLS: dict[str, str] = {"alone": "comm_ns", "algbw": "algbw", "busbw": "busbw"}


class LayerOrder(Struct, dict=True):
    """The units of a table, rows or groups of equal ones, by number in their first order.

    groups: None where each row is a unit. Keys, each computed once: `name`, `collective`, `group` as
    text; `rows`, `bytes`, `compute` (one run, the largest of the phases;
    as written where one factor is of all), `alone`, `algbw`, `busbw`,
    `all` (compute of a rank's step), `exposed`, `cost` (both together); `critical` (sum of the rows) and
    `slack` (the least of them, NO_SLACK without any), which are there after `know_path`.
    """

    rows: LayerRows
    groups: LayerGroups | None
    _critical_ns: Sequence[int] | None = None
    _slack_ns: Sequence[int | None] | None = None
    _known: dict[str, Sequence[int] | Sequence[float] | Sequence[str]] = field(default_factory=dict)

    @property
    def first_row(self) -> Sequence[int]:
        """The row of the file that stands for each unit: its equals have the same cells."""
        return range(len(self.rows)) if self.groups is None else self.groups.first_row

    def know_path(self, critical_ns: Sequence[int], slack_ns: Sequence[int | None] | None) -> None:
        """The figures of each row of the file, as `Results` has them; slack None: the run has none."""
        self._critical_ns = critical_ns
        self._slack_ns = [None] * len(critical_ns) if slack_ns is None else slack_ns

    @property
    def knows_path(self) -> bool:
        """Whether the keys of the critical path are there."""
        return self._critical_ns is not None

    def values(self, key: str) -> Sequence[int] | Sequence[float] | Sequence[str]:
        """The key of each unit."""
        if key not in self._known:
            self._known[key] = self._computed(key)
        return self._known[key]

    def sorted(self, key: str, descending: bool) -> list[int]:
        """The units by a key; equal ones in their first order."""
        values = self.values(key)
        return sorted(range(len(values)), key=values.__getitem__, reverse=descending)

    def matching(self, typed: str, units: Sequence[int]) -> Sequence[int]:
        """Those of some units whose name, collectives or groups hold every word of what was typed."""
        for word in typed.lower().split():
            text = self.values("text")
            units = [unit for unit in units if word in text[unit]]  # type: ignore[operator]
        return units

    def _computed(self, key: str) -> Sequence[int] | Sequence[float] | Sequence[str]:
        workload, table = self.rows.table.simulation.workload, self.rows.table
        first = self.first_row
        if key in ("all", "exposed"):
            of = table if self.groups is None else self.groups
            return of.compute_ns if key == "all" else of.exposed_ns
        if key == "cost":
            of = table if self.groups is None else self.groups
            return list(map(add, of.compute_ns, of.exposed_ns))
        if key == "rows":
            return [1] * len(first) if self.groups is None else self.groups.sizes
        if key == "name":
            names = [workload.name[row] for row in first]
            return names if self.groups is None else list(map(base_name, names))
        if key in ("collective", "group", "text"):
            return self._texts(key)
        if key in ("critical", "slack"):
            return self.of_path(key)
        columns = [workload.cells(phase) for phase in PHASES]
        if key == "bytes":
            largest = list(map(max, *(column.bytes for column in columns)))
            return largest if self.groups is None else [largest[row] for row in first]
        if key == "compute":
            if not table.has_scales:
                # One factor for all: the largest as written is the largest.
                stated = list(map(max, *(column.compute_ns for column in columns)))
                return stated if self.groups is None else [stated[row] for row in first]
            return [max(table.cell_compute_ns(row, phase) for phase in PHASES) for row in first]
        return [max(getattr(table.cell(row, phase), _OF_CELLS[key]) for phase in PHASES) for row in first]

    def of_path(self, key: str) -> list[int]:
        """Of each unit `critical` or `slack`, ns. Raises ValueError before `know_path`."""
        if self._critical_ns is None or self._slack_ns is None:
            raise ValueError(f"{key} before the critical path is known")
        if key == "critical":
            by_row = list(self._critical_ns)
            return by_row if self.groups is None else self.groups.of_rows(by_row, sum)
        by_row = [NO_SLACK if ns is None else ns for ns in self._slack_ns]
        return by_row if self.groups is None else self.groups.of_rows(by_row, min)

    def _texts(self, key: str) -> list[str]:
        """Names of collectives or groups of each unit; or all words, in small letters, to search in."""
        workload = self.rows.table.simulation.workload
        columns = [workload.cells(phase) for phase in PHASES]
        pairs = [(cells.collective, cells.group) for cells in columns]
        rows = zip(*(column for pair in pairs for column in pair), strict=True)
        text_of: dict[tuple[str | None, ...], str] = {}
        texts = [text_of.get(row) or text_of.setdefault(row, _words(row, key)) for row in rows]
        texts = [texts[row] for row in self.first_row]
        if key != "text":
            return texts
        names = self.values("name") if self.groups is None else self._names_inside(self.groups)
        return [f"{name}\n{text}".lower() for name, text in zip(names, texts, strict=True)]

    def _names_inside(self, groups: LayerGroups) -> list[str]:
        """Of each group its name and those of its rows, each once: a search finds what is inside."""
        names, blocks = self.rows.table.simulation.workload.name, []
        for index in range(len(groups)):
            own = dict.fromkeys(names[row] for row in groups.members(index))
            # A row without a number in its name is called as its group is.
            blocks.append("\n".join({base_name(next(iter(own))): None, **own}))
        return blocks

    def inside(self, typed: str, unit: int) -> int | None:
        """The first row of a group whose own name has every word that was typed, where the group's name has
        not; None for a row that stands alone.
        """
        words = typed.lower().split()
        if self.groups is None or not words:
            return None
        names = self.rows.table.simulation.workload.name
        members = self.groups.members(unit)
        group = base_name(names[members[0]]).lower()
        if all(word in group for word in words):
            return None
        return next((row for row in members if all(word in names[row].lower() for word in words)), None)


def _words(row: tuple[str | None, ...], key: str) -> str:
    """Of the collectives and groups of the three phases the ones that are asked for."""
    collectives = [cell_name(name) for name in row[::2] if name is not None]
    groups = [group for group in row[1::2] if group is not None]
    return " ".join({"collective": collectives, "group": groups}.get(key, [*collectives, *groups]))


class Seen(NamedTuple):
    """A stretch of class `number`, ns."""

    number: int
    start_ns: int
    end_ns: int


def longest_span(timeline: Timeline, rows: Collection[int], phase: str | None = None) -> Seen | None:
    """The longest span of some rows on the first class that has any, the earliest of equal ones.

    phase: of this one alone. None where they take no time in the step.
    """
    of_phase = None if phase is None else OP_PHASES.index(phase)
    for number in range(len(timeline.classes)):
        ops, start, end = timeline.columns(number)
        inside = [
            op
            for op, (row, op_phase) in enumerate(zip(ops.row, ops.phase, strict=True))
            if row in rows and (of_phase is None or op_phase == of_phase) and end[op] > start[op]
        ]
        if inside:
            op = max(inside, key=lambda op: (end[op] - start[op], -start[op]))
            return Seen(number, start[op], end[op])
    return None
