"""Factors on the parts of a measured run, as parameters and what-if questions state them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from simcore.diagnostics import printable
from simcore.kernel_names import shown_name
from simcore.records import Struct, field
from simcore.units import number

_Key = TypeVar("_Key")


class Scales(Struct, frozen=True):
    """Factors on measured durations, 1 where nothing is stated. Waiting has none: it follows.

    compute: forward, backward, optimizer. comm: communication, also by category in `kinds`. ops: by
    name of the operation or sub-operation. ranks, stages: compute by rank number, by stage. gaps: the
    host's time between operations. host: operations that neither compute nor communicate. rank_gaps:
    by rank the time of its host between operations and before its step begins.
    """

    compute: float = 1.0
    comm: float = 1.0
    gaps: float = 1.0
    host: float = 1.0
    ops: Mapping[str, float] = field(default_factory=dict)
    kinds: Mapping[str, float] = field(default_factory=dict)
    ranks: Mapping[int, float] = field(default_factory=dict)
    stages: Mapping[int | None, float] = field(default_factory=dict)
    rank_gaps: Mapping[int, float] = field(default_factory=dict)

    def times(self, other: Scales) -> Scales:
        """Both after each other."""
        return Scales(
            self.compute * other.compute,
            self.comm * other.comm,
            self.gaps * other.gaps,
            self.host * other.host,
            _product(self.ops, other.ops),
            _product(self.kinds, other.kinds),
            _product(self.ranks, other.ranks),
            _product(self.stages, other.stages),
            _product(self.rank_gaps, other.rank_gaps),
        )

    def changes(self) -> list[str]:
        """What is not as measured: `compute x2`, `rank 7 x0.5`; names of the trace made safe."""
        found: list[tuple[str, float]] = [
            ("compute", self.compute), ("communication", self.comm),
            ("host gaps", self.gaps), ("host operations", self.host),
        ]  # fmt: skip
        found += [(printable(shown_name(name), 40), factor) for name, factor in self.ops.items()]
        found += [(f"{printable(kind, 40)} communication", factor) for kind, factor in self.kinds.items()]
        found += [
            ("ranks without a stage" if stage is None else f"stage {stage}", factor)
            for stage, factor in self.stages.items()
        ]
        found += [(f"rank {rank}", factor) for rank, factor in self.ranks.items()]
        found += [(f"host gaps of rank {rank}", factor) for rank, factor in self.rank_gaps.items()]
        return [f"{what} x{number(rounded(factor))}" for what, factor in found if factor != 1.0]


def rounded(factor: float) -> float:
    """A factor that was calculated, as it is shown and typed: four places."""
    return round(factor, 4)


def _product(one: Mapping[_Key, float], other: Mapping[_Key, float]) -> dict[_Key, float]:
    return {key: one.get(key, 1.0) * other.get(key, 1.0) for key in (*one, *other)}
