"""The effects of what was assumed of a file or noticed in it: the step as it would be otherwise."""

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

# The code of the note on a stage layout that was not given.
LAYOUT_ASSUMED = "stage-layout-default"
# The code of the note on what rows do not send backward.
BACKWARD_UNSENT = "backward-unsent"
# By code of a note, a function that gives the file with the other rows.
OTHER_FILES: dict[str, Callable[[Workload], Workload | None]] = {
    "gather-is-shard": with_gathered_buffer,
    **OTHER_ROWS,
}
# The codes of notes whose effect takes a separate run with another value of what was assumed.
WEIGHED_CODES = (BACKWARD_UNSENT, "pp-comm-missing", "cluster-default", "all-gpus-missing")
# The code of the note on a schedule that was not given.
SCHEDULE_ASSUMED = "schedule-default"


class AssumptionEffect(NamedTuple):
    """The step with another value of what was assumed."""

    ns: int | None
    """The step, ns; None where it is not known."""
    lead_in: str
    """The words before it in a sentence."""
    brief: str
    """The words before it in a panel with a row for it."""


# By code of a note: `AssumptionEffect.lead_in` and `AssumptionEffect.brief`.
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
    """Returns the effect for a note of this code. other_ns: the other step."""
    return AssumptionEffect(other_ns, *_EFFECT_WORDS[code])


def append_effect(note: Diagnostic, step: int, effect: AssumptionEffect) -> Diagnostic:
    """Returns a note with what the step would be otherwise: `: with it the step would be 496.2 ms (+15.3 %)`.

    step: ns.
    """
    other = effect.ns
    if other is None or not step:
        return note
    if other == step or duration(other) == duration(step):
        return replace(note, message=f"{note.message}: {effect.lead_in}the step takes as long")
    share = change_percent(step, other)
    # The word `assumed` implies that none was given: its room goes to the figure.
    brief = f"{note.brief.removesuffix(': none given')}; {effect.brief} {share}" if note.brief else ""
    message = f"{note.message}: {effect.lead_in}the step would be {duration(other)} ({share})"
    return replace(note, message=message, brief=brief, effect=abs(other - step) / step)


def find_otherwise_ns(simulation: Simulation, variants: Variants, code: str) -> int | None:
    """Returns the step with another value of what a note of `WEIGHED_CODES` is about, ns; None if not known.

    variants: of the run.
    """
    if code == BACKWARD_UNSENT:
        return find_other_file_ns(simulation, variants, with_backward_sent)
    if code == "pp-comm-missing":
        return find_other_file_ns(simulation, variants, _double_stage_bytes(simulation))
    # Another value shows how much depends on the assumption: it is no better guess.
    if code == "cluster-default" and not simulation.parameters.dim and simulation.has_dimensions:
        cluster = simulation.cluster
        halved = (replace(one, bandwidth=one.bandwidth / 2) for one in cluster.dims)
        return variants.step_ns_on_cluster(replace(cluster, dims=tuple(halved)))
    return variants.step_ns(world=2 * simulation.layout.world) if code == "all-gpus-missing" else None


def _double_stage_bytes(simulation: Simulation) -> Callable[[Workload], Workload | None]:
    """Returns a function that gives a file which states twice the bytes between stages that were assumed."""

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
    """Returns the best other schedule's effect on a run whose schedule was not given; 1f1b where there is one
    stage and the file runs as a loop. None where no other schedule is shorter.

    tried_changes: the changes that were tried.
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
    """Returns the step of a file with other rows, ns; dp, which its rows may decide, stays the same.

    variants: of the run. None where there are no such rows.
    """
    rows, kept_fields = simulation.workload, {}
    # A run begins with the cells of the file: changes of cells that it derived from these would be lost.
    if simulation.program.queued:
        rows = rows.as_written
    elif rows.has_other_rows:
        rows, kept_fields = replace(rows, as_read=None), {"rescale": "off", "without_lines": ()}
    workload = change_rows(rows)
    if workload is None:
        return None
    return variants.step_ns_of_workload(workload, world=simulation.layout.world, **kept_fields)


def sum_assumed_compute(simulation: Simulation) -> int:
    """Returns the compute of the rows that a model has once and every stage runs, ns in all micro-batches."""
    workload, structure = simulation.workload, simulation.program.structure
    rows = [row for block in structure.blocks for row in block if not is_layer(workload.name[row])]
    phases = (workload.fwd, workload.ig, workload.wg)
    return sum(phase.compute_ns[row] for row in (*rows, *structure.loss) for phase in phases)
