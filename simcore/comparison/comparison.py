"""Two runs, or a rank of each, beside each other: which lane is which, what differs, and why.

What differs is told by accounts that all runs have; where the ops of both are of rows of a workload, op by
op: `Comparison.ops`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import cast

from simcore.comparison import words
from simcore.comparison.changes import AccountChange, AccountPart, Alike
from simcore.comparison.name_changes import NameChange, name_changes, sentences
from simcore.comparison.ops import OpChanges
from simcore.comparison.pairs import (
    LanePair,
    Unlike,
    are_numbered,
    are_placed,
    has_rows,
    lane_pairs,
    unlike_layouts,
)
from simcore.comparison.stages import (
    KindChange,
    MatchedPass,
    StagePair,
    account_of,
    computed,
    matched_passes,
    much_more,
    size,
)
from simcore.diagnostics import UsageError, printable
from simcore.ranks import RankSet
from simcore.records import Struct
from simcore.runs.simulated import Results
from simcore.trace.named_work import NamedWork, summed
from simcore.trace.run import Run, common_ns
from simcore.trace.track import ALIKE, Track, mean_ns

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
        for number, side in enumerate((self.a, self.b)):
            if not side.timed:
                path = printable(side.path)
                called = (f"compare {path}", "")
                if self.ranks is not None:
                    called = f"rank {self.ranks[number]}", f" in {path}"
                raise UsageError(
                    f"{called[0]}: found an order of operations without times{called[1]}, expected a trace "
                    "with durations"
                )
        if self.of_one_run and self.ranks is not None:
            _refuse_alike(self.ranks, self.tracks[0][0], self.tracks[1][0])
        if self.ops is None and not self.pairs:
            raise UsageError(
                "compare: found no rank or stage that both runs have; expected traces that name their "
                "stages (stage_id, or degrees in their names)"
            )

    @property
    def of_one_run(self) -> bool:
        """Whether it is of two ranks of one run."""
        return self.ranks is not None and self.a is self.b

    @property
    def difference_ns(self) -> int:
        """How much longer step B is."""
        return self.b.step_time_ns - self.a.step_time_ns

    # -- op by op --------------------------------------------------------------------------

    @cached_property
    def rows_of_both(self) -> OpChanges | None:
        """The two runs op by op; None where ops are not of rows of a workload in both."""
        if has_rows(self.a) and has_rows(self.b):
            return OpChanges(cast("Results", self.a), cast("Results", self.b))
        return None

    @property
    def ops(self) -> OpChanges | None:
        """What differs op by op; None where ops are not matched, as of two ranks."""
        return self.rows_of_both if self.ranks is None else None

    # -- which lane is which ---------------------------------------------------------------

    @cached_property
    def tracks(self) -> tuple[Sequence[Track], Sequence[Track]]:
        """What of A and of B is compared."""
        if self.ranks is None:
            return self.a.tracks, self.b.tracks
        a, b = self.ranks
        return [_track_of(self.a, a)], [_track_of(self.b, b)]

    @cached_property
    def pairs(self) -> list[LanePair]:
        """The lanes in pairs, by stage and rank."""
        if self.ranks is not None:
            return [LanePair(None, self.tracks[0][0], self.tracks[1][0], 1, self.ranks[1])]
        return lane_pairs(self.a, self.b) if self.ops is None else self.ops.lane_pairs

    @cached_property
    def unlike(self) -> list[Unlike]:
        """What of the layouts is not alike."""
        return unlike_layouts(self.a, self.b)

    @property
    def by_rank(self) -> bool:
        """Whether lanes are paired rank by rank; else by their stage alone."""
        if self.ranks is not None or self.ops is not None:
            return True
        return are_numbered(self.a, self.b) or are_placed(self.a, self.b)

    def passes(self, pair: LanePair) -> list[MatchedPass]:
        """The passes that both lanes of a pair have."""
        return matched_passes(self.a.figures.passes(pair.a), self.b.figures.passes(pair.b))

    def alike(self, pair: LanePair) -> Sequence[Alike]:
        """What both lanes of a pair have that computes: ops, or passes."""
        if self.ops is not None:
            return self.ops.computed_ops(pair)
        return [Alike(both.a.start_ns, both.a.end_ns, both.b.start_ns) for both in self.passes(pair)]

    # -- accounts --------------------------------------------------------------------------

    @cached_property
    def stages(self) -> list[StagePair]:
        """Each stage that both have, ascending."""
        return [self._stage(stage) for stage in dict.fromkeys(pair.stage for pair in self.pairs)]

    @cached_property
    def whole(self) -> StagePair:
        """All ranks of the stages that both have, as one."""
        return self._stage(None)

    def _stage(self, stage: int | None) -> StagePair:
        wanted = {pair.stage for pair in self.pairs} if stage is None else {stage}
        means = []
        for side, tracks in zip((self.a, self.b), self.tracks, strict=True):
            sums, ranks = [0] * len(ALIKE), 0
            for track in tracks:
                if track.stage in wanted or None in wanted:
                    count = len(track.ranks)
                    ranks += count
                    sums = [
                        total + count * ns for total, ns in zip(sums, common_ns(side, track), strict=True)
                    ]
            means.append(mean_ns(sums, ranks))
        accounts = [AccountChange(name, *ns) for name, *ns in zip(ALIKE, *means, strict=True)]
        first = next((pair for pair in self.pairs if pair.stage == stage), None)
        return StagePair(stage, accounts, [] if first is None else self.passes(first))

    @cached_property
    def most_changed(self) -> StagePair:
        """The stage whose accounts change most."""
        return max(self.stages, key=lambda stage: sum(abs(change.ns) for change in stage.accounts))

    @property
    def accounts(self) -> list[AccountChange]:
        """Every account of the mean rank."""
        return self.whole.accounts if self.ops is None else self.ops.accounts

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
        for change in self.whole.accounts:
            account = account_of(change.name)
            ns_of[account] = ns_of.get(account, 0) + change.ns
        there = [AccountPart(account, ns) for account, ns in ns_of.items() if ns]
        return sorted(there, key=lambda part: -abs(part.ns))

    @cached_property
    def movers(self) -> list[KindChange]:
        """What kinds of time change most, stage by stage, the largest difference first; equal ones are not
        there. Of a stage the mean of its ranks or, where lanes are paired by rank and one of them changes
        much more than the others, that rank.
        """
        changes = []
        for stage in self.stages:
            ranks = self._ranks_of(stage.stage)
            for number, change in enumerate(stage.accounts):
                of_ranks = [
                    KindChange(stage.stage, AccountChange(change.name, a_ns[number], b_ns[number]), rank)
                    for rank, a_ns, b_ns in ranks
                ]
                alone = much_more(of_ranks)
                if alone is not None or change.ns:
                    changes.append(alone or KindChange(stage.stage, change))
        return sorted(changes, key=lambda mover: (-size(mover), mover.stage or 0, mover.change.name))

    @cached_property
    def cause(self) -> KindChange | None:
        """Whose compute changes most: the rank whose does, if it is much more than that of the others of its
        stage; else a stage whose mean rank's does much more than the others'; else the mean rank of all.
        None where it is little beside the account that changes most, and so explains nothing.
        """
        ranks = [
            KindChange(stage.stage, computed(a_ns, b_ns), rank)
            for stage in self.stages
            for rank, a_ns, b_ns in self._ranks_of(stage.stage)
        ]
        first = max(ranks, key=size, default=None)
        most = None if first is None else much_more([one for one in ranks if one.stage == first.stage])
        if most is None:
            most = much_more([KindChange(stage.stage, stage.compute) for stage in self.stages])
            of_it = [] if most is None else [change for change in ranks if change.stage == most.stage]
            most = of_it[0] if len(of_it) == 1 else most
        most = most or KindChange(None, self.whole.compute)
        largest = max(abs(change.ns) for change in self.whole.accounts)
        return most if most.change.ns and size(most) >= largest * _CAUSE else None

    def _ranks_of(self, stage: int | None) -> list[tuple[int, list[int], list[int]]]:
        """Rank, its ns by ALIKE in A and in B, of the paired ranks of a stage; none if paired by stage."""
        if not self.by_rank:
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
        differ = {mover.change.name for mover in self.movers}
        return [
            account.name for account in self.whole.accounts if account.name not in differ and account.a_ns
        ]

    # -- names -----------------------------------------------------------------------------

    @cached_property
    def by_name(self) -> list[NameChange]:
        """What the ranks do by name, what differs most first: those of an account sum to its difference.
        Nothing of runs where ranks are not paired or names are of other things; ops say it one by one.
        """
        works = self._works
        a = summed((work, pair.ranks) for (work, _), pair in zip(works, self.pairs, strict=False))
        b = summed((work, pair.ranks) for (_, work), pair in zip(works, self.pairs, strict=False))
        return name_changes(a, b) if works else []

    @cached_property
    def _works(self) -> list[tuple[NamedWork, NamedWork]]:
        """What the ranks of each pair do by name; nothing where `by_name` has nothing."""
        if self.ranks is None and (
            self.ops is not None or not self.by_rank or not _names_alike(self.a, self.b)
        ):
            return []
        return [(self.a.figures.named_work(pair.a), self.b.figures.named_work(pair.b)) for pair in self.pairs]

    def where_most(self, change: NameChange) -> LanePair:
        """The ranks where what has a name of `by_name` changes most."""
        key = change.account, change.name
        changed = [abs(b.ns.get(key, 0) - a.ns.get(key, 0)) for a, b in self._works]
        return self.pairs[changed.index(max(changed))]

    @cached_property
    def by_name_words(self) -> list[str]:
        """What differs most by name, in one or two sentences; nothing of runs without `by_name`."""
        if self.ranks is None and not self.by_name:
            return []
        of_pairs = [(pair.ranks, common_ns(self.a, pair.a), common_ns(self.b, pair.b)) for pair in self.pairs]
        accounts = [
            AccountChange(
                name,
                sum(ranks * a_ns[number] for ranks, a_ns, _ in of_pairs),
                sum(ranks * b_ns[number] for ranks, _, b_ns in of_pairs),
            )
            for number, name in enumerate(ALIKE)
        ]
        return sentences(accounts, self.by_name, *words.names_of_sides(self))

    # -- in words --------------------------------------------------------------------------

    @property
    def sides(self) -> tuple[str, str]:
        """What A and B are, or what is special about them."""
        return words.side_words(self, 0), words.side_words(self, 1)

    @property
    def notices(self) -> list[str]:
        """What has to be known before the figures are believed."""
        return words.notices(self)

    @property
    def why(self) -> str:
        """What explains B - A and what causes it, a sentence without its full stop; of two ranks what differs
        most by name.
        """
        if self.ops is not None:
            return self.ops.why
        return words.why_words(self) if self.ranks is None else " ".join(self.by_name_words)


def _names_alike(a: Run, b: Run) -> bool:
    """Whether names are of the same things in both."""
    return a.trace.columns.keys() == b.trace.columns.keys()


def _track_of(run: Run, rank: int) -> Track:
    """Whose times a rank has. Raises `UsageError` where the run has no such rank."""
    for track in run.tracks:
        if rank in track.ranks:
            return track
    there = RankSet.of(rank for track in run.tracks for rank in track.ranks)
    raise UsageError(
        f"rank {rank}: found no such rank in {printable(run.path)}, expected one of {there.text()}"
    )


def _refuse_alike(ranks: tuple[int, int], track: Track, other: Track) -> None:
    """Raises `UsageError` where nothing differs between two ranks of a run."""
    if ranks[0] == ranks[1]:
        raise UsageError(f"rank {ranks[0]}: found the same rank twice, expected two ranks of the run")
    if track.number == other.number:
        raise UsageError(
            f"ranks {ranks[0]} and {ranks[1]} do alike: both are of ranks {track.ranks.text()}, which are "
            "equal and simulated once; nothing differs"
        )
