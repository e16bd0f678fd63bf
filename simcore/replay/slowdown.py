"""What each rank, stage and kind of work costs over the steps of a run, by replays of a graph.

The slowdown S of a run is its mean step, replayed as measured, over the mean step with every duration
replaced by one of its kind: the mean for compute, the median for communication. S of a part is the same with
only that part keeping its own durations. The graph is that of "Understanding Stragglers in Large Model
Training Using What-if Analysis": one, of a first replica's first step, serves all steps and replicas;
docs/steps.md says which dependencies it has.
"""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, median, median_high

from simcore.measured import MeasuredRun
from simcore.measured.columns import RankTrace
from simcore.records import NamedTuple, Struct
from simcore.trace.graph import JOINS, START, Graph

FORWARD, BACKWARD = "forward-compute", "backward-compute"
_SENDS = {"forward-send": FORWARD, "backward-send": BACKWARD}
_RECEIVES = {"forward-recv": FORWARD, "backward-recv": BACKWARD}
GATHER, REDUCE, SEPARATE = "params-all-gather", "grads-reduce-scatter", "separate-grads-all-reduce"
LAYERNORM, EMBEDDING = "layernorm-grads-all-reduce", "embedding-grads-all-reduce"
CLIP, OPTIMIZER, GC = "optimizer-clip-main-grad", "optimizer", "gc"
_COMPUTES = (FORWARD, BACKWARD, OPTIMIZER, GC)
_TAIL = (GC, LAYERNORM, EMBEDDING, SEPARATE, REDUCE, CLIP, OPTIMIZER)
_KINDS = frozenset((*_COMPUTES, *_SENDS, *_RECEIVES, GATHER, *_TAIL))
# A send and its receive are one kind of what is published.
_PUBLISHED = {
    f"{phase}-{side}": f"{phase}-pp-comm" for phase in ("forward", "backward") for side in ("send", "recv")
}  # fmt: skip
# A transfer time below this is an error of clocks.
_LEAST_NS = -10_000_000
# 117,216 operations of 44 steps on 16 ranks take 2 s; more are not replayed once for each part.
MOST_OPS = 1_000_000
# So many of the ranks, at least one, are the worst.
_WORST_PERCENT = 3

# (stage, kind, index) of a rank's operation in each step.
_Slot = tuple[int, str, int]
_Lane = tuple[int, int]


class Slowdown(Struct, frozen=True):
    """What a run loses by differences, and by which parts."""

    total: float
    """S of all."""
    by_kind: dict[str, float]
    by_stage: dict[int, float]
    by_dp_rank: dict[int, float]
    by_rank: dict[int, float]
    """Of a rank its S alone."""
    by_step: dict[int, float]
    m_w: float
    """The share of the slowdown that goes when the worst ranks alone do as the others."""
    m_s: float
    """The share that goes when the last stage alone does."""
    worst_ranks: tuple[int, ...]
    part_shares: dict[int, float]
    """By stage the share that goes when it alone does."""
    uneven: float
    """S where only what forward and backward of a micro-batch share on all stages of a replica remains,
    without what is so in each step.
    """


class AsPeers(NamedTuple):
    """A run with one rank that computes as long as the median of its peers."""

    rank: int
    steps: tuple[int, ...]
    """The numbers of the steps that are replayed."""
    before_ns: tuple[int, ...]
    """The length of each, replayed; where each step has its own graph, as measured."""
    after_ns: tuple[int, ...]
    """Its length with that rank as its peers."""

    @property
    def gain_ns(self) -> int:
        """How much shorter all steps are together."""
        return sum(self.before_ns) - sum(self.after_ns)


class _StepGraph(NamedTuple):
    """The graph of a step, and of which operation each duration is."""

    graph: Graph
    slots: list[tuple[int, _Slot]]
    """By duration (dp rank, slot)."""
    meetings: list[list[int]]
    """Durations that begin together, as indices of `slots`."""
    last: list[int]
    """The nodes with which a step ends."""


def make_costs(run: MeasuredRun) -> Costs | None:
    """Returns the replays of a run of several steps; None where its file states no layout, not all kinds are
    known, steps differ in what they do, or they take no time.
    """
    lanes = _lanes_of(run.ranks)
    if lanes is None:
        return None
    ops = {lane: _ops_by_step(rank) for lane, rank in lanes.items()}
    step_numbers = _equal_steps(ops)
    count = sum(len(rank.ops) for rank in lanes.values())
    if len(step_numbers) < 2 or count > MOST_OPS:
        return None
    step_graph = _build(lanes, ops, step_numbers[0])
    if step_graph is None:
        return None
    costs = Costs(lanes, ops, step_numbers, step_graph)
    return costs if costs.even_ns > 0 else None


def _equal_steps(ops: dict[_Lane, dict[int, dict[str, list[int]]]]) -> list[int]:
    """Returns the steps in which all replicas do as many of each kind as in most steps."""
    replicas = sorted({dp for dp, _ in ops})
    counts_of: dict[int, tuple[object, ...]] = {}
    for step in sorted(set.intersection(*({*by_step} for by_step in ops.values()))):
        counts = [
            tuple(
                (stage, kind, len(some))
                for lane_dp, stage in sorted(ops) if lane_dp == dp
                for kind, some in sorted(ops[lane_dp, stage][step].items())
            )
            for dp in replicas
        ]  # fmt: skip
        if len({*counts}) == 1:
            counts_of[step] = counts[0]
    if not counts_of:
        return []
    most = Counter(counts_of.values()).most_common(1)[0][0]
    return [step for step, counts in counts_of.items() if counts == most]


def _lanes_of(ranks: Sequence[RankTrace]) -> dict[_Lane, RankTrace] | None:
    """Returns the first tensor rank of each (dp rank, stage); None where the layout is not whole."""
    lanes: dict[_Lane, RankTrace] = {}
    for rank in ranks:
        if rank.position is None or rank.step is None:
            return None
        tp, dp, stage = rank.position
        if tp == 0:
            lanes[dp, stage] = rank
    replicas, stages = {dp for dp, _ in lanes}, {stage for _, stage in lanes}
    whole = len(lanes) == len(replicas) * len(stages) and stages == {*range(len(stages))}
    return dict(sorted(lanes.items())) if lanes and whole else None


def _ops_by_step(rank: RankTrace) -> dict[int, dict[str, list[int]]]:
    """Returns by step and kind the operations of a rank in order of start."""
    by_step: dict[int, dict[str, list[int]]] = {}
    steps, names = rank.step or array("q"), rank.ops.name
    for op in sorted(range(len(names)), key=lambda op: (rank.ops.start[op], rank.ops.end[op])):
        by_step.setdefault(steps[op], {}).setdefault(names[op], []).append(op)
    by_step.pop(-1, None)
    return by_step


# -- the graph -------------------------------------------------------------------------------------


class _Builder:
    """Tasks of a step and what each waits for, in any order; a task without a duration is a meeting."""

    def __init__(self) -> None:
        self.waits: dict[object, list[object]] = {}
        self.duration: dict[object, tuple[int, _Slot]] = {}
        self.meetings: dict[object, list[object]] = {}

    def add(self, task: tuple[int, _Slot], waits: Iterable[object | None]) -> None:
        """Adds an operation."""
        self.waits[task] = [wait for wait in waits if wait is not None]
        self.duration[task] = task

    def meet(self, key: object, task: tuple[int, _Slot]) -> None:
        """Has a task begin with the others of a key."""
        meeting = ("meeting", key)
        self.waits.setdefault(meeting, []).extend(self.waits[task])
        self.waits[task] = [meeting]
        self.meetings.setdefault(meeting, []).append(task)

    def graph(self, lanes: Sequence[_Lane]) -> _StepGraph | None:
        """Returns the graph; None where tasks wait for each other in a circle."""
        followers: dict[object, list[object]] = {}
        missing = Counter[object]()
        for task, waits in self.waits.items():
            for wait in waits:
                followers.setdefault(wait, []).append(task)
                missing[task] += 1
        track_of = {lane: index for index, lane in enumerate(lanes)}
        graph = Graph(len(lanes), lambda node: (0,))
        node_of: dict[object, int] = {}
        slots: list[tuple[int, _Slot]] = []
        index_of: dict[object, int] = {}
        ready = deque(task for task in self.waits if not missing[task])
        while ready:
            task = ready.popleft()
            slot = self.duration.get(task)
            track = 0 if slot is None else track_of[slot[0], slot[1][0]]
            node = START
            for wait in self.waits[task]:
                node = node_of[wait] if node == START else graph.add_join(track, node, node_of[wait], JOINS)
            if slot is not None:
                slots.append(slot)
                index_of[task] = len(slots) - 1
                node = graph.add(len(slots), node)
            node_of[task] = node
            for follower in followers.get(task, ()):
                missing[follower] -= 1
                if not missing[follower]:
                    ready.append(follower)
        if len(node_of) < len(self.waits):
            return None
        meetings = [[index_of[task] for task in some] for some in self.meetings.values()]
        last = [node_of[task] for task, slot in self.duration.items() if slot[1][1] == OPTIMIZER]
        return _StepGraph(graph, slots, meetings, last or [*node_of.values()])


def _build(
    lanes: dict[_Lane, RankTrace], ops: dict[_Lane, dict[int, dict[str, list[int]]]], step: int
) -> _StepGraph | None:
    """Returns the graph of a step; None where an operation has no place in it."""
    replicas = sorted({dp for dp, _ in lanes})
    stages = max(stage for _, stage in lanes) + 1
    builder = _Builder()
    for stage in range(stages):
        rank, by_kind = lanes[replicas[0], stage], ops[replicas[0], stage][step]
        if not {*by_kind} <= _KINDS:
            return None
        for dp in replicas:
            _add_lane(builder, rank, by_kind, dp, stage, stages)
    return builder.graph([*lanes])


def _add_lane(
    builder: _Builder, rank: RankTrace, by_kind: dict[str, list[int]], dp: int, stage: int, stages: int
) -> None:
    """Adds the operations of a rank."""

    def task(kind: str, index: int) -> tuple[int, _Slot] | None:
        return (dp, (stage, kind, index)) if 0 <= index < len(by_kind.get(kind, ())) else None

    def chunk_of(op: int) -> int:
        return max(rank.ops.chunk[op], 0) if rank.ops.chunk else 0

    computes = sorted(
        ((op, kind, index) for kind in (FORWARD, BACKWARD) for index, op in enumerate(by_kind.get(kind, ()))),
        key=lambda one: rank.ops.start[one[0]],
    )  # fmt: skip
    chunks = sorted({chunk_of(op) for op, _, _ in computes})

    def index_by_chunk(kind: str) -> dict[int, int]:
        """Returns by chunk which operation of a kind is its own: the first that states it, else in order."""
        of_ops = [chunk_of(op) for op in by_kind.get(kind, ())]
        return {
            chunk: of_ops.index(chunk) if len({*of_ops}) > 1 and chunk in of_ops else index
            for index, chunk in enumerate(chunks)
        }

    gather_of = index_by_chunk(GATHER)
    before: object | None = None
    gathered = set[int]()
    first_backward = next((at for at, one in enumerate(computes) if one[1] == BACKWARD), 0)
    second_before = task(*computes[first_backward - 2][1:]) if first_backward >= 2 else None
    last_backward: dict[int, object] = {}
    receive_index, send_index = Counter[str](), Counter[str]()
    for op, kind, index in computes:
        chunk = chunk_of(op)
        phase = kind.removesuffix("-compute")
        virtual, microbatch = chunk * stages + stage, rank.ops.batch[op]
        back = kind == BACKWARD
        waits: list[object | None] = [before]
        if not back and chunk not in gathered:
            gathered.add(chunk)
            waits.append(task(GATHER, gather_of[chunk]))
        own = task(kind, index)
        assert own is not None
        extra = second_before if back and index == 0 else None
        for side, counts in (("recv", receive_index), ("send", send_index)):
            name = f"{phase}-{side}"
            is_own = len(by_kind.get(name, ())) == len(by_kind[kind])
            edge = (virtual == 0) if (side == "recv") != back else virtual == len(chunks) * stages - 1
            if not is_own and edge:
                continue
            transfer = task(name, counts[name])
            if transfer is None:
                continue
            earlier = task(name, counts[name] - 1)
            counts[name] += 1
            if side == "recv":
                builder.add(transfer, (earlier, task(kind, index - 1), extra))
                waits.append(transfer)
            else:
                builder.add(transfer, (earlier, own, extra))
            if not edge:
                towards = virtual if side == "recv" else virtual + (-1 if back else 1)
                builder.meet((dp, phase, towards, microbatch, index if microbatch < 0 else 0), transfer)
        builder.add(own, waits)
        before = own
        if back:
            last_backward[chunk] = own
    reduced = sorted(chunks, key=index_by_chunk(REDUCE).__getitem__)
    _add_tail(builder, task, by_kind, before, [last_backward.get(chunk) for chunk in reduced], (dp, stage))


def _add_tail(
    builder: _Builder,
    task: Callable[[str, int], tuple[int, _Slot] | None],
    by_kind: dict[str, list[int]],
    before: object | None,
    last_backwards: Sequence[object | None],
    where: tuple[int, int],
) -> None:
    """Adds what a rank gathers before, and does behind its last compute. where: dp rank, stage."""
    dp, stage = where
    stream: object | None = None
    for index in range(len(by_kind.get(GATHER, ()))):
        gather = task(GATHER, index)
        assert gather is not None
        builder.add(gather, [stream])
        builder.meet((GATHER, stage, index), gather)
        stream = gather
    is_separate = SEPARATE in by_kind
    aside: object | None = None
    for kind in _TAIL:
        for index in range(len(by_kind.get(kind, ()))):
            one = task(kind, index)
            assert one is not None
            if kind == REDUCE and is_separate:
                after = last_backwards[index] if index < len(last_backwards) else before
                builder.add(one, [stream, after])
                stream = aside = one
            else:
                builder.add(
                    one, [before, stream if kind == REDUCE else None, aside if kind == CLIP else None]
                )
                before = one
                stream = one if kind == REDUCE else stream
            if kind == EMBEDDING:
                builder.meet((EMBEDDING, dp, index), one)
            elif kind in (REDUCE, SEPARATE):
                builder.meet((kind, stage, index), one)
            elif kind == CLIP:
                builder.meet((CLIP, index), one)


# -- what parts cost -------------------------------------------------------------------------------


class _Part(NamedTuple):
    """Operations of a run; None: of all replicas, stages or kinds."""

    dp: int | None = None
    stage: int | None = None
    kind: str | None = None

    def has(self, dp: int, slot: _Slot) -> bool:
        """Returns whether an operation is of the part."""
        stage, kind, _ = slot
        return (
            self.dp in (None, dp)
            and self.stage in (None, stage)
            and (self.kind is None or self.kind == _PUBLISHED.get(kind, kind))
        )


class Costs:
    """Replays of all steps, each with the own durations of some operations and those of its kind for the
    others.
    """

    def __init__(
        self,
        lanes: dict[_Lane, RankTrace],
        ops: dict[_Lane, dict[int, dict[str, list[int]]]],
        step_numbers: Sequence[int],
        step_graph: _StepGraph,
    ) -> None:
        self.lanes, self.step_numbers, self.graph, self._ops = lanes, step_numbers, step_graph.graph, ops
        self.last, self.slots = step_graph.last, step_graph.slots
        latest = {index: meeting for meeting in step_graph.meetings for index in meeting}
        self.own = [self._durations(ops, step, latest) for step in step_numbers]
        by_kind: dict[str, list[int]] = {}
        for durations in self.own:
            for (_, (_, kind, _)), ns in zip(self.slots, durations, strict=True):
                by_kind.setdefault(kind, []).append(ns)
        value = {
            kind: round(fmean(some) if kind in _COMPUTES else median(some)) for kind, some in by_kind.items()
        }
        self.even = [value[kind] for _, (_, kind, _) in self.slots]
        self.even_ns = self._replay(self.even)

    def _durations(
        self, ops: dict[_Lane, dict[int, dict[str, list[int]]]], step: int, latest: dict[int, list[int]]
    ) -> list[int]:
        """Returns the duration of each slot in a step: of what begins together, from the last begin on."""
        times = []
        for dp, (stage, kind, index) in self.slots:
            rank_ops = self.lanes[dp, stage].ops
            op = ops[dp, stage][step][kind][index]
            times.append((rank_ops.start[op], rank_ops.end[op]))
        durations = []
        for at, (start, end) in enumerate(times):
            if at in latest:
                start = max(times[other][0] for other in latest[at])
            ns = end - start
            durations.append(0 if ns < _LEAST_NS else ns)
        return durations

    def _replay(self, durations: Sequence[int]) -> int:
        """Returns when a step with these durations ends, ns."""
        ends = self.graph.ends(self.graph.flatten([durations]))
        return max(ends[node] for node in self.last)

    def steps(self, parts: Iterable[_Part]) -> list[int]:
        """Returns the length of each step, ns, where the operations of these parts alone keep their
        durations.
        """
        keeps = [any(part.has(dp, slot) for part in parts) for dp, slot in self.slots]
        if not any(keeps):
            return [self.even_ns] * len(self.own)
        return [
            self._replay([ns if keep else even for ns, keep, even in zip(own, keeps, self.even, strict=True)])
            for own in self.own
        ]

    def ratio(self, part: _Part) -> float:
        """Returns S of a part."""
        return fmean(self.steps([part])) / self.even_ns

    def slowdown(self) -> Slowdown:
        """Returns what each part costs."""
        all_steps = self.steps([_Part()])
        replicas, stages = sorted({dp for dp, _ in self.lanes}), sorted({stage for _, stage in self.lanes})
        by_stage = {stage: self.ratio(_Part(stage=stage)) for stage in stages}
        by_dp_rank = {dp: self.ratio(_Part(dp)) for dp in replicas}
        kinds = dict.fromkeys(_PUBLISHED.get(kind, kind) for _, (_, kind, _) in self.slots)
        by_kind = {kind: self.ratio(_Part(kind=kind)) for kind in kinds}
        by_lane = {lane: self.ratio(_Part(*lane)) for lane in self.lanes}
        # Ties go to the lower rank, and ranks count replicas before stages.
        order = sorted(
            self.lanes, key=lambda lane: (-min(by_dp_rank[lane[0]], by_stage[lane[1]]), lane[1], lane[0])
        )
        worst = order[: max(-(-len(order) * _WORST_PERCENT // 100), 1)]
        others = [_Part(*lane) for lane in self.lanes if lane not in worst]
        earlier = [_Part(stage=stage) for stage in stages[:-1]]
        return Slowdown(
            fmean(all_steps) / self.even_ns,
            by_kind,
            by_stage,
            by_dp_rank,
            {self.lanes[lane].rank: ratio for lane, ratio in by_lane.items()},
            {step: ns / self.even_ns for step, ns in zip(self.step_numbers, all_steps, strict=True)},
            self._share(all_steps, others),
            self._share(all_steps, earlier),
            tuple(sorted(self.lanes[lane].rank for lane in worst)),
            {
                stage: self._share(all_steps, [_Part(stage=other) for other in stages if other != stage])
                for stage in stages
            },
            self._uneven(),
        )

    def as_peers(self, rank: int, progress: Callable[[int, int], None]) -> AsPeers | None:
        """Returns the run with a rank, its id, that computes in each step as long as the median of the
        others of its stage; None for a rank without peers. progress: takes how many of how many steps are
        replayed.
        """
        lane = next((lane for lane, trace in self.lanes.items() if trace.rank == rank), None)
        peers = [other for other in self.lanes if lane is not None and other[1] == lane[1] and other != lane]
        if lane is None or not peers:
            return None
        before, after = [], []
        for at, own in enumerate(self.own):
            progress(at, len(self.own))
            compute = dict.fromkeys((lane, *peers), 0)
            for (dp, (stage, kind, _)), ns in zip(self.slots, own, strict=True):
                if (dp, stage) in compute and kind in _COMPUTES:
                    compute[dp, stage] += ns
            factor = median_high(compute[peer] for peer in peers) / compute[lane] if compute[lane] else 1.0
            scaled = [
                round(factor * ns) if (dp, stage) == lane and kind in _COMPUTES else ns
                for (dp, (stage, kind, _)), ns in zip(self.slots, own, strict=True)
            ]
            before.append(self._replay(own))
            after.append(self._replay(scaled))
        return AsPeers(rank, tuple(self.step_numbers), tuple(before), tuple(after))

    def _uneven(self) -> float:
        """Returns S of what sequence lengths alone explain."""
        batches = self._batches()
        if batches is None:
            return 1.0
        factors = []
        for own in self.own:
            # By replica and micro-batch, and of these by phase, the factors on the value of the kind.
            ratios: dict[tuple[int, int], dict[str, list[float]]] = {}
            for (dp, (_, kind, _)), batch, ns, even in zip(self.slots, batches, own, self.even, strict=True):
                if batch >= 0 and even:
                    ratios.setdefault((dp, batch), {}).setdefault(kind, []).append(ns / even)
            # What only one of the phases has is no length of a sequence.
            factors.append(
                {
                    at: sorted((1.0, *map(fmean, phases.values())))[1] if len(phases) > 1 else 1.0
                    for at, phases in ratios.items()
                }
            )
        # A micro-batch that takes no time in any step is as long as usual in each.
        usual = {at: fmean(one[at] for one in factors) for at in factors[0]}
        usual = {at: factor for at, factor in usual.items() if factor}
        steps = [
            self._replay(
                [
                    round(even * one[dp, batch] / usual[dp, batch]) if (dp, batch) in usual else even
                    for (dp, _), batch, even in zip(self.slots, batches, self.even, strict=True)
                ]
            )
            for one in factors
        ]
        return fmean(steps) / self.even_ns

    def _batches(self) -> list[int] | None:
        """Returns the micro-batch of each forward and backward slot, -1 of others; None where not all state
        one.
        """
        batches, step = [], self.step_numbers[0]
        for dp, (stage, kind, index) in self.slots:
            batch = -1
            if kind in (FORWARD, BACKWARD):
                rank_ops = self.lanes[dp, stage].ops
                batch = rank_ops.batch[self._ops[dp, stage][step][kind][index]]
                if batch < 0:
                    return None
            batches.append(batch)
        return batches

    def _share(self, all_steps: Sequence[int], parts: Sequence[_Part]) -> float:
        """Returns the share of the slowdown that goes when the operations of these parts alone keep their
        durations.
        """
        excess = fmean(all_steps) - self.even_ns
        return (fmean(all_steps) - fmean(self.steps(parts))) / excess if excess else 0.0
