"""Reads the SQLite export of Nsight Systems into recordings, one a device.

Which tables and columns there are depends on what was traced and on the version of `nsys export`: the schema
is queried first. The file is opened read-only and read in one pass a table.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from simcore.diagnostics import Diagnostic, InputError, Severity, printable
from simcore.kineto.ambiguous_kernels import AmbiguousKernels
from simcore.kineto.gaps import (
    LEAST_CALL_NS,
    RUNTIME,
    HostActivity,
    HostCalls,
    Launch,
    find_relevant_gaps,
    gap_columns,
)
from simcore.kineto.host import (
    NOTHING,
    Ranges,
    Surroundings,
    Threads,
    ThreadTime,
    find_surroundings,
    launchers_of,
    thread_words,
)
from simcore.kineto.libraries import KernelNames, collective_in_name, kernel_kind
from simcore.kineto.recording import Recording, refuse_devices
from simcore.kineto.steps import StepMark, StepNames, steps_of_device
from simcore.measured.columns import CollectiveInfo, DeviceColumns, OpColumns
from simcore.measured.vocabulary import CATEGORIES, COPY, KERNEL
from simcore.units import plural
from simcore.workload.model import LARGEST

_COPY, _KERNEL, _COMM = (CATEGORIES.index(name) for name in (COPY, KERNEL, "comm"))
_KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
_COPIES = {"CUPTI_ACTIVITY_KIND_MEMCPY": "Memcpy", "CUPTI_ACTIVITY_KIND_MEMSET": "Memset"}
_SESSION = "TARGET_INFO_SESSION_START_TIME"
_RUNTIME, _RANGES = "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"
# The enum `copyKind`, with the names of the export's own table of it.
_COPY_KINDS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}
# The suffix that the export adds to a call of the runtime: `cudaLaunchKernel_v7000`.
_VERSION = re.compile(r"_v\d+$")
_NO_NAME = "(no name)"
_MOST_ROWS = 50_000_000
# A row takes at least 6 bytes of its file: where it lies in its page, its sizes, its number and a value. The
# pages of a damaged file can lead to the same ones again and again, to 10^20 rows in 16 kB.
_ROW_BYTES = 6

# Instructions of SQLite's machine: those of a row with 13 columns are 20, and a row takes 20 bytes.
_CALLBACK_INSTRUCTIONS = 100_000
_INSTRUCTIONS_BEFORE, _INSTRUCTIONS_A_BYTE = 10_000_000, 10
# A file is checked whole below this size: in 30 ms.
_CHECKED_BYTES = 10_000_000
# Bytes of a database's header: bytes 16-17 are the size of a page, 28-31 the number of pages.
_HEADER = 100
# Start, end, position in its table, device, stream, correlation, name, bytes, grid, block, name in full.
_Row = tuple[int, int, int, int, int, int, str, int, "str | None", "str | None", str]


def read_nsys(
    path: str, names: str | None = None, step_names: str | None = None
) -> tuple[list[Recording], list[Diagnostic]]:
    """Returns the recordings of an export, by device, and diagnostics.

    names: a regular expression of further kernels that communicate; step_names: one of ranges that are steps.
    Raises InputError for what cannot be read, or has nothing to show.
    """
    try:
        connection = sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro&immutable=1", uri=True)
    except sqlite3.Error as error:
        raise _refusal(path, f"the file cannot be opened: {printable(str(error), 120)}") from None
    try:
        _guard(path, connection)
        return _Reader(path, connection, names, StepNames(step_names)).recordings()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise _damage_error(path, "the list of tables", error) from None
    except OverflowError:
        raise _refusal(path, "found a number of more than 64 bits") from None
    finally:
        connection.close()


def _guard(path: str, connection: sqlite3.Connection) -> None:
    """Makes a connection to a file that nobody vouches for. Raises sqlite3.Error where it is damaged."""
    size = os.path.getsize(path)
    # A text in UTF-16 is up to 1.5 times as long in UTF-8.
    left = [_INSTRUCTIONS_BEFORE + _INSTRUCTIONS_A_BYTE * size, 2 * size]

    def spend() -> int:
        left[0] -= _CALLBACK_INSTRUCTIONS
        return left[0] < 0

    def decode(raw: bytes) -> str:
        left[1] -= len(raw)
        if left[1] < 0:
            raise _refusal(path, f"found more text than its {size} bytes can hold: it is damaged")
        return raw.decode("utf-8", "replace")

    connection.set_progress_handler(spend, _CALLBACK_INSTRUCTIONS)
    connection.execute("pragma trusted_schema = off")
    connection.execute("pragma cell_size_check = on")
    connection.text_factory = decode


class _Reader:
    def __init__(
        self, path: str, connection: sqlite3.Connection, names: str | None, step_names: StepNames
    ) -> None:
        self.path = path
        self.step_names = step_names
        self.connection = connection
        self.diagnostics: list[Diagnostic] = []
        self.rows_left = os.path.getsize(path) // _ROW_BYTES
        self.names, self.unclear = KernelNames(names), AmbiguousKernels()
        # Views could have these names too, and a view runs code of the file: tables alone are read.
        tables = "select name from sqlite_master where type = 'table'"
        self.tables = {str(name) for (name,) in connection.execute(tables)}
        self.texts: dict[int, str] = {}
        self.left_out = 0
        # By correlation when the launching call ended.
        self.over: dict[int, int] = {}
        self.host_calls = HostCalls({}, "q")
        self.base = self._session_start()

    def recordings(self) -> tuple[list[Recording], list[Diagnostic]]:
        """Returns the recordings, one a device."""
        if not self.tables & {_KERNELS, *_COPIES}:
            raise _refusal(
                self.path,
                "found no table of kernels or copies (CUPTI_ACTIVITY_KIND_KERNEL), expected what "
                "`nsys export --type sqlite` writes of a run with traced CUDA",
            )
        if "StringIds" in self.tables:
            self.texts = {
                key: text
                for key, text in self._rows("StringIds", ("id", "value"))
                if isinstance(key, int) and isinstance(text, str)
            }
        launches = self._launches()
        steps, phases = self._ranges()
        rows: list[_Row] = []
        for line, row in enumerate(self._kernels()):
            rows.append((*row[:2], line, *row[2:5], row[5], -1, *row[6:]))
        for table, word in _COPIES.items():
            if table in self.tables:
                for line, copy in enumerate(self._copies(table, word)):
                    rows.append((*copy[:2], line, *copy[2:5], copy[5], copy[6], None, None, copy[5]))
        if not rows:
            raise _refusal(self.path, "found no kernel and no copy, expected a traced run")
        self._check_whole()
        rows.sort(key=lambda row: row[:3])
        if self.left_out:
            message = f"{plural(self.left_out, 'row')} without a time or with one that cannot be, left out"
            self._say("warning", "no-time", message)
        devices: dict[int, list[_Row]] = {}
        for kernel in rows:
            devices.setdefault(kernel[3], []).append(kernel)
        refuse_devices(self.path, len(devices))
        correlations = {kernel[5] for kernel in rows}
        started = {key: launch for key, launch in launches.items() if key in correlations}
        around = find_surroundings(
            [phases], [launch[0] for launch in started.values()], [launch[1] for launch in started.values()]
        )
        inside = dict(zip(started, around, strict=True))
        recordings = [self._device(some, launches, steps, inside) for _, some in sorted(devices.items())]
        for recording in recordings:
            self._add_gaps(recording, started, phases)
        return recordings, [*self.diagnostics, *self.unclear.make_diagnostics(self.path)]

    def _check_whole(self) -> None:
        """Raises InputError where SQLite finds damage that reading the rows has not met."""
        if os.path.getsize(self.path) >= _CHECKED_BYTES:
            return
        for (answer,) in self.connection.execute("pragma quick_check(1)"):
            if answer != "ok":
                *_, damage = str(answer).splitlines()
                raise _refusal(self.path, f"the database is damaged: {printable(damage, 120)}")

    # -- tables ----------------------------------------------------------------------

    def _rows(self, table: str, column_names: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
        """Yields the columns of a table; None for those that it does not have. Raises InputError for a row
        that cannot be read.
        """
        count = 0
        try:
            existing = {str(row[1]) for row in self.connection.execute(f'pragma table_info("{table}")')}
            columns = ", ".join(f'"{name}"' if name in existing else "null" for name in column_names)
            for row in self.connection.execute(f'select {columns} from "{table}" limit {_MOST_ROWS}'):
                count += 1
                if count > self.rows_left:
                    raise _refusal(
                        self.path,
                        f"row {count} of {table}: the file has no room for so many: it is damaged",
                    )
                yield row
            self.rows_left -= count
        except sqlite3.Error as error:
            raise _damage_error(self.path, f"row {count} of {table}", error) from None

    def _session_start(self) -> int:
        """Returns the wall clock, ns, at which the times of the file begin; 0 where it is not stated."""
        if _SESSION not in self.tables:
            return 0
        first = next(self._rows(_SESSION, ("utcEpochNs",)), (0,))[0]
        return first if isinstance(first, int) and 0 <= first < LARGEST // 2 else 0

    def _text(self, key: object, otherwise: str) -> str:
        text = self.texts.get(key) if isinstance(key, int) else key
        return text if isinstance(text, str) and text else otherwise

    def _times(self, start: object, end: object) -> tuple[int, int] | None:
        if (
            not isinstance(start, int)
            or not isinstance(end, int)
            or not -LARGEST // 2 <= start <= end <= LARGEST // 2
        ):
            self.left_out += 1
            return None
        return self.base + start, self.base + end

    def _kernels(self) -> Iterator[tuple[int, int, int, int, int, str, str | None, str | None, str]]:
        """Yields (start, end, device, stream, correlation, name, grid, block, name with its namespaces)."""
        if _KERNELS not in self.tables:
            return
        column_names = (
            "start", "end", "deviceId", "streamId", "correlationId", "shortName", "demangledName",
            "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
        )  # fmt: skip
        for start, end, device, stream, correlation, short, long, *sizes in self._rows(
            _KERNELS, column_names
        ):
            times = self._times(start, end)
            if times is not None:
                full = self._text(long, "")
                name = self._text(short, full or _NO_NAME)
                yield (
                    *times, _whole(device, 0), _whole(stream, -1), _whole(correlation, -1), name,
                    _triple(sizes[:3]), _triple(sizes[3:]), full or name,
                )  # fmt: skip

    def _copies(self, table: str, word: str) -> Iterator[tuple[int, int, int, int, int, str, int]]:
        """Yields (start, end, device, stream, correlation, name, bytes)."""
        column_names = ("start", "end", "deviceId", "streamId", "correlationId", "bytes", "copyKind")
        for start, end, device, stream, correlation, size, kind in self._rows(table, column_names):
            times = self._times(start, end)
            if times is not None:
                name = f"{word} {_COPY_KINDS[kind]}" if kind in _COPY_KINDS else word
                yield (
                    *times, _whole(device, 0), _whole(stream, -1), _whole(correlation, -1), name,
                    max(_whole(size, -1), -1),
                )  # fmt: skip

    def _launches(self) -> dict[int, ThreadTime]:
        """Returns correlation -> (start, thread) of the launching calls; their ends and long calls are
        stored.
        """
        if _RUNTIME not in self.tables:
            return {}
        launches: dict[int, ThreadTime] = {}
        column_names = ("correlationId", "start", "end", "globalTid", "nameId")
        for correlation, start, end, thread, name in self._rows(_RUNTIME, column_names):
            if not isinstance(start, int) or not -LARGEST // 2 <= start <= LARGEST // 2:
                continue
            over = end if isinstance(end, int) and start <= end <= LARGEST // 2 else start
            launch = self.base + start, _whole(thread, -1)
            if isinstance(correlation, int):
                launches[correlation], self.over[correlation] = launch, self.base + over
            if over - start >= LEAST_CALL_NS:
                call_name = _VERSION.sub("", self._text(name, _NO_NAME))
                self.host_calls.add(RUNTIME, launch[1], launch[0], over - start, 0, call_name)
        return launches

    def _ranges(self) -> tuple[list[StepMark], Threads]:
        """Returns (the steps; all ranges by thread)."""
        steps: list[tuple[str, StepMark]] = []
        threads: Threads = {}
        if _RANGES not in self.tables:
            return [], threads
        for start, end, text, key, thread in self._rows(
            _RANGES, ("start", "end", "text", "textId", "globalTid")
        ):
            name = self._text(text, self._text(key, ""))
            if not name or not isinstance(start, int) or not isinstance(end, int) or end < start:
                continue
            start, end = self.base + start, self.base + end
            if self.step_names.fit(name):
                steps.append((name, StepMark(-1, start, end, start, end)))
            if start <= LARGEST:
                length = min(end - max(start, -LARGEST), LARGEST)
                threads.setdefault(_whole(thread, -1), Ranges("q")).add(max(start, -LARGEST), length, name, 0)
        return self.step_names.marks(steps), threads

    # -- a device --------------------------------------------------------------------

    def _device(
        self,
        rows: list[_Row],
        launches: dict[int, ThreadTime],
        steps: Sequence[StepMark],
        inside: dict[int, Surroundings],
    ) -> Recording:
        ops, columns = OpColumns(), DeviceColumns()
        names = self.names
        unclear = {full for full in {row[10] for row in rows} if collective_in_name(full) is not None}
        for start, end, line, _, stream, correlation, name, size, grid, block, full in rows:
            operation, phase, _, layer = inside.get(correlation, NOTHING)
            category = _KERNEL if phase is None else CATEGORIES.index(phase)
            if name.startswith(("Memcpy", "Memset")):
                category = _COPY
            elif names.communicates(full) or names.communicates(name):
                category = _COMM
                columns.collectives[len(ops.name)] = CollectiveInfo(kernel_kind(full))
            elif full in unclear:
                self.unclear.add(full)
            ops.name.append(name)
            ops.group.append("comm" if category == _COMM else None)
            ops.start.append(start)
            ops.end.append(end)
            ops.line.append(line)
            ops.shape.append(None)
            ops.dtype.append(None)
            ops.stated_category.append(category)
            columns.stream.append(stream)
            columns.correlation.append(correlation)
            columns.operation.append(operation)
            columns.layer.append(layer)
            columns.bytes.append(size)
            columns.grid.append(grid)
            columns.block.append(block)
            columns.occupancy.append(-1)
        launch = [
            thread_time[0] if (thread_time := launches.get(row[5])) is not None else None for row in rows
        ]
        step, profiler_steps = steps_of_device(steps, ops, launch)
        return Recording(
            self.path,
            None,
            None,
            rows[0][3],
            ops,
            columns,
            step,
            profiler_steps,
            {},
            job="nsys",
            form="nsys",
        )

    def _add_gaps(self, recording: Recording, started: dict[int, ThreadTime], ranges: Threads) -> None:
        """Adds why a device ran nothing, in its steps and in all that was recorded."""
        ops, columns = recording.ops, recording.columns
        windows = [(step.start, step.end) for step in recording.steps]
        gaps = find_relevant_gaps(ops.start, ops.end, [(recording.first_ns, recording.last_ns), *windows])
        launches = {}
        for gap in gaps:
            correlation = columns.correlation[gap.op]
            if correlation in started:
                launches[gap.op] = Launch(self.over[correlation], started[correlation][1])
        launchers = launchers_of(launch[1] for launch in started.values())
        words = dict(zip(launchers, thread_words(launchers), strict=True))
        host = HostActivity({}, ranges, self.host_calls, self.step_names.fit, list, 1.0, LARGEST)
        columns.gaps, _ = gap_columns(gaps, launches, host, words)

    def _say(self, severity: Severity, code: str, message: str) -> None:
        self.diagnostics.append(Diagnostic(severity, code, message, self.path))


def _whole(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) else otherwise


def _triple(sizes: list[Any]) -> str | None:
    return " x ".join(map(str, sizes)) if all(isinstance(size, int) for size in sizes) else None


def _damage_error(path: str, part: str, error: Exception) -> InputError:
    """Returns the error for a database whose `part` cannot be read; for a truncated one it says where."""
    message = f"{part}: the database is damaged: {printable(str(error), 120)}"
    with open(path, "rb") as file:
        head = file.read(_HEADER)
    size = os.path.getsize(path)
    page = int.from_bytes(head[16:18], "big")
    expected_size = (1 << 16 if page == 1 else page) * int.from_bytes(head[28:32], "big")
    if size < expected_size:
        message += f"; the file ends at byte {size} of {expected_size}"
    return _refusal(path, message)


def _refusal(path: str, message: str) -> InputError:
    return InputError(Diagnostic("error", "bad-export", message, path))
