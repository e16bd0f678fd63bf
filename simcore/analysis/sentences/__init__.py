"""A run in sentences, each made by a rule from the accounts and never for one file.

A new rule is one function here and one entry in `RULES`. Import from here: `RULES`, `Sentence`,
`sentences_of`, `told`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.analysis.sentences.compute import compute_bound
from simcore.analysis.sentences.faults import slow_link, straggler
from simcore.analysis.sentences.model import Facts, Rule, Sentence
from simcore.analysis.sentences.network import busy_port, exposed, free_communication, late_gradients
from simcore.analysis.sentences.pipeline import bubble, idle, unbalanced

if TYPE_CHECKING:
    from simcore.analysis.results import Results

# What costs the same stands in this order.
RULES: tuple[Rule, ...] = (
    straggler,
    slow_link,
    compute_bound,
    unbalanced,
    bubble,
    late_gradients,
    exposed,
    free_communication,
    busy_port,
    idle,
)


def sentences_of(results: Results) -> list[Sentence]:
    """What there is to say of a run, the main cause first; nothing of a step of 0 ns.

    Faults come before all causes, then the cause that costs each rank most, what the step would be
    without communication, the other causes, and what is worth knowing beside them.
    """
    if not results.step_time_ns:
        return []
    facts = Facts(results)
    found: list[Sentence] = []
    for rule in RULES:
        made = rule(facts)
        found += made if isinstance(made, list) else [made] if made is not None else []
    causes = sorted([one for one in found if one.lead], key=lambda one: (not one.fault, -one.lost_ns))
    beside = [one for one in found if not one.lead]
    first = [one for one in beside if one.rule == "free-communication"]
    return [*causes[:1], *first, *causes[1:], *[one for one in beside if one not in first]]


def told(sentences: list[Sentence]) -> list[str]:
    """The sentences as they are printed: what stands before the main cause is said once."""
    return [("" if number else one.lead) + one.text for number, one in enumerate(sentences)]


__all__ = ["RULES", "Sentence", "sentences_of", "told"]
