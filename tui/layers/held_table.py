"""What devices hold at their peaks, by stack, as a table."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from simcore.records import NamedTuple
from simcore.trace.figures import DeviceMemory, HeldMemory, SnapshotTables
from simcore.units import percent, plural
from tui.frame import cells, end_cut
from tui.layers.row_table import RowTable, value_in
from tui.layers.table import TableSelection
from tui.listing import ListColumn

_SORTED_BY: Mapping[str, tuple[str, bool]] = {
    "device": ("device", False), "MB": ("bytes", True), "count": ("allocations", True),
    "allocated in": ("site", False),
}  # fmt: skip


class _Row(NamedTuple):
    device: DeviceMemory
    holder: HeldMemory


class HeldTable(RowTable[_Row]):
    """The table of snapshots: see `Table`."""

    cannot_split = "a stack has one line"

    def __init__(self, tables: SnapshotTables) -> None:
        self._devices = sorted(tables.devices, key=lambda device: -device.peak_allocated)
        rows = [_Row(device, holder) for device in self._devices for holder in device.holders]
        super().__init__(tables, rows, _SORTED_BY)

    def words_of(self, row: _Row) -> str:
        frames = (str(part) for frame in row.holder.frames for part in frame)
        return " ".join((row.device.name, row.holder.words, *frames))

    def value_of(self, row: _Row, key: str) -> tuple[int, str]:
        return (row.device.track_id, "") if key == "device" else value_in(row.holder, key)

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

    def count_text(self) -> str:
        when = "the peak" if len(self._devices) == 1 else "the peaks"
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

    def find_selection(self, line: int) -> TableSelection | None:
        device, holder = self.of_line(line)
        start = holder.start_ns
        return TableSelection(device.track_id, start, max(device.peak_ns, start + 1), holder.stream)

    def origin(self, line: int, width: int) -> tuple[str, list[tuple[str, str]]]:
        device, holder = self.of_line(line)
        title = f"{holder.bytes} B in {plural(holder.allocations, 'allocation')} at the peak of {device.name}"
        texts = [f"{name}  {file}:{line_number}" for name, file, line_number in holder.frames]
        return title, [(end_cut(cells(text, width), width), "") for text in texts or [holder.words]]
