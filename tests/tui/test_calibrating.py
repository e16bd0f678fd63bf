"""Calibrating on the screen: what is tried and saved, what is refused, how it stops."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simcore.calibration import Calibration, calibrate_run
from simcore.diagnostics import Cancelled
from simcore.measured import MeasuredRun
from simcore.parameters import Parameters
from simcore.render.report.calibration import NOTHING_SAVED, fitted_title
from simcore.runs.measured import RecordedRun
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate
from simcore.sources.inputs import open_input
from simcore.units import duration
from simcore.workload import Workload
from tests.measured.traces import Op, Sub
from tests.says import figures, said
from tests.tui.conftest import MakeApp, MakePair, calibrating_of
from tests.tui.screen_reading import press, run_over, screen_rows, screen_text, wait_until
from tui.app import WltuiApp
from tui.compare.calibrating import ALREADY_TRIED, NOT_YET, NOTHING_TO_TRY, STOPPED, WAIT
from tui.exporting import WRITE_OVER, FileQuestion
from tui.runs.runs import STILL_RUNNING
from tui.session import Session

SIZE = (120, 36)
OPEN_BOTH = " To fit a workload to a trace open both: wltui WORKLOAD --against DIR"


# -- what is done with it ------------------------------------------------------------


async def test_t_makes_it_the_run_on_the_screen_and_x_and_u_come_back(make_pair: MakePair) -> None:
    app = make_pair()
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "F")
        await run_over(pilot)
        assert screen_rows(app)[-1].startswith(" t try it  S save  jk scroll  Esc back ")
        await press(pilot, "t")
        await run_over(pilot)
        rows = screen_rows(app)
        assert rows[-1].startswith(" run 2 of 2: 36.000 ms; x shows run 1 again ")
        # The comparison has followed.
        assert rows[3].startswith(" B  run 2    36.000 ms  made.txt, simulated")
        assert app.session.command() == (
            "wltui made.txt --dim switch:2:9.00003:0 --dim switch:2:9.99999:0 --compute-scale 2.0"
        )
        await press(pilot, "2", "x")
        await run_over(pilot)
        assert "step 17.500 ms" in screen_rows(app)[1]
        await press(pilot, "x")
        await run_over(pilot)
        assert "step 36.000 ms" in "".join(screen_rows(app)[:2])
        await press(pilot, "5", "u")
        await run_over(pilot)
        assert "step 17.500 ms" in screen_rows(app)[1]
        assert "run 1 of 2" in screen_rows(app)[1]


async def test_what_t_tried_can_be_saved_while_its_run_is_on_the_screen(
    make_pair: MakePair, tmp_path: Path
) -> None:
    app = make_pair()
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "F")
        await run_over(pilot)
        await press(pilot, "t")
        await run_over(pilot)
        await press(pilot, "S", "ctrl+u", *str(tmp_path / "t.toml"), "enter")
        assert "compute_scale = 2.0" in (tmp_path / "t.toml").read_text()
        # Of another run nothing is fitted.
        await press(pilot, "5", "j", "l", "6")
        await run_over(pilot)
        await press(pilot, "S")
        assert screen_rows(app)[-1].startswith(f" {NOT_YET}")


async def test_what_is_on_the_screen_already_is_not_tried_again(make_pair: MakePair) -> None:
    app = make_pair(parameters=Parameters(network="simai-auto", compute_scale=2.0))
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "F")
        await run_over(pilot)
        said(screen_rows(app), "compute scale", "2 -> 2", "forward and backward")
        await press(pilot, "t")
        assert screen_rows(app)[-1].startswith(f" {ALREADY_TRIED} ")
        assert calibrating_of(app).is_open


async def test_while_a_run_is_simulated_nothing_is_tried(make_pair: MakePair) -> None:
    app = make_pair()
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "F")
        await run_over(pilot)
        assert isinstance(app.session, Session)
        app.session.running = True
        await press(pilot, "t")
        assert screen_rows(app)[-1].startswith(f" {STILL_RUNNING} ")
        assert calibrating_of(app).is_open
        app.session.running = False


async def test_a_saved_file_is_named_in_the_panel_and_never_written_over_unasked(
    make_pair: MakePair, pair_folder: Path
) -> None:
    app = make_pair()
    there = pair_folder / "there.toml"
    there.write_text("tp = 2\n")
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "F")
        await run_over(pilot)
        await press(pilot, "S")
        said(screen_rows(app)[-1:], "save", "as fitted.toml")
        await press(pilot, *"there.toml", "enter")
        assert figures(screen_rows(app)[-2]) == ["there.toml"]
        assert screen_rows(app)[-1].rstrip() == f" {WRITE_OVER} no"
        await press(pilot, "enter")
        assert screen_rows(app)[-1].startswith(" not saved: there.toml ")
        assert there.read_text() == "tp = 2\n"
        await press(pilot, "S", "enter")
        assert screen_rows(app)[-1].startswith(" saved: fitted.toml ")
        assert " Saved in fitted.toml: --params takes it " in screen_text(app)
        await press(pilot, "S", *"there.toml", "enter", *"yes", "enter")
        assert " Saved in there.toml: --params takes it " in screen_text(app)
        # It came there after the question.
        late = pair_folder / "late.toml"
        calibration = calibrating_of(app)._current
        assert isinstance(calibration, Calibration)

        def write_late(path: str, force: bool) -> str:
            late.write_text("pp = 2\n")
            return calibrating_of(app)._write(calibration, path, force)

        FileQuestion(app, write_late, app.say).ask("save as", "late.toml")
        await press(pilot, "enter")
        assert figures(screen_rows(app)[-1]) == ["late.toml", "--force"]
        assert late.read_text() == "pp = 2\n"
    text = 'dim = ["switch:2:9.00003:0", "switch:2:9.99999:0"]\ncompute_scale = 2.0\n'
    assert (pair_folder / "fitted.toml").read_text() == there.read_text() == text


# -- what is refused -----------------------------------------------------------------


async def test_alone_a_workload_and_a_trace_say_what_is_to_be_opened(
    make_app: MakeApp, pair_folder: Path
) -> None:
    make_app()
    workload, measured = open_input("made.txt"), open_input("traces")
    assert isinstance(workload, Workload)
    assert isinstance(measured, MeasuredRun)
    simulated = SimulatedRun(simulate(workload, Parameters()))
    of_trace = Session(RecordedRun(measured))
    for app, words in (
        (WltuiApp(Session(simulated), first="compare"), OPEN_BOTH),
        (WltuiApp(Session(simulated, against=simulated), first="compare"), OPEN_BOTH),
        (WltuiApp(of_trace, first="compare"), OPEN_BOTH),
        (WltuiApp(Session(of_trace.opened, against=of_trace.opened), first="compare"), OPEN_BOTH),
    ):
        async with app.run_test(size=(80, 24)) as pilot:
            assert "calibrate" not in screen_rows(app)[-1]
            for key in ("F", "S"):
                await press(pilot, "j")
                assert screen_rows(app)[-1].rstrip() != words
                await press(pilot, key)
                assert screen_rows(app)[-1].rstrip() == words


async def test_a_trace_that_was_opened_first_has_the_workload_beside_it_fitted(make_pair: MakePair) -> None:
    of_workload = make_pair().session
    assert of_workload.against is not None
    session = Session(of_workload.against, against=of_workload.opened)
    app = WltuiApp(session, first="compare")
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "F")
        await run_over(pilot)
        fitted = app.views["compare"].calibrating._current  # type: ignore[attr-defined]
        assert fitted.is_fitted
        await press(pilot, "t")
        await run_over(pilot)
        assert session.against is not None
        assert figures(app.status_text) == [duration(session.against.step_time_ns)]
        assert session.against.parameters == fitted.after.parameters
        # What is on the screen is still the trace.
        assert session.current is session.opened
        assert screen_rows(app)[2].startswith(" A  against")


async def test_steps_that_cannot_be_compared_are_refused_in_the_words_of_the_command(
    make_pair: MakePair,
) -> None:
    app = make_pair(parameters=Parameters(microbatches=3))
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "F")
        await run_over(pilot)
        assert [row.rstrip() for row in screen_rows(app)[3:6]] == [
            " calibrate: the trace has 1 micro-batch, the simulated step 3 micro-batches",
            " (--microbatches 1)",
            "",
        ]
        assert screen_rows(app)[-1].startswith(" Esc back ")
        await press(pilot, "t")
        assert screen_rows(app)[-1].rstrip() == f" {NOTHING_TO_TRY}"
        await press(pilot, "S")
        assert screen_rows(app)[-1].rstrip() == f" {NOTHING_SAVED}"
        await press(pilot, "escape")
        assert screen_rows(app)[2].startswith(" A  against")


async def test_where_nothing_is_in_both_nothing_is_tried_or_saved(
    make_pair: MakePair, pair_folder: Path
) -> None:
    # A forward step that is communication throughout.
    op = Op("forward_step", "1004.00", "6.00", subs=(Sub("1004.00", "6.00"),))
    (pair_folder / "one.txt").write_text(op.line(0) + "\n")
    app = make_pair("one.txt")
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "F")
        await run_over(pilot)
        found = calibrating_of(app)._current
        assert isinstance(found, Calibration)
        assert not found.is_fitted
        assert f"── {fitted_title(found)} ─" in screen_text(app)
        assert "saves these" not in screen_text(app)
        await press(pilot, "t")
        assert screen_rows(app)[-1].rstrip() == f" {NOTHING_TO_TRY}"
        await press(pilot, "S")
        assert screen_rows(app)[-1].rstrip() == f" {NOTHING_SAVED}"
    assert not list(pair_folder.glob("*.toml"))


async def test_before_it_was_asked_for_there_is_nothing_to_try_or_save(make_pair: MakePair) -> None:
    app = make_pair()
    async with app.run_test(size=(80, 24)) as pilot:
        await run_over(pilot)
        assert "  F calibrate " in screen_rows(app)[-1]
        for key in "tS":
            await press(pilot, key)
            assert screen_rows(app)[-1].rstrip() == f" {NOT_YET}"


# -- in the background ---------------------------------------------------------------


class Gate:
    """Holds a calibration up, one run of two done, until it is opened."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.begun = self.cancelled = 0

    def calibrate_run(
        self,
        before: Simulation,
        measured: MeasuredRun,
        progress: Callable[[int, int], None],
        cancelled: Callable[[], bool],
    ) -> Calibration:
        self.begun += 1
        while not self.opened.wait(0.005):
            progress(1, 2)
            if cancelled():
                self.cancelled += 1
                raise Cancelled
        return calibrate_run(before, measured, progress, cancelled)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    found = Gate()
    monkeypatch.setattr("simcore.calibration.calibrate_run", found.calibrate_run)
    yield found
    found.opened.set()


async def test_it_says_how_far_it_is_and_escape_stops_it(make_pair: MakePair, gate: Gate) -> None:
    app = make_pair()
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "F")
        await wait_until(pilot, lambda: "simulating 1 of 2, Esc stops it" in screen_text(app))
        assert screen_rows(app)[-1].startswith(" Esc stop ")
        for key in "tS":
            await press(pilot, key)
            assert screen_rows(app)[-1].rstrip() == f" {WAIT}"
        await press(pilot, "escape")
        await wait_until(pilot, lambda: gate.cancelled == 1)
        assert screen_rows(app)[-1].rstrip() == f" {STOPPED}"
        assert screen_rows(app)[2].startswith(" A  against")
        gate.opened.set()
        await press(pilot, "F")
        await run_over(pilot)
        assert "Measured step   36.000 ms" in screen_text(app)
        assert screen_rows(app)[-1].startswith(" t try it ")
        await press(pilot, "escape", "F")
        await run_over(pilot)
        # What was found is not looked for again.
        assert gate.begun == 2
        await press(pilot, "escape", "escape")
        assert app.screen_name == "timeline"


async def test_another_screen_may_be_looked_at_meanwhile(make_pair: MakePair, gate: Gate) -> None:
    app = make_pair()
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "F", "4")
        await wait_until(pilot, lambda: gate.begun == 1)
        gate.opened.set()
        await run_over(pilot)
        assert app.screen_name == "why"
        await press(pilot, "6")
        assert "Measured step   36.000 ms" in screen_text(app)
        assert screen_rows(app)[-1].startswith(" t try it ")


async def test_a_run_that_is_changed_on_another_screen_is_fitted_when_it_is_looked_at(
    make_pair: MakePair, gate: Gate
) -> None:
    gate.opened.set()
    app = make_pair()
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "F")
        await run_over(pilot)
        await press(pilot, "1")
        await run_over(pilot)
        await press(pilot, "t")
        await run_over(pilot)
        assert app.session.current is not app.session.opened
        assert gate.begun == 1
        await press(pilot, "6")
        await run_over(pilot)
        assert gate.begun == 2
        rows = screen_rows(app)
        assert rows[4].startswith(f" Simulated step  {app.session.step} (")
        assert rows[-1].startswith(" t try it ")


async def test_what_was_fitted_for_another_run_is_not_tried_or_saved(make_pair: MakePair) -> None:
    app = make_pair()
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "F")
        await run_over(pilot)
        await press(pilot, "escape", "1")
        await run_over(pilot)
        await press(pilot, "t")
        await run_over(pilot)
        await press(pilot, "6")
        for key in "tS":
            await press(pilot, key)
            assert screen_rows(app)[-1].startswith(f" {NOT_YET} ")


async def test_keys_of_the_comparison_leave_it_alone_while_the_panel_covers_it(make_pair: MakePair) -> None:
    app = make_pair()
    async with app.run_test(size=SIZE) as pilot:
        await run_over(pilot)
        before = screen_text(app)
        await press(pilot, "F")
        await run_over(pilot)
        panel = screen_text(app)
        for key in (
            "w",
            "s",
            "a",
            "d",
            "h",
            "l",
            "full_stop",
            "f",
            "i",
            "vertical_line",
            "tab",
            "enter",
            "left_parenthesis",
            "right_parenthesis",
        ):
            await press(pilot, key)
            assert screen_text(app) == panel
        await press(pilot, "escape")
        assert screen_text(app) == before


async def test_the_palette_finds_it_from_another_screen(make_pair: MakePair) -> None:
    app = make_pair()
    async with app.run_test(size=SIZE) as pilot:
        for words in ("calibrate", "fit the work"):
            keys = ["space" if char == " " else char for char in words]
            await press(pilot, "3", "colon", *keys, "enter")
            await run_over(pilot)
            assert app.screen_name == "compare"
            assert "Measured step   36.000 ms" in screen_text(app)
            await press(pilot, "escape")
