"""Screen 3 of a measured run: its operations as a table, with the figures of the report.

Seen to fail on these bugs, planted one at a time: a sort the wrong way round; `Enter` to the rank behind the
right one; the longest run taken of the first rank that has one.
"""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from simcore.measured import MeasuredRun
from simcore.measured.columns import MEASURED
from simcore.replay.operations import Operations
from simcore.replay.parameters import Scales
from simcore.runs.measured import RecordedRun
from simcore.trace.layers import LayerUse
from simcore.units import duration
from tests.measured.made_steps import Layout, made_run, run_apart
from tests.measured.test_less_work import _LAYOUTS
from tests.measured.test_operations import four, made_step, text_of_step
from tests.measured.test_trace_lines import LAUNCH
from tests.measured.traces import Op, Sub, step
from tests.says import said
from tests.tui.conftest import MakeApp
from tests.tui.screen_reading import frames_after, press, run_over, screen_rows, screen_text
from tests.tui.test_measured_screens import PLAN, app_on, made
from tests.tui.test_safe_text import NASTY, check_text
from tui.frame import text_of
from tui.layers.op_table import NONE_MATCHES, OpTable
from tui.layers.table import Table
from tui.layers.view import LayersView
from tui.session import Session
from tui.timeline.view import TimelineView

TOGETHER, EACH = False, True


def table(results: RecordedRun, each: bool = TOGETHER) -> OpTable:
    return OpTable(Operations(results), each)


def with_path(results: RecordedRun, each: bool = TOGETHER) -> OpTable:
    found = table(results, each)
    found.find_path(lambda: False)
    return found


def operations_of(found: OpTable) -> list[LayerUse]:
    return [found.of_line(line) for line in range(len(found.lines))]


def names(found: OpTable) -> list[str]:
    return [one.title for one in operations_of(found)]


def view_on(results: RecordedRun) -> LayersView:
    """The screen, not on any terminal."""
    return LayersView(Session(results), ascii_only=False)


# -- order, filter, find ---------------------------------------------------------------------


def shown(text: str) -> float:
    figure = text.split(" x")[-1].removeprefix("x")
    return float(figure) if figure not in ("", "-") else -1.0


@pytest.mark.parametrize("each", [TOGETHER, EACH])
def test_each_column_of_figures_is_sorted_by_what_it_shows(each: bool) -> None:
    found = with_path(four(), each)
    before = sorted(names(found))
    for column in found.columns_for(250):
        key, descending = found.sorted_by[column.heading]
        if column.heading in ("operation", "kind", "work"):
            continue
        assert not found.cannot_sort(column.heading)
        for down in (descending, not descending):
            found.sort(key, down)
            assert sorted(names(found)) == before
            figures = [found.texts(line)[column.heading] for line in range(len(found.lines))]
            if column.heading == "slack ms":
                # What holds nobody has more slack than all.
                figures = [text.replace("-", "1e9") for text in figures]
            values = [shown(text) for text in figures]
            for one, other in pairwise(values):
                # Both are rounded to what their column has room for.
                assert (one - other) * (1 if down else -1) >= -0.01 * max(abs(one), 1), column.heading


def test_names_are_sorted_from_a_to_z_and_an_operation_comes_before_what_lies_in_it() -> None:
    found = table(four())
    found.sort("name", False)
    assert names(found) == [
        "backward_step", "first_async in backward_step", "linear in backward_step",
        "second_async in backward_step", "ep_allreduce", "forward_step", "linear in forward_step",
        "optimizer_step", "recv_backward", "recv_forward", "send_backward", "send_forward",
    ]  # fmt: skip


def test_it_opens_with_what_takes_most_of_the_step_without_waiting() -> None:
    for each in (TOGETHER, EACH):
        found = table(four(), each)
        order = [(one.runs.rank or 0, -one.cost_ns) for one in operations_of(found)]
        assert order == sorted(order)


def test_the_filter_leaves_what_has_every_word_in_name_kind_or_rank() -> None:
    found = table(four())
    found.filter("LINEAR forward")
    assert names(found) == ["linear in forward_step"]
    found.filter("communication pp")
    assert set(names(found)) == {"recv_backward", "recv_forward", "send_backward", "send_forward"}
    assert found.left() == "4 of 12 operations, 4 ranks together"
    found.filter("nothing has this")
    assert len(found.lines) == 0
    assert found.no_match(found.typed) == NONE_MATCHES
    each = table(four(), EACH)
    each.filter("rank 2")
    assert {each.of_line(line).runs.rank for line in range(len(each.lines))} == {2}
    each.sort("exposed", True)
    assert {each.of_line(line).runs.rank for line in range(len(each.lines))} == {2}


@given(st.sampled_from(["forward", "linear", "pp", "2", "zzz"]), st.integers(0, 40), st.sampled_from([1, -1]))
def test_a_match_is_the_nearest_line_that_has_the_word(word: str, line: int, direction: int) -> None:
    found = table(four(), EACH)
    naive = []
    for place in range(len(found.lines)):
        one = found.of_line(place)
        if word in f"{one.title} {one.kinds}" or word == str(one.runs.rank):
            naive.append(place)
    ahead = [place for place in naive if (place - line) * direction >= 0]
    wanted = min(ahead, key=lambda place: abs(place - line)) if ahead else None
    if wanted is None and naive:
        wanted = naive[0] if direction > 0 else naive[-1]
    assert found.find(word, line, direction) == wanted


def test_a_line_is_found_again_in_another_order_and_when_ranks_are_taken_apart() -> None:
    found, apart = with_path(four()), with_path(four(), EACH)
    for other in (found, apart):
        for line in range(len(other.lines)):
            mark = other.mark(line)
            for key, down in (("exposed", True), ("critical", False), ("", True)):
                other.sort(key, down)
                assert other.mark(other.line_of(mark)) == mark
    for line in range(len(found.lines)):
        assert apart.mark(apart.line_of(found.mark(line)))[:2] == found.mark(line)[:2]
    for line in range(len(apart.lines)):
        assert found.mark(found.line_of(apart.mark(line)))[:2] == apart.mark(line)[:2]


# -- the way to the timeline -----------------------------------------------------------------


def longest(run: MeasuredRun, one: LayerUse) -> int:
    """The longest run of it, looked for in all lines of the file."""
    lengths = []
    for number in one.runs.ranks:
        ops, subs = run.ranks[number].ops, run.ranks[number].subs
        if not one.inside:
            lengths += [
                ops.end[op] - ops.start[op]
                for op, name in enumerate(ops.name)
                if name == one.name and ops.timing[op] == MEASURED
            ]
        else:
            lengths += [
                subs.end[sub] - subs.start[sub]
                for sub, name in enumerate(subs.name)
                if (ops.name[subs.parent[sub]], name) == one.key
            ]
    return max(lengths)


@settings(max_examples=30)
@given(_LAYOUTS, st.integers(0, 10**6), st.booleans())
def test_the_place_of_an_operation_is_its_longest_run(layout: Layout, seed: int, each: bool) -> None:
    results = made_step(layout, seed)
    found = table(results, each)
    for line in range(len(found.lines)):
        one, place = found.of_line(line), found.find_selection(line)
        assert place is not None
        assert place.track_id in one.runs.ranks
        assert place.end_ns - place.start_ns == max(longest(results.run, one), 1)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_enter_leads_to_the_longest_run_and_escape_back_to_the_table(
    make_app: MakeApp, size: tuple[int, int]
) -> None:
    app = app_on(make_app, four().run)
    async with app.run_test(size=size) as pilot:
        await press(pilot, "3")
        await run_over(pilot)
        view = app.current_view
        assert isinstance(view, LayersView)
        for _ in range(len(view.table.lines)):
            before, at = screen_rows(app), view.line
            found = view.table
            assert isinstance(found, OpTable)
            one, place = found.of_line(at), found.find_selection(at)
            assert place is not None
            await press(pilot, "enter")
            timeline = app.current_view
            assert isinstance(timeline, TimelineView)
            model = timeline.model
            assert model.current.key.track_id == place.track_id
            index = model.current.content.find_span(model.cursor_ns)
            spans = model.current.spans
            assert index is not None
            assert place.start_ns <= model.cursor_ns < place.end_ns
            assert (place.start_ns, place.end_ns) in zip(spans.start, spans.end, strict=True)
            # Two of one group that run beside compute overlap: the lane tells the later one.
            if not one.name.endswith("_async"):
                assert (spans.start[index], spans.end[index]) == (place.start_ns, place.end_ns)
                assert one.name in screen_text(app).split("At the cursor")[1]
            await press(pilot, "escape")
            assert screen_rows(app) == before
            await press(pilot, "j")


async def test_an_instant_is_found_in_the_lane_that_has_it(make_app: MakeApp) -> None:
    run = made("\n".join([Op(timestamp="102.0").line(), LAUNCH, Op("backward_step", "106.0", "3.0").line()]))
    app = app_on(make_app, run)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "3", "slash", *"ddp", "enter", "enter")
        assert "ddp_grad_comm (dp), micro-batch 0" in screen_text(app)
        assert "   an instant: " in screen_text(app)


# -- the screen ------------------------------------------------------------------------------


KEYS: dict[str, tuple[str, ...]] = {
    "operations": ("3", "j"),
    "operations of each rank": ("3", "j", "space", "j"),
    "operations sorted": ("3", *"llllls", "j"),
    "operations filtered": ("3", "backslash", *"comm", "enter"),
}


@pytest.mark.parametrize("name", KEYS)
async def test_the_operations_are_drawn_as_before(
    make_app: MakeApp, snapshot: SnapshotAssertion, name: str
) -> None:
    sizes = [(80, 24), (200, 50)]
    for size, text in (await frames_after(app_on(make_app, four().run), sizes, KEYS[name])).items():
        assert text == snapshot(name=size)


async def test_every_key_of_the_table_does_something_on_a_measured_run(make_app: MakeApp) -> None:
    app = app_on(make_app, four().run)
    nothing = []
    async with app.run_test(size=(80, 24)) as pilot:
        for binding in LayersView.BINDINGS:
            for key in binding.key.split(","):  # type: ignore[union-attr]
                await press(pilot, "3")
                await run_over(pilot)
                view = app.current_view
                assert isinstance(view, LayersView)
                view.line, view.column, view._sought = 4, 2, "linear"
                view.table.sort("exposed", True)
                view.redraw()
                await pilot.pause()
                before = screen_text(app)
                await press(pilot, key)
                if screen_text(app) == before:
                    nothing.append(key)
                if len(app.screen_stack) > 1:
                    await press(pilot, "escape")
        await run_over(pilot)
    assert nothing == []


@pytest.mark.parametrize("width", [30, 60, 80, 100, 120, 140, 200, 250])
@pytest.mark.parametrize("each", [TOGETHER, EACH])
def test_the_columns_fit_the_screen_and_the_texts_their_columns(width: int, each: bool) -> None:
    found = with_path(four(), each)
    columns = found.columns_for(width)
    if width >= 60:
        assert sum(one.size + 1 for one in columns) <= width
    assert {"operation", "kind", "count", "time ms"} <= {one.heading for one in columns}
    for line in range(len(found.lines)):
        texts = found.texts(line)
        for one in columns:
            assert len(texts[one.heading]) <= one.size or one.heading == "operation"
    view = view_on(four())
    view._replace_table(view.table.apart(each))
    for height in (5, 21, 47):
        lines = text_of(view.frame(width, height)).split("\n")
        assert sum(line.startswith(">") for line in lines) == 1
        if width >= 80:
            assert len(lines) <= height or height == 5
            assert max(len(line.rstrip()) for line in lines) <= width


def test_headings_say_what_their_figures_are_of() -> None:
    """The mean of ranks, the rank with most and the path of all stand beside each other."""
    view = view_on(four())
    lines = text_of(view.frame(120, 30)).split("\n")
    heading, rule = lines[1], lines[2]
    there = {"time ms": "mean", "exposed ms": "max", "% step": "max", "critical ms": "the path"}
    for name, of in there.items():
        end = heading.index(name) + len(name)
        assert rule[:end].endswith(of), name
    said(lines[:1], "max:", "rank", "most")
    # Where each rank has its own lines a figure is that rank's.
    view._replace_table(view.table.apart(EACH))
    lines = text_of(view.frame(120, 30)).split("\n")
    assert "max" not in lines[0] + lines[2]


def test_a_wide_screen_has_all_columns() -> None:
    heading = text_of(view_on(four()).frame(200, 47)[1:2])
    for name in ("kind", "work", "count", "ranks", "time ms", "run ms", "most ms", "waits ms", "compute ms",
                 "exposed ms", "most on", "MB", "algbw", "critical ms", "slack ms", "% step"):  # fmt: skip
        assert f" {name} " in heading + " "


def test_where_nobody_is_seen_to_wait_no_column_says_how_long() -> None:
    layout = Layout(2, 1, 2, 2)
    apart = RecordedRun(run_apart(text_of_step(layout, 1), layout))
    assert {"waits ms", "algbw"}.isdisjoint(one.heading for one in table(apart).columns_for(220))
    assert {"waits ms", "algbw"} <= {one.heading for one in table(four()).columns_for(220)}


def test_what_is_said_of_an_operation_is_what_its_line_shows() -> None:
    results = four()
    found = with_path(results)
    for line in range(len(found.lines)):
        one = found.of_line(line)
        title, lines = found.origin(line, 76)
        text = " ".join(words for words, _ in lines)
        assert title == one.title
        assert all(len(words) <= 76 for words, _ in lines)
        assert text.startswith(f"{one.runs.count} runs on {len(one.runs.ranks)} ranks (")
        assert "critical path" in text
        if found.texts(line).get("algbw"):
            assert f"algbw {Operations(results).find_transfers(one).algbw:.1f} GB/s" in text
        if one.runs.times_mean is not None:
            assert f"{one.runs.times_mean:.2f} times the mean" in text
        # 2.18 times the mean was read as that of the line above, which has waits.
        with_waits = f"it ({duration(round(one.runs.mean_own_ns))} without waits)" in text
        assert with_waits == (one.runs.times_mean is not None and one.runs.waits_ns > 0)


def test_without_a_partner_it_is_said_what_is_not_known() -> None:
    subs = tuple(Sub("1030.00", "20.00", name) for name in ("linear", "linear_async"))
    run = made_run(Op(timestamp="1060", duration="60", subs=subs).line(0), Layout(2, 1, 1, 1))
    found = with_path(RecordedRun(run))
    told = {one.key[1]: " ".join(words for words, _ in found.origin(line, 200)[1])
            for line, one in enumerate(operations_of(found))}  # fmt: skip
    assert "no partner" in told["linear"]
    assert "counts as communication" in told["linear"]
    assert "no partner" in told["linear_async"]
    assert "is not known" in told["linear_async"]
    assert "nothing of its" in told["linear_async"]
    assert "beside compute" in told["linear_async"]
    assert "partner" not in told[None]


def test_who_holds_the_longest_run_is_named() -> None:
    early = Sub("1030.00", "20.00", "linear")
    late = Sub("1030.00", "0.10", "linear")
    text = Op(timestamp="1060", duration="60", subs=(early,)).line(0) + "\n"
    text += Op(timestamp="1060", duration="60", subs=(late,)).line(1) + "\n"
    run = made_run(text, Layout(2, 1, 1, 1))
    found = table(RecordedRun(run))
    line = names(found).index("linear in forward_step")
    text = " ".join(words for words, _ in found.origin(line, 200)[1])
    assert re.search(r" slowest 20\.000 ms \(rank 0, micro-batch 0\), .* 19\.900 ms for rank 1\b", text)


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_a_plan_shows_its_operations_without_times(make_app: MakeApp, size: tuple[int, int]) -> None:
    app = app_on(make_app, made(PLAN))
    async with app.run_test(size=size) as pilot:
        await press(pilot, "3")
        text = screen_text(app)
        assert " 5 operations, 2 stages together, in file order, no times" in text
        assert "1 run of stage 0; " in text
        for absent in ("time ms", "exposed", "...", "0.000"):
            assert absent not in text
        await press(pilot, "space")
        assert " 6 operations, each stage's alone, in file order, no times" in screen_text(app)
        assert " stage " in screen_rows(app)[3]
        for key in ("l", "o", "l", "o", "l", "o", "O", "j"):
            await press(pilot, key)
        await press(pilot, "enter")
        assert app.screen_name == "timeline"
        assert "forward_step, micro-batch 0   stage 0" in screen_text(app)


async def test_a_rank_alone_has_nothing_to_take_apart_and_says_so(make_app: MakeApp) -> None:
    app = app_on(make_app, made(Op(timestamp="102.0").line()))
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "3")
        assert "rank 0, most of" in screen_rows(app)[2]
        assert "Space" not in screen_rows(app)[-1]
        await press(pilot, "space")
        assert screen_rows(app)[-1].strip() == Table.cannot_split


async def test_the_table_follows_a_replay_and_stays_as_it_was(make_app: MakeApp) -> None:
    app = app_on(make_app, four().run)
    async with app.run_test(size=(200, 50)) as pilot:
        await press(pilot, "3", "space", *"lllll", "o", "backslash", *"linear", "enter", "j")
        view = app.current_view
        assert isinstance(view, LayersView)
        mark = view.table.mark(view.line)
        replay = four().with_scales(Scales(comm=2.0))
        app.session.show(replay)  # type: ignore[attr-defined]
        app.show_everywhere(replay)
        await run_over(pilot)
        found = view.table
        assert isinstance(found, OpTable)
        assert (found.each, found.typed) == (True, "linear")
        assert found.key == "time"
        exposed = {
            one.title: one.use.exposed_ns for one in Operations(replay).of_each_rank if one.runs.rank == 0
        }
        texts = {
            one.title: found.texts(line)["exposed ms"]
            for line, one in enumerate(operations_of(found))
            if one.runs.rank == 0
        }
        assert texts == {name: f"{exposed[name] / 1e6:.3f}" for name in texts}
        assert mark in [found.mark(line) for line in range(len(found.lines))]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("nasty", NASTY.values(), ids=NASTY)
@pytest.mark.parametrize("ascii_only", [False, True])
def test_names_of_a_trace_are_safe_and_have_one_cell_a_character(nasty: str, ascii_only: bool) -> None:
    run = named(nasty)
    for each in (TOGETHER, EACH):
        view = LayersView(Session(RecordedRun(run)), ascii_only=ascii_only)
        view._replace_table(view.table.apart(each))
        for line in range(len(view.table.lines)):
            view.line = line
            for width in (80, 200):
                frame = text_of(view.frame(width, 30))
                check_text(frame)
                assert frame.isascii() or not ascii_only


def named(name: str) -> MeasuredRun:
    """A step of two ranks whose operations and sub-operations have this name, whatever a file could write."""
    run = made("".join(step(rank, 1000 + rank) for rank in range(2)))
    for rank in run.ranks:
        rank.ops.name[0] = rank.subs.name[0] = name
        rank.ops.group[1] = name
    return run


async def test_markup_in_a_name_is_no_markup(make_app: MakeApp) -> None:
    app = app_on(make_app, named("[bold red]x[/]"))
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "3")
        assert "[bold red]x[/]" in screen_text(app)


def test_only_the_lines_in_view_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    results = made_step(Layout(4, 4, 2, 2))
    view = view_on(results)
    view._replace_table(view.table.apart(EACH))
    assert len(view.table.lines) > 250
    asked: list[int] = []
    whole = OpTable.texts
    monkeypatch.setattr(OpTable, "texts", lambda self, line: asked.append(line) or whole(self, line))
    view.line = 130
    view.frame(120, 33)
    assert len(asked) <= 30
    assert 130 in asked


def test_the_figures_of_the_path_come_from_a_worker() -> None:
    found = table(made_step(Layout(2, 1, 2, 1), 5))
    assert not found.learn_path()
    assert found.texts(0)["critical ms"] == "..."
    assert "critical path" in found.cannot_sort("critical ms")
    assert found.find_path(lambda: False)
    assert found.learn_path()
    assert not found.cannot_sort("critical ms")
    assert found.texts(0)["critical ms"] != "..."
