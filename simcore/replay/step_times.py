"""How long each step of a run lasts, and how long each rank computes in it."""

from __future__ import annotations

from statistics import median_high

from simcore.measured import MeasuredRun
from simcore.measured.columns import RankTrace
from simcore.measured.vocabulary import COMPUTE
from simcore.records import NamedTuple

# A rank is slow in a step in which it computes this much longer than the median of its peers.
_SLOW = 1.1


class StepTime(NamedTuple):
    """A step of a run of several."""

    step: int
    ns: int
    """On the rank where it is longest."""
    rank_ns: dict[int, int]
    """By rank, of those that have it whole."""
    compute_ns: dict[int, int]
    """By rank what its operations that compute take."""
    longest_rank: int
    """The rank that computes longest."""
    figures: dict[str, float]
    """What the file states of it beside: of a log `loss`, `tokens_per_second`, `tflops`, `memory_bytes`."""


def step_times(run: MeasuredRun) -> tuple[StepTime, ...]:
    """Returns the steps of a run of all that was recorded; none of another run."""
    computes = {rank.rank: _compute_by_step(rank) for rank in run.ranks if rank.step is not None}
    if run.recorded is None or not computes:
        return ()
    steps = []
    for recorded_step in run.recorded.steps:
        step_number = recorded_step.step_number
        compute_ns = {rank: by_step.get(step_number, 0) for rank, by_step in computes.items()}
        longest = max(compute_ns, key=lambda rank: (compute_ns[rank], -rank))
        steps.append(
            StepTime(
                step_number, recorded_step.longest_ns, recorded_step.ns, compute_ns, longest,
                recorded_step.figures,
            )
        )  # fmt: skip
    return tuple(steps)


def _compute_by_step(rank: RankTrace) -> dict[int, int]:
    ops, sums = rank.ops, dict[int, int]()
    for op, step in enumerate(rank.step or ()):
        if ops.category(op) in COMPUTE:
            sums[step] = sums.get(step, 0) + ops.end[op] - ops.start[op]
    return sums


def count_slow_steps(run: MeasuredRun, steps: tuple[StepTime, ...], rank: int) -> int:
    """Returns in how many steps a rank computes over a tenth longer than the median of its stage's others."""
    stage_of = {one.rank: one.stage for one in run.ranks}
    peers = [other for other in stage_of if other != rank and stage_of[other] == stage_of[rank]]
    if not peers:
        return 0
    return sum(
        step.compute_ns[rank] > _SLOW * median_high(step.compute_ns[peer] for peer in peers) for step in steps
    )
