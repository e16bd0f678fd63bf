"""The rows that AICB writes for SimAI from a model's arguments, its quirks included (docs/models.md).

Two generators: `plain`, whose compute cells are 1, and `aiob`, whose cells are measured. Their rows, types
and bytes differ. The times behind the cells are recovered from how its rows halve, double and repeat them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.model.sizes import Mla
from simcore.records import NamedTuple, Struct
from simcore.units import plain_number
from simcore.workload import Workload

# AICB's cell for rows without a measured time.
_NOT_MEASURED = 1
# The size of tokens sent to experts (frame DeepSeek) as a share of 2 bytes: FP8, and a scale of 4 bytes
# for each 128.
_FP8_SHARE = (1 + 4 / 128) / 2
_NONE = ("NONE", 0)
_Collective = tuple[str, int]


class AicbVersion(NamedTuple):
    """What AICB wrote in one period, where that differs from what it writes today (docs/models.md)."""

    name: str
    """The name of the version."""
    period: str
    """When it was in use, in words."""
    keys: tuple[str, ...]
    """The keys of the header behind tp."""
    embedding: int = 4
    """The bytes that AICB counts for a parameter of the embedding, divided by 2."""
    sevenfold: bool = False
    """Whether experts are seven rows, and what tp 1 does not send is NONE with its size."""
    norms: bool = False
    """Whether layers without sequence parallelism are `attention_norm` and `mlp_norm`, the loss has cells of
    1 and no optimizer follows it.
    """


_KEYS = ("ep", "pp", "vpp", "ga", "all_gpus", "pp_comm")
# From the commits af5cf2b (embedding), e0dab52 (vpp), cf516c0 (pp_comm), b9d142e (ep, pp, ga, all_gpus).
# It is unknown when seven rows became five: files with pp_comm have either.
VERSIONS: dict[str, AicbVersion] = {
    version.name: version
    for version in (
        AicbVersion("2025-12", "since December 2024", _KEYS),
        AicbVersion("2024-12", "since December 2024, experts as before", _KEYS, sevenfold=True),
        AicbVersion("2024-11-06", "6 November to 1 December 2024", _KEYS[:5], sevenfold=True),
        AicbVersion("2024-11-05", "5 November 2024", _KEYS[:5], 2, sevenfold=True),
        AicbVersion("2024-09", "11 September to 4 November 2024", ("ep", "pp", "ga", "all_gpus"), 2, True),
        AicbVersion("2024-07", "July to 10 September 2024", (), 2, True, norms=True),
    )
}
NEWEST = "2025-12"


class AicbConfig(Struct, frozen=True):
    """AICB's arguments."""

    layers: int
    """Layers of the whole model."""
    hidden: int
    """The hidden size."""
    heads: int
    """Attention heads."""
    ffn: int
    """The inner size of the feed-forward part."""
    vocab: int
    """The vocabulary, before it is padded."""
    seq: int
    """Tokens of a sequence."""
    microbatch_size: int
    """Sequences of a micro-batch."""
    global_batch: int
    """Sequences of a step."""
    world: int
    """Ranks."""
    tp: int
    """The tensor-parallel degree."""
    pp: int
    """Pipeline stages."""
    ep: int
    """The expert-parallel degree."""
    sequence_parallel: bool
    """Whether activations between linears are divided among tp ranks."""
    recompute: bool
    """Whether activations are recomputed, which doubles attention."""
    bias: bool
    """Whether linears have a bias."""
    experts: int | None
    """Experts of a layer; None without experts (`--moe_enable`)."""
    experts_per_token: int
    """Experts that a token is sent to."""
    shared_experts: int
    """Experts that every token takes."""
    dense_layers: int
    """Layers without experts."""
    mla: Mla | None
    """Latent attention; with it the frame is DeepSeek."""
    vocab_step: int = 128
    """The vocabulary of each tp rank is padded to a multiple of this."""
    version: str = NEWEST
    """One of `VERSIONS`."""

    @property
    def padded_vocab(self) -> int:
        """The vocabulary as tp divides it."""
        step = self.vocab_step * self.tp
        return -(-self.vocab // step) * step

    @property
    def written_by(self) -> AicbVersion:
        """What its version of AICB writes."""
        return VERSIONS[self.version]

    @property
    def pp_comm(self) -> int | float:
        """Bytes of an activation between stages, as the header states them."""
        if self.pp == 1:
            return 0
        # With sequence parallelism AICB divides (not yet in 2024), so that Python writes a float.
        is_divided = self.sequence_parallel and not self.written_by.sevenfold
        return self.activation / self.tp if is_divided else self.activation

    @property
    def dp(self) -> int:
        """Data-parallel replicas."""
        return self.world // (self.tp * self.pp)

    @property
    def microbatches(self) -> int:
        """Micro-batches of a step: a remainder is dropped, 0 is possible."""
        return self.global_batch // (self.microbatch_size * self.dp)

    @property
    def stage_layers(self) -> int:
        """Layers of a stage: a remainder is dropped."""
        return self.layers // self.pp

    @property
    def activation(self) -> int:
        """Bytes of the activations of one micro-batch."""
        return 2 * self.microbatch_size * self.seq * self.hidden


class AicbTimes(Struct, frozen=True):
    """The times of the parts of a step, ns, as AICB measures them."""

    embedding: int
    """The embedding."""
    attention: int
    """Forward of one layer's attention."""
    mlp: int
    """Forward of one layer's feed-forward part."""
    optimizer: tuple[int, int]
    """The two figures of Adam."""
    latent: int = 0
    """The projections of latent attention; 0 where they are not timed, as in AICB's own file."""


class AicbRow(NamedTuple):
    """One row of the file."""

    name: str
    """The name of the row."""
    cells: tuple[int, int, int] = (_NOT_MEASURED,) * 3
    """The times of its three cells, ns."""
    fwd: _Collective = _NONE
    """(type, bytes) of the forward's collective."""
    ig: _Collective = _NONE
    """(type, bytes) of the input gradient's collective."""
    wg: _Collective = _NONE
    """(type, bytes) of the weight gradient's collective."""

    @property
    def collectives(self) -> tuple[_Collective, _Collective, _Collective]:
        """The collectives of its three cells."""
        return self.fwd, self.ig, self.wg

    def text(self) -> str:
        """Returns the row as a line of the file."""
        of_phases = zip(self.cells, self.collectives, strict=True)
        middle = "\t".join(f"{ns}\t{kind}\t{size}" for ns, (kind, size) in of_phases)
        return f"{self.name}\t-1\t{middle}\t100"


def aicb_text(config: AicbConfig, times: AicbTimes | None) -> str:
    """Returns the text of the file.

    times: of aiob; None for plain, whose cells are 1. Raises `UsageError` where AICB stops.
    """
    rows = aicb_rows(config, times)
    header_values = {
        "ep": config.ep, "pp": config.pp, "vpp": config.stage_layers, "ga": config.microbatches,
        "all_gpus": config.world, "pp_comm": config.pp_comm,
    }  # fmt: skip
    keys = config.written_by.keys
    between = "\t" if not keys else " "
    degrees = "".join(f" {key}: {header_values[key]}" for key in keys if key != "pp_comm")
    last = f" pp_comm: {config.pp_comm}" if "pp_comm" in keys else ""
    header = (
        f"HYBRID_TRANSFORMER_FWD_IN_BCKWD{between}model_parallel_NPU_group: {config.tp}{degrees} "
        f"checkpoints: 0 checkpoint_initiates: 0{last}"
    )
    return "\n".join([header, str(len(rows)), *(row.text() for row in rows)]) + "\n"


def aicb_rows(config: AicbConfig, times: AicbTimes | None) -> list[AicbRow]:
    """Returns the rows of the file. Raises `UsageError` where AICB stops."""
    version = config.written_by
    if version.sevenfold and config.experts is not None and times is None:
        raise UsageError(
            f"--as-aicb plain: what AICB of {version.name} wrote of experts is not known; aiob would fit"
        )
    parts = modules(config)
    total = sum(n for _, n in parts)
    moe = sum(n for name, n in parts if "moe" in name)
    rows = list(_prologue(config, times, total, moe))
    block = _Block(config, times)
    names = [name for name, _ in parts if name != "fused"]
    first = second = ()  # type: tuple[AicbRow, ...]
    if config.microbatches:
        first = tuple(block.all_rows(names))
    if config.microbatches > 1:
        # From the second on blocks are equal: the embedding's cell is the last value of the block before.
        second = tuple(block.all_rows(names))
    rows += first
    rows += second * (config.microbatches - 1)
    loss_bytes = config.seq * config.microbatch_size * 4
    cells = (_NOT_MEASURED,) * 3 if version.norms else (0, 0, 0)
    rows += [AicbRow(f"cross_entropy{n}", cells, fwd=("ALLREDUCE", loss_bytes)) for n in (1, 2, 3)]
    if not version.norms:
        rows += [AicbRow(f"optimizer{n}", (0, 0, 0), fwd=("ALLREDUCE", 4)) for n in (1, 2, 3, 4)]
    return rows


def modules(config: AicbConfig) -> list[tuple[str, int]]:
    """Returns (name, parameters of one rank) of the modules that AICB counts, in its order; `fused` (a norm)
    is no row.
    """
    return [module for equal_ones, count in repeated_modules(config) for module in equal_ones * count]


def repeated_modules(config: AicbConfig) -> list[tuple[list[tuple[str, int]], int]]:
    """Returns (modules, how often they repeat) of what `modules` returns: layers are alike."""
    tp, hidden, bias = config.tp, config.hidden, int(config.bias)
    vocab, version = config.padded_vocab, config.written_by
    blocks = ("attention_norm", "mlp_norm") if version.norms else ("attention_layer", "mlp_layer")

    def column(inner: int, outer: int) -> int:
        return inner * (outer // tp) + bias * (outer // tp)

    def row(inner: int, outer: int) -> int:
        return (inner // tp) * outer + bias * outer

    mlp = [("mlp_column", column(hidden, config.ffn)), ("mlp_row", row(config.ffn, hidden))]
    # AICB counts a parameter of the vocabulary 4 times (2 before), and a table of positions for every model.
    embedding = ("embedding_layer", version.embedding * (vocab // tp) * hidden + config.seq * hidden)
    parts = [([embedding], 1)]
    attention = _attention_modules(config, column, row)

    def layer_of(experts: list[tuple[str, int]]) -> list[tuple[str, int]]:
        if config.sequence_parallel:
            return [*attention, ("fused", 2 * hidden), *experts]
        # These are whole blocks instead of their linears, and no norms.
        return [
            (blocks[0], sum(n for name, n in attention if name != "fused")),
            (blocks[1], sum(n for name, n in experts if name != "mlp_moelayer")),
        ]

    dense = 0 if config.experts is not None else config.stage_layers
    if config.experts is not None and config.mla:
        dense = min(config.dense_layers, config.stage_layers)
    parts.append((layer_of(mlp), dense))
    if dense < config.stage_layers:
        parts.append((layer_of(_expert_modules(config, mlp)), config.stage_layers - dense))
    if config.sequence_parallel:
        parts.append(([("final_column", column(hidden, vocab))], 1))
    return parts


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


def _expert_modules(config: AicbConfig, mlp: list[tuple[str, int]]) -> list[tuple[str, int]]:
    assert config.experts is not None
    here = config.experts // config.ep
    if config.mla is None:
        return [("mlp_moelayer", 2 * config.hidden * (config.ffn * here // config.tp))]
    shared = mlp if config.shared_experts > 0 else []
    # AICB counts the shared expert here and once more in its own rows.
    experts = 3 * config.hidden * (config.ffn * here // config.tp) + sum(n for _, n in shared)
    return [("mlp_moelayer", experts), *shared]


def _prologue(config: AicbConfig, times: AicbTimes | None, total: int, moe: int) -> Iterator[AicbRow]:
    if times is None:
        yield AicbRow("grad_norm", fwd=("ALLGATHER", 2 * total), wg=("REDUCESCATTER", 4 * total))
    else:
        yield AicbRow("grad_gather", wg=("ALLGATHER", 2 * (total - moe)))
        yield AicbRow("grad_param_comm", wg=("REDUCESCATTER", 4 * (total - moe)))
        yield AicbRow("grad_param_compute", (_NOT_MEASURED, sum(times.optimizer), _NOT_MEASURED))
    if not config.sequence_parallel:
        yield AicbRow("layernorm", ig=("ALLREDUCE", 2 * total))
    if times is not None:
        unsent = ("NONE", config.activation) if config.written_by.sevenfold else _NONE
        yield AicbRow("embedding_grads", ig=("ALLREDUCE", config.activation) if config.tp > 1 else unsent)
    if config.ep != config.dp and not config.written_by.norms:
        yield AicbRow("moe_grad_norm1", wg=("ALLGATHER_DP_EP", 2 * moe))
        yield AicbRow("moe_grad_norm2", wg=("REDUCESCATTER_DP_EP", 4 * moe))


class _Block:
    """Makes the rows of one micro-batch. The cell of aiob's embedding is the last value of the row before."""

    def __init__(self, config: AicbConfig, times: AicbTimes | None) -> None:
        self.config = config
        self.times = times
        self.before = times.optimizer[1] if times else _NOT_MEASURED

    def all_rows(self, names: list[str]) -> Iterator[AicbRow]:
        """Yields the rows of one micro-batch."""
        for name in names:
            yield from self.rows(name)
        if self.times is None or self.config.written_by.norms:
            size = self.config.vocab * self.config.hidden * 2  # without padding
            yield AicbRow("embedding_norm", fwd=("ALLREDUCE", size))

    def rows(self, name: str) -> Iterator[AicbRow]:
        """Yields the row of a module; of experts their five."""
        if name == "mlp_moelayer":
            yield from self._seven_expert_rows() if self.config.written_by.sevenfold else self._expert_rows()
            return
        cells = self._cells(name)
        if self.times is None:
            yield AicbRow(name, cells, *self._plain(name))
        else:
            yield AicbRow(name, cells, *self._aiob(name))

    def _cells(self, name: str) -> tuple[int, int, int]:
        times = self.times
        if times is None:
            return (_NOT_MEASURED,) * 3
        if name == "embedding_layer":
            before = _NOT_MEASURED if self.config.written_by.norms else self.before
            return times.embedding, _NOT_MEASURED, before
        once = times.mlp if name.startswith("mlp") else times.attention
        if self.config.mla and name.startswith("attention"):
            once = times.latent
        # AICB adds the whole forward again, of attention alone or of its linears alone.
        again = self.config.recompute and self.config.sequence_parallel and name.startswith("attention")
        twice = 2 if again else 1
        forward, backward = once * twice, once
        if not name.endswith(("_layer", "_norm")) and "linear" not in name:
            forward, backward = forward // 2, backward // 2
        self.before = backward
        return forward, backward, backward

    def _aiob(self, name: str) -> tuple[_Collective, _Collective]:
        size, tensor_parallel = self.config.activation, self.config.tp > 1
        if "linear" in name:
            return _NONE, _NONE
        if not tensor_parallel:
            if not self.config.written_by.sevenfold:
                return _NONE, _NONE
            return ("NONE", size), ("NONE", size) if name.endswith("row") else _NONE
        if name.endswith(("_layer", "_norm")):
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
        sent_bytes = size * (2 if config.recompute and "attention" in name else 1)
        if not config.sequence_parallel:
            return ("ALLREDUCE", sent_bytes), ("ALLREDUCE", size)
        if name == "embedding_layer":
            return ("NONE", size), ("NONE", size)
        if name.endswith("row"):
            return ("REDUCESCATTER", sent_bytes), ("NONE", size)
        return ("ALLGATHER", sent_bytes), _NONE

    def _expert_rows(self) -> Iterator[AicbRow]:
        config, times = self.config, self.times
        experts = config.experts or 1
        gathered = config.activation * config.experts_per_token
        sent_bytes = gathered // config.tp
        first_sent = int(sent_bytes * _FP8_SHARE) if config.mla and times is not None else sent_bytes
        tensor_parallel = config.tp > 1 or times is None
        across = config.ep > 1 or times is None

        def tensor(name: str, size: int) -> _Collective:
            return (name, size) if tensor_parallel else _NONE

        def expert(size: int) -> _Collective:
            return ("ALLTOALL_EP", size) if across else _NONE

        counts = ("ALLGATHER", 2 * config.ep * experts * config.tp)
        cells = (_NOT_MEASURED,) * 3
        whole = cells if times is None else (times.mlp, times.mlp, _NOT_MEASURED)
        yield AicbRow("mlp_moelayer", whole, counts if tensor_parallel or across else _NONE)
        yield AicbRow("mlp_moelayer", cells, expert(first_sent), expert(sent_bytes))
        yield AicbRow("mlp_moelayer", cells, tensor("ALLGATHER", gathered), tensor("REDUCESCATTER", gathered))
        yield AicbRow("mlp_moelayer", cells, tensor("REDUCESCATTER", gathered), tensor("ALLGATHER", gathered))
        yield AicbRow("mlp_moelayer", cells, expert(sent_bytes), expert(sent_bytes))
        if times is not None:
            self.before = times.mlp

    def _seven_expert_rows(self) -> Iterator[AicbRow]:
        """Yields the seven rows of experts of older versions, whose tokens are sent over tp, too."""
        config, times = self.config, self.times
        assert times is not None
        experts = config.experts or 1
        # The size is that of tokens; in the one public file with `pp_comm`, that of the router's weights.
        of_router = "pp_comm" in config.written_by.keys
        counts = 2 * experts * (config.hidden if of_router else config.microbatch_size * config.seq)
        between = config.activation // config.tp
        gathered = config.activation * config.experts_per_token
        sent_bytes = gathered // config.tp if config.ep > 1 else 1

        def tensor(name: str, size: int) -> _Collective:
            return (name if config.tp > 1 else "NONE", size)

        expert: _Collective = ("ALLTOALL_EP", sent_bytes)
        across = tensor("ALLTOALL", between)
        cells = (_NOT_MEASURED,) * 3
        of_counts = tensor("ALLGATHER", counts)
        yield AicbRow("mlp_moelayer", (times.mlp, times.mlp, _NOT_MEASURED), of_counts, of_counts)
        yield AicbRow("mlp_moelayer", cells, across, across)
        yield AicbRow("mlp_moelayer", cells, expert, expert)
        gather, scatter = tensor("ALLGATHER", gathered), tensor("REDUCESCATTER", gathered)
        yield AicbRow("mlp_moelayer", cells, gather, scatter if config.ep > 1 else gather)
        yield AicbRow("mlp_moelayer", cells, scatter, gather)
        yield AicbRow("mlp_moelayer", cells, expert, expert)
        yield AicbRow("mlp_moelayer", cells, across, across)
        self.before = times.mlp


# Parts of AICB's text of its measurements (`--comp_filepath`, us of each part of a layer).
_ATTENTION, _MLP = "layernorm", "layernorm2"
_OPTIMIZER = "param_time"


def read_times(path: str, data: bytes, recompute: bool) -> AicbTimes:
    """Returns the times in a text of AICB's measurements; `recompute` counts flash attention twice.

    A line that ends in a colon begins a part; `time_gpu_avg` is its time, us, of Adam `time_gpu_min` too.
    Raises InputError with the position of an invalid time, and for a file without a part that is needed.
    """
    attention = mlp = embedding = 0.0
    optimizer = [0.0, 0.0]
    part, parts = "", set()
    for line_number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
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
            raise InputError(
                Diagnostic("error", "aicb-times", message, path, line_number, line.find(":") + 2)
            )
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


def times_of_rows(workload: Workload, config: AicbConfig) -> AicbTimes:
    """Returns the times behind the cells of an aiob file of that config, ns, each as most rows have it."""
    forward, backward = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
    experts: Counter[int] = Counter()
    before = ""
    optimizer = first = 0
    for row, name in enumerate(workload.name):
        ns, back = workload.fwd.compute_ns[row], workload.ig.compute_ns[row]
        if name == "mlp_moelayer":
            if before != name:
                experts[ns] += 1
        else:
            forward[name, ns] += 1
            backward[name, back] += 1
            if name == "grad_param_compute":
                optimizer = back
            elif name == "embedding_layer" and first == 0:
                first = workload.wg.compute_ns[row] + 1
        before = name

    def usual(counts: Counter[tuple[str, int]], *names: str) -> int:
        return next((ns for (name, ns), _ in counts.most_common() if name in names), 0)

    # Each linear has half of it, rounded down: of two times with equal halves either may be the right one.
    parallel = config.sequence_parallel
    attention = (
        usual(forward, "attention_column", "attention_row")
        if config.recompute and not config.mla
        else 2 * usual(forward, "attention_column", "attention_row", "final_column")
        if parallel
        else usual(forward, "attention_layer", "attention_norm")
    )
    if config.mla and parallel:
        attention = 2 * usual(forward, "final_column")
    mlp = next((ns for ns, _ in experts.most_common()), 0)
    if not mlp:
        mlp = (
            2 * usual(forward, "mlp_column", "mlp_row")
            if parallel
            else usual(forward, "mlp_layer", "mlp_norm")
        )
    latent = 0
    if config.mla:
        latent = (
            usual(backward, "attention_linear_q_lora", "attention_linear_kv_lora") if parallel else attention
        )
    # The first embedding's cell has the mean of Adam; the optimizer's cell is the sum of both figures.
    mean = first - 1 if optimizer <= 2 * (first - 1) <= 2 * optimizer else optimizer
    return AicbTimes(usual(forward, "embedding_layer"), attention, mlp, (optimizer - mean, mean), latent)
