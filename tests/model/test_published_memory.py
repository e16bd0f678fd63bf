"""What published runs hold of memory, and what a rank holds by trainer."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from benchmarks import published_memory
from simcore.model.memory import stage_memory
from simcore.model.resolving import resolve_training
from simcore.workload.model import ModelParameters
from tests.model.test_megatron import SMALL

needs_rows = pytest.mark.skipif(
    not published_memory.ROWS.exists(), reason="../shared/validation/published_2.json is not here"
)


@needs_rows
def test_published_peaks_of_memory() -> None:
    """Planted: the loss of Megatron for torchtitan."""
    by_id = {one.row["id"]: one for one in published_memory.peaks()}
    for number in (96, 97, 98):
        assert abs(by_id[number].error) < 0.07, number
        # Of tensors alone, too.
        assert abs(by_id[number].memory.total / 1e9 / by_id[number].row["measured"]["memory_gb"] - 1) < 0.07
    for number in (103, 104, 105, 106):
        assert abs(by_id[number].error) < 0.15, number
        assert abs(by_id[number].memory.total / 1e9 / by_id[number].row["measured"]["memory_gb"] - 1) < 0.15
    zero_bubble = [abs(one.error) for one in by_id.values() if one.row["group"] == "Zero Bubble A100"
                   and "memory_gb" in one.row["measured"]]  # fmt: skip
    assert statistics.median(zero_bubble) < 0.042


@needs_rows
def test_what_was_run_fits_or_is_listed_with_what_its_command_lacks() -> None:
    misfits = {int(line[0]) for line in published_memory.misfits_table()[1:]}
    assert misfits == set(published_memory._LACKS)


def _memory(**given: Any) -> Any:
    training = resolve_training(SMALL, ModelParameters(gpu="h100", **given))
    return stage_memory(training, 0, [(0, 0, 1), (0, 0, -1)])


def test_communicators_and_all_to_alls_are_counted_once_each() -> None:
    alone, two, three = (_memory(world=n, tp=t, global_batch=8) for n, t in ((1, 1), (8, 1), (8, 2)))
    buffers = 16 * 12 * 2**20
    # World and dp; world, tp and dp.
    assert two.context - alone.context == pytest.approx(2 * buffers, abs=2)
    assert three.context - alone.context == pytest.approx(3 * buffers, abs=2)
    assert two.needed == two.total + two.context + two.fragmentation


def test_shards_of_fsdp_are_the_optimizers_weights() -> None:
    given = {"world": 8, "global_batch": 8, "zero": "3"}
    torch, megatron = _memory(engine_preset="fsdp", **given), _memory(engine_preset="megatron", **given)
    assert megatron.weights - torch.weights == pytest.approx(2 * SMALL.parameters / 8, rel=0.001)
    assert (torch.gradients, torch.optimizer) == (megatron.gradients, megatron.optimizer)
    words = SMALL.seq * 32_000
    assert torch.logits - megatron.logits == (14 - 6) * words


def test_bf16_gradients_keep_remainders_of_weights() -> None:
    given = {"world": 8, "global_batch": 8, "zero": "1"}
    fp32, bf16 = _memory(**given), _memory(grad_dtype="bf16", **given)
    assert fp32.optimizer * 10 == pytest.approx(bf16.optimizer * 12, rel=1e-6)


def test_fp8_keeps_the_inputs_of_linears_narrow() -> None:
    """Its two norms' outputs and the second linear's input take half, attention's output a copy of half."""
    wide, narrow = _memory(world=1), _memory(world=1, precision="fp8")
    numbers = SMALL.layers * SMALL.seq * (2 * SMALL.hidden + SMALL.ffn - SMALL.heads * SMALL.head_dim)
    assert wide.activations - narrow.activations == numbers
