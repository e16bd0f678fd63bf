"""Accounts of whole stages: the mean over the ranks of each."""

from __future__ import annotations

from collections.abc import Sequence

from simcore.analysis.accounts import ACCOUNTS, BUBBLE, FIRST_EXPOSED, IDLE, WAIT, Accounts
from simcore.folding import RankClass
from simcore.records import Struct


class StageAccounts(Struct, frozen=True):
    """One pipeline stage. classes: numbers of its rank classes. ranks: how many ranks it has.

    first_rank, last_rank: the lowest and the highest of them. sum_ns: ns by account (index
    into ACCOUNTS), of all its ranks together.
    """

    stage: int
    classes: tuple[int, ...]
    ranks: int
    first_rank: int
    last_rank: int
    sum_ns: tuple[int, ...]

    def parts_ns(self) -> dict[str, int]:
        """Compute, exposed, wait, bubble, idle of all its ranks together, ns. They sum to a step each."""
        ends = (
            ("compute", 0, FIRST_EXPOSED), ("exposed", FIRST_EXPOSED, WAIT), ("wait", WAIT, BUBBLE),
            ("bubble", BUBBLE, IDLE), ("idle", IDLE, len(ACCOUNTS)),
        )  # fmt: skip
        return {name: sum(self.sum_ns[first:last]) for name, first, last in ends}


def joined(stages: Sequence[StageAccounts]) -> StageAccounts:
    """Neighbouring stages as one, with the number of the first."""
    first, last = stages[0], stages[-1]
    classes = tuple(number for one in stages for number in one.classes)
    sums = tuple(map(sum, zip(*(one.sum_ns for one in stages), strict=True)))
    ranks = sum(one.ranks for one in stages)
    return StageAccounts(first.stage, classes, ranks, first.first_rank, last.last_rank, sums)


def stage_accounts(classes: tuple[RankClass, ...], accounts: list[Accounts]) -> list[StageAccounts]:
    """The stages of a run, ascending. accounts: of every rank class, by its number."""
    members: dict[int, list[int]] = {}
    for number, rank_class in enumerate(classes):
        members.setdefault(rank_class.stage, []).append(number)
    found = []
    for stage, numbers in sorted(members.items()):
        sums = [0] * len(ACCOUNTS)
        for number in numbers:
            count = len(classes[number].ranks)
            for account, ns in enumerate(accounts[number].total_ns):
                sums[account] += count * ns
        sets = [classes[number].ranks for number in numbers]
        found.append(
            StageAccounts(
                stage,
                tuple(numbers),
                sum(map(len, sets)),
                min(ranks.first for ranks in sets),
                max(ranks.last for ranks in sets),
                tuple(sums),
            )
        )
    return found
