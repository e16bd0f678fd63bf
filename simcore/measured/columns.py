"""What one rank did, as columns: its operations, and the sub-operations inside them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from simcore.measured.vocabulary import CATEGORIES, category_of_op
from simcore.records import Struct, field, replace

# How the times of an operation or sub-operation are known.
MEASURED = 0
# Its start or launch alone: no duration was measured. start = end.
INSTANT = 1
# No time in the file: placed at the end of the operation before it. start = end.
UNTIMED = 2
# The other line of one physical operation, a send and a receive in one: the receive stands for both.
FUSED = 3

# Of what the host did: an annotation, and what nothing launched as far as the file tells; from CALLS down the
# calls of the threads in which the host was while the device ran nothing.
ANNOTATED = NOT_LAUNCHED = -1
CALLS = -2
# What a call of the host is: of equal times the later one is made by the earlier one.
HOST_CALLS = ("python", "annotation", "operation", "runtime", "overhead")

# Operations that are a pass of a micro-batch, and which way it goes.
PASSES = {"forward_step": "forward", "backward_step": "backward"}

# A timestamp has two decimals of a ms, so ends and starts computed from two of them may cross by this much.
TOLERANCE_NS = 20_000


class OpColumns(Struct):
    """Operations in the order of the file (that of completion), columns of equal length.

    name, state (`warmup`, `steady` ...), group (the trace's group kind), description, shape,
    dtype: as written, raw text of the file; None where the line has none. batch: micro-batch
    from 0, -1 if not stated. start, end: ns. known: MEASURED, INSTANT, PLACED or FUSED. line:
    of the file, from 1. extra: all other keys, of the operations that have any.
    """

    name: list[str] = field(default_factory=list)
    state: list[str | None] = field(default_factory=list)
    group: list[str | None] = field(default_factory=list)
    batch: array[int] = field(default_factory=lambda: array("q"))
    start: array[int] = field(default_factory=lambda: array("q"))
    end: array[int] = field(default_factory=lambda: array("q"))
    timing: bytearray = field(default_factory=bytearray)
    line: array[int] = field(default_factory=lambda: array("q"))
    description: list[str | None] = field(default_factory=list)
    shape: list[str | None] = field(default_factory=list)
    dtype: list[str | None] = field(default_factory=list)
    extra: dict[int, dict[str, str]] = field(default_factory=dict)
    # Index into CATEGORIES of each; empty where the name says it (Megatron's operations).
    stated_category: bytearray = field(default_factory=bytearray)

    def __len__(self) -> int:
        return len(self.name)

    def category(self, op: int) -> str:
        """What an operation is, one of CATEGORIES."""
        if self.stated_category:
            return CATEGORIES[self.stated_category[op]]
        return category_of_op(self.name[op], self.group[op])


class CollectiveInfo(Struct, frozen=True):
    """What a profiler says of a communication. operation: `allreduce`, `send` ...; group: as the trace names
    it, None where it does not. ranks: its members, None where they are not known; size: how many, 0 if not
    known. sequence, communicator: the number of the call in its communicator, None where not told. elements:
    that go in and come out, -1 if not known. peer: to whom a send goes, from whom a receive comes, as it is
    told: a rank of the world or a place in the group; -1 if not told, and of others. uneven: that ranks get
    parts of different sizes.
    """

    operation: str
    group: str | None = None
    ranks: tuple[int, ...] | None = None
    size: int = 0
    sequence: int | None = None
    communicator: str | None = None
    elements_in: int = -1
    elements_out: int = -1
    dtype: str | None = None
    peer: int = -1
    uneven: bool = False

    @property
    def is_uneven(self) -> bool:
        """Whether ranks are known to get parts of different sizes, which nccl-tests' figures are not for."""
        sizes = self.elements_in, self.elements_out
        differ = min(sizes) >= 0 and len(set(sizes)) > 1
        return self.uneven or (differ and self.operation.startswith("alltoall"))

    @property
    def elements(self) -> int:
        """Of the larger of its two buffers, which is what nccl-tests count; -1 if not known."""
        if self.operation.startswith("allgather") and self.elements_out < 0:
            # What all of them put in.
            return self.elements_in * self.size if min(self.elements_in, self.size - 1) >= 0 else -1
        return max(self.elements_in, self.elements_out)

    @property
    def sends(self) -> bool:
        """Whether it is a send by itself."""
        return self.operation in ("send", "isend")

    @property
    def receives(self) -> bool:
        """Whether it is a receive by itself."""
        return self.operation in ("recv", "irecv")


class HostColumns(Struct):
    """What the host did beside a device, columns, ns: the outermost operations of each thread that launched
    something, then annotations, both in the order of start, then the calls that `GapColumns` names and that
    are no outermost operations.

    thread: index into `threads`, the words for them; ANNOTATED of an annotation, whatever its thread; CALLS
    less that index of a call. line: place in the file. launch, launched, launcher: of each operation of the
    device when the call that launched it began and ended, and by which thread, NOT_LAUNCHED where the file
    does not tell.
    """

    name: list[str] = field(default_factory=list)
    start: array[int] = field(default_factory=lambda: array("q"))
    end: array[int] = field(default_factory=lambda: array("q"))
    thread: array[int] = field(default_factory=lambda: array("i"))
    line: array[int] = field(default_factory=lambda: array("q"))
    threads: list[str] = field(default_factory=list)
    launch: array[int] = field(default_factory=lambda: array("q"))
    launched: array[int] = field(default_factory=lambda: array("q"))
    launcher: array[int] = field(default_factory=lambda: array("i"))

    def __len__(self) -> int:
        return len(self.name)

    def part(self, ops: Sequence[int], window: tuple[int, int]) -> HostColumns:
        """What runs in a window, ns, with the launches of the operations `kept` of the device."""
        inside = [
            row for row, (start, end) in enumerate(zip(self.start, self.end, strict=True))
            if start < window[1] and end > window[0]
        ]  # fmt: skip
        return HostColumns(
            [self.name[row] for row in inside], array("q", (self.start[row] for row in inside)),
            array("q", (self.end[row] for row in inside)), array("i", (self.thread[row] for row in inside)),
            array("q", (self.line[row] for row in inside)), self.threads,
            array("q", (self.launch[op] for op in ops)), array("q", (self.launched[op] for op in ops)),
            array("i", (self.launcher[op] for op in ops)),
        )  # fmt: skip

    def shift(self, by_ns: int) -> HostColumns:
        """The same with every time `by_ns` later."""
        return replace(
            self,
            start=_shift_column(self.start, by_ns),
            end=_shift_column(self.end, by_ns),
            launch=_shift_column(self.launch, by_ns),
            launched=_shift_column(self.launched, by_ns),
        )


class GapColumns(Struct):
    """Times in which a device runs nothing, and what its host did meanwhile, columns, ns: those that matter
    in a step, or in all that was recorded, by start. What a step has of a gap is a gap of its own.

    launched: when the call was over that launched what comes next. thread: of the host, which made that
    call, in words. name, kind, begin, over: the deepest of its calls before `launched` that covers a third of
    the gap or more, one of HOST_CALLS by its place, and when; name: None where there is none, or where most
    of the gap comes behind `launched`. around: the outermost of its callers that has most of its time
    in the gap or in that call, None where there is none.
    """

    start: array[int] = field(default_factory=lambda: array("q"))
    end: array[int] = field(default_factory=lambda: array("q"))
    launched: array[int] = field(default_factory=lambda: array("q"))
    thread: list[str] = field(default_factory=list)
    name: list[str | None] = field(default_factory=list)
    kind: bytearray = field(default_factory=bytearray)
    begin: array[int] = field(default_factory=lambda: array("q"))
    over: array[int] = field(default_factory=lambda: array("q"))
    around: list[str | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.start)

    def part(self, window: tuple[int, int]) -> GapColumns:
        """Those that lie in a window, ns; of several that lie in one another the longest."""
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
        """The same with every time `by_ns` later."""
        return replace(self, start=_shift_column(self.start, by_ns), end=_shift_column(self.end, by_ns),
                       launched=_shift_column(self.launched, by_ns), begin=_shift_column(self.begin, by_ns),
                       over=_shift_column(self.over, by_ns))  # fmt: skip


class DeviceColumns(Struct):
    """What a profiler tells of operations of a device beside `OpColumns`, columns as long as those.

    stream: of the device; of a host's operation its thread. correlation: of the launch, -1 where there is
    none. operation: the annotation or host's operation that launched it; layer: the module, or what an
    annotation names so. bytes: of a copy, else -1. grid,
    block: as written, None where there is none. occupancy: estimated, %, -1 if not told. collectives: of
    those that communicate. on_device: False of a host without a device. host: what it did meanwhile, None
    where that is not known. gaps: in which it ran nothing, as far as they matter and the file tells what
    launched what comes next. streams: those that have names. counted: what `OpColumns.line` counts.
    """

    stream: array[int] = field(default_factory=lambda: array("q"))
    correlation: array[int] = field(default_factory=lambda: array("q"))
    operation: list[str | None] = field(default_factory=list)
    layer: list[str | None] = field(default_factory=list)
    bytes: array[int] = field(default_factory=lambda: array("q"))
    grid: list[str | None] = field(default_factory=list)
    block: list[str | None] = field(default_factory=list)
    occupancy: array[int] = field(default_factory=lambda: array("h"))
    collectives: dict[int, CollectiveInfo] = field(default_factory=dict)
    on_device: bool = True
    host: HostColumns | None = None
    gaps: GapColumns = field(default_factory=GapColumns)
    streams: dict[int, str] = field(default_factory=dict)
    line_noun: str = "event"


class SubColumns(Struct):
    """Sub-operations, by parent and then in the order of its list, columns of equal length.

    parent: index of the operation. name: `func_name`, else `source`. source:
    `trace_src_func`, what the tracer wrapped. collective: `comm_func`. The rest as `OpColumns`.
    """

    parent: array[int] = field(default_factory=lambda: array("q"))
    name: list[str] = field(default_factory=list)
    source: list[str | None] = field(default_factory=list)
    collective: list[str | None] = field(default_factory=list)
    group: list[str | None] = field(default_factory=list)
    start: array[int] = field(default_factory=lambda: array("q"))
    end: array[int] = field(default_factory=lambda: array("q"))
    timing: bytearray = field(default_factory=bytearray)
    shape: list[str | None] = field(default_factory=list)
    dtype: list[str | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.name)


class RankTrace(Struct, frozen=True):
    """What one rank did. number: its rank; in a plan, its stage. stage: None if not known.

    path: of the file. timed: whether any operation has a time; else start and end are 0. device: of a
    profiler trace, whose operations may overlap. window: when its step starts and ends, where operations
    alone do not say it. ahead_ns: how long before the window its host began the step, as the device was
    still busy with the step before.
    """

    rank: int
    stage: int | None
    path: str
    timed: bool
    ops: OpColumns
    subs: SubColumns
    device: DeviceColumns | None = None
    window: tuple[int, int] | None = None
    ahead_ns: int = 0

    @property
    def first_ns(self) -> int:
        """When the first operation began, on the clock of `ops`; of a window when that does."""
        return min(self.ops.start, default=0) if self.window is None else self.window[0]

    @property
    def last_ns(self) -> int:
        """When the last operation ended; of a window when that does."""
        return max(self.ops.end, default=0) if self.window is None else self.window[1]

    @property
    def passes(self) -> list[int]:
        """Its forward and backward steps as indices of `ops`, by their start."""
        ops = self.ops
        passes = (op for op, name in enumerate(ops.name) if name in PASSES and ops.timing[op] != FUSED)
        return sorted(passes, key=lambda op: (ops.start[op], ops.end[op], ops.name[op], ops.batch[op]))

    def shift(self, by_ns: int) -> RankTrace:
        """The same with every time `by_ns` later."""
        ops = replace(
            self.ops, start=_shift_column(self.ops.start, by_ns), end=_shift_column(self.ops.end, by_ns)
        )
        subs = replace(
            self.subs, start=_shift_column(self.subs.start, by_ns), end=_shift_column(self.subs.end, by_ns)
        )
        window = None if self.window is None else (self.window[0] + by_ns, self.window[1] + by_ns)
        device = self.device
        if device is not None:
            host = None if device.host is None else device.host.shift(by_ns)
            device = replace(device, host=host, gaps=device.gaps.shift(by_ns))
        return replace(self, ops=ops, subs=subs, window=window, device=device)


def _shift_column(column: array[int], by_ns: int) -> array[int]:
    return array("q", [time_ns + by_ns for time_ns in column]) if by_ns else column
