"""What a rank did in each of its steps, as columns: a small part of its operations, kept of all steps."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from simcore.measured.columns import CollectiveInfo, OpColumns
from simcore.measured.vocabulary import CATEGORIES, COMPUTE
from simcore.records import Struct, field, replace

# What the time of a rank in a step is summed by; compute besides forward and backward is `optimizer` and
# kernels of no known purpose. The rest of a step is idle.
FORWARD, BACKWARD, OTHER, COMM, HOST = range(5)
KIND_WORDS = ("forward", "backward", "compute", "comm", "host")
_COMPUTES = OTHER + 1
_KIND_OF = tuple(
    {"forward": FORWARD, "backward": BACKWARD}.get(name, OTHER) if name in COMPUTE
    else HOST if name in ("host", "gap", "outside") else COMM
    for name in CATEGORIES
)  # fmt: skip


class CallKind(Struct, frozen=True):
    """What calls of a rank have in common."""

    info: CollectiveInfo
    """Without its sequence."""
    name: str
    """Of the operation."""


CallKey: TypeAlias = "tuple[str, str | None, tuple[int, ...] | None, int]"
"""(operation, group, members, peer) of calls, as `CollectiveInfo` has them."""


def _make_ints() -> array[int]:
    return array("q")


class CallColumns(Struct):
    """The calls of a rank in one group, in their order, as columns of equal length."""

    row: array[int] = field(default_factory=_make_ints)
    """The index of its step in `StepColumns`."""
    start: array[int] = field(default_factory=_make_ints)
    """When it starts, ns."""
    end: array[int] = field(default_factory=_make_ints)
    """When it ends, ns."""
    idle: array[int] = field(default_factory=_make_ints)
    """How long nothing ran on the rank before it, ns."""
    kind: array[int] = field(default_factory=_make_ints)
    """An index into `StepColumns.kinds`."""
    sequence: array[int] = field(default_factory=_make_ints)
    """Its number in its communicator, -1 if not stated."""
    stream: array[int] = field(default_factory=_make_ints)
    """The stream that it runs on."""

    @property
    def columns(self) -> tuple[array[int], ...]:
        """All of them."""
        return self.row, self.start, self.end, self.idle, self.kind, self.sequence, self.stream


class StepColumns(Struct):
    """The steps of a rank in their order, as columns of equal length."""

    step: array[int]
    """The number of each."""
    start: array[int]
    """When it starts on the rank, ns."""
    end: array[int]
    """When it ends, ns."""
    spent: list[array[int]]
    """By kind, an index into KIND_WORDS, ns: compute, then what no compute hides of communication and
    copies, then what neither hides of the host.
    """
    calls: dict[CallKey, CallColumns] = field(default_factory=dict)
    kinds: list[CallKind] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.step)


class RankSteps(Struct, frozen=True):
    """The steps of a rank of a run."""

    rank: int
    stage: int | None
    """None where it is not known."""
    columns: StepColumns
    ops: int = 0
    """The number of its operations in all steps."""
    ahead: frozenset[int] = frozenset()
    """The numbers of the steps that its host began while the device was busy with the one before."""
    groups: Mapping[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    """The process groups that its file lists, by name: (description, members)."""
    on_device: bool = True
    """False for a host without a device."""


def summarize_steps(
    ops: OpColumns,
    op_step: Sequence[int],
    windows: Sequence[tuple[int, int, int]],
    collectives: Mapping[int, CollectiveInfo],
    stream: Sequence[int] = (),
) -> StepColumns:
    """Returns the columns of the steps of a rank.

    ops: in order of start. op_step: the number of the step of each. windows: (number, start, end) of each
    step. stream: of each operation, where any communicates.
    """
    row_of = {step_number: row for row, (step_number, _, _) in enumerate(windows)}
    starts = array("q", [start for _, start, _ in windows])
    ends = array("q", [end for _, _, end in windows])
    spent = [array("q", bytes(8 * len(windows))) for _ in KIND_WORDS]
    # By row until when compute runs, compute or communication, anything; the start of the last operation,
    # and until when anything ran that began before that.
    reached = [(start, start, start, start, start) for start in starts]
    calls = _Calls()
    row, last_step = -1, None
    # Of the operations that begin now the call that has the idle time before them: its columns, index, end.
    idle_call: tuple[CallColumns, int, int] | None = None
    begin = over_at = compute_over = comm_over = over = now = before = 0
    # Of the row: compute by kind, then what is compute or communication, then all.
    sums = [0] * len(KIND_WORDS)

    def store() -> None:
        if row >= 0:
            reached[row] = compute_over, comm_over, over, now, before
            for kind, ns in enumerate(sums):
                spent[kind][row] = ns

    for op, (start, end, kind, step_number) in enumerate(
        zip(ops.start, ops.end, _kinds(ops), op_step, strict=True)
    ):
        if step_number != last_step:
            # Operations of one step mostly follow each other: its sums are local meanwhile.
            store()
            last_step = step_number
            row = row_of.get(step_number, -1)
            if row >= 0:
                begin, over_at = starts[row], ends[row]
                compute_over, comm_over, over, now, before = reached[row]
                idle_call = None
                sums = [column[row] for column in spent]
        if row < 0:
            continue
        # What lies outside of a step is of a device that is at another one, too.
        first = start if start > begin else begin
        last = end if end < over_at else over_at
        if start != now:
            now, before = start, over
            idle_call = None
        # What lies outside of the step wholly is not shown with it.
        if kind == COMM and op in collectives and (first < last or start == end):
            columns = calls.add(row, first, last, collectives[op], ops.name[op], stream[op])
            # Of calls that begin at once the longest has the idle time before them: it counts once.
            if first > before and (idle_call is None or end > idle_call[2]):
                if idle_call is not None:
                    idle_call[0].idle[idle_call[1]] = 0
                columns.idle[-1] = first - before
                idle_call = columns, len(columns.idle) - 1, end
        if first > last:
            # A copy that begins when its step is over, beside the next one.
            continue
        if kind < _COMPUTES and last > compute_over:
            sums[kind] += last - (first if first > compute_over else compute_over)
            compute_over = last
        if kind < HOST and last > comm_over:
            # Compute that begins later takes its part from it below.
            sums[COMM] += last - (first if first > comm_over else comm_over)
            comm_over = last
        if last > over:
            sums[HOST] += last - (first if first > over else over)
            over = last
    store()
    comm_ns, host_ns = spent[COMM], spent[HOST]
    for row in range(len(windows)):
        host_ns[row] -= comm_ns[row]
        comm_ns[row] -= spent[FORWARD][row] + spent[BACKWARD][row] + spent[OTHER][row]
    step_numbers = array("q", [step_number for step_number, _, _ in windows])
    return StepColumns(step_numbers, starts, ends, spent, calls.columns, calls.kinds)


def _kinds(ops: OpColumns) -> Iterable[int]:
    if ops.stated_category:
        return ops.stated_category.translate(_TRANSLATED)
    return [_KIND_OF[CATEGORIES.index(ops.category(op))] for op in range(len(ops))]


_TRANSLATED = bytes(_KIND_OF).ljust(256, b"\0")


class _Calls:
    """The calls of a rank as columns while they are collected."""

    def __init__(self) -> None:
        self.columns: dict[CallKey, CallColumns] = {}
        self.kinds: list[CallKind] = []
        # By group what else a kind has -> its index.
        self._index_of: dict[CallKey, dict[tuple[object, ...], int]] = {}

    def add(
        self, row: int, start: int, end: int, info: CollectiveInfo, name: str, stream: int
    ) -> CallColumns:
        """Adds a call; returns the columns of its group."""
        key = info.operation, info.group, info.ranks, info.peer
        columns = self.columns.get(key)
        if columns is None:
            columns, self._index_of[key] = CallColumns(), {}
            self.columns[key] = columns
        index_of = self._index_of[key]
        rest = info.size, info.communicator, info.elements_in, info.elements_out, info.dtype, name
        kind = index_of.get(rest)
        if kind is None:
            kind = index_of[rest] = len(self.kinds)
            self.kinds.append(CallKind(replace(info, sequence=None), name))
        columns.row.append(row)
        columns.start.append(start)
        columns.end.append(end)
        columns.idle.append(0)
        columns.kind.append(kind)
        columns.sequence.append(-1 if info.sequence is None else info.sequence)
        columns.stream.append(stream)
        return columns


def join_steps(parts: Sequence[StepColumns]) -> StepColumns:
    """Returns the steps of several windows of one rank, in the order of their numbers; of a number that two
    have, the first.
    """
    if len(parts) == 1:
        return parts[0]
    source_of: dict[int, tuple[int, int]] = {}
    for at, part in enumerate(parts):
        for row, step_number in enumerate(part.step):
            source_of.setdefault(step_number, (at, row))
    order = sorted(source_of)
    new_row = {source_of[step_number]: row for row, step_number in enumerate(order)}
    sources = [source_of[step_number] for step_number in order]

    def column(pick: Sequence[array[int]]) -> array[int]:
        return array("q", [pick[at][row] for at, row in sources])

    calls: dict[CallKey, CallColumns] = {}
    kinds: list[CallKind] = []
    for at, part in enumerate(parts):
        for key, some in part.calls.items():
            own = calls.setdefault(key, CallColumns())
            for row, start, end, idle, kind, sequence, stream in zip(*some.columns, strict=True):
                if (at, row) in new_row:
                    values = new_row[at, row], start, end, idle, kind + len(kinds), sequence, stream
                    for own_column, value in zip(own.columns, values, strict=True):
                        own_column.append(value)
        kinds += part.kinds
    return StepColumns(
        array("q", order),
        column([part.start for part in parts]),
        column([part.end for part in parts]),
        [column([part.spent[kind] for part in parts]) for kind in range(len(KIND_WORDS))],
        calls,
        kinds,
    )
