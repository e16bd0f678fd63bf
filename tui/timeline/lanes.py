"""Lanes as the timeline sees them, spans with names and words: of equal ranks, of one of them, of a stream.

The lanes of a run are made on demand.
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
from tui.timeline.query import Query, match_spans

# Characters of ranks that are listed in a lane's name; of more ranks it has the count.
_MOST_LISTED, _MOST_LISTED_NARROW = 12, 7
# Instead of a rank in a key: all that the lane stands for, or those that have no lane of their own.
ALL, OTHERS = -1, -2


class LaneKey(NamedTuple):
    """Which lane, the same in every arrangement."""

    path: tuple[str, ...] = ()
    """The headings down to a lane that heads others; () for lanes of ranks."""
    track_id: int = -1
    """The track of its ranks."""
    rank: int = ALL
    """ALL, OTHERS, or the only rank that the lane is of."""
    stream: str | None = None
    """As in `SpanLane`."""


class Kind(NamedTuple):
    """An entry of the legend."""

    fill: str
    role: str
    words: str
    """What it is."""
    parts: tuple[tuple[str, str], ...] = ()
    """(role, word) of each of its kinds."""


def format_share(busy_ns: int, length: int) -> str:
    """Returns a share as a lane shows it: `49%`, `<1%` for anything below that is not nothing."""
    return "<1%" if 0 < 100 * busy_ns < length else f"{whole_percent(busy_ns, length)}%"


class SpanLane:
    """A lane of the timeline. Subclasses provide its content and its texts."""

    track_id: int
    """The track whose ranks it is of."""
    stream: str | None
    """The name of its stream; None for the folded lane of all streams."""

    @property
    def key(self) -> LaneKey:
        """Which lane it is."""
        return LaneKey((), self.track_id, ALL, self.stream)

    @property
    def track_ids(self) -> tuple[int, ...]:
        """The tracks that it is of."""
        return (self.track_id,)

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
        """Returns the share of the step that lanes are ordered by, as `busy` writes it."""
        return self.busy

    @property
    def content(self) -> Content:
        """The spans on it and their columns."""
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
        """Returns a span's name in at most `room` cells."""
        raise NotImplementedError

    def detail_lines(self, index: int | None, others: str, width: int, wide: bool) -> list[Line]:
        """Returns the lines about span `index`, or about a time without one; `others`: what else is there."""
        raise NotImplementedError

    def matches(self, query: Query) -> bytes:
        """Returns 1 for each span that a query means, else 0; what the query says of lanes is ignored."""
        raise NotImplementedError

    @property
    def seams(self) -> Sequence[int]:
        """Where one step ends and the next one begins, ns: none in a lane of one step."""
        return ()

    @property
    def whose(self) -> str:
        """The ranks of a stream's lane, in few words."""
        return f"rank {self.key.rank}" if self.key.rank >= 0 else str(self.track_id)

    @property
    def short_title(self) -> str:
        """The title on a narrow terminal."""
        short = self.title.replace("stage ", "").replace("rank ", "").replace("compute", "comp")
        short = short.replace("device ", "dev ")
        # A device's streams and its host's threads are told apart by their number.
        short = short.replace("stream ", "s").replace("host ", "h").replace("thread ", "t")
        if self.stream is None:
            return short
        word = short.split(" ")[0]
        return _SHORT_STREAMS.get(word, word)


_FILLS = (
    ("fwd", "forward"), ("bwd", "backward"), ("wg", "weight grad"), ("recompute", "recompute"),
    ("opt", "optimizer"), ("kernel", "kernel"), ("allocated", "allocated"), ("released", "released"),
)  # fmt: skip
# Streams whose names have more than five letters.
_SHORT_STREAMS = {
    "dp_shard": "shard", "dp_replicate": "repl", "offload": "offl", "cp_a2a": "a2a", "cp_p2p": "p2p",
    "ep_intra": "intra", "ep_inter": "inter",
}  # fmt: skip
_COMMUNICATION = (
    "tp", "dp", "dp_shard", "dp_replicate", "dp_ep", "ep", "ep_intra", "ep_inter", "pp", "cp", "cp_a2a",
    "cp_p2p", "all", "offload", "embedding", "position", "comm",
)  # fmt: skip
_THIN = (("copy", "copy"), ("host", "host"), ("wait", "wait"), ("bubble", "bubble"), ("reserved", "reserved"))


def legend_of(names: Collection[str], communication: str) -> tuple[Kind, ...]:
    """Returns the kinds of cell among KINDS that `names` has, in one order.

    communication: the common word for its kinds.
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
    """A lane of ranks (stream None) or of one of their streams."""

    of: Lanes
    track_id: int
    """The track that its words are of."""
    stream: str | None
    rank: int
    """ALL, the only rank it is of, or OTHERS."""
    rank_set: RankSet = field(compare=False)
    """The equal ranks that it stands for; of OTHERS these and the ones shown apart."""
    name: str = field(compare=False)
    """What its ranks are called."""
    others_count: int = 0
    """How many ranks OTHERS are."""
    similar_tracks: tuple[int, ...] = field(default=(), compare=False)
    """The similar tracks that it stands for; the spans are those of the first."""
    short: str = field(default="", compare=False)
    """What they are called where there is little room."""

    @property
    def track_ids(self) -> tuple[int, ...]:
        return self.similar_tracks or (self.track_id,)

    @property
    def short_title(self) -> str:
        return self.short or super().short_title

    @property
    def key(self) -> LaneKey:
        return LaneKey((), self.track_id, self.rank, self.stream)

    @property
    def title(self) -> str:
        return self.name if self.stream is None else self.of.streams(self.track_id)[self.stream]

    @property
    def seams(self) -> Sequence[int]:
        return self.of.track(self.track_id).seams if self.stream in (None, COMPUTE_STREAM) else ()

    @property
    def whose(self) -> str:
        return " ".join(self.name.split())

    @property
    def rank_count(self) -> int:
        """How many equal ranks the lane stands for."""
        return self.others_count or len(self.rank_set)

    @property
    def count(self) -> str:
        if self.stream is not None:
            return ""
        if self.of.facts.note_heading[0] != "x":
            return self.of.track(self.track_id).title_note
        if self.rank >= 0 or (self.rank_count == 1 and self.name.startswith("rank")):
            return ""
        return f"x{format_count(self.rank_count)}"

    @property
    def by_majority(self) -> bool:
        return self.of.facts.filled or super().by_majority

    @cached_property
    def busy(self) -> str:
        if not self.of.facts.timed:
            return ""
        step = self.of.facts.length
        if self.stream in (None, COMPUTE_STREAM):
            return format_share(self.of.measure_ns("busy", self.track_id), step)
        return format_share(sum(self.content.shares.between(0, step).values()), step)

    def share(self, measure: str) -> str:
        if self.stream is not None or not measure or not self.of.facts.timed:
            return self.busy
        return format_share(self.of.measure_ns(measure, self.track_id), self.of.facts.length)

    @cached_property
    def content(self) -> Content:
        return self.of.content(self._drawn_track, self.stream)

    @property
    def _drawn_track(self) -> int:
        """The track whose lane is drawn, of equal ones the first."""
        return self.of.track(self.track_id).track_id

    def matches(self, query: Query) -> bytes:
        return match_spans(self.spans, self.of.search_columns(self._drawn_track, self.stream), query)

    def label(self, op: int, room: int) -> str:
        """Returns a span's name in at most `room` cells; it is truncated for its ending, if three cells of it
        remain.
        """
        name, ending = self.of.span_name(self.track_id, op)
        name = cells(name)
        return name[:room] if room - len(ending) < min(len(name), 3) else name[: room - len(ending)] + ending

    def detail_lines(self, index: int | None, others: str, width: int, wide: bool) -> list[Line]:
        """Returns the span, its times, then where its duration comes from, in lines of at most
        `width` cells.
        """
        summary = self.of.words.summarize(self.track_id, self.stream, index, self.rank_set)
        whose = [in_cells(words) for words in (summary.ranks_texts if wide else summary.ranks_texts[-1:])]
        if index is None:
            return [[("nothing runs here", ""), ("   ", ""), (whose[0], "dim")]]
        what = in_cells(summary.description)
        room = width - len(what) - len(others) - 3
        # The lane at the cursor is named next to its cells, too.
        whose_text = next((f"   {words}" for words in whose if len(words) <= room), "")
        second: Line = [(summary.times, "")]
        if summary.length:
            second += [("   ", ""), (summary.length, "bright")]
        takes, since = summary.partner
        if takes:
            fits = width_of(second) + len(takes) + 3 + len(since) <= width
            second += [(f"   {takes}", "dim"), (since if fits else "", "dim")]
        more = wrapped(in_cells(summary.details), width - 4)
        first: Line = [(what, "bright"), (others, "warn"), (whose_text, "dim")]
        return [first, second, *([(line, "")] for line in more)]


def format_count(ranks: int) -> str:
    """Returns how many ranks, in at most four characters: 64, 1024, 131k, 1.0M."""
    if ranks < 10_000:
        return str(ranks)
    return f"{ranks // 1000}k" if ranks < 1_000_000 else f"{ranks / 1e6:.1f}M"


class LaneSource:
    """The lanes of a run as the timeline needs them, and the words around them.

    `of` is the run's own lanes, `track_ids` those of the groups of ranks that have a lane each when all is
    folded, `track_count` how many they are.
    """

    def __init__(self, run: Run) -> None:
        self.of = of = run.lanes
        self.axis, self.track_ids, self.orders = of.facts.axis, of.facts.track_ids, of.facts.orders
        self.track_count = len(self.track_ids)
        self._lanes: dict[tuple[int, int, str | None], Lane] = {}
        self._merged_lanes: dict[tuple[int, ...], Lane] = {}

    @property
    def length(self) -> int:
        """The end of the axis, ns: the step time."""
        return self.of.facts.length

    @cached_property
    def legend(self) -> tuple[Kind, ...]:
        """Each kind of cell that occurs."""
        return legend_of(self.of.kinds, self.of.facts.communication)

    def order_value(self, order: LaneOrder, track_id: int) -> int:
        """Returns the sort key of a group of ranks in an order; the smallest comes first."""
        ns = self.of.measure_ns(order.id, track_id)
        return ns if order.least_first else -ns

    def count_ranks(self, track_id: int) -> int:
        """Returns how many ranks a group has."""
        return len(self.of.track(track_id).ranks)

    def lane(self, track_id: int, rank: int = ALL, others_count: int = 0) -> Lane:
        """Returns the folded lane of a group, of one of its ranks, or (OTHERS) of the `others_count` other
        ranks.
        """
        # A comparison asks for a track of any rank, not only for those that stand for their equals.
        full_lane = self._lane(self.of.track(track_id).track_id, rank, None)
        # The count of the others changes with every rank that is shown apart.
        return (
            Lane(self.of, track_id, None, OTHERS, full_lane.rank_set, "the others", others_count)
            if others_count
            else full_lane
        )

    def _lane(self, track_id: int, rank: int, stream: str | None) -> Lane:
        """Returns a lane, the same object each time: what it has computed is kept."""
        of = self.of
        ranks = of.track(track_id).ranks
        if rank >= 0 and len(ranks) == 1:
            # The lane of its track is that of the rank.
            rank = ALL
        lane = self._lanes.get((track_id, rank, stream))
        if lane is None:
            if rank == ALL:
                lane = Lane(of, track_id, stream, ALL, ranks, of.track(track_id).title)
            else:
                lane_track, name = track_id, "the others"
                if rank >= 0:
                    # The rank's own track has the words of where its figures come from.
                    own_track = of.own_track_id(rank)
                    lane_track = track_id if own_track is None else own_track
                    name, ranks = f"rank {rank}", RankSet([Block(rank, rank)])
                lane = Lane(of, lane_track, stream, rank, ranks, name)
            self._lanes[track_id, rank, stream] = lane
        return lane

    def merged_lane(self, track_ids: Sequence[int]) -> Lane:
        """Returns the lane that stands for similar tracks: the spans and figures of the first of them."""
        of, first = self.of, self._lane(track_ids[0], ALL, None)
        key = tuple(track_ids)
        if key not in self._merged_lanes:
            ranks = RankSet.of(rank for track_id in track_ids for rank in of.track(track_id).ranks)
            listed = ranks.text()
            unit = of.track(first.track_id).title.split()[0]
            wide = f"{unit}s {listed}" if len(listed) <= _MOST_LISTED else f"{len(ranks)} {unit}s"
            narrow = listed if len(listed) <= _MOST_LISTED_NARROW else f"x{len(ranks)}"
            similarity = of.facts.similar_text
            tolerance = "".join(similarity.split()[-2:])
            self._merged_lanes[key] = Lane(
                of, first.track_id, None, ALL, ranks, f"{wide} ({similarity})", similar_tracks=key,
                short=f"{narrow} ~{tolerance}",
            )  # fmt: skip
        return self._merged_lanes[key]

    def streams(self, track_id: int, rank: int = ALL) -> list[SpanLane]:
        """Returns the lanes of its streams."""
        return [self._lane(track_id, rank, stream) for stream in self.of.streams(track_id)]

    def searched_lanes(self, lane: SpanLane) -> list[SpanLane]:
        """Returns the lanes that have all spans of a lane: itself, or its streams where it shows only one of
        the spans that run at a time.
        """
        is_whole = lane.stream is not None or not self.of.facts.layered
        return [lane] if is_whole else self.streams(lane.track_id, lane.key.rank)

    def heading_lines(self, title: Line, track_ids: Sequence[int]) -> list[Line]:
        """Returns which of several groups of ranks have the extremes, behind their title; then each figure
        from least to most.
        """
        spread = self.of.times_by_measure(track_ids)
        if not spread:
            return [title]
        line: Line = []
        for words, values in spread.items():
            if max(values):
                least, most = percent(min(values), self.length), percent(max(values), self.length)
                range_text = least if least == most else f"{least}..{most}"
                line += [(f"{words} ", "dim"), (range_text, "bright"), (" % ", "")]
        busy = next(iter(spread.values()))
        if min(busy) == max(busy):
            return [title, line]
        least_busy, most_busy = (
            self.of.track(track_ids[busy.index(pick(busy))]).ranks.first for pick in (min, max)
        )
        extremes = f"   least compute: rank {least_busy}, most: rank {most_busy}"
        return [[*title, (extremes, "")], line]
