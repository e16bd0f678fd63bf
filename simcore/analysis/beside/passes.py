"""The forward and backward passes of a rank, simulated or measured, and which is which."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from simcore.analysis.microbatch_passes import class_passes
from simcore.measured.columns import PASSES, RankTrace
from simcore.timeline import Timeline


class TimedPass(NamedTuple):
    """A pass of one rank, ns of the step. part: how many of the same micro-batch came before, from 0."""

    direction: str
    microbatch: int
    part: int
    start_ns: int
    end_ns: int

    @property
    def ns(self) -> int:
        """How long it takes, blocking communication included."""
        return self.end_ns - self.start_ns


class MatchedPass(NamedTuple):
    """The same pass in A and in B."""

    a: TimedPass
    b: TimedPass


def simulated_passes(timeline: Timeline, number: int) -> list[TimedPass]:
    """The passes of a rank class, in the order in which its compute stream does them."""
    return [
        TimedPass(one.direction, one.microbatch, one.part, one.start_ns, one.end_ns)
        for one in class_passes(timeline, number)
    ]


def measured_passes(rank: RankTrace) -> list[TimedPass]:
    """The forward and backward steps of a rank that say their micro-batch, by their start."""
    ops = rank.ops
    done: dict[tuple[str, int], int] = {}
    found = []
    for op in rank.passes:
        direction, batch = PASSES[ops.name[op]], ops.batch[op]
        if batch < 0:
            continue
        part = done.get((direction, batch), 0)
        done[direction, batch] = part + 1
        found.append(TimedPass(direction, batch, part, ops.start[op], ops.end[op]))
    return found


def matched_passes(a: Iterable[TimedPass], b: Iterable[TimedPass]) -> list[MatchedPass]:
    """The passes that both have: of one direction, micro-batch and part; in the order of A."""
    of_b = {one[:3]: one for one in b}
    return [MatchedPass(one, of_b[one[:3]]) for one in a if one[:3] in of_b]
