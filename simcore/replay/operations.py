"""The operations of a measured run as a table shows them, and what each takes of the step.

Equal operations are counted over all ranks or for each rank: own time, waiting, slack.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

from simcore.cached_methods import is_cached
from simcore.measured.matching import Call, is_asynchronous
from simcore.measured.rank_positions import MODEL_PARALLEL
from simcore.measured.run import MeasuredRun
from simcore.measured.summary import OpFigures, op_figures_of, sub_figures_of
from simcore.measured.vocabulary import COMPUTE, LAUNCH, buffer_bytes
from simcore.records import NamedTuple, replace
from simcore.replay.replayed_run import ReplayedRun
from simcore.replay.waits import Wait, waits_by_item
from simcore.sources.rendezvous import NONE
from simcore.trace.layers import LayerUse, Runs
from simcore.trace.tables import LineTimes, labels_by_first_use

# (operation, sub-operation of equal ones); None for the part of an operation that is in no sub-operation.
OpKey = tuple[str, str | None]


def operation_lines(results: ReplayedRun) -> Iterator[LayerUse]:
    """Yields the use of each operation and sub-operation by name, in the order in which they first come; host
    gaps are left out.
    """
    table = results.operations
    labels = labels_by_first_use(results.trace, results.accounts, table.column)
    # The path can go through a collective overlapped by compute, for which no rank waited: it has no account.
    critical = [label for of_rank in table.critical_by_track for label in of_rank]
    for index, label in enumerate(dict.fromkeys((*labels, *critical))):
        op, sub = table.column.labels[label]
        cost_ns = max(spent.own.get(label, 0) for spent in table.spent)
        yield LayerUse(
            index, op if sub is None else sub, table.use([label]), cost_ns, parent=op, inside=sub is not None
        )


def least_slacks(results: ReplayedRun) -> dict[str, int]:
    """Returns the least slack of all operations of a name, sub-operations included, ns."""
    table = results.operations
    slacks = zip(table.column.labels, table.slack_ns or (), strict=False)
    return {op: ns for (op, sub), ns in slacks if sub is None and ns is not None}


WORK = ("compute", "communication", "host")
# Lines of the table of a profiler's run: kernels by name, the host operations that launched them, the layers
# of those.
GROUPINGS = ("kernel", "operation", "layer")
_WITHOUT = {"operation": "(no operation around)", "layer": "(no layer)"}


def groupings(run: MeasuredRun) -> tuple[str, ...]:
    """Returns those of GROUPINGS that a run has data for."""
    devices = [rank.device for rank in run.ranks if rank.device is not None]
    has_names = {
        "kernel": True,
        "operation": any(device.operation.count(None) < len(device.operation) for device in devices),
        "layer": any(device.layer.count(None) < len(device.layer) for device in devices),
    }
    return tuple(by for by in GROUPINGS if has_names[by]) if devices else GROUPINGS[:1]


def group_operations(run: MeasuredRun, by: str) -> MeasuredRun:
    """Returns the run with each operation renamed to its group. by: one of GROUPINGS."""
    if by == GROUPINGS[0]:
        return run
    ranks = []
    for rank in run.ranks:
        assert rank.device is not None
        column = rank.device.operation if by == "operation" else rank.device.layer
        names = [_WITHOUT[by] if name is None else name for name in column]
        ranks.append(replace(rank, ops=replace(rank.ops, name=names)))
    return replace(run, ranks=tuple(ranks))


class TimedTransfers(NamedTuple):
    """Communication whose time without waiting is known: count, total bytes, total ns."""

    times: int = 0
    bytes: int = 0
    ns: int = 0

    @property
    def algbw(self) -> float:
        """Bytes of a rank's buffer per ns, which is GB/s."""
        return self.bytes / self.ns if self.ns else 0.0


class OperationBytes(NamedTuple):
    """What an operation sends. bytes: the most bytes of its buffers, None where no line states any; algbw:
    GB/s, 0 where it is not known.
    """

    bytes: int | None
    algbw: float


class Operations:
    """All operations of a run, measured or replayed, as a table shows them; each figure is computed once.

    An order without times has counts alone. by: what they are grouped by; whole: the run ungrouped.
    """

    def __init__(self, results: ReplayedRun, by: str = GROUPINGS[0]) -> None:
        self.by = by
        self.whole = results
        if by != GROUPINGS[0]:
            results = results.with_names(group_operations(results.measured, by))
        self.results = results
        self.timed = results.run.timed
        # OpKey -> rank -> its figures: several where its runs are of different groups.
        self._figures: dict[OpKey, dict[int, list[OpFigures]]] = {}
        for rank, trace in enumerate(results.run.ranks):
            for figures in (*op_figures_of((trace,)), *sub_figures_of((trace,))):
                key = (figures.name, None) if figures.parent is None else (figures.parent, figures.name)
                self._figures.setdefault(key, {}).setdefault(rank, []).append(figures)
        labels: Sequence[OpKey] = results.operations.column.labels if self.timed else ()
        self._label = {key: label for label, key in enumerate(labels)}
        self._waits = self._waits_with_subs() if self.timed else {}
        spent = results.operations.spent if self.timed else ()
        self._own_ns = {
            key: {rank: spent[rank].own.get(self._label_of(key), 0) if spent else 0 for rank in by_rank}
            for key, by_rank in self._figures.items()
        }
        # Of the ranks requested so far, by item of their lanes.
        self._waits_by_item: dict[int, dict[int, list[Wait]]] = {}
        # A step has a handful of shapes, each on very many lines.
        self._of_shape: dict[tuple[str | None, str | None], int | None] = {}

    @cached_property
    def together(self) -> list[LayerUse]:
        """Returns the operations of all ranks together, in the order in which they come in the files."""
        keyed = enumerate(self._figures.items())
        return [self._operation(index, key, None, by_rank) for index, (key, by_rank) in keyed]

    @cached_property
    def of_each_rank(self) -> list[LayerUse]:
        """Returns the operations of each rank, by rank."""
        keyed = [(key, rank, one) for key, by_rank in self._figures.items() for rank, one in by_rank.items()]
        keyed.sort(key=lambda of: of[1])
        return [
            self._operation(index, key, rank, {rank: figures})
            for index, (key, rank, figures) in enumerate(keyed)
        ]

    def own_ns(self, operation: LayerUse) -> dict[int, int]:
        """Returns rank -> the time of an operation in the accounts there, without waiting, ns."""
        return self._own_ns[operation.key]

    def with_path(self, operations: Sequence[LayerUse]) -> list[LayerUse]:
        """Returns the operations with their figures on the critical path."""
        return [
            replace(
                one,
                use=LineTimes(
                    one.use.compute_ns, one.use.exposed_ns, self.critical_ns(one), self.slack_ns(one)
                ),
            )
            for one in operations
        ]

    def _label_of(self, key: OpKey) -> int:
        return self._label.get(key, NONE)

    def _use(self, key: OpKey, ranks: Collection[int]) -> LineTimes:
        """Returns what an operation takes without its sub-operations, on the rank where that is most."""
        label, spent = self._label_of(key), self.results.operations.spent if self.timed else ()
        uses = [
            LineTimes(spent[rank].compute.get(label, 0), spent[rank].exposed.get(label, 0))
            for rank in ranks
            if spent
        ]
        return max(uses, key=lambda use: use.compute_ns + use.exposed_ns, default=LineTimes(0, 0))

    def _waits_with_subs(self) -> dict[tuple[int, int], int]:
        """Returns (rank, label of an operation) -> how long it waits, its sub-operations included, ns."""
        table = self.results.operations
        ns_of: dict[tuple[int, int], int] = {}
        for rank, of_rank in enumerate(table.spent):
            for label, ns in of_rank.waits.items():
                for key in (label, rank), (table.column.within[label], rank):
                    ns_of[key] = ns_of.get(key, 0) + ns
        return {key: ns for key, ns in ns_of.items() if key[0] != NONE}

    def _operation(
        self, index: int, key: OpKey, rank: int | None, by_rank: dict[int, list[OpFigures]]
    ) -> LayerUse:
        figures = [(who, of_rank) for who, some in by_rank.items() for of_rank in some]
        timed = [(who, of_rank) for who, of_rank in figures if of_rank.measured]
        least_rank, least = min(timed, key=lambda pair: pair[1].least_ns, default=(NONE, None))
        most_rank, most = max(timed, key=lambda pair: pair[1].most_ns, default=(NONE, None))
        own_ns = self._own_ns[key]
        own_rank = max(by_rank, key=own_ns.__getitem__)
        kinds = tuple(dict.fromkeys(of_rank.category for _, of_rank in figures))
        runs = Runs(
            count=sum(of_rank.count for _, of_rank in figures),
            ranks=tuple(by_rank),
            rank=None if rank is None else self.results.run.ranks[rank].rank,
            measured=sum(of_rank.measured for _, of_rank in timed),
            total_ns=sum(of_rank.total_ns for _, of_rank in timed) if timed else None,
            waits_ns=sum(self._waits.get((self._label_of(key), who), 0) for who in by_rank),
            least_ns=None if least is None else least.least_ns,
            least_rank=least_rank,
            most_ns=None if most is None else most.most_ns,
            most_batch=NONE if most is None else most.most_batch,
            longest=None if most is None else (most_rank, most.most_item),
            own_ns=own_ns[own_rank],
            own_rank=own_rank,
            mean_own_ns=sum(own_ns.values()) / len(own_ns),
            # An operation of several kinds counts as its first.
            work=WORK[0] if kinds[0] in COMPUTE else WORK[2] if kinds[0] == "host" else WORK[1],
        )
        op, sub = key
        name, use = op if sub is None else sub, self._use(key, by_rank)
        return LayerUse(index, name, use, own_ns[own_rank], None, kinds, op, sub is not None, runs)

    # -- the path --------------------------------------------------------------------------

    @property
    def path_known(self) -> bool:
        """Whether the critical path and the slack are computed already; a run without times has none."""
        if not self.timed or self.results.operations.path_known:
            return True
        return is_cached(self.results, "critical_path", "slacks")

    def find_path(self) -> None:
        """Computes the critical path and the slack of all operations."""
        if self.timed:
            table = self.results.operations
            _ = table.critical_ns, table.slack_ns

    def critical_ns(self, operation: LayerUse) -> int:
        """Returns how much of the critical path is this operation, ns."""
        label = self._label.get(operation.key, NONE)
        by_rank = self.results.operations.critical_by_track
        return sum(by_rank[rank].get(label, 0) for rank in operation.runs.ranks)

    def slack_ns(self, operation: LayerUse) -> int | None:
        """Returns its least slack, ns; None where nothing depends on it, such as a launch."""
        label = self._label.get(operation.key, NONE)
        by_rank = self.results.operations.slack_by_track
        slacks = (by_rank[rank].get(label) for rank in operation.runs.ranks if by_rank)
        return min((ns for ns in slacks if ns is not None), default=None)

    # -- what is sent ----------------------------------------------------------------------

    def sizes(self, operation: LayerUse) -> tuple[int, int] | None:
        """Returns the least and the most bytes of its buffers; None where no line states any."""
        by_rank = self._sizes.get(operation.key, {})
        sizes = [by_rank[rank] for rank in operation.runs.ranks if rank in by_rank]
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
        """Yields (rank, operation, bytes) of each run whose line states a buffer."""
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

    def find_volume(self, operation: LayerUse) -> OperationBytes:
        """Returns what it sends, as the table shows it."""
        sizes = self.sizes(operation)
        return OperationBytes(None if sizes is None else sizes[1], self.find_transfers(operation).algbw)

    def find_transfers(self, operation: LayerUse) -> TimedTransfers:
        """Returns its communication whose time without waiting is known: from the arrival of the last member,
        or from the begin of the send. All ranks together count each collective once.
        """
        of_all = self._transfers.get(operation.key, {})
        return of_all.get(None if operation.runs.rank is None else operation.runs.ranks[0], TimedTransfers())

    @cached_property
    def _transfers(self) -> dict[OpKey, dict[int | None, TimedTransfers]]:
        transfers: dict[OpKey, dict[int | None, TimedTransfers]] = {}

        def add(key: OpKey, rank: int | None, size: int, ns: int) -> None:
            before = transfers.setdefault(key, {}).get(rank, TimedTransfers())
            transfers[key][rank] = TimedTransfers(before.times + 1, before.bytes + size, before.ns + ns)

        for calls, ns in self._times_alone():
            counted_keys = set()
            for call in calls:
                size = self._size_of(call)
                key = self._key(call)
                if size is None:
                    continue
                add(key, call.rank, size, ns)
                if key not in counted_keys:
                    counted_keys.add(key)
                    add(key, None, size, ns)
        return transfers

    def _times_alone(self) -> Iterator[tuple[tuple[Call, ...], int]]:
        """Yields (calls, ns without waiting) of each collective and message of the displayed run.

        What overlaps compute is left out: a trace says when it was waited for, not when it was over.
        """
        results = self.results
        if not self.timed or not results.together:
            return
        graph, ends, matches = results.graph, results.ends, results.rendezvous.matches
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

    def without_partner(self, operation: LayerUse) -> int:
        """Returns how many of its runs are communication without a known partner."""
        return sum(self._unmatched.get((*operation.key, rank), 0) for rank in operation.runs.ranks)

    @cached_property
    def _unmatched(self) -> dict[tuple[str, str | None, int], int]:
        unmatched: dict[tuple[str, str | None, int], int] = {}
        for call in self.results.rendezvous.matches.unmatched if self.timed else ():
            key = (*self._key(call), call.rank)
            unmatched[key] = unmatched.get(key, 0) + 1
        return unmatched

    def waits_of_longest(self, operation: LayerUse) -> list[Wait]:
        """Returns the waits of its longest run, the longest first; none without a common time."""
        if operation.runs.longest is None or not self.results.waiting:
            return []
        rank, item = operation.runs.longest
        if rank not in self._waits_by_item:
            self._waits_by_item[rank] = waits_by_item(self.results, rank)
        return self._waits_by_item[rank].get(item, [])

    def overlaps_compute(self, operation: LayerUse) -> bool:
        """Returns whether its longest run is a sub-operation from its launch to the wait for it."""
        if not operation.inside or operation.runs.longest is None:
            return False
        rank, item = operation.runs.longest
        trace = self.results.run.ranks[rank]
        return is_asynchronous(trace, item - len(trace.ops))

    # -- where it is -----------------------------------------------------------------------

    def find_longest_run(self, operation: LayerUse) -> tuple[int, int, int, str | None]:
        """Returns (rank, start, end, lane) of its longest run, of its first where none has a duration.

        lane: the group kind whose lane has it, None for the rank's own lane.
        """
        rank, item = operation.runs.longest or (operation.runs.ranks[0], self._first_item(operation))
        trace = self.results.run.ranks[rank]
        ops, subs = trace.ops, trace.subs
        if item < len(ops):
            # A launch takes no time of its rank: it is in its group's lane alone.
            lane = ops.group[item] or "" if ops.name[item] == LAUNCH else None
            return rank, ops.start[item], ops.end[item], lane
        sub = item - len(ops)
        return rank, subs.start[sub], subs.end[sub], subs.group[sub] or ""

    def _first_item(self, operation: LayerUse) -> int:
        trace = self.results.run.ranks[operation.runs.ranks[0]]
        op, sub = operation.key
        if sub is None:
            return trace.ops.name.index(op)
        pairs = zip(trace.subs.parent, trace.subs.name, strict=True)
        inside = (item for item, (parent, name) in enumerate(pairs)
                  if name == sub and trace.ops.name[parent] == op)  # fmt: skip
        return len(trace.ops) + next(inside)
