"""The layer table: what each row of the file costs in a step."""

from __future__ import annotations

from dataclasses import dataclass

from simcore.analysis.accounts import FIRST_EXPOSED, WAIT, Accounts
from simcore.collectives import algorithm_bandwidth, bus_bandwidth
from simcore.overrides import layer_scales
from simcore.pricing import scaled
from simcore.program.ops import COMPUTE
from simcore.simulation import Simulation, collective_alone_ns
from simcore.workload.model import PHASES, GroupKind, base_name


@dataclass(frozen=True, slots=True)
class LayerCell:
    """One phase of a row. compute_ns: one run, scaled. comm_ns: its collective alone, scaled.

    stated_ns: the compute cell as the file has it. members: ranks of the group; bytes: the
    whole buffer.
    """

    stated_ns: int
    compute_ns: int
    collective: str | None
    group: GroupKind | None
    members: int
    bytes: int
    comm_ns: int

    @property
    def algbw(self) -> float:
        """Algorithm bandwidth of the collective alone, GB/s."""
        return algorithm_bandwidth(self.bytes, self.comm_ns)

    @property
    def busbw(self) -> float:
        """Bus bandwidth of the collective alone, GB/s."""
        return bus_bandwidth(self.collective or "", max(self.members, 1), self.bytes, self.comm_ns)


@dataclass(frozen=True, slots=True)
class LayerRow:
    """One row of the file. index: from 0. name: raw text of the file.

    compute_ns, exposed_ns: of all its runs in a step, on the rank where the two together
    are most.
    """

    index: int
    name: str
    line: int
    cells: dict[str, LayerCell]
    compute_ns: int
    exposed_ns: int


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """Rows with equal cells whose names are equal without their trailing number.

    Times are those of `LayerRow`, summed over the rows. share: of the step, compute and
    exposed together.
    """

    name: str
    rows: tuple[LayerRow, ...]
    compute_ns: int
    exposed_ns: int

    @property
    def cost_ns(self) -> int:
        """Compute and exposed communication, ns: what the table is sorted by."""
        return self.compute_ns + self.exposed_ns

    @property
    def cells(self) -> dict[str, LayerCell]:
        """The cells that all rows of the group have."""
        return self.rows[0].cells


def layer_table(simulation: Simulation, accounts: list[Accounts]) -> list[LayerRow]:
    """A line for each row of the file. accounts: of every rank class, by its number."""
    workload, timeline = simulation.workload, simulation.timeline
    worst = [(0, 0)] * len(workload)
    for number, class_accounts in enumerate(accounts):
        ops, start, end = timeline.columns(number)
        compute = [0] * len(workload)
        exposed = [0] * len(workload)
        for op, lane in enumerate(ops.stream):
            if lane == COMPUTE:
                compute[ops.row[op]] += end[op] - start[op]
        edge = class_accounts.edge
        for index, account in enumerate(class_accounts.account):
            if FIRST_EXPOSED <= account < WAIT:
                op = class_accounts.op[index]
                if op >= 0 and ops.row[op] >= 0:
                    exposed[ops.row[op]] += edge[index + 1] - edge[index]
        for row, pair in enumerate(zip(compute, exposed, strict=True)):
            if sum(pair) > sum(worst[row]):
                worst[row] = pair
    alone: dict[tuple[str, GroupKind, int], int] = {}
    return [
        LayerRow(row, workload.name[row], workload.line[row], _cells(simulation, row, alone), *worst[row])
        for row in range(len(workload))
    ]


def _cells(
    simulation: Simulation, row: int, alone: dict[tuple[str, GroupKind, int], int]
) -> dict[str, LayerCell]:
    cells: dict[str, LayerCell] = {}
    for phase in PHASES:
        scale = simulation.parameters.compute_scale * layer_factor(
            simulation, simulation.workload.name[row], phase
        )
        column = simulation.workload.cells(phase)
        collective, group, size = column.collective[row], column.group[row], column.bytes[row]
        comm_ns, members = 0, 0
        if collective is not None and group is not None:
            members = simulation.layout.group_size(group)
            key = (collective, group, simulation.priced_bytes(phase, size))
            if key not in alone:
                alone[key] = collective_alone_ns(simulation, *key)
            comm_ns = alone[key]
        cells[phase] = LayerCell(
            column.compute_ns[row],
            scaled(column.compute_ns[row], scale),
            collective,
            group,
            members,
            size,
            comm_ns,
        )
    return cells


def layer_factor(simulation: Simulation, name: str, phase: str) -> float:
    """The factor of `--layer-scale` on a cell of rows called `name`: their own, else their base name's."""
    if not simulation.parameters.layer_scale:
        return 1.0
    scales = layer_scales(simulation.parameters)
    by_name = scales.get((name, phase))
    return by_name if by_name is not None else scales.get((base_name(name), phase), 1.0)


def layer_groups(rows: list[LayerRow]) -> list[LayerGroup]:
    """Equal rows together, the most expensive group first; ties in file order."""
    groups: dict[tuple[object, ...], list[LayerRow]] = {}
    for row in rows:
        key = (base_name(row.name), *row.cells.values())
        groups.setdefault(key, []).append(row)
    found = [
        LayerGroup(
            str(name),
            tuple(members),
            sum(row.compute_ns for row in members),
            sum(row.exposed_ns for row in members),
        )
        for (name, *_), members in groups.items()
    ]
    return sorted(found, key=lambda group: -group.cost_ns)
