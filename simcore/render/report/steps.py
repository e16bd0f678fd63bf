"""The section on the steps of a run of several: how long each lasts, and what parts of the run cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from simcore.render.report.section import Column, PageOptions, Section, format_table, wrap
from simcore.units import change_percent, duration
from simcore.words.log_figures import LOG_FIGURES

if TYPE_CHECKING:
    from simcore.measured.run import RecordedStep
    from simcore.replay.slowdown import AsPeers, Slowdown
    from simcore.replay.step_findings import StepFindings
    from simcore.replay.step_table import StepTable
    from simcore.runs.measured import RecordedRun
    from simcore.trace.run import Run

_LISTED = 4
# The rows of the table of a log's steps: the first, the last, and those evenly between them.
_ROWS = 20


def _findings(run: Run) -> tuple[StepTable, StepFindings] | None:
    """Returns the steps of a run of all that was recorded, and what is found in them; None of other runs."""
    recording = cast("RecordedRun | None", run.recording)
    if recording is None:
        return None
    findings = recording.step_findings
    return None if findings is None or recording.step_table is None else (recording.step_table, findings)


def _lines(run: Run, options: PageOptions) -> list[str]:
    """Returns the spread of the steps, the slowest ones, and where it is known what the parts cost."""
    run_steps = _findings(run)
    if run_steps is None:
        return []
    # Imported here: other runs have none.
    from simcore.words.step_words import (
        describe_cause,
        describe_difference,
        describe_gain,
        describe_recurrence,
        describe_spread,
    )

    table, findings = run_steps
    lines = [describe_spread(table)]
    for words in (describe_recurrence(table), describe_gain(findings), describe_cause(findings)):
        if words:
            lines += wrap(words, "  ", "    ")
    slowest = sorted(range(len(table)), key=lambda row: -table.ns[row])[:_LISTED]
    lines.append("  the slowest  step  time, against the median, what differs most")
    for row in slowest:
        is_equal = table.ns[row] == table.median_ns
        change = change_percent(table.median_ns, table.ns[row]) or ("=" if is_equal else "-")
        words = describe_difference(table.find_difference(row))
        lines.append(
            f"    {table.steps[row]:>13}  {duration(table.ns[row])}  {change}{f'  {words}' if words else ''}"
        )
    lines += _figure_lines(_log_steps(run))
    slowdown = findings.slowdown
    if slowdown is None:
        return lines
    lines.append(
        "  S of each part: the mean step over that in which all is alike, were all other parts alike"
    )
    for name, ratios in (
        ("kind", slowdown.by_kind), ("stage", slowdown.by_stage), ("dp rank", slowdown.by_dp_rank),
        ("rank", slowdown.by_rank), ("step", slowdown.by_step),
    ):  # fmt: skip
        lines.append(f"    {name:<8} {_format_largest(ratios)}")
    return lines


def _log_steps(run: Run) -> Sequence[RecordedStep]:
    """Returns the steps of a log with what it states of them; none of other files."""
    recorded = None if run.recording is None else run.recording.run.recorded
    return [] if recorded is None else [step for step in recorded.steps if step.figures]


def _figure_lines(steps: Sequence[RecordedStep]) -> list[str]:
    """Returns a table of what a log states of its steps; none where it states nothing but times."""
    names = [name for name in LOG_FIGURES if any(name in step.figures for step in steps)]
    if not names:
        return []
    last, count = len(steps) - 1, min(_ROWS, len(steps))
    rows = [steps[at * last // max(count - 1, 1)] for at in range(count)]
    columns = [Column("step"), Column("time"), *(Column(LOG_FIGURES[name][0]) for name in names)]
    cells = [
        [
            str(step.step_number),
            duration(step.longest_ns),
            *(LOG_FIGURES[name][1](step.figures[name]) if name in step.figures else "-" for name in names),
        ]
        for step in rows
    ]
    more = [f"  {count} of {len(steps)} steps; --json has all"] if count < len(steps) else []
    return [*format_table(columns, cells), *more]


def _figure_values(step: RecordedStep | None) -> dict[str, float]:
    if step is None:
        return {}
    return {
        name: round(step.figures[name]) if name == "memory_bytes" else step.figures[name]
        for name in LOG_FIGURES
        if name in step.figures
    }


def _format_largest(ratios: Mapping[Any, float]) -> str:
    largest = sorted(ratios, key=lambda key: -ratios[key])[:_LISTED]
    more = f", and {len(ratios) - _LISTED} more" if len(ratios) > _LISTED else ""
    return ", ".join(f"{key} {ratios[key]:.3f}" for key in largest) + more


def _values(run: Run, options: PageOptions) -> dict[str, Any]:
    """Returns the steps and what is found in them."""
    run_steps = _findings(run)
    if run_steps is None:
        return {}
    table, findings = run_steps
    late = table.late
    log_steps = {step.step_number: step for step in _log_steps(run)}
    values: dict[str, Any] = {
        "steps": [
            {
                "step": row.step, "ns": row.ns, **_figure_values(log_steps.get(row.step)),
                "last_rank": row.last_rank, "late_ns": row.late_ns,
                "ranks": [
                    {"rank": rank, "ns": table.lengths[index][at], "compute_ns": table.compute[index][at],
                     "wait_ns": table.waits[index][at], "late_ns": late[index][at]}
                    if table.lengths[index][at] >= 0 else {"rank": rank, "ns": None}
                    for index, rank in enumerate(table.ranks)
                ],
            }
            for at, row in enumerate(table.rows)
        ],
        "spread": {
            "median_ns": table.median_ns, "p90_ns": table.p90_ns, "worst_ns": table.sorted_ns[-1],
            "median_step": table.steps[table.median_row], "worst_step": table.steps[table.slowest_row],
        },
        "recurrence": [{"rank": rank, "steps": count} for rank, count in table.recurrence],
    }  # fmt: skip
    if findings.as_peers is not None:
        values["as_peers"] = _peer_values(findings.as_peers)
    if findings.slowdown is not None:
        values["slowdown"] = _slowdown_values(findings.slowdown)
        cause = findings.cause
        values["cause"] = (
            None if cause is None else {"part": cause.part, "which": list(cause.which), "share": cause.share}
        )
    return values


def _peer_values(as_peers: AsPeers) -> dict[str, Any]:
    count = len(as_peers.steps)
    return {
        "rank": as_peers.rank,
        "before_ns": sum(as_peers.before_ns) / count,
        "after_ns": sum(as_peers.after_ns) / count,
        "gain_ns": as_peers.gain_ns,
        "steps": [
            {"step": step, "before_ns": before, "after_ns": after}
            for step, before, after in zip(as_peers.steps, as_peers.before_ns, as_peers.after_ns, strict=True)
        ],
    }


def _slowdown_values(slowdown: Slowdown) -> dict[str, Any]:
    return {
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
    }  # fmt: skip


STEPS: Section[Run] = Section("steps", _lines, _values)
