"""What two runs differ by on a stage or a rank: accounts in the words of every run, and passes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from simcore.comparison.changes import BUSY, AccountChange
from simcore.records import NamedTuple
from simcore.trace.track import ALIKE, COMPUTE, TimedPass, busy_ns

# A rank stands for its stage, or a stage for all, if it changes over so many times as much as the others.
_MUCH_MORE = 4


class MatchedPass(NamedTuple):
    """The same pass in A and in B."""

    a: TimedPass
    b: TimedPass


def matched_passes(a: Iterable[TimedPass], b: Iterable[TimedPass]) -> list[MatchedPass]:
    """The passes that both have: of one direction, micro-batch and part; in the order of A."""
    of_b = {timed_pass[:3]: timed_pass for timed_pass in b}
    return [MatchedPass(timed_pass, of_b[timed_pass[:3]]) for timed_pass in a if timed_pass[:3] in of_b]


class StagePair(NamedTuple):
    """A stage of both runs (None: all ranks). accounts: every one of ALIKE, the mean of its ranks, ns: they
    sum to the two steps. passes: those of its first lanes that both have.
    """

    stage: int | None
    accounts: list[AccountChange]
    passes: list[MatchedPass]

    def pass_ns(self, direction: str) -> AccountChange | None:
        """What a pass takes, the mean of those that both have; None where there is none."""
        alike = [matched_pass for matched_pass in self.passes if matched_pass.a.direction == direction]
        if not alike:
            return None
        sums = (
            sum(matched_pass.a.ns for matched_pass in alike),
            sum(matched_pass.b.ns for matched_pass in alike),
        )
        return AccountChange(direction, *(ns // len(alike) for ns in sums))

    @property
    def compute(self) -> AccountChange:
        """What is computed."""
        return computed([change.a_ns for change in self.accounts], [change.b_ns for change in self.accounts])


class KindChange(NamedTuple):
    """What a kind of time (of ALIKE, or `compute`) takes in A and in B. rank: of which one, None for the
    mean rank of the stage. stage: None for that of all stages.
    """

    stage: int | None
    change: AccountChange
    rank: int | None = None


def account_of(name: str) -> str:
    """The account that one of ALIKE is a part of where a difference is explained: compute is one."""
    return BUSY if ALIKE.index(name) in COMPUTE else name


def computed(a_ns: Sequence[int], b_ns: Sequence[int]) -> AccountChange:
    """What is computed, of ns by ALIKE."""
    return AccountChange(BUSY, busy_ns(a_ns), busy_ns(b_ns))


def size(change: KindChange) -> int:
    """How much it changes, ns."""
    return abs(change.change.ns)


def much_more(changes: list[KindChange]) -> KindChange | None:
    """The one that changes much more than all others; None where there is none, or no other."""
    ordered = sorted(changes, key=size, reverse=True)
    if len(ordered) < 2 or size(ordered[0]) <= _MUCH_MORE * size(ordered[1]):
        return None
    return ordered[0]
