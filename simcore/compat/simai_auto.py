"""`simai-auto`: SimAI's bus bandwidths derived from NVLink and NICs (SimAI-analytical 1.6 and 1.7).

It is always the ring, whatever the size. A group is N nodes of q GPUs with k NICs; NVLink v, one NIC c,
GiB/s.

SimAI's ratio tables state what share of its bus bandwidth a collective of some size reaches. They are in
simai_ratio.csv in this folder, with their source.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from simcore.cluster import Cluster, TransferShape
from simcore.compat.simai_network import BusBandwidth, SimaiNetwork, simai_bandwidths
from simcore.diagnostics import Diagnostic, UsageError
from simcore.layout import Layout
from simcore.networks.model import Network, NetworkParameters
from simcore.records import NamedTuple
from simcore.units import format_number
from simcore.workload.model import GroupKind

# The columns: numbers of nodes, and one column for expert groups whose tensor groups fill a server.
_NODES = (1, 2, 4, 8, 16, 32, 64, 128)
_OTHER_NODES = "16"
MULTI_NODE = "Multi 16"
_COLUMNS = (*map(str, _NODES), MULTI_NODE)


class RatioTable(NamedTuple):
    """One table. sizes: bytes of each row, ascending; columns: the ratios of each column."""

    sizes: tuple[int, ...]
    columns: dict[str, tuple[float, ...]]


def column_of(nodes: int) -> str:
    """Returns the column for a number of nodes: its own, else that of 16."""
    return str(nodes) if nodes in _NODES else _OTHER_NODES


def ratio(table: str, column: str, size: int) -> float:
    """Returns the share of the bandwidth at 16 GiB that a collective of `size` bytes reaches.

    Linear between rows; below 16 MiB as at 16 MiB, above 16 GiB as there; 1 for no bytes.
    """
    sizes, columns = _tables()[table]
    ratios = columns[column]
    if size == 0 or size >= sizes[-1]:
        return 1.0
    if size <= sizes[0]:
        return ratios[0] / ratios[-1]
    above = next(row for row, bytes_there in enumerate(sizes) if bytes_there >= size)
    low, high = sizes[above - 1], sizes[above]
    step = ratios[above] - ratios[above - 1]
    return (ratios[above - 1] + step * (size - low) / (high - low)) / ratios[-1]


@lru_cache(maxsize=1)
def _tables() -> dict[str, RatioTable]:
    text = Path(__file__).with_name("simai_ratio.csv").read_text(encoding="utf-8")
    rows = [line.split(",") for line in text.splitlines() if not line.startswith("#")][1:]
    tables = {}
    for name in dict.fromkeys(row[0] for row in rows):
        own = [row[1:] for row in rows if row[0] == name]
        ratios = [[float(cell) if cell else 1.0 for cell in row[1:]] for row in own]
        columns = dict(zip(_COLUMNS, zip(*ratios, strict=True), strict=True))
        tables[name] = RatioTable(tuple(int(row[0]) for row in own), columns)
    return tables


# The us of a collective above 1 B and below 1 MiB by the size of its group; other sizes take no time.
_SMALL_US = {2: 10, 4: 12, 8: 15, 16: 66, 32: 135, 64: 200, 128: 320}
_SMALL_BELOW = 2**20
_NVLINK_BOUND = "NVLink, the NICs are faster"


class GroupNodes(NamedTuple):
    """A group as SimAI sees it."""

    nodes: int
    """N."""
    gpus: int
    """q, its GPUs in a node."""
    nics: int
    """k, the NICs that it may use."""
    divisor: int = 1
    """Among how many GPUs of a node its NICs are divided, for a message."""


class SimaiAuto(SimaiNetwork):
    """The network of one run; satisfies `Network`. nvlink, nic: GiB/s."""

    name = "simai-auto"

    def __init__(self, parameters: NetworkParameters, layout: Layout) -> None:
        super().__init__(parameters, layout)
        figures = simai_bandwidths(parameters)
        self.nvlink, self.nic = figures["nvlink"], figures["nic"]
        self.nics = parameters.nics_per_server

    def bandwidth(self, kind: GroupKind, collective: str, size: int) -> BusBandwidth:
        group = self._nodes(kind)
        if group.nodes > 1 and group.nics == 0:
            raise UsageError(
                f"--nics-per-server {self.nics}: {kind} groups get floor({self.nics}/{group.divisor}) = 0 "
                f"NICs, and SimAI prints garbage; {group.divisor} or more would fit"
            )
        bus_bandwidth = self._alltoall(group) if collective == "ALLTOALL" else self._ring(group)
        if kind == "tp" and collective in ("ALLGATHER", "REDUCESCATTER"):
            table, column = "nic", column_of(group.nodes)
            if group.nodes > 1 and bus_bandwidth.origin == _NVLINK_BOUND:
                table = "nvlink"
        elif kind in ("tp", "ep") and collective == "ALLTOALL":
            table, column = "ata", column_of(group.nodes)
            if kind == "ep" and self._expert_step >= self.server:
                column = MULTI_NODE
        else:
            return bus_bandwidth
        return bus_bandwidth._replace(
            ratio=ratio(table, column, size), ratio_origin=f"table {table}, column {column}"
        )

    @property
    def _expert_step(self) -> int:
        """The distance of neighbours in an expert group: SimAI counts along dp, whatever EP is."""
        return 1 if self.layout.whole_experts else self.layout.tp

    def _nodes(self, kind: GroupKind) -> GroupNodes:
        """Returns how SimAI spreads a group of more than one; all quotients are floored."""
        tp, ep, server, nics = self.layout.tp, self.layout.ep, self.server, self.nics
        step = self._expert_step
        if kind == "tp":
            return GroupNodes(max(1, tp // server), min(tp, server), nics)
        # The number of GPUs of a node with one member of the group among them.
        inner = {"dp": tp, "dp_ep": step * ep, "ep": step}.get(kind) or self.layout.steps(kind)[0]
        divisor = inner if inner <= server else server
        gpus = server // inner if inner <= server else 1
        if kind == "ep":
            nodes = 1 if step * ep <= server else step * ep // server
            return GroupNodes(nodes, gpus, nics if nodes == 1 else nics // divisor, divisor)
        return GroupNodes(self.members(kind), gpus, nics // divisor, divisor)

    def _ring(self, group: GroupNodes) -> BusBandwidth:
        if group.nodes == 1:
            return BusBandwidth(self.nvlink, "NVLink in one node")
        through = group.nics * self.nic
        nics = f"{group.nics} x {format_number(self.nic)} of NICs over {group.nodes} nodes"
        if group.gpus > 1 and through > self.nvlink:
            within = self.nvlink * group.gpus / (group.gpus - 1)
            if within < through:
                return BusBandwidth(within, _NVLINK_BOUND)
        return BusBandwidth(through, nics)

    def _alltoall(self, group: GroupNodes) -> BusBandwidth:
        if group.nodes == 1:
            return BusBandwidth(self.nvlink, "NVLink in one node")
        peers = group.nodes * group.gpus - 1
        outside = (group.nodes - 1) * group.gpus
        each = group.nics * self.nic / group.gpus
        origin = f"{group.nics} x {format_number(self.nic)} / {group.gpus} of NICs x {peers}/{outside} peers"
        return BusBandwidth(each * peers / outside, origin)

    def fixed_ns(self, kind: GroupKind, size: int) -> int | None:
        if not 1 < size < _SMALL_BELOW:
            return None
        return 1000 * _SMALL_US.get(self.members(kind), 0)

    def transfer_gibps(self, shape: TransferShape) -> float:
        return self.nic if any(dimension for dimension, _ in shape) else self.nvlink

    def words(self) -> str:
        return (
            f"servers of {self.server} GPUs, NVLink {format_number(self.nvlink)} GiB/s, "
            f"{self.nics} NICs of {format_number(self.nic)} GiB/s"
        )

    def assumptions(self) -> list[Diagnostic]:
        if self.layout.tp > 1:
            return []
        message = "tp is 1: SimAI prints garbage for its tp collectives; here a group of one costs nothing"
        return [Diagnostic("note", "simai-tp-1", message)]


def opened(parameters: NetworkParameters, layout: Layout, cluster: Cluster) -> Network:
    """Returns the network of a run: see `NetworkModel`."""
    return SimaiAuto(parameters, layout)
