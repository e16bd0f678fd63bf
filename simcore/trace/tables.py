"""Tables of a trace: what the spans of each label of a column take of the step, whatever the labels are.

A figure of a line is a field of `LineTimes`; lines of rows, operations and names all have it (`layers.py`).
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import compress, repeat
from operator import add, gt

from simcore.cached_methods import is_cached
from simcore.records import NamedTuple, Struct
from simcore.trace.accounts import Accounts
from simcore.trace.spans import NONE, Column, Trace

# (track, span, ns) of each segment of the critical path, in the order of time.
Path = Iterable[tuple[int, int, int]]
# More than any slack, ns.
_MORE_THAN_ANY = 1 << 62


class LineTimes(Struct, frozen=True, gc=False):
    """The times of a line of a table."""

    compute_ns: int
    """Compute on the track where compute and exposed communication together are most, ns."""
    exposed_ns: int
    """Exposed communication on that track, ns."""
    critical_ns: int | None = None
    """Its time on the critical path, ns; None while the path is not known."""
    slack_ns: int | None = None
    """Its least slack, ns; None of what takes no part in the step, and while the path is not known."""


class SpentByLabel:
    """The time of each label in the step of one track, ns by label of those with any, computed on demand.

    accounts: of that track.
    """

    def __init__(self, trace: Trace, track: int, accounts: Accounts, column: Column) -> None:
        self._trace, self._track, self._accounts, self._column = trace, track, accounts, column

    @cached_property
    def compute(self) -> Mapping[int, int]:
        """Compute."""
        return self._sums(range(self._accounts.of.first_exposed))

    @cached_property
    def exposed(self) -> Mapping[int, int]:
        """Communication that compute waits for."""
        return self._sums(range(self._accounts.of.first_exposed, self._accounts.of.first_other))

    def sum_busy(self) -> tuple[list[int], list[int]]:
        """Returns (compute, exposed communication) of every label."""
        count = len(self._column.labels) + 1
        compute, exposed, others = [0] * count, [0] * count, [0] * count
        if is_cached(self, "compute", "exposed"):
            for by_label, sums in (compute, self.compute), (exposed, self.exposed):
                for label, ns in sums.items():
                    by_label[label] = ns
            return compute[:NONE], exposed[:NONE]
        # In one walk over all segments.
        accounts, labels = self._accounts, self._column.labels_by_code(self._trace, self._track)
        of = accounts.of
        by_account = [*repeat(compute, of.first_exposed), *repeat(exposed, len(of.exposed))]
        by_account += repeat(others, len(of.all) - len(by_account))
        columns = map(by_account.__getitem__, accounts.account), map(labels.__getitem__, accounts.op)
        for by_label, label, ns in zip(*columns, accounts.lengths, strict=True):
            by_label[label] += ns
        return compute[:NONE], exposed[:NONE]

    @cached_property
    def own(self) -> Mapping[int, int]:
        """Compute, exposed communication and the host: everything except waiting."""
        own = Counter(self.compute)
        own.update(self.exposed)
        own.update(self._sums(self._find_accounts("host")))
        return own

    @cached_property
    def waits(self) -> Mapping[int, int]:
        """Waits for other ranks, bubbles too."""
        return self._sums(self._find_accounts("wait", "bubble"))

    def _find_accounts(self, *names: str) -> list[int]:
        return [index for index, name in enumerate(self._accounts.of.all) if name in names]

    def _sums(self, account_ids: Sequence[int]) -> Mapping[int, int]:
        """Returns the time of each label in some accounts, ns."""
        accounts = self._accounts
        is_counted = bytearray(256)
        for account_id in account_ids:
            is_counted[account_id] = 1
        flags = accounts.account.translate(is_counted)
        if 1 not in flags:
            return {}
        labels = self._column.labels_by_code(self._trace, self._track)
        # NONE is the last index: a list takes half the time of a dict.
        sums = [0] * (len(self._column.labels) + 1)
        lengths = compress(accounts.lengths, flags)
        for label, ns in zip(map(labels.__getitem__, compress(accounts.op, flags)), lengths, strict=True):
            sums[label] += ns
        return {label: ns for label, ns in enumerate(sums[:NONE]) if ns}


def labels_by_first_use(trace: Trace, accounts: Sequence[Accounts], column: Column) -> list[int]:
    """Returns the labels with time on any track other than idle, in the order of their first appearance."""
    labels: dict[int, None] = {}
    for track, of_track in enumerate(accounts):
        is_idle = of_track.of.all.index("idle")
        busy = of_track.account.translate(bytes(account_id != is_idle for account_id in range(256)))
        labels |= dict.fromkeys(
            map(column.labels_by_code(trace, track).__getitem__, compress(of_track.op, busy))
        )
    labels.pop(NONE, None)
    return [*labels]


class LabelSpans(NamedTuple):
    """The spans of one label."""

    spans: int
    """How many there are."""
    own_ns: int
    """How long they take without waiting, ns."""
    waits_ns: int
    """How long they wait, ns."""
    track: int
    """The track of the longest, the first of equal ones."""
    span: int
    """The longest span there."""


def count_track_spans(trace: Trace, track: int, column: Column) -> dict[int, LabelSpans]:
    """Returns the spans of each label on a rank of one track."""
    spans = trace.spans[track]
    sums: dict[int, list[int]] = {}
    columns = column.of[track], spans.start, spans.ready, spans.end
    for span, (label, start, ready, end) in enumerate(zip(*columns, strict=True)):
        span_ns = end - ready
        of_label = sums.get(label)
        if of_label is None:
            of_label = sums[label] = [0, 0, 0, span, span_ns]
        of_label[0] += 1
        of_label[1] += span_ns
        of_label[2] += ready - start
        if span_ns > of_label[4]:
            of_label[3:] = span, span_ns
    sums.pop(NONE, None)
    return {
        label: LabelSpans(times, own_ns, waits_ns, track, longest)
        for label, (times, own_ns, waits_ns, longest, _) in sums.items()
    }


def count_spans(trace: Trace, column: Column) -> dict[int, LabelSpans]:
    """Returns the spans of each label on the ranks of all tracks together."""
    sums: dict[int, LabelSpans] = {}
    longest: dict[int, int] = {}
    for track, ranks in enumerate(trace.ranks):
        spans = trace.spans[track]
        for label, of_track in count_track_spans(trace, track, column).items():
            before = sums.get(label, LabelSpans(0, 0, 0, NONE, NONE))
            own = spans.end[of_track.span] - spans.ready[of_track.span]
            where = before.track, before.span
            if own > longest.get(label, NONE):
                longest[label], where = own, (track, of_track.span)
            sums[label] = LabelSpans(
                before.spans + ranks * of_track.spans,
                before.own_ns + ranks * of_track.own_ns,
                before.waits_ns + ranks * of_track.waits_ns,
                *where,
            )
    return sums


def _least_slacks(columns: Iterable[tuple[Sequence[int], Sequence[int]]], of: Column) -> list[int | None]:
    """Returns the least slack of each label and of the labels in it, ns; None of a label without any.

    columns: (labels of spans, slacks of the same spans).
    """
    least = [_MORE_THAN_ANY] * (len(of.labels) + 1)
    for labels, slack in columns:
        for label, ns in zip(labels, slack, strict=True):
            if ns < least[label]:
                least[label] = ns
    del least[NONE]
    inside = [*least]
    for outer, ns in zip(of.within, inside, strict=True) if of.within else ():
        if outer != NONE and ns < least[outer]:
            least[outer] = ns
    return [None if ns == _MORE_THAN_ANY else ns for ns in least]


class Table:
    """The lines of a column's labels: each figure is computed on first use.

    path, slacks: return those of the run, each called once; slacks of each span of each track, None where
    there are none.
    """

    def __init__(
        self,
        trace: Trace,
        accounts: Sequence[Accounts],
        column: Column,
        path: Callable[[], Path],
        slacks: Callable[[], Sequence[Sequence[int]] | None],
    ) -> None:
        self.trace, self.accounts, self.column = trace, accounts, column
        self._path, self._slacks = path, slacks

    @property
    def labels(self) -> Sequence[object]:
        """The labels of its lines."""
        return self.column.labels

    @cached_property
    def spent(self) -> list[SpentByLabel]:
        """The time of each label on each track, by its accounts."""
        trace = self.trace
        return trace.map_tracks(lambda track: SpentByLabel(trace, track, self.accounts[track], self.column))

    @cached_property
    def most_by_label(self) -> tuple[array[int], array[int]]:
        """(compute, exposed), ns by label, of the track where the two together are most, the first of equal
        ones.
        """
        count = len(self.labels)
        compute, exposed = array("q", bytes(8 * count)), array("q", bytes(8 * count))
        # Equal tracks share theirs.
        for one in {id(one): one for one in self.spent}.values():
            track_sums = one.sum_busy()
            more = map(gt, map(add, *track_sums), map(add, compute, exposed))
            for label in compress(range(count), more):
                compute[label], exposed[label] = track_sums[0][label], track_sums[1][label]
        return compute, exposed

    @cached_property
    def critical_by_track(self) -> list[dict[int, int]]:
        """The time of each label on the critical path by track, ns; without idle time."""
        labels = self.column.of
        sums: list[dict[int, int]] = [defaultdict(int) for _ in labels]
        for track, span, ns in self._path():
            if span != NONE:
                sums[track][labels[track][span]] += ns
        return [{label: ns for label, ns in of_track.items() if label != NONE} for of_track in sums]

    @cached_property
    def slack_by_track(self) -> list[dict[int, int]] | None:
        """The least slack of each label and of the labels in it by track, ns."""
        slacks = self._slacks()
        if slacks is None:
            return None
        by_track = (
            _least_slacks([columns], self.column) for columns in zip(self.column.of, slacks, strict=True)
        )
        return [{label: ns for label, ns in enumerate(least) if ns is not None} for least in by_track]

    @cached_property
    def critical_ns(self) -> list[int]:
        """The time of each label on the critical path, ns."""
        total = [0] * len(self.labels)
        for sums in self.critical_by_track:
            for label, ns in sums.items():
                total[label] += ns
        return total

    @cached_property
    def slack_ns(self) -> list[int | None] | None:
        """The least slack of each label, ns: None of one without any, and for all where there is no slack."""
        slacks = self._slacks()
        if slacks is None:
            return None
        columns = zip(self.column.of, slacks, strict=True)
        # Ranks of one class that are shown separately share both columns.
        unlike = {(id(labels), id(slack)): (labels, slack) for labels, slack in columns}
        return _least_slacks(unlike.values(), self.column)

    @property
    def path_known(self) -> bool:
        """Whether the figures of the critical path are computed already."""
        return is_cached(self, "critical_ns", "slack_ns")

    def use(self, labels: Sequence[int]) -> LineTimes:
        """Returns the times of some labels together."""
        slack = () if self.slack_ns is None else map(self.slack_ns.__getitem__, labels)
        return LineTimes(
            sum(map(self.most_by_label[0].__getitem__, labels)),
            sum(map(self.most_by_label[1].__getitem__, labels)),
            sum(map(self.critical_ns.__getitem__, labels)),
            min((ns for ns in slack if ns is not None), default=None),
        )
