"""The critical path on the page of text: what it is made of, and its longest segments."""

from __future__ import annotations

from simcore.analysis import Results
from simcore.analysis.accounts import IDLE_OP
from simcore.analysis.critical_path import Segment
from simcore.diagnostics import printable
from simcore.report.table import Column, listed, table
from simcore.units import duration, percent, plural
from simcore.workload.model import base_name

_PARTS = 5
_SEGMENTS = 8
_NAME_CELLS = 32


def critical_path_text(results: Results) -> str:
    """Aggregates of the critical path by kind, layer, stage and rank, and its longest segments."""
    path, step = results.critical_path, results.step_time_ns
    ranks = path.by_rank()
    if not ranks:
        return "Critical path: nothing takes any time\n"
    where = f"{plural(len(path), 'segment')} on {plural(len(ranks), 'rank')}"
    lines = [f"Critical path: {where}, 0 to {duration(step)}"]
    by_stage = {f"stage {stage}": ns for stage, ns in path.by_stage().items()}
    parts = [("by kind", path.by_kind()), ("by layer", results.critical_by_layer), ("by stage", by_stage)]
    if len(ranks) > len(by_stage):
        parts.append(("by rank", {f"rank {rank}": ns for rank, ns in ranks.items()}))
    for name, sums in parts:
        shown = [
            f"{printable(what, _NAME_CELLS) or 'no layer'} {duration(ns)} ({percent(ns, step)} %)"
            for what, ns in list(sums.items())[:_PARTS]
        ]
        left = len(sums) - len(shown)
        shown += [f"and {left} more"] if left > 0 else []
        lines.append(listed(name, shown))
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
    alike: dict[tuple[int, ...], list[int]] = {}
    same_name = _numbers_of_names(results.simulation.workload.name)
    for index, (number, op) in enumerate(zip(path.number, path.op, strict=True)):
        ns = path.edge[index + 1] - path.edge[index]
        key: tuple[int, ...] = (-ns,)
        if op != IDLE_OP:
            ops = results.simulation.timeline.stage_program(number).ops
            key = (-ns, ops.stream[op], ops.phase[op], same_name[ops.row[op]])
        alike.setdefault(key, []).append(index)
    rows = []
    for _, indices in sorted(alike.items(), key=lambda item: (item[0][0], item[1][0]))[:_SEGMENTS]:
        first = path.segment(indices[0])
        what = _what(results, first)
        start = duration(first.start_ns)
        rows.append([duration(first.ns), f"x{len(indices)}", start, str(first.rank), what, first.reason])
    return rows


def _numbers_of_names(names: list[str]) -> list[int]:
    """Per row a number that rows with the same name, less its digits, share; one more for no row."""
    numbers: dict[str, int] = {}
    return [*[numbers.setdefault(base_name(name), len(numbers)) for name in names], -1]


def _what(results: Results, segment: Segment) -> str:
    """What a segment is, without its micro-batch: `fwd attention_row`, `dp all-gather grad_gather`."""
    if segment.op == IDLE_OP:
        return segment.kind
    words = [segment.phase] if segment.kind == "compute" else [segment.stream, segment.kind]
    if segment.row >= 0:
        words.append(printable(base_name(results.simulation.workload.name[segment.row]), _NAME_CELLS))
    return " ".join(words)
