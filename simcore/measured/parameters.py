"""Parameters of a simulation that are given for a measured run: refused, and why."""

from __future__ import annotations

from simcore.diagnostics import UsageError
from simcore.parameters import FLAGS, Parameters

# What changes how long the trace's own operations take.
_OF_A_REPLAY = frozenset(("compute_scale", "comm_scale", "layer_scale", "slow_rank", "jitter", "seed"))


def refuse_parameters(parameters: Parameters) -> None:
    """Raises UsageError, which names them, if any parameter is not at its default."""
    given = [flag for flag in FLAGS if getattr(parameters, flag.field) != flag.default]
    replay = [flag.option for flag in given if flag.field in _OF_A_REPLAY]
    others = [flag.option for flag in given if flag.field not in _OF_A_REPLAY]
    parts = []
    if replay:
        verb = "needs" if len(replay) == 1 else "need"
        parts.append(f"{', '.join(replay)} {verb} the replay of the trace, which this version does not do")
    if others:
        verb = "has" if len(others) == 1 else "have"
        parts.append(f"{', '.join(others)} {verb} no meaning for a trace, which is shown as it was measured")
    if parts:
        raise UsageError("; ".join(parts))
