"""The orders of a schedule that is searched (`zb-1p`, `zb-2p`), for what its actions take in a run.

An action takes what it does alone, on the slowest rank of its stage, and of micro-batches whose documents
differ the mean: what other actions delay, shared ports and jitter are left out. So only a run decides between
the order that the search finds and that of its rule: of 1,500 random runs they differed in 156, and in 8 of
these the rule was shorter, by up to 0.3 %.
"""

from __future__ import annotations

from collections.abc import Sequence

from simcore.engine.pricing import Prices
from simcore.folding import fold
from simcore.networks import check_flags
from simcore.program.building import ProgramPlan, assemble_program, plan_program
from simcore.program.ops import COMPUTE, CollectiveCost, ComputeCost, Cost, Ops, StageProgram, TransferCost
from simcore.program.order import Order, Shape
from simcore.program.plan import OpSegment
from simcore.program.schedules.zb_search import ActionTimes, StageTimes, rule_order, search_order
from simcore.program.stage_builder import StageBuilder
from simcore.records import NamedTuple, replace
from simcore.setup import Setup

# Folding asks only how many stages there are.
_NO_OPS = StageProgram(Ops(), (), 0)


def find_orders(setup: Setup) -> tuple[Order, ...]:
    """Returns the orders of a searched schedule of which the one with the shorter step counts: what the
    search finds, and the rule's where that is another one. Raises as a run does.
    """
    check_flags(setup.rules.network, setup.network, setup.schedule.explicit_names)
    plans = plan_program(
        setup.workload, setup.layout, setup.schedule, setup.overrides.layer_scales, setup.least_forward_bytes
    )
    limit, shape = plans.schedule.search_limit, Shape(setup.layout.pp, plans.plan.microbatches)
    rule = rule_order(shape, limit)
    if shape.stages == 1 or not shape.microbatches:
        return (rule,)
    best = search_order(shape, limit, find_stage_times(plans, setup), repeats=plans.plan.steps > 1)
    return (rule,) if best.stages == rule.stages else (best, rule)


class _ActionSegments(NamedTuple):
    """The segments of the parts of `ActionTimes`."""

    forward: tuple[OpSegment, ...]
    input_grad: tuple[OpSegment, ...]
    weight_grad: tuple[OpSegment, ...]
    loss: tuple[OpSegment, ...]


def find_stage_times(plans: ProgramPlan, setup: Setup) -> StageTimes:
    """Returns what the actions of each stage and its transfers take."""
    plan, layout = plans.plan, setup.layout
    segments = [_build_segments(StageBuilder(plan, stage)) for stage in range(layout.pp)]
    sends = (TransferCost(1, plan.transfer_bytes), TransferCost(-1, plan.transfer_bytes))
    costs = (*(cost for _, cost in plan.costs), *sends)
    network = setup.open_network()
    # Raises for what the network has no price for.
    network.diagnostics(plan.workload, plan.structure)
    # Jitter would make each rank a class of its own.
    overrides = replace(setup.overrides, jitter=0.0)
    program = assemble_program(plans, (_NO_OPS,) * layout.pp, costs)
    folding = fold(layout, setup.cluster, program, overrides)
    prices = Prices(network, overrides.compute_scale, overrides.comm_scale)
    # By stage the prices of its ranks, equal ones once.
    tables: list[dict[object, list[int]]] = [{} for _ in range(layout.pp)]
    for rank_class in folding.classes:
        key = folding.price_key(rank_class)
        if key not in tables[rank_class.stage]:
            table = tables[rank_class.stage][key] = []
            for cost in map(_with_mean_packing, costs):
                ns = prices.of_class(cost, folding, rank_class)
                table.append(cost.share_of(ns) if isinstance(cost, CollectiveCost) else ns)
    actions = tuple(
        tuple(_find_times(of_block, [*of_ranks.values()]) for of_block in of_stage)
        for of_stage, of_ranks in zip(segments, tables, strict=True)
    )
    to_next, to_previous = (
        tuple(max(table[send] for table in of_ranks.values()) for of_ranks in tables) for send in (-2, -1)
    )
    return StageTimes(actions, to_next, to_previous)


def _with_mean_packing(cost: Cost) -> Cost:
    """Returns a cost whose micro-batches differ with the mean of what they take."""
    if not isinstance(cost, ComputeCost) or not cost.by_packing:
        return cost
    return cost._replace(ns=sum(cost.by_packing) // len(cost.by_packing), by_packing=())


def _build_segments(builder: StageBuilder) -> list[_ActionSegments]:
    """Returns the segments of each micro-batch of a file, of which a model has one."""
    plan, segments = builder.plan, []
    loss = plan.loss_rows(builder.stage, 0)
    for block in range(1 if plan.workload.stages else len(plan.structure.blocks)):
        rows = plan.rows(builder.stage, block, 0)
        forward, forward_loss = builder.part_ops("fwd", rows), builder.part_ops("fwd", loss)
        input_grad, weight_grad = (
            (builder.part_ops(part, loss), builder.part_ops(part, rows)) for part in ("ig", "wg")
        )
        segments.append(_ActionSegments((forward,), input_grad, weight_grad, (forward_loss,)))
    return segments


def _find_times(segments: _ActionSegments, tables: list[list[int]]) -> ActionTimes:
    """Returns what actions take on the slowest rank. tables: the prices of ranks."""
    return ActionTimes(
        *(max(sum(_segment_ns(segment, table) for segment in part) for table in tables) for part in segments)
    )


def _segment_ns(segment: OpSegment, table: Sequence[int]) -> int:
    """Returns how long compute is in a segment that begins on idle streams. table: prices by cost."""
    ops = segment.ops
    waits: dict[int, list[int]] = {}
    for position, op in segment.joins:
        waits.setdefault(position, []).append(op)
    time = 0
    ends: list[int] = []
    free: dict[int, int] = {}
    for op, (stream, blocking, cost) in enumerate(zip(ops.stream, ops.blocking, ops.cost, strict=True)):
        time = max([time, *(ends[awaited] for awaited in waits.get(op, ()))])
        end = max(time, free.get(stream, 0)) + table[cost]
        ends.append(end)
        free[stream] = end
        if stream == COMPUTE or blocking:
            time = end
    return max([time, *(ends[awaited] for awaited in waits.get(len(ops), ()))])
