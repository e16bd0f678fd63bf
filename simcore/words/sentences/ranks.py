"""Ranks as sentences on traces name them."""

from __future__ import annotations

from simcore.ranks import RankSet


def ranks_words(ranks: RankSet) -> str:
    """`Rank 7`, `Ranks 0-3`."""
    return f"Rank{'s' if len(ranks) > 1 else ''} {ranks.words()}"


def stage_suffix(stage: int | None) -> str:
    """` (stage 3)` behind ranks of a known one."""
    return "" if stage is None else f" (stage {stage})"
