"""What is at stake with what was assumed of a file or noticed in it: the step as it would be otherwise."""

from __future__ import annotations

from collections.abc import Callable

from simcore.analysis.variants import Variants
from simcore.diagnostics import Diagnostic
from simcore.layout import with_gathered_buffer
from simcore.program.blocks import is_layer
from simcore.records import replace
from simcore.simulation import Simulation
from simcore.units import change_percent, duration
from simcore.workload.model import Workload
from simcore.workload.traffic import OTHER_ROWS

# The note of a stage layout that nobody gave.
LAYOUT_ASSUMED = "stage-layout-default"
# That of what rows do not send backward.
BACKWARD_UNSENT = "backward-unsent"
# By code of a note, the rows with which its step would be another one.
OTHER_FILES: dict[str, Callable[[Workload], Workload | None]] = {
    "gather-is-shard": with_gathered_buffer,
    **OTHER_ROWS,
}
# What stands before that step.
_OTHERWISE = {
    LAYOUT_ASSUMED: "", BACKWARD_UNSENT: "with it ", "gather-is-shard": "with it ",
    "all-parameters": "without it ", "pp-comm-differs": "with that of the rows ",
}  # fmt: skip
# The same in the words of a panel with a row for it.
_IN_BRIEF = {
    LAYOUT_ASSUMED: "megatron", BACKWARD_UNSENT: "with it", "gather-is-shard": "if whole, as by AICB,",
    "all-parameters": "without it", "pp-comm-differs": "else",
}  # fmt: skip


def at_stake(note: Diagnostic, step: int, other: int | None) -> Diagnostic:
    """A note with what the step would be otherwise: `: with it the step would be 496.2 ms (+15.3 %)`.

    step, other: ns; None where no other one could be found.
    """
    front = _OTHERWISE[note.code]
    if other is None or not step:
        return note
    if other == step:
        return replace(note, message=f"{note.message}: {front}the step takes as long")
    share = change_percent(step, other)
    brief = f"{note.brief}; {_IN_BRIEF[note.code]} {share}" if note.brief else ""
    message = f"{note.message}: {front}the step would be {duration(other)} ({share})"
    return replace(note, message=message, brief=brief)


def other_file_ns(
    simulation: Simulation, variants: Variants, changed: Callable[[Workload], Workload | None]
) -> int | None:
    """The step of a file with other rows, ns; dp, which its rows may tell, stays what it is.

    variants: of the run. None where there are no such rows.
    """
    rows, kept = simulation.workload, {}
    # A run begins with the file's cells: what is changed in those that it has made of them would be lost.
    if simulation.program.queued:
        rows = rows.as_written
    elif rows.has_other_rows:
        rows, kept = replace(rows, as_read=None), {"rescale": "off", "without_lines": ()}
    workload = changed(rows)
    if workload is None:
        return None
    return variants.step_ns_of(workload, world=simulation.layout.world, **kept)


def assumed_compute_ns(simulation: Simulation) -> int:
    """Compute of the rows that a model has once and every stage runs, ns in all micro-batches."""
    workload, structure = simulation.workload, simulation.program.structure
    rows = [row for block in structure.blocks for row in block if not is_layer(workload.name[row])]
    phases = (workload.fwd, workload.ig, workload.wg)
    return sum(phase.compute_ns[row] for row in (*rows, *structure.loss) for phase in phases)
