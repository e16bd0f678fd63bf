"""A row of a stage before it is columns: what its cells compute, and what they send."""

from __future__ import annotations

from typing import NamedTuple

from simcore.model.costs import RowOps as OpCells
from simcore.workload.model import GroupKind


class Sent(NamedTuple):
    """A collective of a cell. beside: compute does not wait for it."""

    collective: str
    group: GroupKind
    bytes: int
    beside: bool = False


class Row(NamedTuple):
    """A row before it is columns: its ops, and the collective of each of its cells."""

    name: str
    ops: OpCells
    fwd: Sent | None = None
    ig: Sent | None = None
    wg: Sent | None = None


NOTHING = OpCells([], [], [])
