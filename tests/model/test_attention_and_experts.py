"""The time of attention, experts and collectives in a server: near measured ones, sensible between them."""

from __future__ import annotations

import statistics
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import measured_operations as measured
from simcore.diagnostics import UsageError
from simcore.model.gpu import find_gpu
from simcore.model.operations import experts
from simcore.model.operations.attention import attention_backward_ratio, attention_time
from simcore.model.operations.experts import (
    experts_time,
    grouped_product_time,
    grouped_weight_gradient_time,
)
from simcore.model.operations.servers import OPERATIONS, collective_in_server
from simcore.names import GPU_NAMES

of_shared = pytest.mark.skipif(not measured.FOLDER.exists(), reason="../shared/validation/ops is not here")
HOPPER, BLACKWELL = ("bf16", "fp8", "fp8_block"), ("bf16", "fp8", "fp8_block", "mxfp8", "nvfp4")
PRECISIONS = {
    "a100-40": ("bf16",), "a100-80": ("bf16",), "h100": HOPPER, "h200": HOPPER, "h20": HOPPER,
    "mi300x": HOPPER, "b200": BLACKWELL, "gb200": BLACKWELL,
}  # fmt: skip
PAIRS = [(gpu, precision) for gpu, precisions in PRECISIONS.items() for precision in precisions]
OF_ATTENTION = [(gpu, precision) for gpu, precision in PAIRS if precision in ("bf16", "fp8")]
BYTES = {"bf16": 2, "fp8": 1, "fp8_block": 1, "mxfp8": 1, "nvfp4": 0.5}
# Head sizes of models, between and beyond those that were measured, and heads a rank of 40 and 56.
HEAD_SIZES = st.sampled_from([32, 64, 80, 96, 112, 128, 192, 256, 512])
HEADS = st.sampled_from([1, 2, 5, 7, 8, 14, 32, 40, 56, 128])
EXPERTS = st.integers(min_value=1, max_value=256)
LOADS = st.integers(min_value=1, max_value=5000)
SIZES = st.integers(min_value=1, max_value=128).map(lambda size: 64 * size)


@of_shared
@pytest.mark.parametrize("gpu", measured.GPUS)
@pytest.mark.parametrize(
    ("kind", "place", "median", "most"), [("attention", 1, 0.03, 0.1), ("moe", 0, 0.075, 0.24)]
)
def test_shapes_that_nothing_was_fitted_on(
    gpu: str, kind: str, place: int, median: float, most: float
) -> None:
    found = measured.measured(gpu, kind)
    assert found or (gpu, kind) == ("a100-80", "moe")
    for precision, ones in found.items():
        # Every eighth, which takes 1 s for all.
        off = sorted(map(abs, measured.off(gpu, kind, precision, measured.asked(ones, place)[::8])))
        assert len(off) > 55
        assert (statistics.median(off) < median, off[int(0.9 * len(off))] < most) == (True, True), precision


@of_shared
@pytest.mark.parametrize("gpu", measured.GPUS)
def test_collectives_that_nothing_was_fitted_on(gpu: str) -> None:
    found = measured.measured(gpu, "nccl")
    assert set(found) == set(OPERATIONS)
    off = [
        abs(one)
        for operation, ones in found.items()
        for one in measured.off(gpu, "nccl", operation, measured.asked(ones, None))
    ]
    assert statistics.median(off) < 0.085


@pytest.mark.parametrize(
    ("gpu", "precision", "shape", "expected"),
    [
        ("a100-80", "bf16", (1, 4096, 32, 8, 128), (1109.94, "compute")),
        ("a100-80", "bf16", (1, 4096, 32, 8, 64), (702.27, "compute")),
        ("h100", "bf16", (1, 8192, 14, 2, 80), (393.12, "compute")),
        ("h100", "bf16", (2, 4096, 40, 40, 128), (864.32, "compute")),
        ("h100", "fp8", (1, 16384, 8, 1, 128), (847.77, "compute")),
        ("h200", "bf16", (1, 64, 8, 8, 128), (16.05, "launch")),
        ("b200", "bf16", (1, 8192, 64, 8, 192), (1513.33, "compute")),
        ("gb200", "fp8", (1, 131072, 16, 16, 256), (67691.72, "compute")),
        ("h20", "bf16", (1, 4096, 32, 8, 128), (2112.13, "compute")),
        ("mi300x", "bf16", (1, 4096, 32, 8, 128), (290.67, "compute")),
    ],
)
def test_figures_of_attention(
    gpu: str, precision: str, shape: tuple[int, ...], expected: tuple[float, str]
) -> None:
    found = attention_time(find_gpu(gpu), precision, *shape)
    assert (round(1e6 * found.seconds, 2), found.bound_by) == expected


@pytest.mark.parametrize(
    ("gpu", "precision", "shape", "expected"),
    [
        # Mixtral's, Qwen3-30B's of 8 ranks, DeepSeek-V3's of 64.
        ("h100", "bf16", (1, 8192, 4096, 14336), (3374.24, "compute")),
        ("h100", "bf16", (16, 2048, 2048, 768), (745.81, "compute")),
        ("h100", "fp8_block", (4, 4096, 7168, 2048), (2497.8, "compute")),
        ("h200", "fp8", (16, 16, 7168, 2048), (210.05, "memory")),
        ("b200", "nvfp4", (4, 4096, 7168, 2048), (481.44, "compute")),
        ("b200", "mxfp8", (4, 4096, 7168, 2048), (795.59, "compute")),
        ("gb200", "bf16", (256, 32, 7168, 2048), (3313.54, "memory")),
        ("a100-80", "bf16", (8, 1024, 4096, 1536), (1336.06, "compute")),
    ],
)
def test_figures_of_experts(
    gpu: str, precision: str, shape: tuple[int, ...], expected: tuple[float, str]
) -> None:
    found = experts_time(find_gpu(gpu), precision, *shape)
    assert (round(1e6 * found.seconds, 2), found.bound_by) == expected


def test_a_shape_measured_with_a_badly_chosen_kernel_is_corrected_where_it_is_asked_for_alone() -> None:
    h100 = find_gpu("h100")
    shape = (h100, "bf16", 128, 80, 4096, 1024, True, 4096, 10, 512)
    # Measured: four times as long as with half as many experts a rank.
    assert experts_time(*shape).seconds > 3 * experts_time(*shape[:2], 128, 80, 4096, 1024).seconds
    assert experts_time(find_gpu("h20"), *shape[1:]).seconds < 4 * experts_time(h100, *shape[1:6]).seconds


@given(
    st.sampled_from(OF_ATTENTION), st.integers(1, 4), st.integers(1, 20000), HEADS, HEAD_SIZES, st.booleans()
)  # fmt: skip
def test_attention_is_never_faster_than_the_peak_or_the_memory(
    pair: tuple[str, str], batch: int, seq: int, heads: int, size: int, causal: bool
) -> None:
    gpu, precision = find_gpu(pair[0]), pair[1]
    found = attention_time(gpu, precision, batch, seq, heads, 1, size, causal=causal)
    assert found.flops == 4 * batch * heads * seq * seq * size * (0.5 if causal else 1)
    assert found.seconds >= found.flops / (gpu.peak_of(precision) * 1e12)
    assert found.seconds >= 4 * batch * seq * (heads + 1) * size / (gpu.hbm * 1e9)


@given(st.sampled_from(OF_ATTENTION), st.integers(1, 4), st.integers(1, 20000), HEADS, HEAD_SIZES)
def test_more_attention_takes_longer(
    pair: tuple[str, str], batch: int, seq: int, heads: int, size: int
) -> None:
    gpu, precision = find_gpu(pair[0]), pair[1]

    def seconds(batch: int, seq: int, heads: int, kv_heads: int = 1, keys: int | None = None) -> float:
        return attention_time(gpu, precision, batch, seq, heads, kv_heads, size, keys=keys).seconds

    least = seconds(batch, seq, heads)
    assert least < min(seconds(batch + 1, seq, heads), seconds(batch, seq + 1, heads))
    assert least < seconds(batch, seq, heads + 1)
    assert least <= seconds(batch, seq, heads, heads)
    # A rank of context parallelism has its share of the queries and all keys: less than the whole, more than
    # its share without those that wait for the last tile.
    share = seconds(batch, max(1, seq // 2), heads, keys=seq)
    assert seconds(batch, max(1, seq // 2), heads) <= share <= least


def test_a_head_size_between_two_is_between_them() -> None:
    for name, precision in OF_ATTENTION:
        gpu = find_gpu(name)
        times = [attention_time(gpu, precision, 1, 8192, 32, 8, size).seconds for size in range(64, 257, 16)]
        steps = [after / before for before, after in pairwise(times)]
        # Kernels of 256 have other tiles than those of 128.
        assert min(steps) > 0.99
        assert max(steps) < 1.3


def test_values_of_another_size_than_keys_take_what_lies_between() -> None:
    h100 = find_gpu("h100")
    less, more = (attention_time(h100, "bf16", 1, 4096, 128, 128, size).seconds for size in (128, 192))
    assert less < attention_time(h100, "bf16", 1, 4096, 128, 128, 192, 128).seconds < more


def test_backward_takes_as_many_times_as_long_as_it_was_measured() -> None:
    found = [attention_backward_ratio(find_gpu(gpu), 128) for gpu in GPU_NAMES]
    assert found == [2.953, 2.953, 2.953, 2.953, 2.993, 2.993, 2.953, 2.953]
    assert attention_backward_ratio(find_gpu("b200"), 192) == 3.229


@given(st.sampled_from(PAIRS), EXPERTS, LOADS, SIZES, SIZES)
def test_experts_are_never_faster_than_the_peak_or_the_memory(
    pair: tuple[str, str], number: int, each: int, hidden: int, ffn: int
) -> None:
    gpu, precision = find_gpu(pair[0]), pair[1]
    peak, bandwidth, each_bytes = gpu.peak_of(precision) * 1e12, gpu.hbm * 1e9, BYTES[precision]
    whole = experts_time(gpu, precision, number, each, hidden, ffn)
    assert whole.flops == 6 * number * each * hidden * ffn
    assert whole.seconds >= max(whole.flops / peak, 3 * number * hidden * ffn * each_bytes / bandwidth)
    product = grouped_product_time(gpu, precision, number, each, ffn, hidden)
    moved = (number * ffn + number * each) * hidden * each_bytes + 2 * number * each * ffn
    assert product.flops == 2 * number * each * hidden * ffn
    assert product.seconds >= max(product.flops / peak, moved / bandwidth)
    gradient = grouped_weight_gradient_time(gpu, precision, number, each, ffn, hidden)
    assert gradient.seconds >= max(product.flops / peak, 8 * number * hidden * ffn / bandwidth)


@given(st.sampled_from(PAIRS), EXPERTS, LOADS, SIZES, SIZES)
def test_more_experts_take_longer(
    pair: tuple[str, str], number: int, each: int, hidden: int, ffn: int
) -> None:
    gpu, precision = find_gpu(pair[0]), pair[1]
    sizes = (number, each, hidden, ffn)
    # Single products, the floor of grouped ones, may fall by some percent from one size to the next.
    for time in (experts_time, grouped_product_time, grouped_weight_gradient_time):
        slack = 1e-12 if time is experts_time else 0.03
        least = time(gpu, precision, *sizes).seconds
        for place, more in enumerate((1, 1, 64, 64)):
            larger = [size + more * (index == place) for index, size in enumerate(sizes)]
            assert least <= time(gpu, precision, *larger).seconds * (1 + slack)


def test_a_gpu_with_twice_of_something_is_faster_by_that(tmp_path: Path) -> None:
    (tmp_path / "peak.toml").write_text('[gpu]\nbase = "h100"\npeak = 1978\n')
    (tmp_path / "hbm.toml").write_text('[gpu]\nbase = "h100"\nhbm = 6700\n')
    files = (str(tmp_path / "peak.toml"), str(tmp_path / "hbm.toml"))
    h100, peak, hbm = (find_gpu(name) for name in ("h100", *files))
    large = [attention_time(gpu, "bf16", 1, 65536, 32, 8, 128).seconds for gpu in (h100, peak, hbm)]
    assert 1.95 < large[0] / large[1] < 2.2
    assert 1 <= large[0] / large[2] < 1.01
    small = [experts_time(gpu, "bf16", 256, 1, 7168, 2048).seconds for gpu in (h100, peak, hbm)]
    assert 1 <= small[0] / small[1] < 1.15
    assert 1.5 < small[0] / small[2] <= 2


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", GPU_NAMES)
def test_collectives_take_longer_with_bytes_and_gpus(name: str, operation: str) -> None:
    gpu = find_gpu(name)
    assert collective_in_server(gpu, operation, 1, 1 << 30) == 0
    times = [collective_in_server(gpu, operation, 8, 1 << power) for power in range(10, 31)]
    assert times == sorted(times)
    # A gigabyte: never above what NVLink has in one direction, twice that where the switches add up.
    sent = (2 if operation == "all_reduce" else 1) * 7 / 8 * (1 << 30)
    assert 0.5 * gpu.nvlink < sent / times[-1] / 1e9 < 1.4 * gpu.nvlink
    small = [collective_in_server(gpu, operation, gpus, 1024) for gpus in (2, 4, 8)]
    assert small == sorted(small)


def test_what_cannot_be_is_refused_with_what_would_fit() -> None:
    h100, a100 = find_gpu("h100"), find_gpu("a100-80")
    with pytest.raises(UsageError, match="--precision fp8_block: attention is measured in bf16 and fp8"):
        attention_time(h100, "fp8_block", 1, 4096, 32, 8, 128)
    with pytest.raises(UsageError, match="--precision fp8: a100-80 computes in bf16"):
        attention_time(a100, "fp8", 1, 4096, 32, 8, 128)
    with pytest.raises(UsageError, match="--precision nvfp4: h100 computes in "):
        experts_time(h100, "nvfp4", 8, 1024, 4096, 1536)
    with pytest.raises(UsageError, match="broadcast: expected one of all_gather, reduce_scatter, "):
        collective_in_server(h100, "broadcast", 8, 1024)


def test_corrections_are_those_of_the_file() -> None:
    found = {pair: len(experts._corrections_of(*pair)) for pair in PAIRS}
    text = (Path(experts.__file__).parent / "experts.csv").read_text("utf-8").splitlines()
    assert sum(found.values()) == sum(line.count(",") == 6 for line in text[1:])
    assert found["h20", "bf16"] == 0 < found["h100", "bf16"]
