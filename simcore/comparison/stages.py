"""The differences of two runs on a stage or a rank: the accounts that all runs have, and passes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from simcore.comparison.changes import BUSY, AccountChange
from simcore.records import NamedTuple
from simcore.trace.track import COMMON_ACCOUNTS, COMPUTE, TimedPass, busy_ns

# A rank is named for its stage, or a stage for all, if it changes over this many times as much as the others.
_MUCH_MORE = 4


class PassPair(NamedTuple):
    """The same pass in A and in B."""

    a: TimedPass
    b: TimedPass


def match_passes(a: Iterable[TimedPass], b: Iterable[TimedPass]) -> list[PassPair]:
    """Returns the passes that both have, of one direction, micro-batch and part, in the order of A."""
    of_b = {timed_pass[:3]: timed_pass for timed_pass in b}
    return [PassPair(timed_pass, of_b[timed_pass[:3]]) for timed_pass in a if timed_pass[:3] in of_b]


class StagePair(NamedTuple):
    """A stage of both runs."""

    stage: int | None
    """The stage; None: all ranks."""
    accounts: list[AccountChange]
    """Every account of COMMON_ACCOUNTS, the mean of its ranks, ns; they sum to the two steps."""
    passes: list[PassPair]
    """The passes that the first lane of the stage has in both runs."""

    def pass_ns(self, direction: str) -> AccountChange | None:
        """Returns the mean duration of the passes of a direction that both have, ns; None without any."""
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
        """The change of compute."""
        return compute_change(
            [change.a_ns for change in self.accounts], [change.b_ns for change in self.accounts]
        )


class KindChange(NamedTuple):
    """The change of one kind of time."""

    stage: int | None
    """The stage; None: all stages."""
    change: AccountChange
    """The time in A and in B, of one of COMMON_ACCOUNTS or of `compute`."""
    rank: int | None = None
    """The rank; None: the mean rank of the stage."""


def part_account(name: str) -> str:
    """Returns the account, of those that explain a difference, that one of COMMON_ACCOUNTS is part of:
    compute is one.
    """
    return BUSY if COMMON_ACCOUNTS.index(name) in COMPUTE else name


def compute_change(a_ns: Sequence[int], b_ns: Sequence[int]) -> AccountChange:
    """Returns the change of compute, of ns by COMMON_ACCOUNTS."""
    return AccountChange(BUSY, busy_ns(a_ns), busy_ns(b_ns))


def change_ns(change: KindChange) -> int:
    """Returns the size of a change, ns."""
    return abs(change.change.ns)


def find_outlier(changes: list[KindChange]) -> KindChange | None:
    """Returns the change that is much larger than all others; None where there is none, or no other."""
    ordered = sorted(changes, key=change_ns, reverse=True)
    if len(ordered) < 2 or change_ns(ordered[0]) <= _MUCH_MORE * change_ns(ordered[1]):
        return None
    return ordered[0]
