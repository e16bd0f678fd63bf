"""The micro-batches of a file in comparison: whether they are unequal, and which of them its header does not
ask for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simcore.diagnostics import Diagnostic
from simcore.program.blocks import is_layer
from simcore.records import NamedTuple, replace
from simcore.simulation import Simulation
from simcore.workload.model import PHASES, Workload, base_name
from simcore.workload.without_lines import ROW_COUNT, without_rows

# Blocks count as unequal where the largest computes at least so many times as long as the smallest.
_UNEVEN = 1.5


class UnequalBlocks(NamedTuple):
    """Micro-batches of unequal compute."""

    most: int
    """The one that computes longest."""
    least: int
    """The one that computes shortest."""
    factor: float
    """The ratio of the two."""


class SurplusBlocks(NamedTuple):
    """The blocks of a file behind those that its header asks for, with other numbers of layers."""

    microbatches: int
    """The micro-batches that the header asks for."""
    layers: int
    """The layers of a block that the header asks for."""
    surplus_rows: tuple[int, ...]
    """The rows of the surplus blocks."""
    surplus_layers: tuple[int, ...]
    """The layers of each surplus block."""
    copied_rows: tuple[int, ...]
    """The rows of the first block that the layers of each surplus block repeat, apart from the numbers in
    names; empty where one of them does not repeat these, or is longer than another.
    """
    rows_between: tuple[int, ...]
    """The rows between the layers of two blocks, if the file has as many rows as it declares without these;
    else empty.
    """

    def format_lines_between(self, workload: Workload) -> str:
        """Returns the lines of `rows_between` as `--without-lines` takes them; "" where there are none, or a
        run of the file cannot go without them.
        """
        return _lines_alone(workload, self.rows_between)

    def header_fields(self, workload: Workload) -> dict[str, Any]:
        """Returns by field of `Parameters` what makes a run of the file one of the blocks that its header
        asks for: the other blocks are left out, so that further micro-batches repeat the first ones; else
        there are fewer micro-batches.
        """
        lines = _lines_alone(workload, self.surplus_rows)
        return {"without_lines": (lines,)} if lines else {"microbatches": self.microbatches}


def find_unequal_blocks(simulation: Simulation) -> UnequalBlocks | None:
    """Returns how unequal the micro-batches of a pipeline are by the compute cells of the file; None where
    they count as equal, and where there is only one.
    """
    program = simulation.program
    if not program.has_pipeline_schedule:
        return None
    return _find_unequal(simulation.workload, program.structure.blocks[: program.microbatches])


def count_blocks(simulation: Simulation) -> tuple[int, ...]:
    """Returns how many micro-batches of a step are of each block of the file; of equal blocks one count of
    all.

    Blocks follow one another, and begin again.
    """
    program = simulation.program
    count, blocks = program.microbatches, program.structure.blocks
    if _find_unequal(simulation.workload, blocks) is None:
        return (count,)
    return tuple(len(range(index, count, len(blocks))) for index in range(len(blocks)))


def find_rows_not_run(simulation: Simulation) -> tuple[int, ...]:
    """Returns the rows of the file's blocks that a step with fewer micro-batches leaves out."""
    program = simulation.program
    return (
        _join_blocks(program.structure.blocks[program.microbatches :])
        if program.has_pipeline_schedule
        else ()
    )


def _find_unequal(workload: Workload, used: Sequence[tuple[int, ...]]) -> UnequalBlocks | None:
    if workload.stages or len(used) < 2:
        return None
    columns = [workload.cells(phase).compute_ns for phase in PHASES]
    computes = [sum(column[row] for row in block for column in columns) for block in used]
    most, least = (computes.index(edge(computes)) for edge in (max, min))
    if not computes[least] or computes[most] < _UNEVEN * computes[least]:
        return None
    return UnequalBlocks(most, least, computes[most] / computes[least])


def find_surplus_blocks(simulation: Simulation) -> SurplusBlocks | None:
    """Returns the blocks that a header does not ask for: it states a number of blocks and of layers, the
    first blocks are like that, and none behind them is. None where that is not so, and where the user gave
    the number of micro-batches.
    """
    workload, structure = simulation.workload, simulation.program.structure
    count, size = workload.header.ga, workload.header.vpp
    blocks, layers = structure.blocks, structure.layers_per_block
    if not count or not size or simulation.parameters.microbatches is not None or len(blocks) <= count:
        return None
    if set(layers[:count]) != {size} or size in layers[count:]:
        return None
    more = blocks[count:]
    first, *others = (_layer_rows(workload, block) for block in (blocks[0], *more))
    copied: tuple[int, ...] = ()
    between: tuple[int, ...] = ()
    has_equal_lengths = len({len(rows) for rows in others}) == 1
    if has_equal_lengths and all(rows and _has_equal_rows(workload, rows, first) for rows in others):
        copied = first[: len(others[0])]
        rows_between = tuple(range(first[-1] + 1, others[0][0]))
        is_declared = workload.declared_rows == len(workload) - len(rows_between)
        between = rows_between if len(blocks) == 2 and is_declared else ()
    return SurplusBlocks(count, size, _join_blocks(more), layers[count:], copied, between)


def add_header_fix(note: Diagnostic, simulation: Simulation) -> Diagnostic:
    """Returns a warning of a wrong count of rows with the two ways to make file and header agree.

    The bare counts are not enough: 98 rows, 96 stated, and a fix that leaves 87 read like another mistake.
    """
    extra = find_surplus_blocks(simulation) if note.code == ROW_COUNT else None
    if extra is None or find_unequal_blocks(simulation) is None:
        return note
    workload = simulation.workload
    surplus_lines, lines_between = (
        _lines_alone(workload, extra.surplus_rows),
        extra.format_lines_between(workload),
    )
    if not surplus_lines:
        return note
    header = workload.header.line
    message = f"{note.message}; line {header} is right without lines {surplus_lines}"
    if lines_between:
        # Both readings are named with what the two rows are: `if this line is right` alone explains neither.
        message = (
            f"{note.message}; either line {header} is right (leave out lines {surplus_lines}, the "
            "second micro-batch)"
            f" or line {note.line} (leave out lines {lines_between}, which part it from the first)"
        )
    return replace(note, message=message)


def format_lines(workload: Workload, rows: Sequence[int]) -> str:
    """Returns `lines 9-83`: where rows stand in the file; "" where it does not have these rows."""
    lines = [workload.line[row] for row in rows] if workload.line and not workload.rescaled else []
    if not lines or min(lines) < 1:
        return ""
    return f"line {lines[0]}" if len(lines) == 1 else f"lines {min(lines)}-{max(lines)}"


def _lines_alone(workload: Workload, rows: Sequence[int]) -> str:
    """Returns the lines of rows as `--without-lines` takes them; "" where there are none, other rows stand
    between them, or a run of the file cannot go without them.
    """
    words = format_lines(workload, rows)
    is_whole = bool(words) and list(rows) == list(range(rows[0], rows[-1] + 1))
    if not is_whole or without_rows(workload, rows) is None:
        return ""
    return words.partition(" ")[2]


def _join_blocks(blocks: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(row for block in blocks for row in block)


def _layer_rows(workload: Workload, block: Sequence[int]) -> tuple[int, ...]:
    return tuple(row for row in block if is_layer(workload.name[row]))


def _has_equal_rows(workload: Workload, rows: Sequence[int], others: Sequence[int]) -> bool:
    """Returns whether some rows equal the first of the others."""
    if len(rows) > len(others):
        return False
    pairs = zip(rows, others[: len(rows)], strict=True)
    return all(_row_key(workload, row) == _row_key(workload, other) for row, other in pairs)


def _row_key(workload: Workload, row: int) -> tuple[object, ...]:
    """Returns a key of a row's cells and its name without the number."""
    columns = [
        (cells.compute_ns[row], cells.collective[row], cells.group[row], cells.bytes[row])
        for cells in map(workload.cells, PHASES)
    ]
    return base_name(workload.name[row]), *columns
