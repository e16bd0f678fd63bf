"""Fits the constants of attention (simcore/model/operations/attention.toml) on measured forward passes.

../shared/validation/ops/*_attention.csv.gz has them (ai-dynamo/aiconfigurator, Apache-2.0): one table of
constants for each GPU and precision, fitted on two of three shapes; the table of docs/accuracy.md has the
others. Ratios of backward are medians of ../shared/validation/simumax_*_ops.json (SimuMax, Apache-2.0). Needs
numpy and scipy, which wltui does not.

    python -m benchmarks.fit_attention           writes attention.toml
    python -m benchmarks.fit_attention --check   leaves out numbers of heads, or lengths, and tests on them
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

try:
    import numpy as np
    from scipy.optimize import least_squares
except ImportError as missing:
    raise SystemExit(f"{missing.name} is missing: python -m pip install numpy scipy") from None

from benchmarks.measured_operations import FOLDER, GPUS, LEAST, are_kept, is_check, measured
from simcore.model.gpu import Gpu, find_gpu
from simcore.model.operations import attention

OUT = Path(attention.__file__).with_name("attention.toml")
SIMUMAX = {"a100-80": "simumax_a100_pcie_ops.json", "b200": "simumax_b200_ops.json"}
# Least, first and greatest value of what all head sizes have in common.
_BOUNDS = {
    "launch_us": (2.0, 8.0, 50.0), "copies": (0.1, 2.0, 20.0), "slow": (0.0, 0.1, 0.5),
    "slow_ms": (0.3, 10.0, 100.0),
}  # fmt: skip
# The same of each head size. rate: share of the peak.
_OF_HEAD_SIZE = {"rate": (0.05, 0.6, 1.0), "extra": (1.0, 400.0, 4000.0), "tail": (0.05, 0.7, 5.0)}
# A residual of so much counts by its size, no longer by its square.
_OUTLIER = 0.03
# Forward and backward are compared with at least so many queries x heads: fewer leave SMs idle, more so
# forward.
_ENOUGH_WORK = 1 << 18

Rows = Any
"""An array of (batch, length, heads, kv heads, head size, s)."""


def rows_of(gpu: str, fitted_alone: bool = False) -> dict[str, Rows]:
    """Returns the measured forward passes of a GPU by precision; or those that constants are fitted on."""
    return {
        precision: np.array(
            [(*one.sizes, 1e-6 * one.us) for one in ones if one.is_fitted or not fitted_alone], float
        )
        for precision, ones in measured(gpu, "attention").items()
    }


def times(gpu: Gpu, table: dict[str, Any], rows: Rows) -> Any:
    """Returns `attention.attention_time` of all rows at once, s."""
    batch, length, heads, kv_heads, size = rows.T[:5]
    place = np.searchsorted(table["head_sizes"], size)
    rate, extra, tail = (np.array(table[key])[place] for key in _OF_HEAD_SIZE)
    hbm = gpu.hbm * 1e9
    constants = attention.Constants(
        table["launch_us"] * 1e-6, table["copies"] / hbm, table["slow"], table["slow_ms"] * 1e-3,
        rate * 1e12, extra, tail, gpu.sms, hbm,
    )  # fmt: skip
    copied = 4.0 * batch * length * kv_heads * size
    moved = copied + 4.0 * batch * length * heads * size
    both = sum(attention.part_times(constants, batch, length, heads, 2 * size, length / 2, length, copied))
    return constants.launch + np.maximum(both, moved / hbm)


def fitted(gpu: Gpu, precision: str, rows: Rows) -> dict[str, Any]:
    """Returns the constants that fit these rows best."""
    sizes = sorted(set(rows[:, 4]))
    bounds = [*_BOUNDS.values(), *(bound for bound in _OF_HEAD_SIZE.values() for _ in sizes)]
    least, first, greatest = (np.array(side) for side in zip(*bounds, strict=True))

    def table_of(values: Any) -> dict[str, Any]:
        per_size = np.array(values[len(_BOUNDS) :]).reshape(len(_OF_HEAD_SIZE), len(sizes))
        table: dict[str, Any] = dict(zip(_BOUNDS, values, strict=False))
        table["head_sizes"] = [int(size) for size in sizes]
        table |= {key: list(row) for key, row in zip(_OF_HEAD_SIZE, per_size, strict=True)}
        table["rate"] = [share * gpu.peak_of(precision) for share in table["rate"]]
        return table

    found = least_squares(
        lambda values: np.log(times(gpu, table_of(values), rows) / rows[:, 5]), first,
        bounds=(least, greatest), loss="soft_l1", f_scale=_OUTLIER, x_scale=first,
    )  # fmt: skip
    return {
        key: [float(f"{one:.4g}") for one in value] if isinstance(value, list) else float(f"{value:.4g}")
        for key, value in table_of(found.x).items()
    }


def backward_ratios(gpu: str) -> dict[int, float]:
    """Returns by head size how many times as long as forward the backward pass takes in SimuMax's table."""
    ops = json.loads((FOLDER.parent / SIMUMAX[gpu]).read_text("utf-8"))["accelerator"]["op"]
    forward, backward = (ops[name]["accurate_efficient_factor"] for name in ("sdp_fwd", "sdp_bwd"))
    found: dict[int, list[float]] = {}
    for shape, efficiency in forward.items():
        of = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", shape)}
        if of["batch"] * of["seq_len"] * of["head_num"] >= _ENOUGH_WORK and shape in backward:
            # Backward has five products where forward has two.
            found.setdefault(of["qk_head_dim"], []).append(2.5 * efficiency / backward[shape])
    return {size: round(median(ratios), 3) for size, ratios in sorted(found.items())}


def errors(gpu: Gpu, table: dict[str, Any], rows: Rows) -> tuple[float, float, int]:
    """Returns (median, 90th percentile, how many) of the errors of lengths of 1,024 and more."""
    rows = rows[rows[:, 1] >= LEAST]
    error = np.abs(times(gpu, table, rows) / rows[:, 5] - 1)
    return float(np.median(error)), float(np.quantile(error, 0.9)), len(rows)


def splits(rows: Rows) -> Iterator[tuple[str, Any]]:
    """What is left out to be tested on."""
    _, length, heads, _, _ = rows.T[:5]
    ways = {"a third of the heads": [heads], "a third of the lengths": [length]}
    for what, columns in ways.items():
        yield what, np.array(are_kept(zip(*columns, strict=True)))


def main() -> None:
    check = is_check(__doc__)
    lines = [f"# {line}".rstrip() for line in HEAD.splitlines()]
    for name in GPUS:
        gpu = find_gpu(name)
        for precision, rows in rows_of(name, fitted_alone=not check).items():
            if check:
                for what, here in splits(rows):
                    show(name, precision, what, errors(gpu, fitted(gpu, precision, rows[here]), rows[~here]))
                continue
            table = fitted(gpu, precision, rows)
            show(name, precision, "what it is fitted on", errors(gpu, table, rows))
            lines += [
                "",
                f"[{name}.{precision}]",
                *(f"{key} = {_written(value)}" for key, value in table.items()),
            ]
    if check:
        return
    for name in SIMUMAX:
        ratios = backward_ratios(name)
        lines += [
            "",
            f"[backward.{name}]",
            f"head_sizes = {list(ratios)}",
            f"ratio = {list(ratios.values())}",
        ]
    OUT.write_text("\n".join(lines) + "\n", "utf-8")


def _written(value: Any) -> str:
    return f"[{', '.join(f'{one:g}' for one in value)}]" if isinstance(value, list) else f"{value:g}"


def show(gpu: str, precision: str, what: str, found: tuple[float, float, int]) -> None:
    """Prints a line of the check."""
    middle, p90, count = found
    print(f"{gpu:8} {precision:10} {what:24} median {middle:6.1%}  p90 {p90:6.1%}  {count:6,}", flush=True)


HEAD = """Constants of the forward pass of attention on a GPU in a precision, as attention.py uses them. Made
by benchmarks/fit_attention.py from ../shared/validation/ops (ai-dynamo/aiconfigurator, Apache-2.0), each
table fitted on two of three of its shapes.

launch_us: of the kernels. copies: passes over keys and values, in bytes of 16-bit numbers. slow, slow_ms: how
much longer a kernel takes that runs for long, and what is long. By head size: rate: TFLOP/s under the causal
mask. extra: keys that a query costs besides those that it sees. tail: share of the longest tile that is
waited for. [backward]: ratios of backward to forward, medians of SimuMax's tables (Apache-2.0) of shapes that
fill the GPU."""


if __name__ == "__main__":
    main()
