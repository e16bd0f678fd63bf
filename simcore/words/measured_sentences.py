"""The rules whose sentences describe a measured run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.words.sentences.host import find_idle_ranks
from simcore.words.sentences.late import find_late_ranks
from simcore.words.sentences.products import find_slow_products
from simcore.words.sentences.slow import find_slow_stage, speak_of_slow_ranks
from simcore.words.sentences.spent import find_empty_slots, find_most_time
from simcore.words.sentences.waits import find_waits

if TYPE_CHECKING:
    from simcore.replay.replayed_run import ReplayedRun
    from simcore.words.rules import Sentence

# In the order of their sentences: causes, then what the time is spent on. Late ranks come before those that
# wait for them: a screen may have room for the first lines only, and the ranks that others wait for directly
# may wait themselves.
RULES = (
    speak_of_slow_ranks,
    find_late_ranks,
    find_idle_ranks,
    find_empty_slots,
    find_slow_stage,
    find_slow_products,
    find_most_time,
    find_waits,
)


def find_sentences(results: ReplayedRun) -> list[Sentence]:
    """Returns the sentences on a run, a dozen at most; none for a step of 0 ns."""
    if not results.step_time_ns:
        return []
    return [sentence for rule in RULES for sentence in rule(results)]
