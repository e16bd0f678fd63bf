"""The time of a matrix product on a GPU, (m, k) by (k, n), by its shape and precision.

A formula times a correction. The formula: the fastest of a few tiles, each with its waves over the SMs and
its way through k, or what the memory needs; a launch; with less than 16 bits also the cast of the (m, k)
operand, which the measured products have in them. The correction is interpolated between 4 x 5 x 5 shapes,
the logarithms of m, n and k; without it the medians are a quarter higher.

products.toml has both, made by benchmarks/fit_products.py from ../shared/validation/ops
(ai-dynamo/aiconfigurator, Apache-2.0: products measured alone, m of 256 to 32,768, n and k of 128 to 65,536,
all multiples of 128). docs/accuracy.md has the errors on rows that were left out. Two things have no measured
table: MXFP8, assumed to be FP8 of Blackwell with a scale to each 32 numbers, and sizes that are no multiples
of 16 bytes (`_UNALIGNED`).
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from math import inf, log2
from typing import Any

from simcore.diagnostics import UsageError, printable
from simcore.model.gpu import Gpu, find_gpu
from simcore.model.operations.timing import constants_for, tables_of
from simcore.records import NamedTuple

# Bytes of a number of the operands, with its share of a scale: 4 bytes to 128 numbers in blocks, 1 to 16 of
# NVFP4, 1 to 32 of MXFP8.
BYTES = {"bf16": 2.0, "fp8": 1.0, "fp8_block": 1.03125, "mxfp8": 1.03125, "nvfp4": 0.5625}
_MEASURED_AS = {"mxfp8": "fp8"}
# (rows, columns) of the tiles of a class.
TILES = {
    "big": ((128, 256), (256, 128)),
    "wide": ((128, 192), (192, 128)),
    "square": ((128, 128),),
    "narrow": ((64, 256), (256, 64)),
    "small": ((64, 128), (128, 64)),
    "tiny": ((64, 64),),
}
_LARGEST = 128 * 256
# k of at least so many numbers is left to each part where k is split.
LEAST_PART = 256
# Shapes that corrections are given for.
GRID_M = (256, 1024, 4096, 32768)
GRID_NK = (128, 512, 2048, 8192, 65536)
# n and k that products of fewer bits need multiples of (cuBLAS, Transformer Engine): operands are padded.
_MULTIPLE = {"fp8": 16, "fp8_block": 16, "mxfp8": 32, "nvfp4": 32}
# Rows of 2-byte numbers that begin at no multiple of 16 bytes are what the kernels of Hopper and Blackwell
# cannot load: those of Ampere run, and these 1.4 times as long (BF16 on an RTX 4090, whose kernels these are:
# 1.35 to 1.46 at four sizes, pytorch/pytorch issue 181718).
_ALIGNED = 8
_UNALIGNED = 1.4
# Without the copies of Hopper (TMA), rows that begin at no multiple of 128 bytes are loaded in more pieces
# (NVIDIA, Matrix Multiplication Background: multiples of 64 FP16 numbers on A100). How much longer is of
# published steps: layers of hidden 14400 on tp 8, 1,800 a rank, took 1.36 times as long as those of 14336 in
# BigScience's runs, six sevenths of that in products.
_WHOLE_LINE = 64
_PART_LINES = 1.4
_AMPERE = "a100-80"


class ProductTime(NamedTuple):
    """What a product takes. seconds: with its launch and cast. cast: s of these that casting the (m, k)
    operand takes, 0 for bf16. bound: `compute`, `memory` or `launch`, by what takes longest.
    """

    seconds: float
    bound_by: str
    cast: float


class _Tile(NamedTuple):
    """rows, columns: its size. pace: us for each unit of k; unaligned: that of rows at no multiple of 16
    bytes. fixed: us besides.
    """

    rows: int
    columns: int
    pace: float
    unaligned: float
    overhead: float


class Constants(NamedTuple):
    """Those of products.toml, on one GPU: us, bytes/us and numbers/us. correction: by m, n and k of the grid,
    what the formula's time is multiplied by.
    """

    launch: float
    hbm: float
    l2: float
    split: float
    wave: float
    slow: float
    slow_us: float
    cast_us: float
    cast_pace: float
    cast_row: float
    bytes: float
    sms: int
    multiple: int
    tiles: tuple[_Tile, ...]
    correction: tuple[tuple[tuple[float, ...], ...], ...]


@lru_cache(maxsize=1 << 16)
def product_time(gpu: Gpu, precision: str, m: int, n: int, k: int) -> ProductTime:
    """Returns what the product of (m, k) and (k, n) takes alone on a GPU.

    precision: bf16, fp8 (a scale to each operand), fp8_block (to 128 numbers or 128 x 128), mxfp8 or nvfp4;
    the result has 2 bytes a number. Raises `UsageError` where the GPU has no such products.
    """
    constants = _constants(gpu, precision)
    if constants.multiple:
        n, k = (-(-size // constants.multiple) * constants.multiple for size in (n, k))
        unaligned = False
    else:
        unaligned = bool(n % _ALIGNED or k % _ALIGNED)
    compute = _tiles_time(constants, m, n, k, unaligned)
    if not gpu.peak_fp8 and not unaligned and (n % _WHOLE_LINE or k % _WHOLE_LINE):
        compute *= _PART_LINES
    memory = (constants.bytes * (m + n) * k + 2.0 * m * n) / constants.hbm
    # What takes longer hides most of the other.
    both = (compute**4 + memory**4) ** 0.25
    cast = cast_memory = 0.0
    if constants.cast_pace:
        cast_memory = m * (k + constants.cast_row) / constants.cast_pace
        cast = (constants.cast_us**4 + cast_memory**4) ** 0.25
    factor = _correction(constants.correction, m, n, k) * 1e-6
    if compute >= memory and compute >= cast_memory:
        bound_by = "compute" if compute > constants.launch else "launch"
    else:
        bound_by = "memory" if max(memory, cast_memory) > constants.launch else "launch"
    return ProductTime((constants.launch + both + cast) * factor, bound_by, cast * factor)


def _tiles_time(constants: Constants, m: int, n: int, k: int, unaligned: bool) -> float:
    """What the fastest tile needs, us: waves over the SMs, and operands out of the L2 cache."""
    best = inf
    part, sms, l2 = constants.wave, constants.sms, constants.l2
    loaded = k * constants.bytes / l2
    for rows, columns, aligned_pace, unaligned_pace, overhead in constants.tiles:
        tiles = -(-m // rows) * -(-n // columns)
        depth_time = k * (unaligned_pace if unaligned else aligned_pace)
        least = (rows + columns) * tiles * loaded
        parts = 1
        while True:
            full_waves = -(-tiles * parts // sms)
            # SMs that share the last tiles, and tiles of other shapes, fill some of the last wave.
            waves = part * full_waves + (1 - part) * max(tiles * parts / sms, 1.0)
            time = max(waves * (depth_time / parts + overhead), least)
            if parts > 1:
                time += constants.split + 8.0 * m * n * parts / l2
            if time < best:
                best = time
            # A product that fills the SMs gains nothing by more parts.
            if parts == 8 or tiles * parts > 2 * sms or k < 2 * parts * LEAST_PART:
                break
            parts *= 2
    # Long products run into the power limit.
    return best * (1 + constants.slow * best / (best + constants.slow_us))


def _correction(grid: tuple[tuple[tuple[float, ...], ...], ...], m: int, n: int, k: int) -> float:
    """Interpolated between the eight shapes around this one; outside of the grid, that of its edge."""
    at_m, of_m = _grid_position(_LOG_M, m)
    at_n, of_n = _grid_position(_LOG_NK, n)
    at_k, of_k = _grid_position(_LOG_NK, k)
    factor = 0.0
    for plane, weight in ((grid[at_m], 1 - of_m), (grid[at_m + 1], of_m)):
        row, next_row = plane[at_n], plane[at_n + 1]
        factor += weight * (
            (1 - of_n) * (row[at_k] + of_k * (row[at_k + 1] - row[at_k]))
            + of_n * (next_row[at_k] + of_k * (next_row[at_k + 1] - next_row[at_k]))
        )
    return factor


_LOG_M = tuple(log2(size) for size in GRID_M)
_LOG_NK = tuple(log2(size) for size in GRID_NK)


def _grid_position(logs: tuple[float, ...], size: int) -> tuple[int, float]:
    """(the node before a size, how far it is to the next)."""
    here = log2(size)
    at = min(max(bisect_right(logs, here) - 1, 0), len(logs) - 2)
    return at, min(max((here - logs[at]) / (logs[at + 1] - logs[at]), 0.0), 1.0)


@lru_cache(maxsize=256)
def _constants(gpu: Gpu, precision: str) -> Constants:
    """Those of the GPU it takes values from. Raises `UsageError` where it has no such products."""
    if precision not in BYTES:
        raise UsageError(f"--precision {printable(precision, 40)}: expected one of {', '.join(BYTES)}")
    gpu.peak_of(precision)
    table, base = constants_for(gpu, "products", _MEASURED_AS.get(precision, precision))
    return constants_of(gpu, precision, table, base, tables_of("products")[_AMPERE]["bf16"])


def constants_of(
    gpu: Gpu, precision: str, table: dict[str, Any], base: Gpu, ampere: dict[str, Any]
) -> Constants:
    """Those of a table of products.toml, measured on `base`, with the peak, SMs and memory of `gpu`.

    ampere: the table of A100's products, whose kernels unaligned ones run.
    """
    bytes_of_number = BYTES[precision]
    share = gpu.matmul / base.matmul
    # FLOP/us of an SM.
    pace = gpu.peak_of(precision) * 1e6 / gpu.sms
    old = find_gpu(_AMPERE)
    slowest = max(ampere[kind] for kind in TILES if kind in ampere) * old.peak * 1e6 / old.sms / _UNALIGNED
    tiles = []
    for kind in TILES:
        if kind not in table:
            continue
        reached = pace * min(table[kind] * share, 1.0)
        for rows, columns in TILES[kind]:
            area = rows * columns
            tiles.append(
                _Tile(rows, columns, 2.0 * area / reached, 2.0 * area / min(reached / _UNALIGNED, slowest),
                      table["tile_us"] * area / _LARGEST)
            )  # fmt: skip
    hbm = gpu.hbm * 1e3
    cast = precision != "bf16"
    flat = [1 + int(percent) / 100 for percent in table["correction"].split()]
    size = len(GRID_NK)
    return Constants(
        launch=table["launch_us"],
        hbm=hbm * table["hbm"],
        l2=table["l2"] * 1e6 * gpu.sms / base.sms,
        split=table["split_us"],
        wave=table["wave"],
        slow=table["slow"],
        slow_us=table["slow_us"],
        cast_us=table["cast_us"] if cast else 0.0,
        cast_pace=hbm * table["cast"] / (2 + bytes_of_number) if cast else 0.0,
        cast_row=table["cast_row"] if cast else 0.0,
        bytes=bytes_of_number,
        sms=gpu.sms,
        multiple=_MULTIPLE.get(precision, 0),
        tiles=tuple(tiles),
        correction=tuple(
            tuple(tuple(flat[at : at + size]) for at in range(plane, plane + size * size, size))
            for plane in range(0, len(flat), size * size)
        ),
    )
