"""What a model's step may be where nobody said how its pipeline is run."""

from __future__ import annotations

from simcore.units import duration
from simcore.words.sentences.model import Facts, Sentence


def schedule_range(facts: Facts) -> Sentence | None:
    """Said of a model on several stages without a schedule: what the step is at least, whatever it is."""
    fastest = facts.results.fastest
    if fastest is None:
        return None
    schedule = facts.simulation.program.schedule
    how = "without a bubble and with only gradients and transfers hidden"
    if fastest.is_way:
        how = "one micro-batch through all stages and back, then the optimizer, with all else hidden"
    text = (
        f"No schedule was given: the step is between {duration(fastest.ns)}, {how}, and "
        f"{duration(facts.step_ns)}, as {schedule} (--schedule, --overlap-grad-reduce)."
    )
    return Sentence("schedule-range", text, fastest.ns)
