"""Opens memory snapshots: a file, or a directory with one file a rank."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from simcore.diagnostics import Diagnostic, InputError, printable
from simcore.records import replace
from simcore.snapshots.record import (
    OOM,
    Annotation,
    Blocks,
    DeviceRecord,
    Events,
    Segment,
    SnapshotRecord,
)
from simcore.units import plural
from simcore.unpickling.files import FileReader
from simcore.workload.ignored_files import IgnoredFiles

# The file that makes the columns of a snapshot, in a process of its own.
COLUMNS = Path(__file__).with_name("columns.py")


def open_snapshots(path: str, names: Sequence[str], others: IgnoredFiles) -> SnapshotRecord:
    """Returns the record of a directory's snapshots. others: its other files.

    Raises InputError where no snapshot can be read.
    """
    reader = _Reader(path)
    if others.count:
        reader.say("note", "other-files", others.message(", no memory snapshots"))
    return reader.read(reader.files_by_rank(names))


def read_snapshot(path: str, data: bytes) -> SnapshotRecord:
    """Returns the record of a single snapshot. Raises InputError where it cannot be read."""
    return _Reader(path).read([(None, path)], data)


class _Reader(FileReader):
    """Reads snapshots into one record."""

    columns = COLUMNS

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.settings: tuple[tuple[str, str], ...] = ()

    def read(self, files: Sequence[tuple[int | None, str]], data: bytes | None = None) -> SnapshotRecord:
        """Returns the record. files, data: see `tables_of`."""
        by_file = [(rank, self._devices(path, table)) for rank, path, table in self.tables_of(files, data)]
        self.report_unread(has_read=bool(by_file))
        devices = _with_ids(by_file, is_alone=len(files) == 1)
        if not devices:
            message = "found no segment and no event of a device: nothing was allocated or recorded"
            raise InputError(Diagnostic("error", "bad-snapshot", message, self.path))
        return SnapshotRecord(self.path, devices, len(by_file), self.settings, tuple(self.diagnostics))

    def refuse(self, path: str, why: str) -> None:
        message = f"found no memory snapshot that can be read: {printable(why)}"
        self.errors.append(Diagnostic("error", "bad-snapshot", message, path, 1, 1))

    def _devices(self, path: str, table: dict[str, Any]) -> list[DeviceRecord]:
        """Returns the devices of a file that have a segment or an event."""
        self._say_of(path, table)
        self.settings = self.settings or tuple((name, value) for name, value in table["settings"])
        columns = {key: array("q", values) for key, values in table["segments"].items()}
        segments: dict[int, list[Segment]] = {}
        device_of = columns["device"]
        rows = zip(
            columns["address"], columns["total_size"], columns["stream"], table["is_expandable"],
            table["is_large"], strict=True,
        )  # fmt: skip
        for device, (address, size, stream, is_expandable, is_large) in zip(device_of, rows, strict=True):
            segment = Segment(address, max(size, 0), stream, bool(is_expandable), bool(is_large))
            segments.setdefault(device, []).append(segment)
        blocks = _blocks_of(table, device_of)
        stacks = table["stacks"]
        annotations: dict[int, list[Annotation]] = {}
        for device, time_us, name, stage in table["annotations"]:
            annotations.setdefault(device, []).append(Annotation(time_us, name, stage))
        count = max(len(table["devices"]), *(device + 1 for device in segments if device < 1 << 16), 0)
        records = []
        for device in range(count):
            of = table["devices"][device] if device < len(table["devices"]) else None
            events = Events() if of is None else _events_of(of)
            if len(events) or device in segments:
                records.append(
                    DeviceRecord(
                        device, None, device, path, tuple(segments.get(device, ())),
                        blocks.get(device, Blocks()), events, tuple(annotations.get(device, ())), stacks,
                    )
                )  # fmt: skip
        return records

    def _say_of(self, path: str, table: dict[str, Any]) -> None:
        """Reports what is odd in a snapshot."""
        if "device_traces" in table["missing"] or not any(device["count"] for device in table["devices"]):
            message = "found no events: what was allocated before is not known; record them with "
            message += "torch.cuda.memory._record_memory_history(max_entries=100000)"
            self.say("note", "no-history", message, path)
        if "segments" in table["missing"]:
            message = "found no segments: what was allocated before the events is not known"
            self.say("warning", "missing-key", message, path)
        self.say_wrong(path, table["wrong"])
        unknown = sum(sum(action > OOM for action in device["action"]) for device in table["devices"])
        if unknown:
            message = f"{plural(unknown, 'event')} with an action that is not known, ignored"
            self.say("note", "unknown-action", message, path)


def _blocks_of(table: dict[str, Any], device_of: array[int]) -> dict[int, Blocks]:
    """Returns the blocks by device."""
    blocks: dict[int, Blocks] = {}
    names = ("of_segment", "block_address", "block_size", "block_requested")
    columns = [array("q", table[name]) for name in names]
    stack = array("I", table["block_stack"])
    for segment, address, size, requested, state, at in zip(
        *columns, table["block_state"], stack, strict=True
    ):
        device = device_of[segment]
        of = blocks.get(device)
        if of is None:
            of = blocks[device] = Blocks()
        of.address.append(address)
        of.size.append(size)
        of.requested.append(requested)
        of.state.append(state)
        of.stack.append(at)
    return blocks


def _events_of(table: dict[str, Any]) -> Events:
    address, size, stream, time_us = (
        array("q", table[name]) for name in ("addr", "size", "stream", "time_us")
    )
    return Events(table["action"], address, size, stream, time_us, array("I", table["stack"]))


def _with_ids(
    by_file: Sequence[tuple[int | None, list[DeviceRecord]]], is_alone: bool
) -> tuple[DeviceRecord, ...]:
    """Returns the devices of all files: of several files each has the id of its rank, where it has one device
    and a rank; else they are counted.
    """
    if is_alone:
        return tuple(by_file[0][1])
    are_plain = all(rank is not None and len(devices) <= 1 for rank, devices in by_file)
    results: list[DeviceRecord] = []
    for index, (rank, devices) in enumerate(by_file):
        for device in devices:
            known_rank = index if rank is None else rank
            own_id = known_rank if are_plain else len(results)
            results.append(replace(device, id=own_id, rank=known_rank))
    return tuple(results)
