"""`flows`: every message a flow on the links of a topology, with max-min fair shares (docs/flows.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from simcore.cached_methods import cached_on
from simcore.cluster import Cluster, GroupShape, TransferShape
from simcore.diagnostics import UsageError, printable
from simcore.flows.collectives import (
    FLOW_ALGORITHMS,
    Collective,
    estimate_flows,
    make_collective,
    start_collective,
)
from simcore.flows.log import FlowLog, Transmission
from simcore.flows.packets import finer_rules, make_traffic, slowed_rules
from simcore.flows.traffic import FlowReport, FlowRules, FlowTraffic, rules_of
from simcore.folding.graph import PortFactors
from simcore.layout import Layout
from simcore.networks.in_flight import FlowsInFlight
from simcore.networks.model import (
    GroupCollective,
    Network,
    NetworkParameters,
    PortTransport,
)
from simcore.networks.simulated_alone import SimulatedAlone
from simcore.parameters import flag_of
from simcore.program.ops import CollectiveCost
from simcore.ranks import parse_ranks
from simcore.records import NamedTuple, replace
from simcore.units import group_digits

if TYPE_CHECKING:
    from simcore.folding import Folding
    from simcore.program import Program

# Some 20,000 flows are simulated in a second where ports are shared: more than these would take minutes.
MOST_FLOWS = 4_000_000
# Of a run that can have fewer flows, as balanced paths have them: 10 s.
MOST_FLOWS_AT_FIRST = 200_000
# So many times as many are simulated of a run that is compared with one that has them: on other paths the
# difference would be that of the paths.
_MORE_WHERE_COMPARED = 2
_PER_SECOND = 20_000
_NOT_FOLDED = (
    "{}: not with --ecmp balanced of many ranks, where one of each class is simulated; --no-fold has all"
)


class TooManyFlows(UsageError):
    """Raised for a run whose flows are more than are simulated."""


class FlowPayload(NamedTuple):
    """Bytes of the whole buffer that a collective moves, or with None a transfer."""

    collective: str | None
    size: int
    algorithm: str = ""
    """One of `FLOW_ALGORITHMS`."""

    def scaled(self, factor: float) -> FlowPayload:
        """Returns the payload with `factor` times the bytes: no duration of a flow is known before."""
        return self if factor == 1.0 else self._replace(size=round(self.size * factor))


class FlowTransport(FlowsInFlight):
    """The flows of a run. ranks: the GPU of each rank class of the engine. job: the number of the run, of
    several that share the traffic.
    """

    def __init__(self, traffic: FlowTraffic, ranks: Sequence[int], job: int = 0) -> None:
        super().__init__(traffic)
        self._ranks = ranks
        self._job = job
        # Collectives that some members have begun, and what their members wait with.
        self._collectives: dict[object, Collective] = {}
        self._tokens: dict[object, dict[int, object]] = {}

    def start(
        self,
        now: int,
        token: object,
        payload: FlowPayload,
        senders: Sequence[int],
        receivers: Sequence[int],
        stream: int,
    ) -> None:
        """Begins a collective of rank classes, or a transfer from one to another."""
        self.traffic.now = max(now, self.traffic.now)
        label = self._label(now, stream, senders[0])
        if payload.collective is not None:
            ranks = sorted(self._ranks[sender] for sender in senders)
            start_collective(
                self.traffic,
                ranks,
                payload.collective,
                payload.size,
                lambda _: self.over.append(token),
                label,
                payload.algorithm,
            )
        elif not payload.size:
            self.over.append(token)
        else:
            source, target = self._ranks[senders[0]], self._ranks[receivers[0]]
            delay = self.traffic.rules.start_ns
            self.traffic.send(
                delay, source, target, payload.size, lambda *_: self.over.append(token), None, label
            )

    def _label(self, now: int, stream: int, sender: int) -> int:
        """Returns the number in the log of what is sent now; -1 without a log."""
        log = self.traffic.log
        if log is None:
            return -1
        log.transmissions.append(Transmission(stream, sender, now, self._job))
        return len(log.transmissions) - 1

    def join(
        self,
        now: int,
        key: object,
        payload: FlowPayload,
        members: Sequence[int],
        member: int,
        token: object,
        stream: int,
    ) -> None:
        """Begins the part of one rank class in the collective of a key."""
        self.traffic.now = max(now, self.traffic.now)
        assert payload.collective is not None
        tokens = self._tokens.setdefault(key, {})
        if key not in self._collectives:
            ranks = sorted(self._ranks[index] for index in members)
            collective = make_collective(
                self.traffic, ranks, payload.collective, payload.size, lambda _: None,
                self._label(now, stream, member), lambda rank: self.over.append(tokens[rank]),
                payload.algorithm,
            )  # fmt: skip
            if collective is None:
                self.over.append(token)
                return
            self._collectives[key] = collective
        tokens[self._ranks[member]] = token
        self._collectives[key].begin(self._ranks[member])


class FlowNetwork(SimulatedAlone):
    """The network of one run; satisfies `Network` and `Sharing`. A collective alone is simulated as well."""

    rules: FlowRules = FlowRules()
    gpus: tuple[int, ...] = ()
    """The GPU of each rank, () where they have the same numbers."""
    layout: Layout | None = None
    """The groups of the ranks."""

    def gpu_of(self, rank: int) -> int:
        """Returns the GPU that a rank is on."""
        return self.gpus[rank] if rank < len(self.gpus) else rank

    def simulate_alone(self, ranks: Sequence[int], group_collective: GroupCollective) -> int:
        assert self.cluster.topology is not None
        collective = group_collective.collective
        algorithm = flow_algorithm(self.cluster, group_collective.shape, collective)
        gpus = tuple(map(self.gpu_of, ranks))
        rules = replace(self.rules, detail="shares")
        size = group_collective.size
        # A run and what is tried with it have the same ones.
        known_ns = cached_on(self.cluster.topology, "alone", dict[object, int])
        key = rules, gpus, collective, size, algorithm
        if key not in known_ns:
            traffic = FlowTraffic(self.cluster.topology, rules)
            start_collective(traffic, gpus, collective, size, lambda _: None, algorithm=algorithm)
            traffic.run()
            known_ns[key] = traffic.last_end_ns
        return known_ns[key]

    def transfer_ns(self, shape: TransferShape, ports: PortFactors, size: int) -> int:
        """Returns the ns of a transfer in closed form, with what it costs to send."""
        return super().transfer_ns(shape, ports, size) + (self.rules.start_ns if size else 0)

    def explain_collective(self, group_collective: GroupCollective) -> str:
        alone = self.collective_ns(group_collective)
        return f"as flows on the links of {self.words()}: {alone} ns alone"

    def explain_transfer(self, shape: TransferShape, ports: PortFactors, size: int) -> str:
        words = super().explain_transfer(shape, ports, size)
        return f"{words}, and {self.rules.start_ns} ns before it is sent"

    def words(self) -> str:
        assert self.cluster.topology is not None
        return self.cluster.topology.words()

    def collective(self, shape: GroupShape, ports: PortFactors, collective: str, size: int) -> FlowPayload:
        return FlowPayload(collective, size, flow_algorithm(self.cluster, shape, collective))

    def transfer(self, shape: TransferShape, ports: PortFactors, size: int) -> FlowPayload:
        return FlowPayload(None, size)

    def make_transport(self, folding: Folding) -> PortTransport:
        if self._is_folded(folding):
            # Imported here: few runs are folded.
            from simcore.networks.balanced import BalancedTransport

            if self.gpus:
                raise UsageError(_NOT_FOLDED.format("--job-gpus"))
            assert self.cluster.topology is not None
            assert self.layout is not None
            return BalancedTransport(self.cluster.topology, self.rules, self.layout, folding)
        return self._transport(folding, self._make_traffic(), 0)

    def _is_folded(self, folding: Folding) -> bool:
        """Returns whether one rank of each class is simulated."""
        return self.layout is not None and len(folding.classes) < self.layout.world

    def make_transports(
        self, folding: Folding, other: FlowNetwork, other_folding: Folding
    ) -> tuple[PortTransport, PortTransport]:
        """Returns the transports of this run and of another one, whose flows meet."""
        if self._is_folded(folding) or other._is_folded(other_folding):
            raise UsageError(_NOT_FOLDED.format("--other-job"))
        traffic = self._make_traffic()
        return self._transport(folding, traffic, 0), other._transport(other_folding, traffic, 1)

    def _make_traffic(self) -> FlowTraffic:
        assert self.cluster.topology is not None
        return make_traffic(self.cluster.topology, self.rules, FlowLog())

    def _transport(self, folding: Folding, traffic: FlowTraffic, job: int) -> PortTransport:
        gpus = [self.gpu_of(one.ranks.blocks[0].first) for one in folding.classes]
        return FlowTransport(traffic, gpus, job)

    def slowed_rules(self, report: FlowReport) -> FlowRules | None:
        """Returns the rules under which congestion control slows a run down; None where that is not told."""
        return slowed_rules(report, self.rules)

    def refine(self, transport: PortTransport) -> bool:
        """Returns whether the run is made again, as packets, after what its shares have shown."""
        if not isinstance(transport, FlowTransport):
            return False
        finer = finer_rules(transport.traffic)
        if finer is None:
            return False
        self.rules = finer
        return True

    def check_size(self, program: Program, folding: Folding) -> None:
        if self._is_folded(folding):
            return
        total = self.count_flows(program, folding)
        if total > MOST_FLOWS:
            raise TooManyFlows(
                f"--network flows: the step is {flow_words(total)}: at most {MOST_FLOWS} are simulated; "
                "--ecmp balanced, without --no-fold, is faster"
            )

    def check_flows(self, program: Program, folding: Folding, is_compared: bool = False) -> None:
        """Raises `TooManyFlows` for a run that would take long where another choice has fewer flows.
        folding: of equal ranks, as one of each class is enough to count. is_compared: with a run that has all
        flows.
        """
        total = self.count_flows(program, folding)
        if total > MOST_FLOWS_AT_FIRST * (_MORE_WHERE_COMPARED if is_compared else 1):
            raise TooManyFlows(f"the step is {flow_words(total)}")

    def count_flows(self, program: Program, folding: Folding) -> int:
        """Returns about how many flows the collectives of a step are."""
        total = 0.0
        assert self.cluster.topology is not None
        per_server = self.cluster.topology.gpus_per_server
        counts = [Counter(stage.ops.cost) for stage in program.stages]
        for rank_class in folding.classes:
            of_rank = 0.0
            for cost_index, count in counts[rank_class.stage].items():
                cost = program.costs[cost_index]
                if isinstance(cost, CollectiveCost):
                    members = folding.group_classes[rank_class.groups[cost.group]].shape.members
                    flows = estimate_flows(cost.collective, members, per_server)
                    of_rank += count * flows / max(members, 1)
            total += of_rank * len(rank_class.ranks)
        return round(total)


def flow_words(flows: int) -> str:
    """Returns how many flows there are and how long they take."""
    return f"about {group_digits(flows)} flows, some {round(flows / _PER_SECOND)} s"


def flow_algorithm(cluster: Cluster, shape: GroupShape, collective: str) -> str:
    """Returns the algorithm of a collective, that of the outermost dimension that the group crosses; "" as
    SimAI has it.
    """
    if not shape.dimensions:
        return ""
    return cluster.algorithms_for(collective)[shape.dimensions[-1].dimension] or ""


def check_algorithms(cluster: Cluster) -> None:
    """Raises `UsageError` for an algorithm that flows do not have."""
    for names in (cluster.algorithms, *(names for _, names in cluster.by_collective)):
        for name in names:
            if (name or "") not in FLOW_ALGORITHMS:
                expected = ", ".join(FLOW_ALGORITHMS[1:-1])
                raise UsageError(
                    f"--algorithm {printable(str(name), 40)}: under --network flows {expected} or "
                    f"{FLOW_ALGORITHMS[-1]} is expected"
                )


def check_parameters(parameters: NetworkParameters) -> None:
    """Raises `UsageError` for parameters that flows do not have."""
    names = ("comm_scale", "jitter", "slow_link")
    refused_flags = [
        flag_of(name).option for name in names if getattr(parameters, name) != flag_of(name).default
    ]
    if refused_flags:
        raise UsageError(
            f"{', '.join(refused_flags)}: not under --network flows, where durations of flows are found as "
            "they go; a cluster file's failed and slow change links"
        )


def opened(parameters: NetworkParameters, layout: Layout, cluster: Cluster) -> Network:
    """Returns the network of a run: see `NetworkModel`."""
    check_parameters(parameters)
    if cluster.topology is None:
        raise UsageError(
            "--network flows: the cluster has no links; --cluster spectrum-x:64 or a topology file would fit"
        )
    check_algorithms(cluster)
    rules = rules_of(cluster.packets, parameters)
    gpus: tuple[int, ...] = ()
    if parameters.job_gpus is not None:
        gpus = tuple(parse_ranks("--job-gpus", parameters.job_gpus))
        if len(gpus) != layout.world or gpus[-1] >= cluster.topology.gpus:
            raise UsageError(
                f"--job-gpus {printable(parameters.job_gpus, 60)}: {len(gpus)} GPUs for {layout.world} "
                f"ranks, of {cluster.topology.gpus} in the topology: as many as ranks are expected"
            )
    return FlowNetwork(cluster, rules=rules, gpus=gpus, layout=layout)
