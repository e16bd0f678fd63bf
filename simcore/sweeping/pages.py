"""The page of a sweep: its table as text, as JSON (schema `wltui.sweep-front/1`), and its points as CSV."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from simcore.diagnostics import printable
from simcore.records import asdict
from simcore.render.export.csv import field
from simcore.render.report.section import Column, format_table
from simcore.sweeping.outcome import (
    Outcome,
    equivalent_words,
    format_value,
    label,
    layout_value,
    reason_words,
)
from simcore.sweeping.pareto_front import EquivalentPoints, choose_measure, group_equivalent, measures
from simcore.sweeping.point import TIGHT_PERCENT, Point
from simcore.sweeping.running import SweepProgress
from simcore.units import byte_size, duration, plural

# The columns in their order; others follow.
CSV_LAYOUT = _FIRST = (
    "gpu", "cluster", "tp", "pp", "cp", "ep", "dp", "microbatch_size", "microbatches", "global_batch",
    "schedule", "virtual_stages", "recompute", "zero",
)  # fmt: skip
_HEADS = {
    "microbatch_size": "mbs", "microbatches": "micro-b.", "virtual_stages": "V", "global_batch": "batch",
}  # fmt: skip
ASSUMED = "Taken for granted of the fastest (the report of each point has its own)"
# The most rows of the front in a text page; --json and --csv have all.
_MOST_FRONT = 20


def columns_of(outcome: Outcome) -> list[str]:
    """Returns the parts of the layout that a table shows: those that differ, except what follows from the
    rest.
    """
    varied = set(outcome.varied) - {"world", "gpus"}
    return [*(name for name in _FIRST if name in varied), *sorted(varied - {*_FIRST})]


def head_of(name: str) -> str:
    """Returns the head of the column of a part of the layout."""
    return _HEADS.get(name) or printable(name, 30)


def open_from(progress: SweepProgress, prunes: bool) -> float:
    """Returns a lower bound of the time of the points that a stopped sweep did not reach:
    `Outcome.open_from`.
    """
    if progress.total is None:
        return 0.0
    if progress.total <= progress.finished:
        return float("inf")
    return progress.least if prunes and progress.least is not None else 0.0


def remaining_lines(outcome: Outcome, progress: SweepProgress, prunes: bool) -> list[str]:
    """Returns how many points a stopped sweep did not reach, and what is known of them.

    prunes: whether points are left out, and come in the order of their lower bounds.
    """
    candidates = progress.candidates or 0
    if prunes and progress.total is None:
        return [
            f"{progress.checked} of {plural(candidates, 'layout')} were looked at, {progress.simulated} "
            "of these "
            "simulated: whether others are faster nobody knows"
        ]
    remaining_count = max((candidates if progress.total is None else progress.total) - progress.finished, 0)
    words = f"{plural(remaining_count, 'point')} {'was' if remaining_count == 1 else 'were'} not come to"
    groups = outcome.front.best
    if not prunes or progress.least is None or not groups:
        return (
            [f"{words}: of {'it' if remaining_count == 1 else 'them'} nothing is known"]
            if remaining_count
            else []
        )
    ratio = progress.least / max(measures(groups[0].point).time, math.ulp(0.0))
    if ratio >= 1:
        more = f"; each takes at least {100 * (ratio - 1):.1f} % longer" if ratio >= 1.0005 else ""
        return [f"{words}: none of them is faster than the fastest here{more}"] if remaining_count else []
    share = f"up to {max(100 * (1 - ratio), 0.1):.1f} %"
    return (
        [f"{words}: the fastest of them may take {share} less than the fastest here"]
        if remaining_count
        else []
    )


def text_page(
    outcome: Outcome,
    title: str,
    excluded: int = 0,
    last_lines: Sequence[str] = (),
    answers: Sequence[str] = (),
) -> str:
    """Returns the page as text: counts, answers, the fastest, the front, and sentences. last_lines: of
    `remaining_lines`; answers: of `Answers`.
    """
    counts = [*outcome.count_lines(excluded), *last_lines]
    lines = [f"{title}: {counts[0]}", *(f"  {line}" for line in counts[1:])]
    lines += ["", *answers] if answers else []
    front = outcome.front
    if not front.points:
        lines.append("Nothing that could be run fits: no table.")
        return "\n".join(lines) + "\n"
    common = [
        f"{label(name)} {format_value(value)}" for name, value in outcome.common().items() if name != "world"
    ]
    if common:
        lines += ["", f"All have {', '.join(common)}."]
    columns = columns_of(outcome)
    rule, families = front.rule, front.families()
    if rule.by:
        for family, groups in families.items():
            title = f"Fastest with {label(rule.by)} {format_value(family)}"
            lines += ["", title, *point_table(outcome, groups, columns)]
    else:
        lines += ["", f"Fastest {len(front.best)}", *point_table(outcome, front.best, columns)]
    listed_groups = [group for groups in families.values() for group in groups]
    best = {point.index for group in listed_groups for point in (group.point, *group.others)}
    others = group_equivalent(point for point in front.front if point.index not in best)
    names = ", ".join("GPUs" if name == "gpus" else name for name in rule.objectives)
    if others:
        lines += ["", f"Also on the front (no other is better in one of {names} and worse in none)"]
        lines += point_table(outcome, others[:_MOST_FRONT], columns)
        if len(others) > _MOST_FRONT:
            lines.append(f"  and {len(others) - _MOST_FRONT} more (--json has all)")
    lines += ["", f"* on the front of {names}"]
    visible_groups = [*listed_groups, *others[:_MOST_FRONT]]
    if any(group.point.is_tight for group in visible_groups):
        lines.append(f"! within {TIGHT_PERCENT} % of the memory of a GPU")
    equivalents_text = equivalent_words(visible_groups)
    lines += [equivalents_text] if equivalents_text else []
    lines += outcome.sentences()
    if outcome.assumed:
        lines += ["", f"{ASSUMED}:", *(f"  {assumption}" for assumption in outcome.assumed)]
    fastest = front.best[0].point
    lines += ["", "The fastest again, as a report and as a timeline:", f"  {fastest.command}"]
    lines.append(f"  {fastest.command.replace('wltui report', 'wltui', 1)}")
    return "\n".join(lines) + "\n"


def point_table(outcome: Outcome, groups: Sequence[EquivalentPoints], columns: Sequence[str]) -> list[str]:
    """Returns the rows of points under their heads, columns as wide as needed; equivalent points
    are one row.
    """
    rate = choose_measure(outcome.front.points)
    heads = [
        "",
        "step",
        rate.head if rate else "",
        "slower by",
        "best in",
        "memory",
        "GPUs",
        "$ a step",
        "equal",
    ]
    of_figures = len(heads)
    heads += map(head_of, columns)
    fastest = min(measures(point).time for point in outcome.front.points)
    rows = []
    for group in groups:
        point, others = group.point, group.others
        more = measures(point).time / fastest - 1 if fastest else 0.0
        rows.append([
            "*" if any(map(outcome.front.is_on_front, (point, *others))) else "",
            duration(point.step_time_ns or 0),
            "-" if rate is None or (value := rate.value(point)) is None else rate.text(value),
            f"+{100 * more:.1f} %" if more >= 0.0005 else "",
            wins_text(outcome, point),
            memory_text(point),
            str(point.gpus),
            "-" if point.cost is None else f"{point.cost:.4g}",
            f"+{len(others)}" if others else "",
            *(format_value(layout_value(point.layout, name)) for name in columns),
        ])  # fmt: skip
    keep = [
        column for column, head in enumerate(heads)
        if column >= of_figures or any(row[column] not in ("", "-") for row in rows)
    ]  # fmt: skip
    kept_columns = [
        # Words are aligned left, figures right.
        Column(
            heads[column],
            column >= of_figures and not all(row[column].replace(".", "").isdecimal() for row in rows),
        )
        for column in keep
    ]
    return format_table(kept_columns, [[row[column] for column in keep] for row in rows])


def wins_text(outcome: Outcome, point: Point) -> str:
    """Returns `9 of 10`: how often a row is the best under other conditions; "" for one that was not run."""
    robust = outcome.robustness
    return (
        ""
        if robust is None or point.index not in robust.wins
        else f"{robust.wins[point.index]} of {robust.conditions}"
    )


def memory_text(point: Point) -> str:
    """Returns what a rank of the fullest stage needs; with a mark where little of the GPU's is left."""
    if point.memory_peak_bytes is None:
        return "-"
    return byte_size(point.memory_peak_bytes) + (" !" if point.is_tight else "")


def json_values(
    outcome: Outcome, excluded: int = 0, rest: Sequence[str] = (), answers: Sequence[str] = ()
) -> dict[str, Any]:
    """Returns the page as JSON: counts, reasons, the best of each family, the front, the sentences with the
    answers first.
    """
    front = outcome.front
    families = front.families() or {None: []}
    return {
        "schema": "wltui.sweep-front/1",
        "points": outcome.total,
        "simulated": outcome.simulated,
        "do_not_fit": outcome.too_large,
        "excluded": excluded,
        "stopped": list(rest),
        "skipped": [
            {"reason": kind, "words": reason_words(kind, count), "points": count,
             "example": outcome.examples[kind, why][1]}
            for (kind, why), count in outcome.reasons.most_common()
        ],
        "objectives": list(front.rule.objectives),
        "by": front.rule.by or None,
        "best": [
            {"family": list(family) if isinstance(family, tuple) else family,
             "points": [asdict(group.point) for group in groups],
             "alike": [[point.point for point in group.others] for group in groups]}
            for family, groups in families.items()
        ],
        "front": [asdict(point) for point in front.front],
        "best_in": None if outcome.robustness is None else {
            "runs": outcome.robustness.conditions,
            "points": {str(index): wins for index, wins in outcome.robustness.wins.items()},
        },
        "sentences": [*answers, *outcome.sentences()],
        "assumed": outcome.assumed,
    }  # fmt: skip


_CSV = ("point", "step_time_ns", "tokens_per_s", "memory_peak_bytes", "memory_limit_bytes", "gpus", "cost",
        "at_least_ns", "skipped", "command")  # fmt: skip


class CsvPage:
    """All points as CSV, a line each as they arrive: figures, then the layout. names: its columns."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)

    def head(self) -> str:
        """Returns the line of the heads."""
        return _csv_line([*_CSV, *self.names])

    def line(self, point: Point) -> str:
        """Returns the line of a point; values that it does not have are empty."""
        plain = [getattr(point, name) for name in _CSV]
        return _csv_line([*plain, *(point.layout.get(name) for name in self.names)])


def _csv_line(cells: Sequence[Any]) -> str:
    return ",".join(map(_csv_cell, cells)) + "\n"


def _csv_cell(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool | list | tuple):
        return field(format_value(cell))
    return field(printable(cell, len(cell))) if isinstance(cell, str) else str(cell)
