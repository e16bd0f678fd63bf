"""Fits the constants of experts (simcore/model/operations/experts.toml, experts.csv) on measured forward
passes.

../shared/validation/ops/*_moe.csv.gz has them (ai-dynamo/aiconfigurator, Apache-2.0): one table of constants
for each GPU and precision, two for NVFP4, fitted on two of three shapes, and then the corrections of those
that are off; the table of docs/accuracy.md has the others. Needs numpy and scipy, which wltui does not.

    python -m benchmarks.fit_experts           writes experts.toml and experts.csv
    python -m benchmarks.fit_experts --check   leaves out models, or inner sizes, and tests on them
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

try:
    import numpy as np
    from scipy.optimize import least_squares
except ImportError as missing:
    raise SystemExit(f"{missing.name} is missing: python -m pip install numpy scipy") from None

from benchmarks.measured_operations import GPUS, LEAST, are_kept, is_check, measured
from simcore.model.gpu import Gpu, find_gpu
from simcore.model.operations import experts

OUT = Path(experts.__file__).with_name("experts.toml")
CORRECTIONS = OUT.with_suffix(".csv")
# Least, first and greatest value of each constant. rate: share of the peak.
_BOUNDS = {
    "rate": (0.2, 0.6, 1.0), "launch_us": (3.0, 20.0, 60.0), "small": (1e-3, 0.1, 2.0),
    "moved": (1e-3, 2.0, 60.0), "tail": (1e-3, 1.0, 20.0), "weights": (0.5, 0.8, 1.0),
    "overlap": (0.2, 1.0, 8.0), "tokens": (1e-3, 2.0, 20.0), "sort_ns": (1e-3, 0.2, 2.0),
    "expert_ns": (1e-2, 10.0, 1000.0),
}  # fmt: skip
# The second kernel of NVFP4 has at most so many experts: TensorRT-LLM measured it for no more.
_SECOND = {"nvfp4": ("few", {"others": (0.01, 0.5, 1.0)}, {"most_experts": 256})}
# A residual of so much counts by its size, and much greater ones hardly: a tenth of the kernels was badly
# chosen.
_OUTLIER = 0.08
# A correction needs so many rows of its shape; with so many it has a slope over the tokens.
_ROWS, _ROWS_OF_SLOPE = 2, 4

Rows = Any
"""An array of (tokens, hidden, ffn of a rank, topk, experts, experts of a rank, gated, s)."""


def rows_of(gpu: str, fitted_alone: bool = False) -> dict[str, Rows]:
    """Returns the measured forward passes of a GPU by precision; or those that constants are fitted on."""
    found: dict[str, list[tuple[float, ...]]] = {}
    for precision, ones in measured(gpu, "moe").items():
        for one in ones:
            tokens, hidden, inner, topk, every, tp, ep = one.sizes
            if one.is_fitted or not fitted_alone:
                gated = (hidden, inner, topk, every) not in experts.NOT_GATED
                row = (tokens, hidden, inner / tp, topk, every, every / ep, gated, 1e-6 * one.us)
                found.setdefault(precision, []).append(row)
    return {precision: np.array(rows, float) for precision, rows in found.items()}


def times(gpu: Gpu, precision: str, tables: dict[str, Any], rows: Rows) -> Any:
    """Returns `experts.experts_time` of all rows at once, s, without corrections."""
    tokens, hidden, ffn, topk, every, own, gated = rows.T[:7]
    found: Any = None
    for table in tables.values():
        constants = experts.constants_of(gpu, precision, table, gpu)
        counted = own + constants.others * (every - own)
        load = tokens * topk / every
        full = counted * np.min(
            [
                np.ceil(load / tile - 1e-9) * tile * (1 + constants.small * (experts.WHOLE_TILE / tile - 1))
                for tile in experts.TILES
            ],
            axis=0,
        )
        time = experts.overhead_time(constants, tokens, topk, hidden, counted)
        for columns, depth in ((ffn * (1 + gated), hidden), (hidden, ffn)):
            parts = experts.product_parts(constants, counted, counted * load, full, columns, depth)
            time = time + experts.overlapped_time(constants, *parts)
        time = np.where(every > constants.most, np.inf, time)
        sharp = experts.SHARPNESS
        found = time if found is None else (found**-sharp + time**-sharp) ** (-1 / sharp)
    return found


def fitted(gpu: Gpu, precision: str, rows: Rows) -> dict[str, dict[str, float]]:
    """Returns the constants that fit these rows best, of each kernel."""
    kernels = {"all": (_BOUNDS, {})}
    if precision in _SECOND:
        name, more, fixed = _SECOND[precision]
        kernels[name] = (_BOUNDS | more, fixed)
    bounds = [bound for each, _ in kernels.values() for bound in each.values()]
    least, first, greatest = (np.log(side) for side in zip(*bounds, strict=True))

    def tables_of(values: Any) -> dict[str, Any]:
        rest = iter(np.exp(values))
        tables = {name: {key: next(rest) for key in each} | fixed for name, (each, fixed) in kernels.items()}
        for table in tables.values():
            table["rate"] *= gpu.peak_of(precision)
        return tables

    found = least_squares(
        lambda values: np.log(times(gpu, precision, tables_of(values), rows) / rows[:, 7]), first,
        bounds=(least, greatest), loss="cauchy", f_scale=_OUTLIER,
    )  # fmt: skip
    return {
        name: {key: float(f"{value:.4g}") for key, value in table.items()}
        for name, table in tables_of(found.x).items()
    }


def corrections(residuals: Any, rows: Rows) -> dict[tuple[int, ...], tuple[float, float]]:
    """Returns by shape (hidden, ffn, experts, topk, experts of all ranks) the log of the ratio of measured to
    formula at 2^`experts.MIDDLE` tokens, and by what it grows with each doubling.
    """
    found: dict[tuple[int, ...], list[int]] = {}
    for index, (_, hidden, ffn, topk, every, own, _, _) in enumerate(rows):
        found.setdefault((int(hidden), int(ffn), int(own), int(topk), int(every)), []).append(index)
    result = {}
    for shape, indices in sorted(found.items()):
        off = residuals[indices]
        middle = float(np.median(off))
        if len(indices) < _ROWS or abs(middle) < experts.LEAST_OFF:
            continue
        if len(indices) < _ROWS_OF_SLOPE:
            result[shape] = middle, 0.0
            continue
        doublings = np.log2(rows[indices, 0]) - experts.MIDDLE
        columns = np.stack([np.ones(len(indices)), doublings], axis=1)
        # The slope is held back as by one row more that has none.
        normal = columns.T @ columns + np.diag([0.0, 1.0])
        at, slope = np.linalg.solve(normal, columns.T @ off)
        result[shape] = float(at), float(slope)
    return result


def residuals(gpu: Gpu, precision: str, tables: dict[str, Any], rows: Rows) -> Any:
    """Returns the logs of the ratios of measured to formula."""
    return np.log(rows[:, 7] / times(gpu, precision, tables, rows))


def errors(residual: Any, rows: Rows) -> tuple[float, float, int]:
    """Returns (median, 90th percentile, how many) of the errors of 1,024 tokens and more."""
    error = np.abs(np.exp(-residual[rows[:, 0] >= LEAST]) - 1)
    return float(np.median(error)), float(np.quantile(error, 0.9)), len(error)


def splits(rows: Rows) -> Iterator[tuple[str, Any]]:
    """What is left out to be tested on."""
    _, hidden, ffn, topk, every, _ = rows.T[:6]
    ways = {"a third of the models": [hidden, topk, every], "a third of the ffn": [ffn]}
    for what, columns in ways.items():
        yield what, np.array(are_kept(zip(*columns, strict=True)))


def main() -> None:
    check = is_check(__doc__)
    lines = [f"# {line}".rstrip() for line in HEAD.splitlines()]
    table = ["hidden,ffn,experts,topk,of,percent,percent_a_doubling"]
    for name in GPUS:
        gpu = find_gpu(name)
        for precision, rows in rows_of(name, fitted_alone=not check).items():
            if check:
                for what, here in splits(rows):
                    tables = fitted(gpu, precision, rows[here])
                    off = residuals(gpu, precision, tables, rows[~here])
                    show(name, precision, what, errors(off, rows[~here]))
                continue
            tables = fitted(gpu, precision, rows)
            off = residuals(gpu, precision, tables, rows)
            show(name, precision, "all, the formula alone", errors(off, rows))
            for kernel, constants in tables.items():
                lines += ["", f"[{name}.{precision}.{kernel}]"]
                lines += [f"{key} = {value:g}" for key, value in constants.items()]
            table.append(f"{name},{precision}")
            for shape, (at, slope) in corrections(off, rows).items():
                table.append(",".join(map(str, (*shape, round(100 * at), round(100 * slope)))))
    if not check:
        OUT.write_text("\n".join(lines) + "\n", "utf-8")
        CORRECTIONS.write_text("\n".join(table) + "\n", "utf-8")


def show(gpu: str, precision: str, what: str, found: tuple[float, float, int]) -> None:
    """Prints a line of the check."""
    middle, p90, count = found
    print(f"{gpu:8} {precision:10} {what:24} median {middle:6.1%}  p90 {p90:6.1%}  {count:6,}", flush=True)


HEAD = """Constants of the forward pass of experts on a GPU in a precision, as experts.py uses them. Made by
benchmarks/fit_experts.py from ../shared/validation/ops (ai-dynamo/aiconfigurator, Apache-2.0), each table
fitted on two of three of its shapes.

rate: TFLOP/s of whole tiles. launch_us: of all kernels. small: how much slower a tile of half the rows is,
row by row. moved: passes over the rows that go into a product, in bytes of 16-bit numbers. tail: share of the
last tile that is waited for. weights: share of hbm that reading them reaches. overlap: what computing and
reading hide of each other, 0 nothing. tokens: passes over the hidden state. sort_ns: a token's choice.
expert_ns: an expert. others, most_experts: of a second kernel, the share of other ranks' experts that cost,
too, and how many experts it can have at most."""


if __name__ == "__main__":
    main()
