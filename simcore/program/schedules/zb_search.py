"""`zb-1p` and `zb-2p`: the order of F, I and W that a search finds for the times of a run.

Qi et al., Zero Bubble Pipeline Parallelism, 2024 (arXiv 2401.10241), section 3.1: orders are built round by
round, with every answer to what no rule decides, and the shortest one is taken. A stage holds, from F to the
end of W, at most as many micro-batches as the first stage of 1F1B (`zb-1p`), or twice as many (`zb-2p`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import product

from simcore.program.order import Action, Order, Shape, loop_placement
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


class Policy(NamedTuple):
    """What no rule decides."""

    warm_up: str
    """The forwards before the first I of a stage: "fit" runs those that end before its gradient comes, "late"
    one more, "rule" as many as the rule that the order is not longer than.
    """
    short_waits: str
    """Waits shorter than a W in which one runs, though what waits is delayed: "none", "longest" those that
    would make the longest bubble of all stages longer, "all".
    """


# The paper's, and "rule" and "none": of 300 random pipelines 25 were longer than zb-h1 without these, by up
# to 4.7 %, and 5 of 200 with them, by up to 0.7 %. The paper's third choice, to leave out an F of a stage
# that is ahead, made 7 of 800 shorter, which is 0.01 % in the mean.
POLICIES = tuple(Policy(*each) for each in product(("fit", "late", "rule"), ("none", "longest", "all")))


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
        self.actions: list[Action] = []

    def times_of(self, microbatch: int) -> ActionTimes:
        return self.times[microbatch % len(self.times)]


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
        state.actions.append(Action("F", microbatch))
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
        state.actions.append(Action("I", microbatch))
        if stage:
            state.previous_free = max(state.time, state.previous_free) + self.times.to_previous[stage]
            self.stages[stage - 1].gradients.append(state.previous_free)

    def weight_grad(self, stage: int) -> None:
        """Run the next W of a stage."""
        state = self.stages[stage]
        state.time += state.times_of(state.weights).weight_grad
        state.actions.append(Action("W", state.weights))
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


class _Search:
    """Builds the order of a policy. limit: how many times P micro-batches a stage may hold."""

    def __init__(self, times: StageTimes, shape: Shape, limit: int, policy: Policy) -> None:
        self.pipeline = Pipeline(times, shape.microbatches)
        self.stages = self.pipeline.stages
        self.microbatches = shape.microbatches
        self.limit = limit
        self.most_held = limit * shape.stages
        self.policy = policy

    def build(self) -> Pipeline:
        """Returns the pipeline that has run all actions: rounds of an F and an I of each stage, W between
        them.
        """
        self._warm_up()
        backwards = range(len(self.stages) - 1, -1, -1)
        for _ in range(1, self.microbatches):
            for stage, state in enumerate(self.stages):
                if state.forwards < self.microbatches:
                    while state.forwards - state.weights >= self.most_held:
                        self.pipeline.weight_grad(stage)
                    self._fill(stage, state.activations[state.forwards])
                    self.pipeline.forward(stage)
            for stage in backwards:
                self._fill(stage, self.stages[stage].gradients[self.stages[stage].inputs])
                self.pipeline.input_grad(stage)
        for stage, state in enumerate(self.stages):
            while state.weights < self.microbatches:
                self.pipeline.weight_grad(stage)
        return self.pipeline

    def _warm_up(self) -> None:
        """Run the forwards before the first I of each stage, and that."""
        counts = self._count_rule() if self.policy.warm_up == "rule" else self._count_fitting()
        for stage, count in enumerate(counts):
            for _ in range(count - self.stages[stage].forwards):
                self.pipeline.forward(stage)
        for stage in range(len(counts) - 1, -1, -1):
            self.pipeline.input_grad(stage)

    def _count_rule(self) -> list[int]:
        """Returns the forwards of each stage before its first I, by the rule."""
        behind = range(len(self.stages) - 1, -1, -1)
        return [min(self.microbatches, 1 + self.limit * stages) for stages in behind]

    def _count_fitting(self) -> list[int]:
        """Returns the forwards of each stage that run until its first gradient comes. Runs the first ones."""
        stages, is_late = self.stages, self.policy.warm_up == "late"
        for stage in range(len(stages)):
            self.pipeline.forward(stage)
        counts = [1] * len(stages)
        gradient = stages[-1].time
        for stage in range(len(stages) - 1, -1, -1):
            state, time = stages[stage], stages[stage].time
            while counts[stage] < min(self.most_held, self.microbatches):
                times = state.times_of(counts[stage])
                end = time + times.forward + times.loss
                if time >= gradient or (end > gradient and not is_late):
                    break
                time, counts[stage] = end, counts[stage] + 1
            gradient = max(time, gradient) + state.times_of(0).input_grad
            gradient += self.pipeline.times.to_previous[stage]
        for stage in range(1, len(stages)):
            # The stage before is one F ahead as long as there are any.
            ahead = counts[stage - 1] - (counts[stage - 1] < self.microbatches)
            counts[stage] = max(min(counts[stage], ahead), 1)
        return counts

    def _fill(self, stage: int, until: int) -> None:
        """Run W while a stage waits."""
        state, short_waits = self.stages[stage], self.policy.short_waits
        while state.weights < state.inputs and state.time < until:
            wait = until - state.time
            if state.times_of(state.weights).weight_grad > wait and (
                short_waits == "none"
                or (short_waits == "longest" and state.bubble + wait <= self.pipeline.longest_bubble)
            ):
                break
            self.pipeline.weight_grad(stage)


def rule_order(shape: Shape, limit: int) -> Order:
    """Returns the order that none is longer than, of schedules that hold `limit` times P micro-batches."""
    rule = _RULES[limit]
    return Order(loop_placement(shape), tuple(tuple(rule(shape, stage)) for stage in range(shape.stages)))


def search_order(shape: Shape, limit: int, times: StageTimes, repeats: bool = False) -> Order:
    """Returns the shortest order at these times; of equal ones the rule's.

    limit: how many times P micro-batches a stage may hold. repeats: whether steps follow each other without a
    barrier.
    """
    best = rule_order(shape, limit)
    if not shape.microbatches:
        return best

    def length(pipeline: Pipeline) -> tuple[int, int]:
        both = (pipeline.step_ns, pipeline.span_ns)
        return both[::-1] if repeats else both

    shortest = length(run_order(times, best))
    for policy in POLICIES:
        pipeline = _Search(times, shape, limit, policy).build()
        if length(pipeline) < shortest:
            shortest = length(pipeline)
            best = Order(best.placement, tuple(tuple(state.actions) for state in pipeline.stages))
    return best


@lru_cache(maxsize=4)
def _order_at_equal_times(shape: Shape, limit: int) -> Order:
    return search_order(shape, limit, equal_stages(shape.stages, ActionTimes(1, 1, 1)))


def zb_1p(shape: Shape, stage: int) -> Iterable[Action]:
    """The order for equal times, P micro-batches held."""
    return _order_at_equal_times(shape, 1).stages[stage]


def zb_2p(shape: Shape, stage: int) -> Iterable[Action]:
    """The order for equal times, 2P micro-batches held."""
    return _order_at_equal_times(shape, 2).stages[stage]
