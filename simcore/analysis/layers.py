"""The layer table: what each row of the file costs in a step.

Its sums are columns. Rows, groups and cells are made, and collectives priced, on demand: a file may have
100,000 rows that all differ, and a screen shows forty.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, repeat
from operator import add
from typing import TypeVar

from simcore.collectives import algorithm_bandwidth, bus_bandwidth, cell_name
from simcore.collectives.exact import scaled
from simcore.program import Program
from simcore.program.overrides import find_factors
from simcore.records import Struct
from simcore.simulation import Simulation, collective_alone_ns
from simcore.trace.figures import LazySequence
from simcore.trace.layers import LayerUse
from simcore.trace.tables import LineTimes, Table
from simcore.workload.model import PHASES, GroupKind, Phase, base_name

# ns of a compute cell that is not modelled.
NOT_MODELLED = (0, 1, 1000)
Figure = TypeVar("Figure")


class LayerCell(Struct, frozen=True):
    """One phase of a row."""

    phase: Phase
    """The phase."""
    stated_ns: int
    """The compute cell as the file has it, ns."""
    compute_ns: int
    """One run of the compute, scaled, ns."""
    collective: str | None
    """The collective, as in the file."""
    group: GroupKind | None
    """The kind of its group."""
    members: int
    """The number of ranks in the group."""
    bytes: int
    """The bytes of its whole buffer."""
    comm_ns: int
    """The collective alone, scaled, ns."""

    @property
    def is_modelled(self) -> bool:
        """Whether the file models this compute: 0, and the 1 or 1000 ns that generators write, mean no."""
        return self.stated_ns not in NOT_MODELLED

    @property
    def collective_name(self) -> str | None:
        """The name of its collective in reports."""
        return None if self.collective is None else cell_name(self.collective)

    @property
    def algbw(self) -> float:
        """Algorithm bandwidth of the collective alone, GB/s."""
        return algorithm_bandwidth(self.bytes, self.comm_ns)

    @property
    def busbw(self) -> float:
        """Bus bandwidth of the collective alone, GB/s."""
        return bus_bandwidth(self.collective or "", max(self.members, 1), self.bytes, self.comm_ns)


class LayerTable:
    """The figures of every row of the file, and its cells, each priced on demand.

    compute_ns, exposed_ns: by row, of all its runs in a step, on the rank where the two together are most.
    rows: the table of all figures.
    """

    def __init__(self, simulation: Simulation, rows: Table) -> None:
        self.simulation, self.rows = simulation, rows
        self.compute_ns, self.exposed_ns = rows.most_by_label
        self._scales = simulation.setup.overrides.layer_scales
        self._time_scales = simulation.setup.overrides.time_scales
        # The price on the idle network, ns, by collective, group and priced bytes.
        self._idle_ns: dict[tuple[str, GroupKind, int], int] = {}

    @cached_property
    def block_of(self) -> dict[int, int]:
        """The index of the micro-batch of each row that is in one."""
        blocks = self.simulation.program.structure.blocks
        return {row: block_id for block_id, block in enumerate(blocks) for row in block}

    def cell(self, index: int, phase: Phase) -> LayerCell:
        """Returns the cell of row `index` in one phase."""
        simulation, column = self.simulation, self.simulation.workload.cells(phase)
        stated_ns, size = column.compute_ns[index], column.bytes[index]
        collective, group = column.collective[index], column.group[index]
        comm_ns, members = 0, 0
        if collective is not None and group is not None:
            members = simulation.layout.group_size(group)
            key = (collective, group, simulation.priced_bytes(phase, size))
            if key not in self._idle_ns:
                self._idle_ns[key] = collective_alone_ns(simulation, *key)
            comm_ns = self._apply_time_scales(
                self._idle_ns[key], simulation.workload.name[index], f"stream {group}"
            )
        compute_ns = self.cell_compute_ns(index, phase)
        return LayerCell(phase, stated_ns, compute_ns, collective, group, members, size, comm_ns)

    @property
    def has_scales(self) -> bool:
        """Whether some layers have their own factors."""
        return bool(self._scales or self._time_scales)

    def cell_compute_ns(self, index: int, phase: Phase) -> int:
        """Returns one run of the compute of row `index` in one phase, ns."""
        workload = self.simulation.workload
        name, program = workload.name[index], self.simulation.program
        ns = self._scale_stated(name, phase, workload.cells(phase).compute_ns[index])
        return self._apply_time_scales(ns, name, name_compute_part(program, index, name, phase))

    @cached_property
    def kind_ids(self) -> list[int]:
        """By row a number that rows with the same base name and the same cells share."""
        workload = self.simulation.workload
        columns: list[array[int]] = []
        for phase in PHASES:
            cells = workload.cells(phase)
            columns += [
                cells.compute_ns,
                _number_values(zip(cells.collective, cells.group, strict=True)),
                cells.bytes,
            ]
            if self._scales:
                # A factor may apply to one name alone.
                stated_rows = zip(workload.name, repeat(phase), cells.compute_ns, strict=False)
                columns.append(_number_values(self._scale_stated(*stated_row) for stated_row in stated_rows))
        # The columns side by side are a key of bytes for each row, which costs a third of a tuple.
        width = len(columns)
        cells_of_rows = array("q", bytes(8 * width * len(workload)))
        for index, column in enumerate(columns):
            cells_of_rows[index::width] = column
        keys, size = cells_of_rows.tobytes(), 8 * width
        ids_by_key: dict[bytes, int] = {}
        kind = [
            ids_by_key.setdefault(keys[at : at + size], len(ids_by_key)) for at in range(0, len(keys), size)
        ]
        if len(ids_by_key) == len(kind):
            return kind
        # Names decide only between rows whose cells are equal.
        names: dict[tuple[int, str], int] = {}
        pairs = zip(kind, map(base_name, workload.name), strict=True)
        return [names.setdefault(pair, len(names)) for pair in pairs]

    def _scale_stated(self, name: str, phase: str, stated_ns: int) -> int:
        """Returns one run of a compute cell, ns, before the factors of `--time-scale`."""
        factor = _find_factor(self._scales, name, phase) if self._scales else 1.0
        return scaled(stated_ns, self.simulation.parameters.compute_scale * factor)

    def _apply_time_scales(self, ns: int, name: str, part: str) -> int:
        """Returns `ns` times the factors of `--time-scale` on rows called `name` and on a phase or stream."""
        for factor in find_factors(self._time_scales, part, base_name(name)):
            ns = scaled(ns, factor)
        return ns


class LayerLines(LazySequence[LayerUse]):
    """Lines of a layer table, each made on demand; iterating makes all of them at once.

    each: whether each of these rows of the file has its own line, in this order. Else rows with equal cells
    and equal base names share a line, the costliest first, ties in file order. first_row: by line, as an
    index into the file. compute_ns, exposed_ns: by line, sums of its rows.
    """

    def __init__(self, table: LayerTable, indices: Sequence[int], each: bool) -> None:
        self.table, self.indices, self.each = table, indices, each
        self._group_of_kind: dict[int, int] = {}
        group_ids = self._group_of_kind
        kind = range(len(table.compute_ns)) if each else table.kind_ids
        group_of = [group_ids.setdefault(kind[index], len(group_ids)) for index in indices]
        all_differ = len(group_ids) == len(indices)
        if all_differ:
            # Each row is a group, and the group has its index.
            compute = [table.compute_ns[index] for index in indices]
            exposed = [table.exposed_ns[index] for index in indices]
        else:
            compute, exposed, count = ([0] * len(group_ids) for _ in range(3))
            for index, group in zip(indices, group_of, strict=True):
                compute[group] += table.compute_ns[index]
                exposed[group] += table.exposed_ns[index]
                count[group] += 1
        order: Sequence[int] = range(len(compute))
        if not each:
            # A stable sort, also with `reverse`: groups of equal cost keep their file order.
            cost = list(map(add, compute, exposed))
            order = sorted(order, key=cost.__getitem__, reverse=True)
        super().__init__(len(order))
        self._order = order
        # The rows of each group side by side, and where each group begins: 100,000 lists of one row would
        # keep the garbage collector busy.
        if all_differ:
            self._members = array("q", indices)
            self._begin = array("q", range(len(indices) + 1))
        else:
            sorted_indices = sorted(range(len(indices)), key=group_of.__getitem__)
            self._members = array("q", [indices[row] for row in sorted_indices])
            self._begin = array("q", accumulate(count, initial=0))
        self.first_row = [self._members[self._begin[group]] for group in order]
        self.compute_ns = [compute[group] for group in order]
        self.exposed_ns = [exposed[group] for group in order]

    def make(self, index: int) -> LayerUse:
        return next(self._make_lines(slice(index, index + 1)))

    def __iter__(self) -> Iterator[LayerUse]:
        return self._make_lines(slice(None))

    def _make_lines(self, indices: slice) -> Iterator[LayerUse]:
        """Returns an iterator over the lines at some indices, by columns: 100,000 lines take 60 ms."""
        table, names = self.table, self.table.simulation.workload.name
        first, compute, exposed = self.first_row[indices], self.compute_ns[indices], self.exposed_ns[indices]
        of_path = (ns[indices] for ns in self._path_columns) if table.rows.path_known else ()
        return map(
            LayerUse,
            range(len(self))[indices],
            map(names.__getitem__, first),
            map(LineTimes, compute, exposed, *of_path),
            map(add, compute, exposed),
            repeat(self),
        )

    @cached_property
    def titles(self) -> list[str]:
        """The name of each line."""
        names = map(self.table.simulation.workload.name.__getitem__, self.first_row)
        return [*names] if self.each else [*map(base_name, names)]

    @cached_property
    def _path_columns(self) -> tuple[Sequence[int], Sequence[int | None]]:
        """(critical, least slack) of each line, ns."""
        rows = self.table.rows
        critical = self._combine_rows(rows.critical_ns, sum)
        slack = rows.slack_ns
        return critical, [None] * len(self) if slack is None else self._combine_rows(slack, _least_slack)

    def _combine_rows(
        self, by_row: Sequence[Figure], combine: Callable[[Sequence[Figure]], Figure]
    ) -> list[Figure]:
        """Returns `combine` of the values of the rows of each line. by_row: the value of each row."""
        if len(self._members) == len(self):
            return [by_row[row] for row in self.first_row]
        return [combine([by_row[row] for row in self.members(index)]) for index in range(len(self))]

    def cell(self, index: int, phase: Phase) -> LayerCell:
        """Returns the cell of row `index` of the file in one phase."""
        return self.table.cell(index, phase)

    def in_file(self, index: int) -> tuple[int, int | None]:
        """Returns (line of the file, micro-batch) of row `index`; None as micro-batch outside of them."""
        return self.table.simulation.workload.line[index], self.table.block_of.get(index)

    def sum_by_name(self, figures: Sequence[int]) -> dict[str, int]:
        """Returns a figure of each line summed by layer: by the base name of its rows."""
        names = self.table.simulation.workload.name
        sums: dict[str, int] = {}
        for row, figure in zip(self.first_row, figures, strict=True):
            name = base_name(names[row])
            sums[name] = sums.get(name, 0) + figure
        return sums

    def members(self, index: int) -> Sequence[int]:
        """Returns the rows of the file in a line."""
        group = self._order[index]
        return self._members[self._begin[group] : self._begin[group + 1]]

    @cached_property
    def sizes(self) -> list[int]:
        """The number of rows of the file in each line."""
        begin = self._begin
        return [begin[group + 1] - begin[group] for group in self._order]

    def index_of_row(self, row: int) -> int:
        """Returns the index of the line that has row `row` of the file."""
        return self._order.index(self._group_of_kind[row if self.each else self.table.kind_ids[row]])


def _least_slack(slacks: Iterable[int | None]) -> int | None:
    return min((ns for ns in slacks if ns is not None), default=None)


def name_compute_part(program: Program, row: int, name: str, phase: str) -> str:
    """Returns the part of a run that a cell's compute belongs to: `compute fwd`, `compute opt` for any cell
    of the optimizer's rows. name: of the row.
    """
    is_optimizer = not program.queued and program.structure.is_optimizer(row, name)
    return f"compute {'opt' if is_optimizer else phase}"


def find_layer_factor(simulation: Simulation, name: str, phase: str) -> float:
    """Returns the factor of `--layer-scale` on a cell of rows called `name`: their own, else their base
    name's.
    """
    return _find_factor(simulation.setup.overrides.layer_scales, name, phase)


def _find_factor(scales: dict[tuple[str, str], float], name: str, phase: str) -> float:
    by_name = scales.get((name, phase))
    return by_name if by_name is not None else scales.get((base_name(name), phase), 1.0)


def _number_values(values: Iterable[object]) -> array[int]:
    """Returns for each value a number that equal values share, by first appearance."""
    ids: dict[object, int] = {}
    return array("q", [ids.setdefault(value, len(ids)) for value in values])
