"""Screen 6 and the runs of a session: which two stand beside each other, and where they lead."""

from __future__ import annotations

import pytest

from simcore.parameters import Parameters
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.workload import open_workload
from tests.says import said
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import four_stages, small
from tests.tui.screen_reading import press, run_over, screen_rows, screen_text
from tui.compare.view import NO_OTHER, NOT_ON_SCREEN, ONE_RUN, SECOND_RUN, CompareView
from tui.frame import text_of
from tui.runs.panel import run_lines
from tui.runs.runs import KEPT_ALREADY, NO_OTHER_YET
from tui.session import HistoryRun, Session
from tui.timeline.view import TimelineView


async def test_one_run_has_nothing_to_be_compared_with(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "6", *"wsadhljk0", "vertical_line", "tab", "enter", "left_parenthesis")
        assert ONE_RUN in screen_text(app)
        assert screen_rows(app)[-1].strip() == NO_OTHER


@pytest.mark.parametrize(("more", "words"), [(1, "1 more run"), (2, "2 more runs")])
async def test_runs_of_an_earlier_session_are_not_forgotten(make_app: MakeApp, more: int, words: str) -> None:
    app = make_app(four_stages())
    for count in range(more):
        parameters = Parameters(pp=4, microbatches=8 * (count + 1))
        app.session.recall(HistoryRun(parameters, label=app.session.opened.setup.label))
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "6")
        said(screen_rows(app), words, "Enter in R", "6")
        assert "only one run" not in screen_text(app)
        await press(pilot, "R", "down", "enter")
        await run_over(pilot)
        await press(pilot, "6")
        assert "more run" not in screen_text(app)
        assert any(row.startswith(" B - A") for row in screen_rows(app))


async def test_a_changed_run_stands_beside_the_opened_one_with_the_reason(make_app: MakeApp) -> None:
    app = make_app(four_stages())
    session = app.session
    assert isinstance(session, Session)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "5", *"jjjjjj", "enter", *"zb-h1", "enter")
        await run_over(pilot)
        await press(pilot, "6")
        await run_over(pilot)
        assert session.current.simulation.parameters.schedule == "zb-h1"
        text = screen_text(app)
        why = "Why: fill and drain -815.2 ms on the critical path: weight gradients fill the wait for the"
        assert why in text
        assert "all 666 624 ops of 1 024 ranks matched" in text
        assert "B - A  -814.5 ms (-22.4 %)" in text
        assert "unchanged: every op's duration" in text


async def test_it_follows_the_run_on_the_screen_and_o_takes_another_to_compare_with(
    make_app: MakeApp,
) -> None:
    app = make_app(four_stages())
    session = app.session
    assert isinstance(session, Session)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "5", *"jjjjjj", "enter", *"zb-h1", "enter")
        await run_over(pilot)
        await press(pilot, "r")
        assert screen_rows(app)[-1].strip() == "kept as run 2: R has all runs, n there names one"
        await press(pilot, "r")
        assert screen_rows(app)[-1].strip() == KEPT_ALREADY
        await press(pilot, "j", "l")
        await run_over(pilot)
        await press(pilot, "r", "6")
        view = app.current_view
        assert isinstance(view, CompareView)
        assert view.model is not None
        assert compared_runs(view) == (session.runs[0], session.runs[2])
        assert view.names == ("run 1", "run 3")
        await press(pilot, "left_parenthesis")
        assert compared_runs(view) == (session.runs[1], session.runs[2])
        await press(pilot, "right_parenthesis")
        assert compared_runs(view) == (session.runs[1], session.runs[0])
        await press(pilot, "right_parenthesis")
        assert compared_runs(view) == (session.runs[0], session.runs[1])
        await press(pilot, "right_parenthesis")
        # The one on the screen again.
        assert compared_runs(view) == (session.runs[1], session.runs[2])
        await run_over(pilot)


async def test_x_leaves_a_and_b_in_their_places(make_app: MakeApp) -> None:
    app = make_app(four_stages())
    session = app.session
    assert isinstance(session, Session)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "5", "tab", "j", "l")
        await run_over(pilot)
        changed = session.current
        await press(pilot, "x", "6")
        await run_over(pilot)
        assert session.current is session.opened
        view = app.current_view
        assert isinstance(view, CompareView)
        assert view.names == ("run 1", "draft")
        assert compared_runs(view) == (session.opened, changed)
        assert "i A B both" in screen_rows(app)[-1]
        assert "x other run" in screen_rows(app)[-1]
        for _ in range(2):
            await press(pilot, "x")
            await run_over(pilot)
            assert view.names == ("run 1", "draft")
            assert compared_runs(view) == (session.opened, changed)


async def test_x_after_undo_does_not_bring_the_change_back(make_app: MakeApp) -> None:
    app = make_app(four_stages())
    session = app.session
    assert isinstance(session, Session)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "5", "tab", "j", "l")
        await run_over(pilot)
        await press(pilot, "u")
        await run_over(pilot)
        assert session.current is session.opened
        await press(pilot, "x")
        await run_over(pilot)
        assert session.current is session.opened
        assert screen_rows(app)[-1].startswith(f" {NO_OTHER_YET}")
        # With one that was kept it is that; Ctrl+R has the change again.
        await press(pilot, "l")
        await run_over(pilot)
        await press(pilot, "r", "l")
        await run_over(pilot)
        changed = session.current
        await press(pilot, "u")
        await run_over(pilot)
        assert session.current is session.runs[1]
        await press(pilot, "x")
        await run_over(pilot)
        assert session.current is session.opened
        await press(pilot, "x")
        await run_over(pilot)
        assert session.current is session.runs[1]
        await press(pilot, "l")
        await run_over(pilot)
        assert session.current.parameters == changed.parameters


async def test_i_without_another_run_says_so(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "6", "i")
        assert screen_rows(app)[-1].startswith(f" {NO_OTHER}")


async def test_enter_on_a_pair_opens_its_lane_on_the_timeline(make_app: MakeApp) -> None:
    app = make_app(four_stages())
    session = app.session
    assert isinstance(session, Session)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "5", "tab", "j", "l")
        await run_over(pilot)
        await press(pilot, "r", "6", *"jj")
        await run_over(pilot)
        view = app.current_view
        assert isinstance(view, CompareView)
        assert view.model is not None
        number, start, end = view.model.at_cursor(1)
        assert start <= view.model.cursor_ns < end
        await press(pilot, "enter")
        timeline = app.current_view
        assert isinstance(timeline, TimelineView)
        assert timeline.model.current.track_id == number
        assert start <= timeline.model.cursor_ns < end
        # A third run, and the first two beside each other.
        await press(pilot, "5", "l")
        await run_over(pilot)
        await press(pilot, "6", "left_parenthesis", "right_parenthesis")
        await run_over(pilot)
        assert compared_runs(view) == (session.runs[1], session.runs[0])
        await press(pilot, "enter")
        assert app.current_view is view
        assert screen_rows(app)[-1].strip() == NOT_ON_SCREEN


def compared_runs(view: CompareView) -> tuple[SimulatedRun, SimulatedRun]:
    assert view.model is not None
    assert view.model.compared.comparison.ops is not None
    return view.model.compared.comparison.a, view.model.compared.comparison.b


# -- what the lines of the screen say ------------------------------------------------


async def test_t_beside_two_runs_tries_the_best_change_of_the_run_on_the_screen(make_app: MakeApp) -> None:
    app = make_app(four_stages())
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "5", *"jjjjjj", "enter", *"zb-h1", "enter")
        await run_over(pilot)
        await press(pilot, "6")
        await run_over(pilot)
        tried = app.session.current
        assert tried.parameters.schedule == "zb-h1"
        await press(pilot, "t")
        await run_over(pilot)
        while app.session.current is tried:
            # The first press began to look for changes.
            assert "what would help" in screen_rows(app)[-1]
            await press(pilot, "t")
            await run_over(pilot)
        knobs = app.runs.known_what_if(tried)
        assert app.session.current.step_time_ns == knobs[0].better10_ns < tried.step_time_ns
        assert "B - A" in screen_text(app)
        # No word of a trace that is not there.
        assert "fit" not in screen_rows(app)[-1]


async def test_with_one_run_the_changes_that_would_make_a_second_are_there_to_try(make_app: MakeApp) -> None:
    app = make_app(four_stages(), first="compare")
    async with app.run_test(size=(120, 36)) as pilot:
        await run_over(pilot)
        rows = screen_rows(app)
        first = next(index for index, row in enumerate(rows) if SECOND_RUN in row)
        assert rows[first + 2].startswith(">interleaved, virtual-stages 8")
        assert sum(not row.strip() for row in rows) <= 2
        knobs = app.runs.what_if(app.session.current)
        assert knobs is not None
        await press(pilot, "j", "t")
        await run_over(pilot)
        # The comparison is here at once, of the run that the row says.
        assert app.session.current.step_time_ns == knobs[1].better10_ns
        assert "B - A" in screen_text(app)
        assert SECOND_RUN not in screen_text(app)


def test_unequal_micro_batches_have_the_same_work_in_the_list_of_runs() -> None:
    """A mean says little of them; of one micro-batch alone it is known, and it is other work."""
    opened = SimulatedRun(simulate(open_workload("fixtures/001_moe_128npu_with_mistakes.txt"), Parameters()))
    session = Session(opened)
    for count in (4, 1):
        kept = HistoryRun(Parameters(microbatches=count), label=opened.setup.label)
        kept.set_results(opened.with_parameters(kept.parameters))
        session.history.append(kept)
    first, twice, one = (text_of(lines) for lines in run_lines(session, 0, [], 200))
    assert "unequal" in first
    assert "unequal" in twice
    assert "-27.1 % same work" in twice
    assert "unequal" not in one
    assert "171.2 ms" in one
