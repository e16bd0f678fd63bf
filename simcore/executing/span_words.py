"""The texts of a node of execution traces: kind, times, attributes, what it waited for and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.chakra.nodes import RECV
from simcore.diagnostics import printable_within
from simcore.executing.path_words import MESSAGE, describe_resource
from simcore.ranks import RankSet
from simcore.trace.findings import Dependency
from simcore.trace.graph import BEFORE, BUSY, RECEIVED
from simcore.trace.lane_spans import SpanSummary, slack_words
from simcore.trace.lanes import Lanes, SpanWords
from simcore.trace.reasons import Facts, reason_words
from simcore.units import byte_size, duration, plural

if TYPE_CHECKING:
    from simcore.executing.execution_analysis import ExecutionAnalysis

# No node: time in which a rank has nothing to do.
NOTHING = -1
_MOST_ATTRIBUTES = 12
_FORMATTED_KEYS = (
    "comm_size",
    "tensor_size",
    "comm_src",
    "comm_dst",
    "comm_tag",
    "comm_type",
    "pg_name",
    "is_cpu_op",
)
# Facts of causes that have a line of their own, so that their names are not repeated.
_NEEDS, _NAMES = Facts(BEFORE, is_needed=True), Facts(BEFORE, is_named=True)


class TraceSpanWords(SpanWords):
    """The texts of nodes of execution traces."""

    def __init__(self, results: ExecutionAnalysis, lanes: Lanes) -> None:
        super().__init__(lanes)
        self._results = results

    def summarize(self, track_id: int, stream: str | None, index: int | None, ranks: RankSet) -> SpanSummary:
        node_index = NOTHING if index is None else self.op(track_id, stream, index)
        if node_index == NOTHING:
            return SpanSummary("", (f"rank {track_id}",))
        results, executed = self._results, self._results.executed
        start, begin, end = (
            column[track_id][node_index] for column in (executed.start, executed.begin, executed.end)
        )
        node = executed.nodes[track_id].id[node_index]
        what = f"{self.span_name(track_id, node_index)} ({results.kind_word(track_id, node_index)})"
        facts = facts_of(results, track_id, node_index)
        if begin > start:
            behind = (
                "for its message" if results.type_of(track_id, node_index) == RECV else "for the last member"
            )
            facts.insert(0, f"after waiting {duration(begin - start)} {behind}")
        whose = (f"rank {track_id}, node {node}", f"rank {track_id}")
        return SpanSummary(
            what, whose, self.format_times(start, end), duration(end - begin), details=", ".join(facts)
        )

    def side_note(self, track_id: int, stream: str | None, index: int, wide: bool, rank: int | None) -> str:
        node_index = self.op(track_id, stream, index)
        if node_index == NOTHING:
            return ""
        return slack_words(self._results.slack_of(track_id, node_index))

    def detail_rows(
        self, track_id: int, stream: str | None, index: int, rank: int | None
    ) -> list[tuple[str, str]]:
        node_index = self.op(track_id, stream, index)
        if node_index == NOTHING:
            return [("nothing", "nothing of the rank has begun and not ended")]
        results, executed = self._results, self._results.executed
        start, begin, end = (
            column[track_id][node_index] for column in (executed.start, executed.begin, executed.end)
        )
        rows = [
            ("node", f"{executed.nodes[track_id].id[node_index]}, {results.kind_word(track_id, node_index)}"),
            ("name", printable_within(results.name_of(track_id, node_index), 80)),
            ("on", f"rank {track_id}, {printable_within(results.stream_of(track_id, node_index), 40)}"),
            ("runs", self.format_times_and_length(start, end)),
        ]
        if begin > start:
            rows.append(("waits", f"{duration(begin - start)} until it begins"))
        rows.append(("slack", slack_words(results.slack_of(track_id, node_index))))
        rows += [("says", fact) for fact in facts_of(results, track_id, node_index)]
        rows += self.dependency_rows(track_id, stream, index, rank)
        nodes = executed.nodes[track_id]
        rows.append(("waits for", plural(len(nodes.data[node_index]) + len(nodes.ctrl[node_index]), "node")))
        return rows

    # -- along what waits for what -------------------------------------------------------

    def dependencies(
        self, track_id: int, stream: str | None, index: int, rank: int | None, direction: int
    ) -> list[Dependency]:
        node_index, executed = self.op(track_id, stream, index), self._results.executed
        if node_index == NOTHING:
            return []
        neighbours = (
            self._causes(track_id, node_index) if direction < 0 else self._effects(track_id, node_index)
        )
        return [
            Dependency(who, at, who, reason_words(facts), executed.start[who][at], executed.end[who][at])
            for who, at, facts in neighbours
        ]

    def span_name(self, track_id: int, span: int) -> str:
        return printable_within(self._results.name_of(track_id, span), 40)

    def stream_showing(self, stream: str | None, of: Dependency) -> str | None:
        return None if stream is None else self._results.stream_of(of.track_id, of.span)

    def _causes(self, rank: int, index: int) -> list[tuple[int, int, Facts]]:
        """Returns (rank, index, facts) of what a node waited for: the last to come, then the last to end."""
        results, executed = self._results, self._results.executed
        nodes = executed.nodes[rank]
        causes = [(rank, parent, _NEEDS) for parent in nodes.data[index]]
        causes += [(rank, parent, _NAMES) for parent in nodes.ctrl[index]]
        send = executed.send_of(rank, index)
        if send is not None:
            causes.append((*send, _message_facts(send[0])))
        late = results.last_member(rank, index)
        if late is not None and late[0] != rank:
            causes.append((*late, Facts(BEFORE, True, late[0])))
        lane, start_ns = executed.lanes[rank][index], executed.start[rank][index]
        if lane != 255 and start_ns:
            busy = Facts(BUSY, where=describe_resource(executed, rank, index), what="it")
            ends = executed.end[rank]
            parents = {*nodes.data[index], *nodes.ctrl[index]}
            causes += [
                (rank, at, busy)
                for at, other_lane in enumerate(executed.lanes[rank])
                if other_lane == lane and at != index and ends[at] == start_ns and at not in parents
            ]
        return sorted(causes, key=lambda item: (not item[2].is_late, -executed.end[item[0]][item[1]]))

    def _effects(self, rank: int, index: int) -> list[tuple[int, int, Facts]]:
        executed = self._results.executed
        nodes = executed.nodes[rank]
        effects = [
            (rank, child, _NEEDS if index in nodes.data[child] else _NAMES)
            for child in nodes.children_of(index)
        ]
        effects += [(*receive, _message_facts(rank)) for receive in executed.receives_of(rank, index)]
        return sorted(effects, key=lambda item: executed.start[item[0]][item[1]])


def _message_facts(rank: int) -> Facts:
    return Facts(RECEIVED, rank=rank, payload=MESSAGE)


def facts_of(results: ExecutionAnalysis, rank: int, index: int) -> list[str]:
    """Returns what the trace states of a node: its group, size, partner, other attributes."""
    values = results.attributes_of(rank, index)
    facts = []
    if word := results.group_word(rank, index):
        facts.append(printable_within(word, 40))
    size = values.get("comm_size", values.get("tensor_size"))
    if isinstance(size, int):
        facts.append(byte_size(size))
    for key, words in (("comm_src", "from rank"), ("comm_dst", "to rank"), ("comm_tag", "tag")):
        if key in values and not (key != "comm_tag" and values[key] == rank):
            facts.append(f"{words} {printable_within(str(values[key]), 20)}")
    others = [key for key in values if key not in _FORMATTED_KEYS]
    facts += [
        f"{printable_within(key, 24)} {printable_within(str(values[key]), 40)}"
        for key in others[:_MOST_ATTRIBUTES]
    ]
    return facts + (
        [f"and {len(others) - _MOST_ATTRIBUTES} attributes more"] if len(others) > _MOST_ATTRIBUTES else []
    )
