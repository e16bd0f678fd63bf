"""Two ranks beside each other, of one run or of two: their accounts, and what they do by name.

The accounts are those of the whole run, in which a rank waits for the others.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from simcore.compare import AccountChange
from simcore.compare.beside import side_facts, waits_unknown
from simcore.compare.name_changes import NameChange, name_changes, sentences
from simcore.compare.two_runs import compared
from simcore.diagnostics import UsageError, printable
from simcore.ranks import RankSet
from simcore.records import NamedTuple, Struct
from simcore.trace.run import Run, common_ns
from simcore.trace.track import ALIKE, Track
from simcore.units import duration

_LABEL_CELLS = 24


class RankOf(NamedTuple):
    """A rank of a run."""

    run: Run
    rank: int

    @property
    def track(self) -> Track:
        """Whose times it has. Raises `UsageError` where the run has no such rank."""
        for track in self.run.tracks:
            if self.rank in track.ranks:
                return track
        there = RankSet.of(rank for track in self.run.tracks for rank in track.ranks)
        raise UsageError(
            f"rank {self.rank}: found no such rank in {printable(self.run.path)}, expected one of "
            f"{there.text()}"
        )


class TwoRanks(Struct, frozen=True, dict=True):
    """Rank B against rank A; differences are B - A.

    Raises `UsageError` for a rank that is not there, for a run without times, and for ranks of one run that
    are the same one or of one class of equal ranks.
    """

    a: RankOf
    b: RankOf

    def __post_init__(self) -> None:
        for side in (self.a, self.b):
            if not side.run.timed:
                raise UsageError(
                    f"rank {side.rank}: found an order of operations without times in "
                    f"{printable(side.run.path)}, expected a trace with durations"
                )
        track, other = self.tracks
        if not self.of_one_run:
            return
        if self.a.rank == self.b.rank:
            raise UsageError(f"rank {self.a.rank}: found the same rank twice, expected two ranks of the run")
        if track.number == other.number:
            raise UsageError(
                f"ranks {self.a.rank} and {self.b.rank} do alike: both are of ranks "
                f"{track.ranks.text()}, which are equal and simulated once; nothing differs"
            )

    @property
    def of_one_run(self) -> bool:
        """Whether both are of the same run."""
        return self.a.run is self.b.run

    @cached_property
    def tracks(self) -> tuple[Track, Track]:
        """Whose times they have."""
        return self.a.track, self.b.track

    @property
    def names(self) -> tuple[str, str]:
        """`rank 0` and `rank 7`, with the run where there are two."""
        of = ("", "") if self.of_one_run else (" of A", " of B")
        return f"rank {self.a.rank}{of[0]}", f"rank {self.b.rank}{of[1]}"

    @cached_property
    def accounts(self) -> list[AccountChange]:
        """Every one of ALIKE; they sum to the steps of the runs."""
        ns = (common_ns(side.run, track) for side, track in zip((self.a, self.b), self.tracks, strict=True))
        return [AccountChange(name, a_ns, b_ns) for name, a_ns, b_ns in zip(ALIKE, *ns, strict=True)]

    @cached_property
    def by_name(self) -> list[NameChange]:
        """What they do by name, what differs most first: those of an account sum to its difference."""
        a, b = (
            side.run.figures.named_work(track)
            for side, track in zip((self.a, self.b), self.tracks, strict=True)
        )
        return name_changes(a, b)

    @property
    def sides(self) -> tuple[str, str]:
        """`rank 7, stage 1: step 20.823 ms of run 20230907231001#10 of jobs/dlrm, measured`."""
        a, b = (
            f"{_rank_words(side.rank, track)}: step {duration(side.run.step_time_ns)} of {words}"
            for side, track, words in zip((self.a, self.b), self.tracks, self._run_words, strict=True)
        )
        return a, b

    @property
    def _run_words(self) -> tuple[str, str]:
        """What the runs are; of two simulated ones with what tells them from each other."""
        a, b = self.a.run, self.b.run
        words = side_facts(a, b), side_facts(b, a)
        if not self.of_one_run and a.setup.of == b.setup.of == "workload":
            words = compared(a, b).sides
        return f"{_file_words(a)}, {words[0]}", f"{_file_words(b)}, {words[1]}"

    by_name_title: ClassVar[str] = "time of the step"

    @cached_property
    def by_name_words(self) -> list[str]:
        """What differs most, in one or two sentences."""
        return sentences(self.accounts, self.by_name, *self.names)

    @property
    def notices(self) -> list[str]:
        """What has to be known before the figures are believed."""
        if self.of_one_run:
            return waits_unknown(self.a.run, "the run")
        return [*waits_unknown(self.a.run, "A"), *waits_unknown(self.b.run, "B")]


def _rank_words(rank: int, track: Track) -> str:
    """`rank 7, stage 1`, and the ranks that do as it does."""
    words = f"rank {rank}" if track.stage is None else f"rank {rank}, stage {track.stage}"
    return words if len(track.ranks) == 1 else f"{words}, one of ranks {track.ranks.text()}"


def _file_words(run: Run) -> str:
    of = "" if run.setup.label is None else f"run {printable(run.setup.label, _LABEL_CELLS)} of "
    return f"{of}{printable(run.path)}"
