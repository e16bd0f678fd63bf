"""The parameters of a replay as its scales, and back; those of a simulation are refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import TypeVar

from simcore.diagnostics import UsageError, printable
from simcore.measured.run import MeasuredRun
from simcore.names import GROUP_KINDS
from simcore.overrides import TRACE_FORMS, parse_factor, parse_overrides
from simcore.parameters import Parameters, flag_of, refuse_others, stated
from simcore.replay.scales import Scales

_MOST_LISTED = 12
# Of ranks whose stage the trace does not say.
_NO_STAGE = "none"
_Key = TypeVar("_Key", bound=Hashable)


def scales_of(parameters: Parameters, run: MeasuredRun) -> Scales | None:
    """The scales of the replay that the parameters ask for; None where they ask for none.

    Raises `UsageError` for parameters that a trace does not have, for a rank, stage, kind or operation that
    is not in this run, and for the replay of an order without times.
    """
    refuse_others(parameters, "trace")
    given = stated(parameters)
    if not given:
        return None
    if not run.timed:
        raise UsageError(
            f"{', '.join(flag.option for flag in given)}: found an order of operations without times, "
            "expected a trace with durations"
        )
    return Scales(
        compute=parameters.compute_scale,
        comm=parameters.comm_scale,
        gaps=parameters.gap_scale,
        host=parameters.host_scale,
        ops=_factors("layer_scale", parameters, "operation", run.op_names, str),
        kinds=_factors("kind_scale", parameters, "kind of communication", GROUP_KINDS, str),
        ranks=_ranks(parameters, run),
        stages=_factors("stage_scale", parameters, "stage", dict.fromkeys(_stages(run)), _stage),
    )


def parameters_of(scales: Scales | None) -> Parameters:
    """The parameters that ask for these scales; a factor of 1 is none. None: as measured."""
    if scales is None:
        return Parameters()
    found = Parameters(
        compute_scale=scales.compute,
        comm_scale=scales.comm,
        gap_scale=scales.gaps,
        host_scale=scales.host,
        layer_scale=_words(scales.ops),
        kind_scale=_words(scales.kinds),
        slow_rank=_words(scales.ranks),
        stage_scale=_words({stage_word(stage): factor for stage, factor in scales.stages.items()}),
    )
    return Parameters(replay=True) if found == Parameters() else found


def stage_word(stage: int | None) -> str:
    """A stage as `--stage-scale` names it."""
    return _NO_STAGE if stage is None else str(stage)


def _stage(word: str) -> int | None:
    return None if word == _NO_STAGE else int(word)


def _stages(run: MeasuredRun) -> list[str]:
    return [stage_word(rank.stage) for rank in run.ranks]


def _words(factors: Mapping[_Key, float]) -> tuple[str, ...]:
    return tuple(
        f"{key}={repr(factor).removesuffix('.0')}" for key, factor in factors.items() if factor != 1.0
    )


def _ranks(parameters: Parameters, run: MeasuredRun) -> dict[int, float]:
    there = {rank.number for rank in run.ranks}
    ranks = parse_overrides(parameters, max(there) + 1, 0).slow_ranks
    for rank in ranks:
        if rank not in there:
            raise UsageError(f"--slow-rank: rank {rank} is not in this run")
    return ranks


def _factors(
    field: str, parameters: Parameters, what: str, there: Collection[str], key: Callable[[str], _Key]
) -> dict[_Key, float]:
    """Key -> factor, of a list of `NAME=X`. there: the names that this run has."""
    flag = flag_of(field)
    found = {}
    for text in getattr(parameters, field):
        name, factor = parse_factor(text, flag.option, TRACE_FORMS[field], zero=True)
        if name not in there:
            listed, left = sorted(there)[:_MOST_LISTED], len(there) - _MOST_LISTED
            more = f" and {left} more" if left > 0 else ""
            raise UsageError(
                f"{flag.option} {printable(text, 60)}: no {what} {printable(name, 40)} in this run, only "
                f"{', '.join(printable(one, 40) for one in listed)}{more}"
            )
        found[key(name)] = factor
    return found
