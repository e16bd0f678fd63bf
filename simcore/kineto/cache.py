"""What was read of large files, kept beside the sessions, so that the same set opens at once the next time.

A file is known by its place, size, time of change and the bytes of its two ends. What is kept is columns: a
small part of the file. All that is kept together is bounded, the oldest goes first. Where nothing can be
written, or what is there cannot be read, the file is read again: a cache is never a reason for an error.
"""

from __future__ import annotations

import contextlib
import os
from array import array
from collections.abc import Sequence

import msgspec
from msgspec.structs import astuple

from simcore.diagnostics import Diagnostic
from simcore.kineto.recording import ProfilerStep, Recording
from simcore.measured.columns import (
    MEASURED,
    DeviceColumns,
    GapColumns,
    HostColumns,
    OpColumns,
    ToldCollective,
)
from simcore.records import replace

# Of a change in what is kept, or in what the reader makes of a file: what was kept before is not taken.
_VERSION = 10
# Smaller files are read as fast as their columns.
_LEAST_BYTES = 1 << 20
_MOST_BYTES = 1 << 30
_ENDS = 1 << 16
_SUFFIX = ".columns"
# Behind the name of a file: the same without what the host did beside a device; of it the last step alone.
_BARE, LAST = ".bare", ".last"

Read = tuple[list[Recording], list[Diagnostic]]


class _KeptHost(msgspec.Struct):
    """What the host did, in the same way."""

    texts: list[str]
    threads: list[str]
    name: bytes
    numbers: dict[str, bytes]


class _KeptGaps(msgspec.Struct):
    """Times in which the device ran nothing; there are few of them."""

    thread: list[str]
    name: list[str | None]
    kind: bytes
    around: list[str | None]
    numbers: dict[str, bytes]


class _Kept(msgspec.Struct):
    """A recording: columns as bytes, texts as places in one list of them, -1 for none."""

    rank: int | None
    world: int | None
    device: int | None
    cut: bool
    job: str
    process: int | None
    on_device: bool
    steps: list[tuple[int, int, int, int, int]]
    groups: dict[str, tuple[str, tuple[int, ...]]]
    numbers: dict[str, bytes]
    texts: list[str]
    places: dict[str, bytes]
    collectives: dict[int, ToldCollective]
    first: int
    last: int
    count: int
    held: int | None
    gaps: _KeptGaps
    form: str
    on_one_clock: bool
    streams: dict[int, str]
    counted: str
    host: _KeptHost | None = None


class _File(msgspec.Struct):
    version: int
    recordings: list[_Kept]
    said: list[Diagnostic]


_NUMBERS = {
    "start": "q", "end": "q", "line": "q", "batch": "q", "stated": "B", "step": "q", "stream": "q",
    "correlation": "q", "bytes": "q", "occupancy": "h",
}  # fmt: skip
_HOST_NUMBERS = {
    "start": "q", "end": "q", "thread": "i", "line": "q", "launch": "q", "launched": "q",
    "launcher": "i",
}  # fmt: skip
_GAP_NUMBERS = ("start", "end", "launched", "begin", "over")
_TEXTS = ("name", "group", "shape", "dtype", "operation", "layer", "grid", "block")


def directory() -> str:
    """Where columns are kept: beside the sessions, in $XDG_STATE_HOME, else ~/.local/state."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.local/state")
    return os.path.join(base, "wltui", "traces")


def places_of(path: str, names: tuple[str | None, ...], host: bool = True) -> tuple[str, ...]:
    """The files in which columns of the one at `path` that will do may be kept, first the one to keep them
    in; () of one that is not worth it. names: the expressions that it is read with. host: see `HowRead`;
    columns with the host's do without it, too.
    """
    import hashlib

    try:
        known = os.stat(path)
        if known.st_size < _LEAST_BYTES:
            return ()
        with open(path, "rb") as file:
            ends = file.read(_ENDS)
            file.seek(-_ENDS, os.SEEK_END)
            ends += file.read()
    except OSError:
        return ()
    facts = f"{_VERSION}\0{os.path.realpath(path)}\0{known.st_size}\0{known.st_mtime_ns}\0{names}\0"
    key = hashlib.sha256(facts.encode("utf-8", "surrogateescape") + ends).hexdigest()[:32]
    cached = os.path.join(directory(), key + _SUFFIX)
    return (cached,) if host else (cached + _BARE, cached)


def load(cached: str, path: str) -> Read | None:
    """What is kept in `cached` of the file at `path`; None where nothing fits."""
    try:
        with open(cached, "rb") as file:
            kept = msgspec.msgpack.decode(file.read(), type=_File)
        if kept.version != _VERSION:
            return None
        recordings = [_recording(recording, path) for recording in kept.recordings]
        # The last to be used is the last to go.
        os.utime(cached)
    except (OSError, ValueError, IndexError, KeyError, EOFError):
        return None
    return recordings, [replace(diagnostic, file=path) for diagnostic in kept.said]


def is_kept(path: str, names: tuple[str | None, ...], host: bool = True) -> bool:
    """Whether there is something of the file at `path`. names, host: see `places_of`."""
    return any(map(os.path.exists, places_of(path, names, host)))


def keep(cached: str, read: Read) -> None:
    """Keeps what was read; says nothing where that cannot be."""
    recordings, said = read
    kept = _File(
        _VERSION,
        [_kept(recording) for recording in recordings],
        [replace(diagnostic, file="") for diagnostic in said],
    )
    data = msgspec.msgpack.encode(kept)
    half = f"{cached}.{os.getpid()}"
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(cached), mode=0o700, exist_ok=True)
        _make_room(os.path.dirname(cached), len(data))
        try:
            with open(half, "xb") as file:
                file.write(data)
            os.replace(half, cached)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(half)


def _make_room(folder: str, size: int) -> None:
    """Lets the oldest go until `size` more bytes fit."""
    there = []
    for entry in os.scandir(folder):
        with contextlib.suppress(OSError):
            known = entry.stat()
            there.append((known.st_mtime_ns, known.st_size, entry.path))
    total = sum(file[1] for file in there) + size
    for _, freed, path in sorted(there):
        if total <= _MOST_BYTES:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
            total -= freed


def _kept(recording: Recording) -> _Kept:
    ops, columns = recording.ops, recording.columns
    texts: dict[str, int] = {}
    sources: dict[str, Sequence[str | None]] = {
        "name": ops.name, "group": ops.group, "shape": ops.shape, "dtype": ops.dtype,
        "operation": columns.operation, "layer": columns.layer, "grid": columns.grid, "block": columns.block,
    }  # fmt: skip
    places = {}
    for name, column in sources.items():
        numbered = (-1 if text is None else texts.setdefault(text, len(texts)) for text in column)
        places[name] = array("i", numbered).tobytes()
    numbers = {
        "start": ops.start, "end": ops.end, "line": ops.line, "batch": ops.batch, "step": recording.step,
        "stream": columns.stream, "correlation": columns.correlation, "bytes": columns.bytes,
        "occupancy": columns.occupancy,
    }  # fmt: skip
    return _Kept(
        recording.rank, recording.world, recording.device, recording.cut, recording.job,
        recording.process, columns.on_device,
        list(map(astuple, recording.steps)), recording.groups,
        {name: column.tobytes() for name, column in numbers.items()} | {"stated": bytes(ops.stated)},
        [_utf8(text) for text in texts], places, columns.collectives,
        recording.first_ns, recording.last_ns, recording.count, recording.held, _kept_gaps(columns.gaps),
        recording.form, recording.on_one_clock,
        {stream: _utf8(name) for stream, name in columns.streams.items()}, columns.counted,
        None if columns.host is None else _kept_host(columns.host),
    )  # fmt: skip


def _kept_host(host: HostColumns) -> _KeptHost:
    texts: dict[str, int] = {}
    names = array("i", (texts.setdefault(name, len(texts)) for name in host.name)).tobytes()
    return _KeptHost(
        [_utf8(text) for text in texts], [_utf8(text) for text in host.threads], names,
        {name: getattr(host, name).tobytes() for name in _HOST_NUMBERS},
    )  # fmt: skip


def _kept_gaps(gaps: GapColumns) -> _KeptGaps:
    def kept(column: list[str | None]) -> list[str | None]:
        return [None if text is None else _utf8(text) for text in column]

    numbers = {name: getattr(gaps, name).tobytes() for name in _GAP_NUMBERS}
    threads = [_utf8(text) for text in gaps.thread]
    return _KeptGaps(threads, kept(gaps.name), bytes(gaps.kind), kept(gaps.around), numbers)


def _gaps(kept: _KeptGaps) -> GapColumns:
    """Raises ValueError where columns do not fit together."""
    number = {name: array("q", kept.numbers[name]) for name in _GAP_NUMBERS}
    texts = (len(kept.thread), len(kept.name), len(kept.kind), len(kept.around))
    if len({*texts, *map(len, number.values())}) > 1:
        raise ValueError("columns of different lengths")
    return GapColumns(
        thread=kept.thread, name=kept.name, kind=bytearray(kept.kind), around=kept.around, **number
    )  # fmt: skip


def _host(kept: _KeptHost, count: int) -> HostColumns:
    """Raises ValueError where columns do not fit together. count: operations of the device."""
    number = {name: array(kind, kept.numbers[name]) for name, kind in _HOST_NUMBERS.items()}
    names = [kept.texts[at] for at in array("i", kept.name)]
    lengths = {len(number[name]) for name in ("start", "end", "thread", "line")}
    of_device = {len(number[name]) for name in ("launch", "launched", "launcher")}
    if lengths != {len(names)} or of_device != {count}:
        raise ValueError("columns of different lengths")
    return HostColumns(names, threads=kept.threads, **number)


def _utf8(text: str) -> str:
    """A text of a file may hold what is no text in UTF-8."""
    return text.encode("utf-8", "replace").decode()


def _recording(kept: _Kept, path: str) -> Recording:
    """Raises ValueError where columns do not fit together."""
    number = {name: array(kind, kept.numbers[name]) for name, kind in _NUMBERS.items()}
    # The last one is what -1 leads to.
    texts: list[str | None] = [*kept.texts, None]
    text = {name: list(map(texts.__getitem__, array("i", kept.places[name]))) for name in _TEXTS}
    count = len(number["start"])
    # Profilers know no micro-batches.
    batch = number.pop("batch") or array("q", (-1,)) * count
    lengths = {len(batch), *map(len, number.values()), *map(len, text.values())}
    if lengths != {count} or None in text["name"]:
        raise ValueError("columns of different lengths")
    names = [name for name in text["name"] if name is not None]
    ops = OpColumns(
        name=names, group=text["group"], batch=batch, start=number["start"], end=number["end"],
        line=number["line"],
        known=bytearray((MEASURED,)) * count, shape=text["shape"], dtype=text["dtype"],
        stated=bytearray(number["stated"]),
    )  # fmt: skip
    columns = DeviceColumns(
        number["stream"], number["correlation"], text["operation"], text["layer"], number["bytes"],
        text["grid"], text["block"], number["occupancy"], kept.collectives, kept.on_device,
        None if kept.host is None else _host(kept.host, count), _gaps(kept.gaps), kept.streams, kept.counted,
    )  # fmt: skip
    steps = tuple(ProfilerStep(*step) for step in kept.steps)
    return Recording(path, kept.rank, kept.world, kept.device, ops, columns, number["step"], steps,
                     kept.groups, kept.cut, kept.job, kept.process, kept.first, kept.last,
                     kept.count, kept.held, form=kept.form, on_one_clock=kept.on_one_clock)  # fmt: skip
