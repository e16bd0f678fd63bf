"""The form: a change runs in a worker and shows old and new step time; what cannot be is said in place."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from simcore.diagnostics import InputError, UsageError
from simcore.networks import NETWORKS
from simcore.parameters import Parameters
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import four_stages, plain_run, run, seed, small, two_stages
from tests.tui.screen_reading import press, run_over, screen_rows, screen_text
from tui.app import WltuiApp
from tui.frame import text_of
from tui.parameters.fields import fields_for
from tui.parameters.view import AS_OPENED, ON_EVERY_SCREEN, ParametersView
from tui.session import Run, Session

SIZE = (120, 36)


async def open_field(pilot: Pilot[None], label: str) -> ParametersView:
    """The form with the cursor on a field."""
    app = pilot.app
    assert isinstance(app, WltuiApp)
    if app.screen_name != "parameters":
        # There, on a field that was moved to, it begins a value.
        await press(pilot, "5")
    view = app.current_view
    assert isinstance(view, ParametersView)
    view.action_move(
        next(i for i, field in enumerate(view.form.fields) if field.label == label) - view.form.cursor
    )
    return view


async def type_value(pilot: Pilot[None], text: str) -> None:
    """Type a value into the prompt and take it."""
    await press(pilot, "enter")
    await press(pilot, *text, "enter")
    await run_over(pilot)


class LoneForm(ParametersView):
    """The form without its app: a draft is run at once, and what is drawn is asked for."""

    said = ""

    def __init__(self, opened: Run) -> None:
        super().__init__(Session(opened), ascii_only=False)

    @property
    def _app(self) -> Any:
        return self

    def say(self, text: str) -> None:
        self.said = text

    def redraw(self) -> None:
        self.form.follow()

    def _run(self) -> None:
        self.refusal.clear()
        self.session.error = ""
        try:
            self.session.current = self.session.opened.with_parameters(self.session.draft)
        except (UsageError, InputError) as refused:
            self.session.error = str(refused)

    def go_to(self, label: str) -> None:
        """Moves the cursor to a field."""
        assert self.form.go_to_label(label)

    def enter_value(self, label: str, text: str) -> None:
        """Takes a text as the answer to the prompt of a field."""
        self.go_to(label)
        self._typed._accept(text)

    def drawn(self, width: int = 120, height: int = 33) -> str:
        """The text of its panel of fields, in one line; of narrow ones the whole frame."""
        rows = text_of(self.frame(width, height)).split("\n")
        return " ".join(" ".join(row[1:67] if width > 100 else row for row in rows).split())


async def test_a_changed_value_is_run_and_every_screen_shows_it(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await open_field(pilot, "compute scale")
        await press(pilot, "greater_than_sign")
        await run_over(pilot)
        assert app.session.draft == Parameters(compute_scale=2.0)
        assert app.session.current.simulation.parameters == app.session.draft
        assert app.session.current is not app.session.opened
        now = app.session.current.simulation.step_time_ns
        assert now == seed(compute_scale=2.0).simulation.step_time_ns
        for key in ("5", "2", "3", "exclamation_mark"):
            await press(pilot, key)
            assert "step 28.747 s  +13.973 s (+94.6 %)" in screen_rows(app)[1]
        await press(pilot, "2")
        assert " 28.7 s, " in next(row for row in screen_rows(app) if row.startswith(" view "))
        await press(pilot, "3")
        assert " x compute scale 2" in screen_text(app)


@pytest.mark.parametrize("size", [(120, 36), (80, 24)])
async def test_old_and_new_step_time_and_the_difference_stand_in_the_form(
    make_app: MakeApp, size: tuple[int, int]
) -> None:
    app = make_app()
    async with app.run_test(size=size) as pilot:
        await open_field(pilot, "compute scale")
        assert AS_OPENED.partition(":")[0] in " ".join(screen_text(app).split())
        await press(pilot, "less_than_sign")
        await run_over(pilot)
        text = " ".join(screen_text(app).split())
        assert "step 7.788 s" in text
        assert "was 14.774 s" in text
        assert "-6.987 s (-47.3 %)" in text
        assert ON_EVERY_SCREEN.partition(";")[0] in text
        assert "* compute scale < 0.5 > x was 1" in text


async def test_a_low_screen_has_several_fields_and_the_step(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(60, 15)) as pilot:
        await press(pilot, "5")
        labels = {field.label for field in fields_for(seed().simulation)}
        listed = [row for row in screen_rows(app) if row[3:23].strip() in labels]
        assert len(listed) >= 4
        assert any(row.startswith(" step 14.774 s") for row in screen_rows(app)[2:])


async def test_a_timeline_that_was_never_looked_at_again_shows_the_new_run(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "w", "w", "j", "space")
        await open_field(pilot, "pp")
        await type_value(pilot, "4")
        await press(pilot, "2")
        assert "1024 ranks = tp 8 x dp 32 x pp 4" in screen_rows(app)[0]
        assert "x256" in screen_text(app)


@pytest.mark.parametrize(
    ("label", "text", "complaint"),
    [
        ("tp", "many", "--tp many: a whole number from 1 to 2^40 is expected"),
        ("compute scale", "-2", "--compute-scale -2: a number of 0 or more (up to 1e12) is expected"),
        ("schedule", "[red]x[/red]", "[red]x[/red]: error no-such-file"),
        ("schedule", "zb", "--schedule: one of layer-loop, gpipe, 1f1b"),
        ("tp", "3", "world 1024 is not a multiple of tp 3 x pp 16 = 48"),
        ("world", "99999999", "world 99999999: at most 16777216 ranks (2^24) are simulated"),
        ("ep", "7", "ep 7 divides neither dp 8 nor tp 8 x dp 8 = 64"),
        ("microbatches", "70000", "70000 micro-batches on 16 stages"),
    ],
)
def test_a_refused_value_says_why_and_the_run_stays(label: str, text: str, complaint: str) -> None:
    view = LoneForm(seed())
    view.enter_value(label, text)
    assert complaint in view.drawn()
    assert view.session.current is view.session.opened


async def test_after_a_refused_value_the_picture_stays_and_the_next_good_one_runs(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await open_field(pilot, "tp")
        await type_value(pilot, "3")
        assert app.session.error
        assert "step 14.774 s" in screen_rows(app)[1]
        await type_value(pilot, "4")
        assert app.session.error == ""
        assert app.session.current.simulation.layout.tp == 4
        # A value that could not be run is taken back, too.
        await type_value(pilot, "3")
        assert app.session.error
        await press(pilot, "u")
        await run_over(pilot)
        assert app.session.error == ""
        assert app.session.current.simulation.layout.tp == 4
        assert "is not a multiple" not in screen_text(app)


@pytest.mark.parametrize("key", ["ctrl+o", "ctrl+r"])
async def test_where_a_refusal_stands_is_drawn_at_once(make_app: MakeApp, key: str) -> None:
    app = make_app(small())
    async with app.run_test(size=SIZE) as pilot:
        await open_field(pilot, "tp")
        await type_value(pilot, "3")
        await press(pilot, key)
        drawn = screen_rows(app)[:-1]
        await press(pilot, "ctrl+l")
        assert screen_rows(app)[:-1] == drawn


def test_a_refusal_is_whole_on_80_columns() -> None:
    view = LoneForm(seed())
    for text, complaint in (
        ("3", "world 1024 is not a multiple of tp 3 x pp 16 = 48: 1008 or 1056 would fit"),
        ("x" * 100, "a whole number from 1 to 2^40 is expected"),
    ):
        view.enter_value("tp", text)
        assert complaint in view.drawn(80, 21)


def test_a_value_too_large_to_simulate_is_refused() -> None:
    view = LoneForm(four_stages())
    view.enter_value("compute scale", "1e12")
    assert view.session.current is view.session.opened
    assert view.session.error


async def test_undo_and_redo_take_the_picture_along(make_app: MakeApp) -> None:
    app = make_app(plain_run())
    async with app.run_test(size=SIZE) as pilot:
        await open_field(pilot, "compute scale")
        for key in ("greater_than_sign", "greater_than_sign"):
            await press(pilot, key)
            await run_over(pilot)
        for key, scale in (
            ("u", 2.0),
            ("u", 1.0),
            ("u", 1.0),
            ("ctrl+r", 2.0),
            ("ctrl+r", 4.0),
            ("ctrl+r", 4.0),
        ):
            await press(pilot, key)
            await run_over(pilot)
            assert app.session.draft.compute_scale == scale
            assert app.session.current.simulation.parameters.compute_scale == scale
            step = app.session.current.simulation.step_time_ns
            assert step == run(two_stages(), compute_scale=scale).simulation.step_time_ns
        await press(pilot, "u", "u")
        await run_over(pilot)
        assert app.session.current is app.session.opened
        assert "as opened" in screen_text(app)
        assert "*" not in "".join(row[:3] for row in screen_rows(app))


def test_delete_makes_every_field_what_it_was_when_the_file_was_opened() -> None:
    opened = small()
    form = LoneForm(opened).form
    as_opened = [field.text(form.follow()) for field in form.fields]
    left = {}
    for number, field in enumerate(form.fields):
        view = LoneForm(opened)
        view.form.move(number)
        assert view.form.current_field.label == field.label
        view.action_scrub(1, False)
        view.action_reset()
        assert field.text(view.form.follow()) == as_opened[number]
        if view.session.draft != opened.simulation.parameters:
            left[field.label] = view.session.draft
    assert left == {}


def test_a_reset_dimension_grows_again_with_the_world() -> None:
    view = LoneForm(run(two_stages()))
    view.go_to("dim 0  bandwidth")
    view.action_scrub(1, False)
    assert view.session.current is not view.session.opened
    view.action_reset()
    view.enter_value("world", "64")
    assert view.session.error == ""


async def test_letters_typed_into_the_prompt_are_text_and_not_keys(make_app: MakeApp) -> None:
    app = make_app(plain_run())
    async with app.run_test(size=SIZE) as pilot:
        view = await open_field(pilot, "schedule")
        await press(pilot, "enter")
        assert "schedule" in screen_rows(app)[-1]
        field = app.screen.query_one(Input)
        assert field.has_focus
        assert field.value == "1f1b"
        await press(pilot, *"q235!ujkhl?e ")
        assert field.value == "q235!ujkhl?e "
        assert app.screen_name == "parameters"
        assert app.session.draft == Parameters()
        await press(pilot, "escape")
        assert app.session.draft == Parameters()
        assert view.refusal.words == ""
        await press(pilot, "enter")
        await press(pilot, *"layer-loop", "enter")
        await run_over(pilot)
        assert app.session.draft == Parameters(schedule="layer-loop")


async def test_what_is_typed_replaces_the_value_and_can_be_edited(make_app: MakeApp) -> None:
    app = make_app(plain_run())
    async with app.run_test(size=SIZE) as pilot:
        await open_field(pilot, "microbatches")
        await press(pilot, "enter")
        await press(pilot, "3", "2", "backspace", "0", "enter")
        await run_over(pilot)
        assert app.session.draft.microbatches == 30
        assert "1f1b, 30 micro-batches" in screen_rows(app)[0]


async def test_a_prompt_left_as_it_was_changes_nothing(make_app: MakeApp) -> None:
    app = make_app(plain_run())
    async with app.run_test(size=SIZE) as pilot:
        # A choice, a list, a number and a network: the prompt offers what the field shows.
        for label in ("dim 0  algorithm", "dimensions", "compute scale", "network"):
            view = await open_field(pilot, label)
            await press(pilot, "enter")
            assert app.screen.query_one(Input).value == view.form.current_field.text(view.form.follow())
            await press(pilot, "enter")
            await run_over(pilot)
            assert app.session.draft == Parameters()
            assert app.session.current is app.session.opened


def test_taking_the_value_of_any_field_unchanged_is_no_change() -> None:
    view = LoneForm(small())
    for field in view.form.fields:
        view.enter_value(field.label, field.text(view.form.follow()))
        assert view.session.current is view.session.opened, field.label
        assert view.refusal.words == "", field.label
        assert not view.session.undo(), field.label


def test_a_value_back_as_it_was_opened_is_given_as_it_was_then() -> None:
    """Virtual stages at 2 and at 1 again were a draft with a warning, `0 changed`, and a restored session."""
    view = LoneForm(plain_run())
    for label in ("virtual stages", "passes", "overlap gather", "dim 1  bandwidth"):
        view.go_to(label)
        before = view.session.draft
        view.action_scrub(1, False)
        assert view.session.draft != before
        view.action_scrub(-1, False)
        assert view.session.draft == before == Parameters()
    assert "no effect" not in view.drawn()


@pytest.mark.parametrize("network", NETWORKS)
def test_each_field_of_each_network_has_a_value_and_is_moved(network: str) -> None:
    named = {"busbw": "busbw:tests/networks/simai/busbw.yaml"}.get(network, network)
    made = run(two_stages(), network=named, cluster="spectrum-x:8" if network == "flows" else None)
    for field in fields_for(made.simulation):
        assert field.displayed_value(made.simulation)
        assert field.text(made.simulation)
        assert field.origin(made.simulation)
        for direction in (1, -1):
            for large in (False, True):
                with suppress(UsageError):
                    field.scrubbed(made.simulation, direction, large)
    assert LoneForm(made).frame(120, 36)
