"""Jitter: the factor on each duration, hashed from the rank, group or sender that it belongs to.

Only runs that have it import this.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable

from simcore.folding import Folding
from simcore.model.hashed import OF_GROUP, OF_RANK, OF_SENDER, hashed_normals
from simcore.program import Program
from simcore.program.ops import COMPUTE, STREAM_OF_GROUP, TO_NEXT

# Cached numbers, 8 B each: those of 64 ranks with 100,000 ops.
_MOST_CACHED = 6_400_000


class Normals:
    """The hashed normals of a seed, each computed once: a hash takes 1.5 us, and members of a group have
    the same, as have points of a sweep.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._columns: dict[tuple[int, int], array[float]] = {}

    def column(self, purpose: int, subject: int, ops: Iterable[int], count: int) -> array[float]:
        """Returns the numbers of a subject by op, of which there are `count`; those of `ops` are computed."""
        column = self._columns.get((purpose, subject))
        if column is None:
            if sum(map(len, self._columns.values())) > _MOST_CACHED:
                self._columns.clear()
            column = self._columns[purpose, subject] = array("d")
        if len(column) < count:
            column.extend([math.nan] * (count - len(column)))
        # Only what is not a number differs from itself.
        missing_ops = [op for op in ops if column[op] != column[op]]
        normals = hashed_normals(self._seed, purpose, subject, missing_ops)
        for op, normal in zip(missing_ops, normals, strict=True):
            column[op] = normal
        return column


class Jitter:
    """The factors of a run whose ranks are classes of their own, those of a class computed once.

    A run and its what-ifs price the same ops many times.
    """

    def __init__(self, sigma: float, seed: int, normals: Normals | None = None) -> None:
        """normals: of the same seed; several runs may share them."""
        self.sigma = sigma
        self.seed = seed
        self._normals = normals or Normals(seed)
        self._cache: dict[int, array[float]] = {}
        # The ops of each stage by the stream that they are on, transfers as one.
        self._ops_by_lane: dict[int, dict[int, array[int]]] = {}

    def factors(self, class_id: int, program: Program, folding: Folding) -> array[float]:
        """Returns the factor on each op of a class. Program and folding are the same in all calls."""
        factors = self._cache.get(class_id)
        if factors is None:
            factors = self._cache[class_id] = self._compute_factors(class_id, program, folding)
        return factors

    def _compute_factors(self, class_id: int, program: Program, folding: Folding) -> array[float]:
        rank_class = folding.classes[class_id]
        rank = rank_class.ranks.first
        # Every rank is a class of its own here, so a group's lowest class has its lowest rank.
        who = {
            STREAM_OF_GROUP[kind]: (
                OF_GROUP, folding.classes[folding.group_classes[group].members[0]].ranks.first
            )
            for kind, group in rank_class.groups.items()
        } | {COMPUTE: (OF_RANK, rank), TO_NEXT: (OF_SENDER, rank)}  # fmt: skip
        sigma, count = self.sigma, len(program.stages[rank_class.stage].ops)
        factors = array("d", bytes(8 * count))
        for lane, ops in self._lanes(rank_class.stage, program).items():
            normals = self._normals.column(*who[lane], ops, count)
            for op in ops:
                factor = 1.0 + sigma * normals[op]
                factors[op] = factor if factor > 0.0 else 0.0
        return factors

    def _lanes(self, stage: int, program: Program) -> dict[int, array[int]]:
        lanes = self._ops_by_lane.get(stage)
        if lanes is None:
            lanes = self._ops_by_lane[stage] = {}
            for op, stream in enumerate(program.stages[stage].ops.stream):
                lanes.setdefault(min(stream, TO_NEXT), array("i")).append(op)
        return lanes
