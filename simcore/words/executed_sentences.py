"""The rules whose sentences describe execution traces that have run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.words.sentences.links import find_busiest_link
from simcore.words.sentences.mean_rank import find_mean_rank, find_printed_exposed
from simcore.words.sentences.members import find_member_waits
from simcore.words.sentences.no_time import find_no_time
from simcore.words.sentences.path import find_path_communication, find_path_names

if TYPE_CHECKING:
    from simcore.executing.execution_analysis import ExecutionAnalysis
    from simcore.words.rules import Sentence

# In the order of their sentences, the main cause first.
RULES = (
    find_mean_rank,
    find_path_names,
    find_path_communication,
    find_printed_exposed,
    find_member_waits,
    find_busiest_link,
)


def find_sentences(results: ExecutionAnalysis) -> list[Sentence]:
    """Returns the sentences on a run; of a step of 0 ns only that it is, and why."""
    if not results.step_time_ns:
        return [*find_no_time(results)]
    return [sentence for rule in RULES for sentence in rule(results)]
