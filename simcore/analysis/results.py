"""All that is said of one run, each figure computed once and when it is first asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from simcore.analysis.accounts import Accounts, class_accounts
from simcore.analysis.communication import communication_ns
from simcore.analysis.layers import LayerGroup, LayerRow, layer_groups, layer_table
from simcore.analysis.waiting import Waiting, who_waits
from simcore.parameters import replaced
from simcore.simulation import Simulation, simulate


@dataclass(frozen=True)
class Results:
    """The figures of a run: screen, report and JSON take them from here and nowhere else."""

    simulation: Simulation

    @cached_property
    def accounts(self) -> list[Accounts]:
        """Accounts of each rank class, by its number."""
        timeline = self.simulation.timeline
        return [class_accounts(timeline, number) for number in range(len(timeline.classes))]

    @cached_property
    def communication(self) -> list[tuple[int, int]]:
        """(comm_ns, overlapped_ns) of each rank class: see `communication_ns`."""
        timeline = self.simulation.timeline
        return [communication_ns(timeline, number, accounts) for number, accounts in enumerate(self.accounts)]

    @cached_property
    def layers(self) -> list[LayerRow]:
        """A line for each row of the file."""
        return layer_table(self.simulation, self.accounts)

    @cached_property
    def layer_groups(self) -> list[LayerGroup]:
        """Equal rows together, the most expensive group first."""
        return layer_groups(self.layers)

    @cached_property
    def waiting(self) -> list[Waiting]:
        """Who waits for whom in collectives, the longest first."""
        return who_waits(self.simulation.timeline, self.accounts)

    @cached_property
    def megatron_step_ns(self) -> int | None:
        """The step time with Megatron's stage layout; None where it is used or there is no pipeline."""
        simulation = self.simulation
        if not simulation.program.pipelined or simulation.layout.pp == 1:
            return None
        if simulation.parameters.stage_layout == "megatron":
            return None
        other = replaced(simulation.parameters, "stage_layout", "megatron")
        return simulate(simulation.workload, other).step_time_ns

    @property
    def pass_end_ns(self) -> list[int]:
        """layer-loop: when each pass's loop was over (asynchronous collectives may still run)."""
        timeline = self.simulation.timeline
        return [] if timeline.program.pipelined else [max(timeline.times.loop_end)]
