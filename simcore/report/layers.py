"""The layer table as text: the most expensive groups of equal rows, or every row with its cells."""

from __future__ import annotations

from collections.abc import Sequence

from simcore.analysis import LayerRow, Results
from simcore.collectives import cell_name
from simcore.diagnostics import printable
from simcore.report.table import Column, table
from simcore.units import duration, percent
from simcore.workload.model import PHASES

_EXPENSIVE_LAYERS = 10
_NAME_CELLS = 32


def expensive_layers(results: Results) -> str:
    """The groups that cost most, one line each."""
    step = results.simulation.step_time_ns
    groups = results.layer_groups[:_EXPENSIVE_LAYERS]
    columns = [
        Column("layer", left=True),
        Column("rows"),
        Column("compute ms"),
        Column("exposed ms"),
        Column("% of step"),
        Column("critical ms"),
        Column("least slack"),
    ]
    rows = [
        [
            printable(group.name, _NAME_CELLS),
            f"x{len(group.rows)}",
            f"{group.compute_ns / 1e6:.3f}",
            f"{group.exposed_ns / 1e6:.3f}",
            percent(group.cost_ns, step),
            *_critical_and_slack(results, group.rows.indices),
        ]
        for group in groups
    ]
    left = len(results.layer_groups) - len(groups)
    title = f"The {len(groups)} most expensive layers, in one step of one rank, equal rows together"
    return "\n".join([title, *table(columns, rows), *([f"  and {left} more"] if left else []), ""])


def all_layers(results: Results) -> str:
    """Every row of the file, a line for each cell that computes or communicates.

    compute and alone: of one run of the cell. exposed: of all runs of the row in a step, on the
    rank where compute and exposed together are most. Bandwidths: GB/s, of the collective alone.
    critical: of all ranks, what of the critical path its spans are.
    """
    batches = _microbatches(results)
    columns = [Column("line"), Column("layer", left=True), Column("block"), Column("cell", left=True)]
    columns += [Column("compute ms"), Column("collective", left=True), Column("group", left=True)]
    columns += [Column("bytes"), Column("alone ms"), Column("algbw"), Column("busbw"), Column("exposed ms")]
    columns += [Column("critical ms"), Column("least slack")]
    rows = []
    for row in results.layers:
        head = [str(row.line), printable(row.name, _NAME_CELLS), batches.get(row.index, "-")]
        sums = [f"{row.exposed_ns / 1e6:.3f}", *_critical_and_slack(results, (row.index,))]
        for cells in _cells(row) or [["-"] + [""] * 7]:
            rows.append([*head, *cells, *sums])
            head, sums = ["", "", ""], ["", "", ""]
    title = "All rows of the file; block: micro-batch, from 0; alone, algbw, busbw (GB/s): of the collective"
    return "\n".join([title, *table(columns, rows), ""])


def _critical_and_slack(results: Results, rows: Sequence[int]) -> list[str]:
    """ms of the critical path that spans of these rows are, and their least slack; - without any."""
    critical_ns = sum(results.layer_critical_ns[row] for row in rows)
    slack = results.layer_slack_ns
    known = [ns for ns in (slack[row] for row in rows) if ns is not None] if slack is not None else []
    return [f"{critical_ns / 1e6:.3f}", duration(min(known)) if known else "-"]


def _cells(row: LayerRow) -> list[list[str]]:
    found = []
    for phase in PHASES:
        cell = row.cells[phase]
        if not cell.is_modelled and cell.collective is None:
            continue
        words = [phase, f"{cell.compute_ns / 1e6:.3f}" if cell.is_modelled else "-"]
        if cell.collective is None:
            found.append([*words, "-", "", "", "", "", ""])
            continue
        words += [cell_name(cell.collective), f"{cell.group} {cell.members}", str(cell.bytes)]
        found.append([*words, f"{cell.comm_ns / 1e6:.3f}", f"{cell.algbw:.1f}", f"{cell.busbw:.1f}"])
    return found


def _microbatches(results: Results) -> dict[int, str]:
    """The block of each row that is in one."""
    blocks = results.simulation.program.structure.blocks
    return {row: str(number) for number, block in enumerate(blocks) for row in block}
