"""How a model is trained: degrees, batches and options, resolved."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from itertools import accumulate

from simcore.diagnostics import Diagnostic
from simcore.model.imbalance import ExpertLoads
from simcore.model.inference import InferenceStep
from simcore.model.packing import Packing
from simcore.model.sizes import Model, Moe
from simcore.records import Struct, replace

# Kinds of rows for `--recompute-rows`.
ROW_KINDS = ("attention", "mla_up_proj", "mlp_act", "moe_act", "norm")


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
        return self.routes or routes_of(self.placement, self.pp, self.chunks)

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
        return self._cached(-1 - layer, lambda: replace(self, loads=self.layer_loads[layer], layer_loads=()))

    def of_kind(self, kind: int) -> Training:
        """Returns the training of a model whose layers are all of a kind."""
        if not self.model.kinds:
            return self
        return self._cached(kind, lambda: replace(self, model=self.model.kinds[kind]))

    def _cached(self, index: int, make: Callable[[], Training]) -> Training:
        """Returns the training of a kind of layer, or of a layer below 0, made once."""
        key = id(self), index
        if key not in _OF_KIND:
            while len(_OF_KIND) >= _MOST_CACHED:
                del _OF_KIND[next(iter(_OF_KIND))]
            _OF_KIND[key] = self, make()
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


def routes_of(placement: str, pp: int, chunks: int) -> tuple[tuple[int, ...], ...]:
    """Returns the stage at each position of each route of a placement that no schedule file states."""
    there = tuple(range(pp))
    back = there[::-1]
    if placement == "both-ways":
        return there, back
    return (there + back,) if placement == "v" else (there * chunks,)
