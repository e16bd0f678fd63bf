"""The tracks of a run, whatever it came from, the passes on them, and the accounts under one name each."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from simcore.ranks import RankSet
from simcore.records import NamedTuple


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


def whole_stages(stages: Sequence[int | None], numbers: Collection[int]) -> RankSet | None:
    """The stages that the tracks with these numbers are, all ranks of each; None where some are missing, or
    nobody knows them. stages: of each track, by its number.
    """
    whole = {stages[number] for number in numbers}
    missing = any(stage in whole and number not in numbers for number, stage in enumerate(stages))
    return None if missing or None in whole else RankSet.of(stage for stage in whole if stage is not None)


def in_order(tracks: Sequence[Track]) -> tuple[Track, ...]:
    """Tracks by stage, those without one first, and then by rank."""
    return tuple(
        sorted(tracks, key=lambda track: (-1 if track.stage is None else track.stage, track.first_rank))
    )


# What a trace cannot tell apart is one account: input and weight gradient and what is recomputed run inside
# its backward steps. `embedding`, `position` and `host` are a trace's alone, `kernel` (compute of which
# nothing tells what it is for) and `copy` a profiler's.
ALIKE = (
    "forward", "backward", "optimizer", "exposed tp", "exposed dp", "exposed ep", "exposed expert dp",
    "exposed pp", "exposed embedding", "exposed position", "exposed comm", "wait", "bubble", "host", "idle",
    "kernel", "exposed copy",
)  # fmt: skip
# Accounts of few simulated runs: left out where they have no time.
OF_FEW = ("exposed dp_shard", "exposed dp_replicate", "exposed offload")
# Accounts that are left out where no run is a profiler's.
OF_PROFILES = ("kernel", "exposed copy")
# Places in ALIKE of what a rank computes.
COMPUTE = tuple(ALIKE.index(name) for name in ("forward", "backward", "optimizer", "kernel"))


def in_same_words(total_ns: Sequence[int], table: Sequence[int]) -> list[int]:
    """ns by ALIKE of what an account of a run has. table: `alike` of `AccountNames`. The sum is the same."""
    sums = [0] * len(ALIKE)
    for number, ns in zip(table, total_ns, strict=True):
        sums[number] += ns
    return sums


def busy_ns(common_ns: Sequence[int]) -> int:
    """What is computed, of ns by ALIKE."""
    return sum(common_ns[account] for account in COMPUTE)


def mean_ns(sums: Sequence[int], count: int) -> list[int]:
    """Each sum over `count`, in whole ns, so that the means sum to the whole's mean to the nanosecond."""
    means: list[int] = []
    reached = given = 0
    for ns in sums:
        reached += ns
        means.append(reached // count - given)
        given = reached // count
    return means
