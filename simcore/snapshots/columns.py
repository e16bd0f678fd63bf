"""The segments and events of a memory snapshot as columns; runs in the process of
`simcore/unpickling/worker.py`.

The format is that of `_memorySnapshot` in torch/csrc/cuda/Module.cpp and memory_snapshot.cpp: `segments` with
their `blocks`, and for each device a list of events. `memory_snapshot()` gives a list of segments alone.
"""

from __future__ import annotations

from array import array
from operator import itemgetter

from simcore.unpickling.worker import NONE, DumpError, index_stacks, integer_of, text_of

if False:  # `typing` takes 5 ms to import.
    from collections.abc import Sequence
    from typing import Any

ACTIONS = (
    "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
    "segment_unmap", "snapshot", "oom",
)  # fmt: skip
_ACTION_OF = {name: index for index, name in enumerate(ACTIONS)}
UNKNOWN = len(ACTIONS)
# `active_awaiting_free` is the older word.
STATES = {"active_allocated": 0, "active_pending_free": 1, "active_awaiting_free": 1, "inactive": 2}
_SEGMENT_KEYS = ("device", "address", "total_size", "stream")
_EVENT_KEYS = ("addr", "size", "stream", "time_us", "action", "frames")
_EVENT = itemgetter(*_EVENT_KEYS)
_KEYS = ("segments", "device_traces")
# Bytes that an event, a block and an annotation take in a pickle at least.
_LEAST_BYTES = 4
_MOST_DEVICES, _MOST_SETTINGS = 256, 64


def read_table(snapshot: object, size: int) -> dict[str, Any]:
    """Returns the columns of a snapshot of `size` bytes. Raises `DumpError`, MemoryError."""
    if isinstance(snapshot, (list, tuple)):
        snapshot = {"segments": snapshot}
    if not isinstance(snapshot, dict) or not any(key in snapshot for key in _KEYS):
        raise DumpError(f"it has none of {', '.join(_KEYS)}")
    table = _Table(size)
    table.take_segments(snapshot.get("segments", ()))
    table.take_traces(snapshot.get("device_traces", ()))
    columns = table.columns()
    columns["missing"] = [key for key in _KEYS if key not in snapshot]
    columns["settings"] = _settings(snapshot.get("allocator_settings"))
    columns["annotations"] = _annotations(snapshot.get("external_annotations"))
    return columns


def _settings(settings: object) -> list[tuple[str, str]]:
    """Returns (name, value as text) of each."""
    if not isinstance(settings, dict) or len(settings) > _MOST_SETTINGS:
        return []
    plain = ((key, value) for key, value in settings.items() if isinstance(value, (str, int, float, bool)))
    return [(text_of(key), text_of(str(value))) for key, value in plain if isinstance(key, str)]


def _annotations(annotations: object) -> list[tuple[int, int, str, str]]:
    """Returns (device, us, name, stage) of each."""
    rows = []
    for value in annotations if isinstance(annotations, (list, tuple)) else ():
        if isinstance(value, dict):
            device, time = integer_of(value.get("device")), integer_of(value.get("time_us"))
            rows.append((device, time, text_of(value.get("name")), text_of(value.get("stage"))))
    return rows


class _Table:
    """Segments, blocks and events. wrong: how many values of each key are none that it can have."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.stacks: list[object] = []
        self.segments = {key: array("q") for key in _SEGMENT_KEYS}
        self.is_expandable, self.is_large = bytearray(), bytearray()
        # By block the index of its segment.
        self.of_segment, self.block_address = array("q"), array("q")
        self.block_size, self.block_requested, self.block_state = array("q"), array("q"), bytearray()
        self.devices: list[dict[str, Any]] = []
        self.wrong: dict[str, int] = {}

    def _count_wrong(self, key: str, count: int = 1) -> None:
        if count:
            self.wrong[key] = self.wrong.get(key, 0) + count

    def _list(self, value: object, key: str) -> Sequence[Any]:
        if not isinstance(value, (list, tuple)):
            raise DumpError(f"its {key} are no list")
        if len(value) * _LEAST_BYTES > self.size:
            raise DumpError(f"it repeats its {key} {len(value)} times")
        return value

    def take_segments(self, segments: object) -> None:
        blocks = 0
        for segment in self._list(segments, "segments"):
            if not isinstance(segment, dict):
                self._count_wrong("segments")
                continue
            for key, column in self.segments.items():
                column.append(integer_of(segment.get(key, 0 if key == "device" else None)))
            self.is_expandable.append(segment.get("is_expandable") is True)
            self.is_large.append(segment.get("segment_type") == "large")
            of_segment = self._list(segment.get("blocks", ()), "blocks")
            blocks += len(of_segment)
            if blocks * _LEAST_BYTES > self.size:
                raise DumpError(f"it repeats its blocks {blocks} times")
            self._take_blocks(of_segment, self.segments["address"][-1])

    def _take_blocks(self, blocks: Sequence[Any], address: int) -> None:
        index = len(self.is_expandable) - 1
        for block in blocks:
            if not isinstance(block, dict):
                self._count_wrong("blocks")
                continue
            size, state = integer_of(block.get("size")), block.get("state")
            code = STATES.get(state) if isinstance(state, str) else None
            if size < 0 or code is None:
                self._count_wrong("blocks")
                continue
            requested_size, frames = integer_of(block.get("requested_size")), block.get("frames")
            if "history" in block:
                # Before 2.1 a block has what was allocated in it.
                requested_size, frames = _of_history(block["history"], requested_size)
            own = integer_of(block.get("address"))
            self.of_segment.append(index)
            self.block_address.append(address if own == NONE else own)
            self.block_size.append(size)
            self.block_requested.append(min(requested_size, size) if requested_size >= 0 else size)
            self.block_state.append(code)
            self.stacks.append(frames)
            address = min(address + size, (1 << 63) - 1)

    def take_traces(self, traces: object) -> None:
        count = 0
        for events in self._list(traces, "device_traces")[:_MOST_DEVICES]:
            events = self._list(events, "events")
            count += len(events)
            if count * _LEAST_BYTES > self.size:
                raise DumpError(f"it repeats its events {count} times")
            self.devices.append(self._take_events(events))

    def _take_events(self, events: Sequence[Any]) -> dict[str, Any]:
        rows = [event for event in events if type(event) is dict]
        self._count_wrong("events", len(events) - len(rows))
        for row in rows:
            if "addr" not in row:
                # Of an OOM what was free stands in its place.
                row["addr"] = row.get("device_free")
        try:
            values = list(zip(*map(_EVENT, rows), strict=True)) if rows else [()] * len(_EVENT_KEYS)
        except KeyError:
            values = [tuple([row.get(key) for row in rows]) for key in _EVENT_KEYS]
        *integers, action, frames = values
        columns: dict[str, Any] = {
            key: self._integers(of_key, key) for key, of_key in zip(_EVENT_KEYS, integers, strict=False)
        }
        try:
            columns["action"] = bytes([_ACTION_OF.get(name, UNKNOWN) for name in action])
        except TypeError:
            codes = [_ACTION_OF.get(name, UNKNOWN) if isinstance(name, str) else UNKNOWN for name in action]
            columns["action"] = bytes(codes)
        columns["first_stack"] = len(self.stacks)
        columns["count"] = len(rows)
        self.stacks += frames
        return columns

    def _integers(self, values: Sequence[Any], key: str) -> bytes:
        try:
            return array("q", values).tobytes()
        except (TypeError, OverflowError):
            column = array("q", map(integer_of, values))
        # Null is how a file says that there is none.
        absent = sum([value is None or value == NONE for value in values])
        self._count_wrong(key, sum(map(NONE.__eq__, column)) - absent)
        return column.tobytes()

    def columns(self) -> dict[str, Any]:
        """Returns the columns by name: bytes of arrays; stacks are a table of texts with an index into it."""
        texts, indices = index_stacks(self.stacks)
        for device in self.devices:
            first = device.pop("first_stack")
            device["stack"] = indices[first : first + device["count"]].tobytes()
        blocks = len(self.block_state)
        return {
            "segments": {key: column.tobytes() for key, column in self.segments.items()},
            "is_expandable": bytes(self.is_expandable), "is_large": bytes(self.is_large),
            "of_segment": self.of_segment.tobytes(), "block_address": self.block_address.tobytes(),
            "block_size": self.block_size.tobytes(), "block_requested": self.block_requested.tobytes(),
            "block_state": bytes(self.block_state), "block_stack": indices[:blocks].tobytes(),
            "stacks": texts, "devices": self.devices, "wrong": self.wrong,
        }  # fmt: skip


def _of_history(history: object, requested_size: int) -> tuple[int, object]:
    """Returns (bytes that were asked for, frames) of the last allocation in a block."""
    if isinstance(history, (list, tuple)) and history and isinstance(history[0], dict):
        return integer_of(history[0].get("real_size")), history[0].get("frames")
    return requested_size, None
