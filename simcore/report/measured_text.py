"""The report of a measured run as a page of text."""

from __future__ import annotations

from simcore.diagnostics import printable
from simcore.measured import MeasuredRun
from simcore.measured.summary import RankTime, rank_times
from simcore.measured.vocabulary import CATEGORIES, COMPUTE
from simcore.replay import MeasuredResults
from simcore.replay.what_if import Knob
from simcore.report.as_text import GLYPHS, GLYPHS_ASCII, bar_text, diagnostics_text
from simcore.report.measured_replay_text import results_parts
from simcore.report.measured_words import (
    clock_words,
    op_lines,
    order_lines,
    order_title,
    ranks_words,
    replay_words,
    step_words,
)
from simcore.report.table import Column, table
from simcore.units import change_percent, column_unit, duration, percent, plural, signed

_RANKS = 64
_BAR_CELLS = 14
_WIDTH = 110
# Cells for what a replay changes.
_CHANGES = 80
_HEADINGS = {"expert dp": "exp. dp", "gap": "gaps"}
_GLYPH = {
    "forward": "fwd", "backward": "bwd", "optimizer": "opt", "host": "host", "gap": "idle", "outside": "idle",
}  # fmt: skip


def measured_text(results: MeasuredResults, ascii_only: bool = False, knobs: list[Knob] | None = None) -> str:
    """The page: what was read, the step time, where it goes, who waits, operations, diagnostics.

    knobs: what-if questions with their answers, None if they were not asked.
    """
    run = results.run
    parts = [_head(results)]
    if run.timed:
        parts.append(_ranks(run, ascii_only))
        parts += results_parts(results, knobs)
    else:
        parts.append("\n".join([*order_lines(run, _WIDTH), ""]))
    parts += ["\n".join([*op_lines(results), ""]), diagnostics_text(results.diagnostics, run.path)]
    return "\n".join(parts)


def _head(results: MeasuredResults) -> str:
    run = results.run
    subs = f"; {plural(run.subs, 'sub-operation')} inside them" if run.subs else ""
    batches = f", {plural(run.microbatches, 'micro-batch')}" if run.microbatches else ""
    what = "Megatron" if run.unit == "rank" else "Megatron schedule plan"
    facts = [
        ("file", printable(run.path)),
        ("format", f"rank-trace, {what}"),
        *([("run", run.stamp)] if run.stamp is not None else []),
        ("ranks", f"{ranks_words(run)}; {clock_words(run)}"),
        ("read", f"{plural(run.ops, 'operation')}{batches}{subs}"),
    ]
    if run.replayed:
        measured = results.measured.step_time_ns
        by = change_percent(measured, run.step_time_ns) or signed(run.step_time_ns)
        facts.append(("measured", f"{duration(measured)}; the replay is {by} from it"))
        changes = replay_words(results.scales, _CHANGES)
        facts += [("changed", changes)] if changes else []
    title = f"{'Replayed' if run.replayed else 'Measured'} step time  {step_words(run)}"
    lines = [title if run.timed else order_title(run), ""]
    return "\n".join(lines + [f"  {name:<10} {text}" for name, text in facts]) + "\n"


def _ranks(run: MeasuredRun, ascii_only: bool) -> str:
    step = run.step_time_ns
    unit_ns, unit = column_unit(step)
    # A ms of the file has two decimals: no more are measured.
    decimals = {10**9: 3, 10**6: 2, 10**3: 1}.get(unit_ns, 0)
    times = rank_times(run)
    shown = [category for category in CATEGORIES if any(one.ns[category] for one in times)]
    headings = {category: _HEADINGS.get(category, category) for category in shown}
    columns = [Column("rank"), Column("stage"), Column("", left=True)]
    columns += [Column(headings[category]) for category in shown]
    columns.append(Column("computing"))
    rows = []
    for one in times[:_RANKS]:
        row = [str(one.number), "-" if one.stage is None else str(one.stage), _bar(one, step, ascii_only)]
        row += [f"{one.ns[category] / unit_ns:.{decimals}f}" for category in shown]
        rows.append([*row, f"{percent(one.computing_ns, step)} %"])
    glyphs = GLYPHS_ASCII if ascii_only else GLYPHS
    legend = (
        f"{glyphs['fwd']} forward  {glyphs['bwd']} backward  {glyphs['opt']} optimizer  "
        f"{glyphs['exposed']} communication  {glyphs['host']} host  (blank) no operation"
    )
    left = len(times) - len(rows)
    more = [f"  and {plural(left, 'rank')} more (--json has all)"] if left > 0 else []
    title = f"Where the step goes, {unit} on each rank, as {'replayed' if run.replayed else 'measured'}"
    words = [
        "  communication includes waiting for the others; host: loading and other work that is no compute",
        "  gaps: the host between operations; outside: before the first and after the last operation",
    ]
    return "\n".join([title, *table(columns, rows), *more, f"  {legend}", *words, ""])


def _bar(time: RankTime, step: int, ascii_only: bool) -> str:
    """A rank's time by category as one bar, the whole step wide."""
    glyphs = GLYPHS_ASCII if ascii_only else GLYPHS
    order = [*COMPUTE, *(category for category in CATEGORIES if category not in COMPUTE)]
    parts = ((glyphs[_GLYPH.get(category, "exposed")], time.ns[category]) for category in order)
    return bar_text(parts, step, _BAR_CELLS)
