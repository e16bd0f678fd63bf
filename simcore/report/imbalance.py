"""Uneven loads of experts: the ranks of an expert group whose experts get most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simcore.report.section import Field, PageAsked, field_lines, more_line

if TYPE_CHECKING:
    from simcore.analysis.run import Run

_PLACES = 8


def lines(run: Run, asked: PageAsked) -> list[str]:
    """A line a place in the expert groups, the fullest first; nothing of a run without uneven experts."""
    imbalance = run.imbalance
    if imbalance is None:
        return []
    mean = sum(imbalance.tokens) / len(imbalance.tokens)
    fields: list[Field[tuple[int, int]]] = [
        Field("place in ep", lambda pair: str(pair[0])),
        Field("tokens", lambda pair: str(pair[1])),
        Field("of the mean", lambda pair: f"{pair[1] / mean:.2f}" if mean else ""),
    ]
    fullest = sorted(enumerate(imbalance.tokens), key=lambda pair: (-pair[1], pair[0]))
    more = more_line(len(fullest) - _PLACES, "with fewer")
    return [
        "Tokens that the experts of a rank get in a micro-batch, by its place in an expert group",
        *field_lines(fields, fullest[:_PLACES]),
        *more,
    ]


def values(run: Run, asked: PageAsked) -> dict[str, Any]:
    """`imbalance` of a run with uneven experts; ns None where another run would take long to know it."""
    imbalance = run.imbalance
    if imbalance is None:
        return {}
    names, capacity = ("factor", "step_time_ns", "dropped"), imbalance.capacity
    return {
        "imbalance": {
            "hot_rank": imbalance.hot_rank,
            "max_over_mean": imbalance.max_over_mean,
            "lost_ns": imbalance.lost_ns,
            "dropped": imbalance.dropped,
            "balanced_placement_ns": imbalance.placed_ns,
            "capacity": None if capacity is None else dict(zip(names, capacity, strict=True)),
            "tokens": list(imbalance.tokens),
        }
    }
