"""The rows of one stage of a model as a file has them: micro-batches as blocks, what is recomputed marked."""

from __future__ import annotations

from array import array

from simcore.diagnostics import UsageError
from simcore.records import replace
from simcore.workload import Cells, Workload

# Beyond this lies a slip of the keyboard: no reader opens such a file in a minute.
_MOST_ROWS = 10_000_000


def of_stage(workload: Workload, stage: int) -> Workload:
    """The workload with the rows of `stage` alone, of every micro-batch, in the order of a file.

    Raises `UsageError` for what a file has no words for.
    """
    mine = workload.stages[stage]
    block = sorted(row for chunk in mine.chunks for row in chunk)
    batches = workload.header.ga or 0
    everywhere = {
        row for one in workload.stages
        for row in (*one.prologue, *one.loss, *(row for chunk in one.chunks for row in chunk))
    }  # fmt: skip
    tail = [row for row in range(len(workload)) if row not in everywhere]
    if len(block) * batches > _MOST_ROWS:
        raise UsageError(f"{batches} micro-batches: a file of more than {_MOST_ROWS} rows is not written")
    for cells in (workload.fwd, workload.ig):
        if any(row in cells.asynchronous for row in block):
            raise UsageError(
                "--format simai: collectives beside compute (--cp, --zero 3) have no word in SimAI text"
            )
    order = [*mine.prologue, *block * batches, *mine.loss, *tail]
    checkpoints, initiates = _marked(workload, block, len(mine.prologue), batches)
    header = replace(workload.header, checkpoints=checkpoints, checkpoint_initiates=initiates)
    return replace(
        workload,
        header=header,
        name=[workload.name[row] for row in order],
        line=array("q", range(1, len(order) + 1)),
        fwd=_cells(workload.fwd, order),
        ig=_cells(workload.ig, order),
        wg=_cells(workload.wg, order),
        process_ns=array("q", [100]) * len(order),
        stages=(),
        recomputed={},
        maker=None,
    )


def _marked(
    workload: Workload, block: list[int], first: int, batches: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Where each recompute begins, and the row whose backward needs it."""
    place = {row: number for number, row in enumerate(block)}
    begins, needed = [], []
    for last, rows in workload.recomputed.items():
        if last in place:
            begins.append(place[rows[0]])
            needed.append(place[rows[-1]] + 1)
    checkpoints, initiates = [], []
    for batch in range(batches):
        offset = first + batch * len(block)
        checkpoints += [offset + one for one in begins]
        initiates += [offset + one for one in needed]
    return tuple(sorted(checkpoints)), tuple(sorted(initiates))


def _cells(cells: Cells, order: list[int]) -> Cells:
    return Cells(
        array("q", [cells.compute_ns[row] for row in order]),
        [cells.collective[row] for row in order],
        [cells.group[row] for row in order],
        array("q", [cells.bytes[row] for row in order]),
    )
