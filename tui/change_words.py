"""A change of the what-if table in words, what it does to the step time, and why `t` cannot try it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simcore.units import change_percent

if TYPE_CHECKING:
    from simcore.cluster import Dimension
    from simcore.run.findings import WhatIf

# What `better10_ns` is with, in the words of `report --what-if`: 10 % less time, of a bandwidth 1 / 0.9.
BETTER = "10 % better"


def change_words(knob: WhatIf, dims: Sequence[Dimension] = ()) -> str:
    """A schedule is known by its name: the words of the flags would leave no room for the figures.

    dims: of the cluster, which are called as screen 5 has them: `dim 1 bandwidth (switch 128)`.
    """
    dimension = _dimension(knob.knob, dims)
    if dimension is not None:
        return f"{dimension[0]} ({dimension[1]})"
    return knob.knob.removeprefix("--schedule ").replace(" --", ", ")


def _dimension(name: str, dims: Sequence[Dimension]) -> tuple[str, str] | None:
    """(`dim 1 bandwidth`, `switch 128`) of `dimension 1 bandwidth`; None of all else."""
    kind, _, rest = name.partition(" ")
    number, _, what = rest.partition(" ")
    if kind != "dimension" or not number.isdecimal() or int(number) >= len(dims):
        return None
    one = dims[int(number)]
    return f"dim {number} {what}", f"{one.kind} {one.size}"


def why_not_tried(knob: WhatIf, dims: Sequence[Dimension] = ()) -> str:
    """Why no run is made with a change of the table, and what comes next to it."""
    dimension = _dimension(knob.knob, dims)
    if dimension is not None:
        return f"{BETTER} is no parameter: type another {dimension[0]} on 5"
    kind, _, of = knob.knob.partition(" ")
    if kind == "layer":
        return "a layer is compute and collectives: --layer-scale on 5 has compute alone"
    scaled = "compute" if kind == "compute" else "communication"
    return f"no parameter scales {knob.knob if kind == 'compute' else of} alone: 5 scales all {scaled}"


# In place of both figures of a change whose effect nobody can know (`WhatIf.unknown`).
UNKNOWN = "unknown"


def change_share(was: int, now: int) -> tuple[str, str]:
    """A change of the step time in per cent of it, in 9 cells, and its role."""
    if was == now or not was:
        return f"{'=':>9}", "dim"
    return f"{change_percent(was, now, '%'):>9}", "worse" if now > was else "better"
