"""The forward and backward passes of a rank, simulated or measured, and which is which."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from simcore.analysis.microbatch_passes import class_passes
from simcore.measured.columns import FUSED, RankTrace
from simcore.timeline import Timeline

_DIRECTIONS = {"forward_step": "forward", "backward_step": "backward"}


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
    steps = sorted(
        (ops.start[op], ops.end[op], name, ops.batch[op])
        for op, name in enumerate(ops.name)
        if name in _DIRECTIONS and ops.batch[op] >= 0 and ops.known[op] != FUSED
    )
    done: dict[tuple[str, int], int] = {}
    found = []
    for start, end, name, batch in steps:
        direction = _DIRECTIONS[name]
        part = done.get((direction, batch), 0)
        done[direction, batch] = part + 1
        found.append(TimedPass(direction, batch, part, start, end))
    return found


def matched_passes(a: Iterable[TimedPass], b: Iterable[TimedPass]) -> list[MatchedPass]:
    """The passes that both have: of one direction, micro-batch and part; in the order of A."""
    of_b = {one[:3]: one for one in b}
    return [MatchedPass(one, of_b[one[:3]]) for one in a if one[:3] in of_b]
