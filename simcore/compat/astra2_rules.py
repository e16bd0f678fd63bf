"""Runs a set of execution traces by the rules of ASTRA-sim 2.x, message by message."""

from __future__ import annotations

import os
from array import array
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from simcore.chakra.nodes import (
    BROADCAST,
    COLL,
    Nodes,
    integer,
    sort_nodes,
    sort_nodes_once,
)
from simcore.chakra.opening import ExecutionFile, ExecutionSet, first_errors
from simcore.chakra.wire import Columns, read_columns
from simcore.cluster import Cluster, ClusterParameters, choose_cluster
from simcore.compat.astra2 import FREE, AstraOutcome, AstraRun, RemoteMemory, System, leading_number
from simcore.compat.astra2_system import AstraSystem, read_astra_system, read_groups, read_memory
from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.executing.execution_result import (
    Execution,
    ExecutionResult,
    group_name,
    make_rank_units,
    match_sends,
    note_missing_times,
)
from simcore.executing.fifo import NEVER
from simcore.executing.folded import find_units
from simcore.messages.clock import Clock, Fault
from simcore.messages.collectives import Rules
from simcore.messages.network import FullBandwidth, LinkByLink
from simcore.names import ASTRA_SIM_2
from simcore.parameters import flag_of
from simcore.ranks import RankSet
from simcore.records import replace
from simcore.units import plural
from simcore.workload.opening import read_file


def run_by_astra(setup: Execution) -> ExecutionResult:
    traces, parameters = setup.opened, setup.parameters
    scales = ("compute_scale", "comm_scale", "slow_rank")
    scale_flags = [
        flag_of(name).option for name in scales if getattr(parameters, name) != flag_of(name).default
    ]
    if scale_flags:
        raise UsageError(
            f"{', '.join(scale_flags)}: not under --dialect {ASTRA_SIM_2}, which has no such factors"
        )
    world = _world_of(setup)
    cluster = choose_cluster(_network_of(setup)).cluster(world)
    dims = cluster.dims
    if parameters.network == "links":
        for dimension in dims:
            if dimension.kind == "ring" and dimension.size == 2:
                message = "--network links: ASTRA-sim aborts on a ring of 2 (R4.15); a switch would do"
                path = parameters.cluster or traces.path
                raise InputError(Diagnostic("error", "execution-stopped", message, path))
    diagnostics: list[Diagnostic] = [*traces.diagnostics]
    by_rank = {file.rank: file for file in traces.files}
    nodes: list[Nodes] = []
    by_shape: dict[int, Nodes] = {}
    for rank in range(cluster.npus):
        file = by_rank.get(rank)
        if file is None:
            path = f"{traces.prefix}.{rank}.et"
            message = (
                f"rank {rank}: there is no such file; the network has {plural(cluster.npus, 'NPU')} (R1.1)"
            )
            raise InputError(Diagnostic("error", "ranks-missing", message, path))
        nodes.append(sort_nodes_once(_read_like_astra(file, traces), by_shape))
        if file.columns.damage is not None:
            at, reason = file.columns.damage
            message = f"byte {at}: {reason}; what there is of it is taken, as in ASTRA-sim (R1.3)"
            diagnostics.append(Diagnostic("warning", "damaged-trace", message, file.path))
        diagnostics += [
            Diagnostic(
                "warning",
                problem.code,
                f"byte {problem.at}: {problem.message}; the last one counts (R1.6)",
                file.path,
            )
            for problem in nodes[-1].problems[:8]
            if problem.code == "node-twice"
        ]
    if len(by_rank) > cluster.npus:
        message = (
            f"{plural(len(by_rank), 'file')} found, the network has {plural(cluster.npus, 'NPU')}: the first "
            f"are run"
        )
        diagnostics.append(Diagnostic("warning", "ranks-beyond", message, traces.path))
    astra, rules, used = _astra_rules(setup, cluster)
    groups = read_groups(parameters.comm_groups, cluster.npus) if parameters.comm_groups else None
    memory = read_memory(parameters.remote_memory) if parameters.remote_memory else RemoteMemory()
    clock = Clock(cluster.npus)
    rendezvous = _parse_bool(parameters.rendezvous_protocol)
    links = LinkByLink(clock, dims, rendezvous) if parameters.network == "links" else None
    network = links or FullBandwidth(clock, dims, rendezvous)
    custom = _Custom(astra.custom, parameters.system or "", traces)
    run = AstraRun(nodes, traces.kinds, clock, network, rules, astra, memory, groups, custom.nodes)
    outcome = run.run()
    world = cluster.npus
    if len(outcome.finished) < world:
        raise _make_unfinished_error(outcome, traces, world)
    if outcome.fault is not None:
        message = (
            f"all ranks have finished; then ASTRA-sim {outcome.fault.there}: {_format_fault(outcome.fault)}"
        )
        diagnostics.append(Diagnostic("warning", "crash-behind-end", message, traces.path))
    statistics = [fault for fault in outcome.swallowed if fault.node is None]
    if statistics:
        ranks = RankSet.of(sorted({statistic.rank for statistic in statistics})).text()
        message = (
            f"rank {ranks}: ASTRA-sim prints no statistics of ranks with CPU, memory or invalid nodes (R7.4)"
        )
        diagnostics.append(Diagnostic("note", "no-statistics", message, traces.path))
    diagnostics += note_missing_times(traces, nodes, astra, ASTRA_SIM_2)
    all_diagnostics = tuple(diagnostics)
    return _make_result(setup, cluster, run, outcome, links, groups, all_diagnostics, astra, used)


def astra_values(setup: Execution, world: int) -> tuple[Cluster, dict[str, Any]]:
    """Returns the network and the values in force: see `values_in_force`."""
    cluster = choose_cluster(_network_of(setup)).cluster(world)
    return cluster, _astra_rules(setup, cluster)[2]


def collective_rules(setup: Execution, cluster: Cluster) -> Rules:
    """Returns the rules of collectives in force. Raises InputError."""
    return _astra_rules(setup, cluster)[1]


def _parse_bool(word: str) -> bool:
    if word not in ("true", "false"):
        raise UsageError(f"--rendezvous-protocol {printable(word, 60)}: true or false is expected")
    return word == "true"


def _network_of(setup: Execution) -> ClusterParameters:
    """Returns the cluster's parameters without the system file, which is read as ASTRA-sim reads it."""
    return replace(setup.parameters.part(ClusterParameters), system=None)


def _world_of(setup: Execution) -> int:
    highest = max(file.rank for file in setup.opened.files)
    choice = choose_cluster(_network_of(setup))
    return choice.npus or highest + 1


def _read_like_astra(file: ExecutionFile, traces: ExecutionSet) -> Columns:
    """Returns the columns as ASTRA-sim reads them.

    The first message is lost, whatever it is, and gzip is not opened.
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


def _astra_rules(setup: Execution, cluster: Cluster) -> tuple[System, Rules, dict[str, Any]]:
    """Returns the settings of the system file with flags over it, the rules of collectives, and values in
    force.

    Without a file, the defaults are those of wltui's cluster. The values are by the names of parameters.
    """
    dims, parameters = cluster.dims, setup.parameters
    if parameters.system is not None:
        read = read_astra_system(parameters.system, len(dims))
    else:
        default = {"ring": "ring", "fully-connected": "direct", "switch": "halving-doubling"}
        names = tuple(default[dim.kind] for dim in dims)
        every = dict.fromkeys(("ALLREDUCE", "ALLGATHER", "REDUCESCATTER"), names)
        every["ALLTOALL"] = ("direct",) * len(dims)
        read = AstraSystem(every, 10, 1, 1, False, System(memory_bandwidth=1600.0))
    algorithms = dict(read.algorithms)
    if parameters.algorithm:
        for kind, names in algorithms.items():
            explicit_names = cluster.algorithms_for(kind)
            algorithms[kind] = tuple(
                mine or there for mine, there in zip(explicit_names, names, strict=False)
            )
    memory = read.system.memory_bandwidth if parameters.local_mem_bw is None else parameters.local_mem_bw
    delay = read.endpoint_delay_ns if parameters.endpoint_delay is None else parameters.endpoint_delay
    baseline = read.baseline
    if parameters.collective_optimization is not None:
        baseline = parameters.collective_optimization == "baseline"
    rules = Rules(
        tuple(dim.size for dim in dims), algorithms, int(delay * parameters.injection_scale), memory,
        parameters.splits or read.splits, parameters.active_chunks or read.active_chunks,
        parameters.num_queues_per_dim, baseline,
    )  # fmt: skip
    used = {
        "splits": rules.splits,
        "active_chunks": rules.active_chunks,
        "endpoint_delay": delay,
        "local_mem_bw": memory,
        "collective_optimization": "baseline" if baseline else "localBWAware",
    }
    return read.system._replace(memory_bandwidth=memory), rules, used


class _Custom:
    """The files of custom collectives, each read once."""

    def __init__(self, prefixes: Mapping[str, str], system: str, traces: ExecutionSet) -> None:
        self._prefixes = prefixes
        self._folder = os.path.dirname(system)
        self._traces = traces
        self._cache: dict[tuple[str, int], Nodes] = {}

    def nodes(self, kind: str, position: int) -> Nodes:
        """Returns the nodes of a position's file: in wltui's working folder, else in the system file's.
        Raises InputError.
        """
        file_nodes = self._cache.get((kind, position))
        if file_nodes is None:
            name = f"{self._prefixes[kind]}.{position}.et"
            path = name if os.path.exists(name) else os.path.join(self._folder, name)
            data = read_file(path)
            file_nodes = sort_nodes(read_columns(data, self._traces.table, 1))
            self._cache[kind, position] = file_nodes
        return file_nodes


def _format_fault(fault: Fault) -> str:
    where = f"rank {fault.rank}" + (f", node {fault.node}" if fault.node is not None else "")
    return f"{where}: {fault.rule}"


def _make_unfinished_error(outcome: AstraOutcome, traces: ExecutionSet, world: int) -> InputError:
    """Returns the error of what stopped the run, or why each rank that did not finish waits."""
    paths = {file.rank: file.path for file in traces.files}
    finished_count = len(outcome.finished)
    errors = []
    if outcome.fault is not None:
        fault = outcome.fault
        message = (
            f"{_format_fault(fault)}; ASTRA-sim {fault.there} at this ({finished_count} of "
            f"{plural(world, 'rank')} had "
            f"finished)"
        )
        errors.append(Diagnostic("error", "execution-stopped", message, paths.get(fault.rank, traces.path)))
        return InputError(*errors)
    swallowed = {fault.rank: fault for fault in outcome.swallowed if fault.node is not None}
    for rank, why in sorted(outcome.wait_reasons.items()):
        cut_off = swallowed.get(rank)
        if cut_off is not None:
            message = (
                f"{_format_fault(cut_off)}; ASTRA-sim swallows the exception, and the rank never ends (R6.4)"
            )
        else:
            message = f"rank {rank} never ends: it waits in {why}; ASTRA-sim ends without a word (R6.3)"
        errors.append(Diagnostic("error", "execution-stopped", message, paths.get(rank, traces.path)))
    return first_errors(errors)


def _make_result(
    setup: Execution, cluster: Cluster, run: AstraRun, outcome: AstraOutcome,
    links: LinkByLink | None, groups: Mapping[int, tuple[int, ...]] | None,
    diagnostics: tuple[Diagnostic, ...], astra: System, used: Mapping[str, Any],
) -> ExecutionResult:  # fmt: skip
    traces = setup.opened
    nodes = [rank.nodes for rank in run.ranks]
    world = tuple(range(cluster.npus))

    def members(name: str, there: Sequence[int]) -> tuple[int, ...]:
        group_id = leading_number(name)
        listed = None if groups is None or group_id is None else groups.get(group_id)
        return world if name in ("", "0") or listed is None else listed

    # Ranks with equal times are equal: what is computed of the run is computed once for them.
    extra_keys = {
        rank: blake2b(start.tobytes() + end.tobytes(), digest_size=16).digest()
        for rank, (start, end) in enumerate(zip(outcome.start, outcome.end, strict=True))
    }
    units = make_rank_units(len(nodes))
    if not setup.parameters.no_fold:
        units = find_units(nodes, traces.kinds, cluster, extra_keys, members, outcome.start) or units
    firsts = [nodes[rank] for rank in units.first]
    starts, ends = ([times[rank] for rank in units.first] for times in (outcome.start, outcome.end))
    meetings = [array("i", (NEVER,)) * len(unit_nodes) for unit_nodes in firsts]
    meeting_ids: dict[tuple[str | int, int], int] = {}
    group_ranks: dict[str, tuple[int, ...]] = {name: members(name, ()) for name in units.groups}
    sends = [array("q", (NEVER,)) * len(unit_nodes) for unit_nodes in firsts]
    if not astra.replay:
        for unit, unit_nodes in enumerate(firsts):
            counts: dict[str, int] = {}
            # Collectives are matched in the order in which a rank starts them (R4.7).
            for index in sorted(range(len(unit_nodes)), key=starts[unit].__getitem__):
                row = unit_nodes.row[index]
                if unit_nodes.columns.type[row] != COLL or starts[unit][index] < 0:
                    continue
                attributes = traces.kinds.attributes(unit_nodes.columns.attributes[row])
                if integer(attributes.get("comm_type")) == BROADCAST:
                    continue
                name = group_name(attributes)
                group_ranks.setdefault(name, members(name, ()))
                occurrence = counts.get(name, 0)
                counts[name] = occurrence + 1
                key = (units.groups.get(name, name), occurrence)
                meetings[unit][index] = meeting_ids.setdefault(key, len(meeting_ids))
        sends = match_sends(nodes, traces.kinds, outcome.start, units)
    order_of = [
        (unit, index)
        for _, unit, index in sorted(
            (end, unit, index)
            for unit, column in enumerate(ends)
            for index, end in enumerate(column)
            if end >= 0
        )
    ]
    order_of = _order_by_ends(firsts, ends, order_of, sends)
    begin = _find_begins(starts, ends, meetings, sends, len(meeting_ids))
    lanes = [
        bytearray(255 if slot == FREE else slot for slot in run.ranks[rank].slot_of) for rank in units.first
    ]
    return ExecutionResult(
        setup,
        cluster,
        ASTRA_SIM_2,
        nodes,
        units.spread(starts),
        units.spread(begin),
        units.spread(ends),
        units,
        order_of,
        units.spread(lanes),
        units.spread(meetings),
        None,
        sends,
        group_ranks,
        sorted(outcome.finished),
        links.uses() if links is not None else None,
        diagnostics,
        astra,
        used,
        None if links is None else links.heat(),
    )


def _order_by_ends(
    nodes: Sequence[Nodes],
    ends: Sequence[array[int]],
    ended: list[tuple[int, int]],
    sends: Sequence[array[int]],
) -> list[tuple[int, int]]:
    """Returns nodes by their ends; of those that end at one instant what others wait for comes first."""
    behind_parents: list[tuple[int, int]] = []
    is_listed = [bytearray(len(node)) for node in nodes]
    for item in ended:
        stack = [item]
        while stack:
            rank, index = stack[-1]
            if is_listed[rank][index]:
                stack.pop()
                continue
            blockers = [
                (rank, parent) for parent in (*nodes[rank].data[index], *nodes[rank].ctrl[index])
                if not is_listed[rank][parent] and ends[rank][parent] >= 0
            ]  # fmt: skip
            send = sends[rank][index]
            if (
                send >= 0
                and not is_listed[send >> 32][send & 0xFFFFFFFF]
                and ends[send >> 32][send & 0xFFFFFFFF] >= 0
            ):
                blockers.append((send >> 32, send & 0xFFFFFFFF))
            if blockers:
                stack += blockers
            else:
                is_listed[rank][index] = 1
                behind_parents.append(stack.pop())
    return behind_parents


def _find_begins(
    start: Sequence[array[int]], end: Sequence[array[int]], meetings: Sequence[array[int]],
    sends: Sequence[array[int]], count: int,
) -> list[array[int]]:  # fmt: skip
    """Returns when what each node waited for had come: the last member had, the message had departed."""
    come = [0] * count
    for rank, column in enumerate(meetings):
        for index, meeting in enumerate(column):
            if meeting >= 0 and start[rank][index] > come[meeting]:
                come[meeting] = start[rank][index]
    begins = []
    for rank, column in enumerate(meetings):
        begin = array("q", start[rank])
        for index, meeting in enumerate(column):
            if meeting >= 0:
                begin[index] = min(max(begin[index], come[meeting]), max(end[rank][index], begin[index]))
            elif sends[rank][index] >= 0:
                send = sends[rank][index]
                there = start[send >> 32][send & 0xFFFFFFFF]
                begin[index] = min(max(begin[index], there), max(end[rank][index], begin[index]))
        begins.append(begin)
    return begins
