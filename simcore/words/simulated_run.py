"""A simulated run in words, as reports, screens and the row above them describe it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.analysis.model_use import format_rescaling
from simcore.diagnostics import printable
from simcore.layout import Layout
from simcore.program import Program
from simcore.simulation import Simulation
from simcore.trace.figures import append_each
from simcore.units import IN_TIME, duration, format_number, group_digits, plural, short_layout

if TYPE_CHECKING:
    from simcore.analysis.simulation_figures import SimulationFigures


def layout_words(layout: Layout) -> str:
    """Returns `1024 = tp 8 x dp 8 x pp 16`, and where the ranks of ep are where there is more than one."""
    shared = f" x cp {layout.cp}" if layout.cp > 1 else ""
    words = f"{layout.world} = tp {layout.tp}{shared} x dp {layout.replicas} x pp {layout.pp}"
    if layout.ep == 1:
        return words
    return f"{words}, ep {layout.ep} inside {'tp x dp' if layout.ep_across_tp else 'dp'}"


def schedule_words(program: Program) -> str:
    """Returns `interleaved, 16 micro-batches, 8 virtual stages`, or `layer-loop`, which has none."""
    if not program.has_pipeline_schedule:
        return program.schedule
    words = f"{printable(program.schedule, 40)}, {plural(program.microbatches, 'micro-batch')}"
    words += "" if program.steps == 1 else f", {plural(program.steps, 'step')}"
    return words if program.virtual_stages == 1 else f"{words}, {program.virtual_stages} virtual stages"


def _overlap_flags(simulation: Simulation) -> list[str]:
    """Returns the set flags that let collectives overlap compute, without dashes; none without a schedule."""
    if not simulation.program.has_pipeline_schedule:
        return []
    flags = ("overlap_grad_reduce", "overlap_param_gather", "overlap_fwd_bwd")
    return [flag.replace("_", "-") for flag in flags if getattr(simulation.parameters, flag)]


def _short_schedule_facts(simulation: Simulation) -> list[str]:
    """Returns the schedule as facts of a small screen: `interleaved x8`, `16 mb`."""
    program = simulation.program
    chunks = f" x{program.virtual_stages}" if program.virtual_stages > 1 else ""
    # With `interleaved x8` 80 columns have room for the layout or for the overlap.
    chunks = chunks or " overlap" * bool(_overlap_flags(simulation))
    words = f"{printable(program.schedule, 20)}{chunks}"
    return [words, f"{program.microbatches} mb"] if program.has_pipeline_schedule else [words]


# Cells of a small screen for scaled times.
_SCALED_CELLS = 20


def _scaled_words(simulation: Simulation, wide: bool) -> list[str]:
    """Returns what takes other times than the file's: `layer mlp_row x0.9 in time and 2 more`; none where
    nothing does.

    wide: whether there is room for all of it.
    """
    parameters = simulation.parameters
    total_scales = (("compute", parameters.compute_scale), ("communication", parameters.comm_scale))
    scale_texts = [f"{what} x{format_number(factor)}" for what, factor in total_scales if factor != 1]
    for prefix, option_texts in (
        ("", parameters.time_scale), ("layer ", parameters.layer_scale), ("rank ", parameters.slow_rank)
    ):  # fmt: skip
        parts = (text.rpartition("=") for text in option_texts)
        scale_texts += [f"{prefix}{printable(what, 24)} x{factor}" for what, _, factor in parts]
    more = f" and {len(scale_texts) - 1} more" * (len(scale_texts) > 1)
    if scale_texts and wide:
        # A bare x0.4858 reads as a speed: IN_TIME says that it scales times.
        return [f"{scale_texts[0]}{IN_TIME}{more}"]
    forms = [f"{what}{more}" for first in scale_texts[:1] for what in (first, first.removeprefix("layer "))]
    if forms:
        forms = [form for form in forms if len(form) <= _SCALED_CELLS] or ["other times"]
    return forms[:1]


def structure_words(simulation: Simulation) -> str:
    """Returns how the file's rows make up the step: what comes before, in and after its blocks."""
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


def headline(results: SimulationFigures, wide: bool) -> list[str]:
    """Returns the ranks, the schedule and, where there is room, the network, the most important first."""
    simulation = results.simulation
    program, layout = simulation.program, simulation.layout
    figures = results.model.model_figures
    if figures is not None:
        # Imported here, as in `facts`: files have no figures of a model.
        from simcore.analysis.model_figures import format_memory, format_memory_short, throughput_facts

        facts = throughput_facts(figures)
        if figures.inference is not None:
            latency, total, per_gpu, flops, share = facts
            if not wide:
                return [format_memory_short(figures), total, _short_layout(layout), figures.inference.step]
            ranks = _ranks_words(layout)
            return [format_memory(figures), ranks, latency, total, share, program.schedule, per_gpu, flops]
        total, per_gpu, flops, mfu, hfu = facts
        if not wide:
            return [format_memory_short(figures), _short_layout(layout), mfu, program.schedule]
        return [
            format_memory(figures),
            _ranks_words(layout),
            total,
            mfu,
            program.schedule,
            per_gpu,
            flops,
            hfu,
        ]
    scaled = _scaled_words(simulation, wide)
    if not wide:
        workload = simulation.workload
        rescaled_fact, lines_fact = (
            ["rescaled"] * bool(workload.rescaled),
            ["lines left out"] * bool(workload.left_out),
        )
        # Whether a step does other work is stated next to its time; lines left out come last.
        return [
            _short_layout(layout),
            *rescaled_fact,
            *scaled,
            *_short_schedule_facts(simulation),
            *lines_fact,
        ]
    ranks = _ranks_words(layout)
    overlaps = _overlap_flags(simulation)
    schedule = schedule_words(program) + (f", {overlaps[0]}" if len(overlaps) == 1 else "")
    schedule += ", with overlaps" if len(overlaps) > 1 else ""
    schedule = append_each(schedule, results.shape)
    rescaling = format_rescaling(simulation)
    file_facts = [rescaling.replace("rows are ", "rows ")] if rescaling else []
    if simulation.workload.left_out:
        file_facts.append(f"without {simulation.workload.left_out}")
    return [ranks, *file_facts, *scaled, schedule, printable(simulation.setup.network_words, 40)]


def _ranks_words(layout: Layout) -> str:
    """Returns `64 ranks = tp 4 x dp 8 x pp 2`."""
    return layout_words(layout).replace(" = ", f" {'rank' if layout.world == 1 else 'ranks'} = ", 1)


def _short_layout(layout: Layout) -> str:
    """Returns `128: tp 8 dp 4 pp 4 (ep 4)`: ep is no factor of the number of ranks."""
    degrees = (("tp", layout.tp), ("cp", layout.cp), ("dp", layout.replicas), ("pp", layout.pp))
    words = short_layout(layout.world, "rank", degrees)
    return words if layout.ep == 1 else f"{words} (ep {layout.ep})"


def facts(results: SimulationFigures) -> list[tuple[str, str]]:
    """Returns (name, words) of what was read and simulated, in the order of a page."""
    simulation = results.simulation
    workload, timeline = simulation.workload, simulation.timeline
    program = timeline.program
    declared = (
        "" if workload.declared_rows in (None, len(workload)) else f", {workload.declared_rows} declared"
    )
    left_out_text = f", without {workload.left_out}" if workload.left_out else ""
    rows = [
        ("file", printable(workload.path)),
        ("format", f"{workload.format}, {printable(workload.policy)}"),
        ("rows", f"{len(workload)}{declared}{left_out_text}: {structure_words(simulation)}"),
        ("ranks", layout_words(simulation.layout)),
        ("schedule", ", ".join((schedule_words(program), *_overlap_flags(simulation)))),
        ("cluster", f"{simulation.network.words()}; {printable(simulation.setup.network_words)}"),
        (
            "simulated",
            f"{group_digits(timeline.ops_simulated)} ops in {plural(len(timeline.classes), 'rank class')}, "
            f"for {group_digits(timeline.spans)} spans of all ranks",
        ),
    ]
    if workload.rescaled:
        rows.insert(3, ("rescaled", f"{workload.rescaled}: rows as AICB writes them there"))
    figures = results.model.model_figures
    if figures is not None:
        from simcore.analysis.model_figures import (
            ASSUMED_OF_FILE,
            format_inference,
            format_memory,
            format_mfu,
            format_model,
        )

        model_facts = [("model", format_model(figures)), ("memory", format_memory(figures))]
        if figures.inference is None:
            model_facts.append(("MFU", format_mfu(figures)))
        else:
            model_facts.append((figures.inference.step, format_inference(figures.inference)))
        if workload.maker is None:
            model_facts = [rows[0], *model_facts, ("assumed", ASSUMED_OF_FILE)]
        rows[:1] = model_facts
    if results.figures.origin.steady_step_ns is not None:
        words = f"{program.steps} in {duration(results.step_time_ns)}, none waiting for the one before; all"
        rows.append(("steps", f"{words} figures but the first are of them together, as one step"))
    megatron = results.megatron_step_ns
    if megatron is not None:
        words = "uniform: every stage runs all rows, the embedding and the loss too; --stage-layout megatron"
        rows.append(("layout", f"{words}: {duration(megatron)}"))
    return rows
