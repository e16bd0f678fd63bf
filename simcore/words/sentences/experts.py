"""The sentence on experts that get more tokens than others."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.trace.contexts import Imbalance
from simcore.units import format_number
from simcore.words.sentences.model import RunSums, Weighed

# From this share of the step on uneven experts come before the compute and network that they affect.
_BLAMED = 0.1


class UnevenExperts(Weighed, frozen=True):
    """The rank whose experts get most tokens, the cost, and the effect of a capacity or another placement.

    Each step time is that of a further run.
    """

    rule = "uneven-experts"

    imbalance: Imbalance

    @property
    def text(self) -> str:
        imbalance = self.imbalance
        most = f"{imbalance.max_over_mean:.2f} times the mean of tokens"
        text = f"Rank {imbalance.hot_rank} is the hot one: its experts get {most}"
        if imbalance.dropped:
            text += f", {100 * imbalance.dropped:.1f} % of all are dropped"
        would = []
        if imbalance.balanced_ns is not None:
            would.append(f"with even loads the step would be {self.change(imbalance.balanced_ns)}")
        if imbalance.placed_ns is not None:
            would.append(f"with --expert-placement balanced {self.change(imbalance.placed_ns)}")
        if imbalance.capacity is not None:
            factor, ns, dropped = imbalance.capacity
            would.append(
                f"with --expert-capacity {format_number(factor)}, which drops {100 * dropped:.1f} % of "
                "tokens, "
                f"{self.change(ns)}"
            )
        return f"{text}; {', '.join(would)}." if would else f"{text}."


def find_uneven_experts(run: RunSums) -> Iterator[UnevenExperts]:
    """Yields a sentence where experts get different numbers of tokens."""
    imbalance = run.results.model.imbalance
    if imbalance is not None:
        lost_ns = max(imbalance.lost_ns or 0, 0)
        yield UnevenExperts(
            step_ns=run.step_ns, ns=lost_ns, cause="uneven experts", lost_ns=lost_ns,
            fault=run.is_worth_saying(lost_ns, _BLAMED), imbalance=imbalance,
        )  # fmt: skip
