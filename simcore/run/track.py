"""The tracks of a run, whatever it came from, and the passes on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from simcore.ranks import RankSet


class StepShape(NamedTuple):
    """Degrees and micro-batches of a step, None where a trace does not tell."""

    tp: int | None
    dp: int | None
    pp: int | None
    microbatches: int | None


class Track(NamedTuple):
    """Ranks of a run that are one line of it. number: their rank class, or place among a trace's ranks.

    stage: None where it is not known. place: (stage, dp, tp) of a measured rank whose degrees are known.
    """

    number: int
    stage: int | None
    ranks: RankSet
    place: tuple[int, int, int] | None = None

    @property
    def first_rank(self) -> int:
        """The lowest of its ranks."""
        return self.ranks.first


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


def ranks_of(tracks: Sequence[Track], number: int) -> RankSet:
    """The ranks of the track with a number."""
    return next(track.ranks for track in tracks if track.number == number)


def in_order(tracks: Sequence[Track]) -> tuple[Track, ...]:
    """Tracks by stage, those without one first, and then by rank."""
    return tuple(sorted(tracks, key=lambda one: (-1 if one.stage is None else one.stage, one.first_rank)))
