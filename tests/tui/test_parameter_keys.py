"""Keys of the form: Enter or = types a value, digits lead to the screens, Esc stops a run, files are saved
and loaded, nothing is lost.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from simcore.parameters import Parameters
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import seed, small
from tests.tui.screen_reading import burst, press, run_over, screen_rows, screen_text, wait_until
from tests.tui.test_parameter_form import LoneForm, open_field
from tests.tui.test_runs_in_the_background import Gate, gate  # noqa: F401
from tui.app import WltuiApp
from tui.exporting import WRITE_OVER
from tui.frame import text_of
from tui.parameters.view import NOTHING_TO_REDO, NOTHING_TO_UNDO, SAME_AS_FILE, ParametersView
from tui.runs.runs import RUN_STOPPED, WITH_CHANGE

SIZE = (120, 36)


def form_of(app: WltuiApp) -> ParametersView:
    """The open form."""
    view = app.current_view
    assert isinstance(view, ParametersView)
    return view


async def test_a_value_is_typed_after_enter_or_an_equals_sign(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await open_field(pilot, "microbatches")
        await pilot.pause()
        assert screen_rows(app)[-1].startswith(" hl change  Enter type")
        for key, digit in (("enter", "3"), ("equals_sign", "2")):
            # All at once, as they come over a slow line.
            await pilot.press(key, digit, "2", "enter")
            await run_over(pilot)
            assert app.session.draft == Parameters(microbatches=int(f"{digit}2"))
            assert app.screen_name == "parameters"


async def test_a_digit_leads_to_its_screen_from_every_field(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=SIZE) as pilot:
        for moves in ((), ("j",), ("j", "l"), ("k", "j")):
            await open_field(pilot, "microbatches")
            await press(pilot, *moves)
            await run_over(pilot)
            draft = app.session.draft
            await press(pilot, "3")
            assert (app.screen_name, app.session.draft) == ("layers", draft)


async def test_a_value_that_cannot_be_is_said_while_it_is_typed(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await open_field(pilot, "pp")
        await press(pilot, "enter", "0")
        assert "a whole number from 1 to 2^40 is expected" in screen_rows(app)[-1]
        await press(pilot, "backspace", "8")
        assert "expected" not in screen_rows(app)[-1]
        await press(pilot, "escape")
        assert app.session.draft == Parameters()


async def test_a_click_on_a_field_moves_the_cursor_to_it(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "5")
        row = next(y for y, text in enumerate(screen_rows(app)) if "  microbatches " in text)
        await pilot.click(offset=(10, row))
        await pilot.pause()
        view = form_of(app)
        assert view.form.fields[view.form.cursor].label == "microbatches"


async def test_escape_stops_a_run_and_the_picture_stays(make_app: MakeApp, gate: Gate) -> None:  # noqa: F811
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await open_field(pilot, "compute scale")
        await press(pilot, "greater_than_sign")
        await wait_until(pilot, lambda: gate.begun)
        await wait_until(pilot, lambda: "Esc stops it" in screen_text(app))
        assert screen_rows(app)[-1].startswith(" Esc stop ")
        await press(pilot, "escape")
        await wait_until(pilot, lambda: gate.cancelled)
        await run_over(pilot)
        assert app.session.draft == Parameters()
        assert app.session.current is app.session.opened
        assert RUN_STOPPED + WITH_CHANGE in screen_rows(app)[-1]
        assert app.screen_name == "parameters"
        gate.opened.set()
        await press(pilot, "u")
        await run_over(pilot)
        assert app.session.current.simulation.parameters.compute_scale == 2.0


async def test_scrubbing_goes_past_a_schedule_that_is_refused(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await open_field(pilot, "schedule")
        await press(pilot, "l")
        await run_over(pilot)
        rows = [row[1:67].rstrip() for row in screen_rows(app)]
        place = next(y for y, row in enumerate(rows) if row.startswith(">! schedule"))
        assert rows[place + 1] == "      --schedule interleaved needs --virtual-stages; 1, 2, 4, 8"
        assert rows[place + 2] == "      would fit"
        assert "step 14.774 s" in screen_rows(app)[1]
        await press(pilot, "l")
        await run_over(pilot)
        assert app.session.current.simulation.program.schedule == "zb-h1"
        assert "would fit" not in screen_text(app)


async def test_ten_keys_at_once_all_count_and_the_last_value_wins(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=SIZE) as pilot:
        await open_field(pilot, "microbatches")
        await pilot.press(*["l"] * 10)
        await run_over(pilot)
        assert app.session.draft.microbatches == 12
        assert app.session.current.simulation.program.microbatches == 12


async def test_undo_and_redo_work_through_the_palette(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=SIZE) as pilot:
        await open_field(pilot, "compute scale")
        await press(pilot, "greater_than_sign")
        await run_over(pilot)
        for words, scale in (("parameters.undo", 1.0), ("parameters.redo", 2.0)):
            await press(pilot, "colon")
            await burst(pilot, *words, "enter")
            await run_over(pilot)
            assert app.session.current.simulation.parameters.compute_scale == scale
        await press(pilot, "ctrl+r")
        assert NOTHING_TO_REDO in screen_rows(app)[-1]
        await press(pilot, "u", "u")
        await run_over(pilot)
        await press(pilot, "u")
        assert NOTHING_TO_UNDO in screen_rows(app)[-1]


def beside(view: LoneForm) -> str:
    """What is said beside the fields."""
    rows = text_of(view.frame(120, 33)).split("\n")
    return " ".join(" ".join(row[69:-1].split()) for row in rows)


# -- files -----------------------------------------------------------------------------


async def answer(pilot: Pilot[None], text: str) -> None:
    """Type into the prompt in place of what it offers."""
    pilot.app.screen.query_one(Input).value = text
    await press(pilot, "enter")
    await run_over(pilot)


async def test_saved_parameters_are_loaded_again(make_app: MakeApp, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    app = make_app(small())
    async with app.run_test(size=SIZE) as pilot:
        await open_field(pilot, "compute scale")
        await press(pilot, "greater_than_sign", "S")
        await answer(pilot, str(path))
        assert "saved: " in screen_rows(app)[-1]
        draft = app.session.draft
        assert draft.compute_scale == 2.0
        assert path.read_text(encoding="utf-8") == (
            "# Parameters of wltui: wltui FILE --params THIS_FILE\n"
            'dim = ["switch:2:4:50", "switch:4:2:300"]\ncompute_scale = 2.0\n'
        )
        await press(pilot, "u", "ctrl+o")
        await answer(pilot, str(path))
        assert app.session.draft == draft
        assert app.session.current.simulation.parameters == draft
        await press(pilot, "ctrl+o")
        await answer(pilot, str(path))
        assert SAME_AS_FILE in screen_rows(app)[-1]


async def test_a_file_that_is_there_is_written_over_only_after_yes(make_app: MakeApp, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    app = make_app(small())
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "5")
        for words, is_written in (("yes", True), ("y", True), ("no", False), ("", False)):
            path.write_text("old", encoding="utf-8")
            await press(pilot, "S")
            await answer(pilot, str(path))
            assert screen_rows(app)[-2].rstrip().endswith(" is there already")
            assert screen_rows(app)[-1].rstrip() == f" {WRITE_OVER} no"
            await answer(pilot, words)
            said = "saved: " if is_written else "not saved: "
            assert said in screen_rows(app)[-1], words
            assert (path.read_text(encoding="utf-8") == "old") is not is_written, words


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("tp = 0\n", "1:1: error parameters-file tp 0: a whole number from 1 to 2^40 is expected"),
        (
            "tp = 2\n splts = 1\n",
            "2:2: error parameters-file found `splts`, expected the name of a parameter, for example splits",
        ),
        (
            "tp 2",
            "1:4: error parameters-file this is not TOML: Expected '=' after a key in a key/value pair",
        ),
        ("schedule = '1f2b'", "1:1: error parameters-file found `1f2b` for schedule, expected one of "),
        (
            "dim = ['ring:8']",
            "1:9: error parameters-file dim ring:8: KIND:SIZE:GBPS:NS is expected, for example "
            "switch:8:450:500",
        ),
        (
            "algorithm = ['foo']",
            "1:15: error parameters-file algorithm foo: DIM=NAME is expected, for example 0=ring",
        ),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_loaded_says_where_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(text, encoding="utf-8")
    view = LoneForm(small())
    view._saved._load_typed("mine.toml")
    assert f"mine.toml:{complaint}" in beside(view)
    assert view.session.draft == small().simulation.parameters


async def test_escape_clears_what_was_said_of_a_file_and_leaves_the_form_open(
    make_app: MakeApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text("tp = 0\n", encoding="utf-8")
    app = make_app(small())
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "5", "ctrl+o")
        await answer(pilot, "mine.toml")
        assert "mine.toml:1:1:" in screen_text(app)
        await press(pilot, "escape")
        assert "mine.toml" not in screen_text(app)
        assert app.screen_name == "parameters"


async def test_a_place_that_cannot_be_written_says_why(
    make_app: MakeApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    app = make_app(small())
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "5")
        for path, complaint in (
            ("folder", "folder is a directory: name a file to write"),
            ("new/", "new/ is a directory: name a file to write"),
            ("nowhere/mine.toml", "nowhere/mine.toml: error unwritable-file "),
        ):
            await press(pilot, "S")
            await answer(pilot, path)
            said = " ".join(" ".join(row[69:-1].split()) for row in screen_rows(app)[2:-1])
            assert complaint in said


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("tp = 3\n", "world 1024 is not a multiple of tp 3 x pp 16 = 48"),
        ("algorithm = ['7=ring']\n", "--algorithm 7=ring: no dimension `7` in this cluster, 0 to 1"),
        ("cluster = 'no-file'\n", "--cluster no-file: no file, and none of h100-8, "),
        ("network = 'simai-auto'\nnic = 1e11\n", "--nic 100000000000.0: a number from 1e-6 to 1e9"),
    ],
)
def test_parameters_of_a_file_that_cannot_be_run_are_refused_beside_the_form(
    tmp_path: Path, text: str, complaint: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    view = LoneForm(seed())
    view._saved._load_typed(str(path))
    assert complaint in beside(view)
    assert view.session.current is view.session.opened


async def test_space_takes_the_next_choice_and_never_changes_a_number(make_app: MakeApp) -> None:
    """Typed where no prompt was open, a word with a blank doubled the world."""
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await open_field(pilot, "world")
        await press(pilot, "space")
        assert app.session.draft == app.session.opened.parameters
        await open_field(pilot, "schedule")
        before = form_of(app).form.current_field.text(form_of(app).form.follow())
        await press(pilot, "space")
        assert form_of(app).form.current_field.text(form_of(app).form.follow()) != before
        # Fields are found with / as everything else is.
        await press(pilot, "slash")
        assert app.screen is not app.screen_stack[0]
