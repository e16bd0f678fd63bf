"""Two runs, or a rank of each, beside each other: which lane is which, what differs, and why.

What differs is told by accounts that all runs have; where the ops of both are of rows of a workload, op by
op: `Comparison.ops`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import cast

from simcore.comparison import words
from simcore.comparison.changes import AccountChange, AccountPart, SpanPair
from simcore.comparison.name_changes import NameChange, find_name_changes, make_sentences
from simcore.comparison.ops import OpChanges
from simcore.comparison.pairs import (
    LanePair,
    LayoutDifference,
    find_lane_pairs,
    find_layout_differences,
    has_rows,
    pairs_by_number,
    pairs_by_position,
)
from simcore.comparison.stages import (
    KindChange,
    PassPair,
    StagePair,
    change_ns,
    compute_change,
    find_outlier,
    match_passes,
    part_account,
)
from simcore.diagnostics import UsageError, printable
from simcore.ranks import RankSet
from simcore.records import Struct
from simcore.runs.simulated import SimulatedRun
from simcore.trace.named_work import NamedWork, sum_work
from simcore.trace.run import Run, common_ns
from simcore.trace.track import COMMON_ACCOUNTS, Track, mean_ns

# The part of the largest change of an account below which a change of compute does not explain it.
_CAUSE = 0.1


class Comparison(Struct, frozen=True, dict=True):
    """Run B against run A; differences are B - A. ranks: the rank of A and that of B alone, whose accounts
    are those of the whole run, in which a rank waits for the others; None: all.

    Raises `UsageError` for an order without times, where nothing of the two can be paired, for a rank that is
    not there, and for ranks of one run that are the same one or of one class of equal ranks.
    """

    a: Run
    b: Run
    ranks: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        for side_id, side in enumerate((self.a, self.b)):
            if not side.timed:
                path = printable(side.path)
                subject = (f"compare {path}", "")
                if self.ranks is not None:
                    subject = f"rank {self.ranks[side_id]}", f" in {path}"
                raise UsageError(
                    f"{subject[0]}: found an order of operations without times{subject[1]}, expected a trace "
                    "with durations"
                )
        if self.is_of_one_run and self.ranks is not None:
            _refuse_equal_ranks(self.ranks, self.tracks[0][0], self.tracks[1][0])
        if self.ops is None and not self.pairs:
            raise UsageError(
                "compare: found no rank or stage that both runs have; expected traces that name their "
                "stages (stage_id, or degrees in their names)"
            )

    @property
    def is_of_one_run(self) -> bool:
        """Whether it is of two ranks of one run."""
        return self.ranks is not None and self.a is self.b

    @property
    def difference_ns(self) -> int:
        """How much longer step B is."""
        return self.b.step_time_ns - self.a.step_time_ns

    # -- op by op --------------------------------------------------------------------------

    @cached_property
    def op_changes(self) -> OpChanges | None:
        """The two runs op by op; None where ops are not of rows of a workload in both."""
        if has_rows(self.a) and has_rows(self.b):
            return OpChanges(cast("SimulatedRun", self.a), cast("SimulatedRun", self.b))
        return None

    @property
    def ops(self) -> OpChanges | None:
        """What differs op by op; None where ops are not matched, as of two ranks."""
        return self.op_changes if self.ranks is None else None

    # -- which lane is which ---------------------------------------------------------------

    @cached_property
    def tracks(self) -> tuple[Sequence[Track], Sequence[Track]]:
        """What of A and of B is compared."""
        if self.ranks is None:
            return self.a.tracks, self.b.tracks
        a, b = self.ranks
        return [_find_track(self.a, a)], [_find_track(self.b, b)]

    @cached_property
    def pairs(self) -> list[LanePair]:
        """The lanes in pairs, by stage and rank."""
        if self.ranks is not None:
            return [LanePair(None, self.tracks[0][0], self.tracks[1][0], 1, self.ranks[1])]
        return find_lane_pairs(self.a, self.b) if self.ops is None else self.ops.lane_pairs

    @cached_property
    def layout_differences(self) -> list[LayoutDifference]:
        """What of the layouts is not alike."""
        return find_layout_differences(self.a, self.b)

    @property
    def is_by_rank(self) -> bool:
        """Whether lanes are paired rank by rank; else by their stage alone."""
        if self.ranks is not None or self.ops is not None:
            return True
        return pairs_by_number(self.a, self.b) or pairs_by_position(self.a, self.b)

    def passes(self, pair: LanePair) -> list[PassPair]:
        """The passes that both lanes of a pair have."""
        return match_passes(self.a.figures.passes(pair.a), self.b.figures.passes(pair.b))

    def matching_spans(self, pair: LanePair) -> Sequence[SpanPair]:
        """What both lanes of a pair have that computes: ops, or passes."""
        if self.ops is not None:
            return self.ops.computed_ops(pair)
        return [SpanPair(both.a.start_ns, both.a.end_ns, both.b.start_ns) for both in self.passes(pair)]

    # -- accounts --------------------------------------------------------------------------

    @cached_property
    def stages(self) -> list[StagePair]:
        """Each stage that both have, ascending."""
        return [self._compare_stage(stage) for stage in dict.fromkeys(pair.stage for pair in self.pairs)]

    @cached_property
    def all_stages(self) -> StagePair:
        """All ranks of the stages that both have, as one."""
        return self._compare_stage(None)

    def _compare_stage(self, stage: int | None) -> StagePair:
        stages = {pair.stage for pair in self.pairs} if stage is None else {stage}
        means = []
        for side, tracks in zip((self.a, self.b), self.tracks, strict=True):
            sums, ranks = [0] * len(COMMON_ACCOUNTS), 0
            for track in tracks:
                if track.stage in stages or None in stages:
                    count = len(track.ranks)
                    ranks += count
                    sums = [
                        total + count * ns for total, ns in zip(sums, common_ns(side, track), strict=True)
                    ]
            means.append(mean_ns(sums, ranks))
        accounts = [AccountChange(name, *ns) for name, *ns in zip(COMMON_ACCOUNTS, *means, strict=True)]
        first = next((pair for pair in self.pairs if pair.stage == stage), None)
        return StagePair(stage, accounts, [] if first is None else self.passes(first))

    @cached_property
    def most_changed(self) -> StagePair:
        """The stage whose accounts change most."""
        return max(self.stages, key=lambda stage: sum(abs(change.ns) for change in stage.accounts))

    @property
    def accounts(self) -> list[AccountChange]:
        """Every account of the mean rank."""
        return self.all_stages.accounts if self.ops is None else self.ops.accounts

    @property
    def account_columns(self) -> list[Sequence[AccountChange]]:
        """`accounts` and, of runs that know stages, those of the ranks that stand out: that compute least, or
        of the stage that changes most.
        """
        if self.ops is not None:
            return [self.accounts, self.ops.worst_accounts]
        most = self.most_changed
        return [self.accounts, *([] if most.stage is None else [most.accounts])]

    @cached_property
    def parts(self) -> list[AccountPart]:
        """B - A by account of the critical paths or of the mean rank of the stages that both have, the
        largest part first.
        """
        if self.ops is not None:
            return self.ops.parts
        ns_of: dict[str, int] = {}
        for change in self.all_stages.accounts:
            account = part_account(change.name)
            ns_of[account] = ns_of.get(account, 0) + change.ns
        changed_parts = [AccountPart(account, ns) for account, ns in ns_of.items() if ns]
        return sorted(changed_parts, key=lambda part: -abs(part.ns))

    @cached_property
    def kind_changes(self) -> list[KindChange]:
        """What kinds of time change most, stage by stage, the largest difference first; equal ones are not
        there. Of a stage the mean of its ranks or, where lanes are paired by rank and one of them changes
        much more than the others, that rank.
        """
        changes = []
        for stage in self.stages:
            ranks = self._ranks_of(stage.stage)
            for index, change in enumerate(stage.accounts):
                of_ranks = [
                    KindChange(stage.stage, AccountChange(change.name, a_ns[index], b_ns[index]), rank)
                    for rank, a_ns, b_ns in ranks
                ]
                alone = find_outlier(of_ranks)
                if alone is not None or change.ns:
                    changes.append(alone or KindChange(stage.stage, change))
        return sorted(changes, key=lambda mover: (-change_ns(mover), mover.stage or 0, mover.change.name))

    @cached_property
    def compute_cause(self) -> KindChange | None:
        """Whose compute changes most: the rank whose does, if it is much more than that of the others of its
        stage; else a stage whose mean rank's does much more than the others'; else the mean rank of all.
        None where it is little beside the account that changes most, and so explains nothing.
        """
        ranks = [
            KindChange(stage.stage, compute_change(a_ns, b_ns), rank)
            for stage in self.stages
            for rank, a_ns, b_ns in self._ranks_of(stage.stage)
        ]
        first = max(ranks, key=change_ns, default=None)
        most = None if first is None else find_outlier([one for one in ranks if one.stage == first.stage])
        if most is None:
            most = find_outlier([KindChange(stage.stage, stage.compute) for stage in self.stages])
            ranks_of_stage = (
                [] if most is None else [change for change in ranks if change.stage == most.stage]
            )
            most = ranks_of_stage[0] if len(ranks_of_stage) == 1 else most
        most = most or KindChange(None, self.all_stages.compute)
        largest = max(abs(change.ns) for change in self.all_stages.accounts)
        return most if most.change.ns and change_ns(most) >= largest * _CAUSE else None

    def _ranks_of(self, stage: int | None) -> list[tuple[int, list[int], list[int]]]:
        """Rank, its ns by ALIKE in A and in B, of the paired ranks of a stage; none if paired by stage."""
        if not self.is_by_rank:
            return []
        return [
            (pair.rank, common_ns(self.a, pair.a), common_ns(self.b, pair.b))
            for pair in self.pairs
            if pair.stage == stage
        ]

    @property
    def unchanged(self) -> list[str]:
        """What is the same in both: of ops, or the kinds of time that are equal on every stage."""
        if self.ops is not None:
            return self.ops.unchanged
        changed_names = {mover.change.name for mover in self.kind_changes}
        return [
            account.name
            for account in self.all_stages.accounts
            if account.name not in changed_names and account.a_ns
        ]

    # -- names -----------------------------------------------------------------------------

    @cached_property
    def name_changes(self) -> list[NameChange]:
        """What the ranks do by name, what differs most first: those of an account sum to its difference.
        Nothing of runs where ranks are not paired or names are of other things; ops say it one by one.
        """
        works = self._works
        a = sum_work((work, pair.ranks) for (work, _), pair in zip(works, self.pairs, strict=False))
        b = sum_work((work, pair.ranks) for (_, work), pair in zip(works, self.pairs, strict=False))
        return find_name_changes(a, b) if works else []

    @cached_property
    def _works(self) -> list[tuple[NamedWork, NamedWork]]:
        """What the ranks of each pair do by name; nothing where `by_name` has nothing."""
        if self.ranks is None and (
            self.ops is not None or not self.is_by_rank or not _have_same_names(self.a, self.b)
        ):
            return []
        return [(self.a.figures.named_work(pair.a), self.b.figures.named_work(pair.b)) for pair in self.pairs]

    def find_most_changed(self, change: NameChange) -> LanePair:
        """The ranks where what has a name of `by_name` changes most."""
        key = change.account, change.name
        differences = [abs(b.ns.get(key, 0) - a.ns.get(key, 0)) for a, b in self._works]
        return self.pairs[differences.index(max(differences))]

    @cached_property
    def name_sentences(self) -> list[str]:
        """What differs most by name, in one or two sentences; nothing of runs without `by_name`."""
        if self.ranks is None and not self.name_changes:
            return []
        of_pairs = [(pair.ranks, common_ns(self.a, pair.a), common_ns(self.b, pair.b)) for pair in self.pairs]
        accounts = [
            AccountChange(
                name,
                sum(ranks * a_ns[index] for ranks, a_ns, _ in of_pairs),
                sum(ranks * b_ns[index] for ranks, _, b_ns in of_pairs),
            )
            for index, name in enumerate(COMMON_ACCOUNTS)
        ]
        return make_sentences(accounts, self.name_changes, *words.format_side_names(self))

    # -- in words --------------------------------------------------------------------------

    @property
    def side_texts(self) -> tuple[str, str]:
        """What A and B are, or what is special about them."""
        return words.side_words(self, 0), words.side_words(self, 1)

    @property
    def notices(self) -> list[str]:
        """What has to be known before the figures are believed."""
        return words.notices(self)

    @property
    def why_text(self) -> str:
        """What explains B - A and what causes it, a sentence without its full stop; of two ranks what differs
        most by name.
        """
        if self.ops is not None:
            return self.ops.why_text
        return words.why_words(self) if self.ranks is None else " ".join(self.name_sentences)


def _have_same_names(a: Run, b: Run) -> bool:
    """Whether names are of the same things in both."""
    return a.trace.columns.keys() == b.trace.columns.keys()


def _find_track(run: Run, rank: int) -> Track:
    """Whose times a rank has. Raises `UsageError` where the run has no such rank."""
    for track in run.tracks:
        if rank in track.ranks:
            return track
    there = RankSet.of(rank for track in run.tracks for rank in track.ranks)
    raise UsageError(
        f"rank {rank}: found no such rank in {printable(run.path)}, expected one of {there.text()}"
    )


def _refuse_equal_ranks(ranks: tuple[int, int], track: Track, other: Track) -> None:
    """Raises `UsageError` where nothing differs between two ranks of a run."""
    if ranks[0] == ranks[1]:
        raise UsageError(f"rank {ranks[0]}: found the same rank twice, expected two ranks of the run")
    if track.track_id == other.track_id:
        raise UsageError(
            f"ranks {ranks[0]} and {ranks[1]} do alike: both are of ranks {track.ranks.text()}, which are "
            "equal and simulated once; nothing differs"
        )
