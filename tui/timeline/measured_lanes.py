"""Lanes of a measured run: one for each rank, below it its compute and its group kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from simcore.measured import MeasuredRun
from simcore.measured.columns import RankTrace
from simcore.measured.device_facts import stream_word
from simcore.measured.kernel_names import shown_name
from simcore.measured.lanes import COMPUTE_LANE, NO_GROUP, STREAM_LANE, lane_kinds, lane_spans, rank_spans
from simcore.measured.run import SLOT
from simcore.measured.vocabulary import GROUPS, category_of_group
from simcore.replay import MeasuredResults
from simcore.units import plural
from tui.frame import Line, cells
from tui.timeline.axis import TIME, Axis, order_axis
from tui.timeline.group_words import legend_of, told_group
from tui.timeline.measured_accounts import TO_DRAWN, accounted, drawn_as
from tui.timeline.measured_matching import measured_matches
from tui.timeline.measured_words import measured_words
from tui.timeline.query import Query
from tui.timeline.spans import ALL, DRAWN, Kind, Order, SpanLane, Spans, busy_words


@dataclass(frozen=True)
class MeasuredLane(SpanLane):
    """A lane of a measured run: of a rank (stream None), of its compute, or of a group kind of the trace."""

    results: MeasuredResults
    number: int
    stream: str | None = None

    @property
    def run(self) -> MeasuredRun:
        """The run with the times that are shown."""
        return self.results.run

    @property
    def rank(self) -> RankTrace:
        """The rank that the lane is of."""
        return self.run.ranks[self.number]

    @property
    def title(self) -> str:
        if self.stream is None:
            return f"{self.run.unit} {self.rank.number:>2}"
        if self.stream == NO_GROUP:
            return "no group"
        if self.rank.device is not None:
            return cells(self.stream.replace(STREAM_LANE, f"{stream_word(self.rank)} "), 14)
        size = {"tp": self.run.degrees.tp, "dp": self.run.degrees.dp}.get(self.stream)
        name = GROUPS.get(self.stream) or cells(self.stream, 14)
        return name if size is None else f"{name} x{size}"

    @property
    def whose(self) -> str:
        return f"{self.run.unit} {self.rank.number}"

    @property
    def count(self) -> str:
        """The rank's stage: a plan's number is one itself."""
        stage = self.rank.stage
        return "" if self.stream is not None or stage is None or self.run.unit == "stage" else str(stage)

    @cached_property
    def busy(self) -> str:
        if not self.run.timed:
            return ""
        if self.stream in (None, COMPUTE_LANE):
            return busy_words(self.measured_ns("busy"), self.run.length)
        return busy_words(sum(self.shares.between(0, self.run.length).values()), self.run.length)

    def share(self, measure: str) -> str:
        if self.stream is not None or not measure or not self.run.timed:
            return self.busy
        return busy_words(self.measured_ns(measure), self.run.length)

    def measured_ns(self, measure: str) -> int:
        """ns of the step that an order goes by, from the rank's accounts; or after the rank's end."""
        if measure == "end":
            return self.run.length - self.rank.last_ns
        accounts = self.results.accounts[self.number]
        if measure == "busy":
            return accounts.busy_ns
        return sum(accounts.exposed_ns().values()) if measure == "exposed" else accounts.ns(measure)

    @cached_property
    def spans(self) -> Spans:
        rank = self.rank
        found = rank_spans(self.run, rank) if self.stream is None else lane_spans(rank, self.stream)
        return Spans(found.start, found.end, found.item, found.category.translate(TO_DRAWN))

    @cached_property
    def drawn(self) -> Spans:
        """A rank's lane and its compute: an operation also waits and communicates."""
        if not self.run.timed or self.stream not in (None, COMPUTE_LANE):
            return self.spans
        return accounted(self.results, self.number, self.spans, computing=self.stream is not None)

    @property
    def may_overlap(self) -> bool:
        return True

    @property
    def covers_all(self) -> bool:
        # Overlapping operations have to be looked for; so all lanes are looked through.
        return False

    def label(self, op: int, room: int) -> str:
        ops = self.rank.ops
        name = ops.name[op] if op < len(ops) else self.rank.subs.name[op - len(ops)]
        return cells(shown_name(name))[:room]

    def told(self, index: int | None, others: str, width: int, wide: bool) -> list[Line]:
        spans = self.spans
        item = None if index is None else spans.op[index]
        span = (0, 0) if index is None else (spans.start[index], spans.end[index])
        axis = MeasuredLanes(self.results).axis
        return measured_words(self.run, self.rank, item, span, axis, others, width, wide)

    def matches(self, query: Query) -> bytes:
        return measured_matches(self, query)


class MeasuredLanes:
    """A measured run as a source of lanes: one for each rank, by its place among `run.ranks`."""

    def __init__(self, results: MeasuredResults) -> None:
        self.results = results
        self.run = run = results.run
        self.numbers = range(len(run.ranks))
        self._place = {rank.number: number for number, rank in enumerate(run.ranks)}
        self._lanes: dict[tuple[int, str | None], MeasuredLane] = {}

    @property
    def axis(self) -> Axis:
        return TIME if self.run.timed else order_axis(SLOT)

    @property
    def count_heading(self) -> tuple[str, str]:
        return ("", "") if self.run.unit == "stage" else ("stage", "st")

    @property
    def orders(self) -> tuple[Order, ...]:
        natural = Order("", "lane", "busy")
        if not self.run.timed:
            return (natural,)
        waiting = (Order("bubble", "most bubble", "bubb"), Order("wait", "most wait", "wait"))
        return (
            natural, Order("busy", "least busy", "busy"), *(waiting if self.run.concurrent else ()),
            Order("exposed", "most exposed", "expo"), Order("end", "latest end", "over"),
        )  # fmt: skip

    @property
    def length(self) -> int:
        return self.run.length

    @property
    def groups(self) -> int:
        return len(self.run.ranks)

    @property
    def counted(self) -> str:
        run = self.run
        words = f"{plural(len(run.ranks), run.unit)}, {'replayed' if run.replayed else 'as measured'}"
        if not run.timed:
            words = f"{plural(len(run.ranks), run.unit)}, in the order of the plan"
        return words if run.concurrent else f"{words}, each from its own start"

    @property
    def heat(self) -> dict[int, int]:
        """Ranks without a common time cannot be added up at any."""
        alike = self.run.timed and self.run.concurrent
        return dict.fromkeys(range(self.groups), 1) if alike else {}

    @cached_property
    def legend(self) -> tuple[Kind, ...]:
        found = {category for number in self.numbers for category in set(self.lane(number).drawn.category)}
        subs = {group for rank in self.run.ranks for group in rank.subs.group}
        found |= {drawn_as(category_of_group(group)) for group in subs}
        return legend_of({DRAWN[category] for category in found}, "communication", "gap")

    def measure(self, order: str, number: int) -> int:
        ns = self._lane(number, None).measured_ns(order)
        return ns if order in ("busy", "end") else -ns

    def headings(self, number: int) -> tuple[str, ...]:
        stage = self.run.ranks[number].stage
        if stage is None or self.run.unit == "stage":
            return ()
        place = self.run.degrees.position(self.run.ranks[number].number)
        return (f"stage {stage:>2}",) if place is None else (f"stage {stage:>2}", f"dp {place[1]}")

    def ranks(self, number: int) -> tuple[int, ...]:
        return (self.run.ranks[number].number,)

    def count(self, number: int) -> int:
        return 1

    def number_of(self, rank: int) -> int | None:
        return self._place.get(rank)

    def lane(self, number: int, rank: int = ALL, left: int = 0) -> SpanLane:
        return self._lane(number, None)

    def _lane(self, number: int, stream: str | None) -> MeasuredLane:
        """A lane, the same one each time: what it has computed is kept."""
        found = self._lanes.get((number, stream))
        if found is None:
            found = self._lanes[number, stream] = MeasuredLane(self.results, number, stream)
        return found

    def streams(self, number: int, rank: int = ALL) -> list[SpanLane]:
        kinds = lane_kinds(self.run, self.run.ranks[number])
        return [self._lane(number, kind) for kind in kinds]

    def computing(self, number: int) -> SpanLane:
        return self._lane(number, None)

    def told(self, title: Line, numbers: Sequence[int]) -> list[Line]:
        if not self.run.timed:
            return [title]
        measures = [order.id for order in self.orders[1:]]
        words = {"busy": "compute", "end": "over before the others"}
        found = {
            words.get(measure, measure): [self._lane(number, None).measured_ns(measure) for number in numbers]
            for measure in measures
        }
        return told_group(title, [self.run.ranks[number].number for number in numbers], found, self.length)
