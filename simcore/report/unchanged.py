"""What is the same in both runs, and what a change costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simcore.report.section import PageAsked, wrapped

if TYPE_CHECKING:
    from simcore.analysis.two_runs import Compared


def lines(found: Compared, asked: PageAsked) -> list[str]:
    """What is unchanged, and the micro-batches in memory where these change."""
    same = wrapped(f"Unchanged: {', '.join(found.unchanged) or 'nothing'}", "", "  ")
    return [*same, *([found.cost_words] if found.cost_words else [])]


def values(found: Compared, asked: PageAsked) -> dict[str, Any]:
    """`unchanged` and, of runs that were matched op by op, `peak_microbatches`."""
    cost = {} if found.matched is None else {
        "peak_microbatches": None if found.cost is None else found.cost._asdict()
    }  # fmt: skip
    return {"unchanged": found.unchanged, **cost}
