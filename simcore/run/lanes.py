"""A run as lanes of spans, whatever it came from, and what is said of a span.

Which lanes there are, what is in them, how much of a stretch is what, and what a search finds in them; a
span at the cursor, in full, and along what waits for what; how the axis is written, in times or in places
of an order without times.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from simcore.records import NamedTuple, Struct
from simcore.units import duration

if TYPE_CHECKING:
    from simcore.ranks import RankSet


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


class Spans(Struct, frozen=True):
    """Spans of a lane as columns, ascending by start, ns.

    op: what the run knows the span by. category: index into KINDS.
    """

    start: array[int]
    end: array[int]
    op: array[int]
    category: bytearray


class LaneOrder(NamedTuple):
    """A way to order lanes. id: of the measure. words: in the heading, in at most twelve cells.
    column: what the share beside each lane is then of; its first four letters are enough. least_first:
    whether the smallest comes first, else the largest.
    """

    id: str
    words: str
    column: str
    least_first: bool = False


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

    of: tuple[Figure, ...]
    room_ns: int
    ranks: int


class Searched(Struct, frozen=True):
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


def codes(numbers: Iterable[int]) -> Sequence[int]:
    """Numbers from 0 on as bytes, where they all fit, else as a column."""
    column = array("q", numbers)
    return bytes(column.tolist()) if max(column, default=0) < 256 else column


class RunLanes(Protocol):
    """The lanes of a run. number: a track, or the one that stands for those equal to it (`of_rank`).
    stream: one of its streams, None for all that its ranks do.

    A lane is that of a track (stream None: what its ranks do all the time, as far as it is known) or of one
    of its streams. Spans are given as the same object each time.
    """

    @property
    def length(self) -> int:
        """The end of the axis, ns: the step time."""

    @property
    def timed(self) -> bool:
        """Whether the axis is time; else it is an order, and nothing is busy for so long."""

    @property
    def axis(self) -> TimeAxis:
        """How places of the axis are written."""

    @property
    def numbers(self) -> Sequence[int]:
        """The tracks with a lane of their own when all is folded, in their order."""

    @property
    def counted(self) -> str:
        """How many ranks there are, and in how many lanes."""

    @property
    def numbered(self) -> tuple[str, str]:
        """What the column beside the titles has: ("x", "") how many ranks, else its heading, wide and
        narrow, and `beside` has its cells."""

    def beside(self, number: int) -> str:
        """What stands there of a track; "" where it is how many ranks it has."""

    @property
    def kinds(self) -> Collection[str]:
        """The names of KINDS that cells can be of."""

    @property
    def communication_words(self) -> str:
        """What the kinds of communication are together: `exposed` where they hold compute back."""

    @property
    def heat(self) -> Mapping[int, int]:
        """The tracks whose compute adds up over the ranks, each with how many they count for."""

    @property
    def orders(self) -> Sequence[LaneOrder]:
        """The ways to order lanes, the natural one first."""

    def measure_ns(self, order: str, number: int) -> int:
        """ns of the step that an order goes by, of a rank of a track."""

    def busy_ns(self, number: int) -> int:
        """ns of the step that a rank of a track computes."""

    def spread(self, numbers: Sequence[int]) -> dict[str, list[int]]:
        """Figure -> ns of each of some tracks, the compute first; {} where there are no times."""

    # -- ranks -------------------------------------------------------------------------

    def headings(self, number: int) -> tuple[str, ...]:
        """What a track belongs to, from the outermost: its stage, its parallel group."""

    def ranks(self, number: int) -> RankSet:
        """The ranks of a track and of those equal to it, ascending."""

    def number_of(self, rank: int) -> int | None:
        """The track whose lane a rank is in, None for no rank of this run."""

    def number_like(self, number: int) -> int:
        """The track whose lane stands for a track."""

    def alike(self, number: int) -> Sequence[int]:
        """The tracks that may be one lane with a track, itself among them, ascending: their ranks do alike
        (`alike_words`), if not the same. Itself alone where equals are one lane anyway.
        """

    @property
    def alike_words(self) -> str:
        """What they are: `alike within 2 %`; "" where there are none."""

    def own_number(self, rank: int) -> int:
        """The track that has the words for a rank's figures: its own, where it is simulated."""

    def stage_of(self, number: int) -> int | None:
        """The pipeline stage of a track."""

    def rank_words(self, rank: int) -> str:
        """Where a rank is: `rank 37 = stage 0, dp 4, tp 5`."""

    def missing(self, rank: int | None, stage: int | None, microbatch: int | None) -> str:
        """Which of them this run does not have, in words; "" if it has all."""

    # -- spans -------------------------------------------------------------------------

    def title(self, number: int) -> str:
        """The name of a track's lane."""

    def streams(self, number: int) -> list[str]:
        """The streams of a track, compute first."""

    def stream_title(self, number: int, stream: str) -> str:
        """The name of a stream's lane."""

    def spans(self, number: int, stream: str | None) -> Spans:
        """The spans of a lane, none of them empty."""

    def drawn(self, number: int, stream: str | None) -> Spans:
        """What its cells are drawn from: its spans, or the parts of them that are of other kinds."""

    def seams(self, number: int) -> Sequence[int]:
        """When a step of a track ends and the next one begins, ns: none of one step alone."""

    def overlaps(self, stream: str | None) -> bool:
        """Whether spans of such a lane may run at the same time."""

    def covers_all(self, stream: str | None) -> bool:
        """Whether there is a span at every time of the step."""

    def name(self, number: int, op: int) -> tuple[str, str]:
        """(name, ending) of a span: the name may be cut for the ending; raw text."""

    def names(self) -> Collection[str]:
        """The names of rows or operations, each once, raw text."""

    def searched(self, number: int, stream: str | None) -> Searched:
        """What a search looks at of a lane."""

    # -- what one moves by ---------------------------------------------------------------

    def passes(self, number: int) -> Sequence[TimeStretch]:
        """The passes of micro-batches, in the order of time."""

    def waits(self, number: int) -> Sequence[int]:
        """The spans of a track's lane in which it waits, the longest wait first, then the idle ones."""

    def all_waits(self) -> Sequence[tuple[int, int]]:
        """(number, span) of the waits of all lanes, in that order."""

    def waited_ns(self, number: int, index: int) -> int:
        """How long it waits in a span of `waits`: all of it, or a part."""

    def path(self) -> Iterator[tuple[int, int, int, int, str]] | None:
        """(start, end, number, rank, stream) of the critical path's segments in the order of time; stream ""
        where only the lane of the track shows one. None where the ranks have no common time.
        """

    @property
    def figure_words(self) -> Sequence[str]:
        """The words of all figures, in the order in which they are told."""

    def figures(self, number: int, first_ns: int, last_ns: int) -> StretchFigures:
        """What a rank of a track does from `first_ns` to `last_ns`."""

    def all_figures(self, first_ns: int, last_ns: int) -> StretchFigures:
        """What all ranks do, added up."""

    def longest(self, number: int, first_ns: int, last_ns: int) -> tuple[int, Figure | None]:
        """(spans of a track's lane in a stretch, the longest of them as it is cut there)."""

    @property
    def words(self) -> SpanWords:
        """What is said of single spans."""


def figures_of(kinds: Sequence[Figure], figures: Sequence[int], room_ns: int, ranks: int) -> StretchFigures:
    """ns by figure as `StretchFigures`, those that there are."""
    pairs = zip(kinds, figures, strict=True)
    return StretchFigures(tuple(figure._replace(ns=ns) for figure, ns in pairs if ns), room_ns, ranks)


class SpanSaid(NamedTuple):
    """A span in few words. Text of a file in them is printable.

    what: it is; "" between spans. whose: the ranks, the most words first. times: when. length: how long, ""
    where the file has no duration. itself: (words, more words) on the transfer or collective behind a wait.
    more: where the duration comes from, or what the file says.
    """

    what: str
    whose: tuple[str, ...]
    times: str = ""
    length: str = ""
    itself: tuple[str, str] = ("", "")
    more: str = ""


class Step(NamedTuple):
    """A span to go to. number: its track; stream: of the lane that shows it. words: what it is, and why it
    is a cause or an effect.
    """

    number: int
    stream: str | None
    start_ns: int
    rank: int
    words: str


class SpanWords(Protocol):
    """What a run says of its spans: `index` of the lane of a track, or of one of its streams.

    rank: the one of the track's ranks that is spoken of, None for the first.
    """

    def said(self, number: int, stream: str | None, index: int | None, ranks: RankSet) -> SpanSaid:
        """The span, or (None) that nothing runs. ranks: those that the lane stands for."""

    def volume(self, number: int, stream: str | None, index: int) -> str:
        """How many bytes a span moves, and how fast; "" for compute."""

    def aside(self, number: int, stream: str | None, index: int, wide: bool, rank: int | None) -> str:
        """What there is to say besides: its pass, for whom it waits. wide: whether there is a line for it."""

    def all_of(self, number: int, stream: str | None, index: int, rank: int | None) -> list[tuple[str, str]]:
        """(label, words): all that is known of a span."""

    def walk(
        self, number: int, stream: str | None, index: int, rank: int | None, direction: int
    ) -> Sequence[Step]:
        """What a span waited for (-1), or holds back (1); the first one binds."""

    def critical(self, time_ns: int, direction: int) -> Step | None:
        """The segment of the critical path behind (1) or before (-1) that at a time; None past its ends."""


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 21st."""
    ending = "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def microbatch_words(number: int, microbatches: int) -> str:
    """`micro-batch 2 (3rd of 16)`: the number of files and JSON counts from 0, people from 1."""
    return f"micro-batch {number} ({ordinal(number + 1)} of {microbatches})"


def clock(time_ns: int) -> str:
    """A time of the step in groups of three: `6.204 608 123 s`."""
    whole, rest = divmod(time_ns, 10**9)
    digits = f"{rest:09d}"
    return f"{whole}.{digits[:3]} {digits[3:6]} {digits[6:]} s"


class TimeAxis(NamedTuple):
    """units: (its size, its name) of the ruler's labels, the largest first. clock: a place in
    words. length: a stretch in words. title: above the lanes, wide and narrow.
    """

    units: tuple[tuple[int, str], ...]
    clock: Callable[[int], str]
    length: Callable[[int], str]
    title: tuple[str, str]


TIME = TimeAxis(
    ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns")), clock, duration,
    ("  all ranks, computing", " all ranks"),
)  # fmt: skip


def order_axis(slot: int) -> TimeAxis:
    """The axis of a schedule without times: each operation takes `slot` units, whatever it does."""
    return TimeAxis(
        ((slot, "op"),),
        lambda place: f"place {place // slot}",
        lambda length: f"{length / slot:g} places",
        ("  order, without times", " order"),
    )
