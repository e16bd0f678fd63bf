"""The content of a workload file, before any layout, schedule or cluster is chosen."""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping
from typing import Any, Literal, Protocol

from simcore.diagnostics import Diagnostic
from simcore.names import RANK_ORDERS, Dialect
from simcore.records import NamedTuple, Struct, field

Phase = Literal["fwd", "ig", "wg"]
PHASES: tuple[Phase, ...] = ("fwd", "ig", "wg")
GroupKind = Literal[
    "tp", "ep", "dp", "dp_ep", "all", "pp", "cp", "dp_shard", "dp_replicate", "offload", "cp_a2a", "cp_p2p",
    "ep_intra", "ep_inter",
]  # fmt: skip
LARGEST = 2**63 - 1  # columns are signed 64-bit

_TRAILING_NUMBER = re.compile(r"_?\d+$")


def base_name(name: str) -> str:
    """Returns a row's name without its trailing number: `attention_row_12` -> `attention_row`."""
    if name.isascii():
        # The same as the pattern, and faster: a file may have 100,000 names.
        rest = name.rstrip("0123456789")
        if rest != name:
            return (rest[:-1] if rest.endswith("_") else rest) or name
        if not name.endswith("\n"):
            return name
    return _TRAILING_NUMBER.sub("", name) or name


class Cells(Struct, frozen=True):
    """One of the three (compute, collective) cell triples of all rows, as columns.

    A reader makes groups from suffixes, and an ALLGATHER has the size that the file states: a shard in
    dialect astra-sim-1 (`simcore.program.policies` makes a run's cells from them).
    """

    compute_ns: array[int] = field(default_factory=lambda: array("q"))
    """The compute time of each row as the file states it, ns."""
    collective: list[str | None] = field(default_factory=list)
    """`ALLREDUCE`, `ALLGATHER`, `REDUCESCATTER`, `ALLTOALL`, or None where the row has none; in an op table
    also `SENDRECV`, a transfer to the neighbouring stage.
    """
    group: list[GroupKind | None] = field(default_factory=list)
    """The kind of group that takes part (`pp` for SENDRECV alone); None where there is no collective, or one
    that the policy gives no ranks.
    """
    bytes: array[int] = field(default_factory=lambda: array("q"))
    """The whole buffer: the gathered result, the input of a reduce-scatter, else one rank's buffer."""
    asynchronous: set[int] = field(default_factory=set)
    """The rows whose collective compute does not wait for, whatever its phase."""


class Header(Struct, frozen=True):
    """The keys of a header; None where a key is missing. `cp`, `cp_inner`, `shard`, `whole_experts` and
    `ep_node` are of models alone.
    """

    tp: int | None = None
    """The tensor-parallel degree."""
    ep: int | None = None
    """The expert-parallel degree."""
    pp: int | None = None
    """Pipeline stages."""
    vpp: int | None = None
    """Transformer layers of one stage (not Megatron's virtual-pipeline size)."""
    ga: int | None = None
    """Micro-batches of a step."""
    all_gpus: int | None = None
    """The world size."""
    pp_comm: int | None = None
    """Bytes of one activation between neighbouring stages."""
    cp: int = 1
    """Ranks that share a sequence."""
    cp_inner: int = 0
    """As `Layout` has it."""
    shard: int = 0
    """Ranks that share out weights; 0 for all."""
    whole_experts: bool = False
    """As `Layout` has it."""
    ep_node: int = 0
    """As `Layout` has it."""
    checkpoints: tuple[int, ...] = ()
    """Row indices, from 0."""
    checkpoint_initiates: tuple[int, ...] = ()
    """Row indices, from 0."""
    inference: bool = False
    """Whether the rows are one forward pass of all stages (`mode: 1`), not a training step."""
    last_bottom_layer: int | None = None
    """The index of the last row of the bottom MLP (HYBRID_DLRM)."""
    rescaled_from: tuple[int, ...] = ()
    """The layout and times before rescaling, as `simcore.recovery` states them."""
    line: int = 1
    """The line at which the header begins, from 1."""
    column: Mapping[str, int] = field(default_factory=dict)
    """The column of each key."""


class SplitCell(NamedTuple):
    """A cell whose collective and matrix products are split and overlap with each other.

    An all-gather runs ahead of the splits of the products, each of which waits for its own; of a
    reduce-scatter each split follows that of a product, and what follows the products waits for the last.
    """

    split_count: int
    """How many splits the products have; one is of the rank's own share, so that the collective has
    one less.
    """
    before_ns: int
    """The compute before the products, ns."""
    product_ns: int
    """The compute of the products, ns; the rest of the cell follows them."""


class UnevenCell(NamedTuple):
    """A cell in which the ranks of an expert group differ; () where they do not."""

    compute_ns: tuple[int, ...]
    """The compute of each rank, ns."""
    port_bytes: tuple[int, ...]
    """The bytes through the port of each rank in the cell's collective."""


class PackedCells(Struct, frozen=True):
    """The compute cells in which micro-batches differ, as other documents are packed into them."""

    of_replica: tuple[tuple[int, ...], ...]
    """By replica, for each of its micro-batches which of the different ones it is."""
    compute_ns: Mapping[tuple[Phase, int], tuple[int, ...]]
    """(phase, row) -> the compute in each of these, ns; the first is that of the columns."""
    longest: tuple[int, ...]
    """Tokens of the longest document in each of these."""


class StageRows(Struct, frozen=True):
    """The rows of one pipeline stage, where stages differ: indices into the columns of the workload."""

    prologue: tuple[int, ...]
    """Rows of the start and end of the step."""
    chunks: tuple[tuple[int, ...], ...]
    """Rows of a micro-batch on each virtual stage, ascending."""
    loss: tuple[int, ...] = ()
    """What follows the last of them, on the last stage alone."""


class InputNetwork(NamedTuple):
    """A network that comes with the input."""

    dims: tuple[str, ...]
    """As `--dim` has them."""
    memory: float
    """The memory bandwidth, GB/s."""
    algorithms: tuple[str, ...] = ()
    """As `--algorithm` has them."""


class DegreeParameters(Struct, frozen=True):
    """The parameters of ranks, as in `Parameters`; None: as the file says."""

    world: int | None = None
    tp: int | None = None
    ep: int | None = None
    pp: int | None = None
    rank_order: str = RANK_ORDERS[0]


class ModelParameters(Struct, frozen=True):
    """The parameters of a model and of its training, as in `Parameters`; None: the default.

    passes, layers and dialect apply to files alone.
    """

    world: int | None = None
    tp: int | None = None
    ep: int | None = None
    pp: int | None = None
    cp: int | None = None
    cp_comm_type: str | None = None
    cp_inner: int | None = None
    schedule: str | None = None
    microbatches: int | None = None
    virtual_stages: int | None = None
    stage_layers: str | None = None
    account_for_embedding: bool = False
    account_for_loss: bool = False
    pipeline_layout: str | None = None
    overlap_fwd_bwd: bool = False
    overlap_grad_reduce: bool = False
    overlap_param_gather: bool = False
    overlap_tp: bool = False
    microbatch_size: int | None = None
    global_batch: int | None = None
    seq: int | None = None
    prefill: int | None = None
    decode: int | None = None
    context: int | None = None
    kv_dtype: str | None = None
    seq_imbalance: str | None = None
    sequence_parallel: str | None = None
    flash: str | None = None
    recompute: str | None = None
    recompute_layers: str | None = None
    recompute_rows: str | None = None
    offload: float | None = None
    offload_layers: int | None = None
    zero: str | None = None
    prefetch: str | None = None
    reshard_after_forward: str | None = None
    shard_size: int | None = None
    bucket_size: int | None = None
    etp: int | None = None
    expert_imbalance: str | None = None
    expert_capacity: float | None = None
    expert_placement: str | None = None
    pad_to_capacity: bool = False
    dispatch: str | None = None
    node_limit: int | None = None
    dispatch_precision: str | None = None
    rank_order: str = RANK_ORDERS[0]
    seed: int = 0
    grad_dtype: str | None = None
    precision: str | None = None
    engine_preset: str | None = None
    compile: str | None = None
    pp_scatter: str | None = None
    gpu: str | None = None
    memory_limit: str | None = None
    as_aicb: str | None = None
    aicb_args: str | None = None
    passes: int = 1
    layers: int | None = None
    dialect: str | None = None
    routes: tuple[tuple[int, ...], ...] = ()
    """The stage at each position of each route of a schedule file whose chunks do not lie round and round."""


class Maker(Protocol):
    """Makes a workload from parameters: a model, whose rows are those of a layout (`simcore.model`)."""

    def workload(self, parameters: ModelParameters) -> Workload:
        """Returns the rows under these parameters. Raises `UsageError` where they do not fit, with what
        would.
        """

    def text(self, parameters: ModelParameters) -> tuple[str, tuple[Diagnostic, ...]] | None:
        """Returns the file that another program would write, with its diagnostics; None where the rows are
        wltui's own.
        """

    def values(self, parameters: ModelParameters) -> dict[str, Any]:
        """Returns {field: value} that a run takes for the parameters of a model that were not given."""

    def explain_ops(self, parameters: ModelParameters, row: int, phase: Phase) -> list[str]:
        """Returns the ops of a cell, a line each with how it is computed; none where they are not known."""

    def summarize_ops(self, parameters: ModelParameters, row: int, phase: Phase) -> str:
        """Returns the ops of a cell in one line: `up 4.181 ms (compute) + norm 86.3 us (memory)`, "" without
        ops.
        """

    def network(self, parameters: ModelParameters) -> InputNetwork | None:
        """Returns the network that comes with the model; None without one."""


class Workload(Struct, frozen=True):
    """A workload file: rows of one rank of one stage, as columns of equal length."""

    path: str
    """As the user gave it."""
    format: str
    """The name of the file format."""
    policy: str
    """The policy of the file."""
    dialect: Dialect
    """Whose rules the file follows."""
    header: Header
    """The keys of the header."""
    name: list[str]
    """Each row's name, raw text of the file (escape it with `printable` before it is printed)."""
    line: array[int]
    """Each row's line, from 1."""
    fwd: Cells
    """The forward cells."""
    ig: Cells
    """The input-gradient cells."""
    wg: Cells
    """The weight-gradient cells."""
    process_ns: array[int]
    """The last cell of each row, ns."""
    declared_rows: int | None
    """The count of line 2; None where there is none."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """What was found in reading."""
    row_policy: tuple[str, ...] = ()
    """Each row's own policy (HYBRID_CUSTOMIZED), "" where it has none."""
    as_read: Workload | None = None
    """The file's own workload, where these cells are not those of the file: of a run in dialect astra-sim-1,
    rescaled, or without some lines.
    """
    is_table: bool = False
    """Whether it is the ops of one layer in one table, without a header (`simcore.program.op_table`): degrees
    and layers are parameters, the dialect is not.
    """
    maker: Maker | None = None
    """What made the rows, and makes others from other parameters."""
    stages: tuple[StageRows, ...] = ()
    """The rows of each stage, where they differ; else every stage has all."""
    recomputed: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Row -> the rows that run forward again before its input gradient, in addition to those of the header's
    checkpoints.
    """
    waits: Mapping[tuple[Phase, int], tuple[int, ...]] = field(default_factory=dict)
    """(phase, row) -> the rows whose collectives of that phase, which compute does not wait for where they
    are issued, have ended before this one begins.
    """
    buckets: Mapping[int, int] = field(default_factory=dict)
    """Row -> the least bytes of its weight-gradient collective that are sent at once, where it is sent in
    parts that overlap with compute.
    """
    split_cells: Mapping[tuple[Phase, int], SplitCell] = field(default_factory=dict)
    """The cells whose collectives overlap with their own products."""
    uneven: Mapping[tuple[Phase, int], UnevenCell] = field(default_factory=dict)
    """The cells in which ranks of an expert group differ; the columns have those of the fullest rank."""
    packed: PackedCells | None = None
    """The cells in which micro-batches differ; None where they do not."""
    host_link: float = 0.0
    """The bandwidth of the link to the host's memory (group `offload`), GB/s."""
    gathers_in_forward: bool = False
    """Whether the weights that the prologue gathers are gathered during forward, whatever the parameters."""
    rescaled: str = ""
    """From which degrees to which the rows were rescaled; "" where they were not."""
    left_out: str = ""
    """Which lines of the file were left out (`lines 82-83`); "" for none."""

    def __len__(self) -> int:
        return len(self.name)

    @property
    def noun(self) -> str:
        """What it is called in messages."""
        return "a workload"

    @property
    def as_written(self) -> Workload:
        """The workload with the cells of the file: another run begins with these, whatever the dialect of
        this one.
        """
        return self.as_read or self

    @property
    def has_other_rows(self) -> bool:
        """Whether its rows differ from those of its file by request of the user."""
        return bool(self.rescaled or self.left_out)

    @property
    def has_compute(self) -> bool:
        """Whether its compute cells are durations; else they are placeholders, as a warning of its reader
        says.
        """
        return all(diagnostic.code != "compute-placeholder" for diagnostic in self.diagnostics)

    def cells(self, phase: Phase) -> Cells:
        """Returns the cells of one phase: `fwd`, `ig` (input gradient) or `wg` (weight gradient)."""
        return self.fwd if phase == "fwd" else self.ig if phase == "ig" else self.wg
