"""The sentence on gaps in which ranks run nothing, and what their hosts did meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.kernel_names import short_name
from simcore.ranks import RankSet
from simcore.replay.idle import CALL, QUEUED, GapCause, call_words, find_gap_causes, gap_words, no_call_words
from simcore.replay.replayed_run import ReplayedRun
from simcore.units import duration, percent, plural
from simcore.words.rules import Sentence
from simcore.words.sentences.late import worst_stragglers

_MOST_CAUSES = 2


class RunsNothing(Sentence, frozen=True, kw_only=True):
    """The gaps with one cause in which ranks run nothing."""

    rule = "runs-nothing"

    unit: str
    """What the run calls a rank."""
    cause: GapCause
    """The gaps, by the number of the rank."""
    step_ns: int
    next_op: str | None
    """The operation after the gap where there is only one gap; None where none follows."""

    @property
    def text(self) -> str:
        gaps, first, ns = self.cause.gaps, self.cause.first, self.cause.most_ns
        is_plural, counts = len(gaps) > 1, [len(some) for some in gaps.values()]
        up_to = "up to " if is_plural else ""
        who = f"{self.unit.capitalize()}{'s' if is_plural else ''} {RankSet.of(gaps).words()}"
        words = f"{who} {'run' if is_plural else 'runs'} nothing for {up_to}{duration(ns)} "
        words += f"({percent(ns, self.step_ns)} % of the step)"
        if counts == [1]:
            before = "" if self.next_op is None else f" before {short_name(self.next_op, 40)}"
            return f"{words}{before}: {gap_words(first)}."
        words += f" in {'up to ' if len(set(counts)) > 1 else ''}{plural(max(counts), 'gap')}"
        words += f"{' each' if is_plural else ''}: "
        if first.cause == CALL:
            covered_ns = max(sum(gap.covered_ns for gap in some) for some in gaps.values())
            return f"{words}the host {call_words(first)} for {up_to}{duration(covered_ns)} of it."
        if first.cause == QUEUED:
            return f"{words}what comes next was queued already for most of each."
        if len({gap.thread for gap in self.cause.all_gaps()}) == 1:
            return f"{words}{no_call_words(first)} of one."
        return f"{words}no single call of the host thread that launches next covers a third of one."


def find_idle_ranks(results: ReplayedRun) -> Iterator[RunsNothing]:
    """Yields sentences on the causes for which ranks run nothing longest, except those named for
    a straggler.
    """
    ranks = results.measured.ranks
    straggler_gaps = {
        (rank, straggler.gap)
        for straggler in worst_stragglers(results)
        for rank, trace in enumerate(ranks)
        if straggler.gap is not None and trace.rank == straggler.rank
    }
    causes = [
        cause
        for cause in find_gap_causes(results.gaps, results.step_time_ns)
        if any((rank, gap) not in straggler_gaps for rank, gaps in cause.gaps.items() for gap in gaps)
    ]
    for cause in causes[:_MOST_CAUSES]:
        ops = ranks[next(iter(cause.gaps))].ops
        following = (op for op, start in enumerate(ops.start) if start == cause.first.end)
        op = next(following, None) if len(list(cause.all_gaps())) == 1 else None
        yield RunsNothing(
            unit=results.measured.unit,
            cause=GapCause({ranks[rank].rank: gaps for rank, gaps in cause.gaps.items()}),
            step_ns=results.step_time_ns,
            next_op=None if op is None else ops.name[op],
        )
