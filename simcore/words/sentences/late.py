"""The sentences on ranks that come last to collectives, and why."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.kernel_names import short_name
from simcore.replay.idle import call_words
from simcore.replay.replayed_run import ReplayedRun
from simcore.replay.stragglers import Straggler, find_stragglers, on_time_scales
from simcore.units import duration, duration_range, join_names
from simcore.words.rules import Sentence
from simcore.words.sentences.replays import ReplayedStep, find_gain

_MOST_STRAGGLERS = 2


class ComesLast(Sentence, frozen=True, kw_only=True):
    """A rank that comes last to most collectives, and why, where the trace shows it."""

    rule = "straggler"

    straggler: Straggler
    less_ns: int
    """How much shorter its compute and host gaps would be if it came on time."""
    rerun: ReplayedStep | None
    """The step then; None where that gains nothing."""

    @property
    def text(self) -> str:
        straggler = self.straggler
        after = duration_range(straggler.least_ns, straggler.most_ns)
        words = (
            f"Rank {straggler.rank} comes last to {straggler.last} of {straggler.of} collectives, "
            f"{after} after the "
        )
        words += "next-latest"
        why = []
        if straggler.compute_ns > 0 and straggler.operations:
            most = join_names([short_name(name, 40) for name in straggler.operations])
            why.append(f"computes {duration(straggler.compute_ns)} longer, the most in {most}")
        if straggler.host_ns > 0:
            gaps = f"has {duration(straggler.host_ns)} more in host gaps"
            if 0 < straggler.start_ns <= straggler.host_ns:
                gaps += f" ({duration(straggler.start_ns)} of it before its first operation)"
            why.append(gaps)
        them = "that" if straggler.last == 1 else "them"
        words += f"; before {them} it {', and '.join(why)} than the median of the others" if why else ""
        if straggler.gap is not None:
            words += f"; for {duration(straggler.call_ns)} its host {call_words(straggler.gap)}"
        if self.rerun is None:
            return f"{words}."
        peers = f"with the median of its peers' compute and host gaps ({duration(self.less_ns)} less)"
        return f"{words}. On time, {peers}, each by one factor, {self.rerun.words}."


def worst_stragglers(results: ReplayedRun) -> list[Straggler]:
    """Returns the stragglers that have a sentence."""
    return find_stragglers(results)[:_MOST_STRAGGLERS]


def find_late_ranks(results: ReplayedRun) -> Iterator[ComesLast]:
    """Yields sentences on the ranks that come last most often."""
    for straggler in worst_stragglers(results):
        scales, less_ns = on_time_scales(results, straggler.rank)
        yield ComesLast(straggler=straggler, less_ns=less_ns, rerun=find_gain(results, scales))
