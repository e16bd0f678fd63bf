"""The ranks by their coordinates: which are equal, and a measure of each, as a map of stage by (dp, tp)."""

from __future__ import annotations

from collections.abc import Callable

from simcore.folding import RankClass
from simcore.layout import Layout
from simcore.ranks import RankSet
from simcore.trace.accounts import Accounts
from simcore.trace.contexts import MapRow

# What a map can show, as a share of the step: name -> function that gives it of a rank class, ns.
MEASURES: dict[str, Callable[[Accounts], int]] = {
    "bubble": lambda accounts: accounts.bubble_ns,
    "exposed": lambda accounts: accounts.all_exposed_ns,
    "wait": lambda accounts: accounts.wait_ns,
    "computing": lambda accounts: accounts.busy_ns,
    "idle": lambda accounts: accounts.idle_ns,
    "end": lambda accounts: accounts.last_end_ns,
}


def make_rank_map(layout: Layout, classes: tuple[RankClass, ...]) -> list[MapRow]:
    """Returns the rows of the map, by their lowest (dp, tp); every rank of the world is in one cell.

    The largest class of a stage fills every cell that no other class has, and only the ranks of the other
    classes are visited: a slow rank among a million costs the time of its peers, not of the million.
    """
    largest: dict[int, int] = {}
    for class_id, rank_class in enumerate(classes):
        best = largest.get(rank_class.stage)
        if best is None or len(rank_class.ranks) > len(classes[best].ranks):
            largest[rank_class.stage] = class_id
    usual_classes = tuple(largest[stage] for stage in range(layout.pp))
    others: dict[tuple[int, int], list[int]] = {}
    for class_id, rank_class in enumerate(classes):
        if largest[rank_class.stage] == class_id:
            continue
        for rank in rank_class.ranks:
            tp, dp, stage = layout.position(rank)
            others.setdefault((dp, tp), list(usual_classes))[stage] = class_id
    rows: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for pair, class_ids in sorted(others.items()):
        rows.setdefault(tuple(class_ids), []).append(pair)
    usual_pairs = layout.dp * layout.tp - len(others)
    map_rows = [_make_row(pairs, of_stages) for of_stages, pairs in rows.items()]
    if usual_pairs:
        map_rows.append(_make_usual_row(layout, others, usual_pairs, usual_classes))
    return sorted(map_rows, key=lambda row: (row.dp.first, row.tp.first, -row.pairs))


def _make_row(pairs: list[tuple[int, int]], classes: tuple[int, ...]) -> MapRow:
    dp, tp = (RankSet.of(pair[part] for pair in pairs) for part in (0, 1))
    return MapRow(dp, tp, len(pairs), classes)


def _make_usual_row(
    layout: Layout, others: dict[tuple[int, int], list[int]], pairs: int, classes: tuple[int, ...]
) -> MapRow:
    """Returns the row of all pairs that are not among `others`."""
    used_dp, used_tp = [0] * layout.dp, [0] * layout.tp
    for dp, tp in others:
        used_dp[dp] += 1
        used_tp[tp] += 1
    return MapRow(
        RankSet.of(dp for dp in range(layout.dp) if used_dp[dp] < layout.tp),
        RankSet.of(tp for tp in range(layout.tp) if used_tp[tp] < layout.dp),
        pairs,
        classes,
    )
