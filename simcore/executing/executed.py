"""A set of execution traces that has run, and what its nodes say whatever rules they ran by."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from simcore.chakra.attributes import Attributes, Value
from simcore.chakra.nodes import (
    COMP,
    RECV,
    SEND,
    Kinds,
    Nodes,
    integer,
)
from simcore.chakra.opening import ExecutionSet
from simcore.cluster import Cluster
from simcore.diagnostics import Diagnostic
from simcore.executing.astra2 import System
from simcore.messages.network import LinkHeat, LinkUse
from simcore.names import ASTRA_SIM_2
from simcore.parameters import Parameters
from simcore.records import NamedTuple, Struct
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.executing.graph import TraceGraph

WLTUI = "wltui"
_Column = TypeVar("_Column")


class Units(NamedTuple):
    """Classes of ranks that run alike. first: the lowest rank of each. of: of each rank its class. groups: of
    each group by name a number that those have in common which are alike; {} where every rank is a class.
    """

    first: tuple[int, ...]
    of: array[int]
    groups: Mapping[str, int]

    def spread(self, by_unit: Sequence[_Column]) -> list[_Column]:
        """What each class has as what each rank has."""
        return [by_unit[number] for number in self.of]


def alone(world: int) -> Units:
    """Every rank is its own class."""
    return Units(tuple(range(world)), array("i", range(world)), {})


class Executed(Struct, frozen=True, dict=True):
    """A set of execution traces that has run.

    nodes: of each rank by ascending id. start, begin, end: ns of each node; begin: when what it waited for
    was there; ranks of a class share these columns. lanes: what a node held: a slot or a stream, 255 nothing.
    meetings: of each node its collective, -1 for none, numbered for the classes; before: see `build_graph`.
    units: the classes. order: (class, place) by ends, each behind what it waited for. sends: of each class
    and receive its send, `class << 32 | place`. groups: the ranks of each group by name.
    ranks: (rank, end, exposed) ns. links: what each link carried, under `--network links`. used: what is in
    force of the parameters that a system file has. graph: who waits for whom, of a run whose order is that of
    another one; None where the times say it. states_times: the files state what communication takes, and no
    network prices it.
    """

    traces: ExecutionSet
    parameters: Parameters
    cluster: Cluster
    rules: str
    nodes: list[Nodes]
    start: list[array[int]]
    begin: list[array[int]]
    end: list[array[int]]
    units: Units
    order: list[tuple[int, int]]
    lanes: list[bytearray]
    meetings: list[array[int]]
    before: Sequence[int] | None
    sends: list[array[int]]
    groups: Mapping[str, tuple[int, ...]]
    ranks: list[tuple[int, int, int]]
    links: list[LinkUse] | None
    diagnostics: tuple[Diagnostic, ...]
    system: System
    used: Mapping[str, Any]
    link_heat: LinkHeat | None = None
    graph: TraceGraph | None = None
    states_times: bool = False

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

    def attributes(self, rank: int, place: int) -> Attributes:
        """The attributes of a node by name."""
        nodes = self.nodes[rank]
        return self.kinds.attributes(nodes.columns.attributes[nodes.row[place]])

    def group_of(self, rank: int, place: int) -> tuple[str, tuple[int, ...]] | None:
        """(name, ranks) of the group of a collective, None for any other node."""
        if self.meetings[rank][place] < 0:
            return None
        name = group_name(self.attributes(rank, place))
        return name, self.groups[name]

    def send_of(self, rank: int, place: int) -> tuple[int, int] | None:
        """(rank, place) of the send that a receive waits for, None for any other node."""
        sent = self.sends[self.units.of[rank]][place]
        if sent < 0:
            return None
        source = integer(self.attributes(rank, place).get("comm_src"))
        return (self.units.first[sent >> 32] if source is None else source), sent & 0xFFFFFFFF

    def receives_of(self, rank: int, place: int) -> list[tuple[int, int]]:
        """(rank, place) of the receives that wait for a send."""
        code = self.units.of[rank] << 32 | place
        target = integer(self.attributes(rank, place).get("comm_dst"))
        if target is None or not 0 <= target < len(self.nodes):
            return []
        column = self.sends[self.units.of[target]]
        return [(target, at) for at, sent in enumerate(column) if sent == code]


def group_name(attributes: Mapping[str, object]) -> str:
    value = attributes.get("pg_name")
    name = getattr(value, "value", "")
    return name if isinstance(name, str) and name != "0" else ""


def message_key(
    rank: int, attributes: Mapping[str, Value], receives: bool
) -> tuple[int, int, int, int] | None:
    """What a send and a receive match by: (tag, from, to, bytes); None of a node without a partner."""
    peer = integer(attributes.get("comm_src" if receives else "comm_dst"))
    if peer is None:
        return None
    tag = integer(attributes.get("comm_tag")) or 0
    size = integer(attributes.get("comm_size")) or 0
    ends = (peer, rank) if receives else (rank, peer)
    return (tag % 500_000_000, *ends, size)


def sends_of(
    nodes: Sequence[Nodes], kinds: Kinds, start: Sequence[array[int]] | None, units: Units
) -> list[array[int]]:
    """Of each class and receive its send, `class << 32 | place`, else -1: the i-th of a key, in order of
    start, else of id.
    """
    firsts = set(units.first)
    sends: dict[tuple[int, int, int, int], list[tuple[int, int]]] = {}
    receives: dict[tuple[int, int, int, int], list[tuple[int, int]]] = {}
    asked = firsts
    done: set[int] = set()
    while asked:
        # The lowest ranks of the classes, then those that send to them.
        for rank in sorted(asked):
            _messages_of(rank, nodes[rank], kinds, None if start is None else start[rank], sends, receives)
        done |= asked
        asked = {key[1] for key, ends in receives.items() if ends[0][0] in firsts} - done
        asked = {rank for rank in asked if 0 <= rank < len(nodes)}
    send_of = [array("q", (-1,)) * len(nodes[rank]) for rank in units.first]
    for key, received in receives.items():
        for (rank, place), (who, at) in zip(sends.get(key, ()), received, strict=False):
            if who in firsts:
                send_of[units.of[who]][at] = units.of[rank] << 32 | place
    return send_of


def _messages_of(
    rank: int,
    nodes: Nodes,
    kinds: Kinds,
    start: array[int] | None,
    sends: dict[tuple[int, int, int, int], list[tuple[int, int]]],
    receives: dict[tuple[int, int, int, int], list[tuple[int, int]]],
) -> None:
    types, sets, rows = nodes.columns.type, nodes.columns.attributes, nodes.row
    places = [place for place, row in enumerate(rows) if types[row] in (SEND, RECV)]
    if start is not None:
        # Of those that start at one instant the lower id first: the sort is stable.
        places = sorted((place for place in places if start[place] >= 0), key=start.__getitem__)
    for place in places:
        row = rows[place]
        key = message_key(rank, kinds.attributes(sets[row]), types[row] == RECV)
        if key is not None:
            (receives if types[row] == RECV else sends).setdefault(key, []).append((rank, place))


def without_times(
    traces: ExecutionSet, nodes: Sequence[Nodes], system: System, rules: str
) -> list[Diagnostic]:
    """A note where compute of rank 0 states operations and no duration, and nothing gives it one."""
    if not nodes or system.roofline or system.replay:
        return []
    first, kinds = nodes[0], traces.kinds
    types, sets, micros = first.columns.type, first.columns.attributes, first.columns.duration
    stating: dict[int, bool] = {}
    count = 0
    for row in first.row:
        if types[row] != COMP or micros[row]:
            continue
        number = sets[row]
        if number not in stating:
            values = kinds.attributes(number)
            stating[number] = (
                bool(integer(values.get("num_ops")))
                and not integer(values.get("is_cpu_op"))
                and integer(values.get("wltui_ns")) is None
            )
        count += stating[number]
    if not count:
        return []
    takes = "1 ns" if rules == ASTRA_SIM_2 else "0 ns"
    message = (
        f"rank 0 has {plural(count, 'compute node')} with operations (num_ops) and no duration: each takes "
        f"{takes}; --system FILE with roofline-enabled 1 prices them"
    )
    return [Diagnostic("note", "no-durations", message, traces.path)]


def words_of(executed: Executed) -> str:
    """How the set was run, for the header."""
    if executed.rules == ASTRA_SIM_2:
        return "ASTRA-sim 2.x's rules, message by message"
    return "wltui's rules: a collective starts when all its members have come"
