"""The sentences on how measured ranks spend their time."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.measured.columns import PASSES
from simcore.ranks import RankSet
from simcore.records import Struct
from simcore.replay.idle import GapSums, sum_gaps
from simcore.replay.replayed_run import ReplayedRun
from simcore.replay.stragglers import compute_by_stage, idle_at_first
from simcore.sources.measured import ACCOUNTS, BUBBLE, WAIT
from simcore.trace.run import mean_busy_ns, sum_ns
from simcore.units import duration, largest_keys, percent, plural
from simcore.words.rules import Sentence

# Empty slots are stated where they match the time without compute to within this share.
_SLOTS_WITHIN = 0.1
# Time outside of the ranks' own steps is stated from a twentieth of their time on.
_WORTH_OUTSIDE = 20
_MESSAGE_WAIT = "wait of messages"
_PLAIN_TEXTS = {
    "exposed copy": "copies of memory beside nothing else",
    "wait": "waiting for the last member of a collective",
    _MESSAGE_WAIT: "waiting for the last member of a collective, or the other end of a send or receive",
    "bubble": "the pipeline bubble: waiting for what another stage has not sent yet",
    "idle": "idle: host gaps, and the time before the first and after the last operation",
    "host": "the host's own operations",
}
_CUT_OFF = "idle: waiting that the file has cut off its communication"
_NOT_COMPUTE = [index for index, name in enumerate(ACCOUNTS) if not name.startswith("compute ")]


class AccountHolders(Struct, frozen=True):
    """The ranks that have most of an account."""

    who: RankSet
    ns: int
    """The time of the rank that has most."""
    are_all: bool
    """Whether they are all ranks."""
    have_all: bool
    """Whether they have all of the account."""


class InitialIdle(Struct, frozen=True):
    """The idle time of a rank before its first operation."""

    ns: int
    """All of it."""
    outside_ns: int
    """The part before its own step."""
    is_busy: bool
    """Whether it is still in the step before during that part."""


class MostTime(Sentence, frozen=True, kw_only=True):
    """The share of compute in the ranks' time, and the largest account besides."""

    rule = "most-time"

    unit: str
    """What the run calls a rank."""
    ranks: int
    """How many ranks there are."""
    whole_ns: int
    """The time of all ranks together."""
    compute_ns: int
    """Their compute."""
    account: str
    """The largest account besides compute."""
    ns: int
    """The time of that account."""
    with_messages: bool
    """Whether ranks wait for ends of messages, too, not only for members."""
    most: AccountHolders | None
    """The ranks that have most of it; None where there is one rank."""
    begin: InitialIdle | None
    """The idle time before the first operation of the rank that has most; None where it is short."""
    outside_ns: int
    """Idle time outside of the ranks' own steps; 0 where it is short."""
    knows_waits: bool
    """Whether waiting is told apart from communication."""
    gaps: GapSums | None = None
    """The gaps of the devices; None where the account is not idle, or the traces do not say when operations
    were launched.
    """
    is_cut_off: bool = False
    """Whether idle time is waiting that the file has cut off its communication."""

    @property
    def text(self) -> str:
        owner = f"{self.unit}s'" if self.ranks > 1 else f"{self.unit}'s"
        compute, share = percent(self.compute_ns, self.whole_ns), f"{percent(self.ns, self.whole_ns)} %"
        if self.compute_ns and not self.ns:
            return f"All of the {owner} time, {compute} %, is compute."
        if self.ns < self.compute_ns:
            start = f"Compute is {compute} % of the {owner} time."
            if share == f"{percent(0, self.whole_ns)} %":
                return start
            start += f" The largest other part, {share}, is"
        elif 2 * self.ns > self.whole_ns:
            start = f"Most of the {owner} time, {share}, is"
        else:
            start = f"The largest part of the {owner} time, {share}, is"
        what = _MESSAGE_WAIT if self.account == "wait" and self.with_messages else self.account
        words = _PLAIN_TEXTS.get(what) or f"{what.partition(' ')[2]} communication"
        words = _CUT_OFF if self.is_cut_off else words
        if self.gaps is not None:
            words = self._format_gaps(self.gaps)
        words += "" if self.most is None else self._format_most(self.most)
        if self.begin is not None:
            words += f", {duration(self.begin.ns)} of it before its first operation"
            if 10 * self.begin.outside_ns >= self.begin.ns:
                when_text = (
                    "while it is at the step before" if self.begin.is_busy else "before its step begins"
                )
                words += f", {duration(self.begin.outside_ns)} of that {when_text}"
        if self.outside_ns:
            outside = percent(self.outside_ns, self.whole_ns)
            words += f"; {outside} % of the time lies outside of the {owner} own steps"
        if not self.knows_waits:
            words += "; how much of it is waiting is not known"
        return f"{start} {words}."

    def _format_gaps(self, gaps: GapSums) -> str:
        """Returns why the devices are idle."""
        parts = [
            f"{why} in {plural(count, 'gap')} ({duration(ns)})"
            for count, ns, why in (
                (gaps.late, gaps.late_ns, "the host is late"),
                (gaps.queued, gaps.queued_ns, "the next kernel is queued"),
            )
            if count
        ]
        rest_ns = self.ns - gaps.late_ns - gaps.queued_ns
        parts += [f"{duration(rest_ns)} before the first and after the last operation"] if rest_ns > 0 else []
        return f"idle: {', '.join(parts)}"

    def _format_most(self, most: AccountHolders) -> str:
        if most.are_all:
            return f"; all {self.unit}s have about as much, up to {duration(most.ns)}"
        how = "all of it" if most.have_all else "the most"
        if len(most.who) > 1:
            return f"; {self.unit}s {most.who.words()} have {how}, up to {duration(most.ns)}"
        return f"; {self.unit} {most.who.words()} has {how}, {duration(most.ns)}"


def find_most_time(results: ReplayedRun) -> Iterator[MostTime]:
    """Yields a sentence on every run, except where empty slots explain its bubble."""
    accounts, ranks, totals = results.accounts, results.measured.ranks, sum_ns(results, results.tracks)
    account_id = _find_largest_account(totals)
    if account_id == BUBBLE and any(find_empty_slots(results)):
        return
    outside_steps = _find_outside_steps(results)
    ranks_with_most = largest_keys(
        {rank: account.total_ns[account_id] for rank, account in enumerate(accounts)}
    )
    most = begin = None
    if len(accounts) > 1 and ranks_with_most:
        first = ranks_with_most[0]
        ns = accounts[first].total_ns[account_id]
        most = AccountHolders(
            RankSet.of(ranks[rank].rank for rank in ranks_with_most),
            ns,
            1 < len(ranks_with_most) == len(accounts),
            sum(accounts[rank].total_ns[account_id] for rank in ranks_with_most) == totals[account_id],
        )
        before_ns = idle_at_first(results, first)
        if len(ranks_with_most) == 1 and ACCOUNTS[account_id] == "idle" and before_ns * 10 >= ns:
            begin = InitialIdle(before_ns, outside_steps[first][0], bool(ranks[first].ahead_ns))
    outside_ns = sum(map(sum, outside_steps)) if ACCOUNTS[account_id] == "idle" else 0
    is_exposed = ACCOUNTS[account_id].startswith("exposed ")
    yield MostTime(
        unit=results.measured.unit,
        ranks=len(accounts),
        whole_ns=sum(totals),
        compute_ns=sum(totals) - sum(totals[account_id] for account_id in _NOT_COMPUTE),
        account=ACCOUNTS[account_id],
        ns=totals[account_id],
        with_messages=any(meeting.is_message for meeting in results.rendezvous.matches.meetings),
        most=most,
        begin=begin,
        outside_ns=outside_ns if outside_ns * _WORTH_OUTSIDE >= sum(totals) else 0,
        knows_waits=not (is_exposed and results.rendezvous.matches.unmatched),
        gaps=_find_gaps(results, totals[account_id]) if ACCOUNTS[account_id] == "idle" else None,
        is_cut_off=ACCOUNTS[account_id] == "idle" and results.has_cut_waits,
    )


def _find_largest_account(totals: list[int]) -> int:
    """Returns the index of the largest account besides compute."""
    return max(_NOT_COMPUTE, key=lambda account_id: totals[account_id])


def _find_outside_steps(results: ReplayedRun) -> list[tuple[int, int]]:
    """Returns for each rank the time before and after its own step while others are in theirs, ns.

    What a rank did then is not known. It is 0 where no step of a profiler is shown, and for a replay, whose
    ranks start as their operations let them.
    """
    ranks, recorded = results.measured.ranks, results.measured.recorded
    is_step = recorded is not None and recorded.step is not None
    if not is_step or not _is_as_recorded(results) or not results.graph.together:
        return [(0, 0)] * len(ranks)
    return [(rank.first_ns, results.step_time_ns - rank.last_ns) if rank.window else (0, 0) for rank in ranks]


def _find_gaps(results: ReplayedRun, idle_ns: int) -> GapSums | None:
    """Returns the gaps of the devices, which are a part of their idle time; None where they are not known."""
    gaps = sum_gaps(results.measured.ranks) if _is_as_recorded(results) else None
    return gaps if gaps is not None and gaps.queued_ns + gaps.late_ns <= idle_ns else None


def _is_as_recorded(results: ReplayedRun) -> bool:
    """Returns whether the times are those of the files."""
    return results.scales is None and not results.measured.replayed


class SlotsAreEmpty(Sentence, frozen=True, kw_only=True):
    """The slots of a pipeline that are empty whatever its ranks do."""

    rule = "empty-slots"

    microbatches: int
    stages: int
    busy_ns: int
    """The compute of the mean rank."""
    step_ns: int
    bubble_ns: int
    """The bubble of all ranks."""
    wait_ns: int
    """The waiting of all ranks."""
    whole_ns: int
    """The time of all ranks."""

    @property
    def text(self) -> str:
        slots, empty = self.microbatches + self.stages - 1, self.stages - 1
        # The accounts have slots that are empty by design under two names.
        return (
            f"With {plural(self.microbatches, 'micro-batch')} on {self.stages} equal stages every stage "
            f"would have {empty} of {slots} slots empty, {percent(empty, slots)} % of its time. Here the "
            f"ranks compute for {percent(self.busy_ns, self.step_ns)} %; "
            f"{percent(self.bubble_ns, self.whole_ns)} % are bubble, "
            f"{percent(self.wait_ns, self.whole_ns)} % waiting for the last member of a collective. More "
            "micro-batches in a step would leave fewer of them empty; a recorded step does not tell how much "
            "that brings."
        )


def find_empty_slots(results: ReplayedRun) -> Iterator[SlotsAreEmpty]:
    """Yields a sentence where empty slots match the time without compute.

    Each stage then runs each micro-batch once, and computes, waits or has finished.
    """
    batches, stages = results.shape.microbatches, len(compute_by_stage(results))
    ranks = results.measured.ranks
    if not batches or stages < 2 or results.measured.degrees.pp not in (None, stages):
        return
    if any(sum(PASSES[rank.ops.name[op]] == "forward" for op in rank.passes) != batches for rank in ranks):
        return
    empty = (stages - 1) / (batches + stages - 1)
    busy_ns = mean_busy_ns(results)
    if abs(1 - busy_ns / results.step_time_ns - empty) > _SLOTS_WITHIN * empty:
        return
    totals = sum_ns(results, results.tracks)
    yield SlotsAreEmpty(
        microbatches=batches,
        stages=stages,
        busy_ns=busy_ns,
        step_ns=results.step_time_ns,
        bubble_ns=totals[BUBBLE],
        wait_ns=totals[WAIT],
        whole_ns=sum(totals),
    )
