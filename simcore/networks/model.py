"""What a network model is: prices of collectives and transfers for one run, and where ranks are for one.

A model without dimensions has servers or one switch, whose positions folding compares in place of a
cluster's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from simcore.records import NamedTuple, Struct

if TYPE_CHECKING:
    from simcore.cluster import Cluster, GroupShape, TransferShape
    from simcore.diagnostics import Diagnostic
    from simcore.flows.traffic import FlowReport
    from simcore.folding import Folding
    from simcore.folding.graph import GroupClass, PortFactors
    from simcore.layout import Layout
    from simcore.messages.network import LinkHeat, LinkUse
    from simcore.program import Program
    from simcore.program.blocks import Structure
    from simcore.program.ops import CollectiveCost
    from simcore.workload import Workload
    from simcore.workload.model import GroupKind


# Of more ranks under `--ecmp balanced` those that are alike are simulated once.
MOST_BALANCED_RANKS = 128


class GroupCollective(NamedTuple):
    """A collective with the group of ranks that runs it."""

    group: GroupKind
    """The kind of its group."""
    shape: GroupShape
    """The shape of its group."""
    ports: PortFactors
    """The factors on the group's ports, () when all have their whole bandwidth."""
    collective: str
    """As in a workload."""
    size: int
    """Bytes of the whole buffer."""

    @classmethod
    def of(cls, group: GroupClass, cost: CollectiveCost) -> GroupCollective:
        """Returns the collective of an op, in the group of the rank that runs it."""
        return cls(group.kind, group.shape, group.ports, cost.collective, cost.priced_bytes)


class Network(Protocol):
    """A network model opened for one run: what communication takes while the network is idle.

    Sizes are bytes of the whole buffer. ports: the factors on the group's or link's ports,
    () when all have their whole bandwidth.
    """

    def collective_ns(self, group_collective: GroupCollective, scale: float = 1.0) -> int:
        """Returns the ns of one collective alone until its last rank has finished, times `scale`, rounded."""
        ...

    def transfer_ns(self, shape: TransferShape, ports: PortFactors, size: int) -> int:
        """Returns the ns of one pipeline transfer alone, before any scale."""
        ...

    def explain_collective(self, group_collective: GroupCollective) -> str:
        """Returns where `collective_ns` comes from, in one or two lines of text."""
        ...

    def explain_transfer(self, shape: TransferShape, ports: PortFactors, size: int) -> str:
        """Returns where `transfer_ns` comes from, on one line of text."""
        ...

    def words(self) -> str:
        """Returns what the prices depend on, on one line of text."""
        ...

    def diagnostics(self, workload: Workload, structure: Structure) -> tuple[Diagnostic, ...]:
        """Returns what the model assumes or ignores of a file. Raises InputError or UsageError for what it
        lacks.
        """
        ...


class OpTraffic(Protocol):
    """What an op moves."""

    def scaled(self, factor: float) -> OpTraffic:
        """Returns the same, `factor` times as long."""
        ...


class PortTransport(Protocol):
    """Ports or links with their traffic. Senders and receivers are rank classes; time is ns and never goes
    back.

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
        """Returns when something happens next, if nothing starts before; None when nothing is in flight."""
        ...

    def run_ahead(self, last: int | None) -> int:
        """Runs some of what comes before `last`, where nothing starts, at most until a transmission is over,
        and returns how many instants that were. One by one they cost the caller more than the network.
        """
        ...

    def finished(self, now: int) -> list[object]:
        """Returns the tokens of the transmissions that are over at `now`."""
        ...

    def settle(self, now: int) -> None:
        """Follows all starts and ends of `now`."""
        ...

    def uses(self) -> list[LinkUse] | None:
        """Returns what each link carried; None for ports."""
        ...

    def heat(self) -> LinkHeat | None:
        """Returns how busy links are over the run; None for ports."""
        ...

    def flow_report(self) -> FlowReport | None:
        """Returns what flows sent over the links of a topology; None without flows."""
        ...


class ClassTransmission(NamedTuple):
    """What a collective of rank classes, or a transfer from one to another, puts on the network."""

    payload: Any
    senders: tuple[int, ...]
    """Rank classes, ascending."""
    receivers: tuple[int, ...]
    stream: int


@runtime_checkable
class KnownPaths(Protocol):
    """What a transport has in addition where it knows before a run which links it uses."""

    def links_of(self, transmission: ClassTransmission) -> Iterable[int]:
        """Returns the links of a transmission."""
        ...

    def alone_ns(self, transmission: ClassTransmission) -> int:
        """Returns the ns of a transmission that meets no other one."""
        ...

    def carry_alone(self, transmission: ClassTransmission, starts: Sequence[int]) -> None:
        """Carries a transmission from each of these times on, ascending, that meets no other one."""
        ...


@runtime_checkable
class Sharing(Protocol):
    """What a network has in addition to prices when concurrent transmissions slow each other down."""

    def collective(self, shape: GroupShape, ports: PortFactors, collective: str, size: int) -> OpTraffic:
        """Returns what one collective puts on the ports or links of its members."""
        ...

    def transfer(self, shape: TransferShape, ports: PortFactors, size: int) -> OpTraffic:
        """Returns what one pipeline transfer puts on the ports or links of its two ends."""
        ...

    def make_transport(self, folding: Folding) -> PortTransport:
        """Returns a transport with nothing on it yet."""
        ...

    def refine(self, transport: PortTransport) -> bool:
        """Returns whether the run is to be made again, in more detail, after what a first one has shown."""
        ...

    def check_size(self, program: Program, folding: Folding) -> None:
        """Raises `UsageError` for a run that would take too long."""
        ...


class NetworkParameters(Struct, frozen=True):
    """The parameters of the network, and those that not every network has."""

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
    flow_model: str
    send_latency: int | None
    ecmp: str | None
    nvls: str
    pxn: str
    congestion: str
    seed: int
    job_gpus: str | None

    @property
    def argument(self) -> str:
        """The text behind `NAME:`, "" without it."""
        return self.network.partition(":")[2]


class NetworkModel(NamedTuple):
    """One entry of the registry."""

    module: str
    """The module whose `opened` makes the network of a run."""
    argument: str | None = None
    """What stands behind `NAME:` (`FILE`), None for a model that takes no argument."""
    flags: tuple[str, ...] = ()
    """The fields of `Parameters` that only such models take."""
    make_cluster: Callable[[NetworkParameters, Layout], Cluster] | None = None
    """Where ranks are for a model without dimensions, None for one that takes the cluster's."""
    lifts_forward: bool = False
    """Whether it counts small forward collectives as SimAI does (`simai.least_forward_bytes`)."""
    queues: bool = False
    """Whether the queues of dialect astra-sim-1 have its prices."""
    needs_all_ranks: bool = False
    """Whether ranks with equal times meet on links, so that every rank is run."""

    def open(self, parameters: NetworkParameters, layout: Layout, cluster: Cluster) -> Network:
        """Returns the network of a run. Raises `UsageError`, and `InputError` for an unreadable file."""
        # Loaded here: `--help` names all models, and a run has one.
        module = import_module(f"simcore.{self.module}")
        network: Network = module.opened(parameters, layout, cluster)
        return network


# Never displayed and never priced: they only decide in which dimensions two ranks differ.
_BANDWIDTH, _LATENCY_NS = 1.0, 0.0


def single_switch(parameters: NetworkParameters, layout: Layout) -> Cluster:
    """Returns a cluster of all ranks on one switch: prices depend on no position."""
    return _switches(layout.world)


def server_switches(parameters: NetworkParameters, layout: Layout) -> Cluster:
    """Returns servers of `--gpus-per-server` ranks as dimension 0; dimension 1 is between them."""
    inside = parameters.gpus_per_server
    return _switches(inside, -(-layout.world // inside))


def _switches(*sizes: int) -> Cluster:
    # Imported here: most importers of this room need only the names of its models.
    from simcore.cluster import Cluster, Dimension

    dims = tuple(Dimension("switch", size, _BANDWIDTH, _LATENCY_NS) for size in sizes)
    return Cluster(dims, (None,) * len(dims))
