"""Jitter: the factor on each duration, hashed from the rank, group or sender that it belongs to.

Only runs that have it import this.
"""

from __future__ import annotations

from array import array

from simcore.folding import Folding
from simcore.model.hashed import OF_GROUP, OF_RANK, OF_SENDER, hashed_normal
from simcore.program import Program
from simcore.program.ops import COMPUTE, STREAM_OF_GROUP, TO_NEXT


class Jitter:
    """The factors of a run whose ranks are classes of their own, those of a class computed once.

    A hash takes 3 us: one run of 324,000 ops is priced for half of its time by it, and a table of what-ifs
    prices it many times.
    """

    def __init__(self, sigma: float, seed: int) -> None:
        self.sigma = sigma
        self.seed = seed
        self._cache: dict[int, array[float]] = {}

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
        } | {COMPUTE: (OF_RANK, rank)}  # fmt: skip
        of_sender = (OF_SENDER, rank)
        sigma, seed = self.sigma, self.seed
        return array(
            "d",
            (
                max(0.0, 1.0 + sigma * hashed_normal(seed, *(who[lane] if lane < TO_NEXT else of_sender), op))
                for op, lane in enumerate(program.stages[rank_class.stage].ops.stream)
            ),
        )
