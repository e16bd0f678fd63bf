"""The parts of a measured run's page about who waits for whom, its critical path, its replay and what-if."""

from __future__ import annotations

import textwrap

from simcore.diagnostics import printable
from simcore.measured.kernel_names import shown_name
from simcore.replay import MeasuredResults
from simcore.replay.difference import differences
from simcore.replay.legs import path_sums_of_ranks
from simcore.replay.what_if import AS_PEERS, ON_TIME
from simcore.report.table import Column, table
from simcore.run.findings import WhatIf
from simcore.units import duration, percent, plural, signed

_WIDTH = 110
_RANKS = 64
_WAITS = 8
_PATH_ROWS = 12
_OPS = 3
_KNOB_CELLS = 60
_KNOBS = 30


def results_parts(results: MeasuredResults, knobs: list[WhatIf] | None) -> list[str]:
    """The parts, each ending with an empty line."""
    parts = [_words(results), _waits(results), _path(results)]
    if results.scales is not None:
        parts.insert(0, _differences(results))
    if knobs is not None:
        parts.append(_what_if(results, knobs))
    return [part for part in parts if part]


def _words(results: MeasuredResults) -> str:
    lines: list[str] = []
    for sentence in results.words:
        lines += textwrap.wrap(sentence, _WIDTH, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(["In words", *lines, ""]) if lines else ""


def measured_figure(ns: int, unit_ns: int) -> str:
    """A figure of a table, with the digits that were measured."""
    # A ms of the file has two decimals: no more are measured.
    return f"{ns / unit_ns:.{ {10**9: 3, 10**6: 2, 10**3: 1}.get(unit_ns, 0) }f}"


def _waits(results: MeasuredResults) -> str:
    if not results.graph.together or not results.waiting:
        return ""
    rows = [
        [str(one.early), str(one.late), printable(shown_name(one.name), 34), duration(one.ns),
         f"{percent(one.ns, results.step_time_ns)} %"]
        for one in results.waiting[:_WAITS]
    ]  # fmt: skip
    columns = [Column("rank"), Column("waits for"), Column("in", left=True), Column("for"), Column("of step")]
    return "\n".join(["Who waits for whom, the longest first", *table(columns, rows), ""])


def _path(results: MeasuredResults) -> str:
    """The critical path added up: by rank and by what the time goes to."""
    most = path_sums_of_ranks(results)
    rows = [
        [str(rank), kind, duration(ns), f"{percent(ns, results.step_time_ns)} %"]
        for (rank, kind), ns in most[:_PATH_ROWS]
    ]
    left = len(most) - len(rows)
    more = [f"  and {left} smaller (--json has the path)"] if left > 0 else []
    count = f"{plural(len(results.legs), 'leg')} ({plural(len(results.critical_path), 'segment')})"
    title = f"Critical path, 0 to the end in {count}, added up"
    columns = [Column("rank"), Column("goes to", left=True), Column("time"), Column("of step")]
    return "\n".join([title, *table(columns, rows), *more, ""])


def _differences(results: MeasuredResults) -> str:
    rows = []
    found = differences(results)
    for one in found[:_RANKS]:
        ops = ", ".join(f"{printable(shown_name(name), 34)} {signed(ns)}" for name, ns in one.ops[:_OPS])
        change = one.replayed_ns - one.measured_ns
        rows.append(
            [str(one.number), duration(one.measured_ns), duration(one.replayed_ns), signed(change), ops]
        )
    left = len(found) - len(rows)
    more = [f"  and {plural(left, 'rank')} more (--json has all)"] if left > 0 else []
    columns = [Column("rank"), Column("measured"), Column("replayed"), Column("difference"),
               Column("most by", left=True)]  # fmt: skip
    return "\n".join(["When each rank ends, measured and replayed", *table(columns, rows), *more, ""])


def _what_if(results: MeasuredResults, knobs: list[WhatIf]) -> str:
    step = results.what_if_base_ns
    rows = []
    for knob in knobs[:_KNOBS]:
        free = "-" if knob.free_ns is None else duration(knob.free_ns)
        worse = "" if knob.worse10_ns is None else duration(knob.worse10_ns)
        gain = f"{percent(step - knob.best_ns, step)} %"
        figures = (
            ["unknown", "unknown", "", ""]
            if knob.unknown
            else [free, duration(knob.better10_ns), worse, gain]
        )
        rows.append([printable(shown_name(knob.knob), _KNOB_CELLS), *figures])
    columns = [Column("what", left=True), Column("free"), Column("10 % less"), Column("10 % more"),
               Column("gain at most")]  # fmt: skip
    title = f"What if: the step time of the replay ({duration(step)} now) when one thing takes no time, or a"
    title += " tenth less"
    words = _base_words(results)
    words += [
        "  the greatest gain of 10 % less first; a change that is made or not (-) with all that it gains",
        "  balanced stages: computing as much each as all do on average; who has more work then may be late",
    ]
    if any(knob.name.endswith(ON_TIME) for knob in knobs[:_KNOBS]):
        words.append(
            f"  a late rank{ON_TIME}: its compute and its host's gaps as long as the others' middle one"
        )
    if any(knob.name.endswith(AS_PEERS) for knob in knobs[:_KNOBS]):
        words.append(f"  a slow rank{AS_PEERS}: computing as long as the median of the others of its stage")
    words += [f"  unknown: {why}" for why in dict.fromkeys(one.unknown for one in knobs[:_KNOBS]) if why]
    return "\n".join([title, *table(columns, rows), *words, ""])


def _base_words(results: MeasuredResults) -> list[str]:
    """Where the replay is of another kind than the step that the page begins with."""
    measured = results.measured
    if results.scales is not None or measured.concurrent:
        return []
    return [
        f"  the ranks did not run together (each from its own start, the longest takes "
        f"{duration(measured.step_time_ns)}):",
        "  here they are replayed as if they had, with nothing changed now, so that one kind is compared",
    ]
