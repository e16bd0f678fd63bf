"""The layer table as text: the most expensive groups of equal rows, or every row with its cells."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.analysis import LayerRow, Results
from simcore.analysis.layers import LayerGroups
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
            *of_path,
        ]
        for group, of_path in zip(groups, _critical_and_slack(results, results.layer_groups), strict=False)
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
    for row, of_path in zip(results.layers, _critical_and_slack(results, None), strict=True):
        head = [str(row.line), printable(row.name, _NAME_CELLS), batches.get(row.index, "-")]
        sums = [f"{row.exposed_ns / 1e6:.3f}", *of_path]
        for cells in _cells(row) or [["-"] + [""] * 7]:
            rows.append([*head, *cells, *sums])
            head, sums = ["", "", ""], ["", "", ""]
    title = "All rows of the file; block: micro-batch, from 0; alone, algbw, busbw (GB/s): of the collective"
    return "\n".join([title, *table(columns, rows), ""])


def _critical_and_slack(results: Results, groups: LayerGroups | None) -> Iterator[list[str]]:
    """Of each group, or of each row, ms of the critical path and the least slack; - without any."""
    # Imported here: JSON and the screen's start do without it.
    from simcore.analysis.layer_order import NO_SLACK, LayerOrder

    layers = LayerOrder(results.layers, groups)
    layers.know_path(results.layer_critical_ns, results.layer_slack_ns)
    for critical_ns, slack_ns in zip(layers.of_path("critical"), layers.of_path("slack"), strict=True):
        yield [f"{critical_ns / 1e6:.3f}", "-" if slack_ns == NO_SLACK else duration(slack_ns)]


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
