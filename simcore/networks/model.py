"""What a network model is: prices of collectives and transfers for one run, and where ranks are for one.

A model without dimensions has servers or one place, which folding compares in place of a cluster's places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from simcore.records import NamedTuple, Struct

if TYPE_CHECKING:
    from simcore.cluster import Cluster, GroupShape, TransferShape
    from simcore.diagnostics import Diagnostic
    from simcore.folding import Folding
    from simcore.folding.graph import GroupClass, PortFactors
    from simcore.layout import Layout
    from simcore.messages.network import LinkHeat, LinkUse
    from simcore.program import Program
    from simcore.program.blocks import Structure
    from simcore.program.ops import CollectiveCost
    from simcore.workload import Workload
    from simcore.workload.model import GroupKind


class GroupCollective(NamedTuple):
    """A collective where it runs. size: bytes of the whole buffer. ports: the factors on the group's ports,
    () when all are whole.
    """

    group: GroupKind
    shape: GroupShape
    ports: PortFactors
    collective: str
    size: int

    @classmethod
    def of(cls, group: GroupClass, cost: CollectiveCost) -> GroupCollective:
        """The collective of an op, in the group of the rank that runs it."""
        return cls(group.kind, group.shape, group.ports, cost.collective, cost.priced_bytes)


class Network(Protocol):
    """A network model opened for one run: what communication takes while the network is idle.

    Sizes are bytes of the whole buffer. ports: the factors on the group's or link's ports,
    () when all are whole.
    """

    def collective_ns(self, group_collective: GroupCollective, scale: float = 1.0) -> int:
        """ns of one collective alone, until its last rank is done, times `scale`, rounded as a run does."""
        ...

    def transfer_ns(self, shape: TransferShape, ports: PortFactors, size: int) -> int:
        """ns of one pipeline transfer alone, before any scale."""
        ...

    def explain_collective(self, group_collective: GroupCollective) -> str:
        """Where `collective_ns` comes from, in one or two lines of text."""
        ...

    def explain_transfer(self, shape: TransferShape, ports: PortFactors, size: int) -> str:
        """Where `transfer_ns` comes from, on one line of text."""
        ...

    def words(self) -> str:
        """What the prices rest on, on one line of text."""
        ...

    def diagnostics(self, workload: Workload, structure: Structure) -> tuple[Diagnostic, ...]:
        """What the model assumes of a file and ignores. Raises InputError or UsageError for what it lacks."""
        ...


class OpTraffic(Protocol):
    """What an op moves."""

    def scaled(self, factor: float) -> OpTraffic:
        """The same, so many times as long."""
        ...


class PortTransport(Protocol):
    """Ports or links, and what is on them. Places are rank classes; time is ns and never goes back.

    At every instant: `finished` for the ends, any number of `start`, and when nothing more happens then,
    `settle`.
    """

    def start(
        self,
        now: int,
        token: object,
        traffic: Any,
        senders: Sequence[int],
        receivers: Sequence[int],
        stream: int,
        /,
    ) -> None:
        """Begins a transmission: `finished` gives its token when it is over."""
        ...

    def next_ns(self) -> int | None:
        """When something happens next, if nothing starts before; None when nothing is under way."""
        ...

    def finished(self, now: int) -> list[object]:
        """The tokens of what is over at `now`."""
        ...

    def settle(self, now: int) -> None:
        """After all starts and ends of `now`."""
        ...

    def uses(self) -> list[LinkUse] | None:
        """What each link carried; None of ports."""
        ...

    def heat(self) -> LinkHeat | None:
        """How busy links are over the run; None of ports."""
        ...


@runtime_checkable
class Sharing(Protocol):
    """What a network has beside prices when concurrent transmissions slow each other down."""

    def collective(self, shape: GroupShape, ports: PortFactors, collective: str, size: int) -> OpTraffic:
        """What one collective puts on the ports or links of its members."""
        ...

    def transfer(self, shape: TransferShape, ports: PortFactors, size: int) -> OpTraffic:
        """What one pipeline transfer puts on the ports or links of its two ends."""
        ...

    def make_transport(self, folding: Folding) -> PortTransport:
        """What carries it, with nothing on it yet."""
        ...

    def check_size(self, program: Program, folding: Folding) -> None:
        """Raises `UsageError` for a run that would take too long."""
        ...


class NetworkParameters(Struct, frozen=True):
    """What parameters say of the network, and what not every network has."""

    network: str
    gpus_per_server: int
    nics_per_server: int
    nvlink: float | None
    nic: float | None
    gpu_type: str
    nic_type: str
    overlap: tuple[str, ...]
    slow_link: tuple[str, ...]
    shard_size: int | None
    expert_imbalance: str | None
    overlap_tp: bool
    jitter: float
    comm_scale: float

    @property
    def argument(self) -> str:
        """What stands behind `NAME:`, "" without it."""
        return self.network.partition(":")[2]


class NetworkModel(NamedTuple):
    """One entry of the registry.

    module: the file here whose `opened` makes the network of a run. argument: what stands behind
    `NAME:` (`FILE`), None for a model that takes none. flags: the fields of `Parameters` that only
    such models take. place: where ranks are for a model without dimensions, None for one that takes
    the cluster's. lifts_forward: whether it counts small forward collectives as SimAI does
    (`simai.least_forward_bytes`). queues: whether the queues of dialect astra-sim-1 have its prices.
    unfolded: whether ranks that are alike meet on links, so that every rank is run.
    """

    module: str
    argument: str | None = None
    flags: tuple[str, ...] = ()
    make_cluster: Callable[[NetworkParameters, Layout], Cluster] | None = None
    lifts_forward: bool = False
    queues: bool = False
    needs_all_ranks: bool = False

    def open(self, parameters: NetworkParameters, layout: Layout, cluster: Cluster) -> Network:
        """The network of a run. Raises `UsageError`, and `InputError` for a file that cannot be read."""
        # Loaded here: `--help` names all models, and a run has one.
        module = import_module(f"simcore.{self.module}")
        network: Network = module.opened(parameters, layout, cluster)
        return network


# Never shown and never priced: only which dimensions two ranks differ in is asked.
_BANDWIDTH, _LATENCY_NS = 1.0, 0.0


def single_switch(parameters: NetworkParameters, layout: Layout) -> Cluster:
    """All ranks beside each other: prices depend on no place."""
    return _switches(layout.world)


def server_switches(parameters: NetworkParameters, layout: Layout) -> Cluster:
    """Servers of `--gpus-per-server` ranks, dimension 0; dimension 1 is between them."""
    inside = parameters.gpus_per_server
    return _switches(inside, -(-layout.world // inside))


def _switches(*sizes: int) -> Cluster:
    # Imported here: this room is looked into for the names of its models alone.
    from simcore.cluster import Cluster, Dimension

    dims = tuple(Dimension("switch", size, _BANDWIDTH, _LATENCY_NS) for size in sizes)
    return Cluster(dims, (None,) * len(dims))
