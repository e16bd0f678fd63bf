"""Two runs, or two ranks of one, as the compare screen needs them: pairs of lanes and what differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from simcore.comparison import AccountChange, Comparison, LanePair, SpanPair, SpanPairs
from simcore.comparison.op_words import cost_words, format_cost_short, splits_words
from simcore.comparison.words import paired_words, run_words, side_facts, track_facts
from simcore.trace.figures import compare_by_work, is_other_work
from simcore.trace.run import common_ns
from simcore.trace.track import busy_ns
from simcore.units import whole_percent
from tui.compare.cursor_text import COMPUTE, describe_op, describe_span
from tui.compare.rows import DifferenceRow, find_name_starts, kind_rows, name_rows, op_rows
from tui.frame import cells
from tui.timeline.lanes import Kind, Lane, LaneSource, SpanLane

# With more ops only the list of the lane at the cursor is made, not those of all lanes ahead.
_MOST_OPS_AHEAD = 500_000
_FILE, _EQUAL_RANKS = 40, 24


class ComparedLanes:
    """Two runs, or two ranks of one, as pairs of lanes; `Comparison` has all figures. Pairs are ordered by
    how much their busy share differs.

    `runs` is A and B, which may be the same run; `of_one_step` says whether two ranks of it are compared.
    """

    def __init__(self, comparison: Comparison) -> None:
        self.comparison, self.of_one_step = comparison, comparison.is_of_one_run
        self.runs = comparison.a, comparison.b
        self._sources = LaneSource(comparison.a), LaneSource(comparison.b)
        self._span_pairs: dict[int, SpanPairs] = {}

    @property
    def steps(self) -> tuple[int, int]:
        """Both step times, ns."""
        a, b = self.runs
        return a.step_time_ns, b.step_time_ns

    @property
    def sides(self) -> tuple[str, str]:
        """What A and B are, in words."""
        if self.comparison.ops is not None:
            return self.comparison.side_texts
        return self._side_text(0), self._side_text(1)

    def _side_text(self, side: int) -> str:
        """Returns what neither its name nor its step says."""
        comparison, run = self.comparison, self.runs[side]
        if comparison.ranks is not None:
            return ", ".join(track_facts(comparison, side)) or run.figures.kind
        name = cells(run.path.rstrip("/").rsplit("/", 1)[-1], _FILE)
        return f"{run_words(comparison, run)}{name}, {side_facts(run, self.runs[1 - side])}"

    # -- pairs of lanes --------------------------------------------------------------

    @property
    def pairs(self) -> int:
        """How many pairs of lanes there are."""
        return len(self.comparison.pairs)

    @cached_property
    def _order(self) -> list[int]:
        """The pairs whose busy share changes by most percentage points first, ties in their order."""
        sort_keys = []
        for lane_pair in self.comparison.pairs:
            a, b = map(whole_percent, self._busy_ns(lane_pair), self.steps)
            sort_keys.append(-abs(b - a))
        return sorted(range(self.pairs), key=sort_keys.__getitem__)

    def _pair(self, pair: int) -> LanePair:
        return self.comparison.pairs[self._order[pair]]

    @cached_property
    def alone(self) -> tuple[Sequence[str], Sequence[str]]:
        """The lanes of A and those of B that are in no pair, by name, in their order."""
        return self._alone_names(0), self._alone_names(1)

    def _alone_names(self, side: int) -> list[str]:
        comparison, source = self.comparison, self._sources[side]
        paired = {(pair.a, pair.b)[side] for pair in comparison.pairs}
        if comparison.ops is not None:
            paired_ids = {source.lane(track.track_id).track_id for track in paired}
            lanes = [source.lane(track_id) for track_id in source.track_ids]
            return [" ".join(lane.title.split()) for lane in lanes if lane.track_id not in paired_ids]
        tracks = comparison.tracks[side]
        if comparison.is_by_rank:
            return [f"rank {track.first_rank}" for track in tracks if track not in paired]
        # A pair is of two stages, each by the first of its ranks.
        stages = {track.stage for track in tracks} - {track.stage for track in paired}
        return [f"stage {stage}" for stage in sorted(stage for stage in stages if stage is not None)]

    def pair_name(self, pair: int) -> str:
        """Returns `stage 3`, `rank 17`."""
        lane_pair = self._pair(pair)
        if self.comparison.ops is not None:
            # The name of the lane that stands for fewer ranks: a slow rank of B is paired with a whole stage
            # of A.
            return " ".join(min(self.lanes(pair), key=lambda lane: lane.rank_count).title.split())
        if self.comparison.ranks is not None:
            return f"rank {', '.join(map(str, self.comparison.ranks))}"
        if self.comparison.is_by_rank:
            return f"rank {lane_pair.rank}"
        return "all ranks" if lane_pair.stage is None else f"stage {lane_pair.stage}"

    def lanes(self, pair: int) -> tuple[Lane, Lane]:
        """Returns the lanes of a pair in A and in B."""
        lane_pair, (a, b) = self._pair(pair), self._sources
        return a.lane(lane_pair.a.track_id), b.lane(lane_pair.b.track_id)

    def streams(self, pair: int) -> Sequence[tuple[SpanLane, SpanLane]]:
        """Returns the lanes of the streams that both lanes of a pair have by the same name, in the order of
        A.
        """
        lanes = self.lanes(pair)
        of_a, of_b = (
            source.streams(lane.track_id) for source, lane in zip(self._sources, lanes, strict=True)
        )
        by_name = {span_lane.key.stream: span_lane for span_lane in of_b}
        return [
            (span_lane, by_name[span_lane.key.stream])
            for span_lane in of_a
            if span_lane.key.stream in by_name
        ]

    def _busy_ns(self, lane_pair: LanePair) -> tuple[int, int]:
        a, b = self.runs
        return busy_ns(common_ns(a, lane_pair.a)), busy_ns(common_ns(b, lane_pair.b))

    def busy_ns(self, pair: int) -> tuple[int, int]:
        """Returns the compute of both lanes of a pair, ns."""
        return self._busy_ns(self._pair(pair))

    def span_pairs(self, pair: int) -> Sequence[SpanPair]:
        """Returns the spans that both lanes have, by their start in A."""
        if pair not in self._span_pairs:
            self._span_pairs[pair] = SpanPairs(self.comparison.matching_spans(self._pair(pair)))
        return self._span_pairs[pair]

    def cached_span_pairs(self, pair: int) -> Sequence[SpanPair]:
        """Returns the same if it is computed already, else nothing: what drawing may use."""
        return self._span_pairs.get(pair, ())

    def describe_lane(self, pair: int, side: int, time_ns: int) -> str:
        """Returns what lane A (0) or B (1) of a pair does at a time of its step."""
        lane, ops = self.lanes(pair)[side], self.comparison.ops
        if ops is not None:
            return describe_op((ops.a, ops.b)[side], lane, time_ns)
        lane_pair = self._pair(pair)
        track = (lane_pair.a, lane_pair.b)[side]
        text = describe_span(self.runs[side], track, lane, time_ns)
        if len(track.ranks) > 1 and self.comparison.is_by_rank and self.comparison.ranks is None:
            text += f" (one of ranks {cells(track.ranks.text(), _EQUAL_RANKS)})"
        return text

    @cached_property
    def legend(self) -> Sequence[Kind]:
        """Each kind of cell that occurs in A or B, in the words of the first; blank kinds come last."""
        kind_by_style: dict[tuple[str, str], Kind] = {}
        for source in self._sources:
            for kind in source.legend:
                kind_by_style.setdefault((kind.fill, kind.role), kind)
        return sorted(kind_by_style.values(), key=lambda kind: kind.fill == "idle")

    # -- what differs ----------------------------------------------------------------

    def find(self, is_cancelled: Callable[[], bool]) -> object:
        """Computes in a worker what takes long: the results of the comparison that drawing needs."""
        ops, remaining_ops = self.comparison.ops, _MOST_OPS_AHEAD
        if ops is not None:
            for side in self.runs:
                side.compute_critical_path(is_cancelled)
        outcome = self.why, self.rows
        for pair in range(self.pairs):
            remaining_ops -= 0 if ops is None else len(self.lanes(pair)[0].spans.start)
            if remaining_ops < 0 or is_cancelled():
                break
            self.span_pairs(pair)
        return outcome

    @property
    def why(self) -> str:
        """What explains B - A and what causes it, a sentence without its full stop."""
        return self.comparison.why_text

    @property
    def accounts_title(self) -> str:
        """The title of the accounts, with the ranks that they are of."""
        if self.comparison.ranks is not None:
            return "Accounts of the two ranks"
        return f"Accounts, mean of {'all ranks' if self.comparison.ops is not None else 'the paired stages'}"

    @property
    def accounts(self) -> Sequence[AccountChange]:
        """The nonzero accounts, in the words of the screen."""
        nonzero = [account for account in self.comparison.accounts if account.a_ns or account.b_ns]
        return [account._replace(name=COMPUTE.get(account.name, account.name)) for account in nonzero]

    @property
    def matching_text(self) -> str:
        """Which parts of the two runs were matched, in words."""
        return paired_words(self.comparison)

    @cached_property
    def rows(self) -> Sequence[DifferenceRow]:
        """What differs most, the largest first."""
        comparison, pairs = self.comparison, list(map(self._pair, range(self.pairs)))
        if comparison.ops is not None:
            return op_rows(comparison.ops, self._order)
        if comparison.ranks is not None:
            return name_rows(comparison, pairs, "", find_name_starts(comparison.a, self.lanes(0)[0]))
        return kind_rows(comparison, pairs)

    @property
    def unchanged(self) -> Sequence[str]:
        """What is the same in both runs."""
        return self.comparison.unchanged if self.comparison.ranks is None else ()

    @property
    def splits_text(self) -> str:
        """Why what one of the runs sends in more splits takes longer there; "" where none does."""
        return "" if self.comparison.ops is None else splits_words(self.comparison.ops)

    @property
    def is_other_model(self) -> bool:
        """Whether one of them, and not the other, is of another model than its file: then less time is no
        gain.
        """
        a, b = self.runs
        return a.model.other_model != b.model.other_model

    @cached_property
    def same_work_share(self) -> float | None:
        """The share of a time of B that as much work as A's takes; None where that is not known."""
        a, b = (run.shape for run in self.runs)
        if self.is_other_model or is_other_work(a, b):
            return None
        by_work = compare_by_work(a, b)
        return 1.0 if by_work is None else by_work.same_work_ns / max(b.step_time_ns, 1)

    @property
    def notices(self) -> Sequence[str]:
        """What B costs, or what one has to know before the figures are believed."""
        cost = "" if self.comparison.ops is None else cost_words(self.comparison.ops)
        return [*self.comparison.notices, *([cost] if cost else [])]

    @property
    def cost(self) -> str:
        """B's peak of memory next to A's, in few words; "" where it is unknown, or equal."""
        return "" if self.comparison.ops is None else format_cost_short(self.comparison.ops)
