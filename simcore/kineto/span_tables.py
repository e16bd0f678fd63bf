"""Makes recordings of a table of spans, one a rank: for every format that is such a table."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from operator import attrgetter, eq

from simcore.diagnostics import Diagnostic, Severity, printable
from simcore.kineto.recording import NO_STEP, ProfilerStep, Recording, refuse_devices
from simcore.kineto.vocabulary import category_of_group_name
from simcore.measured.columns import STEP_BITS, CollectiveInfo, DeviceColumns, OpColumns
from simcore.measured.selecting import select_ints, select_items
from simcore.measured.vocabulary import CATEGORIES, COMPUTE, COPY, KERNEL
from simcore.ranks import RankSet
from simcore.records import NamedTuple, replace
from simcore.units import plural
from simcore.workload.spans import COLLECTIVES, KINDS, TRANSFERS, UNSTATED, SpanGroup, SpanTable

_CATEGORIES = {"compute": KERNEL, "copy": COPY, "host": "host"} | {name: name for name in COMPUTE}
_WORDS = {name: name.replace("-", "") for name in COLLECTIVES} | {"send": "send", "receive": "recv"}
# `tp-0`, `tp 1` and `tp2` are groups of one kind.
_TRAILING_NUMBER = re.compile(r"[-_ .#]*\d+$")


class _Meaning(NamedTuple):
    """What a span of a kind in a group is."""

    category: int
    """Index into CATEGORIES."""
    label: str | None
    """The lane of its group, None for what does not communicate."""
    collective: CollectiveInfo | None
    """Its call, without a number."""


def recordings_of(path: str, form: str, table: SpanTable) -> tuple[list[Recording], list[Diagnostic]]:
    """Returns (a recording of each rank of the file at `path`, diagnostics). form: the key of its
    `Format`.
    """
    rows: dict[int, array[int]] = {}
    for row, rank in enumerate(table.rank):
        rows.setdefault(rank, array("i")).append(row)
    refuse_devices(path, len(rows))
    meanings: dict[tuple[int, int], _Meaning] = {
        key: _meaning(table, *key) for key in set(zip(table.kind, table.group, strict=True))
    }
    step_calls = _StepCalls()
    rank_rows = [
        _RankRows(path, form, table, rank, rows.pop(rank), meanings, step_calls) for rank in sorted(rows)
    ]
    return [one.recording() for one in rank_rows], _row_diagnostics(path, table, rank_rows)


def _meaning(table: SpanTable, kind: int, group: int) -> _Meaning:
    word = KINDS[kind]
    if word in _CATEGORIES:
        return _Meaning(CATEGORIES.index(_CATEGORIES[word]), None, None)
    span_group = table.groups[group] if group != UNSTATED else SpanGroup("")
    label = _TRAILING_NUMBER.sub("", span_group.name) or span_group.name
    category = category_of_group_name(label)
    is_transfer = word in TRANSFERS
    if category == "comm" and is_transfer:
        category = "pp"
    # A send or receive has two ranks, whichever they are.
    size = len(span_group.ranks) if span_group.ranks is not None else 2 * is_transfer
    name = span_group.name or (None if span_group.ranks is None else ",".join(map(str, span_group.ranks)))
    collective = CollectiveInfo(_WORDS[word], name, span_group.ranks, size)
    return _Meaning(CATEGORIES.index(category), label or _lane(span_group, category), collective)


def _lane(group: SpanGroup, category: str) -> str:
    """Returns the name of groups of one shape that have no names: `8 ranks`, `4 ranks, every 2nd`."""
    if category != "comm" or group.ranks is None:
        return category
    ranks = sorted(group.ranks)
    strides = {after - before for before, after in pairwise(ranks)}
    apart = strides.pop() if len(strides) == 1 else 1
    return plural(len(ranks), "rank") + (f" by {apart}" if apart > 1 else "")


class _StepCalls:
    """Calls of groups that are counted from each step's begin: their number is stated, not guessed from
    order.
    """

    def __init__(self) -> None:
        self.calls: dict[tuple[int, int, int, int], CollectiveInfo] = {}

    def find_call(
        self, collective: CollectiveInfo, key: tuple[int, int, int], sequence: int
    ) -> CollectiveInfo:
        """Returns the call of a number, one for all ranks. key: kind, group and step."""
        call_key = (*key, sequence)
        if call_key not in self.calls:
            self.calls[call_key] = replace(
                collective,
                communicator=f"{collective.group} {collective.operation}",
                sequence=(key[2] << STEP_BITS) + sequence,
                counts_by_step=True,
            )
        return self.calls[call_key]


class _RankRows:
    """The spans of one rank in order of start.

    again: duplicate rows; over: rows that begin on a stream before the one before on it ends; foreign: calls
    of groups without the rank.
    """

    def __init__(
        self,
        path: str,
        form: str,
        table: SpanTable,
        rank: int,
        rows: Sequence[int],
        meanings: dict[tuple[int, int], _Meaning],
        step_calls: _StepCalls,
    ) -> None:
        self.path, self.form, self.table, self.rank = path, form, table, rank
        self.meanings, self.step_calls = meanings, step_calls
        self.again: list[int] = []
        self.over: list[int] = []
        self.foreign: list[int] = []
        self.rows: Sequence[int] = self._each_once(sorted(rows, key=table.start.__getitem__))
        # A rank alone in order takes whole columns.
        if len(self.rows) == len(table) and all(map(eq, self.rows, range(len(table)))):
            self.rows = range(len(table))

    def _each_once(self, rows: list[int]) -> array[int]:
        start, end, stream = self.table.start, self.table.end, self.table.stream
        unique = array("i")
        reached = dict.fromkeys(range(len(self.table.streams)), 0)
        last_start = -1
        seen_keys: set[tuple[object, ...]] = set()
        for row in rows:
            time, on = start[row], stream[row]
            if time != last_start:
                last_start = time
                seen_keys.clear()
            else:
                # Most begin alone: keys are computed when another row begins at the same time.
                seen_keys.add(self._key(unique[-1]))
                if self._key(row) in seen_keys:
                    self.again.append(row)
                    continue
            unique.append(row)
            if time < reached[on]:
                self.over.append(row)
            if end[row] > reached[on]:
                reached[on] = end[row]
        return unique

    def _key(self, row: int) -> tuple[object, ...]:
        table = self.table
        return (table.end[row], table.stream[row], table.kind[row], table.group[row], table.step[row],
                table.microbatch[row], table.name[row])  # fmt: skip

    def recording(self) -> Recording:
        """Returns the recording of the rank."""
        table, rows = self.table, self.rows
        keys = zip(map(table.kind.__getitem__, rows), map(table.group.__getitem__, rows), strict=True)
        row_meanings = [*map(self.meanings.__getitem__, keys)]
        none: list[str | None] = [None] * len(rows)
        ops = OpColumns(
            name=select_items(table.name, rows), group=[one.label for one in row_meanings],
            batch=self._column(table.microbatch), start=self._column(table.start),
            end=self._column(table.end), chunk=self._column(table.chunk) if table.chunk else array("q"),
            line=self._column(table.line), shape=none, dtype=none,
            stated_category=bytearray([one.category for one in row_meanings]),
        )  # fmt: skip
        unknown = array("q", (-1,)) * len(rows)
        columns = DeviceColumns(
            stream=self._column(table.stream), correlation=unknown, operation=none, layer=none,
            bytes=unknown, grid=none, block=none, occupancy=array("h", (-1,)) * len(rows),
            collectives=self._calls(row_meanings), streams=dict(enumerate(table.streams)),
            line_noun=table.line_noun,
        )  # fmt: skip
        step = self._column(table.step)
        return Recording(self.path, self.rank, None, None, ops, columns, step, self._steps(step, ops),
                         job=self.form, form=self.form, on_one_clock=True,
                         figures=table.figures, stage=table.stages.get(self.rank),
                         position=table.positions.get(self.rank))  # fmt: skip

    def _steps(self, step: array[int], ops: OpColumns) -> tuple[ProfilerStep, ...]:
        """Returns the steps: each from the start of its first span to the end of its last one, or as the file
        states it.
        """
        counts = Counter(step)
        # Of several the first counts, which comes last here.
        first = dict(zip(reversed(step), reversed(ops.start), strict=True))
        last = dict.fromkeys(counts, 0)
        for step_number, end in zip(step, ops.end, strict=True):
            if end > last[step_number]:
                last[step_number] = end
        for (rank, step_number), (begin, over) in self.table.windows.items():
            if rank == self.rank and step_number in counts:
                first[step_number] = min(first[step_number], begin)
                last[step_number] = max(last[step_number], over)
        return tuple(
            ProfilerStep(
                step_number, first[step_number], last[step_number], counts[step_number], first[step_number]
            )
            for step_number in sorted(first)
            if step_number != NO_STEP
        )

    def _column(self, column: array[int]) -> array[int]:
        selected = select_ints(column, self.rows)
        return selected if selected.typecode == "q" else array("q", selected)

    def _calls(self, row_meanings: list[_Meaning]) -> dict[int, CollectiveInfo]:
        """Returns what is stated of each call."""
        calls: dict[int, CollectiveInfo] = {}
        counts = Counter[tuple[int, int, int]]()
        for op, one in enumerate(row_meanings):
            collective = one.collective
            if collective is None:
                continue
            row = self.rows[op]
            if collective.ranks is not None and self.rank not in collective.ranks:
                self.foreign.append(row)
                collective = replace(
                    collective, group=f"{collective.group} without rank {self.rank}", ranks=None, size=0
                )
            elif self.table.has_steps and not (collective.sends or collective.receives):
                key = (self.table.kind[row], self.table.group[row], self.table.step[row])
                collective = self.step_calls.find_call(collective, key, counts[key])
                counts[key] += 1
            calls[op] = collective
        return calls


def _row_diagnostics(path: str, table: SpanTable, rank_rows: list[_RankRows]) -> list[Diagnostic]:
    """Returns notes on rows that are duplicate, overlap, or are of a group without their rank."""
    diagnostics: list[Diagnostic] = []

    def say(severity: Severity, code: str, rows: list[int], message: str) -> None:
        location = (table.line[min(rows)], 1) if table.line_noun == "line" else ()
        diagnostics.append(Diagnostic(severity, code, message, path, *location))

    again, over, foreign = (
        [row for one in rank_rows for row in rows(one)]
        for rows in (attrgetter("again"), attrgetter("over"), attrgetter("foreign"))
    )
    if again:
        message = f"{plural(len(again), 'span')} there already with the same in every column: left out"
        say("warning", "repeated-span", again, message)
    if over:
        stream = printable(table.streams[table.stream[min(over)]], 40)
        begin = "begins" if len(over) == 1 else "begin"
        message = (
            f"{plural(len(over), 'span')} {begin} on a stream before the one before on it is over, first on "
            f"stream {stream} of rank {table.rank[min(over)]}: shown as written; what overlaps counts once"
        )
        say("note", "overlapping-spans", over, message)
    if foreign:
        group = table.groups[table.group[min(foreign)]]
        members = RankSet.of(group.ranks or ()).text()
        message = (
            f"{plural(len(foreign), 'call')} of a group that does not have the rank, first rank "
            f"{table.rank[min(foreign)]} in ranks {members}: taken as calls without a partner"
        )
        say("warning", "rank-not-in-group", foreign, message)
    return diagnostics
