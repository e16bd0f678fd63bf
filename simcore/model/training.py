"""How a model is trained: degrees, batches and options, explicit or assumed, checked against each other."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import cached_property
from itertools import accumulate

from simcore.diagnostics import Diagnostic, UsageError, did_you_mean, printable
from simcore.model.engines import DEFAULT_ENGINE, ENGINES
from simcore.model.gpu import find_gpu
from simcore.model.imbalance import ExpertLoads, expert_loads, layer_loads, mean_loads
from simcore.model.inference import InferenceStep, resolve_step
from simcore.model.packing import Packing, pack_documents
from simcore.model.pipeline_layers import count_layout_chunks, is_count, resolve_layers, stage_words
from simcore.model.sizes import Model, Moe
from simcore.names import GPU_NAMES, TWO_WAY_SCHEDULES, V_SCHEDULES
from simcore.parameters import flag_of
from simcore.ranks import ranks_of_domain
from simcore.records import Struct, replace
from simcore.units import plural
from simcore.workload.model import ModelParameters

# Defaults, which are Megatron-LM's.
DEFAULTS = {
    "sequence_parallel": "off", "flash": "on", "recompute": "none", "zero": "0", "grad_dtype": "fp32",
    "precision": "bf16", "compile": "off", "pp_scatter": "off", "cp_comm_type": "p2p",
    "prefetch": "1", "reshard_after_forward": "on",
}  # fmt: skip
# Reasons for defaults that are no flags of Megatron's: Transformer Engine and PyTorch choose fused attention.
_WHY = {
    "flash": "as Transformer Engine and PyTorch choose it",
    "compile": "as PyTorch runs a model that is not compiled",
}
DEFAULT_GPU = "h100"
# Kinds of rows for `--recompute-rows`.
ROW_KINDS = ("attention", "mla_up_proj", "mlp_act", "moe_act", "norm")
# Megatron-LM's words for them.
_ROW_ALIASES = {"core_attn": "attention", "layernorm": "norm"}
# Schedules whose backwards include weight gradients.
_FULL_BACKWARD_SCHEDULES = ("1f1b", "interleaved", "gpipe", "looped-bfs", "breadth-first")
_FSDP_FIELDS = ("prefetch", "reshard_after_forward")
# Pipelines that Megatron runs; its FSDP refuses them.
MEGATRON_SCHEDULES = ("1f1b", "interleaved")
_MOST_MICROBATCHES = 1 << 20


class Training(Struct, frozen=True, dict=True):
    """A model on a layout, with all options resolved.

    world = tp x cp x dp x pp; the groups of experts are made from cp x dp (and tp).
    """

    model: Model
    """The sizes of the model."""
    tp: int
    """The tensor-parallel degree."""
    cp: int
    """Ranks that share a sequence."""
    dp: int
    """Data-parallel replicas."""
    pp: int
    """Pipeline stages."""
    ep: int
    """The expert-parallel degree."""
    chunks: int
    """Virtual stages of a stage, V."""
    position_layers: tuple[int, ...]
    """Layers of each virtual stage, by its position on the route of a micro-batch."""
    microbatch_size: int
    """Sequences of a micro-batch."""
    global_batch: int
    """Sequences of a step."""
    seq: int
    """Tokens of a sequence."""
    sequence_parallel: bool
    """Whether activations between linears are divided among tp ranks."""
    flash: bool
    """Whether attention is flash attention."""
    recompute: str
    """none, selective (attention's core, of torchtitan single products) or full."""
    zero: int
    """The level of ZeRO."""
    grad_bytes: int
    """Bytes of a gradient as it is added up."""
    precision: str
    """The type in which linears compute, one of `PRECISIONS`."""
    pp_scatter: bool
    """Whether each tp rank sends only its share to the next stage."""
    gpu: str
    """The name or the file of the GPU."""
    cp_comm_type: str = "p2p"
    """What a cp group exchanges: keys and values, `p2p` (a ring) or `all-gather`; or heads, `a2a`; or heads
    in inner groups, keys and values between them, `a2a+p2p`.
    """
    placement: str = "loop"
    """The placement of chunks: `loop`, round and round; `v`, down the stages and up again; `both-ways`, where
    each stage has the layers of another one too; `file`, as a schedule file has them.
    """
    prefetch: int = 1
    """Units whose weights are gathered ahead."""
    reshard: bool = True
    """Whether weights are freed after their forward."""
    shard_size: int = 0
    """Ranks that share out what ZeRO shares out; 0 for all."""
    bucket_size: int = 0
    """Parameters of a bucket; 0 for those of a row."""
    overlap_tp: bool = False
    """Whether tensor-parallel collectives overlap with products."""
    loads: ExpertLoads | None = None
    """The loads of the experts, of all layers or their mean; None where all get the same."""
    layer_loads: tuple[ExpertLoads | None, ...] = ()
    """The loads of each layer, where layers differ; None of one without uneven loads."""
    etp: int = 1
    """Ranks of a tp group that divide each expert among them: 1, or all."""
    capacity: float = 0.0
    """Tokens that every expert runs, padding included, over the mean of those that are routed; 0 without
    padding.
    """
    ep_node: int = 0
    """Ranks of an expert group in one node, where tokens go to each node once; 0 where they go to experts."""
    node_limit: int = 0
    """Nodes that a token goes to at most; 0 for any."""
    fp8_dispatch: bool = False
    """Whether tokens are sent to experts in FP8, and their gradients in backward; they come back in BF16."""
    recompute_rows: frozenset[str] = frozenset()
    """Kinds of rows that run again, of `ROW_KINDS`; attention's core is also that of selective."""
    offload: float = 0.0
    """The bandwidth of the link to the host's memory, GB/s; 0 where activations are not offloaded."""
    offload_layers: int = 0
    """How many layers of a virtual stage are offloaded, the first ones; 0 for all but its last one."""
    overlaps_gradients: bool = False
    """Whether gradients are reduced during backward."""
    overlaps_weights: bool = False
    """Whether weights are gathered during forward."""
    engine: str = "megatron"
    """The trainer, one of `ENGINES`."""
    compiled: bool = False
    """Whether torch.compile is used."""
    recompute_layers: tuple[int, int] = (0, 0)
    """With `--recompute full`, which layers of a virtual stage run again: (n, 0) the first n, (n, m) the last
    n of every m; (0, 0) all.
    """
    position_predictions: tuple[int, ...] = ()
    """Layers of each position that predict further tokens; () for none."""
    cp_heads: int = 1
    """Ranks of a cp group that scatter heads among them: all with `a2a`, an inner group with `a2a+p2p`."""
    packing: Packing | None = None
    """The documents in the sequences; None where each sequence is one."""
    routes: tuple[tuple[int, ...], ...] = ()
    """The stage at each position of each route of a schedule file; () where `placement` says it."""
    inference: InferenceStep | None = None
    """The pass forward that is run in place of training; None of training."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """What was assumed."""

    @property
    def world(self) -> int:
        return self.tp * self.cp * self.dp * self.pp

    @property
    def microbatches(self) -> int:
        """Micro-batches of a step on each replica."""
        return self.global_batch // (self.microbatch_size * self.dp)

    @property
    def tokens(self) -> int:
        """Tokens of a micro-batch on one rank of a cp group, all of which have a token that is decoded."""
        if self.inference is not None and self.inference.decodes:
            return self.microbatch_size
        return self.microbatch_size * self.seq // self.cp

    @property
    def seen_keys(self) -> float:
        """Keys of the document of a token, the mean of all tokens: of the whole square of scores."""
        packing = self.packing
        return self.seq if packing is None else packing.squares / (self.global_batch * self.seq)

    @property
    def shard(self) -> int:
        """The number by which sequence parallelism divides the tokens between linears."""
        return self.tp if self.sequence_parallel else 1

    @property
    def padded_vocab(self) -> int:
        """The vocabulary as Megatron pads it: a multiple of the model's step on each rank of tp."""
        step = self.model.vocab_step * self.tp
        return -(-self.model.vocab // step) * step

    @property
    def expert_replicas(self) -> int:
        """Ranks that have the same part of the same experts."""
        return max(1, self.dp * self.cp * self.tp // (self.ep * self.etp)) if self.ep else 1

    @property
    def routed_tokens(self) -> int:
        """Tokens that a rank sends to experts in a micro-batch, each counted once for each expert; with
        padding its capacity at all experts.
        """
        moe = self.model.moe
        if moe is None:
            return 0
        routed = self.tokens * moe.experts_per_token // self.tp
        return moe.experts * math.ceil(self.capacity * routed / moe.experts) if self.capacity else routed

    @property
    def node_copies(self) -> float:
        """Returns to how many nodes of an expert group a token goes, its own among them, where each choice of
        experts is as likely.
        """
        moe = self.model.moe
        assert moe is not None
        nodes = self.ep // (self.ep_node or self.ep)
        if moe.groups and not self.node_limit and not moe.groups % nodes:
            return _copies_of_groups(moe, nodes)
        allowed_nodes = self.node_limit or nodes
        each = moe.experts // nodes
        allowed_experts = allowed_nodes * each
        missed = math.comb(allowed_experts - each, moe.experts_per_token) / math.comb(
            allowed_experts, moe.experts_per_token
        )
        return allowed_nodes * (1 - missed)

    @property
    def expert_tokens(self) -> int:
        """Tokens that the experts of a rank run in a micro-batch, as many on each rank."""
        return self.routed_tokens * self.etp

    @property
    def shards(self) -> int:
        """Ranks that share out the parameters of ZeRO, except those of experts."""
        return self.shard_size or self.dp * self.cp

    @property
    def copies(self) -> int:
        """How many groups of `shards` ranks have the same parameters (hybrid sharding)."""
        return self.dp * self.cp // self.shards

    @property
    def layers_by_stage(self) -> list[tuple[int, ...]]:
        """The layers of each stage's own chunks."""
        return [
            tuple(self.position_layers[self.position(stage, chunk)] for chunk in range(self.chunks))
            for stage in range(self.pp)
        ]

    @property
    def stage_layers(self) -> tuple[int, ...]:
        """The layers of each stage."""
        return tuple(map(sum, self.layers_by_stage))

    @property
    def keeps_weights(self) -> bool:
        """Whether each stage of a pipeline gathers its weights once a step, before their first forward, and
        reduces its gradients once, behind the last backward: ZeRO 3 of PyTorch's stages without resharding.
        """
        return self.zero == 3 and self.pp > 1 and not self.reshard and self.placement != "both-ways"

    @property
    def stage_chunks(self) -> range:
        """The chunks of a stage, those of the other stage whose layers it has included."""
        return range(2 if self.placement == "both-ways" else self.chunks)

    @cached_property
    def _routes(self) -> tuple[tuple[int, ...], ...]:
        """The stage at each position of each route of a micro-batch."""
        return self.routes or _routes_of(self.placement, self.pp, self.chunks)

    @cached_property
    def _positions(self) -> list[list[int]]:
        """The position of each chunk of each stage."""
        positions: list[list[int]] = [[] for _ in range(self.pp)]
        for route in self._routes:
            for position, stage in enumerate(route):
                positions[stage].append(position)
        return positions

    @cached_property
    def _first_layers(self) -> list[int]:
        """The first layer of each position."""
        return list(accumulate(self.position_layers, initial=0))

    def position(self, stage: int, chunk: int) -> int:
        """Returns the position of a chunk on the route of a micro-batch: 0 has the embedding."""
        return self._positions[stage][chunk]

    def is_last(self, stage: int, chunk: int) -> bool:
        """Returns whether a chunk has the output layer and the loss."""
        return self.position(stage, chunk) == self.pp * self.chunks - 1

    def turns(self, stage: int, chunk: int) -> tuple[bool, bool]:
        """Returns whether a chunk gets its activation from its own stage, and whether it leaves it there, as
        at the turn of a V.
        """
        if self.placement == "loop":
            return False, False
        route = self._routes[chunk // self.chunks]
        at = self.position(stage, chunk)
        return at > 0 and route[at - 1] == stage, at + 1 < len(route) and route[at + 1] == stage

    def layers_of(self, stage: int, chunk: int) -> range:
        """Returns the layers of a virtual stage, which go along the route of a micro-batch."""
        position = self.position(stage, chunk)
        return range(*self._first_layers[position : position + 2])

    @property
    def cp_ring(self) -> int:
        """Ranks of a cp group that have the same heads, between which keys and values go."""
        return self.cp // self.cp_heads

    @property
    def cp_inner(self) -> int:
        """Ranks of an inner group of a cp group, where it has such groups; else 0."""
        return self.cp_heads if 1 < self.cp_heads < self.cp else 0

    def recomputes(self, index: int) -> bool:
        """Returns whether the layer of such an index in a virtual stage runs forward again as a whole."""
        count, period = self.recompute_layers
        if self.recompute != "full":
            return False
        return index % period >= period - count if period else not count or index < count

    def offloads(self, index: int) -> bool:
        """Returns whether a layer of such an index in a virtual stage is offloaded, if it is not the last."""
        return bool(self.offload) and (not self.offload_layers or index < self.offload_layers)

    @property
    def recomputes_predictions(self) -> bool:
        """Whether layers that predict further tokens run forward again as a whole."""
        return self.recompute == "full" and self.recompute_layers == (0, 0)

    def predictions_of(self, stage: int, chunk: int) -> int:
        """Returns how many layers of a virtual stage predict further tokens."""
        return self.position_predictions[self.position(stage, chunk)] if self.position_predictions else 0

    @property
    def predictions(self) -> int:
        """How many layers predict further tokens."""
        return sum(self.position_predictions)

    def of_layer(self, layer: int) -> Training:
        """Returns the training with the loads of a layer for those of all."""
        if not self.layer_loads:
            return self
        key = id(self), -1 - layer
        if key not in _OF_KIND:
            while len(_OF_KIND) >= _MOST_CACHED:
                del _OF_KIND[next(iter(_OF_KIND))]
            _OF_KIND[key] = self, replace(self, loads=self.layer_loads[layer], layer_loads=())
        return _OF_KIND[key][1]

    def of_kind(self, kind: int) -> Training:
        """Returns the training of a model whose layers are all of a kind."""
        if not self.model.kinds:
            return self
        key = id(self), kind
        if key not in _OF_KIND:
            while len(_OF_KIND) >= _MOST_CACHED:
                del _OF_KIND[next(iter(_OF_KIND))]
            _OF_KIND[key] = self, replace(self, model=self.model.kinds[kind])
        return _OF_KIND[key][1]

    def kinds_of(self, stage: int, chunk: int) -> list[tuple[int, int]]:
        """Returns (kind, number of layers) of a virtual stage, for each kind that it has."""
        layers, moe = self.layers_of(stage, chunk), self.model.moe
        if self.model.kinds:
            kinds = self.model.pattern[layers.start : layers.stop]
            return [(kind, kinds.count(kind)) for kind in sorted(set(kinds))]
        dense = len(layers) if moe is None else min(max(moe.dense_layers - layers.start, 0), len(layers))
        return [(kind, count) for kind, count in ((False, dense), (True, len(layers) - dense)) if count]


# Trainings of one kind of layer or of one layer, with the training that they are of, whose id is the key.
_OF_KIND: dict[tuple[int, int], tuple[Training, Training]] = {}
_MOST_CACHED = 256


def resolve_training(model: Model, parameters: ModelParameters) -> Training:
    """Returns the requested training of `model`.

    Raises `UsageError` for numbers that do not fit each other, with what would.
    """
    diagnostics: list[Diagnostic] = []
    parameters, inference = resolve_step(parameters)
    of_seq = "--prefill" if inference else "--seq"

    def assumed(field: str, value: object, why: str) -> None:
        message = f"{field}: {value} assumed, {why} ({flag_of(field).option})"
        brief = f"{field} {value}: {why}"
        diagnostics.append(Diagnostic("note", "model-assumed", message, model.name, brief=brief))

    def choice(field: str) -> str:
        value = getattr(parameters, field)
        if value is not None:
            choices = flag_of(field).choices
            if value not in choices:
                raise UsageError(
                    f"{flag_of(field).option} {printable(str(value), 40)}: one of {', '.join(choices)} "
                    "is expected"
                )
            return str(value)
        if field != "pp_scatter" and (field != "cp_comm_type" or cp > 1):
            who = "PyTorch's FSDP" if field in _FSDP_FIELDS else "Megatron without its flag"
            assumed(field, DEFAULTS[field], _WHY.get(field, f"as {who}"))
        return DEFAULTS[field]

    tp, cp, pp = parameters.tp or 1, parameters.cp or 1, parameters.pp or 1
    ep = parameters.ep or 1
    seq = parameters.seq or model.seq
    if model.longest > seq and parameters.seq is None:
        assumed("seq", seq, f"of the {model.longest} positions of the model")
    world = parameters.world
    if world is None:
        world = tp * cp * pp
        assumed("world", world, "one replica")
    ranks = tp * cp * pp
    if world % ranks:
        below = world - world % ranks
        near = f"{below} or {below + ranks}" if below else str(ranks)
        degrees = f"tp {tp} x cp {cp} x pp {pp}" if cp > 1 else f"tp {tp} x pp {pp}"
        raise UsageError(f"world {world} is not a multiple of {degrees} = {ranks}: {near} would fit")
    dp = world // ranks
    _check_divides(model, tp, ep, dp * cp)
    if model.longest <= seq and parameters.seq is None:
        assumed("seq", seq, "the model's")
    if seq % (cp * (2 if cp > 1 else 1)) and not (inference and inference.decodes):
        step = 2 * cp
        raise UsageError(
            f"{of_seq} {seq} is not a multiple of 2 x cp {cp}: {_near_multiples(seq, step)} would fit"
        )
    sequence_parallel = choice("sequence_parallel") == "on"
    if sequence_parallel and seq // cp % tp:
        raise UsageError(f"{of_seq} {seq}: sequence parallelism needs a multiple of tp {tp} x cp {cp}: "
                         f"{_near_multiples(seq, tp * cp)} would fit")  # fmt: skip
    microbatch, batch = _batches(parameters, dp, assumed)
    chunks, placement = _chunk_placement(parameters, pp)
    if pp == 1 and chunks > 1 and not os.path.isfile(parameters.schedule or ""):
        raise UsageError(
            f"--virtual-stages {chunks}: one stage has no virtual stages; --pp 2 or more would fit"
        )
    pipeline = resolve_layers(
        model,
        parameters,
        pp,
        chunks,
        (parameters.routes or _routes_of(placement, pp, chunks))[0],
        diagnostics,
    )
    if pp > 1 and chunks == 1 and parameters.virtual_stages is None and parameters.schedule is None:
        assumed(
            "virtual_stages",
            1,
            f"1f1b; {_interleaved_words(pipeline.layers, batch // (microbatch * dp))}",
        )
    gpu = parameters.gpu
    if gpu is None:
        gpu = DEFAULT_GPU
        assumed("gpu", gpu, f"of {', '.join(GPU_NAMES)}")
    training = Training(
        model, tp, cp, dp, pp, ep, chunks, pipeline.layers, microbatch, batch, seq, sequence_parallel,
        choice("flash") == "on", choice("recompute"), int(choice("zero")),
        4 if choice("grad_dtype") == "fp32" else 2, choice("precision"),
        choice("pp_scatter") == "on", gpu, choice("cp_comm_type"), placement,
        position_predictions=pipeline.predictions, routes=parameters.routes, inference=inference,
    )  # fmt: skip
    training = replace(training, cp_heads=_head_ranks(training, parameters, assumed))
    training = _with_engine(training, parameters, choice, assumed)
    training = _with_sharding(training, parameters, choice, assumed)
    if parameters.overlap_tp:
        if tp == 1 or not sequence_parallel:
            found_words = "tp 1" if tp == 1 else "--sequence-parallel off"
            fit = "--tp 2 or more with --sequence-parallel on" if tp == 1 else "--sequence-parallel on"
            raise UsageError(
                f"--overlap-tp cuts the gathers and reduce-scatters of sequence parallelism: found "
                f"{found_words}; {fit} would fit"
            )
        training = replace(training, overlap_tp=True)
    training = replace(training, recompute_rows=_recomputed_rows(training, parameters))
    training = replace(training, recompute_layers=_recomputed_layers(training, parameters))
    training = replace(training, offload=_offload(training, parameters))
    training = replace(training, offload_layers=_offloaded_layers(training, parameters))
    training = replace(training, etp=_expert_tensor_degree(training, parameters))
    training = replace(training, capacity=_padded_capacity(training, parameters))
    training = _with_dispatch(training, parameters)
    if training.ep_node and model.moe and model.moe.groups and parameters.node_limit is None:
        assumed("node_limit", *_words_of_groups(training, model.moe))
    training = _with_loads(training, parameters)
    training = replace(training, packing=_packing(training, parameters))
    return replace(training, diagnostics=tuple(diagnostics))


def _head_ranks(
    training: Training, parameters: ModelParameters, assumed: Callable[[str, object, str], None]
) -> int:
    """Returns how many ranks of a sequence scatter heads. Raises `UsageError` where heads, or ranks, cannot
    be divided so.
    """
    model, tp, cp = training.model, training.tp, training.cp
    kind, inner = training.cp_comm_type, parameters.cp_inner
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
            assumed("cp_inner", ranks, f"as a server of {server} has room for")
            return ranks
        ranks, words, others = inner, f"--cp-inner {inner}", ": {} would fit"
        if cp % inner:
            raise UsageError(
                f"{words} does not divide cp {cp}{others.format(_nearest_words(fitting, inner))}"
            )
    for heads_words, heads in kinds:
        if heads % ranks:
            raise UsageError(
                f"{words} does not divide the {heads} {heads_words} of a rank of tp {tp}"
                f"{others.format(_nearest_words(fitting, ranks))}"
            )
    return ranks


def _with_engine(
    training: Training,
    parameters: ModelParameters,
    choice: Callable[[str], str],
    assumed: Callable[[str, object, str], None],
) -> Training:
    """Returns the training with its trainer. Raises `UsageError` for --compile with one that has no
    torch.compile.
    """
    name = parameters.engine_preset
    if name is None:
        name, why = DEFAULT_ENGINE, "as nothing that Megatron lacks is asked for"
        if training.zero >= 2:
            name, why = "fsdp", f"as ZeRO {training.zero} is PyTorch's"
        assumed("engine_preset", name, why)
    elif name not in ENGINES:
        raise UsageError(
            f"--engine-preset {printable(name, 40)}: one of {', '.join(ENGINES)} is expected"
            f"{did_you_mean(name, tuple(ENGINES))}"
        )
    if ENGINES[name].scatters and parameters.pp_scatter is None and training.pp > 1 and training.tp > 1:
        assumed("pp_scatter", "on", f"as {name}")
        training = replace(training, pp_scatter=True)
    if not ENGINES[name].compiled:
        if parameters.compile is not None:
            fitting = " or ".join(engine.name for engine in ENGINES.values() if engine.compiled)
            raise UsageError(f"--compile is of --engine-preset {fitting}: found {name}")
        return replace(training, engine=name)
    return replace(training, engine=name, compiled=choice("compile") == "on")


def _offload(training: Training, parameters: ModelParameters) -> float:
    """Returns the GB/s of the link to the host. Raises `UsageError` for parameters that do not go with it."""
    rate = parameters.offload
    if rate is None:
        return 0.0
    name = parameters.schedule
    if name is not None and name not in _FULL_BACKWARD_SCHEDULES:
        raise UsageError(
            f"--offload with --schedule {printable(name, 40)}: what comes back would be held until its "
            f"weight gradients are made; {', '.join(_FULL_BACKWARD_SCHEDULES)} would fit"
        )
    if parameters.overlap_fwd_bwd:
        raise UsageError(
            "--offload with --overlap-fwd-bwd: two passes at once would share the link; one of the two "
            "would fit"
        )
    if parameters.expert_imbalance is not None:
        raise UsageError(
            "--offload with --expert-imbalance: ranks would send different sizes; one of the two would fit"
        )
    if min(training.position_layers) < 1 or max(training.position_layers) < 2:
        raise UsageError(
            f"--offload: found {min(training.position_layers)} layers in a chunk, whose last layer stays "
            f"until its backward; fewer stages than {training.pp}, or fewer virtual stages, would fit"
        )
    return rate


def _offloaded_layers(training: Training, parameters: ModelParameters) -> int:
    """Returns how many layers are offloaded, 0 for all but the last. Raises `UsageError` where there are not
    as many.
    """
    count, most = parameters.offload_layers, max(training.position_layers) - 1
    if count is None:
        return 0
    if parameters.offload is None:
        raise UsageError(f"--offload-layers {count}: nothing is offloaded; with --offload it would fit")
    if count > most:
        raise UsageError(
            f"--offload-layers {count}: a virtual stage has {most + 1} layers, and its last one stays; at "
            f"most {most} would fit"
        )
    return count


def _recomputed_rows(training: Training, parameters: ModelParameters) -> frozenset[str]:
    """Returns the kinds of rows that run again. Raises `UsageError` for other words, and with whole
    layers.
    """
    text = parameters.recompute_rows
    names: set[str] = set()
    if training.recompute == "selective":
        # torchtitan keeps attention's output, and every second product of a layer.
        names = {"mlp_act", "norm"} if ENGINES[training.engine].selective_by_op else {"attention"}
    if text is None:
        return frozenset(names)
    words = [_ROW_ALIASES.get(word.strip(), word.strip()) for word in text.split(",")]
    for word in words:
        if word not in ROW_KINDS:
            raise UsageError(
                f"--recompute-rows {printable(text, 60)}: found {printable(word, 40) or 'nothing'}, expected "
                f"words of {', '.join(ROW_KINDS)}{did_you_mean(word, ROW_KINDS)}"
            )
    if "moe_act" in words and training.model.moe is None:
        raise UsageError(
            f"--recompute-rows moe_act: {printable(training.model.name, 40)} has no experts; mlp_act would "
            "fit"
        )
    if "mla_up_proj" in words:
        words_there = f"--recompute-rows mla_up_proj: {printable(training.model.name, 40)}"
        if training.model.mla is None:
            raise UsageError(f"{words_there} has no latent attention; attention would fit")
        if ENGINES[training.engine].selective_by_op:
            raise UsageError(
                f"{words_there} under {training.engine}, which runs every second product again; "
                "--engine-preset megatron would fit"
            )
    if training.recompute == "full":
        raise UsageError(
            f"--recompute-rows {printable(text, 60)}: --recompute full runs whole layers again; --recompute "
            "none or selective would fit, or no --recompute-rows"
        )
    return frozenset(names | set(words))


def _recomputed_layers(training: Training, parameters: ModelParameters) -> tuple[int, int]:
    """Returns which layers run again, as `Training.recompute_layers`. Raises `UsageError` for other words,
    and without whole layers.
    """
    text = parameters.recompute_layers
    if text is None:
        return 0, 0
    words = f"--recompute-layers {printable(text, 40)}"
    if training.recompute != "full":
        raise UsageError(
            f"{words}: --recompute {training.recompute} runs no whole layer again; --recompute full would fit"
        )
    if parameters.offload is not None:
        raise UsageError(
            f"{words} with --offload: what is offloaded would differ by layer; one of the two would fit"
        )
    count, slash, period = text.partition("/")
    most = max(training.position_layers)
    if not is_count(count) or (slash and not (is_count(period) and int(count) < int(period))):
        raise UsageError(f"{words}: expected layers of a virtual stage, like 4, or of every few, like 1/2")
    if not slash and int(count) > most:
        raise UsageError(f"{words}: a virtual stage has {most} layers; at most {most} would fit")
    return int(count), int(period or 0)


def _expert_tensor_degree(training: Training, parameters: ModelParameters) -> int:
    """Returns how many ranks of tp divide an expert. Raises `UsageError` where they cannot."""
    etp, tp, moe = parameters.etp, training.tp, training.model.moe
    if etp is None and training.inference is not None and moe is not None:
        # Without ranks of their own experts are divided as all other weights.
        divides = training.ep == 1 and moe.ffn % tp == 0 and parameters.expert_imbalance is None
        etp = tp if divides else 1
    if etp is None or etp == 1:
        return 1
    if moe is None:
        raise UsageError(f"--etp {etp}: {printable(training.model.name, 40)} has no experts; 1 would fit")
    if etp != tp:
        fit = f"1 or tp {tp}" if tp > 1 else "1"
        raise UsageError(f"--etp {etp}: ranks of tp {tp} hold whole experts or divide each; {fit} would fit")
    if moe.ffn % etp:
        raise UsageError(f"--etp {etp} does not divide the ffn {moe.ffn} of an expert; 1 would fit")
    data = training.dp * training.cp
    if data % training.ep:
        raise UsageError(
            f"--etp {etp}: ep {training.ep} does not divide dp x cp {data}: "
            f"{_nearest_words(_common_divisors(moe.experts, data), training.ep)} would fit"
        )
    if parameters.expert_imbalance is not None:
        raise UsageError("--etp with --expert-imbalance: one of the two would fit")
    return etp


def _padded_capacity(training: Training, parameters: ModelParameters) -> float:
    """Returns the capacity that every expert is filled up to, over the mean; 0 without padding. Raises
    `UsageError` where nothing can be filled up.
    """
    if not parameters.pad_to_capacity:
        return 0.0
    if training.model.moe is None:
        raise UsageError(
            f"--pad-to-capacity: {printable(training.model.name, 40)} has no experts; a model with them "
            "would fit"
        )
    if parameters.expert_capacity is None:
        raise UsageError("--pad-to-capacity: with --expert-capacity, 1 or more, it would fit")
    if parameters.expert_imbalance is not None:
        raise UsageError(
            "--pad-to-capacity with --expert-imbalance: every expert runs its capacity, whatever is routed; "
            "one of the two would fit"
        )
    return parameters.expert_capacity


def _with_dispatch(training: Training, parameters: ModelParameters) -> Training:
    """Returns the training with the way of tokens to experts. Raises `UsageError` where none are sent, or not
    so.
    """
    limit, moe = parameters.node_limit, training.model.moe
    for field in ("dispatch", "node_limit", "dispatch_precision"):
        value, flag = getattr(parameters, field), flag_of(field)
        if value is None:
            continue
        if flag.choices and value not in flag.choices:
            raise UsageError(
                f"{flag.option} {printable(value, 40)}: one of {', '.join(flag.choices)} is expected"
            )
        if training.ep == 1 or moe is None:
            raise UsageError(
                f"{flag.option} is of what is sent to experts: found ep 1; --ep 2 or more would fit"
            )
    if parameters.dispatch_precision == "fp8":
        training = replace(training, fp8_dispatch=True)
    if moe is None or (parameters.dispatch != "hierarchical" and limit is None):
        return training
    inside = _ranks_in_node(training, parameters)
    nodes = training.ep // inside
    if limit is not None:
        least = -(-moe.experts_per_token * nodes // moe.experts)
        if not least <= limit <= nodes:
            raise UsageError(
                f"--node-limit {limit}: the {moe.experts} experts are on {plural(nodes, 'node')}, the "
                f"{moe.experts_per_token} of a token on {least} or more; {_range_words(least, nodes)} would "
                "fit"
            )
    if parameters.dispatch != "hierarchical" or nodes == 1:
        return training
    if parameters.expert_imbalance is not None:
        raise UsageError("--dispatch hierarchical with --expert-imbalance: one of the two would fit")
    if limit is None and moe.groups and not nodes % moe.groups:
        limit = moe.groups_per_token * nodes // moe.groups
    return replace(training, ep_node=inside, node_limit=limit or 0)


def _words_of_groups(training: Training, moe: Moe) -> tuple[str, str]:
    """Returns (where the experts of a token are taken to be, why)."""
    nodes, limit = training.ep // training.ep_node, training.node_limit
    groups_words = f"{moe.groups_per_token} of {moe.groups} groups"
    if limit:
        return f"{limit}", f"the {groups_words} of a token's experts lie on so many of {nodes} nodes"
    if moe.groups % nodes:
        return "none", f"the {moe.groups} groups of experts do not lie on whole nodes, which are {nodes}"
    on_node = moe.groups // nodes
    return f"{groups_words} of experts", f"of which {on_node} lie on each of {nodes} nodes"


def _copies_of_groups(moe: Moe, nodes: int) -> float:
    """Returns to how many nodes a token goes, each of which has as many groups of experts."""
    on_node, each, per_token = moe.groups // nodes, moe.experts // moe.groups, moe.groups_per_token
    # A node is missed by what is chosen in the other chosen groups, however many of those are on it.
    missed = sum(
        math.comb(on_node, here) * math.comb(moe.groups - on_node, per_token - here)
        * math.comb((per_token - here) * each, moe.experts_per_token)
        for here in range(min(on_node, per_token) + 1)
    )  # fmt: skip
    choices = math.comb(moe.groups, per_token) * math.comb(per_token * each, moe.experts_per_token)
    return nodes * (1 - missed / choices)


def _ranks_in_node(training: Training, parameters: ModelParameters) -> int:
    """Returns how many neighbours of an expert group are in one server of the GPU."""
    server = ranks_of_domain(find_gpu(training.gpu).server, training.world)
    # Neighbours on dp are as many ranks apart.
    apart = training.tp * (training.pp if parameters.rank_order == "tp-pp-dp" else 1)
    inside = max(1, server // apart) * (min(training.tp, server) if training.etp == 1 else 1)
    return math.gcd(inside, training.ep)


def _range_words(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"


def _with_loads(training: Training, parameters: ModelParameters) -> Training:
    """Returns the training with the loads of its experts. Raises `UsageError` where the model has none."""
    model = training.model
    moe = model.moe
    for field in ("expert_imbalance", "expert_capacity", "expert_placement"):
        if getattr(parameters, field) is None:
            continue
        option = flag_of(field).option
        if moe is None:
            raise UsageError(
                f"{option}: {printable(training.model.name, 40)} has no experts; a model with them would fit"
            )
        if parameters.expert_imbalance is None and not (field == "expert_capacity" and training.capacity):
            others = " or --pad-to-capacity" if field == "expert_capacity" else ""
            raise UsageError(f"{option} is of uneven loads: with --expert-imbalance{others} it would fit")
    placement = parameters.expert_placement
    if placement is not None and placement not in flag_of("expert_placement").choices:
        choices = ", ".join(flag_of("expert_placement").choices)
        raise UsageError(f"--expert-placement {printable(placement, 40)}: one of {choices} is expected")
    if moe is None or parameters.expert_imbalance is None:
        return training
    loads, each = resolve_loads(training, parameters)
    return replace(training, loads=loads, layer_loads=each)


def resolve_loads(
    training: Training, parameters: ModelParameters
) -> tuple[ExpertLoads | None, tuple[ExpertLoads | None, ...]]:
    """Returns the loads of the experts of a model with experts, as `Training.loads` and `layer_loads`."""
    model = training.model
    assert model.moe is not None
    sizes = model.moe.experts, training.ep, training.routed_tokens
    has_experts = [model.is_moe(layer) for layer in range(model.layers)]
    each = layer_loads(parameters, *sizes, has_experts)
    return (mean_loads(each), each) if each else (expert_loads(parameters, *sizes), ())


def _packing(training: Training, parameters: ModelParameters) -> Packing | None:
    """Returns the documents in the sequences. Raises `UsageError` where they change nothing."""
    if parameters.seq_imbalance is None:
        return None
    if not training.flash:
        raise UsageError(
            "--seq-imbalance with --flash off: attention computes all scores of a sequence, whatever its "
            "documents; --flash on would fit"
        )
    return pack_documents(
        parameters, training.dp, training.microbatches, training.microbatch_size, training.seq
    )


def _with_sharding(
    training: Training,
    parameters: ModelParameters,
    choice: Callable[[str], str],
    assumed: Callable[[str, object, str], None],
) -> Training:
    """Returns the training with the options of ZeRO 2 and 3. Raises `UsageError` for options that do not go
    with the level.
    """
    zero, data = training.zero, training.dp * training.cp
    for field, least in (("prefetch", 3), ("reshard_after_forward", 3), ("shard_size", 1)):
        if getattr(parameters, field) is not None and zero < least:
            levels = "--zero 3" if least == 3 else "--zero 1, 2 or 3"
            what = "weights" if least == 3 else "optimizer states"
            raise UsageError(
                f"{flag_of(field).option} is of {what} that are shared out: found --zero {zero}, {levels} "
                "would fit"
            )
    if zero < 2:
        training = replace(training, shard_size=_shard_size(training, parameters))
        if parameters.bucket_size is not None and not (
            parameters.overlap_grad_reduce or parameters.overlap_param_gather
        ):
            raise UsageError(
                "--bucket-size is of what is sent beside compute: with --overlap-grad-reduce or "
                "--overlap-param-gather it would fit"
            )
        has_overlap = parameters.overlap_grad_reduce or parameters.overlap_param_gather
        if not has_overlap:
            return training
        size = parameters.bucket_size
        if size is None:
            size = ENGINES[training.engine].bucket(data)
            if data > 1:
                assumed("bucket_size", size, f"as {training.engine} of {data} replicas")
        return replace(
            training, bucket_size=size, overlaps_gradients=parameters.overlap_grad_reduce,
            overlaps_weights=parameters.overlap_param_gather,
        )  # fmt: skip
    if parameters.bucket_size is not None:
        raise UsageError(
            f"--bucket-size: ZeRO {zero} sends a layer's gradients at once; --zero 1 would fit, or no "
            "--bucket-size"
        )
    if parameters.overlap_grad_reduce:
        raise UsageError(
            f"--overlap-grad-reduce: ZeRO {zero} reduces gradients beside each backward; without it, or with "
            "--zero 1, it would fit"
        )
    if zero == 3 and parameters.overlap_param_gather:
        raise UsageError(
            "--overlap-param-gather: ZeRO 3 gathers weights before each forward; --prefetch says how many "
            "units ahead, or --zero 1 would fit"
        )
    if training.predictions:
        raise UsageError(
            f"--pipeline-layout with m and --zero {zero}: layers that predict further tokens (MTP) are "
            "Megatron's; --zero 0 or 1 would fit, or no m"
        )
    engine = ENGINES[training.engine]
    is_refused = engine.holds != "fsdp" or (
        parameters.schedule in (None, *MEGATRON_SCHEDULES) and not engine.pipeline_shards
    )
    if zero == 3 and training.pp > 1 and is_refused:
        raise UsageError(
            f"--zero 3 with pp {training.pp}: Megatron's FSDP refuses a pipeline, as does DeepSpeed's; "
            "--zero 1, --pp 1, --engine-preset torchtitan, or a schedule of PyTorch's (--schedule gpipe, "
            "looped-bfs) would fit"
        )
    training = replace(training, shard_size=_shard_size(training, parameters))
    if zero < 3:
        return training
    training = replace(training, prefetch=int(choice("prefetch")))
    return replace(training, reshard=choice("reshard_after_forward") == "on")


def _shard_size(training: Training, parameters: ModelParameters) -> int:
    """Returns the ranks that share out what ZeRO shares out, 0 for all. Raises `UsageError` where they do not
    divide the replicas.
    """
    size, data = parameters.shard_size or 0, training.dp * training.cp
    if size:
        if training.ep > 1:
            raise UsageError(
                f"--shard-size {size} with ep {training.ep}: experts are shared out over their own replicas; "
                "--ep 1 would fit, or no --shard-size"
            )
        if data % size or size == 1:
            fitting = [ranks for ranks in range(2, data + 1) if data % ranks == 0]
            if not fitting or size == 1:
                raise UsageError(
                    f"--shard-size {size}: nothing is shared out; "
                    + (
                        f"{_nearest_words(fitting, size)} would fit, or --zero 0"
                        if fitting
                        else "--zero 0 would fit"
                    )
                )
            raise UsageError(
                f"--shard-size {size} does not divide dp x cp {data}: {_nearest_words(fitting, size)} "
                "would fit"
            )
    return size if size < data else 0


def _chunk_placement(parameters: ModelParameters, pp: int) -> tuple[int, str]:
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


def _check_divides(model: Model, tp: int, ep: int, data: int) -> None:
    heads = math.gcd(*map(_count_heads, model.kinds or (model,)))
    ffn = math.gcd(*(kind.ffn for kind in model.kinds)) if model.kinds else model.ffn
    if heads % tp:
        fitting = [degree for degree in range(1, heads + 1) if heads % degree == 0]
        raise UsageError(f"--tp {tp} does not divide the {heads} heads of {printable(model.name, 40)}: "
                         f"{_nearest_words(fitting, tp)} would fit")  # fmt: skip
    if ffn % tp:
        fitting = _common_divisors(ffn, heads)
        raise UsageError(f"--tp {tp} does not divide ffn {ffn}: {_nearest_words(fitting, tp)} would fit")
    if model.moe is None:
        if ep > 1:
            raise UsageError(f"--ep {ep}: {printable(model.name, 40)} has no experts; 1 would fit")
        return
    if model.moe.experts % ep:
        fitting = [degree for degree in range(1, model.moe.experts + 1) if model.moe.experts % degree == 0]
        raise UsageError(
            f"--ep {ep} does not divide the {model.moe.experts} experts: {_nearest_words(fitting, ep)} "
            "would fit"
        )
    if tp * data % ep:
        fitting = _common_divisors(model.moe.experts, tp * data)
        raise UsageError(
            f"--ep {ep} does not divide tp x cp x dp {tp * data}: {_nearest_words(fitting, ep)} would fit"
        )


def _count_heads(model: Model) -> int:
    """Returns the heads of a kind of layer, among which tensor parallelism divides it; 0 for any number."""
    if not model.attends:
        return 0
    if model.delta:
        return math.gcd(model.delta.key_heads, model.delta.value_heads)
    return model.mamba.heads if model.mamba else model.heads


def _common_divisors(first: int, other: int) -> list[int]:
    both = math.gcd(first, other)
    return [divisor for divisor in range(1, both + 1) if both % divisor == 0]


def _nearest_words(fitting: list[int], value: int) -> str:
    """Returns the numbers next to the requested one, in words."""
    near = sorted(sorted(fitting, key=lambda fit: abs(fit - value))[:4])
    return " or ".join([", ".join(map(str, near[:-1])), str(near[-1])]) if len(near) > 1 else str(near[0])


def _near_multiples(value: int, step: int) -> str:
    below = value - value % step
    return f"{below} or {below + step}" if below else str(step)


def _batches(parameters: ModelParameters, dp: int, assumed) -> tuple[int, int]:  # type: ignore[no-untyped-def]
    """Returns (micro-batch size, global batch), sequences."""
    size, batch, count = parameters.microbatch_size, parameters.global_batch, parameters.microbatches
    if size is None:
        size = 1
        assumed("microbatch_size", size, "the smallest")
    if batch is None:
        batch = size * dp * (count or 1)
        if count is None:
            assumed(
                "global_batch", batch, "as Megatron takes it: micro-batch size x dp, one micro-batch a step"
            )
    step = size * dp
    if batch % step:
        raise UsageError(
            f"--global-batch {batch} is not a multiple of micro-batch size {size} x dp {dp} = {step}: "
            f"{_near_multiples(batch, step)} would fit"
        )
    if count is not None and count != batch // step:
        raise UsageError(
            f"--microbatches {count}: a global batch of {batch} in micro-batches of {size} on dp {dp} has "
            f"{batch // step}; --global-batch {count * step} would fit"
        )
    if batch // step > _MOST_MICROBATCHES:
        raise UsageError(f"{batch // step} micro-batches: at most {_MOST_MICROBATCHES} are simulated")
    return size, batch


def _routes_of(placement: str, pp: int, chunks: int) -> tuple[tuple[int, ...], ...]:
    """Returns the stage at each position of each route of a placement that no schedule file states."""
    there = tuple(range(pp))
    back = there[::-1]
    if placement == "both-ways":
        return there, back
    return (there + back,) if placement == "v" else (there * chunks,)


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
