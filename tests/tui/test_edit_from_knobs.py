"""`e` on a change of the what-if table leads to the field that it is about."""

from __future__ import annotations

import re

import pytest

from simcore.parameters import Parameters
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import small
from tests.tui.screen_reading import press, run_over, screen_text
from tests.tui.test_measured_screens import app_on, four_ranks
from tui.panels import WHAT_IF
from tui.panels_view import PanelsView
from tui.parameters.view import ParametersView

FIELDS = {
    "dimension 0 bandwidth": "dim 0  bandwidth",
    "dimension 1 latency": "dim 1  latency",
    "layer mlp_row": "time scale",
    "compute fwd": "time scale",
    "stream tp": "time scale",
    "--schedule zb-h1": "schedule",
}


def test_every_knob_has_parameters_and_so_a_field() -> None:
    assert all(knob.parameters is not None for knob in small().what_if())


@pytest.mark.parametrize("screen", ["1", "4"])
async def test_e_leads_to_the_field_of_the_marked_change(make_app: MakeApp, screen: str) -> None:
    app = make_app(small())
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, screen)
        await run_over(pilot)
        found = {}
        for knob, field in FIELDS.items():
            await press(pilot, screen)
            view = app.current_view
            assert isinstance(view, PanelsView)
            while view.model.panel != WHAT_IF:
                await press(pilot, "tab")
            assert view.model.knobs is not None
            listed = [one.knob for one in view.model.knobs]
            if screen == "1" and knob not in listed:
                # The summary has the best of changes that differ in their overlap alone.
                continue
            place = listed.index(knob)
            view.action_move(-100)
            view.action_move(place)
            chosen = view.model.selected_change()
            if chosen is None or chosen.knob != knob:
                # The summary has the best changes alone.
                continue
            await press(pilot, "e")
            form = app.current_view
            assert isinstance(form, ParametersView)
            found[knob] = form.form.current_field.label
            assert found[knob] == field
            form.action_move(-100)
        assert len(found) >= (1 if screen == "1" else len(FIELDS))


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_screen_5_shows_what_an_advice_changed(make_app: MakeApp, size: tuple[int, int]) -> None:
    app = app_on(make_app, four_ranks(), first="summary")
    async with app.run_test(size=size) as pilot:
        factor = Parameters(slow_rank=("3=0.5",))
        app.runs.try_run(app.session.opened.setup.with_parameters(factor))
        await run_over(pilot)
        await press(pilot, "5")
        assert re.search(r">\* rank 3 +< 0\.5 > +x +was 1", screen_text(app))
        await press(pilot, "g")
        assert re.search(r"  replay +implied +by factors", screen_text(app))
        if size[0] > 100:
            assert "1 changed" in screen_text(app)
        # And of the next one, which comes while another screen is open.
        await press(pilot, "1")
        app.runs.try_run(
            app.session.opened.setup.with_parameters(
                Parameters(slow_rank=("3=0.5",), layer_scale=("forward_step=0.9",))
            )
        )
        await run_over(pilot)
        await press(pilot, "5")
        assert re.search(r">\* forward_step +< 0\.9 > +x +was 1", screen_text(app))
