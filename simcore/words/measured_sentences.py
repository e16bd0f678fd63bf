"""The rules whose sentences are told of a measured run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.words.sentences.host import ranks_run_nothing
from simcore.words.sentences.late import ranks_come_last
from simcore.words.sentences.slow import ranks_compute_longer, stage_is_slow
from simcore.words.sentences.spent import most_time, slots_are_empty
from simcore.words.sentences.waits import ranks_wait

if TYPE_CHECKING:
    from simcore.replay.timed import Timed
    from simcore.words.rules import Sentence

# In the order in which they are told: causes, then what the time goes to. Who is late comes before who waits
# for it: a screen may have room for the first lines alone, and who waits for whom directly names ranks that
# wait themselves.
RULES = (
    ranks_compute_longer,
    ranks_come_last,
    ranks_run_nothing,
    slots_are_empty,
    stage_is_slow,
    most_time,
    ranks_wait,
)


def sentences_of(results: Timed) -> list[Sentence]:
    """Returns what there is to say of a run, no more than a dozen sentences; nothing of a step of 0 ns."""
    if not results.step_time_ns:
        return []
    return [sentence for rule in RULES for sentence in rule(results)]
