"""Execution traces that have run, and all that is computed of them, each figure once."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from simcore.chakra.nodes import (
    COLL,
    COMP,
    RECV,
    SEND,
    Kinds,
    integer,
)  # fmt: skip
from simcore.diagnostics import in_short
from simcore.executing.columns import (
    columns_of,
    group_word,
    node_kind,
    node_name,
    node_stream,
    pattern_of,
)
from simcore.executing.executed import Executed
from simcore.executing.graph import NONE, TraceGraph, build_graph
from simcore.executing.trace import ACCOUNTS, account_of, executed_trace, phase_of_node
from simcore.parameters import Parameters
from simcore.ranks import RankSet
from simcore.records import NamedTuple, Struct
from simcore.run.accounts import Accounts
from simcore.run.figures import GroupUse, NameUse
from simcore.run.findings import Leg, LegKey, stretches
from simcore.run.graph import ARRIVED, RECEIVED, ChainStep
from simcore.run.track import Track
from simcore.trace.accounts import accounts_of
from simcore.trace.spans import Trace
from simcore.trace.tables import Table, counted, counted_on
from simcore.units import percent, plural

if TYPE_CHECKING:
    from simcore.messages.network import LinkHeat, LinkUse


Figure = TypeVar("Figure")

# Cells of the name of what a node waited for.
_NAME_CELLS = 40
# By slot, as `astra2.SLOT_WORDS`.
_SLOTS = ("the CPU", "GPU compute", "communication")


class NodeSegment(NamedTuple):
    """A part of the critical path: a node of a rank, and why it could not start earlier."""

    start: int
    end: int
    rank: int
    place: int
    kind: str
    reason: str


class RanTraces(Struct, frozen=True, dict=True):
    """A set of execution traces that has run: screen and report take figures from here."""

    executed: Executed

    @property
    def kinds(self) -> Kinds:
        """The attributes of nodes."""
        return self.executed.kinds

    @property
    def parameters(self) -> Parameters:
        """Those that ask for this run."""
        return self.executed.parameters

    @property
    def held_ops(self) -> int:
        """Nodes that it holds in memory."""
        return self.executed.traces.count

    @property
    def is_astra(self) -> bool:
        """Whether it ran by ASTRA-sim's rules."""
        return self.executed.is_astra

    @property
    def is_in_cycles(self) -> bool:
        """Whether ASTRA-sim prints its times, as cycles of 1 ns: not those with other durations of parts."""
        return self.is_astra and self.executed.graph is None

    @property
    def step_time_ns(self) -> int:
        """When the last rank ends, ns."""
        return self.executed.step_time_ns

    @property
    def link_heat(self) -> LinkHeat | None:
        """How busy all links are over the run, of a network that has links."""
        return self.executed.link_heat

    @property
    def links(self) -> list[LinkUse] | None:
        """What each link carried, under `--network links`."""
        return self.executed.links

    @property
    def ranks(self) -> range:
        """All ranks."""
        return range(len(self.executed.nodes))

    def type_of(self, rank: int, place: int) -> int:
        """The type of a node."""
        nodes = self.executed.nodes[rank]
        return nodes.columns.type[nodes.row[place]]

    def name_of(self, rank: int, place: int) -> str:
        """The name of a node, raw text of the file; its type and id where it has none."""
        return node_name(self.executed, rank, place)

    def attributes_of(self, rank: int, place: int) -> dict[str, object]:
        """The attributes of a node by name, with their values."""
        nodes = self.executed.nodes[rank]
        attributes = self.kinds.attributes(nodes.columns.attributes[nodes.row[place]])
        return {name: value.value for name, value in attributes.items()}

    def what(self, rank: int, place: int) -> str:
        """What a node is in a word: `ALL_REDUCE`, `COMP`, `COMM_SEND`."""
        return node_kind(self.executed, rank, place)

    def group_of(self, rank: int, place: int) -> tuple[str, tuple[int, ...]] | None:
        """(name, ranks) of the group of a collective, None for any other node."""
        return self.executed.group_of(rank, place)

    def group_word(self, rank: int, place: int) -> str:
        """`all ranks`, `group 3`; "" for what is no collective."""
        return group_word(self.executed, rank, place) if self.type_of(rank, place) == COLL else ""

    def stream_of(self, rank: int, place: int) -> str:
        """The lane of a node: compute, cpu, memory, messages, or that of its group."""
        return node_stream(self.executed, rank, place)

    def last_member(self, rank: int, place: int) -> tuple[int, int] | None:
        """(rank, place) of the member that came last to a node's collective, the lowest rank of several."""
        number = self.executed.meetings[rank][place]
        group = self.group_of(rank, place)
        if group is None:
            return None
        executed = self.executed
        begun = executed.begin[rank][place]
        for who in sorted(group[1]):
            at = self._place_in[executed.units.of[who]].get(number, NONE)
            if at != NONE and executed.start[who][at] == begun:
                return who, at
        return None

    @cached_property
    def tracks(self) -> tuple[Track, ...]:
        """A track for each rank."""
        return tuple(Track(rank, None, RankSet.of([rank])) for rank in self.ranks)

    @cached_property
    def accounts(self) -> list[Accounts]:
        """Of each rank; each sums to the step time."""
        return self.executed.units.spread(accounts_of(self.trace))

    @cached_property
    def trace(self) -> Trace:
        """What ran on each class of ranks that run alike."""
        return executed_trace(self.executed, columns_of(self.executed))

    def compute_accounts(self, cancelled: Callable[[], bool]) -> list[Accounts]:
        """The accounts, computed now unless they are known."""
        return self.accounts

    def sum_ns(self, ranks: Iterable[int]) -> list[int]:
        """ns by index into ACCOUNTS of some ranks together."""
        return [sum(ns) for ns in zip(*(self.accounts[rank].total_ns for rank in ranks), strict=True)]

    @cached_property
    def mean_ns(self) -> dict[str, int]:
        """Each account, the mean of the ranks, ns, rounded."""
        count = len(self.ranks)
        return {name: round(ns / count) for name, ns in zip(ACCOUNTS, self.sum_ns(self.ranks), strict=True)}

    @cached_property
    def mean_busy_ns(self) -> int:
        """Compute of a rank, the mean of the ranks, ns."""
        return sum(ns for name, ns in self.mean_ns.items() if name.startswith("compute "))

    @cached_property
    def graph(self) -> TraceGraph:
        """Who waits for whom."""
        executed = self.executed
        if executed.graph is not None:
            return executed.graph
        first = executed.units.first
        return build_graph(
            [executed.nodes[rank] for rank in first], [executed.start[rank] for rank in first],
            [executed.end[rank] for rank in first], executed.order, [executed.lanes[rank] for rank in first],
            [executed.meetings[rank] for rank in first], executed.sends, executed.before,
        )  # fmt: skip

    @cached_property
    def _flat(self) -> array[int]:
        return self.graph.graph.flat([self.graph.durations])

    @cached_property
    def slack_ns(self) -> list[array[int]]:
        """How much later each node of each rank may end before the step is longer, ns, in this order."""
        built = self.graph
        late = built.graph.latest(self._flat, max(built.ends))
        return self.executed.units.spread([
            array("q", (late[node] - built.ends[node] if node > 0 else 0 for node in nodes))
            for nodes in built.over
        ])  # fmt: skip

    @cached_property
    def critical_path(self) -> list[NodeSegment]:
        """What the step time is made of, 0 to the end, in time order."""
        built, executed = self.graph, self.executed
        step = self.step_time_ns
        if not step:
            return []
        ends = executed.end
        rank = next(number for number, end, _ in executed.ranks if end == step)
        place = max(range(len(ends[rank])), key=lambda at: (ends[rank][at], -at))
        node_segments: list[NodeSegment] = []
        until = step
        unit = executed.units.of[rank]
        for walked in built.graph.path(built.over[unit][place], built.ends, unit):
            if walked.start >= until:
                continue
            unit, where = built.place_of(walked.node, walked.track)
            unit, where = self._member(walked, unit, where)
            who = executed.units.first[unit]
            # On the path a collective is itself, beside compute too: what is exposed of it accounts say.
            kind = ACCOUNTS[account_of(executed, who, where)].removeprefix("exposed ")
            node_segments.append(NodeSegment(walked.start, until, who, where, kind, self._reason(walked)))
            until = walked.start
        node_segments.reverse()
        return node_segments

    def _member(self, walked: ChainStep, unit: int, place: int) -> tuple[int, int]:
        """Of a collective the node of the class of ranks that the path goes through."""
        number = self.executed.meetings[self.executed.units.first[unit]][place]
        if number == NONE or walked.track == unit:
            return unit, place
        return walked.track, self._place_in[walked.track].get(number, place)

    @cached_property
    def _place_in(self) -> list[dict[int, int]]:
        """Of each class of ranks the node that each collective is there."""
        executed = self.executed
        return [
            {number: place for place, number in enumerate(executed.meetings[rank]) if number != NONE}
            for rank in executed.units.first
        ]

    def _reason(self, walked: ChainStep) -> str:
        cause = walked.cause
        if cause is None:
            return "the step begins"
        first = self.executed.units.first
        unit, place = self.graph.place_of(cause.node, cause.track)
        if cause.why == RECEIVED:
            return f"waiting for the message from rank {first[unit]}"
        if cause.why == ARRIVED or cause.track != walked.track:
            return f"rank {first[cause.track]} came last"
        mine = self.graph.place_of(walked.first, walked.track)
        return self.why_after(first[mine[0]], mine[1], first[unit], place)

    def why_after(self, rank: int, place: int, other: int, before: int) -> str:
        """Why a node came after another of its rank: its data, a control dependency, or what both run on.

        The name in it is safe, and cut.
        """
        nodes = self.executed.nodes[rank]
        name = in_short(self.name_of(other, before), _NAME_CELLS)
        if rank == other and before in nodes.data[place]:
            return f"waiting for data from {name}"
        if rank == other and before in nodes.ctrl[place]:
            return f"waiting for {name}, a control dependency"
        return f"{self.taken_by(rank, place)} is busy with {name}"

    def taken_by(self, rank: int, place: int) -> str:
        """What a node runs on, one at a time: under ASTRA-sim's rules one of three, else a stream."""
        held = self.executed.lanes[rank][place]
        return "its stream" if not self.is_astra else _SLOTS[held] if held < len(_SLOTS) else "its rank"

    @cached_property
    def patterns(self) -> Table:
        """What nodes take by name pattern and kind; its tracks are the classes of ranks that run alike."""
        accounts, slacks = self._of_units(self.accounts), lambda: self._of_units(self.slack_ns)
        return Table(self.trace, accounts, self.trace.column("pattern"), self._path_by_node, slacks)

    def _of_units(self, by_rank: Sequence[Figure]) -> list[Figure]:
        return [by_rank[rank] for rank in self.executed.units.first]

    def _path_by_node(self) -> Iterator[tuple[int, int, int]]:
        units = self.executed.units.of
        return ((units[part.rank], part.place, part.end - part.start) for part in self.critical_path)

    @cached_property
    def name_table(self) -> list[NameUse]:
        """What nodes take by name pattern, all ranks together, the most first."""
        table = self.patterns
        uses = []
        for label, (nodes, own_ns, waits_ns, unit, place) in counted(self.trace, table.column).items():
            (name, what), use = table.column.labels[label], table.use([label])
            uses.append(NameUse(
                name, what, nodes, own_ns, waits_ns, use.critical_ns, use.slack_ns or 0,
                self.executed.units.first[unit], place,
            ))  # fmt: skip
        return sorted(uses, key=lambda use: (-use.own_ns, use.name, use.what))

    @cached_property
    def group_table(self) -> list[GroupUse]:
        """What the collectives of each group take, the most first."""
        units = self.executed.units
        of_units = [self._groups_of(unit) for unit in range(len(units.first))]
        sums: dict[tuple[str, tuple[int, ...]], list[int]] = {}
        for rank, unit in enumerate(units.of):
            for place, count, size, own_ns, waits_ns in of_units[unit]:
                group = self.executed.group_of(rank, place)
                assert group is not None
                # As many collectives as its first rank has.
                row = sums.setdefault(group, [count, size, 0, 0])
                row[2] += own_ns
                row[3] += waits_ns
        table = [
            GroupUse(name or "all ranks", RankSet.of(sorted(ranks)).text(), *row)
            for (name, ranks), row in sums.items()
        ]
        return sorted(table, key=lambda use: (-use.own_ns, use.group))

    def _groups_of(self, unit: int) -> list[list[int]]:
        """[a place, collectives, bytes, own ns, waits ns] of each group that a class of ranks is in."""
        column = self.trace.column("group")
        of_groups: dict[str, list[int]] = {}
        for label, (count, own_ns, waits_ns, _, place) in counted_on(self.trace, unit, column).items():
            name, size = column.labels[label]
            row = of_groups.setdefault(name, [place, 0, 0, 0, 0])
            for at, more in enumerate((count, count * size, own_ns, waits_ns), start=1):
                row[at] += more
        return [*of_groups.values()]

    def at(self, rank: int, time_ns: int) -> int:
        """The last node of a rank that began at or before a time, -1 for none."""
        starts = self._by_start[rank][0]
        index = bisect_right(starts, time_ns) - 1
        return -1 if index < 0 else self._by_start[rank][1][index]

    @cached_property
    def _by_start(self) -> list[tuple[list[int], list[int]]]:
        by_start = []
        for start in self.executed.start:
            places = sorted((at for at in range(len(start)) if start[at] >= 0), key=start.__getitem__)
            by_start.append(([start[at] for at in places], places))
        return by_start

    def share(self, ns: int) -> str:
        """A share of the step in words."""
        return f"{percent(ns, self.step_time_ns)} %" if self.step_time_ns else "-"

    def counted(self) -> str:
        """Ranks and nodes in words."""
        return f"{plural(len(self.ranks), 'rank')}, {plural(self.held_ops, 'node')}"


# A micro-batch in the name of a node: STAGE's `mb0.transformer.1.mha.q@1_COMP`, wltui's `mlp_norm fwd mb0`.
_MICROBATCH = re.compile(r"(?:^|[ .])mb(\d{1,9})(?:$|[ .])")
# What SimAI's files write for compute that is not modelled, ns; others write no duration, which is 0 or 1.
_OF_SIMAI = 1000


def legs(results: RanTraces) -> list[Leg]:
    """The legs of the critical path, in the order of time: they cover 0..step time.

    what: `forward`, `backward`, `optimizer` or `pp` of a micro-batch where the names of nodes tell one, as on
    simulated runs; else the name of the nodes with `#` for each number, raw text of the file.
    """
    path = results.critical_path
    path_legs: list[Leg] = []
    for stretch in stretches(
        (key := _key(results, part), _is_placeholder(results, part, key)) for part in path
    ):
        rank, what, microbatch = stretch.key
        first, last = path[stretch.first], path[stretch.last - 1]
        path_legs.append(
            Leg(
                stretch.first,
                stretch.last,
                first.start,
                last.end,
                rank,
                rank,
                None,
                what,
                microbatch,
                first.reason,
            )
        )
    return path_legs


def _key(results: RanTraces, part: NodeSegment) -> LegKey:
    name = results.name_of(part.rank, part.place)
    told = _MICROBATCH.search(name)
    kind = results.type_of(part.rank, part.place)
    if told is None:
        return part.rank, pattern_of(name), -1
    if kind in (SEND, RECV):
        return part.rank, "pp", int(told[1])
    if part.kind == "host":
        return part.rank, part.kind, int(told[1])
    phase = phase_of_node(results.executed, part.rank, part.place)
    return part.rank, ACCOUNTS[phase].removeprefix("compute "), int(told[1])


def _is_placeholder(results: RanTraces, part: NodeSegment, key: LegKey) -> bool:
    """Whether a segment is compute outside of micro-batches of which the traces know nothing."""
    executed, rank, place = results.executed, part.rank, part.place
    if key[2] >= 0 or results.type_of(rank, place) != COMP:
        return False
    ns = executed.end[rank][place] - executed.start[rank][place]
    return ns <= 1 or (ns == _OF_SIMAI and integer(executed.attributes(rank, place).get("wltui_ns")) == ns)


def path_parts(results: RanTraces, by: str) -> Iterator[tuple[str, int]]:
    """(part, ns) of each segment of the critical path, in the order of time.

    by: `kind` (as accounts say it), `op` (nodes by name, `#` for each number), `group` or `rank`.
    """
    for node_segment in results.critical_path:
        if by == "kind":
            part = node_segment.kind
        elif by == "rank":
            part = f"rank {node_segment.rank}"
        elif by == "group":
            part = results.stream_of(node_segment.rank, node_segment.place)
        else:
            part = pattern_of(results.name_of(node_segment.rank, node_segment.place))
        yield part, node_segment.end - node_segment.start
