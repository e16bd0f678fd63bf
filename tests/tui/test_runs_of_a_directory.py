"""The runs of a directory of traces: listed with their step times, shown, compared, and found again."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

from simcore.parameters import OpeningOptions, Parameters, RunInput
from simcore.runs import open_run
from simcore.sources import inputs
from tests.measured.traces import step, write_set
from tests.tui.conftest import MakeApp
from tests.tui.pseudo_terminal import wltui
from tests.tui.screen_reading import press, run_over, screen_rows, screen_text, wait_until
from tui.app import WltuiApp
from tui.session import Run, Session

# The newest run is the one that opens; of each run how many times as long everything takes.
STAMPS = [f"2025010{day}000000" for day in range(9, 4, -1)]
SPEEDS = dict(zip(STAMPS, (3, 5, 1, 4, 2), strict=True))


def slowed(text: str, factor: int) -> str:
    """A trace on which everything takes so many times as long."""
    return re.sub(
        r"(timestamp|duration)=([0-9.]+)", lambda found: f"{found[1]}={Decimal(found[2]) * factor}", text
    )


def write_jobs(folder: Path) -> str:
    """A directory with five runs of two ranks."""
    folder.mkdir()
    for stamp, factor in SPEEDS.items():
        write_set(folder, {rank: slowed(step(rank, stage=rank), factor) for rank in range(2)}, stamp=stamp,
                  world=2)  # fmt: skip
    return str(folder)


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The directory, with a state directory of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return write_jobs(tmp_path / "jobs")


def session_on(path: str) -> Session:
    """As the program opens it."""

    def read(label: str) -> Run:
        return open_run(RunInput(inputs.open_input(path, OpeningOptions(label)), Parameters()))

    return Session(open_run(RunInput(inputs.open_input(path), Parameters())), read)


async def test_the_panel_reads_all_step_times_and_names_the_extremes(make_app: MakeApp, jobs: str) -> None:
    make_app()
    app = WltuiApp(session_on(jobs), first="timeline")
    async with app.run_test(size=(120, 36)) as pilot:
        assert "run 1 of 5" in screen_text(app)
        await press(pilot, "R")
        await wait_until(pilot, lambda: "slowest of them" in screen_text(app))
        rows = [row.split() for row in screen_rows(app)[2:7]]
        assert [row[row.index("ms") - 1] for row in rows] == [f"{SPEEDS[stamp] * 10}.000" for stamp in STAMPS]
        assert [" ".join(row[-2:]) for row in rows] == [f"--run {stamp}" for stamp in STAMPS]
        assert "slowest of them" in screen_rows(app)[3]
        assert "fastest of them" in screen_rows(app)[4]
        assert "reading" not in screen_text(app)


async def test_two_of_them_are_compared_and_both_can_be_swapped(make_app: MakeApp, jobs: str) -> None:
    make_app()
    app = WltuiApp(session_on(jobs), first="timeline")
    async with app.run_test(size=(120, 36)) as pilot:
        # A the fastest, B the slowest.
        await press(pilot, "R", "j", "j", "space", "k", "c")
        await run_over(pilot)
        await wait_until(pilot, lambda: app.screen_name == "compare")
        await run_over(pilot)
        text = screen_text(app)
        assert " A  run 3" in text
        assert " B  run 2" in text
        assert "B - A  +40.000 ms" in text
        assert app.session.current.setup.label == STAMPS[1]
        assert app.session.command() == f"wltui {jobs} --run {STAMPS[1]}"
        # Other runs that were read stand as A and as B.
        await press(pilot, "left_parenthesis")
        assert " A  run 3" not in screen_text(app)
        await press(pilot, "right_parenthesis")
        assert " B  run 2" not in screen_text(app)


async def test_a_replay_of_another_run_is_one_of_that_run(make_app: MakeApp, jobs: str) -> None:
    make_app()
    session = session_on(jobs)
    app = WltuiApp(session, first="timeline")
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "R", "j", "enter")
        await run_over(pilot)
        assert session.opened.setup.label == STAMPS[1]
        # From the last field, the host gaps of rank 1, to rank 1; half.
        await press(pilot, "5", "G", *"kkkkkkk", "less_than_sign")
        await run_over(pilot)
        changed = session.current
        assert (changed.setup.label, changed.parameters) == (STAMPS[1], Parameters(slow_rank=("1=0.5",)))
        assert changed.figures.kind == "replayed"
        await press(pilot, "r")
        assert app.status_text == "kept as run 6: R has all runs, n there names one"
        await press(pilot, "u")
        await run_over(pilot)
        assert session.current is session.opened
        # The one that was opened first is as it was.
        await press(pilot, "R", "g", "enter")
        await run_over(pilot)
        assert (session.current.setup.label, session.current.step_time_ns) == (STAMPS[0], 30_000_000)
        assert session.draft == Parameters()


async def test_the_panel_begins_at_the_run_that_a_draft_is_of(make_app: MakeApp, jobs: str) -> None:
    make_app()
    app = WltuiApp(session_on(jobs), first="parameters")
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "G", *"kkkkk", "less_than_sign")
        await run_over(pilot)
        assert app.session.find_in_history(app.session.current) is None
        await press(pilot, "R")
        assert [row.split()[0] for row in screen_rows(app)[2:4]] == [">", "2"]


async def test_a_run_that_cannot_be_read_says_so_and_the_others_are_read(
    make_app: MakeApp, jobs: str
) -> None:
    make_app()
    session = session_on(jobs)
    broken = next(path for path in Path(jobs).iterdir() if STAMPS[3] in path.name)
    broken.write_text(broken.read_text()[:-40])
    app = WltuiApp(session, first="timeline")
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "R")
        await wait_until(pilot, lambda: all(run.step_ns for run in session.history if run.label != STAMPS[3]))
        await wait_until(pilot, lambda: "error trace-" in screen_text(app))
        assert broken.name in re.sub(r"\s", "", screen_text(app))
        assert "not run yet" in screen_rows(app)[5]
        await press(pilot, "j", "j", "j", "enter")
        await run_over(pilot)
        # It is said, and the draft of the run on the screen is not to blame.
        assert "error trace-" in app.status_text
        assert session.error == ""
        assert session.current is session.opened


@pytest.mark.slow
def test_the_slowest_is_found_changed_kept_and_there_again(tmp_path: Path) -> None:
    jobs = write_jobs(tmp_path / "jobs")
    state: dict[str, str | None] = {"XDG_STATE_HOME": str(tmp_path / "state")}
    with wltui(jobs, screen=None, env=state) as terminal:
        terminal.wait_for("Measured step")
        terminal.press_each(("R", "slowest of them"), ("j\r", "run 2 of 5"), ("5", "as opened"))
        terminal.press_each(("Gkkkkk", ">  rank 1 host gaps"), ("kk", ">  rank 1  "))
        terminal.press_each(("<", "--slow-rank 1=0.5"), ("r", "kept as run 6"), ("q", ""))
        assert terminal.wait_for_end() == 0
    with wltui(jobs, screen=None, env=state) as terminal:
        terminal.wait_for("restored: run 6 of 6; x shows run 1, as opened")
        terminal.press_each(("R", f"--run {STAMPS[1]} --slow-rank 1=0.5"), ("q", ""), ("q", ""))
        assert terminal.wait_for_end() == 0
