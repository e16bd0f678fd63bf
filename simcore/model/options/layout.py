"""The options of the layout: degrees, sequences and batches, the chunks of a pipeline and their layers."""

from __future__ import annotations

import math
import os

from simcore.diagnostics import UsageError, printable
from simcore.model.gpu import find_gpu
from simcore.model.inference import InferenceStep
from simcore.model.options.request import TrainingRequest, common_divisors, near_multiples, nearest_words
from simcore.model.pipeline_layers import PipelineLayers, count_layout_chunks, resolve_layers, stage_words
from simcore.model.sizes import Model
from simcore.model.training import Training, routes_of
from simcore.names import TWO_WAY_SCHEDULES, V_SCHEDULES
from simcore.units import plural
from simcore.workload.model import ModelParameters

_MOST_MICROBATCHES = 1 << 20


def find_seq(request: TrainingRequest) -> int:
    """Returns the tokens of a sequence."""
    model, seq = request.model, request.parameters.seq or request.model.seq
    if model.longest > seq and request.parameters.seq is None:
        request.assume("seq", seq, f"of the {model.longest} positions of the model")
    return seq


def find_replicas(request: TrainingRequest) -> int:
    """Returns the data-parallel degree. Raises `UsageError` for degrees that do not divide the world, or the
    model.
    """
    parameters = request.parameters
    tp, cp, pp = parameters.tp or 1, parameters.cp or 1, parameters.pp or 1
    ranks, world = tp * cp * pp, parameters.world
    if world is None:
        world = ranks
        request.assume("world", world, "one replica")
    if world % ranks:
        degrees = f"tp {tp} x cp {cp} x pp {pp}" if cp > 1 else f"tp {tp} x pp {pp}"
        raise UsageError(
            f"world {world} is not a multiple of {degrees} = {ranks}: {near_multiples(world, ranks)} would "
            "fit"
        )
    dp = world // ranks
    _check_divides(request.model, tp, parameters.ep or 1, dp * cp)
    return dp


def find_sequence_parallel(request: TrainingRequest, seq: int, inference: InferenceStep | None) -> bool:
    """Returns whether activations between linears are divided among tp ranks. Raises `UsageError` for a
    sequence that its ranks cannot share.
    """
    parameters, option = request.parameters, "--prefill" if inference else "--seq"
    tp, cp = parameters.tp or 1, parameters.cp or 1
    if request.model.longest <= seq and parameters.seq is None:
        request.assume("seq", seq, "the model's")
    if cp > 1 and seq % (2 * cp) and not (inference and inference.decodes):
        raise UsageError(
            f"{option} {seq} is not a multiple of 2 x cp {cp}: {near_multiples(seq, 2 * cp)} would fit"
        )
    is_parallel = request.choose("sequence_parallel") == "on"
    if is_parallel and seq // cp % tp:
        raise UsageError(
            f"{option} {seq}: sequence parallelism needs a multiple of tp {tp} x cp {cp}: "
            f"{near_multiples(seq, tp * cp)} would fit"
        )
    return is_parallel


def find_pipeline(request: TrainingRequest, chunks: int, placement: str, microbatches: int) -> PipelineLayers:
    """Returns the layers of each virtual stage. Raises `UsageError` for layers, or chunks, that do not
    fit.
    """
    parameters, pp = request.parameters, request.parameters.pp or 1
    if pp == 1 and chunks > 1 and not os.path.isfile(parameters.schedule or ""):
        raise UsageError(
            f"--virtual-stages {chunks}: one stage has no virtual stages; --pp 2 or more would fit"
        )
    route = (parameters.routes or routes_of(placement, pp, chunks))[0]
    pipeline = resolve_layers(request.model, parameters, pp, chunks, route, request.diagnostics)
    if pp > 1 and chunks == 1 and parameters.virtual_stages is None and parameters.schedule is None:
        request.assume("virtual_stages", 1, f"1f1b; {_interleaved_words(pipeline.layers, microbatches)}")
    return pipeline


def _check_divides(model: Model, tp: int, ep: int, data: int) -> None:
    """Raises `UsageError` for degrees that do not divide heads, ffn or experts. data: dp x cp."""
    heads = math.gcd(*map(_count_heads, model.kinds or (model,)))
    ffn = math.gcd(*(kind.ffn for kind in model.kinds)) if model.kinds else model.ffn
    if heads % tp:
        fitting = [degree for degree in range(1, heads + 1) if heads % degree == 0]
        raise UsageError(f"--tp {tp} does not divide the {heads} heads of {printable(model.name, 40)}: "
                         f"{nearest_words(fitting, tp)} would fit")  # fmt: skip
    if ffn % tp:
        fitting = common_divisors(ffn, heads)
        raise UsageError(f"--tp {tp} does not divide ffn {ffn}: {nearest_words(fitting, tp)} would fit")
    if model.moe is None:
        if ep > 1:
            raise UsageError(f"--ep {ep}: {printable(model.name, 40)} has no experts; 1 would fit")
        return
    if model.moe.experts % ep:
        fitting = [degree for degree in range(1, model.moe.experts + 1) if model.moe.experts % degree == 0]
        raise UsageError(
            f"--ep {ep} does not divide the {model.moe.experts} experts: {nearest_words(fitting, ep)} "
            "would fit"
        )
    if tp * data % ep:
        fitting = common_divisors(model.moe.experts, tp * data)
        raise UsageError(
            f"--ep {ep} does not divide tp x cp x dp {tp * data}: {nearest_words(fitting, ep)} would fit"
        )


def _count_heads(model: Model) -> int:
    """Returns the heads of a kind of layer, among which tensor parallelism divides it; 0 for any number."""
    if not model.attends:
        return 0
    if model.delta:
        return math.gcd(model.delta.key_heads, model.delta.value_heads)
    return model.mamba.heads if model.mamba else model.heads


def find_batches(request: TrainingRequest, dp: int) -> tuple[int, int]:
    """Returns (micro-batch size, global batch), sequences. Raises `UsageError` for sizes that do not fit."""
    parameters = request.parameters
    size, batch, count = parameters.microbatch_size, parameters.global_batch, parameters.microbatches
    if size is None:
        size = 1
        request.assume("microbatch_size", size, "the smallest")
    if batch is None:
        batch = size * dp * (count or 1)
        if count is None:
            request.assume(
                "global_batch", batch, "as Megatron takes it: micro-batch size x dp, one micro-batch a step"
            )
    step = size * dp
    if batch % step:
        raise UsageError(
            f"--global-batch {batch} is not a multiple of micro-batch size {size} x dp {dp} = {step}: "
            f"{near_multiples(batch, step)} would fit"
        )
    if count is not None and count != batch // step:
        raise UsageError(
            f"--microbatches {count}: a global batch of {batch} in micro-batches of {size} on dp {dp} has "
            f"{batch // step}; --global-batch {count * step} would fit"
        )
    if batch // step > _MOST_MICROBATCHES:
        raise UsageError(f"{batch // step} micro-batches: at most {_MOST_MICROBATCHES} are simulated")
    return size, batch


def find_chunk_placement(parameters: ModelParameters, pp: int) -> tuple[int, str]:
    """Returns (virtual stages, placement of the chunks) of the schedule."""
    if parameters.routes:
        return _chunks_of_routes(parameters, pp)
    if parameters.pipeline_layout is not None:
        if parameters.schedule in (*V_SCHEDULES, *TWO_WAY_SCHEDULES):
            raise UsageError(
                f"--pipeline-layout places chunks round and round, --schedule {parameters.schedule} "
                "does not; 1f1b or interleaved would fit"
            )
        return count_layout_chunks(parameters, pp), "loop"
    if parameters.schedule in V_SCHEDULES:
        return 2, "v"
    if parameters.schedule in TWO_WAY_SCHEDULES and pp > 1:
        if parameters.overlap_grad_reduce or parameters.overlap_param_gather:
            raise UsageError(
                f"--schedule {parameters.schedule} of a model: gradients of two stages on one rank are not "
                "shared out over its backwards; without --overlap-grad-reduce and --overlap-param-gather it "
                "would fit"
            )
        return 1, "both-ways"
    return parameters.virtual_stages or 1, "loop"


def _chunks_of_routes(parameters: ModelParameters, pp: int) -> tuple[int, str]:
    """Returns (virtual stages, placement) of a schedule file whose chunks do not lie round and round. Raises
    `UsageError` for routes that a model's rows are not made for.
    """
    routes, words = parameters.routes, f"--schedule {printable(parameters.schedule or '', 60)}"
    stages = 1 + max(routes[0])
    if stages != pp:
        raise UsageError(
            f"{words}: its {plural(stages, 'stage')} do not fit pp {pp}: --pp {stages} would fit"
        )
    chunks = len(routes[0]) // pp
    if len(routes) == 1:
        return chunks, "file"
    if len(routes) > 2 or chunks > 1:
        raise UsageError(
            f"{words}: its micro-batches take {len(routes)} ways through {plural(chunks, 'chunk')} of a "
            "stage; two ways through one chunk each would fit"
        )
    if parameters.overlap_grad_reduce or parameters.overlap_param_gather:
        raise UsageError(
            f"{words} of a model: gradients of two stages on one rank are not shared out over its backwards; "
            "without --overlap-grad-reduce and --overlap-param-gather it would fit"
        )
    return 1, "both-ways"


def _interleaved_words(stage_layers: tuple[int, ...], microbatches: int) -> str:
    """Returns what interleaved stages would change against 1f1b, or why they cannot run, in words."""
    stages = len(stage_layers)
    if microbatches % stages:
        return f"interleaved needs a multiple of {stages} micro-batches, here are {microbatches}"
    if min(stage_layers) < 2:
        return "interleaved cannot run: a stage of 1 layer cannot be cut into chunks"
    if math.gcd(*stage_layers) == 1:
        layers = stage_words([(size,) for size in stage_layers])
        return f"interleaved needs --stage-layers, too: stages of {layers} layers have unequal chunks"
    # A stage of 1f1b keeps the activations of at most as many micro-batches as there are stages.
    more = " and need more memory" if microbatches > stages else ""
    return f"interleaved would shorten the bubble{more}"


def find_head_ranks(request: TrainingRequest, training: Training) -> int:
    """Returns how many ranks of a sequence scatter heads. Raises `UsageError` where heads, or ranks, cannot
    be divided so.
    """
    model, tp, cp = training.model, training.tp, training.cp
    kind, inner = training.cp_comm_type, request.parameters.cp_inner
    if inner is not None and kind != "a2a+p2p":
        raise UsageError(
            f"--cp-inner is of --cp-comm-type a2a+p2p: found {kind}; without --cp-inner it would fit"
        )
    if kind not in ("a2a", "a2a+p2p") or (cp == 1 and inner is None):
        return 1
    kinds = [("query heads", model.heads // tp)]
    if not model.mla:
        kinds.append(("key-value heads", max(model.kv_heads // tp, 1)))
    fitting = [degree for degree in range(1, cp + 1) if all(heads % degree == 0 for _, heads in kinds)]
    ranks, words, others = cp, f"--cp-comm-type a2a: cp {cp}", ": cp {} would fit, or p2p or all-gather"
    if kind == "a2a+p2p":
        fitting = [degree for degree in fitting if cp % degree == 0]
        if inner is None:
            server = find_gpu(training.gpu).server
            ranks = max(degree for degree in fitting if degree == 1 or degree * tp <= server)
            request.assume("cp_inner", ranks, f"as a server of {server} has room for")
            return ranks
        ranks, words, others = inner, f"--cp-inner {inner}", ": {} would fit"
        if cp % inner:
            raise UsageError(f"{words} does not divide cp {cp}{others.format(nearest_words(fitting, inner))}")
    for heads_words, heads in kinds:
        if heads % ranks:
            raise UsageError(
                f"{words} does not divide the {heads} {heads_words} of a rank of tp {tp}"
                f"{others.format(nearest_words(fitting, ranks))}"
            )
    return ranks
