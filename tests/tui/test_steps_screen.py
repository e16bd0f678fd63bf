"""Screen 8 of a made job of several steps: what it draws, and its keys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from simcore.parameters import OpeningOptions, Parameters, RunInput
from simcore.runs import open_run
from simcore.runs.measured import RecordedRun
from simcore.sources.inputs import open_input
from tests.kineto.made_jobs import Job, events
from tests.kineto.test_chrome import span, trace
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import small
from tests.tui.screen_reading import frames_after, press, run_over, screen_rows, screen_text, wait_until
from tests.tui.test_text_frames import frame_after
from tui.app import MISSING, NO_NETWORK, WltuiApp
from tui.screens import screens_of
from tui.session import Run, Session
from tui.steps.frame import HeatScale, find_scale, heat_width, shade, sparkline
from tui.steps.saved import SavedSteps
from tui.steps.table import StepListing
from tui.steps.view import NO_STEPS, SIMULATED, StepsView

SIZES = [(80, 24), (120, 36), (200, 50)]
# dp rank 1 of stage 0 is slow; 12 steps of 4 x 2 ranks.
JOB = Job(4, 2, 1, 4, 12, slow={(1, 0): 1.8}, uneven=0.3)


def session_on(path: str, step: str | None = None) -> Session:
    """As the program opens it."""

    def read(label: str) -> Run:
        return open_run(RunInput(open_input(path, OpeningOptions(label)), Parameters()))

    return Session(open_run(RunInput(open_input(path, OpeningOptions(step=step)), Parameters())), read)


@pytest.fixture
def job(tmp_path: Path, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of a job; no colour setting of who runs the tests reaches the app."""
    make_app()
    monkeypatch.chdir(tmp_path)
    trace(tmp_path, *events(JOB), name="job.json")
    return "job.json"


def view_of(app: WltuiApp) -> StepsView:
    view = app.views["steps"]
    assert isinstance(view, StepsView)
    return view


async def test_steps_are_drawn_as_before(job: str, snapshot: SnapshotAssertion) -> None:
    app = WltuiApp(session_on(job), first="steps")
    for size, text in (await frames_after(app, SIZES, ())).items():
        assert text == snapshot(name=size)


@pytest.mark.parametrize("keys", [("i", "b"), ("i", "i", "l", "o")], ids=["compute", "waits, by time"])
async def test_another_measure_is_drawn_as_before(
    job: str, snapshot: SnapshotAssertion, keys: tuple[str, ...]
) -> None:
    assert await frame_after(WltuiApp(session_on(job), first="steps"), (80, 24), keys) == snapshot


async def test_steps_in_ascii_are_drawn_as_before(job: str, snapshot: SnapshotAssertion) -> None:
    text = await frame_after(WltuiApp(session_on(job), first="steps", ascii_only=True), (80, 24), ())
    assert text.isascii()
    assert text == snapshot


async def test_the_screen_says_who_is_slow_how_often_and_what_the_job_would_gain(job: str) -> None:
    app = WltuiApp(session_on(job), first="steps")
    async with app.run_test(size=(80, 24)) as pilot:
        await run_over(pilot)
        run = open_run(RunInput(open_input(job, OpeningOptions(step="all")), Parameters()))
        findings = run.recording.step_findings  # type: ignore[union-attr]
        assert run.recording.step_table.slow_rank[:2] == (1, 12)  # type: ignore[union-attr]
        text = " ".join(screen_text(app).split())
        assert "Rank 1 is the slowest in 12 of 12 steps" in text
        assert findings.as_peers.gain_ns > 0
        assert "Were rank 1 as its peers" in text


@pytest.mark.parametrize("published", [False, True], ids=["own graphs", "one graph"])
def test_each_replayed_step_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: bool
) -> None:
    if not published:
        monkeypatch.setattr("simcore.replay.step_findings.make_costs", lambda _: None)
    path = trace(tmp_path, *events(JOB))
    run = open_run(RunInput(open_input(path, OpeningOptions(step="all")), Parameters()))
    counts: list[tuple[int, int]] = []
    found = run.recording.find_in_steps(lambda: False, lambda *count: counts.append(count))  # type: ignore[union-attr]
    assert (found.slowdown is not None) == published
    assert counts == [(step, 12) for step in range(12)]


async def test_the_summary_says_which_of_how_many_steps_it_shows(job: str) -> None:
    rows = await frame_after(WltuiApp(session_on(job, "3")), (120, 45), ())
    assert "step 3, 8 has all 12" in rows


async def test_enter_opens_the_step_under_the_cursor(job: str) -> None:
    app = WltuiApp(session_on(job), first="steps")
    async with app.run_test(size=(120, 36)) as pilot:
        await run_over(pilot)
        await press(pilot, "g", "j", "j", "enter")
        await wait_until(pilot, lambda: app.screen_name == "timeline")
        current = app.session.current
        assert current.recording is not None
        assert current.recording.run.recorded.step == 2
        # The table is as it was left.
        await press(pilot, "8")
        assert view_of(app).line == 2


async def test_6_compares_the_slowest_step_with_the_median_one(job: str) -> None:
    app = WltuiApp(session_on(job), first="steps")
    async with app.run_test(size=(120, 36)) as pilot:
        await run_over(pilot)
        steps = view_of(app).table.steps
        await press(pilot, "b", "6")
        await wait_until(pilot, lambda: app.screen_name == "compare")
        runs = app.views["compare"].compared_runs
        assert runs is not None
        numbers = [run.recording.run.recorded.step for run in runs]  # type: ignore[union-attr]
        assert numbers == [steps.steps[steps.median_row], steps.steps[steps.slowest_row]]


async def test_6_compares_with_the_step_that_is_marked(job: str) -> None:
    app = WltuiApp(session_on(job), first="steps")
    async with app.run_test(size=(120, 36)) as pilot:
        await run_over(pilot)
        await press(pilot, "g", "m", "j", "6")
        await wait_until(pilot, lambda: app.screen_name == "compare")
        runs = app.views["compare"].compared_runs
        assert runs is not None
        assert [run.recording.run.recorded.step for run in runs] == [0, 1]  # type: ignore[union-attr]


async def test_a_filter_leaves_the_steps_of_a_rank_and_esc_removes_it(job: str) -> None:
    app = WltuiApp(session_on(job), first="steps")
    async with app.run_test(size=(120, 36)) as pilot:
        await run_over(pilot)
        await press(pilot, "backslash", *"rank", "space", "1", "enter")
        assert len(view_of(app).table.lines) == 12
        await press(pilot, "backslash", *"zap", "enter")
        assert len(view_of(app).table.lines) == 0
        assert view_of(app).table.no_match("zap") in screen_text(app)
        await press(pilot, "escape")
        assert len(view_of(app).table.lines) == 12


@pytest.mark.parametrize("is_small", [True, False], ids=["at once", "behind the picture"])
async def test_measure_order_filter_and_cursor_come_back(
    job: str, monkeypatch: pytest.MonkeyPatch, is_small: bool
) -> None:
    app = WltuiApp(session_on(job), first="steps")
    async with app.run_test(size=(120, 36)) as pilot:
        await run_over(pilot)
        await press(pilot, "i", "i", "l", "o", "backslash", *"backward", "enter", "g", "j")
        state, rows = view_of(app).saved(), screen_rows(app)
    assert state is not None
    monkeypatch.setattr("tui.steps.view._MOST_AT_ONCE", 20_000 if is_small else 1)
    again = WltuiApp(session_on(job), first="steps")
    async with again.run_test(size=(120, 36)) as pilot:
        view_of(again).restore(SavedSteps.read(json.loads(json.dumps(state.as_json())), "steps"), True)
        await wait_until(pilot, lambda: view_of(again).has_table)
        view_of(again).redraw()
        await pilot.pause()
        assert view_of(again).saved() == state
        # But for the chosen column.
        assert screen_rows(again)[11:-1] == rows[11:-1]


async def test_other_screens_of_a_step_lead_to_those_that_there_are(job: str) -> None:
    app = WltuiApp(session_on(job), first="steps")
    async with app.run_test(size=(120, 36)) as pilot:
        await run_over(pilot)
        await press(pilot, "9")
        assert (app.screen_name, app.status_text) == ("steps", NO_NETWORK)
        await press(pilot, "1", "6")
        assert "on 8, 6 compares" in screen_text(app)


def test_runs_made_here_are_counted_and_steps_have_their_own_numbers(job: str) -> None:
    session = session_on(job)
    assert session.run_words() == "run 1 of 1"
    session.show(session.opened.with_parameters(Parameters(slow_rank=("1=0.5",))))
    assert session.run_words() == "draft after run 1"
    assert session.keep() == 2
    assert session.run_words() == "run 2 of 2"
    label = (session.opened.setup.label or "").replace("#11", "#3")
    session.show(session.root(label))
    assert session.run_words() == "step 3"
    session.show(session.root(label).with_parameters(Parameters(slow_rank=("1=0.5",))))
    assert (session.keep(), session.run_words(), session.against_words()) == (3, "run 3 of 3", "step 3")


async def test_more_steps_of_a_running_job_come_under_the_cursor(
    tmp_path: Path, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_app()
    monkeypatch.chdir(tmp_path)
    log = tmp_path / "train.log"
    line = " iteration {}/ 99 | elapsed time per iteration (ms): {} |\n"
    log.write_text("".join(line.format(step, 100 + step) for step in range(1, 4)))
    app = WltuiApp(session_on("train.log"), first="steps")
    async with app.run_test(size=(120, 36)) as pilot:
        await run_over(pilot)
        await press(pilot, "l", "o", "g")
        assert view_of(app).table.mark(view_of(app).line) == 3
        log.write_text("".join(line.format(step, 100 + step) for step in range(1, 6)))
        run = session_on("train.log").opened
        app.session.reload(run, run)
        app.show_everywhere(run)
        await run_over(pilot)
        view = view_of(app)
        assert [view.table.mark(line) for line in range(5)] == [5, 4, 3, 2, 1]
        assert view.table.mark(view.line) == 3


async def test_figures_of_a_log_are_columns_that_sort(
    tmp_path: Path, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_app()
    monkeypatch.chdir(tmp_path)
    losses = {1: 9.5, 2: 7.25, 3: 8.5}
    (tmp_path / "train.log").write_text("".join(
        f" iteration {step}/ 99 | elapsed time per iteration (ms): 100 | lm loss: {loss} |\n"
        for step, loss in losses.items()
    ))  # fmt: skip
    app = WltuiApp(session_on("train.log"), first="steps")
    async with app.run_test(size=(80, 24)) as pilot:
        await run_over(pilot)
        assert [view_of(app).table.texts(line)["loss"] for line in range(3)] == ["9.5", "7.25", "8.5"]
        await press(pilot, "l", "l", "l", "o")
        assert [view_of(app).table.mark(line) for line in range(3)] == [1, 3, 2]


async def test_a_run_of_one_step_says_so_and_its_row_of_screens_lacks_it(
    tmp_path: Path, make_app: MakeApp
) -> None:
    make_app()
    app = WltuiApp(session_on(trace(tmp_path, span("forward", 0, 5))), first="steps")
    async with app.run_test(size=(120, 36)) as pilot:
        await run_over(pilot)
        assert NO_STEPS in screen_text(app)
        assert "steps" not in screens_of(app.session.current)
        await press(pilot, "1")
        assert "8 Steps" not in screen_rows(app)[1]
        await press(pilot, "8")
        assert app.screen_name == "summary"
        assert app.status_text == MISSING["steps"]


async def test_a_simulated_run_says_what_the_screen_is_for(make_app: MakeApp) -> None:
    app = make_app(first="steps")
    async with app.run_test(size=(120, 36)) as pilot:
        await run_over(pilot)
        assert SIMULATED in screen_text(app)


# -- the picture ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [2, 8, 16, 64, 1024])
@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_heat_has_room_beside_a_readable_table(ranks: int, width: int) -> None:
    cells = heat_width(width, ranks)
    assert 0 < cells <= width - 45
    # A rank has whole cells, or a cell several ranks.
    assert cells % ranks == 0 or cells < ranks


def test_a_cell_is_full_for_the_largest_and_blank_for_nothing() -> None:
    from tui.frame import BLOCKS

    scale = HeatScale(0, 80)
    assert [shade(ns, scale, BLOCKS)[0] for ns in (0, 1, 80, -1)] == [
        " ",
        BLOCKS.heat[1],
        BLOCKS.heat[8],
        " ",
    ]


def test_a_sparkline_shows_the_longest_of_several_steps(job: str) -> None:
    from tui.frame import BLOCKS

    recording = session_on(job).opened.recording
    assert recording is not None
    steps = recording.step_table
    line = sparkline(steps, 4, steps.slowest_row, BLOCKS)
    assert len(line) == 4
    full = [at for at, (glyph, _) in enumerate(line) if glyph == BLOCKS.heat[8]]
    assert full == [steps.slowest_row * 4 // 12]
    assert line[full[0]][1].endswith("reversed")
    assert find_scale(steps, "waits").least_ns == 0


async def test_no_key_of_the_screen_ends_the_program_on_a_run_without_steps(make_app: MakeApp) -> None:
    # As with `--screen steps`, or a restored session.
    app = make_app(small(), first="steps")
    async with app.run_test(size=(80, 24)) as pilot:
        for key in ("j", "k", "pagedown", "g", "G", "l", "h", "o", "O", "slash", "escape", "n", "backslash",
                    "escape", "i", "b", "enter", "m"):  # fmt: skip
            await app.action_open("steps")
            await press(pilot, key)
        assert app.is_running


def test_steps_without_any_time_are_listed(tmp_path: Path) -> None:
    lines = [span("forward", 1000.0 * step, 0, step=step) for step in range(3)]
    recording = session_on(trace(tmp_path, *lines), "all").current.recording
    assert isinstance(recording, RecordedRun)
    steps = recording.step_table
    assert steps is not None
    listing = StepListing(steps, {})
    assert [listing.texts(line)["change"] for line in range(3)] == ["="] * 3
