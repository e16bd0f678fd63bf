"""Runs a set of execution traces as the parameters ask, by wltui's rules or ASTRA-sim 2.x's."""

from __future__ import annotations

import os
from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from simcore.chakra.nodes import (
    BROADCAST,
    COLL,
    COLLECTIVE_WORDS,
    COLLECTIVES,
    COMP,
    MEM_LOAD,
    MEM_STORE,
    RECV,
    SEND,
    TYPE_WORDS,
    Kinds,
    Nodes,
    integer,
    order,
)
from simcore.chakra.opening import TraceFile, TraceSet, first_errors
from simcore.chakra.structure import structure_of
from simcore.chakra.wire import Columns, read_columns
from simcore.cluster import Cluster, GroupShape, choose_cluster, group_shape, transfer_shape
from simcore.collectives import collective_ns, transfer_ns
from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.executing.astra2 import FREE, AstraRun, Memory, Outcome, System
from simcore.executing.fifo import MEETING, MESSAGE, NEVER, RECEIVE, STREAM, Timed, Work, run_fifo
from simcore.executing.system_file import AstraSystem, read_astra_system, read_groups, read_memory
from simcore.messages.clock import Clock
from simcore.messages.collectives import Rules
from simcore.messages.faults import Fault
from simcore.messages.network import Links, LinkUse, Unshared
from simcore.names import ASTRA_SIM_2
from simcore.parameters import Parameters, flag_of, refuse_others, stated
from simcore.ranks import RankSet
from simcore.records import Struct
from simcore.units import duration, plural
from simcore.workload.opening import read_file

WLTUI = "wltui"
_KIND_OF = {
    0: "ALLREDUCE",
    1: "REDUCESCATTER",
    2: "ALLGATHER",
    3: "ALLGATHER",
    4: "ALLGATHER",
    5: "ALLGATHER",
    6: "ALLTOALL",
    7: "REDUCESCATTER",
    8: "REDUCESCATTER",
    9: "ALLREDUCE",
}
_GPU_STREAM, _CPU_STREAM, _MEMORY_STREAM = 0, 1, 2


class Executed(Struct, frozen=True, dict=True):
    """A set of execution traces that has run.

    nodes: of each rank by ascending id. start, begin, end: ns of each node; begin: when what it waited for
    was
    there. order: (rank, place) by ends, each behind what it waited for. lanes: what a node held: a slot or a
    stream, 255 nothing. meetings: of each node its collective, -1 for none; before: see `build_graph`.
    sends: of
    each receive its send, `rank << 32 | place`. groups: of each collective (name, its ranks). ranks: (rank,
    end,
    exposed) ns. links: what each link carried, under `--network links`.
    """

    traces: TraceSet
    parameters: Parameters
    cluster: Cluster
    rules: str
    nodes: list[Nodes]
    start: list[array[int]]
    begin: list[array[int]]
    end: list[array[int]]
    order: list[tuple[int, int]]
    lanes: list[bytearray]
    meetings: list[array[int]]
    before: Sequence[int] | None
    sends: list[array[int]]
    groups: list[tuple[str, tuple[int, ...]]]
    ranks: list[tuple[int, int, int]]
    links: list[LinkUse] | None
    diagnostics: tuple[Diagnostic, ...]
    system: System

    @property
    def kinds(self) -> Kinds:
        """The attributes of nodes."""
        return self.traces.kinds

    @property
    def step_time_ns(self) -> int:
        """When the last rank ends, ns."""
        return max((end for _, end, _ in self.ranks), default=0)


def execute(traces: TraceSet, parameters: Parameters) -> Executed:
    """Runs a set. Raises `UsageError` for parameters that it does not have, InputError for what cannot be
    run.
    """
    refuse_others(parameters, "execution")
    network = parameters.network
    if network not in ("analytical", "links"):
        shown = printable(network, 60)
        raise UsageError(f"--network {shown}: execution traces run on analytical or links")
    if parameters.dialect == ASTRA_SIM_2:
        return _by_astra(traces, parameters)
    if parameters.dialect is not None:
        shown = printable(parameters.dialect, 60)
        raise UsageError(
            f"--dialect {shown}: execution traces run by {ASTRA_SIM_2}, or without --dialect by wltui's rules"
        )
    return _by_wltui(traces, parameters)


# -- ASTRA-sim 2.x's rules -------------------------------------------------------------


def _by_astra(traces: TraceSet, parameters: Parameters) -> Executed:
    scales = ("compute_scale", "comm_scale", "slow_rank")
    given = [flag_of(name).option for name in scales if getattr(parameters, name) != flag_of(name).default]
    if given:
        raise UsageError(f"{', '.join(given)}: not under --dialect {ASTRA_SIM_2}, which has no such factors")
    world = _world_of(traces, parameters)
    cluster = choose_cluster(_without_system(parameters)).cluster(world)
    dims = cluster.dims
    if parameters.network == "links":
        for dimension in dims:
            if dimension.kind == "ring" and dimension.size == 2:
                raise UsageError("--network links: ASTRA-sim aborts on a ring of 2 (R4.15); take a switch or "
                                 "fully-connected")  # fmt: skip
    found: list[Diagnostic] = [*traces.diagnostics]
    by_rank = {file.rank: file for file in traces.files}
    nodes = []
    for rank in range(cluster.npus):
        file = by_rank.get(rank)
        if file is None:
            path = f"{traces.prefix}.{rank}.et"
            message = (
                f"rank {rank}: there is no such file; the network has {plural(cluster.npus, 'NPU')} (R1.1)"
            )
            raise InputError(Diagnostic("error", "ranks-missing", message, path))
        nodes.append(order(_as_there(file, traces)))
        if file.columns.cut is not None:
            at, words = file.columns.cut
            message = f"byte {at}: {words}; what there is of it is taken, as in ASTRA-sim (R1.3)"
            found.append(Diagnostic("warning", "damaged-trace", message, file.path))
        found += [
            Diagnostic(
                "warning", one.code, f"byte {one.at}: {one.message}; the last one counts (R1.6)", file.path
            )
            for one in nodes[-1].problems[:8]
            if one.code == "node-twice"
        ]
    if len(by_rank) > cluster.npus:
        message = (
            f"{plural(len(by_rank), 'file')} found, the network has {plural(cluster.npus, 'NPU')}: the first "
            f"are run"
        )
        found.append(Diagnostic("warning", "ranks-beyond", message, traces.path))
    astra, rules = _astra_rules(parameters, cluster)
    groups = read_groups(parameters.comm_groups, cluster.npus) if parameters.comm_groups else None
    memory = read_memory(parameters.remote_memory) if parameters.remote_memory else Memory()
    clock = Clock(cluster.npus)
    rendezvous = _truth(parameters.rendezvous_protocol)
    links = Links(clock, dims, rendezvous) if parameters.network == "links" else None
    network = links or Unshared(clock, dims, rendezvous)
    custom = _Custom(astra.custom, parameters.system or "", traces)
    run = AstraRun(nodes, traces.kinds, clock, network, rules, astra, memory, groups, custom.nodes)
    outcome = run.outcome()
    world = cluster.npus
    if len(outcome.finished) < world:
        raise _unfinished(outcome, traces, world)
    if outcome.fault is not None:
        message = f"all ranks have finished; then ASTRA-sim {outcome.fault.there}: {_told(outcome.fault)}"
        found.append(Diagnostic("warning", "crash-behind-end", message, traces.path))
    statistics = [one for one in outcome.swallowed if one.node is None]
    if statistics:
        ranks = RankSet.of(sorted({one.rank for one in statistics})).text()
        message = (
            f"rank {ranks}: ASTRA-sim prints no statistics of ranks with CPU, memory or invalid nodes (R7.4)"
        )
        found.append(Diagnostic("note", "no-statistics", message, traces.path))
    return _astra_executed(traces, parameters, cluster, run, outcome, links, groups, tuple(found), astra)


def _truth(word: str) -> bool:
    if word not in ("true", "false"):
        raise UsageError(f"--rendezvous-protocol {printable(word, 60)}: true or false is expected")
    return word == "true"


def _without_system(parameters: Parameters) -> Parameters:
    """The system file is read as ASTRA-sim reads it."""
    from simcore.records import replace

    return replace(parameters, system=None)


def _world_of(traces: TraceSet, parameters: Parameters) -> int:
    highest = max(file.rank for file in traces.files)
    choice = choose_cluster(_without_system(parameters))
    return choice.npus or highest + 1


def _as_there(file: TraceFile, traces: TraceSet) -> Columns:
    """The columns as ASTRA-sim reads them: the first message is lost, whatever it is, and gzip is not
    opened.
    """
    if file.packed:
        message = (
            f"rank {file.rank}: the file is gzip, which ASTRA-sim does not open: it aborts, no node is free "
            f"(R1.2)"
        )
        raise InputError(Diagnostic("error", "execution-stopped", message, file.path))
    if file.headed and traces.schema == "0.0.4":
        return file.columns
    return read_columns(read_file(file.path), traces.table, 1)


def _astra_rules(parameters: Parameters, cluster: Cluster) -> tuple[System, Rules]:
    """What the system file says, flags over it; without one, the defaults of wltui's cluster."""
    dims = cluster.dims
    if parameters.system is not None:
        read = read_astra_system(parameters.system, len(dims))
    else:
        default = {"ring": "ring", "fully-connected": "direct", "switch": "halving-doubling"}
        names = tuple(default[one.kind] for one in dims)
        every = dict.fromkeys(("ALLREDUCE", "ALLGATHER", "REDUCESCATTER"), names)
        every["ALLTOALL"] = ("direct",) * len(dims)
        read = AstraSystem(every, 10, 1, 1, False, System(memory_bandwidth=1600.0))
    algorithms = dict(read.algorithms)
    if parameters.algorithm:
        asked = cluster.algorithms
        for kind, names in algorithms.items():
            algorithms[kind] = tuple(mine or there for mine, there in zip(asked, names, strict=False))
    memory = read.system.memory_bandwidth if parameters.local_mem_bw is None else parameters.local_mem_bw
    delay = read.endpoint_delay_ns if parameters.endpoint_delay is None else parameters.endpoint_delay
    baseline = read.baseline
    if parameters.collective_optimization is not None:
        baseline = parameters.collective_optimization == "baseline"
    rules = Rules(
        tuple(one.size for one in dims), algorithms, int(delay * parameters.injection_scale), memory,
        parameters.splits or read.splits, parameters.active_chunks or read.active_chunks,
        parameters.num_queues_per_dim, baseline,
    )  # fmt: skip
    return read.system._replace(memory_bandwidth=memory), rules


class _Custom:
    """The files of custom collectives, each read once."""

    def __init__(self, prefixes: Mapping[str, str], system: str, traces: TraceSet) -> None:
        self._prefixes = prefixes
        self._folder = os.path.dirname(system)
        self._traces = traces
        self._known: dict[tuple[str, int], Nodes] = {}

    def nodes(self, kind: str, position: int) -> Nodes:
        """The nodes of a position's file: from where wltui runs, else beside the system file. Raises
        InputError.
        """
        known = self._known.get((kind, position))
        if known is None:
            name = f"{self._prefixes[kind]}.{position}.et"
            path = name if os.path.exists(name) else os.path.join(self._folder, name)
            data = read_file(path)
            known = order(read_columns(data, self._traces.table, 1))
            self._known[kind, position] = known
        return known


def _told(fault: Fault) -> str:
    where = f"rank {fault.rank}" + (f", node {fault.node}" if fault.node is not None else "")
    return f"{where}: {fault.rule}"


def _unfinished(outcome: Outcome, traces: TraceSet, world: int) -> InputError:
    """What stopped the run, or why each rank that did not finish waits."""
    paths = {file.rank: file.path for file in traces.files}
    done = len(outcome.finished)
    errors = []
    if outcome.fault is not None:
        fault = outcome.fault
        message = (
            f"{_told(fault)}; ASTRA-sim {fault.there} at this ({done} of {plural(world, 'rank')} had "
            f"finished)"
        )
        errors.append(Diagnostic("error", "execution-stopped", message, paths.get(fault.rank, traces.path)))
        return InputError(*errors)
    swallowed = {fault.rank: fault for fault in outcome.swallowed if fault.node is not None}
    for rank, why in sorted(outcome.held.items()):
        cut_off = swallowed.get(rank)
        if cut_off is not None:
            message = f"{_told(cut_off)}; ASTRA-sim swallows the exception, and the rank never ends (R6.4)"
        else:
            message = f"rank {rank} never ends: it waits in {why}; ASTRA-sim ends without a word (R6.3)"
        errors.append(Diagnostic("error", "execution-stopped", message, paths.get(rank, traces.path)))
    return first_errors(errors)


def _astra_executed(
    traces: TraceSet, parameters: Parameters, cluster: Cluster, run: AstraRun, outcome: Outcome,
    links: Links | None, groups: Mapping[int, tuple[int, ...]] | None, found: tuple[Diagnostic, ...],
    astra: System,
) -> Executed:  # fmt: skip
    nodes = [rank.nodes for rank in run.ranks]
    world = tuple(range(cluster.npus))
    meetings = [array("i", (NEVER,)) * len(one) for one in nodes]
    numbers: dict[tuple[str, int], int] = {}
    named: list[tuple[str, tuple[int, ...]]] = []
    sends = [array("q", (NEVER,)) * len(one) for one in nodes]
    if not astra.replay:
        for rank, one in enumerate(nodes):
            counts: dict[str, int] = {}
            # Collectives are matched in the order in which a rank starts them (R4.7).
            started = sorted(range(len(one)), key=outcome.start[rank].__getitem__)
            for place in started:
                row = one.row[place]
                if one.columns.type[row] != COLL or outcome.start[rank][place] < 0:
                    continue
                attributes = traces.kinds.attributes(one.columns.attributes[row])
                if integer(attributes.get("comm_type")) == BROADCAST:
                    continue
                name = _group_name(attributes)
                number = counts.get(name, 0)
                counts[name] = number + 1
                key = (name, number)
                if key not in numbers:
                    numbers[key] = len(named)
                    listed = None if groups is None or not name.isdigit() else groups.get(int(name))
                    named.append((name, world if name in ("", "0") or listed is None else listed))
                meetings[rank][place] = numbers[key]
        _pair(nodes, traces.kinds, outcome.start, sends)
    order_of = [
        (rank, place)
        for _, rank, place in sorted(
            (end, rank, place)
            for rank, ends in enumerate(outcome.end)
            for place, end in enumerate(ends)
            if end >= 0
        )
    ]
    order_of = _behind_parents(nodes, outcome, order_of, sends)
    begin = _begins(outcome.start, outcome.end, meetings, sends, len(named))
    lanes = [bytearray(255 if slot == FREE else slot for slot in rank.slot_of) for rank in run.ranks]
    return Executed(
        traces, parameters, cluster, ASTRA_SIM_2, nodes, outcome.start, begin, outcome.end, order_of, lanes,
        meetings, None, sends, named, sorted(outcome.finished), links.uses() if links is not None else None,
        found, astra,
    )  # fmt: skip


def _behind_parents(
    nodes: Sequence[Nodes], outcome: Outcome, ended: list[tuple[int, int]], sends: Sequence[array[int]]
) -> list[tuple[int, int]]:
    """Nodes by their ends; of those that end at one instant what others wait for comes first."""
    found: list[tuple[int, int]] = []
    done = [bytearray(len(one)) for one in nodes]
    for item in ended:
        stack = [item]
        while stack:
            rank, place = stack[-1]
            if done[rank][place]:
                stack.pop()
                continue
            asked = [
                (rank, parent) for parent in (*nodes[rank].data[place], *nodes[rank].ctrl[place])
                if not done[rank][parent] and outcome.end[rank][parent] >= 0
            ]  # fmt: skip
            sent = sends[rank][place]
            if (
                sent >= 0
                and not done[sent >> 32][sent & 0xFFFFFFFF]
                and outcome.end[sent >> 32][sent & 0xFFFFFFFF] >= 0
            ):
                asked.append((sent >> 32, sent & 0xFFFFFFFF))
            if asked:
                stack += asked
            else:
                done[rank][place] = 1
                found.append(stack.pop())
    return found


def _begins(
    start: Sequence[array[int]], end: Sequence[array[int]], meetings: Sequence[array[int]],
    sends: Sequence[array[int]], count: int,
) -> list[array[int]]:  # fmt: skip
    """When what each node waited for was there: the last member had come, the message was on its way."""
    come = [0] * count
    for rank, column in enumerate(meetings):
        for place, number in enumerate(column):
            if number >= 0 and start[rank][place] > come[number]:
                come[number] = start[rank][place]
    found = []
    for rank, column in enumerate(meetings):
        one = array("q", start[rank])
        for place, number in enumerate(column):
            if number >= 0:
                one[place] = min(max(one[place], come[number]), max(end[rank][place], one[place]))
            elif sends[rank][place] >= 0:
                sent = sends[rank][place]
                there = start[sent >> 32][sent & 0xFFFFFFFF]
                one[place] = min(max(one[place], there), max(end[rank][place], one[place]))
        found.append(one)
    return found


def _group_name(attributes: Mapping[str, object]) -> str:
    value = attributes.get("pg_name")
    name = getattr(value, "value", "")
    return name if isinstance(name, str) and name != "0" else ""


def _pair(
    nodes: Sequence[Nodes], kinds: Kinds, start: Sequence[array[int]] | None, sends: list[array[int]]
) -> None:
    """Fills in the send of each receive: the i-th of a key, in order of start, else of id."""
    waiting: dict[tuple[int, int, int, int], tuple[list[tuple[int, int]], list[tuple[int, int]]]] = {}
    for rank, one in enumerate(nodes):
        places = list(range(len(one)))
        if start is not None:
            # Of those that start at one instant the lower id first: the sort is stable.
            times = start[rank]
            places = sorted((place for place in places if times[place] >= 0), key=times.__getitem__)
        types, sets, rows = one.columns.type, one.columns.attributes, one.row
        for place in places:
            kind = types[rows[place]]
            if kind not in (SEND, RECV):
                continue
            attributes = kinds.attributes(sets[rows[place]])
            peer = integer(attributes.get("comm_dst" if kind == SEND else "comm_src"))
            tag = integer(attributes.get("comm_tag")) or 0
            size = integer(attributes.get("comm_size")) or 0
            if peer is None:
                continue
            ends = (rank, peer) if kind == SEND else (peer, rank)
            lists = waiting.setdefault((tag % 500_000_000, *ends, size), ([], []))
            lists[kind == RECV].append((rank, place))
    for sent, received in waiting.values():
        for (rank, place), (who, at) in zip(sent, received, strict=False):
            sends[who][at] = rank << 32 | place


# -- wltui's rules ---------------------------------------------------------------------


def _by_wltui(traces: TraceSet, parameters: Parameters) -> Executed:
    _refuse_astra_flags(parameters)
    if parameters.network == "links":
        raise UsageError(f"--network links: messages are simulated under --dialect {ASTRA_SIM_2}")
    found = structure_of(traces)
    if found.errors:
        raise first_errors(found.errors)
    return _Pricing(traces, parameters, found.nodes, found.orders).executed()


def _refuse_astra_flags(parameters: Parameters) -> None:
    names = ("injection_scale", "rendezvous_protocol", "num_queues_per_dim")
    given = [flag_of(name).option for name in names if getattr(parameters, name) != flag_of(name).default]
    if given:
        raise UsageError(f"{', '.join(given)}: of --dialect {ASTRA_SIM_2}")


class _What(NamedTuple):
    """What all nodes of one type and set of attributes are. priced: ns of its own, -1 for the duration of the
    node. group: name of its group, of a collective.
    """

    kind: int
    stream: int
    ns: int
    group: str
    size: int
    collective: int
    is_cpu: bool


class _Pricing:
    """Makes the work of the engine of the nodes: streams, groups, messages, durations."""

    def __init__(
        self, traces: TraceSet, parameters: Parameters, nodes: list[Nodes], orders: list[list[int]]
    ) -> None:
        self.orders = orders
        self.traces = traces
        self.parameters = parameters
        self.nodes = nodes
        self.world = len(nodes)
        self.cluster = choose_cluster(parameters).cluster(self.world)
        self.found: list[Diagnostic] = [*traces.diagnostics]
        groups = read_groups(parameters.comm_groups, self.world, True) if parameters.comm_groups else {}
        self.group_ranks = {str(number): ranks for number, ranks in groups.items()}
        self.memory = read_memory(parameters.remote_memory) if parameters.remote_memory else Memory()
        self.system = System()
        if parameters.system is not None:
            self.system = read_astra_system(parameters.system, len(self.cluster.dims)).system
        networked = ("cluster", "dim", "system", "algorithm", "splits", "active_chunks", "endpoint_delay",
                     "local_mem_bw", "collective_optimization")  # fmt: skip
        # What a file says of a collective's own time counts as long as nobody says another network.
        self.keeps_times = not any(flag.field in networked for flag in stated(parameters))
        self.slow = _slow_ranks(parameters, self.world)
        self._what: dict[tuple[int, int], _What] = {}
        self._shapes: dict[tuple[int, ...], GroupShape] = {}

    def executed(self) -> Executed:
        """The run. Raises InputError for what waits for ever."""
        nodes = self.nodes
        kind = [bytearray(len(one)) for one in nodes]
        stream = [bytearray(len(one)) for one in nodes]
        took = [array("q", bytes(8 * len(one))) for one in nodes]
        partner = [array("i", (NEVER,)) * len(one) for one in nodes]
        lists: dict[str, dict[int, list[int]]] = {}
        for rank, one in enumerate(nodes):
            factor = self.parameters.compute_scale * self.slow.get(rank, 1.0)
            types, sets, micros = one.columns.type, one.columns.attributes, one.columns.duration
            kinds_of, streams_of, times_of = kind[rank], stream[rank], took[rank]
            rows = one.row
            for place in self.orders[rank]:
                row = rows[place]
                key = (types[row], sets[row])
                what = self._what.get(key)
                if what is None:
                    what = self._what[key] = self._of(*key)
                kinds_of[place] = what.kind
                if what.kind == STREAM:
                    streams_of[place] = what.stream
                    ns = what.ns if what.ns >= 0 else micros[row] * 1000
                    if what.stream != _MEMORY_STREAM and factor != 1.0:
                        ns = round(ns * factor)
                    times_of[place] = ns
                elif what.kind == MEETING:
                    lists.setdefault(what.group, {}).setdefault(rank, []).append(place)
        meetings, groups, group, meeting_ns, members = self._meetings(lists, partner)
        sends = [array("q", (NEVER,)) * len(one) for one in nodes]
        _pair(nodes, self.traces.kinds, None, sends)
        channel = self._messages(kind, took, partner, sends)
        work = Work(nodes, kind, stream, took, partner, members, meeting_ns, group, channel)
        timed = run_fifo(work)
        self._check_ended(timed, work, groups)
        lanes = [
            bytearray(line if one == STREAM else 255 for one, line in zip(kinds_of, lines, strict=True))
            for kinds_of, lines in zip(kind, stream, strict=True)
        ]
        return Executed(
            self.traces,
            self.parameters,
            self.cluster,
            WLTUI,
            nodes,
            timed.start,
            timed.begin,
            timed.end,
            timed.order,
            lanes,
            meetings,
            timed.before,
            sends,
            groups,
            self._ranks(timed),
            None,
            tuple(self.found),
            self.system,
        )

    def _ranks(self, timed: Timed) -> list[tuple[int, int, int]]:
        found = []
        for rank, one in enumerate(self.nodes):
            end = max(timed.end[rank], default=0)
            types, sets = one.columns.type, one.columns.attributes
            computed = 0
            for place, row in enumerate(one.row):
                if types[row] == COMP and not self._what[types[row], sets[row]].is_cpu:
                    computed += timed.end[rank][place] - timed.start[rank][place]
            found.append((rank, end, end - computed))
        return found

    # -- nodes -------------------------------------------------------------------------

    def _of(self, kind: int, number: int) -> _What:
        attributes = self.traces.kinds.attributes(number)
        exact = integer(attributes.get("wltui_ns"))
        is_cpu = bool(integer(attributes.get("is_cpu_op")) or 0)
        size = integer(attributes.get("comm_size")) or 0
        if kind == COLL:
            collective = integer(attributes.get("comm_type"))
            if collective is None:
                return _What(STREAM, _GPU_STREAM, NEVER, "", 0, -1, is_cpu)
            whole = integer(attributes.get("wltui_bytes"))
            return _What(MEETING, 0, NEVER if exact is None else exact, _group_name(attributes),
                         size if whole is None else whole, collective, is_cpu)  # fmt: skip
        if kind == SEND:
            return _What(MESSAGE, 0, NEVER if exact is None else exact, "", size, -1, is_cpu)
        if kind == RECV:
            return _What(RECEIVE, 0, NEVER, "", size, -1, is_cpu)
        if kind in (MEM_LOAD, MEM_STORE):
            bytes_moved = integer(attributes.get("tensor_size")) or 0
            ns = 0
            if self.memory.bandwidth:
                ns = self.memory.latency_ns + int(bytes_moved / self.memory.bandwidth)
            return _What(STREAM, _MEMORY_STREAM, ns if exact is None else exact, "", 0, -1, is_cpu)
        if kind == COMP and not is_cpu and exact is None and self.system.roofline:
            exact = self._roofline_ns(attributes)
        ns = exact if exact is not None else NEVER if kind == COMP else 0
        return _What(STREAM, _CPU_STREAM if is_cpu else _GPU_STREAM, ns, "", 0, -1, is_cpu)

    def _roofline_ns(self, attributes: Mapping[str, object]) -> int | None:
        operations = integer(attributes.get("num_ops"))  # type: ignore[arg-type]
        size = integer(attributes.get("tensor_size"))  # type: ignore[arg-type]
        if not operations or not size:
            return 0 if size == 0 or operations == 0 else None
        bandwidth = (self.system.memory_bandwidth or 0.0) * 1e9
        rate = min(bandwidth * (operations / size), (self.system.peak or 0.0) * 1e12)
        return int(operations / rate * 1e9) if rate else None

    # -- collectives -------------------------------------------------------------------

    def _meetings(
        self, lists: Mapping[str, Mapping[int, list[int]]], partner: list[array[int]]
    ) -> tuple[list[array[int]], list[tuple[str, tuple[int, ...]]], array[int], array[int], array[int]]:
        """The i-th collective of a group is the i-th of each member, in the order of `topological`."""
        found = [array("i", (NEVER,)) * len(one) for one in self.nodes]
        groups: list[tuple[str, tuple[int, ...]]] = []
        group, took, members = array("i"), array("q"), array("i")
        for index, name in enumerate(sorted(lists)):
            by_rank = lists[name]
            ranks = self._members(name, by_rank)
            most = max(len(places) for places in by_rank.values())
            for number in range(most):
                there = [
                    (rank, by_rank[rank][number]) for rank in ranks if number < len(by_rank.get(rank, ()))
                ]
                meeting = len(groups)
                for rank, place in there:
                    found[rank][place] = partner[rank][place] = meeting
                groups.append((name, ranks))
                members.append(len(ranks))
                took.append(self._meeting_ns(there, name, ranks))
                group.append(index)
        return found, groups, group, took, members

    def _members(self, name: str, by_rank: Mapping[int, list[int]]) -> tuple[int, ...]:
        if name == "":
            return tuple(range(self.world))
        ranks = self.group_ranks.get(name)
        if ranks is None:
            ranks = tuple(sorted(by_rank))
            if self.parameters.comm_groups:
                message = f"communicator group {printable(name, 40)} is in no file of groups"
                raise InputError(Diagnostic("error", "group-missing", message, self.parameters.comm_groups))
            self._say_derived()
            return ranks
        outside = sorted(set(by_rank) - set(ranks))
        if outside:
            file = self.traces.files[outside[0]]
            node = self.nodes[outside[0]].id[by_rank[outside[0]][0]]
            message = (
                f"rank {outside[0]}, node {node}: it is not in its communicator group {printable(name, 40)}"
            )
            raise InputError(Diagnostic("error", "not-a-member", message, file.path))
        return ranks

    def _say_derived(self) -> None:
        if not any(one.code == "groups-assumed" for one in self.found):
            message = "no --comm-groups: a group is taken to be the ranks whose traces name it"
            self.found.append(Diagnostic("note", "groups-assumed", message, self.traces.path))

    def _meeting_ns(self, there: list[tuple[int, int]], name: str, ranks: tuple[int, ...]) -> int:
        whats = []
        for rank, place in there:
            one = self.nodes[rank]
            row = one.row[place]
            whats.append(self._what[one.columns.type[row], one.columns.attributes[row]])
        first = whats[0]
        for (rank, place), what in zip(there, whats, strict=True):
            if what.collective != first.collective:
                words = [COLLECTIVE_WORDS[one] if 0 <= one < len(COLLECTIVE_WORDS) else str(one)
                         for one in (first.collective, what.collective)]  # fmt: skip
                message = (
                    f"rank {rank}, node {self.nodes[rank].id[place]}: found {words[1]} where rank "
                    f"{there[0][0]} has "
                    f"{words[0]} (node {self.nodes[there[0][0]].id[there[0][1]]}) in group "
                    f"{printable(name, 40) or 'all'}"
                )
                raise InputError(
                    Diagnostic("error", "collectives-differ", message, self.traces.files[rank].path)
                )
        scale = self.parameters.comm_scale
        if first.ns >= 0 and self.keeps_times:
            return round(max(what.ns for what in whats) * scale)
        if len(ranks) < 2:
            return 0
        kind = _KIND_OF.get(first.collective, "ALLREDUCE")
        rank, place = there[0]
        one = self.nodes[rank]
        micros = one.columns.duration[one.row[place]]
        if first.collective not in COLLECTIVES and micros:
            return round(micros * 1000 * scale)
        size = max(what.size for what in whats)
        if kind == "ALLGATHER" and first.collective == 2:
            whole = integer(
                self.traces.kinds.attributes(one.columns.attributes[one.row[place]]).get("wltui_bytes")
            )
            size = size * len(ranks) if whole is None else size
        key = tuple(sorted(ranks))
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = group_shape(self.cluster, key)
        return collective_ns(self.cluster, shape, kind, size, scale)

    # -- messages ----------------------------------------------------------------------

    def _messages(
        self,
        kind: list[bytearray],
        took: list[array[int]],
        partner: list[array[int]],
        sends: list[array[int]],
    ) -> array[int]:
        """Numbers the messages; what each takes goes to its send. Raises InputError for one without an
        end.
        """
        channels: dict[tuple[int, int], int] = {}
        channel = array("i")
        errors = []
        for rank, one in enumerate(self.nodes):
            for place, what in enumerate(kind[rank]):
                if what != MESSAGE:
                    continue
                row = one.row[place]
                attributes = self.traces.kinds.attributes(one.columns.attributes[row])
                peer = integer(attributes.get("comm_dst"))
                if peer is None or not 0 <= peer < self.world or peer == rank:
                    shown = "no comm_dst" if peer is None else f"comm_dst {peer}"
                    message = (
                        f"rank {rank}, node {one.id[place]}: found {shown}, expected another rank below "
                        f"{self.world}"
                    )
                    errors.append(Diagnostic("error", "no-partner", message, self.traces.files[rank].path))
                    continue
                known = self._what[one.columns.type[row], one.columns.attributes[row]]
                partner[rank][place] = len(channel)
                channel.append(channels.setdefault((rank, peer), len(channels)))
                ns = known.ns
                if ns < 0 or not self.keeps_times:
                    ns = transfer_ns(self.cluster, transfer_shape(self.cluster, rank, peer), known.size)
                took[rank][place] = (
                    round(ns * self.parameters.comm_scale) if self.parameters.comm_scale != 1 else ns
                )
        if errors:
            raise first_errors(errors)
        for rank, column in enumerate(sends):
            for place, sent in enumerate(column):
                if sent >= 0:
                    partner[rank][place] = partner[sent >> 32][sent & 0xFFFFFFFF]
        return channel

    def _check_ended(self, timed: Timed, work: Work, groups: list[tuple[str, tuple[int, ...]]]) -> None:
        """Raises InputError that names, of each rank, the first node that waits for ever and for what."""
        errors = []
        for rank, ends in enumerate(timed.end):
            stuck = [place for place, end in enumerate(ends) if end < 0]
            if not stuck:
                continue
            place = next((at for at in stuck if timed.start[rank][at] >= 0), stuck[0])
            one = self.nodes[rank]
            what = work.kind[rank][place]
            why = f"a {TYPE_WORDS[min(one.columns.type[one.row[place]], 7)]}"
            if what == MEETING:
                name, ranks = groups[work.partner[rank][place]]
                came = {who for who, column in enumerate(work.partner) if work.partner[rank][place] in column}
                absent = RankSet.of(sorted(set(ranks) - came)).text()
                why = f"a collective of group {printable(name, 40) or 'all'}"
                why += f" that rank {absent} has not" if absent else " that not all of its members come to"
            elif what == RECEIVE:
                why = "a receive without a send of the same tag, partner and size"
            message = f"rank {rank} never ends: node {one.id[place]}, {why}, waits for ever"
            errors.append(Diagnostic("error", "never-ends", message, self.traces.files[rank].path))
        if errors:
            raise first_errors(errors)


def _slow_ranks(parameters: Parameters, world: int) -> dict[int, float]:
    found = {}
    for text in parameters.slow_rank:
        rank, _, factor = text.partition("=")
        try:
            number, times = int(rank), float(factor)
        except ValueError:
            raise UsageError(f"--slow-rank {printable(text, 60)}: R=X is expected, as 5=1.3") from None
        if not 0 <= number < world or not 0 < times < 1e12:
            raise UsageError(
                f"--slow-rank {printable(text, 60)}: a rank below {world} and a factor above 0 are expected"
            )
        found[number] = times
    return found


def words_of(executed: Executed) -> str:
    """How the set was run, for the header."""
    if executed.rules == ASTRA_SIM_2:
        return "ASTRA-sim 2.x's rules, message by message"
    return "wltui's rules: a collective starts when all its members have come"


def figures_of(executed: Executed) -> str:
    """Ranks and step time in one line."""
    return f"{plural(len(executed.ranks), 'rank')}, {duration(executed.step_time_ns)}"
