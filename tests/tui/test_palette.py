"""The command palette: every action is in it, is found by its words, and does what its key does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from textual.binding import Binding
from textual.events import Key

from simcore.parameters import Parameters
from simcore.runs.measured import run_recording
from simcore.units import duration
from tests.command_line.running import SEED_001
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import four_stages, small
from tests.tui.pseudo_terminal import Terminal, wltui
from tests.tui.screen_reading import burst, press, run_over, screen_rows, wait_until
from tests.tui.test_measured_screens import four_ranks
from tui.app import WltuiApp
from tui.keys import KeyAction, list_actions
from tui.palette import NONE_MATCHES, Palette, list_other_screens, rank_matches
from tui.parameters.view import ParametersView
from tui.screens import SCREENS, all_bindings, load, screens_of
from tui.search_index import SearchIndex, nearness
from tui.timeline.view import TimelineView

TIMELINE = list_actions(TimelineView.BINDINGS, {})


@pytest.mark.parametrize("name", list(all_bindings()))
def test_every_action_of_every_screen_is_found_by_its_own_words(name: str) -> None:
    found = list_actions([*all_bindings()[name], *WltuiApp.BINDINGS], {})
    assert rank_matches(found, "") == found
    for one in found:
        assert one in rank_matches(found, one.words), one
        assert one in rank_matches(found, one.id), one
        assert rank_matches(found, one.id)[0].id == one.id


def test_a_part_of_the_words_is_enough() -> None:
    assert rank_matches(TIMELINE, "zoom o")[0].id == "timeline.zoom-out"
    assert rank_matches(TIMELINE, "NEXT SPAN")[0].id == "timeline.next-span"
    assert rank_matches(TIMELINE, "xyzzy") == []


@pytest.mark.parametrize("name", list(all_bindings()))
def test_no_stray_letters_quit(name: str) -> None:
    found = list_actions([*all_bindings()[name], *WltuiApp.BINDINGS], {})
    for typed in ("u", "i", "t", "it", "ui", "e", "ev", "ver", "where", "app"):
        matched = rank_matches(found, typed)
        ends = [one.words == "quit" for one in matched]
        assert ends == sorted(ends), typed
    assert rank_matches(found, "q")[0].words == rank_matches(found, "QUI")[0].words == "quit"


async def test_colon_and_ctrl_p_open_it_enter_does_the_chosen_action(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=(120, 36)) as pilot:
        view = app.current_view
        assert isinstance(view, TimelineView)
        whole = view.model.window
        for key in ("colon", "ctrl+p"):
            await press(pilot, key)
            assert isinstance(app.screen, Palette)
            await burst(pilot, *"zoom in", "enter")
            assert not isinstance(app.screen, Palette)
            assert view.model.window.span_ns < whole.span_ns
            await press(pilot, "0")
            assert view.model.window == whole
        await press(pilot, "colon")
        await burst(pilot, *"zoom", "down", "enter")
        # The second one that zooms is out.
        assert view.model.window == whole


async def test_screens_open_from_it_and_their_actions_are_in_it(make_app: MakeApp) -> None:
    app = make_app(four_stages())
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "colon")
        await burst(pilot, *"parameters", "enter")
        assert app.screen_name == "parameters"
        view = app.current_view
        assert isinstance(view, ParametersView)
        await press(pilot, "colon")
        await burst(pilot, *"twice", "enter")
        await run_over(pilot)
        assert app.session.step != duration(four_stages().step_time_ns)
        await press(pilot, "colon")
        await burst(pilot, *"notes", "enter")
        assert app.screen_name == "notes"


def test_the_actions_of_other_screens_are_in_it_once() -> None:
    views = {name: load(name) for name in SCREENS}
    assert len(views) == 10
    every = {one.id for view in views.values() for one in list_actions(view.BINDINGS, {})}
    for name, view in views.items():
        here = [*list_actions(view.BINDINGS, {}), *list_actions(WltuiApp.BINDINGS, {})]
        others = list_other_screens(name, here, {})
        assert all(one.screen and one.screen != name for one in others)
        ids = [one.id for one in others]
        assert len(ids) == len(set(ids))
        said = {one.words for one in here}
        left = every - {one.id for one in here} - set(ids)
        for id in left:
            where = [
                one for some in views.values() for one in list_actions(some.BINDINGS, {}) if one.id == id
            ]
            assert said & {one.words for one in where}, f"{id} in {name}"


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", list(SCREENS))
def test_the_actions_of_other_screens_are_found_by_their_words_and_first_by_their_ids(name: str) -> None:
    here = [*list_actions(load(name).BINDINGS, {}), *list_actions(WltuiApp.BINDINGS, {})]
    others = list_other_screens(name, here, {})
    for one in others:
        # Whether one is found is asked of it alone; which comes first, of all.
        assert rank_matches([one], one.words) == [one]
        assert rank_matches([*here, *others], one.id)[0] == one


def test_words_of_the_open_screen_come_before_those_of_others() -> None:
    here = [*TIMELINE, *list_actions(WltuiApp.BINDINGS, {})]
    found = [*here, *list_other_screens("timeline", here, {})]
    for typed in ("zoom", "next", "sort", "search", "lane"):
        having = [
            (nearness(one, typed), bool(one.screen))
            for one in rank_matches(found, typed)
            if typed in one.words.lower() and not one.id.startswith("screen.")
        ]
        assert having == sorted(having), typed
    # What only another screen says as it was typed is not behind letters that happen to be in order.
    assert rank_matches(found, "undo")[0].screen == "parameters"


async def test_an_action_of_another_screen_opens_it_first(make_app: MakeApp) -> None:
    app = make_app(small(), first="notes")
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "colon")
        await burst(pilot, *"zoom in")
        chosen = next(row for row in screen_rows(app)[1:] if row.startswith(">"))
        assert "on 2 Timeline" in chosen
        assert chosen.rstrip().endswith("timeline.zoom-in")
        await press(pilot, "enter")
        view = app.current_view
        assert isinstance(view, TimelineView)
        assert view.model.window.span_ns < view.model.window.step_ns


@pytest.mark.sampled(1)
@pytest.mark.parametrize("part", range(4))
async def test_every_action_of_another_screen_can_be_done_from_here(make_app: MakeApp, part: int) -> None:
    # A small run: what is exported, simulated and searched on the way takes its time on no list.
    app = make_app(small(), first="notes")
    here = [*list_actions(load("notes").BINDINGS, {}), *list_actions(WltuiApp.BINDINGS, {})]
    async with app.run_test(size=(80, 24)) as pilot:
        for one in list_other_screens("notes", here, {}, screens_of(app.session.current))[part::4]:
            await app.action_open("notes")
            await app.do(one)
            # What jumps goes on to another screen; none does nothing here.
            assert app.screen_name != "notes", one
            await pilot.press("escape")
            while len(app.screen_stack) > 1:
                await press(pilot, "escape")


async def test_escape_leaves_it_and_nothing_is_done(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=(120, 36)) as pilot:
        before = screen_rows(app)
        await press(pilot, "colon")
        await burst(pilot, *"quit")
        await press(pilot, "escape")
        assert screen_rows(app) == before
        await press(pilot, "colon")
        await burst(pilot, *"xyzzy")
        assert any(NONE_MATCHES in row for row in screen_rows(app))
        await press(pilot, "enter")
        assert screen_rows(app) == before


async def test_all_actions_can_be_reached_with_the_arrows(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "colon")
        seen = set()
        everywhere = [one for one in WltuiApp.BINDINGS if isinstance(one, Binding)]
        for _ in range(len(TIMELINE) + len(everywhere)):
            chosen = next(row for row in screen_rows(app)[1:] if row.startswith(">"))
            seen.add(chosen.split()[-1])
            await press(pilot, "down")
        assert {one.id for one in TIMELINE} | {one.id for one in everywhere} == seen


@pytest.fixture(scope="module")
def terminal() -> Iterator[Terminal]:
    with wltui(SEED_001, columns=80, rows=24) as found:
        found.wait_for("q quit")
        yield found


def test_it_works_in_a_terminal_of_80_columns_and_sends_nothing_when_idle(terminal: Terminal) -> None:
    terminal.press_each((":", "more below"), ("layer", "screen.layers"))
    terminal.settle()
    before = len(terminal.raw)
    terminal.pump(0.7)
    assert len(terminal.raw) == before
    terminal.press_each(("\r", "[3 Layers]"))


@pytest.mark.parametrize(
    ("burst", "wanted"),
    [
        ("abc\x7fdef\x7f\x7f\x7f\x7f\x7fghijk", "ghijk"),
        ("bc\x1b[Ha\x1b[Fd", "abcd"),
        ("zo\x15lay", "lay"),
    ],
    ids=["Backspace between letters", "home and end", "all gone and another word"],
)
def test_keys_that_edit_keep_their_place_in_a_burst(terminal: Terminal, burst: str, wanted: str) -> None:
    terminal.press(":")
    terminal.wait_for(lambda: terminal.lines[0].startswith(" : "))
    terminal.settle()
    terminal.press(burst)
    terminal.wait_for(lambda: terminal.lines[0].startswith(f" : {wanted} "))
    terminal.press("\x1b")
    terminal.wait_for(lambda: not terminal.lines[0].startswith(" : "))
    terminal.settle()


def test_letters_behind_the_colon_and_an_arrow_before_enter_are_the_palettes(terminal: Terminal) -> None:
    terminal.press(":screen.timelinex\x7f\r")
    terminal.wait_for("[2 Timeline]")
    terminal.settle()
    # `:screen.` alone has the summary first and the timeline behind it.
    terminal.press(":")
    terminal.wait_for(" : ")
    terminal.settle()
    terminal.press("screen.\x1b[B\x1b[B\r")
    terminal.wait_for("[3 Layers]")


async def test_arrows_typed_before_the_palette_is_there_stay_behind_the_letters(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=(120, 36)) as pilot:
        app.action_commands()
        for key in ("s", "c", "r", "e", "e", "n", "full_stop", "down", "down", "enter"):
            app.post_message(Key(key, "." if key == "full_stop" else key if len(key) == 1 else None))
        await wait_until(pilot, lambda: app.screen_name == "layers")


def test_enter_twice_in_one_burst_leaves_once(terminal: Terminal) -> None:
    for keys in (":screen.notes\r\r", "2/stage 3\r\r"):
        terminal.settle()
        terminal.press(keys)
    terminal.wait_for("lane 1 of 1")
    terminal.settle()
    terminal.press("\x1b")
    terminal.wait_for("q quit")


async def test_it_finds_parameters_with_values_layers_ranks_stages_runs_and_files(make_app: MakeApp) -> None:
    app = make_app(four_stages(), first="notes")
    expected = (
        ("bandwidth", "parameter dim 0  bandwidth = 450 GB/s", "parameters"),
        ("schedule gpipe", "parameter schedule gpipe, now 1f1b", "parameters"),
        ("mlp_row", "layer mlp_row in the table", "layers"),
        ("rank 700", "rank 700 on the timeline", "timeline"),
        ("stage 3", "stage 3 on the timeline", "timeline"),
        ("002_gpt", "file ", "notes"),
    )
    async with app.run_test(size=(120, 36)) as pilot:
        for typed, words, screen in expected:
            await app.action_open("summary")
            await press(pilot, "colon")
            await burst(pilot, *[key_of_char(char) for char in typed])
            chosen = next(row for row in screen_rows(app)[1:] if row.startswith(">"))
            assert words in chosen, typed
            await press(pilot, "enter")
            await run_over(pilot)
            assert app.screen_name == screen, typed
            if screen == "timeline":
                assert isinstance(app.current_view, TimelineView)
                assert app.current_view.model.current.track_id == (2 if "rank" in typed else 3)
        assert app.session.current.parameters.schedule == "gpipe"
        await press(pilot, "colon")
        await burst(pilot, *"run", "space", "1")
        words = f"run 1: --pp 4 --microbatches 4, {duration(four_stages().step_time_ns)}"
        assert any(words in row for row in screen_rows(app))


async def test_a_figure_behind_the_words_of_a_parameter_is_its_value(make_app: MakeApp) -> None:
    app = make_app(four_stages(), first="notes")
    async with app.run_test(size=(120, 36)) as pilot:
        things = SearchIndex(app)

        def found(typed: str) -> list[str]:
            listed = rank_matches(things.find(typed), typed)
            return [one.id for one in listed if one.words.startswith(f"parameter {one.id}, now ")]

        await press(pilot, "colon")
        await burst(pilot, *[key_of_char(char) for char in "microbatches 32"])
        assert any(row.startswith(">") and "microbatches 32, now 4" in row for row in screen_rows(app))
        await press(pilot, "enter")
        await run_over(pilot)
        assert app.screen_name == "parameters"
        assert app.session.current.parameters == Parameters(pp=4, microbatches=32)
        assert found("bandwidth = 100") == ["dim 0  bandwidth 100", "dim 1  bandwidth 100"]
        assert "dim 1  bandwidth 50" not in found("bandwidth 50"), "it has it"
        # No value, one that cannot be, and words of no parameter.
        for typed in ("microbatches", "microbatches 0", "rank 137", "mlp_row 3", "4"):
            assert found(typed) == [], typed


async def test_of_the_factors_of_a_trace_the_one_that_is_named_whole_is_found(make_app: MakeApp) -> None:
    app = make_app(run_recording(four_ranks(), Parameters()))
    async with app.run_test(size=(120, 36)):
        things = SearchIndex(app)
        found = [one.id for one in things.find("rank 3 0.5") if one.id.endswith(" 0.5")]
        assert found == ["rank 3 0.5"]
        # A rank, and no value of the fields of ranks.
        assert not any(one.id.startswith("rank 0") and one.id.endswith("3") for one in things.find("rank 3"))


def key_of_char(char: str) -> str:
    return {" ": "space", "_": "underscore"}.get(char, char)


def test_whole_words_come_before_beginnings_and_those_before_fragments() -> None:
    words = ("the lanes of a file", "profile of the run", "file: its notes", "a filed note")
    found = [KeyAction(f"a.{number}", text, (), "") for number, text in enumerate(words)]
    assert [one.words for one in rank_matches(found, "file")] == [words[0], words[2], words[3], words[1]]


async def test_nothing_is_listed_for_a_rank_or_stage_that_is_not_there(make_app: MakeApp) -> None:
    app = make_app(four_stages())
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "colon")
        await burst(pilot, *"rank", "space", *"1023")
        assert any("on the timeline" in row for row in screen_rows(app))
        await burst(pilot, "backspace", "4")
        assert not any("on the timeline" in row for row in screen_rows(app))
