"""Runs a set of execution traces under its parameters, by wltui's rules or ASTRA-sim 2.x's."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from simcore.chakra.nodes import (
    COLL,
    COLLECTIVE_WORDS,
    COLLECTIVES,
    COMP,
    MEM_LOAD,
    MEM_STORE,
    RECV,
    SEND,
    TYPE_WORDS,
    Nodes,
    integer,
)
from simcore.chakra.opening import find_structure, first_errors
from simcore.cluster import (
    Cluster,
    ClusterParameters,
    GroupShape,
    choose_cluster,
    group_shape,
    parameter_values,
    transfer_shape,
)
from simcore.collectives import collective_ns, transfer_ns
from simcore.compat.astra2 import RemoteMemory, System
from simcore.compat.astra2_system import read_astra_system, read_groups, read_memory
from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.executing.execution_result import (
    WLTUI,
    ZERO,
    Execution,
    ExecutionResult,
    Units,
    group_name,
    make_rank_units,
    match_sends,
    note_missing_prices,
    note_missing_times,
)
from simcore.executing.fifo import (
    MEETING,
    MESSAGE,
    NEVER,
    RECEIVE,
    STREAM,
    EngineInput,
    LinkTransport,
    NodeTimes,
    run_fifo,
)
from simcore.executing.folded import find_units
from simcore.names import ASTRA_SIM_2
from simcore.parameters import flag_of
from simcore.program.overrides import slow_ranks_of
from simcore.ranks import RankSet
from simcore.records import NamedTuple

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
_TOO_LONG = 1 << 63
_GPU_STREAM, _CPU_STREAM, _MEMORY_STREAM = 0, 1, 2


def execute(setup: Execution) -> ExecutionResult:
    """Runs a set. Raises `UsageError` for parameters that it does not have, InputError for a set that cannot
    run.
    """
    parameters = setup.parameters
    parameters.refuse_others("execution")
    network = setup.network_name
    if network not in ("analytical", "links"):
        value_text = printable(network, 60)
        raise UsageError(f"--network {value_text}: execution traces run on analytical or links")
    if parameters.dialect == ASTRA_SIM_2:
        # Imported here: wltui's rules send no messages.
        from simcore.compat.astra2_rules import run_by_astra

        return run_by_astra(setup)
    if parameters.dialect is not None:
        value_text = printable(parameters.dialect, 60)
        raise UsageError(
            f"--dialect {value_text}: execution traces run by {ASTRA_SIM_2}, or without --dialect by "
            "wltui's rules"
        )
    try:
        return _run_by_wltui(setup)
    except OverflowError:
        raise _find_too_long(setup) from None


def _find_too_long(setup: Execution) -> Exception:
    """Returns the error for a step of 2^63 ns or more: the node that states the longest time, where one alone
    is that long.
    """
    for rank, node in enumerate(find_structure(setup.opened).nodes):
        micros = [node.columns.duration[row] for row in node.row]
        longest = max(range(len(micros)), key=micros.__getitem__, default=0)
        if micros and micros[longest] >= _TOO_LONG // 1000:
            message = (
                f"rank {rank}, node {node.id[longest]}: found a duration of {micros[longest]} us, expected "
                "less than 2^63 ns (292 years)"
            )
            return InputError(Diagnostic("error", "too-long", message, setup.opened.files[rank].path))
    return UsageError("the step would take 2^63 ns (292 years) or more: too long for its times")


def values_in_force(setup: Execution, world: int) -> tuple[Cluster, Mapping[str, Any]]:
    """Returns the network of a set of so many ranks, and the values of parameters that the user left open.

    They are those of the system file, else defaults. Raises `UsageError`, InputError.
    """
    if setup.parameters.dialect == ASTRA_SIM_2:
        from simcore.compat.astra2_rules import astra_values

        return astra_values(setup, world)
    cluster = choose_cluster(setup.parameters.part(ClusterParameters)).cluster(world)
    return cluster, parameter_values(cluster)


def _run_by_wltui(setup: Execution) -> ExecutionResult:
    parameters = setup.parameters
    _refuse_astra_flags(setup)
    node_order = find_structure(setup.opened)
    if node_order.errors:
        raise first_errors(node_order.errors)
    pricing = _Pricing(setup, node_order.nodes, node_order.orders)
    on_links = parameters.network == "links"
    units = None if parameters.no_fold or on_links else pricing.find_units()
    if units is not None:
        try:
            return pricing.run(units)
        except InputError:
            pass  # Rank by rank the error names all ranks that it concerns.
    return pricing.run(make_rank_units(len(node_order.nodes)))


def _refuse_astra_flags(setup: Execution) -> None:
    names = ("injection_scale", "rendezvous_protocol", "num_queues_per_dim")
    astra_flags = [flag_of(name).option for name in names if name in setup.parameters.explicit_names]
    if astra_flags:
        raise UsageError(f"{', '.join(astra_flags)}: of --dialect {ASTRA_SIM_2}")


class _What(NamedTuple):
    """How the engine treats all nodes of one type and set of attributes."""

    kind: int
    """STREAM to RECEIVE."""
    stream: int
    """The stream of a STREAM node."""
    ns: int
    """Their price, -1 for the duration of the node."""
    group: str
    """The name of the group of a collective."""
    size: int
    """Bytes of a collective or message."""
    collective: int
    """The comm_type of a collective, else -1."""
    is_cpu: bool
    """Whether they run on the CPU."""


def _group_words(name: str) -> str:
    return "all" if name in ("", ZERO) else printable(name, 40)


class _Pricing:
    """Makes the input of the engine from the nodes: streams, groups, messages, durations."""

    def __init__(self, setup: Execution, nodes: list[Nodes], orders: list[list[int]]) -> None:
        traces, parameters = setup.opened, setup.parameters
        self.orders = orders
        self.setup = setup
        self.traces = traces
        self.nodes = nodes
        self.world = len(nodes)
        self.cluster = choose_cluster(parameters.part(ClusterParameters)).cluster(self.world)
        self.diagnostics: list[Diagnostic] = [*traces.diagnostics]
        groups = read_groups(parameters.comm_groups, self.world, True) if parameters.comm_groups else {}
        self.group_ranks = {str(group_id): ranks for group_id, ranks in groups.items()}
        self.memory = read_memory(parameters.remote_memory) if parameters.remote_memory else RemoteMemory()
        self.system = System()
        if parameters.system is not None:
            self.system = read_astra_system(parameters.system, len(self.cluster.dims)).system
        self.diagnostics += note_missing_times(traces, nodes, self.system, WLTUI)
        networked = ("cluster", "dim", "system", "algorithm", "splits", "active_chunks", "endpoint_delay",
                     "local_mem_bw", "collective_optimization")  # fmt: skip
        # The time that a file states of a collective counts unless the user names another network.
        self.keeps_times = not any(flag.field in networked for flag in parameters.explicit_flags())
        if parameters.network == "links":
            self.keeps_times = False
            if parameters.comm_scale != 1:
                raise UsageError("--comm-scale: not under --network links, where durations of messages are "
                                 "found as they go")  # fmt: skip
        # What each collective and each message moves over links: its bytes of the whole buffer.
        self._meeting_traffic: list[tuple[str, int] | None] = []
        self._message_traffic: list[tuple[int, int, int]] = []
        self.slow = slow_ranks_of(parameters.slow_rank, self.world)
        self._what: dict[tuple[int, int], _What] = {}
        # The first node of a rank that names a group.
        self._naming_node: dict[tuple[str, int], int] = {}
        self.ranks: tuple[int, ...] = ()
        self._shapes: dict[tuple[int, ...], GroupShape] = {}
        # Whether the files state the time of any communication, and the user names no network.
        self._states_times = False
        # The number of collectives whose times the files state and the named network prices.
        self._priced_anew = 0

    def find_units(self) -> Units | None:
        """Returns the classes of ranks that run equally, None where every rank is run."""

        return find_units(self.nodes, self.traces.kinds, self.cluster, self.slow, self._ranks_of)

    def _ranks_of(self, name: str, there: Sequence[int]) -> tuple[int, ...]:
        """Returns the ranks of a group. there: those that name it."""
        if name == "" or (name == ZERO and ZERO not in self.group_ranks and not self._names_others(there)):
            return tuple(range(self.world))
        return self.group_ranks.get(name, tuple(there))

    def _names_others(self, there: Sequence[int]) -> bool:
        """Returns whether, without a file of groups, every rank that does not name group 0 names another one:
        then 0 is not all ranks, which would wait for ever.
        """
        if self.setup.parameters.comm_groups:
            return False
        kinds, naming = self.traces.kinds, set(there)
        return all(
            any(
                group_name(kinds.attributes(one)) not in ("", ZERO)
                for one in set(self.nodes[rank].columns.attributes)
            )
            for rank in range(self.world)
            if rank not in naming
        )

    def run(self, units: Units) -> ExecutionResult:
        """Runs one rank of each class. Raises InputError for what waits for ever."""
        self.ranks = units.first
        nodes = [self.nodes[rank] for rank in units.first]
        kind = [bytearray(len(node)) for node in nodes]
        stream = [bytearray(len(node)) for node in nodes]
        took = [array("q", bytes(8 * len(node))) for node in nodes]
        partner = [array("i", (NEVER,)) * len(node) for node in nodes]
        lists: dict[str, dict[int, list[int]]] = {}
        for unit, node in enumerate(nodes):
            factor = self.setup.parameters.compute_scale * self.slow.get(units.first[unit], 1.0)
            types, sets, micros = node.columns.type, node.columns.attributes, node.columns.duration
            kinds_of, streams_of, times_of = kind[unit], stream[unit], took[unit]
            rows = node.row
            for index in self.orders[units.first[unit]]:
                row = rows[index]
                key = (types[row], sets[row])
                what = self._what.get(key)
                if what is None:
                    what = self._what[key] = self._classify(*key)
                kinds_of[index] = what.kind
                if what.kind == STREAM:
                    streams_of[index] = what.stream
                    ns = what.ns if what.ns >= 0 else micros[row] * 1000
                    if what.stream != _MEMORY_STREAM and factor != 1.0:
                        ns = round(ns * factor)
                    times_of[index] = ns
                elif what.kind == MEETING:
                    lists.setdefault(what.group, {}).setdefault(unit, []).append(index)
        groups = self._groups(units)
        meetings, meeting_groups, group, meeting_ns, members = self._match_meetings(
            lists, partner, groups, units
        )
        sends = match_sends(self.nodes, self.traces.kinds, None, units)
        channel = self._number_messages(kind, took, partner, sends)
        work = EngineInput(nodes, kind, stream, took, partner, members, meeting_ns, group, channel)
        links = (
            self._make_link_transport(meeting_groups) if self.setup.parameters.network == "links" else None
        )
        timed = run_fifo(work, links)
        self._check_ended(timed, work, meeting_groups)
        lanes = [
            bytearray(line if lane == STREAM else 255 for lane, line in zip(kinds_of, lines, strict=True))
            for kinds_of, lines in zip(kind, stream, strict=True)
        ]
        return ExecutionResult(
            self.setup,
            self.cluster,
            WLTUI,
            self.nodes,
            units.spread(timed.start),
            units.spread(timed.begin),
            units.spread(timed.end),
            units,
            timed.order,
            units.spread(lanes),
            units.spread(meetings),
            timed.before,
            sends,
            groups,
            self._rank_ends(timed, units),
            None if links is None else links.transport.uses(),
            (*self.diagnostics, *self._without_prices(units), *self._note_repriced()),
            self.system,
            parameter_values(self.cluster),
            None if links is None else links.transport.heat(),
            states_times=self._states_times,
        )

    def _without_prices(self, units: Units) -> list[Diagnostic]:
        has_file = self.setup.parameters.remote_memory is not None
        return note_missing_prices(self.traces, self.nodes, units, self.memory, has_file, self._what)

    def _note_repriced(self) -> list[Diagnostic]:
        """Returns a note where a named network prices collectives whose times the files state."""
        if not self._priced_anew:
            return []
        message = (
            "the files state the times of collectives (wltui_ns): as a network is named, it prices them anew"
        )
        return [Diagnostic("note", "priced-anew", message, self.traces.path)]

    def _rank_ends(self, timed: NodeTimes, units: Units) -> list[tuple[int, int, int]]:
        """Returns (rank, end, exposed) of all ranks."""
        ends = []
        for unit, rank in enumerate(units.first):
            nodes = self.nodes[rank]
            end = max(timed.end[unit], default=0)
            types, sets = nodes.columns.type, nodes.columns.attributes
            computed = 0
            for index, row in enumerate(nodes.row):
                if types[row] == COMP and not self._what[types[row], sets[row]].is_cpu:
                    computed += timed.end[unit][index] - timed.start[unit][index]
            ends.append((end, end - computed))
        return [(rank, *ends[unit]) for rank, unit in enumerate(units.of)]

    def _groups(self, units: Units) -> dict[str, tuple[int, ...]]:
        """Returns the ranks of each group that a node of a collective names. Raises InputError."""
        by_name: dict[str, list[int]] = {}
        self._naming_node.clear()
        # For each class the nodes with which its ranks name their groups.
        indices: list[list[int]] = []
        for rank in units.first:
            nodes = self.nodes[rank]
            types, sets = nodes.columns.type, nodes.columns.attributes
            first_indices: dict[int, int] = {}
            for index, row in enumerate(nodes.row):
                if types[row] == COLL and sets[row] not in first_indices:
                    first_indices[sets[row]] = index
            kinds = self.traces.kinds
            indices.append(
                [
                    index
                    for attributes_id, index in first_indices.items()
                    if integer(kinds.attributes(attributes_id).get("comm_type")) is not None
                ]
            )
        for rank, unit in enumerate(units.of):
            nodes = self.nodes[rank]
            sets, rows = nodes.columns.attributes, nodes.row
            for index in indices[unit]:
                name = group_name(self.traces.kinds.attributes(sets[rows[index]]))
                if (name, rank) not in self._naming_node:
                    self._naming_node[name, rank] = index
                    by_name.setdefault(name, []).append(rank)
        return {name: self._members(name, ranks) for name, ranks in sorted(by_name.items())}

    # -- nodes -------------------------------------------------------------------------

    def _classify(self, kind: int, attributes_id: int) -> _What:
        attributes = self.traces.kinds.attributes(attributes_id)
        exact = integer(attributes.get("wltui_ns"))
        is_cpu = bool(integer(attributes.get("is_cpu_op")) or 0)
        size = integer(attributes.get("comm_size")) or 0
        if kind == COLL:
            collective = integer(attributes.get("comm_type"))
            if collective is None:
                return _What(STREAM, _GPU_STREAM, NEVER, "", 0, -1, is_cpu)
            whole = integer(attributes.get("wltui_bytes"))
            return _What(MEETING, 0, NEVER if exact is None else exact, group_name(attributes),
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

    def _match_meetings(
        self,
        lists: Mapping[str, Mapping[int, list[int]]],
        partner: list[array[int]],
        groups: Mapping[str, tuple[int, ...]],
        units: Units,
    ) -> tuple[list[array[int]], list[tuple[str, tuple[int, ...]]], array[int], array[int], array[int]]:
        """Matches the collectives of a group: the i-th of each member is one, in `topological_order`.

        Of ranks of one class one comes for all: a group of a class is that of its lowest rank, and the other
        classes in it come to that one.
        """
        meetings = [array("i", (NEVER,)) * len(self.nodes[rank]) for rank in units.first]
        meeting_groups: list[tuple[str, tuple[int, ...]]] = []
        group, took, members = array("i"), array("q"), array("i")
        finished_pairs: set[tuple[int, str]] = set()
        for index, name in enumerate(sorted(lists)):
            if any((unit, name) in finished_pairs for unit in lists[name]):
                continue
            ranks = groups[name]
            members_of, absent = self._classes_in(name, ranks, units)
            finished_pairs.update(members_of.items())
            most = max(len(lists[mine][unit]) for unit, mine in members_of.items())
            for occurrence in range(most):
                there = [
                    (unit, lists[mine][unit][occurrence])
                    for unit, mine in members_of.items()
                    if occurrence < len(lists[mine][unit])
                ]
                for unit, node_index in there:
                    meetings[unit][node_index] = partner[unit][node_index] = len(meeting_groups)
                meeting_groups.append((name, ranks))
                members.append(len(members_of) + absent)
                there = [(units.first[unit], node_index) for unit, node_index in there]
                took.append(self._meeting_ns(there, name, ranks))
                group.append(index)
        return meetings, meeting_groups, group, took, members

    def _classes_in(self, name: str, ranks: tuple[int, ...], units: Units) -> tuple[dict[int, str], int]:
        """Returns (for each class in a group the name that its lowest rank has for its own such group, the
        number of absent ranks).
        """
        classes: dict[int, str] = {}
        absent = 0
        for rank in ranks:
            index = self._naming_node.get((name, rank))
            if index is None:
                absent += 1
                continue
            unit = units.of[rank]
            if unit not in classes:
                first = self.nodes[units.first[unit]]
                sets = first.columns.attributes
                classes[unit] = group_name(self.traces.kinds.attributes(sets[first.row[index]]))
        return classes, absent

    def _members(self, name: str, there: list[int]) -> tuple[int, ...]:
        if name == "":
            return tuple(range(self.world))
        ranks = self.group_ranks.get(name)
        if ranks is None:
            ranks = self._ranks_of(name, there)
            if name == ZERO and len(ranks) == self.world:
                return ranks
            if self.setup.parameters.comm_groups:
                message = f"communicator group {printable(name, 40)} is not in the file of --comm-groups"
                raise InputError(
                    Diagnostic("error", "group-missing", message, self.setup.parameters.comm_groups)
                )
            self._note_derived_groups()
            return ranks
        outside = sorted(set(there) - set(ranks))
        if outside:
            file = self.traces.files[outside[0]]
            node = self.nodes[outside[0]].id[self._naming_node[name, outside[0]]]
            message = (
                f"rank {outside[0]}, node {node}: it is not in its communicator group {printable(name, 40)}"
            )
            raise InputError(Diagnostic("error", "not-a-member", message, file.path))
        return ranks

    def _note_derived_groups(self) -> None:
        if not any(diagnostic.code == "groups-assumed" for diagnostic in self.diagnostics):
            message = "no --comm-groups: a group is taken to be the ranks whose traces name it"
            brief = "groups: the ranks that name them"
            self.diagnostics.append(
                Diagnostic("note", "groups-assumed", message, self.traces.path, brief=brief)
            )

    def _meeting_ns(self, there: list[tuple[int, int]], name: str, ranks: tuple[int, ...]) -> int:
        whats = []
        for rank, index in there:
            nodes = self.nodes[rank]
            row = nodes.row[index]
            whats.append(self._what[nodes.columns.type[row], nodes.columns.attributes[row]])
        first = whats[0]
        for (rank, index), what in zip(there, whats, strict=True):
            if what.collective != first.collective:
                operations = [
                    COLLECTIVE_WORDS[comm_type] if 0 <= comm_type < len(COLLECTIVE_WORDS) else str(comm_type)
                    for comm_type in (first.collective, what.collective)
                ]
                message = (
                    f"rank {rank}, node {self.nodes[rank].id[index]}: found {operations[1]} where rank "
                    f"{there[0][0]} has "
                    f"{operations[0]} (node {self.nodes[there[0][0]].id[there[0][1]]}) in group "
                    f"{_group_words(name)}"
                )
                raise InputError(
                    Diagnostic("error", "collectives-differ", message, self.traces.files[rank].path)
                )
        scale = self.setup.parameters.comm_scale
        if first.ns >= 0 and self.keeps_times:
            self._states_times = True
            return round(max(what.ns for what in whats) * scale)
        self._meeting_traffic.append(None)
        is_alone = len(ranks) < 2
        if first.ns >= 0 and (is_alone or first.collective not in COLLECTIVES):
            # None of it goes over a network, whatever the network is.
            return round(max(what.ns for what in whats) * scale)
        self._priced_anew += first.ns >= 0
        if is_alone:
            return 0
        kind = _KIND_OF.get(first.collective, "ALLREDUCE")
        rank, index = there[0]
        nodes = self.nodes[rank]
        micros = nodes.columns.duration[nodes.row[index]]
        if first.collective not in COLLECTIVES and micros:
            return round(micros * 1000 * scale)
        size = max(what.size for what in whats)
        if kind == "ALLGATHER" and first.collective == 2:
            whole = integer(
                self.traces.kinds.attributes(nodes.columns.attributes[nodes.row[index]]).get("wltui_bytes")
            )
            size = size * len(ranks) if whole is None else size
        if self.setup.parameters.network == "links":
            self._meeting_traffic[-1] = (kind, size)
            return 0
        key = tuple(sorted(ranks))
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = group_shape(self.cluster, key)
        return collective_ns(self.cluster, shape, kind, size, scale)

    # -- messages ----------------------------------------------------------------------

    def _number_messages(
        self,
        kind: list[bytearray],
        took: list[array[int]],
        partner: list[array[int]],
        sends: list[array[int]],
    ) -> array[int]:
        """Numbers the messages; the duration of each goes to its send. Raises InputError for one without an
        end.
        """
        channels: dict[tuple[int, int], int] = {}
        channel = array("i")
        errors = []
        for unit, rank in enumerate(self.ranks):
            nodes = self.nodes[rank]
            for index, what in enumerate(kind[unit]):
                if what != MESSAGE:
                    continue
                row = nodes.row[index]
                attributes = self.traces.kinds.attributes(nodes.columns.attributes[row])
                peer = integer(attributes.get("comm_dst"))
                if peer is None or not 0 <= peer < self.world or peer == rank:
                    peer_text = "no comm_dst" if peer is None else f"comm_dst {peer}"
                    message = (
                        f"rank {rank}, node {nodes.id[index]}: found {peer_text}, expected another rank "
                        "below "
                        f"{self.world}"
                    )
                    errors.append(Diagnostic("error", "no-partner", message, self.traces.files[rank].path))
                    continue
                message_facts = self._what[nodes.columns.type[row], nodes.columns.attributes[row]]
                partner[unit][index] = len(channel)
                channel.append(channels.setdefault((rank, peer), len(channels)))
                self._message_traffic.append((message_facts.size, rank, peer))
                ns = message_facts.ns
                self._states_times |= ns >= 0 and self.keeps_times
                if ns < 0 or not self.keeps_times:
                    ns = transfer_ns(
                        self.cluster, transfer_shape(self.cluster, rank, peer), message_facts.size
                    )
                took[unit][index] = (
                    round(ns * self.setup.parameters.comm_scale)
                    if self.setup.parameters.comm_scale != 1
                    else ns
                )
        if errors:
            raise first_errors(errors)
        for unit, column in enumerate(sends):
            for index, send_code in enumerate(column):
                if send_code >= 0:
                    partner[unit][index] = partner[send_code >> 32][send_code & 0xFFFFFFFF]
        return channel

    def _make_link_transport(self, meeting_groups: list[tuple[str, tuple[int, ...]]]) -> LinkTransport:
        """Returns what times the collectives and messages of all ranks. Raises `UsageError` for too many."""
        # Imported here: closed forms send no messages.
        from simcore.messages.alone import check_messages, estimate_messages, make_rules
        from simcore.messages.traffic import LinkTraffic, Payload

        rules = make_rules(self.cluster)
        total = 0
        meetings: list[tuple[Payload, tuple[int, ...]] | None] = []
        for traffic, (_, ranks) in zip(self._meeting_traffic, meeting_groups, strict=True):
            meetings.append(None if traffic is None else (Payload(*traffic), ranks))
            if traffic is not None:
                total += estimate_messages(self.cluster, len(ranks), traffic[0], rules)
        for _, source, target in self._message_traffic:
            total += sum(hops for _, hops in transfer_shape(self.cluster, source, target))
        check_messages(total, "the step")
        messages = [(Payload(None, size), source, target) for size, source, target in self._message_traffic]
        return LinkTransport(LinkTraffic(self.cluster, range(self.world)), meetings, messages)

    def _check_ended(
        self, timed: NodeTimes, work: EngineInput, groups: list[tuple[str, tuple[int, ...]]]
    ) -> None:
        """Raises InputError that names, for each rank, the first node that waits for ever and what it
        waits for.
        """
        errors = []
        for unit, ends in enumerate(timed.end):
            stuck = [index for index, end in enumerate(ends) if end < 0]
            if not stuck:
                continue
            index = next((at for at in stuck if timed.start[unit][at] >= 0), stuck[0])
            rank = self.ranks[unit]
            rank_nodes = self.nodes[rank]
            what = work.kind[unit][index]
            why = f"a {TYPE_WORDS[min(rank_nodes.columns.type[rank_nodes.row[index]], 7)]}"
            if what == MEETING:
                name, ranks = groups[work.partner[unit][index]]
                meeting = work.partner[unit][index]
                came = {self.ranks[who] for who, column in enumerate(work.partner) if meeting in column}
                absent = RankSet.of(sorted(set(ranks) - came)).text()
                why = f"a collective of group {_group_words(name)}"
                why += f" that rank {absent} has not" if absent else " that not all of its members come to"
            elif what == RECEIVE:
                why = "a receive without a send of the same tag, partner and size"
            message = f"rank {rank} never ends: node {rank_nodes.id[index]}, {why}, waits for ever"
            errors.append(Diagnostic("error", "never-ends", message, self.traces.files[rank].path))
        if errors:
            raise first_errors(errors)
