"""The graph of an executed set of traces: a track is a rank, a node of it a node of a trace.

What waits for what: a node for its parents, and for what held its slot or stream before; a collective for its
last member; a receive for its message. Nodes are added in the order in which they ended.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from simcore.chakra.nodes import Nodes
from simcore.trace.graph import BUSY, JOINS, RECEIVED, START, Graph

NONE = -1
# What a duration of the graph belongs to.
OWN, COLLECTIVE, MESSAGE, GAP = range(4)


class ExecutionGraph:
    """The graph of a run, and the rank and node of each of its nodes."""

    def __init__(self, nodes: Sequence[Nodes]) -> None:
        self.nodes = nodes
        self.graph = Graph(len(nodes), self.ranks_of)
        # For each rank and index the node at which it is over.
        self.end_nodes = [array("i", (NONE,)) * len(node) for node in nodes]
        # The one at which it has waited for what comes before it, but for its message and its collective's
        # other members.
        self.ready_nodes = [array("i", (NONE,)) * len(node) for node in nodes]
        # Those of the nodes, ns, with ids from 1 on, and what each belongs to: OWN to GAP.
        self.durations: list[int] = []
        self.kinds = bytearray()
        # (rank, index) of each duration, for a collective its first member's.
        self.of: list[tuple[int, int]] = []
        # The members of the duration of a collective.
        self.members: dict[int, tuple[int, ...]] = {}
        self.ends: list[int] = [0]
        # For each rank the node at which all of it is over.
        self.last: list[int] = []

    def ranks_of(self, node: int) -> Sequence[int]:
        """Returns the ranks that a node, not a join, is on."""
        duration = self.graph.duration[node - 1]
        return self.members.get(duration) or (self.of[duration - 1][0],)

    def add(
        self, ns: int, kind: int, of: tuple[int, int], first: int, second: int = START, why: int = BUSY
    ) -> int:
        """Adds and returns a node that takes `ns`."""
        self.durations.append(ns)
        self.kinds.append(kind)
        self.of.append(of)
        node = self.graph.add(len(self.durations), first, second, why)
        self.ends.append(max(self.ends[first], self.ends[second]) + ns)
        return node

    def join(self, rank: int, now: int, other: int, why: int) -> int:
        """Returns the node at which a rank has also waited for `other`."""
        count = len(self.graph)
        node = self.graph.add_join(rank, now, other, why)
        if len(self.graph) > count:
            self.ends.append(max(self.ends[now], self.ends[other]))
        return node


def build_graph(
    nodes: Sequence[Nodes],
    start: Sequence[array[int]],
    end: Sequence[array[int]],
    order: Sequence[tuple[int, int]],
    lanes: Sequence[bytearray],
    meetings: Sequence[array[int]],
    messages: Sequence[array[int]],
    before: Sequence[int] | None,
) -> ExecutionGraph:
    """Returns the graph of a run that has times.

    order: (rank, index) by their ends. lanes: for each node what it held, 255 for nothing. meetings: for each
    node its collective, -1 for none. messages: for each receive the rank and index of its send in one number
    (`rank << 32 | index`), -1 for all others. before: for each collective the one before it in its group, -1
    for none; None where the members of a collective end by themselves.
    """
    built = ExecutionGraph(nodes)
    last: list[dict[int, int]] = [{} for _ in nodes]
    # The nodes at which members came to a collective, by the collective: made when its first member ends.
    members: dict[int, list[tuple[int, int]]] = {}
    for rank, column in enumerate(meetings):
        for index, meeting in enumerate(column):
            if meeting != NONE and start[rank][index] >= 0:
                members.setdefault(meeting, []).append((rank, index))
    met: dict[int, int] = {}
    common: dict[int, int] = {}
    over, ends = built.end_nodes, built.ends

    def arrival(rank: int, index: int) -> int:
        """Returns the node at which a rank has waited for all that a node of it waits for."""
        rank_nodes = nodes[rank]
        lane = lanes[rank][index]
        now = last[rank].get(lane, START) if lane != 255 else START
        if ends[now] > start[rank][index]:
            now = START  # it held the lane at the same time
        for parent in rank_nodes.data[index]:
            now = _behind(built, rank, now, over[rank][parent])
        for parent in rank_nodes.ctrl[index]:
            now = _behind(built, rank, now, over[rank][parent])
        late = start[rank][index] - ends[now]
        if late > 0:
            # No cause is known: ASTRA-sim walks the free nodes only with the next event.
            now = built.add(late, GAP, (rank, index), now)
        built.ready_nodes[rank][index] = now
        return now

    for rank, index in order:
        meeting = meetings[rank][index]
        begin, finish = start[rank][index], end[rank][index]
        if meeting != NONE:
            if meeting not in met:
                came = [(who, arrival(who, at)) for who, at in sorted(members[meeting])]
                met[meeting] = built.graph.add_rendezvous(came)
                while len(ends) <= len(built.graph):
                    node = len(ends)
                    graph = built.graph
                    ends.append(max(ends[graph.first[node - 1]], ends[graph.second[node - 1]]))
            at = met[meeting]
            if before is None:
                if finish < ends[at]:
                    node = built.add(finish - begin, COLLECTIVE, (rank, index), arrival(rank, index))
                else:
                    node = built.add(finish - ends[at], COLLECTIVE, (rank, index), at)
            else:
                if meeting not in common:
                    earlier = common.get(before[meeting], START)
                    ns = finish - max(ends[at], ends[earlier])
                    common[meeting] = built.add(ns, COLLECTIVE, (rank, index), at, earlier)
                    built.members[len(built.durations)] = tuple(who for who, _ in sorted(members[meeting]))
                node = common[meeting]
        else:
            now = arrival(rank, index)
            message = messages[rank][index]
            if message != NONE:
                send_node = over[message >> 32][message & 0xFFFFFFFF]
                node = built.join(rank, now, send_node, RECEIVED) if send_node > 0 else now
                if node == START or finish > ends[node]:
                    node = built.add(max(finish - ends[node], 0), GAP, (rank, index), node)
            else:
                node = built.add(finish - begin, OWN, (rank, index), now)
        over[rank][index] = node
        if lanes[rank][index] != 255:
            last[rank][lanes[rank][index]] = node
    _join_all(built)
    return built


def _join_all(built: ExecutionGraph) -> None:
    """Adds to each rank the node at which all is over that no other node of it waits for."""
    for rank, (nodes, over) in enumerate(zip(built.nodes, built.end_nodes, strict=True)):
        now = START
        for index, node in enumerate(over):
            if node != NONE and all(over[child] == NONE for child in nodes.children_of(index)):
                now = _behind(built, rank, now, node)
        built.last.append(now)


def _behind(graph: ExecutionGraph, rank: int, now: int, other: int) -> int:
    """Returns the node at which a rank that was at `now` has also waited for `other`; what is earlier adds no
    node.
    """
    if now == START or other in (now, START):
        return other if now == START else now
    return graph.join(rank, now, other, JOINS)
