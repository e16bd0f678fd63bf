"""An executed set of traces, and what its nodes state whatever rules they ran by."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from simcore.chakra.attributes import Attributes, Value
from simcore.chakra.nodes import (
    COLL,
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
)
from simcore.chakra.opening import ExecutionSet
from simcore.cluster import Cluster
from simcore.compat.astra2 import RemoteMemory, System
from simcore.diagnostics import Diagnostic, printable
from simcore.messages.network import LinkHeat, LinkUse
from simcore.names import ASTRA_SIM_2
from simcore.parameters import Input, RunInput
from simcore.records import NamedTuple, Struct
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.executing.graph import ExecutionGraph

WLTUI = "wltui"
# Codes of the diagnostics for what may take no time because the files do not state its time.
NO_PRICES = ("attribute-missing", "no-durations", "remote-memory-missing")
_MEMORY = {"MEM_LOAD": "load", "MEM_STORE": "store"}
# The comm_size of a collective, as opposed to that of a message.
_SIZE_OF_MEMBER = "comm_size "
_Column = TypeVar("_Column")


class Units(NamedTuple):
    """Classes of ranks with equal times."""

    first: tuple[int, ...]
    """The lowest rank of each class."""
    of: array[int]
    """The class of each rank."""
    groups: Mapping[str, int]
    """By the name of a group an id that equal groups share; {} where every rank is a class."""

    def spread(self, by_unit: Sequence[_Column]) -> list[_Column]:
        """Returns the values of classes as values of ranks."""
        return [by_unit[unit] for unit in self.of]


def make_rank_units(world: int) -> Units:
    """Returns units in which every rank is its own class."""
    return Units(tuple(range(world)), array("i", range(world)), {})


class Execution(RunInput, frozen=True, dict=True):
    """A set of execution traces, and the parameters under which it runs."""

    opened: ExecutionSet

    of: ClassVar[Input] = "execution"


class ExecutionResult(Struct, frozen=True, dict=True):
    """A set of execution traces that has run."""

    setup: Execution
    """The set and the parameters of the run."""
    cluster: Cluster
    """The cluster that it ran on."""
    rules: str
    """The rules that it ran by: WLTUI or ASTRA_SIM_2."""
    nodes: list[Nodes]
    """By rank, ascending by id."""
    start: list[array[int]]
    """By rank, ns of each node; ranks of a class share their columns."""
    begin: list[array[int]]
    """By rank, ns of each node: when what it waited for had come."""
    end: list[array[int]]
    """By rank, ns of each node."""
    units: Units
    """The classes of ranks."""
    order: list[tuple[int, int]]
    """(class, index) of the nodes by their ends, each behind what it waited for."""
    lanes: list[bytearray]
    """What a node held: a slot or a stream, 255 for nothing."""
    meetings: list[array[int]]
    """The collective of each node, -1 for none, with ids for the classes."""
    before: Sequence[int] | None
    """See `build_graph`."""
    sends: list[array[int]]
    """By class, the send of each receive, `class << 32 | index`."""
    groups: Mapping[str, tuple[int, ...]]
    """The ranks of each group by name."""
    ranks: list[tuple[int, int, int]]
    """(rank, end, exposed) ns."""
    links: list[LinkUse] | None
    """What each link carried, under `--network links`."""
    diagnostics: tuple[Diagnostic, ...]
    """The diagnostics of the files and of the run."""
    system: System
    """What the system file states besides its collectives."""
    used: Mapping[str, Any]
    """The values in force of the parameters that a system file has."""
    link_heat: LinkHeat | None = None
    """How busy links are over the run, under `--network links`."""
    graph: ExecutionGraph | None = None
    """The graph of a run whose order is that of another one; None where the times give it."""
    states_times: bool = False
    """Whether the files state what communication takes, and no network prices it."""

    @property
    def traces(self) -> ExecutionSet:
        return self.setup.opened

    @cached_property
    def known_accounts(self) -> dict[tuple[int, int, int], int]:
        """The account of a node's time by its kind, name and attributes, for those computed so far."""
        return {}

    @property
    def is_astra(self) -> bool:
        """Whether it ran by ASTRA-sim's rules."""
        return self.rules == ASTRA_SIM_2

    @property
    def kinds(self) -> Kinds:
        """The attributes of nodes."""
        return self.traces.kinds

    @property
    def step_time_ns(self) -> int:
        """When the last rank ends, ns."""
        return max((end for _, end, _ in self.ranks), default=0)

    def attributes(self, rank: int, index: int) -> Attributes:
        """Returns the attributes of a node by name."""
        nodes = self.nodes[rank]
        return self.kinds.attributes(nodes.columns.attributes[nodes.row[index]])

    def group_of(self, rank: int, index: int) -> tuple[str, tuple[int, ...]] | None:
        """Returns (name, ranks) of the group of a collective, None for any other node."""
        if self.meetings[rank][index] < 0:
            return None
        name = group_name(self.attributes(rank, index))
        ranks = self.groups[name]
        return ("" if name == ZERO and len(ranks) == len(self.nodes) else name), ranks

    def send_of(self, rank: int, index: int) -> tuple[int, int] | None:
        """Returns (rank, index) of the send that a receive waits for, None for any other node."""
        send = self.sends[self.units.of[rank]][index]
        if send < 0:
            return None
        source = integer(self.attributes(rank, index).get("comm_src"))
        return (self.units.first[send >> 32] if source is None else source), send & 0xFFFFFFFF

    def receives_of(self, rank: int, index: int) -> list[tuple[int, int]]:
        """Returns (rank, index) of the receives that wait for a send."""
        code = self.units.of[rank] << 32 | index
        target = integer(self.attributes(rank, index).get("comm_dst"))
        if target is None or not 0 <= target < len(self.nodes):
            return []
        column = self.sends[self.units.of[target]]
        return [(target, at) for at, send in enumerate(column) if send == code]


# The group of all ranks in ASTRA-sim; its forks take it from a file of groups that has it.
ZERO = "0"
# C++'s stoi reads 1 of it.
_FRACTION = re.compile(r"([0-9]{1,9})\.[0-9]*")


def group_name(attributes: Mapping[str, object]) -> str:
    """Returns the name of the group of a collective, "" without one; `1.0` is group 1."""
    value = attributes.get("pg_name")
    name = getattr(value, "value", "")
    if not isinstance(name, str):
        return ""
    fraction = _FRACTION.fullmatch(name) if "." in name else None
    return name if fraction is None else str(int(fraction[1]))


def message_key(
    rank: int, attributes: Mapping[str, Value], receives: bool
) -> tuple[int, int, int, int] | None:
    """Returns what a send and a receive match by: (tag, from, to, bytes); None for a node without a
    partner.
    """
    peer = integer(attributes.get("comm_src" if receives else "comm_dst"))
    if peer is None:
        return None
    tag = integer(attributes.get("comm_tag")) or 0
    size = integer(attributes.get("comm_size")) or 0
    ends = (peer, rank) if receives else (rank, peer)
    return (tag % 500_000_000, *ends, size)


def match_sends(
    nodes: Sequence[Nodes], kinds: Kinds, start: Sequence[array[int]] | None, units: Units
) -> list[array[int]]:
    """Returns by class and receive its send, `class << 32 | index`, else -1: the i-th of a key, in order of
    start, else of id.
    """
    firsts = set(units.first)
    sends: dict[tuple[int, int, int, int], list[tuple[int, int]]] = {}
    receives: dict[tuple[int, int, int, int], list[tuple[int, int]]] = {}
    pending_ranks = firsts
    finished_ranks: set[int] = set()
    while pending_ranks:
        # The lowest ranks of the classes, then those that send to them.
        for rank in sorted(pending_ranks):
            _collect_messages(
                rank, nodes[rank], kinds, None if start is None else start[rank], sends, receives
            )
        finished_ranks |= pending_ranks
        pending_ranks = {key[1] for key, ends in receives.items() if ends[0][0] in firsts} - finished_ranks
        pending_ranks = {rank for rank in pending_ranks if 0 <= rank < len(nodes)}
    send_of = [array("q", (-1,)) * len(nodes[rank]) for rank in units.first]
    for key, received in receives.items():
        for (rank, index), (who, at) in zip(sends.get(key, ()), received, strict=False):
            if who in firsts:
                send_of[units.of[who]][at] = units.of[rank] << 32 | index
    return send_of


def _collect_messages(
    rank: int,
    nodes: Nodes,
    kinds: Kinds,
    start: array[int] | None,
    sends: dict[tuple[int, int, int, int], list[tuple[int, int]]],
    receives: dict[tuple[int, int, int, int], list[tuple[int, int]]],
) -> None:
    types, sets, rows = nodes.columns.type, nodes.columns.attributes, nodes.row
    indices = [index for index, row in enumerate(rows) if types[row] in (SEND, RECV)]
    if start is not None:
        # Of nodes that start at one instant the lower id goes first: the sort is stable.
        indices = sorted((index for index in indices if start[index] >= 0), key=start.__getitem__)
    for index in indices:
        row = rows[index]
        key = message_key(rank, kinds.attributes(sets[row]), types[row] == RECV)
        if key is not None:
            (receives if types[row] == RECV else sends).setdefault(key, []).append((rank, index))


def note_missing_times(
    traces: ExecutionSet, nodes: Sequence[Nodes], system: System, rules: str
) -> list[Diagnostic]:
    """Returns a note where compute of rank 0 states operations but no duration, and nothing gives it one."""
    if not nodes or system.roofline or system.replay:
        return []
    first, kinds = nodes[0], traces.kinds
    types, sets, micros = first.columns.type, first.columns.attributes, first.columns.duration
    # Whether a set of attributes states operations, and whether it states bytes too: a roofline needs both.
    stating: dict[int, tuple[bool, bool]] = {}
    count = priceable_count = 0
    for row in first.row:
        if types[row] != COMP or micros[row]:
            continue
        attributes_id = sets[row]
        if attributes_id not in stating:
            values = kinds.attributes(attributes_id)
            states = (
                bool(integer(values.get("num_ops")))
                and not integer(values.get("is_cpu_op"))
                and integer(values.get("wltui_ns")) is None
            )
            stating[attributes_id] = states, states and bool(integer(values.get("tensor_size")))
        count += stating[attributes_id][0]
        priceable_count += stating[attributes_id][1]
    if not count:
        return []
    takes = "1 ns" if rules == ASTRA_SIM_2 else "0 ns"
    what = f"rank 0 has {plural(count, 'compute node')} with operations (num_ops) and no duration"
    prices = "; --system FILE with roofline-enabled 1 prices "
    if not priceable_count:
        prices = "; a roofline wants bytes (tensor_size), too"
    else:
        some = "the one" if priceable_count == 1 else f"the {priceable_count}"
        prices += "them" if priceable_count == count else f"{some} with bytes (tensor_size)"
    return [Diagnostic("note", "no-durations", f"{what}: each takes {takes}{prices}", traces.path)]


class _MissingFacts(Struct):
    """Nodes that lack something: the first of them, their number, whether any states a duration."""

    rank: int
    index: int
    count: int = 0
    is_timed: bool = False


def note_missing_prices(
    traces: ExecutionSet, nodes: Sequence[Nodes], units: Units, memory: RemoteMemory, has_file: bool,
    sets: Iterable[tuple[int, int]],
) -> list[Diagnostic]:  # fmt: skip
    """Returns notes on what wltui's rules take to be 0 ns or 0 bytes.

    The reason is that an attribute or the file of remote memory is missing. memory: what remote memory costs.
    has_file: whether a file states it. sets: (type, attributes) of all nodes.
    """
    lacks_of = {
        (kind, attributes_id): lacks
        for kind, attributes_id in sets
        if (lacks := _lacks(kind, traces.kinds.attributes(attributes_id), memory))
    }
    if not lacks_of:
        return []
    ranks_of = Counter(units.of)
    lacking_nodes: dict[str, _MissingFacts] = {}
    for unit, rank in enumerate(units.first):
        columns = nodes[rank].columns
        for index, row in enumerate(nodes[rank].row):
            lacks = lacks_of.get((columns.type[row], columns.attributes[row]), "")
            if lacks:
                without = lacking_nodes.setdefault(lacks, _MissingFacts(rank, index))
                without.count += ranks_of[unit]
                without.is_timed |= bool(columns.duration[row])
    diagnostics = []
    for lacks, without in sorted(lacking_nodes.items()):
        several = without.count > 1
        if lacks in _MEMORY:
            takes = "take 0 ns each" if several else "takes 0 ns"
            why = f"--remote-memory FILE prices {'them' if several else 'it'}"
            if has_file:
                why = "the file of --remote-memory has none"
            message = f"{plural(without.count, _MEMORY[lacks])} of remote memory {takes}: {why}"
            diagnostics.append(Diagnostic("note", "remote-memory-missing", message, traces.path))
            continue
        own = nodes[without.rank]
        name = printable(traces.kinds.name(own.columns.name[own.row[without.index]]), 40)
        which = f"node {own.id[without.index]}" + (f" ({name})" if name else "") + f" of rank {without.rank}"
        which += f" and {plural(without.count - 1, 'other')} have" if several else " has"
        how = "as 0 bytes"
        if lacks == "comm_type":
            how = "with its own duration" if without.is_timed else "as 0 ns"
        elif lacks == _SIZE_OF_MEMBER:
            how = "as 0 bytes unless another member states more"
        message = f"{which} no {lacks.strip()}: {'each' if several else 'it'} counts {how}"
        path = traces.files[without.rank].path
        diagnostics.append(Diagnostic("warning", "attribute-missing", message, path))
    return diagnostics


def _lacks(kind: int, values: Attributes, memory: RemoteMemory) -> str:
    """Returns what nodes of a type and set of attributes lack of what prices them, "" for nothing."""
    if kind in (MEM_LOAD, MEM_STORE):
        if integer(values.get("wltui_ns")) is not None:
            return ""
        if not memory.bandwidth:
            return TYPE_WORDS[kind]
        return "" if integer(values.get("tensor_size")) is not None else "tensor_size"
    has_size = any(integer(values.get(name)) is not None for name in ("comm_size", "wltui_bytes", "wltui_ns"))
    if kind == COLL:
        collective = integer(values.get("comm_type"))
        if collective is None:
            return "comm_type"
        return "" if has_size or collective not in COLLECTIVES else _SIZE_OF_MEMBER
    return "comm_size" if kind == SEND and not has_size else ""


def describe_rules(executed: ExecutionResult) -> str:
    """Returns the rules that the set was run by, as a text for the header."""
    if executed.rules == ASTRA_SIM_2:
        return "ASTRA-sim 2.x's rules, message by message"
    return "wltui's rules: a collective starts when all its members have come"
