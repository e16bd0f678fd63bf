"""What devices hold at their peaks, by stack, as a table."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from functools import cached_property

from simcore.records import NamedTuple
from simcore.trace.figures import DeviceMemory, HeldMemory, SnapshotTables
from simcore.units import percent, plural
from tui.frame import cells, end_cut
from tui.layers.table import Table, TableSelection
from tui.listing import ListColumn

# Heading -> key that it sorts by, and whether the largest comes first.
_SORTED_BY: Mapping[str, tuple[str, bool]] = {
    "device": ("device", False), "MB": ("bytes", True), "count": ("allocations", True),
    "allocated in": ("site", False),
}  # fmt: skip


class _Row(NamedTuple):
    device: DeviceMemory
    holder: HeldMemory


class HeldTable(Table):
    """The table of snapshots: see `Table`."""

    cannot_split = "a stack has one line"

    def __init__(self, tables: SnapshotTables) -> None:
        self._tables = tables
        devices = sorted(tables.devices, key=lambda device: -device.peak_allocated)
        self.rows = [_Row(device, holder) for device in devices for holder in device.holders]
        self.key, self.descending, self.typed = "", True, ""
        self._sorted_indices: Sequence[int] = self.first_order()
        self.show(self._sorted_indices)

    @property
    def sorted_by(self) -> Mapping[str, tuple[str, bool]]:
        return _SORTED_BY

    @property
    def of_path(self) -> Collection[str]:
        return ()

    @property
    def subject(self) -> object:
        return self._tables

    def first_order(self) -> Sequence[int]:
        return range(len(self.rows))

    @cached_property
    def _words(self) -> list[str]:
        texts = []
        for row in self.rows:
            frames = (str(part) for frame in row.holder.frames for part in frame)
            texts.append(" ".join((row.device.name, row.holder.words, *frames)).lower())
        return texts

    def matching(self, typed: str, indices: Sequence[int]) -> Sequence[int]:
        for word in typed.lower().split():
            indices = [index for index in indices if word in self._words[index]]
        return indices

    def sort(self, key: str, descending: bool) -> None:
        self.key, self.descending = key, descending
        self._sorted_indices = self.first_order()
        if key:
            values = [self._value(row, key) for row in self.rows]
            self._sorted_indices = sorted(self._sorted_indices, key=values.__getitem__, reverse=descending)
        self.filter(self.typed)

    @staticmethod
    def _value(row: _Row, key: str) -> tuple[int, str]:
        if key == "device":
            return row.device.track_id, ""
        value = getattr(row.holder, key)
        return (value, "") if isinstance(value, int) else (0, str(value))

    def cannot_sort(self, heading: str) -> str:
        return "" if heading in _SORTED_BY else "shares sort as the bytes do"

    def columns_for(self, width: int) -> list[ListColumn]:
        return [
            ListColumn("device", 16 if width >= 100 else 9, True),
            ListColumn("MB", 10, False),
            ListColumn("% of peak", 9, False),
            ListColumn("count", 7, False),
            ListColumn("allocated in", max(width - (50 if width >= 100 else 43), 12), True, ends=True),
        ]

    def texts(self, line: int) -> dict[str, str]:
        device, holder = self.of_line(line)
        return {
            "device": device.name, "MB": f"{holder.bytes / 1e6:.1f}",
            "% of peak": percent(holder.bytes, device.peak_allocated), "count": str(holder.allocations),
            "allocated in": holder.words,
        }  # fmt: skip

    def of_line(self, line: int) -> _Row:  # type: ignore[override]
        """Returns the device and the stack of a row."""
        index: int = self.lines[line]
        return self.rows[index]

    def count_text(self) -> str:
        when = "the peak" if len(self._tables.devices) == 1 else "the peaks"
        return f"{plural(len(self.rows), 'stack')} at {when}"

    def left(self) -> str:
        return f"{len(self.lines)} of {plural(len(self.rows), 'stack')}"

    def order(self) -> tuple[str, str]:
        return "the device with the highest peak first, the most bytes first", "most bytes first"

    def legend(self, columns: Sequence[ListColumn], short: bool) -> str:
        return "" if short else "bytes as they were asked for, at the peak of each device"

    def no_match(self, typed: str) -> str:
        return "no stack has these words" if typed.strip() else "nothing is allocated"

    def mark(self, line: int) -> Hashable:
        device, holder = self.of_line(line)
        return device.track_id, holder.frames and tuple(holder.frames)

    def line_of(self, mark: Hashable) -> int:
        return next((line for line in range(len(self.lines)) if self.mark(line) == mark), 0)

    def find_selection(self, line: int) -> TableSelection | None:
        device, holder = self.of_line(line)
        start = holder.start_ns
        return TableSelection(device.track_id, start, max(device.peak_ns, start + 1), holder.stream)

    def origin(self, line: int, width: int) -> tuple[str, list[tuple[str, str]]]:
        device, holder = self.of_line(line)
        title = f"{holder.bytes} B in {plural(holder.allocations, 'allocation')} at the peak of {device.name}"
        texts = [f"{name}  {file}:{line_number}" for name, file, line_number in holder.frames]
        return title, [(end_cut(cells(text, width), width), "") for text in texts or [holder.words]]
