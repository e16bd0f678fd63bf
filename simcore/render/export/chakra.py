"""A simulated step as Chakra execution traces, one file a rank, with the files that ASTRA-sim 2.x takes
beside.

Dependencies are the real ones: what compute waited for, what a stream or channel was busy with, the transfer
that a stage receives. Durations in the schema are whole microseconds; the exact ones, sizes of whole buffers,
kinds of group and phases are attributes `wltui_*`, which ASTRA-sim ignores and wltui's own rules prefer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from simcore.chakra.schema import attribute, framed, metadata, node_head
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
from simcore.records import NamedTuple
from simcore.render.export.astra_files import PREFIX, files_beside
from simcore.render.export.format import Export, Progress, RankFile, Request
from simcore.trace.contexts import Simulated
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.workload.model import GroupKind

_COMP, _SEND, _RECV, _COLL = 4, 5, 6, 7
_COMM_TYPE = {"ALLREDUCE": 0, "ALLGATHER": 2, "ALLTOALL": 6, "REDUCESCATTER": 7}


class _Node(NamedTuple):
    """A node of a class: its bytes but for what differs from rank to rank.

    kind: `group` puts the rank's group of that kind in, `send` and `receive` the rank so many stages on; ""
    needs nothing.
    """

    head: bytes
    attributes: bytes
    what: str
    of: str
    step: int


def export(request: Request) -> Export:
    """Files for a folder: `wl.RANK.et`, `network.yml`, `system.json`, `memory.json`, `comm_group.json`.

    Raises `UsageError` for a run that is not written, and what simulating raises.
    """
    if request.ranks is not None or request.every_rank:
        raise UsageError("--format chakra: a set has all ranks, so --ranks does not fit it")
    recording, simulation = request.results.recording, request.results.shape.simulated
    if recording is not None:
        # Imported here: what was simulated needs nothing of traces.
        from simcore.render.export.chakra_measured import export_measured

        return export_measured(request, recording)
    assert simulation is not None
    program, parameters = simulation.timeline.program, request.parameters
    if program.queued:
        raise UsageError(
            "--format chakra: collectives in the queues of dialect astra-sim-1 are not written; "
            "--dialect simai is"
        )
    if simulation.workload.maker is not None and parameters.offload is not None:
        raise UsageError(
            "--format chakra: copies to the host's memory (--offload) have no node here; without them it "
            "would fit"
        )
    if parameters.overlap_tp:
        raise UsageError(
            "--format chakra: pieces of a collective (--overlap-tp) would be priced each by itself; without "
            "it the set would fit"
        )
    world = simulation.layout.world
    progress = Progress(simulation.timeline.spans)
    found = simulation.diagnostics[len(simulation.workload.diagnostics) :]
    diagnostics = [*found, *_said(simulation)]
    groups = _Groups(simulation)
    files = _files(simulation, groups, progress)
    what = f"{plural(world, 'rank')}, {plural(simulation.timeline.spans, 'span')} as execution traces"
    return Export((), what, tuple(diagnostics), progress, files)


def _said(simulation: Simulated) -> list[Diagnostic]:
    """What ASTRA-sim will do otherwise than wltui."""
    path = simulation.workload.path
    diagnostics = []
    message = (
        "durations are whole microseconds in the files; the exact ones are in attributes that wltui "
        "reads and "
        "ASTRA-sim does not"
    )
    diagnostics.append(Diagnostic("note", "whole-microseconds", message, path))
    overlap = [
        stage
        for stage, program in enumerate(simulation.timeline.program.stages)
        if len({stream for stream in program.ops.stream if stream != COMPUTE}) > 1
    ]
    if overlap:
        message = (
            f"{plural(len(overlap), 'stage')} {'has' if len(overlap) == 1 else 'have'} communication on "
            f"several "
            "streams: ASTRA-sim runs one collective or send of a rank at a time"
        )
        diagnostics.append(Diagnostic("note", "one-slot", message, path))
    npus = simulation.cluster.npus
    if simulation.has_dimensions and npus != simulation.layout.world:
        message = (
            f"the cluster has {npus} NPUs, the run {simulation.layout.world}: ASTRA-sim wants a file for "
            f"each, so "
            "give --dim or --cluster with as many"
        )
        diagnostics.append(Diagnostic("warning", "ranks-missing", message, path))
    return diagnostics


class _Groups:
    """Numbers of groups from 1: each kind of each set of ranks has its own."""

    def __init__(self, simulation: Simulated) -> None:
        self._layout = simulation.layout
        self.ranks: list[list[int]] = []
        self._of: dict[GroupKind, dict[int, int]] = {}
        kinds = {
            KIND_OF_STREAM[stream]
            for program in simulation.timeline.program.stages
            for stream in set(program.ops.stream)
            if stream in KIND_OF_STREAM
        }
        for kind in sorted(kinds):
            numbers: dict[int, int] = {}
            for members in self._layout.groups(kind):
                self.ranks.append(list(members))
                for rank in members:
                    numbers[rank] = len(self.ranks)
            self._of[kind] = numbers

    def number(self, kind: str, rank: int) -> int:
        """The number of a rank's group of a kind."""
        return self._of[cast("GroupKind", kind)][rank]


def _files(simulation: Simulated, groups: _Groups, progress: Progress) -> Iterator[RankFile]:
    for number, rank_class in enumerate(simulation.timeline.classes):
        nodes = _nodes(simulation, number)
        for rank in rank_class.ranks:
            yield RankFile(f"{PREFIX}.{rank}.et", [_rank(simulation, groups, nodes, rank)])
            progress.done += len(simulation.timeline.stage_program(number).ops)
    yield from files_beside(simulation.cluster, groups.ranks)


def _rank(simulation: Simulated, groups: _Groups, nodes: list[_Node], rank: int) -> bytes:
    """The file of a rank: its class's nodes, with its groups and neighbours put in."""
    layout = simulation.layout
    stage = layout.position(rank)[2]
    parts = [metadata()]
    known: dict[tuple[str, str, int], bytes] = {}
    for node in nodes:
        if not node.what:
            parts.append(framed(node.head + node.attributes))
            continue
        key = (node.what, node.of, node.step)
        own = known.get(key)
        if own is None:
            if node.what == "group":
                own = attribute("pg_name", str(groups.number(node.of, rank)))
            else:
                peer = layout.neighbour(rank, stage + node.step)
                source, target = (rank, peer) if node.what == "send" else (peer, rank)
                own = attribute("comm_src", source, "int32") + attribute("comm_dst", target, "int32")
            known[key] = own
        parts.append(framed(node.head + node.attributes + own))
    return b"".join(parts)


def _nodes(simulation: Simulated, number: int) -> list[_Node]:
    """The nodes of a rank class, in the order in which it issues them; a node's id is its place."""
    timeline = simulation.timeline
    program = timeline.stage_program(number)
    ops, start, end = timeline.columns(number)
    costs, names = simulation.timeline.program.costs, simulation.workload.name
    stage = timeline.stage_of(number)
    nodes: list[_Node] = []
    node_of: dict[int, int] = {}
    # What compute is behind, and the last node of each stream and channel.
    held: list[int] = []
    last: dict[int, int] = {}
    raw = [name.encode("utf-8", "replace") for name in names]
    for run in program.runs:
        for wait in run.waits:
            if isinstance(wait, Receive):
                nodes.append(_receive(simulation, number, stage, wait, len(nodes), held))
                held = [len(nodes) - 1]
            elif isinstance(wait, Join):
                node = node_of[wait.op]
                held = [*(other for other in held if other != node), node]
        for op in range(run.first, run.last):
            lane, cost = ops.stream[op], costs[ops.cost[op]]
            ns = end[op] - start[op]
            own = len(nodes)
            phase = PHASES[ops.phase[op]]
            exact = attribute("wltui_ns", ns, "uint64") + attribute("wltui_phase", phase)
            row = ops.row[op]
            batch = f" mb{ops.microbatch[op]}" if ops.microbatch[op] >= 0 else ""
            name = (
                raw[row] + f" {phase}{batch}".encode()
                if row >= 0
                else f"{STREAMS[lane]} {phase}{batch}".encode()
            )
            micros = _micros(ns)
            # Streams and channels are first in, first out.
            key = 100 + cost.step if isinstance(cost, TransferCost) else lane
            busy = last.get(key)
            ctrl = [busy] if busy is not None and busy not in held and lane != COMPUTE else []
            if lane == COMPUTE:
                head = node_head(own, name, _COMP, held, [], micros)
                nodes.append(_Node(head, attribute("is_cpu_op", False) + exact, "", "", 0))
            elif isinstance(cost, TransferCost):
                head = node_head(own, name, _SEND, held, ctrl, micros)
                nodes.append(_Node(head, _sized(cost.bytes, ops.message[op]) + exact, "send", "", cost.step))
            else:
                assert isinstance(cost, CollectiveCost)
                head = node_head(own, name, _COLL, held, ctrl, micros)
                members = simulation.layout.group_size(cost.group)
                size = cost.priced_bytes
                share = -(-size // members) if cost.collective == "ALLGATHER" else size
                values = attribute("is_cpu_op", False) + attribute("comm_type", _COMM_TYPE[cost.collective])
                values += attribute("comm_size", share) + attribute("wltui_bytes", size, "uint64")
                values += exact + attribute("wltui_kind", cost.group)
                if not ops.blocking[op]:
                    values += attribute("wltui_beside", True)
                nodes.append(_Node(head, values, "group", cost.group, 0))
            node_of[op] = own
            last[key] = own
            if lane == COMPUTE or (lane < TO_NEXT and ops.blocking[op]):
                held = [own]
    return nodes


def _receive(
    simulation: Simulated, number: int, stage: int, wait: Receive, place: int, held: list[int]
) -> _Node:
    """The receive of a transfer, where the compute of its rank waits for it."""
    sender, op = simulation.timeline.received(number, wait.message)
    ops = simulation.timeline.stage_program(sender).ops
    cost = simulation.timeline.program.costs[ops.cost[op]]
    assert isinstance(cost, TransferCost)
    batch = f" mb{ops.microbatch[op]}" if ops.microbatch[op] >= 0 else ""
    name = f"receive {PHASES[ops.phase[op]]}{batch} of stage {wait.source}".encode()
    head = node_head(place, name, _RECV, held, [], 0)
    return _Node(head, _sized(cost.bytes, wait.message), "receive", "", wait.source - stage)


def _sized(size: int, message: int) -> bytes:
    """Size and tag of a transfer; ASTRA-sim takes none of 0 bytes."""
    values = attribute("is_cpu_op", False) + attribute("comm_size", max(size, 1))
    values += attribute("comm_tag", message, "int32") + attribute("wltui_bytes", size, "uint64")
    return values


def _micros(ns: int) -> int:
    return round(ns / 1000)
