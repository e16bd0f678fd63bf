"""Which kind of time each column of a lane is drawn as: each kind has as many columns as it has time.

A column that one kind fills is drawn as that kind. Columns that several kinds share are given out by carrying
what each kind lacks on to the next column, so that no stretch of columns shows a kind more than about one
column too much or too little. With what fills most of each column, forward would vanish where it is 28 % of
every one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, islice
from operator import add, and_, gt, lt, ne, sub

from simcore.trace.lane_spans import KINDS

# No span at all: the time of a lane that its spans leave empty.
NOTHING = -1
_BWD, _WG = KINDS.index("bwd"), KINDS.index("wg")
# A column that shows two kinds: (kind at the left, its eighths of the column, kind at the right).
Edge = tuple[int, int, int]


def majority_kinds(sums: dict[int, list[int]], columns: int) -> list[int]:
    """Returns the kind that has most of each column, the first in KINDS of equal ones, however much of it is
    empty (`ColumnShares.majority` counts that, too); NOTHING where no kind has any.

    Input and weight gradient count together as backward. Where a schedule separates them the cell is of the
    larger one, and plainly backward where both have over a third.
    """
    if not sums:
        return [NOTHING] * columns
    together = _sum_backward(sums)
    order = sorted(together)
    if len(order) == 1:
        kinds = [order[0]] * columns
        most = together[order[0]]
    else:
        fullest, most = _find_fullest(list(zip(*(together[kind] for kind in order), strict=True)))
        kinds = list(map(order.__getitem__, fullest))
    if 0 in most:
        kinds = [kind if ns else NOTHING for kind, ns in zip(kinds, most, strict=True)]
    return _with_weight_gradients(kinds, together, sums)


class ColumnShares:
    """What each column of a lane is filled with, and the kinds that they are drawn as.

    sums: ns of each kind by column. edges: the times between columns.
    """

    def __init__(self, sums: dict[int, list[int]], edges: Sequence[int]) -> None:
        self._sums = sums
        self._widths = list(map(sub, islice(edges, 1, None), edges))
        self._together = _sum_backward(sums)
        self._order = [*sorted(self._together), NOTHING]
        self._by_column = self._with_nothing()
        # The index in `_order` of what fills most of each column.
        self._fullest, most = _find_fullest(self._by_column)
        self._mixed = list(compress(range(len(most)), map(lt, most, self._widths)))

    def _with_nothing(self) -> list[tuple[int, ...]]:
        """Returns the ns of each column by kind, and behind them what is empty; of kinds that overlap, their
        parts of the column.
        """
        lists, widths = [self._together[kind] for kind in self._order[:-1]], self._widths
        filled = list(map(sum, zip(*lists, strict=True))) if lists else [0] * len(widths)
        if filled == widths:
            # Spans cover all of it, as in most lanes.
            return list(zip(*lists, strict=True))
        # Of columns of no width, of which there are more than ns, each shows the instant that it stands for.
        nothing = [max(width - ns, not ns) for width, ns in zip(widths, filled, strict=True)]
        columns: list[tuple[int, ...]] = list(zip(*lists, nothing, strict=True))
        for column in compress(range(len(widths)), map(gt, filled, widths)):
            if width := widths[column]:
                parts = [ns * width // filled[column] for ns in columns[column][:-1]]
                columns[column] = (*parts, width - sum(parts))
        return columns

    def majority(self) -> list[int]:
        """Returns the kind that fills most of each column, NOTHING where most of it is empty."""
        return self._as_kinds(self._fullest)

    def shared(self, edge_at: Mapping[int, Edge] | None = None, *, has_few_runs: bool = False) -> list[int]:
        """Returns the kind of each column: each kind has as many columns as it has time.

        edge_at: the columns that show two kinds; they keep the one that fills most, and what they show is
        what counts. has_few_runs: whether kinds that alternate are drawn in runs of several columns: a kind
        goes on until it has a column more than its time.
        """
        exact = edge_at or {}
        drawn_as = list(self._fullest)
        lacking = [0] * len(self._order)
        settled_from = len(drawn_as) - _SETTLED_IN
        for column in self._mixed:
            values, width = self._by_column[column], self._widths[column]
            if column in exact:
                self._carry_edge(lacking, column, exact[column])
                continue
            best, most = -1, 0
            for at, ns in enumerate(values):
                if ns:
                    lacking[at] = now = lacking[at] + ns
                    if best < 0 or now > most:
                        best, most = at, now
            if has_few_runs and 0 < column < settled_from:
                last = drawn_as[column - 1]
                if values[last] and lacking[last] >= 0:
                    best = last
            lacking[best] -= width
            drawn_as[column] = best
        return self._as_kinds(drawn_as)

    def _carry_edge(self, lacking: list[int], column: int, edge: Edge) -> None:
        """Carries what each kind lacks behind a column that shows two of them."""
        for at, ns in enumerate(self._by_column[column]):
            lacking[at] += ns
        left, eighths, right = edge
        width, order = self._widths[column], self._order
        left_ns = width * eighths // 8
        for kind, ns in ((left, left_ns), (right, width - left_ns)):
            lacking[order.index(_BWD if kind == _WG and kind not in order else kind)] -= ns

    def _as_kinds(self, indices: Iterable[int]) -> list[int]:
        kinds = list(map(self._order.__getitem__, indices))
        return _with_weight_gradients(kinds, self._together, self._sums)


# From this many columns before the end of a row on no kind gets more than its time.
_SETTLED_IN = 8


def _find_fullest(columns: Sequence[tuple[int, ...]]) -> tuple[list[int], list[int]]:
    """Returns (the index of the largest value of each column, that value)."""
    most = list(map(max, columns))
    return [values.index(ns) for values, ns in zip(columns, most, strict=True)], most


def _sum_backward(sums: dict[int, list[int]]) -> dict[int, list[int]]:
    """Returns ns of each kind by column, with input and weight gradient as one."""
    if _WG not in sums or _BWD not in sums:
        return sums
    together = {kind: values for kind, values in sums.items() if kind != _WG}
    together[_BWD] = list(map(add, sums[_BWD], sums[_WG]))
    return together


def _with_weight_gradients(
    kinds: list[int], together: dict[int, list[int]], sums: dict[int, list[int]]
) -> list[int]:
    """Returns the kinds, with backward changed in place where it is mostly weight gradient. together: the
    kinds of `sums` with both as one.
    """
    if together is not sums:
        for column, (kind, other) in enumerate(zip(kinds, sums[_WG], strict=True)):
            if kind == _BWD and 3 * other >= 2 * together[_BWD][column]:
                kinds[column] = _WG
    return kinds


def count_runs(kinds: Sequence[int]) -> int:
    """Returns how many runs of one kind a row has."""
    changes: int = sum(map(ne, kinds, islice(kinds, 1, None)))
    return 1 + changes


def count_lone(kinds: Sequence[int]) -> int:
    """Returns how many columns differ from both their neighbours."""
    changes = list(map(ne, kinds, islice(kinds, 1, None)))
    lone_count: int = sum(map(and_, changes, islice(changes, 1, None)))
    return lone_count
