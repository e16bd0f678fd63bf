"""The operations of a measured run as a table has them, and what each takes of the step.

Equal ones of all ranks together, or of each rank: own time, waiting, slack.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from simcore.measured.matching import Call, is_asynchronous
from simcore.measured.places import MODEL_PARALLEL
from simcore.measured.run import MeasuredRun
from simcore.measured.summary import OpFigures, op_figures_of, sub_figures_of
from simcore.measured.vocabulary import COMPUTE, LAUNCH, buffer_bytes
from simcore.once import is_known
from simcore.records import NamedTuple, Struct, replace
from simcore.replay.timed import Timed
from simcore.replay.waits import Wait, waits_by_item
from simcore.sources.ties import NONE
from simcore.trace.tables import Spent, Use, first_seen

# (operation, sub-operation of equal ones); None for what of the operations lies in no sub-operation.
OpKey = tuple[str, str | None]


def op_uses(results: Timed) -> Iterator[tuple[OpKey, Use]]:
    """Yields what each operation and sub-operation by name takes, in the order in which they first come; host
    gaps are none.
    """
    table = results.operations
    labels = first_seen(results.trace, results.accounts, table.column)
    # The path can go through a collective beside compute that no rank has waited for: it has no account.
    critical = [label for of_rank in table.critical_on for label in of_rank]
    for label in dict.fromkeys((*labels, *critical)):
        key: OpKey = table.column.labels[label]
        yield key, table.use([label])


def least_slacks(results: Timed) -> dict[str, int]:
    """Returns the least slack of all operations of a name, ns, of what lies in them too."""
    table = results.operations
    slacks = zip(table.column.labels, table.slack_ns or (), strict=False)
    return {op: ns for (op, sub), ns in slacks if sub is None and ns is not None}


WORK = ("compute", "communication", "host")
# What the lines of the table of a profiler's run are: kernels by name, the operations of the host that
# launched them, the layers that these belong to.
GROUPINGS = ("kernel", "operation", "layer")
_WITHOUT = {"operation": "(no operation around)", "layer": "(no layer)"}


def groupings(run: MeasuredRun) -> tuple[str, ...]:
    """Those of GROUPINGS that say something of a run."""
    devices = [rank.device for rank in run.ranks if rank.device is not None]
    told = {
        "kernel": True,
        "operation": any(name is not None for device in devices for name in device.operation),
        "layer": any(name is not None for device in devices for name in device.layer),
    }
    return tuple(by for by in GROUPINGS if told[by]) if devices else GROUPINGS[:1]


def grouped(run: MeasuredRun, by: str) -> MeasuredRun:
    """The run with each operation under the name of what it is grouped by, one of GROUPINGS."""
    if by == GROUPINGS[0]:
        return run
    ranks = []
    for rank in run.ranks:
        assert rank.device is not None
        column = rank.device.operation if by == "operation" else rank.device.layer
        names = [_WITHOUT[by] if name is None else name for name in column]
        ranks.append(replace(rank, ops=replace(rank.ops, name=names)))
    return replace(run, ranks=tuple(ranks))


class Operation(Struct, frozen=True):
    """Equal operations, or sub-operations (`sub`) of equal ones; times in ns. Ranks are their indices.

    rank: the one that it is of, None of all together. kinds: as reports have them, mostly one. ranks: who
    runs it. count: its runs; measured: how many of them have a duration, which total_ns, least_ns and most_ns
    are of. least_rank, most_rank: where the shortest and the longest are, NONE without any; most_batch: the
    longest one's micro-batch, most_item: which item of its rank's lanes it is.
    use: of the rank where compute and exposed communication together are most. own_ns:
    what is not waiting, of the rank where it is most, own_rank; mean_own_ns: the mean of all that run it.
    waits_ns: of all `ranks`, in its sub-operations too.
    """

    op: str
    sub: str | None
    rank: int | None
    kinds: tuple[str, ...]
    ranks: tuple[int, ...]
    count: int
    measured: int
    total_ns: int
    least_ns: int
    least_rank: int
    most_ns: int
    most_rank: int
    most_batch: int
    most_item: int
    use: Spent
    own_ns: int
    own_rank: int
    mean_own_ns: float
    waits_ns: int

    @property
    def name(self) -> str:
        """Its name as the file has it, with the operation that a sub-operation lies in."""
        return self.op if self.sub is None else f"{self.sub} in {self.op}"

    @property
    def rank_ns(self) -> float:
        """How long a rank is in it, the mean of those that run it."""
        return self.total_ns / len(self.ranks)

    @property
    def run_ns(self) -> float | None:
        """How long one run of it takes on average; None where none has a duration."""
        return self.total_ns / self.measured if self.measured else None

    @property
    def times_mean(self) -> float | None:
        """How many times the mean of all ranks that run it the largest `own_ns` is; None of nothing."""
        return self.own_ns / self.mean_own_ns if self.mean_own_ns else None

    @property
    def work(self) -> str:
        """Which of WORK it is; of several kinds the first one's."""
        kind = self.kinds[0]
        return WORK[0] if kind in COMPUTE else WORK[2] if kind == "host" else WORK[1]


class KnownTransfers(NamedTuple):
    """Communication whose time by itself is known: how often, bytes together, ns together."""

    times: int = 0
    bytes: int = 0
    ns: int = 0

    @property
    def algbw(self) -> float:
        """Bytes of a rank's buffer per ns, which is GB/s."""
        return self.bytes / self.ns if self.ns else 0.0


class Operations:
    """All operations of a run, measured or replayed, with what a table shows of them; each figure found once.

    Of an order without times there are counts alone. by: what they are grouped by; whole: the run as it is.
    """

    def __init__(self, results: Timed, by: str = GROUPINGS[0]) -> None:
        self.by = by
        self.whole = results
        if by != GROUPINGS[0]:
            results = results.with_names(grouped(results.measured, by))
        self.results = results
        self.timed = results.run.timed
        # Of each key the figures of each rank: several where its runs are of different groups.
        self._figures: dict[OpKey, dict[int, list[OpFigures]]] = {}
        for rank, trace in enumerate(results.run.ranks):
            for figures in (*op_figures_of((trace,)), *sub_figures_of((trace,))):
                key = (figures.name, None) if figures.parent is None else (figures.parent, figures.name)
                self._figures.setdefault(key, {}).setdefault(rank, []).append(figures)
        labels: Sequence[OpKey] = results.operations.column.labels if self.timed else ()
        self._label = {key: label for label, key in enumerate(labels)}
        self._waits = self._waits_with_subs() if self.timed else {}
        self._mean_own_ns = {
            key: sum(self._spent(key, rank).own_ns for rank in by_rank) / len(by_rank)
            for key, by_rank in self._figures.items()
        }
        # Of the ranks that were asked for, by item of their lanes.
        self._waits_by_item: dict[int, dict[int, list[Wait]]] = {}
        # A step has a handful of shapes and very many lines of each.
        self._of_shape: dict[tuple[str | None, str | None], int | None] = {}

    @cached_property
    def together(self) -> list[Operation]:
        """All ranks together, in the order in which the operations first come in the files."""
        return [self._operation(key, None, by_rank) for key, by_rank in self._figures.items()]

    @cached_property
    def of_each_rank(self) -> list[Operation]:
        """Each rank's, by rank."""
        operations = [
            self._operation(key, rank, {rank: figures})
            for key, by_rank in self._figures.items()
            for rank, figures in by_rank.items()
        ]
        return sorted(operations, key=lambda operation: operation.rank or 0)

    def _spent(self, key: OpKey, rank: int) -> Spent:
        """What an operation takes of a rank, without what lies in its sub-operations."""
        label = self._label.get(key, NONE)
        return Spent() if label == NONE else self.results.operations.spent[rank].of(label)

    def _waits_with_subs(self) -> dict[tuple[int, int], int]:
        """What each operation, by its label, waits on each rank, in its sub-operations too, ns."""
        table = self.results.operations
        ns_of: dict[tuple[int, int], int] = {}
        for rank, of_rank in enumerate(table.spent):
            for label, ns in of_rank.waits.items():
                for key in (label, rank), (table.column.within[label], rank):
                    ns_of[key] = ns_of.get(key, 0) + ns
        return {key: ns for key, ns in ns_of.items() if key[0] != NONE}

    def _operation(self, key: OpKey, rank: int | None, by_rank: dict[int, list[OpFigures]]) -> Operation:
        figures = [(who, of_rank) for who, some in by_rank.items() for of_rank in some]
        timed = [(who, of_rank) for who, of_rank in figures if of_rank.measured]
        least_rank, least = min(timed, key=lambda pair: pair[1].least_ns, default=(NONE, None))
        most_rank, most = max(timed, key=lambda pair: pair[1].most_ns, default=(NONE, None))
        mine = {who: self._spent(key, who) for who in by_rank}
        own_rank = max(mine, key=lambda who: mine[who].own_ns)
        return Operation(
            op=key[0],
            sub=key[1],
            rank=rank,
            kinds=tuple(dict.fromkeys(of_rank.category for _, of_rank in figures)),
            ranks=tuple(by_rank),
            count=sum(of_rank.count for _, of_rank in figures),
            measured=sum(of_rank.measured for _, of_rank in timed),
            total_ns=sum(of_rank.total_ns for _, of_rank in timed),
            least_ns=0 if least is None else least.least_ns,
            least_rank=least_rank,
            most_ns=0 if most is None else most.most_ns,
            most_rank=most_rank,
            most_batch=-1 if most is None else most.most_batch,
            most_item=NONE if most is None else most.most_item,
            use=max(mine.values(), key=lambda spent: spent.compute_ns + spent.exposed_ns),
            own_ns=mine[own_rank].own_ns,
            own_rank=own_rank,
            mean_own_ns=self._mean_own_ns[key],
            waits_ns=sum(self._waits.get((self._label.get(key, NONE), who), 0) for who in by_rank),
        )

    # -- the path --------------------------------------------------------------------------

    @property
    def path_known(self) -> bool:
        """Whether the critical path and the slack are there without a wait; a run without times has none."""
        if not self.timed or self.results.operations.path_known:
            return True
        return is_known(self.results, "critical_path", "slacks")

    def find_path(self) -> None:
        """Finds the critical path and the slack of all operations."""
        if self.timed:
            table = self.results.operations
            _ = table.critical_ns, table.slack_ns

    def critical_ns(self, operation: Operation) -> int:
        """What the critical path has of it, ns."""
        label = self._label.get((operation.op, operation.sub), NONE)
        by_rank = self.results.operations.critical_on
        return sum(by_rank[rank].get(label, 0) for rank in operation.ranks)

    def slack_ns(self, operation: Operation) -> int | None:
        """Its least slack, ns; None of what holds nobody, such as a launch."""
        label = self._label.get((operation.op, operation.sub), NONE)
        by_rank = self.results.operations.slack_on or ()
        slacks = (of_rank.get(label) for rank, of_rank in enumerate(by_rank) if rank in operation.ranks)
        return min((ns for ns in slacks if ns is not None), default=None)

    # -- what is sent ----------------------------------------------------------------------

    def sizes(self, operation: Operation) -> tuple[int, int] | None:
        """The least and the most bytes of its buffers; None where no line of it says any."""
        by_rank = self._sizes.get((operation.op, operation.sub), {})
        sizes = [by_rank[rank] for rank in operation.ranks if rank in by_rank]
        return (min(least for least, _ in sizes), max(most for _, most in sizes)) if sizes else None

    @cached_property
    def _sizes(self) -> dict[OpKey, dict[int, tuple[int, int]]]:
        sizes: dict[OpKey, dict[int, tuple[int, int]]] = {}
        for rank, key, size in self._buffers():
            by_rank = sizes.setdefault(key, {})
            least, most = by_rank.get(rank, (size, size))
            by_rank[rank] = min(least, size), max(most, size)
        return sizes

    def _buffers(self) -> Iterator[tuple[int, OpKey, int]]:
        """(rank, operation, bytes) of each run whose line states a buffer."""
        for rank, trace in enumerate(self.results.measured.ranks):
            ops, subs = trace.ops, trace.subs
            for name, shape, dtype in zip(ops.name, ops.shape, ops.dtype, strict=True):
                size = self._bytes(shape, dtype)
                if size is not None:
                    yield rank, (name, None), size
            for parent, name, shape, dtype in zip(
                subs.parent, subs.name, subs.shape, subs.dtype, strict=True
            ):
                size = self._bytes(shape, dtype)
                if size is not None:
                    yield rank, (ops.name[parent], name), size

    def _bytes(self, shape: str | None, dtype: str | None) -> int | None:
        pair = (shape, dtype)
        if pair not in self._of_shape:
            self._of_shape[pair] = buffer_bytes(shape, dtype)
        return self._of_shape[pair]

    def moved(self, operation: Operation) -> KnownTransfers:
        """Its communication as far as it is known how long it takes by itself: from when the last member has
        come, or the send begins. All ranks together have each collective once.
        """
        return self._moved.get((operation.op, operation.sub), {}).get(operation.rank, KnownTransfers())

    @cached_property
    def _moved(self) -> dict[OpKey, dict[int | None, KnownTransfers]]:
        moved: dict[OpKey, dict[int | None, KnownTransfers]] = {}

        def add(key: OpKey, rank: int | None, size: int, ns: int) -> None:
            before = moved.setdefault(key, {}).get(rank, KnownTransfers())
            moved[key][rank] = KnownTransfers(before.times + 1, before.bytes + size, before.ns + ns)

        for calls, ns in self._alone():
            counted = set()
            for call in calls:
                size = self._size_of(call)
                key = self._key(call)
                if size is None:
                    continue
                add(key, call.rank, size, ns)
                if key not in counted:
                    counted.add(key)
                    add(key, None, size, ns)
        return moved

    def _alone(self) -> Iterator[tuple[tuple[Call, ...], int]]:
        """(calls, ns) of each collective and message, as long as it takes by itself in the run that is shown.

        What runs beside compute is left out: a trace says when it was waited for, not when it was over.
        """
        results = self.results
        if not self.timed or not results.together:
            return
        graph, ends, matches = results.graph, results.ends, results.ties.matches
        pairs = [
            (meeting.calls, node)
            for meeting, node in zip(matches.meetings, graph.meetings, strict=True)
            if not meeting.is_async and meeting.kind != MODEL_PARALLEL
        ]
        pairs += [
            ((message.send, message.receive), node)
            for message, node in zip(matches.messages, graph.messages, strict=True)
        ]
        for calls, node in pairs:
            ns = 0 if node == NONE else ends[node] - graph.graph.start(node, ends)
            if ns > 0:
                yield calls, ns

    def _size_of(self, call: Call) -> int | None:
        trace = self.results.measured.ranks[call.rank]
        if call.sub < 0:
            return self._bytes(trace.ops.shape[call.op], trace.ops.dtype[call.op])
        return self._bytes(trace.subs.shape[call.sub], trace.subs.dtype[call.sub])

    def _key(self, call: Call) -> OpKey:
        trace = self.results.measured.ranks[call.rank]
        return trace.ops.name[call.op], None if call.sub < 0 else trace.subs.name[call.sub]

    def without_partner(self, operation: Operation) -> int:
        """How many of its runs are communication of which no partner is known that waited for it."""
        return sum(self._unmatched.get((operation.op, operation.sub, rank), 0) for rank in operation.ranks)

    @cached_property
    def _unmatched(self) -> dict[tuple[str, str | None, int], int]:
        unmatched: dict[tuple[str, str | None, int], int] = {}
        for call in self.results.ties.matches.unmatched if self.timed else ():
            key = (*self._key(call), call.rank)
            unmatched[key] = unmatched.get(key, 0) + 1
        return unmatched

    def waits_of_longest(self, operation: Operation) -> list[Wait]:
        """What its longest run waits, the longest first; nothing where the ranks have no common time."""
        if operation.most_rank == NONE or not self.results.waiting:
            return []
        if operation.most_rank not in self._waits_by_item:
            self._waits_by_item[operation.most_rank] = waits_by_item(self.results, operation.most_rank)
        return self._waits_by_item[operation.most_rank].get(operation.most_item, [])

    def is_beside_compute(self, operation: Operation) -> bool:
        """Whether its longest run is a sub-operation that lasts from its launch to the wait for it."""
        if operation.sub is None or operation.most_item == NONE:
            return False
        trace = self.results.run.ranks[operation.most_rank]
        return is_asynchronous(trace, operation.most_item - len(trace.ops))

    # -- where it is -----------------------------------------------------------------------

    def place(self, operation: Operation) -> tuple[int, int, int, str | None]:
        """(rank, start, end, lane) of its longest run, of its first where none has a duration.

        lane: the group kind whose lane has it, None for the rank's own lane.
        """
        rank, item = operation.most_rank, operation.most_item
        if item == NONE:
            rank, item = operation.ranks[0], self._first_item(operation)
        trace = self.results.run.ranks[rank]
        ops, subs = trace.ops, trace.subs
        if item < len(ops):
            # A launch takes none of its rank's time: it stands in its group's lane alone.
            lane = ops.group[item] or "" if ops.name[item] == LAUNCH else None
            return rank, ops.start[item], ops.end[item], lane
        sub = item - len(ops)
        return rank, subs.start[sub], subs.end[sub], subs.group[sub] or ""

    def _first_item(self, operation: Operation) -> int:
        trace = self.results.run.ranks[operation.ranks[0]]
        if operation.sub is None:
            return trace.ops.name.index(operation.op)
        pairs = zip(trace.subs.parent, trace.subs.name, strict=True)
        inside = (sub for sub, (parent, name) in enumerate(pairs)
                  if name == operation.sub and trace.ops.name[parent] == operation.op)  # fmt: skip
        return len(trace.ops) + next(inside)
