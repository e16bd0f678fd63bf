"""The step time alone, where nothing else of a run is asked for: what a sweep asks of thousands of points.

Import from here: `StepTimes`, `StepTime`.
"""

from __future__ import annotations

from collections.abc import Sequence

from simcore.layout import Layout
from simcore.parameters import Parameters
from simcore.records import Struct
from simcore.simulation import simulate
from simcore.workload import Workload


class StepTime(Struct, frozen=True):
    """What `wltui report` says of a run. held: of each stage when chunks are held and freed (`StageProgram`).

    microbatches: of each replica, of all steps. schedule: its name.
    """

    step_time_ns: int
    layout: Layout
    schedule: str
    virtual_stages: int
    microbatches: int
    held: Sequence[Sequence[tuple[int, int, int]]]


class StepTimes:
    """Step times of one workload under many parameters."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload

    def of(self, parameters: Parameters) -> StepTime:
        """The step time under these parameters, equal to that of `simulate`. Raises as it does."""
        simulation = simulate(self.workload, parameters)
        program = simulation.program
        return StepTime(
            simulation.step_time_ns, simulation.layout, program.schedule, program.virtual_stages,
            program.microbatches * program.steps, [stage.held for stage in program.stages],
        )  # fmt: skip
