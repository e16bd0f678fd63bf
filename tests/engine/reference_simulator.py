"""A second simulator, as naive as can be: every rank, every op, sweep after sweep.

No queue of events, no classes: each sweep walks every rank through its program with the times
that the sweep before left, and the first sweep that changes nothing has the earliest times at
which everything can happen. Groups come from the formulas of the layout, not from its code.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from msgspec.structs import replace

from simcore.cluster import Cluster, group_shape, transfer_shape
from simcore.collectives import collective_ns, transfer_ns
from simcore.layout import Layout
from simcore.program import Program, StageProgram
from simcore.program.ops import CollectiveCost, ComputeCost, Receive, TransferCost
from simcore.program.overrides import Overrides
from simcore.simulation import Simulation

Group = tuple[int, ...]


def place(layout: Layout, rank: int) -> tuple[int, int, int]:
    """(tp, dp, stage) of a rank: rank = tp + TP*(dp + DP*pp), or tp + TP*(pp + PP*dp)."""
    above = rank // layout.tp
    if layout.rank_order == "tp-ep-dp-pp":
        return rank % layout.tp, above % layout.dp, above // layout.dp
    return rank % layout.tp, above // layout.pp, above % layout.pp


def group_key(layout: Layout, rank: int, kind: str) -> object:
    """What exactly the members of a rank's group of a kind have in common."""
    tp, dp, stage = place(layout, rank)
    q = tp + layout.tp * dp
    inside = layout.dp % layout.ep == 0 and not layout.whole_experts
    return {
        "tp": (dp, stage),
        "dp": (tp, stage),
        "ep": (tp, dp // layout.ep, stage) if inside else (q // layout.ep, stage),
        "dp_ep": (tp, dp % layout.ep, stage) if inside else (q % layout.ep, stage),
        "all": (),
        "cp": (tp, dp // layout.cp, stage),
        "cp_a2a": (tp, dp // (layout.cp_inner or 1), stage),
        "cp_p2p": (tp, dp // layout.cp, dp % layout.cp_inner, stage) if layout.cp_inner else (tp, dp, stage),
        "ep_intra": (inside and tp, (dp if inside else q) // (layout.ep_node or 1), stage),
        "ep_inter": (
            (inside and tp, (dp if inside else q) // layout.ep, (dp if inside else q) % layout.ep_node, stage)
            if layout.ep_node
            else (tp, dp, stage)
        ),
        "dp_shard": (tp, dp // (layout.shard or layout.dp), stage),
        "dp_replicate": (tp, dp % (layout.shard or layout.dp), stage),
    }[kind]


def all_groups(layout: Layout, kind: str) -> dict[int, Group]:
    """Each rank's group of a kind."""
    members = defaultdict(list)
    for rank in range(layout.world):
        members[group_key(layout, rank, kind)].append(rank)
    return {rank: tuple(group) for group in members.values() for rank in group}


@dataclass
class RankTimes:
    """start, end: of each op of one rank, ns. ready: when the rank itself could start it.

    finish: when its last join is over.
    """

    start: list[int]
    end: list[int]
    ready: list[int]
    finish: int = 0


@dataclass
class Reference:
    """The run of a program on explicit ranks.

    measured: durations of each rank's ops, ns, where the network decided them; else they come
    from the costs.
    """

    program: Program
    layout: Layout
    cluster: Cluster
    compute_scale: float
    comm_scale: float
    overrides: Overrides = field(default_factory=Overrides)
    measured: list[list[int]] | None = None
    times: list[RankTimes] = field(default_factory=list)

    def __post_init__(self) -> None:
        world = self.layout.world
        kinds = {cost.group for cost in self.program.costs if isinstance(cost, CollectiveCost)}
        self.groups = {kind: all_groups(self.layout, kind) for kind in kinds}
        self.stage = [place(self.layout, rank)[2] for rank in range(world)]
        self.number_on_lane = [self._numbers(stage) for stage in self.program.stages]
        self.op_on_lane = [{key: op for op, key in enumerate(numbers)} for numbers in self.number_on_lane]
        self.sender_op = self._senders()
        self.rank_at = {place(self.layout, rank): rank for rank in range(world)}
        self.duration = self.measured or [self._durations(rank) for rank in range(world)]
        # Looked up once: sweeps are many.
        self.lanes = [[self.lane(rank, op) for op in range(len(self.of(rank).ops))] for rank in range(world)]
        self.meetings = [
            [self.members(rank, op) if self.is_collective(rank, op) else [] for op in range(len(lanes))]
            for rank, lanes in enumerate(self.lanes)
        ]
        self.waits = [
            [
                [
                    self.sender(rank, wait) if isinstance(wait, Receive) else (rank, wait.op)
                    for wait in run.waits
                ]
                for run in self.of(rank).runs
            ]
            for rank in range(world)
        ]

    def of(self, rank: int) -> StageProgram:
        """The program of a rank."""
        return self.program.stages[self.stage[rank]]

    def at_stage(self, rank: int, stage: int) -> int:
        """The rank at another stage that has the same place in tp and dp."""
        tp, dp, _ = place(self.layout, rank)
        return self.rank_at[tp, dp, stage]

    def members(self, rank: int, op: int) -> list[tuple[int, int]]:
        """(rank, op) of every member of the collective that `op` of `rank` is."""
        cost = self.program.costs[self.of(rank).ops.cost[op]]
        assert isinstance(cost, CollectiveCost)
        key = self.number_on_lane[self.stage[rank]][op]
        return [(other, self.op_on_lane[self.stage[other]][key]) for other in self.groups[cost.group][rank]]

    def is_collective(self, rank: int, op: int) -> bool:
        return isinstance(self.program.costs[self.of(rank).ops.cost[op]], CollectiveCost)

    def lane(self, rank: int, op: int) -> object:
        """What runs one op at a time: a stream, or the channel to another rank.

        Of two interleaved stages, activations and gradients go the same way: one channel.
        """
        ops = self.of(rank).ops
        cost = self.program.costs[ops.cost[op]]
        if isinstance(cost, TransferCost):
            return "to", self.stage[rank] + cost.step
        return ops.stream[op]

    def sender(self, rank: int, wait: Receive) -> tuple[int, int]:
        """(rank, op) of the transfer that `rank` waits for."""
        return self.at_stage(rank, wait.source), self.sender_op[wait.message]

    def run(self) -> Reference:
        """Sweep until nothing changes, with the durations that there are."""
        counts = [len(self.of(rank).ops) for rank in range(self.layout.world)]
        self.times = [RankTimes([0] * count, [0] * count, [0] * count) for count in counts]
        most = 10 + 4 * sum(len(stage.ops) for stage in self.program.stages)
        for _ in range(most):
            if not [rank for rank in range(self.layout.world) if self._sweep(rank)]:
                return self
        raise AssertionError(f"still changing after {most} sweeps: ranks wait for each other in a ring")

    def step_ns(self, durations: list[list[int]]) -> int:
        """When the last rank is done if each rank's ops take so long."""
        self.duration = durations
        return max(times.finish for times in self.run().times)

    def _sweep(self, rank: int) -> bool:
        """Walk one rank through its step; whether any time changed."""
        stage_program, times, duration = self.of(rank), self.times[rank], self.duration[rank]
        lanes, meetings, blocking = self.lanes[rank], self.meetings[rank], stage_program.ops.blocking
        before = (list(times.start), list(times.end), list(times.ready), times.finish)
        lane_end: dict[object, int] = defaultdict(int)
        now = 0
        for run, waits in zip(stage_program.runs, self.waits[rank], strict=True):
            for other, op in waits:
                now = max(now, self.times[other].end[op])
            for op in range(run.first, run.last):
                lane = lanes[op]
                start = times.ready[op] = max(now, lane_end[lane])
                if meetings[op]:
                    start = max([self.times[other].ready[theirs] for other, theirs in meetings[op]])
                times.start[op] = start
                times.end[op] = lane_end[lane] = start + duration[op]
                if blocking[op]:
                    now = times.end[op]
        times.finish = now
        return before != (times.start, times.end, times.ready, times.finish)

    def _numbers(self, stage: StageProgram) -> list[tuple[int, int]]:
        """Each op's stream and which it is on that stream."""
        seen: dict[int, int] = defaultdict(int)
        numbers = []
        for lane in stage.ops.stream:
            numbers.append((lane, seen[lane]))
            seen[lane] += 1
        return numbers

    def _durations(self, rank: int) -> list[int]:
        prices: dict[int, int] = {}
        ops = self.of(rank).ops
        for number in set(ops.cost):
            cost = self.program.costs[number]
            if isinstance(cost, ComputeCost):
                slowdown = self.overrides.slow_ranks.get(rank, 1.0)
                prices[number] = round(cost.ns * (self.compute_scale * cost.scale * slowdown))
                continue
            if isinstance(cost, CollectiveCost):
                members = self.groups[cost.group][rank]
                cluster = self.slowed(members)
                shape = group_shape(self.cluster, members)
                ns = collective_ns(cluster, shape, cost.collective, cost.bytes)
            else:
                other = self.at_stage(rank, self.stage[rank] + cost.step)
                cluster = self.slowed((rank, other))
                ns = transfer_ns(cluster, transfer_shape(cluster, rank, other), cost.bytes)
            prices[number] = round(ns * self.comm_scale)
        return [prices[number] for number in ops.cost]

    def slowed(self, ranks: tuple[int, ...]) -> Cluster:
        """The cluster as these ranks see it: every dimension as slow as their slowest port on it."""
        dims = list(self.cluster.dims)
        for dimension, rank in self.overrides.slow_links:
            if rank in ranks:
                slowest = min(self.overrides.slow_links.get((dimension, one), 1.0) for one in ranks)
                whole = self.cluster.dims[dimension]
                dims[dimension] = replace(whole, bandwidth=whole.bandwidth * slowest)
        return replace(self.cluster, dims=tuple(dims))

    def _senders(self) -> dict[int, int]:
        return {
            message: op
            for stage in (self.program.stages if self.program.pipelined else ())
            for op, message in enumerate(stage.ops.message)
            if message >= 0
        }


def reference_of(simulation: Simulation, measured: list[list[int]] | None = None) -> Reference:
    """The same program, cluster, scales and overrides as those of a simulation, run again rank by rank."""
    overrides = simulation.setup.overrides
    return Reference(
        simulation.program,
        simulation.layout,
        simulation.cluster,
        overrides.compute_scale,
        overrides.comm_scale,
        overrides,
        measured,
    ).run()


def class_of_ranks(simulation: Simulation) -> list[int]:
    """The class of each rank, in rank order, read off the classes' own rank sets."""
    pairs = [
        (rank, number) for number, found in enumerate(simulation.timeline.classes) for rank in found.ranks
    ]
    assert len(pairs) == simulation.layout.world
    return [number for _, number in sorted(pairs)]
