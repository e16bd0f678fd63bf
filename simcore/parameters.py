"""Every parameter of a run: one table that the command line, the form and the JSON share.

And what a user asks of measured runs beside their parameters.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeVar

from simcore.diagnostics import UsageError, printable
from simcore.names import (
    ALGORITHMS,
    DIALECTS,
    ENGINE_NAMES,
    FLAT_ALGORITHMS,
    GPU_NAMES,
    GPU_TYPES,
    GROUP_KINDS,
    NIC_TYPES,
    OPTIMIZATIONS,
    PRECISIONS,
    PRESET_NAMES,
    RANK_ORDERS,
    STAGE_LAYOUTS,
)
from simcore.records import Struct, asdict, replace
from simcore.units import plain_number

T = TypeVar("T", bound=Struct)
P = TypeVar("P", bound="Parameters")
G = TypeVar("G", bound="RunInput")
Kind = Literal["count", "positive", "scale", "word", "words", "text", "switch"]
# What is opened: a workload is simulated, a model too, a trace shown as it was measured or replayed,
# execution traces run.
# A file is a workload that has its rows, where a model's are made.
Input = Literal["workload", "model", "trace", "execution", "file"]
_WORKLOAD_OR_TRACE: tuple[Input, ...] = ("workload", "trace")
_TRACE: tuple[Input, ...] = ("trace",)
_MODEL: tuple[Input, ...] = ("model",)
_FILE: tuple[Input, ...] = ("file",)
_MODEL_OR_FILE: tuple[Input, ...] = ("model", "file")
# What a workload and execution traces have, and what all three.
_WORKLOAD_OR_EXECUTION: tuple[Input, ...] = ("workload", "execution")
_ALL: tuple[Input, ...] = ("workload", "trace", "execution")
_EXECUTION: tuple[Input, ...] = ("execution",)
_ON_OFF = ("on", "off")
_OFF_ON = ("off", "on")

# A collective is simulated chunk by chunk; NCCL and ASTRA-sim users take 4 to 64.
MOST_CHUNKS = 1024


class Parameters(Struct, frozen=True):
    """What a user may set; None means "as the file says" or "the default".

    world, tp, ep, pp: degrees in place of the file's. virtual_stages: chunks of each stage
    (interleaved). rescale: `on` makes rows for the degrees, of AICB's files. without_lines:
    `LINE` or `FROM-TO`, of a file.
    passes: how often layer-loop runs the file. layers: how often an op table's
    one layer runs. steps: how many a pipeline runs. overlap_fwd_bwd: forwards beside backwards.
    cluster: a preset or the path of a file. system: the path of an ASTRA-sim
    system file. dim: `KIND:SIZE:GBPS:NS`, inner first. algorithm: `DIM=NAME`, `all-reduce:DIM=NAME`. splits,
    active_chunks: chunks of a collective. endpoint_delay: ns. local_mem_bw: GB/s. nvlink, nic:
    GiB/s, over those of gpu_type and nic_type. overlap: `KIND=RATIO,...`, of SimAI's estimate.
    compute_scale, comm_scale: durations times X. time_scale: `WHAT=X`, of a phase, layer or stream.
    no_fold: simulate every rank, not one of each class. gap_scale, slow_host (`R=X`), host_scale: a
    trace's host time between operations and its operations that neither compute nor communicate, times X.
    kind_scale, stage_scale: `KIND=X` of a trace's communication, `STAGE=X` of its compute. replay: run a
    trace's operations again, none of them changed.
    Of a model: cp: ranks that share a sequence; cp_comm_type: how they exchange keys and values.
    microbatch_size, global_batch: sequences. seq: tokens.
    sequence_parallel, flash, pp_scatter, reshard_after_forward: `on` or `off`. prefetch: units whose weights
    are gathered ahead. shard_size: ranks that share out weights; the others hold copies. bucket_size:
    parameters. expert_capacity: times the mean load. gpu: a name or the path of a file. memory_limit:
    bytes with a unit. as_aicb: which of AICB's generators; aicb_args: its own arguments.
    comm_groups, remote_memory: paths of execution traces' files of groups and of remote memory.
    rendezvous_protocol, injection_scale, num_queues_per_dim: ASTRA-sim's flags of the same names.
    """

    world: int | None = None
    tp: int | None = None
    ep: int | None = None
    pp: int | None = None
    rank_order: str = "tp-ep-dp-pp"
    rescale: str = "off"
    without_lines: tuple[str, ...] = ()
    schedule: str | None = None
    microbatches: int | None = None
    virtual_stages: int | None = None
    passes: int = 1
    layers: int | None = None
    steps: int = 1
    stage_layout: str | None = None
    overlap_fwd_bwd: bool = False
    overlap_grad_reduce: bool = False
    overlap_param_gather: bool = False
    dialect: str | None = None
    cluster: str | None = None
    system: str | None = None
    dim: tuple[str, ...] = ()
    algorithm: tuple[str, ...] = ()
    splits: int | None = None
    active_chunks: int | None = None
    endpoint_delay: int | None = None
    local_mem_bw: float | None = None
    collective_optimization: str | None = None
    network: str = "analytical"
    nvlink: float | None = None
    nic: float | None = None
    nics_per_server: int = 8
    gpus_per_server: int = 8
    gpu_type: str = "H100"
    nic_type: str = "cx7"
    overlap: tuple[str, ...] = ()
    compute_scale: float = 1.0
    comm_scale: float = 1.0
    layer_scale: tuple[str, ...] = ()
    time_scale: tuple[str, ...] = ()
    slow_rank: tuple[str, ...] = ()
    slow_link: tuple[str, ...] = ()
    jitter: float = 0.0
    seed: int = 0
    no_fold: bool = False
    replay: bool = False
    gap_scale: float = 1.0
    slow_host: tuple[str, ...] = ()
    host_scale: float = 1.0
    kind_scale: tuple[str, ...] = ()
    stage_scale: tuple[str, ...] = ()
    cp: int | None = None
    cp_comm_type: str | None = None
    microbatch_size: int | None = None
    global_batch: int | None = None
    seq: int | None = None
    sequence_parallel: str | None = None
    overlap_tp: bool = False
    flash: str | None = None
    recompute: str | None = None
    recompute_rows: str | None = None
    offload: float | None = None
    zero: str | None = None
    prefetch: str | None = None
    reshard_after_forward: str | None = None
    shard_size: int | None = None
    bucket_size: int | None = None
    expert_imbalance: str | None = None
    expert_capacity: float | None = None
    expert_placement: str | None = None
    grad_dtype: str | None = None
    precision: str | None = None
    engine_preset: str | None = None
    compile: str | None = None
    pp_scatter: str | None = None
    stage_layers: str | None = None
    gpu: str | None = None
    memory_limit: str | None = None
    as_aicb: str | None = None
    aicb_args: str | None = None
    comm_groups: str | None = None
    remote_memory: str | None = None
    injection_scale: float = 1.0
    rendezvous_protocol: str = "false"
    num_queues_per_dim: int = 1

    def part(self, of: type[T]) -> T:
        """Those that a room asks for, as its own record of them: the fields of `of` are names of these."""
        return of(**{name: getattr(self, name) for name in of.__struct_fields__})

    @property
    def explicit_names(self) -> frozenset[str]:
        """The names of those that are not at their default."""
        return frozenset(flag.field for flag in self.explicit_flags())

    def explicit_flags(self) -> list[Flag]:
        """The flags of the parameters that are not at their default."""
        return [flag for flag, field, default in _FLAG_DEFAULTS if getattr(self, field) != default]

    def explicit_values(self) -> dict[str, Any]:
        """By field, the parameters that are not at their default, lists for tuples."""
        values = {flag.field: getattr(self, flag.field) for flag in self.explicit_flags()}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def refuse_others(self, of: Input) -> None:
        """Raises `UsageError` that names the parameters which have no meaning for what is open."""
        others = [flag.option for flag in self.explicit_flags() if not applies_to(flag, of)]
        if not others:
            return
        options = ", ".join(others)
        if of == "execution":
            verb = "has" if len(others) == 1 else "have"
            raise UsageError(f"{options} {verb} no meaning for execution traces")
        not_of_files = [flag for flag in self.explicit_flags() if not applies_to(flag, "workload")]
        if of == "workload" and all(flag.of == _MODEL for flag in not_of_files):
            raise UsageError(
                f"{options}: found a workload file, which has its rows; --model NAME|FILE would fit"
            )
        if of == "model":
            there = {input for flag in self.explicit_flags() if flag.option in others for input in flag.of}
            expected = "rank traces" if "trace" in there else "execution traces"
            expected = "a workload file" if there == {"file"} else expected
            raise UsageError(f"{options}: found a model, expected {expected}")
        if of == "workload":
            there = {input for flag in self.explicit_flags() if not applies_to(flag, of) for input in flag.of}
            expected = "rank traces" if there == {"trace"} else "execution traces"
            raise UsageError(f"{options}: found a workload file, expected {expected}")
        verb = "has" if len(others) == 1 else "have"
        *first, last = (flag.option for flag in FLAGS if of in flag.of)
        raise UsageError(
            f"{options} {verb} no meaning for a trace; its replay takes {', '.join(first)} and {last}"
        )

    def with_value(self: P, field: str, value: Any) -> P:
        """These with one field changed."""
        return replace(self, **{field: value})

    def as_dict(self, of: Input = "workload") -> dict[str, Any]:
        """The parameters that such an input has by field name, lists for tuples: what JSON prints.

        Of a trace those of workloads are there too, at their defaults: one form for every run.
        """
        there = [flag.field for flag in FLAGS if "workload" in flag.of or applies_to(flag, of)]
        if of == "workload":
            # Of files that AICB wrote alone: said where they are given.
            explicit = self.explicit_names
            there = [name for name in there if "file" not in flag_of(name).of or name in explicit]
        values = {name: getattr(self, name) for name in there}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def command_words(self, path: str, label: str | None) -> list[str]:
        """The words behind `wltui` that open a run. label: its own in a directory, None of the only one."""
        run = [] if label is None else ["--run", label]
        return [path, *run, *self.as_flags()]

    def as_flags(self) -> list[str]:
        """The command-line words that give these parameters; defaults are left out."""
        flags: list[str] = []
        for flag in self.explicit_flags():
            value = getattr(self, flag.field)
            if flag.kind == "switch":
                flags.append(flag.option)
            elif flag.kind == "words":
                for word in value:
                    # A name may begin with what argparse takes for a flag.
                    flags += [f"{flag.option}={word}"] if word.startswith("-") else [flag.option, word]
            else:
                flags += [flag.option, repr(value) if isinstance(value, float) else str(value)]
        return flags


class Flag(Struct, frozen=True):
    """One parameter as users meet it: its flag, group, unit, and one line of help.

    choices: what one of kind `word` may be, but for those of a registry (`simcore.parameter_values.choices`
    has all).
    in_file: where nobody gives it, the file states it. of: which inputs it changes. named: whether its
    words begin with names of the file, which may have blanks.
    """

    field: str
    group: str
    kind: Kind
    unit: str
    metavar: str
    help: str
    choices: tuple[str, ...] = ()
    in_file: bool = False
    of: tuple[Input, ...] = ("workload",)
    begins_with_name: bool = False

    @property
    def option(self) -> str:
        return "--" + self.field.replace("_", "-")

    @property
    def default(self) -> Any:
        return _DEFAULTS[self.field]


_DEFAULTS = asdict(Parameters())

FLAGS: tuple[Flag, ...] = (
    Flag("world", "layout", "count", "ranks", "N", "number of ranks, in place of the file's", in_file=True),
    Flag(
        "tp", "layout", "count", "ranks", "N", "tensor-parallel degree, in place of the file's", in_file=True
    ),
    Flag(
        "ep", "layout", "count", "ranks", "N", "expert-parallel degree, in place of the file's", in_file=True
    ),
    Flag("pp", "layout", "count", "stages", "N", "pipeline stages, in place of the file's", in_file=True),
    Flag("rank_order", "layout", "word", "", "ORDER", "how ranks are numbered, fastest first", RANK_ORDERS),
    Flag(
        "rescale",
        "layout",
        "word",
        "",
        "WORD",
        "rows of an AICB file made anew for other degrees (default off)",
        _OFF_ON,
        of=_FILE,
    ),
    Flag(
        "without_lines",
        "layout",
        "words",
        "",
        "LINES",
        "the file without these lines, LINE or FROM-TO (repeatable): tries how a file could be mended",
        of=_FILE,
    ),
    Flag(
        "schedule", "schedule", "word", "", "NAME|FILE", "a name or a file (default 1f1b; at pp 1 layer-loop)"
    ),
    Flag(
        "microbatches",
        "schedule",
        "count",
        "",
        "N",
        "micro-batches of a step; those of the file repeat in turn",
        in_file=True,
    ),
    Flag(
        "virtual_stages",
        "schedule",
        "count",
        "chunks",
        "V",
        "chunks of a stage, for interleaved and its like",
    ),
    Flag("passes", "schedule", "count", "", "N", "how often layer-loop runs the file"),
    Flag("layers", "schedule", "count", "layers", "N", "how often an op table's one layer runs (default 1)"),
    Flag(
        "steps",
        "schedule",
        "count",
        "",
        "N",
        "steps that a pipeline runs, none of which waits for the one before",
    ),
    Flag(
        "stage_layout",
        "schedule",
        "word",
        "",
        "NAME",
        "rows of a stage: all of them, or embedding first, loss last as in Megatron (default uniform)",
        STAGE_LAYOUTS,
    ),
    Flag(
        "overlap_fwd_bwd",
        "schedule",
        "switch",
        "",
        "",
        "a forward computes while a backward communicates, and the reverse, row by row",
    ),
    Flag("overlap_grad_reduce", "schedule", "switch", "", "", "reduce gradients beside the last backward"),
    Flag("overlap_param_gather", "schedule", "switch", "", "", "gather parameters beside the first forward"),
    Flag(
        "dialect",
        "schedule",
        "word",
        "",
        "NAME",
        "whose rules a file follows (default: told by its content)",
        DIALECTS,
        in_file=True,
        of=_WORKLOAD_OR_EXECUTION,
    ),
    Flag(
        "cluster",
        "cluster",
        "text",
        "",
        "PRESET|FILE",
        f"a cluster by name (default {PRESET_NAMES[0]}; {', '.join(PRESET_NAMES[1:])}), wltui's TOML, "
        "or ASTRA-sim's network file (2.0 .yml, 1.0 .json)",
        of=_WORKLOAD_OR_EXECUTION,
    ),
    Flag(
        "system",
        "cluster",
        "text",
        "",
        "FILE",
        "an ASTRA-sim system file: algorithms, chunks, delays",
        of=_WORKLOAD_OR_EXECUTION,
    ),
    Flag(
        "dim",
        "cluster",
        "words",
        "",
        "KIND:SIZE:GBPS:NS",
        "a network dimension, inner first (repeatable): ring, fully-connected or switch; "
        "its size; GB/s of one message (400GiB: GiB/s, which ASTRA-sim uses); latency of a hop in ns",
        of=_WORKLOAD_OR_EXECUTION,
    ),
    Flag(
        "algorithm",
        "cluster",
        "words",
        "",
        "DIM=NAME",
        f"collective algorithm on a dimension (repeatable): {', '.join(ALGORITHMS)}, direct<W> (at most W "
        f"messages in flight); or {', '.join(FLAT_ALGORITHMS)} over all dimensions as one group; "
        "all-reduce:DIM=NAME of that collective alone",
        of=_WORKLOAD_OR_EXECUTION,
    ),
    Flag(
        "splits",
        "cluster",
        "count",
        "",
        "N",
        "chunks that a collective is cut into (default 1)",
        of=_WORKLOAD_OR_EXECUTION,
    ),
    Flag(
        "active_chunks",
        "cluster",
        "count",
        "",
        "N",
        "chunks that a dimension runs at a time (default 1)",
        of=_WORKLOAD_OR_EXECUTION,
    ),
    Flag(
        "endpoint_delay",
        "cluster",
        "count",
        "ns",
        "NS",
        "delay of a rank before and after a message (default 10)",
        of=_WORKLOAD_OR_EXECUTION,
    ),
    Flag(
        "local_mem_bw",
        "cluster",
        "positive",
        "GB/s",
        "GBPS",
        "memory bandwidth, for reductions (default 3350, or the preset's)",
        of=_WORKLOAD_OR_EXECUTION,
    ),
    Flag(
        "collective_optimization",
        "cluster",
        "word",
        "",
        "NAME",
        "an all-reduce over several dimensions: by reduce-scatter and all-gather, or whole on each",
        OPTIMIZATIONS,
        of=_WORKLOAD_OR_EXECUTION,
    ),
    Flag("network", "network", "word", "", "MODEL", "network model", of=_WORKLOAD_OR_EXECUTION),
    Flag("nvlink", "network", "positive", "GiB/s", "GIBPS", "NVLink, for simai-auto (default: by type)"),
    Flag("nic", "network", "positive", "GiB/s", "GIBPS", "one NIC, for simai-auto (default: by type)"),
    Flag("nics_per_server", "network", "count", "", "K", "NICs of a server, for simai-auto"),
    Flag("gpus_per_server", "network", "count", "", "G", "GPUs of a server, for simai-auto and busbw"),
    Flag("gpu_type", "network", "word", "", "TYPE", "whose NVLink, for simai-auto", tuple(GPU_TYPES)),
    Flag("nic_type", "network", "word", "", "TYPE", "whose bandwidth, for simai-auto", tuple(NIC_TYPES)),
    Flag(
        "overlap",
        "network",
        "words",
        "",
        "KIND=RATIO,...",
        "share of dp, tp, ep, pp that SimAI's estimate counts as hidden (default 0, pp 1), for simai-auto "
        "and busbw: dp=0.5,tp=0.3",
    ),
    Flag("compute_scale", "scale", "scale", "x", "X", "compute durations times X", of=_ALL),
    Flag("comm_scale", "scale", "scale", "x", "X", "communication durations times X", of=_ALL),
    Flag(
        "layer_scale",
        "scale",
        "words",
        "",
        "NAME:PHASE=X",
        "compute of the rows of that name (without digits: all such rows, *: all others) times X; of a "
        "trace OP=X, the operations of that name (repeatable)",
        of=_WORKLOAD_OR_TRACE,
        begins_with_name=True,
    ),
    Flag(
        "time_scale",
        "scale",
        "words",
        "",
        "WHAT=X",
        "durations of WHAT times X (repeatable): `compute fwd`, `layer NAME` or `stream tp`; of execution "
        "traces `all compute`, `nodes NAME` or `stream NAME`; `t` on a row of the what-if table runs it",
        of=_WORKLOAD_OR_EXECUTION,
        begins_with_name=True,
    ),
    Flag("slow_rank", "faults", "words", "", "R=X", "compute of rank R times X (repeatable)", of=_ALL),
    Flag(
        "slow_link",
        "faults",
        "words",
        "",
        "DIM:R=X",
        "bandwidth of rank R's port on dimension DIM times X (repeatable)",
    ),
    Flag(
        "jitter",
        "faults",
        "scale",
        "sigma",
        "SIGMA",
        "every duration times 1 + SIGMA x a random number (normal, mean 0)",
    ),
    Flag(
        "seed", "faults", "count", "", "N", "seed of the jitter, and of the loads of experts that are drawn"
    ),
    Flag(
        "no_fold",
        "engine",
        "switch",
        "",
        "",
        "simulate every rank instead of one of each class",
        of=_WORKLOAD_OR_EXECUTION,
    ),
    Flag(
        "replay",
        "replay of a trace",
        "switch",
        "",
        "",
        "run the measured operations again, and compare (any scale of a trace does so, too)",
        of=_TRACE,
    ),
    Flag(
        "gap_scale",
        "replay of a trace",
        "scale",
        "x",
        "X",
        "host gaps (idle time between two operations) times X",
        of=_TRACE,
    ),
    Flag(
        "slow_host",
        "replay of a trace",
        "words",
        "",
        "R=X",
        "host gaps of rank R, and its idle time before its first operation, times X (repeatable)",
        of=_TRACE,
    ),
    Flag(
        "host_scale",
        "replay of a trace",
        "scale",
        "x",
        "X",
        "operations that neither compute nor communicate times X",
        of=_TRACE,
    ),
    Flag(
        "kind_scale",
        "replay of a trace",
        "words",
        "",
        "KIND=X",
        f"communication of groups of that kind times X (repeatable): {', '.join(GROUP_KINDS)}; copy: copies "
        "of memory of a device",
        of=_TRACE,
        begins_with_name=True,
    ),
    Flag(
        "stage_scale",
        "replay of a trace",
        "words",
        "",
        "STAGE=X",
        "compute of the ranks of that stage times X (repeatable); none=X: of ranks without a stage",
        of=_TRACE,
    ),
    Flag(
        "cp",
        "model",
        "count",
        "ranks",
        "N",
        "context parallelism: ranks that share a sequence (default 1)",
        of=_MODEL,
    ),
    Flag(
        "cp_comm_type",
        "model",
        "word",
        "",
        "TYPE",
        "how keys and values are exchanged: in a ring beside attention, or gathered before it (default p2p)",
        ("p2p", "all-gather"),
        of=_MODEL,
    ),
    Flag(
        "microbatch_size",
        "model",
        "count",
        "sequences",
        "N",
        "sequences of a micro-batch (default 1)",
        of=_MODEL,
    ),
    Flag(
        "global_batch",
        "model",
        "count",
        "sequences",
        "N",
        "sequences of a step (default: one micro-batch on each replica)",
        of=_MODEL,
    ),
    Flag("seq", "model", "count", "tokens", "N", "tokens of a sequence (default: the model's)", of=_MODEL),
    Flag(
        "sequence_parallel",
        "model",
        "word",
        "",
        "WORD",
        "divide activations between linears among tp ranks (default off)",
        _ON_OFF,
        of=_MODEL,
    ),
    Flag(
        "overlap_tp",
        "model",
        "switch",
        "",
        "",
        "with sequence parallelism, tp gathers and reduce-scatters run in pieces beside their matrix "
        "products",
        of=_MODEL,
    ),
    Flag("flash", "model", "word", "", "WORD", "flash attention (default on)", _ON_OFF, of=_MODEL),
    Flag(
        "recompute",
        "model",
        "word",
        "",
        "WORD",
        "what backward runs forward again (default none)",
        ("none", "selective", "full"),
        of=_MODEL,
    ),
    Flag(
        "recompute_rows",
        "model",
        "text",
        "",
        "KIND,...",
        "rows that backward runs forward again: attention (its core), mlp_act (activations of feed-forward "
        "parts and experts), norm",
        of=_MODEL,
    ),
    Flag(
        "offload",
        "model",
        "positive",
        "GB/s",
        "GBPS",
        "activations wait for their backward in the host's memory; the link there has so many GB/s, and "
        "copies out and back take turns on it",
        of=_MODEL,
    ),
    Flag(
        "zero",
        "model",
        "word",
        "",
        "N",
        "what replicas share out: 0 nothing, 1 optimizer states (Megatron's distributed optimizer), 2 also "
        "gradients, 3 also weights (default 0)",
        ("0", "1", "2", "3"),
        of=_MODEL,
    ),
    Flag(
        "prefetch",
        "model",
        "word",
        "",
        "N",
        "with ZeRO 3, how many units ahead weights are gathered (default 1)",
        ("0", "1", "2"),
        of=_MODEL,
    ),
    Flag(
        "reshard_after_forward",
        "model",
        "word",
        "",
        "WORD",
        "with ZeRO 3, free a unit's weights after its forward and gather them again for its backward "
        "(default on)",
        _ON_OFF,
        of=_MODEL,
    ),
    Flag(
        "shard_size",
        "model",
        "count",
        "ranks",
        "N",
        "with ZeRO 2 and 3, how many ranks share one copy (default: all of dp x cp)",
        of=_MODEL,
    ),
    Flag(
        "bucket_size",
        "model",
        "count",
        "",
        "N",
        "with --overlap-grad-reduce or --overlap-param-gather, the least number of parameters sent at once "
        "(default: those of a row)",
        of=_MODEL,
    ),
    Flag(
        "expert_imbalance",
        "model",
        "text",
        "",
        "lognormal:SIGMA|FILE",
        "how unevenly tokens go to experts: drawn at random (--seed), or a file with a number for each "
        "expert or each rank of an expert group (default: all get the same)",
        of=_MODEL,
    ),
    Flag(
        "expert_capacity",
        "model",
        "positive",
        "x",
        "X",
        "tokens of an expert above X times the mean are dropped (default: none are)",
        of=_MODEL,
    ),
    Flag(
        "expert_placement",
        "model",
        "word",
        "",
        "WORD",
        "where experts lie: in their order, or so that ranks get even loads (default given)",
        ("given", "balanced"),
        of=_MODEL,
    ),
    Flag(
        "grad_dtype",
        "model",
        "word",
        "",
        "TYPE",
        "type in which gradients are added up and sent (default fp32)",
        ("fp32", "bf16"),
        of=_MODEL,
    ),
    Flag(
        "precision",
        "model",
        "word",
        "",
        "TYPE",
        "type in which linears compute (default bf16)",
        PRECISIONS,
        of=_MODEL,
    ),
    Flag(
        "engine_preset",
        "model",
        "word",
        "",
        "NAME",
        "which trainer's kernels and launches are priced (default megatron; fsdp with ZeRO 2 and 3)",
        ENGINE_NAMES,
        of=_MODEL,
    ),
    Flag(
        "compile",
        "model",
        "word",
        "",
        "WORD",
        "torch.compile, of torchtitan and fsdp (default off)",
        _ON_OFF,
        of=_MODEL,
    ),
    Flag(
        "pp_scatter",
        "model",
        "word",
        "",
        "WORD",
        "without sequence parallelism, each tp rank sends only its share to the next stage (default off)",
        _ON_OFF,
        of=_MODEL,
    ),
    Flag(
        "stage_layers",
        "model",
        "text",
        "",
        "N,N*K,...",
        "layers of each stage, like 7,8*14,6 (default: even)",
        of=_MODEL,
    ),
    Flag(
        "gpu",
        "model",
        "text",
        "",
        "NAME|FILE",
        f"the GPU, with its cluster (default h100; {', '.join(GPU_NAMES)}), or a TOML file; "
        "of an AICB file only its peak and memory",
        of=_MODEL_OR_FILE,
    ),
    Flag(
        "memory_limit",
        "model",
        "text",
        "",
        "SIZE",
        "memory of a GPU, like 80GB (default: that of --gpu)",
        of=_MODEL_OR_FILE,
    ),
    Flag(
        "as_aicb",
        "model",
        "word",
        "",
        "MODE",
        "make the rows that AICB would write, without or with compute times",
        ("plain", "aiob"),
        of=_MODEL,
    ),
    Flag(
        "aicb_args",
        "model",
        "text",
        "",
        "ARGUMENTS",
        "AICB's own arguments in place of a model and a layout",
        of=_MODEL,
    ),
    Flag(
        "comm_groups",
        "execution traces",
        "text",
        "",
        "FILE",
        "the ranks of each communicator group, as ASTRA-sim has them",
        of=_EXECUTION,
    ),
    Flag(
        "remote_memory",
        "execution traces",
        "text",
        "",
        "FILE",
        "what remote memory costs, as ASTRA-sim has it",
        of=_EXECUTION,
    ),
    Flag(
        "injection_scale",
        "execution traces",
        "scale",
        "x",
        "X",
        "endpoint delays times X, with --dialect astra-sim-2",
        of=_EXECUTION,
    ),
    Flag(
        "rendezvous_protocol",
        "execution traces",
        "word",
        "",
        "BOOL",
        "a message waits for its receiver, with --dialect astra-sim-2",
        ("true", "false"),
        of=_EXECUTION,
    ),
    Flag(
        "num_queues_per_dim",
        "execution traces",
        "count",
        "",
        "N",
        "queues of a dimension, with --dialect astra-sim-2",
        of=_EXECUTION,
    ),
)
_FLAG_DEFAULTS = tuple((flag, flag.field, flag.default) for flag in FLAGS)
_BY_FIELD = {flag.field: flag for flag in FLAGS}
_LEAST = {"endpoint_delay": 0, "seed": 0}
_MOST = {"splits": MOST_CHUNKS, "active_chunks": MOST_CHUNKS}
_MOST_COUNT = 2**40
# Why a flag cannot be 0, where its name does not say it.
_WHY_NOT_ZERO = {"offload": "nothing leaves without a link, whose GB/s are to be given"}


def flag_of(field: str) -> Flag:
    """The flag of a field of `Parameters`."""
    return _BY_FIELD[field]


def least_count(flag: Flag) -> int:
    """The least that a flag of kind `count` may be."""
    return _LEAST.get(flag.field, 1)


def parse_value(flag: Flag, text: str) -> Any:
    """`text` as a value of `flag`. Raises `UsageError` that says what was given and what fits."""
    quoted = printable(text, 60)
    if flag.kind == "count":
        least, most = least_count(flag), _MOST.get(flag.field, _MOST_COUNT)
        if not text.isascii() or not text.isdigit() or len(text) > 13 or not least <= int(text) <= most:
            limit = "2^40" if most == _MOST_COUNT else str(most)
            raise UsageError(f"{flag.option} {quoted}: a whole number from {least} to {limit} is expected")
        return int(text)
    if flag.kind in ("positive", "scale"):
        least_word = "above 0" if flag.kind == "positive" else "of 0 or more"
        value = plain_number(text)
        if value is None or value > 1e12 or (flag.kind == "positive" and value == 0):
            why = f"{_WHY_NOT_ZERO[flag.field]}: " if flag.field in _WHY_NOT_ZERO else ""
            raise UsageError(f"{flag.option} {quoted}: {why}a number {least_word} (up to 1e12) is expected")
        return value
    if flag.kind == "words":
        return (text,) if flag.begins_with_name else tuple(text.split())
    return text


def applies_to(flag: Flag, of: Input) -> bool:
    """Whether such an input has the parameter: a model has those of workloads, too."""
    if of == "workload" and "file" in flag.of:
        return True
    return of in flag.of or (of == "model" and "workload" in flag.of)


class RunInput(Struct, frozen=True, dict=True, eq=False):
    """What is run, and the parameters under which; a kind of run resolves what they say of it, each once.

    Equal are those of one input under equal parameters.
    """

    opened: Any
    parameters: Parameters

    # Which parameters such an input has; what it is to make a run of it.
    of: ClassVar[Input]
    activity: ClassVar[str] = "simulating"

    @property
    def path(self) -> str:
        """What was opened, as the user gave it."""
        path: str = self.opened.path
        return path

    @property
    def source(self) -> Any:
        """What was read: what another run begins with."""
        return self.opened

    @property
    def stamp(self) -> str | None:
        """Which run of its directory it is, by the names of the files; None where they do not say."""
        return None

    @property
    def label(self) -> str | None:
        """What `--run` names it by among the runs of its directory."""
        return None

    @property
    def others(self) -> tuple[str, ...]:
        """The labels of the other runs of its directory."""
        return ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RunInput) or self.opened is not other.opened:
            return False
        return self.parameters == other.parameters

    def __hash__(self) -> int:
        return hash(self.parameters)

    def with_changes(self: G, **values: Any) -> G:
        """The same with other values of these parameters."""
        return self.with_parameters(replace(self.parameters, **values))

    def with_parameters(self: G, parameters: Parameters) -> G:
        """The same under other parameters."""
        return replace(self, parameters=parameters)


class SetupValue:
    """What comes of a setup."""

    __slots__ = ()

    @property
    def setup(self) -> Any:
        """What it was made of: a `Given` of its kind."""
        raise NotImplementedError

    @property
    def parameters(self) -> Parameters:
        """Those that ask for this run."""
        run_input: RunInput = self.setup
        return run_input.parameters


class OpeningOptions(Struct, frozen=True):
    """Which part of what was recorded is opened.

    run: one of a directory's runs, by its stamp; None for the newest complete one. The rest is of profiler
    traces alone. step: its number or `all`; None for the last that every rank has whole. ranks: those to
    open, `0-7,12`; None for all. comm_names: a regular expression of further kernels that communicate;
    step_names: of annotations that are steps. cache: whether what was read may be kept. host: whether what
    the host did beside a device is read, too: the timeline shows it, no figure needs it.
    """

    run: str | None = None
    step: str | None = None
    ranks: str | None = None
    comm_names: str | None = None
    step_names: str | None = None
    cache: bool = True
    host: bool = True

    @property
    def profiler_option(self) -> str:
        """The first option given that profiler traces alone have; "" for none."""
        options = {"--step": self.step, "--ranks": self.ranks, "--comm-names": self.comm_names,
                 "--step-names": self.step_names}  # fmt: skip
        return next((option for option, value in options.items() if value is not None), "")
