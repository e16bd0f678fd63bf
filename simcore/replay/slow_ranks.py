"""Ranks that compute much longer than the others of their stage: what is said of them, and asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from simcore.replay.results import MeasuredResults

# A rank is slow, or a stage, if it computes so much longer than the others: below it is noise.
SLOW = 1.1
# A share of the step below which nothing is worth a sentence.
LEAST = 0.01


class SlowRank(NamedTuple):
    """A rank by its number: ns that it computes, and the median of the other ranks of its stage."""

    rank: int
    stage: int | None
    ns: int
    peers_ns: int


def slow_ranks(results: MeasuredResults) -> list[SlowRank]:
    """Ranks that compute over a tenth longer than the median of the others of their stage, and over 1 % of
    the step; by stage, in the run's order. Of an even number of others the upper of the two in the middle.
    """
    found = []
    for stage, ranks in compute_by_stage(results).items():
        for number, ns in ranks.items():
            others = sorted(other for rank, other in ranks.items() if rank != number)
            if not others:
                continue
            middle = others[len(others) // 2]
            if ns > middle * SLOW and ns - middle > results.step_time_ns * LEAST:
                found.append(SlowRank(number, stage, ns, middle))
    return found


def compute_by_stage(results: MeasuredResults) -> dict[int | None, dict[int, int]]:
    """Stage -> rank number -> what it computes, ns."""
    found: dict[int | None, dict[int, int]] = {}
    for rank, one in zip(results.measured.ranks, results.accounts, strict=True):
        found.setdefault(rank.stage, {})[rank.number] = one.busy_ns
    return found
