"""A run as lanes of spans, whatever it came from, and records for the words of a span.

Here are the spans of a lane, how much of a stretch each category fills, what a search looks at, the summary
of a span, and how the axis is written: as times, or as positions in an order without times.
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

# What a span can be drawn as: compute by phase, communication by kind, and not computing. Only measured runs
# have `embedding`, `position`, `comm` (unknown kinds), `host`, `kernel` and `copy`. `wg` is for schedules
# that run the weight gradient separately; else it is backward as well. The last three are of allocators.
KINDS = (
    "fwd", "bwd", "wg", "opt", "recompute", "tp", "ep", "dp", "dp_ep", "all", "cp", "dp_shard",
    "dp_replicate", "offload", "cp_a2a", "cp_p2p", "ep_intra", "ep_inter", "pp",
    "embedding", "position", "comm", "host", "wait", "bubble", "idle",
    "kernel", "copy",
    "allocated", "released", "reserved",
)  # fmt: skip
COMPUTING = tuple(KINDS.index(name) for name in ("fwd", "bwd", "wg", "opt", "recompute", "kernel"))
NAMELESS = frozenset(KINDS.index(name) for name in ("idle", "bubble", "wait", "reserved"))
# The stream that every track has; the others are communication, by the names of the groups.
COMPUTE_STREAM = "compute"
_HAS_NAME = bytes(category not in NAMELESS for category in range(256))
# Up to so many spans a column, spans are summed one by one.
_FEW = 20


class Spans(Struct, frozen=True):
    """Spans of a lane as columns, ascending by start."""

    start: array[int]
    """When each begins, ns."""
    end: array[int]
    """When each ends, ns."""
    op: array[int]
    """The code by which the run identifies each span."""
    category: bytearray
    """The index into KINDS of each span."""


def make_spans(rows: Sequence[tuple[int, int, int, int]]) -> Spans:
    """Returns spans in the order of the rows. rows: (start, end, op, category) of each."""
    # By lists: an array that is made from an iterator grows with each element.
    start, end, op = (array("q", [row[column] for row in rows]) for column in range(3))
    return Spans(start, end, op, bytearray([row[3] for row in rows]))


class Content(Struct, dict=True):
    """The content of a lane."""

    spans: Spans
    """Its spans, none of them empty."""
    cell_spans: Spans
    """What its cells are drawn from: its spans, or the parts of them that are of other kinds."""
    covers_all: bool = False
    """Whether there is a span at every time of the step."""

    @cached_property
    def may_overlap(self) -> bool:
        """Whether any two of `cell_spans` overlap."""
        spans = self.cell_spans
        return any(map(lt, islice(spans.start, 1, None), spans.end))

    @cached_property
    def shares(self) -> Shares:
        """How much of any stretch each category fills; overlaps within a category count once."""
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
        """Returns ns of each category between neighbouring `edges`, of those that have any there."""
        spans = self.cell_spans
        inside = bisect_left(spans.start, edges[-1]) - bisect_right(spans.start, edges[0])
        if self.may_overlap or inside > _FEW * len(edges):
            return self.shares.columns(edges)
        return sum_span_columns(spans.start, spans.end, spans.category, edges)

    @cached_property
    def _latest_end(self) -> array[int]:
        """The latest end of each span and of all that begin before it, ns."""
        return array("q", accumulate(self.spans.end, max))

    @cached_property
    def longest_named_ns(self) -> int:
        """The length of the longest span that can have a name in it, ns; 0 without one."""
        spans = self.spans
        has_name = spans.category.translate(_HAS_NAME)
        return max(compress(map(sub, spans.end, spans.start), has_name), default=0)

    @cached_property
    def by_length(self) -> list[int]:
        """The indices of the spans, the longest first."""
        spans = self.spans
        return sorted(range(len(spans.start)), key=lambda index: spans.start[index] - spans.end[index])

    def find_span(self, time_ns: int) -> int | None:
        """Returns the index of the span that runs at `time_ns`, the latest to start; None between spans."""
        spans = self.spans
        index = bisect_right(spans.start, time_ns) - 1
        if self.covers_all and spans.start:
            return max(index, 0)
        # Transfers may overlap: go back as long as one that began earlier may still run.
        while index >= 0 and self._latest_end[index] > time_ns:
            if spans.end[index] > time_ns:
                return index
            index -= 1
        return None

    def starting_in(self, first_ns: int, last_ns: int) -> range:
        """Returns the indices of the spans that begin from `first_ns` on and before `last_ns`."""
        starts = self.spans.start
        return range(bisect_left(starts, first_ns), bisect_left(starts, last_ns))

    def next_start(self, time_ns: int) -> int | None:
        """Returns the start of the first span that begins after `time_ns`, None without one."""
        starts = self.spans.start
        index = bisect_right(starts, time_ns)
        return starts[index] if index < len(starts) else None

    def previous_start(self, time_ns: int) -> int | None:
        """Returns the start of the last span that begins before `time_ns`, None without one."""
        starts = self.spans.start
        index = bisect_left(starts, time_ns) - 1
        return starts[index] if index >= 0 else None


class LaneOrder(NamedTuple):
    """A way to order lanes."""

    id: str
    """The measure it goes by."""
    words: str
    """The words of the heading, in at most twelve cells."""
    column: str
    """The heading of the share at the side of each lane; its first four letters suffice."""
    least_first: bool = False
    """Whether the smallest comes first, else the largest."""
    group_name: str = ""
    """The name of the measure for several lanes together, "" where it is the id."""


class TimeStretch(NamedTuple):
    """A named stretch of the step."""

    start_ns: int
    """When it begins, ns."""
    end_ns: int
    """When it ends, ns."""
    words: str
    """What it is, in words."""


class Figure(NamedTuple):
    """How much of a stretch one account or category fills."""

    words: str
    """Its words."""
    short: str
    """Its words on a narrow screen."""
    kind: str
    """Its kind of KINDS, "" for idle."""
    ns: int
    """The time, ns."""


class StretchFigures(NamedTuple):
    """The figures of a stretch."""

    figures: tuple[Figure, ...]
    """The figures."""
    full_ns: int
    """The time that 100 % stand for: the stretch times `ranks`, ns."""
    ranks: int
    """How many ranks were added up, for the mean."""


class SearchColumns(Struct, frozen=True):
    """What a search looks at of a lane's spans: for each an index into a table.

    The indices are bytes where the table is short enough for `bytes.translate`.
    """

    kinds: list[frozenset[str]]
    """The table of words for what spans are."""
    kind: Sequence[int]
    """The index into `kinds` of each span."""
    names: list[tuple[str, ...]]
    """The table of names that spans have in the file, raw text."""
    name: Sequence[int]
    """The index into `names` of each span."""
    microbatch: Sequence[int]
    """The micro-batch of each span plus 1; 0 without one."""


def encode_indices(indices: Iterable[int]) -> Sequence[int]:
    """Returns numbers from 0 on as bytes where they all fit, else as a column."""
    column = list(indices)
    try:
        return bytes(column)
    except ValueError:
        return array("q", column)


class SpanSummary(NamedTuple):
    """A span in few words. Text of a file in them is printable."""

    description: str
    """What it is; "" between spans."""
    ranks_texts: tuple[str, ...]
    """The ranks, in several lengths, the longest first."""
    times: str = ""
    """When it runs."""
    length: str = ""
    """How long it is, "" where the file has no duration."""
    partner: tuple[str, str] = ("", "")
    """(words, more words) on the transfer or collective behind a wait."""
    details: str = ""
    """Where the duration comes from, or what the file says."""


def slack_words(ns: int) -> str:
    """Returns how much longer a span may take, or that it is critical, in words."""
    return f"slack {duration(ns)}, not critical" if ns else "on a critical path"


def ordinal(count: int) -> str:
    """Returns 1st, 2nd, 3rd, 4th, 11th, 21st."""
    ending = "th" if count // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th")
    return f"{count}{ending}"


def microbatch_words(microbatch: int, microbatches: int) -> str:
    """Returns `micro-batch 2 (3rd of 16)`: files and JSON count from 0, people from 1."""
    return f"micro-batch {microbatch} ({ordinal(microbatch + 1)} of {microbatches})"


def format_clock(time_ns: int) -> str:
    """Returns a time of the step in groups of three: `6.204 608 123 s`; before its begin with a minus."""
    seconds, nanoseconds = divmod(abs(time_ns), 10**9)
    digits = f"{nanoseconds:09d}"
    return f"{'-' * (time_ns < 0)}{seconds}.{digits[:3]} {digits[3:6]} {digits[6:]} s"


def format_position(time_ns: int, column_ns: int) -> str:
    """Returns a time of the step with the digits that a column of the screen can tell apart: `6.2 s` where it
    stands for 153 ms, `6.204 6 s` for 300 us.
    """
    decimals = next(digits for digits in range(10) if 10 ** (9 - digits) <= max(column_ns, 1))
    digit_ns = 10 ** (9 - decimals)
    whole = format_clock((time_ns + digit_ns // 2) // digit_ns * digit_ns).removesuffix(" s")
    # A point and a blank between the groups of three.
    point = whole.index(".")
    return f"{whole[: point + decimals + max(decimals - 1, 0) // 3 + 1].rstrip('.')} s"


class TimeAxis(NamedTuple):
    """How places on the axis are written."""

    units: tuple[tuple[int, str], ...]
    """(size, name) of the units of the ruler's labels, the largest first."""
    clock: Callable[[int], str]
    """Returns a position in words, to the nanosecond."""
    position: Callable[[int, int], str]
    """Returns a position as a screen shows it on which a column stands for so many ns."""
    length: Callable[[int], str]
    """Returns the length of a stretch in words."""
    title: tuple[str, str]
    """The title above the lanes, wide and narrow."""


TIME = TimeAxis(
    ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns")), format_clock, format_position, duration,
    ("  all ranks, computing", " all ranks"),
)  # fmt: skip


def order_axis(slot: int) -> TimeAxis:
    """Returns the axis of a schedule without times: each operation takes `slot` units."""
    return TimeAxis(
        ((slot, "op"),),
        lambda time: f"place {time // slot}",
        lambda time, _: f"place {time // slot}",
        lambda length: f"{length / slot:g} places",
        ("  order, without times", " order"),
    )
