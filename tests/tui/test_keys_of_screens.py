"""Every key of every screen does something, and none of them ends the program but quit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from textual.binding import Binding
from textual.pilot import Pilot

from simcore.measured import MeasuredRun
from simcore.parameters import Parameters
from tests.says import said
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import four_stages, plain_run, seed, small
from tests.tui.screen_reading import begun_over, press, run_over, screen_rows, screen_text
from tests.tui.test_measured_screens import PLAN, app_on, four_ranks, made
from tui.app import WltuiApp
from tui.compare.model import PAIRS
from tui.compare.view import NO_TIMES, CompareView
from tui.help import HelpScreen
from tui.keys.actions import key_name
from tui.layers.view import LayersView
from tui.notes.view import NotesView
from tui.parameters.view import ParametersView
from tui.screens import SCREENS
from tui.session import Run
from tui.summary.model import MAP, WORST
from tui.summary.side_panels import RankMap
from tui.summary.view import SummaryView
from tui.timeline.query import parse_query
from tui.timeline.search import Search
from tui.timeline.view import TimelineView
from tui.why.frame import SEGMENTS
from tui.why.view import WhyView

SIZE = (120, 36)
KEY_OF = {
    "summary": "1", "timeline": "2", "layers": "3", "why": "4", "parameters": "5", "compare": "6",
    "sweep": "7", "steps": "8", "notes": "exclamation_mark",
}  # fmt: skip


def keys_of(view: type) -> list[str]:
    """Every key that a screen binds to an action; digits of the form are a part of one."""
    named = [one for one in view.BINDINGS if isinstance(one, Binding) and one.id is not None]
    return [key for one in named for key in one.key.split(",")]


async def open_screen(pilot: Pilot[None], name: str) -> None:
    """Open a screen by its key."""
    await press(pilot, KEY_OF[name])


@pytest.mark.parametrize("size", [(120, 36), (80, 24)])
async def test_the_keys_of_the_screens_open_them_and_each_is_found_as_it_was_left(
    make_app: MakeApp, size: tuple[int, int]
) -> None:
    app = make_app(plain_run())
    async with app.run_test(size=size) as pilot:
        assert app.screen_name == "timeline"
        await press(pilot, "j", "j", "space")
        left = screen_text(app)
        for name, words in (("layers", "mlp_row"), ("parameters", "> "), ("notes", "cluster-default")):
            await open_screen(pilot, name)
            assert app.screen_name == name
            assert words in screen_text(app)
            assert f"[{SCREENS[name].key} " in screen_text(app)
            assert app.focused is app.current_view
        await open_screen(pilot, "timeline")
        assert screen_text(app) == left


async def test_opening_the_open_screen_changes_nothing(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=SIZE) as pilot:
        before = screen_text(app)
        await press(pilot, "2", "2")
        assert screen_text(app) == before


async def test_escape_leads_back_to_the_timeline(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=SIZE) as pilot:
        for screen in ("layers", "why", "parameters", "compare", "notes"):
            await open_screen(pilot, screen)
            assert app.screen_name == screen
            await press(pilot, "escape")
            assert app.screen_name == "timeline"
            assert "At the cursor" in screen_text(app)


@pytest.mark.parametrize("key", ["q", "ctrl+q", "ctrl+c"])
async def test_quit_ends_with_status_0(make_app: MakeApp, key: str) -> None:
    app = make_app(small())
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, key)
        assert not app.is_running or app._exit
    assert app.return_code == 0


async def test_every_screen_has_the_keys_that_quit_and_ctrl_q_and_ctrl_c_are_those_of_help_and_prompts_too(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(small())
    ended: list[str] = []
    # The run has no links and one step.
    screens = [name for name in SCREENS if name not in ("steps", "links")]
    places: dict[str, tuple[str, ...]] = {name: (KEY_OF[name],) for name in screens}
    places |= {"help": ("question_mark",), "prompt": ("5", "enter")}
    async with app.run_test(size=SIZE) as pilot:
        monkeypatch.setattr(app, "exit", lambda *_, **__: ended.append(key))
        for place, keys in places.items():
            await press(pilot, *keys)
            for key in ("q", "ctrl+q", "ctrl+c") if place in SCREENS else ("ctrl+q", "ctrl+c"):
                await press(pilot, key)
                assert ended == [key], (place, key)
                ended.clear()
            if place not in SCREENS:
                await press(pilot, "escape")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("screen", "view"),
    [
        ("summary", SummaryView),
        ("timeline", TimelineView),
        ("layers", LayersView),
        ("why", WhyView),
        ("parameters", ParametersView),
        ("compare", CompareView),
        ("notes", NotesView),
    ],
)
@pytest.mark.parametrize("size", [(120, 36), (80, 24)])
async def test_help_lists_every_key_of_the_screen_and_those_of_all_screens(
    make_app: MakeApp, screen: str, view: type, size: tuple[int, int]
) -> None:
    app = make_app(small())
    async with app.run_test(size=size) as pilot:
        await open_screen(pilot, screen)
        await run_over(pilot)
        before = screen_text(app)
        await press(pilot, "question_mark")
        seen = set(screen_rows(app))
        while not any("Esc closes this" in row for row in seen):
            await press(pilot, "j")
            seen |= set(screen_rows(app))
        for one in [*view.BINDINGS, *app.BINDINGS]:
            assert isinstance(one, Binding)
            if one.id is None:
                continue
            keys = "  ".join(key_name(key) for key in one.key.split(","))
            assert any(row.startswith(f"  {keys} ") and one.description in row for row in seen), keys
        await press(pilot, "escape")
        assert screen_text(app) == before


async def test_help_is_left_by_its_keys_and_the_program_goes_on(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=SIZE) as pilot:
        for key in ("escape", "question_mark", "q", "enter"):
            await press(pilot, "question_mark")
            assert isinstance(app.screen, HelpScreen)
            said(screen_rows(app), "Keys", "timeline")
            await press(pilot, key)
            assert "At the cursor" in screen_text(app)
            assert not app._exit


Prepare = Callable[[WltuiApp], None]


def in_the_middle(app: WltuiApp, lane: int, zooms: int, query: str) -> None:
    """In the middle of a timeline: zoomed, scrolled, a range, a search, with views before and after."""
    view = app.current_view
    assert isinstance(view, TimelineView)
    model = view.model
    model.show_all()
    model.lane, model.cursor_ns = lane, model.window.step_ns // 2
    for _ in range(zooms):
        model.zoom(1, 2)
    model.pan(1, 8)
    model.back()
    model.notice = ""
    model.selection.fix(model.window.first_ns, model.cursor_ns)
    model.search = Search(model.source, parse_query(query), model.unfolded)
    view.redraw()


def prepare_timeline(app: WltuiApp) -> None:
    """Among the lanes of 16 stages."""
    in_the_middle(app, 8, 5, "bubble")


def prepare_summary(app: WltuiApp) -> None:
    """In the middle of the map of ranks, its Enter and `t` leading to another screen or run."""
    view = app.current_view
    assert isinstance(view, SummaryView)
    view.model.panel = MAP
    view.model.set_cursor(MAP, 1, 2)
    view.redraw()


def prepare_why(app: WltuiApp) -> None:
    """In the middle of the legs of the path."""
    view = app.current_view
    assert isinstance(view, WhyView)
    view.model.panel = SEGMENTS
    view.model.cursors[SEGMENTS] = 12, 0
    view.redraw()


def prepare_layers(app: WltuiApp) -> None:
    """In the middle of the table."""
    view = app.current_view
    assert isinstance(view, LayersView)
    view.line, view.column = 8, 2
    view._sought = "grad"
    view.table.sort("bytes", True)
    view.redraw()


def prepare_parameters(app: WltuiApp) -> None:
    """On a changed field, with a change to take back and one to make again."""
    view = app.current_view
    assert isinstance(view, ParametersView)
    view.form.cursor = next(i for i, field in enumerate(view.form.fields) if field.label == "compute scale")
    for scale in (1.5, 2.0, 2.5):
        app.session.edit(
            app.session.opened.setup.with_parameters(replace(app.session.draft, compute_scale=scale))
        )
    app.session.undo()
    view.redraw()


def prepare_notes(app: WltuiApp) -> None:
    """On the note in the middle, on a screen that is too low for all notes."""
    view = app.current_view
    assert isinstance(view, NotesView)
    view.focus_at = view.top = 1
    view.redraw()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("screen", "view", "prepare", "opened", "size"),
    [
        # With a slow rank the map has rows to move in.
        ("summary", SummaryView, prepare_summary, lambda: four_stages(slow_rank=("3=1.3",)), SIZE),
        ("timeline", TimelineView, prepare_timeline, seed, SIZE),
        ("layers", LayersView, prepare_layers, four_stages, SIZE),
        ("why", WhyView, prepare_why, four_stages, SIZE),
        ("parameters", ParametersView, prepare_parameters, small, SIZE),
        ("notes", NotesView, prepare_notes, small, (80, 7)),
    ],
)
async def test_every_key_of_a_screen_does_something(
    make_app: MakeApp, screen: str, view: type, prepare: Prepare, opened: Callable[[], Run],
    size: tuple[int, int],
) -> None:  # fmt: skip
    app = make_app(opened())
    nothing = []
    async with app.run_test(size=size) as pilot:
        for key in keys_of(view):
            if app.screen_name != screen:
                await open_screen(pilot, screen)
            prepare(app)
            await pilot.pause()
            before = screen_text(app)
            await press(pilot, key)
            if screen_text(app) == before:
                nothing.append(key)
            if len(app.screen_stack) > 1:
                await press(pilot, "escape")
        await run_over(pilot)
    assert nothing == []


async def test_the_last_row_names_only_keys_that_are_bound(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=(200, 36)) as pilot:
        for name in SCREENS.keys() - {"steps", "links"}:
            await open_screen(pilot, name)
            for _, words in app.current_view.hints:
                assert words in screen_rows(app)[-1]
            assert screen_rows(app)[-1].endswith(" ? keys  q quit ")


def measured(what: str) -> MeasuredRun:
    """Four ranks of two stages; or an order without times."""
    return made(PLAN) if what == "plan" else four_ranks()


def prepare_measured_timeline(app: WltuiApp) -> None:
    """Among the lanes of four ranks."""
    in_the_middle(app, 1, 3, "forward")


def prepare_panels(app: WltuiApp) -> None:
    """On the second of the worst places, or of the legs; of a plan of the notes."""
    view = app.current_view
    assert isinstance(view, SummaryView | WhyView)
    panels = view.model.panels
    view.model.panel = next((one for one in (WORST, SEGMENTS) if one in panels), panels[0])
    view.model.set_cursor(view.model.panel, 1)
    view.redraw()


def prepare_operations(app: WltuiApp) -> None:
    """In the middle of the table of operations."""
    view = app.current_view
    assert isinstance(view, LayersView)
    view.line, view.column = 1, 2
    view._sought = "ward"
    view.redraw()


def prepare_scales(app: WltuiApp) -> None:
    """On a changed factor, with a change to take back and one to make again."""
    view = app.current_view
    assert isinstance(view, ParametersView)
    if view.form.fields:
        view.form.cursor = 1
    if not app.session.running and app.session.current.timed:
        for scale in (1.5, 2.0, 2.5):
            app.session.edit(
                app.session.opened.setup.with_parameters(replace(app.session.draft, comm_scale=scale))
            )
        app.session.undo()
    view.redraw()


def prepare_pairs(app: WltuiApp) -> None:
    """The run beside a replay of it that was kept."""
    session, view = app.session, app.current_view
    assert isinstance(view, CompareView)
    if session.current.timed and len(session.history) == 1:
        session.show(session.opened.with_parameters(Parameters(compute_scale=2.0)))
        session.keep()
        view.show(session.current)
    if view.model is not None:
        # In the middle: half zoomed, on a pair with others above and below it.
        view.model.show_all()
        view.model.zoom(1, 4)
        # Of two pairs: up leads from this one, down from the other.
        view.model.panel, view.model.pair = PAIRS, 1 - view.model.pair
    view.redraw()


def prepare_measured_notes(app: WltuiApp) -> None:
    """On the only note."""
    app.current_view.redraw()


# A plan has a list of notes and no legs: there the cursor is where it leads to, and Tab has one panel; what
# is whole on the screen has nowhere to scroll to.
MOVES = {"tab", "shift+tab", "j", "down", "k", "up", "pagedown", "pageup", "g", "home", "G", "end", "enter"}


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.parametrize("what", ["trace", "plan"])
@pytest.mark.parametrize(
    ("screen", "view", "prepare"),
    [
        ("summary", SummaryView, prepare_panels),
        ("timeline", TimelineView, prepare_measured_timeline),
        ("layers", LayersView, prepare_operations),
        ("why", WhyView, prepare_panels),
        ("parameters", ParametersView, prepare_scales),
        ("compare", CompareView, prepare_pairs),
        ("notes", NotesView, prepare_measured_notes),
    ],
)
async def test_every_key_of_a_screen_does_something_on_a_measured_run_or_says_why_not(
    make_app: MakeApp, screen: str, view: type, prepare: Prepare, what: str
) -> None:
    app = app_on(make_app, measured(what), first=screen)
    nothing = []
    async with app.run_test(size=SIZE) as pilot:
        await run_over(pilot)
        for key in keys_of(view):
            if app.screen_name != screen:
                await open_screen(pilot, screen)
            prepare(app)
            app.status_text = ""
            app.changed()
            await pilot.pause()
            before = screen_text(app)
            await press(pilot, key)
            await begun_over(pilot)
            if screen == "compare" and screen_text(app) == before:
                prepare(app)
                await pilot.pause()
                before = screen_text(app)
                await press(pilot, key)
            if screen_text(app) == before:
                nothing.append(key)
            if len(app.screen_stack) > 1:
                await press(pilot, "escape")
        if screen == "compare" and what == "plan":
            await open_screen(pilot, screen)
            assert NO_TIMES in screen_text(app)
            return
    assert set(nothing) <= (MOVES if what == "plan" or screen == "notes" else set())


async def test_the_keys_of_both_kinds_of_run_are_the_same(make_app: MakeApp) -> None:
    for app in (make_app(small()), app_on(make_app, measured("trace"))):
        async with app.run_test(size=(200, 36)) as pilot:
            for name, view in (("summary", SummaryView), ("why", WhyView)):
                await open_screen(pilot, name)
                assert type(app.current_view) is view


async def test_left_and_right_say_where_they_move(make_app: MakeApp) -> None:
    app = app_on(make_app, measured("trace"), first="summary")
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "l")
        assert app.status_text == app.current_view.model.side_panel.sideways_text
    app = make_app(small(), first="summary")
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "h")
        assert app.status_text == RankMap.sideways_text
        await press(pilot, "tab", "l")
        assert app.status_text == ""
