"""FLOPs, MFU and HFU of a measured step, counted a second time from the JSON itself."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable
from math import prod
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from simcore.diagnostics import UsageError
from simcore.kineto.product_shapes import packed_range, precision_of, product_of
from simcore.kineto.products import read_products
from simcore.parameters import OpeningOptions, Parameters
from simcore.render.report.pages import run_json, run_page
from simcore.runs.measured import RecordedRun, run_recording
from simcore.sources.inputs import open_input
from simcore.trace.contexts import ProductUse
from tests.kineto.corpus import CORPUS, DLRM, GLOO, HTA, SHARED, needs_corpus, raw
from tests.kineto.test_layers import around, kernel, launch

BERT = SHARED / "corpus" / "kineto_memory" / "bert_small_h100.json.gz"
QWEN = CORPUS / "h100_qwen.json.gz"
QWEN_CONFIG = {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 1024,
    "intermediate_size": 2816, "num_attention_heads": 16, "num_key_value_heads": 16,
    "num_hidden_layers": 24, "vocab_size": 151936, "max_position_embeddings": 32768,
    "tie_word_embeddings": True,
}  # fmt: skip


# -- a call ----------------------------------------------------------------------------------


def _values(count: int, **at: str) -> list[str]:
    return [at.get(f"i{index}", "") for index in range(count)]


_Q, _K = [2, 8, 64, 32], [2, 2, 128, 32]
_BSHD, _KBSHD = [2, 64, 8, 32], [2, 128, 2, 32]
_SCORES = 2 * 2 * 8 * 64 * 128 * (32 + 32)
# (operation, dims, values, FLOPs, those without what a causal mask leaves out).
SHAPES: list[tuple[str, list[Any], list[str], float, float]] = [
    ("aten::mm", [[3, 5], [5, 7]], [], 210, 210),
    ("aten::addmm", [[7], [3, 5], [5, 7], [], []], [], 210, 210),
    ("aten::bmm", [[4, 3, 5], [4, 5, 7]], [], 840, 840),
    ("aten::baddbmm", [[4, 3, 7], [4, 3, 5], [4, 5, 7]], [], 840, 840),
    ("aten::linear", [[2, 9, 5], [7, 5], [7]], [], 2 * 18 * 5 * 7, 2 * 18 * 5 * 7),
    ("aten::_scaled_mm", [[16, 32], [32, 48], [], []], [], 2 * 16 * 32 * 48, 2 * 16 * 32 * 48),
    ("aten::mv", [[6, 5], [5]], [], 60, 60),
    ("aten::_grouped_mm", [[100, 16], [4, 16, 8], [4]], [], 2 * 100 * 16 * 8, 2 * 100 * 16 * 8),
    ("aten::_grouped_mm", [[16, 100], [100, 8], [4]], [], 2 * 100 * 16 * 8, 2 * 100 * 16 * 8),
    ("_Linear", [[7, 5], [3, 5]], [], 210, 210),
    ("tex_ts::te_gemm_ts", [[7, 5], [], [], [], [], [3, 5], [], [], [], []],
     _values(10, i4="True", i9="False"), 210, 210),
    ("tex_ts::te_gemm_ts", [[5, 7], [], [], [], [], [3, 5], [], [], [], []],
     _values(10, i4="False", i9="False"), 210, 210),
    ("triton_tem_fused_mm_3", [[3, 5], [5, 7], [3, 7]], [], 210, 210),
    ("aten::scaled_dot_product_attention", [_Q, _K, _K, [], [], []], [], _SCORES, _SCORES),
    ("aten::scaled_dot_product_attention", [_Q, _Q, _Q, [], [], []], _values(6, i5="True"),
     _SCORES / 2, _SCORES / 4),
    ("aten::_scaled_dot_product_flash_attention", [_Q, _Q, _Q], _values(6, i4="True"),
     _SCORES / 2, _SCORES / 4),
    ("aten::_scaled_dot_product_efficient_attention", [_Q, _K, _K, [], []], _values(7), _SCORES, _SCORES),
    ("aten::_flash_attention_forward", [_BSHD, _KBSHD, _KBSHD, [], []], _values(9), _SCORES, _SCORES),
    # Two sequences of 64 tokens behind one another.
    ("aten::_flash_attention_forward", [[128, 8, 32], [128, 8, 32], [128, 8, 32], [3], [3]], _values(9),
     2 * 2 * 8 * 64 * 64 * 64, 2 * 2 * 8 * 64 * 64 * 64),
    ("aten::_efficient_attention_forward", [_BSHD, _BSHD, _BSHD, [], [], []], _values(10, i9="1"),
     _SCORES / 2, _SCORES / 4),
    ("aten::_scaled_dot_product_flash_attention_backward", [_Q, _Q, _Q, _Q, _Q], _values(12, i11="True"),
     2.5 * _SCORES / 2, 2.5 * _SCORES / 4),
    ("flash_attn::_flash_attn_forward", [_BSHD, _BSHD, _BSHD], _values(6, i5="True"),
     _SCORES / 2, _SCORES / 4),
    ("flash_attn::_flash_attn_varlen_backward",
     [[128, 8, 32]] * 4 + [[128, 8, 32], [8, 128], [], [], [], [3], [3]], _values(16),
     2.5 * 2 * 2 * 8 * 64 * 64 * 64, 2.5 * 2 * 2 * 8 * 64 * 64 * 64),
    ("aten::conv2d", [[2, 3, 8, 8], [16, 3, 3, 3], []], _values(7, i3="[2, 2]", i4="[1, 1]", i5="[1, 1]"),
     2 * 2 * 16 * 4 * 4 * 3 * 9, 2 * 2 * 16 * 4 * 4 * 3 * 9),
    ("aten::convolution", [[2, 6, 8, 8], [16, 3, 3, 3], []],
     _values(9, i3="[1]", i4="[0, 0]", i5="[1, 1]", i6="False"),
     2 * 2 * 16 * 6 * 6 * 3 * 9, 2 * 2 * 16 * 6 * 6 * 3 * 9),
    ("aten::convolution_backward", [[2, 16, 6, 6], [2, 3, 8, 8], [16, 3, 3, 3]],
     _values(11, i7="False", i10="[False, True, True]"),
     2 * 2 * 16 * 6 * 6 * 3 * 9, 2 * 2 * 16 * 6 * 6 * 3 * 9),
]  # fmt: skip


@pytest.mark.parametrize(("name", "dims", "values", "flops", "causal"), SHAPES)
def test_flops_of_a_call_are_those_of_its_shapes(
    name: str, dims: list[Any], values: list[str], flops: float, causal: float
) -> None:
    product = product_of(name, dims, values)
    assert product is not None
    assert (product.flops, product.causal_flops) == (flops, causal)


@given(st.lists(st.integers(1, 40), min_size=2, max_size=6), st.booleans())
def test_packed_sequences_of_any_lengths_lie_within_the_range(lengths: list[int], states: bool) -> None:
    total, count, most = sum(lengths), len(lengths), max(lengths)
    # The mean is rounded.
    assume(total % count == 0)
    dims = [[total, 8, 32]] * 3 + [[count + 1], [count + 1]]
    values = _values(9, **({"i5": str(most), "i6": str(most)} if states else {}))
    product = product_of("aten::_flash_attention_forward", dims, values)
    assert product is not None
    assert product.is_packed
    assert product.longest == (most if states else 0)
    least, greatest = packed_range(product)
    squares = sum(length**2 for length in lengths)
    assert least - 1e-9 <= squares * count / total**2 <= greatest + 1e-9


def test_range_of_packed_sequences_is_reached_at_both_ends() -> None:
    for lengths, end in (([40, 10, 10], 0), ([40, 20, 0], 1)):
        dims = [[60, 8, 32]] * 3 + [[4], [4]]
        product = product_of("aten::_flash_attention_forward", dims, _values(9, i5="40"))
        assert product is not None
        squares = sum(length**2 for length in lengths)
        assert packed_range(product)[end] == pytest.approx(squares * 3 / 60**2)


@pytest.mark.parametrize(
    "dims",
    [None, [], {}, [[3, 5]], [[3, 5], [6, 7]], [[3, 5], "5"], [[3, -5], [-5, 7]], [[3.0, 5], [5, 7]],
     [[[3, 5]], [[5, 7]]], [[1 << 60, 5], [5, 7]], [[1] * 9, [1] * 9], [[]] * 100],
)  # fmt: skip
@pytest.mark.parametrize("name", ["aten::mm", "aten::bmm", "aten::linear", "aten::conv2d",
                                  "aten::scaled_dot_product_attention", "triton_tem_fused_mm_0"])  # fmt: skip
def test_inputs_that_do_not_tell_are_no_product(name: str, dims: Any) -> None:
    assert product_of(name, dims, []) is None or name == "triton_tem_fused_mm_0"


def test_a_template_whose_sizes_fit_in_two_ways_is_no_product() -> None:
    assert product_of("triton_tem_fused_mm_0", [[4, 4], [4, 8], [8, 4], [4, 8], [4, 4]], []) is None


@pytest.mark.parametrize(
    ("types", "precision"),
    [(["c10::BFloat16", "c10::BFloat16"], "bf16"), (["c10::Half"], "bf16"), (["c10::Float8_e4m3fn"], "fp8"),
     (["float", "float"], "fp32"), (["double"], "fp64"), (["", "c10::BFloat16"], "bf16"), (None, ""),
     (["Scalar"], "")],
)  # fmt: skip
def test_type_of_the_operands_is_as_written(types: Any, precision: str) -> None:
    assert precision_of(types, "aten::mm") == precision


# -- files -----------------------------------------------------------------------------------


def hand_count(events: Iterable[dict[str, Any]]) -> float:
    """FLOPs of the innermost products, by the names that the corpus has."""
    flops = 0.0
    for event in events:
        dims = event.get("args", {}).get("Input Dims")
        if not dims:
            continue
        if event["name"] in ("aten::mm", "aten::bmm"):
            flops += 2 * prod(dims[0]) * dims[1][-1]
        elif event["name"] == "aten::addmm":
            flops += 2 * prod(dims[1]) * dims[2][-1]
        elif event["name"] == "aten::_flash_attention_forward":
            batch, queries, heads, size = dims[0]
            flops += 4 * batch * heads * queries * dims[1][1] * size
    return flops


def use_of(path: Path, step: str | None = "all", **parameters: Any) -> ProductUse:
    run = run_recording(open_input(str(path), OpeningOptions(step=step)), Parameters(**parameters))  # type: ignore[arg-type]
    use = run.model.product_use
    assert use is not None
    return use


@needs_corpus
@pytest.mark.parametrize("path", [QWEN, BERT, DLRM / "worker0_step_12.1694128201545.pt.trace.json.gz",
                                  GLOO / "rank0_trace.json.gz",
                                  HTA / "HTA__trace_filter_sampled_rank-0.json.gz"])  # fmt: skip
def test_flops_of_a_real_trace_are_those_of_a_second_count(path: Path) -> None:
    expected = hand_count(raw(path)["traceEvents"])
    (rank,) = use_of(path, gpu="h100").ranks
    # Of the sampled trace the innermost operations of some calls were left out.
    assert rank.flops == pytest.approx(expected, rel=0.01 if path.parent == HTA else 1e-9)
    assert rank.flops >= expected


@needs_corpus
def test_model_of_a_real_trace_has_the_flops_of_its_products(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(QWEN_CONFIG))
    use = use_of(QWEN, model=str(config))
    assert use.gpu == "h100"
    assert use.throughput is not None
    assert use.throughput.mfu == pytest.approx(use.hfu, rel=1e-6)
    assert use.throughput.tokens_per_s == pytest.approx(16 * 559 / (use.step_ns / 1e9))
    assert use.throughput.mfu == pytest.approx(6.006026832832e12 / (use.step_ns / 1e9) / 989e12)


@needs_corpus
def test_steps_of_a_trace_share_its_products() -> None:
    path = GLOO / "rank0_trace.json.gz"
    each = [use_of(path, step=str(step), gpu="h100").ranks[0] for step in (2, 3, 4)]
    assert [rank.calls for rank in each] == [17, 17, 17]
    assert sum(rank.flops for rank in each) == use_of(path, gpu="h100").ranks[0].flops


# -- made traces -----------------------------------------------------------------------------


def call(
    name: str, ts: float, dur: float, dims: Any, type_: str = "c10::BFloat16", tid: int = 1
) -> dict[str, Any]:
    args = {"Input Dims": dims, "Input type": [type_ if sizes else "" for sizes in dims]}
    return around("cpu_op", name, ts, dur, tid) | {"args": args}


_A, _B = [512, 4096], [4096, 1024]
_FLOPS = 2.0 * 512 * 4096 * 1024


def trace(tmp_path: Path, events: list[dict[str, Any]], **top: Any) -> Path:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events} | top))
    return path


def test_a_call_in_a_call_counts_once_and_its_kernels_are_those_of_the_outer(tmp_path: Path) -> None:
    events = [
        call("aten::linear", 10, 50, [_A, [1024, 4096]]), call("aten::addmm", 20, 30, [[1024], _A, _B]),
        launch(1, 25), kernel(1, 100), launch(2, 30), kernel(2, 120, "splitKreduce"),
        call("aten::mm", 70, 10, [_A, _B]), launch(3, 75), kernel(3, 140),
    ]  # fmt: skip
    use = use_of(trace(tmp_path, events), gpu="h100")
    assert [(line.operation, line.calls, line.flops, line.ns) for line in use.lines] == [
        ("aten::linear", 1, _FLOPS, 20_000), ("aten::mm", 1, _FLOPS, 10_000),
    ]  # fmt: skip
    (rank,) = use.ranks
    assert rank.hfu == rank.mfu == pytest.approx(2 * _FLOPS / 989e12 / (use.step_ns / 1e9))
    assert use.lines[1].peak_share == pytest.approx(_FLOPS / 10e-6 / 989e12)


def test_under_autocast_the_inner_call_has_the_type(tmp_path: Path) -> None:
    events = [
        call("aten::linear", 10, 50, [_A, [1024, 4096]], "float"),
        call("aten::linear", 30, 20, [_A, [1024, 4096]]),
        launch(1, 35), kernel(1, 100),
    ]  # fmt: skip
    assert [line.precision for line in use_of(trace(tmp_path, events), gpu="h100").lines] == ["bf16"]


@pytest.mark.parametrize(
    ("name", "type_", "precision", "tflops"),
    [("sm80_xmma_gemm_f32f32_tf32f32_f32", "float", "tf32", 494.5),
     ("ampere_sgemm_128x64_tn", "float", "fp32", 67), ("gemm", "c10::Float8_e4m3fn", "fp8", 1979),
     ("gemm", "c10::Half", "bf16", 989), ("gemm", "double", "fp64", None)],
)  # fmt: skip
def test_the_type_decides_the_peak(
    tmp_path: Path, name: str, type_: str, precision: str, tflops: float | None
) -> None:
    events = [call("aten::mm", 10, 10, [_A, _B], type_), launch(1, 15), kernel(1, 100, name)]
    use = use_of(trace(tmp_path, events), gpu="h100")
    (line,), (rank,) = use.lines, use.ranks
    assert line.precision == precision
    if tflops is None:
        assert (line.peak_share, rank.hfu, rank.flops_without_peak) == (None, 0.0, _FLOPS)
    else:
        assert line.peak_share == pytest.approx(_FLOPS / 10e-6 / (tflops * 1e12))


def test_packed_sequences_are_assumed_equal_and_it_is_stated(tmp_path: Path) -> None:
    """Four sequences in 4,096 tokens, the longest of 2,048: 2048^2 + 3 x 682.7^2 to 2 x 2048^2 scores a head,
    of 4 x 1024^2. A model's attention takes the mean, not the length of the tensor.
    """
    dims = [[4096, 4, 16]] * 3 + [[5], [5], [], [], [], []]
    packed = call("aten::_flash_attention_forward", 10, 10, dims)
    packed["args"]["Concrete Inputs"] = _values(9, i5="2048", i6="2048", i8="True")
    events = [
        call("aten::embedding", 5, 2, [[1000, 64], [1, 4096]]), packed, launch(1, 15), kernel(1, 100),
        call("aten::mm", 30, 10, [[4096, 64], [64, 1000]]), launch(2, 35), kernel(2, 120),
    ]  # fmt: skip
    path = trace(tmp_path, events)
    use = use_of(path, gpu="h100")
    equal = 4 * 4 * 4 * 1024**2 * 16
    (line,) = [line for line in use.lines if line.kind == "attention"]
    assert (line.flops, line.shape) == (equal, "4 x ~1024, 4 heads of 16, causal")
    (text,) = [words for words in use.assumed if "packed" in words]
    least, most = ((2048**2 + 2048**2 / 3) / (4 * 1024**2), 2 * 2048**2 / (4 * 1024**2))
    shares = [
        (use.hfu or 0) + (factor - 1) * equal / 989e12 / (use.step_ns / 1e9) for factor in (least, most)
    ]
    assert [float(word) for word in re.findall(r"[0-9.]+(?= to| %)", text)[-2:]] == [
        pytest.approx(100 * share, rel=0.005) for share in shares
    ]
    (tmp_path / "model.toml").write_text(MODEL)
    of_model = use_of(path, gpu="h100", model=str(tmp_path / "model.toml"))
    assert of_model.throughput is not None
    layer = 2 * (4 * 64 * 64 + 3 * 64 * 256) + 4 * 1024 * 64
    flops = (2 * layer + 2 * 64 * 1000) * 4096
    assert of_model.throughput.mfu == pytest.approx(flops / (of_model.step_ns / 1e9) / 989e12)


def test_what_has_no_shape_is_counted_apart(tmp_path: Path) -> None:
    events = [
        around("cpu_op", "aten::mm", 10, 10), launch(1, 15), kernel(1, 100, "sm90_xmma_gemm_bf16"),
        around("cpu_op", "aten::add", 30, 10), launch(2, 35), kernel(2, 120, "vectorized_elementwise_kernel"),
    ]  # fmt: skip
    run = run_recording(open_input(str(trace(tmp_path, events))), Parameters(gpu="h100"))  # type: ignore[arg-type]
    use = run.model.product_use
    assert use is not None
    (rank,) = use.ranks
    assert (rank.without_shapes, rank.without_shapes_ns, rank.calls) == (1, 10_000, 0)
    assert use.mfu is use.hfu is None
    assert "record_shapes" in use.reason
    assert "without shapes" in run_page(run)


def test_recomputation_is_in_hfu_and_not_in_mfu(tmp_path: Path) -> None:
    events = [
        call("aten::linear", 10, 10, [_A, [1024, 4096]]), launch(1, 12), kernel(1, 100),
        around("cpu_op", "autograd::engine::evaluate_function: CheckpointFunctionBackward", 30, 50, 2),
        call("aten::linear", 35, 10, [_A, [1024, 4096]], tid=2), launch(2, 37, 2), kernel(2, 120),
        call("aten::mm", 50, 10, [_A, _B], tid=2), launch(3, 52, 2), kernel(3, 140),
    ]  # fmt: skip
    (rank,) = use_of(trace(tmp_path, events), gpu="h100").ranks
    assert rank.mfu == pytest.approx(rank.hfu * 2 / 3)


def test_kernels_far_below_their_shape_are_named(tmp_path: Path) -> None:
    events = []
    for index in range(4):
        at = 10 + 2000 * index
        events += [call("aten::mm", at, 10, [[8192, 8192], [8192, 8192]]), launch(index, at + 5)]
        events.append(kernel(index, at + 100) | {"dur": 1500 if index < 3 else 8000})
        events += [call("aten::mm", at + 20, 10, [_A, _B]), launch(10 + index, at + 25)]
        events.append(kernel(10 + index, at + 1700) | {"dur": 8})
    run = run_recording(open_input(str(trace(tmp_path, events))), Parameters(gpu="h100"))  # type: ignore[arg-type]
    use = run.model.product_use
    assert use is not None
    worst = use.lines[0]
    assert (worst.is_far_below, worst.calls) == (True, 4)
    assert worst.expected_ns == pytest.approx(4 * 2 * 8192**3 / 700e12 * 1e9, rel=0.15)
    assert not use.lines[1].is_far_below
    (sentence,) = [one for one in run.figures.insights if one.rule == "products-far-below"]
    assert "8192 x 8192 x 8192" in sentence.text
    plain = run_recording(open_input(str(trace(tmp_path, events))), Parameters())  # type: ignore[arg-type]
    assert not [one for one in plain.figures.insights if one.rule == "products-far-below"]


MODEL = """
[model]
name = "small"
layers = 2
hidden = 64
heads = 4
ffn = 256
vocab = 1000
seq = 32
"""


def model_trace(tmp_path: Path, backward: bool = True, **top: Any) -> tuple[Path, str]:
    """Two micro-batches of 3 sequences of 32 tokens."""
    events = []
    for batch, at in enumerate((10, 1010)):
        events += [
            call("aten::embedding", at, 5, [[1000, 64], [3, 32]]),
            call("aten::embedding", at + 6, 2, [[32, 64], [3, 32]]),
            call("aten::mm", at + 10, 5, [[96, 64], [64, 1000]]),
            launch(batch, at + 12), kernel(batch, at + 50),
        ]  # fmt: skip
    if backward:
        events.append(around("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 500, 10, 2))
    model = tmp_path / "model.toml"
    model.write_text(MODEL)
    return trace(tmp_path, events, **top), str(model)


@pytest.mark.parametrize("backward", [True, False])
def test_mfu_of_a_model_is_its_flops_over_the_peak(tmp_path: Path, backward: bool) -> None:
    path, model = model_trace(tmp_path, backward)
    use = use_of(path, gpu="h100", model=model)
    assert use.throughput is not None
    tokens, seconds = 2 * 3 * 32, use.step_ns / 1e9
    # Its MLP is gated.
    layer = 2 * (4 * 64 * 64 + 3 * 64 * 256) + 4 * 32 * 64
    flops = (3 if backward else 1) * (2 * layer + 2 * 64 * 1000) * tokens
    assert use.throughput.tokens_per_s == pytest.approx(tokens / seconds)
    assert use.throughput.mfu == pytest.approx(flops / seconds / 989e12)
    assert use.mfu == use.throughput.mfu


def test_flags_state_the_tokens_that_shapes_do_not(tmp_path: Path) -> None:
    path, model = model_trace(tmp_path, distributedInfo={"rank": 0, "world_size": 4, "backend": "nccl"})
    whole = use_of(path, gpu="h100", model=model)
    assert whole.throughput is not None
    # Four ranks, each with sequences of its own.
    stated = use_of(path, gpu="h100", model=model, global_batch=24, seq=32).throughput
    assert stated is not None
    assert stated.tokens_per_s == pytest.approx(whole.throughput.tokens_per_s)
    each = use_of(path, gpu="h100", model=model, microbatch_size=3, seq=32).throughput
    assert each is not None
    assert each.tokens_per_s == pytest.approx(whole.throughput.tokens_per_s)


@pytest.mark.parametrize(
    ("parameters", "option"),
    [({"gpu": "h1000"}, "--gpu"), ({"model": "no-such-model", "gpu": "h100"}, "--model"),
     ({"seq": 5}, "--seq"), ({"model": "llama-3-8b"}, "--model")],
)  # fmt: skip
def test_what_cannot_be_is_refused(tmp_path: Path, parameters: dict[str, Any], option: str) -> None:
    path, _ = model_trace(tmp_path)
    with pytest.raises(UsageError, match=option):
        use_of(path, **parameters)


@pytest.mark.parametrize(
    ("name", "size", "gpu"),
    [("NVIDIA H100 80GB HBM3", 85e9, "h100"), ("NVIDIA A100-SXM4-80GB", 85e9, "a100-80"),
     ("NVIDIA A100-SXM4-40GB", 42e9, "a100-40"), ("NVIDIA GB200", 190e9, "gb200"),
     ("NVIDIA H200", 150e9, "h200")],
)  # fmt: skip
def test_the_trace_names_its_gpu(tmp_path: Path, name: str, size: float, gpu: str) -> None:
    path, model = model_trace(tmp_path, deviceProperties=[{"name": name, "totalGlobalMem": size}])
    assert use_of(path, model=model).gpu == gpu


def test_no_time_changes_and_a_replay_keeps_the_flops(tmp_path: Path) -> None:
    path, _ = model_trace(tmp_path)
    measured = run_recording(open_input(str(path)), Parameters())  # type: ignore[arg-type]
    with_gpu = measured.with_parameters(Parameters(gpu="h100"))
    assert not with_gpu.is_replayed
    assert with_gpu.step_time_ns == measured.step_time_ns
    half = with_gpu.with_parameters(Parameters(gpu="h100", compute_scale=0.5, gap_scale=0.5))
    was, now = with_gpu.model.product_use, half.model.product_use
    assert was is not None
    assert now is not None
    assert now.ranks[0].flops == was.ranks[0].flops
    assert (now.hfu or 0) * half.step_time_ns == pytest.approx((was.hfu or 0) * was.step_ns)
    for row in with_gpu.what_if():
        assert row.parameters is None or row.parameters.gpu == "h100"


def test_files_are_read_once_for_all_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from simcore.kineto import products

    path, _ = model_trace(tmp_path)
    run = run_recording(open_input(str(path)), Parameters(gpu="h100"))  # type: ignore[arg-type]
    assert run.model.product_use is not None
    monkeypatch.setattr(products, "read_products", None)
    other = run.with_parameters(Parameters(gpu="a100-80")).model.product_use
    assert other is not None
    assert other.lines


def test_json_and_first_row_have_the_words_of_simulated_runs(tmp_path: Path) -> None:
    path, model = model_trace(tmp_path)
    run = run_recording(open_input(str(path)), Parameters(gpu="h100", model=model))  # type: ignore[arg-type]
    values = run_json(run)
    assert set(values["throughput"]) >= {"tokens_per_s", "model_tflops_per_gpu", "mfu", "hfu"}
    assert values["products"]["by_rank"][0]["flops"] == 2 * 2 * 96 * 64 * 1000
    assert {"gpu", "model"} <= set(values["parameters"])
    plain = run_json(run_recording(open_input(str(path)), Parameters()))  # type: ignore[arg-type]
    assert not {"throughput", "products"} & set(plain)
    assert not {"gpu", "model", "seq"} & set(plain["parameters"])
    assert any(fact.startswith("MFU ") for fact in run.figures.headline(wide=True))


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(1, 12),
                  st.sampled_from(["aten::linear", "aten::mm", "aten::bmm"]),
                  st.integers(1, 5), st.booleans()),
        max_size=14,
    )
)  # fmt: skip
def test_random_calls_count_as_a_naive_count_does(
    tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[int, int, str, int, bool]]
) -> None:
    """Calls of one thread nest or follow one another; the naive count asks for each whether another one that
    tells its FLOPs is around it.
    """
    stack: list[tuple[float, float, str, int, bool]] = []
    for start, length, name, size, tells in sorted(calls):
        begin, end = float(start), float(start + length)
        around_it = [one for one in stack if one[0] <= begin < one[1]]
        if any(end > one[1] or begin == one[0] for one in around_it):
            continue
        stack.append((begin, end, name, size, tells))
    events = []
    for begin, end, name, size, tells in stack:
        dims = {"aten::linear": [[size, 3], [4, 3]], "aten::mm": [[size, 3], [3, 4]],
                "aten::bmm": [[2, size, 3], [2, 3, 2]]}[name]  # fmt: skip
        events.append(call(name, begin, end - begin, dims if tells else [[], []]))
    naive = 0
    for begin, end, _, size, tells in stack:
        outer = [one for one in stack if one[4] and one[0] < begin and end <= one[1]]
        naive += 24 * size if tells and not outer else 0
    folder = tmp_path_factory.mktemp("calls")
    found = read_products(str(trace(folder, events)))
    assert found is not None
    assert sum(found.products[index].product.flops for index in found.product) == naive


def test_a_stream_cannot_be_read_again(tmp_path: Path) -> None:
    from simcore.sources.inputs import read_input

    path, _ = model_trace(tmp_path)
    with path.open("rb") as file:
        opened = read_input(file)
    run = RecordedRun(opened).with_parameters(Parameters(gpu="h100"))  # type: ignore[arg-type]
    use = run.model.product_use
    assert use is not None
    assert use.reason
    assert not use.lines


@pytest.mark.parametrize("damage", [b'{"traceEvents": [', b"", b"\x00" * 9])
def test_a_file_that_has_changed_since_is_no_error(tmp_path: Path, damage: bytes) -> None:
    path, _ = model_trace(tmp_path)
    run = run_recording(open_input(str(path)), Parameters(gpu="h100"))  # type: ignore[arg-type]
    path.write_bytes(gzip.compress(damage))
    use = run.model.product_use
    assert use is not None
    assert use.reason
