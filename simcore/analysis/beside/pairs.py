"""Two runs of which at least one was measured: which lane is which, and what differs in the same words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from simcore.analysis.beside.passes import MatchedPass, matched_passes
from simcore.analysis.beside.side import Seat, Side
from simcore.analysis.beside.words import ALIKE, mean_ns
from simcore.analysis.compare.paths import Change
from simcore.diagnostics import UsageError

_LAYOUT_WORDS = {"tp": "tp", "dp": "dp", "pp": "pp", "microbatches": "micro-batches"}


class LanePair(NamedTuple):
    """A lane of A and one of B with `ranks` ranks in common. stage: None where none is known."""

    stage: int | None
    a: Seat
    b: Seat
    ranks: int


class StagePair(NamedTuple):
    """A stage of both runs (None: all ranks). accounts: every one of ALIKE, the mean of its ranks, ns: they
    sum to the two steps. passes: those of its first lanes that both have.
    """

    stage: int | None
    accounts: list[Change]
    passes: list[MatchedPass]

    def pass_ns(self, direction: str) -> Change | None:
        """What a pass takes, the mean of those that both have; None where there is none."""
        alike = [one for one in self.passes if one.a.direction == direction]
        if not alike:
            return None
        sums = (sum(one.a.ns for one in alike), sum(one.b.ns for one in alike))
        return Change(direction, *(ns // len(alike) for ns in sums))


class KindChange(NamedTuple):
    """What a kind of time (of ALIKE) takes on the mean rank of a stage, in A and in B."""

    stage: int | None
    change: Change


@dataclass(frozen=True)
class Beside:
    """Run B against run A; differences are B - A.

    Raises `UsageError` where nothing of the two can be paired.
    """

    a: Side
    b: Side

    def __post_init__(self) -> None:
        if not self.pairs:
            raise UsageError(
                "compare: found no rank or stage that both runs have; expected traces that name their "
                "stages (stage_id, or degrees in their names)"
            )

    @property
    def difference_ns(self) -> int:
        """How much longer step B is."""
        return self.b.step_time_ns - self.a.step_time_ns

    @cached_property
    def unlike(self) -> list[tuple[str, int | None, int | None]]:
        """What of the layout differs, or is not known (None) of one: its name, of A and of B."""
        return [
            (words, getattr(self.a.layout, name), getattr(self.b.layout, name))
            for name, words in _LAYOUT_WORDS.items()
            if getattr(self.a.layout, name) != getattr(self.b.layout, name)
        ]

    @property
    def by_rank(self) -> bool:
        """Whether lanes are paired rank by rank; else by their stage alone."""
        return not self.unlike and all(side.places for side in self._measured)

    @property
    def _measured(self) -> list[Side]:
        return [side for side in (self.a, self.b) if side.kind != "simulated"]

    @cached_property
    def pairs(self) -> list[LanePair]:
        """The lanes in pairs, by stage and rank: of one place each, or of each stage the first one."""
        if self.by_rank:
            return self._by_place()
        firsts: list[dict[int | None, Seat]] = [{}, {}]
        for first, side in zip(firsts, (self.a, self.b), strict=True):
            for seat in side.seats:
                first.setdefault(seat.stage, seat)
        common = [stage for stage in firsts[0] if stage in firsts[1]]
        known = [stage for stage in common if stage is not None]
        return [LanePair(stage, firsts[0][stage], firsts[1][stage], 1) for stage in known]

    def _by_place(self) -> list[LanePair]:
        found: dict[tuple[Seat, Seat], int] = {}
        for place, _ in self._measured[0].places:
            a, b = self.a.seat_at(place), self.b.seat_at(place)
            if a is not None and b is not None:
                found[a, b] = found.get((a, b), 0) + 1
        return [LanePair(a.stage, a, b, ranks) for (a, b), ranks in found.items()]

    @cached_property
    def stages(self) -> list[StagePair]:
        """Each stage that both have, ascending."""
        numbers = dict.fromkeys(pair.stage for pair in self.pairs)
        return [self._stage(stage) for stage in numbers]

    @cached_property
    def whole(self) -> StagePair:
        """All ranks of the stages that both have, as one."""
        return self._stage(None)

    def _stage(self, stage: int | None) -> StagePair:
        means = []
        wanted = {pair.stage for pair in self.pairs} if stage is None else {stage}
        for side in (self.a, self.b):
            sums, ranks = [0] * len(ALIKE), 0
            for seat in side.seats:
                if seat.stage in wanted:
                    ranks += seat.ranks
                    sums = [one + seat.ranks * ns for one, ns in zip(sums, side.total_ns(seat), strict=True)]
            means.append(mean_ns(sums, ranks))
        accounts = [Change(name, *ns) for name, *ns in zip(ALIKE, *means, strict=True)]
        first = next((pair for pair in self.pairs if pair.stage == stage), None)
        return StagePair(stage, accounts, [] if first is None else self.passes(first))

    def passes(self, pair: LanePair) -> list[MatchedPass]:
        """The passes that both lanes of a pair have."""
        return matched_passes(self.a.passes(pair.a), self.b.passes(pair.b))

    @cached_property
    def movers(self) -> list[KindChange]:
        """What kinds of time change most, stage by stage, the largest difference first; equal ones are not
        there.
        """
        found = [
            KindChange(stage.stage, change) for stage in self.stages for change in stage.accounts if change.ns
        ]
        return sorted(found, key=lambda one: (-abs(one.change.ns), one.stage or 0, one.change.name))

    @property
    def unchanged(self) -> list[str]:
        """The kinds of time that both have and that are equal on every stage."""
        differ = {one.change.name for one in self.movers}
        return [one.name for one in self.whole.accounts if one.name not in differ and one.a_ns]
