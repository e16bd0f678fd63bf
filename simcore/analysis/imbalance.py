"""What uneven loads of experts cost a step, and what capacity or another placement would bring: by reruns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simcore.analysis.model_figures import made_of
from simcore.model.imbalance import expert_loads
from simcore.records import Struct, replace
from simcore.simulation import Simulation

# What Switch Transformers and GShard give an expert, times the mean (arXiv 2101.03961, section 2.2).
USUAL_CAPACITY = 1.25
BALANCED: dict[str, Any] = {
    "expert_imbalance": None, "expert_capacity": None, "expert_placement": None
}  # fmt: skip


class Imbalance(Struct, frozen=True):
    """hot_rank: the lowest of the ranks whose experts get most tokens, max_over_mean times the mean.

    lost_ns: what the step is longer than with even loads. dropped: share of the tokens above the capacity.
    capacity: (factor, step ns, share of tokens dropped) of a run with one. placed_ns: the step with experts
    placed evenly. tokens: of the ranks of an expert group, by place. Each None where it is not known, would
    change nothing, or is given already.
    """

    hot_rank: int
    max_over_mean: float
    lost_ns: int | None
    dropped: float
    balanced_ns: int | None
    capacity: tuple[float, int, float] | None
    placed_ns: int | None
    tokens: tuple[int, ...]


def expert_changes(simulation: Simulation) -> list[tuple[dict[str, Any], float]]:
    """(fields of `Parameters`, share of the tokens that are dropped) of what would make loads more even."""
    made, parameters = made_of(simulation), simulation.parameters
    if made is None or made.training.loads is None:
        return []
    training = made.training
    changes: list[tuple[dict[str, Any], float]] = []
    moe = training.model.moe
    assert moe is not None
    if parameters.expert_placement != "balanced" and 1 < training.ep < moe.experts:
        changes.append(({"expert_placement": "balanced"}, _dropped(simulation, parameters.expert_capacity)))
    if parameters.expert_capacity is None:
        dropped = _dropped(simulation, USUAL_CAPACITY)
        if dropped:
            changes.append(({"expert_capacity": USUAL_CAPACITY}, dropped))
    return changes


def _dropped(simulation: Simulation, capacity: float | None) -> float:
    """The share of tokens above a capacity."""
    made = made_of(simulation)
    assert made is not None
    training = made.training
    moe = training.model.moe
    assert moe is not None
    parameters = replace(simulation.parameters, expert_capacity=capacity)
    loads = expert_loads(parameters, moe.experts, training.ep, training.routed_tokens)
    return loads.dropped / (loads.routed * training.ep) if loads is not None else 0.0


def imbalance_of(simulation: Simulation, step_ns: Callable[..., int | None]) -> Imbalance | None:
    """What there is to say of uneven experts; None of a run without.

    step_ns: of the run with other values of some parameters, None where that would take long.
    """
    made = made_of(simulation)
    loads = made.training.loads if made is not None else None
    if loads is None:
        return None
    classes = simulation.timeline.classes
    most = max(loads.of_rank)
    hot = min(rank_class.ranks.first for rank_class in classes if loads.of_rank[rank_class.expert] == most)
    balanced_ns = step_ns(**BALANCED)
    capacity = placed_ns = None
    for fields, dropped in expert_changes(simulation):
        ns = step_ns(**fields)
        if ns is None:
            continue
        if "expert_capacity" in fields:
            capacity = (USUAL_CAPACITY, ns, dropped)
        else:
            placed_ns = ns
    return Imbalance(
        hot, loads.max_over_mean, None if balanced_ns is None else simulation.step_time_ns - balanced_ns,
        _dropped(simulation, simulation.parameters.expert_capacity), balanced_ns, capacity, placed_ns,
        loads.of_rank,
    )  # fmt: skip
