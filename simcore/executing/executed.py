"""A set of execution traces that has run, and what its nodes say whatever rules they ran by."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

from simcore.chakra.nodes import (
    RECV,
    SEND,
    Kinds,
    Nodes,
    integer,
)
from simcore.chakra.opening import TraceSet
from simcore.cluster import Cluster
from simcore.diagnostics import Diagnostic
from simcore.executing.astra2 import System
from simcore.messages.network import LinkUse
from simcore.names import ASTRA_SIM_2
from simcore.parameters import Parameters
from simcore.records import Struct

WLTUI = "wltui"


class Executed(Struct, frozen=True, dict=True):
    """A set of execution traces that has run.

    nodes: of each rank by ascending id. start, begin, end: ns of each node; begin: when what it waited for
    was there. order: (rank, place) by ends, each behind what it waited for. lanes: what a node held: a slot
    or a stream, 255 nothing. meetings: of each node its collective, -1 for none; before: see `build_graph`.
    sends: of each receive its send, `rank << 32 | place`. groups: of each collective (name, its ranks).
    ranks: (rank, end, exposed) ns. links: what each link carried, under `--network links`.
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


def group_name(attributes: Mapping[str, object]) -> str:
    value = attributes.get("pg_name")
    name = getattr(value, "value", "")
    return name if isinstance(name, str) and name != "0" else ""


def pair_messages(
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


def words_of(executed: Executed) -> str:
    """How the set was run, for the header."""
    if executed.rules == ASTRA_SIM_2:
        return "ASTRA-sim 2.x's rules, message by message"
    return "wltui's rules: a collective starts when all its members have come"
