"""What a rank of each stage holds in memory, bytes, by what it is for (docs/models.md has the formulas).

Sources: NVIDIA/Megatron-LM megatron/training/theoretical_memory_usage.py, arXiv 2205.05198 (activations),
arXiv 1910.02054 (ZeRO). Activations are those of the chunks that the schedule itself holds.
"""

from __future__ import annotations

from collections.abc import Sequence

from simcore.diagnostics import UsageError, printable
from simcore.model.sharding import StageParameters, layer_parameters, stage_parameters, unit_sizes
from simcore.model.training import Training
from simcore.records import Struct
from simcore.units import plain_number


def layer_activations(
    training: Training, moe: bool, recompute: str | None = None, expert: int | None = None
) -> int:
    """Bytes that one layer holds of one micro-batch (arXiv 2205.05198, table 2, tensor by tensor).

    recompute: of another training than this one's. expert: as of `stage_memory`.
    """
    model, tokens, tp, shard = training.model, training.tokens, training.tp, training.shard
    recompute = training.recompute if recompute is None else recompute
    between = 2 * tokens * model.hidden // shard
    if recompute == "full":
        return between
    dropped = tokens * model.hidden // shard if model.dropout else 0
    # Each half of a layer: what its norm takes, what its first linear takes, and a mask.
    rows = training.recompute_rows
    size = 2 * ((1 if "norm" in rows else 2) * between + dropped)
    if model.mla:
        mla = model.mla
        size += 2 * tokens * model.heads * 2 * (model.query_dim + model.value_dim) // tp
        size += 2 * tokens * 2 * (mla.q_lora_rank + mla.kv_lora_rank + mla.qk_rope_head_dim)
    else:
        kv_heads = max(model.kv_heads, tp)
        # Queries, keys, values; and the output, which the projection takes.
        size += 2 * tokens * (2 * model.heads + 2 * kv_heads) * model.head_dim // tp
    if training.flash:
        size += 4 * tokens * model.heads // tp
    elif "attention" not in rows:
        size += attention_scores(training)
    if moe and model.moe:
        routed, loads = training.routed_tokens, training.loads
        if loads is not None:
            routed = loads.of_rank[loads.hot if expert is None else expert]
        size += 4 * routed * model.hidden + _mlp(training, model.moe.ffn, routed)
        if model.moe.shared_experts:
            size += _mlp(training, model.moe.ffn * model.moe.shared_experts, tokens) // tp
        return size
    return size + _mlp(training, model.ffn, tokens) // tp


def _mlp(training: Training, ffn: int, tokens: int) -> int:
    """Both outputs of a gated first linear and what the second takes; of one that is not, one output.

    What the second takes is no longer held where the activation runs again.
    """
    each = 4 if training.model.gated else 2
    return tokens * ffn * (each if "mlp_act" in training.recompute_rows else each + 2)


def attention_scores(training: Training) -> int:
    """The scores of attention without flash: before and after softmax, with dropout's mask and output."""
    model = training.model
    numbers = model.heads * training.tokens * training.seq // training.tp
    return numbers * (5 if model.dropout else 4)


_WEIGHT = 2
_STATES = 12  # an fp32 copy and Adam's two moments
# Contexts of CUDA and NCCL, and what allocation loses: said beside the figures, no part of them.
MARGIN = (1e9, 3e9)


class StageMemory(Struct, frozen=True):
    """Bytes that a rank of one stage holds at its peak. work: what one op needs while it runs.

    held: chunks whose activations are there at the peak.
    """

    stage: int
    weights: int
    gradients: int
    optimizer: int
    activations: int
    logits: int
    work: int
    held: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer + self.activations + self.logits + self.work

    @property
    def static(self) -> int:
        """What is there all the time."""
        return self.weights + self.gradients + self.optimizer


def stage_memory(
    training: Training, stage: int, held: Sequence[tuple[int, int, int]], expert: int | None = None
) -> StageMemory:
    """The memory of a rank of `stage`. held: when its schedule holds and frees a chunk (`StageProgram`).

    expert: its place in an expert group, by default that of the rank whose experts get most.
    """
    parameters = stage_parameters(training, stage)
    weights, gradients, optimizer = _states(training, parameters, stage)
    each = chunk_activations(training, stage, expert)
    activations = count = at_peak = now = 0
    for _, chunk, change in held:
        now += change * each[chunk]
        count += change
        if now > activations:
            activations, at_peak = now, count
    has_loss = any(training.is_last(stage, chunk) for chunk in training.stage_chunks)
    logits = _logits(training) if has_loss else 0
    work = _work(training, stage, expert)
    if not training.flash:
        # What attention needs and what the loss needs are there one after the other.
        work = max(0, work - logits)
    work += _passing(training, stage)
    return StageMemory(stage, weights, gradients, optimizer, activations, logits, work, at_peak)


def _passing(training: Training, stage: int) -> int:
    """Bytes of the two layers that are there of a pass whose activations are offloaded, at most."""
    if not training.offload:
        return 0
    most = [0]
    for chunk in training.stage_chunks:
        layers = training.layers_of(stage, chunk)[:-1]
        sizes = [layer_activations(training, training.model.is_moe(layer)) for layer in layers]
        most.append(sum(sorted(sizes)[-2:]))
    return max(most)


def _states(training: Training, parameters: StageParameters, stage: int) -> tuple[int, int, int]:
    """(weights, gradients, optimizer states): ZeRO 1 shares out the last, 2 the second, 3 the first too."""
    expert_ranks = training.shards if training.copies > 1 else training.expert_replicas
    shares = [(parameters.dense, training.shards), (parameters.experts, expert_ranks)]

    def shared(size: int, from_level: int) -> int:
        whole = training.zero < from_level
        return sum(size * held if whole else -(-size * held // ranks) for held, ranks in shares)

    weights = shared(_WEIGHT, 3)
    if training.zero >= 3:
        weights += _gathered(training, stage)
    return weights, shared(training.grad_bytes, 2), shared(_STATES, 1)


def _gathered(training: Training, stage: int) -> int:
    """Bytes of weights that are gathered at once: the embedding and the output layer of the stage, and of its
    layers the largest and as many as are gathered ahead; without resharding all of them.
    """
    units = [unit_size for chunk in training.stage_chunks for unit_size in unit_sizes(training, stage, chunk)]
    layers = sorted((sum(unit[:2]) for unit in units if not unit.root), reverse=True)
    at_once = layers[: training.prefetch + 1] if training.reshard else layers
    return _WEIGHT * (sum(at_once) + sum(unit.dense for unit in units if unit.root))


def chunk_activations(training: Training, stage: int, expert: int | None = None) -> list[int]:
    """Bytes that each chunk of a stage holds of one micro-batch, from its forward to its backward.

    expert: as of `stage_memory`.
    """
    activations = []
    for chunk in training.stage_chunks:
        if training.offload:
            # The last layer stays.
            last = training.model.is_moe(training.layers_of(stage, chunk)[-1])
            size = layer_activations(training, last, expert=expert)
        else:
            size = sum(
                count * layer_activations(training, moe, expert=expert)
                for moe, count in training.kinds_of(stage, chunk)
            )
        if training.position(stage, chunk) == 0 and training.model.dropout:
            size += training.tokens * training.model.hidden // training.shard
        activations.append(size)
    return activations


def _logits(training: Training) -> int:
    """Logits in 2 and 4 bytes, and the last norm's input and output."""
    logits = training.tokens * training.padded_vocab // training.tp
    return logits * (2 + 4) + 4 * training.tokens * training.model.hidden // training.shard


def _work(training: Training, stage: int, expert: int | None) -> int:
    """What a single op needs beside what is held: a layer computed again, attention's scores."""
    kinds = {moe for chunk in training.stage_chunks for moe, _ in training.kinds_of(stage, chunk)}
    size = 0
    if training.recompute == "full":
        size = max(layer_activations(training, moe, "none", expert) for moe in kinds)
    else:
        size = max((_given_again(training, moe, expert) for moe in kinds), default=0)
    if training.flash:
        # Transformer Engine keeps a weight gradient of each shape that it never fills.
        size += _WEIGHT * max(layer_parameters(training, moe).dense for moe in kinds)
    return size


def _given_again(training: Training, moe: bool, expert: int | None) -> int:
    """Bytes of the largest that a row of `--recompute-rows` gives again, for as long as one op needs it."""
    model, sizes = training.model, [0]
    if "attention" in training.recompute_rows and not training.flash:
        sizes.append(attention_scores(training))
    if "norm" in training.recompute_rows:
        sizes.append(2 * training.tokens * model.hidden // training.shard)
    if "mlp_act" in training.recompute_rows:
        tokens, ffn = training.tokens, model.ffn // training.tp
        if moe and model.moe:
            loads, ffn = training.loads, model.moe.ffn
            tokens = training.routed_tokens
            if loads is not None:
                tokens = loads.of_rank[loads.hot if expert is None else expert]
        sizes.append(2 * tokens * ffn)
    return max(sizes)


_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20,
          "GIB": 2**30, "TIB": 2**40}  # fmt: skip


def memory_limit(text: str | None, gpu_memory: float) -> int:
    """Bytes of a GPU: those of `--memory-limit`, else its own, GB. Raises `UsageError` for no size."""
    if text is None:
        return round(gpu_memory * 1e9)
    plain = text.replace(" ", "")
    figure = plain.rstrip("BbKkMmGgTtIi")
    value, unit = plain_number(figure), _UNITS.get(plain[len(figure) :].upper())
    if value is None or unit is None or not 0 < value * unit < 2**62:
        raise UsageError(f"--memory-limit {printable(text, 40)}: a size like 80GB or 64GiB is expected")
    return round(value * unit)
