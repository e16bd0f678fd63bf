"""Two ranks of the run on the screen side by side on screen 6: chosen on the timeline with ( and )."""

from __future__ import annotations

from functools import cache

import pytest
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion

from simcore.comparison import Comparison
from simcore.replay.parameters import Scales
from simcore.runs.measured import RecordedRun
from tests.analysis.test_two_ranks import SLOW, job
from tests.says import said
from tests.tui.conftest import MakeApp
from tests.tui.screen_reading import press, run_over, screen_rows, screen_text
from tests.tui.test_text_frames import SIZES, frame_after
from tui.app import WltuiApp
from tui.compare.source import ComparedLanes
from tui.compare.view import ONE_RUN, CompareView
from tui.session import Session
from tui.timeline.view import NO_A

_CHOOSE = ("left_parenthesis", "G", "right_parenthesis")


@cache
def made() -> RecordedRun:
    """Three ranks, of which the last is slow."""
    run = job([SLOW[0], SLOW[0], SLOW[1]]).measured
    # A name alone: no test may depend on where it lies.
    ranks = tuple(replace(rank, path=f"rank{rank.rank}.json") for rank in run.ranks)
    return RecordedRun(replace(run, path="job", ranks=ranks, diagnostics=()))


def app_on(make_app: MakeApp, **keywords: object) -> WltuiApp:
    make_app()
    return WltuiApp(Session(made()), first="timeline", **keywords)  # type: ignore[arg-type]


def shown(app: WltuiApp) -> tuple[str, str]:
    """The ranks on the compare screen."""
    view = app.views["compare"]
    assert isinstance(view, CompareView)
    assert view.model is not None
    assert view.model.compared.of_one_step
    return view.names


@pytest.mark.parametrize("ascii_only", [False, True], ids=["blocks", "ascii"])
@pytest.mark.parametrize("size", SIZES, ids=["120x36", "80x24"])
async def test_two_ranks_on_the_screen(
    make_app: MakeApp, snapshot: SnapshotAssertion, size: tuple[int, int], ascii_only: bool
) -> None:
    # Where there is room the streams are unfolded.
    keys = ("Z", "g", *_CHOOSE, "tab")
    text = await frame_after(app_on(make_app, ascii_only=ascii_only), size, keys)
    assert not ascii_only or text.isascii()
    said(text.splitlines(), "Rank 2", "12.000 ms more", "compute", "rank 0")
    assert "compute: gemm" in text
    assert "x1/4" in text
    assert text == snapshot


async def test_accounts_and_sentences_of_both(make_app: MakeApp) -> None:
    text = await frame_after(app_on(make_app), (200, 50), ("Z", "g", *_CHOOSE))
    said(text.splitlines(), "9.000 ms more", "gemm", "as many", "longer")
    said(text.splitlines(), "3.000 ms more", "Memcpy", "3 more calls")
    said(text.splitlines(), "Accounts", "two ranks")
    # The step is one.
    assert "B - A  " not in text.split("lane pair")[0]


async def test_parentheses_take_other_ranks_and_esc_gives_the_runs_back(make_app: MakeApp) -> None:
    app = app_on(make_app)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "Z", "g", *_CHOOSE)
        await run_over(pilot)
        assert shown(app) == ("rank 0", "rank 2")
        await press(pilot, "right_parenthesis")
        assert shown(app) == ("rank 0", "rank 1")
        await press(pilot, "left_parenthesis")
        assert shown(app) == ("rank 2", "rank 1")
        await press(pilot, "2", "6")
        # A look at the timeline changes nothing.
        assert shown(app) == ("rank 2", "rank 1")
        await press(pilot, "escape")
        assert app.screen_name == "timeline"
        await press(pilot, "6")
        assert ONE_RUN in screen_text(app)
        # A is still chosen: one key compares it with another one.
        await press(pilot, "2", "g", "j", "right_parenthesis")
        assert shown(app) == ("rank 0", "rank 1")


async def test_a_name_leads_to_where_it_takes_longest_in_a(make_app: MakeApp) -> None:
    app = app_on(make_app)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "Z", "g", *_CHOOSE, "tab", "enter")
        await run_over(pilot)
        view = app.views["compare"]
        assert isinstance(view, CompareView)
        assert view.model is not None
        # The row that differs most, and the first of its equal spans.
        name = view.model.compared.rows[0].words.partition(": ")[2]
        (start,) = {1_000 * at for what, _, at, _ in SLOW[0] if what == name} & {view.model.cursor_ns}
        assert start == view.model.cursor_ns


async def test_what_cannot_be_compared_is_said_on_the_last_row(make_app: MakeApp) -> None:
    app = app_on(make_app)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "right_parenthesis")
        assert screen_rows(app)[-1].strip() == NO_A
        await press(pilot, "Z", "g", "left_parenthesis")
        assert screen_rows(app)[-1].strip().startswith("rank 0 is A: ) ")
        await press(pilot, "right_parenthesis")
        said(screen_rows(app)[-1:], "rank 0", "same rank twice")
        await press(pilot, "j")
        assert ") compare with rank 0" in screen_rows(app)[-1]
        assert app.screen_name == "timeline"


async def test_classes_of_a_simulated_run_and_lanes_that_head_others(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "g", *_CHOOSE)
        await run_over(pilot)
        assert shown(app) == ("rank 0", "rank 960")
        said(screen_rows(app), "Rank 960", "4.106 s more", "idle", "rank 0")
        # One rank of a class, beside the class that it is of.
        await press(pilot, "2", "g", "I", "j", "right_parenthesis")
        assert app.screen_name == "timeline"
        assert "are equal" in screen_rows(app)[-1] or "same rank twice" in screen_rows(app)[-1]


def test_names_of_two_runs_come_before_what_the_accounts_have_too() -> None:
    run = made()
    found = ComparedLanes(Comparison(run, run.with_scales(Scales(compute=2.0))))
    words = [row.words for row in found.rows]
    assert words[0] == "compute: gemm"
    assert "compute: Memcpy" in words
    # The slow rank has most of it.
    assert found.pair_name(found.rows[0].pair) == "rank 2"
    assert (found.rows[0].measure, found.rows[0].b_ns) == ("sum x9", 2 * found.rows[0].a_ns)
    assert words.index("all ranks, kernel") > words.index("compute: Memcpy")
