"""A cache of the columns of large files, stored next to the sessions, so that the same set opens at once the
next time.

A file is identified by its path, size, time of change and the bytes of its two ends. Columns are cached: a
small part of the file. The cache is bounded, the oldest entry goes first. Where nothing can be written, or an
entry cannot be read, the file is read again: a cache is never a reason for an error, nor for another answer.
So an entry has a checksum, and belongs to the user alone: what others could have written is not read.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import stat
import sys
import time
import zlib
from array import array
from collections.abc import Sequence

import msgspec
from msgspec.structs import astuple

from simcore.diagnostics import Diagnostic, printable
from simcore.kineto.recording import ProfilerStep, Recording
from simcore.measured.columns import (
    MEASURED,
    CollectiveInfo,
    DeviceColumns,
    GapColumns,
    HostColumns,
    LaneColumns,
    MemoryColumns,
    OpColumns,
    made_lane,
)
from simcore.measured.step_columns import KIND_WORDS, CallColumns, CallKey, CallKind, StepColumns
from simcore.records import replace

# To be raised with each change of the cache's format, or of what the reader makes of a file: older entries
# are not used.
_VERSION = 19
# Smaller files are read as fast as their columns.
_LEAST_BYTES = 1 << 20
_MOST_BYTES = 1 << 30
_ENDS = 1 << 16
_SUFFIX = ".columns"
# Suffix of a cached file with the last step alone.
LAST = ".last"

# What the cache writes, and nothing else is removed: entries of any version, and parts that a killed program
# left.
_ENTRY = re.compile(r"[0-9a-f]{32}\.columns(\.[a-z]{1,8}){0,2}(\.[0-9]{1,10})?")
# The start of an entry, and the bytes of the checksum behind it.
_MAGIC = b"wltui columns\n"
_CHECKSUM_BYTES = 4
# Age of a temporary file that a killed program has left: writing takes less.
_STALE_SECONDS = 3600

Read = tuple[list[Recording], list[Diagnostic]]


class _CachedHost(msgspec.Struct):
    """What the host did, in the form of `_CachedRecording`."""

    texts: list[str]
    threads: list[str]
    name: bytes
    int_columns: dict[str, bytes]


class _CachedGaps(msgspec.Struct):
    """Times in which the device ran nothing; there are few of them."""

    thread: list[str]
    name: list[str | None]
    kind: bytes
    around: list[str | None]
    int_columns: dict[str, bytes]


class _CachedSteps(msgspec.Struct):
    """What the steps took."""

    columns: list[bytes]
    """Number, start and end, then what was spent by kind."""
    calls: list[tuple[CallKey, list[bytes]]]
    """The columns of the calls of each group."""
    kinds: list[tuple[CollectiveInfo, str]]


class _CachedRecording(msgspec.Struct):
    """A recording: columns as bytes, texts as indices into one list of them, -1 for none."""

    rank: int | None
    world: int | None
    device: int | None
    is_truncated: bool
    job: str
    process: int | None
    on_device: bool
    steps: list[bytes]
    """Number, start, end, operations and begin on the host, as columns."""
    groups: dict[str, tuple[str, tuple[int, ...]]]
    int_columns: dict[str, bytes]
    texts: list[str]
    text_columns: dict[str, bytes]
    collectives: dict[int, CollectiveInfo]
    first: int
    last: int
    count: int
    only_step: int | None
    gaps: _CachedGaps
    form: str
    on_one_clock: bool
    streams: dict[int, str]
    line_noun: str
    stage: int | None
    position: tuple[int, int, int] | None
    host: _CachedHost | None = None
    figures: dict[str, dict[int, float]] = {}
    memory: dict[str, bytes] = {}
    memory_operations: list[str | None] = []
    step_columns: _CachedSteps | None = None


class _File(msgspec.Struct):
    version: int
    recordings: list[_CachedRecording]
    diagnostics: list[Diagnostic]


_INT_COLUMNS = {
    "start": "q", "end": "q", "line": "q", "batch": "q", "chunk": "q", "stated": "B", "step": "q",
    "stream": "q", "correlation": "q", "bytes": "q", "occupancy": "h",
}  # fmt: skip
_LANE_INT_COLUMNS = {"start": "q", "end": "q", "thread": "i", "line": "q"}
_LAUNCH_INT_COLUMNS = {"launch": "q", "launched": "q", "launcher": "i"}
_MEMORY_INT_COLUMNS = ("time", "bytes", "address", "allocated", "reserved")
_GAP_INT_COLUMNS = ("start", "end", "launched", "begin", "over")
_STEP_COLUMNS = 5
_TEXT_COLUMNS = ("name", "group", "shape", "dtype", "operation", "layer", "grid", "block")


def directory() -> str:
    """Returns where columns are cached: next to the sessions, in $XDG_STATE_HOME, else ~/.local/state."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.local/state")
    return os.path.join(base, "wltui", "traces")


def find_cache_path(path: str, names: tuple[str | None, ...]) -> str | None:
    """Returns the path at which the columns of the file at `path` are cached; None for a file that is not
    worth it. names: the expressions that it is read with.
    """
    import hashlib

    try:
        status = os.stat(path)
        if status.st_size < _LEAST_BYTES:
            return None
        with open(path, "rb") as file:
            ends = file.read(_ENDS)
            file.seek(-_ENDS, os.SEEK_END)
            ends += file.read()
    except OSError:
        return None
    facts = f"{_VERSION}\0{os.path.realpath(path)}\0{status.st_size}\0{status.st_mtime_ns}\0{names}\0"
    key = hashlib.sha256(facts.encode("utf-8", "surrogateescape") + ends).hexdigest()[:32]
    return os.path.join(directory(), key + _SUFFIX)


def load(cache_path: str, path: str) -> Read | None:
    """Returns what `cache_path` has of the file at `path`; None where nothing fits."""
    try:
        if not _is_private(os.path.dirname(cache_path)):
            return None
        data = _read_entry(cache_path)
        if data is None:
            return None
        content = msgspec.msgpack.decode(data, type=_File)
        if content.version != _VERSION:
            return None
        recordings = [_decode_recording(recording, path) for recording in content.recordings]
        # The last entry that was used goes last.
        os.utime(cache_path)
    except Exception:
        # Whatever it is, the file itself is still there.
        return None
    return recordings, [replace(diagnostic, file=path) for diagnostic in content.diagnostics]


def _read_entry(cache_path: str) -> memoryview | None:
    """Returns the content of an entry; None for one that is damaged, or is not the user's own.

    Raises OSError.
    """
    # A link leads elsewhere, and a FIFO would wait.
    descriptor = os.open(
        cache_path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    )
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not _is_own(status) or status.st_nlink > 1:
            return None
        if status.st_size > _MOST_BYTES:
            return None
        data = memoryview(file.read(_MOST_BYTES + 1))
    head = len(_MAGIC) + _CHECKSUM_BYTES
    if data[: len(_MAGIC)] != _MAGIC:
        return None
    checksum = int.from_bytes(data[len(_MAGIC) : head], "big")
    return data[head:] if zlib.crc32(data[head:]) == checksum else None


def _is_own(status: os.stat_result) -> bool:
    """Returns whether nobody but the user can have written, and can read, what has this status."""
    # Windows has other means.
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o077)


_refused_folders: set[str] = set()


def _is_private(folder: str) -> bool:
    """Returns whether a folder is the user's alone; the user is told once of one that is not."""
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode):
        why = "it is no directory" if not stat.S_ISLNK(status.st_mode) else "it is a link"
    elif _is_own(status):
        return True
    elif status.st_uid == os.getuid():
        # Older versions left it to the umask.
        os.chmod(folder, 0o700)
        return True
    else:
        why = "it belongs to somebody else"
    if folder not in _refused_folders and multiprocessing.parent_process() is None:
        _refused_folders.add(folder)
        with contextlib.suppress(OSError, AttributeError):
            print(f"wltui: {printable(folder)} is not used to keep what was read: {why}", file=sys.stderr)
    return False


def is_kept(path: str, names: tuple[str | None, ...]) -> bool:
    """Returns whether there is an entry of the file at `path`. names: see `find_cache_path`."""
    cache_path = find_cache_path(path, names)
    return cache_path is not None and os.path.exists(cache_path)


def keep(cache_path: str, read: Read) -> None:
    """Caches what was read; reports nothing where that is impossible."""
    recordings, diagnostics = read
    content = _File(
        _VERSION,
        [_encode_recording(recording) for recording in recordings],
        [replace(diagnostic, file="") for diagnostic in diagnostics],
    )
    data = msgspec.msgpack.encode(content)
    checksum = zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "big")
    half = f"{cache_path}.{os.getpid()}"
    folder = os.path.dirname(cache_path)
    with contextlib.suppress(OSError):
        if not os.path.lexists(folder):
            os.makedirs(folder, mode=0o700, exist_ok=True)
        if not _is_private(folder):
            return
        _make_room(folder, len(data))
        try:
            # New: no link to somewhere else.
            with open(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.writelines((_MAGIC, checksum, data))
            os.replace(half, cache_path)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(half)


def _make_room(folder: str, size: int) -> None:
    """Removes the oldest entries until `size` more bytes fit, and what killed programs have left."""
    files = []
    for entry in os.scandir(folder):
        match = _ENTRY.fullmatch(entry.name)
        if match is None:
            continue
        with contextlib.suppress(OSError):
            status = entry.stat(follow_symlinks=False)
            if match[2] is not None and time.time() - status.st_mtime > _STALE_SECONDS:
                os.unlink(entry.path)
            elif stat.S_ISREG(status.st_mode):
                files.append((status.st_mtime_ns, status.st_size, entry.path))
    total = sum(file[1] for file in files) + size
    for _, freed, path in sorted(files):
        if total <= _MOST_BYTES:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
            total -= freed


def _encode_recording(recording: Recording) -> _CachedRecording:
    ops, columns = recording.ops, recording.columns
    texts: dict[str, int] = {}
    sources: dict[str, Sequence[str | None]] = {
        "name": ops.name, "group": ops.group, "shape": ops.shape, "dtype": ops.dtype,
        "operation": columns.operation, "layer": columns.layer, "grid": columns.grid, "block": columns.block,
    }  # fmt: skip
    text_columns = {}
    for name, column in sources.items():
        indices = (-1 if text is None else texts.setdefault(text, len(texts)) for text in column)
        text_columns[name] = array("i", indices).tobytes()
    int_columns = {
        "start": ops.start, "end": ops.end, "line": ops.line, "batch": ops.batch, "chunk": ops.chunk,
        "step": recording.step,
        "stream": columns.stream, "correlation": columns.correlation, "bytes": columns.bytes,
        "occupancy": columns.occupancy,
    }  # fmt: skip
    return _CachedRecording(
        recording.rank,
        recording.world,
        recording.device,
        recording.is_truncated,
        recording.job,
        recording.process,
        columns.on_device,
        _encode_profiler_steps(recording.steps),
        recording.groups,
        {name: column.tobytes() for name, column in int_columns.items()}
        | {"stated": bytes(ops.stated_category)},
        [_utf8(text) for text in texts],
        text_columns,
        columns.collectives,
        recording.first_ns,
        recording.last_ns,
        recording.count,
        recording.only_step,
        _encode_gaps(columns.gaps),
        recording.form,
        recording.on_one_clock,
        {stream: _utf8(name) for stream, name in columns.streams.items()},
        columns.line_noun,
        recording.stage,
        recording.position,
        None if columns.host is None else _encode_host(columns.host),
        recording.figures,
        {name: getattr(columns.memory, name).tobytes() for name in _MEMORY_INT_COLUMNS},
        [None if name is None else _utf8(name) for name in columns.memory.operation],
        None if recording.step_columns is None else _encode_steps(recording.step_columns),
    )


def _encode_profiler_steps(steps: Sequence[ProfilerStep]) -> list[bytes]:
    columns = list(zip(*map(astuple, steps), strict=True)) or [()] * _STEP_COLUMNS
    return [array("q", column).tobytes() for column in columns]


def _encode_steps(steps: StepColumns) -> _CachedSteps:
    columns = [steps.step, steps.start, steps.end, *steps.spent]
    calls = [
        ((operation, None if group is None else _utf8(group), ranks, peer),
         [column.tobytes() for column in some.columns])
        for (operation, group, ranks, peer), some in steps.calls.items()
    ]  # fmt: skip
    kinds = [(kind.info, _utf8(kind.name)) for kind in steps.kinds]
    return _CachedSteps([column.tobytes() for column in columns], calls, kinds)


def _decode_steps(cached: _CachedSteps) -> StepColumns:
    """Returns what the steps took. Raises ValueError where columns do not fit together."""
    step, start, end, *spent = (array("q", column) for column in cached.columns)
    calls = {key: CallColumns(*(array("q", column) for column in some)) for key, some in cached.calls}
    lengths = {len(column) for column in (start, end, *spent)}
    if lengths != {len(step)} or len(spent) != len(KIND_WORDS):
        raise ValueError("columns of different lengths")
    for some in calls.values():
        if len(set(map(len, some.columns))) > 1:
            raise ValueError("columns of different lengths")
        if not 0 <= min(some.row, default=0) <= max(some.row, default=0) < max(len(step), 1):
            raise ValueError("calls of no step")
        if not 0 <= min(some.kind, default=0) <= max(some.kind, default=0) < max(len(cached.kinds), 1):
            raise ValueError("calls of no kind")
    kinds = [CallKind(*kind) for kind in cached.kinds]
    return StepColumns(step, start, end, spent, calls, kinds)


def _encode_host(host: HostColumns) -> _CachedHost:
    texts: dict[str, int] = {}
    lane = host.lane.columns
    names = array("i", (texts.setdefault(name, len(texts)) for name in lane.name)).tobytes()
    return _CachedHost(
        [_utf8(text) for text in texts], [_utf8(text) for text in host.threads], names,
        {name: getattr(lane, name).tobytes() for name in _LANE_INT_COLUMNS}
        | {name: getattr(host, name).tobytes() for name in _LAUNCH_INT_COLUMNS},
    )  # fmt: skip


def _encode_gaps(gaps: GapColumns) -> _CachedGaps:
    def as_utf8(column: list[str | None]) -> list[str | None]:
        return [None if text is None else _utf8(text) for text in column]

    int_columns = {name: getattr(gaps, name).tobytes() for name in _GAP_INT_COLUMNS}
    threads = [_utf8(text) for text in gaps.thread]
    return _CachedGaps(threads, as_utf8(gaps.name), bytes(gaps.kind), as_utf8(gaps.around), int_columns)


def _decode_gaps(cached: _CachedGaps) -> GapColumns:
    """Returns cached gaps. Raises ValueError where columns do not fit together."""
    int_columns = {name: array("q", cached.int_columns[name]) for name in _GAP_INT_COLUMNS}
    texts = (len(cached.thread), len(cached.name), len(cached.kind), len(cached.around))
    if len({*texts, *map(len, int_columns.values())}) > 1:
        raise ValueError("columns of different lengths")
    return GapColumns(
        thread=cached.thread,
        name=cached.name,
        kind=bytearray(cached.kind),
        around=cached.around,
        **int_columns,
    )


def _decode_host(cached: _CachedHost, count: int) -> HostColumns:
    """Returns cached host columns. Raises ValueError where columns do not fit together. count: operations of
    the device.
    """
    of_lane, of_device = (
        {name: array(kind, cached.int_columns[name]) for name, kind in kinds.items()}
        for kinds in (_LANE_INT_COLUMNS, _LAUNCH_INT_COLUMNS)
    )
    names = [cached.texts[at] for at in array("i", cached.name)]
    if {*map(len, of_lane.values())} != {len(names)} or {*map(len, of_device.values())} != {count}:
        raise ValueError("columns of different lengths")
    return HostColumns(made_lane(LaneColumns(names, **of_lane)), cached.threads, **of_device)


def _utf8(text: str) -> str:
    """Returns a text of a file as valid UTF-8, which it need not be."""
    return text.encode("utf-8", "replace").decode()


def _decode_memory(cached: _CachedRecording) -> MemoryColumns:
    """Returns what the allocator did. Raises ValueError where columns do not fit together."""
    columns = [array("q", cached.memory[name]) for name in _MEMORY_INT_COLUMNS]
    if {len(column) for column in columns} != {len(cached.memory_operations)}:
        raise ValueError("columns of different lengths")
    time, size, address, allocated, reserved = columns
    return MemoryColumns(time, size, address, allocated, reserved, cached.memory_operations)


def _decode_recording(cached: _CachedRecording, path: str) -> Recording:
    """Returns a cached recording. Raises ValueError where columns do not fit together."""
    int_columns = {name: array(kind, cached.int_columns[name]) for name, kind in _INT_COLUMNS.items()}
    # The last one is for the index -1.
    texts: list[str | None] = [*cached.texts, None]
    text = {
        name: list(map(texts.__getitem__, array("i", cached.text_columns[name]))) for name in _TEXT_COLUMNS
    }
    count = len(int_columns["start"])
    # Profilers record no micro-batches.
    batch = int_columns.pop("batch") or array("q", (-1,)) * count
    chunk = int_columns.pop("chunk")
    lengths = {len(batch), len(chunk) or count, *map(len, int_columns.values()), *map(len, text.values())}
    if lengths != {count} or None in text["name"]:
        raise ValueError("columns of different lengths")
    names = [name for name in text["name"] if name is not None]
    ops = OpColumns(
        name=names, group=text["group"], batch=batch, start=int_columns["start"], end=int_columns["end"],
        line=int_columns["line"], chunk=chunk,
        timing=bytearray((MEASURED,)) * count, shape=text["shape"], dtype=text["dtype"],
        stated_category=bytearray(int_columns["stated"]),
    )  # fmt: skip
    columns = DeviceColumns(
        int_columns["stream"],
        int_columns["correlation"],
        text["operation"],
        text["layer"],
        int_columns["bytes"],
        text["grid"],
        text["block"],
        int_columns["occupancy"],
        cached.collectives,
        cached.on_device,
        None if cached.host is None else _decode_host(cached.host, count),
        _decode_gaps(cached.gaps),
        cached.streams,
        cached.line_noun,
        _decode_memory(cached),
    )
    # 640,000 steps of ranks take 0.2 s, as a list of lists 0.7.
    steps = tuple(map(ProfilerStep, *(array("q", column) for column in cached.steps)))
    if len({len(column) for column in cached.steps}) != 1 or len(cached.steps) != _STEP_COLUMNS:
        raise ValueError("columns of different lengths")
    return Recording(
        path,
        cached.rank,
        cached.world,
        cached.device,
        ops,
        columns,
        int_columns["step"],
        steps,
        cached.groups,
        cached.is_truncated,
        cached.job,
        cached.process,
        cached.first,
        cached.last,
        cached.count,
        cached.only_step,
        form=cached.form,
        figures=cached.figures,
        on_one_clock=cached.on_one_clock,
        stage=cached.stage,
        position=cached.position,
        step_columns=None if cached.step_columns is None else _decode_steps(cached.step_columns),
    )
