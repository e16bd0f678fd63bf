"""The lanes of a run: each of a set of equal ranks, of one of them, or of one of their streams."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from simcore.analysis.shares import Shares
from simcore.ranks import Block, RankSet
from simcore.run.lanes import COMPUTE_STREAM, LaneOrder, RunLanes, Searched, Spans
from simcore.units import percent
from tui.frame import Line, cells, in_cells, width_of, wrapped
from tui.session import Run
from tui.timeline.query import Query, matches
from tui.timeline.spans import ALL, OTHERS, Kind, LaneKey, SpanLane, busy_words

_FILLS = (
    ("fwd", "forward"), ("bwd", "backward"), ("wg", "weight grad"), ("recompute", "recompute"),
    ("opt", "optimizer"), ("kernel", "kernel"),
)  # fmt: skip
_COMMUNICATION = ("tp", "dp", "dp_ep", "ep", "pp", "cp", "all", "embedding", "position", "comm")
_THIN = (("copy", "copy"), ("host", "host"), ("wait", "wait"), ("bubble", "bubble"))


def legend_of(names: Collection[str], communication: str, idle: str = "idle") -> tuple[Kind, ...]:
    """The kinds of cell among KINDS that `names` has, in one order.

    communication, idle: what these are called.
    """
    kinds = [
        Kind("fwd" if name == "recompute" else name, name, words) for name, words in _FILLS if name in names
    ]
    parts = tuple((name, name) for name in _COMMUNICATION if name in names)
    if parts:
        kinds.append(Kind("exposed", parts[0][0], communication, parts))
    kinds += [Kind(name, name, words) for name, words in _THIN if name in names]
    return (*kinds, Kind("idle", "", idle)) if "idle" in names else tuple(kinds)


def told_group(
    title: Line, ranks: Sequence[int], found: Mapping[str, Sequence[int]], length: int
) -> list[Line]:
    """Which of several lanes have the extremes, behind `title`; then each figure from least to most.

    ranks: the first of each lane. found: figure -> ns of each lane, the compute first.
    """
    line: Line = []
    for words, values in found.items():
        if max(values):
            least, most = percent(min(values), length), percent(max(values), length)
            line += [
                (f"{words} ", "dim"),
                (least if least == most else f"{least}..{most}", "bright"),
                (" % ", ""),
            ]
    busy = next(iter(found.values()))
    if min(busy) == max(busy):
        return [title, line]
    least_busy, most_busy = (ranks[busy.index(pick(busy))] for pick in (min, max))
    extremes = f"   least compute: rank {least_busy}, most: rank {most_busy}"
    return [[*title, (extremes, "")], line]


@dataclass(frozen=True)
class Lane(SpanLane):
    """A lane of ranks (stream None) or of one of their streams.

    number: the track that its words are of. rank: ALL, the only rank it is of, or OTHERS. rank_set: the equal
    ranks that it stands for; of OTHERS these and the ones apart. name: what its ranks are called. like: the
    lane of an equal rank, whose spans and sums it shares. left: how many ranks OTHERS are.
    """

    of: RunLanes
    number: int
    stream: str | None
    rank: int
    rank_set: RankSet = field(compare=False)
    name: str = field(compare=False)
    like: Lane | None = field(default=None, compare=False)
    left: int = 0

    @property
    def key(self) -> LaneKey:
        return LaneKey((), self.number, self.rank, self.stream)

    @property
    def may_overlap(self) -> bool:
        return self.of.overlaps(self.stream)

    @property
    def covers_all(self) -> bool:
        return self.of.covers_all(self.stream)

    @property
    def title(self) -> str:
        return self.name if self.stream is None else self.of.stream_title(self.number, self.stream)

    @property
    def seams(self) -> Sequence[int]:
        return self.of.seams(self.number) if self.stream in (None, COMPUTE_STREAM) else ()

    @property
    def whose(self) -> str:
        return " ".join(self.name.split())

    @property
    def ranks(self) -> int:
        """How many equal ranks the lane stands for."""
        return self.left or len(self.rank_set)

    @property
    def count(self) -> str:
        if self.stream is not None:
            return ""
        if self.of.numbered[0] != "x":
            return self.of.beside(self.number)
        if self.rank >= 0 or (self.ranks == 1 and self.name.startswith("rank")):
            return ""
        return f"x{short_count(self.ranks)}"

    @cached_property
    def busy(self) -> str:
        if not self.of.timed:
            return ""
        step = self.of.length
        if self.stream in (None, COMPUTE_STREAM):
            return busy_words(self.of.busy_ns(self.number), step)
        return busy_words(sum(self.shares.between(0, step).values()), step)

    def share(self, measure: str) -> str:
        if self.stream is not None or not measure or not self.of.timed:
            return self.busy
        return busy_words(self.of.measure_ns(measure, self.number), self.of.length)

    @cached_property
    def spans(self) -> Spans:
        return self.of.spans(self.number, self.stream) if self.like is None else self.like.spans

    @cached_property
    def drawn(self) -> Spans:
        return self.of.drawn(self.number, self.stream) if self.like is None else self.like.drawn

    @cached_property
    def shares(self) -> Shares:
        return super().shares if self.like is None else self.like.shares

    @cached_property
    def searched(self) -> Searched:
        """What a search looks at."""
        return self.of.searched(self.number, self.stream) if self.like is None else self.like.searched

    def matches(self, query: Query) -> bytes:
        return matches(self.spans, self.searched, query)

    def label(self, op: int, room: int) -> str:
        """A span's name in at most `room` cells; it is cut for its ending, if three cells of it are left."""
        name, ending = self.of.name(self.number, op)
        name = cells(name)
        return name[:room] if room - len(ending) < min(len(name), 3) else name[: room - len(ending)] + ending

    def told(self, index: int | None, others: str, width: int, wide: bool) -> list[Line]:
        """The span, its times, then where its duration comes from, in lines of at most `width` cells."""
        said = self.of.words.said(self.number, self.stream, index, self.rank_set)
        whose = [in_cells(words) for words in (said.whose if wide else said.whose[-1:])]
        if index is None:
            return [[("nothing runs here", ""), ("   ", ""), (whose[0], "dim")]]
        what = in_cells(said.what)
        room = width - len(what) - len(others) - 3
        # The lane at the cursor is named beside its cells, too.
        fitting = next((f"   {words}" for words in whose if len(words) <= room), "")
        second: Line = [(said.times, "")]
        if said.length:
            second += [("   ", ""), (said.length, "bright")]
        takes, since = said.itself
        if takes:
            fits = width_of(second) + len(takes) + 3 + len(since) <= width
            second += [(f"   {takes}", "dim"), (since if fits else "", "dim")]
        more = wrapped(in_cells(said.more), width - 4)
        first: Line = [(what, "bright"), (others, "warn"), (fitting, "dim")]
        return [first, second, *([(line, "")] for line in more)]


def short_count(ranks: int) -> str:
    """How many ranks, in at most four characters: 64, 1024, 131k, 1.0M."""
    if ranks < 10_000:
        return str(ranks)
    return f"{ranks // 1000}k" if ranks < 1_000_000 else f"{ranks / 1e6:.1f}M"


class LaneSource:
    """The lanes of a run as the timeline needs them, and the words around them. of: the run's own."""

    def __init__(self, run: Run) -> None:
        self.of = of = run.lanes
        self.axis, self.numbers, self.orders = of.axis, of.numbers, of.orders
        self._lanes: dict[tuple[int, int, str | None], Lane] = {}

    @property
    def length(self) -> int:
        """The end of the axis, ns: the step time."""
        return self.of.length

    @property
    def groups(self) -> int:
        """How many groups of ranks are a lane each when all is folded: `numbers` has them."""
        return len(self.numbers)

    @property
    def count_heading(self) -> tuple[str, str]:
        """What the column between lane and busy share has, in a wide and in a narrow heading."""
        return self.of.numbered

    @cached_property
    def legend(self) -> tuple[Kind, ...]:
        """Each kind of cell that occurs."""
        return legend_of(self.of.kinds, self.of.communication_words, self.of.idle_words)

    def measure(self, order: LaneOrder, number: int) -> int:
        """What an order goes by, of a group of ranks; the smallest comes first."""
        ns = self.of.measure_ns(order.id, number)
        return ns if order.least_first else -ns

    def count(self, number: int) -> int:
        """How many ranks a group has."""
        return len(self.of.ranks(number))

    def lane(self, number: int, rank: int = ALL, left: int = 0) -> Lane:
        """The folded lane of a group, of one of its ranks, or (OTHERS) of the `left` others."""
        # A comparison asks for a track of any rank, not only for those that stand for their equals.
        found = self._lane(self.of.number_like(number), rank, None)
        # How many are left changes with every rank that is shown apart.
        return (
            Lane(self.of, number, None, OTHERS, found.rank_set, "the others", found.like, left)
            if left
            else found
        )

    def _lane(self, number: int, rank: int, stream: str | None) -> Lane:
        """A lane, the same one each time: what it has computed is kept."""
        of = self.of
        ranks = of.ranks(number)
        if rank >= 0 and len(ranks) == 1:
            # The lane of its track is that of the rank.
            rank = ALL
        found = self._lanes.get((number, rank, stream))
        if found is None:
            if rank == ALL:
                found = Lane(of, number, stream, ALL, ranks, of.title(number))
            else:
                like, own, name = self._lane(number, ALL, stream), number, "the others"
                if rank >= 0:
                    # Its own track has the words of where its figures come from.
                    own, name, ranks = of.own_number(rank), f"rank {rank}", RankSet([Block(rank, rank)])
                found = Lane(of, own, stream, rank, ranks, name, like)
            self._lanes[number, rank, stream] = found
        return found

    def streams(self, number: int, rank: int = ALL) -> list[SpanLane]:
        """The lanes below it."""
        return [self._lane(number, rank, stream) for stream in self.of.streams(number)]

    def told(self, title: Line, numbers: Sequence[int]) -> list[Line]:
        """What there is to say of several groups of ranks together, behind their title."""
        found = self.of.spread(numbers)
        if not found:
            return [title]
        firsts = [self.of.ranks(number).first for number in numbers]
        return told_group(title, firsts, found, self.length)
