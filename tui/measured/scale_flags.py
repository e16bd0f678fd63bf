"""The scales of a replay as flags of the command line, as far as there are flags."""

from __future__ import annotations

from simcore.replay.scales import Scales
from simcore.units import number


def flags_of(scales: Scales) -> list[str] | None:
    """The flags that give these scales; None where one of them has no flag."""
    if any(
        factor != 1.0
        for factor in (scales.gaps, scales.host, *scales.kinds.values(), *scales.stages.values())
    ):
        return None
    found: list[str] = []
    for flag, factor in (("--compute-scale", scales.compute), ("--comm-scale", scales.comm)):
        found += [flag, number(factor)] if factor != 1.0 else []
    for name, factor in scales.ops.items():
        found += ["--layer-scale", f"{name}={number(factor)}"] if factor != 1.0 else []
    for rank, factor in scales.ranks.items():
        found += ["--slow-rank", f"{rank}={number(factor)}"] if factor != 1.0 else []
    return found
