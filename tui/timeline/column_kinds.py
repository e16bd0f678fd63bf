"""Which kind of time each column of a lane is drawn as: each kind has as many columns as it has time.

A column that one kind fills is drawn as that kind. Columns that several kinds share are given out by carrying
what each kind lacks on to the next column, so that no stretch of columns shows a kind more than about one
column too much or too little. With what fills most of each column, forward would vanish where it is 28 % of
every one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from operator import add, and_, ne, sub

from simcore.trace.lane_spans import KINDS

# No span at all: the time of a lane that its spans leave empty.
NOTHING = -1
_BWD, _WG = KINDS.index("bwd"), KINDS.index("wg")
# A column that shows two kinds: (kind at the left, its eighths of the column, kind at the right).
Edge = tuple[int, int, int]


def majority_kinds(sums: dict[int, list[int]], columns: int) -> list[int]:
    """Returns the kind that fills most of each column, the first in KINDS of equal ones; NOTHING where none
    does.

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
        by_column = list(zip(*(together[kind] for kind in order), strict=True))
        most = list(map(max, by_column))
        kinds = [order[values.index(ns)] for values, ns in zip(by_column, most, strict=True)]
    if 0 in most:
        kinds = [kind if ns else NOTHING for kind, ns in zip(kinds, most, strict=True)]
    return _with_weight_gradients(kinds, together, sums)


def shared_kinds(
    sums: dict[int, list[int]],
    edges: Sequence[int],
    edge_at: Mapping[int, Edge] | None = None,
    *,
    has_few_runs: bool = False,
) -> list[int]:
    """Returns the kind of each column, NOTHING for an empty one: each kind has as many as it has time.

    edge_at: the columns that show two kinds; they keep the one that fills most, and what they show is what
    counts. has_few_runs: whether kinds that alternate are drawn in runs of several columns: a kind goes on
    until it has a column more than its time.
    """
    widths = list(map(sub, islice(edges, 1, None), edges))
    if not sums:
        return [NOTHING] * len(widths)
    together = _sum_backward(sums)
    order = [*sorted(together), NOTHING]
    by_column = _with_nothing(zip(*map(together.__getitem__, order[:-1]), strict=True), widths)
    exact = edge_at or {}
    lacking = [0] * len(order)
    kinds, index = [], -1
    settled_from = len(widths) - _SETTLED_IN
    for column, (values, width) in enumerate(zip(by_column, widths, strict=True)):
        most = max(values)
        if most >= width:
            index = values.index(most)
        elif column in exact:
            index = values.index(most)
            _carry_edge(lacking, order, values, width, exact[column])
        else:
            index = _carry(lacking, values, width, index, has_few_runs and column < settled_from)
        kinds.append(order[index])
    return _with_weight_gradients(kinds, together, sums)


# From this many columns before the end of a row on no kind gets more than its time.
_SETTLED_IN = 8


def _with_nothing(by_column: Iterable[tuple[int, ...]], widths: Sequence[int]) -> list[tuple[int, ...]]:
    """Returns the ns of each column by kind, and behind them what is empty; of kinds that overlap, their
    parts of the column.
    """
    columns = []
    for values, width in zip(by_column, widths, strict=True):
        filled = sum(values)
        if filled > width > 0:
            values = tuple(ns * width // filled for ns in values)
            filled = sum(values)
        # Of columns of no width, of which there are more than ns, each shows the instant that it stands for.
        columns.append((*values, max(width - filled, not filled)))
    return columns


def _carry(lacking: list[int], values: tuple[int, ...], width: int, last: int, goes_on: bool) -> int:
    """Returns the index of the kind that a column is drawn as, and carries what each kind lacks then.

    goes_on: whether the kind of the column before, `last`, goes on as long as it gets at most a column more
    than its time.
    """
    best = -1
    for at, ns in enumerate(values):
        if ns:
            lacking[at] += ns
            if best < 0 or lacking[at] > lacking[best]:
                best = at
    if goes_on and last >= 0 and values[last] and lacking[last] >= 0:
        best = last
    lacking[best] -= width
    return best


def _carry_edge(
    lacking: list[int], order: Sequence[int], values: tuple[int, ...], width: int, edge: Edge
) -> None:
    """Carries what each kind lacks behind a column that shows two of them."""
    for at, ns in enumerate(values):
        lacking[at] += ns
    left, eighths, right = edge
    left_ns = width * eighths // 8
    for kind, ns in ((left, left_ns), (right, width - left_ns)):
        lacking[order.index(_BWD if kind == _WG and kind not in order else kind)] -= ns


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
