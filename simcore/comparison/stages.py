"""What two runs differ by on a stage or a rank: accounts in the words of every run, and passes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from simcore.comparison.changes import BUSY, AccountChange
from simcore.records import NamedTuple
from simcore.trace.track import COMMON_ACCOUNTS, COMPUTE, TimedPass, busy_ns

# A rank stands for its stage, or a stage for all, if it changes over so many times as much as the others.
_MUCH_MORE = 4


class PassPair(NamedTuple):
    """The same pass in A and in B."""

    a: TimedPass
    b: TimedPass


def match_passes(a: Iterable[TimedPass], b: Iterable[TimedPass]) -> list[PassPair]:
    """The passes that both have: of one direction, micro-batch and part; in the order of A."""
    of_b = {timed_pass[:3]: timed_pass for timed_pass in b}
    return [PassPair(timed_pass, of_b[timed_pass[:3]]) for timed_pass in a if timed_pass[:3] in of_b]


class StagePair(NamedTuple):
    """A stage of both runs (None: all ranks). accounts: every one of ALIKE, the mean of its ranks, ns: they
    sum to the two steps. passes: those of its first lanes that both have.
    """

    stage: int | None
    accounts: list[AccountChange]
    passes: list[PassPair]

    def pass_ns(self, direction: str) -> AccountChange | None:
        """What a pass takes, the mean of those that both have; None where there is none."""
        same_passes = [matched_pass for matched_pass in self.passes if matched_pass.a.direction == direction]
        if not same_passes:
            return None
        sums = (
            sum(matched_pass.a.ns for matched_pass in same_passes),
            sum(matched_pass.b.ns for matched_pass in same_passes),
        )
        return AccountChange(direction, *(ns // len(same_passes) for ns in sums))

    @property
    def compute(self) -> AccountChange:
        """What is computed."""
        return compute_change(
            [change.a_ns for change in self.accounts], [change.b_ns for change in self.accounts]
        )


class KindChange(NamedTuple):
    """What a kind of time (of ALIKE, or `compute`) takes in A and in B. rank: of which one, None for the
    mean rank of the stage. stage: None for that of all stages.
    """

    stage: int | None
    change: AccountChange
    rank: int | None = None


def part_account(name: str) -> str:
    """The account that one of ALIKE is a part of where a difference is explained: compute is one."""
    return BUSY if COMMON_ACCOUNTS.index(name) in COMPUTE else name


def compute_change(a_ns: Sequence[int], b_ns: Sequence[int]) -> AccountChange:
    """What is computed, of ns by ALIKE."""
    return AccountChange(BUSY, busy_ns(a_ns), busy_ns(b_ns))


def change_ns(change: KindChange) -> int:
    """How much it changes, ns."""
    return abs(change.change.ns)


def find_outlier(changes: list[KindChange]) -> KindChange | None:
    """The one that changes much more than all others; None where there is none, or no other."""
    ordered = sorted(changes, key=change_ns, reverse=True)
    if len(ordered) < 2 or change_ns(ordered[0]) <= _MUCH_MORE * change_ns(ordered[1]):
        return None
    return ordered[0]
