"""Reads a Kineto file into recordings: one a device, or one of the host where no device was recorded."""

from __future__ import annotations

import gc
import json
import math
import os
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from msgspec import Raw

from simcore.diagnostics import Diagnostic, InputError
from simcore.kineto.events import (
    Args,
    Distributed,
    Event,
    TraceFile,
    args_of,
    batches,
    correlation_of,
    opened,
)
from simcore.kineto.recording import NO_STEP, Recording, Step
from simcore.kineto.vocabulary import (
    ANNOTATIONS,
    COLLECTIVE_ANNOTATION,
    COMMUNICATION,
    COPIES,
    HOST_OPS,
    KERNELS,
    LAUNCHES,
    STEP,
    category_of_group_name,
    dtype_of,
    kernel_kind,
    operation_word,
    phase_of,
)
from simcore.measured.columns import Collective, DeviceColumns, OpColumns
from simcore.measured.vocabulary import CATEGORIES, COMPUTE, COPY, KERNEL
from simcore.units import plural
from simcore.workload.model import LARGEST

_NOTHING = Raw(b"")
_MOST_NUMBER = 1 << 62
# A time is the sum of three: of the file, of the event, and of its length.
_MOST_US = LARGEST // 3000
_RANK = re.compile(r"(?:rank|worker)[-_]?(\d{1,7})(?!\d)", re.IGNORECASE)
_OF_PHASE = {name: CATEGORIES.index(name) for name in COMPUTE}
_COPY, _KERNEL = CATEGORIES.index(COPY), CATEGORIES.index(KERNEL)
_MOST_RANKS_LISTED = 1 << 20


def read_file_events(
    path: str, data: bytes, names: str | None = None
) -> tuple[list[Recording], list[Diagnostic]]:
    """The recordings in a file's bytes, by device, and what was found. names: a regular expression of further
    kernels that communicate. Raises InputError for what is no trace, or has nothing to show.
    """
    enabled = gc.isenabled()
    # A million small objects that live until the end: looking for garbage among them takes a third of the
    # time.
    gc.disable()
    try:
        file, found = opened(path, data)
        reader = _Reader(path, file, names)
        recordings = reader.recordings()
        if found:
            for one in recordings:
                one.cut = True
        return recordings, [*found, *reader.found]
    finally:
        if enabled:
            gc.enable()


# (start, -end, name, place in the file) of an operation or annotation of the host, us as they are written.
_Range = tuple[float, float, str, int]
_Threads = dict[object, list[_Range]]


class _Row(NamedTuple):
    """An operation of a device. start, end: ns; number: place in the file."""

    start: int
    end: int
    number: int
    device: int
    name: str
    is_copy: bool
    thread: Any
    grid: str | None
    block: str | None
    args: Args


class _Call(NamedTuple):
    """A collective's annotation of the host, us as written. elements: that go in, -1 if not known."""

    start: float
    end: float
    number: int
    name: str
    thread: object
    elements: int


class _Launches:
    """What launched something: columns. time: us as written. thread: its number in `threads`."""

    def __init__(self) -> None:
        self.correlation, self.time, self.thread = array("q"), array("d"), array("i")
        self.threads: dict[object, int] = {}


class _Reader:
    def __init__(self, path: str, file: TraceFile, names: str | None) -> None:
        self.path = path
        self.file = file
        self.found: list[Diagnostic] = []
        self.base = file.baseTimeNanoseconds or 0
        if abs(self.base) > LARGEST // 3:
            message = f"baseTimeNanoseconds: found {self.base}, expected at most {LARGEST // 3}"
            raise InputError(Diagnostic("error", "value-too-large", message, path))
        self.pool: dict[str, str] = {}
        self.rows: list[_Row] = []
        self.launches = _Launches()
        self.threads: _Threads = {}
        self.ranges: _Threads = {}
        self.calls: dict[Any, Args] = {}
        self.steps: list[tuple[int, int, int]] = []
        self.annotated: list[_Call] = []
        self.phases: dict[object, list[tuple[float, float, str]]] = {}
        takers = (
            (KERNELS, self._take_kernel), (COPIES, self._take_copy), (LAUNCHES, self._take_launch),
            (HOST_OPS, self._take_host_op), (ANNOTATIONS, self._take_annotation),
        )  # fmt: skip
        self.takers: dict[str | None, Callable[[int, Event], None]] = {
            cat: take for cats, take in takers for cat in cats
        }
        self.communicates: dict[str, bool] = {}
        self.pattern = re.compile(COMMUNICATION + (f"|(?:{names})" if names else ""))
        self.triples: dict[bytes, str | None] = {}
        self.negative = 0
        self.untimed = 0

    # -- the parts of a file ---------------------------------------------------------

    def recordings(self) -> list[Recording]:
        """One a device, else of the host."""
        number = -1
        takers, threads, pool, numbers = self.takers, self.threads, self.pool, self.launches.threads
        host_op, launch = (self.takers[next(iter(cats))] for cats in (HOST_OPS, LAUNCHES))
        launches = self.launches
        add_correlation, add_time = launches.correlation.append, launches.time.append
        add_thread = launches.thread.append
        for batch in batches(self.path, self.file):
            for event in batch:
                number += 1
                take = takers.get(event.cat) if event.ph == "X" else None
                if take is None:
                    continue
                start = event.ts
                if start is None:
                    self.untimed += 1
                    continue
                if take is launch:
                    correlation = correlation_of(event)
                    if correlation is not None and -_MOST_NUMBER < correlation < _MOST_NUMBER:
                        add_correlation(correlation)
                        add_time(start)
                        thread = (event.pid, event.tid)
                        add_thread(numbers.setdefault(thread, len(numbers)))
                    continue
                name = event.name
                if take is not host_op or type(name) is not str or name == "record_param_comms":
                    take(number, event)
                    continue
                # Most events are these: what `_take_host_op` does, without a call.
                one = (start, -start - (event.dur or 0), pool.setdefault(name, name), number)
                thread = (event.pid, event.tid)
                if thread in threads:
                    threads[thread].append(one)
                else:
                    threads[thread] = [one]
        if not self.rows and not self.threads:
            message = "found no event of a device or of the host's operations, expected a profiler's trace"
            raise InputError(Diagnostic("error", "no-events", message, self.path))
        self.steps.sort()
        if self.rows:
            found = self._devices()
        else:
            found = [self._host()]
            message = "no device was recorded: the host's operations are shown as what it computes"
            self._say("note", "no-device", message)
        if self.negative:
            message = f"{plural(self.negative, 'event')} with a negative duration, taken as 0"
            self._say("warning", "negative-duration", message)
        if self.untimed:
            self._say("warning", "no-time", f"{plural(self.untimed, 'event')} without a time, left out")
        return found

    # -- events ----------------------------------------------------------------------

    def _take_kernel(self, number: int, event: Event, is_copy: bool = False) -> None:
        args = args_of(event)
        if args.stream == -1:
            return
        start, end = self._times(number, event)
        device = _whole(args.device)
        if device is None:
            device = _whole(event.pid)
        grid, block = self._triple(args.grid), self._triple(args.block)
        # What is kept of an event must not keep the bytes that it was read from.
        args.grid = args.block = _NOTHING
        self.rows.append(
            _Row(start, end, number, -1 if device is None else device, self._name(event), is_copy, event.tid,
                 grid, block, args)
        )  # fmt: skip

    def _take_copy(self, number: int, event: Event) -> None:
        self._take_kernel(number, event, True)

    def _take_launch(self, number: int, event: Event) -> None:
        """Taken where events are told apart: there are as many as kernels, twice."""

    def _take_host_op(self, number: int, event: Event) -> None:
        name = self._name(event)
        start = event.ts or 0
        thread = (event.pid, event.tid)
        into = self.threads.get(thread)
        if into is None:
            into = self.threads[thread] = []
        into.append((start, -start - (event.dur or 0), name, number))
        if name == "record_param_comms":
            args = args_of(event)
            args.grid = args.block = _NOTHING
            self.calls[_key(args.external)] = args

    def _take_annotation(self, number: int, event: Event) -> None:
        name = self._name(event)
        step = STEP.match(name)
        if step is not None:
            self.steps.append((*self._times(number, event), int(step[1])))
        elif COLLECTIVE_ANNOTATION.match(name):
            start = event.ts or 0
            end = start + max(event.dur or 0, 0)
            elements = _elements(args_of(event).dims)
            self.annotated.append(_Call(start, end, number, name, (event.pid, event.tid), elements))
        elif phase_of(name) is not None:
            start, thread = event.ts or 0, (event.pid, event.tid)
            self.phases.setdefault(thread, []).append((start, start + (event.dur or 0), phase_of(name) or ""))
        self._take_range(number, event, name)

    def _take_range(self, number: int, event: Event, name: str) -> None:
        start = event.ts or 0
        self.ranges.setdefault((event.pid, event.tid), []).append(
            (start, -start - (event.dur or 0), name, number)
        )

    def _times(self, number: int, event: Event) -> tuple[int, int]:
        """(start, end) of an event, ns of an absolute clock."""
        dur = event.dur or 0
        if dur < 0:
            self.negative += 1
            dur = 0
        start = self._ns(number, event.ts or 0)
        return start, start + self._ns(number, dur, 0)

    def _ns(self, number: int, us: float, base: int | None = None) -> int:
        """A time as ns, exact where it is written in whole us or is below 2^43 us."""
        if not -_MOST_US < us < _MOST_US:
            message = f"event {number}: found a time of {us} us, expected at most {_MOST_US}"
            raise InputError(Diagnostic("error", "value-too-large", message, self.path))
        whole = int(us)
        return (self.base if base is None else base) + (whole * 1000 if whole == us else round(us * 1000))

    # -- a device --------------------------------------------------------------------

    def _devices(self) -> list[Recording]:
        rows = self.rows
        rows.sort(key=lambda row: row[:3])
        wanted = {_whole(row.args.correlation) for row in rows}
        started: dict[int, tuple[float, object]] = {}
        threads = list(self.launches.threads)
        for correlation, time, thread in zip(
            self.launches.correlation, self.launches.time, self.launches.thread, strict=True
        ):
            if correlation in wanted:
                started[correlation] = (time, threads[thread])
        for one, ranges in self.ranges.items():
            self.threads.setdefault(one, []).extend(ranges)
        inside = _Inside(self.threads, started)
        devices = sorted({row.device for row in rows})
        return [
            self._device(
                [row for row in rows if row.device == one] if len(devices) > 1 else rows, one, started, inside
            )
            for one in devices
        ]

    def _device(
        self, rows: list[_Row], device: int, started: dict[int, tuple[float, object]], inside: _Inside
    ) -> Recording:
        ops, columns = OpColumns(), DeviceColumns()
        # Those that nothing launched, as far as the file tells, belong to the step in which they start.
        times = []
        found, nothing, calls = inside.found, (None, None, None), self.calls
        # Names that are known to communicate only by what is said of a call.
        computes: dict[str, bool] = {}
        for row in rows:
            args, name = row.args, row.name
            correlation = _whole(args.correlation)
            launch = started.get(correlation) if correlation is not None else None
            times.append(row.start if launch is None else self._ns(row.number, launch[0]))
            operation, phase, around = found.get(correlation, nothing)
            op = len(ops.name)
            collective = None
            category = _KERNEL
            if row.is_copy:
                category = _COPY
            else:
                if around is not None or args.collective is not None or computes.get(name) is None or calls:
                    collective = self._collective(name, args, calls.get(_key(args.external)), around)
                    if collective is None:
                        computes[name] = True
                if collective is None and phase is not None:
                    category = _OF_PHASE[phase]
            shape = dtype = group = None
            if collective is not None:
                columns.collectives[op] = collective
                group = self._pooled(collective.group or "comm")
                category = CATEGORIES.index(category_of_group_name(collective.group))
                dtype = dtype_of(collective.dtype)
                most = max(collective.elements_in, collective.elements_out)
                shape = self._pooled(f"[{most}]") if most >= 0 else None
            ops.name.append(name)
            ops.group.append(group)
            ops.start.append(row.start)
            ops.end.append(row.end)
            ops.line.append(row.number)
            ops.shape.append(shape)
            ops.dtype.append(dtype)
            ops.stated.append(category)
            columns.stream.append(_stream(args.stream, row.thread))
            columns.correlation.append(-1 if correlation is None else correlation)
            columns.operation.append(operation)
            size = _whole(args.bytes)
            columns.bytes.append(-1 if size is None or size < 0 else size)
            columns.grid.append(row.grid)
            columns.block.append(row.block)
            occupancy = _whole(args.occupancy)
            columns.occupancy.append(-1 if occupancy is None or not 0 <= occupancy <= 100 else occupancy)
        return self._recording(device, ops, columns, times)

    def _recording(
        self, device: int | None, ops: OpColumns, columns: DeviceColumns, times: Sequence[int]
    ) -> Recording:
        steps = self.steps
        begins = [start for start, _, _ in steps]
        step = array("q")
        ends = {number: end for _, end, number in steps}
        counts = dict.fromkeys(ends, 0)
        for op, time in enumerate(times):
            index = bisect_right(begins, time) - 1
            number = NO_STEP
            if index >= 0 and time < steps[index][1]:
                number = steps[index][2]
                ends[number] = max(ends[number], ops.end[op])
                counts[number] += 1
            step.append(number)
        who = self.file.distributedInfo or Distributed()
        rank, world = _whole(who.rank), _whole(who.world_size)
        stated = rank is not None
        if rank is None:
            said = _RANK.search(os.path.basename(self.path))
            rank = int(said[1]) if said else None
        groups = self._groups(who)
        found = [Step(number, start, ends[number], counts[number]) for start, _, number in steps]
        job = f"{world}/{who.backend}/{sorted({words for words, _ in groups.values()})}"
        return Recording(
            self.path, rank, world, device, ops, columns, step, tuple(found), groups, stated, job=job
        )

    # -- a host without a device -----------------------------------------------------

    def _host(self) -> Recording:
        """The outermost operations of each thread; collectives are its annotations."""
        rows: list[tuple[int, int, int, str, object, _Call | None]] = []
        for thread, ranges in self.threads.items():
            outermost = -math.inf
            for begin, minus_end, name, number in sorted(ranges):
                if begin < outermost or name.startswith("c10d::"):
                    continue
                outermost = -minus_end
                start = self._ns(number, begin)
                if -minus_end < begin:
                    self.negative += 1
                rows.append((start, max(start, self._ns(number, -minus_end)), number, name, thread, None))
        for call in self.annotated:
            times = (self._ns(call.number, call.start), self._ns(call.number, call.end))
            rows.append((*times, call.number, call.name, call.thread, call))
        rows.sort(key=lambda row: row[:3])
        ops, columns = OpColumns(), DeviceColumns(on_device=False)
        threads: dict[object, int] = {}
        within = {
            thread: sorted((self._ns(0, start), self._ns(0, end), phase) for start, end, phase in some)
            for thread, some in self.phases.items()
        }
        for start, end, number, name, thread, made in rows:
            around = [one for one in within.get(thread, ()) if one[0] <= start < one[1]]
            phase = max(around)[2] if around else phase_of(name)
            category = CATEGORIES.index(phase) if phase is not None else _KERNEL
            group = shape = None
            if made is not None:
                word = COLLECTIVE_ANNOTATION.match(name)
                operation = operation_word(word[1] if word else name)
                columns.collectives[len(ops.name)] = Collective(operation, elements_in=made.elements)
                group, category = "comm", CATEGORIES.index("comm")
                shape = self._pooled(f"[{made.elements}]") if made.elements >= 0 else None
            ops.name.append(name)
            ops.group.append(group)
            ops.start.append(start)
            ops.end.append(end)
            ops.line.append(number)
            ops.shape.append(shape)
            ops.dtype.append("torch.float32" if shape else None)
            ops.stated.append(category)
            columns.stream.append(threads.setdefault(thread, len(threads)))
            columns.correlation.append(-1)
            columns.operation.append(None)
            columns.bytes.append(-1)
            columns.grid.append(None)
            columns.block.append(None)
            columns.occupancy.append(-1)
        return self._recording(None, ops, columns, ops.start)

    # -- values ----------------------------------------------------------------------

    def _collective(self, name: str, args: Args, call: Args | None, around: str | None) -> Collective | None:
        """What a kernel communicates; None of one that computes."""
        said = args if args.collective is not None else call
        if said is None or said.collective is None:
            known = self.communicates.get(name)
            if known is None:
                known = self.communicates[name] = self.pattern.search(name) is not None
            if not known and around is None:
                return None
            return Collective(kernel_kind(name))
        who = self.file.distributedInfo or Distributed()
        group = _text(said.description) or _text(said.group)
        ranks = _ranks(said.ranks)
        key = _text(said.group)
        if ranks is None and key is not None:
            ranks = self._groups(who).get(key, ("", None))[1] or None
        operation = operation_word(str(said.collective))
        peer = -1
        if operation.startswith(("send", "recv")):
            me = _whole(who.rank)
            ends = (_whole(said.source), _whole(said.target))
            peer = next((one for one in ends if one is not None and one not in (me, -1)), -1)
        return Collective(
            operation, group, ranks, _whole(said.group_size) or len(ranks or ()), _whole(said.sequence),
            _text(said.communicator), _count(said.elements_in), _count(said.elements_out), _text(said.dtype),
            peer,
        )  # fmt: skip

    def _groups(self, who: Distributed) -> dict[str, tuple[str, tuple[int, ...]]]:
        found: dict[str, tuple[str, tuple[int, ...]]] = {}
        for one in who.pg_config if isinstance(who.pg_config, list) else ():
            if isinstance(one, dict):
                ranks = _ranks(one.get("ranks")) or ()
                name = _text(one.get("pg_name")) or str(len(found))
                found[name] = (_text(one.get("pg_desc")) or name, ranks)
        return found

    def _name(self, event: Event) -> str:
        name = event.name
        return self._pooled(name if isinstance(name, str) and name else "(no name)")

    def _pooled(self, text: str) -> str:
        return self.pool.setdefault(text, text)

    def _triple(self, raw: Raw) -> str | None:
        """A grid or block as words; None where it is none."""
        if not raw:
            return None
        key = bytes(raw)
        if key not in self.triples:
            self.triples[key] = _triple(key)
        return self.triples[key]

    def _say(self, severity: Any, code: str, message: str) -> None:
        self.found.append(Diagnostic(severity, code, message, self.path))


class _Inside:
    """Of each launch the innermost operation or annotation of its thread, its phase, and the collective
    around.
    """

    def __init__(self, threads: _Threads, started: dict[int, tuple[float, object]]) -> None:
        # Correlation -> (operation, phase, collective around it).
        self.found: dict[int | None, tuple[str | None, str | None, str | None]] = {}
        by_thread: dict[object, list[tuple[float, int]]] = {}
        for correlation, (start, thread) in started.items():
            by_thread.setdefault(thread, []).append((start, correlation))
        words: dict[str, tuple[str | None, str | None]] = {}
        for thread, launches in by_thread.items():
            spans = sorted(threads.get(thread, ()))
            launches.sort()
            # (end, name, phase, collective around) of what is open, the innermost last.
            open_: list[tuple[float, str, str | None, str | None]] = []
            at = 0
            for start, correlation in launches:
                while at < len(spans) and spans[at][0] <= start:
                    begin, minus_end, name, _ = spans[at]
                    at += 1
                    if -minus_end < start:
                        continue
                    while open_ and open_[-1][0] <= begin:
                        open_.pop()
                    if name not in words:
                        call = COLLECTIVE_ANNOTATION.match(name)
                        words[name] = (phase_of(name), call[1] if call else None)
                    phase, call_word = words[name]
                    before = open_[-1] if open_ else (0, "", None, None)
                    open_.append((-minus_end, name, phase or before[2], call_word or before[3]))
                while open_ and open_[-1][0] < start:
                    open_.pop()
                if open_:
                    _, name, phase, call_word = open_[-1]
                    self.found[correlation] = (name, phase, call_word)


def _key(value: Any) -> Any:
    """A value by which events are found; None of one that is no number and no text."""
    return value if isinstance(value, (int, str)) else None


def _elements(dims: Any) -> int:
    """Elements of the first of some shapes; -1 if not known."""
    while isinstance(dims, list) and dims and isinstance(dims[0], list):
        dims = dims[0]
    if not isinstance(dims, list) or not dims:
        return -1
    if not all(isinstance(one, int) and 0 <= one < 1 << 40 for one in dims):
        return -1
    elements = math.prod(dims)
    return elements if elements < 1 << 60 else -1


def _triple(raw: bytes) -> str | None:
    value = json.loads(raw)
    if not isinstance(value, list) or not 1 <= len(value) <= 3:
        return None
    if not all(isinstance(one, (int, float)) for one in value):
        return None
    return " x ".join(f"{one:g}" for one in value)


def _whole(value: Any) -> int | None:
    """A whole number, also one that is written as a text; None for all else."""
    if type(value) is int:
        return value if -_MOST_NUMBER < value < _MOST_NUMBER else None
    if value is None:
        return None
    if isinstance(value, str) and len(value) < 19 and value.lstrip("-").isdecimal() and value.isascii():
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53:
        return int(value)
    return None


def _count(value: Any) -> int:
    found = _whole(value)
    return -1 if found is None or found < 0 else found


def _stream(stated: Any, thread: Any) -> int:
    found = _whole(stated)
    if found is None:
        found = _whole(thread)
    return -1 if found is None else found


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _ranks(value: Any) -> tuple[int, ...] | None:
    """A list of ranks, or its text; None where it was shortened."""
    if isinstance(value, str):
        if len(value) > _MOST_RANKS_LISTED or not re.fullmatch(r"\[[\d,\s]*\]", value):
            return None
        value = json.loads(value) if value.strip("[] ") else []
    if not isinstance(value, list) or not value:
        return None
    found = [_whole(one) for one in value]
    if any(one is None or one < 0 for one in found):
        return None
    return tuple(one for one in found if one is not None)
