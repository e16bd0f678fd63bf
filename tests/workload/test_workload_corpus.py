"""The seeds and the real files of the corpus read as they were counted by other means (awk, wc)."""

from __future__ import annotations

from pathlib import Path

import pytest

from simcore.parameters import Parameters
from simcore.render.report.pages import run_json, run_page
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.workload import open_workload

from .texts import FIXTURES, shared_folder

NEXT = "Next-Generatrion-Computer-Systems__SimAI__None-gpt_7B-world_size"
NEXT_END = "-MOE-False-GEMM-False-flash_attn-False.txt"
# File -> rows with 12 or more cells (`tail -n +3 FILE | awk 'NF>=12' | wc -l`), codes of its diagnostics.
SIMAI = {
    "Kirrito-k423__SimAI-Ascend__a2_ascend_ep4_allreduce_workload.txt": (1, ["process-time"]),
    "Kirrito-k423__SimAI-Ascend__target_10t_workload.txt":
        (1, ["unknown-key"] * 5 + ["process-time", "extra-cells"]),
    f"{NEXT}128-tp4-pp1-ep1-gbs16-mbs1-seq2048{NEXT_END}": (11, ["compute-placeholder"]),
    f"{NEXT}16-tp4-pp1-ep1-gbs16-mbs1-seq2048{NEXT_END}": (307, ["compute-placeholder"]),
    "TyKuro9__SimAI__H100-Mixtral_8x7B-world_size256-tp8-pp2-ep8-gbs256-mbs1-seq2048-MOE-True-GEMM-True"
    "-flash_attn-True.txt": (1837, []),
    "TyKuro9__SimAI__H100-gpt_175B-world_size1024-tp8-pp8-ep1-gbs1536-mbs1-seq4096-MOE-False-GEMM-False"
    "-flash_attn-False.txt": (2414, []),
    "TyKuro9__SimAI__H100-gpt_22B-world_size256-tp8-pp8-ep1-gbs384-mbs1-seq2048-MOE-False-GEMM-False"
    "-flash_attn-False.txt": (1262, []),
    "aliyun__SimAI__G13B-M1-C01_GPT13B_megatron_tp8_pp1_mbs1_A100.txt": (92, ["unknown-collective"]),
    "aliyun__SimAI__G13B-M1-C02_GPT13B_megatron_tp8_pp1_mbs1_sp_A100.txt": (172, ["unknown-collective"]),
    "aliyun__SimAI__GPT-13B-tp4-pp1-dp4-ep1-g16-mpc3iofm.txt": (1309, []),
    "aliyun__SimAI__L65B_D1_C08_Llama65B_deepspeed_zero3_A100.txt": (12, []),
    "aliyun__SimAI__a.csv": (296, ["zero-degree"]),
    "aliyun__SimAI__all_gather.txt": (19, ["compute-placeholder", "process-time"]),
    "aliyun__SimAI__microAllReduce.txt": (2, ["process-time"]),
    "aliyun__SimAI__muti_all_reduce.txt": (19, ["compute-placeholder", "process-time"]),
    "aliyun__SimAI__workload_analytical.txt": (1789, []),
    "aliyun__SimAI__workload_ep_test.txt": (43, []),
    "aliyun__SimAI__workload_oxc_32g.txt": (4, ["process-time", "dependency"]),
    "changle1021-tech__SimAI__DeepSeek-V2-Lite-Chat-world_size4-tp2-pp1-ep2-bs1-seq2048-decode.txt":
        (106, []),
    "liecn__SimAI__28d58e__microAllReduce_16gpus.txt": (2, ["process-time"]),
}  # fmt: skip
ASTRA = "astra-sim__astra-sim__"
# File -> policy, rows, rows declared, codes of its diagnostics.
ASTRA1: dict[str, tuple[str, int, int | None, list[str]]] = {
    f"{ASTRA}1caa7b__Transformer_HybridParallel_Fwd_In_Bckwd.txt":
        ("HYBRID_TRANSFORMER_FWD_IN_BCKWD", 21, 21, []),
    f"{ASTRA}DLRM_HybridParallel.txt": ("HYBRID_DLRM", 8, 8, []),
    f"{ASTRA}InferenceBaseline.txt": ("DISTRIBUTED_INFERENCE", 2, 2, []),
    f"{ASTRA}MLP_HybridParallel_Data_Model.txt": ("HYBRID_DATA_MODEL", 6, 6, []),
    f"{ASTRA}MLP_HybridParallel_Model_Data.txt": ("HYBRID_MODEL_DATA", 6, 6, []),
    f"{ASTRA}MLP_ModelParallel.txt": ("MODEL", 6, 6, []),
    f"{ASTRA}Resnet50_DataParallel.txt": ("DATA", 54, 54, []),
    f"{ASTRA}Transformer_HybridParallel.txt": ("HYBRID_TRANSFORMER", 57, 57, []),
    f"{ASTRA}microAllReduce.txt": ("MICRO", 1, 1, []),
    f"{ASTRA}microAllToAll.txt": ("MICRO", 1, 1, []),
    f"{ASTRA}sample_per_layer_parallel_HybridCustomized.txt": ("HYBRID_CUSTOMIZED", 6, 6, []),
    "astra-sim__libra__DLRM.txt": ("LIBRA", 20, None, ["no-policy"]),
    "astra-sim__libra__GPT_3.txt": ("LIBRA", 18, None, ["no-policy"]),
    "yleintel__astra-sim__4microAllToAll.txt": ("MICRO", 16, 4, ["row-count"]),
    "yleintel__astra-sim__Resnet50_DataParallel.txt": ("DATA", 54, 54, ["gemm-columns"]),
    "yleintel__astra-sim__medium_DLRM.txt": ("HYBRID_DLRM", 20, 20, []),
}  # fmt: skip


def test_seed_000_has_the_old_header_and_padded_cells() -> None:
    workload = open_workload(str(FIXTURES / "000_gpt13b_tp4_old_header.txt"))
    assert (len(workload), workload.declared_rows, workload.dialect, workload.diagnostics) == (
        90,
        90,
        "simai",
        (),
    )
    header = workload.header
    assert (header.tp, header.ep, header.pp, header.all_gpus, header.pp_comm) == (4, None, None, None, None)
    assert (workload.name[0], workload.wg.collective[0], workload.wg.group[0], workload.wg.bytes[0]) == (
        "grad_gather",
        "ALLGATHER",
        "dp",
        202424320,
    )
    assert (workload.name[2], workload.ig.compute_ns[2]) == ("grad_param_compute", 32473000)
    assert (workload.name[-1], workload.line[-1]) == ("cross_entropy3", 92)


def test_seed_001_states_96_rows_and_has_98() -> None:
    workload = open_workload(str(FIXTURES / "001_moe_128npu_with_mistakes.txt"))
    assert (len(workload), workload.declared_rows) == (98, 96)
    header = workload.header
    assert (header.tp, header.ep, header.pp, header.vpp, header.ga) == (8, 4, 4, 8, 1)
    assert (header.all_gpus, header.pp_comm) == (128, 50331648)
    assert [(one.severity, one.code, one.line, one.message) for one in workload.diagnostics] == [
        ("warning", "row-count", 2, "found 98 rows, expected 96; all are read, SimAI stops after 96")
    ]
    assert {"ep", "dp_ep"} <= {group for group in workload.fwd.group + workload.wg.group if group}


def test_seed_002_is_clean() -> None:
    workload = open_workload(str(FIXTURES / "002_gpt_1024npu.txt"))
    assert (len(workload), workload.declared_rows, workload.diagnostics) == (557, 557, ())
    header = workload.header
    assert (header.tp, header.ep, header.pp, header.vpp, header.ga, header.all_gpus) == (
        8,
        1,
        16,
        None,
        16,
        1024,
    )
    assert workload.name.count("embedding_layer") == 16
    # awk 'NR>2 {f+=$3; i+=$6; w+=$9}' over the file
    sums = [sum(workload.cells(phase).compute_ns) for phase in ("fwd", "ig", "wg")]
    assert sums == [2903350534, 2134392277, 2175489194]


@pytest.mark.parametrize("name", SIMAI)
def test_a_real_simai_file_reads(name: str) -> None:
    rows, codes = SIMAI[name]
    workload = open_workload(str(shared_folder("corpus/simai") / name))
    assert (len(workload), workload.declared_rows, workload.dialect) == (rows, rows, "simai")
    assert [one.code for one in workload.diagnostics] == codes
    columns = [workload.line, workload.process_ns]
    for phase in (workload.fwd, workload.ig, workload.wg):
        columns += [phase.compute_ns, phase.collective, phase.group, phase.bytes]
    assert {len(column) for column in columns} == {rows}


def test_no_file_of_the_simai_corpus_is_forgotten() -> None:
    assert {path.name for path in shared_folder("corpus/simai").iterdir()} == set(SIMAI)


@pytest.mark.parametrize("name", ASTRA1)
def test_a_real_astra_sim_file_reads_runs_and_reports(name: str) -> None:
    workload = open_workload(str(shared_folder("corpus/astra1") / name))
    found = (
        workload.policy,
        len(workload),
        workload.declared_rows,
        [one.code for one in workload.diagnostics],
    )
    assert found == ASTRA1[name]
    assert (workload.dialect, workload.format) == ("astra-sim-1", "astra-sim-1")
    # On the default cluster, and with chunks and passes on two dimensions.
    for parameters in (
        Parameters(),
        Parameters(dim=("ring:4:50:500", "switch:4:25:2000"), splits=4, passes=2),
        Parameters(dialect="simai"),
    ):
        results = SimulatedRun(simulate(workload, parameters))
        step = results.simulation.step_time_ns
        assert step > 0
        assert all(sum(accounts.total_ns) == step for accounts in results.accounts)
        assert "Step time" in run_page(results)
        assert run_json(results)["step_time_ns"] == step


def test_no_file_of_the_astra_sim_corpus_is_forgotten() -> None:
    assert {path.name for path in shared_folder("corpus/astra1").iterdir()} == set(ASTRA1)


def test_the_fork_with_matrix_sizes_has_the_times_and_sizes_of_the_original() -> None:
    folder = shared_folder("corpus/astra1")
    fork, original = (
        open_workload(str(folder / f"{owner}__astra-sim__Resnet50_DataParallel.txt"))
        for owner in ("yleintel", "astra-sim")
    )
    assert (fork.name, fork.fwd, fork.ig, fork.wg) == (original.name, original.fwd, original.ig, original.wg)


def test_the_oldest_transformer_file_has_checkpoints_and_no_tp() -> None:
    name = "astra-sim__astra-sim__1caa7b__Transformer_HybridParallel_Fwd_In_Bckwd.txt"
    header = open_workload(str(shared_folder("corpus/astra1") / name)).header
    assert (header.tp, header.checkpoints, header.checkpoint_initiates) == (None, (2, 11), (19, 10))


def test_the_fixtures_are_the_seeds() -> None:
    seeds = {path.name[:3]: path.read_bytes() for path in shared_folder("seeds").iterdir()}
    fixtures = {
        path.name[:3]: path.read_bytes() for path in Path(FIXTURES).iterdir() if path.name[:3] in seeds
    }
    assert fixtures == seeds
