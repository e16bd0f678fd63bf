"""Fits the constants of matrix products (simcore/model/operations/products.toml) on measured ones.

../shared/validation/ops/*_gemm.csv.gz has them (ai-dynamo/aiconfigurator, Apache-2.0): one table of constants
for each GPU and precision, fitted on two thirds of its rows (`Product.is_fitted`), those of m
below 1,024 with half the weight. First the constants of the formula, then the tiles that gain nothing are
left out, then the correction. Needs numpy and scipy, which wltui does not.

Usage: python benchmarks/fit_products.py            writes products.toml
       python benchmarks/fit_products.py --check    tests on a third of the n, k or pairs, left out
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

try:
    import numpy as np
    from scipy.optimize import least_squares
except ImportError as missing:
    raise SystemExit(f"{missing.name} is missing: python -m pip install numpy scipy") from None

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measured_operations import GPUS, are_kept, is_check, products_of
from simcore.model.gpu import Gpu, find_gpu
from simcore.model.operations import products

OUT = Path(products.__file__).with_name("products.toml")
# Least, first and greatest value of each constant.
_BOUNDS = {
    "launch_us": (0.5, 4.0, 20.0), "tile_us": (0.02, 1.0, 10.0), "hbm": (0.3, 0.8, 1.0),
    "l2": (1.0, 15.0, 80.0), "split_us": (0.05, 2.0, 50.0), "wave": (0.0, 0.4, 1.0), "slow": (0.0, 0.15, 0.3),
    "slow_us": (500.0, 5000.0, 200000.0),
}  # fmt: skip
_CAST_BOUNDS = {"cast_us": (0.3, 4.0, 20.0), "cast": (0.03, 0.4, 0.95), "cast_row": (0.0, 50.0, 2000.0)}
_TILE_BOUND = (0.05, 0.7, 1.0)
_HALF_WEIGHT_BELOW = 1024
# A residual of so much counts by its size, no longer by its square: some rows are 40 % off their neighbours.
_OUTLIER = 0.05
# A class of tiles stays that lowers the cost by more than this share of it.
_GAIN = 0.003
_STARTS = 5

Rows = Any
"""An array of (m, n, k, us)."""


def formula_times(gpu: Gpu, precision: str, table: dict[str, Any], rows: Rows) -> Any:
    """`products.product_time` of all rows at once, us, for n and k of whole multiples of 32."""
    c = products.constants_of(gpu, precision, table | {"correction": "0 " * _CORRECTIONS}, gpu, table)
    m, n, k = rows[:, 0], rows[:, 1], rows[:, 2]
    best = np.full(len(rows), np.inf)
    for tile in c.tiles:
        tiles = np.ceil(m / tile.rows) * np.ceil(n / tile.columns)
        least = (tile.rows + tile.columns) * tiles * k * c.bytes / c.l2
        for parts in (1, 2, 4, 8):
            waves = c.wave * np.ceil(tiles * parts / c.sms)
            waves = waves + (1 - c.wave) * np.maximum(tiles * parts / c.sms, 1.0)
            time = np.maximum(waves * (tile.pace * k / parts + tile.overhead), least)
            if parts > 1:
                time = time + c.split + 8.0 * m * n * parts / c.l2
                time[(tiles * parts / 2 > 2 * c.sms) | (k < parts * products.LEAST_PART)] = np.inf
            best = np.minimum(best, time)
    best = best * (1 + c.slow * best / (best + c.slow_us))
    memory = (c.bytes * (m + n) * k + 2.0 * m * n) / c.hbm
    found = c.launch + (best**4 + memory**4) ** 0.25
    if c.cast_pace:
        found = found + (c.cast_us**4 + (m * (k + c.cast_row) / c.cast_pace) ** 4) ** 0.25
    return found


def times(gpu: Gpu, precision: str, table: dict[str, Any], rows: Rows) -> Any:
    """The same with the correction."""
    return formula_times(gpu, precision, table, rows) * (1 + _nodes(rows) @ table["correction"] / 100)


def fitted(gpu: Gpu, precision: str, rows: Rows) -> dict[str, Any]:
    """The constants that fit these rows best."""
    names = list(_BOUNDS) + (list(_CAST_BOUNDS) if precision != "bf16" else [])
    bounds = _BOUNDS | _CAST_BOUNDS | dict.fromkeys(products.TILES, _TILE_BOUND)
    weight = np.where(rows[:, 0] < _HALF_WEIGHT_BELOW, 0.5, 1.0)
    chance = np.random.default_rng(0)

    def best_of(kinds: list[str], begins: list[dict[str, float]]) -> tuple[float, dict[str, Any]]:
        chosen = names + kinds
        least, first, greatest = (
            np.array(side) for side in zip(*(bounds[name] for name in chosen), strict=True)
        )
        inside = 1e-3 * (greatest - least)
        found = [
            least_squares(
                lambda values: weight * np.log(
                    formula_times(gpu, precision, dict(zip(chosen, values, strict=True)), rows) / rows[:, 3]
                ),
                np.clip([begin[name] for name in chosen], least + inside, greatest - inside),
                bounds=(least, greatest), loss="soft_l1", f_scale=_OUTLIER, diff_step=1e-3,
                x_scale=np.maximum(first, 0.1), max_nfev=60,
            )
            for begin in begins
        ]  # fmt: skip
        best = min(found, key=lambda one: one.cost)
        return best.cost, dict(zip(chosen, map(float, best.x), strict=True))

    # Several starts: a tile that is nowhere the fastest has no slope.
    kinds = list(products.TILES)
    begins = [
        {
            name: bound[1] * float(np.exp(chance.normal(0, 0.3 * (start > 0))))
            for name, bound in bounds.items()
        }
        for start in range(_STARTS)
    ]
    cost, table = best_of(kinds, begins)
    for kind in list(products.TILES):
        fewer = [name for name in kinds if name != kind]
        if not fewer:
            break
        cost_without, without = best_of(fewer, [table])
        if cost_without < cost * (1 + _GAIN):
            kinds, cost, table = fewer, cost_without, without
    table = {name: float(f"{value:.3g}") for name, value in table.items()}
    return table | {
        "correction": _corrections(np.log(rows[:, 3] / formula_times(gpu, precision, table, rows)), rows)
    }


def _nodes(rows: Rows) -> Any:
    """The weight that each node of the grid of corrections has for each row."""
    found = np.ones((len(rows), 1))
    for column, grid in enumerate((products.GRID_M, products.GRID_NK, products.GRID_NK)):
        nodes, here = np.log2(grid), np.log2(rows[:, column])
        # The hat of each node is the interpolation of a one among zeros.
        hats = np.stack([np.interp(here, nodes, one) for one in np.eye(len(nodes))], axis=1)
        found = (found[:, :, None] * hats[:, None, :]).reshape(len(rows), -1)
    return found


_CORRECTIONS = len(products.GRID_M) * len(products.GRID_NK) ** 2


def _corrections(residual: Any, rows: Rows) -> list[int]:
    """Percent by node of the grid, from the logarithms of measured over computed: least squares, outliers
    weighted down, each node held to its neighbours as strongly as one row holds it.
    """
    weights = _nodes(rows)
    shape = (len(products.GRID_M), len(products.GRID_NK), len(products.GRID_NK))
    at = np.arange(_CORRECTIONS).reshape(shape)
    one = np.eye(_CORRECTIONS)
    held = [0.2 * one]
    for axis, count in enumerate(shape):
        held.append(
            one[at.take(range(1, count), axis).ravel()] - one[at.take(range(count - 1), axis).ravel()]
        )
    smooth = np.concatenate(held)
    found = np.zeros(_CORRECTIONS)
    for _ in range(5):
        trust = 1 / np.sqrt(1 + ((residual - weights @ found) / _OUTLIER) ** 2)
        trust *= np.where(rows[:, 0] < _HALF_WEIGHT_BELOW, 0.25, 1.0)
        weighted = weights * trust[:, None]
        found = np.linalg.solve(weighted.T @ weights + smooth.T @ smooth, weighted.T @ residual)
    return [round(100 * (np.exp(value) - 1)) for value in found]


def error(gpu: Gpu, precision: str, table: dict[str, Any], rows: Rows) -> str:
    """Median and 90th percentile of the errors of rows with m of 1,024 and more."""
    rows = rows[rows[:, 0] >= 1024]
    off = np.abs(times(gpu, precision, table, rows) / rows[:, 3] - 1)
    return f"median {np.median(off):6.1%}  p90 {np.quantile(off, 0.9):6.1%}  of {len(rows):,}"


def splits(rows: Rows) -> Iterator[tuple[str, Any]]:
    """What is left out to be tested on: pairs of n and k, values of n, of k. The least and greatest of them
    stay: the question is how well sizes between measured ones are met.
    """
    edges = (products.GRID_NK[0], products.GRID_NK[-1])
    for what, columns in {"(n, k)": (1, 2), "n": (1,), "k": (2,)}.items():
        yield what, _is_fitted(rows[:, columns]) | np.isin(rows[:, columns], edges).any(axis=1)


def _is_fitted(shapes: Rows) -> Any:
    return np.array(are_kept(shapes.tolist()))


_HEAD = """Constants of matrix products on a GPU in a precision, as products.py uses them. Made by
benchmarks/fit_products.py from ../shared/validation/ops (ai-dynamo/aiconfigurator, Apache-2.0), each table
fitted on two thirds of its rows.

launch_us: of a kernel. tile_us: of a tile of 128 x 256 besides its way through k. hbm: share of the GPU's.
l2: TB/s of the L2 cache. split_us: of adding the parts of a split k (50: it is not split). wave: how much is
lost of a last wave that is not full. slow, slow_us: how much longer products take that run for long, and what
is long.
cast_us, cast, cast_row: of casting the (m, k) operand: at least, share of hbm, numbers that a row counts
besides its own. big to tiny: share of the peak that tiles of 128 x 256 (big), 128 x 192 (wide), 128 x 128
(square), 64 x 256 (narrow), 64 x 128 (small) and 64 x 64 (tiny) reach; those that are missing gained nothing.
correction: percent by m (256, 1024, 4096, 32768), n and k (128, 512, 2048, 8192, 65536), k the fastest."""


def main() -> None:
    check = is_check(__doc__)
    tables = []
    lines = [f"# {line}".rstrip() for line in _HEAD.splitlines()]
    for name in GPUS:
        gpu = find_gpu(name)
        for precision, found in products_of(name).items():
            rows = np.array(found)
            for what, here in splits(rows) if check else [("shapes", _is_fitted(rows[:, :3]))]:
                table = fitted(gpu, precision, rows[here])
                print(
                    f"{name:8} {precision:10} {what:7} {error(gpu, precision, table, rows[~here])}",
                    flush=True,
                )
            if not check:
                lines += ["", f"[{name}.{precision}]", *(_line(key, value) for key, value in table.items())]
                tables.append((name, precision, table, rows))
    if check:
        return
    OUT.write_text("\n".join(lines) + "\n", "utf-8")
    # The formula is written twice, for numbers and for arrays.
    for name, precision, table, rows in tables:
        gpu = find_gpu(name)
        priced = [products.product_time(gpu, precision, *map(int, row[:3])).seconds * 1e6 for row in rows]
        if not np.allclose(priced, times(gpu, precision, table, rows), rtol=1e-9):
            raise SystemExit(f"{name} {precision}: products.py and this program differ")


def _line(key: str, value: float | list[int]) -> str:
    if not isinstance(value, list):
        return f"{key} = {value:g}"
    size = len(products.GRID_NK) ** 2
    planes = [" ".join(map(str, value[at : at + size])) for at in range(0, len(value), size)]
    return "\n".join([f'{key} = """', *planes, '"""'])


if __name__ == "__main__":
    main()
