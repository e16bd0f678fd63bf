"""The report of a measured run as a page of text."""

from __future__ import annotations

from simcore.diagnostics import printable
from simcore.replay import MeasuredResults
from simcore.replay.accounts import ACCOUNTS, FIRST_EXPOSED, WAIT, RankAccounts
from simcore.report.as_text import GLYPHS, GLYPHS_ASCII, bar_text, diagnostics_text
from simcore.report.bandwidth_text import bandwidth_lines
from simcore.report.measured_replay_text import measured_figure, results_parts
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
# Of profiler traces: compute of which nothing tells what it is for, and copies of memory.
_KERNEL, _COPY = "k", "c"
_HEADINGS = {"expert dp": "exp. dp", "optimizer": "opt.", "embedding": "emb."}


def measured_text(
    results: MeasuredResults, ascii_only: bool = False, with_what_if: bool = False, every_layer: bool = False
) -> str:
    """The page: what was read, the step time, where it goes, who waits, operations, diagnostics.

    with_what_if: also what the step would take with one thing changed. every_layer: all operations, however
    many there are.
    """
    run = results.run
    parts = [_head(results)]
    if run.timed:
        parts.append(_ranks(results, ascii_only))
        parts += results_parts(results, results.what_if() if with_what_if else None)
    else:
        parts.append("\n".join([*order_lines(run, _WIDTH), ""]))
    parts.append("\n".join([*op_lines(results, every_layer), ""]))
    if run.of_devices and (lines := bandwidth_lines(results, every_layer)):
        parts.append("\n".join([*lines, ""]))
    parts.append(diagnostics_text(results.diagnostics, run.path))
    return "\n".join(parts)


def _head(results: MeasuredResults) -> str:
    run = results.run
    subs = f"; {plural(run.subs, 'sub-operation')} inside them" if run.subs else ""
    batches = f", {plural(run.microbatches, 'micro-batch')}" if run.microbatches else ""
    facts = [
        ("file", printable(run.path)),
        ("format", _format(results)),
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


def _format(results: MeasuredResults) -> str:
    run = results.run
    if run.recorded is None:
        return f"rank-trace, {'Megatron' if run.unit == 'rank' else 'Megatron schedule plan'}"
    who = "PyTorch profiler (Kineto)" if run.format == "kineto" else "Nsight Systems"
    steps = len(run.recorded.steps)
    if run.recorded.step is None:
        return f"{who}; all that was recorded" + (f", {plural(steps, 'step')}" if steps else "")
    return f"{who}; step {run.recorded.step} of {plural(steps, 'step')}"


def _ranks(results: MeasuredResults, ascii_only: bool) -> str:
    """Each rank's accounts: waiting apart from what is waited for, the sum of a line is the step."""
    step = results.step_time_ns
    unit_ns, unit = column_unit(step)
    accounts = results.accounts
    shown = [number for number in range(len(ACCOUNTS)) if any(one.total_ns[number] for one in accounts)]
    names = [ACCOUNTS[number].removeprefix("compute ").removeprefix("exposed ") for number in shown]
    columns = [Column("rank"), Column("stage"), Column("", left=True)]
    columns += [Column(_HEADINGS.get(name, name)) for name in names]
    columns.append(Column("computing"))
    rows = []
    for rank, one in zip(results.measured.ranks[:_RANKS], accounts, strict=False):
        row = [str(rank.number), "-" if rank.stage is None else str(rank.stage), _bar(one, step, ascii_only)]
        row += [measured_figure(one.total_ns[number], unit_ns) for number in shown]
        rows.append([*row, f"{percent(one.busy_ns, step)} %"])
    glyphs = GLYPHS_ASCII if ascii_only else GLYPHS
    legend = (
        f"{glyphs['fwd']} forward  {glyphs['bwd']} backward  {glyphs['opt']} optimizer  {glyphs['exposed']} "
        f"exposed  {_kinds_of_devices(results)}{glyphs['wait']} wait  {glyphs['bubble']} bubble  "
        f"{glyphs['host']} host  (blank) idle"
    )
    left = len(accounts) - len(rows)
    more = [f"  and {plural(left, 'rank')} more (--json has all)"] if left > 0 else []
    kinds = [name for number, name in zip(shown, names, strict=True) if FIRST_EXPOSED <= number < WAIT]
    exposed = f"; {', '.join(kinds)}: exposed communication" if kinds else ""
    exposed = exposed.replace(
        ", copy: exposed communication", ": exposed communication; copy: beside neither"
    )
    exposed = exposed.replace("copy: exposed communication", "copy: beside no compute")
    how = "as replayed" if results.scales is not None else "as measured"
    title = f"Where the step goes, {unit} on each rank, {how}{exposed}"
    words = (
        "host: neither compute nor communication; idle: host gaps, before the first operation, after the last"
    )
    return "\n".join([title, *table(columns, rows), *more, f"  {legend}", f"  {words}", ""])


def _kinds_of_devices(results: MeasuredResults) -> str:
    return f"{_KERNEL} kernel  {_COPY} copy  " if results.measured.of_devices else ""


def _bar(accounts: RankAccounts, step: int, ascii_only: bool) -> str:
    """A rank's accounts as one bar, the whole step wide."""
    glyphs = GLYPHS_ASCII if ascii_only else GLYPHS
    compute, copies = accounts.compute_ns(), accounts.ns("exposed copy")
    shares = (
        (glyphs["fwd"], compute["forward"]),
        (glyphs["bwd"], compute["backward"]),
        (glyphs["opt"], compute["optimizer"]),
        (_KERNEL, compute.get("kernel", 0)),
        (glyphs["exposed"], sum(accounts.total_ns[FIRST_EXPOSED:WAIT]) - copies),
        (_COPY, copies),
        (glyphs["wait"], accounts.ns("wait")),
        (glyphs["bubble"], accounts.ns("bubble")),
        (glyphs["host"], accounts.ns("host")),
        (glyphs["idle"], accounts.ns("idle")),
    )
    return bar_text(shares, step, _BAR_CELLS)
