"""What a SimAI file alone says of memory: weights, gradients and optimizer states of a rank by its gradient
collectives, activations about by the size of its tensor-parallel ones (docs/models.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from simcore.diagnostics import Diagnostic
from simcore.records import NamedTuple
from simcore.simulation import Simulation
from simcore.trace.contexts import FileMemory, ModelUse
from simcore.trace.run import Run
from simcore.units import byte_size, plural
from simcore.workload.model import base_name

if TYPE_CHECKING:
    pass

# Bytes a parameter: of weights, gradients, optimizer states (an fp32 copy and Adam's two moments).
_WEIGHT, _GRADIENT, _STATES = 2, 4, 12
# Numbers that a layer holds of each of its b x s x h (arXiv 2205.05198, scores not kept): all of them cut by
# tp with sequence parallelism, else those outside the linears whole.
_SHARDED, _UNSHARDED = 24, 10
# What ends a layer's attention: one row a layer, whatever its attention is made of.
_ATTENTION_ENDS = ("attention_row", "attention_o_row", "attention_layer")
_EXPERTS = "mlp_moelayer"


def compare_memory(run_before: Run, run_now: Run) -> list[str]:
    """What a run needs more than another one, in words, the shortest last: `+3.0 GB: now holds 16
    micro-batches, 1 before` of the fullest stage; of one that holds more than it did where the fullest does
    not, with that. Nothing where none needs more, as far as that is known.
    """
    bytes_before, bytes_now = peak_bytes(run_before.model), peak_bytes(run_now.model)
    held_before, held_now = run_before.shape.held_microbatches, run_now.shape.held_microbatches
    before, peak_now = max(held_before, default=0), max(held_now, default=0)
    extra_bytes = 0 if bytes_before is None or bytes_now is None else bytes_now - bytes_before
    if extra_bytes > 0:
        size = f"+{byte_size(extra_bytes)}"
        if peak_now <= before:
            return [f"{size[1:]} more than before", size]
        return [*_held_forms(peak_now, before, f"{size}: ", f"{size}: "), size]
    if extra_bytes < 0:
        # What one stage holds more is small beside what the fullest has less.
        return []
    if peak_now > before and (bytes_before is None or bytes_now is None):
        return _held_forms(peak_now, before)
    if len(held_before) != len(held_now):
        return []
    stage = max(range(len(held_now)), key=lambda stage: held_now[stage] - held_before[stage], default=0)
    if not held_now or held_now[stage] <= held_before[stage]:
        return []
    if bytes_now is not None and not extra_bytes:
        # Said of stage 15 alone, it was taken for what the change costs.
        count = plural(held_now[stage], "micro-batch")
        more_words = (f"now holds {count}, {held_before[stage]} before", f"holds {count}", "holds more")
        same = "memory as before"
        return [*(f"{same}; stage {stage} {words}" for words in more_words), same]
    return _held_forms(held_now[stage], held_before[stage], f"stage {stage} ", f"stage {stage}: ")


def _held_forms(count_now: int, count_before: int, long: str = "", short: str = "") -> list[str]:
    """How many micro-batches are held, in three forms, behind what stands before each."""
    return [
        f"{long}now holds {plural(count_now, 'micro-batch')}, {count_before} before",
        f"{short}{count_now} micro-batches now held, {count_before} before",
        f"{short}{count_now} mb held, {count_before} before",
    ]


def peak_bytes(model: ModelUse) -> int | None:
    """What a rank of the fullest stage needs, about, bytes; None where nobody knows, as of files without
    activations: these are what a schedule makes more or less of.
    """
    figures = model.model_figures
    if figures is not None:
        return figures.fullest.needed
    stage_bytes = [stage.total for stage in model.file_memory if stage.activations is not None]
    return max(stage_bytes, default=None)


class _Parameters(NamedTuple):
    """Parameters of a rank, those of experts apart. sharded: the replicas share out the optimizer states."""

    dense: int
    experts: int
    is_sharded: bool


def estimate_file_memory(simulation: Simulation) -> tuple[FileMemory, ...]:
    """By stage; nothing of a run whose rows do not say what their gradients are."""
    workload, layout, program = simulation.workload, simulation.layout, simulation.program
    if workload.maker is not None and workload.stages:
        return ()
    sizes = None if program.queued or workload.is_table else _count_parameters(simulation)
    if sizes is None:
        return ()
    copies = program.placement.copies
    shares = [(sizes.dense, layout.dp), (sizes.experts, layout.group_size("dp_ep"))]
    states = sum(_STATES * size // (ranks if sizes.is_sharded else 1) for size, ranks in shares)
    count = copies * (sizes.dense + sizes.experts)
    layer, layers = _estimate_layer_bytes(simulation), _count_layers(simulation)
    chunks = program.virtual_stages
    memory = []
    for stage, stage_program in enumerate(program.stages):
        # A trainer without a pipeline has one micro-batch at a time, whatever layer-loop does.
        peak_chunks = stage_program.peak_chunks if program.pipelined else 1
        # A chunk has its share of the layers; held chunks need not be whole micro-batches. These follow one
        # another: of unequal ones the most that so many of them have.
        microbatches = -(-peak_chunks // chunks)
        most = max(
            sum(layers[(first + index) % len(layers)] for index in range(microbatches))
            for first in range(len(layers))
        )
        activation_bytes = (
            None if layer is None else layer * most * peak_chunks // (chunks * max(microbatches, 1))
        )
        memory.append(
            FileMemory(
                stage, _WEIGHT * count, _GRADIENT * count, copies * states, activation_bytes, peak_chunks
            )
        )
    return tuple(memory)


def _count_parameters(simulation: Simulation) -> _Parameters | None:
    """What the gradients' collectives are of: 4 bytes a parameter, those of experts in a row of their own.

    AICB's plain files have one row for all.
    """
    workload = simulation.workload
    wg = workload.wg
    sizes: dict[str, int] = {}
    sharded = False
    for row in simulation.program.structure.prologue:
        name = base_name(workload.name[row])
        if wg.collective[row] in ("REDUCESCATTER", "ALLREDUCE"):
            sizes[name] = sizes.get(name, 0) + wg.bytes[row] // _GRADIENT
            sharded |= wg.collective[row] == "REDUCESCATTER"
    # `moe_grad_norm2`: a name ends with its number.
    experts = sizes.get("moe_grad_norm", 0)
    if "grad_param_comm" in sizes:
        return _Parameters(sizes["grad_param_comm"], experts, sharded)
    if "grad_norm" in sizes:
        return _Parameters(max(0, sizes["grad_norm"] - experts), experts, sharded)
    return None


def _count_layers(simulation: Simulation) -> list[int]:
    """Transformer layers of a stage in each block that a step has; after the last the first comes again."""
    names, structure = simulation.workload.name, simulation.program.structure
    most = max(structure.layers_per_block, default=0)
    of_blocks = [
        sum(base_name(names[row]) in _ATTENTION_ENDS for row in block) or most for block in structure.blocks
    ] or [most]
    return of_blocks[:1] if len(set(of_blocks)) == 1 else of_blocks[: max(simulation.program.microbatches, 1)]


def _estimate_layer_bytes(simulation: Simulation) -> int | None:
    """Bytes that a layer holds of one micro-batch, about; None where no collective says b s h."""
    workload, tp = simulation.workload, simulation.layout.tp
    blocks = simulation.program.structure.blocks
    cells = workload.fwd
    sizes, is_sequence_parallel = set(), False
    for row in blocks[0] if blocks else ():
        name = base_name(workload.name[row])
        if name == _EXPERTS or not name.startswith(("attention", "mlp")):
            continue
        if cells.collective[row] is not None and cells.group[row] == "tp" and cells.bytes[row]:
            sizes.add(cells.bytes[row])
            is_sequence_parallel |= cells.collective[row] != "ALLREDUCE"
    if not sizes:
        return None
    # Those of attention may count twice where it is run again: the least is b s h, of 2 bytes.
    elements = min(sizes) // 2
    return (
        elements * (_SHARDED + _UNSHARDED) // tp
        if is_sequence_parallel
        else elements * _UNSHARDED + elements * _SHARDED // tp
    )


def make_memory_note(of_stages: Sequence[FileMemory], path: str) -> Iterator[Diagnostic]:
    """What the memory that a file tells is made of, and what of it no file tells; nothing where it tells
    none.
    """
    if not of_stages:
        return
    most = max(of_stages, key=lambda memory: memory.total)
    parts = [("weights", most.weights), ("gradients", most.gradients), ("optimizer", most.optimizer)]
    words = ", ".join(f"{name} {byte_size(size)}" for name, size in parts if size)
    least, more = "at least", "activations not known"
    if most.activations is not None:
        least, size = "about", byte_size(most.activations)
        more = f"activations {size} if no whole layer is recomputed"
    message = (
        f"memory of stage {most.stage} is {least} {byte_size(most.total)}: {words}, {more}; logits and "
        "what single ops need are not in the file; --gpu holds it against a GPU's memory"
    )
    brief = f"memory {least} {byte_size(most.total)} on stage {most.stage}"
    yield Diagnostic("note", "memory-assumed", message, path, brief=brief)
