"""What a workload file says, before any layout, schedule or cluster is chosen."""

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
GroupKind = Literal["tp", "ep", "dp", "dp_ep", "all", "pp", "cp", "dp_shard", "dp_replicate", "offload"]
LARGEST = 2**63 - 1  # columns are signed 64-bit

_TRAILING_NUMBER = re.compile(r"_?\d+$")


def base_name(name: str) -> str:
    """A row's name without its trailing number: `attention_row_12` -> `attention_row`."""
    if name.isascii():
        # As the pattern has it, faster: a file may have 100,000 names.
        rest = name.rstrip("0123456789")
        if rest != name:
            return (rest[:-1] if rest.endswith("_") else rest) or name
        if not name.endswith("\n"):
            return name
    return _TRAILING_NUMBER.sub("", name) or name


class Cells(Struct, frozen=True):
    """One of the three (compute, collective) cell triples of all rows, as columns.

    compute_ns: compute time of each row, ns, as written. collective: `ALLREDUCE`,
    `ALLGATHER`, `REDUCESCATTER`, `ALLTOALL`, or None where the row has none; in an op table
    also `SENDRECV`, a transfer to the neighbouring stage. group: the kind of group that takes
    part (`pp` for SENDRECV alone), None where there is no collective, or one that the policy
    lets nobody take part in. bytes: the whole buffer (gathered result, input of a
    reduce-scatter, one rank's buffer otherwise). As a reader leaves them, groups are by suffix
    and an ALLGATHER has the size of the file: a shard in dialect astra-sim-1
    (`simcore.program.policies` makes a run's cells of them). asynchronous: rows whose collective
    compute does not wait for, whatever its phase.
    """

    compute_ns: array[int] = field(default_factory=lambda: array("q"))
    collective: list[str | None] = field(default_factory=list)
    group: list[GroupKind | None] = field(default_factory=list)
    bytes: array[int] = field(default_factory=lambda: array("q"))
    asynchronous: set[int] = field(default_factory=set)


class Header(Struct, frozen=True):
    """The keys of a header that were present; None where the key is missing.

    tp, ep, pp, cp: degrees of parallelism. Of models alone, no file has them: cp; shard, ranks that share out
    weights, 0 for all; whole_experts, as `Layout` has it. vpp: transformer layers that one stage
    holds (not Megatron's virtual-pipeline size). ga: micro-batches a step. all_gpus:
    world size. pp_comm: bytes of one activation between neighbouring stages. checkpoints and
    checkpoint_initiates: row indices, from 0. last_bottom_layer: index of the last row of the
    bottom MLP (HYBRID_DLRM). rescaled_from: of rows that were rescaled the layout and times before, as
    `simcore.recovery` states them. line: where the header begins, from 1; column: where each key stands.
    """

    tp: int | None = None
    ep: int | None = None
    pp: int | None = None
    vpp: int | None = None
    ga: int | None = None
    all_gpus: int | None = None
    pp_comm: int | None = None
    cp: int = 1
    shard: int = 0
    whole_experts: bool = False
    checkpoints: tuple[int, ...] = ()
    checkpoint_initiates: tuple[int, ...] = ()
    last_bottom_layer: int | None = None
    rescaled_from: tuple[int, ...] = ()
    line: int = 1
    column: Mapping[str, int] = field(default_factory=dict)


class SplitCell(NamedTuple):
    """A cell whose collective and whose matrix products run in pieces beside each other.

    cut_in: into how many the products are cut; one is of the rank's own share, so that the collective has one
    less. before_ns, product_ns: what the cell computes before the products, and in them; the rest follows.
    An all-gather runs ahead of the products' pieces, each of which waits for its own; of a reduce-scatter
    each piece follows a product's, and what follows the products waits for the last.
    """

    split_count: int
    before_ns: int
    product_ns: int


class UnevenCell(NamedTuple):
    """A cell in which the ranks of an expert group differ; () where they do not.

    compute_ns: what each computes. port_bytes: what goes through the port of each in its collective.
    """

    compute_ns: tuple[int, ...]
    port_bytes: tuple[int, ...]


class StageRows(Struct, frozen=True):
    """The rows of one pipeline stage, where stages differ: indices into the columns of the workload.

    prologue: of the start and end of the step. chunks: of a micro-batch on each virtual stage, ascending.
    loss: what follows the last of them, on the last stage alone.
    """

    prologue: tuple[int, ...]
    chunks: tuple[tuple[int, ...], ...]
    loss: tuple[int, ...] = ()


class InputNetwork(NamedTuple):
    """A network that comes with what is run.

    dims, algorithms: as `--dim` and `--algorithm` have them. memory: GB/s.
    """

    dims: tuple[str, ...]
    memory: float
    algorithms: tuple[str, ...] = ()


class DegreeParameters(Struct, frozen=True):
    """What parameters say of ranks; None: as the file says."""

    world: int | None = None
    tp: int | None = None
    ep: int | None = None
    pp: int | None = None
    rank_order: str = RANK_ORDERS[0]


class ModelParameters(Struct, frozen=True):
    """What parameters say of a model and of how it is trained; None: as usual. passes, layers, dialect: of
    files alone.
    """

    world: int | None = None
    tp: int | None = None
    ep: int | None = None
    pp: int | None = None
    cp: int | None = None
    cp_comm_type: str | None = None
    schedule: str | None = None
    microbatches: int | None = None
    virtual_stages: int | None = None
    stage_layers: str | None = None
    overlap_fwd_bwd: bool = False
    overlap_grad_reduce: bool = False
    overlap_param_gather: bool = False
    overlap_tp: bool = False
    microbatch_size: int | None = None
    global_batch: int | None = None
    seq: int | None = None
    sequence_parallel: str | None = None
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


class Maker(Protocol):
    """What makes a workload of parameters: a model, whose rows are those of a layout (`simcore.model`)."""

    def workload(self, parameters: ModelParameters) -> Workload:
        """The rows under these parameters. Raises `UsageError` for what cannot be, with what would fit."""

    def text(self, parameters: ModelParameters) -> tuple[str, tuple[Diagnostic, ...]] | None:
        """The file that another program writes of it, as it stands; None where these are rows of our own."""

    def values(self, parameters: ModelParameters) -> dict[str, Any]:
        """By field, what a run takes for the parameters of a model that were not given."""

    def explain_ops(self, parameters: ModelParameters, row: int, phase: Phase) -> list[str]:
        """The ops of a cell, a line each with what it is made of; none where they are not known."""

    def summarize_ops(self, parameters: ModelParameters, row: int, phase: Phase) -> str:
        """The ops of a cell in one line: `up 4.181 ms (compute) + norm 86.3 us (memory)`, "" without ops."""

    def network(self, parameters: ModelParameters) -> InputNetwork | None:
        """The network that comes with it; None if none does."""


class Workload(Struct, frozen=True):
    """A workload file: rows of one rank of one stage, as columns of equal length.

    path: as the user gave it. name: each row's name, raw text of the file (escape it with
    `printable` before it is shown). line: each row's line, from 1. process_ns: the last
    cell, ns. declared_rows: the count of line 2, None when there is none. row_policy: each
    row's own policy (HYBRID_CUSTOMIZED), "" where it has none. as_read: the file's own, where
    these are the cells of a run in dialect astra-sim-1. is_table: the ops of one layer in one table,
    without a header (`simcore.program.op_table`): degrees and layers are the user's, the dialect is not.
    maker: what made the rows, and makes others of other parameters. stages: the rows of each stage, where
    they differ; else every stage has all. recomputed: row -> the rows that run forward again before its
    input gradient, beside those of the header's checkpoints. waits: (phase, row) -> the rows whose
    collectives of that phase, which compute does not wait for where they are issued, are over before this one
    begins. buckets: row -> bytes of its weight-gradient collective that are sent at once at least, where it
    is sent piece by piece beside compute. pieces: cells whose collectives run beside their own products.
    uneven: cells in which ranks of an expert group differ, whose columns are those of the fullest.
    host_link: GB/s of what goes to the host's memory and back (group `offload`).
    rescaled: of rows made anew for other degrees, from which to which; left_out: of a file without some
    of its lines, which (`lines 82-83`). as_read is the file's then.
    """

    path: str
    format: str
    policy: str
    dialect: Dialect
    header: Header
    name: list[str]
    line: array[int]
    fwd: Cells
    ig: Cells
    wg: Cells
    process_ns: array[int]
    declared_rows: int | None
    diagnostics: tuple[Diagnostic, ...] = ()
    row_policy: tuple[str, ...] = ()
    as_read: Workload | None = None
    is_table: bool = False
    maker: Maker | None = None
    stages: tuple[StageRows, ...] = ()
    recomputed: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    waits: Mapping[tuple[Phase, int], tuple[int, ...]] = field(default_factory=dict)
    buckets: Mapping[int, int] = field(default_factory=dict)
    split_cells: Mapping[tuple[Phase, int], SplitCell] = field(default_factory=dict)
    uneven: Mapping[tuple[Phase, int], UnevenCell] = field(default_factory=dict)
    host_link: float = 0.0
    rescaled: str = ""
    left_out: str = ""

    def __len__(self) -> int:
        return len(self.name)

    @property
    def noun(self) -> str:
        """What it is, for messages."""
        return "a workload"

    @property
    def as_written(self) -> Workload:
        """The cells as the file has them: another run begins with these, whatever the dialect of this one."""
        return self.as_read or self

    @property
    def has_other_rows(self) -> bool:
        """Whether its rows are not those of its file, as the user asked for."""
        return bool(self.rescaled or self.left_out)

    @property
    def has_compute(self) -> bool:
        """Whether its compute cells are durations; else they are placeholders, as its reader has warned."""
        return all(diagnostic.code != "compute-placeholder" for diagnostic in self.diagnostics)

    def cells(self, phase: Phase) -> Cells:
        """The cells of one phase: `fwd`, `ig` (input gradient) or `wg` (weight gradient)."""
        return self.fwd if phase == "fwd" else self.ig if phase == "ig" else self.wg
