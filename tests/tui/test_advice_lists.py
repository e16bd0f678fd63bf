"""Advice on the screen: what one can change and what matters stand apart, with what a change replaces."""

from __future__ import annotations

import itertools
import re
from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from simcore.parameters import Parameters
from simcore.runs.measured import RecordedRun, run_recording
from simcore.runs.simulated import SimulatedRun
from simcore.trace.findings import WhatIf
from simcore.workload import open_workload
from tests.measured.test_replay_by_hand import SLOW_RANK, run_of
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import drawn_summary, four_stages, run, seed
from tests.tui.screen_reading import press, resize, run_over, screen_rows, screen_text
from tui.change_words import describe_change
from tui.panels import MATTERS, WHAT_IF, lists_and_meaning, meaning_rows, two_lists
from tui.panels_view import PanelsView

LAYOUT = "stage layout: with uniform every stage runs embedding and loss rows too"


@cache
def one_stage() -> SimulatedRun:
    """Seed 000."""
    return run(open_workload("fixtures/000_gpt13b_tp4_old_header.txt"))


def rows_of(changes: int, things: int, meaning: str = "") -> list[WhatIf]:
    made = [WhatIf(f"change {n}", None, 90, flags="--tp 2", meaning=meaning) for n in range(changes)]
    return made + [WhatIf(f"thing {n}", 80, 95) for n in range(things)]


def test_a_heading_stands_between_the_lists_where_both_are_seen() -> None:
    assert two_lists(rows_of(2, 9), 0, 7) == [0, 1, None, 2, 3, 4, 5]
    assert two_lists(rows_of(2, 9), 0, 4) == [0, 1, None, 2]
    # What matters alone has the heading as well; changes alone, and what stands far down, have none.
    assert two_lists(rows_of(0, 9), 0, 7) == [None, 0, 1, 2, 3, 4, 5]
    assert two_lists(rows_of(9, 0), 0, 7) == [0, 1, 2, 3, 4, 5, 6]
    assert two_lists(rows_of(2, 20), 20, 6) == [16, 17, 18, 19, 20, 21]
    assert two_lists((), 0, 7) == []
    # In two rows there is no room for both lists: that of the cursor is there.
    assert two_lists(rows_of(1, 9), 0, 2) == [0]
    assert two_lists(rows_of(1, 9), 1, 2) == [1, 2]


@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 11), st.integers(1, 12))
def test_no_two_lists_stand_beside_each_other_without_a_heading(
    changes: int, things: int, row: int, rows: int
) -> None:
    if changes + things == 0:
        return
    row %= changes + things
    knobs = rows_of(changes, things)
    shown = two_lists(knobs, row, rows)
    assert row in shown
    assert len(shown) <= rows
    for above, below in itertools.pairwise(shown):
        if above is not None and below is not None:
            assert knobs[above].list == knobs[below].list


def test_that_a_change_does_not_fit_stays_on_the_screen_and_kernels_lose_their_arguments() -> None:
    flags = "--overlap-grad-reduce"
    assert describe_change(WhatIf(f"{flags} (does not fit)", None, 90, flags=flags)) == (
        "overlap-grad-reduce (does not fit)"
    )
    assert describe_change(WhatIf("void at::native::copy_kernel(float*)", 80, 95)) == "copy_kernel"


def test_what_a_change_does_is_that_of_the_cursor_or_of_the_first_in_sight() -> None:
    knobs = [*rows_of(1, 0), *rows_of(1, 2, LAYOUT)]
    assert lists_and_meaning(knobs, 0, False, 4, 80) == ([0, 1], [LAYOUT])
    # Out of sight nothing is said of it, and its row is free.
    assert lists_and_meaning(knobs, 0, False, 2, 80) == ([0, 1], [])
    assert [lists_and_meaning(knobs, row, True, 9, 80)[1] for row in range(4)] == [[], [LAYOUT], [], []]
    assert lists_and_meaning(rows_of(1, 1), 0, False, 9, 80) == ([0, None, 1], [])
    tried = lists_and_meaning(rows_of(1, 1), 0, False, 9, 80, "12 were tried")
    assert tried == ([0, None, 1], ["12 were tried"])


def test_what_a_change_does_has_further_rows_and_loses_whole_clauses_alone() -> None:
    """Planted: its end cut with dots in one row, as before."""
    first, second = "assumed: one is as fast as the other", "without it both are -1.5 % slower"
    knobs = rows_of(1, 9, f"{first}; {second}")
    shown, words = lists_and_meaning(knobs, 0, False, 9, 40)
    assert (len(shown), " ".join(words)) == (7, f"{first}; {second}")
    assert all(len(line) <= 40 for line in words)
    assert meaning_rows(knobs, 40) == 2
    # Two lists and one row: what comes first is whole.
    assert lists_and_meaning(knobs, 0, False, 4, 40)[1] == [first]
    # What is too little for the other list says more.
    assert " ".join(lists_and_meaning(knobs, 0, False, 4, 30)[1]) == f"{first}; {second}"
    assert " ".join(lists_and_meaning(knobs, 0, False, 3, 30)[1]) == first
    assert lists_and_meaning(knobs, 0, False, 2, 30)[1] == [f"{first[:27]}..."]
    assert (meaning_rows(rows_of(1, 1), 40), meaning_rows(None, 40)) == (0, 0)


async def test_that_a_layout_is_less_work_is_said_where_its_row_is_seen(make_app: MakeApp) -> None:
    size, large = (120, 36), (200, 50)
    app = make_app(four_stages(stage_layout="uniform"), first=None)
    async with app.run_test(size=size) as pilot:
        await press(pilot, "4", "tab")
        await run_over(pilot)
        here = 0
        while ">layout megatron (embedding" not in screen_text(app).replace(">stage-l", ">l"):
            await press(pilot, "down")
            here += 1
            assert here < 20
        assert LAYOUT in screen_text(app)
        await resize(pilot, *large)
        assert LAYOUT in screen_text(app)
    # One stage has no layout to choose.
    app = make_app(one_stage(), first=None)
    async with app.run_test(size=size) as pilot:
        await press(pilot, "4", "tab")
        await run_over(pilot)
        assert "stage layout" not in screen_text(app)
        await resize(pilot, *large)
        assert "stage layout" not in screen_text(app)


def test_the_lists_are_apart_on_the_summary_of_a_tall_screen() -> None:
    rows = drawn_summary(one_stage(), 160, 42).split("\n")
    heading = next(index for index, row in enumerate(rows) if MATTERS in row)
    # The best of two that differ in their overlap alone.
    assert "overlap-grad-reduce under 1f1b" in rows[heading - 1]
    assert "10 % less time" in rows[heading + 1]


async def test_no_change_is_cut_on_screen_4_where_its_figures_leave_room(make_app: MakeApp) -> None:
    app = make_app(four_stages(), first=None)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "4", "tab")
        for size in ((80, 24), (120, 36)):
            await resize(pilot, *size)
            await run_over(pilot)
            assert re.search("interleaved, virtual(-stages)? 8, overlap-grad-reduce ", screen_text(app))


async def test_a_small_screen_has_the_layout_on_top_and_after_a_change_what_runs(make_app: MakeApp) -> None:
    app = make_app(four_stages(), first=None)
    async with app.run_test(size=(80, 24)) as pilot:
        await run_over(pilot)
        assert "1024: tp 8 dp 32 pp 4" in screen_rows(app)[0]
        assert "1f1b   4 mb" in screen_rows(app)[0]
        await press(pilot, "t")
        await run_over(pilot)
        # What was changed, the layout in short, and the difference.
        assert "   interleaved x8   tp8 dp32 pp4   " in screen_rows(app)[0]
        assert f"step 2.229 s  -{100 - 100 * 2229.021 / 3637.771:.1f} %" in screen_rows(app)[0]


def test_the_layout_of_a_part_of_the_ranks_is_not_said_to_be_theirs() -> None:
    whole = RecordedRun(run_of(SLOW_RANK, 2))
    assert whole.figures.headline(False)[0] == "2: dp 2"
    part = RecordedRun(run_of(SLOW_RANK, 8, tp=4))
    assert part.figures.headline(False)[0] == "2 ranks"
    tensor = RecordedRun(run_of(SLOW_RANK, 2, tp=2))
    assert tensor.figures.headline(False)[0] == "2: tp 2"
    assert seed().figures.headline(False)[0] == "1024: tp 8 dp 8 pp 16"


def test_the_first_row_says_that_collectives_run_beside_compute() -> None:
    """After `t` on `overlap-grad-reduce under 1f1b` it had `1f1b` alone."""
    plain_words = "1f1b, 16 micro-batches, step / 16 = 923.4 ms"
    assert seed().figures.headline(True)[1] == plain_words
    one, both = seed(overlap_grad_reduce=True), seed(overlap_grad_reduce=True, overlap_param_gather=True)
    assert one.figures.headline(True)[1].startswith(
        "1f1b, 16 micro-batches, overlap-grad-reduce, step / 16 = "
    )
    assert both.figures.headline(True)[1].startswith("1f1b, 16 micro-batches, with overlaps, step / 16 = ")
    assert one.figures.headline(False)[1:] == both.figures.headline(False)[1:] == ["1f1b overlap", "16 mb"]
    assert dict(both.figures.facts)["schedule"] == (
        "1f1b, 16 micro-batches, overlap-grad-reduce, overlap-param-gather"
    )


async def test_what_the_command_line_gave_is_counted_and_has_a_field(make_app: MakeApp) -> None:
    slow = run_recording(run_of(SLOW_RANK, 2), Parameters(slow_host=("1=2",)))
    for opened, counted in ((slow, "0 changed, 1 given"), (RecordedRun(run_of(SLOW_RANK, 2)), "0 changed")):
        app = make_app(opened, first=None)
        async with app.run_test(size=(200, 50)) as pilot:
            await press(pilot, "5")
            await run_over(pilot)
            text = screen_text(app)
            assert f"─ {counted} ─" in text
            field = next(row for row in screen_rows(app) if "rank 1 host gaps" in row)
            assert field.split("││")[0].split()[-1].rstrip("│") == ("given" if opened is slow else "measured")


async def test_rows_that_the_effect_leaves_free_have_the_advice_that_is_there(make_app: MakeApp) -> None:
    words = "what would help most, % of step"
    app = make_app(four_stages(), first=None)
    async with app.run_test(size=(200, 50)) as pilot:
        await run_over(pilot)
        await press(pilot, "5")
        rows = screen_rows(app)
        title = next(index for index, row in enumerate(rows) if words in row)
        assert "interleaved, virtual-stages 8" in rows[title + 1]
        assert "-38.7%" in rows[title + 1]
        # Different changes, as on screen 1.
        assert "interleaved, virtual-stages 4" in rows[title + 2]
        # What is no change has its heading, said once.
        assert sum("10 % less time" in row for row in rows[title:]) <= 1
    # It is looked for on other screens alone: a scrubbed value has the machine for itself.
    app = make_app(four_stages(), first="parameters")
    async with app.run_test(size=(200, 50)) as pilot:
        await run_over(pilot)
        assert words not in screen_text(app)
        assert app.what_ifs.result_of(app.session.current) is None


async def test_what_the_best_change_of_seed_000_rests_on_is_whole_on_both_screens(make_app: MakeApp) -> None:
    """Planted: one row, cut."""
    alone, sizes = one_stage(), [(80, 24), (120, 40), (200, 50)]
    app = make_app(alone, first=None)
    async with app.run_test(size=sizes[0]) as pilot:
        for size, screen in itertools.product(sizes, "14"):
            await resize(pilot, *size)
            await press(pilot, screen)
            await run_over(pilot)
            # The boxes of a large screen stand beside each other.
            rows = (row.strip("│").split("││") for row in screen_rows(app))
            columns = itertools.zip_longest(*rows, fillvalue="")
            said = " ".join(" ".join(" ".join(column).split()) for column in columns)
            changes = app.runs.what_if(alone)
            assert changes
            assumed, reasons = changes[0].meaning.split("; ", 1)
            assert assumed in said
            assert reasons.startswith("1f1b ")
            assert reasons in said
    app = make_app(four_stages(), first=None)
    async with app.run_test(size=sizes[0]) as pilot:
        for size in sizes:
            await resize(pilot, *size)
            await run_over(pilot)
            assert " ".join(reasons.split()[1:5]) not in screen_text(app)


async def test_who_goes_back_finds_the_row_that_was_tried(make_app: MakeApp) -> None:
    """Planted: the cursor placed before the table was there, which put it on the first row."""
    app = make_app(four_stages(), first="why")
    async with app.run_test(size=(120, 40)) as pilot:
        await run_over(pilot)
        view = app.current_view
        assert isinstance(view, PanelsView)
        await press(pilot, "tab", *"jjj")
        fourth = view.model.selected_change()
        assert fourth is app.session.current.what_if()[3]
        await press(pilot, "t")
        await run_over(pilot)
        assert app.session.current.step_time_ns == fourth.better10_ns
        # The rows are others: a second `t` would try one that nobody chose.
        assert view.model.row(WHAT_IF) == 0
        await press(pilot, "x")
        await run_over(pilot)
        assert view.model.selected_change() == fourth
        # A list that is shorter has a last row.
        view.model.set_what_if(app.session.current.what_if()[:2])
        assert view.model.row(WHAT_IF) == 1
