"""The summary: what each panel says, where Enter leads, what `t` tries."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import cache

import pytest

from simcore.diagnostics import Diagnostic, sort_by_weight
from simcore.parameters import Parameters
from simcore.runs.simulated import SimulatedRun
from simcore.setup import Setup
from simcore.simulation import simulate
from simcore.trace.findings import WhatIf
from simcore.trace.run import account_ns, mean_busy_ns
from simcore.units import change_percent, duration, whole_percent
from simcore.workload import open_workload
from tests.command_line.running import SEED_001
from tests.says import figures, said
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import ROOT, four_stages, layer, make_workload, plain, run, seed, seed_workload
from tests.tui.pseudo_terminal import wltui
from tests.tui.screen_reading import draft_run, press, run_over, screen_rows, screen_text, wait_until
from tui.change_words import describe_change
from tui.frame import ASCII, BLOCKS, Glyphs, text_of
from tui.panels import WHAT_IF
from tui.panels_view import NO_POSITION
from tui.parameters.fields import fields_for
from tui.runs.runs import STILL_RUNNING, TRIES_BEST
from tui.session import Session
from tui.summary.bars import StageBars, make_bars
from tui.summary.frame import draw
from tui.summary.model import MAP, NOTES, STAGES, WORST, SummaryModel
from tui.summary.panels import change_line, large_digits, note_lines, step_lines, word_lines
from tui.summary.side_panels import RankMap
from tui.summary.view import SummaryView
from tui.summary.worst import _finding_text, worst_lines
from tui.timeline.view import TimelineView
from tui.why.frame import WhyModel, what_if_lines

SIZES = [(120, 36), (80, 24)]


def model_of(**parameters: object) -> SummaryModel:
    return SummaryModel(seed(**parameters))


@cache
def slow_rank_37() -> SimulatedRun:
    """Seed 002 with a slow rank, and with 2 micro-batches, which are simulated sooner than its 16."""
    return run(seed_workload(), microbatches=2, slow_rank=("37=1.3",))


# -- the model -----------------------------------------------------------------------


def test_the_cursor_never_leaves_its_panel() -> None:
    slow = slow_rank_37()
    model = SummaryModel(slow)
    extent = {STAGES: (16, 1), MAP: (4, 16), WORST: (6, 1), NOTES: (len(slow.diagnostics), 1)}
    for panel, (rows, columns) in extent.items():
        model.panel = panel
        model.move(1000, 1000)
        assert model.cursor(panel) == (rows - 1, columns - 1)
        model.move(-1000, -1000)
        assert model.cursor(panel) == (0, 0)


def test_tab_goes_round_the_panels_that_are_drawn() -> None:
    model = model_of()
    seen = []
    for _ in range(5):
        seen.append(model.panel)
        model.next_panel(1)
    assert seen == [STAGES, MAP, WORST, WHAT_IF, NOTES]
    assert model.panel == STAGES
    model.next_panel(-1)
    assert model.panel == NOTES
    model.set_panels((STAGES, WORST))
    assert model.panel == STAGES
    # The ranks of a small screen take the place of the bars; nothing was drawn in between.
    model.panel = MAP
    model.next_panel(1)
    assert model.panel == WORST


@pytest.mark.parametrize(
    ("rows", "joined", "lines"), [(16, 1, 16), (17, 1, 16), (8, 2, 8), (5, 4, 4), (1, 16, 1)]
)
def test_stages_are_joined_where_there_is_no_room_for_each(rows: int, joined: int, lines: int) -> None:
    model = model_of()
    model.fit(rows)
    assert [len(row.tracks) for row in model.bars.rows] == [joined] * lines
    assert [track.stage for row in model.bars.rows for track in row.tracks] == list(range(16))


def test_enter_leads_to_the_place_under_the_cursor() -> None:
    model = model_of()
    step = seed().step_time_ns
    model.move(5, 0)
    assert model.target() == (5, 0, step, None)
    model.panel = MAP
    model.move(0, 7)
    assert model.target() == (7, 0, step, None)
    model.panel = WORST
    model.move(1, 0)
    bubble = seed().figures.worst_findings[1]
    assert model.target() == (bubble.track_id, bubble.start_ns, bubble.end_ns, None)
    model.panel = NOTES
    assert model.target() is None


def test_another_run_keeps_the_cursor_as_far_as_it_can() -> None:
    model = model_of()
    model.panel = MAP
    model.move(0, 15)
    model.show(slow_rank_37())
    assert model.cursor(MAP) == (0, 15)
    model.move(3, 0)
    model.show(seed())
    assert model.cursor(MAP) == (0, 15)


@pytest.mark.parametrize(
    ("measure", "glyphs", "mean", "range_"),
    [
        ("bubble", BLOCKS, "33.4", "bubble: ▄ 19.5 to █ 47.3 % of step"),
        ("bubble", ASCII, "33.4", "bubble: 4 19.5 to 8 47.3 % of step"),
        ("idle", BLOCKS, "13.9", "idle: 0.0 to █ 27.8 % of step"),
    ],
)
def test_the_map_says_what_its_shades_mean(measure: str, glyphs: Glyphs, mean: str, range_: str) -> None:
    ranks = RankMap(seed(), measure)
    lines = text_of(ranks.lines(38, 10, (0, 0), glyphs, False)).split("\n")
    assert figures(lines[-2]) == [f"{mean} %"]
    assert lines[-1].strip() == range_
    lines = text_of(ranks.lines(38, 10, (0, 0), glyphs, True)).split("\n")
    assert lines[-2].startswith(" stage 0, dp 0-7 tp 0-7: ")
    assert lines[-1].strip() == range_


async def test_enter_on_the_worst_link_shows_what_is_longest_on_it(make_app: MakeApp) -> None:
    app = make_app(first=None)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "tab")
        assert "── Worst on a rank, " in screen_text(app)
        await press(pilot, *"jjjj")
        link = ">link    busy 346.8 ms (2.3 %) on dim 1 (50 GB/s) of stages 1-14, most with dp"
        assert link in screen_text(app)
        await press(pilot, "enter")
        view = app.current_view
        assert isinstance(view, TimelineView)
        link = seed().figures.worst_findings[-1]
        assert view.model.current.track_id == link.track_id == 1
        assert link.start_ns <= view.model.cursor_ns < link.end_ns
        assert "reduce-scatter (dp) of grad_param_comm" in screen_text(app)


@pytest.mark.parametrize("width", [30, 46])
def test_a_cut_place_keeps_its_figure(width: int) -> None:
    for line, place in zip(
        worst_lines(model_of(), width, 9, False), seed().figures.worst_findings, strict=True
    ):
        assert duration(place.ns) in text_of([line])


@pytest.mark.parametrize("ns", [0, 1, 999, 1000, 14_774_124_906, 10**15, 123_456])
def test_every_step_time_can_be_written_large(ns: int) -> None:
    rows = large_digits(duration(ns))
    assert len(rows) == 3
    assert rows[2].endswith(duration(ns).split()[1])


# -- the screen ----------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
async def test_it_is_the_first_screen_and_says_why(make_app: MakeApp, size: tuple[int, int]) -> None:
    app = make_app(first=None)
    async with app.run_test(size=size) as pilot:
        await wait_until(pilot, lambda: "8.702 s" in screen_text(app))
        assert app.screen_name == "summary"
        text = " ".join(screen_text(app).replace("│", " ").split())
        assert "Ranks wait 4.933 s (33.4 %) for other" in text
        assert "6.987 s (47.3 %)" in text
        assert "embedding and loss" in text
        assert ("step is 13.973 s" in text) == (size[0] > 80)
        assert "about 60.5 GB on stage 0" in text
        assert re.search("interleaved, virtual(-stages)? 8, (overlap-grad-reduce|grad-overlap) 60.5 GB", text)
        assert "8.702 s" in text
        # Where there is little room it is still said that this is one stretch of those 6.987 s.
        assert re.search(
            r"bubble 4\.096 s (\(27\.7 %\) )?at a stretch: stage 0",
            text,
        )


async def test_enter_shows_the_longest_bubble_in_the_timeline(make_app: MakeApp) -> None:
    app = make_app(first=None)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "tab", "tab", "j", "enter")
        assert app.screen_name == "timeline"
        view = app.current_view
        assert isinstance(view, TimelineView)
        bubble = seed().figures.worst_findings[1]
        assert bubble.start_ns <= view.model.cursor_ns < bubble.end_ns
        assert view.model.current.track_id == bubble.track_id
        assert view.model.window.first_ns <= bubble.start_ns
        assert bubble.end_ns <= view.model.window.last_ns
        said(screen_rows(app), "bubble", "waits for", "gradient")
        await press(pilot, "1")
        assert isinstance(app.current_view, SummaryView)
        assert app.current_view.model.panel == WORST


async def test_t_tries_the_best_change_as_run_2_and_x_goes_back(make_app: MakeApp) -> None:
    app = make_app(four_stages(), first=None)
    session = app.session
    assert isinstance(session, Session)
    async with app.run_test(size=(120, 36)) as pilot:
        await wait_until(pilot, lambda: "2.229 s" in screen_text(app))
        await press(pilot, "t")
        await wait_until(pilot, lambda: session.step == "2.229 s")
        assert session.run_words() == "run 2 of 2"
        assert screen_rows(app)[-1].strip() == "run 2 of 2: 2.229 s; x shows run 1 again"
        await press(pilot, "x")
        assert session.step == "3.638 s"
        assert session.draft == session.opened.simulation.parameters
        await press(pilot, "x")
        assert session.step == "2.229 s"
        # `x` alone does not lead back to the first of three.
        await run_over(pilot)
        before = session.current.step_time_ns
        await press(pilot, "t")
        await wait_until(pilot, lambda: session.run_words() == "run 3 of 3")
        # What the row promised is of the run that it was made to; the row on top compares to the first.
        brought = change_percent(before, session.current.step_time_ns)
        assert screen_rows(app)[-1].strip() == (
            f"run 3 of 3: {session.step}, {brought} vs run 2; x shows run 2 again, R lists all runs"
        )


async def test_t_on_a_row_of_sensitivity_shows_the_run_that_was_computed(make_app: MakeApp) -> None:
    app = make_app(four_stages(), first=None)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "tab", "tab", "tab")
        await wait_until(pilot, lambda: "2.229 s" in screen_text(app))
        view = app.current_view
        assert isinstance(view, SummaryView)
        knobs = list(view.model.knobs or ())
        for knob, flag in (
            ("compute fwd", "compute fwd=0.9"),
            ("stream tp", "stream tp=0.9"),
            ("layer mlp_row", "layer mlp_row=0.9"),
            ("dimension 1 bandwidth", "--dim"),
        ):
            row = [one.knob for one in knobs].index(knob)
            view.model.set_cursor(WHAT_IF, row)
            await press(pilot, "t")
            await draft_run(pilot)
            assert app.session.current.step_time_ns == knobs[row].better10_ns, knob
            assert flag in app.session.command()
            # Back to the run that the rows are of.
            await press(pilot, "x")
            assert app.session.current is app.session.opened


def test_a_dimension_is_called_as_on_the_screen_of_parameters() -> None:
    form = {field.label for field in fields_for(seed().simulation)}
    for number, dimension in enumerate(seed().simulation.cluster.dims):
        words = describe_change(WhatIf(f"dimension {number} bandwidth", 1, 1), seed().simulation.cluster.dims)
        assert words.startswith(f"dim {number} bandwidth {dimension.bandwidth:g} -> ")
        assert " ".join(words.split()[:3]) in {" ".join(label.split()) for label in form}


def test_ten_per_cent_less_time_is_called_that_wherever_it_stands() -> None:
    knob, dims = WhatIf("compute fwd", 1, 1), seed().simulation.cluster.dims
    model = WhyModel(seed())
    model.knobs = [knob]
    heading = "".join(text for text, _ in what_if_lines(model, 110, 10, "")[0])
    line = "".join(text for text, _ in change_line(knob, dims, 2, 50, False))
    assert line.startswith(" compute fwd, 10 % less time ")
    assert "10 % less time on " in heading
    # Of a bandwidth it is 1 / 0.9 of it: 50 GB/s between the servers of the default cluster.
    bandwidth = WhatIf("dimension 1 bandwidth", 1, 1)
    assert describe_change(bandwidth, dims) == "dim 1 bandwidth 50 -> 55.6 GB/s"


async def test_t_while_a_run_is_simulated_leaves_it_alone_and_says_so(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(four_stages(), first=None)
    session = app.session
    assert isinstance(session, Session)
    go_on = threading.Event()

    def waits(opened: SimulatedRun, setup: Setup, cancelled: Callable[[], bool]) -> SimulatedRun:
        assert go_on.wait(20)
        return SimulatedRun(simulate(setup.opened, setup.parameters, cancelled))

    async with app.run_test(size=(120, 36)) as pilot:
        await wait_until(pilot, lambda: "2.229 s" in screen_text(app))
        monkeypatch.setattr(SimulatedRun, "rerun", waits)
        await press(pilot, "t")
        draft = session.draft
        await press(pilot, "tab", "tab", "tab", "j", "j", "t")
        assert screen_rows(app)[-1].strip() == STILL_RUNNING
        assert session.running
        assert session.draft == draft
        go_on.set()
        await wait_until(pilot, lambda: session.step == "2.229 s")
        assert session.run_words() == "run 2 of 2"


@pytest.mark.parametrize(("room", "then"), [("1", "run 2 of 2"), ("4", "run 2 of 2"), ("1", "run 1 of 1")])
async def test_t_before_the_table_is_there_tries_the_best_change_once_it_is(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, room: str, then: str
) -> None:
    go_on, find = threading.Event(), SimulatedRun.what_if

    def held(
        run: SimulatedRun, progress: Callable[[int, int], None], cancelled: Callable[[], bool]
    ) -> object:
        go_on.wait(20)
        return find(run, progress, cancelled)

    monkeypatch.setattr(SimulatedRun, "what_if", held)
    app = make_app(four_stages(), first=None)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, room, *(["tab"] if room == "4" else []), "t")
        assert screen_rows(app)[-1].strip() == TRIES_BEST
        if then == "run 1 of 1":
            # Whoever goes on working has not waited for it.
            await press(pilot, "j")
            assert TRIES_BEST not in screen_rows(app)[-1]
        go_on.set()
        await wait_until(pilot, lambda: app.session.run_words() == then and not app.session.running)
        await run_over(pilot)
        assert app.session.run_words() == then
        if then == "run 2 of 2":
            assert app.session.step == "2.229 s"


async def test_enter_on_a_change_says_that_it_is_nowhere_in_the_timeline(make_app: MakeApp) -> None:
    app = make_app(first=None)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "tab", "tab", "tab", "enter")
        assert screen_rows(app)[-1].strip() == NO_POSITION
        assert app.screen_name == "summary"


async def test_notes_lead_to_all_notes(make_app: MakeApp) -> None:
    app = make_app(first=None)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "shift+tab", "enter")
        assert app.screen_name == "notes"


def test_it_opens_first_in_a_terminal_and_is_left_by_its_keys() -> None:
    with wltui(SEED_001, screen=None, columns=80, rows=24) as terminal:
        terminal.wait_for("[1 Summary]")
        terminal.press_each(("2", "At the cursor"), ("1", "[1 Summary]"), ("4", "by kind"))
        terminal.settle()
        before = len(terminal.raw)
        terminal.pump(0.7)
        assert len(terminal.raw) == before


def test_another_screen_can_be_first() -> None:
    with wltui(SEED_001, screen="layers") as terminal:
        terminal.wait_for("[3 Layers]")


def test_what_ranks_compute_is_called_a_mean_where_they_differ() -> None:
    results = seed()
    share = f"{round(100 * mean_busy_ns(results) / results.step_time_ns)} %"
    short, long = (text_of(step_lines(results, BLOCKS, width, 9)) for width in (38, 64))
    assert f"mean compute {duration(mean_busy_ns(results))} = {share}" in short
    assert f"a rank computes {duration(mean_busy_ns(results))} on average = {share} of it" in long
    alike = run(make_workload([layer("one", 1000)], tp=1, ep=1, pp=1, ga=1, vpp=1, all_gpus=8))
    said = text_of(step_lines(alike, BLOCKS, 64, 9))
    assert f"each rank computes {duration(mean_busy_ns(alike))} = 100 % of it" in said
    assert "average" not in said


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_first_word_and_the_first_figure_of_the_verdict_are_bold_and_nothing_else(width: int) -> None:
    verdict = "Bubble-bound. Stage 0 waits 6.998 s (47.4 %) for its neighbour, of 14.774 s in all."
    sentences = ["The file has 4 stages of 3.000 s.", verdict, "Free communication saves 5.7 %."]
    lines = word_lines(sentences, width, 20)
    assert [text.strip() for line in lines for text, role in line if role == "bright"] == [
        "Bubble-bound.", "6.998 s",
    ]  # fmt: skip
    # Without a verdict the first sentence is one; a figure without a unit is no figure.
    lines = word_lines(["Rank 7 is late: 4 of 5 calls by 3 ms.", "Others wait 2.000 s."], width, 20)
    assert [text.strip() for line in lines for text, role in line if role == "bright"] == ["Rank", "3 ms"]
    assert text_of(word_lines(["None."], width, 20)) == " None."


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 6])
def test_a_sentence_that_is_too_long_gives_its_place_to_a_later_one(rows: int) -> None:
    sentences = ("Short.", " ".join(["long"] * 60) + ".", "Also short.")
    said = text_of(word_lines(sentences, 80, rows)).split()
    assert "Short." in said
    assert ("Also" in said) == (rows > 1)
    assert ("long" in said) == (rows > 4)


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_how_many_of_the_sentences_are_there_is_said_where_some_have_no_room(width: int) -> None:
    """Planted: the count of lines in place of that of sentences; 4 of 4 said where all are there."""
    results = seed()
    for height in range(16, 50, 3):
        model = SummaryModel(results)
        frame = text_of(draw(model, width, height, BLOCKS, ""))
        text = re.sub(r"[^a-z0-9.%]", "", frame)
        starts = [re.sub(r"[^a-z0-9.%]", "", one[:25]) for one in results.figures.words]
        there = sum(one in text for one in starts)
        said = re.findall(r"In words, (\d of \d)", frame)
        # The words of a small screen have no title: their key is in the last row.
        counts = there < len(starts) and "In words" in frame
        assert said == ([f"{there} of {len(starts)}"] if counts else [])
        assert ("Space" in model.keys_to_more) >= (there < len(starts))


def test_of_ranks_of_a_row_that_lie_far_apart_the_range_is_there_and_no_mean() -> None:
    """Planted: ranges from 0 on; every row of a jittered run had them."""
    slow = seed(slow_rank=("37=1.3",))
    shares = [whole_percent(account_ns(slow, [track])["bubble"], slow.step_time_ns * len(track.ranks))
              for track in slow.tracks if track.stage == 0]  # fmt: skip
    bars = make_bars(slow)
    row = bars.ranges[0]
    assert row["bubble"] == (min(shares), max(shares))
    assert set(row) == {"compute", "wait", "bubble"}
    for width, there in ((80, True), (200, True), (50, False)):
        lines = text_of(bars.lines(width, 0, BLOCKS, False)).split("\n")
        assert ("48-63" in lines[1].split()) == there
    assert not any(make_bars(seed()).ranges)
    assert not any(
        make_bars(run(seed_workload(), world=256, jitter=0.02, no_fold=True, microbatches=1)).ranges[:1]
    )


def test_rows_of_several_stages_are_said_to_be_means() -> None:
    for height, joined in ((21, True), (60, False)):
        frame = text_of(draw(SummaryModel(seed()), 80, height, BLOCKS, ""))
        assert (f"{StageBars.mean_title}mean" in frame) == joined
        assert (f"{StageBars.title} ─" in frame) == (not joined)


@pytest.mark.parametrize(("width", "height"), [(80, 21), (120, 26), (120, 33), (120, 37), (200, 47)])
@pytest.mark.parametrize("changed", [{}, {"schedule": "interleaved", "virtual_stages": 4}])
def test_memory_is_there_at_every_size_that_is_drawn(
    width: int, height: int, changed: dict[str, object]
) -> None:
    """Seen to fail: without memory in the heading of the advice, at 80 columns and 21 rows."""
    results = seed(**changed)
    assert results.model.file_memory
    assert "emory about" in text_of(draw(SummaryModel(results), width, height, BLOCKS, ""))


def test_a_sentence_that_decides_loses_its_explanation_before_its_place() -> None:
    """Seen to fail: with whole sentences alone, of which a shorter one that matters less was shown."""
    decides = "Bubble-bound. Stage 0 waits 118.5 ms (68.1 %) in all for its neighbours, the mean rank 86 ms"
    why = "the micro-batches are unequal, and with 4 stages and 2 equal ones 3 of 5 slots would stay empty"
    words = [f"{decides}: {why}.", "Another."]
    assert len(word_lines(words, 80, 2)) == 2
    assert text_of(word_lines(words, 80, 2)).split() == f"{decides}.".split()
    assert len(word_lines(words, 80, 9)) == 4
    # No bracket stays open, and a whole sentence of two stays before less of the first.
    more = "megatron layout: 162.2 ms, -5.4 %, of all"
    assumed = f"{decides}. All stages compute alike, as assumed ({more})."
    assert text_of(word_lines([assumed], 80, 3)).split() == assumed.split()
    assert text_of(word_lines([assumed], 80, 2)).split() == f"{decides}.".split()
    # What stands before the colon alone says too little.
    assert word_lines(["Rank 7 is slow: " + "it computes long " * 20], 80, 2) == []


def test_the_busiest_link_is_a_sentence_whose_figure_and_place_are_never_cut() -> None:
    """`busy 346.8 ms: dim 1 stages 1-14, most dp` said little to a newcomer."""
    words = seed().figures.worst_findings[-1].words
    # By its number a newcomer did not know whether dim 1 is inside the nodes.
    assert words == "busy 346.8 ms (2.3 %) on dim 1 (dp, pp; 50 GB/s) of stages 1-14, most with dp"
    assert _finding_text(words, 78) == words
    assert _finding_text(words, 70) == words.replace("dp, pp; ", "")
    assert _finding_text(words, 60) == "busy 346.8 ms (2.3 %) on dim 1 of stages 1-14, most with dp"
    assert _finding_text(words, 51) == "busy 346.8 ms (2.3 %) on dim 1 of stages 1-14"
    assert _finding_text(words, 42) == "busy 346.8 ms on dim 1 of stages 1-14"
    slowed = four_stages(slow_link=("0:37=0.1",)).figures.worst_findings[-1].words
    assert _finding_text(slowed, 50).endswith("on dim 0 of rank 37, slowed to 0.1")


def test_one_stretch_stays_one_where_there_is_little_room() -> None:
    """`bubble 4.096 s` seemed to contradict the 6.987 s in all of the words."""
    words = "4.096 s (27.7 %) at a stretch: stage 0, from 3.064 s"
    assert seed().figures.worst_findings[1].words == words
    assert _finding_text(words, len(words)) == words
    # The title is of shares: they stay before where the stretch begins.
    assert _finding_text(words, 47) == "4.096 s (27.7 %) at a stretch: stage 0"
    assert _finding_text(words, 36) == "4.096 s at a stretch: stage 0"
    assert _finding_text(words, 28) == "longest 4.096 s: stage 0"
    # What is not one stretch of several is not called so.
    assert _finding_text("busy 346.8 ms (2.3 %) on dim 1", 24) == "busy 346.8 ms on dim 1"
    waited = "3.077 s (79.8 %) at a stretch: rank 0 in recv_backward"
    assert _finding_text(waited, 40) == "longest 3.077 s: rank 0 in recv_backward"
    assert _finding_text(waited, 38) == "longest 3.077 s: rank 0, recv_backward"
    assert _finding_text(waited, 36) == "max 3.077 s: rank 0, recv_backward"
    grouped = "1.291 s (33.5 %) at a stretch: rank 6 in ep_allreduce (embedding)"
    assert _finding_text(grouped, 36) == "max 1.291 s: rank 6, ep_allreduce"


def test_the_share_of_a_place_goes_after_how_its_layer_is_counted() -> None:
    words = "31.125 ms (17.9 %) with communication: mlp_moelayer"
    assert _finding_text(words, 60) == words
    assert _finding_text(words, 42) == "31.125 ms (17.9 %): mlp_moelayer"
    assert _finding_text(words, 25) == "31.125 ms: mlp_moelayer"
    # Which collectives a layer waits for stands in its row of screen 3.
    words = seed().figures.worst_findings[3].words
    assert words == "228.3 ms (1.5 %): grad_param_comm, dp reduce-scatter"
    assert _finding_text(words, 42) == "228.3 ms (1.5 %): grad_param_comm"


def test_of_worst_places_without_room_those_with_a_cause_stay() -> None:
    """At 80x24 a newcomer did not find which layer is to blame: two rows had the end and the bubble."""
    model = model_of()
    assert [place.what for place in seed().figures.worst_findings] == [
        "end",
        "bubble",
        "layer",
        "exposed",
        "link",
    ]
    told = [text_of([line]).split()[0] for line in worst_lines(model, 80, 2, False)]
    assert told == ["bubble", "layer"]
    # Under a cursor they stand in their order.
    told = [text_of([line]).lstrip("> ").split()[0] for line in worst_lines(model, 80, 2, True)]
    assert told == ["end", "bubble"]


def test_the_columns_of_the_rank_map_are_called_what_they_are() -> None:
    """`ranks 0 . . . . 5` stood over stages."""
    ((head, _),) = RankMap(seed()).lines(60, 10, (0, 0), BLOCKS, False)[0]
    assert head == " stages        0 . . . . 5 . . . . 10. . . . 15"


async def test_what_the_assumed_layout_costs_is_said_once_it_was_found_behind_the_picture(
    make_app: MakeApp,
) -> None:
    rows = [layer("embedding_layer", 400), *[layer("mlp", 1000)] * 4] * 2
    app = make_app(run(make_workload(rows, pp=4, all_gpus=4)), first=None)
    results = app.session.current
    assert results.figures.words[0].endswith("assumed on each.")
    async with app.run_test(size=(120, 40)) as pilot:
        await run_over(pilot)
        shown = " ".join(screen_text(app).split())
        other = results.with_parameters(Parameters(pp=4, stage_layout="megatron")).step_time_ns
        change = change_percent(results.step_time_ns, other)
        assert re.search(rf"assumed on each \(.*: {re.escape(change)}\)\.$", results.figures.words[0])
        assert f": {change})." in shown
        # Its note has it, too, on both screens.
        assert any(f"would be {duration(other)}" in note.message for note in app.current_view.model.notes)
        await press(pilot, "!")
        assert f"would be {duration(other)}" in " ".join(screen_text(app).split())


# -- notes ------------------------------------------------------------------------------


_NOTES = [
    Diagnostic("warning", "row-count", f"found 9 rows{', too' * 9}", "f", 2, brief="9 rows, 8 stated"),
    Diagnostic("note", "cluster-default", f"no cluster given: {'assuming ' * 9}", brief="cluster h100-8"),
    Diagnostic("note", "no-partner", f"6 calls {'without a partner ' * 9}"),
]


def test_each_note_says_what_it_is_and_in_brief_what_has_no_room() -> None:
    assert plain(note_lines(_NOTES, 0, 40, 3, False)) == (
        " warning line 2: 9 rows, 8 stated\n assumed cluster h100-8\n note    6 calls without a partner...\n"
    )
    # The first word of a row says it, in one colour too.
    assert [line[0][1] for line in note_lines(_NOTES, 0, 40, 3, False)] == ["warn", "bright", "dim"]
    assert plain(note_lines(_NOTES, 0, 26, 3, False)).startswith(" warning 9 rows, 8 stated\n")


def test_with_room_a_note_is_told_whole_and_not_in_brief() -> None:
    text = " ".join(plain(note_lines(_NOTES, 0, 40, 30, False)).split())
    assert "9 rows, 8 stated" not in text
    assert "cluster given: assuming" in text
    assert "..." not in text


@pytest.mark.parametrize("name", ["001_moe_128npu_with_mistakes.txt", "002_gpt_1024npu.txt"])
def test_every_assumption_of_a_seed_fits_a_row_of_the_panel(name: str) -> None:
    diagnostics = sort_by_weight(run(open_workload(str(ROOT / "fixtures" / name))).diagnostics)
    lines = plain(note_lines(diagnostics, 0, 46, len(diagnostics), False)).splitlines()
    assert len(lines) == len(diagnostics) >= 8
    assumed = [line for line in lines if line.startswith(" assumed ")]
    assert len(assumed) >= 5
    assert not any("..." in line for line in assumed)
    assert " assumed cluster h100-8: none given" in assumed
