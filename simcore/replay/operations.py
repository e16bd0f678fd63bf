"""The operations of a measured run as a table has them, and what each takes of the step.

Equal ones of all ranks together, or of each rank: own time, waiting, slack.
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

# (operation, sub-operation of equal ones); None for what of the operations lies in no sub-operation.
OpKey = tuple[str, str | None]


def operation_lines(results: ReplayedRun) -> Iterator[LayerUse]:
    """Yields what each operation and sub-operation by name takes, in the order in which they first come; host
    gaps are none.
    """
    table = results.operations
    labels = labels_by_first_use(results.trace, results.accounts, table.column)
    # The path can go through a collective beside compute that no rank has waited for: it has no account.
    critical = [label for of_rank in table.critical_by_track for label in of_rank]
    for index, label in enumerate(dict.fromkeys((*labels, *critical))):
        op, sub = table.column.labels[label]
        cost_ns = max(spent.own.get(label, 0) for spent in table.spent)
        yield LayerUse(
            index, op if sub is None else sub, table.use([label]), cost_ns, parent=op, inside=sub is not None
        )


def least_slacks(results: ReplayedRun) -> dict[str, int]:
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
    has_names = {
        "kernel": True,
        "operation": any(name is not None for device in devices for name in device.operation),
        "layer": any(name is not None for device in devices for name in device.layer),
    }
    return tuple(by for by in GROUPINGS if has_names[by]) if devices else GROUPINGS[:1]


def group_operations(run: MeasuredRun, by: str) -> MeasuredRun:
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


class TimedTransfers(NamedTuple):
    """Communication whose time by itself is known: how often, bytes together, ns together."""

    times: int = 0
    bytes: int = 0
    ns: int = 0

    @property
    def algbw(self) -> float:
        """Bytes of a rank's buffer per ns, which is GB/s."""
        return self.bytes / self.ns if self.ns else 0.0


class OperationBytes(NamedTuple):
    """What an operation sends: the most bytes of its buffers, None where no line of it says any, and GB/s, 0
    where
    nobody knows.
    """

    bytes: int | None
    algbw: float


class Operations:
    """All operations of a run, measured or replayed, with what a table shows of them; each figure found once.

    Of an order without times there are counts alone. by: what they are grouped by; whole: the run as it is.
    """

    def __init__(self, results: ReplayedRun, by: str = GROUPINGS[0]) -> None:
        self.by = by
        self.whole = results
        if by != GROUPINGS[0]:
            results = results.with_names(group_operations(results.measured, by))
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
        spent = results.operations.spent if self.timed else ()
        self._own_ns = {
            key: {rank: spent[rank].own.get(self._label_of(key), 0) if spent else 0 for rank in by_rank}
            for key, by_rank in self._figures.items()
        }
        # Of the ranks that were asked for, by item of their lanes.
        self._waits_by_item: dict[int, dict[int, list[Wait]]] = {}
        # A step has a handful of shapes and very many lines of each.
        self._of_shape: dict[tuple[str | None, str | None], int | None] = {}

    @cached_property
    def together(self) -> list[LayerUse]:
        """All ranks together, in the order in which the operations first come in the files."""
        keyed = enumerate(self._figures.items())
        return [self._operation(index, key, None, by_rank) for index, (key, by_rank) in keyed]

    @cached_property
    def of_each_rank(self) -> list[LayerUse]:
        """Each rank's, by rank."""
        keyed = [(key, rank, one) for key, by_rank in self._figures.items() for rank, one in by_rank.items()]
        keyed.sort(key=lambda of: of[1])
        return [
            self._operation(index, key, rank, {rank: figures})
            for index, (key, rank, figures) in enumerate(keyed)
        ]

    def with_path(self, operations: Sequence[LayerUse]) -> list[LayerUse]:
        """The same with what the critical path says of them."""
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
        """What an operation takes without its sub-operations, of the rank where that is most."""
        label, spent = self._label_of(key), self.results.operations.spent if self.timed else ()
        uses = [
            LineTimes(spent[rank].compute.get(label, 0), spent[rank].exposed.get(label, 0))
            for rank in ranks
            if spent
        ]
        return max(uses, key=lambda use: use.compute_ns + use.exposed_ns, default=LineTimes(0, 0))

    def _waits_with_subs(self) -> dict[tuple[int, int], int]:
        """What each operation, by its label, waits on each rank, in its sub-operations too, ns."""
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
            # Of several kinds the first one's.
            work=WORK[0] if kinds[0] in COMPUTE else WORK[2] if kinds[0] == "host" else WORK[1],
        )
        op, sub = key
        name, use = op if sub is None else sub, self._use(key, by_rank)
        return LayerUse(index, name, use, own_ns[own_rank], None, kinds, op, sub is not None, runs)

    # -- the path --------------------------------------------------------------------------

    @property
    def path_known(self) -> bool:
        """Whether the critical path and the slack are there without a wait; a run without times has none."""
        if not self.timed or self.results.operations.path_known:
            return True
        return is_cached(self.results, "critical_path", "slacks")

    def find_path(self) -> None:
        """Finds the critical path and the slack of all operations."""
        if self.timed:
            table = self.results.operations
            _ = table.critical_ns, table.slack_ns

    def critical_ns(self, operation: LayerUse) -> int:
        """What the critical path has of it, ns."""
        label = self._label.get(operation.key, NONE)
        by_rank = self.results.operations.critical_by_track
        return sum(by_rank[rank].get(label, 0) for rank in operation.runs.ranks)

    def slack_ns(self, operation: LayerUse) -> int | None:
        """Its least slack, ns; None of what holds nobody, such as a launch."""
        label = self._label.get(operation.key, NONE)
        by_rank = self.results.operations.slack_by_track or ()
        slacks = (of_rank.get(label) for rank, of_rank in enumerate(by_rank) if rank in operation.runs.ranks)
        return min((ns for ns in slacks if ns is not None), default=None)

    # -- what is sent ----------------------------------------------------------------------

    def sizes(self, operation: LayerUse) -> tuple[int, int] | None:
        """The least and the most bytes of its buffers; None where no line of it says any."""
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

    def find_volume(self, operation: LayerUse) -> OperationBytes:
        """What it sends, as the table has it."""
        sizes = self.sizes(operation)
        return OperationBytes(None if sizes is None else sizes[1], self.find_transfers(operation).algbw)

    def find_transfers(self, operation: LayerUse) -> TimedTransfers:
        """Its communication as far as it is known how long it takes by itself: from when the last member has
        come, or the send begins. All ranks together have each collective once.
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
        """(calls, ns) of each collective and message, as long as it takes by itself in the run that is shown.

        What runs beside compute is left out: a trace says when it was waited for, not when it was over.
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
        """How many of its runs are communication of which no partner is known that waited for it."""
        return sum(self._unmatched.get((*operation.key, rank), 0) for rank in operation.runs.ranks)

    @cached_property
    def _unmatched(self) -> dict[tuple[str, str | None, int], int]:
        unmatched: dict[tuple[str, str | None, int], int] = {}
        for call in self.results.rendezvous.matches.unmatched if self.timed else ():
            key = (*self._key(call), call.rank)
            unmatched[key] = unmatched.get(key, 0) + 1
        return unmatched

    def waits_of_longest(self, operation: LayerUse) -> list[Wait]:
        """What its longest run waits, the longest first; nothing where the ranks have no common time."""
        if operation.runs.longest is None or not self.results.waiting:
            return []
        rank, item = operation.runs.longest
        if rank not in self._waits_by_item:
            self._waits_by_item[rank] = waits_by_item(self.results, rank)
        return self._waits_by_item[rank].get(item, [])

    def overlaps_compute(self, operation: LayerUse) -> bool:
        """Whether its longest run is a sub-operation that lasts from its launch to the wait for it."""
        if not operation.inside or operation.runs.longest is None:
            return False
        rank, item = operation.runs.longest
        trace = self.results.run.ranks[rank]
        return is_asynchronous(trace, item - len(trace.ops))

    # -- where it is -----------------------------------------------------------------------

    def find_longest_run(self, operation: LayerUse) -> tuple[int, int, int, str | None]:
        """(rank, start, end, lane) of its longest run, of its first where none has a duration.

        lane: the group kind whose lane has it, None for the rank's own lane.
        """
        rank, item = operation.runs.longest or (operation.runs.ranks[0], self._first_item(operation))
        trace = self.results.run.ranks[rank]
        ops, subs = trace.ops, trace.subs
        if item < len(ops):
            # A launch takes none of its rank's time: it stands in its group's lane alone.
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
