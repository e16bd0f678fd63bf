"""The pairs of lanes of two runs: by the numbers of ranks, by their positions, or by stages."""

from __future__ import annotations

from collections.abc import Iterable

from simcore.records import NamedTuple
from simcore.trace.run import Run
from simcore.trace.track import Track

_LAYOUT_WORDS = {"tp": "tp", "dp": "dp", "pp": "pp", "microbatches": "micro-batches"}


class LanePair(NamedTuple):
    """A lane of A and one of B that have ranks in common."""

    stage: int | None
    """Their stage; None where none is known."""
    a: Track
    """The lane of A."""
    b: Track
    """The lane of B."""
    ranks: int
    """How many ranks they have in common."""
    rank: int
    """The lowest of these ranks, by its number in B. A lane of equal simulated ranks is paired with each of
    the measured ones, which have numbers of their own.
    """


class LayoutDifference(NamedTuple):
    """A degree of the layout that differs between two runs; None where one does not know it."""

    degree: str
    a: int | None
    b: int | None


def find_layout_differences(a: Run, b: Run) -> list[LayoutDifference]:
    """Returns the degrees of the layouts of two runs that differ."""
    figures = zip(a.shape.by_name.items(), b.shape.by_name.values(), strict=True)
    return [
        LayoutDifference(_LAYOUT_WORDS[name], a_figure, b_figure)
        for (name, a_figure), b_figure in figures
        if a_figure != b_figure
    ]


def has_rows(run: Run) -> bool:
    """Returns whether the ops of a run are of rows of a workload."""
    # Recorded runs have operations instead, and making their trace takes long.
    return run.recording is None and "row" in run.trace.columns


def has_numbers_alone(run: Run) -> bool:
    """Returns whether ranks are known by their numbers alone, as those of a network."""
    return run.recording is None and _is_stageless(run)


def pairs_by_number(a: Run, b: Run) -> bool:
    """Returns whether ranks of equal numbers are paired.

    They are where one run knows its ranks by their numbers alone, and where neither knows stages.
    """
    return has_numbers_alone(a) or has_numbers_alone(b) or (_is_stageless(a) and _is_stageless(b))


def pairs_by_position(a: Run, b: Run) -> bool:
    """Returns whether ranks of equal positions are paired: where the layouts are equal and all positions
    known.
    """
    measured = [side for side in (a, b) if side.recording is not None]
    return not find_layout_differences(a, b) and all(_find_positions(side) for side in measured)


def find_lane_pairs(a: Run, b: Run) -> list[LanePair]:
    """Returns the paired lanes, by stage and rank: of one number or position each, or the first of each
    stage.
    """
    if pairs_by_number(a, b):
        return _pair_by_number(a.tracks, b.tracks)
    if pairs_by_position(a, b):
        return _pair_by_position(a, b)
    if _is_stageless(a) or _is_stageless(b):
        # A run that knows no stages is paired as one with all of the other.
        return [_first_pair(None, a.tracks[0], b.tracks[0])]
    firsts: list[dict[int | None, Track]] = [{}, {}]
    for first, side in zip(firsts, (a, b), strict=True):
        for track in side.tracks:
            first.setdefault(track.stage, track)
    common_stages = [stage for stage in firsts[0] if stage in firsts[1] and stage is not None]
    return [_first_pair(stage, firsts[0][stage], firsts[1][stage]) for stage in common_stages]


def _first_pair(stage: int | None, a: Track, b: Track) -> LanePair:
    return LanePair(stage, a, b, 1, b.first_rank)


def _pair_by_number(a: Iterable[Track], b: Iterable[Track]) -> list[LanePair]:
    sides = [{rank: track for track in tracks for rank in track.ranks} for tracks in (a, b)]
    ranks_of: dict[tuple[Track, Track], list[int]] = {}
    for rank in sorted(sides[0].keys() & sides[1].keys()):
        ranks_of.setdefault((sides[0][rank], sides[1][rank]), []).append(rank)
    return [LanePair(None, *pair, len(ranks), ranks[0]) for pair, ranks in ranks_of.items()]


def _pair_by_position(a: Run, b: Run) -> list[LanePair]:
    ranks_of: dict[tuple[Track, Track], int] = {}
    for position in _find_positions(b if a.recording is None else a):
        of_a, of_b = a.shape.track_at(position), b.shape.track_at(position)
        if of_a is not None and of_b is not None:
            ranks_of[of_a, of_b] = ranks_of.get((of_a, of_b), 0) + 1
    return [
        LanePair(of_a.stage, of_a, of_b, ranks, (of_a if b.recording is None else of_b).first_rank)
        for (of_a, of_b), ranks in ranks_of.items()
    ]


def _find_positions(run: Run) -> list[tuple[int, int, int]]:
    """Returns (stage, dp, tp) of each measured rank; empty where that of one is not known."""
    positions = [track.position for track in run.tracks if track.position is not None]
    return positions if len(positions) == len(run.tracks) else []


def _is_stageless(run: Run) -> bool:
    """Returns whether a run knows the stage of no rank."""
    return all(track.stage is None for track in run.tracks)
