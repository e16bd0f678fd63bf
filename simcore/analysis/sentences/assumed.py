"""What a model's step may be where nobody said how its pipeline is run."""

from __future__ import annotations

from simcore.analysis.sentences.model import Facts, Sentence
from simcore.units import duration


def schedule_range(facts: Facts) -> Sentence | None:
    """Said of a model on several stages without a schedule: the step with virtual stages and overlap, too."""
    other = facts.results.interleaved_run
    if other is None:
        return None
    simulation, step_ns = other, facts.step_ns
    least, most = sorted((simulation.step_time_ns, step_ns))
    parameters = simulation.parameters
    words = f"--virtual-stages {parameters.virtual_stages}"
    if parameters.overlap_grad_reduce:
        words += " --overlap-grad-reduce"
    if parameters.overlap_param_gather:
        words += " --overlap-param-gather"
    text = (
        f"No schedule was given: the step is between {duration(least)} and {duration(most)}, "
        f"{duration(simulation.step_time_ns)} with {words}."
    )
    return Sentence("schedule-range", text, simulation.step_time_ns)
