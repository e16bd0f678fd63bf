"""What keeps ranks from running anything: what their hosts did then."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.kernel_names import short_name
from simcore.ranks import RankSet
from simcore.replay.idle import CALL, QUEUED, Held, call_words, gap_words, held_ups, no_call_words
from simcore.replay.timed import Timed
from simcore.units import duration, percent, plural
from simcore.words.rules import Sentence
from simcore.words.sentences.late import told_stragglers

_MOST = 2


class RunsNothing(Sentence, frozen=True, kw_only=True):
    """That ranks run nothing in gaps with one cause. held: these gaps, by the number of the rank. before:
    what runs behind the gap where it is one alone, None where nothing does.
    """

    rule = "runs-nothing"

    unit: str
    held: Held
    step_ns: int
    before: str | None

    @property
    def text(self) -> str:
        gaps, first, ns = self.held.gaps, self.held.first, self.held.most_ns
        many, counts = len(gaps) > 1, [len(some) for some in gaps.values()]
        up_to = "up to " if many else ""
        who = f"{self.unit.capitalize()}{'s' if many else ''} {RankSet.of(gaps).words()}"
        words = f"{who} {'run' if many else 'runs'} nothing for {up_to}{duration(ns)} "
        words += f"({percent(ns, self.step_ns)} % of the step)"
        if counts == [1]:
            before = "" if self.before is None else f" before {short_name(self.before, 40)}"
            return f"{words}{before}: {gap_words(first)}."
        words += f" in {'up to ' if len(set(counts)) > 1 else ''}{plural(max(counts), 'gap')}"
        words += f"{' each' if many else ''}: "
        if first.cause == CALL:
            covered = max(sum(gap.covered_ns for gap in some) for some in gaps.values())
            return f"{words}the host {call_words(first)} for {up_to}{duration(covered)} of it."
        if first.cause == QUEUED:
            return f"{words}what comes next was queued already for most of each."
        if len({gap.thread for gap in self.held.of_all()}) == 1:
            return f"{words}{no_call_words(first)} of one."
        return f"{words}no single call of the host thread that launches next covers a third of one."


def ranks_run_nothing(results: Timed) -> Iterator[RunsNothing]:
    """Speaks of what keeps ranks from running anything for longest, as far as no straggler's sentence
    does.
    """
    ranks = results.measured.ranks
    said = {
        (rank, straggler.gap)
        for straggler in told_stragglers(results)
        for rank, trace in enumerate(ranks)
        if straggler.gap is not None and trace.number == straggler.rank
    }
    worth = [
        held
        for held in held_ups(results.gaps, results.step_time_ns)
        if any((rank, gap) not in said for rank, gaps in held.gaps.items() for gap in gaps)
    ]
    for held in worth[:_MOST]:
        ops = ranks[next(iter(held.gaps))].ops
        following = (op for op, start in enumerate(ops.start) if start == held.first.end)
        op = next(following, None) if len(list(held.of_all())) == 1 else None
        yield RunsNothing(
            unit=results.measured.unit,
            held=Held({ranks[rank].number: gaps for rank, gaps in held.gaps.items()}),
            step_ns=results.step_time_ns,
            before=None if op is None else ops.name[op],
        )
