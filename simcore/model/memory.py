"""The memory of a rank of each stage, bytes, by what it is used for (docs/models.md has the formulas).

Sources: NVIDIA/Megatron-LM megatron/training/theoretical_memory_usage.py, arXiv 2205.05198 (activations),
arXiv 1910.02054 (ZeRO), pytorch/torchtitan at 9dec370 (tensors of PyTorch's FSDP and of its loss).
Activations are those of the chunks that the schedule keeps in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from simcore.diagnostics import UsageError, printable
from simcore.model.engines import ENGINES
from simcore.model.kv_cache import stage_cache
from simcore.model.operations.products import BYTES
from simcore.model.sharding import StageParameters, layer_parameters, stage_parameters, unit_sizes
from simcore.model.sizes import Model, Moe
from simcore.model.training import Training
from simcore.records import Struct
from simcore.units import plain_number


def layer_activations(
    training: Training, kind: int, recompute: str | None = None, expert: int | None = None
) -> int:
    """Returns the bytes of the activations of one layer of a kind of one micro-batch (arXiv 2205.05198,
    table 2, tensor by tensor).

    recompute: in place of the training's. expert: as of `stage_memory`.
    """
    moe, training = training.model.experts_of(kind), training.of_kind(kind)
    model, tokens, tp, shard = training.model, training.tokens, training.tp, training.shard
    recompute = training.recompute if recompute is None else recompute
    between = 2 * tokens * model.hidden * model.streams // shard
    if recompute == "full":
        return between
    if recompute == training.recompute and _is_selective_by_op(training):
        return _selective_activations(training, moe)
    dropped = tokens * model.hidden // shard if model.dropout else 0
    # Each half of a layer: the input of its norm, that of its first linear, and a mask.
    rows = training.recompute_rows
    halves = int(model.attends) + int(moe is not None or model.ffn > 0)
    size = halves * (between + dropped + (0 if "norm" in rows else _first_input(training)))
    if model.attends:
        size += _attention_activations(training)
    if moe:
        routed, loads, width = training.routed_tokens, training.loads, moe.width(model.hidden)
        if loads is not None:
            routed = loads.of_rank[loads.hot if expert is None else expert]
        size += 2 * routed * width + _operand_bytes(training, routed * training.etp * width)
        # The latent tokens, and what their experts give them.
        size += 2 * 2 * tokens * moe.latent // shard
        size += _mlp(training, moe.ffn, routed, ("mlp_act", "moe_act"))
        if moe.shared_inner:
            size += _mlp(training, moe.shared_inner, tokens) // tp
        return size
    return size + _mlp(training, model.ffn, tokens) // tp


def _attention_activations(training: Training) -> int:
    """Returns the bytes that attention of a layer keeps, or what stands in its place."""
    model, tokens, tp, rows = training.model, training.tokens, training.tp, training.recompute_rows
    if model.mixer:
        return mixer_activations(model, tokens, tp)
    size = 2 * tokens * 2 * model.gate_width // tp
    if model.indexer and model.indexer.heads:
        # Its queries, keys and weights; the selected keys as numbers of 4 bytes.
        index = model.indexer
        size += 2 * tokens * (index.heads * index.head_dim + index.head_dim + index.heads)
        size += 4 * tokens * min(index.topk, training.seq) // index.block
    if model.mla:
        mla = model.mla
        # Queries, keys and values, and attention's output.
        size += 2 * tokens * model.heads * 2 * (model.query_dim + model.value_dim) // tp
        size -= _heads_bytes(training) if "mla_up_proj" in rows else 0
        size += 2 * tokens * 2 * (mla.q_lora_rank + mla.kv_lora_rank + mla.qk_rope_head_dim)
        output = tokens * model.heads * model.value_dim // tp
    else:
        kv_heads = max(model.kv_heads, tp)
        # Queries, keys, values; and the output, which is the projection's input.
        width = model.heads * (model.head_dim + model.value_dim) + kv_heads * model.kv_width
        size += 2 * tokens * width // tp
        output = tokens * model.heads * model.value_dim // tp
    if _OPERAND_BITS.get(training.precision) and _holds(training) == "megatron":
        # Attention stays bf16 and keeps its output; the projection keeps its own, narrower copy.
        size += _operand_bytes(training, output)
    if training.flash:
        size += 4 * tokens * model.heads // tp
    elif "attention" not in rows:
        size += attention_scores(training)
    return size


def mixer_activations(model: Model, tokens: int, tp: int) -> int:
    """Returns the bytes that a layer without plain attention keeps of its mixer: the inputs of its parts."""
    if model.compression:
        compression, width = model.compression, model.head_dim
        whole = 2 * compression.q_lora_rank + width
        if compression.ratio:
            whole += 2 * compression.overlap * width
            if compression.indexer:
                index = compression.indexer
                whole += index.heads * (index.head_dim + 1) + 4 * index.head_dim + 2 * index.topk
        sharded = 2 * model.heads * width + compression.o_groups * compression.o_lora_rank
        return 2 * tokens * whole + (2 * tokens * sharded + 4 * tokens * model.heads) // tp
    if model.delta:
        channels, inner, inputs = (
            2 * model.delta.keys + model.delta.values,
            model.delta.values,
            model.delta.inputs,
        )
    else:
        assert model.mamba is not None
        channels, inner, inputs = model.mamba.channels, model.mamba.inner, model.mamba.inputs
    # What the first linear and the convolution give, the recurrence, and its gated norm.
    return 2 * tokens * (inputs + channels + 2 * inner) // tp


def _heads_bytes(training: Training) -> int:
    """Returns the bytes of queries, keys and values of latent attention."""
    model = training.model
    return 2 * training.tokens * model.heads * (2 * model.query_dim + model.value_dim) // training.tp


def _mlp(training: Training, ffn: int, tokens: int, kinds: Sequence[str] = ("mlp_act",)) -> int:
    """Returns the bytes of both outputs of a gated first linear (one if it is not gated) and the input of the
    second.

    kinds: of rows; where any of them runs again, the input of the second is not kept.
    """
    size = tokens * ffn * (4 if training.model.gated else 2)
    is_kept = training.recompute_rows.isdisjoint(kinds)
    return size + _operand_bytes(training, tokens * ffn) if is_kept else size


# Bits of a number of the input that a linear keeps for its weight gradient, with the scales of a block:
# Transformer Engine keeps the cast input. torchao keeps bf16 (its Float8Linear saves the input itself).
_OPERAND_BITS = {"fp8": 8.0, "mxfp8": 8.25, "nvfp4": 4.5}


def _holds(training: Training) -> str:
    """Returns whose rules for the memory of tensors the trainer follows."""
    return ENGINES[training.engine].holds


def _operand_bytes(training: Training, elements: int) -> int:
    """Returns the bytes of the input of a linear, as it is kept for the weight gradient."""
    bits = _OPERAND_BITS.get(training.precision, 16.0) if _holds(training) == "megatron" else 16.0
    return int(elements * bits / 8)


def _first_input(training: Training) -> int:
    """Returns the bytes of the input that the first linear of a layer's half keeps.

    Megatron keeps a rank's share of the tokens and gathers them again; PyTorch's linears keep the gathered
    input, except asynchronous ones.
    """
    whole = training.tokens * training.model.hidden
    gathered = _holds(training) == "fsdp" and not training.overlap_tp
    return _operand_bytes(training, whole if gathered else whole // training.shard)


def _is_selective_by_op(training: Training) -> bool:
    """Returns whether single products run again, as in torchtitan's selective checkpointing, which has no
    rows.
    """
    return ENGINES[training.engine].selective_by_op and bool(training.recompute_rows)


def _selective_activations(training: Training, moe: Moe | None) -> int:
    """Returns the bytes that torchtitan's selective checkpointing by op keeps of a layer of one micro-batch.

    They are its input, the output of attention, and the output of every second product (queries, values, one
    of two of a gated linear). The output of the last one, which no gradient needs, is freed where the model
    is compiled.
    """
    model, tokens, tp = training.model, training.tokens, training.tp
    kv_heads = max(model.kv_heads, tp)
    size = 2 * tokens * model.hidden // training.shard * (1 if training.compiled else 2)
    if model.attends and model.mixer:
        size += mixer_activations(model, tokens, tp) // 2
    elif model.attends:
        width = model.heads * (model.query_dim + model.value_dim) + kv_heads * model.value_dim
        size += 2 * tokens * width // tp + 4 * tokens * model.heads // tp
    if moe:
        size += 2 * training.routed_tokens * moe.ffn
        return size + 2 * tokens * moe.shared_inner // tp
    return size + 2 * tokens * model.ffn // tp


def attention_scores(training: Training) -> int:
    """Returns the bytes of the scores of attention without flash: before and after softmax, with dropout's
    mask and output.
    """
    model = training.model
    elements = model.heads * training.tokens * training.seq // training.tp
    return elements * (5 if model.dropout else 4)


_WEIGHT = 2
_STATES = 12  # an fp32 copy and Adam's two moments
# With bf16 gradients NVIDIA's optimizers keep the other 16 bits of each weight in place of an fp32 copy
# (apex's distributed_fused_adam as NeMo sets it up: store_param_remainders; Megatron-Core's
# --use-precision-aware-optimizer).
_STATES_OF_REMAINDERS = 10
# Memory of a GPU that is not PyTorch's, measured on a server of 8 H100 (NVIDIA/nccl issue 1685):
# 1.06 GB before the first all-to-all, 4.34 GB after it.
_WITHOUT_ALL_TO_ALL = 1.06e9
_ALL_TO_ALL = 4.34e9 - _WITHOUT_ALL_TO_ALL
_SERVER = 8
# A communicator has two buffers a channel, of 10 and 2 MiB (the same issue), in 16 channels (as NCCL prints
# for rings over servers of H100).
_COMMUNICATOR = 16 * 12 * 2**20
# CUDA's context is the rest: 0.86 GB.
_CONTEXT = _WITHOUT_ALL_TO_ALL - _COMMUNICATOR
# Memory that the allocator reserves and cannot use, as a share of what is allocated and freed, (max reserved
# - max allocated) / (max allocated - allocated): the median of 14 public logs of Megatron that reserve 30 GB
# and more (1.9 to 74 %; of dense models and of experts).
_FRAGMENTATION = 0.09


class StageMemory(Struct, frozen=True):
    """The memory of a rank of one stage at its peak, bytes."""

    stage: int
    """The stage."""
    weights: int
    """Weights."""
    gradients: int
    """Gradients."""
    optimizer: int
    """States of the optimizer."""
    activations: int
    """Activations of the chunks in memory at the peak."""
    logits: int
    """Logits, and the last norm's input and output."""
    work: int
    """What one op needs while it runs."""
    context: int
    """CUDA's context and NCCL's buffers."""
    fragmentation: int
    """What the allocator reserves and cannot use."""
    peak_chunks: int
    """How many chunks have their activations in memory at the peak."""
    cache: int = 0
    """Keys and values of an inference step's sequences, when it has ended."""

    @property
    def total(self) -> int:
        """The memory of tensors, as `torch.cuda.max_memory_allocated` states it."""
        states = self.weights + self.gradients + self.optimizer + self.cache
        return states + self.activations + self.logits + self.work

    @property
    def overhead(self) -> int:
        """The memory of no tensor: contexts, NCCL's buffers and fragmentation."""
        return self.context + self.fragmentation

    @property
    def needed(self) -> int:
        """The used memory of the GPU, as `nvidia-smi` states it."""
        return self.total + self.overhead

    @property
    def static(self) -> int:
        """The memory that is used all the time."""
        return self.weights + self.gradients + self.optimizer + self.cache + self.context


def stage_memory(
    training: Training, stage: int, chunk_changes: Sequence[tuple[int, int, int]], expert: int | None = None
) -> StageMemory:
    """Returns the memory of a rank of `stage`.

    chunk_changes: when its schedule keeps and frees a chunk (`StageProgram`). expert: the rank's index in an
    expert group, by default that of the rank whose experts get most.
    """
    if expert is None and training.layer_loads:
        expert = _fullest_expert_rank(training, stage)
    if training.inference is not None:
        return _inference_memory(training, stage)
    parameters = stage_parameters(training, stage)
    weights, gradients, optimizer = _states(training, parameters, stage)
    each = chunk_activations(training, stage, expert)
    activations = count = at_peak = now = 0
    for _, chunk, change in chunk_changes:
        now += change * each[chunk]
        count += change
        if now > activations:
            activations, at_peak = now, count
    has_loss = any(training.is_last(stage, chunk) for chunk in training.stage_chunks)
    logits = _logits(training) if has_loss else 0
    work = _work(training, stage, expert)
    if not training.flash or _holds(training) == "fsdp":
        # The work of a layer and that of the loss are in memory one after the other.
        work = max(0, work - logits)
    work += _offload_buffers(training, stage)
    # While the optimizer runs no activations are in memory.
    work = max(work, _fp32_gradients(training, parameters) - activations - logits)
    context = _context(training)
    fragmentation = int(_FRAGMENTATION * (activations + logits + work))
    return StageMemory(
        stage, weights, gradients, optimizer, activations, logits, work, context, fragmentation, at_peak
    )


def _inference_memory(training: Training, stage: int) -> StageMemory:
    """Returns the memory of a rank of `stage` in an inference step.

    Weights of layers have the type in which linears compute, the tables and the last norm have bf16. Of
    activations there are at most those of one layer, whose tensors are counted as training keeps them.
    """
    parameters = stage_parameters(training, stage)
    kinds = [pair for chunk in training.stage_chunks for pair in training.kinds_of(stage, chunk)]
    in_layers = sum(count * sum(layer_parameters(training, kind)) for kind, count in kinds)
    weights = _WEIGHT * (sum(parameters) - in_layers) + int(BYTES[training.precision] * in_layers)
    activations = max((layer_activations(training, kind, "none") for kind, _ in kinds), default=0)
    logits = 0
    if any(training.is_last(stage, chunk) for chunk in training.stage_chunks):
        # A rank's share, those of all ranks of tp, and a copy in fp32, which sampling reads.
        vocab = training.padded_vocab
        logits = training.microbatch_size * (2 * vocab // training.tp + 2 * vocab + 4 * vocab)
    fragmentation = int(_FRAGMENTATION * (activations + logits))
    return StageMemory(
        stage, weights, 0, 0, activations, logits, 0, _context(training), fragmentation, 1,
        stage_cache(training, stage),
    )  # fmt: skip


def _fullest_expert_rank(training: Training, stage: int) -> int:
    """Returns the place in an expert group of the rank whose experts get most in the layers of a stage."""
    tokens = [0] * training.ep
    for chunk in training.stage_chunks:
        for layer in training.layers_of(stage, chunk):
            loads = training.layer_loads[layer]
            if loads is not None:
                tokens = [sum(pair) for pair in zip(tokens, loads.of_rank, strict=True)]
    return tokens.index(max(tokens))


def _context(training: Training) -> int:
    """Returns the bytes of CUDA's context and NCCL's buffers: a communicator of all ranks and one of each
    kind of group, and the buffers of an all-to-all between the ranks of a server.
    """
    of_cp = (training.cp_inner, training.cp_ring) if training.cp_inner else (training.cp,)
    inside = training.ep_node or training.ep
    of_ep = (inside, training.ep // inside)
    degrees = (training.world, training.tp, *of_cp, training.dp, training.pp, *of_ep)
    size = _CONTEXT + _COMMUNICATOR * sum(degree > 1 for degree in degrees)
    if training.ep > 1:
        size += _ALL_TO_ALL * (min(training.ep, _SERVER) - 1) / (_SERVER - 1)
    return int(size)


def _offload_buffers(training: Training, stage: int) -> int:
    """Returns the bytes of the two layers, at most, whose activations are on the GPU where they are
    offloaded.
    """
    if not training.offload:
        return 0
    most = [0]
    for chunk in training.stage_chunks:
        layers = training.layers_of(stage, chunk)[:-1]
        sizes = [
            layer_activations(training, training.model.kind_of(layer))
            for index, layer in enumerate(layers)
            if training.offloads(index)
        ]
        most.append(sum(sorted(sizes)[-2:]))
    return max(most)


def _states(training: Training, parameters: StageParameters, stage: int) -> tuple[int, int, int]:
    """Returns the bytes of (weights, gradients, optimizer states): ZeRO 1 shares out the last, 2 the second,
    3 the first too.
    """
    every, holds = parameters.dense + parameters.experts, _holds(training)
    # The shards of PyTorch's FSDP are the optimizer's fp32 weights.
    weights = (
        0 if holds == "fsdp" and training.zero >= 3 else _sharded_bytes(training, parameters, _WEIGHT, 3)
    )
    if training.zero >= 3:
        weights += _gathered(training, stage)
    states = _STATES_OF_REMAINDERS if _keeps_remainders(training) else _STATES
    if holds == "fsdp" and training.zero >= 2:
        # Sharded gradients have the type of the weights. A pipeline reduces them once a step.
        gradients = _sharded_bytes(training, parameters, 4, 2)
        gradients += training.grad_bytes * every if training.pp > 1 else 0
    else:
        gradients = _sharded_bytes(training, parameters, training.grad_bytes, 2)
    if holds == "deepspeed":
        # bf16 gradients are kept until they are added to those in fp32; fp16 ones are sent from a bucket.
        bucket = ENGINES[training.engine].bucket(training.dp * training.cp)
        gradients += _WEIGHT * (every if training.grad_bytes == 4 else min(bucket, every))
    return weights, gradients, _sharded_bytes(training, parameters, states, 1)


def _sharded_bytes(training: Training, parameters: StageParameters, size: int, from_level: int) -> int:
    """Returns the bytes of parameters of `size` bytes each, shared out from a level of ZeRO on."""
    expert_ranks = training.shards if training.copies > 1 else training.expert_replicas
    shares = ((parameters.dense, training.shards), (parameters.experts, expert_ranks))
    whole = training.zero < from_level
    return sum(size * count if whole else -(-size * count // ranks) for count, ranks in shares)


def _keeps_remainders(training: Training) -> bool:
    """Returns whether the optimizer keeps 16 bits of each weight in addition to its bf16 weight."""
    return _holds(training) == "megatron" and training.zero >= 1 and training.grad_bytes == 2


def _fp32_gradients(training: Training, parameters: StageParameters) -> int:
    """Returns the bytes of the fp32 copy that the optimizer makes of its gradients, where they are in 2
    bytes.
    """
    if training.grad_bytes == 4 or _holds(training) == "fsdp" or _keeps_remainders(training):
        return 0
    return _sharded_bytes(training, parameters, 4, 1)


def _gathered(training: Training, stage: int) -> int:
    """Returns the bytes of weights that are gathered at once.

    They are those of the embedding and the output layer of the stage, and of the largest layers: one and as
    many as are gathered ahead; without resharding, and in a pipeline of PyTorch's, of all layers.
    """
    units = [unit_size for chunk in training.stage_chunks for unit_size in unit_sizes(training, stage, chunk)]
    layers = sorted((sum(unit[:2]) for unit in units if not unit.root), reverse=True)
    given_up = training.reshard and not (training.pp > 1 and _holds(training) == "fsdp")
    at_once = layers[: training.prefetch + 1] if given_up else layers
    return _WEIGHT * (sum(at_once) + sum(unit.dense for unit in units if unit.root))


def chunk_activations(training: Training, stage: int, expert: int | None = None) -> list[int]:
    """Returns the bytes that each chunk of a stage keeps of one micro-batch, from its forward to its
    backward.

    expert: as of `stage_memory`.
    """
    activations = []
    for chunk in training.stage_chunks:
        layers = training.layers_of(stage, chunk)
        # The last layer of a chunk is never offloaded.
        # Where layers have loads of their own, each counts by itself.
        kinds = Counter(
            (layer if training.layer_loads else 0, training.model.kind_of(layer), training.recomputes(index))
            for index, layer in enumerate(layers)
            if not training.offloads(index) or layer == layers[-1]
        )
        size = sum(
            count
            * layer_activations(training.of_layer(layer), kind, _recompute_of(training, is_whole), expert)
            for (layer, kind, is_whole), count in kinds.items()
        )
        size += training.predictions_of(stage, chunk) * _prediction_activations(training, expert)
        if training.position(stage, chunk) == 0 and training.model.dropout:
            size += training.tokens * training.model.hidden // training.shard
        if training.pp > 1 and _holds(training) == "deepspeed":
            # PyTorch's pipeline keeps the output of a chunk until its gradient arrives.
            size += 2 * training.tokens * training.model.hidden // training.shard
        activations.append(size)
    return activations


def _recompute_of(training: Training, is_whole: bool) -> str:
    """Returns what a layer runs forward again. is_whole: whether it runs as a whole."""
    if training.recompute != "full":
        return training.recompute
    return "full" if is_whole else "none"


def _prediction_activations(training: Training, expert: int | None) -> int:
    """Returns the bytes of the activations of a layer that predicts a further token: those of its layer, and
    the inputs of its two norms and of its projection.
    """
    model = training.model
    recompute = _recompute_of(training, training.recomputes_predictions)
    of_layer = layer_activations(training, model.prediction_kind, recompute, expert)
    return of_layer + 4 * 2 * training.tokens * model.hidden // training.shard


def _logits(training: Training) -> int:
    """Returns the bytes of logits, and of the last norm's input and output; of each further predicted token,
    too.

    Megatron's loss keeps logits in 2 bytes and in fp32. PyTorch's needs three in fp32 at once: the logarithm
    of softmax, its gradient and that of the logits; with the vocabulary on several ranks also their
    exponentials, and the input of the output layer is kept gathered.
    """
    heads = 1 + training.predictions
    logits = heads * training.tokens * training.padded_vocab // training.tp
    size = heads * 4 * training.tokens * training.model.hidden // training.shard
    if _holds(training) != "fsdp":
        return size + logits * (2 + 4)
    if training.tp == 1:
        return size + logits * (2 + 3 * 4)
    return size + logits * (2 + 4 * 4) + 2 * training.tokens * training.model.hidden


def _work(training: Training, stage: int, expert: int | None) -> int:
    """Returns the bytes that a single op needs in addition: a layer computed again, attention's scores."""
    kinds = {kind for chunk in training.stage_chunks for kind, _ in training.kinds_of(stage, chunk)}
    if any(training.predictions_of(stage, chunk) for chunk in training.stage_chunks):
        kinds.add(training.model.prediction_kind)
    size = 0
    if training.recompute == "full":
        size = max((layer_activations(training, kind, "none", expert) for kind in kinds), default=0)
    else:
        size = max((_recomputed_bytes(training, kind, expert) for kind in kinds), default=0)
    of_layers = [layer_parameters(training, kind) for kind in kinds]
    if _holds(training) == "fsdp":
        if training.zero >= 2 and training.pp == 1:
            # The gradients of a unit, and the copy of them that is reduced.
            size += (_WEIGHT + training.grad_bytes) * max(map(sum, of_layers), default=0)
    elif training.flash:
        # Transformer Engine keeps an unused weight gradient of each shape.
        size += _WEIGHT * max((layer.dense for layer in of_layers), default=0)
    if training.cp > 1 and training.cp_comm_type == "all-gather":
        # These are keys and values of the whole sequence.
        model = training.model
        kv_heads = max(model.kv_heads // training.tp, 1)
        size += 2 * training.cp * training.tokens * kv_heads * (model.query_dim + model.value_dim)
    return size


def _recomputed_bytes(training: Training, kind: int, expert: int | None) -> int:
    """Returns the bytes of the largest output that a row of `--recompute-rows` makes again, which one op
    needs at a time.
    """
    moe, training = training.model.experts_of(kind), training.of_kind(kind)
    model, sizes = training.model, [0]
    if "attention" in training.recompute_rows and not training.flash and model.has_scores:
        sizes.append(attention_scores(training))
    if "mla_up_proj" in training.recompute_rows and model.mla:
        sizes.append(_heads_bytes(training))
    if "norm" in training.recompute_rows:
        sizes.append(2 * training.tokens * model.hidden // training.shard)
    if "mlp_act" in training.recompute_rows or (moe and "moe_act" in training.recompute_rows):
        tokens, ffn = training.tokens, model.ffn // training.tp
        if moe:
            loads, ffn = training.loads, moe.ffn
            tokens = training.routed_tokens
            if loads is not None:
                tokens = loads.of_rank[loads.hot if expert is None else expert]
        sizes.append(2 * tokens * ffn)
    return max(sizes)


_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20,
          "GIB": 2**30, "TIB": 2**40}  # fmt: skip


def memory_limit(text: str | None, gpu_memory: float) -> int:
    """Returns the bytes of a GPU: those of `--memory-limit`, else its own, GB of 10^9 bytes.

    Raises `UsageError` for text that is no size.
    """
    if text is None:
        return round(gpu_memory * 1e9)
    plain = text.replace(" ", "")
    figure = plain.rstrip("BbKkMmGgTtIi")
    value, unit = plain_number(figure), _UNITS.get(plain[len(figure) :].upper())
    if value is None or unit is None or not 0 < value * unit < 2**62:
        raise UsageError(f"--memory-limit {printable(text, 40)}: a size like 80GB or 64GiB is expected")
    return round(value * unit)
