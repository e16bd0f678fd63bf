"""A simulated run with the interface of every run; its figures are in `SimulationFigures`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.analysis.assumption_effects import SCHEDULE_ASSUMED, find_schedule_effect
from simcore.analysis.simulation_figures import SimulationFigures
from simcore.cached_methods import cached_method, forget
from simcore.cluster import name_groups
from simcore.parameters import FLAGS
from simcore.setup import Setup
from simcore.simulation import simulate
from simcore.trace.contexts import SimaiEstimate
from simcore.trace.findings import WhatIf

if TYPE_CHECKING:
    from simcore.analysis.what_if import WhatIfCache
    from simcore.cluster import Dimension
    from simcore.parameters import RunInput
    from simcore.trace.lanes import Lanes
    from simcore.words.sentences.model import Weighed
    from simcore.words.simulated import SimulatedFigures


class SimulatedRun(SimulationFigures):
    """A simulated run. It is its own network: see `NetworkUse`."""

    @property
    def network(self) -> SimulatedRun:
        return self

    @cached_property
    def lanes(self) -> Lanes:
        # Imported here: only the screen needs it.
        from simcore.analysis.lanes import SimulatedLanes

        return SimulatedLanes(self)

    def rerun(self, setup: Setup, cancelled: Callable[[], bool]) -> SimulatedRun:
        return SimulatedRun(simulate(setup.opened, setup.parameters, cancelled))

    @cached_property
    def ignored_parameters(self) -> dict[str, str]:
        """By field the given parameters without effect on the run, with the words that say so."""
        messages = [
            diagnostic.message for diagnostic in self.diagnostics if diagnostic.code == "parameter-ignored"
        ]
        messages_by_flag = {message.split()[0]: message for message in messages}
        return {
            flag.field: messages_by_flag[flag.option] for flag in FLAGS if flag.option in messages_by_flag
        }

    @property
    def dims(self) -> Sequence[Dimension]:
        """The dimensions of its network, with the groups that cross them; empty for one without."""
        simulation = self.simulation
        return name_groups(simulation.cluster, simulation.layout) if simulation.has_dimensions else ()

    @cached_property
    def figures(self) -> SimulatedFigures:
        # Imported here: the screen opens without this module.
        from simcore.words.simulated import SimulatedFigures

        return SimulatedFigures(self, lambda: self.sentences)

    def _find_what_if(
        self, progress: Callable[[int, int], None], cancelled: Callable[[], bool]
    ) -> list[WhatIf]:
        from simcore.analysis.what_if import what_if

        # A user who leaves a screen and comes back does not wait for the same runs again: 1.2 s of seed 002.
        cache = self._what_if_cache()
        path = self.compute_critical_path(cancelled)
        waits, on_path = self.compute_dependencies(cancelled), self.path_source.stage_ops(path)
        rows = what_if(self.fold_run(), waits, on_path, progress, cancelled, cache)
        self.weigh_assumptions(cancelled)
        self._weigh_schedule(rows)
        self._what_if_cache.forget()
        return rows

    @cached_method
    def _what_if_cache(self) -> WhatIfCache:
        """Returns what a cancelled search for changes has found."""
        from simcore.analysis.what_if import WhatIfCache

        return WhatIfCache()

    def weigh_assumptions(
        self, cancelled: Callable[[], bool] = lambda: False, include_all: bool = True
    ) -> None:
        """Finds what assumptions cost, once: notes and sentences say it from then on."""
        known_ns = self.other_layout_ns, self.with_backward_sends_ns
        super().weigh_assumptions(cancelled, include_all)
        if (self.other_layout_ns, self.with_backward_sends_ns) != known_ns:
            forget(self, "sentences")
            _ = self.sentences

    def _weigh_schedule(self, rows: Sequence[WhatIf]) -> None:
        """Adds to a schedule that was not given the gain of the best other schedule that was tried."""
        if any(one.code == SCHEDULE_ASSUMED for one in self.diagnostics):
            effect = find_schedule_effect(self.simulation, rows, self.variants)
            if effect is not None:
                self._store_effects(self._effects | {SCHEDULE_ASSUMED: effect})

    @cached_property
    def sentences(self) -> list[Weighed]:
        """The run in sentences, the main cause first."""
        from simcore.words.simulated_sentences import find_sentences

        return find_sentences(self)

    @cached_property
    def simai_estimate(self) -> SimaiEstimate | None:
        """SimAI's own estimate of the step; None unless the network is one of SimAI's."""
        if self.simulation.has_dimensions:
            return None
        # Imported here: most runs have no such network.
        from simcore.compat.simai_estimate import simai_estimate

        return simai_estimate(self.simulation)

    def compute_layer_path(self, cancelled: Callable[[], bool]) -> SimulatedRun:
        """Returns the run with path and slack of its rows computed. Raises `Cancelled`."""
        self.compute_critical_path(cancelled)
        self.compute_slacks(cancelled)
        _ = self.rows.critical_ns, self.rows.slack_ns
        return self


def run_simulation(run_input: RunInput) -> SimulatedRun:
    """Returns a workload simulated with its parameters. Raises `UsageError`."""
    return SimulatedRun(simulate(run_input.opened, run_input.parameters))
