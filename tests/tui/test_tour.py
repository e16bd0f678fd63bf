"""The tour of six keys: shown once, in the last row; each key does its work; Esc ends it."""

from __future__ import annotations

from pathlib import Path

import pytest

from simcore.parameters import Parameters
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.workload import open_workload
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import four_stages
from tests.tui.pseudo_terminal import wltui
from tests.tui.screen_reading import press, run_over, screen_rows
from tui.panels import WHAT_IF
from tui.tour import FIXES, OTHERWISE, SHORT, STEPS, TRY_FIRST, TRY_THIS, Tour, first_tour

MISTAKES = "fixtures/001_moe_128npu_with_mistakes.txt"


def test_it_is_shown_once_and_not_where_that_cannot_be_kept(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    assert first_tour(environ) is not None
    assert first_tour(environ) is None
    assert first_tour({"XDG_STATE_HOME": "/dev/null/state"}) is None


def test_only_the_key_that_it_names_goes_on_and_escape_ends_it() -> None:
    tour = Tour()
    assert not tour.press("w")
    for number, (_, key, _) in enumerate(STEPS):
        assert tour.step == number
        assert tour.press(key)
    assert tour.is_over
    assert not Tour().press("j")
    left = Tour()
    assert left.press("escape")
    assert left.is_over
    assert not left.press("t")


@pytest.mark.parametrize("width", [80, 120, 200])
def test_its_line_fits_says_how_it_ends_and_has_the_first_key_of_the_screen(width: int) -> None:
    """Planted: no room for Tab at 80 columns, as before."""
    for screen in ("", "summary", "timeline", "layers"):
        tour = Tour()
        for _, key, _ in STEPS:
            line = "".join(text for text, _ in tour.line(width, (("Tab", "panel"), ("hjkl", "move")), screen))
            assert len(line) == width
            assert "  Esc ends " in line
            # The keys of the screen are there while it runs.
            assert line.endswith(" ? keys  q quit ")
            assert "  Tab panel " in line
            assert "..." not in line
            tour.press(key)


def test_a_step_whose_key_does_nothing_on_the_open_screen_is_the_key_that_leads_to_where_it_does() -> None:
    """Planted: Space on the summary, which has no lanes."""

    def said(tour: Tour, screen: str, runs: int = 2) -> str:
        return "".join(text for text, _ in tour.line(200, (), screen, runs)).partition("Esc")[0].strip()

    tour = Tour()
    assert f"  t  {SHORT[0]}" in said(tour, "summary")
    assert f"  1  opens the summary, where t {SHORT[0]}" in said(tour, "timeline")
    assert not tour.press("t", "timeline")
    assert tour.press("t", "why")
    # Nothing was tried: there is nothing to go back to, and the timeline is next.
    assert "3 of 6:  2  opens the timeline" in said(tour, "summary", 1)
    assert "2 of 6:  x  goes back" in said(tour, "summary")
    assert tour.press("2", "summary", 1)
    for screen in ("summary", "layers", "why", "parameters"):
        assert "4 of 6:  2  opens the timeline, where Space unfolds" in said(tour, screen)
        assert not tour.press("space", screen)
        assert not tour.press("2", screen)
    assert f"  Space  {STEPS[3][2]}" in said(tour, "timeline")
    assert tour.press("space", "timeline")
    for screen in ("summary", "timeline"):
        assert "  4  says why" in said(tour, screen)
    words = "".join(text for text, _ in Tour().step_words(40, "layers"))
    assert words == " 1  opens the summary "


async def test_escape_closes_the_help_and_the_tour_goes_on(make_app: MakeApp) -> None:
    app = make_app(first=None)
    app.tour = Tour()
    async with app.run_test(size=(120, 36)) as pilot:
        await run_over(pilot)
        await press(pilot, "question_mark", "escape")
        assert screen_rows(app)[-1].startswith(" Tour, 1 of 6:  t ")
        await press(pilot, "escape")
        assert " of 6" not in screen_rows(app)[-1]


async def test_escape_ends_the_tour_and_leaves_no_screen(make_app: MakeApp) -> None:
    """On screen 4 it ended the tour and led to the timeline at once."""
    app = make_app(first="why")
    app.tour = Tour()
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "escape")
        assert app.tour.is_over
        assert app.screen_name == "why"
        await press(pilot, "escape")
        assert app.screen_name == "timeline"


async def test_the_keys_of_the_tour_do_their_work(make_app: MakeApp) -> None:
    app = make_app(four_stages(), first=None)
    app.tour = Tour()
    async with app.run_test(size=(120, 36)) as pilot:
        await run_over(pilot)
        assert screen_rows(app)[-1].startswith(f" Tour, 1 of 6:  t  {SHORT[0]}")
        await press(pilot, "t")
        await run_over(pilot)
        assert app.session.current.step_time_ns < app.session.opened.step_time_ns
        # What the key had to say leaves room for the next one.
        said, words = screen_rows(app)[-1].strip().split("  ", 1)
        assert (said, words.strip()) == ("run 2 of 2: 2.229 s", f"x  {SHORT[1]}")
        assert screen_rows(app)[-1].startswith(" run 2 of 2: ")
        await press(pilot, "x")
        assert screen_rows(app)[-1].strip().endswith("2  opens the timeline")
        await press(pilot, "2")
        assert app.screen_name == "timeline"
        await press(pilot, "w")
        assert screen_rows(app)[-1].startswith(" Tour, 4 of 6:  Space ")
        await press(pilot, "escape")
        assert screen_rows(app)[-1].startswith(" w s zoom")


def test_the_first_start_in_a_terminal_has_it_and_the_second_has_not(tmp_path: Path) -> None:
    env: dict[str, str | None] = {"XDG_STATE_HOME": str(tmp_path)}
    with wltui(MISTAKES, screen=None, env=env, tour=True) as terminal:
        terminal.wait_for(" 1 of 6:")
        terminal.press_each(("2", " 1 of 6:"), ("q", ""))
    with wltui(MISTAKES, screen=None, env=env, tour=True) as terminal:
        terminal.wait_for("? keys")
        assert " of 6:" not in terminal.text
        terminal.press_each(("q", ""))


async def test_on_a_wide_screen_its_own_keys_stand_beside_the_tour(make_app: MakeApp) -> None:
    keys = {120: "Space all words  4 all changes  Tab panel  ? keys", 200: "5 parameters  ? keys"}
    for width, words in keys.items():
        app = make_app(first=None)
        app.tour = Tour()
        async with app.run_test(size=(width, 36)) as pilot:
            await run_over(pilot)
            row = screen_rows(app)[-1]
            assert f" 1 of 6:  t  {SHORT[0]}" in row
            assert words in row
            # Its key is there once.
            assert f"t {TRY_FIRST}" not in row
            await press(pilot, "escape")
            assert f"t {TRY_FIRST}" in screen_rows(app)[-1]


async def test_with_a_change_marked_the_tour_says_that_t_tries_this_one(make_app: MakeApp) -> None:
    app = make_app(first=None)
    app.tour = Tour()
    async with app.run_test(size=(120, 40)) as pilot:
        await run_over(pilot)
        assert f"t  {SHORT[0]}" in screen_rows(app)[-1]
        while app.current_view.model.panel != WHAT_IF:  # type: ignore[attr-defined]
            await press(pilot, "tab")
        await press(pilot, "j")
        assert f"t  {OTHERWISE[TRY_THIS]}" in screen_rows(app)[-1]
        await press(pilot, "escape")
        assert "t try this change" in screen_rows(app)[-1]


async def test_where_the_first_change_fixes_the_file_the_tour_and_the_keys_say_so(make_app: MakeApp) -> None:
    """A newcomer pressed `t` for the first change that gains, and had the file fixed."""
    app = make_app(SimulatedRun(simulate(open_workload(MISTAKES), Parameters())), first=None)
    app.tour = Tour()
    async with app.run_test(size=(80, 24)) as pilot:
        await run_over(pilot)
        assert f" 1 of 6:  t  {OTHERWISE[FIXES]} " in screen_rows(app)[-1]
        await press(pilot, "4")
        assert f" 1 of 6:  t  {OTHERWISE[FIXES]} " in screen_rows(app)[-1]
        await press(pilot, "escape")
        assert " t try the fix " in screen_rows(app)[-1]
        await press(pilot, "1")
        assert screen_rows(app)[-1].startswith(" t try the fix ")
        await press(pilot, "t")
        await run_over(pilot)
        await press(pilot, "j")
        assert screen_rows(app)[-1].startswith(f" t {TRY_FIRST} ")
