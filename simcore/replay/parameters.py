"""Which parameters a measured run has: those of its replay. The others are refused, and why."""

from __future__ import annotations

from simcore.diagnostics import UsageError
from simcore.measured.run import MeasuredRun
from simcore.parameters import FLAGS, Parameters
from simcore.replay.results import MeasuredResults
from simcore.replay.scales import scales_from

# What changes how long the trace's own operations take.
OF_A_REPLAY = frozenset(("compute_scale", "comm_scale", "layer_scale", "slow_rank"))


def measured_results(run: MeasuredRun, parameters: Parameters, replay: bool = False) -> MeasuredResults:
    """The run as it was measured, or replayed if that is asked for or a parameter changes it.

    Raises `UsageError`, which names them, for parameters that a trace does not have, for the replay
    of an order without times, and for one that is too long for its times.
    """
    given = [flag for flag in FLAGS if getattr(parameters, flag.field) != flag.default]
    others = [flag.option for flag in given if flag.field not in OF_A_REPLAY]
    if others:
        verb = "has" if len(others) == 1 else "have"
        *first, last = (flag.option for flag in FLAGS if flag.field in OF_A_REPLAY)
        options = f"{', '.join(first)} and {last}"
        raise UsageError(f"{', '.join(others)} {verb} no meaning for a trace; its replay takes {options}")
    if not replay and not given:
        return MeasuredResults(run)
    asked = ", ".join(flag.option for flag in given) or "--replay"
    if not run.timed:
        raise UsageError(
            f"{asked}: found an order of operations without times, expected a trace with durations"
        )
    results = MeasuredResults(run, scales_from(parameters, run))
    try:
        # Whatever is asked of a replay needs its times.
        _ = results.times
    except OverflowError:
        raise UsageError(f"{asked}: the replay would take 2^63 ns (292 years) or more") from None
    return results
