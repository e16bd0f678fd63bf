"""The layer table sorted, filtered and searched, and the way to the timeline and back."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.analysis.layer_order import find_longest_span
from simcore.runs.simulated import SimulatedRun
from simcore.trace import tables
from simcore.workload import open_workload
from tests.says import figures, said
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import run, seed, seed_workload, small
from tests.tui.pseudo_terminal import SEED, Terminal, wltui
from tests.tui.screen_reading import press, screen_rows, wait_until
from tui.layers.view import LayersView
from tui.layers.workload_table import WORKLOAD_COLUMNS
from tui.layers.workload_table import WorkloadTable as Table


def first_lines(table: Table) -> list[dict[str, str]]:
    """The texts of the first line of each unit, from the top."""
    return [table.texts(number) for number, line in enumerate(table.lines) if line.first]


def column_of(table: Table, heading: str) -> list[float]:
    """Of each unit, from the top, the largest figure of its lines in a column."""
    found: list[float] = []
    for number, line in enumerate(table.lines):
        text = table.texts(number)[heading].removeprefix("x")
        value = float(text) if text not in ("", "-") else 0.0
        if line.first:
            found.append(value)
        else:
            found[-1] = max(found[-1], value)
    return found


@cache
def mistakes() -> SimulatedRun:
    """Of 98 rows, where seed 002 has 800: with as many different figures."""
    return run(open_workload("fixtures/001_moe_128npu_with_mistakes.txt"))


@pytest.mark.parametrize(
    "heading", [name for name, (_, descending) in WORKLOAD_COLUMNS.sorted_by.items() if descending]
)
@pytest.mark.parametrize("every_row", [False, True])
def test_a_column_of_figures_is_sorted_by_what_it_shows(heading: str, every_row: bool) -> None:
    table = Table(mistakes().compute_layer_path(lambda: False), every_row)
    before = len(table.lines)
    table.sort(table.sorted_by[heading][0], True)
    # What is shown is rounded, and compute that the file does not model is a dash.
    shown = [round(one, 1) for one in column_of(table, heading)]
    assert heading == "compute ms" or shown == sorted(shown, reverse=True)
    table.sort(table.sorted_by[heading][0], False)
    shown = [round(one, 1) for one in column_of(table, heading)]
    assert heading == "compute ms" or shown == sorted(shown)
    assert len(table.lines) == before


def test_what_has_least_slack_comes_first_and_what_has_none_last() -> None:
    table = Table(seed().compute_layer_path(lambda: False), True)
    table.sort("slack", False)
    slacks = [line.group.use.slack_ns or 0 for line in table.lines if line.first]
    assert slacks == sorted(slacks)
    assert slacks[0] == 0


async def test_the_figures_of_the_critical_path_come_while_the_table_is_open(make_app: MakeApp) -> None:
    app = make_app(run(seed_workload(), microbatches=24))
    async with app.run_test(size=(140, 36)) as pilot:
        await press(pilot, "3")
        await wait_until(pilot, lambda: "..." not in screen_rows(app)[5])
        view = app.current_view
        assert isinstance(view, LayersView)
        line = view.table.lines[0]
        ns = sum(view.session.current.rows.critical_ns[row] for row in line.group.rows)
        assert f" {ns / 1e6:8.3f}"[:9] in screen_rows(app)[5]
        place = [heading for heading, *_ in WORKLOAD_COLUMNS.columns_for(140)].index("critical ms")
        await press(pilot, *"l" * place, "o")
        said(screen_rows(app)[2:3], "critical ms", "largest")
        critical = [one.group.use.critical_ns or 0 for one in view.table.lines if one.first]
        assert critical == sorted(critical, reverse=True)


async def test_a_sort_by_figures_that_are_not_there_yet_says_so(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables.Table, "path_known", False)
    app = make_app()
    async with app.run_test(size=(140, 36)) as pilot:
        await press(pilot, "3")
        place = [heading for heading, *_ in WORKLOAD_COLUMNS.columns_for(140)].index("critical ms")
        await press(pilot, *"l" * place, "o")
        words = "the critical path is not ready yet: press o when the column has figures"
        assert screen_rows(app)[-1].strip() == words
        assert "..." in screen_rows(app)[5]


def test_names_are_sorted_from_a_to_z_and_units_stay_whole() -> None:
    table = Table(seed(), False)
    table.sort("name", False)
    names = [line["layer"] for line in first_lines(table)]
    assert names == sorted(names)
    assert [line.phase for line in table.lines if line.group.title == "mlp_row"] == ["fwd", "ig", "wg"]


def test_the_filter_leaves_what_has_every_word_in_name_collective_or_group() -> None:
    table = Table(seed(), False)
    table.filter("GRAD gather")
    assert [line["layer"] for line in first_lines(table)] == ["grad_gather"]
    table.filter("dp")
    assert {line["layer"] for line in first_lines(table)} == {"grad_gather", "grad_param_comm"}
    assert table.rows() == (2, 557)
    table.filter("nothing has this")
    assert len(table.lines) == 0
    table.filter("")
    assert table.rows() == (555, 557)


async def test_rows_that_do_nothing_are_counted_where_they_are_left_out(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "3")
        heading = " 557 rows, 2 empty, most first; max: the rank with most"
        assert screen_rows(app)[2].rstrip() == heading
        view = app.current_view
        assert isinstance(view, LayersView)
        sizes = [len(line.group.rows) for line in view.table.lines if line.first]
        assert sum(sizes) + view.table.count_empty("") == 557
        await press(pilot, "backslash", *"moe")
        assert "0 of 557 rows, 2 empty" in screen_rows(app)[-1]
        await press(pilot, "enter")
        heading = " filter moe: 0 of 557 rows, 2 empty, most first; max: the rank with most"
        assert screen_rows(app)[2].rstrip() == heading
        assert figures(view.table.no_match("moe")) == ["2"]
        assert any(view.table.no_match("moe") in row for row in screen_rows(app))
        await press(pilot, "escape", "slash", *"moe")
        assert view.table.no_match("moe") in screen_rows(app)[-1]
        await press(pilot, "escape", "backslash", *"zzz", "enter")
        heading = " filter zzz: 0 of 557 rows, most first; max: the rank with most"
        assert screen_rows(app)[2].rstrip() == heading
        assert figures(view.table.no_match("zzz")) == []
        assert any(view.table.no_match("zzz") in row for row in screen_rows(app))


@given(
    st.sampled_from(["mlp", "grad", "all-gather", "tp", "zzz"]), st.integers(0, 30), st.sampled_from([1, -1])
)
def test_a_match_is_the_nearest_first_line_that_has_the_word(word: str, line: int, direction: int) -> None:
    table = Table(seed(), False)
    naive = []
    for place, one in enumerate(table.lines):
        cells = one.group.cells.values()
        text = " ".join([one.group.title, *(f"{c.collective} {c.group}" for c in cells)]).lower()
        text = text.replace("allgather", "all-gather")
        if one.first and word in text:
            naive.append(place)
    ahead = [place for place in naive if (place - line) * direction >= 0]
    wanted = min(ahead, key=lambda place: abs(place - line)) if ahead else None
    if wanted is None and naive:
        wanted = naive[0] if direction > 0 else naive[-1]
    assert table.find(word, line, direction) == wanted


def test_each_line_of_a_sorted_and_filtered_table_is_found_again() -> None:
    table = Table(small(), True)
    table.sort("exposed", True)
    table.filter("row")
    for place, line in enumerate(table.lines):
        if line.first:
            assert table.lines.line_of(line.group.rows[0]) == place


def test_the_longest_span_of_rows_is_that_of_the_timeline() -> None:
    timeline = seed().simulation.timeline
    rows = frozenset(next(group for group in seed().layer_groups if group.title == "mlp_row").rows)
    seen = find_longest_span(timeline, rows, "ig")
    assert seen is not None
    ops, start, end = timeline.columns(seen.track_id)
    lengths = [end[op] - start[op] for op in range(len(ops)) if ops.row[op] in rows and ops.phase[op] == 1]
    assert seen.end_ns - seen.start_ns == max(lengths)
    assert find_longest_span(timeline, frozenset()) is None


async def test_enter_leads_to_the_timeline_and_escape_back_to_the_table_as_it_was(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "3", "l", "l", "l", "o", "j", "j")
        before = screen_rows(app)
        await press(pilot, "enter")
        assert app.screen_name == "timeline"
        assert any("weight grad   mlp_row" in row for row in screen_rows(app)[24:])
        await press(pilot, "v", "escape")
        assert app.screen_name == "timeline"
        await press(pilot, "escape")
        assert screen_rows(app) == before
        await press(pilot, "2", "escape")
        assert app.screen_name == "timeline"


async def test_prices_of_very_many_rows_are_not_sorted_by(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.layers.workload_table.MOST_PRICED", 3)
    app = make_app(first="layers")
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, *"lllllll", "o")
        words = "alone ms is priced row by row: not for more than 3 rows"
        assert screen_rows(app)[-1].strip() == words
        view = app.current_view
        assert isinstance(view, LayersView)
        assert view.table.key == ""


@pytest.fixture(scope="module")
def terminal() -> Iterator[Terminal]:
    with wltui(SEED, screen="layers") as found:
        found.wait_for("q quit")
        yield found


def test_the_table_is_filtered_while_one_types(terminal: Terminal) -> None:
    terminal.press("\\")
    terminal.wait_for(lambda: terminal.lines[-1].startswith(" filter "))
    terminal.press_each(
        ("grad", "4 of 557 rows"), (" dp", "2 of 557 rows"), ("\x7f\x7f\x7f", "4 of 557 rows")
    )
    terminal.press_each(("\r", "Esc no filter"))
    terminal.settle(0.3)
    terminal.press("\x1b")
    terminal.wait_for("\\ filter")


def test_a_row_is_found_while_one_types_and_n_goes_on(terminal: Terminal) -> None:
    terminal.press_each(("/grad", ">grad_param_comm"), ("\r", "n N match"), ("n", ">grad_gather"))
    terminal.press_each(("N", ">grad_param_comm"), ("/zzz", "no row has these words"))
    terminal.settle(0.3)
    terminal.press("\x1b")
    terminal.wait_for(">grad_param_comm")


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (80, 12)])
async def test_the_cursor_follows_its_row_and_phase_and_its_name_stays_in_view(
    make_app: MakeApp, size: tuple[int, int]
) -> None:
    app = make_app(first="layers")
    async with app.run_test(size=size) as pilot:
        await press(pilot, "backslash", *"mlp", "enter", "j", "j", "j", "j", "j")
        view = app.current_view
        assert isinstance(view, LayersView)
        row, phase = view.table.lines[view.line].group.title, view.table.lines[view.line].phase
        assert (row, phase) == ("mlp_column", "wg")
        for keys in (
            ("o",),
            ("o",),
            ("l", "o"),
            ("O",),
            ("backslash", "enter"),
            ("escape",),
            ("l", "l", "o"),
        ):
            await press(pilot, *keys)
            there = view.table.lines[view.line]
            assert (there.group.title, there.phase) == (row, phase)
            shown = [
                text for text in screen_rows(app)[5:] if text.startswith((" mlp_column ", ">mlp_column "))
            ]
            assert shown, keys
            left = "" if keys == ("escape",) or not view.table.typed else "256 of 557 rows, "
            assert left in screen_rows(app)[2]


async def test_find_sees_rows_inside_of_groups_and_says_which(make_app: MakeApp) -> None:
    """Planted: a search of the groups' own names alone."""
    app = make_app(mistakes())
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "3", "slash", *"norm2", "enter")
        view = app.current_view
        assert isinstance(view, LayersView)
        assert view.table.texts(view.line)["layer"] == "moe_grad_norm"
        assert screen_rows(app)[-1].startswith(" moe_grad_norm2, line 8, ")
        await press(pilot, "slash", *"final", "enter")
        assert ", line " not in screen_rows(app)[-1]
