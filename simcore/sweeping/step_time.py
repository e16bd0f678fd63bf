"""The step time of a run, without any other figure: what a sweep needs of thousands of points.

The ops of a micro-batch that can only run one after another are merged into one: compute, and collectives
that compute waits for, in groups whose members are all of one rank class, so that no other rank can delay
them. A split cell is one op, as its collective has ended when compute goes on. The first forward and the last
backward of a chunk, among whose rows gathers and reductions of the step run, are parts of their own. Where
ranks of several classes meet, as those of an expert group with uneven loads, the classes of a stage are
walked together. And points share the order of a schedule: where the stages of two runs do the same ops, each
at its own price, only the prices of the second are computed.

Import from here: `StepTimes`, `StepTime`.
"""

from __future__ import annotations

import operator
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from simcore.diagnostics import UsageError
from simcore.engine.finish import (
    BEGIN,
    JOIN,
    RECEIVE,
    SEND,
    WAIT_SENDS,
    WAIT_STREAM,
    PartTimes,
    Script,
    ScriptStep,
    finish_ns,
    make_script,
    part_times,
    whole_script,
)
from simcore.engine.pricing import Prices
from simcore.engine.searched_orders import find_orders
from simcore.engine.teams import Clocks, Team, TeamPart, find_teams
from simcore.folding import Folding, RankClass, fold
from simcore.folding.folding import equal_experts
from simcore.layout import Layout
from simcore.networks import Network, Sharing, check_flags
from simcore.program.building import ProgramPlan, assemble_program, plan_program
from simcore.program.ops import (
    FWD,
    STREAM_OF_GROUP,
    TO_NEXT,
    AnyCost,
    CollectiveCost,
    Ops,
    PartCost,
    StageProgram,
    TransferCost,
)
from simcore.program.order import Action, Order
from simcore.program.overrides import Overrides
from simcore.program.plan import OpSegment, Plan
from simcore.program.schedule_choice import ScheduleParameters
from simcore.program.stage_builder import StageBuilder
from simcore.records import NamedTuple, Struct, replace
from simcore.setup import Setup
from simcore.simulation import simulate_setup
from simcore.workload import Workload
from simcore.workload.model import GroupKind

if TYPE_CHECKING:
    from simcore.engine.jitter import Normals
    from simcore.program import Program
    from simcore.sweeping.every_op import JitteredRun

# Cached steps of scripts, 130 B each: a sweep comes back to its last orders.
_KEPT_STEPS = 1_000_000
# Cached orders of the same shape.
_ORDERS_PER_KEY = 4
# Ops of cached runs with jitter, some 60 B each: a search tries ten points with each of several seeds.
_KEPT_OPS = 500_000
# Cached foldings, and the stages that they are made of here: only their number counts.
_KEPT_FOLDINGS = 64
_ALL = STREAM_OF_GROUP["all"]
_NO_OPS = StageProgram(Ops(), (), 0)
# A part of a micro-batch: its kind (`StageBuilder.part_ops`), and its rows.
_Part = tuple[str, tuple[int, ...]]
_Costs = tuple[AnyCost, ...]
# The kind, the chunk and the block of an action, and whether it is special (`StageBuilder.is_special`).
_Kind = tuple[str, int, int, bool]


class StepTime(Struct, frozen=True):
    """The step time and layout of a run, as `wltui report` states them."""

    step_time_ns: int
    layout: Layout
    schedule: str
    """The name of the schedule."""
    virtual_stages: int
    microbatches: int
    """The micro-batches of each replica, of all steps."""
    order: Order | None = None
    """The order of a step, of a schedule that is searched."""


class _Slot(NamedTuple):
    """The source of the price of an op."""

    part: _Part | None
    """The part whose op `slot` it is; None for other ops."""
    edge: int
    """The stage whose op `slot` it is at the beginning or the end of a step, or in a special action; -1 for
    other ops.
    """
    slot: int
    """The index of the op or, of a transfer, how many stages on it goes."""


class _Order(Struct, frozen=True):
    """The ops of all stages without prices."""

    scripts: tuple[Script, ...]
    """The script of each stage."""
    slots: tuple[_Slot, ...]
    """All slots that scripts name."""
    of_stage: tuple[tuple[int, ...], ...]
    """The indices of the slots that each stage names."""
    parts: dict[_Part, object]
    """The shape of each part."""
    edges: dict[int, object]
    """The special actions of each stage (`StageBuilder.is_special`), and the shape of these and of the
    beginning and the end of its step.
    """
    ends: dict[int, tuple[Action, ...]]
    """By stage the actions that may be special, where anything overlaps: the first and last of chunks."""
    rows: tuple[tuple[int, ...], ...]
    """The rows of chunks and losses, as `_index_rows` has them: another run has others in their positions."""

    @property
    def steps(self) -> int:
        """The number of steps of all scripts, which decides what is cached."""
        return sum(len(script.order) + sum(map(len, script.stretches)) for script in self.scripts)


class StepTimes:
    """Finds the step times of many setups of one workload."""

    def __init__(self) -> None:
        self._orders: dict[object, _Order] = {}
        self._foldings: dict[object, Folding] = {}
        self._normals: dict[int, Normals] = {}
        # By parameters without the seed.
        self._jittered_runs: dict[object, JitteredRun | None] = {}

    def find_step_time(self, setup: Setup) -> StepTime:
        """Returns the step time of a run, equal to that of `_simulated`. Raises as that does."""
        if setup.parameters.jitter:
            return self._from_every_op(setup) or _simulated(setup)
        if _needs_whole_run(setup):
            return _simulated(setup)
        orders = find_orders(setup) if setup.is_searched else (None,)
        times = [self._from_merged_ops(setup, order) for order in orders]
        # Whether ops can be merged does not depend on the order.
        merged = [time for time in times if time is not None]
        return min(merged, key=lambda time: time.step_time_ns) if merged else _simulated(setup)

    def _from_every_op(self, setup: Setup) -> StepTime | None:
        """Returns the step time of a run with jitter. None where only the whole run tells it."""
        # Imported here: few sweeps have jitter.
        from simcore.engine.jitter import Normals
        from simcore.sweeping.every_op import prepare_jittered

        seed, parameters = setup.parameters.seed, setup.parameters
        # Loads of experts that are drawn have the same seed.
        key = parameters if parameters.expert_imbalance else replace(parameters, seed=0)
        if key not in self._jittered_runs:
            is_whole = _needs_whole_run(setup) or setup.is_searched
            self._keep_jittered(key, None if is_whole else prepare_jittered(setup))
        run = self._jittered_runs[key]
        if run is None:
            return None
        if seed not in self._normals:
            self._normals = {seed: Normals(seed)}
        return _step_of(run.setup, run.program, run.find_step_ns(seed, self._normals[seed]))

    def _keep_jittered(self, key: object, run: JitteredRun | None) -> None:
        """Adds a run with jitter to the cached ones, of which the oldest go."""
        runs = self._jittered_runs
        runs[key] = run
        while len(runs) > 1 and sum(one.program.stage_ops for one in runs.values() if one) > _KEPT_OPS:
            del runs[next(iter(runs))]

    def _from_merged_ops(self, setup: Setup, searched: Order | None) -> StepTime | None:
        """Returns the step time by merged ops. searched: the order of a schedule that is searched.

        None where no pipeline schedule runs, or members of groups differ.
        """
        workload, overrides = setup.workload, setup.overrides
        check_flags(setup.rules.network, setup.network, setup.schedule.explicit_names)
        network = setup.open_network()
        if isinstance(network, Sharing):
            return None
        plans = _planned(setup, searched)
        if plans.actions is None:
            return None
        network.diagnostics(workload, plans.plan.structure)
        plans.plan.idle_streams = find_idle_streams(workload)
        order, costs = self._find_order(plans)
        if plans.plan.was_busy:
            plans = _planned(setup, searched)
            order, costs = self._find_order(plans)
        folding = self._fold(plans, costs, setup)
        meeting = _find_meeting_streams(folding)
        if meeting:
            if _ALL in meeting:
                # Stages meet, which are walked one by one.
                return None
            plans = _planned(setup, searched)
            assert plans.plan.merged_streams is not None
            plans.plan.merged_streams -= meeting
            order, costs = self._find_order(plans)
        plan = plans.plan
        try:
            step_ns = _find_end_ns(order, costs, folding, network, overrides)
        except OverflowError:
            raise UsageError(
                "the step would take 2^63 ns (292 years) or more: too long for its times"
            ) from None
        return StepTime(
            step_ns, plan.layout, plans.name, plan.placement.parts, plan.microbatches * plan.steps, searched
        )

    def _fold(self, plans: ProgramPlan, costs: _Costs, setup: Setup) -> Folding:
        """Returns the rank classes. Runs share them that have the same layout and the same kinds of
        communication.
        """
        plan, overrides = plans.plan, setup.overrides
        # The costs of merged ops are among those of the plan.
        every = (*(cost for _, cost in plan.costs), *costs)
        kinds = dict.fromkeys(cost.group for cost in every if isinstance(cost, CollectiveCost))
        steps = dict.fromkeys(cost.step for cost in every if isinstance(cost, TransferCost))
        faults = (*overrides.slow_ranks.items(), *overrides.slow_links.items())
        key = (plan.layout, setup.cluster, *kinds, *steps, faults, equal_experts(every))
        folding = self._foldings.get(key)
        if folding is None:
            program = assemble_program(plans, (_NO_OPS,) * plan.layout.pp, every)
            folding = self._foldings[key] = fold(plan.layout, setup.cluster, program, overrides)
            if len(self._foldings) > _KEPT_FOLDINGS:
                del self._foldings[next(iter(self._foldings))]
        return folding

    def _find_order(self, plans: ProgramPlan) -> tuple[_Order, _Costs]:
        """Returns the order of a run, and the cost of each of its slots."""
        plan = plans.plan
        key = (
            plans.name, plan.layout.pp, plan.microbatches, plan.placement.parts, plan.steps, plan.megatron,
            _row_pattern(plan), plan.merged_streams, plan.idle_streams, plans.order and plans.order.stages,
            plan.overlap_grad_reduce, plan.overlap_param_gather,
        )  # fmt: skip
        # Stages of one key may still have different ops: which rows are recomputed is not in the key.
        for variant in range(_ORDERS_PER_KEY):
            order = self._orders.pop((key, variant), None)
            if order is None:
                break
            self._orders[key, variant] = order
            costs = _find_costs(order, plan)
            if costs is not None:
                return order, costs
        order, costs = _build_order(plans, repeats=True)
        self._orders[key, variant] = order
        while sum(order.steps for order in self._orders.values()) > _KEPT_STEPS and len(self._orders) > 1:
            del self._orders[next(iter(self._orders))]
        return order, costs


def _needs_whole_run(setup: Setup) -> bool:
    """Returns whether only the whole run tells the step time."""
    workload, overrides = setup.workload, setup.overrides
    if overrides.time_scales or setup.schedule.overlap_fwd_bwd or setup.unfolded:
        # Each op has a factor, or a position among others, of its own.
        return True
    if workload.packed is not None:
        # Micro-batches differ.
        return True
    return setup.rules.queued or workload.is_table


def _simulated(setup: Setup) -> StepTime:
    """Returns the step time by the whole run."""
    simulation = simulate_setup(setup)
    return _step_of(setup, simulation.program, simulation.step_time_ns)


def _step_of(setup: Setup, program: Program, step_time_ns: int) -> StepTime:
    return StepTime(
        step_time_ns, setup.layout, program.schedule, program.virtual_stages,
        program.microbatches * program.steps, program.order if setup.is_searched else None,
    )  # fmt: skip


def _planned(setup: Setup, searched: Order | None) -> ProgramPlan:
    """Returns the plan of a run for its step time alone."""
    workload, scales = setup.workload, setup.overrides.layer_scales
    plans = plan_program(workload, setup.layout, setup.schedule, scales, setup.least_forward_bytes, searched)
    plans.plan.merged_streams = find_merged_streams(workload, setup.schedule)
    return plans


def _build_order(plans: ProgramPlan, repeats: bool) -> tuple[_Order, _Costs]:
    """Returns the order of a run, and the costs of its slots, from stages that are built for it.

    repeats: an action does the same for each micro-batch and each step, except for what it is sent: one of
    each is built.
    """
    plan, actions = plans.plan, plans.actions
    assert actions is not None
    index_by_slot: dict[_Slot, int] = {}
    costs: list[AnyCost] = []
    scripts, of_stage = [], []
    edges: dict[int, object] = {}
    ends: dict[int, tuple[Action, ...]] = {}
    for stage in range(plan.layout.pp):
        builder = StageBuilder(plan, stage)
        every = tuple(actions(stage))
        builder.find_ends(every)
        kind_of = [_kind_of(action, builder) for action in every]
        # The first action of each kind.
        kinds: dict[_Kind, Action] = {}
        for kind, action in zip(kind_of, every, strict=True):
            kinds.setdefault(kind, action)
        if plan.overlap_grad_reduce or plan.overlap_param_gather:
            ends[stage] = builder.list_ends(every)
        specials = [action for action in ends.get(stage, ()) if builder.is_special(action)]
        builder.run_steps(tuple(kinds.values()) if repeats else every, 1 if repeats else None)
        built = builder.finish()
        if repeats and not all(map(operator.lt, built.stretches.first, built.stretches.last)):
            # Only the whole order shows which wait belongs to an action without ops.
            return _build_order(plans, repeats=False)
        table = [cost for _, cost in plan.costs]
        slots, edge = _find_slots(built, builder.parts, plan, stage, table)
        edges[stage] = specials, edge
        for slot, cost in zip(slots, built.ops.cost, strict=True):
            if slot not in index_by_slot:
                index_by_slot[slot] = len(index_by_slot)
                costs.append(table[cost])
        slot_indices = [index_by_slot[slot] for slot in slots]
        parts = {slot for slot in slot_indices if isinstance(costs[slot], PartCost)}
        steps = {
            op: table[built.ops.cost[op]].step
            for op, stream in enumerate(built.ops.stream)
            if stream >= TO_NEXT
        }
        script, op_steps = make_script(built, slot_indices, steps, parts)
        if repeats:
            scripts.append(_repeat_script(script, op_steps, built, every, kind_of, plan))
        else:
            scripts.append(whole_script(script))
        of_stage.append(tuple(dict.fromkeys(slot_indices)))
    shapes = {key: _segment_shape(segment) for key, segment in plan.segments.items()}
    rows = tuple(_index_rows(plan))
    order = _Order(tuple(scripts), tuple(index_by_slot), tuple(of_stage), shapes, edges, ends, rows)
    return order, tuple(costs)


def _kind_of(action: Action, builder: StageBuilder) -> _Kind:
    """Returns what decides the ops of an action: blocks of a file take turns."""
    plan = builder.plan
    block = 0 if plan.workload.stages else action.microbatch % len(plan.structure.blocks)
    return action.kind, action.chunk, block, builder.is_special(action)


def _repeat_script(
    steps: list[ScriptStep],
    op_steps: list[int],
    built: StageProgram,
    every: Sequence[Action],
    kind_of: list[_Kind],
    plan: Plan,
) -> Script:
    """Returns the script of all steps from that of one with an action of each kind. kind_of: of each of
    `every`.
    """
    depth = plan.placement.depth
    message_of = {message_id: key for key, message_id in plan.messages.items()}
    stream = built.ops.stream

    def plain(step: ScriptStep) -> ScriptStep:
        """Returns the step with the number of its message for micro-batch 0, and a wait by stream.

        Each wait is for all that was started on its stream.
        """
        code, slot, what, other, _ = step
        if code in (SEND, RECEIVE):
            phase, _, producer, _ = message_of[what]
            return code, slot, 2 * producer + (phase != FWD), other, -1
        if code == JOIN:
            return (
                (WAIT_SENDS, 0, 0, 0, 0) if stream[what] >= TO_NEXT else (WAIT_STREAM, 0, stream[what], 0, 0)
            )
        return (code, slot, what, -1, 0) if code == BEGIN else step

    script = [plain(step) for step in steps]
    stretches: list[tuple[ScriptStep, ...]] = []
    first = op_steps[built.stretches.first[0]] if op_steps else 0
    # The waits of an action come before its first op, after all of the action before.
    while first and script[first - 1][0] == RECEIVE:
        first -= 1
    begins = script[:first]
    for last in built.stretches.last:
        end = op_steps[last - 1] + 1 if last else first
        stretches.append(tuple(script[first:end]))
        first = max(first, end)
    stretches += [tuple(begins), tuple(script[first:])]
    kinds = dict.fromkeys(kind_of)
    index_by_kind = {kind: index for index, kind in enumerate(kinds)}
    order, offsets = array("i"), array("i")
    for step in range(plan.steps):
        order.append(len(kinds))
        offsets.append(0)
        for action, kind in zip(every, kind_of, strict=True):
            order.append(index_by_kind[kind])
            offsets.append(2 * depth * (action.microbatch + step * plan.microbatches))
        order.append(len(kinds) + 1)
        offsets.append(0)
    return Script(tuple(stretches), order, offsets)


def _find_slots(
    built: StageProgram,
    parts: list[tuple[int, _Part]],
    plan: Plan,
    stage: int,
    table: list[AnyCost],
) -> tuple[list[_Slot], object]:
    """Returns the slot of each op of a stage, and the shape of its ops outside of micro-batches."""
    ops = built.ops
    slots: list[_Slot | None] = [None] * len(ops)
    for first, part in parts:
        for index in range(len(plan.segments[part].ops)):
            slots[first + index] = _Slot(part, -1, index)
    shape: list[tuple[int, int]] = []
    filled = []
    for op, slot in enumerate(slots):
        if slot is None:
            cost = table[ops.cost[op]]
            if isinstance(cost, TransferCost):
                slot = _Slot(None, -1, cost.step)
            else:
                slot = _Slot(None, stage, len(shape))
                shape.append((ops.stream[op], ops.blocking[op]))
        filled.append(slot)
    return filled, shape


def _index_rows(plan: Plan) -> dict[tuple[int, ...], int]:
    """Returns the rows of all chunks and losses of a model's stages, numbered, those that several
    have once.
    """
    index_by_rows: dict[tuple[int, ...], int] = {}
    for stage in plan.workload.stages:
        for rows in (*stage.chunks, stage.loss):
            index_by_rows.setdefault(rows, len(index_by_rows))
    return index_by_rows


def _row_pattern(plan: Plan) -> object:
    """Returns which chunks and losses of a model's stages have the same rows, whichever these are."""
    index_by_rows = _index_rows(plan)
    return tuple(
        tuple(index_by_rows[rows] for rows in (*stage.chunks, stage.loss)) for stage in plan.workload.stages
    )


def _segment_shape(segment: OpSegment) -> object:
    ops = segment.ops
    return bytes(ops.stream), bytes(ops.blocking), tuple(segment.joins)


def _find_costs(order: _Order, plan: Plan) -> _Costs | None:
    """Returns the costs of another run in the same order; None where it has other ops."""
    builder = StageBuilder(plan, 0)
    rows_here = dict(zip(order.rows, _index_rows(plan), strict=True))
    segments: dict[_Part, OpSegment] = {}
    for (part, rows), shape in order.parts.items():
        segment = segments[part, rows] = builder.part_ops(part, rows_here.get(rows, rows))
        if _segment_shape(segment) != shape:
            return None
    edges: dict[int, Ops] = {}
    ops_by_rows: dict[object, Ops] = {}
    specials_by_rows: dict[object, list[Action]] = {}
    for stage, edge in order.edges.items():
        ends = order.ends.get(stage, ())
        key: object = (ends and stage, ends)
        if plan.workload.stages:
            stage_rows = plan.workload.stages[stage]
            key = (stage_rows.prologue, ends and stage_rows.chunks, ends)
        if key not in ops_by_rows:
            builder = StageBuilder(plan, stage)
            builder.find_ends(ends)
            builder.start_of_step()
            specials = [action for action in ends if builder.is_special(action)]
            for action in specials:
                builder.special_ops(action)
            builder.end_of_step()
            ops_by_rows[key] = builder.ops
            specials_by_rows[key] = specials
        ops = edges[stage] = ops_by_rows[key]
        if (specials_by_rows[key], [*zip(ops.stream, ops.blocking, strict=True)]) != edge:
            return None
    table = [cost for _, cost in plan.costs]
    costs: list[AnyCost] = []
    for of_part, edge, index in order.slots:
        if of_part is not None:
            costs.append(table[segments[of_part].ops.cost[index]])
        elif edge >= 0:
            costs.append(table[edges[edge].cost[index]])
        else:
            costs.append(TransferCost(index, plan.transfer_bytes))
    return tuple(costs)


def _find_meeting_streams(folding: Folding) -> frozenset[int]:
    """Returns the streams on which ranks of several classes meet."""
    return frozenset(STREAM_OF_GROUP[group.kind] for group in folding.group_classes if len(group.members) > 1)


def _find_end_ns(
    order: _Order, costs: _Costs, folding: Folding, network: Network, overrides: Overrides
) -> int:
    """Returns when the last class ends, ns."""
    prices = _ClassPrices(costs, folding, Prices(network, overrides.compute_scale, overrides.comm_scale))
    scripts = [order.scripts[rank_class.stage] for rank_class in folding.classes]
    peers = [
        {step: link.neighbour for step, link in rank_class.links.items()} for rank_class in folding.classes
    ]
    if _find_meeting_streams(folding):
        teams = find_teams(folding)
        tables = [
            prices.of_team(team, order.of_stage[folding.classes[team.classes[0]].stage]) for team in teams
        ]
        return finish_ns(scripts, [()] * len(scripts), peers, teams=[*zip(teams, tables, strict=True)])
    by_class = [prices.of_class(one, order.of_stage[one.stage]) for one in folding.classes]
    return finish_ns(scripts, by_class, peers, prices.parts)


class _ClassPrices:
    """The prices of slots by rank class; classes share those that do not depend on their stage."""

    def __init__(self, costs: _Costs, folding: Folding, prices: Prices) -> None:
        self._costs = costs
        self._folding = folding
        self._prices = prices
        self._ns_of: dict[object, Callable[[AnyCost], int]] = {}
        self._tables: dict[object, list[int]] = {}
        self.parts: list[PartTimes] = []
        self._team_parts: dict[object, TeamPart] = {}

    def _pricing(self, rank_class: RankClass) -> Callable[[AnyCost], int]:
        """Returns the function that prices a cost for a class."""
        key = self._folding.price_key(rank_class)
        if key not in self._ns_of:
            of_class = partial(self._prices.of_class, folding=self._folding, rank_class=rank_class)
            self._ns_of[key] = cache(of_class)
        return self._ns_of[key]

    def of_class(self, rank_class: RankClass, slots: tuple[int, ...]) -> list[int]:
        """Returns by slot the ns of a class, of a part its index in `parts`."""
        ns_of = self._pricing(rank_class)
        key = (slots, ns_of)
        if key not in self._tables:
            table = self._tables[key] = [0] * len(self._costs)
            for slot in slots:
                cost = self._costs[slot]
                if isinstance(cost, PartCost):
                    table[slot] = len(self.parts)
                    self.parts.append(part_times(cost, ns_of))
                else:
                    table[slot] = ns_of(cost)
        return self._tables[key]

    def of_team(self, team: Team, slots: tuple[int, ...]) -> list[Clocks | TeamPart | None]:
        """Returns by slot the ns of each class of a team, or the part."""
        classes = [self._folding.classes[class_id] for class_id in team.classes]
        each = [self._pricing(rank_class) for rank_class in classes]
        keys = tuple(map(self._folding.price_key, classes))

        def ns_of(cost: AnyCost, positions: Sequence[int]) -> Clocks:
            return [each[position](cost) for position in positions]

        table: list[Clocks | TeamPart | None] = [None] * len(self._costs)
        for slot in slots:
            cost = self._costs[slot]
            if not isinstance(cost, PartCost):
                table[slot] = [price(cost) for price in each]
                continue
            meetings = tuple(team.meetings.get(stream, ()) for stream in cost.streams)
            key = (id(cost), keys, meetings)
            if key not in self._team_parts:
                self._team_parts[key] = TeamPart(cost, team, ns_of)
            table[slot] = self._team_parts[key]
        return table


def find_merged_streams(workload: Workload, schedule: ScheduleParameters) -> frozenset[int]:
    """Returns the streams on which compute waits for every collective of a micro-batch.

    No collective is ever queued behind another there. What is issued at the end of a step has finished before
    the next one starts, unless it overlaps.
    """
    rows: Iterable[int] = range(len(workload))
    overlaps = schedule.overlap_grad_reduce or schedule.overlap_param_gather or workload.gathers_in_forward
    if workload.stages and not overlaps:
        # Rows of the start and end of a step issue collectives together and wait for them there.
        rows = {row for stage in workload.stages for chunk in (*stage.chunks, stage.loss) for row in chunk}
    group = workload.wg.group
    queued: set[str | None] = {group[row] for row in rows}
    for cells in (workload.fwd, workload.ig):
        queued |= {cells.group[row] for row in cells.asynchronous}
    return frozenset(stream for kind, stream in STREAM_OF_GROUP.items() if kind not in queued)


def find_idle_streams(workload: Workload) -> frozenset[int]:
    """Returns the streams whose collectives each find the one before finished.

    These start while compute runs, in a forward or an input gradient, and a row of the same phase waits for
    them, so that each stream is idle then, as long as nothing comes between (`Plan.was_busy`).
    """
    if not workload.stages:
        return frozenset()
    awaited = {(phase, other) for (phase, _), others in workload.waits.items() for other in others}
    used: set[GroupKind] = set()
    other: set[GroupKind | None] = {*workload.wg.group}
    for phase, cells in (("fwd", workload.fwd), ("ig", workload.ig)):
        for row, group in enumerate(cells.group):
            if group is not None:
                fits = row in cells.asynchronous and (phase, row) in awaited
                (used if fits else other).add(group)
    return frozenset(STREAM_OF_GROUP[kind] for kind in used - other)
