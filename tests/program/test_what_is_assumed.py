"""Diagnostics and refusals on the way from rows to a program: exact texts."""

from typing import Any

import pytest

from simcore.diagnostics import Diagnostic, UsageError
from simcore.layout import Layout
from simcore.parameters import Parameters
from simcore.program import Program, build_program
from simcore.program.schedule_choice import ScheduleParameters
from simcore.program.schedules import SCHEDULES
from simcore.simulation import simulate
from simcore.workload import open_workload
from tests.findings import facts, findings
from tests.strategies import Cell, Row, layer, make_workload

BLOCK = [layer("embedding_layer", 1), layer("attention_1", 1), layer("mlp_1", 1)]


def build(
    rows: list[Row], header: dict[str, Any], layout: Layout | None = None, **parameters: Any
) -> tuple[Program, list[Diagnostic]]:
    return build_program(
        make_workload(rows, **header),
        layout or Layout(1, 1, 1, 1),
        Parameters(**parameters).part(ScheduleParameters),
    )


def texts(found: list[Diagnostic]) -> list[str]:
    return [diagnostic.text() for diagnostic in found]


AGREED = {"ga": 2, "vpp": 1}


def test_a_header_that_agrees_with_its_rows_needs_no_word() -> None:
    program, found = build(BLOCK * 2, AGREED)
    assert (program.schedule, program.pipelined, program.microbatches, found) == ("layer-loop", False, 2, [])


def test_a_pipeline_runs_1f1b_by_default() -> None:
    program, found = build(BLOCK * 2, AGREED | {"pp_comm": 8}, Layout(1, 1, 1, 2))
    assert (program.schedule, program.pipelined, program.microbatches) == ("1f1b", True, 2)
    assert [one.code for one in found] == ["stage-layout-default"]


def test_micro_batches_that_somebody_asks_for_are_not_those_of_the_blocks() -> None:
    """After `Mend the file first` and --microbatches 1 the notes still had `2 blocks: 2 taken`."""
    rows = [*BLOCK, *BLOCK, *BLOCK[1:]]
    header = AGREED | {"ga": 1, "vpp": 1}
    _, found = build(BLOCK * 2, header, Layout(1, 1, 1, 1))
    assert [facts(one.message) for one in found if one.code == "ga-differs"] == ["ga, 1, 2, 2"]
    for count in (1, 4):
        program, found = build(BLOCK * 2, header, Layout(1, 1, 1, 1), schedule="1f1b", microbatches=count)
        assert program.microbatches == count
        (note,) = [one for one in found if one.code == "ga-differs"]
        assert facts(note.message) == f"ga, 1, 2, --microbatches, {count}"
        assert note.brief == f"ga 1, 2 blocks: --microbatches {count}"
    # Of fewer than the blocks the layers of those that run are held against vpp.
    for count, codes in ((None, ["vpp-differs"]), (1, [])):
        _, found = build(rows, header | {"ga": 2}, Layout(1, 1, 1, 1), schedule="1f1b", microbatches=count)
        assert [one.code for one in found if one.code == "vpp-differs"] == codes


DISAGREEMENTS = [
    (BLOCK, {"vpp": 1}, "made.txt:1: note ga-missing ga, 1"),
    (
        BLOCK * 2,
        {"ga": 3, "vpp": 1, "column": {"ga": 50}},
        "made.txt:1:50: warning ga-differs ga, 3, 2, 2",
    ),
    (
        BLOCK,
        {"ga": 0, "vpp": 1},
        "made.txt:1: warning ga-differs ga, 0, 1, 1",
    ),
    (
        [layer("grad_gather", 1)],
        {"ga": 4, "vpp": 1, "column": {"ga": 50}},
        "made.txt:1:50: warning no-blocks 0",
    ),
    (
        BLOCK,
        {"ga": 1},
        "made.txt:1: note vpp-missing vpp, 1",
    ),
    (
        [*BLOCK, *BLOCK, layer("attention_2", 1), layer("mlp_2", 1)],
        {"ga": 2},
        "made.txt:1: note vpp-missing vpp, 1, 2",
    ),
    (
        [*BLOCK, layer("attention_2", 1), layer("mlp_2", 1)],
        {"ga": 1, "vpp": 8, "column": {"vpp": 70}},
        "made.txt:1:70: warning vpp-differs vpp, 8, 2",
    ),
]


@pytest.mark.parametrize(("rows", "header", "message"), DISAGREEMENTS)
def test_where_header_and_rows_differ_the_rows_are_taken(
    rows: list[Row], header: dict[str, Any], message: str
) -> None:
    assert findings(texts(build(rows, header)[1])) == [message]


def test_layers_of_a_block_are_repeats_of_its_shortest_period_of_names() -> None:
    def layers(*names: str) -> tuple[int, ...]:
        return build([layer(name, 1) for name in names], {})[0].structure.layers_per_block

    assert layers("embedding_layer", "attention_1", "mlp_1", "attention_2", "mlp_2", "final_column") == (2,)
    assert layers("embedding_layer", "moe_1", "moe_2", "moe_3") == (3,)
    assert layers("embedding_layer", "attention_1", "mlp_1", "mlp_2") == (1,)
    assert layers("embedding_layer", "embedding_norm") == (0,)


# -- the activation ------------------------------------------------------------------

TWO_STAGES = Layout(tp=2, ep=1, dp=1, pp=2)


def transfer_bytes(program: Program) -> set[int]:
    return {cost[1] for cost in program.costs if type(cost).__name__ == "TransferCost"}


def attention(collective: str | None, size: int, name: str = "attention_1") -> Row:
    return Row(name, Cell(1, collective, "tp" if collective else None, size))


ACTIVATIONS = [
    (
        [attention("ALLGATHER", 1001)],
        500,
        "note pp-comm-missing pp_comm, 500 B, ALLGATHER, attention_1, 4, tp, 2",
    ),
    (
        [attention("REDUCESCATTER", 64)],
        32,
        "note pp-comm-missing pp_comm, 32 B, REDUCESCATTER, attention_1, 4, tp, 2",
    ),
    (
        [attention("ALLREDUCE", 1001)],
        1001,
        "note pp-comm-missing pp_comm, 1 001 B, ALLREDUCE, attention_1, 4",
    ),
    (
        [attention("ALLTOALL", 70, "moe_1"), attention("ALLREDUCE", 1001)],
        1001,
        "note pp-comm-missing pp_comm, 1 001 B, ALLREDUCE, attention_1, 5",
    ),
    (
        [attention(None, 0), attention("ALLTOALL", 70, "moe_\x1b1")],
        70,
        "note pp-comm-missing pp_comm, 70 B, ALLTOALL, moe_\\x1b1, 5",
    ),
    (
        [attention(None, 0), attention("ALLREDUCE", 9, "final_column")],
        0,
        "warning pp-comm-missing pp_comm",
    ),
]


@pytest.mark.parametrize(("rows", "size", "message"), ACTIVATIONS)
def test_a_missing_pp_comm_is_taken_from_the_first_attention_row_else_from_a_layer_that_communicates(
    rows: list[Row], size: int, message: str
) -> None:
    program, found = build([BLOCK[0], *rows], {"ga": 1, "vpp": 1}, TWO_STAGES)
    assert transfer_bytes(program) == {size}
    assert findings(text for text in texts(found) if "pp-comm" in text) == [f"made.txt:1: {message}"]


def test_a_stated_pp_comm_of_0_is_free_and_nothing_is_said() -> None:
    program, found = build(
        [BLOCK[0], attention("ALLREDUCE", 9)], {"ga": 1, "vpp": 1, "pp_comm": 0}, TWO_STAGES,
        stage_layout="megatron",
    )  # fmt: skip
    assert (transfer_bytes(program), found) == ({0}, [])


def test_without_a_pipeline_nothing_is_said_of_pp_comm() -> None:
    for parameters in ({}, {"schedule": "1f1b"}):
        assert build(BLOCK, {"ga": 1, "vpp": 1}, **parameters)[1] == []


def test_layer_loop_says_that_microbatches_have_no_effect() -> None:
    program, found = build(BLOCK, {"ga": 1, "vpp": 1}, microbatches=7)
    assert program.microbatches == 1
    assert findings(texts(found)) == ["made.txt: warning parameter-ignored --microbatches"]


# -- what cannot be ------------------------------------------------------------------

REFUSED = [
    (
        {"schedule": "gpipe2"},
        f"--schedule gpipe2: one of {', '.join(SCHEDULES)} is expected, or a schedule file"
        "; did you mean gpipe?",
    ),
    (
        {"schedule": "\x07"},
        f"--schedule \\x07: one of {', '.join(SCHEDULES)} is expected, or a schedule file",
    ),
    ({"schedule": ""}, f"--schedule : one of {', '.join(SCHEDULES)} is expected, or a schedule file"),
    ({"dialect": "chakra"}, "--dialect chakra: simai, simai-sim or astra-sim-1 is expected"),
    ({"dialect": ""}, "--dialect : simai, simai-sim or astra-sim-1 is expected"),
    (
        {"microbatches": 1_666_667, "schedule": "1f1b"},
        "1666667 micro-batches on 1 stage are up to 40000032 ops: at most 40000000 are simulated",
    ),
    (
        {"world": 2**21, "no_fold": True},
        "2097152 ranks whose groups do not align with the cluster (or --no-fold, --jitter) are looked at "
        "one by one: at most 1048576",
    ),
    (
        {"world": 1024, "no_fold": True, "schedule": "1f1b", "microbatches": 10_000},
        "1024 rank classes have 40960000 ops: at most 40000000 are simulated "
        "(without --no-fold equal ranks are simulated once)",
    ),
    (
        {"compute_scale": 1e12, "comm_scale": 2},
        "the step would take 2^63 ns (292 years) or more: too long for its times",
    ),
    (
        {"network": "shared2"},
        "--network shared2: one of analytical, shared, busbw:FILE, simai-auto, links, flows is expected; "
        "did you mean shared?",
    ),
]


@pytest.mark.parametrize(("parameters", "message"), REFUSED)
def test_parameters_that_cannot_be_are_refused(parameters: dict[str, Any], message: str) -> None:
    workload = make_workload([*BLOCK, layer("final", 0, 0, 2**24)], tp=1, ep=1, pp=1, all_gpus=1)
    with pytest.raises(UsageError) as refused:
        simulate(workload, Parameters(**parameters))
    assert str(refused.value) == message


def test_the_default_cluster_is_said() -> None:
    workload = make_workload(BLOCK, tp=1, ep=1, pp=1, all_gpus=20, ga=1, vpp=1)
    assert findings(texts(list(simulate(workload, Parameters()).diagnostics))) == [
        "made.txt: note cluster-default h100-8, 8, 3"
    ]


@pytest.mark.parametrize(
    ("dims", "words"),
    [
        (("switch:8:450:500", "switch:3:50:1000"), ""),
        (("switch:8:450:500", "switch:3:100:1000"), ", but dim 1 bandwidth 100 GB/s (not 50)"),
        (
            ("switch:8:300:500", "switch:3:50:2000"),
            ", but dim 0 bandwidth 300 GB/s (not 450), dim 1 latency 2000 ns a hop (not 1000)",
        ),
    ],
)
def test_dimensions_that_have_figures_of_the_default_cluster_are_said(
    dims: tuple[str, ...], words: str
) -> None:
    workload = make_workload(BLOCK, tp=1, ep=1, pp=1, all_gpus=20, ga=1, vpp=1)
    front = "made.txt: note cluster-default no --cluster given: "
    front += "the dimensions are those of h100-8, the default"
    assert texts(list(simulate(workload, Parameters(dim=dims)).diagnostics)) == [front + words]


@pytest.mark.parametrize(
    "parameters",
    [
        Parameters(dim=("switch:8:300:600", "switch:3:100:2000")),
        Parameters(dim=("switch:4:450:500", "switch:5:50:1000")),
        Parameters(dim=("ring:8:450:500", "switch:3:50:1000")),
        Parameters(dim=("switch:8:450:500", "switch:3:100:1000"), cluster="h100-8"),
    ],
)
def test_dimensions_that_have_none_of_the_default_cluster_or_a_cluster_given_say_nothing(
    parameters: Parameters,
) -> None:
    workload = make_workload(BLOCK, tp=1, ep=1, pp=1, all_gpus=20, ga=1, vpp=1)
    assert texts(list(simulate(workload, parameters).diagnostics)) == []


OF_ENDS = [*BLOCK, layer("final_norm", 1), layer("cross_entropy1", 1)]


def layout_notes(rows: list[Row], pp: int, **parameters: Any) -> list[str]:
    workload = make_workload(rows, **AGREED | {"ga": 1, "pp_comm": 8})
    _, found = build_program(workload, Layout(1, 1, 1, pp), ScheduleParameters(**parameters))
    return [one.message for one in found if one.code == "stage-layout-default"]


def test_that_every_stage_runs_the_rows_of_the_ends_is_said_where_nobody_asked_for_another_layout() -> None:
    said = layout_notes(OF_ENDS, 2)
    assert [facts(one) for one in said] == ["3, --stage-layout"]
    assert "--stage-layout megatron" in said[0]
    assert facts(layout_notes(BLOCK, 2)[0]) == "--stage-layout"
    assert "the embedding row" in layout_notes(BLOCK, 2)[0]
    # What is said is so: each rank computes less with the other layout.
    workload = make_workload(OF_ENDS, tp=1, ep=1, pp=2, all_gpus=2, ga=1, vpp=1, pp_comm=8)
    uniform, megatron = (
        simulate(workload, Parameters(stage_layout=name)) for name in ("uniform", "megatron")
    )
    for stage, rows in ((0, {"embedding_layer"}), (1, {"final_norm", "cross_entropy1"})):
        kept = [{workload.name[row] for row in one.program.stages[stage].ops.row if row >= 0}
                for one in (uniform, megatron)]  # fmt: skip
        ends = {"embedding_layer", "final_norm", "cross_entropy1"}
        assert (kept[0] & ends, kept[1] & ends) == (ends, rows)


def test_nothing_is_said_of_the_stage_layout_where_it_changes_nothing() -> None:
    assert layout_notes(OF_ENDS, 1) == []
    assert layout_notes(OF_ENDS, 2, stage_layout="megatron") == []
    assert layout_notes(BLOCK[1:], 2) == []
    assert layout_notes([layer("embedding_layer", 0), *BLOCK[1:]], 2) == []


def test_diagnostics_of_the_file_come_before_those_of_the_run() -> None:
    simulation = simulate(open_workload("fixtures/001_moe_128npu_with_mistakes.txt"), Parameters())
    codes = [found.code for found in simulation.diagnostics]
    assert codes.index("row-count") < codes.index("cluster-default") < codes.index("ga-differs")
