"""Where the figures of a row come from: the values that are put in give the figures again."""

import re

import pytest
from hypothesis import given, settings

from simcore.analysis.explain import explain_rows
from simcore.diagnostics import UsageError
from simcore.parameters import Parameters
from simcore.render.report.pages import run_json, run_page
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.workload import open_workload
from tests.analysis.booking import pair_ns, run
from tests.says import said as says
from tests.strategies import Case, Cell, Row, cases, layer
from tests.workload.texts import read

SEED_002 = "fixtures/002_gpt_1024npu.txt"


def test_a_cell_is_explained_with_its_values() -> None:
    lines = explain_rows(SimulatedRun(simulate(open_workload(SEED_002), Parameters())), "mlp_row:ig")
    assert lines[0] == "mlp_row: 128 equal rows, lines 13, 17, 21, 25, 29, 33, ..."
    assert lines[1] == "  ig   compute_ns = 5 278 888: the ig cell, 5 278 888 ns"
    assert says([lines[2]], "ig", "comm_ns = 264 017", "one all-gather")
    assert "group of 8 on dimension 0 (switch 8, 450 GB/s, 500 ns a hop): 134 217 728 B gathered" in lines[3]
    assert lines[-3:-1] == [
        "  ig   algbw = 134 217 728 B / 264 017 ns = 508.368 GB/s",
        "  ig   busbw = algbw x 7/8 = 444.822 GB/s",
    ]
    assert says([lines[-1]], "one step", "one rank", "compute 2.027 s", "exposed 73.358 ms")


def test_a_cell_takes_what_its_ops_take_with_a_time_scale_on_any_part() -> None:
    """The optimizer's rows were scaled as the phase of their cell: 32.473 ms were said, and 16.237 ran."""
    rows = [layer("grad_param_compute", 0, 1000), Row("mlp_1", Cell(100, "ALLREDUCE", "tp", 40), Cell(60))]
    for part, factors in {
        "compute opt": (0.5, 1, 1, 1), "compute fwd": (1, 0.5, 1, 1), "compute ig": (1, 1, 0.5, 1),
        "layer mlp": (1, 0.5, 0.5, 0.5), "stream tp": (1, 1, 1, 0.5),
    }.items():  # fmt: skip
        results = SimulatedRun(run(rows, {"tp": 2}, schedule="1f1b", time_scale=(f"{part}=0.5",)))
        optimizer, mlp = (results.layers[row].cells for row in (0, 1))
        figures = (
            optimizer["ig"].compute_ns, mlp["fwd"].compute_ns, mlp["ig"].compute_ns, mlp["fwd"].comm_ns
        )  # fmt: skip
        stated = (1000, 100, 60, pair_ns(40))
        assert figures == tuple(round(factor * ns) for factor, ns in zip(factors, stated, strict=True)), part
        assert results.layers[0].use.compute_ns == optimizer["ig"].compute_ns
        assert results.layers[1].use.compute_ns == mlp["fwd"].compute_ns + mlp["ig"].compute_ns
        said = explain_rows(results, "grad_param_compute")[1]
        assert said.endswith(" x time scale 0.5") == (part == "compute opt")


def test_scales_stand_in_the_explanation_and_in_the_layer_table() -> None:
    rows = [Row("mlp_1", Cell(100, "ALLREDUCE", "tp", 40)), layer("mlp_2", 100)]
    simulation = run(rows, {"tp": 2}, compute_scale=0.5, comm_scale=2.0, layer_scale=("mlp:fwd=3",))
    results = SimulatedRun(simulation)
    lines = explain_rows(results, "mlp_1")
    assert lines[1] == "  fwd  compute_ns = 150: the fwd cell, 100 ns x compute scale 0.5 x layer scale 3"
    assert says([lines[2]], "fwd", f"comm_ns = {2 * pair_ns(40)}", "one all-reduce")
    assert any(line.endswith("times comm scale 2") for line in lines)
    assert "  fwd  busbw = algbw x 2 x 1/2 = " in lines[-2]
    assert [row.cells["fwd"].compute_ns for row in results.layers] == [150, 150]
    assert [row.use.compute_ns for row in results.layers] == [150, 150]


def test_where_a_scale_rounds_each_phase_of_a_chunk_the_explanation_says_so() -> None:
    workload = read(b"DATA\n1\nmlp -1 10 NONE 0 10 NONE 0 10 ALLREDUCE 123457 0\n")
    parameters = Parameters(world=8, dim=("ring:4:50:500", "ring:2:20:700"), comm_scale=0.37)
    lines = explain_rows(SimulatedRun(simulate(workload, parameters)), "mlp:wg")
    assert says([lines[2]], "wg", "comm_ns = 3 644", "one all-reduce")
    assert says([lines[4]], "comm scale 0.37", "rounded")
    rows = [Row("mlp", Cell(0, "ALLREDUCE", "tp", 123_457))]
    changes = {"dim": ("ring:8:50:500",), "splits": 8, "comm_scale": 0.37}
    for network in ("analytical", "shared"):
        lines = explain_rows(SimulatedRun(run(rows, {"tp": 8}, network=network, **changes)), "mlp")
        assert says([lines[1]], "fwd", "comm_ns = 25 082", "one all-reduce")
        assert lines[3].endswith("= 67 788 ns, times comm scale 0.37")


def test_a_name_without_its_number_is_all_such_rows() -> None:
    results = SimulatedRun(run([layer("mlp_1", 5), layer("mlp_2", 5), layer("mlp_3", 6)], {}))
    heads = [line for line in explain_rows(results, "mlp") if not line.startswith("  ")]
    assert heads == ["mlp: 2 equal rows, lines 3, 4", "mlp_3: 1 equal row, line 5"]
    assert explain_rows(results, "mlp_2")[0] == "mlp_2: 1 equal row, line 4"


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ("mlp_rwo", "--explain mlp_rwo: no row has this name, close ones are mlp_row"),
        ("zzz", "--explain zzz: no row has this name"),
        ("mlp_row:x", "--explain mlp_row:x: no row has this name, PHASE is one of fwd, ig, wg"),
        ("mlp_row:ig", "--explain mlp_row:ig: no ig cell of these rows computes or communicates"),
        ("empty", "--explain empty: nothing computes or communicates"),
        ("\x1b", "--explain \\x1b: no row has this name"),
    ],
)
def test_what_is_not_there_is_said(asked: str, error: str) -> None:
    results = SimulatedRun(run([layer("mlp_row", 5), layer("empty")], {}))
    with pytest.raises(UsageError) as caught:
        explain_rows(results, asked)
    assert str(caught.value) == error


@settings(max_examples=40)
@given(cases())
def test_the_values_put_in_give_the_bandwidths_again(case: Case) -> None:
    results = SimulatedRun(simulate(*case))
    values = run_json(results)["layers"]
    for row in dict.fromkeys(row.name for row in results.layers):
        try:
            lines = explain_rows(results, row)
        except UsageError:
            continue
        for line in lines:
            found = re.match(r"  (\w+) +algbw = ([\d ]+) B / ([\d ]+) ns = ([\d.]+) GB/s", line)
            if found:
                size, ns = (int(found[place].replace(" ", "")) for place in (2, 3))
                assert float(found[4]) == pytest.approx(size / ns, abs=0.001)
                assert any(
                    one["name"] == row and one[found[1]]["bytes"] == size and one[found[1]]["comm_ns"] == ns
                    for one in values
                )


@settings(max_examples=30)
@given(cases())
def test_the_table_of_all_rows_has_every_cell_that_does_something(case: Case) -> None:
    results = SimulatedRun(simulate(*case))
    page = run_page(results, every_layer=True)
    table = page[page.index("All rows of the file") :].split("\n\n")[0].splitlines()[2:]
    cells = [
        (phase, cell)
        for row in results.layers
        for phase, cell in row.cells.items()
        if cell.is_modelled or cell.collective
    ]
    rows = [line for line in table if re.search(r" (fwd|ig|wg) ", line)]
    assert len(rows) == len(cells)
    assert [re.search(r" (fwd|ig|wg) ", line)[1] for line in rows] == [phase for phase, _ in cells]  # type: ignore[index]


def test_lines_are_left_out_of_the_seventh_row_on() -> None:
    def head(rows: int) -> str:
        made = [layer(f"mlp_{number}", 5) for number in range(rows)]
        return explain_rows(SimulatedRun(run(made, {})), "mlp")[0]

    assert head(6) == "mlp: 6 equal rows, lines 3, 4, 5, 6, 7, 8"
    assert head(7) == "mlp: 7 equal rows, lines 3, 4, 5, 6, 7, 8, ..."


def test_a_row_with_one_line_of_figures_has_their_sum_too() -> None:
    head, cell, whole = explain_rows(SimulatedRun(run([layer("mlp", 5)], {})), "mlp")
    assert head == "mlp: 1 equal row, line 3"
    assert says([cell], "fwd", "compute_ns = 5", "fwd cell", "5 ns")
    assert says([whole], "one step", "one rank", "compute 5 ns", "exposed 0 s")


def test_of_many_close_names_the_three_closest_are_said() -> None:
    results = SimulatedRun(run([layer(name, 5) for name in ("mlp_ra", "mlp_rb", "mlp_rc", "mlp_rdd")], {}))
    with pytest.raises(UsageError) as caught:
        explain_rows(results, "mlp_rd")
    assert says([str(caught.value)], "--explain mlp_rd", "mlp_rdd, mlp_rc, mlp_rb")
