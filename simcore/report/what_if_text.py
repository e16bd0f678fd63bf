"""What-if on the page of text: what the step would take with one thing cheaper, or another schedule."""

from __future__ import annotations

from simcore.analysis import Results
from simcore.diagnostics import printable
from simcore.report.table import Column, listed, table
from simcore.run.findings import WhatIf
from simcore.units import change_percent, duration

_KNOB_CELLS = 60
_LEAST_SHARE = 0.0005


def what_if_text(results: Results) -> str:
    """A line for each knob that changes what is shown of the step time, the greatest gain first; the others
    by name."""
    step = results.step_time_ns
    all_knobs = results.what_if()
    if not step or not all_knobs:
        return "What if: nothing takes any time\n"
    columns = [Column("what", left=True), Column("step if free"), Column("change")]
    columns += [Column("step if 10 % better"), Column("change"), Column("", left=True)]
    rows, little = [], []
    for one in all_knobs:
        name = printable(one.knob, _KNOB_CELLS)
        if not one.anomaly and max(_shares(one, step)) < _LEAST_SHARE:
            little.append(name)
            continue
        free = ["", ""] if one.free_ns is None else [duration(one.free_ns), change_percent(step, one.free_ns)]
        better = [duration(one.better10_ns), change_percent(step, one.better10_ns)]
        rows.append([name, *free, *better, "slower: anomaly" if one.anomaly else ""])
    lines = [f"What if one thing were cheaper (step time now {duration(step)})", *table(columns, rows)]
    if any(one.free_ns is None for one in all_knobs):
        lines.append("  another schedule or overlap is taken as it is, in the columns of 10 %")
    if any(one.anomaly for one in all_knobs):
        lines.append(
            "  anomaly: what is cheaper lets other traffic meet at the same ports or queues, and the step "
            "takes longer"
        )
    if little:
        lines.append(listed("below 0.05 %, or nothing:", little))
    return "\n".join([*lines, ""])


def _shares(one: WhatIf, step: int) -> tuple[float, float]:
    """By what shares of the step a knob changes it, free and 10 % better."""
    free = one.better10_ns if one.free_ns is None else one.free_ns
    return abs(step - free) / step, abs(step - one.better10_ns) / step
