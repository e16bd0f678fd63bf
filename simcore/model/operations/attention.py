"""The time of fused attention on a GPU, by its shape: the forward pass, and what backward takes of it.

A formula, no table of times. Queries are cut into tiles of 128, each of which goes over the keys that it
sees; tiles run side by side on the SMs, and the last ones leave SMs idle. Each query costs as much as some
more keys (its load, the last sums, its store), keys and values are copied once before. Long kernels run into
the power limit.

attention.toml has the constants, made by benchmarks/fit_attention.py from ../shared/validation/ops
(ai-dynamo/aiconfigurator, Apache-2.0: TensorRT-LLM's kernels, each alone, causal) on two of three shapes of a
GPU and precision: four for both, three for each head size. Head sizes between measured ones are interpolated;
A100 was measured with 128 alone and takes the ratios of H100 for others. Nobody measured backward there: its
ratios are those of SimuMax's tables of A100 and B200 (Apache-2.0), for other GPUs those of A100 are assumed.
"""

from __future__ import annotations

from functools import lru_cache
from math import log2

from simcore.diagnostics import UsageError, printable
from simcore.model.gpu import Gpu, find_gpu
from simcore.model.operations.timing import OperationTime, constants_for, tables_of
from simcore.records import NamedTuple

PRECISIONS = ("bf16", "fp8")
# Rows of a tile; those of the kernels are 64 to 256, which `tail` of a head size makes up for.
TILE = 128
# Keys, values, queries and the result have 2 bytes a number before attention, in every precision.
_BYTES = 2
# Where a GPU was measured with one head size alone, the ratios between head sizes are those of this one.
_RATIOS_OF = "h100"


class Constants(NamedTuple):
    """Those of a head size on one GPU. launch, slow_s: s. copy: s a byte of keys and values. slow: share that
    kernels much longer than slow_s take more. rate: FLOP/s. extra: keys that a query costs besides those that
    it sees. tail: share of the longest tile that the SMs wait at the end. hbm: B/s.
    """

    launch: float
    copy: float
    slow: float
    slow_s: float
    rate: float
    extra: float
    tail: float
    sms: int
    hbm: float


@lru_cache(maxsize=1 << 14)
def attention_time(
    gpu: Gpu,
    precision: str,
    batch: int,
    seq: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    value_dim: int | None = None,
    causal: bool = True,
    keys: int | None = None,
    squares: int | None = None,
    longest_keys: int | None = None,
) -> OperationTime:
    """Returns what the forward pass of attention takes alone on a GPU.

    seq: queries of a sequence. keys: those of a sequence, where they are more than its queries: a rank's
    share of a sequence under context parallelism; under the causal mask each query sees half of them, as
    balanced shares do. value_dim: of a head's values, where it is not that of queries and keys. squares,
    longest_keys: of one sequence of packed documents, the sum of the squares of their keys, and those of the
    longest. Raises `UsageError` for a precision other than bf16 and fp8, or one that the GPU does not compute
    in.
    """
    if precision not in PRECISIONS:
        raise UsageError(
            f"--precision {printable(precision, 40)}: attention is measured in {' and '.join(PRECISIONS)}"
        )
    of_values = head_dim if value_dim is None else value_dim
    of_sequence = seq if keys is None else keys
    constants = _constants(gpu, precision, (head_dim + of_values) / 2)
    width = head_dim + of_values
    whole_keys = float(of_sequence) if squares is None else squares / of_sequence
    visible_keys = whole_keys / 2 if causal else whole_keys
    copied = _BYTES * batch * of_sequence * kv_heads * width
    moved_bytes = copied + _BYTES * batch * seq * heads * width
    last = of_sequence if longest_keys is None else longest_keys
    copies, computes = part_times(constants, batch, seq, heads, width, visible_keys, last, copied)
    flops = 2.0 * width * batch * heads * seq * visible_keys
    memory = moved_bytes / constants.hbm
    computes = max(computes, flops / (gpu.peak_of(precision) * 1e12))
    longest = max(constants.launch, computes, copies, memory)
    bound_by = "compute" if longest == computes else "launch" if longest == constants.launch else "memory"
    return OperationTime(constants.launch + max(copies + computes, memory), bound_by, flops)


def part_times(
    constants: Constants,
    batch: float,
    queries: float,
    heads: float,
    width: float,
    visible_keys: float,
    keys: float,
    copied: float,
) -> tuple[float, float]:
    """Returns (copies of keys and values, computing), s. width: head size of keys and of values together.
    seen: keys that a query sees on average, keys: that the last one does. copied: bytes. Arrays do as well.
    """
    each = 2 * width / constants.rate
    even = batch * heads * queries * (visible_keys + constants.extra) * each
    last = constants.tail * TILE * constants.sms * keys * each
    computes = even + last
    computes = computes * (1 + constants.slow * computes / (computes + constants.slow_s))
    return constants.copy * copied, computes


def attention_backward_ratio(gpu: Gpu, head_dim: int) -> float:
    """Returns how many times as long as forward the backward pass of attention takes, both with enough work
    for all SMs.
    """
    tables = tables_of("attention")["backward"]
    table = next(tables[name] for name in (*gpu.bases, "a100-80") if name in tables)
    base = find_gpu(gpu.bases[0]) if gpu.bases else gpu
    of_file = gpu.flash_forward / base.flash_forward * base.flash_backward / gpu.flash_backward
    return of_file * _interpolate(table["head_sizes"], table["ratio"], head_dim)


@lru_cache(maxsize=256)
def _constants(gpu: Gpu, precision: str, head_size: float) -> Constants:
    """Those of the nearest measured GPU, with the peak, SMs and memory of this one."""
    table, base = constants_for(gpu, "attention", precision)
    faster = gpu.peak_of(precision) / base.peak_of(precision) * gpu.flash_forward / base.flash_forward
    values = [_constant_at(table, key, head_size) for key in ("rate", "extra", "tail")]
    sizes = table["head_sizes"]
    if len(sizes) == 1:
        other = tables_of("attention")[_RATIOS_OF][precision]
        values = [
            value * _constant_at(other, key, head_size) / _constant_at(other, key, sizes[0])
            for key, value in zip(("rate", "extra", "tail"), values, strict=True)
        ]
    rate, extra, tail = values
    hbm = gpu.hbm * 1e9
    return Constants(
        launch=table["launch_us"] * 1e-6,
        copy=table["copies"] / hbm,
        slow=table["slow"],
        slow_s=table["slow_ms"] * 1e-3,
        rate=rate * faster * 1e12,
        extra=extra,
        tail=tail,
        sms=gpu.sms,
        hbm=hbm,
    )


def _constant_at(table: dict[str, list[float]], key: str, head_size: float) -> float:
    """Below the least measured head size, exponentials and not products take the time: the rate falls with
    it.
    """
    sizes = table["head_sizes"]
    value = _interpolate(sizes, table[key], head_size)
    return (
        value * head_size / sizes[0] if key == "rate" and head_size < sizes[0] and len(sizes) > 1 else value
    )


def _interpolate(sizes: list[float], values: list[float], size: float) -> float:
    """Interpolated over the logarithm of the size; beyond the ends, the value there."""
    if size <= sizes[0]:
        return values[0]
    for index in range(1, len(sizes)):
        if size <= sizes[index]:
            low, high = log2(sizes[index - 1]), log2(sizes[index])
            share = (log2(size) - low) / (high - low)
            return values[index - 1] + share * (values[index] - values[index - 1])
    return values[-1]
