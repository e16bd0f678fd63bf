"""The lanes of a measured run: one for each rank, below it its compute and its group kinds."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Collection, Sequence
from functools import cache, cached_property
from itertools import compress
from operator import eq
from typing import TYPE_CHECKING

from simcore.diagnostics import printable_within
from simcore.kernel_names import display_name
from simcore.measured.columns import RankTrace
from simcore.measured.facts import span_facts, stream_name, stream_word
from simcore.measured.lanes import (
    ANNOTATIONS_LANE,
    CALLS_LANE,
    HOST_LANE,
    NO_GROUP,
    STREAM_LANE,
    lane_kinds,
    lane_spans,
    rank_segments,
    rank_spans,
    timed_ops,
)
from simcore.measured.run import SLOT, MeasuredRun
from simcore.measured.vocabulary import CATEGORIES, GROUPS, category_of_group
from simcore.ranks import RankSet, describe_position
from simcore.replay.span_words import MeasuredSpanWords
from simcore.replay.waits import waited_ns
from simcore.sources.segments import GAP
from simcore.trace.accounts import Ranges
from simcore.trace.lane_spans import (
    COMPUTE_STREAM,
    COMPUTING,
    KINDS,
    TIME,
    Content,
    Figure,
    LaneOrder,
    Spans,
    TimeStretch,
    encode_indices,
    make_spans,
    microbatch_words,
    order_axis,
)
from simcore.trace.lanes import (
    LEAST_BUSY,
    MOST_BUBBLE,
    MOST_EXPOSED,
    MOST_WAIT,
    NATURAL,
    SHORT,
    SIMILAR_WORDS,
    LaneFacts,
    Lanes,
    LaneTrack,
    OpSearchColumns,
    Sums,
    Wait,
    cell_kind,
    kind_of,
)
from simcore.trace.spans import NONE
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.replay.replayed_run import ReplayedRun

_ON_COMPUTE = bytes(kind in (*COMPUTING, KINDS.index("host")) for kind in range(256))
# Category of a lane -> index into KINDS, as `bytearray.translate` takes it.
_TO_KINDS = bytes(map(cell_kind, CATEGORIES)) + bytes(256 - len(CATEGORIES))

# An order without times has operations alone, and no accounts.
_OPERATION_FIGURES = tuple(
    Figure("not running" if name == "outside" else name, SHORT.get(name, name), kind_of(name), 0)
    for name in CATEGORIES
)

# Word of a search -> parts of an operation's or collective's name as traces spell it.
_SPELLED = {
    "all-reduce": ("allreduce", "all_reduce"), "all-gather": ("allgather", "all_gather"),
    "reduce-scatter": ("reduce_scatter", "reducescatter"), "all-to-all": ("all_to_all", "alltoall"),
    "send": ("send_", "isend"), "receive": ("recv_", "irecv"), "wait": ("recv_",),
    "activation": ("send_forward", "recv_forward"), "gradient": ("send_backward", "recv_backward"),
}  # fmt: skip


class MeasuredLanes(Lanes):
    """The lanes of a measured or replayed run: one for each rank, by its index in `run.ranks`.

    The `op` of a span is an item of `simcore/measured/lanes.py`: an operation, a sub-operation behind them,
    or (below 0) a gap.
    """

    results: ReplayedRun

    def __init__(self, results: ReplayedRun) -> None:
        super().__init__(results)
        self.run = run = results.run
        self._track_of_rank = {rank.rank: track_id for track_id, rank in enumerate(run.ranks)}

    @cached_property
    def facts(self) -> LaneFacts:
        run = self.run
        return LaneFacts(
            run.length, range(len(run.ranks)), self._count_words(), self._orders(),
            note_heading=("", "") if run.unit == "stage" else ("stage", "st"),
            axis=TIME if run.timed else order_axis(SLOT), timed=run.timed,
            concurrent=run.timed and run.concurrent,
            similar_text=SIMILAR_WORDS if run.timed and len(run.ranks) > 1 else "",
        )  # fmt: skip

    def _end_ns(self, track_id: int) -> int:
        """Returns how long before the end of the step a rank is over."""
        return self.run.length - self.run.ranks[track_id].last_ns

    @cached_property
    def _longest_sums(self) -> Sums:
        return Sums(operation_ranges(self.run), _OPERATION_FIGURES)

    def _count_words(self) -> str:
        run = self.run
        words = f"{plural(len(run.ranks), run.unit)}, {'replayed' if run.replayed else 'as measured'}"
        if not run.timed:
            words = f"{plural(len(run.ranks), run.unit)}, in the order of the plan"
        return words if run.concurrent else f"{words}, each from its own start"

    def _orders(self) -> tuple[LaneOrder, ...]:
        if not self.run.timed:
            return (NATURAL,)
        waiting = (MOST_BUBBLE, MOST_WAIT) if self.run.concurrent else ()
        latest = LaneOrder("end", "latest end", "over", least_first=True, group_name="over before the others")
        return NATURAL, LEAST_BUSY, *waiting, MOST_EXPOSED, latest

    def _other_kinds(self) -> Collection[str]:
        run = self.run
        # Where operations take time the accounts count it: only an order without times gets this lane.
        some = (rank for rank in run.ranks if any(map(eq, rank.ops.start, rank.ops.end)))
        instants = (op for rank in some for op in timed_ops(rank) if op[0] == op[1])
        categories = {_TO_KINDS[category] for _, _, _, category in instants}
        if not run.timed:
            categories.update(*(self.spans(track_id, None).category for track_id in self.facts.track_ids))
        subs = {group for rank in run.ranks for group in rank.subs.group}
        categories |= {cell_kind(category_of_group(group)) for group in subs}
        host_kinds = {"host"} if not run.replayed and any(map(_host_names, run.ranks)) else set()
        return {KINDS[category] for category in categories} | host_kinds

    @cached_property
    def words(self) -> MeasuredSpanWords:
        return MeasuredSpanWords(self.results, self)

    # -- ranks -------------------------------------------------------------------------

    def _find_track(self, track_id: int) -> LaneTrack:
        rank, unit = self.run.ranks[track_id], self.run.unit
        ranks, title = RankSet.of((rank.rank,)), f"{unit} {rank.rank:>2}"
        # In a plan the index of a unit is a stage itself.
        if unit == "stage" or rank.stage is None:
            return LaneTrack(track_id, ranks, title, stage=rank.rank if unit == "stage" else None)
        position = self.run.degrees.position(rank.rank)
        headings = (f"stage {rank.stage:>2}", *(() if position is None else (f"dp {position[1]}",)))
        return LaneTrack(track_id, ranks, title, headings, rank.stage, str(rank.stage))

    def own_track_id(self, rank: int) -> int | None:
        return self._track_of_rank.get(rank)

    def rank_words(self, rank: int) -> str:
        position = self.run.degrees.position(rank)
        return (
            f"{self.run.unit} {rank}" if position is None else f"rank {rank} = {describe_position(position)}"
        )

    def missing_text(self, rank: int | None, stage: int | None, microbatch: int | None) -> str:
        if rank is not None and (self.run.unit != "rank" or rank not in self._track_of_rank):
            return f"rank {rank} is not in this run"
        if stage is not None and stage not in (
            self.track(track_id).stage for track_id in self._track_of_rank.values()
        ):
            return f"no rank of stage {stage} is in this run"
        return ""

    # -- spans -------------------------------------------------------------------------

    def _find_streams(self, track_id: int) -> dict[str, str]:
        rank = self.run.ranks[track_id]
        return {stream: self._stream_title(rank, stream) for stream in lane_kinds(self.run, rank)}

    def _stream_title(self, rank: RankTrace, stream: str) -> str:
        if stream == NO_GROUP:
            return "no group"
        if stream == ANNOTATIONS_LANE or stream.startswith(CALLS_LANE):
            return printable_within(stream.removeprefix(HOST_LANE), 14)
        if stream.startswith(STREAM_LANE):
            name = stream_name(rank, int(stream.removeprefix(STREAM_LANE)))
            return printable_within(f"{stream_word(rank)} {name}", 14)
        if rank.device is not None:
            return printable_within(stream, 14)
        size = {"tp": self.run.degrees.tp, "dp": self.run.degrees.dp}.get(stream)
        name = GROUPS.get(stream) or printable_within(stream, 14)
        return name if size is None else f"{name} x{size}"

    def _find_content(self, track_id: int, stream: str | None) -> Content:
        rank = self.run.ranks[track_id]
        lane = rank_spans(self.run, rank) if stream is None else lane_spans(rank, stream)
        spans = Spans(lane.start, lane.end, lane.item, lane.category.translate(_TO_KINDS))
        # A rank's lane and its compute lane show accounts: an operation also waits and communicates.
        accounted = self.run.timed and stream in (None, COMPUTE_STREAM)
        return Content(spans, self._account_spans(track_id, stream, spans) if accounted else spans)

    def _account_spans(self, track_id: int, stream: str | None, spans: Spans) -> Spans:
        """Returns the accounts of a rank as spans, each with the item of its operation or gap.

        The compute stream has what the rank computes and what its host does alone, any other stream has all.
        Operations that take no time keep the 1 ns that they are drawn with.
        """
        accounts, segments = self.results.accounts[track_id], self.results.rendezvous.segments[track_id]
        ops = self.run.ranks[track_id].ops
        items = array("q")
        for segment in accounts.op:
            op = len(ops) if segment == NONE else segments.op[segment]
            items.append(-1 - op if segment == NONE or segments.kind[segment] == GAP else op)
        kinds = accounts.account.translate(self._cell_kinds)
        rows = list(zip(accounts.edge, accounts.edge[1:], items, kinds, strict=False))
        if stream == COMPUTE_STREAM:
            rows = list(compress(rows, kinds.translate(_ON_COMPUTE)))
        starts = [start for start, _, _, _ in rows]
        instants: dict[tuple[int, int], tuple[int, int, int, int]] = {}
        instant_ops = {
            op for op, (start, end) in enumerate(zip(ops.start, ops.end, strict=True)) if start == end
        }
        for start, item, kind in (
            zip(spans.start, spans.op, spans.category, strict=True) if instant_ops else ()
        ):
            if item in instant_ops:
                _, end, _, around = rows[bisect_right(starts, start) - 1] if rows else (0, 0, 0, -1)
                if kind != around or start >= end:
                    instants[start, kind] = start, start + 1, item, kind
        return make_spans(sorted((*rows, *instants.values())) if instants else rows)

    def span_name(self, track_id: int, op: int) -> tuple[str, str]:
        rank = self.run.ranks[track_id]
        return display_name(rank.ops.name[op] if op < len(rank.ops) else span_facts(rank, op).name), ""

    def names(self) -> Collection[str]:
        names: set[str | None] = set()
        for rank in self.run.ranks:
            names.update(rank.ops.name, rank.subs.name, rank.subs.collective, _host_names(rank))
        return {name for name in names if name is not None}

    def _find_search_columns(self, track_id: int) -> OpSearchColumns:
        """Returns what a search looks at, by operation, sub-operation and collective; a gap has no name and
        no micro-batch.
        """
        rank = self.run.ranks[track_id]
        ops, subs, host = rank.ops, rank.subs, _host_names(rank)
        both = zip(subs.name, subs.collective, strict=True)
        of_subs = (name if collective is None else (name, collective) for name, collective in both)
        # An item below 0 counts from the end.
        item_names = [*ops.name, *of_subs, *host, *[()] * (len(ops) + 1)]
        number_of = {names: index for index, names in enumerate(dict.fromkeys(item_names))}
        name = encode_indices(map(number_of.__getitem__, item_names))
        names: list[tuple[str, ...]] = [(one,) if isinstance(one, str) else one for one in number_of]
        # A sub-operation has the micro-batch of the operation that it lies in.
        batch = [*ops.batch, *map(ops.batch.__getitem__, subs.parent), *[-1] * (len(host) + len(ops) + 1)]
        microbatch = encode_indices(each + 1 for each in batch)
        return OpSearchColumns(names, name, list(map(_spelled, names)), name, microbatch)

    # -- where a cursor goes -------------------------------------------------------------

    def passes(self, track_id: int) -> Sequence[TimeStretch]:
        rank, count = self.run.ranks[track_id], self.run.microbatches
        ops, stretches = rank.ops, []
        for op in rank.passes:
            name, batch = printable_within(ops.name[op], 40), ops.batch[op]
            words = f"{name} of {microbatch_words(batch, count)}" if batch >= 0 else name
            stretches.append(TimeStretch(ops.start[op], ops.end[op], words))
        return stretches

    def _find_waits(self, track_id: int) -> list[Wait]:
        """Returns the operations that wait, with their waiting in all, and the gaps."""
        if not self.run.timed:
            return []
        of_lane = self.spans(track_id, None)
        ops = waited_ns(self.results, track_id)
        waits = []
        for index, item in enumerate(of_lane.op):
            ns = ops.get(item, 0) if item >= 0 else of_lane.end[index] - of_lane.start[index]
            if ns:
                waits.append(Wait(item < 0, -ns, index))
        return sorted(waits)


def _host_names(rank: RankTrace) -> Sequence[str]:
    """Returns the names of what the host of a device did."""
    host = None if rank.device is None else rank.device.host
    return () if host is None else host.lane.columns.name


def operation_ranges(run: MeasuredRun) -> Ranges:
    """Returns what each rank shows in any range of time, by index into CATEGORIES."""
    segments = cache(lambda rank: rank_segments(run, run.ranks[rank]))
    return Ranges(segments, [1] * len(run.ranks), len(CATEGORIES))


def _spelled(names: tuple[str, ...]) -> frozenset[str]:
    """Returns the words of a search that a span's names contain."""
    lower = [name.lower() for name in names]
    return frozenset(
        word for word, parts in _SPELLED.items() if any(part in name for part in parts for name in lower)
    )
