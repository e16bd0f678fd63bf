"""That the ranks compute most of the time, and what."""

from __future__ import annotations

from simcore.analysis.sentences.model import Facts, Sentence
from simcore.diagnostics import printable
from simcore.units import percent

_MOSTLY = 0.8


def compute_bound(facts: Facts) -> Sentence | None:
    """That compute takes most of the step, and the rows that take most of it."""
    busy = facts.mean_busy_ns
    if not facts.worth(busy, _MOSTLY):
        return None
    text = f"Ranks compute {facts.figure(busy)} of the step"
    groups = facts.results.layer_groups
    most_ns = max(groups.compute_ns, default=0)
    if most_ns:
        most = groups[groups.compute_ns.index(most_ns)]
        share = percent(most.compute_ns, facts.step_ns)
        text += f", most in {printable(most.name, 32)} ({share} %)"
    return Sentence("compute-bound", f"{text}.", busy, "Compute-bound. ", busy)
