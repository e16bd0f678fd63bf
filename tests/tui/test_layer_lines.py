"""The layer table: which rows it has, in what order, and that its columns stay columns."""

from __future__ import annotations

import pytest

from simcore.render.report.pages import run_json
from simcore.runs.simulated import SimulatedRun
from simcore.units import group_digits
from simcore.workload import Workload
from tests.says import said
from tests.strategies import Cell, Row, layer, make_workload
from tests.tui.made_runs import line_text, lonely, run, seed, seed_workload, small, two_stages
from tests.tui.test_random_forms import opened
from tui.frame import text_of
from tui.layers.columns import format_figure
from tui.layers.view import LayersView, table_of
from tui.layers.workload_table import WORKLOAD_COLUMNS
from tui.layers.workload_table import WorkloadTable as Table
from tui.session import Session

GROUPED, EACH = False, True


def texts(results: SimulatedRun, every_row: bool = GROUPED) -> list[dict[str, str]]:
    """All lines of the table, by heading."""
    table = Table(results, every_row)
    return [table.texts(line) for line in range(len(table.lines))]


def one_rank(*rows: Row) -> SimulatedRun:
    """Rows on one rank."""
    return run(make_workload(list(rows), tp=1, pp=1, all_gpus=1))


def view_of(workload: Workload, results: SimulatedRun) -> LayersView:
    """The screen, not on any terminal."""
    return LayersView(Session(results), ascii_only=False)


def test_equal_rows_are_one_line_a_phase_the_most_expensive_first() -> None:
    found = texts(small())
    assert [(line["layer"], line["rows"], line["phase"]) for line in found if line["layer"]] == [
        ("attention_column", "x2", "fwd"),
        ("mlp_row", "x2", "fwd"),
        ("grad_gather", "x1", "wg"),
        ("embedding_layer", "x2", "fwd"),
        ("optimizer", "x1", "fwd"),
    ]
    assert [line["phase"] for line in found][:5] == ["fwd", "ig", "wg", "fwd", "ig"]


def test_a_cell_with_a_time_scale_says_what_it_is_of() -> None:
    """`943.2 us a run, from the file` was said of 0.9 of the 1.048 ms that the file has, and under a figure
    of 0.071 ms stood a price of 78 647 ns.
    """
    rows = [Row("mlp_1", Cell(2000, "ALLREDUCE", "tp", 4000), Cell(600), Cell(200))]
    workload = make_workload(rows, tp=2, pp=1, all_gpus=2)
    for scales, of_compute, of_collective in (
        ((), "compute 2.000 us a run, from the file", ""),
        (("layer mlp=0.5",), "compute 1.000 us a run, from the file: 2.000 us x time scale 0.5", "0.5"),
        (("compute fwd=0.5",), "compute 1.000 us a run, from the file: 2.000 us x time scale 0.5", ""),
        (("stream tp=0.1",), "compute 2.000 us a run, from the file", "0.1"),
    ):
        table = Table(run(workload, time_scale=scales), GROUPED)
        line = next(number for number, line in enumerate(table.lines) if line.phase == "fwd")
        *lines, compute = (words for words, _ in table.origin(line, 400)[1])
        priced, takes = " ".join(lines), group_digits(table.lines[line].cell.comm_ns)
        assert compute == of_compute
        scaled = f" x time scale {of_collective} = " if of_collective else " = "
        assert priced.endswith(f"{scaled}{takes} ns")
        assert ("time scale" in priced) == bool(of_collective)


def test_each_row_has_its_own_lines_in_the_order_of_the_file() -> None:
    found = [line["layer"] for line in texts(small(), EACH) if line["layer"]]
    assert found == list(small().simulation.workload.name)
    assert all(line["rows"] in ("x1", "") for line in texts(small(), EACH))


def test_the_sums_of_the_groups_are_those_of_the_rows() -> None:
    for results in (small(), seed()):
        groups = {line.group.title: line.group for line in Table(results, GROUPED).lines if line.first}
        rows = [line.group for line in Table(results, EACH).lines if line.first]
        compute = [sum(one.use.compute_ns for one in some) for some in (groups.values(), rows)]
        assert compute[0] <= compute[1]
        costs = [line.group.cost_ns for line in Table(results, GROUPED).lines if line.first]
        assert costs == sorted(costs, reverse=True)
        assert sum(costs) == sum(row.cost_ns for row in results.layers if shown(row))


def shown(row: object) -> bool:
    """Whether a row of the file has a line: some phase computes or sends."""
    return any(cell.is_modelled or cell.bytes for cell in row.cells.values())  # type: ignore[attr-defined]


@pytest.mark.parametrize("every_row", [GROUPED, EACH])
def test_each_row_finds_its_first_line(every_row: bool) -> None:
    for results in (small(), seed()):
        lines = Table(results, every_row).lines
        found = {}
        for place, line in enumerate(lines):
            for row in line.group.rows:
                found.setdefault(row, place)
        rows = range(len(results.layers))
        assert [lines.line_of(row) for row in rows] == [found.get(row, 0) for row in rows]
        assert [line.phase for line in lines[-2:]] == [lines[-2].phase, lines[-1].phase]


def test_every_row_that_does_something_is_in_the_table_once() -> None:
    lines = [line for line in Table(seed(), GROUPED).lines if line.first]
    rows = sorted(row for line in lines for row in line.group.rows)
    assert rows == [row.index for row in seed().layers if shown(row)]
    assert len(rows) == len(set(rows))


@pytest.mark.parametrize(("ns", "modelled"), [(0, False), (1, False), (1000, False), (2, True), (999, True)])
def test_compute_that_the_file_does_not_model_is_a_dash(ns: int, modelled: bool) -> None:
    results = run(make_workload([Row("a", Cell(ns, "ALLREDUCE", "tp", 4000))], tp=2, pp=1, all_gpus=2))
    (line,) = texts(results)
    assert line["compute ms"] == (f"{ns / 1e6:.3f}" if modelled else "-")
    assert line["collective"] == "all-reduce"


@pytest.mark.parametrize("scale", [0.5, 2.0, 500.0])
def test_whether_compute_is_modelled_does_not_depend_on_the_compute_scale(scale: float) -> None:
    rows = [Row("a", Cell(2000, "ALLREDUCE", "tp", 4000)), Row("b", Cell(1000, "ALLREDUCE", "tp", 4000))]
    rows.append(Row("c", Cell(2, "ALLREDUCE", "tp", 4000)))
    workload = make_workload(rows, tp=2, pp=1, all_gpus=2)
    opened = {line["layer"]: line["compute ms"] == "-" for line in texts(run(workload))}
    scaled = {line["layer"]: line["compute ms"] == "-" for line in texts(run(workload, compute_scale=scale))}
    assert opened == {"a": False, "b": True, "c": False}
    assert scaled == opened


def test_a_collective_shows_group_size_bytes_time_and_bandwidths() -> None:
    line = texts(seed())[0]
    assert line["layer"] == "mlp_row"
    assert (line["collective"], line["group"], line["MB"]) == ("reduce-scatter", "tp 8", "134.218")
    alone_s = float(line["alone ms"]) / 1e3
    assert float(line["algbw"]) == pytest.approx(0.134218 / alone_s, rel=0.01)
    assert float(line["busbw"]) == pytest.approx(float(line["algbw"]) * 7 / 8, rel=0.01)


def test_shares_of_the_step_are_of_compute_and_exposed_together() -> None:
    results = one_rank(layer("a", 3000), layer("b", 1000, 500, 500))
    assert {line["layer"]: line["% step"] for line in texts(results) if line["layer"]} == {
        "a": "60.0",
        "b": "40.0",
    }


def test_only_the_first_line_of_a_row_has_its_sums() -> None:
    for line in texts(seed()):
        sums = [line[heading] for heading in ("layer", "rows", "all ms", "exposed ms", "% step")]
        assert all(sums) or not any(sums)


def large() -> SimulatedRun:
    """A large model: 20 s of compute and 200 GB of gradients in one row, 12 000 equal rows."""
    rows = [
        Row("layer_of_a_large_model", Cell(20 * 10**9), wg=Cell(2, "ALLREDUCE", "dp", 200 * 10**9)),
        *[layer("small_1", 2000)] * 12_000,
    ]
    return run(make_workload(rows, tp=1, pp=1, all_gpus=8))


@pytest.mark.parametrize("make", [seed, small, lonely, large], ids=["seed", "small", "lonely", "large"])
def test_every_figure_fits_its_column(make: object) -> None:
    sizes = {one.heading: one.size for one in WORKLOAD_COLUMNS.columns_for(200)}
    wide = {
        (heading, text)
        for line in texts(make())  # type: ignore[operator]
        for heading, text in line.items()
        if len(text) > sizes[heading]
    }
    assert wide == set()


@pytest.mark.parametrize(
    "name", ["x" * 60, "\x1b" * 17, "漢" * 30, "\u202e" * 10], ids=["x", "esc", "w", "rtl"]
)
def test_a_name_never_pushes_the_figures_out_of_their_columns(name: str) -> None:
    assert all(len(line["layer"]) <= 40 for line in texts(one_rank(layer(name, 5000))))


@pytest.mark.parametrize("width", [20, 60, 80, 100, 120, 200])
def test_lines_fit_the_screen_as_long_as_the_first_columns_do(width: int) -> None:
    columns = WORKLOAD_COLUMNS.columns_for(width)
    assert [heading for heading, *_ in columns][:4] == ["layer", "rows", "phase", "compute ms"]
    if width >= 80:
        assert 1 + sum(size + 1 for _, size, *_ in columns) <= width + 1
    lines = view_of(seed_workload(), seed()).frame(width, 33)
    assert len(lines) <= 33


def test_the_whole_table_is_on_a_screen_of_120_columns() -> None:
    lines = view_of(seed_workload(), seed()).frame(120, 33)
    heading = line_text(lines[1])
    for name in WORKLOAD_COLUMNS.sorted_by:
        assert (f" {name} " in heading + " ") == (name not in ("busbw", "all ms", "slack ms"))
    wide = line_text(view_of(seed_workload(), seed()).frame(144, 33)[1])
    assert all(f" {name} " in wide + " " for name in WORKLOAD_COLUMNS.sorted_by)
    # Behind the last column stands a blank.
    assert {len(line_text(line).rstrip()) for line in lines if len(line_text(line).rstrip()) > 120} == set()


@pytest.mark.parametrize("width", [80, 120, 200])
def test_headings_say_what_their_figures_are_of(width: int) -> None:
    """One run of a row, a rank and the path of all stand beside each other."""
    title, heading, rule = map(line_text, view_of(seed_workload(), seed()).frame(width, 33)[:3])
    there = {"alone ms": "each", "exposed ms": "max", "% step": "max"}
    if width > 80:
        there |= {"compute ms": "each", "critical ms": "the path"}
    for name, of in there.items():
        assert rule[: heading.index(name) + len(name)].endswith(of), name
    said([title], "max:", "rank", "most")
    assert ("the path: through all ranks" in title) == (width > 80)
    # Shares of the step are of a rank, and stand beside what else is.
    assert " exposed ms % step" in heading
    # A name is of nothing.
    assert set(rule[: heading.index("rows")].strip()) <= {"─", "━"}


def test_headings_are_abbreviated_below_100_columns_alone() -> None:
    for width in (80, 99, 100, 120, 160, 200):
        titles = {one.title for one in WORKLOAD_COLUMNS.columns_for(width)}
        assert ({"ph.", "comp. ms"} <= titles) == (width < 100)
        assert any(one.endswith(".") or ". " in one for one in titles) == (width < 100)


@pytest.mark.slow
@pytest.mark.parametrize("every_row", [False, True])
def test_the_critical_path_of_a_row_is_what_the_report_has(every_row: bool) -> None:
    results = run(seed_workload(), microbatches=32)
    table = Table(results, every_row)
    assert not table.learn_path()
    first = [number for number, line in enumerate(table.lines) if line.first]
    assert {table.texts(number)["critical ms"] for number in first} == {"..."}
    results.compute_layer_path(lambda: False)
    assert table.learn_path()
    rows = run_json(results)["layers"]
    seen = []
    for number, line in enumerate(table.lines):
        mine = [rows[row] for row in line.group.rows]
        seen += line.group.rows if line.first else []
        slacks = [row["slack_ns"] for row in mine if row["slack_ns"] is not None]
        assert line.group.use.critical_ns == sum(row["critical_ns"] for row in mine)
        assert line.group.use.slack_ns == min(slacks, default=None)
        texts = table.texts(number)
        if line.first:
            assert texts["critical ms"] == format_figure(sum(row["critical_ns"] for row in mine) / 1e6, 8)
    # Of rows without a line the path has the rest.
    assert len(seen) + table.count_empty("") == len(rows)


def test_the_first_picture_has_what_is_known_of_the_path() -> None:
    """At 80 columns nothing asks for the path; another screen may have computed it."""
    model_run = opened("model").current
    table_of(model_run).find_path(lambda: False)
    view = LayersView(Session(model_run), ascii_only=False)
    assert text_of(view.frame(80, 21)) == text_of(view.frame(80, 21))


def test_the_cursor_moves_and_the_price_below_is_that_of_its_line() -> None:
    view = view_of(seed_workload(), seed())
    assert ">mlp_row " in text_of(view.frame(120, 33))
    said(text_of(view.frame(120, 33)).split("\n"), "mlp_row, fwd, line 13", "127 more")
    view.action_move(2)
    text = text_of(view.frame(120, 33))
    said(text.split("\n"), "mlp_row, wg, line 13", "127 more")
    assert "no collective" in text
    view.action_move(-100)
    assert view.line == 0
    view.action_move(10**7)
    assert view.line == len(Table(seed(), GROUPED).lines) - 1
    assert f">{' ' * 25}" in text_of(view.frame(120, 33)) or "\n>" in text_of(view.frame(120, 33))


@pytest.mark.parametrize("height", [4, 10, 21, 33, 60])
def test_the_line_of_the_cursor_is_on_the_screen_at_every_height(height: int) -> None:
    view = view_of(seed_workload(), seed())
    for by in (0, 7, 20, 10**7, -20, -(10**7)):
        view.action_move(by)
        text = text_of(view.frame(120, height))
        assert sum(line.startswith(">") for line in text.split("\n")) == 1


def test_unfolding_keeps_the_cursor_on_its_row_and_folding_on_its_group() -> None:
    view = view_of(seed_workload(), seed())
    view.action_move(3)
    assert "from: mlp_column, fwd" in text_of(view.frame(120, 33))
    view.action_each_row()
    assert "from: mlp_column" in text_of(view.frame(120, 33))
    view.action_move(40)
    name = seed_workload().name[view.table.lines[view.line].group.rows[0]]
    view.action_each_row()
    assert f"from: {name}," in text_of(view.frame(120, 33))


def test_the_table_follows_another_run() -> None:
    view = view_of(two_stages(), small())
    view.action_move(10**7)
    other = run(two_stages(), compute_scale=3.0)
    view.session.current = other
    view.show(other)
    text = text_of(view.frame(120, 33))
    view.action_move(-(10**7))
    assert " x compute scale 3" in text_of(view.frame(120, 33))
    assert "optimizer" in text


def test_a_file_in_which_nothing_is_modelled_has_no_lines_and_no_crash() -> None:
    view = view_of(lonely(1).simulation.workload, lonely(1))
    frame = text_of(view.frame(120, 33))
    assert view.table.no_match("") in frame
    assert frame.startswith(" 1 row, 1 empty, ")
    view.action_move(5)
    view.action_each_row()
    assert view.table.no_match("") in text_of(view.frame(80, 21))


def test_the_price_of_a_collective_is_shown_whole_on_80_columns() -> None:
    view = view_of(seed_workload(), seed())
    for line in range(len(Table(seed(), GROUPED).lines)):
        view.line = line
        cell = Table(seed(), GROUPED).lines[line].cell
        if cell.bytes:
            price = f"{cell.comm_ns:,} ns".replace(",", " ")
            text = " ".join(text_of(view.frame(80, 21)).split())
            assert f"= {price}" in text


def test_what_figures_are_of_is_no_fainter_than_they_are() -> None:
    for width in (80, 120, 200):
        below = view_of(seed_workload(), seed()).frame(width, 33)[2]
        said = [(text.strip(), role) for text, role in below if text.strip(" ─━")]
        assert {"each", "max"} <= {text for text, _ in said}
        assert {role for _, role in said} == {""}
