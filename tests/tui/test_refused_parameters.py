"""A refusal stands as long as what was refused, and files of parameters know of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from simcore.diagnostics import InputError, UsageError
from simcore.parameters import Parameters
from tests.says import figures
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import seed
from tests.tui.screen_reading import press, run_over, screen_rows, screen_text
from tests.tui.test_parameter_form import LoneForm, open_field, type_value
from tests.tui.test_parameter_keys import answer
from tui.frame import text_of
from tui.parameters.view import NOTHING_TO_UNDO, ON_EVERY_SCREEN, UNCHANGED, ParametersView
from tui.session import Session
from tui.timeline.view import NO_VIEW_AFTER, NO_VIEW_BEFORE

SIZE = (80, 24)
REFUSED = "world 128 is not a multiple of tp 16 x pp 16 = 256"
NO_COUNT = "a whole number from 1 to 2^40 is expected"


async def test_a_refusal_goes_when_the_draft_can_be_simulated_again(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await open_field(pilot, "world")
        await type_value(pilot, "128")
        for back in (("equals_sign", "8", "enter"), ("u",), ("delete",), ("x",)):
            await open_field(pilot, "tp")
            await press(pilot, "greater_than_sign")
            await run_over(pilot)
            assert REFUSED in screen_text(app), back
            assert "change not run" in screen_rows(app)[0]
            # The refused draft does not run any more.
            assert "stop the run" not in screen_rows(app)[-1]
            await press(pilot, *back)
            await run_over(pilot)
            text = screen_text(app)
            assert "is not a multiple" not in text, back
            assert "not run" not in text
            assert ON_EVERY_SCREEN.partition(";")[0] in text or "as opened" in text


async def test_a_value_that_is_none_is_said_until_the_next_key_that_concerns_it(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await open_field(pilot, "compute scale")
        await press(pilot, "greater_than_sign")
        await run_over(pilot)
        for back in (("enter", "enter"), ("delete",), ("escape",), ("j",), ("x",), ("x",), ("u",)):
            await open_field(pilot, "tp")
            await type_value(pilot, "0")
            assert NO_COUNT in screen_text(app), back
            await press(pilot, *back)
            await run_over(pilot)
            assert NO_COUNT not in screen_text(app), back
            assert "not run" not in screen_text(app)


async def test_another_draft_ends_what_was_said_of_the_one_before(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        view = await open_field(pilot, "tp")
        await type_value(pilot, "0")
        assert view.refusal.words.endswith(NO_COUNT)
        # A what-if of another screen.
        app.session.edit(app.session.opened.setup.with_parameters(Parameters(tp=3)))
        app.runs.run_draft()  # type: ignore[attr-defined]
        await run_over(pilot)
        assert view.refusal.words.startswith("world 1024 is not a multiple of tp 3 x pp 16 = 48")


async def test_what_cannot_be_simulated_is_saved_as_it_is_shown_and_said_to_be(
    make_app: MakeApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("mine.toml")
    app = make_app()
    async with app.run_test(size=(200, 36)) as pilot:
        await open_field(pilot, "tp")
        await type_value(pilot, "3")
        await press(pilot, "S")
        await answer(pilot, str(path))
        assert path.read_text(encoding="utf-8").endswith("THIS_FILE\ntp = 3\n")
        row = screen_rows(app)[-1].strip()
        assert row.startswith("saved: mine.toml as shown, ")
        assert row.endswith(f": {app.session.error}")
        assert figures(app.session.error) == ["1024", "3", "16", "48", "1008", "1056"]


async def test_a_file_takes_the_place_of_what_was_refused(make_app: MakeApp, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("compute_scale = 2.0\n", encoding="utf-8")
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await open_field(pilot, "tp")
        await type_value(pilot, "3")
        await press(pilot, "ctrl+o")
        await answer(pilot, str(path))
        assert app.session.draft == app.session.current.simulation.parameters
        assert app.session.draft == Parameters(compute_scale=2.0)
        text = screen_text(app)
        assert ">  tp                  < 8 > " in text
        assert "not a multiple" not in text
        assert "not run" not in text


async def test_keys_that_have_nothing_to_take_back_say_so(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await open_field(pilot, "tp")
        # The last row names the keys that one needs first on 80 columns.
        row = screen_rows(app)[-1]
        assert row.startswith(" hl change  Enter type  u undo  r keep  jk field  Tab group  ")
        assert row.endswith("  ? keys  q quit ")
        await press(pilot, "u")
        assert screen_rows(app)[-1].strip() == NOTHING_TO_UNDO
        await press(pilot, "delete")
        assert screen_rows(app)[-1].strip() == f"tp {UNCHANGED}"


async def test_the_timeline_says_where_there_is_no_view_to_go_back_to(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "u")
        assert NO_VIEW_BEFORE in screen_text(app)
        await press(pilot, "w", "u")
        assert "no view" not in screen_text(app)
        await press(pilot, "ctrl+r", "ctrl+r")
        assert NO_VIEW_AFTER in screen_text(app)


NEEDS = "--schedule interleaved needs --virtual-stages; 1, 2, 4, 8 would fit"


def refused_rows(view: ParametersView, width: int = 120, height: int = 33) -> list[str]:
    """The fields with `!`, and the line under each."""
    rows = [row[1:67].rstrip() for row in text_of(view.frame(width, height)).split("\n")]
    return [
        f"{row[3:23].rstrip()}: {rows[place + 1].strip()}"
        for place, row in enumerate(rows)
        if row[1:2] == "!"
    ]


@pytest.mark.parametrize("touched", ["tp", "dim 0  latency", "seed"])
def test_a_refusal_stands_under_the_field_of_its_flag(touched: str) -> None:
    view = LoneForm(seed())
    view.go_to("schedule")
    view.action_scrub(1, False)
    assert refused_rows(view, 120, 47) == [f"schedule: {NEEDS[:57]}"]
    view.go_to(touched)
    # Of three parameters that do not fit the first that is found is said.
    if touched == "tp":
        view.action_reset()
    else:
        view.action_scrub(1, False)
    assert refused_rows(view, 120, 47) == [f"schedule: {NEEDS[:57]}"]
    view.enter_value("virtual stages", "3")
    assert refused_rows(view, 120, 47)[0].startswith("virtual stages: --virtual-stages 3 does not divide")


def test_degrees_that_do_not_fit_are_said_of_one_that_was_changed() -> None:
    view = LoneForm(seed())
    view.enter_value("tp", "3")
    view.go_to("compute scale")
    view.action_scrub(1, False)
    assert refused_rows(view, 120, 47)[0].startswith("tp: world 1024 is not a multiple of tp 3 x pp 16")
    view.enter_value("pp", "5")
    assert refused_rows(view, 120, 47)[0].startswith("pp: world 1024 is not a multiple of tp 3 x pp 5")


def test_the_reason_is_beside_the_form_where_its_field_is_not_in_sight() -> None:
    view = LoneForm(seed())
    view.go_to("schedule")
    view.action_scrub(1, False)
    assert text_of(view.frame(80, 21)).count(NEEDS) == 1
    view.action_move(1000)
    assert "schedule  " not in text_of(view.frame(80, 21))
    assert f"schedule: {NEEDS}" in text_of(view.frame(80, 21))


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"cluster": "no-file"}, "cluster"),
        ({"system": "no-file"}, "system"),
        ({"network": "busbw:no-file"}, "network"),
        ({"slow_rank": ("4096=2",)}, "slow rank"),
        ({"slow_link": ("7:1=2",)}, "slow link"),
        ({"stage_layout": "nothing"}, "stage layout"),
        ({"microbatches": 70000}, "microbatches"),
        ({"world": 2048, "dim": ("switch:8:450:500", "switch:128:50:1000")}, "world"),
    ],
)
def test_every_refusal_finds_its_field(parameters: dict[str, object], field: str) -> None:
    session = Session(seed())
    view = ParametersView(session, ascii_only=False)
    session.edit(session.opened.setup.with_parameters(Parameters(**parameters)))  # type: ignore[arg-type]
    with pytest.raises((UsageError, InputError)) as refused:
        session.opened.with_parameters(session.draft)
    session.error = str(refused.value)
    view.refusal.touched = "no fold"
    assert [row.partition(":")[0] for row in refused_rows(view, 120, 60)] == [field]
