"""Refines the graph of ranks and groups until nothing splits, and names the classes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from simcore.cluster import Cluster
from simcore.diagnostics import UsageError
from simcore.folding.graph import (
    CellGraph,
    CellGroup,
    Folding,
    GroupClass,
    Link,
    RankClass,
    boxed_graph,
    is_aligned,
    listed_graph,
)
from simcore.layout import Layout
from simcore.program import Program
from simcore.program.ops import CollectiveCost, ComputeCost, TransferCost
from simcore.program.overrides import Overrides
from simcore.ranks import RankSet
from simcore.units import plural
from simcore.workload.memory import check_memory, run_bytes
from simcore.workload.model import GroupKind

# Refinement that lists every rank takes about 20 us each.
MOST_LISTED_RANKS = 2**20


def fold(
    layout: Layout,
    cluster: Cluster,
    program: Program,
    overrides: Overrides = Overrides(),  # noqa: B008 - frozen, and no override is the plain case
    every_rank: bool = False,
) -> Folding:
    """Returns the rank classes of a run; with `every_rank` each rank is a class of its own.

    With jitter every rank is one too: each has its own hash. Raises `UsageError` for more ranks than can be
    listed where they have to be.
    """
    every_rank = every_rank or overrides.jitter > 0
    kinds: list[GroupKind] = []
    steps: list[int] = []
    experts, replicas = equal_experts(program.costs), _equal_replicas(program)
    for cost in program.costs:
        if isinstance(cost, CollectiveCost) and cost.group not in kinds:
            kinds.append(cost.group)
        elif isinstance(cost, TransferCost) and cost.step not in steps:
            # A receiver needs to know its sender, so the reverse direction is a link too.
            steps += [cost.step, -cost.step]
    if not every_rank and "all" not in kinds and is_aligned(layout, cluster):
        graph = boxed_graph(layout, cluster, kinds, steps, overrides, experts, replicas)
    else:
        if layout.world > MOST_LISTED_RANKS:
            raise UsageError(
                f"{layout.world} ranks whose groups do not align with the cluster (or --no-fold, --jitter) "
                f"are looked at one by one: at most {MOST_LISTED_RANKS}"
            )
        _check_memory(layout, program, overrides, every_rank)
        graph = listed_graph(layout, cluster, kinds, steps, overrides, experts, replicas)
    return _classes(graph, _refine(graph, every_rank))


def equal_experts(costs: Iterable[object]) -> tuple[int, ...]:
    """Returns by index in an expert group the first index with the same loads; () where its ranks do not
    differ.
    """
    loads = [
        load
        for cost in costs
        for load in (
            cost.by_rank if isinstance(cost, ComputeCost)
            else cost.ports if isinstance(cost, CollectiveCost) else (),
        )
        if load
    ]  # fmt: skip
    if not loads:
        return ()
    first: dict[tuple[int, ...], int] = {}
    return tuple(
        first.setdefault(expert_loads, index) for index, expert_loads in enumerate(zip(*loads, strict=True))
    )


def _equal_replicas(program: Program) -> tuple[int, ...]:
    """Returns by replica the first one with the same micro-batches; () where micro-batches do not differ."""
    first: dict[tuple[int, ...], int] = {}
    return tuple(first.setdefault(packing, replica) for replica, packing in enumerate(program.packings))


def _check_memory(layout: Layout, program: Program, overrides: Overrides, every_rank: bool) -> None:
    """Raises `UsageError` where there is not enough memory for ranks that are listed, and timed one
    by one.
    """
    stages = [len(stage.ops) for stage in program.stages]
    own_classes = layout.world if every_rank else 0
    class_ops = own_classes // len(stages) * sum(stages)
    has_equal_ranks = every_rank and overrides.jitter == 0 and not program.packings
    needed = run_bytes(
        program.stage_ops,
        class_ops,
        own_classes,
        layout.world,
        queued=program.queued,
        has_equal_ranks=has_equal_ranks,
    )
    what = f"{plural(layout.world, 'rank')} one by one"
    if every_rank:
        what += f" have {class_ops} ops"
    hint = "fewer ranks, --world, would need less"
    if overrides.jitter > 0:
        hint = "without --jitter equal ranks are simulated once"
    elif every_rank:
        hint = "without --no-fold equal ranks are simulated once"
    check_memory(needed, what, hint)


def _refine(graph: CellGraph, every_rank: bool) -> list[int]:
    """Returns the colour of each cell when nothing splits any more."""
    if every_rank:
        return list(range(len(graph.cells)))
    colours = _number_keys(
        [(cell.stage, cell.slowdown, cell.expert, cell.replica, cell.ports) for cell in graph.cells]
    )
    while True:
        group_colours = _group_colours(graph.groups, colours)
        refined = _number_keys(
            [
                (
                    colours[index],
                    *[group_colours[group] for group in cell.groups.values()],
                    *[
                        (step, colours[other], shape, ports)
                        for step, (other, shape, ports) in cell.links.items()
                    ],
                )
                for index, cell in enumerate(graph.cells)
            ]
        )
        if max(refined) == max(colours):
            return refined
        colours = refined


def _group_colours(groups: list[CellGroup], colours: list[int]) -> list[int]:
    keys = []
    for group in groups:
        counts: dict[int, int] = {}
        for cell_index, count in group.members.items():
            counts[colours[cell_index]] = counts.get(colours[cell_index], 0) + count
        keys.append((group.kind, group.shape, group.ports, tuple(sorted(counts.items()))))
    return _number_keys(keys)


def _number_keys(keys: Sequence[Hashable]) -> list[int]:
    """Returns each key's number by first appearance: the order of ranks decides, never a hash."""
    number_of: dict[Hashable, int] = {}
    return [number_of.setdefault(key, len(number_of)) for key in keys]


def _classes(graph: CellGraph, colours: list[int]) -> Folding:
    """Returns the classes in the order of their lowest rank, so that the number of a class tells its
    position.
    """
    members: dict[int, list[int]] = {}
    for cell_index, colour in enumerate(colours):
        members.setdefault(colour, []).append(cell_index)
    order = sorted(members, key=lambda colour: min(graph.cells[index].first for index in members[colour]))
    number_of = {colour: index for index, colour in enumerate(order)}
    classes_of = [number_of[colour] for colour in colours]
    group_colours = _group_colours(graph.groups, classes_of)
    group_classes: dict[int, GroupClass] = {}
    for group, colour in zip(graph.groups, group_colours, strict=True):
        if colour not in group_classes:
            taking_part = tuple(sorted({classes_of[index] for index in group.members}))
            group_classes[colour] = GroupClass(group.kind, group.shape, group.ports, taking_part)
    classes = []
    for colour in order:
        cell = graph.cells[min(members[colour], key=lambda index: graph.cells[index].first)]
        groups = {kind: group_colours[group] for kind, group in cell.groups.items()}
        links = {
            step: Link(classes_of[other], shape, ports) for step, (other, shape, ports) in cell.links.items()
        }
        ranks = [graph.cells[index].ranks for index in members[colour]]
        classes.append(
            RankClass(
                _union(ranks), cell.stage, cell.slowdown, cell.ports, groups, links, cell.expert, cell.replica
            )
        )
    return Folding(tuple(classes), tuple(group_classes[index] for index in range(len(group_classes))))


def _union(sets: list[RankSet]) -> RankSet:
    """Returns the ranks of disjoint sets together."""
    if len(sets) == 1:
        return sets[0]
    if all(len(rank_set) == 1 for rank_set in sets):
        return RankSet.of(rank_set.first for rank_set in sets)
    return RankSet(sorted(block for rank_set in sets for block in rank_set.blocks))
