"""The events of a Kineto file, decoded: the fields that count, those of devices as columns."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from simcore.diagnostics import Diagnostic, InputError, printable
from simcore.kineto.values import MOST_NUMBER, count_of, key_of, percent_of, stream_of, whole

# A cut file is whole up to one of its last closing braces: an event or what lies in one.
_MOST_TRIES = 12
# Bytes of JSON that are decoded at once, and in which the end of an event is looked for: what fits into a
# processor's cache is read in three quarters of the time of 8 MiB.
_BATCH, _HEAD = 1 << 18, 1 << 14
_BETWEEN = re.compile(rb"\}\s*,\s*\{")
# Traces have up to a dozen inside each other; msgspec reads as many as Python calls itself, a thousand.
_DEEP = 500
_BRACKET = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.S)
_PLACE = re.compile(r" - at `(.*)`$")
# Of a kernel without a launch.
NO_LAUNCH = -1


class Event(msgspec.Struct, gc=False):
    """One event as written. ts, dur: microseconds. args: not decoded yet, most are never looked at."""

    ph: str = ""
    cat: str | None = None
    name: str | int | float | None = ""
    ts: int | float | None = None
    dur: int | float | None = None
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    id: Any = None
    args: msgspec.Raw = msgspec.Raw(b"")


class KernelArgs(msgspec.Struct, gc=False):
    """What is looked at of the arguments of an operation of a device, in the order in which they are written.

    Those that may be a number or a text are Any.
    """

    external: Any = msgspec.field(default=None, name="External id")
    device: Any = None
    stream: Any = None
    correlation: Any = None
    bytes: Any = None
    grid: msgspec.Raw = msgspec.Raw(b"")
    block: msgspec.Raw = msgspec.Raw(b"")
    occupancy: Any = msgspec.field(default=None, name="est. achieved occupancy %")
    collective: Any = msgspec.field(default=None, name="Collective name")


class Args(msgspec.Struct, gc=False):
    """What is looked at of the arguments of a collective, of its call or its kernel."""

    external: Any = msgspec.field(default=None, name="External id")
    collective: Any = msgspec.field(default=None, name="Collective name")
    elements_in: Any = msgspec.field(default=None, name="In msg nelems")
    elements_out: Any = msgspec.field(default=None, name="Out msg nelems")
    dtype: Any = None
    group_size: Any = msgspec.field(default=None, name="Group size")
    group: Any = msgspec.field(default=None, name="Process Group Name")
    description: Any = msgspec.field(default=None, name="Process Group Description")
    ranks: Any = msgspec.field(default=None, name="Process Group Ranks")
    sequence: Any = msgspec.field(default=None, name="Seq")
    communicator: Any = msgspec.field(default=None, name="Comms Id")
    source: Any = msgspec.field(default=None, name="Src Rank")
    target: Any = msgspec.field(default=None, name="Dst Rank")
    dims: Any = msgspec.field(default=None, name="Input Dims")
    types: Any = msgspec.field(default=None, name="Input type")
    splits_in: Any = msgspec.field(default=None, name="In split size")
    splits_out: Any = msgspec.field(default=None, name="Out split size")


class DeviceRow(msgspec.Struct, gc=False):
    """An operation of a device, us as written. number: place in the file; said: what the event itself says of
    a collective.
    """

    ts: float
    dur: float
    number: int
    pid: Any
    tid: Any
    name: str
    is_copy: bool
    args: KernelArgs
    grid: str | None
    block: str | None
    said: Args | None


class DeviceRows:
    """Operations of devices in the order of the file, columns. start, end: ns; external: by which the call of
    a collective is found; said: by row what the event itself says of one.
    """

    def __init__(self) -> None:
        self.start, self.end, self.number = array("q"), array("q"), array("q")
        self.device, self.stream, self.correlation = array("q"), array("q"), array("q")
        self.bytes, self.occupancy, self.is_copy = array("q"), array("h"), bytearray()
        self.name: list[str] = []
        self.grid: list[str | None] = []
        self.block: list[str | None] = []
        self.external: list[Any] = []
        self.said: dict[int, Args] = {}

    def __len__(self) -> int:
        return len(self.name)

    def take(self, rows: list[DeviceRow], start: list[int], dur: list[int]) -> None:
        """Adds rows, ns of each. A batch at a time, while they are in the processor's cache."""
        done = len(self)
        self.start.extend(start)
        self.end.extend([begin + ns for begin, ns in zip(start, dur, strict=True)])
        self.number.extend([row.number for row in rows])
        self.device.extend([_device(row) for row in rows])
        self.stream.extend([stream_of(row.args.stream, row.tid) for row in rows])
        self.correlation.extend([_correlation(row.args.correlation) for row in rows])
        self.bytes.extend([-1 if row.args.bytes is None else count_of(row.args.bytes) for row in rows])
        self.occupancy.extend([percent_of(row.args.occupancy) for row in rows])
        self.is_copy.extend([row.is_copy for row in rows])
        self.name += [row.name for row in rows]
        self.grid += [row.grid for row in rows]
        self.block += [row.block for row in rows]
        self.external += [key_of(row.args.external) for row in rows]
        for index, row in enumerate(rows, done):
            if row.said is not None:
                self.said[index] = row.said

    def take_some(self, rows: DeviceRows, some: list[int]) -> None:
        """Adds some rows of others."""
        done = len(self)
        for name, column in vars(rows).items():
            if name != "said":
                getattr(self, name).extend([column[row] for row in some])
        self.said |= {done + at: rows.said[row] for at, row in enumerate(some) if row in rows.said}


def _device(row: DeviceRow) -> int:
    stated = row.args.device
    if type(stated) is int and 0 <= stated < MOST_NUMBER:
        return stated
    number = whole(stated)
    if number is None:
        number = whole(row.pid)
    return -1 if number is None else number


def _correlation(stated: Any) -> int:
    if type(stated) is int and 0 <= stated < MOST_NUMBER:
        return stated
    number = whole(stated)
    return NO_LAUNCH if number is None else number


class Distributed(msgspec.Struct):
    """Who wrote the file, among whom."""

    backend: Any = None
    rank: Any = None
    world_size: Any = None
    pg_config: Any = None


class KinetoFile(msgspec.Struct):
    """The top level of a file, its events not decoded yet."""

    traceEvents: msgspec.Raw
    distributedInfo: Distributed | None = None
    baseTimeNanoseconds: int | None = None


class _Correlated(msgspec.Struct, gc=False):
    correlation: Any = None


_FILE = msgspec.json.Decoder(KinetoFile)
_RAW = msgspec.json.Decoder(msgspec.Raw)
_LIST = msgspec.json.Decoder(list[Event])
_KERNEL_ARGS = msgspec.json.Decoder(KernelArgs)
_ARGS = msgspec.json.Decoder(Args)
_CORRELATED = msgspec.json.Decoder(_Correlated)


def opened(path: str, data: bytes) -> tuple[KinetoFile, list[Diagnostic]]:
    """The file's top level, and what was found. A file that was cut has the events before the cut.

    Raises InputError, naming the byte or the field, for what is no trace.
    """
    is_list = data[:64].lstrip()[:1] == b"["
    try:
        return _opened(data, is_list), []
    except msgspec.ValidationError as error:
        raise _refusal(path, error) from None
    except RecursionError:
        raise _too_deep(path, data) from None
    except UnicodeDecodeError as error:
        message = f"found bytes that are not UTF-8 text beside the events: {error.reason}"
        raise InputError(Diagnostic("error", "not-utf-8", message, path)) from None
    except msgspec.DecodeError as error:
        # What is damaged in the middle stays an error: only an end that is missing is made good.
        if "truncated" not in str(error):
            raise _refusal(path, error) from None
    end = len(data)
    for _ in range(_MOST_TRIES):
        end = data.rfind(b"}", 0, end)
        if end < 0:
            break
        for closing in (b"]", b"}]") if is_list else (b"]}", b"}]}"):
            try:
                kineto_file = _opened(data[: end + 1] + closing, is_list)
            except (ValueError, RecursionError):
                continue
            message = f"the file ends in the middle, at byte {len(data)}: what stands before is shown"
            return kineto_file, [Diagnostic("warning", "cut-file", message, path)]
    message = f"the file ends at byte {len(data)}, before its first event is whole"
    raise InputError(Diagnostic("error", "cut-file", message, path))


def _opened(data: bytes, is_list: bool) -> KinetoFile:
    return KinetoFile(_RAW.decode(data)) if is_list else _FILE.decode(data)


def batches(
    path: str, file: KinetoFile, told: Callable[[float], None] | None = None
) -> Iterator[list[Event]]:
    """The events in their order, a batch at a time, so that few are in memory at once. told: is given the
    share of the bytes that is read.

    The array is cut where one object seems to end and the next begin. What lies between two cuts is read as
    an array: it is one only if the cut was between events, since what stands before it was. Raises InputError
    for an event that is none.
    """
    view = memoryview(file.traceEvents)
    text = bytes(view) if len(view) <= _BATCH else None
    if text is not None:
        yield _events(path, text, 0)
        return
    # Behind the bracket that opens the array.
    at, done = 1, 0
    while at < len(view):
        wanted = _BATCH
        events: list[Event] | None = None
        while events is None:
            end, over = _cut(view, at + wanted)
            try:
                events = _decoded(b"[" + bytes(view[at:end]) + b"]")
            except msgspec.ValidationError as error:
                raise _refusal(path, error, done) from None
            except RecursionError:
                raise _too_deep(path, bytes(view)) from None
            except msgspec.DecodeError as error:
                if over == len(view):
                    raise _refusal(path, error, done) from None
                # Twice as much each time: what nests in any way is decoded a few times over at most.
                wanted = 2 * (end - at)
        done += len(events)
        yield events
        at = over
        if told is not None:
            told(at / len(view))


def _decoded(text: bytes) -> list[Event]:
    """An array of events; bytes that are no UTF-8 become marks of what cannot be shown."""
    try:
        return _LIST.decode(text)
    except UnicodeDecodeError:
        return _LIST.decode(text.decode("utf-8", "replace").encode())


def _cut(view: memoryview, at: int) -> tuple[int, int]:
    """(end of the event, start of the next) at the first place from `at` on that looks like one."""
    while at < len(view):
        piece = bytes(view[at : at + _HEAD])
        between = _BETWEEN.search(piece)
        if between is not None:
            return at + between.start() + 1, at + between.end() - 1
        at += _HEAD - 1024
    return len(view) - 1, len(view)


def _events(path: str, text: bytes, done: int) -> list[Event]:
    try:
        return _decoded(text)
    except RecursionError:
        raise _too_deep(path, text) from None
    except msgspec.DecodeError as error:
        raise _refusal(path, error, done) from None


def kernel_args_of(event: Event) -> KernelArgs:
    """The arguments of an operation of a device; none where they are no object. Raises nothing: what cannot
    be read is absent.
    """
    try:
        return _KERNEL_ARGS.decode(event.args) if event.args else KernelArgs()
    except (ValueError, RecursionError):
        return KernelArgs()


def args_of(event: Event) -> Args:
    """The arguments of a collective; none where they are no object. Raises nothing."""
    try:
        return _ARGS.decode(event.args) if event.args else Args()
    except (ValueError, RecursionError):
        return Args()


def correlation_of(event: Event) -> int | None:
    """The correlation of a launch; None where there is none."""
    try:
        correlation = _CORRELATED.decode(event.args).correlation if event.args else None
    except (ValueError, RecursionError):
        return None
    return correlation if type(correlation) is int else None


def _too_deep(path: str, data: bytes) -> InputError:
    message = f"found lists or objects inside each other deeper than any trace has them{_deep_place(data)}"
    return InputError(Diagnostic("error", "bad-trace", message, path))


def _deep_place(data: bytes) -> str:
    """Where more than _DEEP brackets are open for the first time."""
    depth = 0
    for bracket in _BRACKET.finditer(data):
        if bracket[0] in b"[{":
            depth += 1
            if depth > _DEEP:
                return f", at byte {bracket.start()}"
        elif bracket[0] in b"]}":
            depth -= 1
    return ""


def _refusal(path: str, error: Exception, done: int = 0) -> InputError:
    """msgspec's message, its `$[12].ts` as words. done: how many events stand before those that it counts."""
    text = str(error)
    said_at = _PLACE.search(text)
    where = "the file"
    if said_at is not None:
        event = re.search(r"\[(\d+)\]", said_at[1])
        field = said_at[1].rpartition(".")[2]
        where = said_at[1].removeprefix("$.")
        if event is not None:
            where = f"event {int(event[1]) + done}" + (f", {field}" if field != said_at[1] else "")
        text = text[: said_at.start()]
    if not text.startswith("JSON"):
        text = text[:1].lower() + text[1:]
    message = f"{where}: {printable(text, 200)}"
    return InputError(Diagnostic("error", "bad-trace", message, path))
