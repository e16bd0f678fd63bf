"""A run as HTML for a notebook: its verdict, where the time goes, a small timeline."""

from __future__ import annotations

from html import escape

from simcore.diagnostics import printable
from simcore.trace.lane_spans import KINDS
from simcore.trace.lanes import cell_kind
from simcore.trace.run import Run, mean_ns
from simcore.trace.track import Track
from simcore.units import duration, percent

# Lanes and columns of the small timeline.
_LANES, _COLUMNS, _HEIGHT = 8, 600, 12
_COLORS = {
    "fwd": "#4c9f70", "bwd": "#2f6f9f", "opt": "#8a6fb0", "recompute": "#9bbf6b", "idle": "#eeeeee",
    "wait": "#d9534f", "bubble": "#bbbbbb", "host": "#c9a66b", "copy": "#7fb3b3", "kernel": "#4c9f70",
}  # fmt: skip
_COMMUNICATION = "#e08e45"


def run_html(run: Run) -> str:
    """Returns the run as a fragment of HTML; of an order without times only its sentences."""
    title = f"<b>{escape(printable(run.path, 60))}</b>, {run.figures.kind}"
    verdict = "".join(f"<p>{escape(words)}</p>" for words in run.figures.words[:1])
    if not run.timed or not run.step_time_ns:
        return f"<div>{title}{verdict}</div>"
    step = run.step_time_ns
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td style='text-align:right'>{duration(ns)}</td>"
        f"<td style='text-align:right'>{percent(ns, step)} %</td></tr>"
        for name, ns in mean_ns(run).items()
        if ns
    )
    accounts = f"<table><tr><th>where the time goes</th><th>ns</th><th>of the step</th></tr>{rows}</table>"
    return f"<div>{title}: step {duration(step)}{verdict}{_timeline(run)}{accounts}</div>"


def _timeline(run: Run) -> str:
    """Returns the timeline: a lane for each track, each column in the colour of what takes most of it."""
    tracks = list(run.tracks)[:_LANES]
    lanes = "".join(_lane(run, track, at) for at, track in enumerate(tracks))
    height = _HEIGHT * len(tracks)
    left = len(run.tracks) - len(tracks)
    more = f"<div>{left} more lanes</div>" if left > 0 else ""
    return f"<svg width='{_COLUMNS}' height='{height}' role='img'>{lanes}</svg>{more}"


def _lane(run: Run, track: Track, at: int) -> str:
    accounts, step = run.accounts[track.track_id], run.step_time_ns
    kinds = [cell_kind(account.split(" ", 1)[-1]) for account in accounts.of.all]
    # ns of each kind in each column.
    columns: list[dict[int, int]] = [{} for _ in range(_COLUMNS)]
    for account, start, end in zip(accounts.account, accounts.edge, accounts.edge[1:], strict=False):
        first, last = start * _COLUMNS // step, (end - 1) * _COLUMNS // step
        for column in range(first, last + 1):
            inside = min(end, (column + 1) * step // _COLUMNS) - max(start, column * step // _COLUMNS)
            of_column = columns[min(column, _COLUMNS - 1)]
            of_column[kinds[account]] = of_column.get(kinds[account], 0) + inside
    most = [max(of, key=lambda kind: of[kind]) if of else 0 for of in columns]
    parts, first_column = [], 0
    for column in range(1, _COLUMNS + 1):
        if column == _COLUMNS or most[column] != most[first_column]:
            color = _COLORS.get(KINDS[most[first_column]], _COMMUNICATION)
            parts.append(
                f"<rect x='{first_column}' y='{at * _HEIGHT}' width='{column - first_column}' "
                f"height='{_HEIGHT - 2}' "
                f"fill='{color}'/>"
            )
            first_column = column
    return "".join(parts)
