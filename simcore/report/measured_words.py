"""A measured run in words, for the report and for the screen, and its operations as a table of the report."""

from __future__ import annotations

import textwrap

from simcore.diagnostics import printable
from simcore.measured import MeasuredRun
from simcore.measured.kernel_names import shown_name
from simcore.measured.summary import OpFigures, op_figures, sub_figures
from simcore.replay import MeasuredResults
from simcore.replay.scales import Scales
from simcore.replay.waits import Wait, waits_by_item
from simcore.report.table import Column, table
from simcore.units import duration, plural

_NAME_CELLS = 34
# Nobody reads more rows than these; the first are the ones that take most.
_MOST_ROWS = 60

# Rank -> item of its lanes -> its waits; None where nobody is known to wait.
_Waits = dict[int, dict[int, list[Wait]]] | None


def step_words(run: MeasuredRun) -> str:
    """The step time, or that there is none."""
    return duration(run.step_time_ns) if run.timed else "not timed"


def order_title(run: MeasuredRun) -> str:
    """What a run without times is: a plan, or a trace that nobody timed."""
    return f"{'Planned order' if run.unit == 'stage' else 'Order of the operations'}, no times"


def ranks_words(run: MeasuredRun) -> str:
    """How many ranks and of how many: `8 ranks = tp 2 x dp 1 x pp 4`, `2 of 8 ranks`, `2 stages`."""
    count, degrees = len(run.ranks), run.degrees
    if run.unit != "rank":
        return plural(count, run.unit)
    of = "" if degrees.world in (None, count) else f"{count} of "
    words = of + plural(degrees.world or count, "rank")
    known = (("tp", degrees.tp), ("dp", degrees.dp), ("pp", degrees.pp))
    factors = [f"{name} {degree}" for name, degree in known if degree is not None]
    if len(factors) == len(known):
        return f"{words} = {' x '.join(factors)}"
    return ", ".join([words, *factors])


def replay_words(scales: Scales | None, room: int) -> str:
    """What a replay changes, in about `room` cells: `compute x2, rank 7 x0.5 and 3 more`; "" for nothing."""
    changes = [] if scales is None else scales.changes()
    shown = changes[:1]
    for change in changes[1:]:
        if len(", ".join([*shown, change])) > room:
            break
        shown.append(change)
    left = len(changes) - len(shown)
    return ", ".join(shown) + (f" and {left} more" if left else "")


def clock_words(run: MeasuredRun) -> str:
    """What the ranks' times have in common."""
    if not run.timed:
        return "no times, the order alone"
    if run.replayed:
        return "replayed together"
    if len(run.ranks) == 1:
        return "from the start of its first operation"
    return "on one clock" if run.concurrent else "not concurrent: each from its own start"


def order_lines(run: MeasuredRun, width: int) -> list[str]:
    """The operations of each stage or rank in the order of the file, each with its micro-batch."""
    lines = ["Order of the operations, with their micro-batches"]
    for rank in run.ranks:
        ops = rank.ops
        words = [
            printable(name, _NAME_CELLS) + (f" {batch}" if batch >= 0 else "")
            for name, batch in zip(ops.name[:_MOST_ROWS], ops.batch, strict=False)
        ]
        left = len(ops) - len(words)
        text = ", ".join(words) + (f", and {left} more" if left > 0 else "")
        head = f"  {run.unit} {rank.number}  "
        lines += textwrap.wrap(text, width, initial_indent=head, subsequent_indent=" " * len(head))
    return lines


def op_lines(results: MeasuredResults, every: bool = False) -> list[str]:
    """The operations and sub-operations as tables of text, the ones that take most first.

    Where ranks wait for others the column `waits` has how much of the longest is that. every: however many.
    """
    run = results.run
    waits: _Waits = None
    if run.timed and results.waiting:
        waits = {rank.number: waits_by_item(results, index) for index, rank in enumerate(run.ranks)}
    unit = ", ms" if run.timed else ""
    unit += "; waits: part of the most" if waits is not None else ""
    lines = [f"Operations of all ranks, by name{unit}"]
    lines += _table(run, sorted(op_figures(run), key=_most_total), waits, every)
    subs = sorted(sub_figures(run), key=_most_total)
    if subs:
        lines += ["", f"Sub-operations, inside the operations above{unit}"]
        lines += _table(run, subs, waits, every)
    return lines


def _most_total(figures: OpFigures) -> int:
    return -figures.total_ns


def _table(run: MeasuredRun, figures: list[OpFigures], waits: _Waits, every: bool) -> list[str]:
    columns = [Column("operation", left=True), Column("kind", left=True), Column("count")]
    if run.timed:
        columns += [Column("mean"), Column("least"), Column("most")]
        columns += [] if waits is None else [Column("waits")]
        columns.append(Column("most is on", left=True))
    rows = []
    for one in figures if every else figures[:_MOST_ROWS]:
        name = printable(
            shown_name(one.name) if one.parent is None else f"{one.name} in {one.parent}", _NAME_CELLS
        )
        row = [name, one.category, str(one.count)]
        if run.timed and one.measured:
            batch = f", micro-batch {one.most_batch}" if one.most_batch >= 0 else ""
            row += [_ms(one.total_ns / one.measured), _ms(one.least_ns), _ms(one.most_ns)]
            if waits is not None:
                row.append(_ms(sum(wait.ns for wait in waits[one.most_rank].get(one.most_item, ()))))
            row.append(f"{run.unit} {one.most_rank}{batch}")
        elif run.timed:
            row += [*["-"] * (3 if waits is None else 4), "no duration"]
        rows.append(row)
    left = len(figures) - len(rows)
    return table(columns, rows) + ([f"  and {left} more (--all-layers has all)"] if left > 0 else [])


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.2f}"
