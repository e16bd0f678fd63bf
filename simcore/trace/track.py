"""The tracks of a run, the passes on them, and the accounts that all kinds of runs share."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from simcore.ranks import RankSet
from simcore.records import NamedTuple


class Track(NamedTuple):
    """Ranks of a run that share one time line."""

    track_id: int
    """Their rank class, or their index among the ranks of a trace."""
    stage: int | None
    """The stage, None where it is not known."""
    ranks: RankSet
    """The ranks."""
    position: tuple[int, int, int] | None = None
    """(stage, dp, tp) of a measured rank whose degrees are known."""

    @property
    def first_rank(self) -> int:
        """The lowest of its ranks."""
        return self.ranks.first


class TimedPass(NamedTuple):
    """A pass of one rank."""

    direction: str
    """Forward or backward."""
    microbatch: int
    """Its micro-batch."""
    part: int
    """How many passes of the same micro-batch came before, from 0."""
    start_ns: int
    """When it begins, ns of the step."""
    end_ns: int
    """When it ends, ns of the step."""

    @property
    def ns(self) -> int:
        """How long it takes, blocking communication included, ns."""
        return self.end_ns - self.start_ns


def ranks_of(tracks: Sequence[Track], track_id: int) -> RankSet:
    """Returns the ranks of the track with an id."""
    return next(track.ranks for track in tracks if track.track_id == track_id)


def find_whole_stages(stages: Sequence[int | None], track_ids: Collection[int]) -> RankSet | None:
    """Returns the stages that the tracks with these ids form, all ranks of each; None where some ranks are
    missing, or a stage is not known. stages: of each track, by its id.
    """
    stage_set = {stages[track_id] for track_id in track_ids}
    missing = any(stage in stage_set and track_id not in track_ids for track_id, stage in enumerate(stages))
    return (
        None
        if missing or None in stage_set
        else RankSet.of(stage for stage in stage_set if stage is not None)
    )


def sort_tracks(tracks: Sequence[Track]) -> tuple[Track, ...]:
    """Returns the tracks by stage, those without one first, and then by rank."""
    return tuple(
        sorted(tracks, key=lambda track: (-1 if track.stage is None else track.stage, track.first_rank))
    )


# One account for what a trace cannot tell apart: input gradient, weight gradient and recomputation run inside
# its backward steps. Only traces have `embedding`, `position` and `host`; only profiler traces have `kernel`
# (compute whose purpose is not known) and `copy`.
COMMON_ACCOUNTS = (
    "forward", "backward", "optimizer", "exposed tp", "exposed dp", "exposed ep", "exposed expert dp",
    "exposed pp", "exposed embedding", "exposed position", "exposed comm", "wait", "bubble", "host", "idle",
    "kernel", "exposed copy",
)  # fmt: skip
# Accounts that few simulated runs have: left out where they have no time.
RARE_ACCOUNTS = (
    "exposed dp_shard", "exposed dp_replicate", "exposed offload", "exposed cp_a2a", "exposed cp_p2p",
    "exposed ep_intra", "exposed ep_inter",
)  # fmt: skip
# Accounts that are left out where no run comes from a profiler.
PROFILE_ACCOUNTS = ("kernel", "exposed copy")
# The indices in COMMON_ACCOUNTS of what a rank computes.
COMPUTE = tuple(COMMON_ACCOUNTS.index(name) for name in ("forward", "backward", "optimizer", "kernel"))


def to_common_accounts(total_ns: Sequence[int], table: Sequence[int]) -> list[int]:
    """Returns ns by common account; the sum stays the same. table: `AccountNames.common_indices`."""
    sums = [0] * len(COMMON_ACCOUNTS)
    for index, ns in zip(table, total_ns, strict=True):
        sums[index] += ns
    return sums


def busy_ns(common_ns: Sequence[int]) -> int:
    """Returns the compute of ns by common account."""
    return sum(common_ns[account] for account in COMPUTE)


def mean_ns(sums: Sequence[int], count: int) -> list[int]:
    """Returns each sum over `count` in whole ns, so that the means add up to the mean of the total."""
    means: list[int] = []
    reached = distributed = 0
    for ns in sums:
        reached += ns
        means.append(reached // count - distributed)
        distributed = reached // count
    return means
