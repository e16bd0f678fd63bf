"""What a run is, in words that the report and the screen share."""

from __future__ import annotations

from simcore.diagnostics import printable
from simcore.layout import Layout
from simcore.program import Program
from simcore.simulation import Simulation
from simcore.units import plural


def layout_words(layout: Layout) -> str:
    """`1024 = tp 8 x dp 8 x pp 16`, and how ep lies in it where there is one."""
    words = f"{layout.world} = tp {layout.tp} x dp {layout.dp} x pp {layout.pp}"
    if layout.ep == 1:
        return words
    return f"{words}, ep {layout.ep} inside {'tp x dp' if layout.dp % layout.ep else 'dp'}"


def schedule_words(program: Program) -> str:
    """`1f1b, 16 micro-batches`, or `layer-loop`, which has none."""
    if not program.has_pipeline_schedule:
        return program.schedule
    words = f"{printable(program.schedule, 40)}, {plural(program.microbatches, 'micro-batch')}"
    return words if program.steps == 1 else f"{words}, {plural(program.steps, 'step')}"


def structure_words(simulation: Simulation) -> str:
    """How the file's rows make up the step: what comes before, in and after its blocks."""
    structure = simulation.program.structure
    layers = structure.layers_per_block
    blocks = len(structure.blocks)
    each = (
        f"{min(layers, default=0)} to {max(layers, default=0)}"
        if len(set(layers)) > 1
        else f"{max(layers, default=0)}"
    )
    middle = (
        f"{plural(blocks, 'block')} of {each} layer{'' if each == '1' else 's'}" if blocks else "no blocks"
    )
    return f"{len(structure.prologue)} before, {middle}, {len(structure.loss) + len(structure.tail)} after"
