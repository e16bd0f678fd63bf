"""Reads a Kineto file into recordings: one a device, or one of the host where no device was recorded."""

from __future__ import annotations

import gc
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import compress, repeat
from operator import add, is_not, itemgetter, lt
from typing import Any

from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.kineto.allocations import NAME as ALLOCATION
from simcore.kineto.allocations import Allocations
from simcore.kineto.ambiguous_kernels import AmbiguousKernels
from simcore.kineto.chrome.rules import Rule
from simcore.kineto.damage import Damage
from simcore.kineto.events import (
    Args,
    DeviceEvents,
    DeviceRows,
    DistributedInfo,
    Event,
    Events,
    KinetoFile,
    SameArgs,
    batches,
    call_args_of,
    correlations_of,
    decode_file,
)
from simcore.kineto.gaps import (
    LEAST_CALL_NS,
    Call,
    HostActivity,
    HostCalls,
    Launch,
    add_calls,
    find_relevant_gaps,
    gap_columns,
)
from simcore.kineto.gaps import OVERHEAD as OVERHEAD_CALL
from simcore.kineto.gaps import PYTHON as PYTHON_CALL
from simcore.kineto.gaps import RUNTIME as RUNTIME_CALL
from simcore.kineto.groups import stated_groups
from simcore.kineto.host import (
    NOTHING,
    Flows,
    Launches,
    LaunchTimes,
    Ranges,
    Surroundings,
    Threads,
    annotations_of,
    find_surroundings,
    lane_columns,
    launchers_of,
    outermost,
    thread_words,
)
from simcore.kineto.libraries import COLLECTIVES, KernelNames, collective_in_name, kernel_kind
from simcore.kineto.recording import Recording, refuse_devices
from simcore.kineto.sizes import CALL, CallRange, CallSize, call_size, is_sized, sizes_around
from simcore.kineto.steps import StepMark, StepNames, steps_by_time, steps_of_device
from simcore.kineto.unknown_events import UnknownEvents, category_counts
from simcore.kineto.values import (
    MOST_US,
    Pool,
    Triples,
    are_uneven,
    count_of,
    key_of,
    ranks_of,
    text_of,
    whole,
)
from simcore.kineto.vocabulary import (
    ANNOTATIONS,
    BACKWARD_FLOW,
    COLLECTIVE_ANNOTATION,
    COPIES,
    HOST_OPS,
    KERNELS,
    LAUNCHES,
    MODULE,
    ON_DEVICES,
    OVERHEAD,
    PYTHON,
    category_of_group_name,
    dtype_of,
    is_copy,
    is_ignored,
    is_launch,
    operation_word,
    phase_of,
    reduced_dtype,
)
from simcore.measured.columns import (
    CollectiveInfo,
    DeviceColumns,
    HostColumns,
    HostLane,
    LaneColumns,
    OpColumns,
)
from simcore.measured.vocabulary import CATEGORIES, COMPUTE, COPY, KERNEL
from simcore.records import NamedTuple, replace
from simcore.units import plural
from simcore.workload.model import LARGEST

_COPY, _KERNEL, _COMM = (CATEGORIES.index(name) for name in (COPY, KERNEL, "comm"))
_OF_PHASE: dict[str | None, int] = {None: _KERNEL} | {name: CATEGORIES.index(name) for name in COMPUTE}
# Up to here a thousand times as much is exact in a float.
_EXACT_US = 1 << 43
_LEAST_CALL_US = LEAST_CALL_NS / 1000
# What the columns have of a collective: (itself, group, category, dtype, shape).
_CollectiveRow = tuple[CollectiveInfo, str, int, "str | None", "str | None"]


def read_file_events(
    path: str,
    data: bytes,
    names: str | None = None,
    on_progress: Callable[[float], None] | None = None,
    step_names: str | None = None,
    rules: Sequence[Rule] = (),
) -> tuple[list[Recording], list[Diagnostic]]:
    """Returns the recordings in a file's bytes, by device, and diagnostics.

    names: a regular expression of further kernels that communicate; step_names: one of annotations that are
    steps; rules: of `--trace-map`, for a Chrome trace in general. on_progress: gets the share of the events
    that is read, now and then. Raises InputError for what is no trace, or has nothing to show.
    """
    enabled = gc.isenabled()
    # A million small objects live until the end: collecting garbage among them takes a third of the time.
    gc.disable()
    try:
        file, damage = decode_file(path, data)
        if is_chrome_trace(data, file):
            from simcore.kineto.chrome.tables import read_chrome
            from simcore.kineto.other_tools import refuse_other

            if names is not None or step_names is not None:
                option = "--comm-names" if names is not None else "--step-names"
                raise UsageError(f"{option}: found a Chrome trace; --trace-map FILE says what its spans are")
            refuse_other(path, memoryview(file.traceEvents), has_host=False)
            del data
            return read_chrome(path, file, damage, rules, on_progress)
        reader = _Reader(path, file, damage, names, on_progress, step_names)
        try:
            recordings = reader.recordings()
        except InputError as error:
            # Where no events are left, the damage is the reason; not so in another tool's file.
            damage_notes = damage.diagnostics() if error.diagnostics[0].code == "no-events" else ()
            raise InputError(*error.diagnostics, *damage_notes) from None
        if damage.is_cut:
            for recording in recordings:
                recording.is_truncated = True
        return recordings, [*damage.diagnostics(), *reader.diagnostics]
    finally:
        if enabled:
            gc.enable()


def is_chrome_trace(data: bytes, file: KinetoFile) -> bool:
    """Returns whether a file is a Chrome trace in general, and no profiler's."""
    if file.distributedInfo is not None or file.baseTimeNanoseconds is not None:
        return False
    from simcore.kineto.other_tools import is_chrome
    from simcore.workload.formats import format_of
    from simcore.workload.source import HEAD_BYTES

    file_format = format_of(data[:HEAD_BYTES])
    return (file_format is not None and file_format.key == "chrome") or is_chrome(
        memoryview(file.traceEvents)
    )


class _Call(NamedTuple):
    """A collective's annotation of the host, us as written."""

    start: float
    end: float
    event_index: int
    """Position in the file."""
    name: str
    thread: object
    size: CallSize
    """What it states of the size of the collective."""


def _check_rank(path: str, who: DistributedInfo, damage: Damage) -> None:
    """Raises InputError for a rank, or a number of ranks, that no job has."""
    rank, world = whole(who.rank), whole(who.world_size)
    if who.world_size is not None and (world is None or world < 1):
        message = f"world_size: found {printable(str(who.world_size), 40)}, expected a number of ranks"
    elif who.rank is not None and (rank is None or not 0 <= rank < (world or LARGEST)):
        of = "" if world is None else f" of a world of {world}"
        message = f"rank: found {printable(str(who.rank), 40)}{of}, expected one of 0 to world_size - 1"
    else:
        return
    position = damage.locate("distributedInfo")
    raise InputError(Diagnostic("error", "bad-rank", f"distributedInfo: {message}", path, *position))


class _Reader:
    def __init__(
        self,
        path: str,
        file: KinetoFile,
        damage: Damage,
        names: str | None,
        on_progress: Callable[[float], None] | None,
        step_names: str | None,
    ) -> None:
        self.path = path
        self.damage = damage
        self.on_progress = on_progress
        self.file = file
        self.who = file.distributedInfo or DistributedInfo()
        self.groups = stated_groups(self.who.pg_config)
        self.diagnostics: list[Diagnostic] = []
        base = file.baseTimeNanoseconds or 0
        if not abs(base) <= LARGEST // 3:
            message = f"baseTimeNanoseconds: found {base}, expected at most {LARGEST // 3}"
            raise InputError(Diagnostic("error", "value-too-large", message, path))
        _check_rank(path, self.who, damage)
        self.base = int(base)
        self.all_ns = partial(_all_ns, self.base)
        self.pool = Pool()
        # The names of host operations, equal ones as one object; and those that may state the size of a
        # collective.
        self.plain_names: dict[object, str] = {}
        self.sized_names: set[str] = set()
        self.rows = DeviceRows()
        self.launches = Launches()
        self.launchers: dict[object, int] = {}
        # The calls that gaps name, with their threads.
        self.named_calls: list[tuple[object, Call]] = []
        # Calls of the host that may explain gaps of a device, besides operations and annotations.
        self.host_calls = HostCalls(self.launches.threads)
        self.flows = Flows()
        self.allocations = Allocations()
        # What the host did: operations; annotations and calls of modules.
        self.threads: Threads = {}
        self.ranges: Threads = {}
        # What the calls of collectives state, by the key that their kernels name.
        self.calls: dict[Any, Args] = {}
        self.call_sequences: dict[Any, Any] = {}
        self.same_args = SameArgs()
        self.steps: list[StepMark] = []
        # Annotations on the devices themselves, of steps alone.
        self.on_devices: dict[int, list[tuple[str, StepMark]]] = {}
        self.step_names = StepNames(step_names)
        self.annotated: list[_Call] = []
        # What operations and annotations state of the sizes of collectives, by thread.
        self.sized: dict[object, list[CallRange]] = {}
        self.unknown = UnknownEvents()
        takers = (
            ((*KERNELS, *COPIES), self._take_later), (LAUNCHES, self._take_later),
            (HOST_OPS, self._take_later), (ANNOTATIONS, self._take_annotation), (PYTHON, self._take_later),
            (OVERHEAD, self._take_overhead), (ON_DEVICES, self._take_on_device),
        )  # fmt: skip
        self.takers: dict[str | None, Callable[[int, Event], None]] = {
            cat: take for cats, take in takers for cat in cats
        }
        self.ignored: set[str | None] = set()
        self.names = KernelNames(names)
        self.unclear = AmbiguousKernels()
        self.triples = Triples()
        self.negative = 0
        self.untimed = 0
        self.impossible = 0

    # -- the parts of a file ---------------------------------------------------------

    def recordings(self) -> list[Recording]:
        """Returns the recordings, one a device, else one of the host."""
        self._read()
        unknown = self._take_devices()
        if not self.rows:
            from simcore.kineto.other_tools import refuse_other

            refuse_other(self.path, memoryview(self.file.traceEvents), bool(self.threads))
        if not self.rows and not self.threads:
            message = "found no event of a device or of the host's operations, expected a profiler's trace"
            message += f"; {unknown}" if unknown else ""
            raise InputError(Diagnostic("error", "no-events", message, self.path))
        self.steps = self.step_names.marks(self._step_ranges())
        if self.rows:
            devices = self._devices()
        else:
            devices = [self._host()]
            why = "no category of its events is known as a device's" if unknown else "no device was recorded"
            self._say("note", "no-device", f"{why}: the host's operations are shown as what it computes")
        if unknown:
            self._say("note", "unknown-category", unknown)
        self.diagnostics += self.unclear.make_diagnostics(self.path)
        if self.negative:
            message = f"{plural(self.negative, 'event')} with a negative duration, taken as 0"
            self._say("warning", "negative-duration", message)
        if self.untimed:
            self._say("warning", "no-time", f"{plural(self.untimed, 'event')} without a time, left out")
        if self.impossible:
            events = plural(self.impossible, "event")
            message = f"{events} with a time or a length of more than {MOST_US} us, left out"
            self._say("warning", "no-time", message)
        return devices

    def _read(self) -> None:
        """Takes each event to its columns. Most are operations of devices and of the host, and launches: they
        are taken a batch at a time.
        """
        first = 0
        ignored, taker_of, allocation = self.ignored, self.takers.get, ALLOCATION
        # Each kind has a method of its own that stands for it.
        host_op, launch, device_op, python = (
            self.takers[next(iter(cats))] for cats in (HOST_OPS, LAUNCHES, KERNELS, PYTHON)
        )
        for batch in batches(self.path, self.file, self.damage, self.on_progress):
            of_devices, launches, host_ops, calls = DeviceEvents(), Events(), Events(), Events()
            add_of_device, add_device_index = of_devices.events.append, of_devices.indices.append
            add_launch, add_launch_index = launches.events.append, launches.indices.append
            add_host_op, add_host_index = host_ops.events.append, host_ops.indices.append
            add_call, add_call_index = calls.events.append, calls.indices.append
            for event_index, event in enumerate(batch, first):
                if event.ph != "X":
                    if event.cat == BACKWARD_FLOW:
                        self._take_flow(event)
                    elif event.name == allocation:
                        self.allocations.take(event)
                    continue
                take = taker_of(event.cat)
                if take is None:
                    if event.cat in ignored:
                        continue
                    take = self._taker(event.cat)
                if event.ts is None:
                    self.untimed += 1
                elif take is host_op:
                    add_host_op(event)
                    add_host_index(event_index)
                elif take is device_op:
                    add_of_device(event)
                    add_device_index(event_index)
                elif take is launch:
                    add_launch(event)
                    add_launch_index(event_index)
                elif take is python:
                    add_call(event)
                    add_call_index(event_index)
                else:
                    take(event_index, event)
            first += len(batch)
            self._take_host_ops(host_ops)
            self._take_launches(launches)
            self._take_python(calls)
            self._add(self.rows, self._select_possible(of_devices))
            if self.unknown.batch:
                self._add(self.unknown.rows, self.unknown.keep(self._select_possible(self.unknown.batch)))
                self.unknown.batch = DeviceEvents()
        # They refer to this reader, which would hold the bytes of the file until the next collection.
        self.takers.clear()

    # -- events ----------------------------------------------------------------------

    def _taker(self, category: str | None) -> Callable[[int, Event], None]:
        """Returns the method that takes the events of a category that comes for the first time."""
        if is_ignored(category):
            self.ignored.add(category)
            return self._ignore
        launches = self.takers[next(iter(LAUNCHES))]
        self.takers[category] = take = launches if is_launch(category) else self.unknown.take
        return take

    def _ignore(self, event_index: int, event: Event) -> None:
        """Takes an event that is not displayed."""

    def _take_later(self, event_index: int, event: Event) -> None:
        """Does nothing: `_read` takes operations of devices and of the host and launches in batches."""

    def _take_devices(self) -> str:
        """Takes the events of unknown categories that devices ran; returns what of them is not displayed, ""
        if nothing.
        """
        unknown, rows = self.unknown, self.rows
        if not unknown.counts:
            return ""
        threads = {*self.threads, *self.ranges, *self.launches.threads}
        some = unknown.of_devices(
            threads,
            {thread[0] for thread in threads if isinstance(thread, tuple)},
            set(self.launches.correlation),
            set(zip(rows.device, rows.stream, strict=True)),
        )
        rows.take_some(unknown.rows, some)
        counts = unknown.categories_of(some)
        if counts:
            message = category_counts(
                counts, "taken as run by a device, by the streams or launches they name"
            )
            self._say("note", "unknown-category", message)
        return category_counts(unknown.counts - counts, "not shown")

    def _take_launches(self, some: Events) -> None:
        """Takes calls of the host that launch something."""
        launches, events = self.launches, some.events
        starts: list[Any] = [event.ts for event in events]
        lengths = [event.dur or 0 for event in events]
        thread = some.only_thread
        threads = (
            [*map(launches.threads.__getitem__, some.threads)]
            if thread is None
            else [launches.threads[thread]] * len(events)
        )
        self._take_calls(RUNTIME_CALL, some, lengths)
        correlations: Any = correlations_of(events)
        if None in correlations:
            flags = [correlation is not None for correlation in correlations]
            correlations, starts, lengths, threads = (
                [*compress(column, flags)] for column in (correlations, starts, lengths, threads)
            )
        launches.correlation.fromlist(correlations)
        launches.time.fromlist(starts)
        launches.over.fromlist([*map(add, starts, lengths)])
        launches.thread.fromlist(threads)

    def _take_host_ops(self, some: Events) -> None:
        """Takes operations of the host."""
        events = some.events
        if not events:
            return
        names: list[Any] = [*map(self.plain_names.get, [event.name for event in events])]
        if None in names:
            for row, event in enumerate(events):
                if names[row] is None:
                    names[row] = self._name(event)
                    self._take_named(some.indices[row], event)
        if some.only_thread is not None:
            self._ranges_of(self.threads, events[0]).extend(events, names, some.indices)
            return
        rows_by_thread: dict[object, list[int]] = {}
        for row, thread in enumerate(some.threads):
            rows_by_thread.setdefault(thread, []).append(row)
        for rows in rows_by_thread.values():
            own = [*map(events.__getitem__, rows)]
            self._ranges_of(self.threads, own[0]).extend(
                own, [*map(names.__getitem__, rows)], [*map(some.indices.__getitem__, rows)]
            )

    def _take_named(self, event_index: int, event: Event) -> None:
        """Takes from an operation of the host what its name says: it is new, or that of a collective's
        call.
        """
        name = event.name
        if type(name) is not str or not name:
            return
        if name not in self.sized_names:
            if not is_sized(name):
                self.plain_names[name] = self.pool[name]
                return
            self.sized_names.add(name)
        args = call_args_of(event)
        self._take_size(event_index, event, call_size(name, args))
        key = key_of(args.external)
        # Without a key it would be the call of all kernels that have none either.
        if name == CALL and key is not None:
            self.calls[key] = self.same_args.args_of(event)
            self.call_sequences.pop(key, None)
            if args.sequence is not None:
                self.call_sequences[key] = args.sequence

    def _take_size(self, event_index: int, event: Event, size: CallSize) -> None:
        start = event.ts or 0
        call_range = (start, -start - (event.dur or 0), event_index, size)
        self.sized.setdefault((event.pid, event.tid), []).append(call_range)

    def _take_annotation(self, event_index: int, event: Event) -> None:
        name = self._name(event)
        if COLLECTIVE_ANNOTATION.match(name):
            start = event.ts or 0
            end = start + max(event.dur or 0, 0)
            size = call_size(name, call_args_of(event))
            self._take_size(event_index, event, size)
            self.annotated.append(_Call(start, end, event_index, name, (event.pid, event.tid), size))
        self._take_range(self.ranges, event_index, event)

    def _take_python(self, some: Events) -> None:
        """Takes calls of Python: those of modules are ranges, too; other functions explain no launch."""
        if not some:
            return
        self._take_calls(PYTHON_CALL, some, [event.dur or 0 for event in some.events])
        names = [event.name for event in some.events]
        modules = {name for name in {*names} if type(name) is str and name.startswith(MODULE)}
        for row in compress(range(len(names)), map(modules.__contains__, names)) if modules else ():
            self._take_range(self.ranges, some.indices[row], some.events[row])

    def _take_overhead(self, event_index: int, event: Event) -> None:
        start, dur = event.ts, event.dur
        if start is not None and dur is not None and dur >= _LEAST_CALL_US:
            thread = event.pid, event.tid
            self.host_calls.add(OVERHEAD_CALL, thread, start, dur, event_index, self._name(event))

    def _take_calls(self, kind: int, some: Events, lengths: list[float]) -> None:
        """Takes the calls that are long enough to cover a part of a gap."""
        if max(lengths, default=0) < _LEAST_CALL_US:
            return
        flags = bytes(map(_LEAST_CALL_US.__le__, lengths))
        calls, long = self.host_calls, Events()
        long.events += compress(some.events, flags)
        calls.start.fromlist([event.ts for event in long.events])
        calls.length.extend(compress(lengths, flags))
        calls.kind += bytes((kind,)) * len(long)
        calls.thread.extend(map(self.launches.threads.__getitem__, long.threads))
        calls.event_index.extend(compress(some.indices, flags))
        calls.name += map(self.pool.__getitem__, [event.name for event in long.events])

    def _ranges_of(self, threads: Threads, event: Event) -> Ranges:
        """Returns the ranges of the thread of an event."""
        thread = event.pid, event.tid
        ranges = threads.get(thread)
        if ranges is None:
            threads[thread] = ranges = Ranges()
        return ranges

    def _take_range(self, threads: Threads, event_index: int, event: Event) -> None:
        ranges = self._ranges_of(threads, event)
        ranges.add(event.ts or 0, event.dur or 0, self._name(event), event_index)

    def _take_flow(self, event: Event) -> None:
        time, flow_id = event.ts, key_of(event.id)
        if time is not None and flow_id is not None:
            if event.ph == "s":
                self.flows.forward[flow_id] = (time, (event.pid, event.tid))
            elif event.ph == "f":
                self.flows.backward[(event.pid, event.tid), time] = flow_id

    def _take_on_device(self, event_index: int, event: Event) -> None:
        """Takes annotations on a device, of steps alone: all others are on the host, too."""
        name = event.name
        if type(name) is str and self.step_names.fit(name):
            device, start = whole(event.pid), event.ts or 0
            end = start + max(event.dur or 0, 0)
            if self._fits(start, end):
                mark = self._mark(event_index, start, end)
                self.on_devices.setdefault(-1 if device is None else device, []).append((name, mark))

    def _step_ranges(self) -> Iterator[tuple[str, StepMark]]:
        """Yields the annotations and operations of the host whose names are those of steps."""
        names = {name for name in self.pool if self.step_names.fit(name)}
        if names:
            for threads in (self.ranges, self.threads):
                for ranges in threads.values():
                    for row in compress(range(len(ranges)), map(names.__contains__, ranges.name)):
                        start, index = ranges.start[row], ranges.event_index[row]
                        end = start + ranges.length[row]
                        if self._fits(start, end):
                            self.negative += end < start
                            yield ranges.name[row], self._mark(index, start, max(end, start))

    def _fits(self, start: float, end: float) -> bool:
        """Returns whether an axis holds both times; counts those that it does not."""
        fits = -MOST_US < start < MOST_US and -MOST_US < end < MOST_US
        self.impossible += not fits
        return fits

    def _mark(self, event_index: int, start: float, end: float) -> StepMark:
        """Returns an annotation of a step, its number not known yet."""
        start_ns = self._ns(event_index, start)
        return StepMark(-1, start, end, start_ns, start_ns + self._ns(event_index, end - start, 0))

    def _ns(self, event_index: int, us: float, base: int | None = None) -> int:
        """Returns a time as ns, exact where it is written in whole us or is below 2^43 us."""
        if not -MOST_US < us < MOST_US:
            message = f"event {event_index}: found a time of {us} us, expected at most {MOST_US}"
            raise InputError(Diagnostic("error", "value-too-large", message, self.path))
        return _exact_ns(us) + (self.base if base is None else base)

    # -- a device --------------------------------------------------------------------

    def _select_possible(self, batch: DeviceEvents) -> DeviceEvents:
        """Returns the events with a stream and with times that fit, their arguments decoded."""
        batch.decode()
        streams = [args.stream for args in batch.args]
        if -1 in streams:
            batch = batch.select(stream != -1 for stream in streams)
        times, lengths = batch.times, batch.lengths
        if times and min(times) > -MOST_US and max(times) < MOST_US and max(lengths) < MOST_US:
            return batch
        fits = [
            -MOST_US < time < MOST_US and length < MOST_US
            for time, length in zip(times, lengths, strict=True)
        ]
        self.impossible += fits.count(False)
        return batch.select(fits)

    def _add(self, columns: DeviceRows, batch: DeviceEvents) -> None:
        if not batch:
            return
        base, times, lengths = self.base, batch.times, batch.lengths
        if min(times) > -_EXACT_US and max(times) < _EXACT_US:
            start = [round(us * 1000) + base for us in times]
        else:
            start = [*map(self._ns, batch.indices, times)]
        if min(lengths) < 0:
            self.negative += sum([us < 0 for us in lengths])
            lengths = [max(us, 0) for us in lengths]
        if max(lengths) < _EXACT_US:
            dur = [round(us * 1000) for us in lengths]
        else:
            dur = [*map(self._ns, batch.indices, lengths, repeat(0))]
        kinds = [event.cat for event in batch.events]
        copies = {kind for kind in {*kinds} if kind in COPIES or (kind not in KERNELS and is_copy(kind))}
        are_copies = map(copies.__contains__, kinds) if copies else bytes(len(batch))
        columns.take(batch, start, dur, are_copies, self.pool, self.triples, self.same_args)

    def _devices(self) -> list[Recording]:
        rows, self.rows = self.rows, DeviceRows()
        ids = set(rows.device)
        launches = self.launches
        launches.select(rows.correlation)
        self.launchers = launchers_of(launches.on)
        host = HostColumns(self._lane(), thread_words(self.launchers))
        launch_times = LaunchTimes(launches, self.launchers, self.all_ns)
        threads = self.threads, self.ranges
        around = find_surroundings(threads, launches.time, launches.on, self.flows) if launches else []
        # Behind those of all launches that of none.
        around.append(NOTHING)
        refuse_devices(self.path, len(ids))
        order = _order_of(rows)
        if len(ids) == 1:
            if order is not None:
                rows.sort(order)
            return [self._device(rows, rows.device[0], around, launch_times, host)]
        devices = {device_id: list[int]() for device_id in sorted(ids)}
        for row in range(len(rows)) if order is None else order:
            devices[rows.device[row]].append(row)
        return [
            self._device(rows.select(some), device_id, around, launch_times, host)
            for device_id, some in devices.items()
        ]

    def _lane(self) -> HostLane:
        """Returns what the host did. It holds neither this reader nor the bytes of the file."""
        launchers, named_calls, ns = self.launchers, self.named_calls, self.all_ns
        operations, annotations = [*map(self.threads.get, launchers)], annotations_of(self.ranges)

        def make() -> LaneColumns:
            columns = lane_columns(operations, annotations, ns)
            add_calls(columns, named_calls, launchers)
            return columns

        return HostLane(make)

    def _device(
        self,
        rows: DeviceRows,
        device: int,
        around: list[Surroundings],
        launch_times: LaunchTimes,
        host: HostColumns,
    ) -> Recording:
        """Returns the recording of a device, of its operations in order of start."""
        name, correlation, count = rows.name, rows.correlation, len(rows)
        none: list[str | None] = [None] * count
        operation, layer, collective, category = none, none, none, bytearray((_KERNEL,)) * count
        launch_rows = [-1] * count
        if self.launches:
            launch_rows = [*map(self.launches.row_of.get, correlation, repeat(-1))]
            surroundings = [*map(around.__getitem__, launch_rows)]
            operation, phase, collective, layer = (
                [*map(itemgetter(part), surroundings)] for part in range(len(NOTHING))
            )
            category = bytearray(map(_OF_PHASE.__getitem__, phase))
            del surroundings, phase
        ops = OpColumns(
            name=name, group=none, start=rows.start, end=rows.end, line=rows.event_index, shape=none,
            dtype=none, stated_category=category,
        )  # fmt: skip
        columns = DeviceColumns(
            stream=rows.stream, correlation=correlation, operation=operation, layer=layer, bytes=rows.bytes,
            grid=rows.grid, block=rows.block, occupancy=rows.occupancy,
            memory=self.allocations.columns_of(device, (self.threads, self.ranges), self.all_ns),
            host=launch_times.of_rows(host, launch_rows),
        )  # fmt: skip
        for op in compress(range(count), rows.is_copy):
            category[op] = _COPY
        self._add_collectives(rows, ops, columns, collective)
        return self._recording(device, ops, columns, launch_rows)

    def _add_collectives(
        self,
        rows: DeviceRows,
        ops: OpColumns,
        columns: DeviceColumns,
        annotated: list[str | None],
    ) -> None:
        """Adds what is stated of the operations that communicate.

        annotated: by operation the collective in whose annotation it was launched, None for most.
        """
        name, correlation = ops.name, columns.correlation
        communicates = {op_name: self.names.communicates(op_name) for op_name in set(name)}
        unclear = {
            op_name for op_name, is_communication in communicates.items()
            if not is_communication and collective_in_name(op_name) is not None
        }  # fmt: skip
        looked_at = {op_name for op_name, is_communication in communicates.items() if is_communication}
        looked_at |= unclear
        flags = bytearray(map(looked_at.__contains__, name)) if looked_at else bytearray(len(name))
        if annotated.count(None) < len(annotated):
            for op in compress(range(len(name)), map(is_not, annotated, repeat(None))):
                flags[op] = 1
        for row in rows.collective_args:
            flags[row] = 1
        for row in range(len(name)) if self.calls else ():
            flags[row] |= rows.external_of(row) in self.calls
        some = [*compress(range(len(name)), flags)]
        if not some:
            return
        group, shape, dtype = ops.group[:], ops.shape[:], ops.dtype[:]
        sizes: dict[int, CallSize] | None = None
        # What follows from the texts of a kernel, once for all that are alike.
        row_by_key: dict[tuple[object, ...], _CollectiveRow | None] = {}
        for op in some:
            if rows.is_copy[op]:
                continue
            args, sequence = rows.collective_args.get(op), rows.sequences.get(op)
            if args is None and self.calls:
                external = rows.external_of(op)
                args, sequence = self.calls.get(external), self.call_sequences.get(external)
            if args is None and not communicates[name[op]] and annotated[op] is None:
                if name[op] in unclear:
                    self.unclear.add(name[op])
                continue
            size = None
            if not _states_size(args):
                if sizes is None:
                    sizes = self._sizes(
                        {correlation[op] for op in some if communicates[name[op]]},
                        {correlation[op] for op in some if annotated[op] is not None},
                    )
                size = sizes.get(correlation[op])
            key = name[op], id(args), annotated[op], size
            if key not in row_by_key:
                row_by_key[key] = self._collective_row(self._collective(name[op], args, annotated[op], size))
            row_of_op = row_by_key[key]
            if row_of_op is None:
                continue
            collective, group[op], ops.stated_category[op], dtype[op], shape[op] = row_of_op
            if sequence is not None and args is not None and args.collective is not None:
                collective = replace(collective, sequence=whole(sequence))
            columns.collectives[op] = collective
        ops.group, ops.shape, ops.dtype = group, shape, dtype

    def _collective_row(self, collective: CollectiveInfo | None) -> _CollectiveRow | None:
        if collective is None:
            return None
        most = collective.elements
        return (
            collective,
            self.pool[collective.group or "comm"],
            CATEGORIES.index(category_of_group_name(collective.group)),
            dtype_of(collective.dtype),
            self.pool[f"[{most}]"] if most >= 0 else None,
        )

    def _recording(
        self,
        device: int | None,
        ops: OpColumns,
        columns: DeviceColumns,
        launch_rows: list[int],
    ) -> Recording:
        marks = self.steps
        if device is not None and marks:
            times = [*self.launches.time, None]
            launched = [*map(times.__getitem__, launch_rows)] if self.launches else ()
            step, steps = steps_of_device(marks, ops, launched)
        else:
            if device is not None:
                marks = self.step_names.marks(self.on_devices.get(device, ()), is_of_device=True)
            step, steps = steps_by_time(marks, ops)
        rank, world = whole(self.who.rank), whole(self.who.world_size)
        if device is not None:
            self._add_gaps(ops, columns, launch_rows, [(step.start, step.end) for step in steps])
        job = f"{world}/{self.who.backend}/{sorted({description for description, _ in self.groups.values()})}"
        return Recording(
            self.path,
            rank,
            world,
            device,
            ops,
            columns,
            step,
            steps,
            self.groups,
            job=job,
            process=self._process(),
        )

    def _add_gaps(
        self,
        ops: OpColumns,
        columns: DeviceColumns,
        launch_rows: list[int],
        windows: list[tuple[int, int]],
    ) -> None:
        """Adds why the device ran nothing, in these windows and in all that was recorded."""
        gaps = find_relevant_gaps(ops.start, ops.end, [(ops.start[0], max(ops.end)), *windows])
        launches = {}
        over = self.launches.over
        for op in (gap.op for gap in gaps):
            row = launch_rows[op]
            if row >= 0 and -MOST_US < over[row] < MOST_US:
                launches[op] = Launch(self._ns(0, over[row]), self.launches.thread_of(row))
        words = dict(zip(self.launchers, thread_words(self.launchers), strict=True))
        host = HostActivity(self.threads, self.ranges, self.host_calls, self.step_names.fit, self.all_ns)
        columns.gaps, named_calls = gap_columns(gaps, launches, host, words)
        self.named_calls += named_calls

    def _process(self) -> int | None:
        """Returns the process that launched, else that ran operations: that of most threads."""
        threads: Iterable[Any] = self.launchers or self.threads
        counts = Counter(process_id for pid, _ in threads if (process_id := whole(pid)) is not None)
        return counts.most_common(1)[0][0] if counts else None

    # -- a host without a device -----------------------------------------------------

    def _host(self) -> Recording:
        """Returns the outermost operations of each thread; collectives are its annotations."""
        rows: list[tuple[int, int, int, float, str, object, _Call | None]] = []
        for thread, ranges in self.threads.items():
            fits = [self._fits(*times) for times in zip(ranges.start, ranges.ends, strict=True)]
            some = ranges.select([*compress(range(len(ranges)), fits)]).sort()
            for row in outermost(some, "c10d::"):
                begin, length, event_index = some.start[row], some.length[row], some.event_index[row]
                self.negative += length < 0
                times = self._ns(event_index, begin), self._ns(event_index, begin + max(length, 0))
                rows.append((*times, event_index, begin, some.name[row], thread, None))
        for call in (call for call in self.annotated if self._fits(call.start, call.end)):
            times = (self._ns(call.event_index, call.start), self._ns(call.event_index, call.end))
            rows.append((*times, call.event_index, call.start, call.name, call.thread, call))
        rows.sort(key=lambda row: row[:3])
        inside = find_surroundings([self.ranges], [row[3] for row in rows], [row[5] for row in rows])
        ops, columns = OpColumns(), DeviceColumns(on_device=False)
        threads: dict[object, int] = {}
        for op, (start, end, event_index, _, name, thread, annotation) in enumerate(rows):
            operation, phase, _, layer = inside[op]
            phase = phase or phase_of(name)
            category = _OF_PHASE[phase]
            group = shape = dtype = None
            if annotation is not None:
                word = COLLECTIVE_ANNOTATION.match(name)
                kind = operation_word(word[1] if word else name)
                size = annotation.size
                columns.collectives[op] = CollectiveInfo(kind, elements_in=size.elements_in, dtype=size.dtype)
                group, category = "comm", _COMM
                shape = self.pool[f"[{size.elements_in}]"] if size.elements_in >= 0 else None
                dtype = dtype_of(size.dtype)
            ops.name.append(name)
            ops.group.append(group)
            ops.start.append(start)
            ops.end.append(end)
            ops.line.append(event_index)
            ops.shape.append(shape)
            ops.dtype.append(dtype)
            ops.stated_category.append(category)
            columns.stream.append(threads.setdefault(thread, len(threads)))
            columns.operation.append(None if operation == name else operation)
            columns.layer.append(layer)
        without = array("q", (-1,)) * len(rows)
        columns.correlation, columns.bytes = without, without[:]
        columns.occupancy = array("h", (-1,)) * len(rows)
        columns.grid, columns.block = [None] * len(rows), [None] * len(rows)
        return self._recording(None, ops, columns, [])

    # -- values ----------------------------------------------------------------------

    def _sizes(self, sure: set[int], annotated: set[int]) -> dict[int, CallSize]:
        """Returns what the host's calls state of communications, by correlation.

        sure: launches of kernels that surely communicate; annotated: launches in the annotation of a
        collective.
        """
        launches, row_of = self.launches, self.launches.row_of
        times = {
            correlation: (launches.time[row], launches.thread_of(row))
            for correlation in sure | annotated
            if (row := row_of.get(correlation)) is not None
        }
        return sizes_around(self.sized, times, sure)

    def _collective(
        self, name: str, args: Args | None, call: str | None, size: CallSize | None
    ) -> CollectiveInfo | None:
        """Returns what a kernel communicates, without the number of the call; None for one that computes.

        args: of its event or its call; call: the collective whose annotation is around its launch; size: what
        the calls around its launch state.
        """
        if args is None or args.collective is None:
            if not self.names.communicates(name) and call is None:
                return None
            return _collective_of_calls(name, size)
        group = self._text(args.description) or self._text(args.group)
        ranks = ranks_of(args.ranks)
        key = text_of(args.group)
        if ranks is None and key is not None:
            ranks = self.groups.get(key, ("", None))[1] or None
        operation = operation_word(str(args.collective))
        peer = -1
        if operation.endswith(("send", "recv")):
            target, source = count_of(args.target), count_of(args.source)
            peer, own = (source, target) if operation in ("recv", "irecv") else (target, source)
            if peer < 0 and own != whole(self.who.rank):
                peer = own
        elements = count_of(args.elements_in), count_of(args.elements_out)
        dtype = self._text(args.dtype)
        if size is not None and max(elements) < 0:
            elements = size.elements_in, size.elements_out
        if dtype_of(dtype) is None:
            dtype = (None if size is None else size.dtype) or reduced_dtype(name) or dtype
        uneven = are_uneven(args.splits_in) or are_uneven(args.splits_out)
        return CollectiveInfo(
            operation, group, ranks, whole(args.group_size) or len(ranks or ()), None,
            self._text(args.communicator), *elements, dtype, peer, uneven,
        )  # fmt: skip

    def _name(self, event: Event) -> str:
        return self.pool[event.name]

    def _text(self, value: Any) -> str | None:
        """Returns a text that is not empty, equal ones as one object; None for all else."""
        text = text_of(value)
        return None if text is None else self.pool[text]

    def _say(self, severity: Any, code: str, message: str) -> None:
        self.diagnostics.append(Diagnostic(severity, code, message, self.path))


def _exact_ns(us: float) -> int:
    whole_us = int(us)
    return whole_us * 1000 if whole_us == us else round(us * 1000)


def _all_ns(base: int, times: Sequence[float]) -> list[int]:
    """Returns times that are known to fit as ns. base: ns that are added to each."""
    if min(times, default=0) > -_EXACT_US and max(times, default=0) < _EXACT_US:
        return [round(us * 1000) + base for us in times]
    return [_exact_ns(us) + base for us in times]


def _order_of(rows: DeviceRows) -> list[int] | None:
    """Returns the rows by start, then by end; None where they are in that order."""
    start = rows.start
    if all(map(lt, start, start[1:])):
        return None
    order = sorted(range(len(rows)), key=rows.end.__getitem__)
    order.sort(key=start.__getitem__)
    return order


def _states_size(args: Args | None) -> bool:
    """Returns whether a collective states all that the calls around its launch may state."""
    return (
        args is not None
        and args.collective is not None
        and max(count_of(args.elements_in), count_of(args.elements_out)) >= 0
        and dtype_of(text_of(args.dtype)) is not None
    )


def _collective_of_calls(name: str, size: CallSize | None) -> CollectiveInfo:
    """Returns what a kernel without arguments communicates, by its name and the calls around its launch."""
    kind, dtype = kernel_kind(name), reduced_dtype(name)
    if size is None or not size.name:
        return CollectiveInfo(kind, dtype=dtype)
    if kind != size.name and kind in COLLECTIVES:
        # The collective is made of others: the bytes of all together are not those of each.
        return CollectiveInfo(kind, dtype=dtype)
    return CollectiveInfo(
        size.name, elements_in=size.elements_in, elements_out=size.elements_out, dtype=size.dtype or dtype
    )
