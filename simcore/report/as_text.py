"""The report as a page of text, 80 columns or a little more, that a person reads from the top."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Sequence

from simcore.analysis import Results
from simcore.analysis.accounts import BUBBLE, EXPOSED_KINDS, FIRST_EXPOSED, IDLE, WAIT, Accounts
from simcore.diagnostics import Diagnostic, printable
from simcore.report.layers import all_layers, expensive_layers
from simcore.report.path_text import critical_path_text
from simcore.report.sentences import sentence_lines
from simcore.report.table import Column, table
from simcore.report.usage import usage_parts
from simcore.report.words import layout_words, schedule_words, structure_words
from simcore.units import column_unit, digits, duration, in_unit, percent, plural

_WAITS = 5
_CLASSES = 64
_WIDTH = 110
_BAR_CELLS = 24
# One glyph for each part of a bar, as on the timeline: the glyph says what a colour would.
GLYPHS = {
    "fwd": "▄",
    "bwd": "█",
    "opt": "▇",
    "exposed": "▌",
    "wait": "─",
    "bubble": "▁",
    "host": "▎",
    "idle": " ",
}
GLYPHS_ASCII = {
    "fwd": "f",
    "bwd": "b",
    "opt": "o",
    "exposed": "x",
    "wait": "-",
    "bubble": ".",
    "host": "h",
    "idle": " ",
}


def text_report(
    results: Results, ascii_only: bool = False, with_what_if: bool = False, every_layer: bool = False
) -> str:
    """The page: what was read, the step time, where it goes, the dearest layers or all rows, diagnostics.

    with_what_if: also what the step would take with one thing cheaper, which simulates many times.
    """
    parts = [
        _head(results),
        _stages(results, ascii_only),
        *usage_parts(results),
        *_waiting(results),
        *_simai(results),
        all_layers(results) if every_layer else expensive_layers(results),
        critical_path_text(results),
        *(_what_if(results) if with_what_if else ()),
        diagnostics_text(results.simulation.diagnostics),
    ]
    return "\n".join(parts)


def _head(results: Results) -> str:
    simulation = results.simulation
    workload, timeline = simulation.workload, simulation.timeline
    program = timeline.program
    declared = (
        "" if workload.declared_rows in (None, len(workload)) else f", {workload.declared_rows} declared"
    )
    schedule = schedule_words(program)
    if program.virtual_stages > 1:
        schedule += f", {program.virtual_stages} virtual stages"
    facts = [
        ("file", printable(workload.path)),
        ("format", f"{workload.format}, {printable(workload.policy)}"),
        ("rows", f"{len(workload)}{declared}: {structure_words(simulation)}"),
        ("ranks", layout_words(simulation.layout)),
        ("schedule", schedule),
        ("cluster", f"{simulation.network.words()}; {printable(simulation.parameters.network)}"),
        (
            "simulated",
            f"{digits(timeline.ops_simulated)} ops in {plural(len(timeline.classes), 'rank class')}, "
            f"for {digits(timeline.spans)} spans of all ranks",
        ),
    ]
    lines = [*_step_lines(results), "", *sentence_lines(results)]
    megatron = results.megatron_step_ns
    if megatron is not None:
        facts.append(
            (
                "layout",
                "uniform: every stage runs all rows, the embedding and the loss too; "
                f"--stage-layout megatron: {duration(megatron)}",
            )
        )
    lines += [f"  {name:<10} {text}" for name, text in facts]
    return "\n".join(lines) + "\n"


def _step_lines(results: Results) -> list[str]:
    """The step time; of several steps that of all, and what a further one adds."""
    total, steady = duration(results.simulation.step_time_ns), results.steady_step_ns
    if steady is None:
        return [f"Step time  {total}"]
    steps = results.simulation.program.steps
    return [
        f"Step time  {duration(steady)} once it runs: the end of step {steps} less that of step {steps - 1}",
        f"           {total} for all {steps} steps: the figures below are of them together, as one step",
    ]


def _stages(results: Results, ascii_only: bool) -> str:
    simulation = results.simulation
    step = simulation.step_time_ns
    unit_ns, unit = column_unit(step)
    classes = simulation.timeline.classes
    kinds = [kind for kind in EXPOSED_KINDS if any(found.exposed_ns()[kind] for found in results.accounts)]
    waits = any(found.wait_ns for found in results.accounts)
    columns = [Column("stage"), Column("ranks", left=True), Column("", left=True), Column("compute")]
    columns += [Column(kind) for kind in kinds]
    columns += [Column("wait")] if waits else []
    columns += [Column("bubble"), Column("idle"), Column("computing")]

    rows = []
    for rank_class, accounts in list(zip(classes, results.accounts, strict=True))[:_CLASSES]:
        exposed = accounts.exposed_ns()
        row = [str(rank_class.stage), _short(rank_class.ranks.text(), 14), _bar(accounts, step, ascii_only)]
        row.append(in_unit(accounts.busy_ns, unit_ns))
        row += [in_unit(exposed[kind], unit_ns) for kind in kinds]
        row += [in_unit(accounts.wait_ns, unit_ns)] if waits else []
        row += [in_unit(accounts.bubble_ns, unit_ns), in_unit(accounts.idle_ns, unit_ns)]
        row.append(percent(accounts.busy_ns, step) + " %")
        rows.append(row)
    glyphs = GLYPHS_ASCII if ascii_only else GLYPHS
    legend = (
        f"{glyphs['fwd']} forward  {glyphs['bwd']} backward  {glyphs['opt']} optimizer  "
        f"{glyphs['exposed']} exposed  {glyphs['wait']} wait  {glyphs['bubble']} bubble  (blank) idle"
    )
    exposed_words = f"; {', '.join(kinds)}: exposed communication" if kinds else ""
    title = f"Where the step goes, {unit} on each rank{exposed_words}"
    left = len(classes) - len(rows)
    more = [f"  and {left} more rank classes (--json has all)"] if left > 0 else []
    return "\n".join([title, *table(columns, rows), *more, f"  {legend}", ""])


def _waiting(results: Results) -> list[str]:
    """Who waits for whom in collectives, the longest waits; nothing where nobody does."""
    classes = results.simulation.timeline.classes
    step = results.simulation.step_time_ns
    found = results.waiting
    if not found:
        return []
    lines = ["Who waits for whom, in collectives"]
    for one in found[:_WAITS]:
        early, late = (_ranks(classes[number].ranks.text()) for number in (one.early, one.late))
        verb = "wait" if len(classes[one.early].ranks) > 1 else "waits"
        lines.append(
            f"  {early} {verb} {duration(one.ns)} ({percent(one.ns, step)} %) for {late} ({one.kind})"
        )
    left = len(found) - _WAITS
    return ["\n".join([*lines, *([f"  and {left} shorter waits"] if left > 0 else []), ""])]


def _what_if(results: Results) -> list[str]:
    # Imported here: the common report has no use for it.
    from simcore.report.what_if_text import what_if_text

    return [what_if_text(results)]


def _simai(results: Results) -> list[str]:
    """SimAI's own estimate beside the step time; nothing unless the network is one of SimAI's."""
    found = results.simai_estimate
    if found is None:
        return []
    total = round(found.total_us * 1000)
    step = results.simulation.step_time_ns
    ratio = f", {total / step:.3f} x the step time" if step else ""
    from simcore.report.estimate import estimate_lines

    lines = [
        f"SimAI's own estimate  {duration(total)}{ratio}",
        "  all rows added up, without a schedule: no slow ranks, no waits, each layer a virtual stage",
        *estimate_lines(results),
    ]
    return ["\n".join([*lines, ""])]


def _ranks(text: str) -> str:
    return f"rank {text}" if text.isdigit() else f"ranks {_short(text, 60)}"


def _bar(accounts: Accounts, step: int, ascii_only: bool) -> str:
    """A rank's accounts as one bar, the whole step wide."""
    glyphs = GLYPHS_ASCII if ascii_only else GLYPHS
    compute = accounts.compute_ns()
    shares = (
        (glyphs["fwd"], compute["fwd"] + compute["recompute"]),
        (glyphs["bwd"], compute["ig"] + compute["wg"]),
        (glyphs["opt"], compute["opt"]),
        (glyphs["exposed"], sum(accounts.total_ns[FIRST_EXPOSED:WAIT])),
        (glyphs["wait"], accounts.total_ns[WAIT]),
        (glyphs["bubble"], accounts.total_ns[BUBBLE]),
        (glyphs["idle"], accounts.total_ns[IDLE]),
    )
    return bar_text(shares, step, _BAR_CELLS)


def bar_text(parts: Iterable[tuple[str, int]], whole: int, width: int) -> str:
    """(glyph, ns) beside each other on `width` cells that stand for `whole` ns; a part ends at the cell that
    is nearest to where it does, so that a short one may have none.
    """
    bar, done = "", 0
    for glyph, ns in parts:
        done += ns
        bar += glyph * (round(width * done / whole) - len(bar) if whole else 0)
    return bar.ljust(width)


def diagnostics_text(found: Sequence[Diagnostic], path: str | None = None) -> str:
    """Diagnostics with their places; in a run of many files those of others than `path` name theirs."""
    if not found:
        return "Diagnostics: none\n"
    counts = [
        (severity, sum(one.severity == severity for one in found))
        for severity in ("error", "warning", "note")
    ]
    words = ", ".join(f"{count} {severity}{'s' if count > 1 else ''}" for severity, count in counts if count)
    return "\n".join([f"Diagnostics: {words}", *(_diagnostic(one, path) for one in found), ""])


def _diagnostic(found: Diagnostic, path: str | None) -> str:
    place = f"line {found.line}" if found.line is not None else "run"
    if found.line is not None and found.column is not None:
        place += f", column {found.column}"
    first = f"  {found.severity:<8} {place:<20} "
    of_file = (
        "" if path is None or found.file in ("", path) else f"{printable(os.path.basename(found.file))}: "
    )
    return textwrap.fill(
        f"{of_file}{found.message}  [{found.code}]",
        _WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _short(text: str, cells: int) -> str:
    return text if len(text) <= cells else text[: cells - 3] + "..."
