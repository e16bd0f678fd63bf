"""The sentences on which ranks of a measured run wait for which others, and in which operation."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.measured.vocabulary import POINT_TO_POINT, describe_op
from simcore.ranks import RankSet
from simcore.records import Struct
from simcore.replay.late import LateArrival, RankWaiting
from simcore.replay.replayed_run import ReplayedRun
from simcore.replay.stragglers import LEAST
from simcore.replay.waits import late_waits_itself, wait_stretches
from simcore.units import duration
from simcore.words.rules import Sentence
from simcore.words.sentences.ranks import ranks_words, stage_suffix

_MOST = 2
# A wait is named together with the longest one of its kind from this share of it on.
_LEAST_OF_LONGEST = 0.1


class OwnWait(Struct, frozen=True):
    """The time that late ranks wait themselves, which is most of the wait for them."""

    ns: int
    """How long, of the longest wait for one of them."""
    late: RankSet
    """The late ranks."""
    awaited: RankSet
    """The ranks that they wait for."""
    stage: int | None
    """The stage of the awaited ranks; None where they are of several."""
    operation: str
    """The operation in which they wait."""


class WaitFor(Sentence, frozen=True, kw_only=True):
    """Ranks that wait for others, or for each other."""

    rule = "wait"

    operation: str
    """The operation in which they wait."""
    early: RankSet
    """The ranks that wait."""
    early_stage: int | None
    """Their stage; None where it is not known."""
    late: RankSet
    """The ranks that they wait for."""
    late_stage: int | None
    """The stage of the late ranks; None where it is not known."""
    ns: int
    """The longest of these waits."""
    own_wait: OwnWait | None
    """How long the late ranks wait themselves; None where that is little."""

    @property
    def text(self) -> str:
        wait = (
            f"{ranks_words(self.early)}{stage_suffix(self.early_stage)} "
            f"wait{'' if len(self.early) > 1 else 's'}"
        )
        other = f"{ranks_words(self.late).lower()}{stage_suffix(self.late_stage)}"
        if self.early == self.late:
            other = "each other"
        words = f"{wait} for {other} in {describe_op(self.operation, 40)}, up to {duration(self.ns)} in all"
        if self.own_wait is None:
            return f"{words}."
        own = self.own_wait
        verb = "themselves wait" if len(own.late) > 1 else "itself waits"
        in_what = f" in {describe_op(own.operation, 40)}" if own.operation != self.operation else ""
        for_whom = f"{ranks_words(own.awaited).lower()}{stage_suffix(own.stage)}{in_what}"
        return f"{words}; {duration(own.ns)} of it {ranks_words(own.late).lower()} {verb} for {for_whom}."


def find_waits(results: ReplayedRun) -> Iterator[WaitFor]:
    """Yields the longest waits by operation, stage that waits and stage waited for: receives, then
    collectives.
    """
    if not results.graph.together:
        return
    stretches = wait_stretches(results)
    stages = {rank.rank: rank.stage for rank in results.measured.ranks}
    pairs: dict[tuple[str, int | None, int | None], list[RankWaiting]] = {}
    for wait in results.waiting:
        pairs.setdefault((wait.name, stages[wait.early], stages[wait.late]), []).append(wait)

    def longest(waits: list[RankWaiting]) -> tuple[int, int, int]:
        return max((wait.ns, wait.early, wait.late) for wait in waits)

    most = sorted(pairs.items(), key=lambda pair: (-longest(pair[1])[0], pair[0][0], longest(pair[1])))
    receives = [pair for pair in most if pair[0][0] in POINT_TO_POINT]
    collectives = [pair for pair in most if pair[0][0] not in POINT_TO_POINT]
    for (name, early_stage, late_stage), waits in (*receives[:_MOST], *collectives[:_MOST]):
        ns = longest(waits)[0]
        if ns < results.step_time_ns * LEAST:
            continue
        # Short waits for other ranks would hide the rank that holds all of them up.
        waits = [wait for wait in waits if wait.ns >= ns * _LEAST_OF_LONGEST]
        early, late = RankSet.of(wait.early for wait in waits), RankSet.of(wait.late for wait in waits)
        yield WaitFor(
            operation=name,
            early=early,
            early_stage=early_stage,
            late=late,
            late_stage=late_stage,
            ns=ns,
            own_wait=_find_own_wait(results, stretches, waits) if stretches and early != late else None,
        )


def _find_own_wait(
    results: ReplayedRun, stretches: list[list[LateArrival]], waits: list[RankWaiting]
) -> OwnWait | None:
    """Returns the longest wait for ranks that wait most of that time themselves: they are not the cause."""
    ranks = results.measured.ranks
    index = {rank.rank: at for at, rank in enumerate(ranks)}
    # For each wait: the ranks that the late rank waits for itself, in the operation in which it waits most:
    # ns by rank.
    name, own_ns = "", 0
    awaited: set[int] = set()
    late: set[int] = set()
    for wait in sorted(waits, key=lambda wait: (-wait.ns, wait.early, wait.late)):
        itself = late_waits_itself(results, stretches, index[wait.early], index[wait.late], wait.name)
        by_name: dict[str, dict[int, int]] = {}
        for (rank, own_name), ns in itself.items():
            by_name.setdefault(own_name, {})[rank] = ns
        most = max(by_name, key=lambda own_name: (sum(by_name[own_name].values()), own_name), default="")
        of_ranks = by_name.get(name or most, {})
        if 2 * sum(of_ranks.values()) < wait.ns:
            continue
        if not name:
            name, own_ns = most, sum(of_ranks.values())
        late.add(wait.late)
        awaited |= {rank for rank, ns in of_ranks.items() if ns >= max(of_ranks.values()) * _LEAST_OF_LONGEST}
    if not name:
        return None
    (stage, *others) = {ranks[rank].stage for rank in awaited}
    return OwnWait(
        own_ns,
        RankSet.of(late),
        RankSet.of(ranks[rank].rank for rank in awaited),
        None if others else stage,
        name,
    )
