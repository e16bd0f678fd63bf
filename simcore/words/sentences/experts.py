"""Experts that get more tokens than others."""

from __future__ import annotations

from simcore.units import number
from simcore.words.sentences.model import Facts, Sentence

# From this share of the step on uneven experts come before what they make of compute and network.
_BLAMED = 0.1


def uneven_experts(facts: Facts) -> Sentence | None:
    """The rank whose experts get most, what that costs, and what a capacity or another placement would bring:
    each by a run of its own. Silent where all experts get the same.
    """
    imbalance = facts.results.model.imbalance
    if imbalance is None:
        return None
    most = f"{imbalance.max_over_mean:.2f} times the mean of tokens"
    text = f"Rank {imbalance.hot_rank} is the hot one: its experts get {most}"
    if imbalance.dropped:
        text += f", {100 * imbalance.dropped:.1f} % of all are dropped"
    would = []
    if imbalance.balanced_ns is not None:
        would.append(f"with even loads the step would be {facts.change(imbalance.balanced_ns)}")
    if imbalance.placed_ns is not None:
        would.append(f"with --expert-placement balanced {facts.change(imbalance.placed_ns)}")
    if imbalance.capacity is not None:
        factor, ns, dropped = imbalance.capacity
        would.append(
            f"with --expert-capacity {number(factor)}, which drops {100 * dropped:.1f} % of tokens, "
            f"{facts.change(ns)}"
        )
    text += f"; {', '.join(would)}." if would else "."
    lost_ns = max(imbalance.lost_ns or 0, 0)
    return Sentence(
        "uneven-experts", text, lost_ns, cause="uneven experts", lost_ns=lost_ns,
        fault=facts.worth(lost_ns, _BLAMED),
    )  # fmt: skip
