"""The rules whose sentences are told of execution traces that have run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.words.sentences.links import busiest_link
from simcore.words.sentences.mean_rank import mean_rank, printed_exposed
from simcore.words.sentences.members import members_wait
from simcore.words.sentences.no_time import no_time
from simcore.words.sentences.path import path_communication, path_is

if TYPE_CHECKING:
    from simcore.executing.ran import RanTraces
    from simcore.words.rules import Sentence

# In the order in which they are told, the main cause first.
RULES = (mean_rank, path_is, path_communication, printed_exposed, members_wait, busiest_link)


def sentences_of(results: RanTraces) -> list[Sentence]:
    """Returns what there is to say of a run; of a step of 0 ns only that and why."""
    if not results.step_time_ns:
        return [*no_time(results)]
    return [sentence for rule in RULES for sentence in rule(results)]
