"""What a run takes for the parameters of the schedule that nobody gave."""

from __future__ import annotations

from typing import NamedTuple

from simcore.layout import Layout
from simcore.program.blocks import Structure
from simcore.workload import Workload


class ScheduleDefaults(NamedTuple):
    """Values by the fields of `Parameters`."""

    schedule: str = "layer-loop"
    microbatches: int = 1
    virtual_stages: int = 1
    layers: int = 1


# A table, and a policy of ASTRA-sim 1.0, is a loop of its own: no other schedule fits.
ONE_LOOP = ScheduleDefaults()


def schedule_defaults(
    workload: Workload, layout: Layout, structure: Structure, queued: bool = False
) -> ScheduleDefaults:
    """What a run of `workload` takes; queued: in dialect astra-sim-1, whatever the structure."""
    if workload.is_table or queued:
        return ONE_LOOP
    if workload.stages:
        # One stage runs its micro-batches one after another, each forward and backward.
        return ScheduleDefaults("1f1b", workload.header.ga or 1)
    return ScheduleDefaults("1f1b" if layout.pp > 1 else ONE_LOOP.schedule, len(structure.blocks))
