"""The rules whose sentences are told of a simulated run, and which of these comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from simcore.records import replace
from simcore.words.sentences.assumed import schedule_range
from simcore.words.sentences.compute import another_model, compute_bound, no_compute, one_layer
from simcore.words.sentences.experts import uneven_experts
from simcore.words.sentences.faults import slow_link, straggler
from simcore.words.sentences.memory import does_not_fit
from simcore.words.sentences.model import RunSums, Weighed
from simcore.words.sentences.network import (
    busy_port,
    exposed,
    free_communication,
    late_gradients,
    network,
)
from simcore.words.sentences.pipeline import bubble, idle, unbalanced, uneven_microbatches

if TYPE_CHECKING:
    from simcore.analysis.finished import Finished

# The step is mostly compute from this share on; from the other one compute leaves no other cause to name.
_HALF = 0.5
_BOUND = 0.8
# A change that saves this share of the step is named with what the step goes to; below it the network is no
# cause, either.
_SAVES = 0.1
# What a run stands on comes before what went wrong in it.
_OF_THE_FILE = ("no-compute", "one-layer", "another-model", "uneven-microbatches")

# What costs the same stands in this order.
RULES: tuple[Callable[[RunSums], Iterable[Weighed]], ...] = (
    does_not_fit,
    no_compute,
    one_layer,
    another_model,
    uneven_microbatches,
    uneven_experts,
    straggler,
    slow_link,
    compute_bound,
    unbalanced,
    bubble,
    network,
    late_gradients,
    exposed,
    free_communication,
    busy_port,
    idle,
    schedule_range,
)


def sentences_of(results: Finished) -> list[Weighed]:
    """What there is to say of a run, the main cause first; nothing of a step of 0 ns.

    Faults come before all causes, then, without any, the cause that costs the step most, what the step
    would be without communication, the other causes, and what is worth knowing beside them.
    """
    if not results.step_time_ns:
        return []
    run = RunSums(results)
    sentences = [sentence for rule in RULES for sentence in rule(run)]
    of_file = [
        replace(sentence, lead=f"{sentence.cause.capitalize()}. ")
        for sentence in sentences
        if sentence.rule in _OF_THE_FILE
    ]
    causes = [sentence for sentence in sentences if sentence.cause and sentence.rule not in _OF_THE_FILE]
    causes.sort(key=lambda cause: (not cause.fault, -cause.lost_ns))
    if causes and run.simulation.workload.has_compute:
        causes[0] = replace(causes[0], lead=lead_of(causes, run.mean_busy_ns))
    beside = [sentence for sentence in sentences if not sentence.cause]
    first = [sentence for sentence in beside if sentence.rule == "free-communication"]
    leading = max(sum(cause.fault for cause in causes), 1)
    rest = [sentence for sentence in beside if sentence not in first]
    return [*of_file, *causes[:leading], *first, *causes[leading:], *rest]


def lead_of(causes: Sequence[Weighed], busy_ns: int) -> str:
    """`Bubble-bound. `: what the step goes to, in a word or two. busy_ns: compute of the mean rank.

    Compute with what most of the rest goes to, and what hiding gradients behind it saves: the largest part is
    not what can be saved first; else the largest cause, which binds the step where most of what ranks do not
    compute goes to it.
    """
    main, name = causes[0], causes[0].cause.capitalize()
    # Half or more of what ranks do not compute.
    most_of_the_rest = [cause for cause in causes if 2 * cause.lost_ns >= cause.step_ns - busy_ns]
    if main.fault:
        return f"{name}. "
    if main.cause == "compute":
        second = next((cause.cause for cause in most_of_the_rest if cause is not main), None)
        said = f"Mostly compute, then {second}" if second else "Mostly compute"
        if not main.worth(main.lost_ns, _HALF):
            # The largest part, and not most of the step.
            said = f"Compute, then {second or 'several causes'}"
        if main.worth(main.lost_ns, _BOUND):
            said = "Compute-bound"
        saved_ns = max(cause.saved_ns for cause in causes)
        # Which change it is stands in the sentence that found it.
        if main.worth(saved_ns, _SAVES):
            said += f": gradient overlap would save {main.figure(saved_ns)}"
        return f"{said}. "
    binds = main.cause in ("bubble", "network") and main in most_of_the_rest
    return f"{name}-bound. " if binds else f"{name}. "
