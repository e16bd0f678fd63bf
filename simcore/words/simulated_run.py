"""A simulated run in words, as reports, screens and the row above them say what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.analysis.model_use import rescaled_words
from simcore.diagnostics import printable
from simcore.layout import Layout
from simcore.program import Program
from simcore.simulation import Simulation
from simcore.trace.figures import with_each
from simcore.units import IN_TIME, digits, duration, number, plural, short_layout

if TYPE_CHECKING:
    from simcore.analysis.finished import Finished


def layout_words(layout: Layout) -> str:
    """`1024 = tp 8 x dp 8 x pp 16`, and how ep lies in it where there is one."""
    shared = f" x cp {layout.cp}" if layout.cp > 1 else ""
    words = f"{layout.world} = tp {layout.tp}{shared} x dp {layout.replicas} x pp {layout.pp}"
    if layout.ep == 1:
        return words
    return f"{words}, ep {layout.ep} inside {'tp x dp' if layout.ep_across_tp else 'dp'}"


def schedule_words(program: Program) -> str:
    """`interleaved, 16 micro-batches, 8 virtual stages`, or `layer-loop`, which has none."""
    if not program.has_pipeline_schedule:
        return program.schedule
    words = f"{printable(program.schedule, 40)}, {plural(program.microbatches, 'micro-batch')}"
    words += "" if program.steps == 1 else f", {plural(program.steps, 'step')}"
    return words if program.virtual_stages == 1 else f"{words}, {program.virtual_stages} virtual stages"


def _overlaps(simulation: Simulation) -> list[str]:
    """The flags given by which collectives run beside compute, without dashes; none without a schedule."""
    if not simulation.program.has_pipeline_schedule:
        return []
    flags = ("overlap_grad_reduce", "overlap_param_gather", "overlap_fwd_bwd")
    return [flag.replace("_", "-") for flag in flags if getattr(simulation.parameters, flag)]


def _short_schedule(simulation: Simulation) -> list[str]:
    """The same as facts of a small screen: `interleaved x8`, `16 mb`."""
    program = simulation.program
    chunks = f" x{program.virtual_stages}" if program.virtual_stages > 1 else ""
    # Beside `interleaved x8` 80 columns have room for the layout or for this.
    chunks = chunks or " overlap" * bool(_overlaps(simulation))
    words = f"{printable(program.schedule, 20)}{chunks}"
    return [words, f"{program.microbatches} mb"] if program.has_pipeline_schedule else [words]


# Cells of a small screen for what takes other times than the file's.
_SCALED_CELLS = 20


def _scaled_words(simulation: Simulation, wide: bool) -> list[str]:
    """`layer mlp_row x0.9 in time and 2 more`: what takes other times than the file's; nothing where
    nothing does.

    wide: whether there is room for all of it.
    """
    parameters = simulation.parameters
    whole = (("compute", parameters.compute_scale), ("communication", parameters.comm_scale))
    said = [f"{what} x{number(factor)}" for what, factor in whole if factor != 1]
    for front, given in (
        ("", parameters.time_scale), ("layer ", parameters.layer_scale), ("rank ", parameters.slow_rank)
    ):  # fmt: skip
        parts = (text.rpartition("=") for text in given)
        said += [f"{front}{printable(what, 24)} x{factor}" for what, _, factor in parts]
    more = f" and {len(said) - 1} more" * (len(said) > 1)
    if said and wide:
        # Two users took x0.4858 for a speed.
        return [f"{said[0]}{IN_TIME}{more}"]
    forms = [f"{what}{more}" for first in said[:1] for what in (first, first.removeprefix("layer "))]
    if forms:
        forms = [form for form in forms if len(form) <= _SCALED_CELLS] or ["other times"]
    return forms[:1]


def structure_words(simulation: Simulation) -> str:
    """How the file's rows make up the step: what comes before, in and after its blocks."""
    structure = simulation.program.structure
    if simulation.workload.maker is not None and simulation.workload.stages:
        sizes = simulation.workload.maker.values(simulation.setup.model)["stage_layers"]
        parts = len(structure.prologue), len(structure.loss) + len(structure.tail)
        return f"{parts[0]} before, layers of the stages {sizes}, {parts[1]} after"
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


def headline(results: Finished, wide: bool) -> list[str]:
    """Ranks, schedule and, where there is room, network: what the run is, the most important first."""
    simulation = results.simulation
    program, layout = simulation.program, simulation.layout
    figures = results.model.model_figures
    if figures is not None:
        # Imported here, as in `facts`: files have none.
        from simcore.analysis.model_figures import memory_words, short_memory_words, throughput_facts

        total, each, flops, mfu, hfu = throughput_facts(figures)
        if not wide:
            return [short_memory_words(figures), _short_layout(layout), mfu, program.schedule]
        return [memory_words(figures), _ranks_words(layout), total, mfu, program.schedule, each, flops, hfu]
    scaled = _scaled_words(simulation, wide)
    if not wide:
        workload = simulation.workload
        made, less = ["rescaled"] * bool(workload.rescaled), ["lines left out"] * bool(workload.left_out)
        # That it is other work stands beside the step: what was changed last is the schedule.
        return [_short_layout(layout), *made, *scaled, *_short_schedule(simulation), *less]
    ranks = _ranks_words(layout)
    overlaps = _overlaps(simulation)
    schedule = schedule_words(program) + (f", {overlaps[0]}" if len(overlaps) == 1 else "")
    schedule += ", with overlaps" if len(overlaps) > 1 else ""
    schedule = with_each(schedule, results.shape)
    anew = rescaled_words(simulation)
    said = [anew.replace("rows are ", "rows ")] if anew else []
    if simulation.workload.left_out:
        said.append(f"without {simulation.workload.left_out}")
    return [ranks, *said, *scaled, schedule, printable(simulation.parameters.network, 40)]


def _ranks_words(layout: Layout) -> str:
    """`64 ranks = tp 4 x dp 8 x pp 2`."""
    return layout_words(layout).replace(" = ", f" {'rank' if layout.world == 1 else 'ranks'} = ", 1)


def _short_layout(layout: Layout) -> str:
    """`128: tp 8 dp 4 pp 4 (ep 4)`: ep is no factor of the ranks."""
    degrees = (("tp", layout.tp), ("cp", layout.cp), ("dp", layout.replicas), ("pp", layout.pp))
    words = short_layout(layout.world, "rank", degrees)
    return words if layout.ep == 1 else f"{words} (ep {layout.ep})"


def facts(results: Finished) -> list[tuple[str, str]]:
    """(name, words) of what was read and simulated, in the order of a page."""
    simulation = results.simulation
    workload, timeline = simulation.workload, simulation.timeline
    program = timeline.program
    declared = (
        "" if workload.declared_rows in (None, len(workload)) else f", {workload.declared_rows} declared"
    )
    without = f", without {workload.left_out}" if workload.left_out else ""
    rows = [
        ("file", printable(workload.path)),
        ("format", f"{workload.format}, {printable(workload.policy)}"),
        ("rows", f"{len(workload)}{declared}{without}: {structure_words(simulation)}"),
        ("ranks", layout_words(simulation.layout)),
        ("schedule", ", ".join((schedule_words(program), *_overlaps(simulation)))),
        ("cluster", f"{simulation.network.words()}; {printable(simulation.parameters.network)}"),
        (
            "simulated",
            f"{digits(timeline.ops_simulated)} ops in {plural(len(timeline.classes), 'rank class')}, "
            f"for {digits(timeline.spans)} spans of all ranks",
        ),
    ]
    if workload.rescaled:
        rows.insert(3, ("rescaled", f"{workload.rescaled}: rows as AICB writes them there"))
    figures = results.model.model_figures
    if figures is not None:
        from simcore.analysis.model_figures import ASSUMED_OF_FILE, memory_words, mfu_words, model_words

        said = [
            ("model", model_words(figures)),
            ("memory", memory_words(figures)),
            ("MFU", mfu_words(figures)),
        ]
        if workload.maker is None:
            said = [rows[0], *said, ("assumed", ASSUMED_OF_FILE)]
        rows[:1] = said
    if results.figures.of.steady_step_ns is not None:
        words = f"{program.steps} in {duration(results.step_time_ns)}, none waiting for the one before; all"
        rows.append(("steps", f"{words} figures but the first are of them together, as one step"))
    megatron = results.megatron_step_ns
    if megatron is not None:
        words = "uniform: every stage runs all rows, the embedding and the loss too; --stage-layout megatron"
        rows.append(("layout", f"{words}: {duration(megatron)}"))
    return rows
