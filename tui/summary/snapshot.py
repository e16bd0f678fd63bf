"""The first screen of memory snapshots: the peak in sentences, both levels over time, what is held then."""

from __future__ import annotations

from simcore.trace.figures import DeviceMemory, HeldMemory, SnapshotTables
from simcore.units import duration, percent
from tui.frame import (
    ASCII,
    Glyphs,
    Line,
    cells,
    count_title,
    end_cut,
    fitted,
    rows_around,
    rule,
)
from tui.summary.model import HOLDERS, NOTES, SummaryModel
from tui.summary.panels import first_sentences, note_lines

# The least rows of the table, and the most of notes, of the chart and of devices.
_LEAST_TABLE, _MOST_NOTES, _MOST_CHART, _MOST_DEVICES = 5, 3, 16, 6
# The least rows of a screen with a table of devices.
_TALL = 16
# Cells of the scale of the chart.
_SCALE = 10


def draw_snapshot(model: SummaryModel, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Returns the lines of the screen: sentences, devices, levels, what is held at the peak, notes."""
    model.set_panels((HOLDERS, NOTES))
    tables = model.results.figures.snapshot
    assert tables is not None
    at, device_index = model.cursor(HOLDERS)
    device = tables.devices[device_index]
    notes = model.notes
    note_rows = min(len(notes), _MOST_NOTES if height > 30 else 1)
    below = (
        [
            rule(count_title("Notes", note_rows, len(notes)), width, glyphs),
            *note_lines(notes, model.row(NOTES), width, note_rows, model.panel == NOTES),
        ]
        if notes
        else []
    )
    device_rows = min(_MOST_DEVICES, height // 6) if height >= _TALL else 0
    devices = _device_lines(tables, device_index, width, device_rows)
    table = max(_LEAST_TABLE, min(len(device.holders) + 2, height // 3))
    room = height - len(below) - len(devices) - table - 1
    most = max(room // 2, 2)
    words = first_sentences(model.results.figures.words, width, most)[:most]
    chart_rows = min(room - len(words) - 1, _MOST_CHART)
    chart = _chart_lines(model, tables, device, (width, chart_rows), glyphs)
    above = [rule(f"Memory: {tables.headline}", width, glyphs), *words, *devices, *chart]
    rows = max(height - len(above) - len(below) - 2, 1)
    holder_lines = _holder_lines(device, at, model.panel == HOLDERS, width, rows)
    mark = f" in {cells(device.annotation, 30)}" if device.annotation else ""
    title = f"Allocated at the peak of {device.name}, at {duration(device.peak_ns)}{mark}"
    more = len(device.holders) - len(rows_around(at, len(device.holders), rows))
    part = f"{len(device.holders)} stacks" if more > 0 else ""
    frame = [*above, rule(end_cut(title, width - 12 - len(part)), width, glyphs, part), *holder_lines]
    frame += [[]] * (height - len(below) - len(frame)) + below
    return [fitted(line, width) for line in frame[:height]]


def _device_lines(tables: SnapshotTables, device_index: int, width: int, rows: int) -> list[Line]:
    """Returns a heading and a row for each device around the chosen one; nothing for one device."""
    count = len(tables.devices)
    if count == 1 or not rows:
        return []
    heading = f"   {'device':<18}{'allocated MB':>13}{'reserved':>10}{'unused':>9}{'at':>12}{'failed':>8}"
    lines: list[Line] = [[(heading, "accent")]]
    for index in rows_around(device_index, count, rows):
        one = tables.devices[index]
        text = (
            f" {'>' if index == device_index else ' '} {one.name:<18}{one.peak_allocated / 1e6:>13.1f}"
            f"{one.peak_reserved / 1e6:>10.1f}{one.unused / 1e6:>9.1f}{duration(one.peak_ns):>12}"
        )
        failed = f"{len(one.failures) or '':>8}"
        lines.append([(text, "accent" if index == device_index else ""), (failed, "worse")])
    return lines


def _chart_lines(
    model: SummaryModel, tables: SnapshotTables, device: DeviceMemory, size: tuple[int, int], glyphs: Glyphs
) -> list[Line]:
    """Returns what is allocated and reserved over time, the highest row first; nothing in less than 3 rows.

    size: cells and rows.
    """
    width, rows = size
    if rows < 3 or (not device.most_reserved and not device.peak_allocated):
        return []
    columns = max(width - _SCALE - 2, 8)
    length = model.results.lanes.facts.length
    edges = [length * column // columns for column in range(columns + 1)]
    allocated, reserved = tables.find_levels(device.track_id, edges)
    most = max(device.most_reserved, device.peak_allocated)
    lines: list[Line] = []
    for row in reversed(range(rows)):
        scale = f"{most * (row + 1) / rows / 1e6:.0f} MB" if row in (rows - 1, rows // 2) else ""
        line: Line = [(f"{scale:>{_SCALE}} ", "dim")]
        for used, reserved_part in zip(allocated, reserved, strict=True):
            line.append(_chart_cell(used * rows / most - row, reserved_part * rows / most - row, glyphs))
        lines.append(line)
    key = f"{glyphs.fills['allocated']} allocated  {glyphs.fills['reserved']} reserved alone"
    title = f"{device.name} from 0 to {duration(length)}"
    return [rule(title, width, glyphs, key), *lines]


def _chart_cell(used: float, reserved: float, glyphs: Glyphs) -> tuple[str, str]:
    """Returns a cell. used, reserved: how far a column reaches into its row, in rows."""
    if used >= 1 or (glyphs is ASCII and used >= 0.5):
        return glyphs.fills["allocated"], "allocated"
    if used > 0 and glyphs is not ASCII:
        return glyphs.heat[max(int(used * (len(glyphs.heat) - 1)), 1)], "allocated"
    if reserved > 0:
        return glyphs.fills["reserved"], "reserved"
    return " ", ""


def _holder_lines(device: DeviceMemory, at: int, is_panel: bool, width: int, rows: int) -> list[Line]:
    lines: list[Line] = [[(f"   {'MB':>10}{'%':>7}{'count':>8}  allocated in", "accent")]]
    indices = rows_around(at, len(device.holders), max(rows, 1))
    return lines + [
        _holder_line(device, device.holders[index], is_panel and index == at, width) for index in indices
    ]


def _holder_line(device: DeviceMemory, one: HeldMemory, is_focused: bool, width: int) -> Line:
    share = percent(one.bytes, device.peak_allocated)
    site = cells(one.words, 200)
    caller = next((frame for frame in one.frames if frame[1].endswith(".py") and _is_above(one, frame)), None)
    text = f" {'>' if is_focused else ' '} {one.bytes / 1e6:>10.1f}{share:>7}{one.allocations:>8}  {site}"
    line: Line = [(text[:width], "accent" if is_focused else "")]
    if caller is not None and len(text) + 8 < width:
        name, file, line_number = caller
        above = cells(f"  in {name}  {file.rsplit('/', 1)[-1]}:{line_number}", 200)
        line.append((end_cut(above, width - len(text)), "dim"))
    return line


def _is_above(one: HeldMemory, frame: tuple[str, str, int]) -> bool:
    """Returns whether a frame called the one that the row names."""
    texts = [f"{name}  {file.rsplit('/', 1)[-1]}:{line}" for name, file, line in one.frames]
    at = texts.index(one.site) if one.site in texts else len(texts)
    return one.frames.index(frame) > at
