"""The events of a Kineto file, decoded: the fields that are used, those of devices as columns."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import compress
from math import isfinite
from operator import add
from typing import Annotated, Any

import msgspec

from simcore.diagnostics import Diagnostic, InputError, printable
from simcore.kineto.damage import Damage
from simcore.kineto.host import NO_LAUNCH
from simcore.kineto.values import (
    MOST_NUMBER,
    Pool,
    Triples,
    count_of,
    key_of,
    percent_of,
    stream_of,
    whole,
)

# Bytes of JSON that are decoded at once, and in which the end of an event is looked for: batches that fit
# into a processor's cache are read in two thirds of the time of 8 MiB.
_BATCH, _HEAD = 1 << 16, 1 << 14
_BETWEEN = re.compile(rb"\}\s*,\s*\{")
# A list without events.
_EMPTY_LIST_BYTES = 2
_ERROR_PATH = re.compile(r" - at `(.*)`$")
_EVENT = re.compile(r"\[(\d+)\]")
# The number that no call of a collective has.
NO_EXTERNAL = -(2**63)
_NUMBER_TYPES = {int, float, type(None)}


class Event(msgspec.Struct, gc=False):
    """One event as written."""

    ph: str = ""
    cat: str | None = None
    name: str | int | float | None = ""
    ts: int | float | None = None
    """Microseconds."""
    dur: int | float | None = None
    """Microseconds."""
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    id: Any = None
    args: msgspec.Raw = msgspec.Raw(b"")
    """Not decoded yet, as most are never used."""


class KernelArgs(msgspec.Struct, gc=False):
    """The arguments of an operation of a device that are used, in the order in which they are written.

    Any: they may be anything, as profilers differ.
    """

    external: Any = msgspec.field(default=None, name="External id")
    device: Any = None
    stream: Any = None
    correlation: Any = None
    bytes: Any = None
    grid: Any = None
    block: Any = None
    occupancy: Any = msgspec.field(default=None, name="est. achieved occupancy %")
    collective: Any = msgspec.field(default=None, name="Collective name")
    sequence: Any = msgspec.field(default=None, name="Seq")


_Whole = Annotated[int, msgspec.Meta(gt=-MOST_NUMBER, lt=MOST_NUMBER)]
_Sizes = tuple[int, int, int] | None


class _UsualKernelArgs(KernelArgs, gc=False, kw_only=True):
    """As PyTorch writes those of kernels, so that they need no further check."""

    external: _Whole | None = msgspec.field(default=None, name="External id")
    device: _Whole
    stream: _Whole
    correlation: _Whole
    grid: _Sizes = None
    block: _Sizes = None
    occupancy: int | float | None = msgspec.field(default=None, name="est. achieved occupancy %")


_StatedValue = int | str | None


class Args(msgspec.Struct, gc=False, frozen=True):
    """What a collective states, on its call or its kernel, of itself and of others like it, as PyTorch writes
    it; other types where the file has others.
    """

    collective: _StatedValue = msgspec.field(default=None, name="Collective name")
    elements_in: _StatedValue = msgspec.field(default=None, name="In msg nelems")
    elements_out: _StatedValue = msgspec.field(default=None, name="Out msg nelems")
    dtype: _StatedValue = None
    group_size: _StatedValue = msgspec.field(default=None, name="Group size")
    group: _StatedValue = msgspec.field(default=None, name="Process Group Name")
    description: _StatedValue = msgspec.field(default=None, name="Process Group Description")
    ranks: _StatedValue = msgspec.field(default=None, name="Process Group Ranks")
    communicator: _StatedValue = msgspec.field(default=None, name="Comms Id")
    source: _StatedValue = msgspec.field(default=None, name="Src Rank")
    target: _StatedValue = msgspec.field(default=None, name="Dst Rank")
    splits_in: _StatedValue = msgspec.field(default=None, name="In split size")
    splits_out: _StatedValue = msgspec.field(default=None, name="Out split size")


class CallArgs(msgspec.Struct, gc=False):
    """What the call of a collective states of itself alone."""

    external: Any = msgspec.field(default=None, name="External id")
    sequence: Any = msgspec.field(default=None, name="Seq")
    dims: Any = msgspec.field(default=None, name="Input Dims")
    types: Any = msgspec.field(default=None, name="Input type")


class MemoryArgs(msgspec.Struct, gc=False):
    """The arguments of an allocation or a release."""

    device_type: Any = msgspec.field(default=None, name="Device Type")
    device: Any = msgspec.field(default=None, name="Device Id")
    bytes: Any = msgspec.field(default=None, name="Bytes")
    address: Any = msgspec.field(default=None, name="Addr")
    allocated: Any = msgspec.field(default=None, name="Total Allocated")
    reserved: Any = msgspec.field(default=None, name="Total Reserved")


class Events:
    """Events of a kind, those of a batch. indices: their positions in the file."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.indices: list[int] = []

    def __len__(self) -> int:
        return len(self.events)

    @property
    def threads(self) -> Iterator[tuple[object, object]]:
        """The process and thread of each."""
        return zip([event.pid for event in self.events], [event.tid for event in self.events], strict=True)

    @property
    def only_thread(self) -> tuple[object, object] | None:
        """The process and thread of all, as in most batches; None where they differ."""
        events = self.events
        pids, tids = [event.pid for event in events], [event.tid for event in events]
        is_one = bool(events) and pids.count(pids[0]) == tids.count(tids[0]) == len(events)
        return (pids[0], tids[0]) if is_one else None


class DeviceEvents(Events):
    """Events of devices, a batch of them.

    args, times, lengths: their arguments and their times in us, once `decode` has read them. is_usual:
    whether all arguments are those that PyTorch writes, and need no further check.
    """

    def __init__(self) -> None:
        super().__init__()
        self.args: list[KernelArgs] = []
        self.times: list[float] = []
        self.lengths: list[float] = []
        self.is_usual = True

    def decode(self) -> None:
        """Reads arguments and times of all events. Raises nothing: what cannot be read is absent."""
        self.times = [event.ts or 0 for event in self.events]
        self.lengths = [event.dur or 0 for event in self.events]
        decode = _USUAL_KERNEL_ARGS.decode
        try:
            self.args = [decode(event.args) for event in self.events]
        except (ValueError, RecursionError):
            self.args, self.is_usual = [*map(kernel_args_of, self.events)], False

    def select(self, fits: Iterable[object]) -> DeviceEvents:
        """Returns some of them. fits: whether each is taken."""
        part, flags = DeviceEvents(), bytes(map(bool, fits))
        part.is_usual = self.is_usual
        for name, column in vars(self).items():
            if isinstance(column, list):
                setattr(part, name, [*compress(column, flags)])
        return part


class DeviceRows:
    """Operations of devices in the order of the file, as columns.

    start, end: ns; external: the key of the call of a collective, where it is a number, else NO_EXTERNAL, and
    external_texts where it is a text; collective_args: by row what the event itself states of one, without
    what is in `sequences`, the number of the call where one is stated.
    """

    def __init__(self) -> None:
        self.start, self.end, self.event_index = array("q"), array("q"), array("q")
        self.device, self.stream, self.correlation = array("q"), array("q"), array("q")
        self.bytes, self.occupancy, self.is_copy = array("q"), array("h"), bytearray()
        self.external = array("q")
        self.name: list[str] = []
        self.grid: list[str | None] = []
        self.block: list[str | None] = []
        self.external_texts: dict[int, str] = {}
        self.collective_args: dict[int, Args] = {}
        self.sequences: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self.name)

    def take(
        self, some: DeviceEvents, start: list[int], dur: list[int], is_copy: Iterable[int],
        names: Pool, triples: Triples, same: SameArgs,
    ) -> None:  # fmt: skip
        """Adds events, a batch at a time, while they are in the processor's cache.

        start, dur: ns; is_copy: 1 for copies; names, triples, same: those of all rows, each once.
        """  # fmt: skip
        first_row, events, args = len(self), some.events, some.args
        # From lists columns grow in half the time of `extend`.
        self.start.fromlist(start)
        self.end.fromlist([*map(add, start, dur)])
        self.event_index.fromlist(some.indices)
        devices, streams = [one.device for one in args], [one.stream for one in args]
        launches, externals = [one.correlation for one in args], [one.external for one in args]
        occupancies, sizes = [one.occupancy for one in args], [one.bytes for one in args]
        grids, blocks = [one.grid for one in args], [one.block for one in args]
        if some.is_usual:
            self.grid += map(triples.__getitem__, grids)
            self.block += map(triples.__getitem__, blocks)
        else:
            devices = [*map(_device, devices, events)]
            streams = [stream_of(stream, event.tid) for stream, event in zip(streams, events, strict=True)]
            launches = [*map(_correlation, launches)]
            self.grid += triples.words_of(grids)
            self.block += triples.words_of(blocks)
        self.device.fromlist(devices)
        self.stream.fromlist(streams)
        self.correlation.fromlist(launches)
        # Only copies have a size.
        missing = sizes.count(None) == len(sizes)
        self.bytes.extend(array("q", (-1,)) * len(sizes) if missing else map(_bytes, sizes))
        if some.is_usual or {*map(type, occupancies)} <= _NUMBER_TYPES:
            # A device has few of them.
            percents = {occupancy: percent_of(occupancy) for occupancy in {*occupancies}}
            self.occupancy.extend(map(percents.__getitem__, occupancies))
        else:
            self.occupancy.extend(map(percent_of, occupancies))
        self.is_copy.extend(is_copy)
        self.name += map(names.__getitem__, [event.name for event in events])
        if some.is_usual and None not in externals:
            self.external.fromlist(externals)
        else:
            self._take_externals(externals, first_row)
        collectives = [one.collective for one in args]
        if collectives.count(None) < len(collectives):
            for index, collective in enumerate(collectives):
                if collective is not None:
                    self.collective_args[first_row + index] = same.args_of(events[index])
                    if args[index].sequence is not None:
                        self.sequences[first_row + index] = args[index].sequence

    def _take_externals(self, externals: list[Any], first_row: int) -> None:
        for row, key in enumerate(map(key_of, externals), first_row):
            if isinstance(key, str):
                self.external_texts[row] = key
            fits = isinstance(key, int) and -MOST_NUMBER < key < MOST_NUMBER
            self.external.append(int(key) if fits else NO_EXTERNAL)

    def external_of(self, row: int) -> Any:
        """Returns the key of the call of a collective of a row; None without one."""
        key = self.external[row]
        return self.external_texts.get(row) if key == NO_EXTERNAL else key

    def take_some(self, rows: DeviceRows, some: list[int]) -> None:
        """Adds some rows of others."""
        first_row = len(self)
        for name, column in vars(rows).items():
            own = getattr(self, name)
            if isinstance(column, dict):
                own.update((at, column[row]) for at, row in enumerate(some, first_row) if row in column)
            else:
                own.extend([column[row] for row in some])

    def select(self, some: list[int]) -> DeviceRows:
        """Returns some rows."""
        selected = DeviceRows()
        selected.take_some(self, some)
        return selected

    def sort(self, order: list[int]) -> None:
        """Brings all rows into an order, one column after another: two of each take twice the memory."""
        for name, column in vars(self).items():
            if isinstance(column, dict):
                setattr(self, name, {at: column[row] for at, row in enumerate(order) if row in column})
            else:
                items = map(column.__getitem__, order)
                setattr(
                    self,
                    name,
                    array(column.typecode, items) if isinstance(column, array) else type(column)(items),
                )


def _device(value: Any, event: Event) -> int:
    device = whole(value)
    if device is None:
        device = whole(event.pid)
    return -1 if device is None else device


def _correlation(value: Any) -> int:
    correlation = whole(value)
    return NO_LAUNCH if correlation is None else correlation


def _bytes(value: Any) -> int:
    return -1 if value is None else count_of(value)


class DistributedInfo(msgspec.Struct):
    """The writer of the file, and the ranks it was among."""

    backend: Any = None
    rank: Any = None
    world_size: Any = None
    pg_config: Any = None


class KinetoFile(msgspec.Struct):
    """The top level of a file, its events not decoded yet."""

    traceEvents: msgspec.Raw
    distributedInfo: DistributedInfo | None = None
    baseTimeNanoseconds: int | float | None = None
    otherData: Any = None


class _Correlated(msgspec.Struct, gc=False):
    correlation: Any = None


class _UsualCorrelated(msgspec.Struct, gc=False):
    correlation: _Whole


_FILE = msgspec.json.Decoder(KinetoFile)
_RAW = msgspec.json.Decoder(msgspec.Raw)
_LIST = msgspec.json.Decoder(list[Event])
# The decoder of files whose numbers are written as text.
_FILE_OF_TEXTS = msgspec.json.Decoder(KinetoFile, strict=False)
_RAWS = msgspec.json.Decoder(list[msgspec.Raw])
_ONE, _ONE_OF_TEXTS = msgspec.json.Decoder(Event), msgspec.json.Decoder(Event, strict=False)
_LIST_OF_TEXTS = msgspec.json.Decoder(list[Event], strict=False)
_KERNEL_ARGS = msgspec.json.Decoder(KernelArgs)
_USUAL_KERNEL_ARGS = msgspec.json.Decoder(_UsualKernelArgs)
_ARGS, _CALL_ARGS = msgspec.json.Decoder(Args), msgspec.json.Decoder(CallArgs)
_CORRELATED = msgspec.json.Decoder(_Correlated)
_USUAL_CORRELATED = msgspec.json.Decoder(list[_UsualCorrelated])


def decode_file(path: str, data: bytes) -> tuple[KinetoFile, Damage]:
    """Returns the file's top level, and its damage. A truncated file has the events before its end. Raises
    InputError, naming the byte or the field, for what is no trace.
    """
    damage = Damage(path, data)
    try:
        try:
            return _decode_top_level(data), damage
        except msgspec.ValidationError as error:
            return _with_texts(path, data, damage, error), damage
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return _decode_repaired(path, data, damage, error), damage
    except RecursionError:
        raise _too_deep(path, data) from None


def _decode_top_level(data: bytes) -> KinetoFile:
    is_list = data[:64].lstrip()[:1] == b"["
    return KinetoFile(_RAW.decode(data)) if is_list else _FILE.decode(data)


def _with_texts(path: str, data: bytes, damage: Damage, refused: Exception) -> KinetoFile:
    """Returns the top level of a file whose numbers are written as text, or that is several objects."""
    try:
        return _FILE_OF_TEXTS.decode(data)
    except msgspec.ValidationError as error:
        if "field `traceEvents`" not in str(error):
            raise _refusal(path, refused) from None
        return _decode_repaired(path, data, damage, refused)
    except ValueError as error:
        return _decode_repaired(path, data, damage, error)


def _decode_repaired(path: str, data: bytes, damage: Damage, refused: Exception) -> KinetoFile:
    """Returns the top level of a file that is no JSON, as far as it can be read."""
    from simcore.kineto.repairing import repair_events

    repaired = repair_events(data, damage)
    if repaired is None and "truncated" not in str(refused):
        raise _refusal(path, refused)
    if repaired is None or (damage.is_cut and len(repaired.events) == _EMPTY_LIST_BYTES):
        message = f"the file ends at byte {len(data)}, before its first event is whole"
        raise InputError(Diagnostic("error", "cut-file", message, path))
    try:
        metadata = _FILE_OF_TEXTS.decode(repaired.metadata)
    except msgspec.ValidationError as error:
        raise _refusal(path, error) from None
    return KinetoFile(msgspec.Raw(repaired.events), metadata.distributedInfo, metadata.baseTimeNanoseconds)


def batches(
    path: str, file: KinetoFile, damage: Damage, on_progress: Callable[[float], None] | None = None
) -> Iterator[list[Event]]:
    """Yields the events in their order, a batch at a time, so that few are in memory at once.

    What is damaged is added to `damage`. on_progress: gets the share of the bytes that is read.

    The array is split where one object seems to end and the next begin. The bytes between two splits are read
    as an array: they are one only if the split was between events, since what is before it was. Raises
    InputError for an event that is none.
    """
    view = memoryview(file.traceEvents)
    text = bytes(view) if len(view) <= _BATCH else None
    if text is not None:
        yield _events(path, text, damage)
        return
    # The byte after the bracket that opens the array.
    at, first_event = 1, 0
    while at < len(view):
        batch_bytes = _BATCH
        events: list[Event] | None = None
        while events is None:
            end, next_start = _find_boundary(view, at + batch_bytes)
            try:
                text = b"".join((b"[", view[at:end], b"]"))
                events = _decode_events(text, damage, first_event, view, at - 1)
            except msgspec.ValidationError as error:
                raise _refusal(path, error, first_event) from None
            except RecursionError:
                raise _too_deep(path, bytes(view)) from None
            except msgspec.DecodeError as error:
                if next_start == len(view):
                    raise _refusal(path, error, first_event) from None
                # The batch doubles each time: however events nest, bytes are decoded a few times at most.
                batch_bytes = 2 * (end - at)
        first_event += len(events)
        yield events
        at = next_start
        if on_progress is not None:
            on_progress(at / len(view))


def _decode_events(text: bytes, damage: Damage, first_event: int, view: memoryview, at: int) -> list[Event]:
    """Returns an array of events; numbers may be written as text, and bytes that are not UTF-8 become
    replacement characters. first_event, at: how many events and bytes of the list `view` come before.
    """
    try:
        return _LIST.decode(text)
    except UnicodeDecodeError:
        pass
    except msgspec.ValidationError as error:
        try:
            events = _with_numbers(_LIST_OF_TEXTS.decode(text))
        except msgspec.ValidationError:
            return _decode_singly(text, damage, first_event, damage.find_offset(view) + at, error)
        except UnicodeDecodeError:
            pass
        else:
            match = _EVENT.search(str(error))
            damage.add_texts(first_event + (int(match[1]) if match else 0))
            return events
    events = _decode_events(text.decode("utf-8", "replace").encode(), damage, first_event, view, at)
    damage.add_bytes(text, damage.find_offset(view) + at)
    return events


def _decode_singly(
    text: bytes, damage: Damage, first_event: int, first_byte: int, error: Exception
) -> list[Event]:
    """Returns an array of events, those that are none as empty ones, so that the others keep their indices.
    first_byte: the byte at which it begins. Raises `error` for what is no array.
    """
    try:
        parts = _RAWS.decode(text)
    except msgspec.ValidationError:
        raise error from None
    events, at = list[Event](), 0
    for index, part in enumerate(map(bytes, parts), first_event):
        at = text.index(part, at)
        event = Event()
        try:
            event = _ONE.decode(part)
        except (msgspec.ValidationError, UnicodeDecodeError):
            try:
                event = _ONE_OF_TEXTS.decode(part)
                damage.add_texts(index)
            except (msgspec.ValidationError, UnicodeDecodeError):
                damage.add("lost", first_byte + at)
        events.append(event)
        at += len(part)
    return _with_numbers(events)


def _with_numbers(events: list[Event]) -> list[Event]:
    """Returns the events with processes and threads that are texts as numbers, and None for what is no
    time.
    """
    for event in events:
        for name in ("pid", "tid"):
            value = getattr(event, name)
            if type(value) is str and (integer := whole(value)) is not None:
                setattr(event, name, integer)
        for name in ("ts", "dur"):
            value = getattr(event, name)
            if value is not None and not isfinite(value):
                setattr(event, name, None)
    return events


def _find_boundary(view: memoryview, at: int) -> tuple[int, int]:
    """Returns (end of the event, start of the next) at the first position from `at` on that looks like
    one.
    """
    while at < len(view):
        chunk = bytes(view[at : at + _HEAD])
        between = _BETWEEN.search(chunk)
        if between is not None:
            return at + between.start() + 1, at + between.end() - 1
        at += _HEAD - 1024
    return len(view) - 1, len(view)


def _events(path: str, text: bytes, damage: Damage) -> list[Event]:
    try:
        return _decode_events(text, damage, 0, memoryview(text), 0)
    except RecursionError:
        raise _too_deep(path, text) from None
    except msgspec.DecodeError as error:
        raise _refusal(path, error) from None


def kernel_args_of(event: Event) -> KernelArgs:
    """Returns the arguments of an operation of a device; none where they are no object. Raises nothing: what
    cannot be read is absent.
    """
    try:
        return _KERNEL_ARGS.decode(event.args) if event.args else KernelArgs()
    except UnicodeDecodeError:
        return _KERNEL_ARGS.decode(_utf8(event.args))
    except (ValueError, RecursionError):
        return KernelArgs()


class SameArgs(dict[Args, Args]):
    """What collectives state, equal ones as one object: a hundred thousand calls are of a few kinds."""

    def args_of(self, event: Event) -> Args:
        """Returns what a collective states; nothing where its arguments are no object. Raises nothing."""
        try:
            args = _ARGS.decode(event.args) if event.args else Args()
        except UnicodeDecodeError:
            return _unusual_args(_utf8(event.args))
        except (ValueError, RecursionError):
            return _unusual_args(event.args)
        return self.setdefault(args, args)


def _unusual_args(raw: bytes | msgspec.Raw) -> Args:
    """Returns arguments of any types, which may be equal to others that mean something else."""
    try:
        return Args(*msgspec.structs.astuple(_any_args().decode(raw)))
    except (ValueError, RecursionError):
        return Args()


@cache
def _any_args() -> msgspec.json.Decoder[Any]:
    names = zip(Args.__struct_fields__, Args.__struct_encode_fields__, strict=True)
    fields = [(name, Any, msgspec.field(default=None, name=key)) for name, key in names]
    return msgspec.json.Decoder(msgspec.defstruct("AnyArgs", fields, gc=False))


def call_args_of(event: Event) -> CallArgs:
    """Returns the arguments of a collective's call; none where they are no object. Raises nothing."""
    try:
        return _CALL_ARGS.decode(event.args) if event.args else CallArgs()
    except UnicodeDecodeError:
        return _CALL_ARGS.decode(_utf8(event.args))
    except (ValueError, RecursionError):
        return CallArgs()


def _utf8(raw: msgspec.Raw) -> bytes:
    """Returns JSON that was read, with replacement characters for its bytes that are not UTF-8."""
    return bytes(raw).decode("utf-8", "replace").encode()


def correlations_of(events: Sequence[Event]) -> Sequence[int | None]:
    """Returns the correlations of launches; None for one that has none."""
    try:
        # All at once: they are read in three fifths of the time of one by one.
        text = b"".join((b"[", b",".join([event.args for event in events]), b"]"))
        correlations = [one.correlation for one in _USUAL_CORRELATED.decode(text)]
    except (ValueError, RecursionError):
        correlations = []
    return correlations if len(correlations) == len(events) else [*map(correlation_of, events)]


def correlation_of(event: Event) -> int | None:
    """Returns the correlation of a launch; None where there is none."""
    try:
        return whole(_CORRELATED.decode(event.args).correlation) if event.args else None
    except (ValueError, RecursionError):
        return None


def _too_deep(path: str, data: bytes) -> InputError:
    from simcore.kineto.brackets import find_too_deep_byte

    byte = find_too_deep_byte(data)
    where = "" if byte is None else f", at byte {byte}"
    message = f"found lists or objects inside each other deeper than any trace has them{where}"
    return InputError(Diagnostic("error", "bad-trace", message, path))


def _refusal(path: str, error: Exception, first_event: int = 0) -> InputError:
    """Returns msgspec's error with its `$[12].ts` as words. first_event: how many events come before those
    that it counts.
    """
    text = str(error)
    path_match = _ERROR_PATH.search(text)
    where = "the file"
    if path_match is not None:
        event = _EVENT.search(path_match[1])
        field = path_match[1].rpartition(".")[2]
        where = path_match[1].removeprefix("$.")
        if event is not None:
            where = f"event {int(event[1]) + first_event}" + (f", {field}" if field != path_match[1] else "")
        text = text[: path_match.start()]
    if not text.startswith("JSON"):
        text = text[:1].lower() + text[1:]
    message = f"{where}: {printable(text, 200)}"
    return InputError(Diagnostic("error", "bad-trace", message, path))
