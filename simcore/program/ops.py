"""Ops before they are timed: columns of one stage's step, and the table of their costs."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from simcore.program.blocks import Structure
from simcore.program.order import KINDS, SINGLE_STAGE, Action, Order, Placement
from simcore.program.schedules import SCHEDULES, Schedule
from simcore.records import NamedTuple, Struct, field
from simcore.workload.model import GroupKind

# Streams of one NPU. The pipeline streams are named by the side of the sender.
COMPUTE = 0
STREAMS = (
    "compute", "tp", "ep", "dp", "dp_ep", "all", "cp", "dp_shard", "dp_replicate", "offload",
    "pp>next", "pp>prev",
)  # fmt: skip
STREAM_OF_GROUP: dict[GroupKind, int] = {
    "tp": 1, "ep": 2, "dp": 3, "dp_ep": 4, "all": 5, "cp": 6, "dp_shard": 7, "dp_replicate": 8,
    "offload": 9,
}  # fmt: skip
KIND_OF_STREAM: dict[int, GroupKind] = {stream: kind for kind, stream in STREAM_OF_GROUP.items()}
# Tables for `bytes.translate` of a column of streams: 1 for this one; 1 for all but compute.
IS_STREAM = [bytes(other == stream for other in range(256)) for stream in range(len(STREAMS))]
IS_COMMUNICATION = bytes(stream != COMPUTE for stream in range(256))
# Of one rank alone: what goes to the host's memory and comes back.
OFFLOAD = 9
TO_NEXT, TO_PREVIOUS = 10, 11
# By stream the one whose lane shows it: the pipeline has one.
LANE_OF_STREAM = (*STREAMS[:TO_NEXT], "pp", "pp")
# The streams of a rank as users see them: what it receives has a stream of its own, named by its own
# side. A transfer is sent by the stage before on `pp>next` and arrives on `pp<prev`.
RECEIVING = {TO_NEXT: "pp<prev", TO_PREVIOUS: "pp<next"}
RANK_STREAMS = (
    *STREAMS[:6], "pp>next", "pp<next", "pp>prev", "pp<prev", *STREAMS[6:TO_NEXT]
)  # fmt: skip

PHASES = ("fwd", "ig", "wg", "opt", "recompute")
FWD, IG, WG, OPT, RECOMPUTE = range(5)


class ComputeCost(NamedTuple):
    """Compute of `ns` nanoseconds, as the file's row says; `scale` is the factor of its layer.

    by_rank: ns by place in the expert group, where the ranks of one differ.
    """

    ns: int
    scale: float = 1.0
    by_rank: tuple[int, ...] = ()

    def ns_of(self, expert: int) -> int:
        """ns of the rank at a place in its expert group."""
        return self.by_rank[expert] if self.by_rank else self.ns


class CollectiveCost(NamedTuple):
    """A collective over a group of `group` kind; `bytes` is the whole buffer.

    Of one that runs in pieces this is piece `piece` of `pieces`, with its own bytes; whole: those of all.
    ports: bytes through the port of each rank, by place in the expert group, where they differ; the slowest
    port has the price, `bytes` are what each sends on average.
    ns: of a copy to or from the host's memory, which is of one rank and on no network; else 0.
    """

    collective: str
    group: GroupKind
    bytes: int
    whole_bytes: int = 0
    split_index: int = 0
    split_count: int = 1
    ports: tuple[int, ...] = ()
    ns: int = 0

    @property
    def priced_bytes(self) -> int:
        """Bytes of the collective that has the price."""
        return max(self.ports) if self.ports else self.whole_bytes or self.bytes

    def port_bytes(self, expert: int) -> int:
        """Bytes of the rank at a place in its expert group."""
        return self.ports[expert] if self.ports else self.bytes

    def share_of(self, ns: int) -> int:
        """What this piece takes of what the whole takes, by cumulative floors: the pieces sum to it."""
        return ns * (self.split_index + 1) // self.split_count - ns * self.split_index // self.split_count


class TransferCost(NamedTuple):
    """A point-to-point transfer of `bytes` to the rank `step` stages on (+1 next, -1 previous)."""

    step: int
    bytes: int


class OverlapCost(NamedTuple):
    """A collective that begins on an idle stream, and what runs beside it until compute waits for it, as one
    op (`Plan.beside`): it takes as long as the longer of the two.

    costs: what runs beside, each distinct one with how often it is there.
    """

    collective: CollectiveCost
    costs: tuple[tuple[ComputeCost | CollectiveCost, int], ...]


class SequenceCost(NamedTuple):
    """Computes and collectives one after another, each rounded by itself, as one op (`Plan.joined`).

    costs: each distinct one with how often it is there.
    """

    costs: tuple[tuple[ComputeCost | CollectiveCost | OverlapCost, int], ...]


# What a part of a micro-batch does in turn: (code, its cost, its stream among those of the part; of a JOIN
# the number of the BEGIN that it waits for).
RUN, BEGIN, BLOCK, JOIN = range(4)


class PartCost(NamedTuple):
    """A part of a micro-batch, with collectives that something before or behind it may delay, as one op.

    streams: those of these collectives. steps: what it does in turn. Its time is no number: when it ends, and
    when its streams do, depends on when they were free (`simcore.engine.finish`).
    """

    streams: tuple[int, ...]
    steps: tuple[tuple[int, Cost | SequenceCost | OverlapCost, int], ...]


Cost = ComputeCost | CollectiveCost | TransferCost
# Also those of several ops as one, where only the step time is asked for.
AnyCost = Cost | SequenceCost | OverlapCost | PartCost


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
    """What the ops of a run wait for of each other: one object for all runs that repeat the same ops.

    pairs: (place, op), ascending: before the op at `place` of the run its op `op` is over; `place` may be
    behind the last one. ends: (stream, first, last), the first and the last op on each stream but compute.
    left: the ops that compute never waits for in the run.
    """

    pairs: tuple[tuple[int, int], ...]
    ends: tuple[tuple[int, int, int], ...]
    unjoined: tuple[int, ...]


class OpRun(NamedTuple):
    """Ops first..last-1, issued one after another once every wait, in order, is over.

    inner: what they wait for inside the run, None where nothing is.
    """

    first: int
    last: int
    waits: tuple[Wait, ...]
    inner: InnerJoins | None = None


class Ops(Struct):
    """Columns of ops in issue order; column i of each describes op i.

    stream: index into STREAMS. phase: index into PHASES. blocking: 1 if the compute stream
    waits for the op's end. cost: index into the program's costs. row: row of the file, -1 for
    a pipeline transfer. microbatch: from 0, -1 outside micro-batches. message: number of
    the pipeline transfer, -1 for other ops.
    """

    stream: bytearray = field(default_factory=bytearray)
    phase: bytearray = field(default_factory=bytearray)
    blocking: bytearray = field(default_factory=bytearray)
    cost: array[int] = field(default_factory=lambda: array("i"))
    row: array[int] = field(default_factory=lambda: array("i"))
    microbatch: array[int] = field(default_factory=lambda: array("i"))
    message: array[int] = field(default_factory=lambda: array("i"))

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
        """The ops first..last-1."""
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
    """The ops first..last-1 of an action of the schedule. step: of those that the run has.

    The two of an overlapped pair have one stretch, in which their ops take turns.
    """

    first: int
    last: int
    action: Action
    step: int


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
        """The ops first..last-1 are those of an action."""
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
    """What one rank of a stage does in one step. Waits and issue order are in `packed`, and in `runs`.

    packed: the runs, those that wait inside as one each: a micro-batch of rows in pieces has hundreds of
    waits. The last run has no ops: its waits are the join at the end of the step.
    peak_microbatches: the most micro-batches whose activations are held at once. pass_ends: the run of
    `packed` at whose beginning, before its waits, each pass of a layer-loop, or step of a pipeline, is over.
    priority: of each op, where collectives queue by it (`Program.queued`), higher first. peak_chunks: the
    most chunks of micro-batches held. held: (op, chunk, +1 or -1), that a chunk's activations are there from
    that op on (its F begins) or no longer (its B, or W, has ended before it). stretches: of the actions of a
    pipeline schedule, in issue order.
    """

    ops: Ops
    packed: tuple[OpRun, ...]
    peak_microbatches: int
    pass_ends: tuple[int, ...] = ()
    priority: array[int] = field(default_factory=lambda: array("q"))
    peak_chunks: int = 0
    chunk_changes: tuple[tuple[int, int, int], ...] = ()
    stretches: Stretches = field(default_factory=Stretches)

    @property
    def runs(self) -> tuple[OpRun, ...]:
        """The runs without waits inside: made anew, for who needs no more than each op and each wait."""
        if all(run.inner is None for run in self.packed):
            return self.packed
        runs: list[OpRun] = []
        # What the next ops wait for that was the last wait inside a run.
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
    """One step. stages[s] is what every rank of stage s does; costs: each distinct cost once.

    pipelined: stages hand activations and gradients to each other. microbatches: how many a
    step has. messages: how many transfers one pipeline makes in a step. virtual_stages: chunks
    of each stage. queued: collectives wait in one queue a dimension of the network, by priority
    and chunk by chunk (dialect astra-sim-1), not one after another on a stream of their kind.
    layers: how often the layer of an op table runs. steps: how many steps of a pipeline the run has, none
    of which waits for the one before on another stage. rules: of the schedule, also of one from a file.
    placement: where the parts of the model lie.
    """

    schedule: str
    pipelined: bool
    structure: Structure
    stages: tuple[StageProgram, ...]
    costs: tuple[Cost, ...]
    microbatches: int
    messages: int
    virtual_stages: int = 1
    queued: bool = False
    layers: int = 1
    steps: int = 1
    rules: Schedule = SCHEDULES["layer-loop"]
    placement: Placement = SINGLE_STAGE

    @property
    def stage_ops(self) -> int:
        """Ops of all stages; stages that share their ops count once."""
        return sum(map(len, {id(stage.ops): stage.ops for stage in self.stages}.values()))

    @property
    def order(self) -> Order:
        """What each stage does in one step, in its order; nothing where no schedule orders micro-batches."""
        stages = (
            tuple(stretch.action for stretch in stage.stretches if stretch.step == 0) for stage in self.stages
        )
        return Order(self.placement, tuple(stages))

    @property
    def has_pipeline_schedule(self) -> bool:
        """Whether it orders micro-batches: an op table, under layer-loop, may be `pipelined` and does not."""
        return self.rules.pipelined
