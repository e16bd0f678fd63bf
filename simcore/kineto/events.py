"""The events of a Kineto file, decoded: the fields that count, everything else skipped where it stands."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from simcore.diagnostics import Diagnostic, InputError, printable

# A cut file is whole up to one of its last closing braces: an event or what lies in one.
_MOST_TRIES = 12
_PLACE = re.compile(r" - at `(.*)`$")


class Event(msgspec.Struct, gc=False):
    """One event as written. ts, dur: microseconds. args: not decoded yet, most are never looked at."""

    ph: str = ""
    cat: str | None = None
    name: str | int | float | None = ""
    ts: int | float | None = None
    dur: int | float | None = None
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    args: msgspec.Raw = msgspec.Raw(b"")


class Args(msgspec.Struct, gc=False):
    """What is looked at of an event's arguments. Those that may be a number or a text are Any."""

    stream: Any = None
    device: Any = None
    correlation: Any = None
    external: Any = msgspec.field(default=None, name="External id")
    bytes: Any = None
    grid: msgspec.Raw = msgspec.Raw(b"")
    block: msgspec.Raw = msgspec.Raw(b"")
    occupancy: Any = msgspec.field(default=None, name="est. achieved occupancy %")
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


class Group(msgspec.Struct):
    """A process group of the job, as `pg_config` has it."""

    pg_name: Any = None
    pg_desc: Any = None
    pg_size: Any = None
    ranks: Any = None


class Distributed(msgspec.Struct):
    """Who wrote the file, among whom."""

    backend: Any = None
    rank: Any = None
    world_size: Any = None
    pg_config: Any = None


class TraceFile(msgspec.Struct):
    """The top level of a file."""

    traceEvents: list[Event]
    distributedInfo: Distributed | None = None
    baseTimeNanoseconds: int | None = None
    deviceProperties: Any = None


_FILE = msgspec.json.Decoder(TraceFile)
_LIST = msgspec.json.Decoder(list[Event])
_ARGS = msgspec.json.Decoder(Args)
_NO_ARGS = Args()


class _Correlated(msgspec.Struct, gc=False):
    correlation: Any = None


_CORRELATED = msgspec.json.Decoder(_Correlated)


def decode(path: str, data: bytes) -> tuple[TraceFile, list[Diagnostic]]:
    """The file's events, and what was found on the way. A file that was cut gives those before the cut.

    Raises InputError, naming the byte or the event, for what is no trace.
    """
    is_list = data[:64].lstrip()[:1] == b"["
    try:
        return _decoded(data, is_list), []
    except msgspec.ValidationError as error:
        raise _refusal(path, data, error) from None
    except RecursionError:
        message = "found lists or objects inside each other deeper than any trace has them"
        raise InputError(Diagnostic("error", "bad-trace", message, path)) from None
    except msgspec.DecodeError as error:
        # What is damaged in the middle stays an error: only an end that is missing is made good.
        if "truncated" not in str(error):
            raise _refusal(path, data, error) from None
    end = len(data)
    for _ in range(_MOST_TRIES):
        end = data.rfind(b"}", 0, end)
        if end < 0:
            break
        whole = memoryview(data)[: end + 1]
        for closing in (b"]", b"]}", b"}]", b"}]}"):
            if closing.endswith(b"}") == is_list:
                continue
            try:
                found = _decoded(bytes(whole) + closing, is_list)
            except (msgspec.DecodeError, RecursionError):
                continue
            message = (
                f"the file ends in the middle, at byte {len(data)}: shown are the {len(found.traceEvents)} "
                "events before it"
            )
            return found, [Diagnostic("warning", "cut-file", message, path)]
    message = f"the file ends at byte {len(data)}, before its first event is whole"
    raise InputError(Diagnostic("error", "cut-file", message, path))


def _decoded(data: bytes, is_list: bool) -> TraceFile:
    return TraceFile(_LIST.decode(data)) if is_list else _FILE.decode(data)


def args_of(event: Event) -> Args:
    """The arguments of an event; none where they are no object. Raises nothing: what cannot be read is absent."""
    try:
        return _ARGS.decode(event.args) if event.args else _NO_ARGS
    except (msgspec.DecodeError, RecursionError):
        return _NO_ARGS


def correlation_of(event: Event) -> int | None:
    """The correlation of a launch; None where there is none."""
    try:
        found = _CORRELATED.decode(event.args).correlation if event.args else None
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if type(found) is int else None


def _refusal(path: str, data: bytes, error: Exception) -> InputError:
    """msgspec's message, with its `$.traceEvents[12].ts` as words."""
    text = str(error)
    place = _PLACE.search(text)
    where = "the file"
    if place is not None:
        event = re.search(r"\[(\d+)\]", place[1])
        field = place[1].rpartition(".")[2]
        where = f"event {event[1]}, {field}" if event else place[1].removeprefix("$.")
        text = text[: place.start()]
    message = f"{where}: {printable(text[:1].lower() + text[1:], 200)}"
    return InputError(Diagnostic("error", "bad-trace", message, path))
