"""What is at stake with what was assumed of a file or noticed in it: the step as it would be otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from simcore.analysis.variants import Variants
from simcore.diagnostics import Diagnostic
from simcore.layout import with_gathered_buffer
from simcore.program.blocks import is_layer
from simcore.program.building import bytes_between_stages
from simcore.records import NamedTuple, replace
from simcore.simulation import Simulation
from simcore.units import change_percent, duration
from simcore.workload.model import Workload
from simcore.workload.traffic import OTHER_ROWS, with_backward_sent

if TYPE_CHECKING:
    from simcore.trace.findings import WhatIf

# The note of a stage layout that nobody gave.
LAYOUT_ASSUMED = "stage-layout-default"
# That of what rows do not send backward.
BACKWARD_UNSENT = "backward-unsent"
# By code of a note, the rows with which its step would be another one.
OTHER_FILES: dict[str, Callable[[Workload], Workload | None]] = {
    "gather-is-shard": with_gathered_buffer,
    **OTHER_ROWS,
}
# Notes with another value of what was assumed, each a run of its own.
WEIGHED_CODES = (BACKWARD_UNSENT, "pp-comm-missing", "cluster-default", "all-gpus-missing")
# The note of a schedule that nobody gave.
SCHEDULE_ASSUMED = "schedule-default"


class AssumptionEffect(NamedTuple):
    """The step with another value of what was assumed. ns: None where none could be found. front: what stands
    before it in a sentence; brief: in a panel with a row for it.
    """

    ns: int | None
    lead_in: str
    brief: str


# By code of a note: `Stake.front` and `Stake.brief`.
_EFFECT_WORDS = {
    LAYOUT_ASSUMED: ("", "megatron"),
    BACKWARD_UNSENT: ("with it ", "with it"),
    "gather-is-shard": ("with it ", "with all"),
    "all-parameters": ("without it ", "without it"),
    "pp-comm-differs": ("with that of the rows ", "with theirs"),
    "cluster-default": ("with half the bandwidth ", "half GB/s"),
    "all-gpus-missing": ("with twice as many ", "twice"),
    "pp-comm-missing": ("with twice as much ", "twice"),
}


def make_effect(code: str, other_ns: int | None) -> AssumptionEffect:
    """What is at stake with a note of this code. ns: of the other step."""
    return AssumptionEffect(other_ns, *_EFFECT_WORDS[code])


def append_effect(note: Diagnostic, step: int, effect: AssumptionEffect) -> Diagnostic:
    """A note with what the step would be otherwise: `: with it the step would be 496.2 ms (+15.3 %)`.

    step: ns.
    """
    other = effect.ns
    if other is None or not step:
        return note
    if other == step or duration(other) == duration(step):
        return replace(note, message=f"{note.message}: {effect.lead_in}the step takes as long")
    share = change_percent(step, other)
    # That nobody gave one is what assumed means: the figure has the room.
    brief = f"{note.brief.removesuffix(': none given')}; {effect.brief} {share}" if note.brief else ""
    message = f"{note.message}: {effect.lead_in}the step would be {duration(other)} ({share})"
    return replace(note, message=message, brief=brief, effect=abs(other - step) / step)


def find_otherwise_ns(simulation: Simulation, variants: Variants, code: str) -> int | None:
    """The step with another value of what a note of `WEIGHED` is about, ns; None where none could be found.

    variants: of the run.
    """
    if code == BACKWARD_UNSENT:
        return find_other_file_ns(simulation, variants, with_backward_sent)
    if code == "pp-comm-missing":
        return find_other_file_ns(simulation, variants, _double_stage_bytes(simulation))
    # Another value of what was assumed, to see how much hangs on it: no better guess.
    if code == "cluster-default" and not simulation.parameters.dim and simulation.has_dimensions:
        cluster = simulation.cluster
        halved = (replace(one, bandwidth=one.bandwidth / 2) for one in cluster.dims)
        return variants.step_ns_on_cluster(replace(cluster, dims=tuple(halved)))
    return variants.step_ns(world=2 * simulation.layout.world) if code == "all-gpus-missing" else None


def _double_stage_bytes(simulation: Simulation) -> Callable[[Workload], Workload | None]:
    """What makes of a file one that states twice the bytes between stages that were taken for it."""

    def double_bytes(workload: Workload) -> Workload | None:
        structure, layout = simulation.program.structure, simulation.layout
        assumed_bytes, _ = bytes_between_stages(workload, structure, layout)
        return (
            replace(workload, header=replace(workload.header, pp_comm=2 * assumed_bytes))
            if assumed_bytes
            else None
        )

    return double_bytes


def find_schedule_effect(
    simulation: Simulation, tried_changes: Sequence[WhatIf], variants: Variants
) -> AssumptionEffect | None:
    """What the best other schedule makes of a run for which nobody gave one; of one stage, where the file
    runs as a loop, 1f1b. None where no other one is shorter.

    found: the changes that were tried.
    """
    if not simulation.program.has_pipeline_schedule:
        return AssumptionEffect(variants.step_ns(schedule="1f1b"), "with 1f1b ", "1f1b")
    plain = replace(simulation.parameters, schedule=None, virtual_stages=None)
    schedule_changes = [
        one
        for one in tried_changes
        if one.parameters is not None and one.parameters.schedule is not None
        and replace(one.parameters, schedule=None, virtual_stages=None) == plain
    ]  # fmt: skip
    best = min(schedule_changes, key=lambda one: one.better10_ns, default=None)
    if best is None or best.parameters is None:
        return None
    name = str(best.parameters.schedule)
    chunks = best.parameters.virtual_stages
    words = f"{name} in {chunks} chunks a stage" if chunks else name
    return AssumptionEffect(best.better10_ns, f"with {words} ", name)


def find_other_file_ns(
    simulation: Simulation, variants: Variants, change_rows: Callable[[Workload], Workload | None]
) -> int | None:
    """The step of a file with other rows, ns; dp, which its rows may tell, stays what it is.

    variants: of the run. None where there are no such rows.
    """
    rows, kept_fields = simulation.workload, {}
    # A run begins with the file's cells: what is changed in those that it has made of them would be lost.
    if simulation.program.queued:
        rows = rows.as_written
    elif rows.has_other_rows:
        rows, kept_fields = replace(rows, as_read=None), {"rescale": "off", "without_lines": ()}
    workload = change_rows(rows)
    if workload is None:
        return None
    return variants.step_ns_of_workload(workload, world=simulation.layout.world, **kept_fields)


def sum_assumed_compute(simulation: Simulation) -> int:
    """Compute of the rows that a model has once and every stage runs, ns in all micro-batches."""
    workload, structure = simulation.workload, simulation.program.structure
    rows = [row for block in structure.blocks for row in block if not is_layer(workload.name[row])]
    phases = (workload.fwd, workload.ig, workload.wg)
    return sum(phase.compute_ns[row] for row in (*rows, *structure.loss) for phase in phases)
