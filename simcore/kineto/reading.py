"""Reads a Kineto file into recordings: one a device, or one of the host where no device was recorded."""

from __future__ import annotations

import gc
import json
import math
import os
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

from simcore.diagnostics import Diagnostic, InputError
from msgspec import Raw

from simcore.kineto.events import Args, Distributed, Event, TraceFile, args_of, correlation_of, decode
from simcore.kineto.recording import NO_STEP, Recording, Step
from simcore.kineto.vocabulary import (
    ANNOTATIONS,
    COLLECTIVE_ANNOTATION,
    COMMUNICATION,
    COPIES,
    DEVICE,
    HOST_OPS,
    LAUNCHES,
    STEP,
    category_of_group_name,
    dtype_of,
    kernel_kind,
    operation_word,
    phase_of,
)
from simcore.measured.columns import Collective, DeviceColumns, OpColumns
from simcore.measured.vocabulary import CATEGORIES, COPY, KERNEL
from simcore.units import plural
from simcore.workload.model import LARGEST

_RANK = re.compile(r"(?:rank|worker)[-_]?(\d{1,7})(?!\d)", re.IGNORECASE)
_COPY, _KERNEL = CATEGORIES.index(COPY), CATEGORIES.index(KERNEL)
_MOST_RANKS_LISTED = 1 << 20


def read_file_events(
    path: str, data: bytes, names: str | None = None
) -> tuple[list[Recording], list[Diagnostic]]:
    """The recordings in a file's bytes, by device, and what was found. names: a regular expression of further
    kernels that communicate. Raises InputError for what is no trace, or has nothing to show.
    """
    enabled = gc.isenabled()
    # A million small objects that live until the end: looking for garbage among them takes a third of the time.
    gc.disable()
    try:
        file, found = decode(path, data)
        reader = _Reader(path, file, names)
        recordings = reader.recordings()
        if found:
            for one in recordings:
                one.cut = True
        return recordings, [*found, *reader.found]
    finally:
        if enabled:
            gc.enable()


# An event with its place in the file.
_Numbered = tuple[int, Event]
# (start, -end, name) of an operation or annotation of the host, us.
_Range = tuple[float, float, str]
# (start in us, thread, place in the file, event) of what launched something.
_Launch = tuple[float, object, int, Event]


class _Reader:
    def __init__(self, path: str, file: TraceFile, names: str | None) -> None:
        self.path = path
        self.file = file
        self.found: list[Diagnostic] = []
        self.base = file.baseTimeNanoseconds or 0
        self.pool: dict[str, str] = {}
        self.communicates: dict[str, bool] = {}
        self.pattern = re.compile(COMMUNICATION + (f"|(?:{names})" if names else ""))
        self.triples: dict[bytes, str | None] = {}
        self.negative = 0
        self.untimed = 0

    # -- the parts of a file ---------------------------------------------------------

    def recordings(self) -> list[Recording]:
        """One a device, else of the host."""
        device: list[_Numbered] = []
        launches: list[_Numbered] = []
        hosts: list[_Numbered] = []
        annotations: list[_Numbered] = []
        lists = {cat: into for cats, into in ((DEVICE, device), (LAUNCHES, launches), (HOST_OPS, hosts),
                                              (ANNOTATIONS, annotations)) for cat in cats}  # fmt: skip
        for number, event in enumerate(self.file.traceEvents):
            if event.cat in lists and event.ph == "X":
                lists[event.cat].append((number, event))
        self.file.traceEvents = []
        if not device and not hosts:
            message = "found no event of a device or of the host's operations, expected a profiler's trace"
            raise InputError(Diagnostic("error", "no-events", message, self.path))
        steps = self._steps(annotations)
        if device:
            # Where each launch of the host lies in, by thread, us as they are written.
            threads: dict[object, list[_Range]] = {}
            calls: dict[Any, Args] = {}
            for _, event in (*hosts, *annotations):
                start = event.ts
                if start is None:
                    continue
                name = event.name if type(event.name) is str else str(event.name)
                thread = (event.pid, event.tid)
                into = threads.get(thread)
                if into is None:
                    into = threads[thread] = []
                into.append((start, -start - (event.dur or 0), name))
                if name == "record_param_comms":
                    args = args_of(event)
                    calls[_key(args.external)] = args
            del hosts
            found = self._devices(device, launches, steps, threads, calls)
        else:
            found = [self._host(hosts, annotations, steps)]
            message = "no device was recorded: the host's operations are shown as what it computes"
            self._say("note", "no-device", message)
        if self.negative:
            message = f"{plural(self.negative, 'event')} with a negative duration, taken as 0"
            self._say("warning", "negative-duration", message)
        if self.untimed:
            self._say("warning", "no-time", f"{plural(self.untimed, 'event')} without a time, left out")
        return found

    def _times(self, number: int, event: Event) -> tuple[int, int]:
        """(start, end) of an event, ns of an absolute clock."""
        ts, dur = event.ts, event.dur
        if ts is None:
            self.untimed += 1
            return self.base, self.base
        if dur is None:
            dur = 0
        elif dur < 0:
            self.negative += 1
            dur = 0
        # A float of microseconds below 2^43 s still tells ns; whole ones are exact whatever their size.
        if not (math.isfinite(ts) and math.isfinite(dur) and abs(ts) < 1 << 60 and dur < 1 << 60):
            message = f"event {number}: found ts {ts} and dur {dur}, expected at most {LARGEST} ns"
            raise InputError(Diagnostic("error", "value-too-large", message, self.path))
        first = ts * 1000 if type(ts) is int else round(ts * 1000)
        start = self.base + first
        end = start + (dur * 1000 if type(dur) is int else round(dur * 1000))
        if abs(start) > LARGEST or abs(end) > LARGEST:
            message = f"event {number}: found ts {ts} and dur {dur}, expected at most {LARGEST} ns"
            raise InputError(Diagnostic("error", "value-too-large", message, self.path))
        return start, end

    def _steps(self, annotations: Iterable[_Numbered]) -> list[tuple[int, int, int]]:
        """(start, end, number) of the profiler's steps, in order of time."""
        found = []
        for number, event in annotations:
            step = STEP.match(event.name) if isinstance(event.name, str) else None
            if step is not None and event.ts is not None:
                found.append((*self._times(number, event), int(step[1])))
        return sorted(found)

    # -- a device --------------------------------------------------------------------

    def _devices(
        self,
        device: list[_Numbered],
        launches: list[_Numbered],
        steps: list[tuple[int, int, int]],
        threads: dict[object, list[_Range]],
        calls: dict[Any, Args],
    ) -> list[Recording]:
        rows = []
        for number, event in device:
            args = args_of(event)
            if event.ts is None or args.stream == -1:
                self.untimed += event.ts is None
                continue
            start, end = self._times(number, event)
            at = _whole(args.device)
            rows.append((start, end, number, event, args, _whole(event.pid) if at is None else at))
        rows.sort(key=lambda row: (row[0], row[1], row[2]))
        started: dict[int, _Launch] = {}
        wanted = {correlation for row in rows if (correlation := _whole(row[4].correlation)) is not None}
        for number, event in launches:
            correlation = correlation_of(event)
            if correlation in wanted and event.ts is not None:
                started[correlation] = (event.ts, (event.pid, event.tid), number, event)
        inside = _Inside(threads, started, self.pool)
        found = []
        devices = sorted({row[5] for row in rows}, key=lambda one: (one is None, one))
        for one in devices:
            found.append(
                self._device([row for row in rows if row[5] == one], one, started, inside, steps, calls)
            )
        return found

    def _device(
        self,
        rows: list[Any],
        device: int | None,
        started: dict[int, _Launch],
        inside: _Inside,
        steps: list[tuple[int, int, int]],
        calls: dict[Any, Args],
    ) -> Recording:
        ops, columns = OpColumns(), DeviceColumns()
        at: list[int | None] = []
        for start, end, number, event, args, _ in rows:
            correlation = _whole(args.correlation)
            launch = started.get(correlation) if correlation is not None else None
            at.append(None if launch is None else self._times(launch[2], launch[3])[0])
            operation, phase, around = inside.of(correlation)
            name = self._name(event)
            op = len(ops.name)
            collective = None
            category = _KERNEL
            if event.cat in COPIES:
                category = _COPY
            else:
                collective = self._collective(name, args, calls.get(_key(args.external)), around)
                if collective is None and phase is not None:
                    category = CATEGORIES.index(phase)
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
            ops.start.append(start)
            ops.end.append(end)
            ops.line.append(number)
            ops.shape.append(shape)
            ops.dtype.append(dtype)
            ops.stated.append(category)
            columns.stream.append(_stream(args.stream, event.tid))
            columns.correlation.append(-1 if correlation is None else correlation)
            columns.operation.append(operation)
            size = _whole(args.bytes)
            columns.bytes.append(-1 if size is None or not 0 <= size < 1 << 62 else size)
            columns.grid.append(self._triple(args.grid))
            columns.block.append(self._triple(args.block))
            occupancy = _whole(args.occupancy)
            columns.occupancy.append(-1 if occupancy is None or not 0 <= occupancy <= 100 else occupancy)
        # Those that nothing launched, as far as the file tells, belong to the step in which they start.
        times = [start if launch is None else launch for start, launch in zip(ops.start, at, strict=True)]
        return self._recording(device, ops, columns, times, steps)

    def _recording(
        self,
        device: int | None,
        ops: OpColumns,
        columns: DeviceColumns,
        times: Sequence[int],
        steps: list[tuple[int, int, int]],
    ) -> Recording:
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

    def _host(
        self,
        hosts: list[_Numbered],
        annotations: list[_Numbered],
        steps: list[tuple[int, int, int]],
    ) -> Recording:
        """The outermost operations of each thread; collectives are its annotations."""
        rows: list[tuple[int, int, int, str, Event, bool]] = []
        phases: dict[object, list[_Range]] = {}
        outermost: dict[object, int] = {}
        ordered = sorted(
            ((*self._times(number, event), number, event) for number, event in hosts if event.ts is not None),
            key=lambda row: (row[0], -row[1], row[2]),
        )
        for start, end, number, event in ordered:
            thread = (event.pid, event.tid)
            name = self._name(event)
            if start < outermost.get(thread, start) or name.startswith("c10d::"):
                continue
            outermost[thread] = end
            rows.append((start, end, number, name, event, False))
        for number, event in annotations:
            name = self._name(event)
            if event.ts is None:
                continue
            start, end = self._times(number, event)
            if COLLECTIVE_ANNOTATION.match(name):
                rows.append((start, end, number, name, event, True))
            elif (phase := phase_of(name)) is not None:
                phases.setdefault((event.pid, event.tid), []).append((start, end, phase))
        rows.sort(key=lambda row: row[:3])
        ops, columns = OpColumns(), DeviceColumns(on_device=False)
        threads: dict[object, int] = {}
        for start, end, number, name, event, is_call in rows:
            thread = (event.pid, event.tid)
            around = [one for one in phases.get(thread, ()) if one[0] <= start < one[1]]
            phase = max(around)[2] if around else phase_of(name)
            category = CATEGORIES.index(phase) if phase is not None else _KERNEL
            group = shape = None
            if is_call:
                call = _annotated(name, args_of(event))
                columns.collectives[len(ops.name)] = call
                group, category = "comm", CATEGORIES.index("comm")
                shape = self._pooled(f"[{call.elements_in}]") if call.elements_in >= 0 else None
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
        return self._recording(None, ops, columns, ops.start, steps)

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
            _text(said.communicator), _count(said.elements_in), _count(said.elements_out), _text(said.dtype), peer,
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
    """Of each launch the innermost operation or annotation of its thread, its phase, the collective around it."""

    def __init__(
        self,
        threads: dict[object, list[_Range]],
        started: dict[int, _Launch],
        pool: dict[str, str],
    ) -> None:
        self.found: dict[int, tuple[str, str | None, str | None]] = {}
        by_thread: dict[object, list[tuple[float, int]]] = {}
        for correlation, (start, thread, _, _) in started.items():
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
                    begin, minus_end, name = spans[at]
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
                    self.found[correlation] = (pool.setdefault(name, name), phase, call_word)

    def of(self, correlation: int | None) -> tuple[str | None, str | None, str | None]:
        """(operation, phase, collective) around a launch."""
        return (
            self.found.get(correlation, (None, None, None)) if correlation is not None else (None, None, None)
        )


def _key(value: Any) -> Any:
    """A value by which events are found; None of one that is no number and no text."""
    return value if isinstance(value, (int, str)) else None


def _annotated(name: str, args: Args) -> Collective:
    """The collective of an annotation of the host: its input's shape is its size."""
    word = COLLECTIVE_ANNOTATION.match(name)
    dims = args.dims
    while isinstance(dims, list) and dims and isinstance(dims[0], list):
        dims = dims[0]
    elements = -1
    if isinstance(dims, list) and dims and all(isinstance(one, int) and 0 <= one < 1 << 40 for one in dims):
        elements = math.prod(dims)
    operation = operation_word(word[1] if word else name)
    return Collective(operation, elements_in=elements if elements < 1 << 60 else -1)


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
        return value if abs(value) < 1 << 62 else None
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
