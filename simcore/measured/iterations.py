"""Iterations of rank traces: what a rank did up to each of its optimizer steps, in the order of its file."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import compress
from typing import Any

from simcore.diagnostics import UsageError, printable
from simcore.measured.columns import OpColumns, RankTrace, SubColumns
from simcore.measured.matching import OPTIMIZER
from simcore.measured.step_columns import RankSteps, summarize_steps
from simcore.measured.vocabulary import CATEGORIES
from simcore.records import replace
from simcore.units import is_whole

ALL = "all"


def parse_iteration(text: str | None, path: str, rank_steps: Sequence[RankSteps]) -> int | None:
    """Returns the iteration that `--step` names, None for all of them. Raises UsageError for another text."""
    if text in (None, "", ALL):
        return None
    count = len(rank_steps[0].columns) if rank_steps else 0
    if not count:
        raise UsageError(
            f"--step {printable(text or '', 40)}: one iteration is recorded in {printable(path)}"
        )
    if not is_whole(text or "", 12) or int(text or "") >= count:
        raise UsageError(
            f"--step: found {printable(text or '', 40)}, expected 0 to {count - 1} or all: the iterations of "
            f"{printable(path)}"
        )
    return int(text or "")


def find_iterations(ops: OpColumns, count: int) -> array[int]:
    """Returns the iteration of each operation, of so many; -1 of those behind the last optimizer step."""
    return array("q", [iteration if iteration < count else -1 for iteration in _iteration_of(ops)])


def _iteration_of(ops: OpColumns) -> array[int]:
    iterations, iteration = array("q"), 0
    for name in ops.name:
        iterations.append(iteration)
        iteration += name == OPTIMIZER
    return iterations


def summarize_iterations(ranks: Sequence[RankTrace]) -> tuple[RankSteps, ...]:
    """Returns the iterations of each rank that has times; none where there is one alone, or ranks have more
    than others.
    """
    timed = [rank for rank in ranks if rank.timed]
    counts = {rank.ops.name.count(OPTIMIZER) for rank in timed}
    if len(counts) != 1 or max(counts) < 2:
        return ()
    return tuple(_summarize(rank, max(counts)) for rank in timed)


def _summarize(rank: RankTrace, count: int) -> RankSteps:
    ops, iterations = rank.ops, _iteration_of(rank.ops)
    order = sorted(range(len(ops)), key=ops.start.__getitem__)
    in_order = OpColumns(
        start=array("q", [ops.start[op] for op in order]), end=array("q", [ops.end[op] for op in order]),
        stated_category=bytearray([CATEGORIES.index(ops.category(op)) for op in order]),
    )  # fmt: skip
    windows = []
    for iteration in range(count):
        own = [op for op in order if iterations[op] == iteration]
        windows.append((iteration, ops.start[own[0]], max(ops.end[op] for op in own)))
    columns = summarize_steps(in_order, [iterations[op] for op in order], windows, {})
    return RankSteps(rank.rank, rank.stage, columns, len(ops))


def cut_iteration(rank: RankTrace, iteration: int) -> RankTrace:
    """Returns what a rank did in one of its iterations."""
    ops, subs = rank.ops, rank.subs
    inside = bytes([own == iteration for own in _iteration_of(ops)])
    new_index = {op: index for index, op in enumerate(compress(range(len(ops)), inside))}
    sub_inside = bytes([parent in new_index for parent in subs.parent])

    def select(column: Any, rows: bytes) -> Any:
        selected = compress(column, rows)
        if isinstance(column, array):
            return array(column.typecode, list(selected))
        return bytearray(selected) if isinstance(column, bytearray) else list(selected)

    own_ops = {
        name: select(getattr(ops, name), inside)
        for name in OpColumns.__struct_fields__
        if name != "extra" and len(getattr(ops, name))
    }
    own_subs = {name: select(getattr(subs, name), sub_inside) for name in SubColumns.__struct_fields__}
    own_subs["parent"] = array("q", [new_index[parent] for parent in own_subs["parent"]])
    extra = {new_index[op]: keys for op, keys in ops.extra.items() if op in new_index}
    return replace(rank, ops=replace(ops, **own_ops, extra=extra), subs=replace(subs, **own_subs))
