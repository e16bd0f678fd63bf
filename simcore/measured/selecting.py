"""Parts of the columns of a trace: some of its operations, with what is stated of them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TypeVar

from simcore.measured.columns import MEASURED, DeviceColumns, OpColumns

_Item = TypeVar("_Item")


def select_ops(ops: OpColumns, rows: Sequence[int]) -> OpColumns:
    """Returns some operations."""
    count, group = len(rows), select_items(ops.group, rows)
    # Where nothing communicates one column without texts is enough; groups that are there get other names.
    is_alone = group.count(None) == count
    none: list[str | None] = group if is_alone else [None] * count
    return OpColumns(
        name=select_items(ops.name, rows), state=none, group=group if is_alone else group[:],
        batch=select_ints(ops.batch, rows) if ops.batch else array("q", (-1,)) * count,
        chunk=select_ints(ops.chunk, rows) if ops.chunk else array("q"),
        start=select_ints(ops.start, rows), end=select_ints(ops.end, rows),
        timing=bytearray((MEASURED,)) * count, line=select_ints(ops.line, rows), description=none,
        shape=select_items(ops.shape, rows), dtype=select_items(ops.dtype, rows),
        stated_category=bytearray(map(ops.stated_category.__getitem__, rows)),
    )  # fmt: skip


def select_columns(columns: DeviceColumns, rows: Sequence[int], window: tuple[int, int]) -> DeviceColumns:
    """Returns what is stated of some operations, and the host in a window, ns."""
    calls, host = columns.collectives, columns.host
    return DeviceColumns(
        select_ints(columns.stream, rows), select_ints(columns.correlation, rows),
        select_items(columns.operation, rows), select_items(columns.layer, rows),
        select_ints(columns.bytes, rows),
        select_items(columns.grid, rows), select_items(columns.block, rows),
        array("h", map(columns.occupancy.__getitem__, rows)),
        {new: calls[op] for new, op in enumerate(rows) if op in calls} if calls else {}, columns.on_device,
        None if host is None else host.part(rows, window), columns.gaps.part(window),
        columns.streams, columns.line_noun, columns.memory,
    )  # fmt: skip


def select_ints(column: array[int], rows: Sequence[int]) -> array[int]:
    """Returns some rows of a column of numbers."""
    return column if isinstance(rows, range) else array("q", map(column.__getitem__, rows))


def select_items(column: list[_Item], rows: Sequence[int]) -> list[_Item]:
    """Returns some rows of a column. A range is all of it: that is the column itself."""
    return column if isinstance(rows, range) else [*map(column.__getitem__, rows)]
