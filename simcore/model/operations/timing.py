"""What the kinds of operations have in common: the time of one, and whose constants a GPU takes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from simcore.diagnostics import UsageError, printable
from simcore.model.gpu import Gpu, find_gpu
from simcore.model.toml_text import parse_toml
from simcore.names import GPU_NAMES
from simcore.records import NamedTuple


class OperationTime(NamedTuple):
    """What an operation takes. seconds: with its launch. bound: `compute`, `memory` or `launch`, by what
    takes longest. flops: that it computes; of attention those under the causal mask.
    """

    seconds: float
    bound_by: str
    flops: float


@cache
def tables_of(kind: str) -> dict[str, Any]:
    """Returns the tables of KIND.toml: a GPU's constants by precision."""
    text = (Path(__file__).parent / f"{kind}.toml").read_text("utf-8")
    return parse_toml(text, f"constants of {kind}")


def constants_for(gpu: Gpu, kind: str, precision: str) -> tuple[dict[str, Any], Gpu]:
    """Returns the constants of the nearest measured GPU, and that GPU.

    That is the nearest it takes values from; without one that computes so, the oldest that does. Raises
    `UsageError` where the GPU does not compute in `precision`, or nobody measured this kind of operation so.
    """
    gpu.peak_of(precision)
    tables = {name: table for name, table in tables_of(kind).items() if name in GPU_NAMES}
    of_precision = {name: table[precision] for name, table in tables.items() if precision in table}
    for name in (*gpu.bases, *GPU_NAMES):
        if name in of_precision:
            return of_precision[name], find_gpu(name)
    precisions = dict.fromkeys(each for table in tables.values() for each in table)
    raise UsageError(
        f"--precision {printable(precision, 40)}: nobody measured {kind} in it, expected one of "
        f"{', '.join(precisions)}"
    )
