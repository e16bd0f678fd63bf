"""Trainers: what each starts, sends and waits for; how many GPUs and how much power a step has."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.analysis.model_figures import find_model_rows
from simcore.diagnostics import UsageError
from simcore.model.costs import slowest_deviation
from simcore.model.engines import ENGINES
from simcore.model.gpu import find_gpu
from simcore.model.known_models import MODELS
from simcore.model.maker import ModelRows
from simcore.names import ENGINE_NAMES
from simcore.ranks import ranks_of_domain
from simcore.simulation import Simulation
from tests.model.test_megatron import EXPERTS, SMALL, run

LLAMA = MODELS["llama-3-8b"]
PHASES = ("fwd", "ig", "wg")


def made(simulation: Simulation) -> ModelRows:
    found = find_model_rows(simulation)
    assert found is not None
    return found


def seconds(simulation: Simulation, *names: str) -> float:
    """What the ops whose names begin with one of these words take, s, in all rows together."""
    ops = [op for row in made(simulation).ops for phase in PHASES for op in getattr(row, phase)]
    return sum(op.seconds for op in ops if not names or op.name.split()[0] in names)


def wide(**parameters: Any) -> Simulation:
    return run(LLAMA, **({"gpu": "h100", "world": 8, "global_batch": 16, "seq": 8192} | parameters))


def test_each_name_has_its_trainer() -> None:
    assert tuple(ENGINES) == ENGINE_NAMES


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, "megatron"), ({"zero": "1"}, "megatron"), ({"zero": "2"}, "fsdp"), ({"zero": "3"}, "fsdp"),
     ({"zero": "3", "engine_preset": "megatron"}, "megatron")],
)  # fmt: skip
def test_other_flags_say_whose_kernels_are_taken_and_a_note_names_them(
    given: dict[str, Any], expected: str
) -> None:
    simulation = wide(**given)
    assert made(simulation).training.engine == expected
    notes = [one.message for one in simulation.diagnostics if one.message.startswith("engine_preset:")]
    assert [f"{expected} assumed" in note for note in notes] == [True] * ("engine_preset" not in given)


def test_torch_compile_is_of_pytorchs_trainers() -> None:
    for name in ("megatron", "deepspeed"):
        with pytest.raises(UsageError, match="--compile is of --engine-preset torchtitan or fsdp"):
            wide(engine_preset=name, compile="on")
    with pytest.raises(UsageError, match="did you mean torchtitan"):
        wide(engine_preset="torchtitn")


def test_compiled_a_trainer_fuses_what_megatron_does_and_eager_each_operator_is_a_kernel() -> None:
    fused = wide(engine_preset="megatron", zero="3")
    for name in ("torchtitan", "fsdp"):
        compiled, eager = (wide(engine_preset=name, zero="3", compile=on) for on in ("on", "off"))
        for op in ("norm", "rotary", "activation", "residual"):
            assert seconds(compiled, op) == seconds(fused, op) < seconds(eager, op)
        # Products are those of the GPU, whoever starts them.
        assert seconds(compiled, "up", "qkv") == seconds(eager, "up", "qkv") == seconds(fused, "up", "qkv")
    # FlashAttention-2 is slower on Hopper than its newest kernels, on Ampere it is one of them.
    assert seconds(compiled, "flash") == pytest.approx(seconds(fused, "flash") / 0.6, rel=1e-3)
    both = [wide(engine_preset=name, zero="3", gpu="a100-80") for name in ("megatron", "torchtitan")]
    assert seconds(both[0], "flash") == seconds(both[1], "flash")


def test_torchtitan_runs_every_second_product_again() -> None:
    plain, again = (
        wide(engine_preset="torchtitan", zero="3", recompute_rows=rows) for rows in (None, "mlp_act,norm")
    )
    forward = sum(op.seconds for row in made(plain).ops for op in row.fwd if op.name in ("up", "down", "qkv"))
    extra = sum(
        op.seconds
        for row in made(again).ops
        for op in row.ig
        if op.name in ("up again", "down again", "qkv again")
    )
    assert extra == pytest.approx(forward / 2)


def test_deepspeed_waits_for_its_transfers_buckets_and_broadcasts() -> None:
    given: dict[str, Any] = {"world": 32, "tp": 2, "pp": 2, "zero": "1", "global_batch": 32}
    simulation = wide(engine_preset="deepspeed", **given)
    rows = {name: made(simulation).workload.name.index(name) for name in ("grad_param_comm", "grad_gather")}
    workload = made(simulation).workload
    assert workload.wg.collective[rows["grad_param_comm"]] == "ALLREDUCE"
    waits = {op.name: op.seconds for op in made(simulation).ops[rows["grad_gather"]].wg}
    assert waits["broadcasts"] == pytest.approx(8 * 2e-3)
    # Half of the network's rate: as much again as the bytes take, of four neighbours' ports.
    size = workload.wg.bytes[rows["grad_gather"]]
    assert waits["between buckets"] == pytest.approx(size * 7 / 8 / (42e9 * 4))
    assert seconds(simulation, "transfer") > 0
    assert made(simulation).training.pp_scatter
    assert seconds(wide(engine_preset="megatron", **given), "transfer", "between", "broadcasts") == 0
    # Beside backward nothing is waited for between buckets.
    beside = wide(engine_preset="deepspeed", overlap_grad_reduce=True, overlap_param_gather=True, **given)
    assert seconds(beside, "between") == 0


def test_torchtitan_has_a_pipeline_of_1f1b_with_zero_3() -> None:
    given: dict[str, Any] = {"world": 16, "pp": 2, "zero": "3", "global_batch": 32}
    assert wide(engine_preset="torchtitan", **given).step_time_ns > 0
    with pytest.raises(UsageError, match="--engine-preset torchtitan"):
        wide(**given)


def test_compute_loses_the_sms_that_nccl_runs_on_while_gradients_are_sent() -> None:
    given: dict[str, Any] = {"world": 16, "zero": "1", "global_batch": 64}
    assert seconds(wide(**given), "compute") == 0
    lost = seconds(wide(overlap_grad_reduce=True, **given), "compute")
    parameters = LLAMA.parameters
    # 4 bytes of each gradient, 15 of 16 shares, of eight ports of 42 GB/s; 16 of 132 SMs.
    assert lost == pytest.approx(4 * parameters * 15 / 16 / (8 * 42e9) * 16 / 116, rel=1e-3)


def test_a_gpu_that_may_draw_less_clocks_lower_by_the_third_root(tmp_path: Path) -> None:
    path = tmp_path / "limited.toml"
    path.write_text('[gpu]\nbase = "h100"\npower = 350\n', "utf-8")
    limited, whole = (wide(gpu=gpu) for gpu in (str(path), "h100"))
    for words in (("up",), ("flash",)):
        assert seconds(limited, *words) == pytest.approx(seconds(whole, *words) * 2 ** (1 / 3), rel=2e-3)
    assert seconds(limited, "norm") == seconds(whole, "norm")


def test_the_slowest_of_many_is_further_behind() -> None:
    # Expected maxima of normal deviates (Harter 1961): 1.4236 of 8, 2.5076 of 100.
    assert slowest_deviation(1) == 0
    assert slowest_deviation(8) == pytest.approx(1.4236, abs=0.02)
    assert slowest_deviation(100) == pytest.approx(2.5076, abs=0.02)
    steps = [wide(world=n, global_batch=2 * n, zero="1").step_time_ns for n in (64, 256, 2048)]
    assert steps[0] < steps[1] < steps[2] < 1.1 * steps[0]


@given(st.integers(0, 6), st.integers(1, 16), st.sampled_from([8, 64, 72]))
def test_groups_of_powers_of_two_lie_in_one_domain(power: int, domains: int, gpus: int) -> None:
    """Planted: the whole rack of 72."""
    size, world = 2**power, 64 * domains
    taken = ranks_of_domain(gpus, world)
    assert taken <= gpus
    if size <= min(gpus, 64):
        assert all(first // taken == (first + size - 1) // taken for first in range(0, world, size))


def test_a_job_takes_racks_whole_where_it_fills_them() -> None:
    assert [ranks_of_domain(72, world) for world in (8, 72, 144, 128, 576)] == [8, 72, 72, 64, 64]
    assert find_gpu("gb200").dims(256)[0].startswith("switch:64:")


def test_a_group_that_lies_across_racks_though_others_do_not_is_said() -> None:
    given: dict[str, Any] = {"world": 256, "ep": 8, "tp": 1, "gpu": "gb200", "global_batch": 256}
    straddling = ("switch:36:620:7300", "switch:8:42:5000")
    for dim, kinds in ((straddling, ["ep"]), ((), [])):
        found = run(EXPERTS, **given, dim=dim).diagnostics
        said = [one.message.split()[1] for one in found if one.code == "group-straddles"]
        assert [kind for kind in said if kind == "ep"] == kinds


@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_rows_taken_apart_have_all_ops_of_the_whole(precision: str) -> None:
    """Planted: casts, and gradients added up, in no row."""
    for model in (SMALL, EXPERTS):
        given: dict[str, Any] = {"gpu": "h100", "world": 4, "global_batch": 8, "precision": precision}
        whole, apart = (run(model, **given, recompute_rows=rows) for rows in (None, "mlp_act,norm"))
        layers = [
            sum(
                op.seconds
                for row, name in zip(made(one).ops, made(one).workload.name, strict=True)
                if name.startswith(("mlp", "moe", "attention"))
                for phase in PHASES
                for op in getattr(row, phase)
            )
            for one in (whole, apart)
        ]
        assert layers[0] == pytest.approx(layers[1])


@pytest.mark.parametrize("gpu", ["a100-80", "h100", "b200"])
def test_a_little_unevenness_costs_little(gpu: str) -> None:
    """Tokens of an expert are no multiple of 64. Planted: unaligned products, 22 % of a step."""
    given: dict[str, Any] = {"gpu": gpu, "world": 8, "ep": 8, "global_batch": 16, "seed": 7}
    even, uneven = (
        run(MODELS["mixtral-8x7b"], **given, expert_imbalance=f"lognormal:{sigma}").step_time_ns
        for sigma in ("0", "0.005")
    )
    assert even <= uneven < 1.03 * even
