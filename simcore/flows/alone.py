"""Collectives on an otherwise idle topology: `wltui collective --network flows`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from simcore.flows.collectives import start_collective
from simcore.flows.packets import finer_rules, make_traffic, slowed_rules
from simcore.flows.traffic import FlowReport, FlowRules
from simcore.records import NamedTuple
from simcore.topology import Topology


class FlowRun(NamedTuple):
    """When each group has finished, ns, and what ports carried."""

    ends: tuple[int, ...]
    report: FlowReport
    rules: FlowRules


def run_collectives(
    topology: Topology,
    groups: Sequence[Sequence[int]],
    collective: str,
    size: int,
    rules: FlowRules,
    algorithm: str = "",
) -> FlowRun:
    """Runs a collective of `size` bytes of the whole buffer in each group, which begin together."""
    traffic, ends = make_traffic(topology, rules), dict[int, int]()
    for index, ranks in enumerate(groups):
        start_collective(
            traffic, ranks, collective, size, partial(ends.__setitem__, index), algorithm=algorithm
        )
    traffic.run()
    finer = finer_rules(traffic)
    if finer is not None:
        return run_collectives(topology, groups, collective, size, finer, algorithm)
    return FlowRun(tuple(ends[index] for index in range(len(groups))), traffic.report(), rules)


def slowed_end(
    run: FlowRun,
    topology: Topology,
    groups: Sequence[Sequence[int]],
    collective: str,
    size: int,
    algorithm: str = "",
) -> int | None:
    """Returns when the last group has finished under congestion control; None where that is not told."""
    rules = slowed_rules(run.report, run.rules)
    if rules is None:
        return None
    return max(run_collectives(topology, groups, collective, size, rules, algorithm).ends)


def like_groups(npus: int, ranks: Sequence[int]) -> list[list[int]]:
    """Returns the group and those like it: moved by whole ranks, without overlap, over the cluster.

    >>> like_groups(8, [0, 2])
    [[0, 2], [1, 3], [4, 6], [5, 7]]
    """
    used: set[int] = set()
    groups = []
    offsets = [rank - ranks[0] for rank in ranks]
    for first in range(npus):
        moved_ranks = [first + offset for offset in offsets]
        if moved_ranks[-1] < npus and used.isdisjoint(moved_ranks):
            used.update(moved_ranks)
            groups.append(moved_ranks)
    return groups
