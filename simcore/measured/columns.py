"""What one rank did, as columns: its operations, and the sub-operations inside them."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from itertools import compress

from simcore.measured.vocabulary import CATEGORIES, category_of_op
from simcore.records import Struct, field, replace

# The values of `timing`: how the times of an operation or sub-operation are known.
MEASURED = 0
# Only its start or launch is known: no duration was measured. start = end.
INSTANT = 1
# The file has no time: it is placed at the end of the operation before it. start = end.
UNTIMED = 2
# The second line of one physical operation, a send and a receive in one: the receive stands for both.
FUSED = 3

# Values of `LaneColumns.thread` and `HostColumns.launcher`: an annotation; no known launch; from CALLS down
# the calls of the threads in which the host was while the device ran nothing.
ANNOTATED = NOT_LAUNCHED = -1
CALLS = -2
# Kinds of calls of the host: of two with equal times the later kind is called by the earlier one.
HOST_CALLS = ("python", "annotation", "operation", "runtime", "overhead")

# Operations that are a pass of a micro-batch, and its direction.
PASSES = {"forward_step": "forward", "backward_step": "backward"}

# A timestamp has two decimals of a ms, so ends and starts computed from two of them may cross by this much.
TOLERANCE_NS = 20_000


class OpColumns(Struct):
    """Operations in the order of the file (that of completion), as columns of equal length."""

    name: list[str] = field(default_factory=list)
    """As written, raw text of the file, as are all texts here; None where the line has none."""
    state: list[str | None] = field(default_factory=list)
    """The pipeline state (`warmup`, `steady` ...)."""
    group: list[str | None] = field(default_factory=list)
    """The trace's group kind."""
    batch: array[int] = field(default_factory=lambda: array("q"))
    """The micro-batch from 0, -1 if not stated."""
    chunk: array[int] = field(default_factory=lambda: array("q"))
    """The chunk of the model on its rank from 0, -1 if not stated; empty where no file states one."""
    start: array[int] = field(default_factory=lambda: array("q"))
    """ns."""
    end: array[int] = field(default_factory=lambda: array("q"))
    """ns."""
    timing: bytearray = field(default_factory=bytearray)
    """MEASURED, INSTANT, UNTIMED or FUSED."""
    line: array[int] = field(default_factory=lambda: array("q"))
    """The line of the file, from 1."""
    description: list[str | None] = field(default_factory=list)
    shape: list[str | None] = field(default_factory=list)
    dtype: list[str | None] = field(default_factory=list)
    extra: dict[int, dict[str, str]] = field(default_factory=dict)
    """All other keys, of the operations that have any."""
    # Index into CATEGORIES of each; empty where the name implies it (Megatron's operations).
    stated_category: bytearray = field(default_factory=bytearray)

    def __len__(self) -> int:
        return len(self.name)

    def category(self, op: int) -> str:
        """Returns the category of an operation, one of CATEGORIES."""
        if self.stated_category:
            return CATEGORIES[self.stated_category[op]]
        return category_of_op(self.name[op], self.group[op])


# Bits of the number of a call that is counted from its step's begin, below those of the step: steps have up
# to 40, what is cached 63.
STEP_BITS = 23


class CollectiveInfo(Struct, frozen=True):
    """What a profiler states of a communication."""

    operation: str
    """`allreduce`, `send` ..."""
    group: str | None = None
    """As the trace names it, None where it does not."""
    ranks: tuple[int, ...] | None = None
    """Its members, None where they are not known."""
    size: int = 0
    """The number of members, 0 if not known."""
    sequence: int | None = None
    """The number of the call in its communicator, None if not stated."""
    communicator: str | None = None
    """None if not stated."""
    elements_in: int = -1
    """Elements that go in, -1 if not known."""
    elements_out: int = -1
    """Elements that come out, -1 if not known."""
    dtype: str | None = None
    peer: int = -1
    """The receiver of a send, the sender of a receive, as stated: a rank of the world or a position in the
    group; -1 if not stated, and for collectives.
    """
    uneven: bool = False
    """Whether ranks get parts of different sizes."""
    counts_by_step: bool = False
    """Whether calls are counted from each step's begin: `sequence` has the step from bit STEP_BITS on."""

    @property
    def stated_sequence(self) -> int | None:
        """The number of the call as the file states it, None if it does not."""
        if self.sequence is None or not self.counts_by_step:
            return self.sequence
        return self.sequence & ((1 << STEP_BITS) - 1)

    @property
    def is_uneven(self) -> bool:
        """Whether ranks are known to get parts of different sizes; the figures of nccl-tests assume even
        ones.
        """
        sizes = self.elements_in, self.elements_out
        differ = min(sizes) >= 0 and len(set(sizes)) > 1
        return self.uneven or (differ and self.operation.startswith("alltoall"))

    @property
    def elements(self) -> int:
        """The elements of the larger of its two buffers, as nccl-tests count; -1 if not known."""
        if self.operation.startswith("allgather") and self.elements_out < 0:
            # The sum of what all members put in.
            return self.elements_in * self.size if min(self.elements_in, self.size - 1) >= 0 else -1
        return max(self.elements_in, self.elements_out)

    @property
    def sends(self) -> bool:
        """Whether it is a send alone."""
        return self.operation in ("send", "isend")

    @property
    def receives(self) -> bool:
        """Whether it is a receive alone."""
        return self.operation in ("recv", "irecv")


class LaneColumns(Struct):
    """What the host of a device did, as columns, ns.

    The outermost operations of each thread that launched something, then annotations, both in the order of
    start, then the calls that `GapColumns` names and that are no outermost operations.
    """

    name: list[str] = field(default_factory=list)
    start: array[int] = field(default_factory=lambda: array("q"))
    end: array[int] = field(default_factory=lambda: array("q"))
    thread: array[int] = field(default_factory=lambda: array("i"))
    """Index into `HostColumns.threads`; ANNOTATED for an annotation, whatever its thread; CALLS less that
    index for a call.
    """
    line: array[int] = field(default_factory=lambda: array("q"))
    """Position in the file."""

    def part(self, window: tuple[int, int]) -> LaneColumns:
        """Returns what runs in a window, ns."""
        first, last = window
        inside = bytes(
            [start < last and end > first for start, end in zip(self.start, self.end, strict=True)]
        )

        def part(column: array[int]) -> array[int]:
            return array(column.typecode, compress(column, inside))

        return LaneColumns(
            list(compress(self.name, inside)), part(self.start), part(self.end), part(self.thread),
            part(self.line),
        )  # fmt: skip

    def shift(self, by_ns: int) -> LaneColumns:
        """Returns the columns with every time `by_ns` later."""
        return replace(self, start=_shift_column(self.start, by_ns), end=_shift_column(self.end, by_ns))


class HostLane:
    """What the host of a device did, made on first use: a report draws no lanes, and where the host has 50
    operations a kernel they take 1.1 of 2.7 s.
    """

    def __init__(self, make: Callable[[], LaneColumns]) -> None:
        self._make: Callable[[], LaneColumns] | None = make
        self._columns = LaneColumns()

    @property
    def columns(self) -> LaneColumns:
        """The columns."""
        self.make()
        return self._columns

    def make(self) -> None:
        """Makes the columns, and lets go of what they are made of."""
        make = self._make
        if make is not None:
            self._columns, self._make = make(), None

    def part(self, window: tuple[int, int]) -> HostLane:
        """Returns what runs in a window, ns."""
        return HostLane(lambda: self.columns.part(window))

    def shift(self, by_ns: int) -> HostLane:
        """Returns the lane with every time `by_ns` later."""
        return HostLane(lambda: self.columns.shift(by_ns)) if by_ns else self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostLane) and self.columns == other.columns

    def __reduce__(self) -> tuple[Callable[[LaneColumns], HostLane], tuple[LaneColumns]]:
        """Returns what another process gets: the columns, which are less than what they are made of."""
        return made_lane, (self.columns,)


def made_lane(columns: LaneColumns) -> HostLane:
    """Returns the lane that has these columns."""
    return HostLane(lambda: columns)


class HostColumns(Struct):
    """What the host of a device did, and when it launched the operations of the device, ns."""

    lane: HostLane
    threads: list[str] = field(default_factory=list)
    """The words for the threads."""
    launch: array[int] = field(default_factory=lambda: array("q"))
    """By operation of the device, when the call that launched it began; NOT_LAUNCHED if not stated."""
    launched: array[int] = field(default_factory=lambda: array("q"))
    """By operation of the device, when that call ended."""
    launcher: array[int] = field(default_factory=lambda: array("i"))
    """By operation of the device, the thread of that call."""

    def part(self, ops: Sequence[int], window: tuple[int, int]) -> HostColumns:
        """Returns what runs in a window, ns, with the launches of these operations of the device, a range for
        all.
        """
        launches = self.launch, self.launched, self.launcher
        if not isinstance(ops, range):
            launch, launched, launcher = (
                array(column.typecode, map(column.__getitem__, ops)) for column in launches
            )
            launches = launch, launched, launcher
        return HostColumns(self.lane.part(window), self.threads, *launches)

    def shift(self, by_ns: int) -> HostColumns:
        """Returns the columns with every time `by_ns` later."""
        return replace(
            self,
            lane=self.lane.shift(by_ns),
            launch=_shift_column(self.launch, by_ns),
            launched=_shift_column(self.launched, by_ns),
        )


class GapColumns(Struct):
    """Times in which a device runs nothing, and what its host did meanwhile, as columns, ns.

    The gaps that matter in a step, or in all that was recorded, by start; the part of a gap inside a step is
    a gap of its own. The named call is the deepest call of the host before `launched` that covers a third of
    the gap or more.
    """

    start: array[int] = field(default_factory=lambda: array("q"))
    end: array[int] = field(default_factory=lambda: array("q"))
    launched: array[int] = field(default_factory=lambda: array("q"))
    """When the call that launched the next kernel ended."""
    thread: list[str] = field(default_factory=list)
    """The words for the thread of the host that made that launch."""
    name: list[str | None] = field(default_factory=list)
    """The named call; None where there is none, or where most of the gap comes after `launched`."""
    kind: bytearray = field(default_factory=bytearray)
    """Its kind, an index into HOST_CALLS."""
    begin: array[int] = field(default_factory=lambda: array("q"))
    """When it begins."""
    over: array[int] = field(default_factory=lambda: array("q"))
    """When it ends."""
    around: list[str | None] = field(default_factory=list)
    """The outermost of its callers that has most of its time in the gap or in that call, None where there is
    none.
    """

    def __len__(self) -> int:
        return len(self.start)

    def part(self, window: tuple[int, int]) -> GapColumns:
        """Returns the gaps that lie in a window, ns; of several that lie in one another the longest."""
        inside = [
            row for row, (start, end) in enumerate(zip(self.start, self.end, strict=True))
            if window[0] <= start and end <= window[1]
        ]  # fmt: skip
        inside.sort(key=lambda row: (self.start[row], -self.end[row]))
        rows: list[int] = []
        for row in inside:
            if not rows or self.start[row] >= self.end[rows[-1]]:
                rows.append(row)
            elif self.end[row] - self.start[row] > self.end[rows[-1]] - self.start[rows[-1]]:
                rows[-1] = row
        times = (self.start, self.end, self.launched, self.begin, self.over)
        start, end, launched, begin, over = (array("q", [column[row] for row in rows]) for column in times)
        return GapColumns(
            start, end, launched, [self.thread[row] for row in rows], [self.name[row] for row in rows],
            bytearray([self.kind[row] for row in rows]), begin, over, [self.around[row] for row in rows],
        )  # fmt: skip

    def shift(self, by_ns: int) -> GapColumns:
        """Returns the columns with every time `by_ns` later."""
        return replace(self, start=_shift_column(self.start, by_ns), end=_shift_column(self.end, by_ns),
                       launched=_shift_column(self.launched, by_ns), begin=_shift_column(self.begin, by_ns),
                       over=_shift_column(self.over, by_ns))  # fmt: skip


class MemoryColumns(Struct):
    """What the allocator of a device did over all of the recording, by time, as columns of equal length."""

    time: array[int] = field(default_factory=lambda: array("q"))
    """When it allocated or released, ns."""
    bytes: array[int] = field(default_factory=lambda: array("q"))
    """How many bytes; of a release below 0."""
    address: array[int] = field(default_factory=lambda: array("q"))
    """Where."""
    allocated: array[int] = field(default_factory=lambda: array("q"))
    """The bytes that are allocated in all from then on."""
    reserved: array[int] = field(default_factory=lambda: array("q"))
    """The bytes that the allocator holds of the device from then on."""
    operation: list[str | None] = field(default_factory=list)
    """The annotation or host operation that ran then; None where none did."""

    def __len__(self) -> int:
        return len(self.time)

    def shift(self, by_ns: int) -> MemoryColumns:
        """Returns the columns with every time `by_ns` later."""
        return replace(self, time=_shift_column(self.time, by_ns))


class DeviceColumns(Struct):
    """What a profiler states of operations of a device besides `OpColumns`, as columns of that length."""

    stream: array[int] = field(default_factory=lambda: array("q"))
    """Of the device; for a host's operation its thread."""
    correlation: array[int] = field(default_factory=lambda: array("q"))
    """Of the launch, -1 where there is none."""
    operation: list[str | None] = field(default_factory=list)
    """The annotation or host operation that launched it."""
    layer: list[str | None] = field(default_factory=list)
    """The module, or what an annotation names so."""
    bytes: array[int] = field(default_factory=lambda: array("q"))
    """Of a copy, else -1."""
    grid: list[str | None] = field(default_factory=list)
    """As written, None where there is none."""
    block: list[str | None] = field(default_factory=list)
    """As written, None where there is none."""
    occupancy: array[int] = field(default_factory=lambda: array("h"))
    """Estimated, %, -1 if not stated."""
    collectives: dict[int, CollectiveInfo] = field(default_factory=dict)
    """By operation, for those that communicate."""
    on_device: bool = True
    """False for a host without a device."""
    host: HostColumns | None = None
    """What the host did meanwhile, None where that is not known."""
    gaps: GapColumns = field(default_factory=GapColumns)
    """Times in which the device ran nothing, where they matter and the launch of the next kernel is
    stated.
    """
    streams: dict[int, str] = field(default_factory=dict)
    """The names of the streams that have one."""
    line_noun: str = "event"
    """What `OpColumns.line` counts."""
    memory: MemoryColumns = field(default_factory=MemoryColumns)
    """What its allocator did, where that was recorded."""


class SubColumns(Struct):
    """Sub-operations, by parent and then in the order of its list, as columns of equal length; those without
    a docstring are as in `OpColumns`.
    """

    parent: array[int] = field(default_factory=lambda: array("q"))
    """Index of the operation."""
    name: list[str] = field(default_factory=list)
    """`func_name`, else `source`."""
    source: list[str | None] = field(default_factory=list)
    """`trace_src_func`, what the tracer wrapped."""
    collective: list[str | None] = field(default_factory=list)
    """`comm_func`."""
    group: list[str | None] = field(default_factory=list)
    start: array[int] = field(default_factory=lambda: array("q"))
    end: array[int] = field(default_factory=lambda: array("q"))
    timing: bytearray = field(default_factory=bytearray)
    shape: list[str | None] = field(default_factory=list)
    dtype: list[str | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.name)


class RankTrace(Struct, frozen=True):
    """What one rank did."""

    rank: int
    """Its id; in a plan its stage."""
    stage: int | None
    """None if not known."""
    path: str
    """Of the file."""
    timed: bool
    """Whether any operation has a time; else start and end are 0."""
    ops: OpColumns
    subs: SubColumns
    device: DeviceColumns | None = None
    """Of a profiler trace, whose operations may overlap."""
    window: tuple[int, int] | None = None
    """When its step starts and ends, where operations alone do not say it."""
    position: tuple[int, int, int] | None = None
    """(tp, dp, stage), where its file states it."""
    step: array[int] | None = None
    """By operation the number of its step; None where all are of one."""
    step_windows: tuple[tuple[int, int, int], ...] = ()
    """(number, start, end) of each step, where operations alone do not say when it starts and ends."""
    ahead_ns: int = 0
    """How long before the window its host began the step, while the device was busy with the step before."""

    @property
    def first_ns(self) -> int:
        """When the window or else the first operation began, on the clock of `ops`."""
        return min(self.ops.start, default=0) if self.window is None else self.window[0]

    @property
    def last_ns(self) -> int:
        """When the window or else the last operation ended."""
        return max(self.ops.end, default=0) if self.window is None else self.window[1]

    @property
    def passes(self) -> list[int]:
        """Its forward and backward steps as indices of `ops`, by their start."""
        ops = self.ops
        passes = (op for op, name in enumerate(ops.name) if name in PASSES and ops.timing[op] != FUSED)
        return sorted(passes, key=lambda op: (ops.start[op], ops.end[op], ops.name[op], ops.batch[op]))

    def shift(self, by_ns: int) -> RankTrace:
        """Returns the trace with every time `by_ns` later."""
        ops = replace(
            self.ops, start=_shift_column(self.ops.start, by_ns), end=_shift_column(self.ops.end, by_ns)
        )
        subs = replace(
            self.subs, start=_shift_column(self.subs.start, by_ns), end=_shift_column(self.subs.end, by_ns)
        )
        window = None if self.window is None else (self.window[0] + by_ns, self.window[1] + by_ns)
        windows = tuple((step, start + by_ns, end + by_ns) for step, start, end in self.step_windows)
        device = self.device
        if device is not None:
            host = None if device.host is None else device.host.shift(by_ns)
            device = replace(
                device, host=host, gaps=device.gaps.shift(by_ns), memory=device.memory.shift(by_ns)
            )
        return replace(self, ops=ops, subs=subs, window=window, step_windows=windows, device=device)


def _shift_column(column: array[int], by_ns: int) -> array[int]:
    return array("q", map(by_ns.__add__, column)) if by_ns else column
