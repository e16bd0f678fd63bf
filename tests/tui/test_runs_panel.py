"""`R`: the history of runs, and what can be done with each."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot

from simcore.parameters import Parameters
from simcore.records import replace
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.units import signed_duration
from simcore.workload import open_workload
from tests.says import said
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import seed, small
from tests.tui.screen_reading import press, run_over, screen_rows, screen_text, wait_until
from tests.tui.test_parameter_form import open_field
from tui.app import WltuiApp
from tui.compare.view import CompareView
from tui.frame import text_of
from tui.runs.panel import HOW_TO_KEEP, MARK_FIRST, OPENED_STAYS, _facts_and_flags
from tui.session import HistoryRun, Session
from tui.state.session_content import StoredRun

SIZES = [(120, 36), (80, 24)]


def session_of(app: WltuiApp) -> Session:
    assert isinstance(app.session, Session)
    return app.session


def with_history(make_app: MakeApp) -> WltuiApp:
    """Seed 002 with two runs of an earlier session: one whose step time is known, one that has a name."""
    app = make_app()
    session_of(app).recall(HistoryRun(Parameters(schedule="zb-h1"), "", 10_700_000_000))
    session_of(app).recall(HistoryRun(Parameters(pp=8, comm_scale=0.5), "half the \x1b[31mtraffic"))
    return app


def rows_of_runs(app: WltuiApp) -> list[str]:
    """The lines of the panel, without empty ones."""
    return [row.rstrip() for row in screen_rows(app) if row.strip()]


async def shown(pilot: Pilot[None], number: int, count: int) -> None:
    """Wait until a run of the history is on the screen."""
    app = pilot.app
    assert isinstance(app, WltuiApp)
    await wait_until(pilot, lambda: f"run {number} of {count}" in screen_text(app))


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_the_panel(make_app: MakeApp, snapshot: SnapshotAssertion, size: tuple[int, int]) -> None:
    app = with_history(make_app)
    async with app.run_test(size=size) as pilot:
        await press(pilot, "R", "j", "space", "j", "space")
        assert "\n".join(rows_of_runs(app)) == snapshot


async def test_what_a_micro_batch_takes_stands_beside_the_step(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "R")
        row = next(row for row in rows_of_runs(app) if "as opened" in row)
        kept = session_of(app).history[0]
        assert kept.step_ns is not None
        assert "14.774 s" in row
        # 16 micro-batches a step.
        assert kept.each_ns == kept.step_ns // 16
        assert "923.4 ms" in row


async def test_on_80_columns_runs_that_differ_in_their_last_flag_are_told_apart(make_app: MakeApp) -> None:
    """Both were `--schedule interleaved --virtual-stages 8 ...`."""
    app = make_app()
    for gathers in (False, True):
        session_of(app).recall(
            HistoryRun(Parameters(schedule="interleaved", virtual_stages=8, overlap_grad_reduce=True,
                               overlap_param_gather=gathers), "", 8_700_000_000)
        )  # fmt: skip
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "R")
        text = " ".join(" ".join(rows_of_runs(app)).split())
        flags = "--schedule interleaved --virtual-stages 8 --overlap-grad-reduce"
        assert text.count(flags) == 2
        assert text.count(f"{flags} --overlap-param-gather") == 1
    # A tenth of what a command line may have is in three rows.
    many = " ".join(f"--slow-rank {rank}=1.5" for rank in range(40))
    rows = [text_of([row]) for row in _facts_and_flags("543.9 ms a micro-batch  ", many, 80)]
    assert len(rows) == 3
    assert all(len(row) <= 80 for row in rows)
    assert rows[-1].endswith(" ...")


async def test_with_one_run_it_says_how_there_are_more(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "R")
        assert HOW_TO_KEEP in screen_text(app)
        await press(pilot, "c")
        assert MARK_FIRST in screen_text(app)
        await press(pilot, "delete")
        assert OPENED_STAYS in screen_text(app)
        await press(pilot, "escape")
        assert "[2 Timeline]" in screen_text(app)


async def test_enter_simulates_a_run_of_an_earlier_session_and_shows_it(make_app: MakeApp) -> None:
    app = with_history(make_app)
    session = session_of(app)
    async with app.run_test(size=(120, 36)) as pilot:
        assert [run.results is None for run in session.history] == [False, True, True]
        await press(pilot, "R", "j", "j", "enter")
        await run_over(pilot)
        await shown(pilot, 3, 3)
        assert session.current.simulation.parameters == Parameters(pp=8, comm_scale=0.5)
        assert session.draft == session.current.simulation.parameters
        # Its step time is now known, and the other one still waits.
        assert [run.results is None for run in session.history] == [False, True, False]
        assert session.history[2].step_ns == session.current.step_time_ns
        await press(pilot, "R", "k", "k", "enter")
        await shown(pilot, 1, 3)
        assert session.current is session.opened


async def test_n_gives_a_run_a_name(make_app: MakeApp) -> None:
    app = with_history(make_app)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "R", "j", "n", *"zero", "enter")
        assert session_of(app).history[1].name == "zero"
        assert any(" 2  zero  " in row for row in rows_of_runs(app))
        await press(pilot, "n", "x", "escape")
        assert session_of(app).history[1].name == "zero"


async def test_delete_takes_a_run_away(make_app: MakeApp) -> None:
    app = with_history(make_app)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "R", "j", "j", "delete")
        assert [run.parameters for run in session_of(app).history] == [
            Parameters(), Parameters(schedule="zb-h1"),
        ]  # fmt: skip
        assert any(row.startswith(">     2") for row in rows_of_runs(app))


async def test_a_run_that_is_named_or_removed_is_so_on_screen_6_at_once(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=(120, 36)) as pilot:
        await open_field(pilot, "compute scale")
        await press(pilot, "greater_than_sign")
        await run_over(pilot)
        await press(pilot, "r", "6")
        assert " B  run 2 " in screen_text(app)
        await press(pilot, "R", "G", "n", *"twice", "enter", "escape")
        assert " B  twice " in screen_text(app)
        await press(pilot, "R", "G", "delete", "escape")
        assert " B  draft " in screen_text(app)
        assert "draft after run 1" in session_of(app).run_words()


async def test_two_marked_runs_are_compared_the_first_as_a(make_app: MakeApp) -> None:
    app = make_app(small())
    session = session_of(app)
    opened = session.opened.simulation.parameters
    one, other = replace(opened, schedule="gpipe"), replace(opened, comm_scale=0.5)
    for parameters in (one, other):
        session.recall(HistoryRun(parameters))
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "R", "j", "space", "j", "space", "c")
        await run_over(pilot)
        await wait_until(pilot, lambda: app.screen_name == "compare")
        await run_over(pilot)
        view = app.current_view
        assert isinstance(view, CompareView)
        assert view.model is not None
        assert view.model.compared.comparison.ops is not None
        assert view.model.compared.comparison.a.simulation.parameters == one
        assert view.model.compared.comparison.b.simulation.parameters == other
        # And once more, with the screen there already: the one at the cursor with the marked one.
        await press(pilot, "R", "k", "space", "k", "c")
        await run_over(pilot)
        await wait_until(pilot, lambda: session.current is session.opened)
        await run_over(pilot)
        assert view.model.compared.comparison.ops is not None
        assert view.model.compared.comparison.a.simulation.parameters == one
        assert view.model.compared.comparison.b is session.opened


async def test_a_run_that_cannot_be_simulated_is_said_and_stays_in_the_history(make_app: MakeApp) -> None:
    app = make_app()
    session = session_of(app)
    session.recall(HistoryRun(Parameters(tp=3)))
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "R", "j", "enter")
        await run_over(pilot)
        await wait_until(pilot, lambda: "change not run" in screen_text(app))
        assert session.current is session.opened
        assert len(session.history) == 2


def test_a_run_that_is_there_already_gets_the_name_of_its_like() -> None:
    session = Session(seed())
    session.recall(HistoryRun(Parameters(), "base"))
    assert [(run.name, run.results) for run in session.history] == [("base", seed())]


async def test_the_last_row_names_the_other_run_once_there_are_two(make_app: MakeApp) -> None:
    app = make_app(small())
    session = session_of(app)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "5", "j", "j", "j", "h")
        await run_over(pilot)
        # To what was opened `u` leads, too.
        assert session.other is session.opened
        assert "x other run" not in screen_rows(app)[-1]
        await press(pilot, "r", "1")
        assert "x other run" in screen_rows(app)[-1]
        await press(pilot, "x")
        assert session.current is session.opened


async def test_x_goes_back_and_forth_between_a_draft_that_was_not_kept_and_the_run_before(
    make_app: MakeApp,
) -> None:
    app = make_app()
    session = session_of(app)
    async with app.run_test(size=(120, 36)) as pilot:
        await open_field(pilot, "compute scale")
        await press(pilot, "greater_than_sign")
        await run_over(pilot)
        draft = session.current
        assert draft.simulation.parameters == Parameters(compute_scale=2.0)
        for _ in range(2):
            await press(pilot, "x")
            assert session.current is session.opened
            assert session.draft == Parameters()
            said(screen_rows(app)[-1:], "run 1 of 1", "14.774 s", "x", "draft")
            await press(pilot, "x")
            assert session.current is draft
            assert session.draft == Parameters(compute_scale=2.0)
            assert f"draft after run 1, {session.step}" in screen_rows(app)[-1]
        await press(pilot, "x", "j")
        assert "x other run" in screen_rows(app)[-1]
        await press(pilot, "u")
        await run_over(pilot)
        assert session.current.simulation.parameters == Parameters(compute_scale=2.0)


async def test_a_run_of_other_work_is_neither_a_gain_nor_a_loss(make_app: MakeApp) -> None:
    """The row on top said so; the list had `-2.914 ms (-1.7 %)`."""
    path = "fixtures/001_moe_128npu_with_mistakes.txt"
    app = make_app(SimulatedRun(simulate(open_workload(path), Parameters())), first=None)
    async with app.run_test(size=(80, 24)) as pilot:
        await run_over(pilot)
        await press(pilot, "t")
        await run_over(pilot)
        assert app.session.current.parameters.without_lines == ("83-93",)
        await press(pilot, "R")
        assert any(row.endswith(" 171.2 ms  -1.7 %, other work") for row in rows_of_runs(app))


async def test_what_runs_of_an_earlier_session_are_worth_goes_by_their_work(make_app: MakeApp) -> None:
    """After a restart the list had `-2.914 ms (-1.7 %)` of other work and `+79.578 ms` of twice the batch."""
    path = "fixtures/001_moe_128npu_with_mistakes.txt"
    opened = SimulatedRun(simulate(open_workload(path), Parameters()))
    asked = [Parameters(microbatches=1), Parameters(microbatches=4), Parameters(without_lines=("82-83",)),
             Parameters(schedule="zb-h1")]  # fmt: skip
    runs = [opened.with_parameters(parameters) for parameters in asked]
    stored = [StoredRun(run.parameters, "", run.step_time_ns, work=run.shape.work) for run in runs]
    app = make_app(opened, first=None)
    for run in stored:
        app.session.recall(HistoryRun(run.parameters, "", run.step_ns, work=run.work))
    async with app.run_test(size=(80, 24)) as pilot:
        await run_over(pilot)
        await press(pilot, "R")
        rows = rows_of_runs(app)
        for words in (
            " 171.2 ms  -1.7 %, other work",
            " 253.7 ms  -27.1 % same work",
            " 189.1 ms  +8.6 %, other work",
            f" 160.9 ms  {signed_duration(runs[3].step_time_ns - opened.step_time_ns)} (-7.6 %)",
        ):
            assert any(row.endswith(words) for row in rows), (words, rows)
        assert [run.results is None for run in app.session.history] == [False, True, True, True, True]
