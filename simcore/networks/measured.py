"""`busbw:FILE` of what nccl-tests measured: each collective takes the bus bandwidth of its size.

S bytes over n ranks take S * k * (n-1)/n / busbw(S), k = 2 for all-reduce and 1 for others; a transfer S /
busbw(S). busbw(S) is that of the measured time, linear between sizes. Of several tables of a collective
counts one measured as the group lies, on one host or on several, and of these that of the nearest number of
ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from simcore.cluster import TransferShape
from simcore.collectives import NAMES, bus_bandwidth
from simcore.collectives.exact import scaled
from simcore.collectives.nccl_tests import MeasuredCollective, read_measured
from simcore.diagnostics import Diagnostic
from simcore.folding.graph import PortFactors
from simcore.layout import Layout
from simcore.networks.model import GroupCollective, NetworkParameters
from simcore.program.blocks import Structure
from simcore.units import group_digits, join_names
from simcore.workload import Workload
from simcore.workload.model import GroupKind

# What takes the place of a collective that was not measured, the best first.
_STAND_INS = {
    "ALLREDUCE": ("REDUCESCATTER", "ALLGATHER", "ALLTOALL", "SENDRECV"),
    "ALLGATHER": ("REDUCESCATTER", "ALLREDUCE", "ALLTOALL", "SENDRECV"),
    "REDUCESCATTER": ("ALLGATHER", "ALLREDUCE", "ALLTOALL", "SENDRECV"),
    "ALLTOALL": ("SENDRECV", "ALLREDUCE", "ALLGATHER", "REDUCESCATTER"),
    "SENDRECV": ("ALLTOALL", "ALLREDUCE", "ALLGATHER", "REDUCESCATTER"),
}
_REPLICAS = ("dp", "dp_ep", "dp_replicate")


class MeasuredNetwork:
    """The network of one run; satisfies `Network`."""

    name = "busbw"

    def __init__(self, parameters: NetworkParameters, layout: Layout) -> None:
        self.path = parameters.argument
        self.layout = layout
        self.server = parameters.gpus_per_server
        self.tables = read_measured(self.path)
        self._cache: dict[tuple[str, int, bool, int], int] = {}

    def collective_ns(self, group_collective: GroupCollective, scale: float = 1.0) -> int:
        members, size = group_collective.shape.members, group_collective.size
        across = self._crosses_servers(group_collective.group, members)
        return scaled(self._ns(group_collective.collective, members, across, size), scale)

    def transfer_ns(self, shape: TransferShape, ports: PortFactors, size: int) -> int:
        return self._ns("SENDRECV", 2, self._stages_cross, size)

    def explain_collective(self, group_collective: GroupCollective) -> str:
        group, shape, _, collective, size = group_collective
        head = f"{NAMES[collective]}, {group} group of {shape.members}: {group_digits(size)} B"
        if shape.members == 1 or not size:
            return f"{head}: free"
        across = self._crosses_servers(group, shape.members)
        return f"{head}\n{self._explain(collective, shape.members, across, size)}"

    def explain_transfer(self, shape: TransferShape, ports: PortFactors, size: int) -> str:
        return self._explain("SENDRECV", 2, self._stages_cross, size)

    def words(self) -> str:
        return f"measured by nccl-tests: {'; '.join(table.words() for table in self.tables)}"

    def diagnostics(self, workload: Workload, structure: Structure) -> tuple[Diagnostic, ...]:
        """Returns what stands in for collectives and places that were not measured."""
        notes = []
        measured = dict.fromkeys(table.collective for table in self.tables)
        by_stand_in: dict[str, list[str]] = {}
        for collective in _STAND_INS:
            stand_in = self._measured_collective(collective)
            if collective not in measured:
                name = "transfers" if collective == "SENDRECV" else NAMES[collective]
                by_stand_in.setdefault(stand_in, []).append(name)
        for stand_in, names in by_stand_in.items():
            test = next(table.test for table in self.tables if table.collective == stand_in)
            verb = "takes" if len(names) == 1 else "take"
            message = f"{join_names(names)}, not measured, {verb} the bus bandwidth of {test}"
            notes.append(Diagnostic("note", "busbw-stand-in", message, self.path))
        hosts = {table.hosts for table in self.tables}
        if self.layout.world > self.server and None not in hosts and hosts == {1}:
            message = f"measured on 1 host: groups over several servers of {self.server} GPUs take it, too"
            notes.append(Diagnostic("warning", "busbw-one-host", message, self.path))
        return tuple(notes)

    @property
    def _stages_cross(self) -> bool:
        """Whether the next stage is on another server."""
        return self.layout.world // self.layout.pp >= self.server

    def _crosses_servers(self, kind: GroupKind, members: int) -> bool:
        if kind == "all":
            return self.layout.world > self.server
        step, count = self.layout.steps(kind)
        return step * count * (members if kind in _REPLICAS else 1) > self.server

    def _measured_collective(self, collective: str) -> str:
        """Returns the collective, or what stands in for it."""
        measured = {table.collective for table in self.tables}
        return next(name for name in (collective, *_STAND_INS[collective]) if name in measured)

    def _find_table(self, collective: str, members: int, across: bool) -> MeasuredCollective:
        source = self._measured_collective(collective)
        return choose_table([table for table in self.tables if table.collective == source], members, across)

    def _ns(self, collective: str, members: int, across: bool, size: int) -> int:
        if members == 1 or not size:
            return 0
        key = (collective, members, across, size)
        if key not in self._cache:
            busbw = self._find_table(collective, members, across).busbw_of(size, members)
            self._cache[key] = round(size * bus_bandwidth(collective, members, 1, 1) / busbw)
        return self._cache[key]

    def _explain(self, collective: str, members: int, across: bool, size: int) -> str:
        table = self._find_table(collective, members, across)
        factor = "" if collective == "SENDRECV" else f" x {members - 1}/{members}"
        factor = f" x 2{factor}" if collective == "ALLREDUCE" else factor
        busbw = table.busbw_of(size, members)
        ns = group_digits(self._ns(collective, members, across, size))
        return f"{group_digits(size)} B{factor} / {busbw:.5g} GB/s busbw ({table.words()}) = {ns} ns"


def choose_table(tables: Sequence[MeasuredCollective], members: int, across: bool) -> MeasuredCollective:
    """Returns the table that is nearest to a group: measured inside a host or across hosts as it runs, if one
    was, then by the number of ranks. across: whether the group lies on several servers.
    """

    def distance(table: MeasuredCollective) -> tuple[bool, float]:
        elsewhere = table.hosts is not None and (table.hosts > 1) is not across
        return elsewhere, abs(log((table.ranks or members) / members))

    return min(tables, key=distance)
