"""The rows that AICB writes for SimAI from a model's arguments, its quirks included (docs/models.md).

Two generators: `plain`, whose compute cells are 1, and `aiob`, whose cells are measured. Their rows, types
and bytes differ.
"""

from __future__ import annotations

from collections.abc import Iterator

from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.model.sizes import Mla
from simcore.records import Struct
from simcore.units import plain_number

# `layernorm`, `mlp_layer`: what AICB calls them. A cell that nothing was measured for.
_NOT_MEASURED = 1
# Tokens are sent to experts in FP8 with a scale of 4 bytes each 128: that many of 2 bytes (frame DeepSeek).
_FP8_SHARE = (1 + 4 / 128) / 2
_NONE = ("NONE", 0)
_Collective = tuple[str, int]


class AicbConfig(Struct, frozen=True):
    """What AICB's arguments say. layers: of the whole model. experts: None without experts (`--moe_enable`).

    mla: with it the frame is DeepSeek. recompute: of activations, which doubles attention.
    """

    layers: int
    hidden: int
    heads: int
    ffn: int
    vocab: int
    seq: int
    microbatch_size: int
    global_batch: int
    world: int
    tp: int
    pp: int
    ep: int
    sequence_parallel: bool
    recompute: bool
    bias: bool
    experts: int | None
    experts_per_token: int
    shared_experts: int
    dense_layers: int
    mla: Mla | None
    vocab_step: int = 128

    @property
    def dp(self) -> int:
        """Data-parallel replicas."""
        return self.world // (self.tp * self.pp)

    @property
    def microbatches(self) -> int:
        """Micro-batches of a step: what does not divide is lost, 0 is possible."""
        return self.global_batch // (self.microbatch_size * self.dp)

    @property
    def stage_layers(self) -> int:
        """Layers of a stage: what does not divide is lost."""
        return self.layers // self.pp

    @property
    def activation(self) -> int:
        """Bytes of the activations of one micro-batch."""
        return 2 * self.microbatch_size * self.seq * self.hidden


class AicbTimes(Struct, frozen=True):
    """ns of the parts of a step, as AICB's measurement gives them.

    attention, mlp: forward of one layer. optimizer: the two figures of Adam. linear: whether the projections
    of latent attention are timed; AICB's own file has none of them.
    """

    embedding: int
    attention: int
    mlp: int
    optimizer: tuple[int, int]
    latent: int = 0


def aicb_text(config: AicbConfig, times: AicbTimes | None) -> str:
    """The file. times: of aiob; None for plain, whose cells are 1. Raises `UsageError` where AICB stops."""
    rows = list(_rows(config, times))
    between: int | float = 0
    if config.pp > 1:
        # With sequence parallelism AICB divides, and Python writes a float.
        between = config.activation / config.tp if config.sequence_parallel else config.activation
    header = (
        f"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: {config.tp} ep: {config.ep} "
        f"pp: {config.pp} vpp: {config.stage_layers} ga: {config.microbatches} all_gpus: {config.world} "
        f"checkpoints: 0 checkpoint_initiates: 0 pp_comm: {between}"
    )
    return "\n".join([header, str(len(rows)), *rows]) + "\n"


def modules(config: AicbConfig) -> list[tuple[str, int]]:
    """(name, parameters of one rank) of what AICB counts, in its order; `fused` (a norm) is no row."""
    tp, hidden, bias = config.tp, config.hidden, int(config.bias)
    step = config.vocab_step * tp
    vocab = -(-config.vocab // step) * step

    def column(inner: int, outer: int) -> int:
        return inner * (outer // tp) + bias * (outer // tp)

    def row(inner: int, outer: int) -> int:
        return (inner // tp) * outer + bias * outer

    mlp = [("mlp_column", column(hidden, config.ffn)), ("mlp_row", row(config.ffn, hidden))]
    # Words in 8 bytes each of 2, and a table of positions, whatever the model.
    found = [("embedding_layer", 4 * (vocab // tp) * hidden + config.seq * hidden)]
    for layer in range(config.stage_layers):
        attention = _attention_modules(config, column, row)
        experts = _expert_modules(config, layer, mlp)
        if config.sequence_parallel:
            found += [*attention, ("fused", 2 * hidden), *experts]
        else:
            # Whole blocks instead of their linears, and no norms.
            found.append(("attention_layer", sum(n for name, n in attention if name != "fused")))
            found.append(("mlp_layer", sum(n for name, n in experts if name != "mlp_moelayer")))
    if config.sequence_parallel:
        found.append(("final_column", column(hidden, vocab)))
    return found


def _attention_modules(config: AicbConfig, column, row) -> list[tuple[str, int]]:  # type: ignore[no-untyped-def]
    hidden, heads, mla = config.hidden, config.heads, config.mla
    if mla is None:
        inner = hidden // heads * heads
        return [("attention_column", column(hidden, 3 * inner)), ("attention_row", row(inner, hidden))]
    query = mla.qk_nope_head_dim + mla.qk_rope_head_dim
    bias = int(config.bias)

    def linear(inner: int, outer: int) -> int:
        return inner * outer + bias * outer

    return [
        ("attention_linear_q_lora", linear(hidden, mla.q_lora_rank)),
        ("fused", 2 * mla.q_lora_rank),
        ("attention_q_column", column(mla.q_lora_rank, heads * query)),
        ("attention_linear_kv_lora", linear(hidden, mla.kv_lora_rank + mla.qk_rope_head_dim)),
        ("fused", 2 * mla.kv_lora_rank),
        ("attention_kv_column", column(mla.kv_lora_rank, heads * (mla.qk_nope_head_dim + mla.v_head_dim))),
        ("attention_o_row", row(heads * mla.v_head_dim, hidden)),
    ]


def _expert_modules(config: AicbConfig, layer: int, mlp: list[tuple[str, int]]) -> list[tuple[str, int]]:
    if config.experts is None or (config.mla and layer < config.dense_layers):
        return mlp
    here = config.experts // config.ep
    if config.mla is None:
        return [("mlp_moelayer", 2 * config.hidden * (config.ffn * here // config.tp))]
    shared = mlp if config.shared_experts > 0 else []
    # The shared expert is counted here and once more in its own rows.
    experts = 3 * config.hidden * (config.ffn * here // config.tp) + sum(n for _, n in shared)
    return [("mlp_moelayer", experts), *shared]


def _rows(config: AicbConfig, times: AicbTimes | None) -> Iterator[str]:
    parts = modules(config)
    total = sum(n for _, n in parts)
    moe = sum(n for name, n in parts if "moe" in name)
    yield from _prologue(config, times, total, moe)
    block = _Block(config, times)
    names = [name for name, _ in parts if name != "fused"]
    for _ in range(config.microbatches):
        for name in names:
            yield from block.rows(name)
        if times is None:
            size = config.vocab * config.hidden * 2  # without what it is padded by
            yield _row("embedding_norm", fwd=("ALLREDUCE", size))
    numbers = config.seq * config.microbatch_size * 4
    for number in (1, 2, 3):
        yield _row(f"cross_entropy{number}", (0, 0, 0), fwd=("ALLREDUCE", numbers))
    for number in (1, 2, 3, 4):
        yield _row(f"optimizer{number}", (0, 0, 0), fwd=("ALLREDUCE", 4))


def _prologue(config: AicbConfig, times: AicbTimes | None, total: int, moe: int) -> Iterator[str]:
    if times is None:
        yield _row("grad_norm", fwd=("ALLGATHER", 2 * total), wg=("REDUCESCATTER", 4 * total))
    else:
        yield _row("grad_gather", wg=("ALLGATHER", 2 * (total - moe)))
        yield _row("grad_param_comm", wg=("REDUCESCATTER", 4 * (total - moe)))
        yield _row("grad_param_compute", (_NOT_MEASURED, sum(times.optimizer), _NOT_MEASURED))
    if not config.sequence_parallel:
        yield _row("layernorm", ig=("ALLREDUCE", 2 * total))
    if times is not None:
        yield _row("embedding_grads", ig=("ALLREDUCE", config.activation) if config.tp > 1 else _NONE)
    if config.ep != config.dp:
        yield _row("moe_grad_norm1", wg=("ALLGATHER_DP_EP", 2 * moe))
        yield _row("moe_grad_norm2", wg=("REDUCESCATTER_DP_EP", 4 * moe))


class _Block:
    """The rows of one micro-batch. aiob's embedding has what the row before it left behind for a cell."""

    def __init__(self, config: AicbConfig, times: AicbTimes | None) -> None:
        self.config = config
        self.times = times
        self.before = times.optimizer[1] if times else _NOT_MEASURED

    def rows(self, name: str) -> Iterator[str]:
        """The row of a module; of experts its five."""
        if name == "mlp_moelayer":
            yield from self._experts()
            return
        cells = self._cells(name)
        if self.times is None:
            yield _row(name, cells, *self._plain(name))
        else:
            yield _row(name, cells, *self._aiob(name))

    def _cells(self, name: str) -> tuple[int, int, int]:
        times = self.times
        if times is None:
            return (_NOT_MEASURED,) * 3
        if name == "embedding_layer":
            return times.embedding, _NOT_MEASURED, self.before
        once = times.mlp if name.startswith("mlp") else times.attention
        if self.config.mla and name.startswith("attention"):
            once = times.latent
        # Of attention alone, and of its linears alone: their whole forward again.
        again = self.config.recompute and self.config.sequence_parallel and name.startswith("attention")
        twice = 2 if again else 1
        forward, backward = once * twice, once
        if not name.endswith("_layer") and "linear" not in name:
            forward, backward = forward // 2, backward // 2
        self.before = backward
        return forward, backward, backward

    def _aiob(self, name: str) -> tuple[_Collective, _Collective]:
        size, tensor_parallel = self.config.activation, self.config.tp > 1
        if not tensor_parallel or "linear" in name:
            return _NONE, _NONE
        if name.endswith("_layer"):
            return ("ALLREDUCE", size), _NONE
        if name.endswith("row"):
            return ("REDUCESCATTER", size), ("ALLGATHER", size)
        return ("ALLGATHER", size), ("REDUCESCATTER", 0)

    def _plain(self, name: str) -> tuple[_Collective, _Collective]:
        config, size = self.config, self.config.activation
        if config.sequence_parallel and config.mla and name.startswith("attention"):
            raise UsageError(
                "--as-aicb plain: AICB stops at frame DeepSeek with sequence parallelism (AttributeError: "
                "NoneType has no attribute keys); aiob would fit"
            )
        sent = size * (2 if config.recompute and "attention" in name else 1)
        if not config.sequence_parallel:
            return ("ALLREDUCE", sent), ("ALLREDUCE", size)
        if name == "embedding_layer":
            return ("NONE", size), ("NONE", size)
        if name.endswith("row"):
            return ("REDUCESCATTER", sent), ("NONE", size)
        return ("ALLGATHER", sent), _NONE

    def _experts(self) -> Iterator[str]:
        config, times = self.config, self.times
        experts = config.experts or 1
        gathered = config.activation * config.experts_per_token
        sent = gathered // config.tp
        first_sent = int(sent * _FP8_SHARE) if config.mla and times is not None else sent
        tensor_parallel = config.tp > 1 or times is None
        across = config.ep > 1 or times is None

        def tensor(name: str, size: int) -> _Collective:
            return (name, size) if tensor_parallel else _NONE

        def expert(size: int) -> _Collective:
            return ("ALLTOALL_EP", size) if across else _NONE

        counts = ("ALLGATHER", 2 * config.ep * experts * config.tp)
        cells = (_NOT_MEASURED,) * 3
        whole = cells if times is None else (times.mlp, times.mlp, _NOT_MEASURED)
        yield _row("mlp_moelayer", whole, counts if tensor_parallel or across else _NONE)
        yield _row("mlp_moelayer", cells, expert(first_sent), expert(sent))
        yield _row("mlp_moelayer", cells, tensor("ALLGATHER", gathered), tensor("REDUCESCATTER", gathered))
        yield _row("mlp_moelayer", cells, tensor("REDUCESCATTER", gathered), tensor("ALLGATHER", gathered))
        yield _row("mlp_moelayer", cells, expert(sent), expert(sent))
        if times is not None:
            self.before = times.mlp


def _row(
    name: str,
    cells: tuple[int, int, int] = (_NOT_MEASURED,) * 3,
    fwd: _Collective = _NONE,
    ig: _Collective = _NONE,
    wg: _Collective = _NONE,
) -> str:
    of_phases = zip(cells, (fwd, ig, wg), strict=True)
    middle = "\t".join(f"{ns}\t{kind}\t{size}" for ns, (kind, size) in of_phases)
    return f"{name}\t-1\t{middle}\t100"


# The parts that AICB's own text of its measurements (`--comp_filepath`, us of each part of a layer) has.
_ATTENTION, _MLP = "layernorm", "layernorm2"
_OPTIMIZER = "param_time"


def read_times(path: str, data: bytes, recompute: bool) -> AicbTimes:
    """The times of such a file; `recompute` counts flash attention twice.

    A line that ends in a colon begins a part; `time_gpu_avg` is its time, us, of Adam `time_gpu_min` too.
    Raises InputError with the place of what is no time, and for a file without a part that is needed.
    """
    attention = mlp = embedding = 0.0
    optimizer = [0.0, 0.0]
    part, parts = "", set()
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        key, colon, text = line.partition(":")
        if not colon:
            continue
        if line[:1].strip():
            part = key.strip()
            continue
        least = key.strip() == "time_gpu_min"
        if not least and key.strip() != "time_gpu_avg":
            continue
        us = plain_number(text.strip())
        if us is None or us > 1e12:
            message = (
                f"{printable(key.strip())}: found {printable(text.strip(), 40)}, expected us as a number"
            )
            raise InputError(Diagnostic("error", "aicb-times", message, path, number, line.find(":") + 2))
        ns = us * 1000
        if part == _OPTIMIZER:
            optimizer[0 if least else 1] = ns
        elif not least and ("atten" in part or part == _ATTENTION):
            attention += ns * (2 if recompute and "flash" in part else 1)
        elif not least and ("mlp" in part or part == _MLP):
            mlp += ns
        elif not least and part == "Emb":
            embedding = ns
        parts.add(part)
    missing = [name for name in ("Emb", _OPTIMIZER) if name not in parts]
    if missing or not attention or not mlp:
        missing += [name for name, ns in (("atten_...", attention), ("mlp_...", mlp)) if not ns]
        message = f"found no {', '.join(missing)}, expected the times that AICB measures"
        raise InputError(Diagnostic("error", "aicb-times", message, path, 1, 1))
    return AicbTimes(
        round(embedding), round(attention), round(mlp), (round(optimizer[0]), round(optimizer[1]))
    )
