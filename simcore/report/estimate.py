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
    found = run.simai_estimate
    if found is None:
        return []
    total, step = round(found.total_us * 1000), run.step_time_ns
    ranks, beside = run.figures.simai_beside
    several = "s" if "-" in ranks or "," in ranks else ""
    text = [
        f"SimAI's own estimate  {duration(total)}"
        + (f", {total / step:.3f} x the step time" if step else ""),
        "  all rows added up, without a schedule: no slow ranks, no waits, each layer a virtual stage",
        f"  line        SimAI        here, on rank{several} {ranks}",
    ]
    for one in beside:
        simai = "-" if one.simai_us is None else duration(round(one.simai_us * 1000))
        head = f"  {one.line:<8}{simai:>12}{duration(one.ours_ns):>12}   "
        text += textwrap.wrap(
            head + one.text,
            WIDTH,
            subsequent_indent=" " * len(head),
            break_long_words=False,
            break_on_hyphens=False,
        )
    return text


def values(run: Run, asked: PageAsked) -> dict[str, Any]:
    """`estimates`: us to the ns."""
    found = run.simai_estimate
    if found is None:
        return {"estimates": {"simai": None}}
    beside = [
        {"line": one.line, "simai_us": _us(one.simai_us), "ours_ns": one.ours_ns, "text": one.text}
        for one in run.figures.simai_beside[1]
    ]
    return {"estimates": {"simai": {name: _us(getattr(found, name)) for name in _US}, "simai_lines": beside}}


def _us(us: float | None) -> float | None:
    return None if us is None else round(us, 3)
