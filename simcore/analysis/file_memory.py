"""The memory that follows from a SimAI file alone: weights, gradients and optimizer states of a rank from its
gradient collectives, activations approximately from the size of its tensor-parallel ones (docs/models.md).
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

# Bytes per parameter: of weights, gradients, optimizer states (an fp32 copy and Adam's two moments).
_WEIGHT, _GRADIENT, _STATES = 2, 4, 12
# Numbers that a layer holds for each of its b x s x h (arXiv 2205.05198, scores not stored): all of them are
# split by tp with sequence parallelism, else those outside the linears are held in full.
_SHARDED, _UNSHARDED = 24, 10
# The rows that end a layer's attention: one row a layer, whatever its attention consists of.
_ATTENTION_ENDS = ("attention_row", "attention_o_row", "attention_layer")
_EXPERTS = "mlp_moelayer"


def compare_memory(run_before: Run, run_now: Run) -> list[str]:
    """Returns what memory a run needs more than another one, in words, the shortest last.

    `+3.0 GB: now holds 16 micro-batches, 1 before` of the fullest stage; where that needs no more, the stage
    that holds more than before. Empty where no stage needs more, or it is not known.
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
        # A stage that holds more does not matter where the fullest needs less.
        return []
    if peak_now > before and (bytes_before is None or bytes_now is None):
        return _held_forms(peak_now, before)
    if len(held_before) != len(held_now):
        return []
    stage = max(range(len(held_now)), key=lambda stage: held_now[stage] - held_before[stage], default=0)
    if not held_now or held_now[stage] <= held_before[stage]:
        return []
    if bytes_now is not None and not extra_bytes:
        # Without `memory as before` the words on one stage read as the effect of the whole change.
        count = plural(held_now[stage], "micro-batch")
        more_words = (f"now holds {count}, {held_before[stage]} before", f"holds {count}", "holds more")
        same = "memory as before"
        return [*(f"{same}; stage {stage} {words}" for words in more_words), same]
    return _held_forms(held_now[stage], held_before[stage], f"stage {stage} ", f"stage {stage}: ")


def _held_forms(count_now: int, count_before: int, long: str = "", short: str = "") -> list[str]:
    """Returns how many micro-batches are held, in three forms. long, short: the words before them."""
    return [
        f"{long}now holds {plural(count_now, 'micro-batch')}, {count_before} before",
        f"{short}{count_now} micro-batches now held, {count_before} before",
        f"{short}{count_now} mb held, {count_before} before",
    ]


def peak_bytes(model: ModelUse) -> int | None:
    """Returns about what a rank of the fullest stage needs, bytes.

    None where that is not known, as of files without activations: it is these that a schedule changes.
    """
    figures = model.model_figures
    if figures is not None:
        return figures.fullest.needed
    stage_bytes = [stage.total for stage in model.file_memory if stage.activations is not None]
    return max(stage_bytes, default=None)


class _Parameters(NamedTuple):
    """The parameters of a rank."""

    dense: int
    """All except those of experts."""
    experts: int
    """Those of experts."""
    is_sharded: bool
    """Whether the replicas shard the optimizer states."""


def estimate_file_memory(simulation: Simulation) -> tuple[FileMemory, ...]:
    """Returns the memory by stage; empty for a run whose rows do not give the size of their gradients."""
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
        # A trainer without a pipeline has one micro-batch at a time, unlike layer-loop.
        peak_chunks = stage_program.peak_chunks if program.pipelined else 1
        # A chunk has its share of the layers; resident chunks need not be whole micro-batches. These follow
        # one another: of unequal ones the most layers that so many successive ones have.
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
    """Returns the parameters by the gradients' collectives: 4 bytes a parameter, experts in a separate row.

    AICB's plain files have one row for all. None where no such row exists.
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
    # The number at the end of `moe_grad_norm2` is no part of the name.
    experts = sizes.get("moe_grad_norm", 0)
    if "grad_param_comm" in sizes:
        return _Parameters(sizes["grad_param_comm"], experts, sharded)
    if "grad_norm" in sizes:
        return _Parameters(max(0, sizes["grad_norm"] - experts), experts, sharded)
    return None


def _count_layers(simulation: Simulation) -> list[int]:
    """Returns the transformer layers of a stage in each block of a step; the blocks repeat from the first."""
    names, structure = simulation.workload.name, simulation.program.structure
    most = max(structure.layers_per_block, default=0)
    of_blocks = [
        sum(base_name(names[row]) in _ATTENTION_ENDS for row in block) or most for block in structure.blocks
    ] or [most]
    return of_blocks[:1] if len(set(of_blocks)) == 1 else of_blocks[: max(simulation.program.microbatches, 1)]


def _estimate_layer_bytes(simulation: Simulation) -> int | None:
    """Returns about how many bytes a layer holds of one micro-batch; None where no collective gives b s h."""
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
    # The collectives of attention may count twice where it is recomputed: the least is b s h, of 2 bytes.
    elements = min(sizes) // 2
    return (
        elements * (_SHARDED + _UNSHARDED) // tp
        if is_sequence_parallel
        else elements * _UNSHARDED + elements * _SHARDED // tp
    )


def make_memory_note(of_stages: Sequence[FileMemory], path: str) -> Iterator[Diagnostic]:
    """Yields the note on the parts of the memory that a file gives, and on those that it does not; nothing
    where it gives none.
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
