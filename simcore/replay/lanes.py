"""The lanes of a measured run: one for each rank, below it its compute and its group kinds."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from functools import cache, cached_property
from itertools import compress
from typing import TYPE_CHECKING

from simcore.diagnostics import in_short
from simcore.kernel_names import shown_name
from simcore.measured.columns import RankTrace
from simcore.measured.facts import span_facts, stream_word
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
)
from simcore.measured.run import SLOT, MeasuredRun
from simcore.measured.vocabulary import CATEGORIES, GROUPS, category_of_group
from simcore.ranks import RankSet, place_words
from simcore.replay.span_words import MeasuredSpanWords
from simcore.replay.waits import waited_ns
from simcore.run.accounts import Accounts, Ranges
from simcore.run.lanes import (
    COMPUTE_STREAM,
    COMPUTING,
    KINDS,
    TIME,
    Figure,
    LaneOrder,
    Searched,
    Spans,
    TimeAxis,
    TimeStretch,
    codes,
    microbatch_words,
    order_axis,
)
from simcore.run.pieces import GAP
from simcore.run.rank_lanes import (
    SEARCHED,
    SHORT,
    RankLanes,
    drawn_as,
    figures_of_accounts,
    kind_of,
    kinds_of_accounts,
)
from simcore.sources.measured import NAMES
from simcore.trace.spans import NONE
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.replay.timed import Timed

_OF_ACCOUNT = kinds_of_accounts(NAMES)
_ON_COMPUTE = bytes(kind in (*COMPUTING, KINDS.index("host")) for kind in range(256))
# Category of a lane -> index into KINDS, as `bytearray.translate` takes it.
_TO_KINDS = bytes(map(drawn_as, CATEGORIES)) + bytes(256 - len(CATEGORIES))

# An order without times has operations alone, and no accounts.
_OPERATION_FIGURES = tuple(
    Figure("not running" if name == "outside" else name, SHORT.get(name, name), kind_of(name), 0)
    for name in CATEGORIES
)

# What a word of a search stands for -> a part of the operation's or collective's name as traces spell it.
_SPELLED = {
    "all-reduce": ("allreduce", "all_reduce"), "all-gather": ("allgather", "all_gather"),
    "reduce-scatter": ("reduce_scatter", "reducescatter"), "all-to-all": ("all_to_all", "alltoall"),
    "send": ("send_", "isend"), "receive": ("recv_", "irecv"), "wait": ("recv_",),
    "activation": ("send_forward", "recv_forward"), "gradient": ("send_backward", "recv_backward"),
}  # fmt: skip


# Ranks are alike where no account of any two differs by more of the step, %.
_ALIKE_PERCENT = 2


class MeasuredLanes(RankLanes):
    """`RunLanes` of a measured or replayed run: a lane for each rank, by its place among `run.ranks`.

    The `op` of a span is an item of `simcore/measured/lanes.py`: an operation, a sub-operation behind them,
    or (below 0) a gap.
    """

    account_figures = figures_of_accounts(NAMES)

    def __init__(self, results: Timed) -> None:
        super().__init__()
        self.results = results
        self.run = run = results.run
        self.numbers = range(len(run.ranks))
        self._place = {rank.number: number for number, rank in enumerate(run.ranks)}
        self._drawn: dict[tuple[int, str | None], Spans] = {}

    @property
    def accounts(self) -> Sequence[Accounts]:
        return self.results.accounts

    @property
    def timed(self) -> bool:
        return self.run.timed

    @property
    def axis(self) -> TimeAxis:
        return TIME if self.run.timed else order_axis(SLOT)

    @property
    def length(self) -> int:
        return self.run.length

    @property
    def counted(self) -> str:
        run = self.run
        words = f"{plural(len(run.ranks), run.unit)}, {'replayed' if run.replayed else 'as measured'}"
        if not run.timed:
            words = f"{plural(len(run.ranks), run.unit)}, in the order of the plan"
        return words if run.concurrent else f"{words}, each from its own start"

    @property
    def numbered(self) -> tuple[str, str]:
        return ("", "") if self.run.unit == "stage" else ("stage", "st")

    def beside(self, number: int) -> str:
        """The rank's stage: a plan's number is one itself."""
        stage = self.run.ranks[number].stage
        return "" if stage is None or self.run.unit == "stage" else str(stage)

    @cached_property
    def kinds(self) -> Collection[str]:
        categories = {
            category for number in self.numbers for category in set(self.drawn(number, None).category)
        }
        subs = {group for rank in self.run.ranks for group in rank.subs.group}
        categories |= {drawn_as(category_of_group(group)) for group in subs}
        beside = {"host"} if not self.run.replayed and any(map(_host_names, self.run.ranks)) else set()
        return {KINDS[category] for category in categories} | beside

    @property
    def heat(self) -> dict[int, int]:
        """Ranks without a common time cannot be added up at any."""
        alike = self.run.timed and self.run.concurrent
        return dict.fromkeys(self.numbers, 1) if alike else {}

    @property
    def orders(self) -> tuple[LaneOrder, ...]:
        natural = LaneOrder("", "lane", "busy")
        if not self.run.timed:
            return (natural,)
        waiting = (LaneOrder("bubble", "most bubble", "bubble"), LaneOrder("wait", "most wait", "wait"))
        return (
            natural, LaneOrder("busy", "least busy", "busy", least_first=True),
            *(waiting if self.run.concurrent else ()),
            LaneOrder("exposed", "most exposed", "exposed"),
            LaneOrder("end", "latest end", "over", least_first=True),
        )  # fmt: skip

    def measure_ns(self, order: str, number: int) -> int:
        """From the rank's accounts; `end`: how long it is over before the step is."""
        if order == "end":
            return self.run.length - self.run.ranks[number].last_ns
        return super().measure_ns(order, number)

    def spread(self, numbers: Sequence[int]) -> dict[str, list[int]]:
        return super().spread(numbers) if self.run.timed else {}

    # -- ranks -------------------------------------------------------------------------

    def headings(self, number: int) -> tuple[str, ...]:
        stage = self.run.ranks[number].stage
        if stage is None or self.run.unit == "stage":
            return ()
        place = self.run.degrees.position(self.run.ranks[number].number)
        return (f"stage {stage:>2}",) if place is None else (f"stage {stage:>2}", f"dp {place[1]}")

    def ranks(self, number: int) -> RankSet:
        return RankSet.of((self.run.ranks[number].number,))

    def number_of(self, rank: int) -> int | None:
        return self._place.get(rank)

    @property
    def alike_words(self) -> str:
        return f"alike within {_ALIKE_PERCENT} %" if self.run.timed and len(self.numbers) > 1 else ""

    def alike(self, number: int) -> Sequence[int]:
        return self._alike[number]

    @cached_property
    def _alike(self) -> dict[int, Sequence[int]]:
        """Each track with those that are alike: with the first that it fits to, under the same headings."""
        if not self.alike_words:
            return {number: (number,) for number in self.numbers}
        most = self.length * _ALIKE_PERCENT // 100
        groups: list[tuple[tuple[str, ...], list[int], list[int], list[int]]] = []
        for number in self.numbers:
            headings, totals = self.headings(number), self.results.accounts[number].total_ns
            for group, least, greatest, members in groups:
                if group == headings and all(
                    max(high, ns) - min(low, ns) <= most
                    for low, high, ns in zip(least, greatest, totals, strict=True)
                ):
                    least[:], greatest[:] = map(min, least, totals), map(max, greatest, totals)
                    members.append(number)
                    break
            else:
                groups.append((headings, list(totals), list(totals), [number]))
        return {number: members for *_, members in groups for number in members}

    def own_number(self, rank: int) -> int:
        return self._place[rank]

    def stage_of(self, number: int) -> int | None:
        rank = self.run.ranks[number]
        return rank.number if self.run.unit == "stage" else rank.stage

    def rank_words(self, rank: int) -> str:
        position = self.run.degrees.position(rank)
        return f"{self.run.unit} {rank}" if position is None else f"rank {rank} = {place_words(position)}"

    def missing(self, rank: int | None, stage: int | None, microbatch: int | None) -> str:
        if rank is not None and (self.run.unit != "rank" or rank not in self._place):
            return f"rank {rank} is not in this run"
        if stage is not None and stage not in map(self.stage_of, self.numbers):
            return f"no rank of stage {stage} is in this run"
        return ""

    # -- spans -------------------------------------------------------------------------

    def title(self, number: int) -> str:
        return f"{self.run.unit} {self.run.ranks[number].number:>2}"

    def streams(self, number: int) -> list[str]:
        return lane_kinds(self.run, self.run.ranks[number])

    def stream_title(self, number: int, stream: str) -> str:
        if stream == NO_GROUP:
            return "no group"
        rank = self.run.ranks[number]
        if stream == ANNOTATIONS_LANE or stream.startswith(CALLS_LANE):
            return in_short(stream.removeprefix(HOST_LANE), 14)
        if rank.device is not None:
            return in_short(stream.replace(STREAM_LANE, f"{stream_word(rank)} "), 14)
        size = {"tp": self.run.degrees.tp, "dp": self.run.degrees.dp}.get(stream)
        name = GROUPS.get(stream) or in_short(stream, 14)
        return name if size is None else f"{name} x{size}"

    def overlaps(self, stream: str | None) -> bool:
        return True

    def spans(self, number: int, stream: str | None) -> Spans:
        spans = self._spans.get((number, stream))
        if spans is None:
            rank = self.run.ranks[number]
            lane = rank_spans(self.run, rank) if stream is None else lane_spans(rank, stream)
            spans = Spans(lane.start, lane.end, lane.item, lane.category.translate(_TO_KINDS))
            self._spans[number, stream] = spans
        return spans

    def drawn(self, number: int, stream: str | None) -> Spans:
        """A rank's lane and its compute: an operation also waits and communicates."""
        if not self.run.timed or stream not in (None, COMPUTE_STREAM):
            return self.spans(number, stream)
        spans = self._drawn.get((number, stream))
        if spans is None:
            spans = self._drawn[number, stream] = self._accounted(number, stream)
        return spans

    def _accounted(self, number: int, stream: str | None) -> Spans:
        """The accounts of a rank as spans, each with the item of its operation or gap: of its compute stream
        what it computes and the host does alone, else all. Operations that take no time keep the 1 ns that
        they are drawn with.
        """
        results = self.results
        accounts, pieces, ops = (
            results.accounts[number],
            results.ties.pieces[number],
            self.run.ranks[number].ops,
        )
        items = array("q")
        for piece in accounts.op:
            op = len(ops) if piece == NONE else pieces.op[piece]
            items.append(-1 - op if piece == NONE or pieces.kind[piece] == GAP else op)
        kinds = accounts.account.translate(_OF_ACCOUNT)
        drawn = list(zip(accounts.edge, accounts.edge[1:], items, kinds, strict=False))
        if stream == COMPUTE_STREAM:
            drawn = list(compress(drawn, kinds.translate(_ON_COMPUTE)))
        starts = [start for start, _, _, _ in drawn]
        instants: dict[tuple[int, int], tuple[int, int, int, int]] = {}
        none = {op for op, (start, end) in enumerate(zip(ops.start, ops.end, strict=True)) if start == end}
        spans = self.spans(number, stream) if none else Spans(array("q"), array("q"), array("q"), bytearray())
        for start, item, kind in zip(spans.start, spans.op, spans.category, strict=True):
            if item in none:
                _, end, _, around = drawn[bisect_right(starts, start) - 1] if drawn else (0, 0, 0, -1)
                if kind != around or start >= end:
                    instants[start, kind] = start, start + 1, item, kind
        columns = sorted((*drawn, *instants.values())) if instants else drawn
        return Spans(
            array("q", [start for start, _, _, _ in columns]),
            array("q", [end for _, end, _, _ in columns]),
            array("q", [item for _, _, item, _ in columns]),
            bytearray([kind for _, _, _, kind in columns]),
        )

    def name(self, number: int, op: int) -> tuple[str, str]:
        rank = self.run.ranks[number]
        return shown_name(rank.ops.name[op] if op < len(rank.ops) else span_facts(rank, op).name), ""

    def names(self) -> Collection[str]:
        names: set[str | None] = set()
        for rank in self.run.ranks:
            names.update(rank.ops.name, rank.subs.name, rank.subs.collective, _host_names(rank))
        return {name for name in names if name is not None}

    def searched(self, number: int, stream: str | None) -> Searched:
        """By operation, sub-operation and collective; a gap has no name and no micro-batch."""
        rank, spans = self.run.ranks[number], self.spans(number, stream)
        ops, subs = rank.ops, rank.subs
        names: dict[tuple[str, ...], int] = {}
        of_item = [names.setdefault((name,), len(names)) for name in ops.name]
        for name, collective in zip(subs.name, subs.collective, strict=True):
            both = (name,) if collective is None else (name, collective)
            of_item.append(names.setdefault(both, len(names)))
        host = _host_names(rank)
        of_item += [names.setdefault((name,), len(names)) for name in host]
        # An item below 0 counts from the end.
        none = names.setdefault((), len(names))
        of_item += [none] * (len(ops) + 1)
        name_of = list(map(of_item.__getitem__, spans.op))
        spelled = [_spelled(name) for name in names]
        kinds: dict[frozenset[str], int] = {}
        of_both: dict[tuple[int, int], int] = {}
        for category, name_code in set(zip(spans.category, name_of, strict=True)):
            words = frozenset(SEARCHED.get(KINDS[category], ())) | spelled[name_code]
            of_both[category, name_code] = kinds.setdefault(words, len(kinds))
        # Of a sub-operation it is the micro-batch of the operation that it lies in.
        batch = [*ops.batch, *map(ops.batch.__getitem__, subs.parent), *[-1] * (len(host) + len(ops) + 1)]
        return Searched(
            list(kinds), codes(map(of_both.__getitem__, zip(spans.category, name_of, strict=True))),
            list(names), codes(name_of), codes(batch[item] + 1 for item in spans.op),
        )  # fmt: skip

    # -- what one moves by ---------------------------------------------------------------

    def passes(self, number: int) -> Sequence[TimeStretch]:
        rank, count = self.run.ranks[number], self.run.microbatches
        ops, stretches = rank.ops, []
        for op in rank.passes:
            name, batch = in_short(ops.name[op], 40), ops.batch[op]
            words = f"{name} of {microbatch_words(batch, count)}" if batch >= 0 else name
            stretches.append(TimeStretch(ops.start[op], ops.end[op], words))
        return stretches

    def all_waits(self) -> Sequence[tuple[int, int]]:
        ranked = []
        for number in self.numbers:
            items = self.spans(number, None).op
            waits = self._waits_of(number).items()
            ranked += [(items[index] < 0, -ns, number, index) for index, ns in waits]
        return [(number, index) for _, _, number, index in sorted(ranked)]

    def _found_waits(self, number: int) -> dict[int, int]:
        """How long operations wait in all, those that do, the longest first; behind them gaps, as long as
        they are.
        """
        if not self.run.timed:
            return {}
        spans = self.spans(number, None)
        ops = waited_ns(self.results, number, self.words.waits_of_rank(number))
        waits = []
        for index, item in enumerate(spans.op):
            ns = ops.get(item, 0) if item >= 0 else spans.end[index] - spans.start[index]
            if ns:
                waits.append((item < 0, -ns, index))
        return {index: -ns for _, ns, index in sorted(waits)}

    def path(self) -> Iterator[tuple[int, int, int, int, str]] | None:
        measured, path = self.results.measured, self.results.critical_path
        if not (measured.timed and measured.concurrent):
            return None
        columns = zip(path.edge, path.edge[1:], path.track, path.rank, strict=False)
        return ((start, end, track, rank, "") for start, end, track, rank in columns)

    @property
    def _figures(self) -> tuple[Figure, ...]:
        return self.account_figures if self.run.timed else _OPERATION_FIGURES

    @cached_property
    def _operations(self) -> Ranges:
        return operation_ranges(self.run)

    @cached_property
    def _ranges(self) -> Ranges:
        return super()._ranges if self.run.timed else self._operations

    def longest(self, number: int, first_ns: int, last_ns: int) -> tuple[int, Figure | None]:
        longest, category = self._operations.longest(number, first_ns, last_ns)
        figure = _OPERATION_FIGURES[category]._replace(ns=longest.ns) if longest.index >= 0 else None
        return longest.count, figure

    @cached_property
    def words(self) -> MeasuredSpanWords:
        return MeasuredSpanWords(self.results, self)


def _host_names(rank: RankTrace) -> Sequence[str]:
    """The names of what the host did beside a device."""
    return rank.device.host.name if rank.device is not None and rank.device.host is not None else ()


def operation_ranges(run: MeasuredRun) -> Ranges:
    """What is drawn of each rank in any stretch, by index into CATEGORIES."""
    segments = cache(lambda rank: rank_segments(run, run.ranks[rank]))
    return Ranges(segments, [1] * len(run.ranks), len(CATEGORIES))


def _spelled(names: tuple[str, ...]) -> frozenset[str]:
    """The words of a search that a span's names spell."""
    lower = [name.lower() for name in names]
    return frozenset(
        word for word, parts in _SPELLED.items() if any(part in name for part in parts for name in lower)
    )
