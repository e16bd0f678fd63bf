"""Ranks that others wait for: who comes last to collectives, and who stands at the end of the waits."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.kernel_names import short_name
from simcore.replay.idle import call_words
from simcore.replay.stragglers import LEAST, Straggler, on_time, stragglers
from simcore.replay.timed import Timed
from simcore.replay.waits import wait_stretches, waited_in_the_end
from simcore.sources.measured import ACCOUNTS, BUBBLE, WAIT
from simcore.trace.run import sum_ns
from simcore.units import duration, duration_range, listed, percent, plural
from simcore.words.rules import Sentence
from simcore.words.traces.replays import Rerun, gaining

_MOST = 2
# The rank at the end of chains of waits is named where it has so many times the waits of the next one, and so
# many times those that are for it without a rank in between.
_FAR_AHEAD, _CHAINED = 2, 1.2


class ComesLast(Sentence, frozen=True, kw_only=True):
    """That a rank comes last to most collectives, and why, as far as the trace shows it.

    less_ns: what its compute and host gaps would be less on time; rerun: the step then, None where that gains
    nothing.
    """

    rule = "straggler"

    found: Straggler
    less_ns: int
    rerun: Rerun | None

    @property
    def text(self) -> str:
        found = self.found
        after = duration_range(found.least_ns, found.most_ns)
        words = f"Rank {found.rank} comes last to {found.last} of {found.of} collectives, {after} after the "
        words += "next-latest"
        why = []
        if found.compute_ns > 0 and found.operations:
            most = listed([short_name(name, 40) for name in found.operations])
            why.append(f"computes {duration(found.compute_ns)} longer, the most in {most}")
        if found.host_ns > 0:
            gaps = f"has {duration(found.host_ns)} more in host gaps"
            if 0 < found.start_ns <= found.host_ns:
                gaps += f" ({duration(found.start_ns)} of it before its first operation)"
            why.append(gaps)
        them = "that" if found.last == 1 else "them"
        words += f"; before {them} it {', and '.join(why)} than the median of the others" if why else ""
        if found.gap is not None:
            words += f"; for {duration(found.call_ns)} its host {call_words(found.gap)}"
        if self.rerun is None:
            return f"{words}."
        peers = f"with the median of its peers' compute and host gaps ({duration(self.less_ns)} less)"
        return f"{words}. On time, {peers}, each by one factor, {self.rerun.words}."


def told_stragglers(results: Timed) -> list[Straggler]:
    """Returns those that have a sentence."""
    return stragglers(results)[:_MOST]


def ranks_come_last(results: Timed) -> Iterator[ComesLast]:
    """Speaks of the ranks that come last most often."""
    for found in told_stragglers(results):
        scales, less_ns = on_time(results, found)
        yield ComesLast(found=found, less_ns=less_ns, rerun=gaining(results, scales))


class CausesWaits(Sentence, frozen=True, kw_only=True):
    """That one rank stands at the end of much of what all ranks wait, ns. accounts: those that have waits;
    are_all: whether these have no other time; next_ns: what the rank causes that causes most besides.
    """

    rule = "causes-waits"

    unit: str
    rank: int
    ns: int
    whole_ns: int
    ranks: int
    accounts: tuple[str, ...]
    are_all: bool
    next_ns: int

    @property
    def text(self) -> str:
        who = plural(self.ranks, self.unit)
        # One column alone sums to less: a user could not find the figure.
        lost = f"of {' and '.join(self.accounts)} that {who} have in sum"
        if not self.are_all:
            lost = f"that {who} wait in sum"
        return (
            f"{self.unit.capitalize()} {self.rank} causes {duration(self.ns)} "
            f"({percent(self.ns, self.whole_ns)} %) of the {duration(self.whole_ns)} {lost}, directly or "
            f"through others that wait for it; no other {self.unit} causes more than "
            f"{duration(self.next_ns)}."
        )


def a_rank_causes_waits(results: Timed) -> Iterator[CausesWaits]:
    """Speaks of the rank that all others wait for at the end of a chain, where no other comes near it and
    less of it is seen in who waits for whom: in between stand ranks that wait themselves.
    """
    if not results.graph.together:
        return
    waited = sorted(waited_in_the_end(wait_stretches(results)).items(), key=lambda pair: (-pair[1], pair[0]))
    if len(waited) < 2 or waited[0][1] < _FAR_AHEAD * waited[1][1]:
        return
    (rank, ns), whole = waited[0], sum(ns for _, ns in waited)
    number = results.measured.ranks[rank].number
    direct = sum(wait.ns for wait in results.waiting if wait.late == number)
    if ns < results.step_time_ns * LEAST or ns < _CHAINED * direct:
        return
    totals = sum_ns(results, results.tracks)
    yield CausesWaits(
        unit=results.measured.unit,
        rank=number,
        ns=ns,
        whole_ns=whole,
        ranks=len(results.measured.ranks),
        accounts=tuple(ACCOUNTS[account] for account in (WAIT, BUBBLE) if totals[account]),
        are_all=totals[WAIT] + totals[BUBBLE] == whole,
        next_ns=waited[1][1],
    )
