"""The sentences on ranks and stages that compute longer than others."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.measured.vocabulary import KERNEL, describe_op
from simcore.ranks import RankSet
from simcore.records import Struct
from simcore.replay.parameters import Scales
from simcore.replay.replayed_run import ReplayedRun
from simcore.replay.stragglers import (
    LEAST,
    SLOW,
    OperationCompute,
    SlowRank,
    compute_by_stage,
    differs_most,
    even_factors,
    find_balance_gain,
    find_slow_ranks,
    longer_ranks,
)
from simcore.sources.measured import ACCOUNTS
from simcore.units import duration, plural
from simcore.words.rules import Sentence
from simcore.words.sentences.ranks import stage_suffix
from simcore.words.sentences.replays import LEAST_GAIN, ReplayedStep, find_gain, replay_with

# The most slow ranks for which the step is replayed without them.
_RERUNS = 2


class ShorterPhase(Struct, frozen=True):
    """A phase that a rank computes in less time than the median of its peers."""

    phase: str
    ns: int
    """The time of the rank."""
    peers_ns: int
    """The median of its peers."""


class SlowRankSentence(Sentence, frozen=True, kw_only=True):
    """A rank that computes longer than its peers."""

    unit: str
    """What the run calls a rank."""
    slow_rank: SlowRank
    is_by_position: bool
    """Whether its peers have its position in other pipelines, which have no stage."""

    def begin_sentence(self, verb: str) -> str:
        """Returns `Rank 7 is slow: it computes 1.873 s, rank 6 (stage 3) 910.0 ms`."""
        rank, ns, stage, peers = (
            self.slow_rank.rank,
            self.slow_rank.ns,
            self.slow_rank.stage,
            self.slow_rank.peers,
        )
        words = f"{self.unit.capitalize()} {rank} {verb} {duration(ns)}, "
        if len(peers) == 1:
            return f"{words}{self.peer_text}{stage_suffix(stage)} {duration(self.slow_rank.peers_ns)}"
        peers_text = f"the other {self.unit}s{stage_suffix(stage)}"
        if self.is_by_position:
            peers_text = f"{self.unit}s {RankSet.of(peers).words()} at its place in other pipelines"
        return f"{words}the median of {peers_text} {duration(self.slow_rank.peers_ns)}"

    @property
    def peer_text(self) -> str:
        """The peers in words: `rank 6`, for several `the others'`."""
        return f"{self.unit} {self.slow_rank.peers[0]}" if len(self.slow_rank.peers) == 1 else "the others'"


class RankIsSlow(SlowRankSentence, frozen=True, kw_only=True):
    """A rank takes longer for the same work."""

    rule = "slow-rank"

    shorter: ShorterPhase | None
    """A phase that it computes in less time all the same; None without one."""
    rerun: ReplayedStep | None
    """The step with the rank as fast as its peers; None where that gains nothing."""

    @property
    def text(self) -> str:
        words, factor = self.begin_sentence("is slow: it computes"), ""
        if self.shorter is not None:
            own_text, peers_text = duration(self.shorter.ns), duration(self.shorter.peers_ns)
            words += (
                f", though its {self.shorter.phase} is shorter ({own_text}, {self.peer_text} {peers_text})"
            )
            factor = ", with one factor on all of it"
        if self.rerun is None:
            return f"{words}."
        peers = self.slow_rank.peers_words.replace("rank", self.unit)
        return f"{words}; as fast as {peers}{factor}, {self.rerun.words}."


class RankComputesLonger(SlowRankSentence, frozen=True, kw_only=True):
    """A rank computes longer and may have more work."""

    rule = "longer-rank"

    operation: str
    """The operation in which it differs most."""
    own_work: OperationCompute
    """Its own compute in the operation."""
    peers_work: OperationCompute
    """The compute of its peers in the operation."""

    @property
    def text(self) -> str:
        own_text, peers_text = duration(self.own_work.ns), duration(self.peers_work.ns)
        if self.own_work.calls != self.peers_work.calls:
            own_text += f" in {plural(self.own_work.calls, 'call')}"
            peers_text += f" in {self.peers_work.calls}"
        differ = f"{describe_op(self.operation, 40)} ({own_text}, {self.peer_text} {peers_text})"
        return f"{self.begin_sentence('computes longer:')}; they differ most in {differ}."


def speak_of_slow_ranks(results: ReplayedRun) -> Iterator[SlowRankSentence]:
    """Yields sentences on ranks that compute much longer than the median of their peers.

    Ranks that cost the step something come before those that may have more work.
    """
    unit, slow, ranks = results.measured.unit, find_slow_ranks(results), results.measured.ranks
    for slow_rank in sorted(longer_ranks(results), key=lambda rank: (rank not in slow, -rank.ns)):
        is_by_position = slow_rank.stage is None and len(slow_rank.peers) + 1 < len(ranks)
        if slow_rank in slow:
            needs_rerun = slow.index(slow_rank) < _RERUNS
            yield RankIsSlow(
                unit=unit,
                slow_rank=slow_rank,
                is_by_position=is_by_position,
                shorter=_find_shorter(results, slow_rank),
                rerun=find_gain(results, slow_rank.scales) if needs_rerun else None,
            )
        else:
            name, own_work, peers = differs_most(results, slow_rank)
            yield RankComputesLonger(
                unit=unit,
                slow_rank=slow_rank,
                is_by_position=is_by_position,
                operation=name,
                own_work=own_work,
                peers_work=peers,
            )


def _find_shorter(results: ReplayedRun, slow_rank: SlowRank) -> ShorterPhase | None:
    """Returns the phase that a slow rank computes in less time than the median of its peers; None without
    one.

    One factor on all of its compute would shorten that phase, too. Compute without a known phase may be of
    any: a phase is shorter only where it is so with all of that compute.
    """
    accounts = {
        rank.rank: account for rank, account in zip(results.measured.ranks, results.accounts, strict=True)
    }
    own_accounts = accounts[slow_rank.rank]
    unknown = own_accounts.ns(f"compute {KERNEL}")
    for name in ACCOUNTS:
        if not name.startswith("compute ") or name == f"compute {KERNEL}":
            continue
        others = sorted(accounts[rank].ns(name) for rank in slow_rank.peers)
        own_ns, middle = own_accounts.ns(name), others[len(others) // 2]
        most = own_ns + unknown
        if most < middle / SLOW and middle - most > results.step_time_ns * LEAST:
            return ShorterPhase(name.partition(" ")[2], own_ns, middle)
    return None


class StageIsSlow(Sentence, frozen=True, kw_only=True):
    """The fastest rank of a stage computes longer than the median of the fastest ranks of other stages."""

    rule = "slow-stage"

    stage: int
    """The slow stage."""
    ns: int
    """The compute of its fastest rank."""
    others: int
    """How many other stages there are."""
    others_ns: int
    """The median of the other stages."""
    microbatches: int
    """How many micro-batches the step has."""
    rerun: ReplayedStep
    """The step with balanced stages."""
    condition: str
    """What holds before and after the balancing where ranks are slow: `rank 7 is as fast as rank
    6`; else "".
    """

    @property
    def text(self) -> str:
        others_text = f"that of the other stage {duration(self.others_ns)}"
        if self.others > 1:
            others_text = f"those of the other stages {duration(self.others_ns)} (median)"
        words = f"Stage {self.stage} is slow: its fastest rank computes {duration(self.ns)}, {others_text}"
        balance_text = "work moved until all stages compute alike"
        if self.condition:
            times = f"from {duration(self.rerun.before_ns)} to {duration(self.rerun.after_ns)}"
            return (
                f"{words}; once {self.condition}, {balance_text} would take the step {times} "
                f"({self.rerun.change_text})."
            )
        if self.rerun.is_gain(LEAST):
            return f"{words}; with {balance_text}, {self.rerun.words}."
        why = "with 1 micro-batch one stage computes after the other, so " if self.microbatches == 1 else ""
        gain = f"next to nothing ({self.rerun.change_text})" if self.rerun.is_gain(LEAST_GAIN) else "nothing"
        return f"{words}; {why}{balance_text} would gain {gain}."


def find_slow_stage(results: ReplayedRun) -> Iterator[StageIsSlow]:
    """Yields a sentence on the stage whose fastest rank computes much longer than those of other stages.

    Silent where ranks are slow and balancing gains little once these are as fast as their peers.
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
    balance_gain = find_balance_gain(results)
    if balance_gain is None:
        balanced = replay_with(results, Scales(stages=even_factors(by_stage)))
    else:
        balanced = ReplayedStep(balance_gain.before_ns, balance_gain.after_ns)
        if balanced.before_ns - balanced.after_ns < results.base.step_time_ns * LEAST:
            return
    yield StageIsSlow(
        stage=slow,
        ns=least[slow],
        others=len(others),
        others_ns=middle,
        microbatches=results.shape.microbatches,
        rerun=balanced,
        condition="" if balance_gain is None else balance_gain.once,
    )
