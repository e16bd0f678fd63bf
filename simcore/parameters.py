"""All parameters of a run: one table that the command line, the form and the JSON share; and the options for
opening measured runs.
"""

from __future__ import annotations

from itertools import compress, repeat
from operator import ne
from typing import Any, ClassVar, Literal, TypeVar

from simcore.diagnostics import UsageError, printable
from simcore.names import (
    ALGORITHMS,
    CONGESTION_NAMES,
    DIALECTS,
    ECMP_NAMES,
    ENGINE_NAMES,
    FLAT_ALGORITHMS,
    FLOW_MODELS,
    GPU_NAMES,
    GPU_TYPES,
    GROUP_KINDS,
    NIC_TYPES,
    OPTIMIZATIONS,
    PRECISIONS,
    PRESET_NAMES,
    RANK_ORDERS,
    STAGE_LAYOUTS,
    TOPOLOGY_NAMES,
)
from simcore.records import Struct, asdict, replace
from simcore.units import is_whole, plain_number

T = TypeVar("T", bound=Struct)
P = TypeVar("P", bound="Parameters")
G = TypeVar("G", bound="RunInput")
Kind = Literal["count", "positive", "scale", "word", "words", "text", "switch"]
# Kinds of inputs: workloads and models are simulated, traces displayed as measured or replayed, execution
# traces run. A `file` is a workload that states its rows; those of a model are made.
# Dumps of a flight recorder and memory snapshots take no parameters.
Input = Literal["workload", "model", "trace", "execution", "file", "dumps", "snapshot"]
_WORKLOAD_OR_TRACE: tuple[Input, ...] = ("workload", "trace")
_TRACE: tuple[Input, ...] = ("trace",)
_MODEL: tuple[Input, ...] = ("model",)
_FILE: tuple[Input, ...] = ("file",)
_MODEL_OR_FILE: tuple[Input, ...] = ("model", "file")
# What a model's step is, simulated or measured.
_MODEL_OR_TRACE: tuple[Input, ...] = ("model", "trace")
_WORKLOAD_OR_EXECUTION: tuple[Input, ...] = ("workload", "execution")
_ALL: tuple[Input, ...] = ("workload", "trace", "execution")
_EXECUTION: tuple[Input, ...] = ("execution",)
_NOUNS: dict[Input, str] = {
    "execution": "execution traces", "dumps": "flight recorder dumps", "snapshot": "memory snapshots"
}  # fmt: skip
_ON_OFF = ("on", "off")
_OFF_ON = ("off", "on")

DEFAULT_NETWORK = "analytical"
# Parameters that only flows have.
FLOW_FIELDS = ("flow_model", "send_latency", "ecmp", "nvls", "pxn", "congestion")
# Those, and what changes the topology that flows need, or who uses it.
TOPOLOGY_FIELDS = (*FLOW_FIELDS, "link_rate", "other_job", "job_gpus", "other_job_gpus")
# Parameters that say what a measured step computes: they change no time of it.
USE_FIELDS = ("model", "gpu", "global_batch", "microbatch_size", "seq")
# A collective is simulated chunk by chunk; NCCL and ASTRA-sim users take 4 to 64.
MOST_CHUNKS = 1024


class Parameters(Struct, frozen=True):
    """What a user may set; None means "as the file says" or "the default"."""

    world: int | None = None
    """Ranks, in place of the file's."""
    tp: int | None = None
    """The tensor-parallel degree, in place of the file's."""
    ep: int | None = None
    """The expert-parallel degree, in place of the file's."""
    pp: int | None = None
    """Pipeline stages, in place of the file's."""
    rank_order: str = "tp-ep-dp-pp"
    """How ranks are numbered, fastest degree first."""
    rescale: str = "off"
    """`on` makes rows for other degrees, of AICB's files."""
    without_lines: tuple[str, ...] = ()
    """Lines of a file to leave out, each `LINE` or `FROM-TO`."""
    schedule: str | None = None
    """The name or the file of a schedule."""
    microbatches: int | None = None
    """Micro-batches of a step."""
    virtual_stages: int | None = None
    """Chunks of each stage (interleaved)."""
    passes: int = 1
    """How often layer-loop runs the file."""
    layers: int | None = None
    """How often an op table's one layer runs."""
    steps: int = 1
    """How many steps a pipeline runs."""
    stage_layout: str | None = None
    """Which rows each stage runs, one of `STAGE_LAYOUTS`."""
    overlap_fwd_bwd: bool = False
    """Whether forwards overlap with backwards."""
    overlap_grad_reduce: bool = False
    """Whether gradients are reduced during the last backward."""
    overlap_param_gather: bool = False
    """Whether parameters are gathered during the first forward."""
    dialect: str | None = None
    """Whose rules a file follows, one of `DIALECTS`."""
    cluster: str | None = None
    """A preset, a generated topology or the path of a file."""
    system: str | None = None
    """The path of an ASTRA-sim system file or of SimAI's configuration."""
    dim: tuple[str, ...] = ()
    """Dimensions `KIND:SIZE:GBPS:NS`, inner first."""
    algorithm: tuple[str, ...] = ()
    """Algorithms `DIM=NAME` or `all-reduce:DIM=NAME`."""
    splits: int | None = None
    """Chunks of a collective."""
    active_chunks: int | None = None
    """Chunks that a dimension runs at a time."""
    endpoint_delay: int | None = None
    """The delay of a rank before and after a message, ns."""
    local_mem_bw: float | None = None
    """The memory bandwidth for reductions, GB/s."""
    collective_optimization: str | None = None
    """One of `OPTIMIZATIONS`."""
    link_rate: tuple[str, ...] = ()
    """Factors `A-B=X` on the rate of the link between two nodes of a topology, 0 of one that fails."""
    network: str | None = None
    """The name of the network model; None for flows on a topology, else `DEFAULT_NETWORK`."""
    nvlink: float | None = None
    """The bandwidth of NVLink, GiB/s; None for that of gpu_type."""
    nic: float | None = None
    """The bandwidth of one NIC, GiB/s; None for that of nic_type."""
    nics_per_server: int = 8
    """NICs of a server."""
    gpus_per_server: int = 8
    """GPUs of a server."""
    gpu_type: str = "H100"
    """The GPU whose NVLink is taken."""
    nic_type: str = "cx7"
    """The NIC whose bandwidth is taken."""
    overlap: tuple[str, ...] = ()
    """Hidden shares `KIND=RATIO,...` of SimAI's estimate."""
    flow_model: str = "ns3"
    """What of packets counts for flows, one of `FLOW_MODELS`."""
    send_latency: int | None = None
    """The time before each flow, ns; None for that of the model."""
    ecmp: str | None = None
    """How one of several equal paths is chosen, one of `ECMP_NAMES`; None for that of the model."""
    nvls: str = "off"
    """`on` has the switch of a server make all-reduces."""
    pxn: str = "off"
    """`on` takes flows to another rail over NVLink first."""
    congestion: str = "none"
    """What slows flows down where queues are long, one of `CONGESTION_NAMES`."""
    other_job: str | None = None
    """The file of another job on the same topology."""
    job_gpus: str | None = None
    """The GPUs of the ranks, None for the first ones."""
    other_job_gpus: str | None = None
    """The GPUs of the other job, None for those behind the ranks."""
    compute_scale: float = 1.0
    """A factor on compute durations."""
    comm_scale: float = 1.0
    """A factor on communication durations."""
    layer_scale: tuple[str, ...] = ()
    """Factors `NAME:PHASE=X` on the compute of rows; `OP=X` on operations of a trace."""
    time_scale: tuple[str, ...] = ()
    """Factors `WHAT=X` on the durations of a phase, layer or stream."""
    slow_rank: tuple[str, ...] = ()
    """Factors `R=X` on the compute of ranks."""
    slow_link: tuple[str, ...] = ()
    """Factors `DIM:R=X` on the bandwidth of ports."""
    jitter: float = 0.0
    """The standard deviation of every duration, as a share of it."""
    seed: int = 0
    """The seed of the jitter, of random loads of experts, of random documents and of marks under DCQCN."""
    no_fold: bool = False
    """Whether every rank is simulated, not one of each class."""
    replay: bool = False
    """Whether a trace's operations are run again even if none of them is changed."""
    gap_scale: float = 1.0
    """A factor on a trace's host time between operations."""
    slow_host: tuple[str, ...] = ()
    """Factors `R=X` on that host time of ranks."""
    host_scale: float = 1.0
    """A factor on a trace's operations that neither compute nor communicate."""
    kind_scale: tuple[str, ...] = ()
    """Factors `KIND=X` on a trace's communication."""
    stage_scale: tuple[str, ...] = ()
    """Factors `STAGE=X` on a trace's compute."""
    cp: int | None = None
    """Ranks that share a sequence of a model."""
    cp_comm_type: str | None = None
    """What those ranks exchange."""
    cp_inner: int | None = None
    """Those of them that scatter heads, of `a2a+p2p`."""
    microbatch_size: int | None = None
    """Sequences of a micro-batch."""
    global_batch: int | None = None
    """Sequences of a step."""
    seq: int | None = None
    """Tokens of a sequence."""
    prefill: int | None = None
    """Tokens of each prompt of an inference step, which has no backward."""
    decode: int | None = None
    """Sequences of a replica that get their next token in an inference step."""
    context: int | None = None
    """Tokens of each such sequence in the cache."""
    kv_dtype: str | None = None
    """The type of the cache of keys and values."""
    seq_imbalance: str | None = None
    """How documents are packed into sequences."""
    sequence_parallel: str | None = None
    """`on` divides activations between linears among tp ranks."""
    overlap_tp: bool = False
    """Whether tp collectives overlap with their matrix products."""
    flash: str | None = None
    """`on` or `off`: flash attention."""
    recompute: str | None = None
    """What backward runs forward again."""
    recompute_layers: str | None = None
    """Which layers of a virtual stage backward runs forward again, `N` or `N/M`."""
    recompute_rows: str | None = None
    """Kinds of rows that backward runs forward again."""
    offload: float | None = None
    """The bandwidth of the link on which activations go to the host's memory, GB/s."""
    offload_layers: int | None = None
    """How many layers of a virtual stage are offloaded."""
    zero: str | None = None
    """What replicas share out, ZeRO 0 to 3."""
    prefetch: str | None = None
    """Units whose weights are gathered ahead."""
    reshard_after_forward: str | None = None
    """`on` frees a unit's weights after its forward."""
    shard_size: int | None = None
    """Ranks that share out weights; the others hold copies."""
    bucket_size: int | None = None
    """The least number of parameters that are sent at once."""
    etp: int | None = None
    """The expert tensor-parallel degree."""
    expert_imbalance: str | None = None
    """How unevenly tokens go to experts."""
    expert_capacity: float | None = None
    """The most tokens of an expert, as a factor on the mean load."""
    expert_placement: str | None = None
    """On which ranks the experts are."""
    pad_to_capacity: bool = False
    """Whether every expert runs as many tokens as its capacity."""
    dispatch: str | None = None
    """By which hops tokens go to experts."""
    node_limit: int | None = None
    """The most nodes that a token goes to."""
    dispatch_precision: str | None = None
    """The type in which tokens are sent to experts."""
    grad_dtype: str | None = None
    """The type of gradients."""
    precision: str | None = None
    """The type in which linears compute."""
    engine_preset: str | None = None
    """The trainer whose kernels and launches are priced."""
    compile: str | None = None
    """`on` or `off`: torch.compile."""
    pp_scatter: str | None = None
    """`on` has each tp rank send only its share to the next stage."""
    stage_layers: str | None = None
    """Layers of each stage, `N,N*K,...`, or of its chunks, `N+N,...`."""
    account_for_embedding: bool = False
    """Whether the embedding takes the place of a layer."""
    account_for_loss: bool = False
    """Whether the output layer and the loss take the place of a layer."""
    pipeline_layout: str | None = None
    """Where layers are, as Megatron-LM writes it."""
    model: str | None = None
    """The model that a measured step trains: a name or the path of a file."""
    gpu: str | None = None
    """A name or the path of a file."""
    memory_limit: str | None = None
    """The memory of a GPU, bytes with a unit."""
    as_aicb: str | None = None
    """Which of AICB's generators makes the rows."""
    aicb_args: str | None = None
    """AICB's own arguments."""
    comm_groups: str | None = None
    """The path of a file of execution traces' groups."""
    remote_memory: str | None = None
    """The path of a file of execution traces' remote memory."""
    injection_scale: float = 1.0
    """ASTRA-sim's flag of this name: a factor on endpoint delays."""
    rendezvous_protocol: str = "false"
    """ASTRA-sim's flag of this name: whether a message waits for its receiver."""
    num_queues_per_dim: int = 1
    """ASTRA-sim's flag of this name."""

    def part(self, of: type[T]) -> T:
        """Returns the parameters of a room as its own record: the fields of `of` are names of fields
        of this.
        """
        return of(**{name: getattr(self, name) for name in of.__struct_fields__})

    @property
    def routes(self) -> tuple[tuple[int, ...], ...]:
        """The routes of a schedule file, which no flag states: `with_chunks_of_schedule` fills them in."""
        return ()

    @property
    def explicit_names(self) -> frozenset[str]:
        """The names of the parameters that are not at their default."""
        return frozenset(flag.field for flag in self.explicit_flags())

    def explicit_flags(self) -> list[Flag]:
        """Returns the flags of the parameters that are not at their default."""
        # A search asks for them twice a point, of a hundred thousand points.
        return [*compress(FLAGS, map(ne, map(getattr, repeat(self), _FLAG_FIELDS), _FLAG_DEFAULTS))]

    def explicit_values(self) -> dict[str, Any]:
        """Returns {field: value} of the parameters that are not at their default, lists for tuples."""
        values = {flag.field: getattr(self, flag.field) for flag in self.explicit_flags()}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def refuse_others(self, of: Input) -> None:
        """Raises `UsageError` naming the parameters that have no meaning for such an input."""
        others = [flag.option for flag in self.explicit_flags() if not applies_to(flag, of)]
        if not others:
            return
        options = ", ".join(others)
        if of in _NOUNS:
            verb = "has" if len(others) == 1 else "have"
            what = _NOUNS[of]
            raise UsageError(f"{options} {verb} no meaning for {what}")
        not_of_files = [flag for flag in self.explicit_flags() if not applies_to(flag, "workload")]
        if of == "workload" and all("model" in flag.of for flag in not_of_files):
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
        *first, last = (flag.option for flag in FLAGS if of in flag.of and flag.field not in USE_FIELDS)
        raise UsageError(
            f"{options} {verb} no meaning for a trace; its replay takes {', '.join(first)} and {last}"
        )

    def with_value(self: P, field: str, value: Any) -> P:
        """Returns the parameters with one field changed."""
        return replace(self, **{field: value})

    def as_dict(self, of: Input = "workload") -> dict[str, Any]:
        """Returns {field: value} of the parameters that such an input has, lists for tuples, as JSON prints
        them.

        For a trace those of workloads are included, at their defaults: JSON has one form for every run.
        """
        there = [flag.field for flag in FLAGS if "workload" in flag.of or applies_to(flag, of)]
        if of == "workload":
            # Parameters of files that AICB wrote are printed only where they are given.
            explicit = self.explicit_names
            there = [name for name in there if "file" not in flag_of(name).of or name in explicit]
        if of == "trace":
            # Most traces are not asked how well they use their GPUs.
            there = [name for name in there if name not in USE_FIELDS or name in self.explicit_names]
        if self.network != "flows":
            # As of AICB's files: reports of the other networks are as they were without these.
            explicit = self.explicit_names
            there = [name for name in there if name not in TOPOLOGY_FIELDS or name in explicit]
        values = {name: getattr(self, name) for name in there}
        if "network" in values:
            values["network"] = self.network or DEFAULT_NETWORK
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def command_words(self, path: str, label: str | None) -> list[str]:
        """Returns the words behind `wltui` that open a run.

        label: the run's label in its directory; None where it is the only run.
        """
        run = [] if label is None else ["--run", label]
        return [path, *run, *self.as_flags()]

    def as_flags(self) -> list[str]:
        """Returns the command-line words that set these parameters; defaults are left out."""
        flags: list[str] = []
        for flag in self.explicit_flags():
            value = getattr(self, flag.field)
            if flag.kind == "switch":
                flags.append(flag.option)
            elif flag.kind == "words":
                for word in value:
                    flags += _option_words(flag.option, word)
            else:
                flags += _option_words(flag.option, repr(value) if isinstance(value, float) else str(value))
        return flags


def _option_words(option: str, value: str) -> list[str]:
    """Returns an option with its value; argparse takes a word that begins with `-` for a flag."""
    return [f"{option}={value}"] if value.startswith("-") else [option, value]


class Flag(Struct, frozen=True):
    """One parameter as users meet it on the command line, in the form and in help."""

    field: str
    """Its field of `Parameters`."""
    group: str
    """The group of help that it belongs to."""
    kind: Kind
    """How its value is written."""
    unit: str
    """The unit of its value; "" without one."""
    metavar: str
    """What stands for its value in help."""
    help: str
    """One line of help."""
    choices: tuple[str, ...] = ()
    """The words of a flag of kind `word`, except those of a registry (`simcore.parameter_values.choices` has
    all).
    """
    in_file: bool = False
    """Whether the file states it where the user does not."""
    of: tuple[Input, ...] = ("workload",)
    """The inputs that it applies to."""
    begins_with_name: bool = False
    """Whether its words begin with names of the file, which may have blanks."""

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
        f"a cluster by name (default {PRESET_NAMES[0]}; {', '.join(PRESET_NAMES[1:])}), a topology "
        f"({', '.join(TOPOLOGY_NAMES)}), wltui's TOML, SimAI's topology file, or ASTRA-sim's network file "
        "(2.0 .yml, 1.0 .json)",
        of=_WORKLOAD_OR_EXECUTION,
    ),
    Flag(
        "system",
        "cluster",
        "text",
        "",
        "FILE",
        "an ASTRA-sim system file: algorithms, chunks, delays; or SimAI's .conf: packets, window",
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
    Flag(
        "link_rate",
        "cluster",
        "words",
        "",
        "A-B=X",
        "rate of the link between nodes A and B, or of a tier (asw-psw), times X; 0: it fails (repeatable)",
    ),
    Flag(
        "network",
        "network",
        "word",
        "",
        "MODEL",
        f"network model (default {DEFAULT_NETWORK}; of a topology flows)",
        of=_WORKLOAD_OR_EXECUTION,
    ),
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
    Flag(
        "flow_model",
        "network",
        "word",
        "",
        "MODEL",
        "packets, headers, ACKs and windows as ns-3 (default), or bytes alone, for flows",
        FLOW_MODELS,
    ),
    Flag(
        "send_latency", "network", "count", "ns", "NS", "before each flow (default 3000; plain: 0), for flows"
    ),
    Flag(
        "ecmp",
        "network",
        "word",
        "",
        "NAME",
        "how a path is chosen: SimAI's hash (default), another (plain), or all equally, for flows",
        ECMP_NAMES,
    ),
    Flag(
        "nvls",
        "network",
        "word",
        "",
        "WORD",
        "NVSwitches make all-reduces (default off), for flows",
        _OFF_ON,
    ),
    Flag(
        "pxn",
        "network",
        "word",
        "",
        "WORD",
        "all-reduces go to another rail over NVLink (default off), for flows",
        _OFF_ON,
    ),
    Flag(
        "congestion",
        "network",
        "word",
        "",
        "WORD",
        "what slows flows down at long queues (default none), for flows",
        CONGESTION_NAMES,
    ),
    Flag("other_job", "network", "text", "", "FILE2", "another job that uses the same topology, for flows"),
    Flag(
        "job_gpus", "network", "text", "", "GPUS", "GPUs of the ranks: 0-63 (default: the first), for flows"
    ),
    Flag(
        "other_job_gpus",
        "network",
        "text",
        "",
        "GPUS",
        "GPUs of the other job (default: the next), for flows",
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
        "seed",
        "faults",
        "count",
        "",
        "N",
        "seed of the jitter, of loads of experts and documents that are drawn, and of marks under DCQCN",
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
        "what ranks of a sequence exchange: keys and values in a ring beside attention or gathered before "
        "it, or heads, all to all; a2a+p2p: heads in inner groups, keys and values in rings between them "
        "(default p2p)",
        ("p2p", "all-gather", "a2a", "a2a+p2p"),
        of=_MODEL,
    ),
    Flag(
        "cp_inner",
        "model",
        "count",
        "ranks",
        "N",
        "ranks of an inner group of --cp-comm-type a2a+p2p, the first of Megatron's sizes of hierarchical "
        "context parallelism (default: as many as fit in a server)",
        of=_MODEL,
    ),
    Flag(
        "microbatch_size",
        "model",
        "count",
        "sequences",
        "N",
        "sequences of a micro-batch (default 1)",
        of=_MODEL_OR_TRACE,
    ),
    Flag(
        "global_batch",
        "model",
        "count",
        "sequences",
        "N",
        "sequences of a step (default: one micro-batch on each replica)",
        of=_MODEL_OR_TRACE,
    ),
    Flag(
        "seq",
        "model",
        "count",
        "tokens",
        "N",
        "tokens of a sequence (default: the model's)",
        of=_MODEL_OR_TRACE,
    ),
    Flag(
        "prefill",
        "model",
        "count",
        "tokens",
        "TOKENS",
        "in place of training, one pass forward of prompts of so many tokens",
        of=_MODEL,
    ),
    Flag(
        "decode",
        "model",
        "count",
        "sequences",
        "BATCH",
        "in place of training, one pass forward that gives BATCH sequences of each replica their next token",
        of=_MODEL,
    ),
    Flag(
        "context",
        "model",
        "count",
        "tokens",
        "TOKENS",
        "with --decode, tokens of each sequence in the cache of keys and values",
        of=_MODEL,
    ),
    Flag(
        "kv_dtype",
        "model",
        "word",
        "",
        "TYPE",
        "with --prefill or --decode, the type of the cache of keys and values (default bf16)",
        ("bf16", "fp8"),
        of=_MODEL,
    ),
    Flag(
        "seq_imbalance",
        "model",
        "text",
        "",
        "lognormal:SIGMA|FILE",
        "documents packed into sequences, which attention does not cross: lengths drawn at random (--seed), "
        "or a file with those of each micro-batch of each dp rank (default: a sequence is a document)",
        of=_MODEL,
    ),
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
        "recompute_layers",
        "model",
        "text",
        "",
        "N|N/M",
        "with --recompute full, the first N layers of each virtual stage, or N of every M (default: all)",
        of=_MODEL,
    ),
    Flag(
        "recompute_rows",
        "model",
        "text",
        "",
        "KIND,...",
        "rows that backward runs forward again: attention (its core), mla_up_proj (queries, keys and values "
        "of latent attention), mlp_act (activations of feed-forward parts and experts), moe_act (of experts "
        "alone), norm",
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
        "offload_layers",
        "model",
        "count",
        "layers",
        "N",
        "with --offload, the first N layers of each virtual stage (default: all but its last)",
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
        "with ZeRO, how many neighbouring replicas share one copy (default: all of dp x cp)",
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
        "etp",
        "model",
        "count",
        "ranks",
        "N",
        "expert tensor parallelism: ranks of tp that divide each expert, 1 or all of them (default 1)",
        of=_MODEL,
    ),
    Flag(
        "expert_imbalance",
        "model",
        "text",
        "",
        "lognormal:SIGMA|FILE",
        "how unevenly tokens go to experts: drawn at random (--seed), or a file with a number for each "
        "expert or each rank of an expert group, or a line for each layer (default: all get the same)",
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
        "pad_to_capacity",
        "model",
        "switch",
        "",
        "",
        "every expert runs as many tokens as --expert-capacity, filled up with padding, as Megatron "
        "pads them",
        of=_MODEL,
    ),
    Flag(
        "dispatch",
        "model",
        "word",
        "",
        "WORD",
        "how tokens go to experts: to each of them, or (hierarchical) over the network once to each node and "
        "on to each expert inside it (default plain)",
        ("plain", "hierarchical"),
        of=_MODEL,
    ),
    Flag(
        "node_limit",
        "model",
        "count",
        "nodes",
        "N",
        "a token goes to experts on at most N nodes, as Megatron's group top-k of as many groups "
        "as nodes (default: any)",
        of=_MODEL,
    ),
    Flag(
        "dispatch_precision",
        "model",
        "word",
        "",
        "WORD",
        "the type in which tokens are sent to experts, and gradients back to them; fp8 has a scale for 128 "
        "numbers (default bf16)",
        ("bf16", "fp8"),
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
        "layers of each stage, like 7,8*14,6, or of its chunks, like 8+7 (default: even)",
        of=_MODEL,
    ),
    Flag(
        "account_for_embedding",
        "model",
        "switch",
        "",
        "",
        "the embedding takes the place of a layer on the first virtual stage",
        of=_MODEL,
    ),
    Flag(
        "account_for_loss",
        "model",
        "switch",
        "",
        "",
        "the output layer and the loss take the place of a layer on the last virtual stage",
        of=_MODEL,
    ),
    Flag(
        "pipeline_layout",
        "model",
        "text",
        "",
        "TEXT",
        "layers of each virtual stage as Megatron-LM writes them, like Et*3|(tt|)*29,m|L",
        of=_MODEL,
    ),
    Flag(
        "model",
        "model",
        "text",
        "",
        "NAME|FILE",
        "a model instead of FILE: a name of `wltui models`, a config.json or its like, or wltui's TOML; "
        "beside a trace what it trains, for its MFU",
        of=_TRACE,
    ),
    Flag(
        "gpu",
        "model",
        "text",
        "",
        "NAME|FILE",
        f"the GPU, with its cluster (default h100; {', '.join(GPU_NAMES)}), or a TOML file; "
        "of an AICB file only its peak and memory; of a trace the peak of its products",
        of=("model", "file", "trace"),
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
_FLAG_FIELDS, _FLAG_DEFAULTS = zip(*((flag.field, flag.default) for flag in FLAGS), strict=True)
_BY_FIELD = {flag.field: flag for flag in FLAGS}
_LEAST = {"endpoint_delay": 0, "seed": 0, "send_latency": 0}
_MOST = {"splits": MOST_CHUNKS, "active_chunks": MOST_CHUNKS}
_MOST_COUNT = 2**40
# Why a flag cannot be 0, where its name does not tell.
_WHY_NOT_ZERO = {"offload": "nothing leaves without a link, whose GB/s are to be given"}


def flag_of(field: str) -> Flag:
    """Returns the flag of a field of `Parameters`."""
    return _BY_FIELD[field]


def least_count(flag: Flag) -> int:
    """Returns the least value of a flag of kind `count`."""
    return _LEAST.get(flag.field, 1)


def parse_value(flag: Flag, text: str) -> Any:
    """Returns `text` as a value of `flag`. Raises `UsageError` with what was given and what fits."""
    quoted = printable(text, 60)
    if flag.kind == "count":
        least, most = least_count(flag), _MOST.get(flag.field, _MOST_COUNT)
        if not is_whole(text, 13) or not least <= int(text) <= most:
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
    """Returns whether such an input has the parameter; a model also has those of workloads."""
    if of == "workload" and "file" in flag.of:
        return True
    return of in flag.of or (of == "model" and "workload" in flag.of)


class RunInput(Struct, frozen=True, dict=True, eq=False):
    """What is run, and its parameters; each kind of run resolves them in a subclass, each once.

    Two are equal if they have the same input and equal parameters.
    """

    opened: Any
    parameters: Parameters

    of: ClassVar[Input]
    """The kind of input, which decides which parameters it has."""
    of_parameters: ClassVar[dict[str, Any]] = {}
    """The fields that hold under these parameters alone, with what they are under others."""
    activity: ClassVar[str] = "simulating"
    """What a progress line calls the making of the run."""

    @property
    def path(self) -> str:
        """The path of the input, as the user gave it."""
        path: str = self.opened.path
        return path

    @property
    def source(self) -> Any:
        """What was read, which another run begins with."""
        return self.opened

    @property
    def network_name(self) -> str:
        """The name of the network model of the run."""
        return self.parameters.network or DEFAULT_NETWORK

    @property
    def stamp(self) -> str | None:
        """The stamp of the run among those of its directory, from the names of the files; None where they
        have none.
        """
        return None

    @property
    def label(self) -> str | None:
        """What `--run` calls it among the runs of its directory; None of the only one."""
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
        """Returns the same input with other values of these parameters."""
        return self.with_parameters(replace(self.parameters, **values))

    def with_parameters(self: G, parameters: Parameters) -> G:
        """Returns the same input under other parameters."""
        return replace(self, parameters=parameters, **self.of_parameters)


class SetupValue:
    """The base of what is made from a `RunInput`."""

    __slots__ = ()

    @property
    def setup(self) -> Any:
        """The `RunInput` that it was made from."""
        raise NotImplementedError

    @property
    def parameters(self) -> Parameters:
        """The parameters of the run."""
        run_input: RunInput = self.setup
        return run_input.parameters


class OpeningOptions(Struct, frozen=True):
    """Which part of a recording is opened. All but `run` are of profiler traces alone."""

    run: str | None = None
    """The stamp of one of a directory's runs; None for the newest complete one."""
    step: str | None = None
    """The number of a step, or `all`; None for the last that every rank has whole."""
    ranks: str | None = None
    """The ranks to open, `0-7,12`; None for all."""
    comm_names: str | None = None
    """A regular expression of further kernels that communicate."""
    step_names: str | None = None
    """A regular expression of annotations that are steps."""
    trace_map: str | None = None
    """The path of a file of rules for the spans of a Chrome trace."""
    trace_rules: tuple[tuple[str, ...], ...] = ()
    """Those rules, once the file is read."""
    cache: bool = True
    """Whether what was read may be stored for the next time."""

    @property
    def profiler_option(self) -> str:
        """The first explicit option that only profiler traces have; "" for none."""
        options = {"--step": self.step, "--ranks": self.ranks, "--comm-names": self.comm_names,
                 "--step-names": self.step_names, "--trace-map": self.trace_map}  # fmt: skip
        return next((option for option, value in options.items() if value is not None), "")
