"""What a model's step may be where nobody said how its pipeline is run."""

from __future__ import annotations

from simcore.analysis.sentences.model import Facts, Sentence
from simcore.units import duration


def schedule_range(facts: Facts) -> Sentence | None:
    """Said of a model on several stages without a schedule: what the step is at least, whatever it is."""
    least_ns = facts.results.fastest_ns
    if least_ns is None:
        return None
    schedule = facts.simulation.program.schedule
    text = (
        f"No schedule was given: the step is between {duration(least_ns)}, without a bubble and with "
        f"gradients and transfers hidden, and {duration(facts.step_ns)}, as {schedule} "
        "(--virtual-stages, --overlap-grad-reduce)."
    )
    return Sentence("schedule-range", text, least_ns)
