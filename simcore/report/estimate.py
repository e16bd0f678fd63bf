"""SimAI's own estimate of the step, line by line beside what was simulated."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from simcore.report.section import WIDTH, PageAsked
from simcore.units import duration

if TYPE_CHECKING:
    from simcore.analysis.run import Run

_US = (
    "dp_us", "dp_ep_us", "tp_us", "ep_us", "pp_us", "bubble_us", "compute_us", "exposed_us", "total_us"
)  # fmt: skip


def lines(run: Run, asked: PageAsked) -> list[str]:
    """A line of figures for each line of SimAI's summary, with the sentence that explains it; nothing unless
    the network is one of SimAI's.
    """
    estimate = run.simai_estimate
    if estimate is None:
        return []
    total, step = round(estimate.total_us * 1000), run.step_time_ns
    ranks, beside = run.figures.simai_beside
    several = "s" if "-" in ranks or "," in ranks else ""
    text = [
        f"SimAI's own estimate  {duration(total)}"
        + (f", {total / step:.3f} x the step time" if step else ""),
        "  all rows added up, without a schedule: no slow ranks, no waits, each layer a virtual stage",
        f"  line        SimAI        here, on rank{several} {ranks}",
    ]
    for estimate_line in beside:
        simai = "-" if estimate_line.simai_us is None else duration(round(estimate_line.simai_us * 1000))
        head = f"  {estimate_line.line:<8}{simai:>12}{duration(estimate_line.ours_ns):>12}   "
        text += textwrap.wrap(
            head + estimate_line.text,
            WIDTH,
            subsequent_indent=" " * len(head),
            break_long_words=False,
            break_on_hyphens=False,
        )
    return text


def values(run: Run, asked: PageAsked) -> dict[str, Any]:
    """`estimates`: us to the ns."""
    estimate = run.simai_estimate
    if estimate is None:
        return {"estimates": {"simai": None}}
    beside = [
        {
            "line": estimate_line.line,
            "simai_us": _us(estimate_line.simai_us),
            "ours_ns": estimate_line.ours_ns,
            "text": estimate_line.text,
        }
        for estimate_line in run.figures.simai_beside[1]
    ]
    return {
        "estimates": {"simai": {name: _us(getattr(estimate, name)) for name in _US}, "simai_lines": beside}
    }


def _us(us: float | None) -> float | None:
    return None if us is None else round(us, 3)
