"""Factors on the parts of a measured run, as parameters and what-if questions state them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from simcore.diagnostics import UsageError, printable
from simcore.measured.run import MeasuredRun
from simcore.overrides import parse_factor, parse_overrides
from simcore.parameters import Parameters
from simcore.records import Struct, field
from simcore.units import number

_MOST_LISTED = 12
_Key = TypeVar("_Key")


class Scales(Struct, frozen=True):
    """Factors on measured durations, 1 where nothing is stated. Waiting has none: it follows.

    compute: forward, backward, optimizer. comm: communication, also by category in `kinds`. ops: by
    name of the operation or sub-operation. ranks, stages: compute by rank number, by stage. gaps: the
    host's time between operations. host: operations that neither compute nor communicate.
    """

    compute: float = 1.0
    comm: float = 1.0
    gaps: float = 1.0
    host: float = 1.0
    ops: Mapping[str, float] = field(default_factory=dict)
    kinds: Mapping[str, float] = field(default_factory=dict)
    ranks: Mapping[int, float] = field(default_factory=dict)
    stages: Mapping[int | None, float] = field(default_factory=dict)

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
        )

    def changes(self) -> list[str]:
        """What is not as measured: `compute x2`, `rank 7 x0.5`; names of the trace made safe."""
        found: list[tuple[str, float]] = [
            ("compute", self.compute), ("communication", self.comm),
            ("host gaps", self.gaps), ("host operations", self.host),
        ]  # fmt: skip
        found += [(printable(name, 40), factor) for name, factor in self.ops.items()]
        found += [(f"{printable(kind, 40)} communication", factor) for kind, factor in self.kinds.items()]
        found += [
            ("ranks without a stage" if stage is None else f"stage {stage}", factor)
            for stage, factor in self.stages.items()
        ]
        found += [(f"rank {rank}", factor) for rank, factor in self.ranks.items()]
        return [f"{what} x{number(rounded(factor))}" for what, factor in found if factor != 1.0]


def rounded(factor: float) -> float:
    """A factor that was calculated, as it is shown and typed: four places."""
    return round(factor, 4)


def _product(one: Mapping[_Key, float], other: Mapping[_Key, float]) -> dict[_Key, float]:
    return {key: one.get(key, 1.0) * other.get(key, 1.0) for key in (*one, *other)}


def scales_from(parameters: Parameters, run: MeasuredRun) -> Scales:
    """The scales that the parameters state. Raises `UsageError` for a rank or operation that is not there."""
    last = max(rank.number for rank in run.ranks)
    ranks = parse_overrides(parameters, last + 1, 0).slow_ranks
    there = {rank.number for rank in run.ranks}
    for rank in ranks:
        if rank not in there:
            raise UsageError(f"--slow-rank: rank {rank} is not in this run")
    return Scales(
        compute=parameters.compute_scale,
        comm=parameters.comm_scale,
        ops=_op_scales(parameters, run),
        ranks=ranks,
    )


def _op_scales(parameters: Parameters, run: MeasuredRun) -> dict[str, float]:
    """Name -> factor, from `--layer-scale OP=X`."""
    found = {}
    for text in parameters.layer_scale:
        form = "of a trace OP=X, for example forward_step=0.9"
        name, factor = parse_factor(text, "--layer-scale", form, zero=True)
        if name not in run.op_names:
            listed, left = sorted(run.op_names)[:_MOST_LISTED], len(run.op_names) - _MOST_LISTED
            more = f" and {left} more" if left > 0 else ""
            raise UsageError(
                f"--layer-scale {printable(text, 60)}: no operation {printable(name, 40)} in this run, only "
                f"{', '.join(printable(one, 40) for one in listed)}{more}"
            )
        found[name] = factor
    return found
