"""What is said of a node of execution traces: what, when, its attributes, what it waited for and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.chakra.nodes import RECV
from simcore.diagnostics import in_short
from simcore.executing.path_words import MESSAGE, taken_by
from simcore.ranks import RankSet
from simcore.trace.findings import Dependency
from simcore.trace.graph import BEFORE, BUSY, RECEIVED
from simcore.trace.lane_spans import SpanSaid, slack_words
from simcore.trace.lanes import Lanes, SpanWords
from simcore.trace.reasons import Facts, reason_words
from simcore.units import byte_size, duration, plural

if TYPE_CHECKING:
    from simcore.executing.ran import RanTraces

# What no node is: time in which a rank has nothing to do.
NOTHING = -1
_SHOWN = 12
_KNOWN = ("comm_size", "tensor_size", "comm_src", "comm_dst", "comm_tag", "comm_type", "pg_name", "is_cpu_op")
# Of what has a line of its own: it is not named again.
_NEEDS, _NAMES = Facts(BEFORE, is_needed=True), Facts(BEFORE, is_named=True)


class TraceSpanWords(SpanWords):
    """Of execution traces."""

    def __init__(self, results: RanTraces, lanes: Lanes) -> None:
        super().__init__(lanes)
        self._results = results

    def said(self, number: int, stream: str | None, index: int | None, ranks: RankSet) -> SpanSaid:
        place = NOTHING if index is None else self.op(number, stream, index)
        if place == NOTHING:
            return SpanSaid("", (f"rank {number}",))
        results, executed = self._results, self._results.executed
        start, begin, end = (
            column[number][place] for column in (executed.start, executed.begin, executed.end)
        )
        node = executed.nodes[number].id[place]
        what = f"{self.name(number, place)} ({results.what(number, place)})"
        said = facts_of(results, number, place)
        if begin > start:
            behind = "for its message" if results.type_of(number, place) == RECV else "for the last member"
            said.insert(0, f"after waiting {duration(begin - start)} {behind}")
        whose = (f"rank {number}, node {node}", f"rank {number}")
        return SpanSaid(what, whose, self.times(start, end), duration(end - begin), more=", ".join(said))

    def aside(self, number: int, stream: str | None, index: int, wide: bool, rank: int | None) -> str:
        place = self.op(number, stream, index)
        if place == NOTHING:
            return ""
        return slack_words(self._results.slack_of(number, place))

    def all_of(self, number: int, stream: str | None, index: int, rank: int | None) -> list[tuple[str, str]]:
        place = self.op(number, stream, index)
        if place == NOTHING:
            return [("nothing", "nothing of the rank has begun and not ended")]
        results, executed = self._results, self._results.executed
        start, begin, end = (
            column[number][place] for column in (executed.start, executed.begin, executed.end)
        )
        rows = [
            ("node", f"{executed.nodes[number].id[place]}, {results.what(number, place)}"),
            ("name", in_short(results.name_of(number, place), 80)),
            ("on", f"rank {number}, {in_short(results.stream_of(number, place), 40)}"),
            ("runs", self.times_and_length(start, end)),
        ]
        if begin > start:
            rows.append(("waits", f"{duration(begin - start)} until it begins"))
        rows.append(("slack", slack_words(results.slack_of(number, place))))
        rows += [("says", fact) for fact in facts_of(results, number, place)]
        rows += self.dependency_rows(number, stream, index, rank)
        nodes = executed.nodes[number]
        rows.append(("waits for", plural(len(nodes.data[place]) + len(nodes.ctrl[place]), "node")))
        return rows

    # -- along what waits for what -------------------------------------------------------

    def dependencies(
        self, number: int, stream: str | None, index: int, rank: int | None, direction: int
    ) -> list[Dependency]:
        place, executed = self.op(number, stream, index), self._results.executed
        if place == NOTHING:
            return []
        found = self._causes(number, place) if direction < 0 else self._effects(number, place)
        return [
            Dependency(who, at, who, reason_words(facts), executed.start[who][at], executed.end[who][at])
            for who, at, facts in found
        ]

    def name(self, number: int, span: int) -> str:
        return in_short(self._results.name_of(number, span), 40)

    def shown_in(self, stream: str | None, of: Dependency) -> str | None:
        return None if stream is None else self._results.stream_of(of.number, of.span)

    def _causes(self, rank: int, place: int) -> list[tuple[int, int, Facts]]:
        """(rank, place, facts) of what a node waited for: who came last, then what ended last."""
        results, executed = self._results, self._results.executed
        nodes = executed.nodes[rank]
        causes = [(rank, parent, _NEEDS) for parent in nodes.data[place]]
        causes += [(rank, parent, _NAMES) for parent in nodes.ctrl[place]]
        sent = executed.send_of(rank, place)
        if sent is not None:
            causes.append((*sent, _received(sent[0])))
        late = results.last_member(rank, place)
        if late is not None and late[0] != rank:
            causes.append((*late, Facts(BEFORE, True, late[0])))
        lane, begun = executed.lanes[rank][place], executed.start[rank][place]
        if lane != 255 and begun:
            busy = Facts(BUSY, where=taken_by(executed, rank, place), what="it")
            ends = executed.end[rank]
            parents = {*nodes.data[place], *nodes.ctrl[place]}
            causes += [
                (rank, at, busy)
                for at, held in enumerate(executed.lanes[rank])
                if held == lane and at != place and ends[at] == begun and at not in parents
            ]
        return sorted(causes, key=lambda item: (not item[2].is_late, -executed.end[item[0]][item[1]]))

    def _effects(self, rank: int, place: int) -> list[tuple[int, int, Facts]]:
        executed = self._results.executed
        nodes = executed.nodes[rank]
        effects = [
            (rank, child, _NEEDS if place in nodes.data[child] else _NAMES)
            for child in nodes.children_of(place)
        ]
        effects += [(*receive, _received(rank)) for receive in executed.receives_of(rank, place)]
        return sorted(effects, key=lambda item: executed.start[item[0]][item[1]])


def _received(rank: int) -> Facts:
    return Facts(RECEIVED, rank=rank, sent=MESSAGE)


def facts_of(results: RanTraces, rank: int, place: int) -> list[str]:
    """What the trace says of a node: its group, size, partner, other attributes."""
    values = results.attributes_of(rank, place)
    said = []
    if word := results.group_word(rank, place):
        said.append(in_short(word, 40))
    size = values.get("comm_size", values.get("tensor_size"))
    if isinstance(size, int):
        said.append(byte_size(size))
    for key, words in (("comm_src", "from rank"), ("comm_dst", "to rank"), ("comm_tag", "tag")):
        if key in values and not (key != "comm_tag" and values[key] == rank):
            said.append(f"{words} {in_short(str(values[key]), 20)}")
    others = [key for key in values if key not in _KNOWN]
    said += [f"{in_short(key, 24)} {in_short(str(values[key]), 40)}" for key in others[:_SHOWN]]
    return said + ([f"and {len(others) - _SHOWN} attributes more"] if len(others) > _SHOWN else [])
