"""A simulated run in words, as reports, screens and the row above them say what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.diagnostics import printable
from simcore.layout import Layout
from simcore.program import Program
from simcore.simulation import Simulation
from simcore.units import digits, duration, plural

if TYPE_CHECKING:
    from simcore.analysis.results import Results


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
    return f"{program.schedule}, {plural(program.microbatches, 'micro-batch')}"


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


def headline(results: Results, wide: bool) -> list[str]:
    """Ranks, schedule and, where there is room, network: what the run is, the most important first."""
    simulation = results.simulation
    program, layout = simulation.program, simulation.layout
    if not wide:
        count = f" x{program.microbatches}" if program.has_pipeline_schedule else ""
        return [plural(layout.world, "rank"), f"{program.schedule}{count}"]
    ranks = layout_words(layout).replace(" = ", f" {'rank' if layout.world == 1 else 'ranks'} = ", 1)
    return [ranks, schedule_words(program), printable(simulation.parameters.network, 40)]


def facts(results: Results) -> list[tuple[str, str]]:
    """(name, words) of what was read and simulated, in the order of a page."""
    simulation = results.simulation
    workload, timeline = simulation.workload, simulation.timeline
    program = timeline.program
    declared = (
        "" if workload.declared_rows in (None, len(workload)) else f", {workload.declared_rows} declared"
    )
    schedule = schedule_words(program)
    if program.virtual_stages > 1:
        schedule += f", {program.virtual_stages} virtual stages"
    found = [
        ("file", printable(workload.path)),
        ("format", f"{workload.format}, {printable(workload.policy)}"),
        ("rows", f"{len(workload)}{declared}: {structure_words(simulation)}"),
        ("ranks", layout_words(simulation.layout)),
        ("schedule", schedule),
        ("cluster", f"{simulation.network.words()}; {printable(simulation.parameters.network)}"),
        (
            "simulated",
            f"{digits(timeline.ops_simulated)} ops in {plural(len(timeline.classes), 'rank class')}, "
            f"for {digits(timeline.spans)} spans of all ranks",
        ),
    ]
    megatron = results.megatron_step_ns
    if megatron is not None:
        words = "uniform: every stage runs all rows, the embedding and the loss too; --stage-layout megatron"
        found.append(("layout", f"{words}: {duration(megatron)}"))
    return found
