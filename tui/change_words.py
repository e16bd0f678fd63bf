"""A change of the what-if table in words, what it does to the step time, and why `t` cannot try it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simcore.units import change_percent

if TYPE_CHECKING:
    from simcore.cluster import Dimension
    from simcore.run.findings import WhatIf

# What `better10_ns` of what is no change is with.
LESS_TIME = "10 % less time"


def change_words(knob: WhatIf, dims: Sequence[Dimension] = (), with_time: bool = False) -> str:
    """A schedule is known by its name: the words of the flags would leave no room for the figures.

    with_time: of what is no change, also that it takes 10 % less time. dims: of the cluster, which are called
    as screen 5 has them: `dim 1 bandwidth 50 -> 55.6 GB/s`.
    """
    dimension = _dimension(knob.knob, dims)
    if dimension is not None:
        return f"{dimension[0]} {dimension[1]}"
    words = knob.knob.replace("--schedule ", "").replace(" --", ", ").removeprefix("--")
    return f"{words}, {LESS_TIME}" if with_time and knob.free_ns is not None else words


def _dimension(name: str, dims: Sequence[Dimension]) -> tuple[str, str] | None:
    """(`dim 1 bandwidth`, `50 -> 55.6 GB/s`) of `dimension 1 bandwidth`; None of all else."""
    kind, _, rest = name.partition(" ")
    number, _, what = rest.partition(" ")
    if kind != "dimension" or not number.isdecimal() or int(number) >= len(dims):
        return None
    one = dims[int(number)]
    # 10 % less time: a bandwidth of 1 / 0.9.
    if what == "bandwidth":
        return f"dim {number} {what}", f"{one.bandwidth:.3g} -> {one.bandwidth / 0.9:.3g} GB/s"
    return f"dim {number} {what}", f"{one.latency_ns:.3g} -> {one.latency_ns * 0.9:.3g} ns"


def why_not_tried(knob: WhatIf, dims: Sequence[Dimension] = ()) -> str:
    """Why no run is made with a change of the table, and what comes next to it."""
    dimension = _dimension(knob.knob, dims)
    if dimension is not None:
        return f"type {dimension[1].partition(' -> ')[2]} for {dimension[0]} on 5"
    kind, _, of = knob.knob.partition(" ")
    if kind == "layer":
        return "a layer is compute and collectives: --layer-scale on 5 has compute alone"
    scaled = "compute" if kind == "compute" else "communication"
    return f"no parameter scales {knob.knob if kind == 'compute' else of} alone: 5 scales all {scaled}"


# In place of both figures of a change whose effect nobody can know (`WhatIf.unknown`).
UNKNOWN = "unknown"


def gain_share(was: int, knob: WhatIf) -> tuple[str, str]:
    """What a change does to the step time, as `change_share`; of more micro-batches to each of them."""
    if knob.alike_ns is None:
        return change_share(was, knob.better10_ns)
    share, role = change_share(was, knob.alike_ns)
    return f"{share.strip()}/mb".rjust(len(share)), role


def change_share(was: int, now: int) -> tuple[str, str]:
    """A change of the step time in per cent of it, in 9 cells, and its role."""
    if was == now or not was:
        return f"{'=':>9}", "dim"
    return f"{change_percent(was, now, '%'):>9}", "worse" if now > was else "better"
