"""The comparison of two runs, or of a rank of each: which lanes are paired, what differs, and why.

Differences are stated by the accounts that all runs have and, where the ops of both runs are of rows of a
workload, op by op: `Comparison.ops`.
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
from simcore.words.sentences.shift import PathShift, find_path_shift

# A change of compute below this share of the largest change of an account does not explain it.
_CAUSE = 0.1


class Comparison(Struct, frozen=True, dict=True):
    """Run B against run A; differences are B - A.

    Raises `UsageError` for an order without times, where nothing of the two can be paired, for a rank that a
    run does not have, and for two ranks of one run that are the same or of one class of equal ranks.
    """

    a: Run
    b: Run
    ranks: tuple[int, int] | None = None
    """The rank of A and that of B that alone are compared; None: all ranks. Their accounts are those of the
    whole run, in which a rank waits for the others.
    """

    def __post_init__(self) -> None:
        for side_id, side in enumerate((self.a, self.b)):
            if not side.timed:
                path = printable(side.path)
                subject = (f"compare {path}", "")
                if self.ranks is not None:
                    subject = f"rank {self.ranks[side_id]}", f" in {path}"
                what = "an order of operations without times"
                if not side.figures.has_step:
                    of = "flight recorder dumps" if side.figures.hang is not None else "memory snapshots"
                    what = f"{of}, which have no step"
                raise UsageError(f"{subject[0]}: found {what}{subject[1]}, expected a trace with durations")
        if self.is_of_one_run and self.ranks is not None:
            _refuse_equal_ranks(self.ranks, self.tracks[0][0], self.tracks[1][0])
        if self.ops is None and not self.pairs:
            raise UsageError(
                "compare: found no rank or stage that both runs have; expected traces that name their "
                "stages (stage_id, or degrees in their names)"
            )

    @property
    def is_of_one_run(self) -> bool:
        """Whether two ranks of one run are compared."""
        return self.ranks is not None and self.a is self.b

    @property
    def difference_ns(self) -> int:
        """How much longer the step of B is, ns."""
        return self.b.step_time_ns - self.a.step_time_ns

    # -- op by op --------------------------------------------------------------------------

    @cached_property
    def op_changes(self) -> OpChanges | None:
        """The differences of the two runs op by op; None where the ops of either are not of rows of a
        workload.
        """
        if has_rows(self.a) and has_rows(self.b):
            return OpChanges(cast("SimulatedRun", self.a), cast("SimulatedRun", self.b))
        return None

    @property
    def ops(self) -> OpChanges | None:
        """The differences op by op; None where ops are not matched, as those of two ranks."""
        return self.op_changes if self.ranks is None else None

    # -- which lane is which ---------------------------------------------------------------

    @cached_property
    def tracks(self) -> tuple[Sequence[Track], Sequence[Track]]:
        """The tracks of A and of B that are compared."""
        if self.ranks is None:
            return self.a.tracks, self.b.tracks
        a, b = self.ranks
        return [_find_track(self.a, a)], [_find_track(self.b, b)]

    @cached_property
    def pairs(self) -> list[LanePair]:
        """The paired lanes, by stage and rank."""
        if self.ranks is not None:
            return [LanePair(None, self.tracks[0][0], self.tracks[1][0], 1, self.ranks[1])]
        return find_lane_pairs(self.a, self.b) if self.ops is None else self.ops.lane_pairs

    @cached_property
    def layout_differences(self) -> list[LayoutDifference]:
        """The degrees of the layouts that differ."""
        return find_layout_differences(self.a, self.b)

    @property
    def is_by_rank(self) -> bool:
        """Whether lanes are paired rank by rank; otherwise they are paired by stage alone."""
        if self.ranks is not None or self.ops is not None:
            return True
        return pairs_by_number(self.a, self.b) or pairs_by_position(self.a, self.b)

    def passes(self, pair: LanePair) -> list[PassPair]:
        """Returns the passes that both lanes of a pair have."""
        return match_passes(self.a.figures.passes(pair.a), self.b.figures.passes(pair.b))

    def matching_spans(self, pair: LanePair) -> Sequence[SpanPair]:
        """Returns the ops, or the passes, that both lanes of a pair have and that compute."""
        if self.ops is not None:
            return self.ops.computed_ops(pair)
        return [SpanPair(both.a.start_ns, both.a.end_ns, both.b.start_ns) for both in self.passes(pair)]

    # -- accounts --------------------------------------------------------------------------

    @cached_property
    def stages(self) -> list[StagePair]:
        """The stages that both runs have, ascending."""
        return [self._compare_stage(stage) for stage in dict.fromkeys(pair.stage for pair in self.pairs)]

    @cached_property
    def all_stages(self) -> StagePair:
        """The stages that both runs have, all their ranks together."""
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
        """The accounts of the mean rank."""
        return self.all_stages.accounts if self.ops is None else self.ops.accounts

    @property
    def account_columns(self) -> list[Sequence[AccountChange]]:
        """`accounts` and, of runs that know stages, the accounts of the ranks that stand out.

        These are the ranks that compute least or, where ops are not matched, the stage that changes most.
        """
        if self.ops is not None:
            return [self.accounts, self.ops.worst_accounts]
        most = self.most_changed
        return [self.accounts, *([] if most.stage is None else [most.accounts])]

    @cached_property
    def parts(self) -> list[AccountPart]:
        """The parts of B - A by account, the largest first.

        The accounts are those of the critical paths or, where ops are not matched, of the mean rank of the
        stages that both runs have.
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
    def path_shift(self) -> PathShift | None:
        """What the two critical paths are spent on; None where `find_path_shift` finds nothing."""
        return next(find_path_shift(self.a, self.b), None)

    @cached_property
    def kind_changes(self) -> list[KindChange]:
        """The changes of each kind of time stage by stage, the largest first; those of 0 ns are left out.

        The figures of a stage are the mean of its ranks or, where lanes are paired by rank and one of them
        changes much more than the others, those of that rank.
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
        """The rank or stage whose compute changes most; None where the change explains nothing.

        It is a rank that changes much more than the others of its stage; otherwise a stage whose mean rank
        changes much more than those of other stages; otherwise the mean rank of all. A change that is small
        compared with the account that changes most explains nothing.
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
        """Returns (rank, ns by COMMON_ACCOUNTS in A, the same in B) of each paired rank of a stage.

        The list is empty where lanes are paired by stage.
        """
        if not self.is_by_rank:
            return []
        return [
            (pair.rank, common_ns(self.a, pair.a), common_ns(self.b, pair.b))
            for pair in self.pairs
            if pair.stage == stage
        ]

    @property
    def unchanged(self) -> list[str]:
        """What is the same in both, in words: figures of ops, or the kinds of time that are equal on every
        stage.
        """
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
        """The changes by name, the largest first; those of an account sum to its difference.

        Empty where ranks are not paired, where names are of different things, and where ops are matched,
        which says the same op by op.
        """
        works = self._works
        a = sum_work((work, pair.ranks) for (work, _), pair in zip(works, self.pairs, strict=False))
        b = sum_work((work, pair.ranks) for (_, work), pair in zip(works, self.pairs, strict=False))
        return find_name_changes(a, b) if works else []

    @cached_property
    def _works(self) -> list[tuple[NamedWork, NamedWork]]:
        """The work by name of the ranks of each pair, in A and in B; empty where `name_changes` is."""
        if self.ranks is None and (
            self.ops is not None or not self.is_by_rank or not _have_same_names(self.a, self.b)
        ):
            return []
        return [(self.a.figures.named_work(pair.a), self.b.figures.named_work(pair.b)) for pair in self.pairs]

    def find_most_changed(self, change: NameChange) -> LanePair:
        """Returns the pair of lanes where the work of a name changes most."""
        key = change.account, change.name
        differences = [abs(b.ns.get(key, 0) - a.ns.get(key, 0)) for a, b in self._works]
        return self.pairs[differences.index(max(differences))]

    @cached_property
    def name_sentences(self) -> list[str]:
        """The largest differences by name, in one or two sentences; empty for runs without `name_changes`."""
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
        """What A and B are, or what is special about them, in words."""
        return words.side_words(self, 0), words.side_words(self, 1)

    @property
    def notices(self) -> list[str]:
        """The sentences that qualify the figures, to be read before them."""
        return words.notices(self)

    @property
    def why_text(self) -> str:
        """The parts that explain B - A and their cause, a sentence without its full stop.

        Of two ranks it is the largest differences by name.
        """
        if self.ops is not None:
            return self.ops.why_text
        return words.why_words(self) if self.ranks is None else " ".join(self.name_sentences)


def _have_same_names(a: Run, b: Run) -> bool:
    """Returns whether names are of the same things in both runs."""
    return a.trace.columns.keys() == b.trace.columns.keys()


def _find_track(run: Run, rank: int) -> Track:
    """Returns the track that has the times of a rank. Raises `UsageError` where the run has no such rank."""
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
            f"ranks {ranks[0]} and {ranks[1]} are equal: both are of ranks {track.ranks.text()}, which are "
            "simulated once; nothing differs"
        )
