"""Constants of a GPU and the engine on it, from which costs of ops are computed (gpus.toml has the
sources).
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

from simcore.diagnostics import Diagnostic, InputError, UsageError, did_you_mean, printable
from simcore.model.toml_text import TomlProblem, locate_in_table, parse_toml, read_text
from simcore.names import GPU_NAMES, PRECISIONS
from simcore.ranks import ranks_of_domain
from simcore.records import Struct
from simcore.workload.model import InputNetwork

_EXPECTED = "constants of a GPU"
_TABLE = "gpu"


class Gpu(Struct, frozen=True):
    """The constants of a GPU. The fields are documented in gpus.toml: TFLOP/s, GB/s, GB, us and ns."""

    name: str
    peak: float
    peak_fp8: float
    peak_fp4: float
    power: float
    sustained: float
    sustained_fp8: float
    sustained_fp4: float
    spread: float
    flash_2: float
    hbm: float
    memory: float
    sms: int
    matmul: float
    grouped: float
    flash_forward: float
    flash_backward: float
    batched: float
    elementwise: float
    permute: float
    cross_entropy: float
    launch_us: float
    host_us: float
    server: int
    nvlink: float
    nvlink_ns: float
    network: float
    network_ns: float
    source: str = ""
    peak_fp32: float = 0.0
    bases: tuple[str, ...] = ()
    """Names of gpus.toml whose values it takes, the nearest first; one of gpus.toml begins with itself."""

    def peak_of(self, precision: str) -> float:
        """Returns dense TFLOP/s of products in a precision of `PRECISIONS`. Raises `UsageError` where it has
        none.
        """
        peak = {"bf16": self.peak, "nvfp4": self.peak_fp4}.get(precision, self.peak_fp8)
        if not peak or not self._has(precision):
            fitting = [name for name in PRECISIONS if self._has(name)]
            raise UsageError(
                f"--precision {printable(precision, 40)}: {printable(self.name, 40)} computes in "
                f"{', '.join(fitting)}"
            )
        return peak

    def sustained_of(self, precision: str) -> float:
        """Returns the speed of products in training as a share of what they reach alone."""
        share = {"bf16": self.sustained, "nvfp4": self.sustained_fp4}.get(precision, self.sustained_fp8)
        return share * self.clock

    @property
    def clock(self) -> float:
        """The clock as a share of that of the GPU it takes values from: lower where its power limit
        is lower.
        """
        base = find_gpu(self.bases[0]).power if self.bases else self.power
        return float(min(1.0, self.power / base) ** _CLOCK_OF_POWER)

    def _has(self, precision: str) -> bool:
        # GPUs with FP4 units are those with scales of 16 and 32 numbers.
        scaled = {"bf16": self.peak, "mxfp8": self.peak_fp4, "nvfp4": self.peak_fp4}
        return bool(scaled.get(precision, self.peak_fp8))

    def network_of(self, world: int) -> InputNetwork:
        """Returns the network of `world` ranks, and the algorithms that NCCL runs between servers: rings."""
        dims = self.dims(world)
        rings = tuple(f"{collective}:1=ring" for collective in _RINGS) if len(dims) > 1 else ()
        return InputNetwork(dims, self.hbm, rings)

    def dims(self, world: int) -> tuple[str, ...]:
        """Returns the network of `world` ranks, as `--dim` has it: servers, and the network between them."""
        inside = ranks_of_domain(self.server, world)
        dims = [f"switch:{inside}:{self.nvlink:g}:{self.nvlink_ns:g}"]
        if world > inside:
            dims.append(f"switch:{-(-world // inside)}:{self.network:g}:{self.network_ns:g}")
        return tuple(dims)


_NUMERIC_FIELDS = tuple(name for name in Gpu.__struct_fields__ if name not in ("name", "source", "bases"))
_WHOLE = ("sms", "server")
# No step is simulated by it: only measured products are held against it.
_OPTIONAL = "peak_fp32"
# A peak of 0: it does not compute in that type.
# The exponent of the clock by the power limit: power grows with the cube of the clock, as voltage follows it.
_CLOCK_OF_POWER = 1 / 3
_RINGS = ("all-gather", "reduce-scatter", "all-reduce")
_MAY_BE_0 = ("launch_us", "host_us", "nvlink_ns", "network_ns", "peak_fp8", "peak_fp4", "peak_fp32", "spread")
_FRACTIONS = (
    "matmul",
    "grouped",
    "flash_forward",
    "flash_backward",
    "batched",
    "elementwise",
    "permute",
    "cross_entropy",
    "flash_2",
    "sustained",
    "sustained_fp8",
    "sustained_fp4",
)


def find_gpu(name: str) -> Gpu:
    """Returns the GPU that `--gpu` names: one of gpus.toml, else a TOML file with a table [gpu].

    Raises `UsageError` for neither, InputError with the position of the error in the file.
    """
    tables = _read_gpu_tables()
    if name in GPU_NAMES:
        return _build_gpu(name, tables, tables[name])
    if not os.path.lexists(name):
        raise UsageError(f"--gpu {printable(name, 60)}: no file, and none of {', '.join(GPU_NAMES)}"
                         f"{did_you_mean(name, GPU_NAMES)}")  # fmt: skip
    try:
        text = read_text(name, _EXPECTED)
        table = parse_toml(text, _EXPECTED)
    except FileNotFoundError:
        raise _refusal(name, "there is no such file", None) from None
    except TomlProblem as problem:
        raise _refusal(name, problem.message, problem.location) from None
    gpu_table = table.get(_TABLE)
    if not isinstance(gpu_table, dict):
        raise _refusal(name, f"found no table [{_TABLE}], expected {_EXPECTED}", (1, 1))
    try:
        return _build_gpu(os.path.splitext(os.path.basename(name))[0], tables, gpu_table)
    except UsageError as error:
        message = str(error)
        location = locate_in_table(text, _TABLE, message.split(":")[0])
        raise _refusal(name, message, location) from None


@cache
def _read_gpu_tables() -> dict[str, dict[str, Any]]:
    return parse_toml((Path(__file__).parent / "gpus.toml").read_text("utf-8"), _EXPECTED)


def _build_gpu(name: str, tables: dict[str, dict[str, Any]], gpu_table: dict[str, Any]) -> Gpu:
    values = dict(gpu_table)
    visited: list[str] = []
    while "base" in values:
        base = values.pop("base")
        if not isinstance(base, str) or base not in tables or base in visited:
            raise UsageError(f"base: found {printable(str(base), 40)}, expected one of {', '.join(tables)}")
        visited.append(base)
        values = tables[base] | values
    for key, value in values.items():
        if key == "source":
            if not isinstance(value, str):
                raise UsageError(f"source: found {printable(str(value), 40)}, expected a text")
            continue
        if key not in _NUMERIC_FIELDS:
            raise UsageError(
                f"{printable(key, 40)}: not known, expected one of {', '.join(_NUMERIC_FIELDS)}, base, source"
            )
        least_open = key not in _MAY_BE_0
        fits = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1e9
        if not fits or (least_open and value == 0) or (key in _WHOLE and not isinstance(value, int)):
            kind = "a whole number" if key in _WHOLE else "a number"
            raise UsageError(f"{key}: found {printable(str(value), 40)}, expected {kind} above 0")
        if key in _FRACTIONS and value > 1:
            raise UsageError(f"{key}: found {value}, expected a share up to 1")
    missing = [key for key in _NUMERIC_FIELDS if key not in values and key != _OPTIONAL]
    if missing:
        raise UsageError(
            f'found no {", ".join(missing)}, expected them, or base = "h100" to take the rest from one of '
            f"{', '.join(tables)}"
        )
    bases = (name, *visited) if gpu_table is tables.get(name) else tuple(visited)
    return Gpu(name=name, **(values | {"source": values.get("source", ""), "bases": bases}))


def _refusal(path: str, message: str, location: tuple[int, int] | None) -> InputError:
    line, column = location or (None, None)
    return InputError(Diagnostic("error", "gpu-file", message, path, line, column))
