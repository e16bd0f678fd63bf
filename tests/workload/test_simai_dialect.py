"""SimAI and ASTRA-sim 1.0 share a grammar: which of the two a file is for is found from its content."""

from __future__ import annotations

import pytest

from .texts import read, text_of, told


@pytest.mark.parametrize(
    ("header", "rows", "dialect"),
    [
        ("", ["Q1 -1 5 NONE 0 1 NONE 0 1 NONE 0 10", "layernorm1 -1 1 NONE 0 1 NONE 0 1 NONE 0 100"],
         "astra-sim-1"),
        ("", ["Q1 -1 5 NONE 0 1 NONE 0 1 NONE 0 100"], "simai"),
        ("", ["Q1 -1 5 NONE 0 1 NONE 0 1 ALLREDUCE_EP 0 10"], "simai"),
        ("", ["Q1 -1 1 ALLREDUCE_DP_EP 0 1 NONE 0 1 NONE 0 10"], "simai"),
        ("checkpoints: 0 checkpoint_initiates: 0", ["Q1 -1 5 NONE 0 1 NONE 0 1 NONE 0 10"], "astra-sim-1"),
        *[(f"{key}: 0", ["Q1 -1 5 NONE 0 1 NONE 0 1 NONE 0 0"], "simai") for key in
          ("ep", "expert_parallel_npu_group", "pp", "vpp", "ga", "all_gpus", "pp_comm")],
        *[("", [f"{name} -1 1 NONE 0 1 NONE 0 1 NONE 0 10"], "simai") for name in
          ("grad_gather", "norm", "layernorm", "embedding_layer", "attention_row_2", "mlp_layer",
           "moe_expert", "cross_entropy1", "optimizer4", "micro_test")],
    ],
)  # fmt: skip
def test_the_dialect_is_found_from_keys_names_suffixes_and_process_times(
    header: str, rows: list[str], dialect: str
) -> None:
    workload = read(text_of(*rows, header=f"HYBRID_TRANSFORMER model_parallel_NPU_group: 4 {header}"))
    assert (workload.dialect, workload.format, workload.policy) == (dialect, dialect, "HYBRID_TRANSFORMER")


def test_process_times_of_the_other_dialect_need_no_word() -> None:
    text = "HYBRID_TRANSFORMER\n1\nQ1 -1 5 NONE 0 1 NONE 0 1 NONE 0 10\n"
    assert told(text) == []
