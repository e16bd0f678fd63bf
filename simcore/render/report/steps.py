"""The section on the steps of a run of several: how long each lasts, what a log states of it, and what parts
of the run cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median_high
from typing import TYPE_CHECKING, Any, cast

from simcore.ranks import RankSet
from simcore.render.report.section import Column, PageOptions, Section, format_table, wrap
from simcore.units import byte_size, change_percent, duration, plural

if TYPE_CHECKING:
    from simcore.replay.slowdown import Slowdown
    from simcore.replay.step_times import StepTime
    from simcore.runs.measured import RecordedRun
    from simcore.trace.run import Run

# A part explains a slowdown if most of it goes with that part alone; a smaller slowdown needs no reason.
_MOST, _LEAST = 0.5, 1.02
_LISTED = 4
# The rows of the table of a log's steps: the first, the last, and those evenly between them.
_ROWS = 20
# Figures of a log's lines: by name the heading and the form.
_FIGURES = {
    "loss": ("loss", "{:.5g}".format),
    "tokens_per_second": ("tokens/s/GPU", "{:,.0f}".format),
    "tflops": ("TFLOP/s/GPU", "{:.1f}".format),
    "memory_bytes": ("memory", lambda value: byte_size(round(value))),
}


def _lines(run: Run, options: PageOptions) -> list[str]:
    """Returns the median, slowest and fastest step, and where it is known what the parts cost."""
    recording = cast("RecordedRun | None", run.recording)
    if recording is None or not recording.steps:
        return []
    steps = recording.steps
    middle = median_high(step.ns for step in steps)
    slowest = max(steps, key=lambda step: step.ns)
    lines = [
        f"Steps: {len(steps)}, {duration(middle)} in the middle",
        f"  slowest  step {slowest.step}, {duration(slowest.ns)} ({change_percent(middle, slowest.ns)})",
    ]
    lines += _figure_lines(steps)
    slowdown = recording.slowdown
    if slowdown is None:
        return lines
    lines += [
        f"  slowdown {slowdown.total:.3f} x the step in which all operations of a kind are alike "
        "(compute: the mean, communication: the median)",
        *wrap(_cause(recording, slowdown), "  cause    ", "           "),
        "  S of each part, were all others alike",
    ]
    for name, ratios in (
        ("kind", slowdown.by_kind), ("stage", slowdown.by_stage), ("dp rank", slowdown.by_dp_rank),
        ("rank", slowdown.by_rank), ("step", slowdown.by_step),
    ):  # fmt: skip
        lines.append(f"    {name:<8} {_format_largest(ratios)}")
    return lines


def _figure_lines(steps: Sequence[StepTime]) -> list[str]:
    """Returns a table of what a log states of its steps; none where it states nothing but times."""
    names = [name for name in _FIGURES if any(name in step.figures for step in steps)]
    if not names:
        return []
    last, count = len(steps) - 1, min(_ROWS, len(steps))
    rows = [steps[at * last // max(count - 1, 1)] for at in range(count)]
    columns = [Column("step"), Column("time"), *(Column(_FIGURES[name][0]) for name in names)]
    cells = [
        [
            str(step.step),
            duration(step.ns),
            *(_FIGURES[name][1](step.figures[name]) if name in step.figures else "-" for name in names),
        ]
        for step in rows
    ]
    more = [f"  {count} of {len(steps)} steps; --json has all"] if count < len(steps) else []
    return [*format_table(columns, cells), *more]


def _figure_values(step: StepTime) -> dict[str, float]:
    return {
        name: round(step.figures[name]) if name == "memory_bytes" else step.figures[name]
        for name in _FIGURES
        if name in step.figures
    }


def _format_largest(ratios: Mapping[Any, float]) -> str:
    largest = sorted(ratios, key=lambda key: -ratios[key])[:_LISTED]
    more = f", and {len(ratios) - _LISTED} more" if len(ratios) > _LISTED else ""
    return ", ".join(f"{key} {ratios[key]:.3f}" for key in largest) + more


def _cause(recording: RecordedRun, slowdown: Slowdown) -> str:
    """Returns which part explains most of the slowdown, in words."""
    gain = f"the mean step would be {100 * (1 - 1 / slowdown.total):.1f} % shorter"
    if slowdown.total < _LEAST:
        return f"none worth a search: were all alike, {gain}"
    if slowdown.m_w > _MOST and slowdown.m_w >= slowdown.m_s:
        ranks = slowdown.worst_ranks
        counts = [recording.count_slow_steps(rank) for rank in ranks]
        who = f"rank{'s' if len(ranks) > 1 else ''} {RankSet.of(ranks).text()}"
        they = "they do" if len(ranks) > 1 else "it does"
        return (
            f"{who}, slower than peers in {min(counts)} of {plural(len(recording.steps), 'step')}: "
            f"{100 * slowdown.m_w:.0f} % of the slowdown goes when {they} "
            f"as the others; {gain}"
        )
    if slowdown.m_s > _MOST:
        return f"the last stage: {100 * slowdown.m_s:.0f} % of the slowdown goes when it does as the others"
    kind = max(slowdown.by_kind, key=lambda kind: slowdown.by_kind[kind])
    if slowdown.by_kind[kind] - 1 > _MOST * (slowdown.total - 1):
        return f"{kind}, which alone makes {slowdown.by_kind[kind]:.3f} of it, on no single rank or stage"
    return f"no single rank, stage or kind explains most of it; were all alike, {gain}"


def _values(run: Run, options: PageOptions) -> dict[str, Any]:
    """Returns `steps` and, where it is known, `slowdown`."""
    recording = cast("RecordedRun | None", run.recording)
    if recording is None or not recording.steps:
        return {}
    steps = [
        {
            "step": step.step, "ns": step.ns, **_figure_values(step), "longest_rank": step.longest_rank,
            "ranks": [
                {"rank": rank, "ns": step.rank_ns.get(rank), "compute_ns": ns}
                for rank, ns in step.compute_ns.items()
            ],
        }
        for step in recording.steps
    ]  # fmt: skip
    slowdown = recording.slowdown
    if slowdown is None:
        return {"steps": steps}
    return {
        "steps": steps,
        "slowdown": {
            "total": slowdown.total,
            "by_kind": slowdown.by_kind,
            **{
                name: {str(key): ratio for key, ratio in ratios.items()}
                for name, ratios in (
                    ("by_stage", slowdown.by_stage), ("by_dp_rank", slowdown.by_dp_rank),
                    ("by_rank", slowdown.by_rank), ("by_step", slowdown.by_step),
                )
            },
            "m_w": slowdown.m_w,
            "m_s": slowdown.m_s,
            "worst_ranks": list(slowdown.worst_ranks),
        },
    }  # fmt: skip


STEPS: Section[Run] = Section("steps", _lines, _values)
