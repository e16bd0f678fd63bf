"""The degrees and the loop of a simulated run: see `StepShape`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from simcore.analysis.rank_map import rank_map
from simcore.simulation import Simulation
from simcore.trace.contexts import MapRow, StepShape, Work
from simcore.trace.track import Track


class SimulatedShape(StepShape):
    """All of it is known."""

    def __init__(self, simulation: Simulation, tracks: Sequence[Track]) -> None:
        layout, program = simulation.layout, simulation.program
        counted = program.microbatches if program.has_pipeline_schedule else 0
        degrees = layout.tp, layout.dp, layout.pp
        super().__init__(simulation.step_time_ns, tracks, degrees, counted, program.steps)
        self.simulated = self._simulation = simulation
        self.left_out = simulation.workload.left_out
        self.held_microbatches = tuple(stage.peak_microbatches for stage in program.stages)

    @property
    def scheduled(self) -> int:
        return self._simulation.program.microbatches

    @cached_property
    def microbatches_alike(self) -> bool:
        from simcore.analysis.blocks import unequal_blocks

        return unequal_blocks(self._simulation) is None

    @cached_property
    def rank_map(self) -> list[MapRow]:
        return rank_map(self._simulation.layout, self._simulation.timeline.classes)

    @cached_property
    def work(self) -> Work | None:
        if not self.microbatches:
            return None
        from simcore.analysis.blocks import block_counts

        simulation, size = self._simulation, 1
        if simulation.workload.maker is not None:
            from simcore.analysis.model_figures import made_of

            made = made_of(simulation)
            size = size if made is None else made.training.microbatch_size
        counts = tuple(count * size * self.steps for count in block_counts(simulation))
        return Work(counts, simulation.layout.replicas)

    def track_at(self, place: tuple[int, int, int]) -> Track:
        stage, dp, tp = place
        simulation = self._simulation
        number = simulation.timeline.folding.class_of(simulation.layout.rank(tp, dp, stage))
        return next(track for track in self.tracks if track.number == number)
