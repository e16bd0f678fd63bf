"""A row of a stage before it is columns: what its cells compute, and what they send."""

from __future__ import annotations

from simcore.model.costs import RowOps as OpCells
from simcore.records import NamedTuple
from simcore.workload.model import GroupKind


class Sent(NamedTuple):
    """A collective of a cell. beside: compute does not wait for it. ports: where ranks differ, the bytes that
    go through the port of each rank of an expert group.
    """

    collective: str
    group: GroupKind
    bytes: int
    beside: bool = False
    ports: tuple[int, ...] = ()


class Row(NamedTuple):
    """A row before it is columns: its ops, and the collective of each of its cells.

    by_rank: where ranks of an expert group differ, the ops of each; `ops` are then those of the fullest.
    """

    name: str
    ops: OpCells
    fwd: Sent | None = None
    ig: Sent | None = None
    wg: Sent | None = None
    by_rank: tuple[OpCells, ...] = ()


NOTHING = OpCells([], [], [])
