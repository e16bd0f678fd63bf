"""Blank rows go to what was cut: words, advice, notes, streams, taller lanes; what is empty folds away.

Planted: a step's words cut at four lines whatever is free; a map of one cell that keeps its panel; a lane
that stays folded where it is alone; streams that are unfolded over a session's arrangement. Each was found.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

import pytest

from simcore.comparison import Comparison
from simcore.parameters import Parameters
from simcore.runs.measured import RecordedRun
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.units import duration
from simcore.workload import open_workload
from tests.strategies import Cell, Row, layer, make_workload
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import drawn_summary, run, seed
from tests.tui.screen_reading import press, resize, run_over, screen_rows, screen_text
from tests.tui.test_measured_screens import app_on, four_ranks
from tui.compare.frame import _lane_height
from tui.compare.model import CompareModel
from tui.compare.source import ComparedLanes
from tui.frame import BLOCKS, row_of, text_of
from tui.layers.workload_table import WorkloadTable
from tui.notes.view import NotesView
from tui.summary.panels import step_lines
from tui.summary.view import ALL_EQUAL, SummaryView
from tui.timeline.model import TimelineModel
from tui.timeline.saved import restore, save
from tui.timeline.view import TimelineView
from tui.why.frame import WhyModel
from tui.why.frame import draw as draw_why

DECIDES = "gradients after the last"


@cache
def one_stage(**parameters: float) -> SimulatedRun:
    """Seed 000: one group of 128 equal ranks."""
    workload = open_workload("fixtures/000_gpt13b_tp4_old_header.txt")
    return SimulatedRun(simulate(workload, Parameters(**parameters)))  # type: ignore[arg-type]


@cache
def mistakes() -> SimulatedRun:
    """Seed 001."""
    return SimulatedRun(simulate(open_workload("fixtures/001_moe_128npu_with_mistakes.txt"), Parameters()))


def blanks(rows: list[str]) -> int:
    """Rows with nothing but frames in them."""
    return sum(not row.strip(" │|") for row in rows)


def test_a_small_screen_has_the_sentence_that_decides() -> None:
    shown = drawn_summary(one_stage(), 80, 21)
    text = " ".join(shown.split())
    assert re.search(r"all communication free\b.*? 259\.2 ms", text)
    assert DECIDES in text
    assert len(shown.split("\n")) == 21
    assert blanks(shown.split("\n")) == 0


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (160, 45), (200, 50)])
def test_no_row_is_blank_while_something_is_cut(size: tuple[int, int]) -> None:
    width, height = size[0], size[1] - 3
    for results in (one_stage(), seed()):
        why = WhyModel(results)
        why.knobs = knobs = results.what_if()
        for frame in (
            drawn_summary(results, width, height),
            text_of(draw_why(why, width, height, BLOCKS, "")),
        ):
            rows = frame.split("\n")
            listed = sum(any(one.knob.split(" ")[-1] in row for row in rows) for one in knobs)
            assert blanks(rows) <= 2 or listed >= min(len(knobs), 15), frame


async def test_few_lanes_beside_each_other_are_tall(make_app: MakeApp) -> None:
    """One pair with its streams fills the lanes of screen 6; sixteen pairs leave nothing to fill."""
    tall = []
    for results, faster in ((one_stage(), one_stage(compute_scale=0.5)), (seed(), seed(compute_scale=0.5))):
        app = make_app(faster, against=results, first="compare")
        async with app.run_test(size=(200, 50)) as pilot:
            await run_over(pilot)
            rows = screen_rows(app)
            label = next(index for index, row in enumerate(rows) if row.startswith("> stage"))
            # Above the line with its name the lane's cells stand, where it has several.
            tall.append("█" in rows[label - 1])
            assert blanks(rows) < 20
            if results is one_stage():
                # A single pair has its streams at once.
                assert " dp x32  A  33%" in screen_text(app)
                continue
            # Those of sixteen are unfolded. Without the line of keys, where a message comes and goes.
            await resize(pilot, 120, 36)
            before = screen_rows(app)[:-1]
            assert " dp x8" not in "\n".join(before)
            await press(pilot, "space")
            assert " tp x8" in screen_text(app)
            await press(pilot, "space")
            assert screen_rows(app)[:-1] == before
    assert tall == [True, False]


@pytest.mark.parametrize(
    ("rows", "high", "of_equal"),
    [(4, 1, 1), (8, 1, 2), (12, 1, 3), (15, 1, 3), (16, 2, 3), (24, 3, 3), (90, 3, 3), (3, 1, 1)],
)
def test_lanes_grow_by_what_all_pairs_leave_free(rows: int, high: int, of_equal: int) -> None:
    """Four pairs of two lanes, or of one where both runs do the same."""
    slower = mistakes().with_parameters(Parameters(compute_scale=2.0))
    for other, expected in ((slower, high), (mistakes(), of_equal)):
        model = CompareModel(ComparedLanes(Comparison(mistakes(), other)))
        model.is_new = False
        model.resize(80, rows)
        assert model.compared.pairs == 4
        assert _lane_height(model, rows) == expected


async def test_rows_that_no_note_needs_have_the_lines_of_the_file(make_app: MakeApp) -> None:
    app = make_app(mistakes(), first="notes")
    async with app.run_test(size=(200, 50)) as pilot:
        for size, seen in (((200, 50), True), ((80, 52), True), ((80, 12), False)):
            await resize(pilot, *size)
            await run_over(pilot)
            # The last warning, on the count of rows.
            await press(pilot, "g", "j", "j", "j")
            text = screen_text(app)
            assert ("mistakes.txt, line 2, column 1" in text) == seen
            assert ("> 2 │ 96" in re.sub(r" +", " ", text)) == seen
            # A note on the run is on no line.
            await press(pilot, "G")
            view = app.current_view
            assert isinstance(view, NotesView)
            assert view.notes[view.focus_at].line is None
            assert "--gpu" in view.notes[view.focus_at].message
            assert "--gpu" in screen_text(app)
            assert "│ 96" not in screen_text(app)


@pytest.mark.parametrize(
    ("name", "gpu", "words"),
    [
        ("002_gpt_1024npu", "h100", "memory 58.8 of 84.9 GB on stage 0"),
        ("002_gpt_1024npu", None, "memory about 60.5 GB on stage 0"),
        ("003_gpt2_large_op_table", None, "memory not known: the file gives no parameter sizes"),
    ],
)
def test_the_step_has_the_memory_of_its_fullest_stage_where_it_is_known(
    name: str, gpu: str | None, words: str
) -> None:
    results = SimulatedRun(simulate(open_workload(f"fixtures/{name}.txt"), Parameters(gpu=gpu)))
    text = text_of(step_lines(results, BLOCKS, 60, 8))
    assert words in text
    assert text.count("memory") == 1
    # Small screens have it in the first row, where it can be said whether it fits.
    assert ("58.8 of 84.9 GB" in results.figures.headline(False)) == (gpu is not None)


async def test_a_map_of_one_cell_folds_away_and_its_key_says_why(make_app: MakeApp) -> None:
    app = make_app(one_stage(), first=None)
    async with app.run_test(size=(160, 45)) as pilot:
        await run_over(pilot)
        view = app.current_view
        assert isinstance(view, SummaryView)
        assert "map" not in view.model.panels
        assert "─ Ranks ─" not in screen_text(app)
        await press(pilot, "i")
        assert screen_rows(app)[-1].strip() == ALL_EQUAL
    app = make_app(first=None)
    async with app.run_test(size=(160, 45)) as pilot:
        await run_over(pilot)
        assert "─ Ranks ─" in screen_text(app)


async def test_a_single_lane_shows_its_streams_by_itself_until_it_is_folded(make_app: MakeApp) -> None:
    for size in ((80, 24), (200, 50)):
        app = make_app(one_stage())
        async with app.run_test(size=size) as pilot:
            view = app.current_view
            assert isinstance(view, TimelineView)
            await press(pilot, "w")
            assert [lane.key.stream for lane in view.model.lanes] == [None, "compute", "tp", "dp"]
            await press(pilot, "space", "1", "2")
            assert len(view.model.lanes) == 1


async def test_many_lanes_stay_as_they_are_and_the_rows_below_say_where_the_step_of_one_goes(
    make_app: MakeApp,
) -> None:
    app = make_app()
    async with app.run_test(size=(200, 50)) as pilot:
        view = app.current_view
        assert isinstance(view, TimelineView)
        await press(pilot, "j")
        assert len(view.model.lanes) == 16
        rows = screen_rows(app)
        labels = [place for place, row in enumerate(rows) if " x64 49%│" in row]
        assert {two - one for one, two in pairwise(labels)} == {1}
        title = next(place for place, row in enumerate(rows) if "Time of ranks 64-127 " in row)
        told = {row[:20].strip(): row[20:30].strip() for row in rows[title + 1 : title + 12] if " % " in row}
        found = seed().accounts[1]
        assert told["bubble"] == duration(found.bubble_ns)
        assert told["idle"] == duration(found.idle_ns)
        # A pan changes nothing of it.
        table = rows[title : title + 10]
        await press(pilot, "w", "d")
        assert screen_rows(app)[title : title + 10] == table
        await resize(pilot, 120, 36)
        assert "Time of ranks 64-127 " not in screen_text(app)


async def test_a_few_lanes_show_their_streams_on_a_tall_screen(make_app: MakeApp) -> None:
    app = make_app(mistakes())
    async with app.run_test(size=(160, 45)) as pilot:
        view = app.current_view
        assert isinstance(view, TimelineView)
        await press(pilot, "j")
        assert len(view.model.lanes) > 4
        # All of them fit below each other.
        assert view.model.rows >= len(view.model.lanes)


def test_what_a_session_has_folded_stays_folded() -> None:
    kept = TimelineModel(one_stage())
    again = TimelineModel(one_stage())
    restore(again, save(kept))
    again.unfold_first(40)
    assert len(again.lanes) == 1


@pytest.mark.parametrize("high", [2, 3, 4])
def test_a_taller_lane_is_the_same_shape_as_many_times_as_high(high: int) -> None:
    line = [("▄▆▇█ ▌▂▁", "fwd")]
    rows = [text_of([row_of(line, row, high)]) for row in range(high)]
    eighths = {"▄": 4, "▆": 6, "▇": 7, "█": 8}
    for column, glyph in enumerate("▄▆▇█"):
        assert sum(" ▁▂▃▄▅▆▇█".index(row[column]) for row in rows) == eighths[glyph] * high
    # What has no height is there all the way up; a trace and a bubble stay low.
    assert [row[4:] for row in rows] == [" ▌▂▁", *[" ▌  "] * (high - 1)]
    # A half-high cell with a gap at its end is high where one without the gap is.
    parted = [text_of([row_of([("▖", "fwd")], row, high)]) for row in range(high)]
    assert ["█▄ "["▉▖ ".index(cell)] for cell in parted] == [row[0] for row in rows]


async def test_rows_that_no_operation_needs_have_each_rank(make_app: MakeApp) -> None:
    app = app_on(make_app, four_ranks(), first="layers")
    async with app.run_test(size=(200, 50)) as pilot:
        rows = screen_rows(app)
        place = next(index for index, row in enumerate(rows) if row.split()[:3] == ["rank", "runs", "a"])
        assert [row.split()[0] for row in rows[place + 1 : place + 5]] == ["0", "1", "2", "3"]
        await press(pilot, "I")
        assert "the longest" not in screen_text(app)


async def test_rows_that_no_layer_needs_have_the_other_phases(make_app: MakeApp) -> None:
    cells = [Cell(100, "ALLREDUCE", "tp", size) for size in (10, 70, 40)]
    results = run(make_workload([Row("mlp", *cells)], tp=2, ep=1, pp=1, all_gpus=2))
    app = make_app(results, first="layers")
    async with app.run_test(size=(120, 36)) as pilot:
        assert all(f"  {phase}:" in screen_text(app) for phase in ("ig", "wg"))
        await press(pilot, "j")
        assert all(f"  {phase}:" in screen_text(app) for phase in ("fwd", "wg"))
        assert "  ig:" not in screen_text(app)


def test_a_line_says_what_all_rows_of_its_layer_take() -> None:
    rows = [layer("mlp_1", 100), layer("mlp_2", 300), layer("norm", 100)]
    results = run(make_workload(rows, tp=1, ep=1, pp=1, all_gpus=1))
    table = WorkloadTable(results, False)
    words = [" ".join(text for text, _ in table.origin(line, 200)[1]) for line in range(len(table.lines))]
    whole = next(place.words for place in results.figures.worst_findings if place.what == "layer")
    share = whole[whole.index("(") + 1 : whole.index(")")]
    of_rank = f"{whole.split(' (')[0]} on a rank"
    told = f"all 2 rows of mlp: {of_rank}, {share} of the step; this line has 1 of them"
    named = [table.lines[line].group.title.startswith("mlp") for line in range(len(table.lines))]
    assert [told in one for one in words] == named
    assert set(named) == {True, False}


def test_no_words_of_a_place_are_cut_where_a_share_can_be_left_out() -> None:
    text = drawn_summary(RecordedRun(four_ranks()), 100, 27)
    assert "last to end: rank" in text or "ms: rank 3" in text
    rows = text.split("\n")
    places = [row.rpartition("││")[2] for row in rows if "││ wait " in row or "││ idle " in row]
    assert places
    assert not any("..." in one for one in places)
