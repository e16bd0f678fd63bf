"""A measured run's steps of micro-batches, waits and figures, and all that is known of one of its spans."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.analysis.measured_ranges import account_ranges, category_ranges
from simcore.analysis.ranges import Ranges
from simcore.collectives import algorithm_bandwidth
from simcore.measured import MeasuredRun
from simcore.measured.columns import FUSED, INSTANT, MEASURED
from simcore.measured.device_facts import device_facts
from simcore.measured.facts import neighbours, span_facts
from simcore.measured.kernel_names import shown_name
from simcore.measured.lanes import rank_spans
from simcore.measured.matching import Call
from simcore.measured.run import SLOT
from simcore.measured.vocabulary import CATEGORIES, COMPUTE, COPY
from simcore.ranks import place_words
from simcore.replay import MeasuredResults
from simcore.replay.accounts import ACCOUNTS
from simcore.replay.waits import Wait, waited_ns, waits_by_item
from simcore.units import byte_size, duration, plural
from tui.frame import cells
from tui.timeline.axis import TIME, Axis, order_axis
from tui.timeline.measured_accounts import drawn_as
from tui.timeline.measured_waits import all_waits_words, wait_words
from tui.timeline.measured_walking import all_words, critical, walk
from tui.timeline.moves import Figure, Figures, Stretch, microbatch_words
from tui.timeline.query import Query
from tui.timeline.spans import DRAWN, LaneSource, SpanLane
from tui.timeline.walking import Step

if TYPE_CHECKING:
    from tui.timeline.critical import PathLanes

_SHORT = {"forward": "fwd", "backward": "bwd", "optimizer": "opt", "embedding": "emb", "position": "pos"}


def _role(category: str) -> str:
    """That of its cells; none for what is idle."""
    role = DRAWN[drawn_as(category)]
    return "" if role == "idle" else role


_FIGURES = tuple(
    Figure("not running" if name == "outside" else name, _SHORT.get(name, name), _role(name), 0)
    for name in CATEGORIES
)


def _account_figure(account: str) -> Figure:
    kind, _, of = account.partition(" ")
    if kind == "compute":
        return Figure(of, _SHORT.get(of, of), _role(of), 0)
    if kind == "exposed":
        return Figure(account, f"exp {_SHORT.get(of, of)}", _role(of), 0)
    return Figure(account, account, _role(account), 0)


_ACCOUNT_FIGURES = tuple(map(_account_figure, ACCOUNTS))


@dataclass
class MeasuredMoves:
    """Over a measured or replayed run; number: index of a rank in it."""

    results: MeasuredResults
    # Of each rank, how long each span of its lane waits that does.
    _waits: dict[int, dict[int, int]] = field(default_factory=dict)
    _items: dict[int, dict[int, list[Wait]]] = field(default_factory=dict)

    @property
    def run(self) -> MeasuredRun:
        """The run with the times that are shown."""
        return self.results.run

    @cached_property
    def _ranges(self) -> Ranges:
        return category_ranges(self.run)

    @property
    def _axis(self) -> Axis:
        return TIME if self.run.timed else order_axis(SLOT)

    def stage_of(self, number: int) -> int | None:
        rank = self.run.ranks[number]
        return rank.number if self.run.unit == "stage" else rank.stage

    def problem(self, query: Query) -> str:
        if query.rank is not None and (
            self.run.unit != "rank" or all(one.number != query.rank for one in self.run.ranks)
        ):
            return f"rank {query.rank} is not in this run"
        stages = {self.stage_of(number) for number in range(len(self.run.ranks))}
        if query.stage is not None and query.stage not in stages:
            return f"no rank of stage {query.stage} is in this run"
        return ""

    def names(self) -> Collection[str]:
        found: set[str | None] = set()
        for rank in self.run.ranks:
            found.update(rank.ops.name, rank.subs.name, rank.subs.collective)
        return {name for name in found if name is not None}

    def rank_words(self, rank: int) -> str:
        position = self.run.degrees.position(rank)
        if position is None:
            return f"{self.run.unit} {rank}"
        return f"rank {rank} = {place_words(position)}"

    def passes(self, number: int) -> Sequence[Stretch]:
        rank, count = self.run.ranks[number], self.run.microbatches
        ops, found = rank.ops, []
        for op in rank.passes:
            name, batch = ops.name[op], ops.batch[op]
            words = f"{name} of {microbatch_words(batch, count)}" if batch >= 0 else name
            found.append(Stretch(ops.start[op], ops.end[op], words))
        return found

    def waits(self, number: int) -> Sequence[int]:
        return list(self._waits_by_span(number))

    def all_waits(self) -> Sequence[tuple[int, int]]:
        found = []
        for number, rank in enumerate(self.run.ranks):
            items = rank_spans(self.run, rank).item
            waits = self._waits_by_span(number).items()
            found += [(items[index] < 0, -ns, number, index) for index, ns in waits]
        return [(number, index) for _, _, number, index in sorted(found)]

    def waited_ns(self, number: int, index: int) -> int:
        return self._waits_by_span(number).get(index, 0)

    def _waits_by_span(self, number: int) -> dict[int, int]:
        """How long operations wait in all, those that do, the longest first; behind them gaps, as long as
        they are.
        """
        if not self.run.timed:
            return {}
        if number not in self._waits:
            spans = rank_spans(self.run, self.run.ranks[number])
            ops = waited_ns(self.results, number, self._waits_of_rank(number))
            found = []
            for index, item in enumerate(spans.item):
                ns = ops.get(item, 0) if item >= 0 else spans.end[index] - spans.start[index]
                if ns:
                    found.append((item < 0, -ns, index))
            self._waits[number] = {index: -ns for _, ns, index in sorted(found)}
        return self._waits[number]

    @property
    def order(self) -> Sequence[str]:
        return [one.words for one in self._kinds]

    @property
    def _kinds(self) -> tuple[Figure, ...]:
        """An order without times has operations alone, and no accounts."""
        return _ACCOUNT_FIGURES if self.run.timed else _FIGURES

    @cached_property
    def _sums(self) -> Ranges:
        return account_ranges(self.results) if self.run.timed else self._ranges

    def figures(self, number: int, first_ns: int, last_ns: int) -> Figures:
        return self._figures(self._sums.of_class(number, first_ns, last_ns), last_ns - first_ns, 1)

    def all_figures(self, first_ns: int, last_ns: int) -> Figures:
        ranks = len(self.run.ranks)
        return self._figures(self._sums.of_all(first_ns, last_ns), (last_ns - first_ns) * ranks, ranks)

    def _figures(self, found: Sequence[int], room_ns: int, ranks: int) -> Figures:
        pairs = zip(self._kinds, found, strict=True)
        return Figures(tuple(one._replace(ns=ns) for one, ns in pairs if ns), room_ns, ranks)

    def longest(self, number: int, first_ns: int, last_ns: int) -> tuple[int, Figure | None]:
        found, category = self._ranges.longest(number, first_ns, last_ns)
        return found.count, _FIGURES[category]._replace(ns=found.ns) if found.index >= 0 else None

    def volume(self, lane: SpanLane, index: int) -> str:
        # An operation's time has the waiting in it: as a bandwidth it would mislead at first sight.
        return ""

    def more(self, lane: SpanLane, index: int, wide: bool, rank: int | None) -> str:
        item = lane.spans.op[index]
        words = [wait_words(self.results, self._waits_of(lane.number, item))]
        if len(self.run.missing):
            # Where no rank is known to be missing the note says enough.
            words.append(self._partner(lane.number, item))
        return "; ".join(filter(None, words))

    def _partner(self, number: int, item: int) -> str:
        """Why communication has no partner here; "" where it has or needs none."""
        if item < 0 or not self.run.timed:
            return ""
        trace = self.results.measured.ranks[number]
        count = len(trace.ops)
        call = (
            Call(number, item)
            if item < count
            else Call(number, trace.subs.parent[item - count], item - count)
        )
        return self.results.partners.words(call)

    def _waits_of(self, number: int, item: int) -> list[Wait]:
        """What an item of a rank's lanes waits; found for the whole rank when it is first asked for."""
        return self._waits_of_rank(number).get(item, []) if self.run.timed else []

    def _waits_of_rank(self, number: int) -> dict[int, list[Wait]]:
        if number not in self._items:
            self._items[number] = waits_by_item(self.results, number)
        return self._items[number]

    def walk(self, lane: SpanLane, index: int, rank: int | None, direction: int) -> Sequence[Step]:
        return walk(self.results, lane, index, direction)

    def critical(self, time_ns: int, direction: int) -> Step | None:
        return critical(self.results, time_ns, direction)

    def path(self, source: LaneSource) -> PathLanes | None:
        return self._path

    @cached_property
    def _path(self) -> PathLanes | None:
        from tui.timeline.critical import PathLanes

        results, ranks = self.results, self.run.ranks
        if not (results.measured.timed and results.measured.concurrent):
            return None
        return PathLanes(
            (one.start, one.end, one.rank, ranks[one.rank].number, "") for one in results.critical_path
        )

    def all_of(self, lane: SpanLane, index: int, rank: int | None) -> list[tuple[str, str]]:
        trace, spans = self.run.ranks[lane.number], lane.spans
        item = spans.op[index]
        whose = self.rank_words(trace.number) if self.run.unit == "rank" else f"stage {trace.number}"
        start, end = spans.start[index], spans.end[index]
        axis = self._axis
        if item < 0:
            before, after = neighbours(trace, item)
            return [
                ("gap", f"{axis.clock(start)} .. {axis.clock(end)}, {axis.length(end - start)}"),
                ("on", whose),
                ("after", cells(before or "nothing", 80)), ("before", cells(after or "nothing", 80)),
            ]  # fmt: skip
        facts = span_facts(trace, item)
        found = [("operation", cells(shown_name(facts.name), 80)), ("on", whose), ("kind", facts.category)]
        if facts.known in (MEASURED, FUSED) and self.run.timed:
            length = facts.end_ns - facts.start_ns
            times = f"{axis.clock(facts.start_ns)} .. {axis.clock(facts.end_ns)}"
            found.append(("runs", f"{times}, {duration(length)} ({length} ns)"))
        else:
            ending = ", an instant" if facts.known == INSTANT else ""
            found.append(("stands at", axis.clock(facts.start_ns) + ending))
        if facts.parent is not None:
            found.append(("inside", cells(facts.parent, 80)))
        if facts.collective is not None:
            found.append(("collective", cells(facts.collective, 80)))
        if facts.batch >= 0:
            found.append(("micro-batch", microbatch_words(facts.batch, self.run.microbatches)))
        if facts.state is not None:
            found.append(("state", cells(facts.state, 80)))
        if facts.bytes is not None:
            dtype = cells((facts.dtype or "").removeprefix("torch."), 20)
            found.append(("volume", f"{byte_size(facts.bytes)} = {cells(facts.shape or '', 80)} {dtype}"))
        if bandwidth := self._bandwidth(lane.number, item):
            found.append(("bandwidth", bandwidth))
        if facts.subs:
            words = f"{plural(facts.subs, 'sub-operation')}, {duration(facts.subs_ns)} together"
            found.append(("inside it", words))
        if facts.description is not None:
            found.append(("description", cells(facts.description, 200)))
        found += [("waits", one) for one in all_waits_words(self.results, self._waits_of(lane.number, item))]
        if partner := self._partner(lane.number, item):
            found.append(("partner", f"{partner}: what is waited here is not known"))
        for label, direction in (("[ waited for", -1), ("] holds back", 1)):
            found += [(label, words) for words in all_words(self.results, lane, index, direction)]
        if trace.device is not None:
            found += [(name, cells(words, 200)) for name, words in device_facts(trace, item)]
            found.append(("event", f"{facts.line} of {cells(facts.path)}"))
            return found
        found.append(("line", f"{facts.line} of {cells(facts.path)}"))
        return found

    def _bandwidth(self, number: int, item: int) -> str:
        """Bytes over time of communication; without the group's size there is no bus bandwidth."""
        facts = span_facts(self.run.ranks[number], item)
        length = facts.end_ns - facts.start_ns
        communicates = facts.category not in (*COMPUTE, COPY, "host")
        if not communicates or facts.bytes is None or facts.known != MEASURED or length <= 0:
            return ""
        algbw = algorithm_bandwidth(facts.bytes, length)
        return f"algbw {algbw:.2f} GB/s by the {byte_size(facts.bytes)} of its input, waiting included"
