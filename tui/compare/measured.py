"""Two runs of which at least one was measured, as the compare screen needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from simcore.compare import AccountChange, Alike, Comparison, LanePair
from simcore.compare.name_changes import NameChange
from simcore.compare.words import paired_words, run_words, side_facts, where_words
from simcore.kernel_names import short_name
from simcore.trace.lane_spans import KINDS
from simcore.trace.run import Run, common_ns
from simcore.trace.track import Track, busy_ns
from tui.compare.source import Compared, DifferenceRow
from tui.frame import cells
from tui.timeline.lanes import SpanLane

_WORDS = {"fwd": "forward", "bwd": "backward", "wg": "weight grad", "opt": "optimizer"}
_NOT_NAMED = ("wait", "bubble", "idle")
_ROWS = 20
_NAME = 36


class MeasuredCompared(Compared):
    """Kind by kind and pass by pass: `Comparison` has all figures."""

    accounts_title = "Accounts, mean of the paired stages"

    def __init__(self, beside: Comparison) -> None:
        super().__init__(beside.a, beside.b)
        self.beside = beside

    @property
    def sides(self) -> tuple[str, str]:
        a, b = self.beside.a, self.beside.b
        return _named(self.beside, a, b), _named(self.beside, b, a)

    @property
    def _pairs(self) -> Sequence[LanePair]:
        return self.beside.pairs

    @cached_property
    def alone(self) -> tuple[Sequence[str], Sequence[str]]:
        beside = self.beside

        def tracks(side: Run, paired: set[Track]) -> list[str]:
            if beside.by_rank:
                return [f"rank {track.first_rank}" for track in side.tracks if track not in paired]
            # A pair is of two stages, each by the first of its ranks.
            stages = {track.stage for track in side.tracks} - {track.stage for track in paired}
            return [f"stage {stage}" for stage in sorted(stage for stage in stages if stage is not None)]

        return (
            tracks(beside.a, {pair.a for pair in beside.pairs}),
            tracks(beside.b, {pair.b for pair in beside.pairs}),
        )

    def _busy_ns(self, lane_pair: LanePair) -> tuple[int, int]:
        return busy_ns(common_ns(self.beside.a, lane_pair.a)), busy_ns(common_ns(self.beside.b, lane_pair.b))

    def where(self, pair: int) -> str:
        lane_pair = self._pair(pair)
        if not self.beside.by_rank:
            return "all ranks" if lane_pair.stage is None else f"stage {lane_pair.stage}"
        return f"rank {lane_pair.rank}"

    def lanes(self, pair: int) -> tuple[SpanLane, SpanLane]:
        lane_pair = self._pair(pair)
        return self._sources[0].lane(lane_pair.a.number), self._sources[1].lane(lane_pair.b.number)

    def _found_alike(self, lane_pair: LanePair) -> Iterable[Alike]:
        return self.beside.alike(lane_pair)

    def find(self, is_cancelled: Callable[[], bool]) -> object:
        changes = self.rows
        for pair in range(self.pairs):
            if is_cancelled():
                break
            self.alike(pair)
        return changes

    def told(self, pair: int, side: int, time_ns: int) -> str:
        lane_pair = self._pair(pair)
        track, run = (lane_pair.a, lane_pair.b)[side], (self.beside.a, self.beside.b)[side]
        said = told_at(run, track, self.lanes(pair)[side], time_ns)
        return said + (_alike_words(track) if self.beside.by_rank else "")

    @property
    def why(self) -> str:
        return self.beside.why

    @property
    def accounts(self) -> Sequence[AccountChange]:
        return [account for account in self.beside.whole.accounts if account.a_ns or account.b_ns]

    @property
    def matched(self) -> str:
        return paired_words(self.beside)

    @cached_property
    def rows(self) -> Sequence[DifferenceRow]:
        pairs = [self.beside.pairs[number] for number in self._order]
        stages = [pair.stage for pair in pairs]
        ranks = [pair.rank for pair in pairs]
        rows: list[DifferenceRow] = []
        of_all: list[DifferenceRow] = []

        def pair_of(change: NameChange) -> int:
            return pairs.index(self.beside.where_most(change))

        for mover in self.beside.movers[:_ROWS]:
            pair = stages.index(mover.stage) if mover.rank is None else ranks.index(mover.rank)
            words = f"{where_words(mover)}, {mover.change.name}"
            measure = "mean" if mover.rank is None else "sum"
            # The accounts have the mean of all ranks, too: behind the names it takes no room from them.
            kinds = of_all if mover.rank is None and mover.stage is None else rows
            kinds.append(DifferenceRow(words, measure, mover.change.a_ns, mover.change.b_ns, pair, None))
        return [*rows, *name_rows(self.beside.by_name, "sum", pair_of, {}), *of_all]

    @property
    def unchanged(self) -> Sequence[str]:
        return self.beside.unchanged

    @property
    def notices(self) -> Sequence[str]:
        return self.beside.notices


def told_at(run: Run, track: Track, lane: SpanLane, time_ns: int) -> str:
    """What a rank of a track does at a time of its step. lane: that of the track."""
    index = lane.at(time_ns)
    if index is None or not 0 <= time_ns < run.step_time_ns:
        return "nothing" + (": the step is over" if time_ns >= run.step_time_ns else "")
    kind = KINDS[lane.spans.category[index]]
    words = _WORDS.get(kind, kind)
    name = "" if lane.spans.op[index] < 0 or kind in _NOT_NAMED else lane.label(lane.spans.op[index], 28)
    batch = next(
        (
            timed_pass.microbatch
            for timed_pass in run.figures.passes(track)
            if timed_pass.start_ns <= time_ns < timed_pass.end_ns
        ),
        None,
    )
    return f"{words} {cells(name, 28)}".rstrip() + ("" if batch is None else f", micro-batch {batch}")


def name_rows(
    changes: Sequence[NameChange],
    measure: str,
    pair_of: Callable[[NameChange], int],
    starts: Mapping[str, int],
) -> list[DifferenceRow]:
    """What differs most by name, each with its calls in A and in B. measure: of what the times are. pair_of:
    where a name is. starts: where names begin in A, ns.
    """
    moved = [change for change in changes if change.name and (change.ns or change.more_calls)]
    rows = []
    for change in moved[:_ROWS]:
        calls = f"x{change.a.calls}" + (f"/{change.b.calls}" if change.more_calls else "")
        words = f"{change.account}: {short_name(change.name, _NAME)}"
        start = starts.get(change.name)
        rows.append(
            DifferenceRow(
                words, f"{measure} {calls}".strip(), change.a.ns, change.b.ns, pair_of(change), start
            )
        )
    return rows


def _named(beside: Comparison, side: Run, other: Run) -> str:
    name = cells(side.path.rstrip("/").rsplit("/", 1)[-1], 40)
    return f"{run_words(beside, side)}{name}, {side_facts(side, other)}"


def _alike_words(track: Track) -> str:
    """Of which equal ranks a lane is; "" for the lane of one rank."""
    return f" (one of ranks {cells(track.ranks.text(), 24)})" if len(track.ranks) > 1 else ""
