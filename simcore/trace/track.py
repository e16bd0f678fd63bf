"""The tracks of a run, whatever it came from, the passes on them, and the accounts under one name each."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from simcore.ranks import RankSet
from simcore.records import NamedTuple


class Track(NamedTuple):
    """Ranks of a run that are one line of it. number: their rank class, or place among a trace's ranks.

    stage: None where it is not known. place: (stage, dp, tp) of a measured rank whose degrees are known.
    """

    track_id: int
    stage: int | None
    ranks: RankSet
    position: tuple[int, int, int] | None = None

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


def ranks_of(tracks: Sequence[Track], track_id: int) -> RankSet:
    """The ranks of the track with a number."""
    return next(track.ranks for track in tracks if track.track_id == track_id)


def find_whole_stages(stages: Sequence[int | None], track_ids: Collection[int]) -> RankSet | None:
    """The stages that the tracks with these numbers are, all ranks of each; None where some are missing, or
    nobody knows them. stages: of each track, by its number.
    """
    stage_set = {stages[track_id] for track_id in track_ids}
    missing = any(stage in stage_set and track_id not in track_ids for track_id, stage in enumerate(stages))
    return (
        None
        if missing or None in stage_set
        else RankSet.of(stage for stage in stage_set if stage is not None)
    )


def sort_tracks(tracks: Sequence[Track]) -> tuple[Track, ...]:
    """Tracks by stage, those without one first, and then by rank."""
    return tuple(
        sorted(tracks, key=lambda track: (-1 if track.stage is None else track.stage, track.first_rank))
    )


# What a trace cannot tell apart is one account: input and weight gradient and what is recomputed run inside
# its backward steps. `embedding`, `position` and `host` are a trace's alone, `kernel` (compute of which
# nothing tells what it is for) and `copy` a profiler's.
COMMON_ACCOUNTS = (
    "forward", "backward", "optimizer", "exposed tp", "exposed dp", "exposed ep", "exposed expert dp",
    "exposed pp", "exposed embedding", "exposed position", "exposed comm", "wait", "bubble", "host", "idle",
    "kernel", "exposed copy",
)  # fmt: skip
# Accounts of few simulated runs: left out where they have no time.
RARE_ACCOUNTS = ("exposed dp_shard", "exposed dp_replicate", "exposed offload")
# Accounts that are left out where no run is a profiler's.
PROFILE_ACCOUNTS = ("kernel", "exposed copy")
# Places in ALIKE of what a rank computes.
COMPUTE = tuple(COMMON_ACCOUNTS.index(name) for name in ("forward", "backward", "optimizer", "kernel"))


def to_common_accounts(total_ns: Sequence[int], table: Sequence[int]) -> list[int]:
    """ns by ALIKE of what an account of a run has. table: `alike` of `AccountNames`. The sum is the same."""
    sums = [0] * len(COMMON_ACCOUNTS)
    for index, ns in zip(table, total_ns, strict=True):
        sums[index] += ns
    return sums


def busy_ns(common_ns: Sequence[int]) -> int:
    """What is computed, of ns by ALIKE."""
    return sum(common_ns[account] for account in COMPUTE)


def mean_ns(sums: Sequence[int], count: int) -> list[int]:
    """Each sum over `count`, in whole ns, so that the means sum to the whole's mean to the nanosecond."""
    means: list[int] = []
    reached = distributed = 0
    for ns in sums:
        reached += ns
        means.append(reached // count - distributed)
        distributed = reached // count
    return means
