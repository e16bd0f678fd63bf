"""The rules whose sentences describe a simulated run, and which sentence comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from simcore.records import replace
from simcore.words.sentences.assumed import find_schedule_range
from simcore.words.sentences.compute import (
    find_compute_bound,
    find_no_compute,
    find_one_layer,
    find_other_model,
)
from simcore.words.sentences.experts import find_uneven_experts
from simcore.words.sentences.faults import find_slow_link, find_straggler
from simcore.words.sentences.memory import find_memory_shortfall
from simcore.words.sentences.model import RunSums, Weighed
from simcore.words.sentences.network import (
    find_busy_port,
    find_exposed,
    find_free_communication,
    find_late_gradients,
    find_network,
)
from simcore.words.sentences.pipeline import find_bubble, find_idle, find_unbalanced, find_uneven_microbatches
from simcore.words.sentences.ports import find_other_job, find_shared_port
from simcore.words.sentences.sequences import find_uneven_sequences

if TYPE_CHECKING:
    from simcore.analysis.simulation_figures import SimulationFigures

# The step is mostly compute from the first share on; from the second on compute leaves no other cause to
# name.
_MOSTLY_SHARE = 0.5
_BOUND_SHARE = 0.8
# A change that saves this share of the step is named with the main cause; below it the network is no cause,
# either.
_SAVING_SHARE = 0.1
# Rules on the input, which come before what went wrong in the run.
_FILE_RULES = ("no-compute", "one-layer", "another-model", "uneven-microbatches")

# Causes of equal cost keep this order.
RULES: tuple[Callable[[RunSums], Iterable[Weighed]], ...] = (
    find_memory_shortfall,
    find_no_compute,
    find_one_layer,
    find_other_model,
    find_uneven_microbatches,
    find_uneven_experts,
    find_uneven_sequences,
    find_straggler,
    find_slow_link,
    find_compute_bound,
    find_unbalanced,
    find_bubble,
    find_network,
    find_late_gradients,
    find_exposed,
    find_free_communication,
    find_busy_port,
    find_other_job,
    find_shared_port,
    find_idle,
    find_schedule_range,
)


def find_sentences(results: SimulationFigures) -> list[Weighed]:
    """Returns the sentences on a run, the main cause first; none for a step of 0 ns.

    Faults come before all causes; then the cause that costs the step most where there is no fault, what the
    step would be without communication, the other causes, and further facts.
    """
    if not results.step_time_ns:
        return []
    run = RunSums(results)
    sentences = [sentence for rule in RULES for sentence in rule(run)]
    of_file = [
        replace(sentence, lead=f"{sentence.cause.capitalize()}. ")
        for sentence in sentences
        if sentence.rule in _FILE_RULES
    ]
    causes = [sentence for sentence in sentences if sentence.cause and sentence.rule not in _FILE_RULES]
    causes.sort(key=lambda cause: (not cause.fault, -cause.lost_ns))
    if causes and run.simulation.workload.has_compute:
        causes[0] = replace(causes[0], lead=find_lead(causes, run.mean_busy_ns))
    others = [sentence for sentence in sentences if not sentence.cause]
    first = [sentence for sentence in others if sentence.rule == "free-communication"]
    leading = max(sum(cause.fault for cause in causes), 1)
    last_sentences = [sentence for sentence in others if sentence not in first]
    return [*of_file, *causes[:leading], *first, *causes[leading:], *last_sentences]


def find_lead(causes: Sequence[Weighed], busy_ns: int) -> str:
    """Returns the main cause in a word or two: `Bubble-bound. `. busy_ns: compute of the mean rank.

    For compute it also names the cause of most of the rest, and what hiding gradients behind compute saves:
    the largest part is not what can be saved first. Any other main cause binds the step where it takes most
    of the time that ranks do not compute.
    """
    main, name = causes[0], causes[0].cause.capitalize()
    # Half or more of what ranks do not compute.
    most_of_the_rest = [cause for cause in causes if 2 * cause.lost_ns >= cause.step_ns - busy_ns]
    if main.fault:
        return f"{name}. "
    if main.cause == "compute":
        second = next((cause.cause for cause in most_of_the_rest if cause is not main), None)
        lead = f"Mostly compute, then {second}" if second else "Mostly compute"
        if not main.worth(main.lost_ns, _MOSTLY_SHARE):
            # Compute is the largest part, but not most of the step.
            lead = f"Compute, then {second or 'several causes'}"
        if main.worth(main.lost_ns, _BOUND_SHARE):
            lead = f"{(main.bound_by or 'compute').capitalize()}-bound"
        saved_ns = max(cause.saved_ns for cause in causes)
        # The sentence of the cause names the change.
        if main.worth(saved_ns, _SAVING_SHARE):
            lead += f": gradient overlap would save {main.figure(saved_ns)}"
        return f"{lead}. "
    binds = main.cause in ("bubble", "network") and main in most_of_the_rest
    return f"{name}-bound. " if binds else f"{name}. "
