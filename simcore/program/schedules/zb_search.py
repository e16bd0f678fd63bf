"""`zb-1p` and `zb-2p`: the order of F, I and W that a search finds for the times of a run.

Qi et al., Zero Bubble Pipeline Parallelism, 2024 (arXiv 2401.10241), section 3.1: orders are built round by
round, with every answer to what no rule decides, and the shortest one is taken. A stage holds, from F to the
end of W, at most as many micro-batches as the first stage of 1F1B (`zb-1p`), or twice as many (`zb-2p`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import count, product

from simcore.program.order import Action, Kind, Order, Shape, loop_placement
from simcore.program.schedules.zb_h import zb_h1, zb_h2
from simcore.records import NamedTuple

# The rule that an order is not longer than, by how many times P micro-batches a stage may hold.
_RULES = {1: zb_h1, 2: zb_h2}


class ActionTimes(NamedTuple):
    """What a micro-batch takes on a stage, ns."""

    forward: int
    """F until its activation is sent."""
    input_grad: int
    weight_grad: int
    loss: int = 0
    """The rest of F."""


class StageTimes(NamedTuple):
    """What actions and transfers take, by stage, ns."""

    actions: tuple[tuple[ActionTimes, ...], ...]
    """Of the micro-batches that take turns."""
    to_next: tuple[int, ...]
    """An activation to the next stage."""
    to_previous: tuple[int, ...]
    """A gradient to the stage before."""


def equal_stages(stages: int, times: ActionTimes) -> StageTimes:
    """Returns the times of equal stages with free communication, as schedules are drawn."""
    return StageTimes(((times,),) * stages, (0,) * stages, (0,) * stages)


# In which waits that are shorter than a W one runs, though what waits is delayed: in none, in those with
# which the bubble of the stage becomes the longest of all, in all.
_SHORT_WAITS = ("none", "longest", "all")


class _Stage:
    """A stage after the actions that it has run."""

    def __init__(self, times: tuple[ActionTimes, ...]) -> None:
        self.times = times
        self.time = self.begin = self.bubble = 0
        self.forwards = self.inputs = self.weights = 0
        # When inputs of F and I arrive, and when the streams to the next stage and the one before are free.
        self.activations: list[int] = []
        self.gradients: list[int] = []
        self.next_free = self.previous_free = 0
        self.kinds: list[Kind] = []

    def times_of(self, microbatch: int) -> ActionTimes:
        return self.times[microbatch % len(self.times)]

    @property
    def actions(self) -> tuple[Action, ...]:
        """What it has run, in order: of each kind the micro-batches in turn."""
        turn = {"F": count(), "I": count(), "W": count()}
        return tuple(Action(kind, next(turn[kind])) for kind in self.kinds)


class Pipeline:
    """Stages that run actions one by one, at the times of a run."""

    def __init__(self, times: StageTimes, microbatches: int) -> None:
        self.times = times
        self.stages = [_Stage(of_stage) for of_stage in times.actions]
        self.stages[0].activations = [0] * microbatches
        self.longest_bubble = 0

    @property
    def step_ns(self) -> int:
        """When all stages are done."""
        return max(state.time for state in self.stages)

    @property
    def span_ns(self) -> int:
        """The longest time of a stage from its first action to its last, the period of steps without a
        barrier.
        """
        return max(state.time - state.begin for state in self.stages)

    def forward(self, stage: int) -> None:
        """Run the next F of a stage."""
        state = self.stages[stage]
        microbatch = state.forwards
        self._wait(state, state.activations[microbatch])
        if not microbatch:
            state.begin = state.time
        times = state.times_of(microbatch)
        end = state.time + times.forward
        state.time = end + times.loss
        state.forwards += 1
        state.kinds.append("F")
        if stage + 1 < len(self.stages):
            state.next_free = max(end, state.next_free) + self.times.to_next[stage]
            self.stages[stage + 1].activations.append(state.next_free)
        else:
            state.gradients.append(state.time)

    def input_grad(self, stage: int) -> None:
        """Run the next I of a stage."""
        state = self.stages[stage]
        microbatch = state.inputs
        self._wait(state, state.gradients[microbatch])
        state.time += state.times_of(microbatch).input_grad
        state.inputs += 1
        state.kinds.append("I")
        if stage:
            state.previous_free = max(state.time, state.previous_free) + self.times.to_previous[stage]
            self.stages[stage - 1].gradients.append(state.previous_free)

    def weight_grad(self, stage: int) -> None:
        """Run the next W of a stage."""
        state = self.stages[stage]
        state.time += state.times_of(state.weights).weight_grad
        state.kinds.append("W")
        state.weights += 1

    def _wait(self, state: _Stage, until: int) -> None:
        if until > state.time:
            if state.forwards:
                state.bubble += until - state.time
                self.longest_bubble = max(self.longest_bubble, state.bubble)
            state.time = until


def run_order(times: StageTimes, order: Order) -> Pipeline:
    """Returns a pipeline that has run an order of one chunk a stage, its micro-batches in turn."""
    pipeline = Pipeline(times, order.microbatches)
    run = {"F": pipeline.forward, "I": pipeline.input_grad, "W": pipeline.weight_grad}
    waiting = [*map(list, map(reversed, order.stages))]
    while any(waiting):
        before = sum(map(len, waiting))
        for stage, (state, actions) in enumerate(zip(pipeline.stages, waiting, strict=True)):
            ready = {"F": state.activations, "I": state.gradients}
            while actions:
                action = actions[-1]
                if action.kind in ready and action.microbatch >= len(ready[action.kind]):
                    break
                run[action.kind](stage)
                actions.pop()
        assert sum(map(len, waiting)) < before, "an order that cannot go on"
    return pipeline


def _build(
    times: StageTimes, shape: Shape, most_held: int, warm_up: Sequence[int], short_waits: str
) -> Pipeline:
    """Returns a pipeline that has run all actions: rounds of an F and an I of each stage, W between them.

    most_held: how many micro-batches a stage may hold. warm_up: the forwards of each stage before its first
    I. short_waits: of `_SHORT_WAITS`.
    """
    pipeline = Pipeline(times, shape.microbatches)
    stages, backwards = pipeline.stages, range(shape.stages - 1, -1, -1)
    for stage, forwards in enumerate(warm_up):
        for _ in range(forwards):
            pipeline.forward(stage)
    for stage in backwards:
        pipeline.input_grad(stage)
    for microbatch in range(1, shape.microbatches):
        for stage, state in enumerate(stages):
            if state.forwards < shape.microbatches:
                while state.forwards - state.weights >= most_held:
                    pipeline.weight_grad(stage)
                _fill(pipeline, stage, state.activations[state.forwards], short_waits)
                pipeline.forward(stage)
        for stage in backwards:
            _fill(pipeline, stage, stages[stage].gradients[microbatch], short_waits)
            pipeline.input_grad(stage)
    for stage, state in enumerate(stages):
        while state.weights < shape.microbatches:
            pipeline.weight_grad(stage)
    return pipeline


def _fill(pipeline: Pipeline, stage: int, until: int, short_waits: str) -> None:
    """Run W while a stage waits."""
    state = pipeline.stages[stage]
    while state.weights < state.inputs and state.time < until:
        wait = until - state.time
        if state.times_of(state.weights).weight_grad > wait and (
            short_waits == "none"
            or (short_waits == "longest" and state.bubble + wait <= pipeline.longest_bubble)
        ):
            break
        pipeline.weight_grad(stage)


def _list_warm_ups(times: StageTimes, shape: Shape, limit: int) -> Iterable[tuple[int, ...]]:
    """Returns the forwards of each stage before its first I: the rule's, and until its gradient comes."""
    behind = range(shape.stages - 1, -1, -1)
    rule = tuple(min(shape.microbatches, 1 + limit * stages) for stages in behind)
    fitting = (_count_fitting(times, shape, limit * shape.stages, is_late) for is_late in (False, True))
    return dict.fromkeys((rule, *fitting))


def _count_fitting(times: StageTimes, shape: Shape, most_held: int, is_late: bool) -> tuple[int, ...]:
    """Returns the forwards of each stage that end before its first gradient comes. is_late: or begin."""
    first = Pipeline(times, shape.microbatches)
    for stage in range(shape.stages):
        first.forward(stage)
    counts = [1] * shape.stages
    gradient = first.stages[-1].time
    for stage in range(shape.stages - 1, -1, -1):
        state, time = first.stages[stage], first.stages[stage].time
        while counts[stage] < min(most_held, shape.microbatches):
            of_next = state.times_of(counts[stage])
            end = time + of_next.forward + of_next.loss
            if time >= gradient or (end > gradient and not is_late):
                break
            time, counts[stage] = end, counts[stage] + 1
        gradient = max(time, gradient) + state.times_of(0).input_grad + times.to_previous[stage]
    for stage in range(1, shape.stages):
        # The stage before is one F ahead as long as there are any.
        ahead = counts[stage - 1] - (counts[stage - 1] < shape.microbatches)
        counts[stage] = max(min(counts[stage], ahead), 1)
    return tuple(counts)


def rule_order(shape: Shape, limit: int) -> Order:
    """Returns the order that none is longer than, of schedules that hold `limit` times P micro-batches."""
    rule = _RULES[limit]
    return Order(loop_placement(shape), tuple(tuple(rule(shape, stage)) for stage in range(shape.stages)))


def search_order(shape: Shape, limit: int, times: StageTimes, repeats: bool = False) -> Order:
    """Returns the shortest order at these times; of equal ones the rule's.

    limit: how many times P micro-batches a stage may hold. repeats: whether steps follow each other without a
    barrier.
    """
    rule = rule_order(shape, limit)
    if not shape.microbatches:
        return rule

    def length(pipeline: Pipeline) -> int:
        return pipeline.span_ns if repeats else pipeline.step_ns

    best = run_order(times, rule)
    # No order is below that: a stage begins when the first F has come to it, and then has its work.
    least = max(state.time - state.bubble - (state.begin if repeats else 0) for state in best.stages)
    # The paper's choices, "none" and the warm-up of the rule: of 300 random pipelines 25 were longer than
    # zb-h1 without these, by up to 4.7 %, and 5 of 200 with them, by up to 0.7 %. The paper's third choice,
    # to leave out an F of a stage that is ahead, made 7 of 800 shorter, which is 0.01 % in the mean.
    for warm_up, short_waits in product(_list_warm_ups(times, shape, limit), _SHORT_WAITS):
        if length(best) == least:
            break
        pipeline = _build(times, shape, limit * shape.stages, warm_up, short_waits)
        best = min(best, pipeline, key=length)
    return Order(rule.placement, tuple(state.actions for state in best.stages))


@lru_cache(maxsize=4)
def _order_at_equal_times(shape: Shape, limit: int) -> Order:
    return search_order(shape, limit, equal_stages(shape.stages, ActionTimes(1, 1, 1)))


def zb_1p(shape: Shape, stage: int) -> Iterable[Action]:
    """The order for equal times, P micro-batches held."""
    return _order_at_equal_times(shape, 1).stages[stage]


def zb_2p(shape: Shape, stage: int) -> Iterable[Action]:
    """The order for equal times, 2P micro-batches held."""
    return _order_at_equal_times(shape, 2).stages[stage]
