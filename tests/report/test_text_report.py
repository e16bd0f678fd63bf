"""The report as a page: the facts it states, not how it looks."""

import re

import pytest
from hypothesis import given, settings
from msgspec import structs

from simcore.diagnostics import Diagnostic, UsageError
from simcore.layout import Layout
from simcore.parameters import Parameters
from simcore.render.report.pages import run_page
from simcore.render.report.section import Column, format_table
from simcore.runs.simulated import SimulatedRun
from simcore.setup import Setup
from simcore.simulation import Simulation, simulate
from simcore.units import duration
from simcore.words.simulated_run import layout_words
from simcore.workload import open_workload
from tests.analysis.booking import run
from tests.strategies import Case, Cell, Row, cases, layer, make_workload

SEED_001 = "fixtures/001_moe_128npu_with_mistakes.txt"
SEED_002 = "fixtures/002_gpt_1024npu.txt"
AGREED = {"ga": 1, "vpp": 0}


def page(simulation: Simulation, ascii_only: bool = False) -> str:
    return run_page(SimulatedRun(simulation), ascii_only)


def fact(text: str, name: str) -> str:
    """What the page says behind `name` in its list of facts."""
    (found,) = re.findall(rf"^  {name} +(\S.*)$", text, re.MULTILINE)
    return str(found)


def test_the_first_line_is_the_step_time() -> None:
    assert page(simulate(open_workload(SEED_002), Parameters(comm_scale=0.0))).startswith(
        "Step time  13.973 s\n"
    )


def test_the_page_says_what_was_read_and_simulated() -> None:
    simulation = simulate(open_workload(SEED_002), Parameters())
    text = page(simulation)
    assert fact(text, "file") == SEED_002
    assert fact(text, "format") == "simai, HYBRID_TRANSFORMER_FWD_IN_BCKWD"
    assert fact(text, "rows") == "557: 6 before, 16 blocks of 8 layers, 7 after"
    assert fact(text, "ranks") == "1024 = tp 8 x dp 8 x pp 16"
    assert fact(text, "schedule") == "1f1b, 16 micro-batches"
    cluster = "switch 8, 450 GB/s, 500 ns a hop x switch 128, 50 GB/s, 1000 ns a hop; analytical"
    assert fact(text, "cluster") == cluster
    assert re.findall(r"\d+(?: \d+)*", fact(text, "simulated")) == ["40 560", "16", "2 595 840"]


def test_declared_rows_and_uneven_blocks_are_said() -> None:
    text = page(simulate(open_workload(SEED_001), Parameters()))
    assert fact(text, "rows") == "98, 96 declared: 6 before, 2 blocks of 1 to 8 layers, 7 after"
    assert fact(text, "ranks") == "128 = tp 8 x dp 4 x pp 4, ep 4 inside dp"


def test_an_ep_that_goes_over_tp_is_not_said_to_lie_inside_dp() -> None:
    assert "inside dp" in layout_words(Layout(4, 3, 3, 1))
    assert "inside dp" not in layout_words(Layout(4, 6, 3, 1))


def test_a_line_for_each_class_says_where_its_step_goes() -> None:
    rows = [Row("embedding_layer", Cell(10**9, "ALLREDUCE", "tp", 10**9), Cell(2 * 10**9), Cell(10**9))]
    text = page(run(rows, {"tp": 2, "pp": 2}))
    lines = re.findall(r"^ +(\d+)  (\S+) .*?([\d. ]+) %$", text, re.MULTILINE)
    assert [(stage, ranks) for stage, ranks, _ in lines] == [("0", "0-1"), ("1", "2-3")]
    assert lines[0][2].split() == ["4.000", "1.000", "5.000", "0.000", "40.0"]
    assert lines[1][2].split() == ["4.000", "1.000", "2.000", "3.000", "40.0"]


def test_only_kinds_that_are_exposed_have_a_column_and_wait_only_when_there_is_one() -> None:
    rows = [Row("mlp", Cell(10, "ALLREDUCE", "tp", 1000), wg=Cell(5, "ALLREDUCE", "dp", 1000))]
    title = "Where the step goes, us on each rank"
    text = page(run(rows, {"tp": 2}))
    assert f"{title}; tp: exposed communication" in text
    assert " wait  bubble" not in text
    assert title.replace(" us ", " ns ") + "\n" in page(run([layer("mlp", 5)], {}))
    workload = make_workload(rows, tp=2, ep=1, pp=1, all_gpus=4)
    uneven = page(simulate(workload, Parameters(dim=("switch:3:100:1", "switch:2:1:1"))))
    assert f"{title}; tp, dp: exposed communication" in uneven
    assert " wait  bubble" in uneven


def test_the_layers_are_listed_by_cost_and_the_rest_is_counted() -> None:
    rows = [layer(f"layer_{letter}", 10**6 * (number + 1)) for number, letter in enumerate("abcdefghijklm")]
    text = page(run(rows, {}))
    listed = re.findall(r"^  layer_(\w) ", text, re.MULTILINE)
    assert "".join(listed) == "mlkjihgfed"
    assert "  and 3 more\n" in text


def test_layers_have_their_part_of_the_critical_path_and_their_least_slack() -> None:
    results = SimulatedRun(simulate(open_workload(SEED_002), Parameters(microbatches=2)))
    page = run_page(results)
    lines = page[page.index("most expensive layers") :].splitlines()
    assert lines[1].split()[-4:] == ["critical", "ms", "least", "slack"]
    for line, group in zip(lines[2:12], results.layer_groups, strict=False):
        critical_ns = sum(results.rows.critical_ns[row] for row in group.rows)
        slack = results.rows.slack_ns
        assert slack is not None
        least = [ns for ns in (slack[row] for row in group.rows) if ns is not None]
        assert f"{critical_ns / 1e6:.3f}  " in line
        assert line.endswith(f" {duration(min(least)) if least else '-'}")
    every = run_page(results, every_layer=True)
    first = every[every.index("All rows of the file") :].splitlines()[2].split()
    assert first[:2] == ["3", "grad_gather"]
    assert first[-3] == f"{results.rows.critical_ns[0] / 1e6:.3f}"


def test_rows_that_never_run_have_no_slack() -> None:
    rows = [layer("embedding_layer", 5), layer("embedding_layer", 7)]
    page = run_page(SimulatedRun(run(rows, {"dp": 2}, schedule="1f1b", microbatches=1)), every_layer=True)
    lines = page[page.index("All rows of the file") :].splitlines()[2:4]
    assert [line.split("0.000")[-1].strip() for line in lines] == ["0 s", "-"]


def test_diagnostics_come_last_with_their_place_and_code() -> None:
    simulation = run([layer("embedding_layer", 5)], AGREED, schedule="1f1b")
    assert page(simulation).endswith("\nDiagnostics: none\n")
    found = (
        Diagnostic("error", "one", "first", simulation.workload.path, 3, 7),
        Diagnostic("warning", "two", "second", simulation.workload.path, 4),
        Diagnostic("warning", "three", "third", simulation.workload.path),
    )
    text = page(structs.replace(simulation, diagnostics=found))
    head, *lines = text[text.index("Diagnostics:") :].splitlines()
    assert head == "Diagnostics: 1 error, 2 warnings"
    assert [line.split() for line in lines] == [
        ["error", "line", "3,", "column", "7", "first", "[one]"],
        ["warning", "line", "4", "second", "[two]"],
        ["warning", "run", "third", "[three]"],
    ]


@pytest.mark.parametrize("bad", ["\x1b[2J", "\n", "\r", "\u202e", "\ud800", "\x85", "\u2028"])
def test_nothing_of_a_file_can_steer_the_terminal(bad: str) -> None:
    rows = [Row(f"attention{bad}1", Cell(5, "ALLREDUCE", "tp", 10)), layer(f"mlp{bad}", 5)]
    simulation = run(rows, {"tp": 2, "pp": 2, "pp_comm": None})
    workload = structs.replace(simulation.workload, path=f"a{bad}b.txt", policy=f"p{bad}")
    text = page(structs.replace(simulation, setup=Setup(workload, simulation.parameters)))
    assert bad == "\n" or bad not in text
    assert all(line.isprintable() for line in text.splitlines())


def test_a_long_name_is_cut() -> None:
    assert "x" * 33 not in page(run([layer("x" * 5000, 5)], {}))


def test_a_layout_that_cannot_be_is_not_said_beside_the_one_that_was_run() -> None:
    # Megatron's layout gives the loss to the last stage alone: an all-reduce over all ranks would hang there.
    rows = [
        layer("embedding_layer", 5),
        layer("mlp", 5),
        Row("cross_entropy1", wg=Cell(0, "ALLREDUCE", "all", 1)),
    ]
    simulation = run(rows, {"tp": 1, "pp": 2, "pp_comm": None})
    with pytest.raises(UsageError, match="would hang"):
        simulate(simulation.workload, structs.replace(simulation.parameters, stage_layout="megatron"))
    text = page(simulation)
    assert text.startswith(f"Step time  {duration(simulation.step_time_ns)}\n")
    assert "--stage-layout megatron" not in text


@settings(max_examples=40)
@given(cases())
def test_every_run_has_a_page_and_its_bars_are_one_width(case: Case) -> None:
    simulation = simulate(*case)
    plain, ascii_page = page(simulation), page(simulation, ascii_only=True)
    assert ascii_page.isascii()
    assert plain.startswith(f"Step time  {duration(simulation.step_time_ns)}\n")
    assert len(plain.splitlines()) == len(ascii_page.splitlines())
    classes = len(simulation.timeline.classes)
    stages = plain[plain.index("Where the step goes") :].split("\n\n")[0]
    assert len(re.findall(r" %$", stages, re.MULTILINE)) == classes
    glyphs = str.maketrans("▄█▇▌─▁", "fbox-.")
    first = plain.index("  stage")
    last = plain.index("  ▄ forward")
    assert plain[first:last].translate(glyphs) == ascii_page[first : first + last - first]


def test_a_table_puts_names_left_and_figures_right() -> None:
    lines = format_table([Column("name", left=True), Column("ns")], [["a", "1"], ["long name", "12345"]])
    assert lines == ["  name          ns", "  a              1", "  long name  12345"]
    assert format_table([Column("x", left=True)], []) == ["  x"]


@pytest.mark.slow
def test_the_cluster_line_names_algorithms_and_chunks_that_were_asked_for() -> None:
    parameters = Parameters(algorithm=("1=direct4",), splits=4, active_chunks=2, network="shared")
    lines = run_page(SimulatedRun(simulate(open_workload(SEED_001), parameters))).splitlines()
    assert [line.split(None, 1)[1] for line in lines if line.startswith("  cluster ")] == [
        "switch 8, 450 GB/s, 500 ns a hop x switch 16, 50 GB/s, 1000 ns a hop (direct4); "
        "4 splits, 2 at a time; shared"
    ]
