"""The kinds of work by which a simulated and a measured step are compared, in the words of the workload.

    kind                    simulated                                measured
    forward                 compute of phase fwd                     compute inside forward_step, loss_func
    backward                of ig, wg, recompute                     inside backward_step
    optimizer               of opt                                   inside optimizer_step
    tp forward, ep forward  collectives of that group in fwd         tp, exp inside forward_step, loss_func
    tp backward, ...        in ig, wg, recompute                     inside backward_step
    tp other, ...           before or after the micro-batches, opt   anywhere else
    dp, dp_ep               all of that group                        dp, exp_dp
    pp forward, pp backward transfers of activations, of gradients   send_forward, send_backward

Other groups of traces (`embedding`, `position`) are in no workload, and the group `all` is in no trace.

A measured step has, for each kind, its number of calls and its time without waiting.

* Compute is the segments of a rank in which nothing waits and nothing communicates (`replay.accounts`).
* A collective takes the time from its last arrival to its first departure. That is unknown for one that
  overlaps with compute (it lasts until the rank waits for it), and for a call whose partners are not in the
  trace.
* A transfer takes the time of its send up to the end of the receive. A send may wait for its receiver, so
  only those count whose receiver was ready first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from simcore.cluster import Cluster
from simcore.collectives.exact import scaled
from simcore.measured.columns import MEASURED, UNTIMED
from simcore.measured.matching import Call, is_asynchronous
from simcore.measured.rank_positions import MODEL_PARALLEL
from simcore.measured.vocabulary import COMPUTE as COMPUTE_CATEGORIES
from simcore.measured.vocabulary import LAUNCH, POINT_TO_POINT, category_of_group, category_of_op
from simcore.networks import GroupCollective, Network
from simcore.program.ops import COMPUTE, FWD, OPT, STREAMS, TO_NEXT, CollectiveCost, TransferCost
from simcore.records import Struct, field
from simcore.runs.measured import RecordedRun
from simcore.simulation import Simulation
from simcore.sources.segments import GAP

COMPUTE_KINDS = ("forward", "backward", "optimizer")
OTHER = "other"
# Groups whose collectives are counted by phase; those of other groups, which reduce gradients, as a whole.
_SPLIT = ("tp", "ep")
_OF_CATEGORY = {"tp": "tp", "expert": "ep", "dp": "dp", "expert dp": "dp_ep"}
_TRANSFERS = {"send_forward": "pp forward", "send_backward": "pp backward"}
_WHERE = ("forward", "backward", OTHER)
ORDER = (
    *COMPUTE_KINDS,
    *(f"{group} {where}" for group in _SPLIT for where in _WHERE),
    "dp", "dp_ep", "all", *_TRANSFERS.values(),
)  # fmt: skip


def simulated_kind(stream: int, phase: int, in_microbatch: bool) -> str:
    """Returns the kind of an op by its stream and phase (`simcore.program.ops`).

    in_microbatch: whether the op is of a micro-batch.
    """
    where = "forward" if phase == FWD else OTHER if phase == OPT else "backward"
    if stream == COMPUTE:
        return "optimizer" if phase == OPT else where
    if stream >= TO_NEXT:
        return f"pp {where}"
    group = STREAMS[stream]
    if group not in _SPLIT:
        return group
    return f"{group} {where if in_microbatch else OTHER}"


def measured_collective_kind(group: str | None, op: str, op_group: str | None, is_sub: bool) -> str:
    """Returns the kind of a call of the trace's `group`, of or inside the operation `op` of group
    `op_group`.
    """
    category = category_of_group(group)
    name = _OF_CATEGORY.get(category, category)
    if name not in _SPLIT:
        return name
    outer = category_of_op(op, op_group) if is_sub else OTHER
    return f"{name} {outer if outer in _WHERE else OTHER}"


def measured_transfer_kind(op: str) -> str:
    """Returns the kind of a send."""
    return _TRANSFERS[op]


def in_order(kinds: set[str]) -> list[str]:
    """Returns the kinds in the order of reports: those of `ORDER`, then others by name."""
    return [kind for kind in ORDER if kind in kinds] + sorted(kinds.difference(ORDER))


class SimulatedKind(Struct):
    """One kind of work, the total of the measured ranks."""

    calls: int = 0
    """How many calls it has."""
    total_ns: int = 0
    """Their time in the run, ns."""
    dimensions: set[int] = field(default_factory=set)
    """Dimensions of the cluster that its groups or links cross."""
    costs: Counter[tuple[int, int]] = field(default_factory=Counter)
    """(rank class, cost) -> how many calls."""


def simulated_kinds(simulation: Simulation, ranks: Sequence[int]) -> dict[str, SimulatedKind]:
    """Returns the kinds of the work of `ranks`, ranks of the simulation, without kinds that have no calls.

    A collective counts once for each of its ranks, a transfer for the rank that sends it.
    """
    kinds: dict[str, SimulatedKind] = {}
    for class_id, count in _count_by_class(simulation, ranks).items():
        for kind, (calls, total_ns, costs) in _kinds_of_class(simulation, class_id).items():
            simulated = kinds.setdefault(kind, SimulatedKind())
            simulated.calls += count * calls
            simulated.total_ns += count * total_ns
            if kind in COMPUTE_KINDS:
                continue
            for cost, times in costs.items():
                simulated.costs[class_id, cost] += count * times
                simulated.dimensions |= _crossed_dimensions(simulation, class_id, cost)
    return kinds


def compute_of_ranks(simulation: Simulation, ranks: Sequence[int]) -> list[dict[str, int]]:
    """Returns the compute of each of `ranks` by kind, ns; 0 for a kind that it does not have."""
    of_class: dict[int, dict[str, int]] = {}
    for class_id in _count_by_class(simulation, ranks):
        kinds = _kinds_of_class(simulation, class_id)
        of_class[class_id] = {kind: kinds[kind][1] if kind in kinds else 0 for kind in COMPUTE_KINDS}
    folding = simulation.timeline.folding
    return [of_class[folding.class_of(rank)] for rank in ranks]


def kind_ns(simulation: Simulation, kind: SimulatedKind, cluster: Cluster) -> int:
    """Returns the total time of the calls of a kind of communication on an idle network of another cluster,
    ns.
    """
    network = simulation.setup.open_network(cluster)
    scale = simulation.parameters.comm_scale
    return sum(
        count * _alone_ns(simulation, network, class_id, cost, scale)
        for (class_id, cost), count in kind.costs.items()
    )


def _count_by_class(simulation: Simulation, ranks: Sequence[int]) -> Counter[int]:
    """Returns how many of `ranks` each class has."""
    folding = simulation.timeline.folding
    return Counter(folding.class_of(rank) for rank in ranks)


def _kinds_of_class(simulation: Simulation, class_id: int) -> dict[str, tuple[int, int, Counter[int]]]:
    """Returns (calls, ns, calls by cost) of each kind of one rank of a class."""
    program = simulation.program
    ops, start, end = simulation.timeline.columns(class_id)
    totals: dict[tuple[int, int, bool], tuple[int, int, Counter[int]]] = {}
    columns = zip(ops.stream, ops.phase, ops.microbatch, ops.cost, start, end, strict=True)
    for stream, phase, microbatch, cost, begin, over in columns:
        # Under layer-loop no op states a micro-batch, and all its rows are of one.
        key = (stream, phase, microbatch >= 0 or not program.pipelined)
        calls, total, costs = totals.get(key) or (0, 0, Counter())
        costs[cost] += 1
        totals[key] = (calls + 1, total + over - begin, costs)
    kinds: dict[str, tuple[int, int, Counter[int]]] = {}
    for (stream, phase, inside), (calls, total, costs) in totals.items():
        kind = simulated_kind(stream, phase, inside)
        before = kinds.get(kind) or (0, 0, Counter())
        kinds[kind] = (before[0] + calls, before[1] + total, before[2] + costs)
    return kinds


def _crossed_dimensions(simulation: Simulation, class_id: int, cost: int) -> set[int]:
    """Returns the dimensions that the group or link of a cost crosses for a class."""
    folding = simulation.timeline.folding
    rank_class, what = folding.classes[class_id], simulation.program.costs[cost]
    if isinstance(what, CollectiveCost):
        group_dimensions = folding.group_classes[rank_class.groups[what.group]].shape.dimensions
        return {group_dimension.dimension for group_dimension in group_dimensions}
    assert isinstance(what, TransferCost)
    return {dimension for dimension, _ in rank_class.links[what.step].shape}


def _alone_ns(simulation: Simulation, network: Network, class_id: int, cost: int, scale: float) -> int:
    """Returns the time of one call on the idle network, with the scale of communication, ns."""
    folding = simulation.timeline.folding
    rank_class, what = folding.classes[class_id], simulation.program.costs[cost]
    if isinstance(what, CollectiveCost):
        if what.ns:
            return scaled(what.ns, scale)
        group = folding.group_classes[rank_class.groups[what.group]]
        return what.share_of(network.collective_ns(GroupCollective.of(group, what), scale))
    assert isinstance(what, TransferCost)
    link = rank_class.links[what.step]
    return scaled(network.transfer_ns(link.shape, link.ports, what.bytes), scale)


# Reasons why the time of a call is unknown.
OVERLAPPING = "beside compute"
NO_PARTNER = "without a partner in the trace"
NO_TIME = "without a time of their own"
SENT_FIRST = "sent before the receiver came"
APART = "of ranks that did not run together"


class _ShapeCalls(Struct):
    """Calls of one operation and shape. times_ns: the times of those whose time is known."""

    count: int = 0
    times_ns: list[int] = field(default_factory=list)


class MeasuredKind(Struct):
    """Calls of one kind of communication, of all ranks.

    unknown: how many have no known time, by reason.
    """

    classes: dict[tuple[object, ...], _ShapeCalls] = field(default_factory=dict)
    unknown: Counter[str] = field(default_factory=Counter)

    @property
    def calls(self) -> int:
        """The number of calls; a collective counts once for each of its ranks."""
        return sum(rank_class.count for rank_class in self.classes.values())

    @property
    def total_ns(self) -> int:
        """The sum of the median of each operation and shape times its calls; without those that have no known
        time.
        """
        return sum(
            _median(rank_class.times_ns) * rank_class.count
            for rank_class in self.classes.values()
            if rank_class.times_ns
        )

    @property
    def is_whole(self) -> bool:
        """Whether every operation and shape has a known time."""
        return bool(self.classes) and all(rank_class.times_ns for rank_class in self.classes.values())

    def add(self, key: tuple[object, ...], ns: int | None, why: str = "") -> None:
        """Adds a call.

        ns: None where its time is unknown; `why` is the reason.
        """
        calls = self.classes.setdefault(key, _ShapeCalls())
        calls.count += 1
        if ns is None:
            self.unknown[why] += 1
        else:
            calls.times_ns.append(ns)


class MeasuredTimes(Struct, frozen=True):
    """The times of a measured run."""

    compute_ns: list[dict[str, int]]
    """The compute of each rank (its index in the run) by kind."""
    kinds: dict[str, MeasuredKind]
    """Communication by kind."""
    gaps_ns: int
    """The host between operations, of all ranks; a workload has none."""
    host_ns: int
    """Operations of the host, of all ranks; a workload has none."""


def measured_times(results: RecordedRun) -> MeasuredTimes:
    """Returns the measured times of a run that has the times of its files."""
    compute = [accounts.compute_ns() for accounts in results.accounts]
    kinds: dict[str, MeasuredKind] = {}
    for kind, key, ns, why in (*_collectives(results), *_transfers(results), *_unmatched(results)):
        kinds.setdefault(kind, MeasuredKind()).add(key, ns, why)
    gaps = sum(
        segments.end[segment] - segments.start[segment]
        for segments in results.rendezvous.segments
        for segment, of in enumerate(segments.kind)
        # The gap before the first operation of a rank does not count.
        if of == GAP and segment
    )
    return MeasuredTimes(compute, kinds, gaps, sum(accounts.ns("host") for accounts in results.accounts))


# (kind, key that is equal for calls that should take equally long, ns or None, why it is None).
_KindCall = tuple[str, tuple[object, ...], "int | None", str]


def _collectives(results: RecordedRun) -> Iterator[_KindCall]:
    rendezvous, run = results.rendezvous, results.measured
    for meeting, ns in zip(rendezvous.matches.meetings, rendezvous.meeting_ns, strict=True):
        if meeting.kind == MODEL_PARALLEL:
            continue
        is_overlapping = any(
            call.sub >= 0 and is_asynchronous(run.ranks[call.rank], call.sub) for call in meeting.calls
        )
        why = OVERLAPPING if is_overlapping else "" if run.concurrent else APART
        for call in meeting.calls:
            yield *_collective_kind_key(results, call), None if why else ns, why


def _transfers(results: RecordedRun) -> Iterator[_KindCall]:
    rendezvous, run = results.rendezvous, results.measured
    for message, (send, receive), ns in zip(
        rendezvous.matches.messages, rendezvous.transfers, rendezvous.message_ns, strict=True
    ):
        (sender, sending), (receiver, receiving) = send, receive
        there = rendezvous.segments[receiver].start[receiving] <= rendezvous.segments[sender].start[sending]
        # A call that sends and receives waits for both.
        alone = rendezvous.segments[sender].received[sending] < 0
        why = "" if there and alone else SENT_FIRST
        ops = run.ranks[message.send.rank].ops
        name = ops.name[message.send.op]
        key = (name, ops.shape[message.send.op])
        why = why if run.concurrent else APART
        yield measured_transfer_kind(name), key, None if why else ns, why


def _unmatched(results: RecordedRun) -> Iterator[_KindCall]:
    """Yields calls without partners, and those without a duration, which could not be matched."""
    run = results.measured
    for call in results.rendezvous.matches.unmatched:
        name = run.ranks[call.rank].ops.name[call.op]
        if name not in POINT_TO_POINT:
            yield *_collective_kind_key(results, call), None, NO_PARTNER
        elif name.startswith("send"):
            shape = run.ranks[call.rank].ops.shape[call.op]
            yield measured_transfer_kind(name), (name, shape), None, NO_PARTNER
    for rank_index, rank in enumerate(run.ranks):
        ops, subs = rank.ops, rank.subs
        for op, name in enumerate(ops.name):
            is_call = ops.category(op) not in (*COMPUTE_CATEGORIES, "host", "pp")
            # Profiles of one device have calls without a time: no rank communicated.
            if is_call and ops.timing[op] != UNTIMED and (ops.timing[op] != MEASURED or name == LAUNCH):
                yield *_collective_kind_key(results, Call(rank_index, op)), None, NO_TIME
        for sub, status in enumerate(subs.timing):
            if status != MEASURED and subs.group[sub] is not None:
                call = Call(rank_index, subs.parent[sub], sub)
                yield *_collective_kind_key(results, call), None, NO_TIME


def _collective_kind_key(results: RecordedRun, call: Call) -> tuple[str, tuple[object, ...]]:
    """Returns (kind, key that is equal for calls that should take the same time) of a collective's call."""
    ops, subs = results.measured.ranks[call.rank].ops, results.measured.ranks[call.rank].subs
    name, group = ops.name[call.op], ops.group[call.op]
    if call.sub < 0:
        return measured_collective_kind(group, name, group, False), (name, ops.shape[call.op])
    kind = measured_collective_kind(subs.group[call.sub], name, group, True)
    return kind, (name, subs.name[call.sub], subs.shape[call.sub], subs.collective[call.sub])


def _median(times: list[int]) -> int:
    """Returns the middle value; of an even number the mean of the middle two, floored."""
    ordered = sorted(times)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) // 2
