"""The same workload run again with a few parameters changed, to say what they cost."""

from __future__ import annotations

import dataclasses
from typing import Any

from simcore.diagnostics import InputError, UsageError
from simcore.simulation import Simulation, simulate

# A sentence is worth a second run while that is short: about a second for so many ops.
MOST_OPS = 500_000


class Variants:
    """Runs beside one run, each simulated once and when it is first asked for."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._known: dict[tuple[tuple[str, Any], ...], Simulation | None] = {}

    def run(self, **changes: Any) -> Simulation | None:
        """The run with these fields of its `Parameters` changed.

        None where a second run would take long (jitter, which folds nothing, and many ops), and where
        the changed parameters cannot be.
        """
        key = tuple(sorted(changes.items()))
        if key not in self._known:
            self._known[key] = self._run(changes)
        return self._known[key]

    def step_ns(self, **changes: Any) -> int | None:
        """The step time of that run, ns."""
        found = self.run(**changes)
        return None if found is None else found.step_time_ns

    def _run(self, changes: dict[str, Any]) -> Simulation | None:
        simulation = self._simulation
        if simulation.parameters.jitter > 0 or simulation.timeline.ops_simulated > MOST_OPS:
            return None
        # Folding gives the same figure at a fraction of the cost.
        other = dataclasses.replace(simulation.parameters, no_fold=False, **changes)
        try:
            return simulate(simulation.workload, other)
        except (InputError, UsageError):
            return None
