"""What one moves by in execution traces that have run: waits, dependencies with their reasons, the critical
path.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.analysis.ranges import Ranges
from simcore.executing.accounts import ACCOUNTS, BUBBLE, IDLE, WAIT
from simcore.executing.results import TraceResults
from simcore.units import duration, plural
from tui.frame import cells
from tui.timeline.axis import TIME
from tui.timeline.moves import Figure, Figures, Stretch
from tui.timeline.query import Query
from tui.timeline.spans import LaneSource, SpanLane
from tui.timeline.trace_lanes import NOTHING, facts_of
from tui.timeline.walking import Step

if TYPE_CHECKING:
    from tui.timeline.critical import PathLanes

_ROLES = {"forward": "fwd", "backward": "bwd", "optimizer": "opt", "expert": "ep", "expert dp": "dp_ep"}


def _figure(account: str) -> Figure:
    kind, _, category = account.partition(" ")
    word = category or kind
    role = _ROLES.get(word, word)
    return Figure(account.removeprefix("compute "), word, "" if role == "idle" else role, 0)


_FIGURES = tuple(map(_figure, ACCOUNTS))


@dataclass
class TraceMoves:
    """Over execution traces; number: a rank."""

    results: TraceResults
    _waits: dict[int, dict[int, int]] = field(default_factory=dict)

    def stage_of(self, number: int) -> int | None:
        return None

    def problem(self, query: Query) -> str:
        if query.rank is not None and not 0 <= query.rank < len(self.results.ranks):
            return f"rank {query.rank} is not in this run"
        if query.stage is not None:
            return "execution traces do not tell stages"
        return "execution traces do not tell micro-batches" if query.microbatch is not None else ""

    def names(self) -> Collection[str]:
        return {use.name for use in self.results.name_table}

    def rank_words(self, rank: int) -> str:
        return f"rank {rank}"

    def passes(self, number: int) -> Sequence[Stretch]:
        return []

    def waits(self, number: int) -> Sequence[int]:
        return list(self._waits_of(number))

    def all_waits(self) -> Sequence[tuple[int, int]]:
        found = []
        for number in self.results.ranks:
            kinds = self.results.accounts[number].account
            found += [(kinds[at] == IDLE, -ns, number, at) for at, ns in self._waits_of(number).items()]
        return [(number, at) for _, _, number, at in sorted(found)]

    def waited_ns(self, number: int, index: int) -> int:
        return self._waits_of(number).get(index, 0)

    def _waits_of(self, number: int) -> dict[int, int]:
        if number not in self._waits:
            one = self.results.accounts[number]
            found = [
                (kind == IDLE, one.edge[at] - one.edge[at + 1], at)
                for at, kind in enumerate(one.account)
                if kind in (WAIT, BUBBLE, IDLE)
            ]
            self._waits[number] = {at: -ns for _, ns, at in sorted(found)}
        return self._waits[number]

    @property
    def order(self) -> Sequence[str]:
        return [one.words for one in _FIGURES]

    @cached_property
    def _ranges(self) -> Ranges:
        accounts = self.results.accounts
        return Ranges(
            lambda rank: (accounts[rank].edge, accounts[rank].account), [1] * len(accounts), len(ACCOUNTS)
        )

    def figures(self, number: int, first_ns: int, last_ns: int) -> Figures:
        return self._figures(self._ranges.of_class(number, first_ns, last_ns), last_ns - first_ns, 1)

    def all_figures(self, first_ns: int, last_ns: int) -> Figures:
        ranks = len(self.results.ranks)
        return self._figures(self._ranges.of_all(first_ns, last_ns), (last_ns - first_ns) * ranks, ranks)

    def _figures(self, found: Sequence[int], room_ns: int, ranks: int) -> Figures:
        pairs = zip(_FIGURES, found, strict=True)
        return Figures(tuple(one._replace(ns=ns) for one, ns in pairs if ns), room_ns, ranks)

    def longest(self, number: int, first_ns: int, last_ns: int) -> tuple[int, Figure | None]:
        found, account = self._ranges.longest(number, first_ns, last_ns)
        return found.count, _FIGURES[account]._replace(ns=found.ns) if found.index >= 0 else None

    def volume(self, lane: SpanLane, index: int) -> str:
        return ""

    def more(self, lane: SpanLane, index: int, wide: bool, rank: int | None) -> str:
        place = lane.spans.op[index]
        if place == NOTHING:
            return ""
        slack = self.results.slack_ns[lane.number][place]
        return "on the critical path, or as late as it may be" if not slack else f"slack {duration(slack)}"

    def walk(self, lane: SpanLane, index: int, rank: int | None, direction: int) -> Sequence[Step]:
        place = lane.spans.op[index]
        if place == NOTHING:
            return []
        found = self._causes(lane.number, place) if direction < 0 else self._effects(lane.number, place)
        return [self._step(lane, *one) for one in found]

    def _causes(self, rank: int, place: int) -> list[tuple[int, int, str]]:
        """(rank, place, why) of what a node waited for, what was over last first."""
        results = self.results
        executed = results.executed
        one = executed.nodes[rank]
        found = [(rank, parent, "it needs its data") for parent in one.data[place]]
        found += [(rank, parent, "it is ordered behind it (ctrl)") for parent in one.ctrl[place]]
        sent = executed.sends[rank][place]
        if sent >= 0:
            found.append((sent >> 32, sent & 0xFFFFFFFF, "it receives its message"))
        number = executed.meetings[rank][place]
        if number >= 0:
            late = [
                (who, at)
                for who, column in enumerate(results._place_in)
                if (at := column.get(number, NOTHING)) != NOTHING
                and executed.start[who][at] == executed.begin[rank][place]
            ]
            found += [
                (who, at, "its rank came last to the collective") for who, at in late[:1] if who != rank
            ]
        lane = executed.lanes[rank][place]
        if lane != 255 and executed.start[rank][place]:
            begun = executed.start[rank][place]
            before = [
                at for at, held in enumerate(executed.lanes[rank])
                if held == lane and at != place and executed.end[rank][at] == begun
            ]  # fmt: skip
            what = "its slot" if results.is_astra else "its stream"
            found += [
                (rank, at, f"it held {what}")
                for at in before
                if at not in (*one.data[place], *one.ctrl[place])
            ]
        return sorted(
            found, key=lambda item: -executed.end[item[0]][item[1]] if "last" not in item[2] else -(1 << 62)
        )

    def _effects(self, rank: int, place: int) -> list[tuple[int, int, str]]:
        executed = self.results.executed
        one = executed.nodes[rank]
        found = [
            (rank, child, "needs its data" if place in one.data[child] else "is ordered behind it (ctrl)")
            for child in one.children_of(place)
        ]
        code = rank << 32 | place
        for who, column in enumerate(executed.sends):
            if code in column:
                found.append((who, column.index(code), "receives its message"))
        return sorted(found, key=lambda item: executed.start[item[0]][item[1]])

    def _step(self, lane: SpanLane, rank: int, place: int, why: str) -> Step:
        results, executed = self.results, self.results.executed
        where = f", rank {rank}" if rank != lane.number else ""
        ns = executed.end[rank][place] - executed.start[rank][place]
        words = f"{cells(results.name_of(rank, place), 40)}{where}, {duration(ns)}: {why}"
        stream = None if lane.stream is None else results.stream_of(rank, place)
        return Step(rank, stream, executed.start[rank][place], rank, words)

    def critical(self, time_ns: int, direction: int) -> Step | None:
        legs = self.results.legs
        index = bisect_right([leg.start_ns for leg in legs], time_ns) - 1 + direction
        if not 0 <= index < len(legs):
            return None
        leg = legs[index]
        words = (
            f"path leg {index + 1} of {len(legs)}: {cells(leg.what, 40)}, {duration(leg.ns)}; {leg.reason}"
        )
        return Step(leg.number, None, leg.start_ns, leg.rank, words)

    def path(self, source: LaneSource) -> PathLanes | None:
        return self._path

    @cached_property
    def _path(self) -> PathLanes:
        from tui.timeline.critical import PathLanes

        results = self.results
        return PathLanes(
            (one.start, one.end, one.rank, one.rank, results.stream_of(one.rank, one.place))
            for one in results.critical_path
        )

    def all_of(self, lane: SpanLane, index: int, rank: int | None) -> list[tuple[str, str]]:
        place, number = lane.spans.op[index], lane.number
        if place == NOTHING:
            return [("nothing", "the rank has nothing that has begun and not ended")]
        results, executed = self.results, self.results.executed
        start, begin, end = (one[number][place] for one in (executed.start, executed.begin, executed.end))
        found = [
            ("node", f"{executed.nodes[number].id[place]}, {results.what(number, place)}"),
            ("name", cells(results.name_of(number, place), 80)),
            ("on", f"rank {number}, {results.stream_of(number, place)}"),
            ("runs", f"{TIME.clock(start)} .. {TIME.clock(end)}, {duration(end - start)} ({end - start} ns)"),
        ]
        if begin > start:
            found.append(("waits", f"{duration(begin - start)} until it begins"))
        found.append(("slack", duration(results.slack_ns[number][place])))
        found += [("says", one) for one in facts_of(results, number, place)]
        for label, direction in (("[ waited for", -1), ("] holds back", 1)):
            found += [(label, one.words) for one in self.walk(lane, index, rank, direction)]
        parents = len(executed.nodes[number].data[place]) + len(executed.nodes[number].ctrl[place])
        found.append(("waits for", plural(parents, "node")))
        return found
