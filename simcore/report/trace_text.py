"""The report of execution traces as a page of text."""

from __future__ import annotations

import textwrap

from simcore.diagnostics import printable
from simcore.executing.accounts import ACCOUNTS
from simcore.executing.executed import words_of
from simcore.executing.results import TraceResults
from simcore.report import diagnostics, links
from simcore.report.section import Column, PageAsked, table
from simcore.run.findings import path_sums
from simcore.units import byte_size, column_unit, duration, percent, plural

_RANKS, _NAMES, _GROUPS, _KNOBS = 32, 20, 16, 12
_WIDTH = 108


def trace_text(
    results: TraceResults, ascii_only: bool = False, with_what_if: bool = False, every_layer: bool = False
) -> str:
    """The page: what ran, in words, ranks, nodes by name, groups, links, critical path, diagnostics.

    every_layer: all names of nodes. with_what_if: also what the step would take with one thing changed.
    """
    parts = [_head(results), _words(results), _ranks(results), _names(results, every_layer), _groups(results)]
    if results.links:
        parts.append("\n".join([*links.lines(results, PageAsked(every_layer=every_layer)), ""]))
    parts.append(_path(results))
    if with_what_if:
        parts.append(_what_if(results))
    parts.append("\n".join([*diagnostics.lines(results, PageAsked()), ""]))
    return "\n".join(part for part in parts if part)


def _head(results: TraceResults) -> str:
    one = results.executed
    dims = " x ".join(dim.text() for dim in one.cluster.dims)
    facts = [
        ("file", printable(results.path)),
        ("format", f"execution traces (Chakra), schema {one.traces.schema}"),
        ("rules", words_of(one)),
        ("read", results.counted()),
        ("network", f"{one.parameters.network}: {dims}"),
    ]
    lines = [f"Step time  {duration(results.step_time_ns)} ({results.step_time_ns} ns)", ""]
    return "\n".join(lines + [f"  {name:<10} {text}" for name, text in facts]) + "\n"


def _words(results: TraceResults) -> str:
    lines = []
    for sentence in results.words:
        lines += textwrap.wrap(
            sentence, _WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
        )
    return "\n".join(["In words", *lines, ""])


def _ranks(results: TraceResults) -> str:
    unit_ns, unit = column_unit(results.step_time_ns)
    accounts = results.accounts
    shown = [number for number in range(len(ACCOUNTS)) if any(one.total_ns[number] for one in accounts)]
    names = [ACCOUNTS[number].removeprefix("compute ").removeprefix("exposed ") for number in shown]
    columns = [Column("rank"), Column("end"), Column("exposed"), *(Column(name) for name in names)]
    rows = []
    for (rank, end, exposed), one in list(zip(results.executed.ranks, accounts, strict=True))[:_RANKS]:
        # ASTRA-sim's exposed time is a number of 64 bits without a sign: it may wrap.
        shown_exposed = (
            f"{exposed / unit_ns:.3f}" if exposed < 1 << 63 else f"-{((1 << 64) - exposed) / unit_ns:.3f}"
        )
        row = [str(rank), f"{end / unit_ns:.3f}", shown_exposed]
        rows.append([*row, *(f"{one.total_ns[number] / unit_ns:.3f}" for number in shown)])
    left = len(accounts) - len(rows)
    more = [f"  and {plural(left, 'rank')} more (--json has all)"] if left > 0 else []
    what = (
        "exposed: end less GPU compute, as ASTRA-sim prints it"
        if results.is_astra
        else "exposed: end less GPU compute"
    )
    return "\n".join(
        [f"Ranks, {unit}; {what}; then each nanosecond of the step once", *table(columns, rows), *more, ""]
    )


def _names(results: TraceResults, every: bool) -> str:
    unit_ns, unit = column_unit(results.step_time_ns)
    columns = [Column("nodes", left=True), Column("kind", left=True), Column("count"), Column("time a rank"),
               Column("waits"), Column("critical"), Column("slack"), Column("% of step")]  # fmt: skip
    count = len(results.ranks)
    uses = results.name_table if every else results.name_table[:_NAMES]

    def mean(ns: int) -> str:
        return f"{ns / count / unit_ns:.3f}"

    rows = [
        [printable(use.name, 40), use.what, str(use.nodes), mean(use.own_ns), mean(use.waits_ns),
         f"{use.critical_ns / unit_ns:.3f}", f"{use.slack_ns / unit_ns:.3f}",
         percent(use.critical_ns, results.step_time_ns)]
        for use in uses
    ]  # fmt: skip
    left = len(results.name_table) - len(rows)
    more = [f"  and {plural(left, 'name')} more (--all-layers)"] if left else []
    title = (
        f"Nodes by name (# for a number), {unit}; time and waiting the mean of a rank, % of step: of the "
        f"critical path"
    )
    return "\n".join([title, *table(columns, rows), *more, ""])


def _groups(results: TraceResults) -> str:
    if not results.group_table:
        return ""
    unit_ns, unit = column_unit(results.step_time_ns)
    columns = [Column("group", left=True), Column("ranks", left=True), Column("collectives"), Column("bytes"),
               Column("time"), Column("waits")]  # fmt: skip
    rows = [
        [printable(name, 30), printable(ranks, 30), str(count), byte_size(size), f"{own / unit_ns:.3f}",
         f"{wait / unit_ns:.3f}"]
        for name, ranks, count, size, own, wait in results.group_table[:_GROUPS]
    ]  # fmt: skip
    left = len(results.group_table) - len(rows)
    more = [f"  and {plural(left, 'group')} more (--json has all)"] if left else []
    return "\n".join(
        [
            f"Groups, {unit}, summed over their ranks; bytes as comm_size has them",
            *table(columns, rows),
            *more,
            "",
        ]
    )


def _path(results: TraceResults) -> str:
    step = results.step_time_ns
    lines = ["Critical path"]
    for by in ("kind", "group", "op", "rank"):
        sums = path_sums(results, by)[:4]
        words = ", ".join(f"{printable(part, 40)} {percent(ns, step)} %" for part, ns in sums)
        lines.append(f"  by {by:<6} {words}")
    return "\n".join([*lines, ""])


def _what_if(results: TraceResults) -> str:
    unit_ns, unit = column_unit(results.step_time_ns)
    columns = [Column("what", left=True), Column("free"), Column("10 % less")]
    rows = [
        [printable(one.name, 50), f"{(one.free_ns or 0) / unit_ns:.3f}", f"{one.better10_ns / unit_ns:.3f}"]
        for one in results.what_if()[:_KNOBS]
    ]
    return "\n".join(
        [f"What if, step time in {unit}; the order of all nodes kept", *table(columns, rows), ""]
    )
