"""The section on memory snapshots: the peak of each device, what is held then by stack, what failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simcore.diagnostics import printable
from simcore.render.report.section import Field, PageOptions, Section, field_lines, remaining_line
from simcore.trace.figures import DeviceMemory, FailedRequest, HeldMemory, SnapshotTables
from simcore.units import duration, percent

if TYPE_CHECKING:
    from simcore.trace.run import Run

_DEVICES, _HOLDERS, _FAILURES, _FRAMES = 32, 12, 8, 6
_SITE = 70


def _mb(size: int) -> str:
    return f"{size / 1e6:.1f}"


_DEVICE: list[Field[DeviceMemory]] = [
    Field("device", lambda one: one.name, left=True),
    Field("allocated", lambda one: _mb(one.peak_allocated)),
    Field("reserved", lambda one: _mb(one.peak_reserved)),
    Field("unused", lambda one: _mb(one.unused)),
    Field("%", lambda one: percent(one.unused, one.peak_reserved)),
    Field("at", lambda one: duration(one.peak_ns)),
    Field("most reserved", lambda one: _mb(one.most_reserved)),
    Field("at the end", lambda one: _mb(one.end_allocated)),
    Field("reserved", lambda one: _mb(one.end_reserved)),
    Field("failed", lambda one: str(len(one.failures) or "")),
]
_FAILURE: list[Field[tuple[str, FailedRequest]]] = [
    Field("device", lambda row: row[0], left=True),
    Field("at", lambda row: duration(row[1].time_ns)),
    Field("asked for", lambda row: _mb(row[1].size)),
    Field("device free", lambda row: _mb(row[1].free)),
    Field("allocated", lambda row: _mb(row[1].allocated)),
    Field("reserved", lambda row: _mb(row[1].reserved)),
    Field("in", lambda row: printable(row[1].site or "-", 40), left=True),
]


def holder_fields(of: DeviceMemory) -> list[Field[HeldMemory]]:
    """Returns the columns of what a device holds at its peak."""
    return [
        Field("MB", lambda one: _mb(one.bytes)),
        Field("%", lambda one: percent(one.bytes, of.peak_allocated)),
        Field("count", lambda one: str(one.allocations)),
        Field("allocated in", lambda one: printable(one.words, _SITE), left=True),
    ]


def lines(run: Run, options: PageOptions) -> list[str]:
    """Returns a line for each device, then what is held at the highest peak, then what failed."""
    tables = run.figures.snapshot
    if tables is None:
        return []
    every = options.every_layer or options.everything
    shown_devices = tables.devices if every else tables.devices[:_DEVICES]
    highest = tables.highest
    holders = highest.holders if every else highest.holders[:_HOLDERS]
    page = [
        "Memory of each device at its peak, MB: allocated as it was asked for, and reserved",
        *field_lines(_DEVICE, shown_devices),
        *remaining_line(len(tables.devices) - len(shown_devices), "more devices", "--all-layers has all"),
        "",
        f"Allocated at the peak of {highest.name}, by stack: the innermost frame of the program",
        *field_lines(holder_fields(highest), holders),
        *remaining_line(len(highest.holders) - len(holders), "more stacks", "--all-layers has all"),
    ]
    largest = next((one for one in highest.holders if len(one.frames) > 1), None)
    if largest is not None:
        page += ["", "The stack that holds most, the innermost frame first", *_frame_lines(largest, every)]
    return page + _failure_lines(tables, every)


def _frame_lines(holder: HeldMemory, every: bool) -> list[str]:
    frames = holder.frames if every else holder.frames[:_FRAMES]
    texts = [printable(f"  {name}  {file}:{line}", 108) for name, file, line in frames]
    more = remaining_line(len(holder.frames) - len(frames), "more frames", "--all-layers has all")
    return [f"  {text.strip()}" for text in texts] + more


def _failure_lines(tables: SnapshotTables, every: bool) -> list[str]:
    rows = [(device.name, failure) for device in tables.devices for failure in device.failures]
    if not rows:
        return []
    shown_rows = rows if every else rows[:_FAILURES]
    return [
        "",
        "Requests that could not be met, MB",
        *field_lines(_FAILURE, shown_rows),
        *remaining_line(len(rows) - len(shown_rows), "more", "--all-layers has all"),
    ]


def values(run: Run, options: PageOptions) -> dict[str, Any]:
    """Returns `snapshot`."""
    tables = run.figures.snapshot
    return {} if tables is None else {"snapshot": tables.values}


SECTION: Section[Run] = Section("snapshot", lines, values)
