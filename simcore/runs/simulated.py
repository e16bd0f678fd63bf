"""A simulated run: what of it the screen and the pages ask, beside the figures of `Finished`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.analysis.finished import Finished
from simcore.analysis.stakes import SCHEDULE_ASSUMED, of_other_schedules
from simcore.once import forget, once
from simcore.parameters import FLAGS
from simcore.setup import Setup
from simcore.simulation import simulate
from simcore.trace.contexts import SimaiEstimate
from simcore.trace.findings import WhatIf

if TYPE_CHECKING:
    from simcore.analysis.what_if import Found
    from simcore.cluster import Dimension
    from simcore.parameters import Given
    from simcore.trace.lanes import Lanes
    from simcore.words.sentences.model import Weighed
    from simcore.words.simulated import SimulatedFigures


class Results(Finished):
    """What was simulated. It is its own network: see `NetworkUse`."""

    @property
    def network(self) -> Results:
        return self

    @cached_property
    def lanes(self) -> Lanes:
        # Asked for by the screen alone.
        from simcore.analysis.lanes import SimulatedLanes

        return SimulatedLanes(self)

    def rerun(self, setup: Setup, cancelled: Callable[[], bool]) -> Results:
        return Results(simulate(setup.opened, setup.parameters, cancelled))

    @cached_property
    def ignored(self) -> dict[str, str]:
        """The parameters that were given and have no effect on the run, by field: what is said of them."""
        messages = [
            diagnostic.message for diagnostic in self.diagnostics if diagnostic.code == "parameter-ignored"
        ]
        said = {message.split()[0]: message for message in messages}
        return {flag.field: said[flag.option] for flag in FLAGS if flag.option in said}

    @property
    def dims(self) -> Sequence[Dimension]:
        """The dimensions of its network; none of one without."""
        simulation = self.simulation
        return simulation.cluster.dims if simulation.has_dimensions else ()

    @cached_property
    def figures(self) -> SimulatedFigures:
        # Imported here: the screen opens without.
        from simcore.words.simulated import SimulatedFigures

        return SimulatedFigures(self, lambda: self.sentences)

    def _find_what_if(
        self, progress: Callable[[int, int], None], cancelled: Callable[[], bool]
    ) -> list[WhatIf]:
        from simcore.analysis.what_if import what_if

        # Who leaves a screen and comes back does not wait for the same runs again: 1.2 s of seed 002.
        known = self._found_so_far()
        path = self.compute_critical_path(cancelled)
        waits, on_path = self.compute_dependencies(cancelled), self.path_source.stage_ops(path)
        found = what_if(self.folded(), waits, on_path, progress, cancelled, known)
        self.weigh_assumptions(cancelled)
        self._weigh_schedule(found)
        self._found_so_far.forget()
        return found

    @once
    def _found_so_far(self) -> Found:
        """What a search for changes that was stopped has found."""
        from simcore.analysis.what_if import Found

        return Found()

    def weigh_assumptions(
        self, cancelled: Callable[[], bool] = lambda: False, all_of_them: bool = True
    ) -> None:
        """Find what assumptions cost, once: notes and sentences say it from then on."""
        known = self.other_layout_ns, self.backward_sent_ns
        super().weigh_assumptions(cancelled, all_of_them)
        if (self.other_layout_ns, self.backward_sent_ns) != known:
            forget(self, "sentences")
            _ = self.sentences

    def _weigh_schedule(self, found: Sequence[WhatIf]) -> None:
        """Say of a schedule that nobody gave what the best other one of those that were tried is worth."""
        if any(one.code == SCHEDULE_ASSUMED for one in self.diagnostics):
            stake = of_other_schedules(self.simulation, found, self.variants)
            if stake is not None:
                self._take_stakes(self._stakes | {SCHEDULE_ASSUMED: stake})

    @cached_property
    def sentences(self) -> list[Weighed]:
        """The run in words, the main cause first."""
        from simcore.words.simulated_sentences import sentences_of

        return sentences_of(self)

    @cached_property
    def simai_estimate(self) -> SimaiEstimate | None:
        """SimAI's own estimate of the step; None unless the network is one of SimAI's."""
        if self.simulation.has_dimensions:
            return None
        # Imported here: the common run has no use for it.
        from simcore.compat.simai_estimate import simai_estimate

        return simai_estimate(self.simulation)

    def compute_layer_path(self, cancelled: Callable[[], bool]) -> Results:
        """Both of them computed unless they are known; `Cancelled` when that becomes true. Gives the run."""
        self.compute_critical_path(cancelled)
        self.compute_slacks(cancelled)
        _ = self.rows.critical_ns, self.rows.slack_ns
        return self


def simulated_results(given: Given) -> Results:
    """A workload as it is simulated. Raises `UsageError`."""
    return Results(simulate(given.opened, given.parameters))
