"""Runs a set of execution traces by ASTRA-sim 2.x's rules: `--dialect astra-sim-2` (CHAKRA.md part 2).

Three slots a rank (CPU, GPU compute, communication), free nodes walked in ascending id after every ending, no
barrier: the messages of collectives and transfers are simulated one by one. Rules are named as R2.2 and so
on.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush

from simcore.chakra.attributes import INTEGERS, Attributes
from simcore.chakra.nodes import (
    BROADCAST,
    COLL,
    COLLECTIVE_WORDS,
    COLLECTIVES,
    COMP,
    INVALID,
    MEM_LOAD,
    MEM_STORE,
    METADATA,
    RECV,
    SEND,
    Kinds,
    Nodes,
)
from simcore.executing.custom import CustomCollective
from simcore.messages.clock import Clock, Fault, ForbiddenExit
from simcore.messages.collectives import Communicator, RankCollectives, Rules, split_into_chunks
from simcore.messages.network import TAGS, TRANSFER_TAG, Matching
from simcore.records import NamedTuple

# The slots of a rank; a receive takes none.
CPU, GPU, COMM, FREE = range(4)
SLOT_WORDS = ("CPU", "GPU compute", "communication", "none")
NEVER = -1
_HUGE = 1 << 63


class RemoteMemory(NamedTuple):
    """The remote memory file. kind: ASTRA-sim's name of it. per_node: ranks that share a memory."""

    kind: str = "NO_MEMORY_EXPANSION"
    latency_ns: int = 0
    bandwidth: float = 0.0
    per_node: int = 1


class System(NamedTuple):
    """What the system file states besides its collectives."""

    roofline: bool = False
    """Whether a roofline prices compute on the GPU."""
    peak: float | None = None
    """TFLOP/s of the roofline."""
    memory_bandwidth: float | None = None
    """GB/s of the local memory."""
    replay: bool = False
    """Whether every node takes its own duration, and nothing is simulated."""
    custom: Mapping[str, str] = {}
    """Kind of collective -> the prefix of the files that describe it."""


class AstraOutcome(NamedTuple):
    """A finished run."""

    start: list[array[int]]
    """By rank, the start of each node by ascending id, NEVER for none."""
    end: list[array[int]]
    """By rank, the end of each node by ascending id, NEVER for none."""
    finished: list[tuple[int, int, int]]
    """(rank, end ns, exposed ns) in the order in which the ranks ended."""
    fault: Fault | None
    """What stopped the program."""
    swallowed: list[Fault]
    """The exceptions that ended a rank's event but not the program."""
    wait_reasons: dict[int, str]
    """For each rank that did not finish the reason."""
    causes: list[dict[int, int]]
    """By rank, `behind` of `_Rank`."""


class _Rank:
    """One rank: its free nodes, slots, and figures."""

    def __init__(self, rank_id: int, nodes: Nodes, run: AstraRun) -> None:
        self.rank_id = rank_id
        self.nodes = nodes
        self.run = run
        count = len(nodes)
        self.start = array("q", (NEVER,)) * count
        self.end = array("q", (NEVER,)) * count
        waits = [len({*data, *ctrl}) for data, ctrl in zip(nodes.data, nodes.ctrl, strict=True)]
        self.waits = waits
        self.free: tuple[list[int], ...] = ([], [], [], [])
        self.slot_of = run.slots(nodes)
        self.slot_nodes = [NEVER, NEVER, NEVER]
        self.running = 0
        self.gpu_ns = 0
        self.is_done = False
        self.no_statistics = False
        self.late: list[int] = []
        # For each node that waited for its slot the node that held it.
        self.behind: dict[int, int] = {}
        for index, wait in enumerate(waits):
            if not wait:
                self.free[self.slot_of[index]].append(index)

    def walk(self) -> None:
        """Starts the free nodes, in ascending id, whose slot is empty (R2.2)."""
        free, slot_nodes = self.free, self.slot_nodes
        cpu, gpu, comm, none = free
        while True:
            slot = NEVER
            least = 1 << 62
            if cpu and slot_nodes[CPU] == NEVER:
                slot, least = CPU, cpu[0]
            if gpu and slot_nodes[GPU] == NEVER and gpu[0] < least:
                slot, least = GPU, gpu[0]
            if comm and slot_nodes[COMM] == NEVER and comm[0] < least:
                slot, least = COMM, comm[0]
            if none and none[0] < least:
                slot, least = FREE, none[0]
            if slot == NEVER:
                break
            heappop(free[slot])
            if slot != FREE:
                slot_nodes[slot] = least
            self.running += 1
            try:
                self.run.issue(self, least)
            except Fault as fault:
                self._free_late()
                if fault.node is None:
                    fault.node = self.nodes.id[least]
                raise
        self._free_late()

    def _free_late(self) -> None:
        # Nodes that were freed inside the walk wait for the next one.
        for index in self.late:
            heappush(self.free[self.slot_of[index]], index)
        self.late = []

    def release(self, index: int, skipped: bool = False) -> None:
        """Ends a node: its slot is empty, its children may be free."""
        now = self.run.clock.now
        self.end[index] = now
        self.running -= 1
        slot = self.slot_of[index]
        if slot != FREE:
            self.slot_nodes[slot] = NEVER
        nodes, waits = self.nodes, self.waits
        to = nodes.children_to
        for child in nodes.children[to[index - 1] if index else 0 : to[index]]:
            waits[child] -= 1
            if not waits[child]:
                if skipped:
                    self.late.append(child)
                else:
                    heappush(self.free[self.slot_of[child]], child)

    def end_node(self, index: int) -> None:
        """Ends a node by an event, and goes on with the rank."""
        self.release(index)
        self.walk()
        self.check_done()

    def check_done(self) -> None:
        """Finishes the rank when nothing is free and nothing runs (R6.1)."""
        if self.is_done or self.running or any(self.free):
            return
        self.is_done = True
        self.run.finish(self)


class AstraRun:
    """One run. network: made for the clock. groups: ranks by group id, None without a file."""

    def __init__(
        self,
        nodes: Sequence[Nodes],
        kinds: Kinds,
        clock: Clock,
        network: Matching,
        rules: Rules,
        system: System,
        memory: RemoteMemory,
        groups: Mapping[int, tuple[int, ...]] | None,
        custom: Callable[[str, int], Nodes] | None = None,
    ) -> None:
        self.kinds = kinds
        self.clock = clock
        self.network = network
        self.rules = rules
        self.system = system
        self.memory = memory
        self.groups = groups
        self.custom = custom
        self.finished: list[tuple[int, int, int]] = []
        self._slots: dict[tuple[int, int], int] = {}
        self._memory_free: dict[int, int] = {}
        self._never: dict[int, str] = {}
        self.ranks = [_Rank(rank_id, node, self) for rank_id, node in enumerate(nodes)]
        self.collectives = [RankCollectives(rank.rank_id, clock, network, rules) for rank in self.ranks]
        self._group_of: dict[str, Communicator] = {}

    def run(self) -> AstraOutcome:
        """Runs to the end and returns the outcome."""
        fault = None
        try:
            for rank in self.ranks:
                if rank.nodes.problems:
                    self._refuse_missing(rank)
                if not any(rank.free):
                    raise ForbiddenExit(rank.rank_id, None, "no node is free of dependencies", "aborts")
            for rank in self.ranks:
                rank.walk()
            self.clock.run()
        except Fault as stop:
            fault = stop
        wait_reasons = (
            {}
            if fault
            else {rank.rank_id: self._explain_wait(rank) for rank in self.ranks if not rank.is_done}
        )
        return AstraOutcome(
            [rank.start for rank in self.ranks], [rank.end for rank in self.ranks], self.finished, fault,
            self.clock.swallowed, wait_reasons, [rank.behind for rank in self.ranks],
        )  # fmt: skip

    def _refuse_missing(self, rank: _Rank) -> None:
        """Raises `ForbiddenExit` for a dependency on a missing node (R1.5)."""
        for problem in rank.nodes.problems:
            if problem.code == "node-missing":
                raise ForbiddenExit(rank.rank_id, problem.node, problem.message + " (R1.5)", "aborts")

    # -- what a node is ------------------------------------------------------------------

    def slots(self, nodes: Nodes) -> bytearray:
        """Returns the slot of each node of a rank (R2.3)."""
        columns, cache = nodes.columns, self._slots
        kinds, sets = columns.type, columns.attributes
        slot_of = bytearray(len(nodes))
        for index, row in enumerate(nodes.row):
            key = (kinds[row], sets[row])
            slot = cache.get(key)
            if slot is None:
                slot = cache[key] = self._slot(*key)
            slot_of[index] = slot
        return slot_of

    def _slot(self, kind: int, attributes: int) -> int:
        if kind == RECV:
            return FREE
        on_cpu = self.kinds.attributes(attributes).get("is_cpu_op")
        if on_cpu is not None and on_cpu.kind in INTEGERS and on_cpu.value:
            return CPU
        return GPU if kind == COMP else COMM

    # -- starting a node -----------------------------------------------------------------

    def issue(self, rank: _Rank, index: int) -> None:
        """Starts a node that has its slot. Raises `Fault`."""
        nodes = rank.nodes
        row = nodes.row[index]
        kind = nodes.columns.type[row]
        node = nodes.id[index]
        attributes = self.kinds.attributes(nodes.columns.attributes[row])
        if kind == METADATA or kind > COLL:
            what = "a METADATA node" if kind == METADATA else f"a node of type {kind}"
            raise ForbiddenExit(rank.rank_id, node, f"{what} cannot be run (R2.6)", "aborts")
        rank.start[index] = self.clock.now
        on_cpu = attributes.get("is_cpu_op")
        if on_cpu is not None and on_cpu.kind not in INTEGERS:
            raise Fault(
                rank.rank_id, node, f"is_cpu_op is {on_cpu.kind}, expected a whole number or bool (R1.7)"
            )
        is_cpu = on_cpu is not None and bool(on_cpu.value)
        duration = nodes.columns.duration[row] * 1000 or 1
        if kind in (INVALID, MEM_LOAD, MEM_STORE) or (kind == COMP and is_cpu):
            rank.no_statistics = True
        if self.system.replay:
            if not is_cpu:
                rank.gpu_ns += duration
            self.clock.schedule_own(rank.rank_id, duration, rank.end_node, index)
        elif kind == COMP:
            self._compute(rank, index, node, attributes, duration, is_cpu)
        elif kind == INVALID:
            rank.release(index, skipped=True)
        elif kind in (MEM_LOAD, MEM_STORE):
            self._remote(rank, index, node, attributes)
        elif is_cpu:
            raise Fault(rank.rank_id, node, "a node of communication is marked as a CPU operation (R2.4)")
        elif kind == COLL:
            self._collective(rank, index, node, attributes, duration)
        else:
            self._transfer(rank, index, node, attributes, kind)

    def _compute(
        self, rank: _Rank, index: int, node: int, attributes: Attributes, duration: int, is_cpu: bool
    ) -> None:
        if not is_cpu and self.system.roofline:
            size = self._integer(rank, node, attributes, "tensor_size")
            operations = self._integer(rank, node, attributes, "num_ops")
            if not size:
                rank.release(index, skipped=True)
                return
            duration = self._roofline_ns(operations, size)
        if not is_cpu:
            rank.gpu_ns += duration
        if duration >= _HUGE:
            self._never[rank.rank_id] = (
                f"node {node} computes 0 operations, which is 0/0 by the roofline (R3.5)"
            )
            return
        self.clock.schedule_own(rank.rank_id, duration, rank.end_node, index)

    def _roofline_ns(self, operations: int, size: int) -> int:
        """Returns the time of R3.3, computed in doubles and in this order."""
        bandwidth = (self.system.memory_bandwidth or 0.0) * 1e9
        peak = (self.system.peak or 0.0) * 1e12
        rate = min(bandwidth * (operations / size), peak)
        if not rate:
            return _HUGE
        return int(operations / rate * 1e9)

    def _remote(self, rank: _Rank, index: int, node: int, attributes: Attributes) -> None:
        size = self._integer(rank, node, attributes, "tensor_size")
        memory = self.memory
        if memory.kind == "NO_MEMORY_EXPANSION":
            raise ForbiddenExit(
                rank.rank_id, node, "remote memory is used, and the memory file has none (R3.9)", "exits"
            )
        ns = memory.latency_ns + int(size / memory.bandwidth)
        shared = {"PER_NODE_MEMORY_EXPANSION": rank.rank_id // memory.per_node, "MEMORY_POOL": 0}.get(
            memory.kind
        )
        begin = self.clock.now
        if shared is not None:
            begin = max(begin, self._memory_free.get(shared, 0))
            self._memory_free[shared] = begin + ns
        self.clock.schedule_own(rank.rank_id, begin + ns - self.clock.now, rank.end_node, index)

    def _collective(self, rank: _Rank, index: int, node: int, attributes: Attributes, duration: int) -> None:
        comm_type = self._integer(rank, node, attributes, "comm_type")
        size = self._integer(rank, node, attributes, "comm_size")
        group = self._group(rank, node, attributes)
        involved: Sequence[bool] = ()
        dims = attributes.get("involved_dim")
        if dims is not None:
            if dims.kind != "bool_list":
                raise ForbiddenExit(
                    rank.rank_id, node, f"involved_dim is {dims.kind}, expected a bool_list (R1.7)", "exits"
                )
            involved = dims.value
        if comm_type == BROADCAST:
            self.clock.schedule_own(rank.rank_id, duration, rank.end_node, index)
            return
        kind = COLLECTIVES.get(comm_type)
        if kind is None:
            word = (
                COLLECTIVE_WORDS[comm_type] if 0 <= comm_type < len(COLLECTIVE_WORDS) else f"type {comm_type}"
            )
            raise Fault(rank.rank_id, node, f"a collective {word} cannot be run (R4.2)")
        if kind in self.system.custom:
            why = self._custom_collective(rank, index, node, kind, size, group)
        else:
            # R5.5: a group of all ranks takes all dimensions.
            why = self.collectives[rank.rank_id].start(
                kind, size, group, () if group.group_id else involved, lambda: rank.end_node(index)
            )
        if why is not None:
            self._never[rank.rank_id] = f"node {node}: {why}"

    def _custom_collective(
        self, rank: _Rank, index: int, node: int, kind: str, size: int, group: Communicator
    ) -> str | None:
        """Runs a collective's own file of nodes (R4.17); returns why it never ends, None when it may."""
        ranks = range(len(self.ranks)) if group.ranks is None else group.ranks
        if self.custom is None:
            raise ForbiddenExit(rank.rank_id, node, f"the file of its custom {kind} is not there", "exits")
        nodes = self.custom(kind, ranks.index(rank.rank_id))
        _, chunks = split_into_chunks(size, kind, self.rules, rank.rank_id)
        why = None if chunks == 1 else f"a custom collective ends only with one chunk, found {chunks} (R4.17)"
        over = self._nothing if why else lambda: rank.end_node(index)
        CustomCollective(rank.rank_id, node, nodes, self.kinds, self.clock, self.network, ranks, over).begin()
        return why

    def _nothing(self) -> None:
        """Does nothing: the chunks that are left never end."""

    def _group(self, rank: _Rank, node: int, attributes: Attributes) -> Communicator:
        """Returns the group of a node (R5.1 to R5.6)."""
        value = attributes.get("pg_name")
        if value is not None and value.kind != "string":
            raise Fault(rank.rank_id, node, f"pg_name is {value.kind}, expected a string (R1.7)")
        name = "" if value is None else value.value
        group = self._group_of.get(name)
        if group is None:
            group = self._group_of[name] = self._open_group(rank, node, name)
        if group.ranks is not None and rank.rank_id not in group.ranks:
            raise ForbiddenExit(
                rank.rank_id, node, f"the rank is not in its communicator group {name} (R5.6)", "aborts"
            )
        return group

    def _open_group(self, rank: _Rank, node: int, name: str) -> Communicator:
        if name in ("", "0"):
            return Communicator(0, None)
        group_id = leading_number(name)
        if group_id is None:
            raise Fault(rank.rank_id, node, f"pg_name {name!r} is no number (R5.4)")
        if group_id == 0:
            return Communicator(0, None)
        ranks = None if self.groups is None else self.groups.get(group_id)
        if ranks is None:
            none = self.groups is None
            where = "there is no --comm-groups FILE" if none else "not in that of --comm-groups"
            message = f"communicator group {group_id} is in no file of groups (R5.4): {where}"
            raise ForbiddenExit(rank.rank_id, node, message, "exits")
        return Communicator(group_id, None if len(ranks) == len(self.ranks) else ranks)

    def _transfer(self, rank: _Rank, index: int, node: int, attributes: Attributes, kind: int) -> None:
        """Starts a send or a receive (R4.12 to R4.14)."""
        own, other = ("comm_src", "comm_dst") if kind == SEND else ("comm_dst", "comm_src")
        here = rank.rank_id
        if own in attributes:
            here = self._integer(rank, node, attributes, own)
        peer = self._integer(rank, node, attributes, other)
        tag = self._integer(rank, node, attributes, "comm_tag")
        size = self._integer(rank, node, attributes, "comm_size")
        if here != rank.rank_id:
            raise Fault(rank.rank_id, node, f"{own} is {here}, and the node is rank {rank.rank_id}'s (R4.14)")
        if peer == here or not size or tag < 0 or not 0 <= peer < len(self.ranks):
            what = ("the rank itself is the partner" if peer == here else "it has 0 bytes" if not size
                    else f"comm_tag is {tag}" if tag < 0 else f"there is no rank {peer}")  # fmt: skip
            raise ForbiddenExit(rank.rank_id, node, f"a transfer of which {what} (R4.14)", "aborts")
        tag = TRANSFER_TAG + tag % TAGS
        if kind == SEND:
            self.network.send((tag, here, peer, size), rank.end_node, index)
        else:
            self.network.receive((tag, peer, here, size), rank.end_node, index)

    def _integer(self, rank: _Rank, node: int, attributes: Attributes, name: str) -> int:
        value = attributes.get(name)
        if value is None:
            raise Fault(rank.rank_id, node, f"it has no {name}")
        if value.kind not in INTEGERS:
            raise Fault(rank.rank_id, node, f"its {name} is {value.kind}, expected a whole number (R1.7)")
        return int(value.value)

    # -- ends ------------------------------------------------------------------------------

    def finish(self, rank: _Rank) -> None:
        """Finishes a rank (R6.1); the statistics of some ranks throw after that (R7.4)."""
        now = self.clock.now
        self.finished.append((rank.rank_id, now, (now - rank.gpu_ns) & (1 << 64) - 1))
        if rank.no_statistics:
            raise Fault(
                rank.rank_id,
                None,
                "the rank has finished; its statistics know only GPU and communication nodes (R7.4)",
            )

    def _explain_wait(self, rank: _Rank) -> str:
        reason = self._never.get(rank.rank_id)
        if reason is not None:
            return reason
        never = self.collectives[rank.rank_id].never
        if never and rank.slot_nodes[COMM] != NEVER:
            return f"node {rank.nodes.id[rank.slot_nodes[COMM]]}: {never}"
        nodes = rank.nodes
        waiting = [f"node {nodes.id[index]} in the {SLOT_WORDS[slot]} slot"
                   for slot, index in enumerate(rank.slot_nodes) if index != NEVER]  # fmt: skip
        receives = [nodes.id[index] for index, slot in enumerate(rank.slot_of)
                    if slot == FREE and rank.start[index] != NEVER and rank.end[index] == NEVER]  # fmt: skip
        if receives:
            waiting.append(f"{'node' if len(receives) == 1 else 'nodes'} "
                           f"{', '.join(map(str, receives[:8]))}, a receive without its message")  # fmt: skip
        free = sorted(nodes.id[index] for indices in rank.free for index in indices)
        if not waiting and free:
            waiting.append(f"node {free[0]}, free and never looked at again (R2.5)")
        return "; ".join(waiting) or "nothing"


def leading_number(text: str) -> int | None:
    """Returns the number that a text begins with, as C++'s stoi reads it; None for none or one beyond
    31 bits.
    """
    text = text.lstrip(" \t\n\v\f\r")
    sign = -1 if text.startswith("-") else 1
    digits = ""
    for character in text[1:] if text[:1] in ("+", "-") else text:
        if not "0" <= character <= "9":
            break
        digits += character
    if not digits or len(digits) > 10 or int(digits) >= 1 << 31:
        return None
    return sign * int(digits)
