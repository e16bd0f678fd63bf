"""Figures of the run of a model: tokens per second, FLOPs, memory, and what uneven loads of experts cost.

Memory is that of each stage, and that of a rank over time: it rises with each forward and falls with each
backward that ends. For a file that AICB wrote the training behind it is known once `--gpu` names the GPU.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

from simcore.diagnostics import printable
from simcore.model.costs import forward_flops, step_flops
from simcore.model.gpu import Gpu, find_gpu
from simcore.model.maker import ModelMaker, ModelRows
from simcore.model.memory import StageMemory, chunk_activations, memory_limit, stage_memory
from simcore.model.options.experts import resolve_loads
from simcore.model.training import Training
from simcore.model.trust import published_error
from simcore.names import TWO_WAY_SCHEDULES, V_SCHEDULES
from simcore.program.ops import FWD, IG, RECOMPUTE
from simcore.program.schedules import SCHEDULES
from simcore.records import NamedTuple, replace
from simcore.simulation import Simulation
from simcore.sources.simulated import ACCOUNTS
from simcore.trace.accounts import Accounts
from simcore.trace.contexts import (
    Imbalance,
    InferenceFigures,
    LayerImbalance,
    MemoryLane,
    ModelFigures,
    Throughput,
)
from simcore.units import duration, group_digits, plural

# The kinds of groups whose communication a schedule can hide.
_HIDEABLE_KINDS = ("dp", "dp_ep", "dp_shard", "dp_replicate", "pp")
# The phases that the gradient which a stage hands on waits for, and the communication that can be hidden
# there.
_WAY_PHASES = (FWD, RECOMPUTE, IG)
_OFF_WAY_KINDS = (*_HIDEABLE_KINDS, "offload")


def make_model_figures(simulation: Simulation) -> ModelFigures | None:
    """Returns the figures of a run; None unless it is of a model in Megatron's dialect, or of a file of AICB
    with a GPU.
    """
    model_and_gpu = find_training(simulation)
    if model_and_gpu is None:
        return None
    training, gpu = model_and_gpu
    # The time of a step where several are simulated.
    seconds = max(simulation.step_time_ns, 1) / 1e9 / simulation.program.steps
    tokens = training.global_batch * training.seq / seconds
    flops = step_flops if training.inference is None else forward_flops
    model_flops, hardware = (each / seconds / training.world for each in flops(training))
    peak = gpu.peak_of(training.precision) * 1e12
    causal = flops(training, causal=True)[0] / seconds / training.world
    throughput = Throughput(
        tokens,
        tokens / training.world,
        model_flops / 1e12,
        model_flops / peak,
        hardware / peak,
        model_flops / peak,
        causal / peak,
    )
    # A trainer without a pipeline has one micro-batch at a time, unlike layer-loop.
    one_at_a_time = ((0, 0, 1), (0, 0, -1))
    chunk_events = [
        stage.chunk_changes if simulation.program.pipelined else one_at_a_time
        for stage in simulation.program.stages
    ]
    memory = tuple(stage_memory(training, stage, chunk_events[stage]) for stage in range(training.pp))
    limit = memory_limit(simulation.parameters.memory_limit, gpu.memory)
    # Published steps are of attention over all tokens, or over a window.
    published = simulation.workload.maker is not None and len(training.model.unmeasured) < 1 + any(
        kind.window for kind in training.model.kinds
    )
    trust = published_error(training, gpu) if published and training.inference is None else None
    inference = _inference_figures(simulation, training, gpu, seconds)
    return ModelFigures(training.model, throughput, memory, limit, trust, inference)


def _inference_figures(
    simulation: Simulation, training: Training, gpu: Gpu, seconds: float
) -> InferenceFigures | None:
    """Returns the figures of an inference step; None of training."""
    step, model_rows = training.inference, find_model_rows(simulation)
    if step is None or model_rows is None:
        return None
    row_bytes = [sum(op.bytes for op in row.fwd) for row in model_rows.ops]
    by_stage = [
        sum(row_bytes[row] for rows in stage.chunks for row in rows) for stage in model_rows.workload.stages
    ]
    most = training.microbatches * max(by_stage)
    return InferenceFigures(
        step.name, training.global_batch, training.seq, step.context, step.kv_dtype, round(seconds * 1e9),
        round(most), most / seconds / (gpu.hbm * 1e9),
    )  # fmt: skip


def find_training(simulation: Simulation) -> tuple[Training, Gpu] | None:
    """Returns the training and GPU of a run of a model, or of the model behind a file; None without."""
    model_rows = find_model_rows(simulation)
    if model_rows is not None:
        return model_rows.training, model_rows.gpu
    if simulation.workload.maker is not None or simulation.parameters.gpu is None:
        return None
    return _find_file_training(simulation)


class LowerBound(NamedTuple):
    """The least that a step takes, ns. is_one_microbatch: whether one micro-batch decides it."""

    ns: int
    is_one_microbatch: bool


def find_lower_bound(simulation: Simulation, accounts: Sequence[Accounts]) -> LowerBound | None:
    """Returns the least that a step of the same rows takes under any schedule, with gradients, weights and
    transfers hidden: the work of the busiest rank without any bubble, or one micro-batch through all stages,
    where that is longer.

    accounts: of each rank class. None where a schedule, virtual stages or overlap were given, for one stage,
    and where single ranks or links are slow: another schedule may place other layers on them.
    """
    model_rows, parameters = find_model_rows(simulation), simulation.parameters
    schedule_flags = (parameters.schedule, parameters.virtual_stages)
    if (
        model_rows is None
        or model_rows.training.pp == 1
        or schedule_flags != (None, None)
        or parameters.steps > 1
    ):
        return None
    if parameters.overlap_grad_reduce or parameters.overlap_param_gather or parameters.jitter:
        return None
    if parameters.slow_rank or parameters.slow_link or simulation.workload.header.inference:
        return None
    work, way_ns = _most_work_ns(simulation, accounts), _one_microbatch_ns(simulation, accounts)
    return LowerBound(max(work, way_ns), way_ns > work)


def _most_work_ns(simulation: Simulation, accounts: Sequence[Accounts]) -> int:
    """Returns the work of the busiest rank without bubbles and without what can be hidden, ns.

    A schedule that goes both ways gives each rank half of the work of two stages, where it fits: the result
    is the less of the two.
    """
    work = [
        account.busy_ns + sum(ns for kind, ns in account.exposed_ns().items() if kind not in _HIDEABLE_KINDS)
        for account in accounts
    ]
    program, stages = simulation.program, simulation.layout.pp
    both_ways = [schedule for schedule in SCHEDULES.values() if schedule.placement == "both-ways"]
    if all(schedule.misfit(stages, program.microbatches) for schedule in both_ways):
        return max(work)
    least = [max(work)] * stages
    for class_id, ns in enumerate(work):
        stage = simulation.timeline.stage_of(class_id)
        least[stage] = min(least[stage], ns)
    halves = [(ns + other) // 2 for ns, other in zip(least, reversed(least), strict=True)]
    return min(max(work), max(halves))


def _one_microbatch_ns(simulation: Simulation, accounts: Sequence[Accounts]) -> int:
    """Returns the time of one micro-batch forward through all stages and back, and of an optimizer, ns.

    Weight gradients do not count, as schedules may postpone them: the stage before waits for input gradients
    alone.
    """
    is_on_way = [
        name.startswith("compute ")
        or (name.startswith("exposed ") and name.partition(" ")[2] not in _OFF_WAY_KINDS)
        for name in ACCOUNTS
    ]
    ns_by_stage: dict[int, dict[int, int]] = {}
    for class_id, account in enumerate(accounts):
        ops = simulation.timeline.stage_program(class_id).ops
        of_class: dict[int, int] = {}
        for at, name in enumerate(account.account):
            op = account.op[at]
            if op >= 0 and is_on_way[name] and ops.microbatch[op] >= 0 and ops.phase[op] in _WAY_PHASES:
                batch = ops.microbatch[op]
                of_class[batch] = of_class.get(batch, 0) + account.edge[at + 1] - account.edge[at]
        # The fastest rank of each stage: the path through the other ranks is no shorter.
        of_stage = ns_by_stage.setdefault(simulation.timeline.stage_of(class_id), of_class)
        for batch, ns in of_class.items():
            of_stage[batch] = min(of_stage.get(batch, ns), ns)
    batches = set.intersection(*(set(of_stage) for of_stage in ns_by_stage.values()))
    way_ns = max((sum(of_stage[batch] for of_stage in ns_by_stage.values()) for batch in batches), default=0)
    return way_ns + min(account.ns("compute opt") for account in accounts)


def find_model_rows(simulation: Simulation) -> ModelRows | None:
    """Returns the rows of a model's run with what they were made from; None unless in Megatron's dialect."""
    maker = simulation.workload.maker
    if not isinstance(maker, ModelMaker) or simulation.parameters.as_aicb is not None:
        return None
    return maker.make_rows(simulation.setup.model)


def figure_words(figures: ModelFigures) -> list[str]:
    """Returns the facts of these figures for the first row of a screen, wide or not."""
    return [format_memory(figures), format_memory_short(figures), *throughput_facts(figures)]


def throughput_facts(figures: ModelFigures) -> list[str]:
    """Returns tokens per second, FLOP/s and their share of the peak, one fact each; of an inference step its
    latency, and of what decodes the share of the memory's rate.
    """
    throughput, inference = figures.throughput, figures.inference
    if inference is not None:
        return [
            f"{duration(inference.latency_ns)} {format_latency(figures)}",
            f"{format_tokens(throughput.tokens_per_s)} tokens/s",
            f"{format_tokens(throughput.tokens_per_s_per_gpu)}/GPU",
            f"{throughput.model_tflops_per_gpu:.1f} TFLOP/s/GPU",
            format_share(figures),
        ]
    return [
        f"{format_tokens(throughput.tokens_per_s)} tokens/s",
        f"{format_tokens(throughput.tokens_per_s_per_gpu)}/GPU",
        f"{throughput.model_tflops_per_gpu:.1f} TFLOP/s/GPU",
        f"MFU {100 * throughput.mfu:.1f} %",
        f"HFU {100 * throughput.hfu:.1f} %",
    ]


def format_latency(figures: ModelFigures) -> str:
    """Returns what the time of an inference step is: `a token`, `to the first token`; "" of training."""
    if figures.inference is None:
        return ""
    return "a token" if figures.inference.decodes else "to the first token"


def format_inference(inference: InferenceFigures) -> str:
    """Returns what an inference step runs, and what a rank moves for it."""
    each = f"{plural(inference.tokens, 'token')} of {plural(inference.sequences, 'sequence')}"
    cached = f" behind {group_digits(inference.context)}" if inference.context else ""
    size, share = f"{inference.moved_bytes / 1e9:.2f} GB", f"{100 * inference.hbm_share:.1f} %"
    memory = f"{size} through the memory of a GPU, {share} of its rate"
    return f"{each}{cached}; {inference.kv_dtype} cache; {memory}"


def format_share(figures: ModelFigures, digits: int = 1) -> str:
    """Returns the share of the peak that a step reaches, `MFU 50.9 %`; where tokens are decoded that of the
    memory's rate, `HBM 71.0 %`.
    """
    inference = figures.inference
    if inference is not None and inference.decodes:
        return f"HBM {100 * inference.hbm_share:.{digits}f} %"
    return f"MFU {100 * figures.throughput.mfu:.{digits}f} %"


def format_mfu(figures: ModelFigures) -> str:
    """Returns MFU with the attention that it counts, and with the other count."""
    throughput = figures.throughput
    return (
        f"{100 * throughput.mfu:.1f} % with attention whole (12 L h s, as papers), "
        f"{100 * throughput.mfu_causal_attention:.1f} % with its causal half"
    )


def format_tokens(tokens: float) -> str:
    """Returns a number of tokens in four figures: `14.25 k`, `873.2`."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if tokens >= size:
            return f"{tokens / size:.4g}{unit}"
    return f"{tokens:.4g}"


def format_memory(figures: ModelFigures) -> str:
    """Returns what the fullest stage needs of the memory of a GPU, in words."""
    fullest = figures.fullest
    fits = "" if figures.fits else ", does not fit"
    return f"{fullest.needed / 1e9:.1f} of {figures.limit / 1e9:.1f} GB on stage {fullest.stage}{fits}"


def format_memory_short(figures: ModelFigures) -> str:
    """Returns `54.3 of 80 GB`, and that it does not fit where that is too much."""
    fits = "" if figures.fits else "does not fit: "
    return f"{fits}{figures.fullest.needed / 1e9:.1f} of {round(figures.limit / 1e9, 1):g} GB"


def format_model(figures: ModelFigures) -> str:
    """Returns the model's name and size."""
    model = figures.model
    active = f", {model.active_parameters / 1e9:.2f} B active" if model.moe else ""
    return f"{printable(model.name)}, {model.parameters / 1e9:.2f} B parameters{active}"


def make_memory_lane(
    figures: ModelFigures | None, simulation: Simulation, class_id: int
) -> MemoryLane | None:
    """Returns the memory of a class of a run with these figures; None unless of a model in Megatron's
    dialect.

    Its maximum is what the stage needs: weights, gradients, optimizer states and contexts are resident all
    the time; logits, what single ops need and fragmentation as long as any activations are.
    """
    model_and_gpu = None if figures is None else find_training(simulation)
    if figures is None or model_and_gpu is None:
        return None
    timeline = simulation.timeline
    stage = timeline.stage_of(class_id)
    training = model_and_gpu[0]
    # The ranks of an expert group may differ; `figures` are those of the fullest.
    expert = timeline.classes[class_id].expert if training.loads is not None else None
    memory: StageMemory = figures.memory[stage]
    if expert is not None:
        memory = stage_memory(training, stage, simulation.program.stages[stage].chunk_changes, expert)
    bytes_by_chunk = chunk_activations(training, stage, expert)
    ops, start, end = timeline.columns(class_id)
    times, resident_bytes = array("q", [0]), array("q", [memory.static])
    activations = count = 0
    for op, chunk, change in timeline.stage_program(class_id).chunk_changes:
        count += change
        activations += change * bytes_by_chunk[chunk]
        # Activations are resident from the first op of the forward to the end of the last op of the backward.
        time_ns = start[op] if change > 0 and op < len(ops) else end[op - 1] if op else 0
        times.append(max(time_ns, times[-1]))
        others = activations + memory.logits + memory.work + memory.fragmentation
        resident_bytes.append(memory.static + (others if count else 0))
    return MemoryLane(stage, times, resident_bytes, figures.limit)


# The assumptions about a file whose rows do not state them, in the words of a page.
ASSUMED_OF_FILE = (
    "ZeRO 1 and fp32 gradients as AICB has them, flash attention; embedding and loss on one stage each"
)


def _find_file_training(simulation: Simulation) -> tuple[Training, Gpu] | None:
    """Returns what the rows of a run were made for, as a training on a GPU; None where its degrees differ.

    The layers are those of the file, so without those that pp loses. AICB shards the optimizer's states (ZeRO
    1), sums gradients in fp32 and recomputes attention's core; flash attention is assumed.
    """
    # Imported here: models do not need these modules.
    from simcore.recovery.recovered_model import model_of
    from simcore.recovery.rescale import recover_cached

    workload, layout, program = simulation.workload, simulation.layout, simulation.program
    config = recover_cached(workload).config
    name = simulation.parameters.gpu
    if config is None or name is None or not workload.has_compute:
        return None
    if (layout.tp, layout.pp, layout.ep) != (config.tp, config.pp, config.ep):
        return None
    chunks = program.virtual_stages
    schedule = simulation.parameters.schedule
    if config.stage_layers % chunks or not config.stage_layers or schedule in TWO_WAY_SCHEDULES:
        return None
    model = replace(model_of(config), layers=config.stage_layers * config.pp)
    batch = program.microbatches * config.microbatch_size * layout.dp
    gpu = find_gpu(name)
    training = Training(
        model, layout.tp, 1, layout.dp, layout.pp, layout.ep, chunks,
        (config.stage_layers // chunks,) * (config.pp * chunks),
        config.microbatch_size, batch, config.seq, config.sequence_parallel, True,
        "selective" if config.recompute else "none", 1, 4, "bf16", False, gpu.name,
        placement="v" if schedule in V_SCHEDULES else "loop",
    )  # fmt: skip
    return training, gpu


# The capacity of an expert in Switch Transformers and GShard, times the mean (arXiv 2101.03961, section 2.2).
USUAL_CAPACITY = 1.25
BALANCED: dict[str, Any] = {
    "expert_imbalance": None, "expert_capacity": None, "expert_placement": None
}  # fmt: skip


def find_expert_changes(simulation: Simulation) -> list[tuple[dict[str, Any], float]]:
    """Returns (fields of `Parameters`, share of the tokens dropped) of each change that evens loads out."""
    model_rows, parameters = find_model_rows(simulation), simulation.parameters
    if model_rows is None or model_rows.training.loads is None:
        return []
    training = model_rows.training
    changes: list[tuple[dict[str, Any], float]] = []
    moe = training.model.moe
    assert moe is not None
    if parameters.expert_placement != "balanced" and 1 < training.ep < moe.experts:
        changes.append(
            ({"expert_placement": "balanced"}, _dropped_share(simulation, parameters.expert_capacity))
        )
    if parameters.expert_capacity is None:
        dropped = _dropped_share(simulation, USUAL_CAPACITY)
        if dropped:
            changes.append(({"expert_capacity": USUAL_CAPACITY}, dropped))
    return changes


def _dropped_share(simulation: Simulation, capacity: float | None) -> float:
    """Returns the share of tokens above a capacity."""
    model_rows = find_model_rows(simulation)
    assert model_rows is not None
    training = model_rows.training
    parameters = replace(simulation.setup.model, expert_capacity=capacity)
    loads, _ = resolve_loads(training, parameters)
    return loads.dropped / (loads.routed * training.ep) if loads is not None else 0.0


def find_imbalance(simulation: Simulation, step_ns: Callable[..., int | None]) -> Imbalance | None:
    """Returns the effects of uneven loads of experts; None of a run without them.

    step_ns: returns the step of the run with other values of some parameters, None where that would take
    long.
    """
    model_rows = find_model_rows(simulation)
    loads = model_rows.training.loads if model_rows is not None else None
    if model_rows is None or loads is None:
        return None
    classes = simulation.timeline.classes
    most = max(loads.of_rank)
    hot = min(rank_class.ranks.first for rank_class in classes if loads.of_rank[rank_class.expert] == most)
    balanced_ns = step_ns(**BALANCED)
    capacity = even_placement_ns = None
    for fields, dropped in find_expert_changes(simulation):
        ns = step_ns(**fields)
        if ns is None:
            continue
        if "expert_capacity" in fields:
            capacity = (USUAL_CAPACITY, ns, dropped)
        else:
            even_placement_ns = ns
    return Imbalance(
        hot,
        loads.max_over_mean,
        None if balanced_ns is None else simulation.step_time_ns - balanced_ns,
        _dropped_share(simulation, simulation.parameters.expert_capacity),
        balanced_ns,
        capacity,
        even_placement_ns,
        loads.of_rank,
        tuple(
            LayerImbalance(layer, of_layer.hot, of_layer.max_over_mean)
            for layer, of_layer in enumerate(model_rows.training.layer_loads)
            if of_layer is not None
        ),
    )
