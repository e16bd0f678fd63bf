"""The time of a rank's experts on a GPU: their whole feed-forward part, and single grouped products of it.

A formula times a correction of shapes that were measured. The formula: each expert's tokens fill tiles of 16
to 256 rows; what the grouped products compute at the kernels' rate and the weights that they read hide each
other in part; each of their rows is gathered and written, the last tile is waited for; tokens are sorted by
expert and added up again. experts.toml has the constants, ten for each GPU and precision, made by
benchmarks/fit_experts.py from ../shared/validation/ops (ai-dynamo/aiconfigurator, Apache-2.0: kernels of
TensorRT-LLM, SGLang and vLLM, the fastest of those that were measured) on two of three shapes. NVFP4 has two
kernels there, and the faster one counts.

A tenth of the shapes was measured with kernels that were badly chosen, up to five times as slow as the same
kernel one shape further. No formula has that: experts.csv holds, by hidden size, ffn, experts, experts of a
token and of all ranks, by what a shape is off where that is more than `LEAST_OFF`, at two numbers of tokens.
`experts_time` multiplies by it, `grouped_product_time` does not: training runs other kernels. Of those no
table exists for Hopper; these are kernels of inference, so their shape holds for training and their level may
not.
"""

from __future__ import annotations

from functools import cache, lru_cache
from math import ceil, exp, log2
from pathlib import Path
from typing import Any

from simcore.model.gpu import Gpu
from simcore.model.operations.products import product_time
from simcore.model.operations.timing import OperationTime, constants_for
from simcore.records import NamedTuple

# Rows of the tiles that kernels choose from.
TILES = (16, 32, 64, 128, 256)
# The rate of `small` is that of tiles of so many rows.
WHOLE_TILE = 128
# Bytes of a number of the operands, with its share of a scale.
BYTES = {"bf16": 2.0, "fp8": 1.0, "fp8_block": 1.03125, "mxfp8": 1.03125, "nvfp4": 0.5625}
# Nobody measured MXFP8: assumed to be the blocks of 128 numbers, which Blackwell multiplies as MXFP8.
_TABLE = {"mxfp8": "fp8_block"}
# (hidden, ffn, topk, experts) of measured models whose experts have no gate, Nemotron's; no column says so.
NOT_GATED = frozenset({
    (2688, 1856, 6, 128), (2048, 5120, 22, 512), (8192, 5120, 22, 512), (1024, 2688, 22, 512),
    (4096, 2688, 22, 512),
})  # fmt: skip
# Products pay for a k that is no multiple of up to so many.
_ALIGNED = 32
# The faster of two kernels, without a step where they change: 9 % less where both take the same.
SHARPNESS = 8
# Shapes that the formula is off by less have no correction: log of the ratio.
LEAST_OFF = 0.15
# Tokens (log2) that the first number of a correction is for.
MIDDLE = 11


class Constants(NamedTuple):
    """Those of one kernel on one GPU. rate: FLOP/s of whole tiles. launch: s, of all kernels of the part.
    small: how much slower a tile of half the rows is, row by row. moved: s a number of the rows that go into
    a product. tail: share of the last tile that is waited for. weights: bytes/s. overlap: what computing and
    reading hide of each other, 0 nothing. token: s a number of the hidden state. sort: s a token's choice.
    expert: s each. others: share of other ranks' experts that cost, too. most: experts of all ranks that the
    kernel can have.
    """

    rate: float
    launch: float
    small: float
    row_element: float
    tail: float
    weights: float
    overlap: float
    token: float
    sort: float
    expert: float
    others: float
    most: float
    sms: int
    bytes: float
    hbm: float


@lru_cache(maxsize=1 << 12)
def experts_time(
    gpu: Gpu,
    precision: str,
    experts: int,
    each: float,
    hidden: int,
    ffn: int,
    gated: bool = True,
    tokens: float | None = None,
    topk: int = 1,
    of: int | None = None,
) -> OperationTime:
    """Returns what the forward pass of a rank's experts takes alone on a GPU, with sorting and adding up.

    each: tokens that an expert gets on average. ffn: inner size, on this rank. tokens: of which `topk`
    experts each were chosen out of `of`, on this rank; without them they came from an all-to-all, and are
    what the experts get. Raises `UsageError` for a precision that the GPU does not compute in, or that nobody
    measured.
    """
    rows = experts * each
    own = rows if tokens is None else tokens
    every = experts if of is None else of
    elements = (2 + gated) * hidden * ffn
    faster = []
    for constants in _kernels(gpu, precision):
        if every <= constants.most:
            expert_factor = 1 + constants.others * (every - experts) / experts
            full = experts * rows_of_tiles(each, constants.small) * expert_factor
            products = [
                product_parts(constants, experts * expert_factor, rows * expert_factor, full, columns, depth)
                for columns, depth in ((ffn * (1 + gated), hidden), (hidden, ffn))
            ]
            around = overhead_time(constants, own, topk, hidden, experts * expert_factor)
            time = around + sum(overlapped_time(constants, *pair) for pair in products)
            computes, reads = (sum(pair[index] for pair in products) for index in range(2))
            longest = max(constants.launch, computes, reads)
            bound_by = (
                "compute" if longest == computes else "launch" if longest == constants.launch else "memory"
            )
            faster.append((time, bound_by))
    time = float(sum(time**-SHARPNESS for time, _ in faster) ** (-1 / SHARPNESS))
    time *= _correction(gpu, precision, own, hidden, ffn, experts, topk, every)
    flops = 2.0 * rows * elements
    constants = _kernels(gpu, precision)[0]
    least = max(flops / (gpu.peak_of(precision) * 1e12), experts * elements * constants.bytes / constants.hbm)
    return OperationTime(max(time, least), min(faster)[1], flops)


@lru_cache(maxsize=1 << 14)
def grouped_product_time(
    gpu: Gpu, precision: str, experts: int, each: float, n: int, k: int
) -> OperationTime:
    """Returns what `experts` products of (each, k) and (k, n) take in one kernel.

    No sorting, no adding up, one launch, and never less than one product of that size takes. Raises
    `UsageError` as `experts_time` does.
    """
    rows = experts * each
    flops = 2.0 * rows * n * k
    launch = gpu.launch_us * 1e-6
    faster = []
    for constants in map(_without_cast, _kernels(gpu, precision)):
        full = experts * rows_of_tiles(each, constants.small)
        computes, reads = product_parts(constants, experts, rows, full, n, k)
        least = ((experts * n + rows) * k * constants.bytes + 2 * rows * n) / constants.hbm
        longest = max(computes, reads, least, launch)
        bound_by = "compute" if longest == computes else "launch" if longest == launch else "memory"
        faster.append((max(overlapped_time(constants, computes, reads), least), bound_by))
    time, bound_by = min(faster)
    return OperationTime(max(launch + time, _dense_time(gpu, precision, rows, n, k)), bound_by, flops)


def _dense_time(gpu: Gpu, precision: str, m: float, n: int, k: float) -> float:
    """What one product of the same size takes, s, without its cast: no group of them is faster.

    The kernels of inference that the experts were measured with are, by up to 8 % in BF16 on H100.
    """
    # Tokens in place of k: their number is not to cost what an unaligned k does.
    aligned = k if k % _ALIGNED == 0 else max(1, k // _ALIGNED) * _ALIGNED
    one = product_time(gpu, precision, max(1, round(m)), n, round(aligned))
    return one.seconds - one.cast


@lru_cache(maxsize=1 << 14)
def grouped_weight_gradient_time(
    gpu: Gpu, precision: str, experts: int, each: float, n: int, k: int, gradient_bytes: float = 8.0
) -> OperationTime:
    """Returns what the gradients of the weights (k, n) of `experts` take in one kernel.

    That is the products of (k, each) and (each, n). moved: bytes for a number of a gradient: 8 where a
    float32 is read, added to and written, 4 for two bytes. Small experts are bound by that: with 128 tokens
    each B200 reaches 8 % of its peak (SimuMax), the formula says 7. Raises `UsageError` as `experts_time`
    does.
    """
    rows = experts * each
    flops = 2.0 * rows * n * k
    launch = gpu.launch_us * 1e-6
    writes = experts * n * k * gradient_bytes / (gpu.hbm * 1e9 * gpu.elementwise)
    best, computes = float("inf"), 0.0
    for constants in map(_without_cast, _kernels(gpu, precision)):
        last = constants.tail * WHOLE_TILE**2 * constants.sms * each
        # Both operands are rows here: half of what each would be where it is the rows of a product.
        products_s = 2 * (rows * n * k + last) / constants.rate + rows * (n + k) / 2 * constants.row_element
        time = overlapped_time(constants, products_s, writes)
        if time < best:
            best, computes = time, products_s
    longest = max(computes, writes, launch)
    bound_by = "compute" if longest == computes else "launch" if longest == launch else "memory"
    return OperationTime(max(launch + best, _dense_time(gpu, precision, k, n, rows)), bound_by, flops)


def _without_cast(constants: Constants) -> Constants:
    """Those of products whose rows are cast before: measured parts of less than 16 bits cast them, training
    has an operation for it. A cast reads two bytes a number and writes `bytes` by rows and by columns.
    """
    if constants.bytes == BYTES["bf16"]:
        return constants
    return constants._replace(
        row_element=max(0.0, constants.row_element - (2 + 2 * constants.bytes) / constants.hbm)
    )


def rows_of_tiles(each: float, small: float) -> float:
    """Returns the rows that an expert costs: those of the tiles it fills, small ones by their pace."""
    return min(ceil(each / rows - 1e-9) * rows * (1 + small * (WHOLE_TILE / rows - 1)) for rows in TILES)


def product_parts(
    constants: Constants, experts: float, rows: float, full: float, columns: float, depth: float
) -> tuple[float, float]:
    """Returns (computing, reading weights) of a grouped product, s. full: rows and what fills tiles."""
    last = constants.tail * WHOLE_TILE**2 * constants.sms
    computes = 2 * depth * (full * columns + last) / constants.rate + rows * depth * constants.row_element
    return computes, experts * columns * depth * constants.bytes / constants.weights


def overlapped_time(constants: Constants, computes: float, reads: float) -> float:
    """Returns what computing and reading take side by side, s."""
    power = 1 + constants.overlap
    both: float = (computes**power + reads**power) ** (1 / power)
    return both


def overhead_time(constants: Constants, tokens: float, topk: float, hidden: float, experts: float) -> float:
    """Returns what is done around the products, s: launches, sorting, tokens in and out."""
    sorting = tokens * topk * constants.sort + experts * constants.expert
    return constants.launch + tokens * hidden * constants.token + sorting


@lru_cache(maxsize=64)
def _kernels(gpu: Gpu, precision: str) -> tuple[Constants, ...]:
    """Those of the nearest measured GPU, with the peak, SMs and memory of this one."""
    tables, base = constants_for(gpu, "experts", _TABLE.get(precision, precision))
    return tuple(constants_of(gpu, precision, table, base) for table in tables.values())


def constants_of(gpu: Gpu, precision: str, table: dict[str, Any], base: Gpu) -> Constants:
    """Returns those of a table of experts.toml, measured on `base`, for a GPU."""
    faster = gpu.peak_of(precision) / base.peak_of(precision) * gpu.grouped / base.grouped
    hbm = gpu.hbm * 1e9
    return Constants(
        rate=table["rate"] * faster * 1e12,
        launch=table["launch_us"] * 1e-6,
        small=table["small"],
        row_element=2 * table["moved"] / hbm,
        tail=table["tail"],
        weights=hbm * table["weights"],
        overlap=table["overlap"],
        token=2 * table["tokens"] / hbm,
        sort=table["sort_ns"] * 1e-9,
        expert=table["expert_ns"] * 1e-9,
        others=table.get("others", 0.0),
        most=table.get("most_experts", float("inf")),
        sms=gpu.sms,
        bytes=BYTES[precision],
        hbm=hbm,
    )


@cache
def _corrections() -> str:
    return (Path(__file__).parent / "experts.csv").read_text("utf-8")


@cache
def _corrections_of(gpu: str, precision: str) -> dict[tuple[int, ...], tuple[float, float]]:
    """Those of a GPU and precision by shape: the log of measured over formula, and its slope."""
    # A part of the file begins with its GPU and precision: 0.3 ms each, where all of them take 5.
    _, heading, rest = _corrections().partition(f"\n{gpu},{precision}\n")
    table: dict[tuple[int, ...], tuple[float, float]] = {}
    for line in rest.splitlines() if heading else ():
        cells = line.split(",")
        if len(cells) == 2:
            break
        hidden, ffn, experts, topk, every, at, slope = map(int, cells)
        table[hidden, ffn, experts, topk, every] = at / 100, slope / 100
    return table


def _correction(
    gpu: Gpu, precision: str, tokens: float, hidden: int, ffn: int, experts: int, topk: int, every: int
) -> float:
    """By what a shape measured on this GPU is off from the formula; 1 for any other shape."""
    # Of the GPU itself, or of one that a file takes values from; not of one that only has its kernels.
    table = _corrections_of(gpu.bases[0], precision) if gpu.bases else {}
    entry = table.get((hidden, ffn, experts, topk, every))
    return exp(entry[0] + entry[1] * (log2(tokens) - MIDDLE)) if entry and tokens > 0 else 1.0
