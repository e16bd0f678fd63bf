"""`busbw:FILE`: SimAI's bus bandwidths as its `busbw.yaml` gives them (SimAI-analytical 2025-03)."""

from __future__ import annotations

from simcore.cluster import Cluster, TransferShape
from simcore.collectives import NAMES
from simcore.diagnostics import Diagnostic
from simcore.layout import Layout
from simcore.networks.busbw_file import BusbwFile
from simcore.networks.model import Network
from simcore.networks.simai import Bandwidth, SimaiNetwork
from simcore.parameters import Parameters
from simcore.workload.model import GroupKind

_KEYS = {
    "ALLREDUCE": "allreduce",
    "ALLGATHER": "allgather",
    "REDUCESCATTER": "allgather",
    "ALLTOALL": "alltoall",
}


class Busbw(SimaiNetwork):
    """The network of one run; satisfies `Network`."""

    name = "busbw"

    def __init__(self, parameters: Parameters, layout: Layout, path: str) -> None:
        super().__init__(parameters, layout)
        self.path = path
        self._file = BusbwFile(path)
        self.pp_gibps = self._file.get("PP.busbw")

    def bandwidth(self, kind: GroupKind, collective: str, size: int) -> Bandwidth:
        entry, reason = self._entry(kind, _KEYS[collective])
        if entry is None:
            return Bandwidth(0.0, reason)
        what = (
            f"{NAMES[collective]} of {kind} groups needs it, and SimAI's own time wraps to 2^64 ns without it"
        )
        return Bandwidth(self._file.needed(entry, what), f"{entry} of the file")

    def _entry(self, kind: GroupKind, key: str) -> tuple[str | None, str]:
        """The entry that SimAI takes; None, and why, where it takes none."""
        tp, server = self.layout.tp, self.server
        if kind == "tp":
            return f"TP.{key}", ""
        if kind == "ep":
            if tp > server:
                return None, f"it takes no bandwidth where tp {tp} is above the {server} GPUs of a server"
            names = {"allreduce": "TP.allreduce", "alltoall": "EP.alltoall"}
            return names.get(key), "it takes no bandwidth for all-gathers and reduce-scatters of ep groups"
        if self.layout.world == server and tp <= server:
            return (
                "TP.allreduce" if key == "allreduce" else None
            ), "inside a single server it takes a bandwidth for all-reduce only"
        section = "DP" if kind == "dp" else "EP"
        return f"{section}.{'allreduce' if key == 'allreduce' else 'allgather'}", ""

    def transfer_gibps(self, shape: TransferShape) -> float:
        return self._file.needed("PP.busbw", "a transfer between pipeline stages needs it")

    def words(self) -> str:
        return f"bus bandwidths of SimAI, servers of {self.server} GPUs"

    def assumptions(self) -> list[Diagnostic]:
        return list(self._file.diagnostics)


def opened(parameters: Parameters, layout: Layout, cluster: Cluster, argument: str) -> Network:
    """The network of a run: see `NetworkModel`."""
    return Busbw(parameters, layout, argument)
