"""The micro-batches of a file beside each other: whether they are unequal, and which of them its header does
not ask for.
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

# The largest micro-batch computes so many times as long as the smallest, or they count as equal.
_UNEVEN = 1.5


class UnequalBlocks(NamedTuple):
    """Micro-batches that are not alike: the one that computes longest, the one that computes shortest, and
    the factor between the two.
    """

    most: int
    least: int
    factor: float


class SurplusBlocks(NamedTuple):
    """Blocks behind those that the header asks for, of other lengths. microbatches, layers: of the header.

    more: the rows of the blocks behind those. more_layers: of each of these. copied: the rows of the first
    block that the layers of each of these repeat, apart from the numbers behind names; none where one of them
    does not, or is longer than another. between: of one block behind one other, the rows
    between their layers, where without these there were as many rows as the file declares; else none.
    """

    microbatches: int
    layers: int
    surplus_rows: tuple[int, ...]
    surplus_layers: tuple[int, ...]
    copied_rows: tuple[int, ...]
    rows_between: tuple[int, ...]

    def format_lines_between(self, workload: Workload) -> str:
        """The lines of `between` as `--without-lines` has them, "" where there are none, or a run of the file
        cannot go without them.
        """
        return _lines_alone(workload, self.rows_between)

    def header_fields(self, workload: Workload) -> dict[str, Any]:
        """By field of `Parameters`, what makes a run of the file one of the blocks that its header asks for:
        the others left out, so that more micro-batches of it are of the same ones; else fewer micro-batches.
        """
        lines = _lines_alone(workload, self.surplus_rows)
        return {"without_lines": (lines,)} if lines else {"microbatches": self.microbatches}


def find_unequal_blocks(simulation: Simulation) -> UnequalBlocks | None:
    """How unequal the micro-batches of a pipeline are by the compute cells of the file; None where they count
    as equal, and where there is one alone.
    """
    program = simulation.program
    if not program.has_pipeline_schedule:
        return None
    return _find_unequal(simulation.workload, program.structure.blocks[: program.microbatches])


def count_blocks(simulation: Simulation) -> tuple[int, ...]:
    """How many micro-batches of a step are of each block of the file, of blocks that count as equal of all:
    blocks follow one another, and begin again.
    """
    program = simulation.program
    count, blocks = program.microbatches, program.structure.blocks
    if _find_unequal(simulation.workload, blocks) is None:
        return (count,)
    return tuple(len(range(index, count, len(blocks))) for index in range(len(blocks)))


def find_rows_not_run(simulation: Simulation) -> tuple[int, ...]:
    """The rows of the file's blocks that no micro-batch of the step is of: it has fewer than the file."""
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
    """The blocks that a header does not ask for: it says how many there are and of how many layers, the first
    ones are so, and none behind them is. None where that is not so, and where the user said how many run.
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
    """A warning of a count of rows that is not the file's, with what makes the header fit, and what it:
    98 rows and 96 stated, and a fix that leaves 87, read like another mistake.
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
        # Of "if this line is" it was asked what it is, and why just these two rows.
        message = (
            f"{note.message}; either line {header} is right (leave out lines {surplus_lines}, the "
            "second micro-batch)"
            f" or line {note.line} (leave out lines {lines_between}, which part it from the first)"
        )
    return replace(note, message=message)


def format_lines(workload: Workload, rows: Sequence[int]) -> str:
    """`lines 9-83`: where rows stand in the file, "" where none of it has these rows."""
    lines = [workload.line[row] for row in rows] if workload.line and not workload.rescaled else []
    if not lines or min(lines) < 1:
        return ""
    return f"line {lines[0]}" if len(lines) == 1 else f"lines {min(lines)}-{max(lines)}"


def _lines_alone(workload: Workload, rows: Sequence[int]) -> str:
    """The lines of rows as `--without-lines` has them; "" where there are none, other rows stand between
    them, or a run of the file cannot go without them.
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
    """Whether these rows are as many of the first of the others."""
    if len(rows) > len(others):
        return False
    pairs = zip(rows, others[: len(rows)], strict=True)
    return all(_row_key(workload, row) == _row_key(workload, other) for row, other in pairs)


def _row_key(workload: Workload, row: int) -> tuple[object, ...]:
    """What a row is apart from the number behind its name."""
    columns = [
        (cells.compute_ns[row], cells.collective[row], cells.group[row], cells.bytes[row])
        for cells in map(workload.cells, PHASES)
    ]
    return base_name(workload.name[row]), *columns
