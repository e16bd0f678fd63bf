"""Which lane of one run stands beside which of another: by numbers of ranks, by their places, by stages."""

from __future__ import annotations

from collections.abc import Iterable

from simcore.records import NamedTuple
from simcore.trace.run import Run
from simcore.trace.track import Track

_LAYOUT_WORDS = {"tp": "tp", "dp": "dp", "pp": "pp", "microbatches": "micro-batches"}


class LanePair(NamedTuple):
    """A lane of A and one of B with `ranks` ranks in common. stage: None where none is known.

    rank: the lowest of them, by its number in B. A lane of equal simulated ranks stands beside each of the
    measured ones, which have numbers of their own.
    """

    stage: int | None
    a: Track
    b: Track
    ranks: int
    rank: int


class Unlike(NamedTuple):
    """What of the layout differs, or is not known (None) of one."""

    what: str
    a: int | None
    b: int | None


def unlike_layouts(a: Run, b: Run) -> list[Unlike]:
    """Returns what of the layouts of two runs is not alike."""
    figures = zip(a.shape.by_name.items(), b.shape.by_name.values(), strict=True)
    return [Unlike(_LAYOUT_WORDS[name], here, there) for (name, here), there in figures if here != there]


def has_rows(run: Run) -> bool:
    """Returns whether what runs is of rows of a workload."""
    # What was recorded has operations, and its trace takes long to make.
    return run.recording is None and "row" in run.trace.columns


def numbers_alone(run: Run) -> bool:
    """Returns whether nothing but numbers tells its ranks, which are those of a network."""
    return run.recording is None and _stageless(run)


def are_numbered(a: Run, b: Run) -> bool:
    """Returns whether a rank stands beside the one of its number: where one run tells nothing else of them,
    and where neither knows stages.
    """
    return numbers_alone(a) or numbers_alone(b) or (_stageless(a) and _stageless(b))


def are_placed(a: Run, b: Run) -> bool:
    """Returns whether a rank stands beside the one of its place in the layout, which is one."""
    measured = [side for side in (a, b) if side.recording is not None]
    return not unlike_layouts(a, b) and all(_places(side) for side in measured)


def lane_pairs(a: Run, b: Run) -> list[LanePair]:
    """Returns the lanes in pairs, by stage and rank: of one number or place each, or of each stage the first
    one.
    """
    if are_numbered(a, b):
        return _numbered(a.tracks, b.tracks)
    if are_placed(a, b):
        return _by_place(a, b)
    if _stageless(a) or _stageless(b):
        # One that knows no stages stands beside all of the other.
        return [_first_pair(None, a.tracks[0], b.tracks[0])]
    firsts: list[dict[int | None, Track]] = [{}, {}]
    for first, side in zip(firsts, (a, b), strict=True):
        for track in side.tracks:
            first.setdefault(track.stage, track)
    known = [stage for stage in firsts[0] if stage in firsts[1] and stage is not None]
    return [_first_pair(stage, firsts[0][stage], firsts[1][stage]) for stage in known]


def _first_pair(stage: int | None, a: Track, b: Track) -> LanePair:
    return LanePair(stage, a, b, 1, b.first_rank)


def _numbered(a: Iterable[Track], b: Iterable[Track]) -> list[LanePair]:
    sides = [{rank: track for track in tracks for rank in track.ranks} for tracks in (a, b)]
    ranks_of: dict[tuple[Track, Track], list[int]] = {}
    for rank in sorted(sides[0].keys() & sides[1].keys()):
        ranks_of.setdefault((sides[0][rank], sides[1][rank]), []).append(rank)
    return [LanePair(None, *pair, len(ranks), ranks[0]) for pair, ranks in ranks_of.items()]


def _by_place(a: Run, b: Run) -> list[LanePair]:
    ranks_of: dict[tuple[Track, Track], int] = {}
    for place in _places(b if a.recording is None else a):
        of_a, of_b = a.shape.track_at(place), b.shape.track_at(place)
        if of_a is not None and of_b is not None:
            ranks_of[of_a, of_b] = ranks_of.get((of_a, of_b), 0) + 1
    return [
        LanePair(of_a.stage, of_a, of_b, ranks, (of_a if b.recording is None else of_b).first_rank)
        for (of_a, of_b), ranks in ranks_of.items()
    ]


def _places(run: Run) -> list[tuple[int, int, int]]:
    """(stage, dp, tp) of each measured rank; empty where that of one is not known."""
    known = [track.place for track in run.tracks if track.place is not None]
    return known if len(known) == len(run.tracks) else []


def _stageless(run: Run) -> bool:
    """Whether it knows the stage of no rank."""
    return all(track.stage is None for track in run.tracks)
