"""Ranks and stages that compute longer than others."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.measured.vocabulary import KERNEL, said_op
from simcore.ranks import RankSet
from simcore.records import Struct
from simcore.replay.parameters import Scales
from simcore.replay.stragglers import (
    LEAST,
    SLOW,
    OwnWork,
    SlowRank,
    balanced_beside_slow_ranks,
    compute_by_stage,
    differs_most,
    even_factors,
    longer_ranks,
    slow_ranks,
)
from simcore.replay.timed import Timed
from simcore.sources.measured import ACCOUNTS
from simcore.units import duration, plural
from simcore.words.rules import Sentence
from simcore.words.sentences.ranks import of_stage
from simcore.words.sentences.replays import LEAST_GAIN, Rerun, gaining, rerun

# Of so many slow ranks it is asked what the step would take without.
_RERUNS = 2


class Shorter(Struct, frozen=True):
    """A phase that a rank computes in less time than the median of its peers, ns."""

    phase: str
    ns: int
    peers_ns: int


class Longer(Sentence, frozen=True, kw_only=True):
    """That a rank computes longer than its peers.

    unit: what the run calls a rank. by_place: whether its peers are at its place in other pipelines, which
    have no stage.
    """

    unit: str
    found: SlowRank
    by_place: bool

    def begin(self, how: str) -> str:
        """`Rank 7 is slow: it computes 1.873 s, rank 6 (stage 3) 910.0 ms`."""
        rank, ns, stage, peers = self.found.rank, self.found.ns, self.found.stage, self.found.peers
        words = f"{self.unit.capitalize()} {rank} {how} {duration(ns)}, "
        if len(peers) == 1:
            return f"{words}{self.peer}{of_stage(stage)} {duration(self.found.peers_ns)}"
        whose = f"the other {self.unit}s{of_stage(stage)}"
        if self.by_place:
            whose = f"{self.unit}s {RankSet.of(peers).words()} at its place in other pipelines"
        return f"{words}the median of {whose} {duration(self.found.peers_ns)}"

    @property
    def peer(self) -> str:
        """`rank 6`, of several `the others'`."""
        return f"{self.unit} {self.found.peers[0]}" if len(self.found.peers) == 1 else "the others'"


class RankIsSlow(Longer, frozen=True, kw_only=True):
    """That it takes longer for the same work. shorter: what it computes in less time all the same; rerun: the
    step with the rank as fast as its peers. None of nothing.
    """

    rule = "slow-rank"

    shorter: Shorter | None
    rerun: Rerun | None

    @property
    def text(self) -> str:
        words, factor = self.begin("is slow: it computes"), ""
        if self.shorter is not None:
            mine, theirs = duration(self.shorter.ns), duration(self.shorter.peers_ns)
            words += f", though its {self.shorter.phase} is shorter ({mine}, {self.peer} {theirs})"
            factor = ", with one factor on all of it"
        if self.rerun is None:
            return f"{words}."
        peers = self.found.peers_words.replace("rank", self.unit)
        return f"{words}; as fast as {peers}{factor}, {self.rerun.words}."


class RankComputesLonger(Longer, frozen=True, kw_only=True):
    """That it may have more work: in which operation it differs most, its own and that of its peers."""

    rule = "longer-rank"

    operation: str
    own: OwnWork
    peers: OwnWork

    @property
    def text(self) -> str:
        mine, theirs = duration(self.own.ns), duration(self.peers.ns)
        if self.own.calls != self.peers.calls:
            mine += f" in {plural(self.own.calls, 'call')}"
            theirs += f" in {self.peers.calls}"
        differ = f"{said_op(self.operation, 40)} ({mine}, {self.peer} {theirs})"
        return f"{self.begin('computes longer:')}; they differ most in {differ}."


def ranks_compute_longer(results: Timed) -> Iterator[Longer]:
    """Speaks of ranks that compute much longer than the median of the other ranks of their stage: who costs
    the step something before who may have more work.
    """
    unit, slow, ranks = results.measured.unit, slow_ranks(results), results.measured.ranks
    for found in sorted(longer_ranks(results), key=lambda rank: (rank not in slow, -rank.ns)):
        by_place = found.stage is None and len(found.peers) + 1 < len(ranks)
        if found in slow:
            is_asked = slow.index(found) < _RERUNS
            yield RankIsSlow(
                unit=unit,
                found=found,
                by_place=by_place,
                shorter=_shorter(results, found),
                rerun=gaining(results, found.scales) if is_asked else None,
            )
        else:
            name, own, peers = differs_most(results, found)
            yield RankComputesLonger(
                unit=unit, found=found, by_place=by_place, operation=name, own=own, peers=peers
            )


def _shorter(results: Timed, found: SlowRank) -> Shorter | None:
    """What a slow rank computes in less time than the median of its peers; one factor on all of its compute
    makes that shorter still.

    Compute of no known phase may be of any: a phase is shorter where it is so with all of that.
    """
    accounts = {
        rank.number: account for rank, account in zip(results.measured.ranks, results.accounts, strict=True)
    }
    mine = accounts[found.rank]
    unknown = mine.ns(f"compute {KERNEL}")
    for name in ACCOUNTS:
        if not name.startswith("compute ") or name == f"compute {KERNEL}":
            continue
        others = sorted(accounts[rank].ns(name) for rank in found.peers)
        own, middle = mine.ns(name), others[len(others) // 2]
        most = own + unknown
        if most < middle / SLOW and middle - most > results.step_time_ns * LEAST:
            return Shorter(name.partition(" ")[2], own, middle)
    return None


class StageIsSlow(Sentence, frozen=True, kw_only=True):
    """That the fastest rank of a stage computes longer than the median of those of the others.

    others: how many stages these are. rerun: the step with balanced stages. once: where ranks are slow, what
    holds before and after that: `rank 7 is as fast as rank 6`; "" where none is.
    """

    rule = "slow-stage"

    stage: int
    ns: int
    others: int
    others_ns: int
    microbatches: int
    rerun: Rerun
    once: str

    @property
    def text(self) -> str:
        rest = f"that of the other stage {duration(self.others_ns)}"
        if self.others > 1:
            rest = f"those of the other stages {duration(self.others_ns)} (median)"
        words = f"Stage {self.stage} is slow: its fastest rank computes {duration(self.ns)}, {rest}"
        moved = "work moved until all stages compute alike"
        if self.once:
            times = f"from {duration(self.rerun.before_ns)} to {duration(self.rerun.after_ns)}"
            return f"{words}; once {self.once}, {moved} would take the step {times} ({self.rerun.change})."
        if self.rerun.gains(LEAST):
            return f"{words}; with {moved}, {self.rerun.words}."
        why = "with 1 micro-batch one stage computes after the other, so " if self.microbatches == 1 else ""
        gain = f"next to nothing ({self.rerun.change})" if self.rerun.gains(LEAST_GAIN) else "nothing"
        return f"{words}; {why}{moved} would gain {gain}."


def stage_is_slow(results: Timed) -> Iterator[StageIsSlow]:
    """Speaks of the stage whose ranks compute much longer than those of the other stages, by their fastest
    rank; not where there are slow ranks and balancing gains nothing to speak of once they are as their peers.
    """
    by_stage = compute_by_stage(results)
    least = {stage: min(ranks.values()) for stage, ranks in by_stage.items() if stage is not None}
    if len(least) < 2 or len(least) < len(by_stage):
        return
    slow = max(least, key=lambda stage: least[stage])
    others = sorted(ns for stage, ns in least.items() if stage != slow)
    middle = others[len(others) // 2]
    if least[slow] <= middle * SLOW or least[slow] - middle <= results.step_time_ns * LEAST:
        return
    beside = balanced_beside_slow_ranks(results)
    if beside is None:
        balanced = rerun(results, Scales(stages=even_factors(by_stage)))
    else:
        balanced = Rerun(beside.before_ns, beside.after_ns)
        if balanced.before_ns - balanced.after_ns < results.base.step_time_ns * LEAST:
            return
    yield StageIsSlow(
        stage=slow,
        ns=least[slow],
        others=len(others),
        others_ns=middle,
        microbatches=results.shape.microbatches,
        rerun=balanced,
        once="" if beside is None else beside.once,
    )
