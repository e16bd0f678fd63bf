"""The critical path on the page of text: what it is made of, and its longest segments."""

from __future__ import annotations

from simcore.analysis import Results
from simcore.analysis.accounts import IDLE_OP
from simcore.analysis.critical_path import Segment
from simcore.diagnostics import printable
from simcore.report.table import Column, listed, table
from simcore.units import duration, percent, plural
from simcore.workload.model import base_name

_MOST_PARTS = 5
_SEGMENTS = 8
_NAME_CELLS = 32


def critical_path_text(results: Results) -> str:
    """Aggregates of the critical path by kind, layer, stage and rank, and its longest segments."""
    # Imported here: JSON and the screen's start do without it.
    from simcore.run.findings import path_sums

    path, step = results.critical_path, results.step_time_ns
    ranks = path.by_rank()
    if not ranks:
        return "Critical path: nothing takes any time\n"
    where = f"{plural(len(path), 'segment')} on {plural(len(ranks), 'rank')}"
    lines = [f"Critical path: {where}, 0 to {duration(step)}"]
    for by in results.path_groupings:
        if by == "rank" and len(ranks) == len(path.by_stage()):
            # One rank a stage: the line before says it.
            continue
        sums = path_sums(results, by)
        shown = [
            f"{printable(what, _NAME_CELLS)} {duration(ns)} ({percent(ns, step)} %)"
            for what, ns in sums[:_MOST_PARTS]
        ]
        left = len(sums) - len(shown)
        shown += [f"and {left} more"] if left > 0 else []
        lines.append(listed(f"by {by}", shown))
    lines.append("  its longest segments, and why the first of each kind did not start earlier")
    columns = [Column("takes"), Column("times"), Column("first at"), Column("rank")]
    columns += [Column("what", left=True), Column("not earlier for", left=True)]
    lines += table(columns, _longest(results))
    if results.simulation.program.queued:
        lines.append(
            "  no slack: collectives queue by priority here, and what is served first depends on the times"
        )
    return "\n".join([*lines, ""])


def _longest(results: Results) -> list[list[str]]:
    """The longest segments, those that are alike on one line with how many they are."""
    path = results.critical_path
    # Segments are alike if they take as long and run the same cell of rows with the same name.
    alike: dict[tuple[int, int, int, str | None], list[int]] = {}
    # One entry more, for no row.
    names = [*map(base_name, results.simulation.workload.name), None]
    for index, (number, op) in enumerate(zip(path.number, path.op, strict=True)):
        ns = path.edge[index + 1] - path.edge[index]
        key: tuple[int, int, int, str | None] = (-ns, IDLE_OP, IDLE_OP, None)
        if op != IDLE_OP:
            ops = results.simulation.timeline.stage_program(number).ops
            key = (-ns, ops.stream[op], ops.phase[op], names[ops.row[op]])
        alike.setdefault(key, []).append(index)
    rows = []
    for _, indices in sorted(alike.items(), key=lambda item: (item[0][0], item[1][0]))[:_SEGMENTS]:
        first = path.segment(indices[0])
        what = _what(results, first)
        start = duration(first.start_ns)
        rows.append([duration(first.ns), f"x{len(indices)}", start, str(first.rank), what, first.reason])
    return rows


def _what(results: Results, segment: Segment) -> str:
    """What a segment is, without its micro-batch: `fwd attention_row`, `dp all-gather grad_gather`."""
    if segment.op == IDLE_OP:
        return segment.kind
    words = [segment.phase] if segment.kind == "compute" else [segment.stream, segment.kind]
    if segment.row >= 0:
        words.append(printable(base_name(results.simulation.workload.name[segment.row]), _NAME_CELLS))
    return " ".join(words)
