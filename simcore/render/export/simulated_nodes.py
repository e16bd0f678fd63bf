"""The nodes of a simulated step in Chakra execution traces.

Dependencies are the real ones: what compute waited for, what kept a stream or channel busy, the transfer that
a stage receives.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from simcore.chakra.nodes import COLL, COLLECTIVES, COMP, RECV, SEND
from simcore.chakra.schema import attribute
from simcore.diagnostics import Diagnostic, UsageError
from simcore.program.ops import (
    COMPUTE,
    KIND_OF_STREAM,
    PHASES,
    STREAMS,
    TO_NEXT,
    CollectiveCost,
    Join,
    Receive,
    TransferCost,
)
from simcore.render.export.format import Request
from simcore.render.export.nodes import (
    GPU,
    NodeList,
    OwnAttributes,
    TraceSet,
    collective_attributes,
    endpoint_attributes,
    exact_duration,
    one_slot_note,
    transfer_attributes,
)
from simcore.trace.contexts import Simulated
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.workload.model import GroupKind

_COMM_TYPE = {name: code for code, name in COLLECTIVES.items()}


def simulated_set(request: Request, simulation: Simulated) -> TraceSet:
    """Returns the traces of the step. Raises `UsageError` for one that cannot be written."""
    parameters, timeline = request.parameters, simulation.timeline
    refused = "--format chakra: "
    if timeline.program.queued:
        raise UsageError(
            f"{refused}collectives in the queues of dialect astra-sim-1 are not written; --dialect simai is"
        )
    if simulation.workload.maker is not None and parameters.offload is not None:
        raise UsageError(
            f"{refused}copies to the host's memory (--offload) have no node here; without them it would fit"
        )
    if parameters.overlap_tp:
        raise UsageError(
            f"{refused}pieces of a collective (--overlap-tp) would be priced each by itself; without it "
            "the set would fit"
        )
    groups, world = _Groups(simulation), simulation.layout.world
    return TraceSet(
        f"{plural(world, 'rank')}, {plural(timeline.spans, 'span')}", timeline.spans,
        _files(simulation, groups), groups.ranks, simulation.cluster,
        simulation.diagnostics[len(simulation.workload.diagnostics) :], tuple(_export_notes(simulation)),
    )  # fmt: skip


def _export_notes(simulation: Simulated) -> Iterator[Diagnostic]:
    path, world, npus = simulation.workload.path, simulation.layout.world, simulation.cluster.npus
    streams = (set(program.ops.stream) - {COMPUTE} for program in simulation.timeline.program.stages)
    overlap = sum(len(several) > 1 for several in streams)
    if overlap:
        yield one_slot_note(plural(overlap, "stage"), "communication on several streams", path)
    if simulation.has_dimensions and npus != world:
        message = (
            f"the cluster has {npus} NPUs, the run {world}: ASTRA-sim wants a file for each, so give --dim "
            "or --cluster with as many"
        )
        yield Diagnostic("warning", "ranks-missing", message, path)


class _Groups:
    """The numbers of groups, from 1: each kind of each set of ranks has its own."""

    def __init__(self, simulation: Simulated) -> None:
        self._layout = simulation.layout
        self.ranks: list[list[int]] = []
        self._group_by_rank: dict[GroupKind, dict[int, int]] = {}
        kinds = {
            KIND_OF_STREAM[stream]
            for program in simulation.timeline.program.stages
            for stream in set(program.ops.stream)
            if stream in KIND_OF_STREAM
        }
        for kind in sorted(kinds):
            group_by_rank: dict[int, int] = {}
            for members in self._layout.groups(kind):
                self.ranks.append(list(members))
                for rank in members:
                    group_by_rank[rank] = len(self.ranks)
            self._group_by_rank[kind] = group_by_rank

    def group_id(self, kind: str, rank: int) -> int:
        """Returns the number of a rank's group of a kind."""
        return self._group_by_rank[cast("GroupKind", kind)][rank]


def _files(simulation: Simulated, groups: _Groups) -> Iterator[tuple[int, bytes, int]]:
    layout, timeline = simulation.layout, simulation.timeline

    def fill_own(rank: int, stage: int, node: OwnAttributes) -> bytes:
        """Returns the group of a collective on this rank, or the ends of a transfer."""
        what, of, step = node
        if what == "group":
            return attribute("pg_name", str(groups.group_id(of, rank)))
        peer = layout.neighbour(rank, stage + step)
        return endpoint_attributes(rank, peer) if what == "send" else endpoint_attributes(peer, rank)

    for class_id, rank_class in enumerate(timeline.classes):
        nodes, stage = _nodes(simulation, class_id), timeline.stage_of(class_id)
        for rank in rank_class.ranks:
            yield (
                rank,
                nodes.encode(partial(fill_own, rank, stage)),
                len(timeline.stage_program(class_id).ops),
            )


def _nodes(simulation: Simulated, class_id: int) -> NodeList:
    """Returns the nodes of a rank class."""
    timeline = simulation.timeline
    program, costs = timeline.stage_program(class_id), timeline.program.costs
    ops, start, end = timeline.columns(class_id)
    nodes = NodeList()
    node_of: dict[int, int] = {}
    # The last node of each stream and channel.
    last: dict[int, int] = {}
    encoded_names = [name.encode("utf-8", "replace") for name in simulation.workload.name]
    for run in program.runs:
        for wait in run.waits:
            if isinstance(wait, Receive):
                nodes.predecessors = [_add_receive(simulation, class_id, wait, nodes)]
            elif isinstance(wait, Join):
                node = node_of[wait.op]
                nodes.predecessors = [*(other for other in nodes.predecessors if other != node), node]
        for op in range(run.first, run.last):
            lane, cost, row, ns = ops.stream[op], costs[ops.cost[op]], ops.row[op], end[op] - start[op]
            phase = PHASES[ops.phase[op]]
            timed = exact_duration(ns) + attribute("wltui_phase", phase)
            phase_suffix = f" {phase}{_batch_suffix(ops.microbatch[op])}".encode()
            name = (encoded_names[row] if row >= 0 else STREAMS[lane].encode()) + phase_suffix
            # Streams and channels are first in, first out.
            key = 100 + cost.step if isinstance(cost, TransferCost) else lane
            busy = last.get(key)
            ctrl = [busy] if busy is not None and busy not in nodes.predecessors and lane != COMPUTE else []
            if lane == COMPUTE:
                node = nodes.add(name, COMP, ns, GPU + timed)
            elif isinstance(cost, TransferCost):
                values = transfer_attributes(cost.bytes, ops.message[op]) + timed
                node = nodes.add(name, SEND, ns, values, ctrl, ("send", "", cost.step))
            else:
                assert isinstance(cost, CollectiveCost)
                size = cost.priced_bytes
                members = simulation.layout.group_size(cost.group) if cost.collective == "ALLGATHER" else 1
                values = collective_attributes(_COMM_TYPE[cost.collective], -(-size // members), size)
                values += timed + attribute("wltui_kind", cost.group)
                if not ops.blocking[op]:
                    values += attribute("wltui_beside", True)
                node = nodes.add(name, COLL, ns, values, ctrl, ("group", cost.group, 0))
            node_of[op] = last[key] = node
            if lane == COMPUTE or (lane < TO_NEXT and ops.blocking[op]):
                nodes.predecessors = [node]
    return nodes


def _add_receive(simulation: Simulated, class_id: int, wait: Receive, nodes: NodeList) -> int:
    """Adds the receive of a transfer that the compute of its rank waits for, and returns its id."""
    timeline = simulation.timeline
    sender, op = timeline.find_transfer(class_id, wait.message)
    ops = timeline.stage_program(sender).ops
    cost = timeline.program.costs[ops.cost[op]]
    assert isinstance(cost, TransferCost)
    name = (
        f"receive {PHASES[ops.phase[op]]}{_batch_suffix(ops.microbatch[op])} of stage {wait.source}".encode()
    )
    own = ("receive", "", wait.source - timeline.stage_of(class_id))
    return nodes.add(name, RECV, 0, transfer_attributes(cost.bytes, wait.message), own=own)


def _batch_suffix(microbatch: int) -> str:
    return f" mb{microbatch}" if microbatch >= 0 else ""
