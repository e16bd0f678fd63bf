"""Lanes of a measured run: one for each rank, below it its compute and its group kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from simcore.measured import MeasuredRun
from simcore.measured.columns import RankTrace
from simcore.measured.lanes import COMPUTE_LANE, NO_GROUP, lane_kinds, lane_spans, rank_spans
from simcore.measured.run import SLOT
from simcore.measured.vocabulary import CATEGORIES, GROUPS
from simcore.units import plural
from tui.frame import Line, cells
from tui.timeline.axis import TIME, Axis, order_axis
from tui.timeline.measured_matching import measured_matches
from tui.timeline.measured_words import measured_words
from tui.timeline.query import Query
from tui.timeline.spans import COMPUTING, DRAWN, SpanLane, Spans, busy_words

_DRAWN_CATEGORY = {
    "forward": "fwd", "backward": "bwd", "optimizer": "opt", "expert": "ep", "expert dp": "dp_ep",
    "gap": "idle", "outside": "idle",
}  # fmt: skip
_DRAWN = bytes(DRAWN.index(_DRAWN_CATEGORY.get(name, name)) for name in CATEGORIES)
# Category of a lane -> index into DRAWN, as `bytearray.translate` takes it.
_TO_DRAWN = _DRAWN + bytes(256 - len(_DRAWN))


@dataclass(frozen=True)
class MeasuredLane(SpanLane):
    """A lane of a measured run: of a rank (stream None), of its compute, or of a group kind of the trace."""

    run: MeasuredRun
    number: int
    stream: str | None = None

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
        size = {"tp": self.run.degrees.tp, "dp": self.run.degrees.dp}.get(self.stream)
        name = GROUPS.get(self.stream) or cells(self.stream, 14)
        return name if size is None else f"{name} x{size}"

    @property
    def count(self) -> str:
        """The rank's stage: a plan's number is one itself."""
        stage = self.rank.stage
        return "" if self.stream is not None or stage is None or self.run.unit == "stage" else str(stage)

    @cached_property
    def busy(self) -> str:
        if not self.run.timed:
            return ""
        shares = self.shares.between(0, self.run.length)
        lane = self.stream not in (None, COMPUTE_LANE)
        return busy_words(
            sum(ns for category, ns in shares.items() if lane or category in COMPUTING), self.run.length
        )

    @cached_property
    def spans(self) -> Spans:
        rank = self.rank
        found = rank_spans(self.run, rank) if self.stream is None else lane_spans(rank, self.stream)
        return Spans(found.start, found.end, found.item, found.category.translate(_TO_DRAWN))

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
        return cells(name)[:room]

    def told(self, index: int | None, others: str, width: int, wide: bool) -> list[Line]:
        spans = self.spans
        item = None if index is None else spans.op[index]
        span = (0, 0) if index is None else (spans.start[index], spans.end[index])
        axis = MeasuredLanes(self.run).axis
        return measured_words(self.run, self.rank, item, span, axis, others, width, wide)

    def matches(self, query: Query) -> bytes:
        return measured_matches(self, query)


@dataclass(frozen=True)
class MeasuredLanes:
    """A measured run as a source of lanes: one for each rank."""

    run: MeasuredRun

    legend = (
        ("fwd", "fwd", "forward"), ("bwd", "bwd", "backward"), ("opt", "opt", "optimizer"),
        ("exposed", "tp", "communication"), ("host", "host", "host"), ("idle", "", "gap"),
    )  # fmt: skip

    @property
    def axis(self) -> Axis:
        return TIME if self.run.timed else order_axis(SLOT)

    @property
    def count_heading(self) -> tuple[str, str]:
        return ("", "") if self.run.unit == "stage" else ("stage", "st")

    @property
    def length(self) -> int:
        return self.run.length

    @property
    def groups(self) -> int:
        return len(self.run.ranks)

    @property
    def counted(self) -> str:
        run = self.run
        words = f"{plural(len(run.ranks), run.unit)}, as measured"
        if not run.timed:
            words = f"{plural(len(run.ranks), run.unit)}, in the order of the plan"
        return words if run.concurrent else f"{words}, each from its own start"

    @property
    def heat(self) -> dict[int, int]:
        """Ranks without a common time cannot be added up at any."""
        alike = self.run.timed and self.run.concurrent
        return dict.fromkeys(range(self.groups), 1) if alike else {}

    @property
    def numbers(self) -> Sequence[int]:
        return range(self.groups)

    def number_of(self, rank: int) -> int | None:
        if self.run.unit != "rank":
            return None
        return next((number for number, one in enumerate(self.run.ranks) if one.number == rank), None)

    def lane(self, number: int) -> SpanLane:
        return MeasuredLane(self.run, number)

    def streams(self, number: int) -> list[SpanLane]:
        kinds = lane_kinds(self.run, self.run.ranks[number])
        return [MeasuredLane(self.run, number, kind) for kind in kinds]

    def computing(self, number: int) -> SpanLane:
        return MeasuredLane(self.run, number, COMPUTE_LANE)
