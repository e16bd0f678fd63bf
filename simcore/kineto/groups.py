"""The process group of a collective whose event does not state it: the one whose members end together.

A host's annotation (`gloo:all_reduce`) has the operation and the size alone. The file lists the groups of its
rank. The calls of one operation and size are assigned to the group whose members leave them together: the
spread of the differences of their ends is least. Clocks do not matter, as a constant difference has no
spread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median_low
from typing import Any

from simcore.diagnostics import Diagnostic, printable
from simcore.kineto.values import ranks_of, text_of
from simcore.kineto.vocabulary import category_of_group_name
from simcore.measured.columns import CollectiveInfo, RankTrace
from simcore.measured.vocabulary import CATEGORIES
from simcore.records import replace
from simcore.units import duration, plural

# Group name -> (description, members), as a rank's file has them.
Groups = Mapping[str, tuple[str, tuple[int, ...]]]
_PAIR = {"send": "sendrecv", "recv": "sendrecv"}
_Signature = tuple[str, int]


def stated_groups(config: Any) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Returns the groups of a rank by name, as `pg_config` has them: (description, members)."""
    groups: dict[str, tuple[str, tuple[int, ...]]] = {}
    for entry in config if isinstance(config, list) else ():
        if isinstance(entry, dict):
            name = text_of(entry.get("pg_name")) or str(len(groups))
            groups[name] = (text_of(entry.get("pg_desc")) or name, ranks_of(entry.get("ranks")) or ())
    return groups


def name_groups(path: str, ranks: Sequence[RankTrace], groups: Sequence[Groups]) -> list[Diagnostic]:
    """Assigns the best fitting group to collectives without one, and returns notes on it. groups: of each
    rank.
    """
    diagnostics: list[Diagnostic] = []
    index_of = {rank.rank: index for index, rank in enumerate(ranks)}
    calls: dict[_Signature, dict[int, list[int]]] = {}
    for index, rank in enumerate(ranks):
        for op, collective in (rank.device.collectives if rank.device else {}).items():
            if collective.group is None and collective.elements_in >= 0:
                key = (
                    _PAIR.get(collective.operation, collective.operation),
                    collective.elements_in,
                )
                calls.setdefault(key, {}).setdefault(index, []).append(op)
    for (operation, elements), by_rank in calls.items():
        best: tuple[tuple[int, int], str, dict[int, tuple[int, ...]]] | None = None
        sizes = _sizes(ranks, by_rank)
        for description, members in _partitions(groups, by_rank).items():
            if sizes and {len(some) for some in members.values()} != sizes:
                continue
            spread = _spread(ranks, by_rank, index_of, members, operation)
            if spread is not None and (best is None or spread < best[0]):
                best = (spread, description, members)
        if best is None:
            continue
        (middle, most), description, members = best
        for index, ops in by_rank.items():
            for op in ops:
                _set_group(ranks[index], op, description, members[index])
        message = (
            f"{plural(sum(map(len, by_rank.values())), 'call')} of {printable(operation, 40)} ({elements} "
            f"elements) name no group: taken to be of {printable(description, 40)}, whose members' ends "
            f"differ least: their usual difference changes by {duration(middle)} in the middle and "
            f"{duration(most)} at most"
        )
        diagnostics.append(Diagnostic("note", "group-by-ends", message, path))
    return diagnostics


def _sizes(ranks: Sequence[RankTrace], by_rank: Mapping[int, Sequence[int]]) -> set[int]:
    """Returns the numbers of members that the groups of calls are stated to have."""
    devices = [(ranks[index].device, ops) for index, ops in by_rank.items()]
    return {device.collectives[op].size for device, ops in devices if device for op in ops} - {0}


def _partitions(
    groups: Sequence[Groups], by_rank: Mapping[int, object]
) -> dict[str, dict[int, tuple[int, ...]]]:
    """Returns description -> members of the group of that name, by the index of each rank that calls."""
    partitions: dict[str, dict[int, tuple[int, ...]]] = {}
    for index in by_rank:
        for description, members in groups[index].values():
            if len(members) > 1:
                partitions.setdefault(description, {}).setdefault(index, members)
    return {name: members for name, members in partitions.items() if len(members) == len(by_rank)}


def _spread(
    ranks: Sequence[RankTrace],
    by_rank: Mapping[int, list[int]],
    index_of: Mapping[int, int],
    members: Mapping[int, tuple[int, ...]],
    operation: str,
) -> tuple[int, int] | None:
    """Returns how far ends of the same call are from their usual difference, the median and the maximum, ns;
    None where counts differ.
    """
    apart: list[int] = []
    for group in set(members.values()):
        there = [index_of[rank] for rank in group if rank in index_of]
        if operation == "sendrecv" and len(group) != 2:
            return None
        counts = {len(by_rank.get(index, ())) for index in there}
        if len(counts) != 1 or not min(counts):
            return None
        first, *others = there
        for other in others:
            differences = [
                ranks[other].ops.end[other_op] - ranks[first].ops.end[op]
                for op, other_op in zip(by_rank[first], by_rank[other], strict=True)
            ]
            middle = median_low(differences)
            apart += [abs(ns - middle) for ns in differences]
    return (median_low(apart), max(apart)) if apart else None


def _set_group(rank: RankTrace, op: int, description: str, members: tuple[int, ...]) -> None:
    device = rank.device
    assert device is not None
    collective: CollectiveInfo = device.collectives[op]
    device.collectives[op] = replace(collective, group=description, ranks=members, size=len(members))
    rank.ops.group[op] = description
    rank.ops.stated_category[op] = CATEGORIES.index(category_of_group_name(description))
