"""Memory snapshots on the screens."""

from __future__ import annotations

from pathlib import Path

import pytest

from simcore.parameters import Parameters, RunInput
from simcore.runs.snapshot import SnapshotRun, run_snapshots
from simcore.snapshots.history import NEVER
from simcore.sources.inputs import open_input
from simcore.trace.lane_spans import KINDS
from tests.snapshots.made import MB, STACKS, Allocator, random_run, snapshot, write
from tui.frame import ASCII, BLOCKS, width_of
from tui.layers.held_table import HeldTable
from tui.layers.view import table_of
from tui.summary.frame import draw
from tui.summary.model import HOLDERS, NOTES, SummaryModel
from tui.why.frame import WhyModel
from tui.why.snapshot import draw_failures

SIZES = [(200, 50), (120, 36), (80, 24), (40, 12)]


def job() -> list[Allocator]:
    """A device whose memory grows and falls twice, with a request that fails, and a small one."""
    first = Allocator(0)
    for step in range(2):
        layers = []
        for layer in range(8):
            first.now += 5000
            layers.append(first.alloc((20 + 7 * layer) * MB, STACKS[layer % 2]))
        logits = first.alloc(200 * MB, STACKS[2])
        if step:
            first.fail(900 * MB, 20 * MB, STACKS[2])
        first.now += 5000
        first.free(logits)
        for address in reversed(layers):
            first.now += 3000
            first.free(address)
    return [first, random_run(4, 60, 1)]


def run_of_content(path: Path, allocators: list[Allocator]) -> SnapshotRun:
    """The run of a snapshot that is written at a path."""
    write(path, snapshot(*allocators))
    return run_snapshots(RunInput(open_input(str(path)), Parameters()))


@pytest.fixture(name="run")
def run_of_job(tmp_path: Path) -> SnapshotRun:
    return run_of_content(tmp_path / "snapshot.pickle", job())


def texts(model: SummaryModel, width: int, height: int, glyphs: object = BLOCKS) -> list[str]:
    lines = draw(model, width, height, glyphs, "")  # type: ignore[arg-type]
    assert len(lines) <= height
    assert all(width_of(line) <= width for line in lines)
    return ["".join(text for text, _ in line) for line in lines]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("glyphs", [BLOCKS, ASCII], ids=["blocks", "ascii"])
def test_first_screen_has_the_peak_and_what_is_held(
    run: SnapshotRun, size: tuple[int, int], glyphs: object
) -> None:
    tables = run.figures.snapshot
    lines = texts(SummaryModel(run), *size, glyphs)
    assert tables.headline[:20] in lines[0]
    largest = tables.highest.holders[0]
    assert any(f"{largest.bytes / 1e6:.1f}" in line for line in lines)


def test_each_column_of_the_chart_is_as_high_as_its_level(run: SnapshotRun) -> None:
    width, height = 120, 50
    lines = texts(SummaryModel(run), width, height, ASCII)
    top = next(at for at, line in enumerate(lines) if "reserved alone" in line) + 1
    rows = next(at for at, line in enumerate(lines) if "Allocated at the peak" in line) - top
    chart = lines[top : top + rows]
    tables, columns = run.figures.snapshot, width - 12
    most = tables.devices[0].most_reserved
    edges = [run.length * column // columns for column in range(columns + 1)]
    allocated, reserved = tables.find_levels(0, edges)
    for column in range(columns):
        cells = [line[11 + column] for line in chart]
        assert cells.count("a") == int(allocated[column] * rows / most + 0.5)
        assert sum(cell != " " for cell in cells) == -(-reserved[column] * rows // most)
    assert f"{most / 1e6:.0f} MB" in chart[0]


def test_h_and_l_choose_the_device_and_enter_leads_to_the_largest_allocation(run: SnapshotRun) -> None:
    model = SummaryModel(run)
    texts(model, 120, 36)
    assert (model.panel, model.panels) == (HOLDERS, (HOLDERS, NOTES))
    assert model.cursor(HOLDERS) == (0, 0)
    target = model.target()
    assert target is not None
    history = run.histories[0]
    spans = run.lanes.spans(0, target.stream)
    sizes = [
        history.allocations.size[row]
        for start, row in zip(spans.start, spans.op, strict=True)
        if start == target.start_ns
    ]
    holder = run.figures.snapshot.devices[0].holders[0]
    assert max(sizes) <= holder.bytes
    model.move(0, 1)
    assert model.cursor(HOLDERS)[1] == 1
    assert "device 1" in "\n".join(texts(model, 120, 36))


def test_a_lane_is_a_device_and_below_it_its_segments(run: SnapshotRun) -> None:
    lanes, allocated = run.lanes, KINDS.index("allocated")
    for track_id, history in enumerate(run.histories):
        whole = lanes.spans(track_id, None)
        assert whole.start[0] == 0
        assert whole.end[-1] == run.length
        assert list(whole.end[:-1]) == list(whole.start[1:])
        streams = lanes.streams(track_id)
        assert len(streams) == len(history.arenas)
        rows = [row for stream in streams for row in lanes.spans(track_id, stream).op]
        assert set(rows) == set(range(len(history.allocations)))
        for stream in streams:
            content = lanes.content(track_id, stream)
            assert all(start < end for start, end in zip(content.spans.start, content.spans.end, strict=True))
            for end, row, kind in zip(
                content.spans.end, content.spans.op, content.spans.category, strict=True
            ):
                if kind == allocated and history.allocations.released[row] == NEVER:
                    assert end == run.length
            cells = content.cell_spans
            assert list(cells.end[:-1]) == list(cells.start[1:])


def test_words_of_an_allocation_have_size_place_and_frames(run: SnapshotRun) -> None:
    lanes = run.lanes
    stream = next(iter(lanes.streams(0)))
    rows = dict(lanes.words.detail_rows(0, stream, 0, None))
    assert "model.py" in rows["allocated in"] or "train.py" in rows["allocated in"]
    assert rows["size"].endswith("as it was asked for")
    summary = lanes.words.summarize(0, stream, 0, lanes.track(0).ranks)
    assert summary.description
    assert "allocated" in lanes.words.summarize(0, None, 0, lanes.track(0).ranks).description
    lane = run.model.memory_lane(0)
    assert max(lane.peak_bytes([0, run.length])) == run.figures.snapshot.devices[0].peak_allocated


def test_table_of_stacks_sorts_filters_and_leads_to_the_segment(run: SnapshotRun) -> None:
    table = table_of(run)
    assert isinstance(table, HeldTable)
    assert table.of_line(0).device.track_id == 0
    table.sort("allocations", True)
    counts = [table.of_line(line).holder.allocations for line in range(len(table.lines))]
    assert counts == sorted(counts, reverse=True)
    table.filter("attention")
    assert 0 < len(table.lines) <= 2
    selection = table.find_selection(0)
    assert selection is not None
    assert selection.stream in run.lanes.streams(selection.track_id)
    _, lines = table.origin(0, 80)
    assert any("model.py" in text for text, _ in lines)


@pytest.mark.parametrize("size", SIZES)
def test_screen_4_has_what_failed(run: SnapshotRun, size: tuple[int, int]) -> None:
    lines = draw_failures(WhyModel(run), *size, BLOCKS)
    assert len(lines) == size[1]
    assert all(width_of(line) <= size[0] for line in lines)
    text = "\n".join("".join(part for part, _ in line) for line in lines)
    assert size[1] < 24 or f"{900 * MB / 1e6:.1f} MB asked for" in text


def test_search_finds_a_function_of_any_frame(run: SnapshotRun) -> None:
    lanes = run.lanes
    stream = next(iter(lanes.streams(0)))
    columns = lanes.search_columns(0, stream)
    assert any("empty_cuda" in " ".join(names) for names in columns.names)
    assert len(columns.kind) == len(lanes.spans(0, stream).op)
