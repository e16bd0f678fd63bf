"""The frame of the timeline: as wide and high as the screen, and every figure whole."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.runs.simulated import SimulatedRun
from tests.strategies import Cell, Row, layer, make_workload
from tests.tui.made_runs import line_text, lonely, run, seed, small, some_runs
from tui.frame import ASCII, BLOCKS, Glyphs, text_of, width_of
from tui.frame_view import styles
from tui.timeline.frame import TimelineFrame
from tui.timeline.jumps import set_mark
from tui.timeline.model import TimelineModel

SIZES = [(120, 33), (80, 21)]


def drawn(
    results: SimulatedRun, width: int, height: int, *, unfold: bool = False, colour: bool = True
) -> list[str]:
    """The rows of a frame over the whole step."""
    model = TimelineModel(results)
    if unfold:
        for number in reversed(range(len(model.lanes))):
            model.lane = number
            model.toggle_fold()
    return text_of(TimelineFrame(BLOCKS, colour).draw(model, width, height)).split("\n")


def zoomed(results: SimulatedRun, zooms: int, share: int, unfolded: bool) -> TimelineModel:
    """A model anywhere in a run."""
    model = TimelineModel(results)
    model.cursor_ns = (model.window.step_ns - 1) * share // 1000
    if unfolded:
        model.toggle_fold()
    for _ in range(zooms):
        model.zoom(1, 2)
    return model


@settings(max_examples=60)
@given(
    st.sampled_from([small(), lonely(), lonely(1), lonely(0)]),
    st.integers(20, 400),
    st.integers(1, 80),
    st.integers(0, 40),
    st.integers(0, 1000),
    st.booleans(),
    st.booleans(),
    st.sampled_from([BLOCKS, ASCII]),
)
def test_every_line_is_exactly_as_wide_as_the_screen_and_there_are_as_many_as_it_has_rows(
    results: SimulatedRun,
    width: int,
    height: int,
    zooms: int,
    share: int,
    unfolded: bool,
    colour: bool,
    glyphs: object,
) -> None:
    model = zoomed(results, zooms, share, unfolded)
    lines = TimelineFrame(glyphs, colour).draw(model, width, height)  # type: ignore[arg-type]
    assert len(lines) == height
    assert {width_of(line) for line in lines} == {width}
    assert all("\n" not in text and "\r" not in text for line in lines for text, _ in line)
    if glyphs is ASCII:
        assert text_of(lines).replace("\n", "").isascii()


@pytest.mark.parametrize("width", [20, 79, 80, 99, 100, 120, 200, 400])
def test_seed_002_fits_every_width(width: int) -> None:
    for zooms in (0, 9, 40):
        lines = TimelineFrame(BLOCKS, colour=True).draw(zoomed(seed(), zooms, 500, True), width, 33)
        assert {width_of(line) for line in lines} == {width}


def test_every_role_has_a_style_in_every_colour_system() -> None:
    roles = set()
    for results in some_runs():
        for zooms in (0, 8, 30):
            for height in (33, 21, 8):
                model = zoomed(results, zooms, 300, True)
                for line in TimelineFrame(BLOCKS, colour=True).draw(model, 120, height):
                    roles |= {role for _, role in line}
    assert "fwd reversed" in roles
    assert any(" on " in role for role in roles)
    for system in ("truecolor", "256", "standard", None):
        known = styles(system)
        assert all(known[role] is not None for role in roles)
        with pytest.raises(KeyError):
            known["no such role"]


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_equal_ranks_are_one_lane_with_their_number(width: int, height: int) -> None:
    rows = [row for row in drawn(seed(), width, height) if row[1:2] == "+"]
    assert len(rows) >= 12
    assert all(re.search(r"x64 +49%│", row) for row in rows)


@pytest.mark.parametrize("ranks", [1, 1024, 2**20])
def test_the_busy_share_is_whole_however_many_ranks_are_folded(ranks: int) -> None:
    results = run(make_workload([layer("a", 100_000)], tp=1, pp=1, all_gpus=ranks))
    for width, height in SIZES:
        # What is tall has its label beside its last row.
        row = next(row for row in drawn(results, width, height)[4:] if "%" in row)
        label = row[: row.index("│")]
        assert label.endswith(" 100%"), label


@pytest.mark.parametrize("width", [width for width, _ in SIZES])
def test_the_busy_share_is_whole_on_every_stream_lane(width: int) -> None:
    for row in drawn(seed(), width, 120, unfold=True):
        if re.match(r"[> ][ +-] .*│[^0-9]", row) and "all ranks" not in row and "in view" not in row:
            label = row[: row.index("│")]
            assert label.endswith("%"), label


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_classes_of_one_stage_are_told_apart_by_their_first_rank(width: int, height: int) -> None:
    row = Row("a", Cell(100_000, "ALLREDUCE", "tp", 10**6))
    results = run(make_workload([row], tp=3, pp=2, all_gpus=48))
    rows = [line[: line.index("│")] for line in drawn(results, width, height) if "│" in line]
    labels = [row for row in rows if "+" in row]
    classes = results.simulation.timeline.classes
    assert [rank_class.ranks.first for rank_class in classes] == [0, 6, 24, 30]
    for label, rank_class in zip(labels, classes, strict=True):
        assert re.search(rf"\b{rank_class.ranks.first}\b", label), label
        assert label.endswith("%"), label


def test_a_narrow_screen_names_every_lane() -> None:
    rows = drawn(seed(), 80, 100, unfold=True)
    assert sum(row.startswith("    comp") for row in rows) == 16
    assert [row[3:5] for row in rows if row[1:2] == "-"] == [f"{stage:>2}" for stage in range(16)]


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_lanes_that_do_not_fit_are_counted(width: int, height: int) -> None:
    rows = drawn(seed(), width, height, unfold=True)
    shown = [row for row in rows if re.match(r"[> ][ +-] .*%?│", row) and "all ranks" not in row]
    hidden = next(int(match[1]) for row in rows if (match := re.search(r"(\d+) lanes? below", row)))
    lanes = len([row for row in shown if "in view" not in row and "lane " not in row])
    assert lanes + hidden == 80


def test_the_ruler_marks_the_column_of_the_cursor_and_its_lane_is_reversed_there() -> None:
    model = zoomed(seed(), 3, 400, False)
    lines = TimelineFrame(BLOCKS, colour=True).draw(model, 120, 33)
    column = 24 + model.cursor_column
    assert line_text(lines[3])[column] == "┃"
    assert line_text(lines[3]).count("┃") == 1
    cells = [role for text, role in lines[4] for _ in text]
    row = model.arrangement.rows[0]
    plain = [
        role for text, role in TimelineFrame(BLOCKS, True)._lane_lines(model, row, 1, 23, 1)[0] for _ in text
    ]
    assert [index for index in range(120) if cells[index] != plain[index]][-1] == column


def test_the_cursor_on_a_name_is_told_from_it() -> None:
    model = TimelineModel(lonely())
    lines = TimelineFrame(BLOCKS, colour=True).draw(model, 120, 33)
    named = next(line for line in lines[4:] if "%" in line_text(line))
    cells = [role for text, role in named for _ in text]
    assert cells[24 + model.cursor_column] == "fwd"
    assert cells[24 + model.cursor_column + 1] == "fwd reversed"


def test_the_heat_row_is_full_where_all_ranks_compute_and_blank_where_none_does() -> None:
    assert drawn(lonely(10**6), 120, 33)[0] == f"{'  all ranks, computing':<23}│" + "█" * 96
    step = small().simulation.step_time_ns
    heat = drawn(small(), 120, 33)[0][24:]
    for column, cell in enumerate(heat):
        first, last = step * column // 96, step * (column + 1) // 96
        lanes = [TimelineModel(small()).lanes[number] for number in (0, 1)]
        names = ("compute fwd", "compute ig", "compute wg", "compute opt")
        busy = sum(computing(lane, first, last, names) for lane in lanes)
        assert (cell == " ") == (busy == 0)
        assert (cell == "█") == (busy > (last - first) * 2 * 7 / 8)


def computing(lane: object, first: int, last: int, names: tuple[str, ...]) -> int:
    """ns of compute of a class in a stretch, from its accounts."""
    from simcore.sources.simulated import ACCOUNTS

    accounts = lane.of.results.accounts[lane.track_id]  # type: ignore[attr-defined]
    return sum(
        max(min(accounts.edge[index + 1], last) - max(accounts.edge[index], first), 0)
        for index, account in enumerate(accounts.account)
        if ACCOUNTS[account] in names
    )


def test_the_bar_shows_where_the_view_lies_in_the_step() -> None:
    assert drawn(seed(), 120, 33)[1][24:] == "━" * 96
    model = TimelineModel(seed())
    model.zoom(1, 4)
    bar = line_text(TimelineFrame(BLOCKS, colour=True).draw(model, 120, 33)[1])[24:]
    assert abs(len(bar.strip()) - 24) <= 1
    assert 34 <= len(bar) - len(bar.lstrip()) <= 38


def test_the_legend_names_every_kind_once() -> None:
    legend = drawn(seed(), 120, 33)[-2]
    for words in ("▄ forward", "█ backward", "▇ optimizer", "▌ exposed tp dp pp", "▁ bubble", "idle"):
        assert legend.count(words) == 1
    # No rank of seed 002 waits for a slower one.
    assert "wait" not in legend


def test_a_legend_of_a_small_screen_names_the_glyph_of_lanes_of_communication() -> None:
    """Gradients that are hidden stood there as exposed. Planted: the words on a screen without such lanes."""
    assert any("▌ exposed or busy " in row for row in drawn(seed(), 80, 24, unfold=True))
    folded = "\n".join(drawn(seed(), 80, 24))
    assert "▌ exposed " in folded
    assert "exposed or busy" not in folded
    assert any("comm lanes: ▌ busy" in row for row in drawn(seed(), 160, 33, unfold=True))


def test_another_size_is_drawn_at_once_as_it_is_drawn_again() -> None:
    # The digits of the mark's time were those of the columns of the picture before.
    model = TimelineModel(seed())
    model.cursor_ns = 123_456_789
    set_mark(model)
    frame = TimelineFrame(BLOCKS, colour=True)
    for width, height in ((60, 24), (240, 60), (80, 24), (1, 1), (120, 36)):
        first = text_of(frame.draw(model, width, height))
        assert first == text_of(frame.draw(model, width, height)), (width, height)


def test_the_view_line_says_what_is_on_the_screen() -> None:
    view = drawn(seed(), 120, 33)[-1]
    assert re.match(r" view 0\.0 s \.\. 14\.8 s, 153\.9 ms a column   1024 ranks in 16 ", view)


@pytest.mark.parametrize("glyphs", [BLOCKS, ASCII], ids=["blocks", "ascii"])
def test_a_bar_in_each_lane_is_where_a_step_ends_and_the_next_begins(glyphs: Glyphs) -> None:
    results = run(
        make_workload([layer("mlp_1", 100, 100, 100)], tp=1, ep=1, pp=2, all_gpus=2, pp_comm=0),
        schedule="zb-h2", microbatches=4, steps=2,
    )  # fmt: skip
    model = TimelineModel(results)
    text = text_of(TimelineFrame(glyphs, False).draw(model, 80, 21))
    assert "step ends" in text
    lanes = [line for line in text.split("\n") if " + " in line or ">+ " in line]
    assert len(lanes) == 2
    for stage, line in enumerate(lanes):
        cells = line.split(glyphs.vertical, 1)[1]
        # Stage s is done 100 ns later, with 1200 ns of work a step and 2500 of both.
        assert cells.count(glyphs.vertical) == 1
        end = 100 * stage + 1200
        assert abs(cells.index(glyphs.vertical) - end * len(cells.rstrip()) / 2500) <= 1.5
    alone = text_of(TimelineFrame(glyphs, False).draw(TimelineModel(seed()), 80, 21))
    assert "step ends" not in alone


def test_a_run_on_links_has_a_row_of_how_busy_they_are() -> None:
    """Where the screen is tall; the share of the busiest link is its busy time of the step."""
    row = Row("mlp", Cell(2000, "ALLREDUCE", "tp", 90_000))
    workload = make_workload([row, row], tp=4, pp=1, all_gpus=4)
    of_links = run(workload, network="links", dim=("switch:4:50:500",))
    assert of_links.links is not None
    busiest = max(one.busy_ns for one in of_links.links) / of_links.step_time_ns
    rows = [line for line in drawn(of_links, 120, 33) if "links, busiest" in line]
    assert len(rows) == 1
    assert f"{len(of_links.links)} links, busiest" in rows[0]
    assert f"{100 * busiest:.0f}%" in rows[0]
    assert set(rows[0].partition(BLOCKS.vertical)[2]) & set(BLOCKS.heat[1:])
    assert not [line for line in drawn(run(workload), 120, 33) if "links, busiest" in line]
