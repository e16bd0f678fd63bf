"""The position of each rank of a run: its stage, its seat in the stage, and the groups that it is in."""

from __future__ import annotations

from collections.abc import Sequence

from simcore.measured.columns import RankTrace
from simcore.records import NamedTuple, Struct

# The group that ends every step: gradient norm and overflow check over tensor and pipeline ranks.
MODEL_PARALLEL = "model parallel"
GroupKey = tuple[str, int, int]


class Degrees(Struct, frozen=True):
    """Degrees of parallelism, None where they are not known. exp: the expert-parallel degree."""

    world: int | None = None
    tp: int | None = None
    dp: int | None = None
    pp: int | None = None
    exp: int | None = None

    def position(self, rank: int) -> tuple[int, int, int] | None:
        """Returns (tp, dp, stage) of a rank, order tp-dp-pp with tp fastest; None if a degree is not
        known.
        """
        if self.tp is None or self.dp is None or self.pp is None or rank >= self.tp * self.dp * self.pp:
            return None
        return rank % self.tp, rank // self.tp % self.dp, rank // (self.tp * self.dp)


class RankPosition(NamedTuple):
    """The position of a rank in the layout."""

    stage: int
    seat: int
    """Its index in the stage."""
    tp: int | None
    """None where the degrees are not known."""
    dp: int | None
    """None where the degrees are not known."""


class RankPositions(Struct, frozen=True):
    """positions[i] is that of the i-th rank, None where it cannot be known. stages: how many there are."""

    positions: tuple[RankPosition | None, ...]
    degrees: Degrees
    stages: int

    def neighbour(self, position: RankPosition, step: int) -> tuple[int, int]:
        """Returns (stage, seat) of the pipeline neighbour: with virtual stages the last sends to the
        first.
        """
        return (position.stage + step) % self.stages, position.seat

    def group(self, kind: str, position: RankPosition) -> tuple[GroupKey, int | None] | None:
        """Returns (key, number of members) of a rank's group of a trace's kind; None where it is not known.

        The number is None for groups over stages (`ep`, `pep`), which have the stages that call them.
        """
        stage, _, tp, dp = position
        if tp is None or dp is None or self.degrees.tp is None or self.degrees.dp is None:
            if kind in ("ep", "pep"):
                return (kind, position.seat, 0), None
            return None
        if kind == "tp":
            return (kind, stage, dp), self.degrees.tp
        if kind == "dp":
            return (kind, stage, tp), self.degrees.dp
        if kind in ("ep", "pep"):
            return (kind, tp, dp), None
        if kind == MODEL_PARALLEL:
            return (kind, dp, 0), self.degrees.tp * self.stages
        return self._expert_group(kind, position) if kind in ("exp", "exp_dp") else None

    def _expert_group(self, kind: str, position: RankPosition) -> tuple[GroupKey, int] | None:
        """Returns an expert group: `exp` consecutive data-parallel ranks, or ranks of the stage where exp >
        dp.
        """
        stage, seat, tp, dp = position
        degrees = self.degrees
        if degrees.exp is None or degrees.dp is None or degrees.tp is None or tp is None or dp is None:
            return None
        inside_dp = degrees.dp % degrees.exp == 0
        index, ranks, lane = (dp, degrees.dp, tp) if inside_dp else (seat, degrees.dp * degrees.tp, 0)
        if ranks % degrees.exp:
            return None
        groups = ranks // degrees.exp
        if kind == "exp":
            return (kind, stage, lane * groups + index // degrees.exp), degrees.exp
        return (kind, stage, lane * degrees.exp + index % degrees.exp), groups


def find_positions(ranks: Sequence[RankTrace], degrees: Degrees) -> RankPositions:
    """Returns the positions of these ranks: from the degrees that the names state, else from the stages
    alone.

    A rank whose own `stage_id` is not the one that the degrees give it has no position.
    """
    stated_positions = [degrees.position(rank.rank) for rank in ranks]
    if degrees.pp is not None and all(position is not None for position in stated_positions):
        tp = degrees.tp or 1
        positions = [
            RankPosition(position[2], position[1] * tp + position[0], position[0], position[1])
            if position is not None and rank.stage in (None, position[2])
            else None
            for rank, position in zip(ranks, stated_positions, strict=True)
        ]
        return RankPositions(tuple(positions), degrees, degrees.pp)
    return _by_stage(ranks, degrees)


def _by_stage(ranks: Sequence[RankTrace], degrees: Degrees) -> RankPositions:
    """Returns positions where the n-th ranks of all stages are one pipeline, if all stages have as many
    ranks.
    """
    stages: dict[int, list[int]] = {}
    for rank_index, rank in enumerate(ranks):
        if rank.stage is None:
            return RankPositions((None,) * len(ranks), degrees, 1)
        stages.setdefault(rank.stage, []).append(rank_index)
    sizes = {len(members) for members in stages.values()}
    if set(stages) != set(range(len(stages))) or len(sizes) != 1 or degrees.pp not in (None, len(stages)):
        return RankPositions((None,) * len(ranks), degrees, 1)
    # If the ids have a hole, other ranks of the stage may be missing.
    alone = sizes == {1} and [rank.rank for rank in ranks] == list(range(len(ranks)))
    if alone:
        degrees = Degrees(len(ranks), 1, 1, len(stages), degrees.exp)
    positions: list[RankPosition | None] = [None] * len(ranks)
    for stage, members in stages.items():
        for index, rank_index in enumerate(members):
            positions[rank_index] = RankPosition(stage, index, *((0, 0) if alone else (None, None)))
    return RankPositions(tuple(positions), degrees, len(stages))
