"""Each share says of what it is, one word is one thing, and what is cut is a key away."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

import pytest

from simcore.analysis.blocks import find_rows_not_run
from simcore.parameters import Parameters
from simcore.render.report.pages import run_page
from simcore.runs.measured import run_recording
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.trace.run import sum_path
from simcore.workload import open_workload
from tests.measured.test_replay_by_hand import SLOW_RANK, run_of
from tests.tui.conftest import MakeApp
from tests.tui.screen_reading import press, resize, run_over, screen_rows, screen_text
from tests.tui.test_layer_lines import view_of
from tui.frame import text_of
from tui.panels import WHAT_IF
from tui.summary.view import SummaryView

OLD, MOE = "fixtures/000_gpt13b_tp4_old_header.txt", "fixtures/001_moe_128npu_with_mistakes.txt"


@cache
def results_of(path: str, **parameters: int | None) -> SimulatedRun:
    return SimulatedRun(simulate(open_workload(path), Parameters(**parameters)))  # type: ignore[arg-type]


def test_late_gradients_and_the_rest_of_their_kind_are_what_the_path_has_of_it() -> None:
    """Planted: `gradients` beside `dp`, which has them on the path."""
    results = results_of(OLD)
    (words,) = [one.text for one in results.sentences if one.rule == "network"]
    assert re.search(r": 32\.2 % dp gradients\b[^,]*, 7\.1 % tp, 0\.5 % other dp\.$", words)
    on_path = dict(sum_path(results, "kind"))["dp"]
    assert round(100 * on_path / results.step_time_ns, 1) == pytest.approx(32.2 + 0.5, abs=0.11)
    # Without late gradients all of a kind is called by its name.
    for one in results_of("fixtures/003_gpt2_large_op_table.txt").sentences:
        assert "other " not in one.text


async def test_the_heads_of_the_screens_say_of_what_their_shares_are(make_app: MakeApp) -> None:
    app = make_app(results_of(MOE), first=None)
    async with app.run_test(size=(80, 24)) as pilot:
        for size in ((80, 24), (120, 40), (200, 50)):
            await resize(pilot, *size)
            await press(pilot, "1")
            await run_over(pilot)
            text = screen_text(app)
            for title in ("Time by stage", "Worst on a rank", "what helps most"):
                assert re.search(rf"{title}[^│\n]*─ % of step ─", text)
            await press(pilot, "4")
            text = screen_text(app)
            assert " % path" in text
            if size == (80, 24):
                await press(pilot, "tab")
                text = screen_text(app)
                await press(pilot, "shift+tab")
            assert "  step   of step" in text
            await press(pilot, "3")
            words = " ".join(screen_text(app).split())
            assert "on a rank, 17.9 % of the step" in words
            # Both shares of a layer beside each other, where the column of the path has its figures.
            on_path = "112.4 ms, 64.6 %, on the critical path through all ranks"
            assert (on_path in words) == (size != (80, 24))


def test_the_report_says_of_what_its_shares_are() -> None:
    page = run_page(results_of(OLD), with_what_if=True)
    assert "\nIn words, % of step\n" in page
    assert "(step time now 430.4 ms, change: % of it)\n" in page
    assert ", 0 to 430.4 ms; % of that\n" in page
    # What is measured says it in each sentence.
    assert "\nIn words\n" in run_page(run_recording(run_of(SLOW_RANK, 2), Parameters()))


async def test_a_key_shows_all_sentences_and_is_named_where_some_are_cut(make_app: MakeApp) -> None:
    results = results_of(OLD)
    app = make_app(results, first=None)
    async with app.run_test(size=(80, 24)) as pilot:
        for size in ((80, 24), (120, 40), (200, 50)):
            await resize(pilot, *size)
            await run_over(pilot)
            assert (" Space all words " in screen_rows(app)[-1]) == (size == (80, 24))
            await press(pilot, "space")
            rows = screen_rows(app)
            assert rows[0].startswith("── In words: 5 sentences ─")
            said = " ".join(" ".join(rows).split())
            for sentence in results.figures.words:
                assert sentence in said
            for closing in ("space", "escape"):
                await press(pilot, closing)
                assert screen_rows(app)[1].startswith(" [1 Summary]")
                if closing == "space":
                    await press(pilot, "space")


async def test_t_in_the_sentences_tries_the_change_that_it_names(make_app: MakeApp) -> None:
    """A newcomer pressed `t` where the gain is told, and nothing happened, without a word."""
    for rows_down, named in ((0, "tries the fix"), (1, "tries this change")):
        app = make_app(results_of(MOE), first=None)
        async with app.run_test(size=(200, 50)) as pilot:
            await run_over(pilot)
            model = app.query_one(SummaryView).model
            while rows_down and model.panel != WHAT_IF:
                await press(pilot, "tab")
            await press(pilot, *["j"] * rows_down)
            assert model.knobs
            wanted = model.knobs[rows_down].better10_ns
            await press(pilot, "space")
            assert f"t {named}, Esc closes" in screen_text(app)
            await press(pilot, "t")
            await run_over(pilot)
            assert app.session.current.step_time_ns == wanted
            assert "[1 Summary]" in screen_text(app)


async def test_space_turns_the_pages_of_a_panel_and_goes_back_from_the_last(make_app: MakeApp) -> None:
    """A newcomer pressed Space to close what Space had opened, and nothing happened."""
    app = make_app(results_of(OLD), first=None)
    async with app.run_test(size=(60, 10)) as pilot:
        await run_over(pilot)
        await press(pilot, "space")
        pages = []
        while "[1 Summary]" not in screen_text(app):
            pages.append(screen_rows(app))
            await press(pilot, "space")
        assert len(pages) > 2
        assert ["Esc closes" in page[-1] for page in pages] == [False] * (len(pages) - 1) + [True]
        # No line is skipped: a page begins with the last line of the one before it, or above that.
        for page, following in pairwise(pages):
            assert page[-2] in following


def test_rows_of_blocks_that_do_not_run_are_counted_in_nothing() -> None:
    """With one micro-batch of the file's two, of 9 and 1 layers, 11 rows belong to none."""
    for microbatches, count, of_layer, here in ((None, 0, 63, 9), (1, 11, 56, 8)):
        results = results_of(MOE, microbatches=microbatches)
        assert len(find_rows_not_run(results.simulation)) == count
        view = view_of(results.simulation.workload, results)
        words = " ".join(text_of(view.frame(120, 37)).split())
        assert (f"98 rows, {count} not run, equal" in words) == (count > 0)
        assert f"all {of_layer} rows of mlp_moelayer: " in words
        assert f"; this line has {here} of them" in words
