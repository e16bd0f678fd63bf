"""Where a span ends inside a cell: an eighth block, the left kind in front, the right one behind."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from operator import ne
from typing import NamedTuple

from simcore.run.lanes import KINDS

_EIGHTHS = " ▏▎▍▌▋▊▉█"
# Kinds that are a thin line or nothing: they leave their part of an edge cell empty.
_THIN = frozenset(KINDS.index(name) for name in ("idle", "bubble", "wait", "host"))
_FULL = frozenset(KINDS.index(name) for name in ("bwd", "wg", "opt"))
# Kinds that do not fill a cell: an edge that does, beside nothing, would look like a span of its own.
_LOW = frozenset(range(len(KINDS))) - _FULL - _THIN
_NOTHING = -1
# So many cells of one kind make the end of it worth telling.
_LONG = 4


class Edge(NamedTuple):
    """A cell in which one kind gives way to another.

    beside: 0, or where (-1 left, 1 right) a name must stand, which makes its kind as high as a cell.
    """

    glyph: str
    role: str
    beside: int


def edge_cells(kinds: Sequence[int], sums: dict[int, list[int]], edges: Sequence[int]) -> dict[int, Edge]:
    """The columns in which the kind on the left gives way to the one on the right.

    One of the two fills some cells: where short ones alternate, edges would say less than they cost.
    No other has more than half an eighth of the cell.

    kinds: what fills most of each column. sums: ns of each kind by column.
    """
    found: dict[int, Edge] = {}
    columns = range(1, len(kinds) - 1)
    for column in compress(columns, map(ne, kinds, kinds[2:])):
        left, right = kinds[column - 1], kinds[column + 1]
        if not (
            _is_one_kind(kinds[max(column - _LONG, 0) : column])
            or _is_one_kind(kinds[column + 1 : column + 1 + _LONG])
        ):
            continue
        whole = edges[column + 1] - edges[column]
        others = sum(values[column] for one, values in sums.items() if one not in (left, right))
        behind = sums[right][column] if right in sums else 0
        if 16 * others > whole or (right != _NOTHING and not behind):
            continue
        part = sums[left][column] if left in sums else whole - others - behind
        eighths = (16 * part + whole) // (2 * whole) if whole else 0
        if not 0 < eighths < 8:
            continue
        role, beside = _role(left, right)
        if role:
            found[column] = Edge(_EIGHTHS[eighths], role, beside)
    return found


def _is_one_kind(kinds: Sequence[int]) -> bool:
    """Whether some columns are of one kind; those beyond the ends of the row would be too."""
    return kinds.count(kinds[0]) == len(kinds)


def put_edges(pieces: list[tuple[str, str]], found: dict[int, Edge]) -> None:
    """Put the edges into cells whose names are written."""
    for column, edge in found.items():
        if not edge.beside or pieces[column + edge.beside][1].endswith(" reversed"):
            pieces[column] = edge.glyph, edge.role


def _role(left: int, right: int) -> tuple[str, int]:
    """(style, `beside`) of an edge; style "" where both are thin."""
    left_is_thin, right_is_thin = left in _THIN or left == _NOTHING, right in _THIN or right == _NOTHING
    if left_is_thin and right_is_thin:
        return "", 0
    if right_is_thin:
        return KINDS[left], -1 if left in _LOW else 0
    if left_is_thin:
        # A blank sliver at the left: what is in front and what is behind change places.
        return f"{KINDS[right]} reversed", 1 if right in _LOW else 0
    return f"{KINDS[left]} on {KINDS[right]}", 0
