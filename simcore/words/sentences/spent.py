"""What the time of measured ranks goes to."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.measured.columns import PASSES
from simcore.ranks import RankSet
from simcore.records import Struct
from simcore.replay.replayed_run import ReplayedRun
from simcore.replay.stragglers import compute_by_stage, idle_at_first
from simcore.sources.measured import ACCOUNTS, BUBBLE, WAIT
from simcore.trace.run import mean_busy_ns, sum_ns
from simcore.units import duration, largest_keys, percent, plural
from simcore.words.rules import Sentence

# Empty slots are said where they are what is not computed as closely as this.
_SLOTS_WITHIN = 0.1
# What lies outside of the ranks' own steps is said from a twentieth of their time on.
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
_NOT_COMPUTE = [index for index, name in enumerate(ACCOUNTS) if not name.startswith("compute ")]


class AccountHolders(Struct, frozen=True):
    """Who has most of an account. ns: the one that has most; of_all: whether they are all ranks, or have all
    of it.
    """

    who: RankSet
    ns: int
    are_all: bool
    have_all: bool


class InitialIdle(Struct, frozen=True):
    """What a rank idles before its first operation, ns. outside_ns: what of it is before its own step;
    is_busy: whether it is at the step before meanwhile.
    """

    ns: int
    outside_ns: int
    is_busy: bool


class MostTime(Sentence, frozen=True, kw_only=True):
    """How much of the ranks' time is compute, and which account is the largest besides.

    with_messages: whether ranks wait for ends of messages as for members. most: who has most of it, None of
    one rank; begin: of what that one idles what is before its first operation, where it is worth a word.
    outside_ns: of idle time what lies outside of the ranks' own steps, 0 of little. knows_waits: whether what
    of it is waiting is told apart.
    """

    rule = "most-time"

    unit: str
    ranks: int
    whole_ns: int
    compute_ns: int
    account: str
    ns: int
    with_messages: bool
    most: AccountHolders | None
    begin: InitialIdle | None
    outside_ns: int
    knows_waits: bool

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

    def _format_most(self, most: AccountHolders) -> str:
        if most.are_all:
            return f"; all {self.unit}s have about as much, up to {duration(most.ns)}"
        how = "all of it" if most.have_all else "the most"
        if len(most.who) > 1:
            return f"; {self.unit}s {most.who.words()} have {how}, up to {duration(most.ns)}"
        return f"; {self.unit} {most.who.words()} has {how}, {duration(most.ns)}"


def find_most_time(results: ReplayedRun) -> Iterator[MostTime]:
    """Speaks of every run; not where empty slots tell of its bubble."""
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
    )


def _find_largest_account(totals: list[int]) -> int:
    """The largest account besides compute."""
    return max(_NOT_COMPUTE, key=lambda account_id: totals[account_id])


def _find_outside_steps(results: ReplayedRun) -> list[tuple[int, int]]:
    """Of each rank what lies before its own step and behind it while others are in theirs, ns: nobody knows
    what it did then. Nothing where no step of a profiler is shown, and of a replay, whose ranks begin as
    their operations let them.
    """
    ranks, recorded = results.measured.ranks, results.measured.recorded
    is_step = recorded is not None and recorded.step is not None
    if not is_step or results.scales is not None or results.measured.replayed or not results.graph.together:
        return [(0, 0)] * len(ranks)
    return [(rank.first_ns, results.step_time_ns - rank.last_ns) if rank.window else (0, 0) for rank in ranks]


class SlotsAreEmpty(Sentence, frozen=True, kw_only=True):
    """How many slots of a pipeline are empty whatever its ranks do. busy_ns: what the mean rank computes;
    bubble_ns, wait_ns: of all ranks, of their whole_ns.
    """

    rule = "empty-slots"

    microbatches: int
    stages: int
    busy_ns: int
    step_ns: int
    bubble_ns: int
    wait_ns: int
    whole_ns: int

    @property
    def text(self) -> str:
        slots, empty = self.microbatches + self.stages - 1, self.stages - 1
        # What is empty by design shows in the accounts under two names.
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
    """Speaks where empty slots are what is not computed: each stage runs each micro-batch once, and is busy
    or waits, or is done.
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
