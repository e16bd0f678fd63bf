"""Fits one factor on all compute so that a simulated step is as long as a measured one."""

from __future__ import annotations

from collections.abc import Callable

from simcore.diagnostics import UsageError
from simcore.records import Struct
from simcore.setup import Setup
from simcore.simulation import Simulation, simulate, simulate_setup
from simcore.units import duration

# A share of the step: measurements of a step are no more exact.
_CLOSE = 1e-4
_ATTEMPTS = 24
_LARGEST = 1000.0
_DIGITS = 4


class StepFit(Struct, frozen=True):
    """The fit of one step time."""

    before: Simulation
    """The run without the factor."""
    after: Simulation
    """The run with the factor."""
    scale: float
    """The compute scale of that run, in place of the given one."""
    measured_ns: int
    """The measured step time, ns."""

    @property
    def left_ns(self) -> int:
        """Simulated less measured step time after the fit, ns."""
        return self.after.step_time_ns - self.measured_ns


def fit_step(setup: Setup, measured_ns: int) -> StepFit:
    """Returns the factor on compute that makes the step `measured_ns` long.

    A step never gets shorter with more compute, so the factor is found between two that enclose it. Raises
    `UsageError` where no factor gives such a step, and what `simulate` raises.
    """
    explicit_scale = setup.parameters.compute_scale
    before = simulate(setup.opened, setup.parameters)
    runs: dict[float, Simulation] = {explicit_scale: before}

    def run(scale: float) -> Simulation:
        scale = round(scale, _DIGITS)
        if scale not in runs:
            runs[scale] = simulate_setup(setup.with_changes(compute_scale=scale))
        return runs[scale]

    least = run(0.0)
    if least.step_time_ns > measured_ns:
        raise UsageError(
            f"--measured-step {duration(measured_ns)}: communication alone takes "
            f"{duration(least.step_time_ns)}; no factor on compute would fit, a faster network (--dim) may"
        )
    scale = _find_scale(run, max(explicit_scale, 0.01), measured_ns)
    return StepFit(before, run(scale), round(scale, _DIGITS), measured_ns)


def _find_scale(run: Callable[[float], Simulation], first: float, measured_ns: int) -> float:
    low, high = 0.0, first
    while run(high).step_time_ns < measured_ns:
        low, high = high, high * max(2.0, measured_ns / max(run(high).step_time_ns, 1))
        if high > _LARGEST:
            raise UsageError(
                f"--measured-step {duration(measured_ns)}: not reached with compute {_LARGEST:g} times "
                "as long"
            )
    for _ in range(_ATTEMPTS):
        below, above = run(low).step_time_ns, run(high).step_time_ns
        if above - measured_ns <= _CLOSE * measured_ns or round(high - low, _DIGITS) <= 10**-_DIGITS:
            break
        middle = low + (high - low) * (measured_ns - below) / max(above - below, 1)
        # The step is nearly linear in the factor: a point a little beyond the line lets both ends close in.
        middle = min(max(middle, low + (high - low) / 64), high - (high - low) / 64)
        if run(middle).step_time_ns < measured_ns:
            low = middle
        else:
            high = middle
    ends = sorted((low, high), key=lambda scale: abs(run(scale).step_time_ns - measured_ns))
    return ends[0]
