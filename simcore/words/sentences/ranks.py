"""The words by which sentences on traces name ranks."""

from __future__ import annotations

from simcore.ranks import RankSet


def ranks_words(ranks: RankSet) -> str:
    """Returns `Rank 7`, `Ranks 0-3`."""
    return f"Rank{'s' if len(ranks) > 1 else ''} {ranks.words()}"


def stage_suffix(stage: int | None) -> str:
    """Returns ` (stage 3)`, behind ranks of a known stage; else ""."""
    return "" if stage is None else f" (stage {stage})"
