"""Ranks named by their figure: classes that have the same one are named together.

A class is split wherever an override comes near it, also where that changes nothing of the figure that is
named; counted and named are the ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from simcore.analysis.waiting import Waiting
from simcore.folding import RankClass
from simcore.ranks import RankSet
from simcore.records import Struct
from simcore.workload.model import GroupKind


def alike(figures: Sequence[int], figure: int) -> list[int]:
    """The numbers of the classes that have this figure."""
    return [number for number, one in enumerate(figures) if one == figure]


def ranks_of(classes: Sequence[RankClass], numbers: Collection[int]) -> RankSet:
    """The ranks of the classes with these numbers."""
    return RankSet.joined(block for number in numbers for block in classes[number].ranks.blocks)


def whole_stages(classes: Sequence[RankClass], numbers: Collection[int]) -> RankSet | None:
    """The stages that the classes with these numbers are, all ranks of each; None where some are missing."""
    stages = {classes[number].stage for number in numbers}
    missing = any(one.stage in stages and number not in numbers for number, one in enumerate(classes))
    return None if missing else RankSet.of(stages)


class LongestWait(Struct, frozen=True):
    """The ranks `early` wait `ns` each for the ranks `late` in collectives of groups of kind `kind`."""

    early: RankSet
    late: RankSet
    kind: GroupKind
    ns: int


def longest_wait(classes: Sequence[RankClass], waits: Sequence[Waiting]) -> LongestWait:
    """The longest of `waits` (the longest first, at least one), with all ranks that wait as long alike."""
    first = waits[0]
    same = [one for one in waits if (one.ns, one.kind) == (first.ns, first.kind)]

    def ranks(of: Callable[[Waiting], Collection[int]]) -> RankSet:
        return ranks_of(classes, {number for one in same for number in of(one)})

    return LongestWait(ranks(lambda one: (one.early,)), ranks(lambda one: one.all_late), first.kind, first.ns)
