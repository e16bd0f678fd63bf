"""A run as lanes of spans, whatever it came from, and what is said of a span.

Which lanes there are, what is in them, how much of a stretch is what, and what a search finds in them; a
span at the cursor, in full, and along what waits for what; how the axis is written, in times or in places
of an order without times.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import accumulate, compress, islice
from operator import lt, sub

from simcore.records import NamedTuple, Struct
from simcore.trace.shares import Shares, sum_span_columns
from simcore.units import duration

# What a span can be drawn as: compute by what it is for, communication by kind, and not computing. The
# last five before `wait` are of measured runs: groups of the embeddings, unknown kinds, the host.
# `wg` is for schedules that take the weight gradient apart; else it is backward as well.
KINDS = (
    "fwd", "bwd", "wg", "opt", "recompute", "tp", "ep", "dp", "dp_ep", "all", "cp", "dp_shard",
    "dp_replicate", "offload", "pp",
    "embedding", "position", "comm", "host", "wait", "bubble", "idle",
    "kernel", "copy",
)  # fmt: skip
COMPUTING = tuple(KINDS.index(name) for name in ("fwd", "bwd", "wg", "opt", "recompute", "kernel"))
NAMELESS = frozenset(KINDS.index(name) for name in ("idle", "bubble", "wait"))
# The stream that every track has; the others are communication, by the names of its groups.
COMPUTE_STREAM = "compute"
_HAS_NAME = bytes(category not in NAMELESS for category in range(256))
# Up to so many spans a column they are added up one by one.
_FEW = 20


class Spans(Struct, frozen=True):
    """Spans of a lane as columns, ascending by start, ns.

    op: what the run knows the span by. category: index into KINDS.
    """

    start: array[int]
    end: array[int]
    op: array[int]
    category: bytearray


def make_spans(rows: Sequence[tuple[int, int, int, int]]) -> Spans:
    """Returns spans in their order. rows: (start, end, op, category) of each."""
    # By lists: an array that is made of an iterator grows by each element.
    start, end, op = (array("q", [row[column] for row in rows]) for column in range(3))
    return Spans(start, end, op, bytearray([row[3] for row in rows]))


class Content(Struct, dict=True):
    """A lane. spans: none of them empty. drawn: what its cells are drawn from: its spans, or the parts of
    them that are of other kinds. covers_all: whether there is a span at every time of the step.
    """

    spans: Spans
    cell_spans: Spans
    covers_all: bool = False

    @cached_property
    def may_overlap(self) -> bool:
        """Whether any of what its cells are drawn from runs at the same time."""
        spans = self.cell_spans
        return any(map(lt, islice(spans.start, 1, None), spans.end))

    @cached_property
    def shares(self) -> Shares:
        """How much of any stretch each category fills; what overlaps in a category counts once."""
        spans = self.cell_spans
        if not self.may_overlap:
            return Shares.of_columns(spans.start, spans.end, spans.category)
        start, end, category = array("q"), array("q"), bytearray()
        last: dict[int, int] = {}
        for begin, over, kind in zip(spans.start, spans.end, spans.category, strict=True):
            index = last.get(kind)
            if index is not None and begin <= end[index]:
                end[index] = max(over, end[index])
            else:
                last[kind] = len(start)
                start.append(begin)
                end.append(over)
                category.append(kind)
        return Shares.of_columns(start, end, category)

    def column_sums(self, edges: Sequence[int]) -> dict[int, list[int]]:
        """ns of each category between each two neighbouring `edges`, of those that have any there."""
        spans = self.cell_spans
        inside = bisect_left(spans.start, edges[-1]) - bisect_right(spans.start, edges[0])
        if self.may_overlap or inside > _FEW * len(edges):
            return self.shares.columns(edges)
        return sum_span_columns(spans.start, spans.end, spans.category, edges)

    @cached_property
    def _latest_end(self) -> array[int]:
        """Of each span, the latest end of it and of all that begin before it."""
        return array("q", accumulate(self.spans.end, max))

    @cached_property
    def longest_named_ns(self) -> int:
        """How long the longest span that can have a name in it lasts, 0 where there is none."""
        spans = self.spans
        has_name = spans.category.translate(_HAS_NAME)
        return max(compress(map(sub, spans.end, spans.start), has_name), default=0)

    @cached_property
    def by_length(self) -> list[int]:
        """The indices of the spans, the longest first."""
        spans = self.spans
        return sorted(range(len(spans.start)), key=lambda index: spans.start[index] - spans.end[index])

    def find_span(self, time_ns: int) -> int | None:
        """The index of the span that runs at `time_ns`, the latest to start; None between spans."""
        spans = self.spans
        index = bisect_right(spans.start, time_ns) - 1
        if self.covers_all and spans.start:
            return max(index, 0)
        # Transfers may overlap: go back as long as one that began before may still run.
        while index >= 0 and self._latest_end[index] > time_ns:
            if spans.end[index] > time_ns:
                return index
            index -= 1
        return None

    def starting_in(self, first_ns: int, last_ns: int) -> range:
        """The indices of the spans that begin from `first_ns` on and before `last_ns`."""
        starts = self.spans.start
        return range(bisect_left(starts, first_ns), bisect_left(starts, last_ns))

    def next_start(self, time_ns: int) -> int | None:
        """The start of the first span that begins after `time_ns`."""
        starts = self.spans.start
        index = bisect_right(starts, time_ns)
        return starts[index] if index < len(starts) else None

    def previous_start(self, time_ns: int) -> int | None:
        """The start of the last span that begins before `time_ns`."""
        starts = self.spans.start
        index = bisect_left(starts, time_ns) - 1
        return starts[index] if index >= 0 else None


class LaneOrder(NamedTuple):
    """A way to order lanes. id: of the measure. words: in the heading, in at most twelve cells.
    column: what the share beside each lane is then of; its first four letters are enough. least_first:
    whether the smallest comes first, else the largest. told: what the measure is called where it is told of
    several lanes together, "" as its id is.
    """

    id: str
    words: str
    column: str
    least_first: bool = False
    group_name: str = ""


class TimeStretch(NamedTuple):
    """start_ns..end_ns of the step. words: what it is."""

    start_ns: int
    end_ns: int
    words: str


class Figure(NamedTuple):
    """How much of a stretch is what. short: its words on a narrow screen. kind: of KINDS, "" for idle."""

    words: str
    short: str
    kind: str
    ns: int


class StretchFigures(NamedTuple):
    """A stretch's figures. room_ns: what 100 % are: the stretch, times the ranks that were added up.

    ranks: how many that are, so that a mean can be said.
    """

    figures: tuple[Figure, ...]
    full_ns: int
    ranks: int


class SearchColumns(Struct, frozen=True):
    """What a search looks at of a lane's spans, a number a span: an index into a table, as bytes where the
    table is short enough for `bytes.translate`.

    kinds: by `kind`, the words for what a span is. names: by `name`, the names that it has in the file, raw
    text. microbatch: of each span, plus 1; 0 of none.
    """

    kinds: list[frozenset[str]]
    kind: Sequence[int]
    names: list[tuple[str, ...]]
    name: Sequence[int]
    microbatch: Sequence[int]


def encode_indices(indices: Iterable[int]) -> Sequence[int]:
    """Numbers from 0 on as bytes, where they all fit, else as a column."""
    column = list(indices)
    try:
        return bytes(column)
    except ValueError:
        return array("q", column)


class SpanSummary(NamedTuple):
    """A span in few words. Text of a file in them is printable.

    what: it is; "" between spans. whose: the ranks, the most words first. times: when. length: how long, ""
    where the file has no duration. itself: (words, more words) on the transfer or collective behind a wait.
    more: where the duration comes from, or what the file says.
    """

    description: str
    ranks_texts: tuple[str, ...]
    times: str = ""
    length: str = ""
    partner: tuple[str, str] = ("", "")
    details: str = ""


def slack_words(ns: int) -> str:
    """Returns how much longer a span may take, or that it is critical."""
    return f"slack {duration(ns)}, not critical" if ns else "on a critical path"


def ordinal(count: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 21st."""
    ending = "th" if count // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th")
    return f"{count}{ending}"


def microbatch_words(microbatch: int, microbatches: int) -> str:
    """`micro-batch 2 (3rd of 16)`: the number of files and JSON counts from 0, people from 1."""
    return f"micro-batch {microbatch} ({ordinal(microbatch + 1)} of {microbatches})"


def format_clock(time_ns: int) -> str:
    """A time of the step in groups of three: `6.204 608 123 s`; before its begin with a minus."""
    seconds, nanoseconds = divmod(abs(time_ns), 10**9)
    digits = f"{nanoseconds:09d}"
    return f"{'-' * (time_ns < 0)}{seconds}.{digits[:3]} {digits[3:6]} {digits[6:]} s"


class TimeAxis(NamedTuple):
    """units: (its size, its name) of the ruler's labels, the largest first. clock: a place in
    words. length: a stretch in words. title: above the lanes, wide and narrow.
    """

    units: tuple[tuple[int, str], ...]
    clock: Callable[[int], str]
    length: Callable[[int], str]
    title: tuple[str, str]


TIME = TimeAxis(
    ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns")), format_clock, duration,
    ("  all ranks, computing", " all ranks"),
)  # fmt: skip


def order_axis(slot: int) -> TimeAxis:
    """The axis of a schedule without times: each operation takes `slot` units, whatever it does."""
    return TimeAxis(
        ((slot, "op"),),
        lambda time: f"place {time // slot}",
        lambda length: f"{length / slot:g} places",
        ("  order, without times", " order"),
    )
