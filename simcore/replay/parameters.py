"""The scales of a replay from its parameters, and back; parameters of a simulation are refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import cached_property
from typing import ClassVar, TypeVar

from simcore.diagnostics import UsageError, printable
from simcore.kernel_names import short_name
from simcore.measured.run import MeasuredRun
from simcore.measured.vocabulary import COPY
from simcore.names import GROUP_KINDS
from simcore.parameters import USE_FIELDS, Input, Parameters, RunInput, flag_of
from simcore.program.overrides import TRACE_FORMS, parse_factor, slow_ranks_of
from simcore.records import Struct, asdict, field, replace
from simcore.replay.product_use import MeasuredStep, check_use
from simcore.units import format_number, without_noise

_Any = TypeVar("_Any")


class Scales(Struct, frozen=True):
    """Factors on measured durations, 1 where none is stated. Waiting has none: it follows."""

    compute: float = 1.0
    """On forward, backward and optimizer."""
    comm: float = 1.0
    """On communication."""
    gaps: float = 1.0
    """On the time of the host between operations."""
    host: float = 1.0
    """On operations that neither compute nor communicate."""
    ops: Mapping[str, float] = field(default_factory=dict)
    """By name of the operation or sub-operation."""
    kinds: Mapping[str, float] = field(default_factory=dict)
    """On communication by category; `copy` is of copies of memory, which `comm` leaves as they are."""
    ranks: Mapping[int, float] = field(default_factory=dict)
    """On compute by rank id."""
    stages: Mapping[int | None, float] = field(default_factory=dict)
    """On compute by stage."""
    rank_gaps: Mapping[int, float] = field(default_factory=dict)
    """By rank id, on the time of its host between operations and before its step begins."""

    def times(self, other: Scales) -> Scales:
        """Returns the product of both."""
        return Scales(
            without_noise(self.compute * other.compute),
            without_noise(self.comm * other.comm),
            without_noise(self.gaps * other.gaps),
            without_noise(self.host * other.host),
            _product(self.ops, other.ops),
            _product(self.kinds, other.kinds),
            _product(self.ranks, other.ranks),
            _product(self.stages, other.stages),
            _product(self.rank_gaps, other.rank_gaps),
        )

    def changes(self) -> list[str]:
        """Returns what is not as measured, the greatest change first: `compute x2`, `rank 7 x0.5`; names of
        the trace are made printable.
        """
        factors: list[tuple[str, float]] = [
            ("compute", self.compute), ("communication", self.comm),
            ("host gaps", self.gaps), ("host operations", self.host),
        ]  # fmt: skip
        factors += [(short_name(name, 40), factor) for name, factor in self.ops.items()]
        factors += [(kind_words(kind), factor) for kind, factor in self.kinds.items()]
        factors += [
            ("ranks without a stage" if stage is None else f"stage {stage}", factor)
            for stage, factor in self.stages.items()
        ]
        factors += [(f"rank {rank}", factor) for rank, factor in self.ranks.items()]
        factors += [
            (f"host gaps and start of rank {rank}", factor) for rank, factor in self.rank_gaps.items()
        ]
        changed = [(what, factor) for what, factor in factors if factor != 1.0]
        # A row on top has room for two factors: in file order stages by 8 and 10 % would hide a rank by half.
        changed.sort(key=lambda of: -abs(math.log(of[1])) if of[1] else -math.inf)
        return [f"{what} x{format_number(rounded(factor))}" for what, factor in changed]


def rounded(factor: float) -> float:
    """Returns a computed factor as it is displayed and typed: four places."""
    return round(factor, 4)


def _product(first: Mapping[_Any, float], other: Mapping[_Any, float]) -> dict[_Any, float]:
    return {key: without_noise(first.get(key, 1.0) * other.get(key, 1.0)) for key in (*first, *other)}


_MOST_LISTED = 12
# The stage of ranks for which the trace states none.
_NO_STAGE = "none"
_Key = TypeVar("_Key", bound=Hashable)


class Replay(RunInput, frozen=True, dict=True):
    """A measured run and the parameters with which it is replayed, if they change anything."""

    opened: MeasuredRun

    of: ClassVar[Input] = "trace"
    activity: ClassVar[str] = "replaying"

    @property
    def stamp(self) -> str | None:
        return self.opened.stamp

    @property
    def label(self) -> str | None:
        return self.opened.label

    @property
    def others(self) -> tuple[str, ...]:
        return self.opened.others

    @cached_property
    def scales(self) -> Scales | None:
        """The scales that the parameters state; None where they state none.

        Raises `UsageError` for parameters that a trace does not have, for a rank, stage, kind or operation
        that is not in this run, and for the replay of an order without times.
        """
        run, parameters = self.opened, self.parameters
        parameters.refuse_others("trace")
        check_use(run, parameters.part(MeasuredStep))
        flags = [flag for flag in parameters.explicit_flags() if flag.field not in USE_FIELDS]
        if not flags:
            return None
        if not run.timed:
            raise UsageError(
                f"{', '.join(flag.option for flag in flags)}: found an order of operations without times, "
                "expected a trace with durations"
            )
        return Scales(
            compute=parameters.compute_scale,
            comm=parameters.comm_scale,
            gaps=parameters.gap_scale,
            rank_gaps=_factors(
                "slow_host", parameters.slow_host, "rank", [str(rank.rank) for rank in run.ranks], int
            ),
            host=parameters.host_scale,
            ops=_factors("layer_scale", parameters.layer_scale, "operation", run.op_names, str),
            kinds=_factors("kind_scale", parameters.kind_scale, "kind of communication", _kinds(run), str),
            ranks=_ranks(parameters.slow_rank, run),
            stages=_factors(
                "stage_scale", parameters.stage_scale, "stage", dict.fromkeys(_stages(run)), _stage
            ),
        )


def parameters_of(scales: Scales | None, step: MeasuredStep | None = None) -> Parameters:
    """Returns the parameters that state these scales; a factor of 1 is left out. None: as measured.

    step: what is stated of the step beside them.
    """
    if scales is None:
        return Parameters()
    parameters = Parameters(
        compute_scale=scales.compute,
        comm_scale=scales.comm,
        gap_scale=scales.gaps,
        slow_host=_words(scales.rank_gaps),
        host_scale=scales.host,
        layer_scale=_words(scales.ops),
        kind_scale=_words(scales.kinds),
        slow_rank=_words(scales.ranks),
        stage_scale=_words({stage_word(stage): factor for stage, factor in scales.stages.items()}),
    )
    parameters = Parameters(replay=True) if parameters == Parameters() else parameters
    return parameters if step is None else replace(parameters, **asdict(step))


def stage_word(stage: int | None) -> str:
    """Returns a stage as `--stage-scale` names it."""
    return _NO_STAGE if stage is None else str(stage)


def _kinds(run: MeasuredRun) -> tuple[str, ...]:
    """Returns what `--kind-scale` can name: groups of ranks, and the copies of devices."""
    return (*GROUP_KINDS, COPY) if run.of_devices else GROUP_KINDS


def kind_words(kind: str) -> str:
    """Returns what `--kind-scale` scales: `dp communication`, `copies of memory`."""
    return "copies of memory" if kind == COPY else f"{printable(kind, 40)} communication"


def _stage(word: str) -> int | None:
    return None if word == _NO_STAGE else int(word)


def _stages(run: MeasuredRun) -> list[str]:
    return [stage_word(rank.stage) for rank in run.ranks]


def _words(factors: Mapping[_Key, float]) -> tuple[str, ...]:
    return tuple(
        f"{key}={repr(factor).removesuffix('.0')}" for key, factor in factors.items() if factor != 1.0
    )


def _ranks(texts: Sequence[str], run: MeasuredRun) -> dict[int, float]:
    there = {rank.rank for rank in run.ranks}
    ranks = slow_ranks_of(texts, max(there) + 1)
    for rank in ranks:
        if rank not in there:
            raise UsageError(f"--slow-rank: rank {rank} is not in this run")
    return ranks


def _factors(
    field: str, texts: Sequence[str], what: str, there: Collection[str], key: Callable[[str], _Key]
) -> dict[_Key, float]:
    """Returns key -> factor of a list of `NAME=X`. there: the names that this run has."""
    flag = flag_of(field)
    factors = {}
    for text in texts:
        name, factor = parse_factor(text, flag.option, TRACE_FORMS[field], zero=True)
        if name not in there:
            listed, left = sorted(there)[:_MOST_LISTED], len(there) - _MOST_LISTED
            more = f" and {left} more" if left > 0 else ""
            raise UsageError(
                f"{flag.option} {printable(text, 60)}: no {what} {printable(name, 40)} in this run, only "
                f"{', '.join(printable(name, 40) for name in listed)}{more}"
            )
        factors[key(name)] = factor
    return factors
