"""A prompt, panel or list over the screen answers once, however fast its keys come."""

from __future__ import annotations

from tests.tui.conftest import MakeApp
from tests.tui.made_runs import small
from tests.tui.pseudo_terminal import ROOT, SEED, wltui
from tests.tui.screen_reading import press, screen_rows
from tui.app import TRIES_ELSEWHERE
from tui.panel import Modal
from tui.timeline.view import TimelineView


async def test_a_second_answer_takes_nothing_else_away(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=(120, 36)) as pilot:
        for key in ("slash", "colon", "question_mark", "apostrophe", "backslash"):
            await press(pilot, key)
            modal = app.screen
            assert isinstance(modal, Modal)
            modal.dismiss(None)
            modal.dismiss(None)
            await press(pilot, "j")
            assert screen_rows(app)[7].startswith(">+ stage  1")
            await press(pilot, "k")
            assert screen_rows(app)[6].startswith(">+ stage  0")


async def test_the_keys_of_the_screens_lead_out_of_a_panel(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=(120, 36)) as pilot:
        for key in ("question_mark", "R", "apostrophe"):
            await press(pilot, key, "4")
            assert len(app.screen_stack) == 1
            assert app.screen_name == "why"
            await press(pilot, "question_mark", "exclamation_mark")
            assert app.screen_name == "notes"
            await press(pilot, "2")


async def test_a_key_to_the_open_screen_closes_the_panel(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "question_mark", "2", "j")
        assert screen_rows(app)[7].startswith(">+ stage  1")


async def test_t_on_a_screen_without_changes_says_where_they_are(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=(120, 36)) as pilot:
        for key in ("2", "3", "5", "exclamation_mark"):
            await press(pilot, key, "t")
            assert screen_rows(app)[-1].startswith(f" {TRIES_ELSEWHERE}")


async def test_the_details_are_those_of_the_place_that_their_title_names(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "enter")
        opened = screen_rows(app)
        assert "At the cursor" in opened[0]
        # A key that was typed before the panel was there moves the timeline below.
        view = app.current_view
        assert isinstance(view, TimelineView)
        view.action_span(1)
        await press(pilot, "ctrl+l")
        assert screen_rows(app) == opened


def test_every_screen_over_the_screen_is_one_that_answers_once() -> None:
    rooms = sorted((ROOT / "tui").rglob("*.py"))
    assert [path.name for path in rooms if "(ModalScreen[" in path.read_text(encoding="utf-8")] == [
        "panel.py"
    ]


def test_enter_held_down_in_a_prompt_does_not_end_the_program() -> None:
    with wltui(SEED) as terminal:
        terminal.wait_for("At the cursor")
        for _ in range(5):
            terminal.press("\\")
            terminal.wait_for(lambda: "filter" in terminal.lines[-1] or "only" in terminal.lines[-1])
            terminal.press("\r" * 12)
            terminal.settle(0.3)
            # Out of the panel that Enter opens on the timeline.
            terminal.press("\x1b")
            terminal.wait_for(lambda: "q quit" in terminal.lines[-1])
        assert terminal.process.poll() is None
