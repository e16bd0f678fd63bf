"""Ranks that come last to collectives, and why."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.kernel_names import short_name
from simcore.replay.idle import call_words
from simcore.replay.stragglers import Straggler, on_time, stragglers
from simcore.replay.timed import Timed
from simcore.units import duration, duration_range, listed
from simcore.words.rules import Sentence
from simcore.words.sentences.replays import Rerun, gaining

_MOST = 2


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
