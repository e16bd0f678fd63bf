"""The degrees and the loop of a simulated run: see `StepShape`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from simcore.analysis.model_use import describe_model_change
from simcore.simulation import Simulation
from simcore.trace.contexts import MapRow, StepShape, StepWork
from simcore.trace.track import Track


class SimulatedShape(StepShape):
    """The shape of a simulated step; all of it is known."""

    def __init__(self, simulation: Simulation, tracks: Sequence[Track]) -> None:
        layout, program = simulation.layout, simulation.program
        microbatches = program.microbatches if program.has_pipeline_schedule else 0
        degrees = layout.tp, layout.dp, layout.pp
        super().__init__(simulation.step_time_ns, tracks, degrees, microbatches, program.steps)
        self.simulated = self._simulation = simulation
        self.left_out = simulation.workload.left_out
        self.other_model = describe_model_change(simulation)
        self.held_microbatches = tuple(stage.peak_microbatches for stage in program.stages)

    @property
    def scheduled_microbatches(self) -> int:
        return self._simulation.program.microbatches

    @cached_property
    def has_equal_microbatches(self) -> bool:
        from simcore.analysis.blocks import find_unequal_blocks

        return find_unequal_blocks(self._simulation) is None

    @cached_property
    def rank_map(self) -> list[MapRow]:
        # Imported here: pages of a run without ranks to show need none.
        from simcore.analysis.rank_map import make_rank_map

        return make_rank_map(self._simulation.layout, self._simulation.timeline.classes)

    @cached_property
    def work(self) -> StepWork | None:
        if not self.microbatches:
            return None
        from simcore.analysis.blocks import count_blocks

        simulation, size, tokens = self._simulation, 1, 0
        if simulation.workload.maker is not None:
            from simcore.analysis.model_figures import find_model_rows

            model_rows = find_model_rows(simulation)
            if model_rows is not None:
                size, tokens = model_rows.training.microbatch_size, model_rows.training.seq
        counts = tuple(count * size * self.steps for count in count_blocks(simulation))
        return StepWork(counts, simulation.layout.replicas, tokens)

    def track_at(self, position: tuple[int, int, int]) -> Track:
        stage, dp, tp = position
        simulation = self._simulation
        class_id = simulation.timeline.folding.class_of(simulation.layout.rank(tp, dp, stage))
        return next(track for track in self.tracks if track.track_id == class_id)
