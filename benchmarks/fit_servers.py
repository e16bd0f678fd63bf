"""Fits the constants of collectives inside a server (simcore/model/operations/servers.toml) on measured ones.

../shared/validation/ops/*_nccl.csv.gz has them (ai-dynamo/aiconfigurator, Apache-2.0): six constants for each
GPU and operation, fitted on two of three shapes. Needs numpy and scipy, which wltui does not.

    python -m benchmarks.fit_servers   writes servers.toml; the table of docs/accuracy.md tests it
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

try:
    import numpy as np
    from scipy.optimize import least_squares
except ImportError as missing:
    raise SystemExit(f"{missing.name} is missing: python -m pip install numpy scipy") from None

from benchmarks.measured_operations import GPUS, measured
from simcore.model.operations import servers

OUT = Path(servers.__file__).with_name("servers.toml")
# Least, first and greatest value of each constant.
_BOUNDS = {
    "first_us": (1.0, 8.0, 50.0), "more_us": (0.01, 1.0, 10.0), "bandwidth": (50.0, 300.0, 900.0),
    "lost": (1e-3, 0.4, 1.5), "filling_us": (0.1, 20.0, 200.0), "half_mb": (0.05, 5.0, 200.0),
}  # fmt: skip
# A residual of so much counts by its size, no longer by its square: some rows are 80 % off their neighbours.
_OUTLIER = 0.08

Rows = Any
"""An array of (GPUs, bytes, s)."""


def rows_of(gpu: str) -> dict[str, Rows]:
    """Returns by operation the measured collectives of a GPU that constants are fitted on."""
    return {
        operation: np.array(
            [(one.sizes[0], 2 * one.sizes[1], 1e-6 * one.us) for one in ones if one.is_fitted]
        )
        for operation, ones in measured(gpu, "nccl").items()
    }


def times(operation: str, table: dict[str, float], rows: Rows) -> Any:
    """Returns `servers.collective_in_server` of all rows at once, s."""
    gpus, size = rows.T[:2]
    return servers.send_time(
        servers.constants_of(table, 1.0), servers.sent_share(operation, gpus) * size, gpus
    )


def fitted(operation: str, rows: Rows) -> dict[str, float]:
    """Returns the constants that fit these rows best."""
    least, first, greatest = (np.log(side) for side in zip(*_BOUNDS.values(), strict=True))

    def table_of(values: Any) -> dict[str, float]:
        return dict(zip(_BOUNDS, np.exp(values), strict=True))

    found = least_squares(
        lambda values: np.log(times(operation, table_of(values), rows) / rows[:, 2]), first,
        bounds=(least, greatest), loss="soft_l1", f_scale=_OUTLIER,
    )  # fmt: skip
    return {key: float(f"{value:.4g}") for key, value in table_of(found.x).items()}


def main() -> None:
    lines = [f"# {line}".rstrip() for line in HEAD.splitlines()]
    for name in GPUS:
        for operation, rows in rows_of(name).items():
            table = fitted(operation, rows)
            lines += ["", f"[{name}.{operation}]", *(f"{key} = {value:g}" for key, value in table.items())]
    OUT.write_text("\n".join(lines) + "\n", "utf-8")


HEAD = """Constants of NCCL's collectives inside a server, as servers.py uses them. Made by
benchmarks/fit_servers.py from ../shared/validation/ops (ai-dynamo/aiconfigurator, Apache-2.0), each table
fitted on two of three of its shapes.

first_us, more_us: latency among two GPUs, and of each one more. bandwidth: GB/s that many GPUs reach. lost:
share of it that is lost to one GPU, half of that to two. filling_us: of long messages, and half_mb: megabytes
sent of one that has half of it."""


if __name__ == "__main__":
    main()
