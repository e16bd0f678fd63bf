"""What is the same in both runs, and what a change costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simcore.report.section import PageAsked, wrapped

if TYPE_CHECKING:
    from simcore.analysis.two_runs import Compared


def lines(compared: Compared, asked: PageAsked) -> list[str]:
    """What is unchanged, and the micro-batches in memory where these change."""
    same = wrapped(f"Unchanged: {', '.join(compared.unchanged) or 'nothing'}", "", "  ")
    return [*same, *([compared.cost_words] if compared.cost_words else [])]


def values(compared: Compared, asked: PageAsked) -> dict[str, Any]:
    """`unchanged` and, of runs that were matched op by op, `peak_microbatches`."""
    cost = {} if compared.matched is None else {
        "peak_microbatches": None if compared.cost is None else compared.cost._asdict()
    }  # fmt: skip
    return {"unchanged": compared.unchanged, **cost}
