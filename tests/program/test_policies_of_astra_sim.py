"""Dialect astra-sim-1: degrees and scopes by policy, `--dialect` in both directions, and what cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from simcore.diagnostics import InputError, UsageError
from simcore.parameters import Parameters
from simcore.program.ops import COMPUTE, STREAMS
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate
from tests.findings import findings
from tests.says import said
from tests.workload.texts import read

BUSY = "-1 100 ALLREDUCE 4000 200 ALLGATHER 800 300 ALLREDUCE 8000 10"
GRID = ("ring:4:1:0", "ring:2:1:0")


def run(text: str, **parameters: Any) -> Simulation:
    return simulate(read(text), Parameters(**parameters))


def file(policy: str, *rows: str) -> str:
    return "\n".join([policy, str(len(rows)), *(rows or (f"l0 {BUSY}", f"l1 {BUSY}"))]).replace(
        "\n0\n", "\n2\n"
    )


def told(simulation: Simulation) -> list[str]:
    return [f"{one.severity} {one.code} {one.message}" for one in simulation.diagnostics]


def issued(simulation: Simulation) -> list[tuple[str, int, str]]:
    """(phase, row, stream) of each collective in the order of issue."""
    ops = simulation.program.stages[0].ops
    phases = ("fwd", "ig", "wg", "opt", "recompute")
    return [
        (phases[ops.phase[op]], ops.row[op], STREAMS[ops.stream[op]])
        for op in range(len(ops))
        if ops.stream[op] != COMPUTE
    ]


def refused(text: str, **parameters: Any) -> str:
    with pytest.raises(UsageError) as caught:
        run(text, **parameters)
    return str(caught.value)


@pytest.mark.parametrize(
    ("policy", "degrees", "collectives"),
    [
        ("DATA", (1, 8), [("wg", 1, "all"), ("wg", 0, "all")]),
        ("MODEL", (8, 1), [("fwd", 0, "all"), ("fwd", 1, "all"), ("ig", 1, "all")]),
        ("HYBRID_DATA_MODEL", (4, 2), [("fwd", 0, "tp"), ("fwd", 1, "tp"), ("ig", 1, "tp"), ("wg", 1, "dp"),
                                       ("wg", 0, "dp")]),
        ("HYBRID_MODEL_DATA", (2, 4), [("fwd", 0, "tp"), ("fwd", 1, "tp"), ("ig", 1, "tp"), ("wg", 1, "dp"),
                                       ("wg", 0, "dp")]),
        ("HYBRID_TRANSFORMER model_parallel_NPU_group: 2", (2, 4),
         [("fwd", 0, "tp"), ("fwd", 1, "tp"), ("ig", 1, "tp"), ("wg", 1, "dp"), ("ig", 0, "tp"),
          ("wg", 0, "dp")]),
        ("MICRO", (1, 8), [("wg", 0, "all")]),
        ("DISTRIBUTED_INFERENCE", (8, 1), [("fwd", 0, "all"), ("fwd", 1, "all")]),
    ],
)  # fmt: skip
def test_a_policy_says_who_takes_part_and_in_what_order(
    policy: str, degrees: tuple[int, int], collectives: list[tuple[str, int, str]]
) -> None:
    simulation = run(file(policy), dim=GRID)
    layout = simulation.layout
    assert (layout.tp, layout.dp, layout.ep, layout.pp) == (*degrees, 1, 1)
    assert issued(simulation) == collectives


def test_the_weight_gradient_of_row_0_goes_over_all_ranks_in_hybrid_dlrm() -> None:
    embedding = "e -1 100 ALLTOALL 4000 200 ALLTOALL 800 300 ALLREDUCE 8000 10"
    text = file("HYBRID_DLRM 1", embedding, f"b {BUSY}", f"t {BUSY}")
    assert issued(run(text, dim=GRID)) == [
        ("fwd", 0, "all"), ("wg", 2, "all"), ("ig", 0, "all"), ("wg", 1, "all"), ("wg", 0, "all"),
    ]  # fmt: skip


def test_only_an_all_to_all_of_row_0_runs_forward_in_hybrid_dlrm() -> None:
    assert issued(run(file("HYBRID_DLRM 0"), dim=GRID))[0] == ("wg", 1, "all")


def test_in_hybrid_customized_tp_is_the_first_dimension_and_dp_are_the_others_whatever_they_carry() -> None:
    rows = [f"{policy} {BUSY} {policy}" for policy in
            ("DATA", "MODEL", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA")]  # fmt: skip
    simulation = run(file("HYBRID_CUSTOMIZED", *rows), dim=GRID)
    assert (simulation.layout.tp, simulation.layout.dp) == (4, 2)
    assert issued(simulation) == [
        ("fwd", 1, "all"), ("fwd", 2, "tp"), ("fwd", 3, "dp"), ("ig", 3, "dp"), ("wg", 3, "tp"),
        ("ig", 2, "tp"), ("wg", 2, "dp"), ("ig", 1, "all"), ("wg", 0, "all"),
    ]  # fmt: skip


def test_the_data_groups_of_hybrid_model_data_are_on_the_first_dimension() -> None:
    layout = run(file("HYBRID_MODEL_DATA"), dim=GRID).layout
    assert list(layout.groups("dp")) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert list(layout.groups("tp")) == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert [layout.rank(*layout.position(rank)) for rank in range(8)] == list(range(8))


def test_an_all_gather_is_written_as_a_shard_and_counted_as_the_whole_buffer() -> None:
    simulation = run(file("HYBRID_DATA_MODEL"), dim=GRID)
    assert list(simulation.workload.ig.bytes) == [800 * 4, 800 * 4]
    assert list(run(file("HYBRID_DATA_MODEL"), dim=GRID, dialect="simai").workload.ig.bytes) == [800, 800]


def test_a_collective_that_nobody_takes_part_in_takes_a_priority() -> None:
    rows = [f"{policy} {BUSY} {policy}" for policy in ("DATA", "MODEL")]
    program = run(file("HYBRID_CUSTOMIZED", *rows), dim=GRID).program.stages[0]
    collectives = [op for op in range(len(program.ops)) if program.ops.stream[op] != COMPUTE]
    # DATA's forward takes 0, MODEL's runs with 1, its input gradient with 2, and its weight
    # gradient takes 3 and counts down; DATA's weight gradient runs with 2.
    assert [program.priority[op] for op in collectives] == [1, 2, 2]


def test_a_whole_buffer_beyond_63_bits_is_an_input_error() -> None:
    row = f"l0 -1 1 ALLGATHER {2**62} 1 NONE 0 1 NONE 0 10"
    with pytest.raises(InputError) as caught:
        run(file("MODEL", row))
    assert str(caught.value) == (
        "w.txt:3: error value-too-large fwd ALLGATHER: found a shard of 4611686018427387904 B, "
        "expected at most 2^63 - 1 B in all 8 ranks"
    )


def test_what_a_policy_never_runs_is_left_out_and_said() -> None:
    assert findings(told(run(file("MICRO"), dim=GRID))) == ["note policy-leaves-out MICRO, 6, 5"]
    assert findings(told(run(file("MODEL", "l0 -1 5 NONE 0 1 NONE 0 1 ALLREDUCE 8 10"), dim=GRID))) == [
        "note policy-leaves-out MODEL, 1"
    ]
    assert told(run(file("HYBRID_TRANSFORMER model_parallel_NPU_group: 4"), dim=GRID)) == []


def test_a_step_in_which_nothing_runs_says_so() -> None:
    simulation = run(file("MICRO", "l0 -1 1 NONE 0 1 NONE 0 1 NONE 0 10"), dim=GRID)
    assert simulation.step_time_ns == 0
    assert "warning no-ops MICRO" in findings(told(simulation))


def test_the_number_of_npus_is_the_clusters_else_8_or_whole_model_groups() -> None:
    assumed = "the file does not tell the number of NPUs: {} assumed; --world, --dim or --cluster gives it"
    for policy, world in (("DATA", 8), ("HYBRID_TRANSFORMER model_parallel_NPU_group: 16", 16),
                          ("HYBRID_TRANSFORMER model_parallel_NPU_group: 3", 9)):  # fmt: skip
        simulation = run(file(policy))
        assert simulation.layout.world == world
        assert f"note all-gpus-missing {assumed.format(world)}" in told(simulation)
    # Two whole model groups of 3 fit on 8 NPUs.
    assert run(file("HYBRID_TRANSFORMER model_parallel_NPU_group: 3"), dim=GRID).layout.world == 6
    assert run(file("DATA"), dim=GRID, world=6).layout.world == 6


@pytest.mark.parametrize(("model_group", "world"), [(1, 8), (3, 9), (5, 10), (8, 8), (12, 12)])
def test_a_file_of_astra_sim_has_8_npus_or_more_in_both_dialects(model_group: int, world: int) -> None:
    workload = file(f"HYBRID_TRANSFORMER model_parallel_NPU_group: {model_group}")
    assert run(workload).layout.world == world
    simulation = run(workload, dialect="simai")
    assert (simulation.layout.tp, simulation.layout.world) == (model_group, world)
    assert (f"warning all-gpus-missing all_gpus, dp, {world // model_group}, 8, ASTRA, {world}") in findings(
        told(simulation)
    )


def test_a_transformer_without_a_model_group_has_tp_1() -> None:
    simulation = run(file("HYBRID_TRANSFORMER"), dim=GRID)
    assert simulation.layout.tp == 1
    assert findings(told(simulation)) == ["warning tp-missing model_parallel_NPU_group, tp, 1, --tp"]
    assert run(file("HYBRID_TRANSFORMER"), dim=GRID, tp=4).layout.tp == 4


def test_rows_without_a_policy_run_every_collective_over_all_ranks() -> None:
    simulation = run(f"l0 {BUSY}\nl1 {BUSY}\n", dim=GRID)
    assert issued(simulation) == [
        (phase, row, "all")
        for phase, row in (("fwd", 0), ("fwd", 1), ("ig", 1), ("wg", 1), ("ig", 0), ("wg", 0))
    ]


REFUSALS: list[tuple[str, dict[str, Any], str]] = [
    ("DATA", {"pp": 2}, "--pp 2: dialect astra-sim-1 has no pipeline, 1 would fit "
     "(--dialect simai takes the rows as SimAI does)"),
    ("DATA", {"ep": 2}, "--ep 2: dialect astra-sim-1 has no expert groups, 1 would fit "
     "(--dialect simai takes the rows as SimAI does)"),
    ("DATA", {"schedule": "1f1b"}, "--schedule 1f1b: dialect astra-sim-1 runs a policy's own loop, "
     "layer-loop fits (--dialect simai takes the rows as SimAI does)"),
    ("DATA", {"tp": 2}, "--tp 2: policy DATA on 8 NPUs has tp 1, by its own rule"),
    ("HYBRID_DATA_MODEL", {"world": 6}, "world 6 is not a multiple of the first dimension's 4 NPUs, which "
     "policy HYBRID_DATA_MODEL goes by: 4 or 8 would fit"),
    ("HYBRID_TRANSFORMER model_parallel_NPU_group: 4", {"world": 6},
     "world 6 is not a multiple of tp 4: 4 or 8 would fit"),
    ("DATA", {"world": 2**25}, "world 33554432: at most 16777216 ranks (2^24) are simulated"),
    ("DATA", {"rank_order": "x"}, "--rank-order x: one of tp-ep-dp-pp, tp-pp-dp is expected"),
    ("DATA", {"dialect": "x"}, "--dialect x: simai, simai-sim or astra-sim-1 is expected"),
    ("DATA", {"passes": 10**7}, "--passes 10000000 of 2 rows are up to 120000000 ops: "
     "at most 40000000 are simulated"),
    ("DATA", {"passes": 1000, "splits": 2000}, "12000000 phases of chunks are to be simulated, "
     "at most 10000000: fewer --splits or --passes would fit"),
]  # fmt: skip


@pytest.mark.parametrize(("policy", "parameters", "message"), REFUSALS, ids=lambda value: str(value)[:40])
def test_what_cannot_be_says_what_would_fit(policy: str, parameters: dict[str, Any], message: str) -> None:
    assert refused(file(policy), **({"dim": GRID} | parameters)) == message


def test_degrees_that_astra_sim_does_not_have_are_ignored_with_a_warning() -> None:
    header = "HYBRID_TRANSFORMER model_parallel_NPU_group: 4 ep: 2 pp: 2 all_gpus: 8"
    simulation = run(file(header), dim=GRID, dialect="astra-sim-1")
    assert (simulation.layout.tp, simulation.layout.dp, simulation.layout.pp) == (4, 2, 1)
    assert findings(told(simulation)) == [
        "warning pp-ignored pp, 2, ASTRA, 1.0",
        "warning ep-ignored ep, 2, ASTRA, 1.0",
    ]


HEADER = "HYBRID_TRANSFORMER model_parallel_NPU_group: 4"


def test_the_dialect_decides_what_blocks_and_whether_update_times_count() -> None:
    ours = {"dim": ("ring:4:1:0",), "algorithm": ("0=ring",), "endpoint_delay": 0, "local_mem_bw": 1e6}
    row = "l0 -1 100 NONE 0 200 ALLREDUCE 4000 300 NONE 0 10"
    # The all-reduce takes 6 x 1000 ns. simai: it blocks before the weight gradient of 300 ns.
    assert run(file(HEADER, row), dialect="simai", **ours).step_time_ns == 100 + 200 + 6000 + 300
    # astra-sim-1: the weight gradient runs beside it; 10 ns of update, three state changes.
    assert run(file(HEADER, row), **ours).step_time_ns == 100 + 1 + 200 + 6000 + 10 + 1


def test_any_policy_is_read_as_simai_does_when_asked_to() -> None:
    simulation = run(file("DATA"), dialect="simai", tp=2, world=8)
    assert simulation.workload.format == "astra-sim-1"
    assert [stream for _, _, stream in issued(simulation)] == ["tp", "tp", "tp", "dp", "tp", "dp"]
    assert not simulation.program.queued


def test_a_file_for_simai_runs_by_the_rules_of_astra_sim_when_asked_to() -> None:
    row = "attention -1 1 ALLREDUCE_EP 8 1 NONE 0 1 ALLREDUCE_DP_EP 8 100"
    text = file("HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ga: 1", row)
    assert not run(text, dim=GRID).program.queued
    assert issued(run(text, dim=GRID, dialect="astra-sim-1")) == [("fwd", 0, "tp"), ("wg", 0, "dp")]


def test_another_network_model_says_what_fits() -> None:
    said(
        [refused(file("DATA"), network="shared")],
        "--network shared",
        "astra-sim-1",
        "analytical",
        "--dialect simai",
    )


def test_passes_of_dialect_simai_wait_for_the_weight_gradients_of_the_pass_before() -> None:
    rows = "a -1 100 NONE 0 0 NONE 0 300 ALLREDUCE 4000 0", "b -1 50 NONE 0 0 NONE 0 0 NONE 0 0"
    text = file("HYBRID_TRANSFORMER model_parallel_NPU_group: 1 ga: 1", *rows)
    ours = {"dim": ("ring:4:1:0",), "algorithm": ("0=ring",), "endpoint_delay": 0, "local_mem_bw": 1e6}
    simulation = run(text, world=4, passes=3, schedule="layer-loop", **ours)
    once = 100 + 50 + 300
    assert simulation.step_time_ns == 3 * (once + 6000)
    assert SimulatedRun(simulation).pass_end_ns == [once, 2 * once + 6000, 3 * once + 2 * 6000]


def test_passes_have_no_effect_on_a_pipeline() -> None:
    text = file("HYBRID_TRANSFORMER model_parallel_NPU_group: 1 ga: 1")
    simulation = run(text, world=2, pp=2, passes=3)
    assert "warning parameter-ignored --passes, 1f1b" in findings(told(simulation))


def test_a_run_of_the_workload_of_a_run_is_a_run_of_the_file() -> None:
    first = run(file("HYBRID_DATA_MODEL"), dim=GRID)
    for parameters in (Parameters(dim=GRID), Parameters(dim=GRID, dialect="simai", tp=2)):
        again = simulate(first.workload, parameters)
        of_file = run(file("HYBRID_DATA_MODEL"), dim=GRID, dialect=parameters.dialect, tp=parameters.tp)
        assert (again.step_time_ns, again.workload) == (of_file.step_time_ns, of_file.workload)


@pytest.mark.parametrize("cells", [f"{2**62} NONE 0 {2**62} NONE 0 1 NONE 0 0",
                                   f"5 NONE 0 5 NONE 0 5 ALLREDUCE 8 {2**63 - 1}"])  # fmt: skip
def test_a_step_beyond_63_bits_is_refused(cells: str) -> None:
    rows = [f"l{row} -1 {cells}" for row in range(2)]
    message = "the step would take 2^63 ns (292 years) or more: too long for its times"
    assert refused(file("DATA", *rows), dim=GRID) == message
