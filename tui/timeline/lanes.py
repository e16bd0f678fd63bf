"""Lanes as the timeline sees them, spans with names and words: of equal ranks, of one of them, of a stream.

Those of a run are made when they are asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from simcore.ranks import Block, RankSet
from simcore.records import NamedTuple
from simcore.trace.lane_spans import COMPUTE_STREAM, Content, LaneOrder, Spans
from simcore.trace.lanes import Lanes
from simcore.units import percent, whole_percent
from tui.frame import Line, cells, in_cells, width_of, wrapped
from tui.session import Run
from tui.timeline.query import Query, matches

# Characters of ranks that are listed in a lane's name; of more their number.
_MOST_LISTED, _MOST_LISTED_NARROW = 12, 7
# Instead of a rank in a key: all that the lane stands for, or those that have no lane of their own.
ALL, OTHERS = -1, -2


class LaneKey(NamedTuple):
    """Which lane, the same in every arrangement.

    path: the headings down to a lane that heads others; () for lanes of ranks. number: their
    group. rank: ALL, OTHERS, or the only rank that the lane is of. stream: as in `SpanLane`.
    """

    path: tuple[str, ...] = ()
    number: int = -1
    rank: int = ALL
    stream: str | None = None


class Kind(NamedTuple):
    """An entry of the legend: a fill, its role, what it is; `parts`: (role, word) of its kinds."""

    fill: str
    role: str
    words: str
    parts: tuple[tuple[str, str], ...] = ()


def busy_words(busy_ns: int, length: int) -> str:
    """A share as a lane shows it: `49%`, `<1%` for anything below that is not nothing."""
    return "<1%" if 0 < 100 * busy_ns < length else f"{whole_percent(busy_ns, length)}%"


class SpanLane:
    """A lane of the timeline. Subclasses give what it has and what is said of it.

    number: which ranks it is of. stream: None for the lane that stands for them when folded,
    else the name of one of the lanes below it.
    """

    number: int
    stream: str | None

    @property
    def key(self) -> LaneKey:
        """Which lane it is."""
        return LaneKey((), self.number, ALL, self.stream)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The tracks that it is of."""
        return (self.number,)

    @property
    def title(self) -> str:
        """What stands in the lane column, without sign and count."""
        raise NotImplementedError

    @property
    def count(self) -> str:
        """What stands between title and busy share: how many ranks, or whose."""
        raise NotImplementedError

    @property
    def busy(self) -> str:
        """The share of the step in which the lane is busy: `49%`, `<1%`."""
        raise NotImplementedError

    def share(self, measure: str) -> str:
        """The share of the step that lanes are ordered by, as `busy` writes it."""
        return self.busy

    @property
    def content(self) -> Content:
        """What is on it."""
        raise NotImplementedError

    @property
    def spans(self) -> Spans:
        """The lane's spans, none of them empty."""
        return self.content.spans

    @property
    def by_majority(self) -> bool:
        """Whether a cell shows what fills most of it; else how busy it is."""
        return self.stream in (None, COMPUTE_STREAM)

    def label(self, op: int, room: int) -> str:
        """A span's name in at most `room` cells."""
        raise NotImplementedError

    def told(self, index: int | None, others: str, width: int, wide: bool) -> list[Line]:
        """The lines about span `index`, or about a time without one; `others`: what else is there."""
        raise NotImplementedError

    def matches(self, query: Query) -> bytes:
        """For each span 1 if a query means it, else 0; what the query says of lanes is not looked at."""
        raise NotImplementedError

    @property
    def seams(self) -> Sequence[int]:
        """When a step ends here and the next one begins, ns: none in a lane of one step."""
        return ()

    @property
    def whose(self) -> str:
        """The ranks of a stream's lane, in few words."""
        return f"rank {self.key.rank}" if self.key.rank >= 0 else str(self.number)

    @property
    def short_title(self) -> str:
        """The title on a narrow terminal."""
        short = self.title.replace("stage ", "").replace("rank ", "").replace("compute", "comp")
        # Of a device's streams and its host's threads the number is what tells them apart.
        short = short.replace("stream ", "s").replace("host ", "h").replace("thread ", "t")
        if self.stream is None:
            return short
        word = short.split(" ")[0]
        return _SHORT_STREAMS.get(word, word)


_FILLS = (
    ("fwd", "forward"), ("bwd", "backward"), ("wg", "weight grad"), ("recompute", "recompute"),
    ("opt", "optimizer"), ("kernel", "kernel"),
)  # fmt: skip
# Streams whose names have more than five letters.
_SHORT_STREAMS = {"dp_shard": "shard", "dp_replicate": "repl", "offload": "offl"}
_COMMUNICATION = (
    "tp", "dp", "dp_shard", "dp_replicate", "dp_ep", "ep", "pp", "cp", "all", "offload", "embedding",
    "position", "comm",
)  # fmt: skip
_THIN = (("copy", "copy"), ("host", "host"), ("wait", "wait"), ("bubble", "bubble"))


def legend_of(names: Collection[str], communication: str) -> tuple[Kind, ...]:
    """The kinds of cell among KINDS that `names` has, in one order.

    communication: what its kinds are called together.
    """
    kinds = [
        Kind("fwd" if name == "recompute" else name, name, words) for name, words in _FILLS if name in names
    ]
    parts = tuple((name, name) for name in _COMMUNICATION if name in names)
    if parts:
        kinds.append(Kind("exposed", parts[0][0], communication, parts))
    kinds += [Kind(name, name, words) for name, words in _THIN if name in names]
    return (*kinds, Kind("idle", "", "idle")) if "idle" in names else tuple(kinds)


@dataclass(frozen=True)
class Lane(SpanLane):
    """A lane of ranks (stream None) or of one of their streams.

    number: the track that its words are of. rank: ALL, the only rank it is of, or OTHERS. rank_set: the equal
    ranks that it stands for; of OTHERS these and the ones apart. name: what its ranks are called. left:
    how many ranks OTHERS are. alike: the tracks that it stands for, the spans those of the first; short: what
    they are called where there is little room.
    """

    of: Lanes
    number: int
    stream: str | None
    rank: int
    rank_set: RankSet = field(compare=False)
    name: str = field(compare=False)
    left: int = 0
    alike: tuple[int, ...] = field(default=(), compare=False)
    short: str = field(default="", compare=False)

    @property
    def numbers(self) -> tuple[int, ...]:
        return self.alike or (self.number,)

    @property
    def short_title(self) -> str:
        return self.short or super().short_title

    @property
    def key(self) -> LaneKey:
        return LaneKey((), self.number, self.rank, self.stream)

    @property
    def title(self) -> str:
        return self.name if self.stream is None else self.of.streams(self.number)[self.stream]

    @property
    def seams(self) -> Sequence[int]:
        return self.of.track(self.number).seams if self.stream in (None, COMPUTE_STREAM) else ()

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
        if self.of.facts.beside[0] != "x":
            return self.of.track(self.number).beside
        if self.rank >= 0 or (self.ranks == 1 and self.name.startswith("rank")):
            return ""
        return f"x{short_count(self.ranks)}"

    @cached_property
    def busy(self) -> str:
        if not self.of.facts.timed:
            return ""
        step = self.of.facts.length
        if self.stream in (None, COMPUTE_STREAM):
            return busy_words(self.of.measure_ns("busy", self.number), step)
        return busy_words(sum(self.content.shares.between(0, step).values()), step)

    def share(self, measure: str) -> str:
        if self.stream is not None or not measure or not self.of.facts.timed:
            return self.busy
        return busy_words(self.of.measure_ns(measure, self.number), self.of.facts.length)

    @cached_property
    def content(self) -> Content:
        return self.of.content(self._number, self.stream)

    @property
    def _number(self) -> int:
        """The track whose lane is drawn, of equal ones the first."""
        return self.of.track(self.number).number

    def matches(self, query: Query) -> bytes:
        return matches(self.spans, self.of.searched(self._number, self.stream), query)

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
    """The lanes of a run as the timeline needs them, and the words around them. of: the run's own.

    numbers: of the groups of ranks that are a lane each when all is folded; groups: how many they are.
    """

    def __init__(self, run: Run) -> None:
        self.of = of = run.lanes
        self.axis, self.numbers, self.orders = of.facts.axis, of.facts.numbers, of.facts.orders
        self.groups = len(self.numbers)
        self._lanes: dict[tuple[int, int, str | None], Lane] = {}
        self._together: dict[tuple[int, ...], Lane] = {}

    @property
    def length(self) -> int:
        """The end of the axis, ns: the step time."""
        return self.of.facts.length

    @cached_property
    def legend(self) -> tuple[Kind, ...]:
        """Each kind of cell that occurs."""
        return legend_of(self.of.kinds, self.of.facts.communication)

    def measure(self, order: LaneOrder, number: int) -> int:
        """What an order goes by, of a group of ranks; the smallest comes first."""
        ns = self.of.measure_ns(order.id, number)
        return ns if order.least_first else -ns

    def count(self, number: int) -> int:
        """How many ranks a group has."""
        return len(self.of.track(number).ranks)

    def lane(self, number: int, rank: int = ALL, left: int = 0) -> Lane:
        """The folded lane of a group, of one of its ranks, or (OTHERS) of the `left` others."""
        # A comparison asks for a track of any rank, not only for those that stand for their equals.
        alike = self._lane(self.of.track(number).number, rank, None)
        # How many are left changes with every rank that is shown apart.
        return Lane(self.of, number, None, OTHERS, alike.rank_set, "the others", left) if left else alike

    def _lane(self, number: int, rank: int, stream: str | None) -> Lane:
        """A lane, the same one each time: what it has computed is kept."""
        of = self.of
        ranks = of.track(number).ranks
        if rank >= 0 and len(ranks) == 1:
            # The lane of its track is that of the rank.
            rank = ALL
        lane = self._lanes.get((number, rank, stream))
        if lane is None:
            if rank == ALL:
                lane = Lane(of, number, stream, ALL, ranks, of.track(number).title)
            else:
                own, name = number, "the others"
                if rank >= 0:
                    # Its own track has the words of where its figures come from.
                    own_number = of.own_number(rank)
                    own = number if own_number is None else own_number
                    name, ranks = f"rank {rank}", RankSet([Block(rank, rank)])
                lane = Lane(of, own, stream, rank, ranks, name)
            self._lanes[number, rank, stream] = lane
        return lane

    def together(self, numbers: Sequence[int]) -> Lane:
        """The lane that stands for tracks that are alike: the spans and figures of the first of them."""
        of, first = self.of, self._lane(numbers[0], ALL, None)
        key = tuple(numbers)
        if key not in self._together:
            ranks = RankSet.of(rank for number in numbers for rank in of.track(number).ranks)
            listed = ranks.text()
            unit = of.track(first.number).title.split()[0]
            wide = f"{unit}s {listed}" if len(listed) <= _MOST_LISTED else f"{len(ranks)} {unit}s"
            narrow = listed if len(listed) <= _MOST_LISTED_NARROW else f"x{len(ranks)}"
            alike = of.facts.alike
            within = "".join(alike.split()[-2:])
            self._together[key] = Lane(
                of, first.number, None, ALL, ranks, f"{wide} ({alike})", alike=key,
                short=f"{narrow} ~{within}",
            )  # fmt: skip
        return self._together[key]

    def streams(self, number: int, rank: int = ALL) -> list[SpanLane]:
        """The lanes below it."""
        return [self._lane(number, rank, stream) for stream in self.of.streams(number)]

    def told(self, title: Line, numbers: Sequence[int]) -> list[Line]:
        """Which of several groups of ranks have the extremes, behind their title; then each figure from least
        to most.
        """
        spread = self.of.spread(numbers)
        if not spread:
            return [title]
        line: Line = []
        for words, values in spread.items():
            if max(values):
                least, most = percent(min(values), self.length), percent(max(values), self.length)
                told = least if least == most else f"{least}..{most}"
                line += [(f"{words} ", "dim"), (told, "bright"), (" % ", "")]
        busy = next(iter(spread.values()))
        if min(busy) == max(busy):
            return [title, line]
        least_busy, most_busy = (
            self.of.track(numbers[busy.index(pick(busy))]).ranks.first for pick in (min, max)
        )
        extremes = f"   least compute: rank {least_busy}, most: rank {most_busy}"
        return [[*title, (extremes, "")], line]
