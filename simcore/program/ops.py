"""Ops before they are timed: columns of one stage's step, and the table of their costs."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence

from simcore.program.blocks import Structure
from simcore.program.order import KINDS, SINGLE_STAGE, Action, Order, Placement
from simcore.program.schedules import SCHEDULES, Schedule
from simcore.records import NamedTuple, Struct, field
from simcore.units import split_by_weight
from simcore.workload.model import GroupKind

# Streams of one NPU. The pipeline streams are named by the side of the sender.
COMPUTE = 0
STREAMS = (
    "compute", "tp", "ep", "dp", "dp_ep", "all", "cp", "dp_shard", "dp_replicate", "offload", "cp_a2a",
    "cp_p2p", "ep_intra", "ep_inter", "pp>next", "pp>prev",
)  # fmt: skip
STREAM_OF_GROUP: dict[GroupKind, int] = {
    "tp": 1, "ep": 2, "dp": 3, "dp_ep": 4, "all": 5, "cp": 6, "dp_shard": 7, "dp_replicate": 8,
    "offload": 9, "cp_a2a": 10, "cp_p2p": 11, "ep_intra": 12, "ep_inter": 13,
}  # fmt: skip
KIND_OF_STREAM: dict[int, GroupKind] = {stream: kind for kind, stream in STREAM_OF_GROUP.items()}
# Tables for `bytes.translate` of a column of streams: 1 for the stream of the index; 1 for all but compute.
IS_STREAM = [bytes(other == stream for other in range(256)) for stream in range(len(STREAMS))]
IS_COMMUNICATION = bytes(stream != COMPUTE for stream in range(256))
# Copies to the host's memory and back, each of one rank alone.
OFFLOAD = 9
TO_NEXT, TO_PREVIOUS = 14, 15
# Stream -> the stream whose lane displays it: both of the pipeline share one.
LANE_OF_STREAM = (*STREAMS[:TO_NEXT], "pp", "pp")
# The streams on which a rank receives, as users see them, named by the side of the receiver. The previous
# stage sends a transfer on `pp>next`, and it arrives on `pp<prev`.
RECEIVING = {TO_NEXT: "pp<prev", TO_PREVIOUS: "pp<next"}
RANK_STREAMS = (
    *STREAMS[:6], "pp>next", "pp<next", "pp>prev", "pp<prev", *STREAMS[6:TO_NEXT]
)  # fmt: skip

PHASES = ("fwd", "ig", "wg", "opt", "recompute")
FWD, IG, WG, OPT, RECOMPUTE = range(5)


class ComputeCost(NamedTuple):
    """Compute of one row."""

    ns: int
    """The duration as the file's row states it, ns."""
    scale: float = 1.0
    """The factor of its layer."""
    by_rank: tuple[int, ...] = ()
    """ns by index in the expert group, where the ranks of one differ."""
    by_packing: tuple[int, ...] = ()
    """ns in each of the different micro-batches, where these differ by their documents."""

    def ns_of(self, expert: int, packing: int = 0) -> int:
        """Returns the ns of the rank at an index in its expert group, in one of the micro-batches."""
        if self.by_packing:
            return self.by_packing[packing]
        return self.by_rank[expert] if self.by_rank else self.ns


class CollectiveCost(NamedTuple):
    """A collective over a group of `group` kind, or one split of it, with its own bytes."""

    collective: str
    """`ALLREDUCE`, `ALLGATHER` and the like."""
    group: GroupKind
    """The kind of group."""
    bytes: int
    """The whole buffer, or that of the split."""
    whole_bytes: int = 0
    """The buffer of all splits; 0 of a collective without splits."""
    split_index: int = 0
    """Which split it is."""
    split_count: int = 1
    """How many splits the collective has."""
    ports: tuple[int, ...] = ()
    """Bytes through the port of each rank, by index in the expert group, where they differ; the slowest port
    decides the price, and `bytes` are what each sends on average.
    """
    ns: int = 0
    """The duration of a copy to or from the host's memory, which is of one rank and on no network; else 0."""

    @property
    def priced_bytes(self) -> int:
        """Bytes of the collective that has the price."""
        return max(self.ports) if self.ports else self.whole_bytes or self.bytes

    def port_bytes(self, expert: int) -> int:
        """Returns the bytes of the rank at an index in its expert group."""
        return self.ports[expert] if self.ports else self.bytes

    def share_of(self, ns: int) -> int:
        """Returns the share of this split in a duration of the whole, by cumulative floors: the splits sum to
        it.
        """
        return ns * (self.split_index + 1) // self.split_count - ns * self.split_index // self.split_count


class TransferCost(NamedTuple):
    """A point-to-point transfer of `bytes` to the rank `step` stages on (+1 next, -1 previous)."""

    step: int
    bytes: int


class OverlapCost(NamedTuple):
    """A collective that begins on an idle stream, and what overlaps with it until compute waits for it, as
    one op (`Plan.idle_streams`): it takes as long as the longer of the two.

    costs: what overlaps, each distinct cost with how often it is there.
    """

    collective: CollectiveCost
    costs: tuple[tuple[ComputeCost | CollectiveCost | SplitCost, int], ...]


class SplitCost(NamedTuple):
    """A cell whose collective and products are split (`SplitCell`), as one op: no other collective is on its
    stream when it begins, and none of its own when it ends.
    """

    collective: CollectiveCost
    """The whole collective."""
    split_count: int
    """How many splits the products have, one more than the collective."""
    before: ComputeCost
    """What comes before the products."""
    product_ns: int
    """The compute of the products, ns."""
    rest: ComputeCost
    """What follows the products."""

    def ns_of(self, price: Callable[[ComputeCost | CollectiveCost], int]) -> int:
        """Returns the duration. price: what a cost takes alone."""
        moves, whole_ns = self.split_count - 1, price(self.collective)
        splits = [whole_ns * (move + 1) // moves - whole_ns * move // moves for move in range(moves)]
        scale = self.before.scale
        products = [
            price(ComputeCost(ns, scale)) for ns in split_by_weight((1,) * self.split_count, self.product_ns)
        ]
        time = arrival = price(self.before)
        if self.collective.collective == "ALLGATHER":
            time += products[0]
            for split_ns, product_ns in zip(splits, products[1:], strict=True):
                arrival += split_ns
                time = max(time, arrival) + product_ns
        else:
            for split_ns, product_ns in zip(splits, products, strict=False):
                time += product_ns
                arrival = max(time, arrival) + split_ns
            time = max(time + products[-1], arrival)
        return time + price(self.rest)


class SequenceCost(NamedTuple):
    """Computes and collectives one after another, each rounded by itself, as one op (`Plan.merged_streams`).

    costs: each distinct cost with how often it is there.
    """

    costs: tuple[tuple[ComputeCost | CollectiveCost | OverlapCost | SplitCost, int], ...]


# Codes of the steps of a part of a micro-batch: (code, its cost, its stream among those of the part; of a
# JOIN the index of the BEGIN that it waits for). MARK notes on the stream behind it, a mark, when the next
# collective of a stream can begin. ADVANCE counts what follows from there on, and AWAIT waits until what was
# counted is over.
RUN, BEGIN, BLOCK, JOIN, MARK, ADVANCE, AWAIT = range(7)


class PartCost(NamedTuple):
    """A part of a micro-batch, with collectives that ops before or behind it may delay, as one op.

    Its time is no number: when it ends, and when its streams do, depends on when they were free
    (`simcore.engine.finish`).
    """

    streams: tuple[int, ...]
    """The streams of these collectives, and marks (`mark_of`)."""
    steps: tuple[tuple[int, Cost | SequenceCost | OverlapCost | SplitCost, int], ...]


def mark_of(stream: int) -> int:
    """Returns the mark of a stream: when the gathers of a step began on it."""
    return len(STREAMS) + stream


Cost = ComputeCost | CollectiveCost | TransferCost
# Includes costs of several ops as one, for runs of which only the step time is needed.
AnyCost = Cost | SequenceCost | OverlapCost | SplitCost | PartCost


class Receive(NamedTuple):
    """Wait until transfer `message` has arrived; `source` is the stage that sends it."""

    message: int
    source: int


class Join(NamedTuple):
    """Wait until op `op` of the same rank (an index into its ops) has ended, and `after` ns more."""

    op: int
    after: int = 0


class Pause(NamedTuple):
    """Let `ns` nanoseconds pass: a state change of ASTRA-sim 1.0."""

    ns: int


Wait = Receive | Join | Pause


class InnerJoins(Struct, frozen=True, eq=False):
    """What the ops of a run wait for of each other: one object for all runs that repeat the same ops."""

    pairs: tuple[tuple[int, int], ...]
    """(index, op), ascending: before the op at `index` of the run its op `op` has ended; `index` may be
    behind the last one.
    """
    ends: tuple[tuple[int, int, int], ...]
    """(stream, first, last): the first and the last op on each stream but compute."""
    unjoined: tuple[int, ...]
    """The ops of the run that compute never waits for."""


class OpRun(NamedTuple):
    """Ops first..last-1, issued one after another once every wait, in order, is over."""

    first: int
    """The index of the first op."""
    last: int
    """The index behind the last op."""
    waits: tuple[Wait, ...]
    """What the first op waits for."""
    inner: InnerJoins | None = None
    """What the ops wait for inside the run; None without such waits."""


class Ops(Struct):
    """Columns of ops in issue order; column i of each describes op i."""

    stream: bytearray = field(default_factory=bytearray)
    """An index into STREAMS."""
    phase: bytearray = field(default_factory=bytearray)
    """An index into PHASES."""
    blocking: bytearray = field(default_factory=bytearray)
    """1 if the compute stream waits for the op's end."""
    cost: array[int] = field(default_factory=lambda: array("i"))
    """An index into the program's costs."""
    row: array[int] = field(default_factory=lambda: array("i"))
    """The row of the file; -1 for a pipeline transfer."""
    microbatch: array[int] = field(default_factory=lambda: array("i"))
    """From 0; -1 outside micro-batches."""
    message: array[int] = field(default_factory=lambda: array("i"))
    """The id of the pipeline transfer; -1 for other ops."""

    def __len__(self) -> int:
        return len(self.stream)

    def append(
        self,
        stream: int,
        phase: int,
        blocking: int,
        cost: int,
        row: int,
        microbatch: int = -1,
        message: int = -1,
    ) -> None:
        self.stream.append(stream)
        self.phase.append(phase)
        self.blocking.append(blocking)
        self.cost.append(cost)
        self.row.append(row)
        self.microbatch.append(microbatch)
        self.message.append(message)

    def extend(self, other: Ops, microbatch: int) -> None:
        """Append all ops of `other`, as ops of `microbatch`."""
        self.stream += other.stream
        self.phase += other.phase
        self.blocking += other.blocking
        self.cost += other.cost
        self.row += other.row
        self.microbatch += array("i", (microbatch,)) * len(other)
        self.message += other.message

    def part(self, first: int, last: int) -> Ops:
        """Returns the ops first..last-1."""
        return Ops(
            self.stream[first:last],
            self.phase[first:last],
            self.blocking[first:last],
            self.cost[first:last],
            self.row[first:last],
            self.microbatch[first:last],
            self.message[first:last],
        )


class ActionOps(NamedTuple):
    """The ops first..last-1 of an action of the schedule.

    The two actions of an overlapped pair have one stretch, in which their ops take turns.
    """

    first: int
    """The index of the first op."""
    last: int
    """The index behind the last op."""
    action: Action
    """The action."""
    step: int
    """Which step of the run it belongs to."""


_KIND = {kind: kind_index for kind_index, kind in enumerate(KINDS)}


class Stretches(Struct):
    """The stretches of a stage, in issue order, as columns: a long run has millions."""

    first: array[int] = field(default_factory=lambda: array("i"))
    last: array[int] = field(default_factory=lambda: array("i"))
    kind: bytearray = field(default_factory=bytearray)
    microbatch: array[int] = field(default_factory=lambda: array("i"))
    chunk: array[int] = field(default_factory=lambda: array("i"))
    paired: bytearray = field(default_factory=bytearray)
    step: array[int] = field(default_factory=lambda: array("i"))

    def __len__(self) -> int:
        return len(self.first)

    def append(self, first: int, last: int, action: Action, step: int) -> None:
        """Append the ops first..last-1 of an action."""
        self.first.append(first)
        self.last.append(last)
        self.kind.append(_KIND[action.kind])
        self.microbatch.append(action.microbatch)
        self.chunk.append(action.chunk)
        self.paired.append(action.paired)
        self.step.append(step)

    def __iter__(self) -> Iterator[ActionOps]:
        columns = zip(
            self.first, self.last, self.kind, self.microbatch, self.chunk, self.paired, self.step, strict=True
        )
        for first, last, kind, microbatch, chunk, paired, step in columns:
            yield ActionOps(first, last, Action(KINDS[kind], microbatch, chunk, bool(paired)), step)


class StageProgram(Struct, frozen=True):
    """What one rank of a stage does in one step. Waits and issue order are in `packed`, and in `runs`."""

    ops: Ops
    """Its ops."""
    packed: tuple[OpRun, ...]
    """The runs, those with waits inside as one each: a micro-batch of split cells has hundreds of waits. The
    last run has no ops: its waits are the join at the end of the step.
    """
    peak_microbatches: int
    """The most micro-batches whose activations are in memory at once."""
    pass_ends: tuple[int, ...] = ()
    """The run of `packed` at whose beginning, before its waits, each pass of a layer-loop, or step of a
    pipeline, is over.
    """
    priority: array[int] = field(default_factory=lambda: array("q"))
    """The priority of each op, higher first, where collectives queue by it (`Program.queued`)."""
    peak_chunks: int = 0
    """The most chunks of micro-batches in memory at once."""
    chunk_changes: tuple[tuple[int, int, int], ...] = ()
    """(op, chunk, +1 or -1): a chunk's activations are in memory from that op on (its F begins) or no longer
    (its B, or W, has ended before it).
    """
    stretches: Stretches = field(default_factory=Stretches)
    """The stretches of the actions of a pipeline schedule, in issue order."""

    @property
    def runs(self) -> tuple[OpRun, ...]:
        """The runs without waits inside, made anew, for code that needs only each op and each wait."""
        if all(run.inner is None for run in self.packed):
            return self.packed
        runs: list[OpRun] = []
        # The waits of the next ops: the last one found inside a run.
        waits: tuple[Wait, ...] = ()
        for run in self.packed:
            first, waits = run.first, (*waits, *run.waits)
            for position, op in run.inner.pairs if run.inner is not None else ():
                if run.first + position > first:
                    runs.append(OpRun(first, run.first + position, waits))
                    first, waits = run.first + position, ()
                waits = (*waits, Join(run.first + op))
            if first < run.last or run.inner is None:
                runs.append(OpRun(first, run.last, waits))
                waits = ()
        return tuple(runs)


class Program(Struct, frozen=True):
    """The program of one step."""

    schedule: str
    """The name of the schedule."""
    pipelined: bool
    """Whether stages hand activations and gradients to each other."""
    structure: Structure
    """Which rows are micro-batches."""
    stages: tuple[StageProgram, ...]
    """What every rank of each stage does."""
    costs: tuple[Cost, ...]
    """Each distinct cost once."""
    microbatches: int
    """How many micro-batches a step has."""
    messages: int
    """How many transfers one pipeline makes in a step."""
    virtual_stages: int = 1
    """Chunks of each stage."""
    queued: bool = False
    """Whether collectives wait in one queue for each dimension of the network, by priority and chunk by chunk
    (dialect astra-sim-1), not one after another on a stream of their kind.
    """
    after_ns: Sequence[int] = ()
    """By row, the ns after each of its collectives, where a rank has one collective at a time (dialect
    simai-sim); () elsewhere.
    """
    layers: int = 1
    """How often the layer of an op table runs."""
    steps: int = 1
    """How many steps of a pipeline the run has, none of which waits for the one before on another stage."""
    rules: Schedule = SCHEDULES["layer-loop"]
    """The rules of the schedule, also of one from a file."""
    placement: Placement = SINGLE_STAGE
    """Where the parts of the model are."""
    packings: tuple[tuple[int, ...], ...] = ()
    """By replica, for each micro-batch which of the different ones it is; () where they do not differ."""

    def packing_of(self, replica: int, microbatch: int) -> int:
        """Returns which of the different micro-batches one of a replica is."""
        return self.packings[replica][microbatch] if self.packings and microbatch >= 0 else 0

    @property
    def stage_ops(self) -> int:
        """Ops of all stages; stages that share their ops count once."""
        return sum(map(len, {id(stage.ops): stage.ops for stage in self.stages}.values()))

    @property
    def order(self) -> Order:
        """What each stage does in one step, in its order; empty where no schedule orders micro-batches."""
        stages = (
            tuple(stretch.action for stretch in stage.stretches if stretch.step == 0) for stage in self.stages
        )
        return Order(self.placement, tuple(stages))

    @property
    def has_pipeline_schedule(self) -> bool:
        """Whether a schedule orders micro-batches: not so for an op table under layer-loop, which may be
        `pipelined`.
        """
        return self.rules.pipelined
