"""Constants of a GPU and the engine on it: what an op costs is made of them (gpus.toml has the sources)."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

from simcore.diagnostics import Diagnostic, InputError, UsageError, meant, printable
from simcore.names import GPU_NAMES
from simcore.records import Struct
from simcore.toml_text import TomlProblem, parse_toml, place_in_table, read_text

_EXPECTED = "constants of a GPU"
_TABLE = "gpu"


class Gpu(Struct, frozen=True):
    """The fields are those of gpus.toml: TFLOP/s, GB/s, GB, us and ns."""

    name: str
    peak: float
    peak_fp8: float
    hbm: float
    memory: float
    sms: int
    matmul: float
    half_depth: float
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

    def dims(self, world: int) -> tuple[str, ...]:
        """The network of `world` ranks, as `--dim` has it: servers, and what is between them."""
        inside = min(self.server, world)
        dims = [f"switch:{inside}:{self.nvlink:g}:{self.nvlink_ns:g}"]
        if world > inside:
            dims.append(f"switch:{-(-world // inside)}:{self.network:g}:{self.network_ns:g}")
        return tuple(dims)


_NUMBERS = tuple(name for name in Gpu.__struct_fields__ if name not in ("name", "source"))
_WHOLE = ("sms", "server")
_FRACTIONS = (
    "matmul",
    "grouped",
    "flash_forward",
    "flash_backward",
    "batched",
    "elementwise",
    "permute",
    "cross_entropy",
)


def find_gpu(name: str) -> Gpu:
    """The GPU that `--gpu` names: one of gpus.toml, else a TOML file with a table [gpu].

    Raises `UsageError` for neither, InputError with the place of what is wrong in the file.
    """
    known = _known()
    if name in GPU_NAMES:
        return _gpu(name, known, known[name])
    if not os.path.lexists(name):
        raise UsageError(f"--gpu {printable(name, 60)}: no file, and none of {', '.join(GPU_NAMES)}"
                         f"{meant(name, GPU_NAMES)}")  # fmt: skip
    try:
        text = read_text(name, _EXPECTED)
        table = parse_toml(text, _EXPECTED)
    except TomlProblem as problem:
        raise _refusal(name, problem.message, problem.place) from None
    given = table.get(_TABLE)
    if not isinstance(given, dict):
        raise _refusal(name, f"found no table [{_TABLE}], expected {_EXPECTED}", (1, 1))
    try:
        return _gpu(os.path.splitext(os.path.basename(name))[0], known, given)
    except UsageError as error:
        message = str(error)
        place = place_in_table(text, _TABLE, message.split(":")[0])
        raise _refusal(name, message, place) from None


@cache
def _known() -> dict[str, dict[str, Any]]:
    return parse_toml((Path(__file__).parent / "gpus.toml").read_text("utf-8"), _EXPECTED)


def _gpu(name: str, known: dict[str, dict[str, Any]], given: dict[str, Any]) -> Gpu:
    values = dict(given)
    seen: list[str] = []
    while "base" in values:
        base = values.pop("base")
        if base not in known or base in seen:
            raise UsageError(f"base: found {printable(str(base), 40)}, expected one of {', '.join(known)}")
        seen.append(base)
        values = known[base] | values
    for key, value in values.items():
        if key == "source":
            continue
        if key not in _NUMBERS:
            raise UsageError(
                f"{printable(key, 40)}: not known, expected one of {', '.join(_NUMBERS)}, base, source"
            )
        least_open = key not in ("launch_us", "host_us", "nvlink_ns", "network_ns")
        fits = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1e9
        if not fits or (least_open and value == 0) or (key in _WHOLE and not isinstance(value, int)):
            kind = "a whole number" if key in _WHOLE else "a number"
            raise UsageError(f"{key}: found {printable(str(value), 40)}, expected {kind} above 0")
        if key in _FRACTIONS and value > 1:
            raise UsageError(f"{key}: found {value}, expected a share up to 1")
    missing = [key for key in _NUMBERS if key not in values]
    if missing:
        raise UsageError(
            f'found no {", ".join(missing)}, expected them, or base = "h100" to take the rest from one of '
            f"{', '.join(known)}"
        )
    return Gpu(name=name, **(values | {"source": str(values.get("source", ""))}))


def _refusal(path: str, message: str, place: tuple[int, int] | None) -> InputError:
    line, column = place or (None, None)
    return InputError(Diagnostic("error", "gpu-file", message, path, line, column))
