"""Positions of ranks: the degrees of parallelism, the groups, the pipeline neighbours.

Import from here: `Layout`, `resolve_layout`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from simcore.diagnostics import Diagnostic, InputError, Severity, UsageError, did_you_mean, printable
from simcore.names import RANK_ORDERS
from simcore.records import Struct, replace
from simcore.units import group_digits
from simcore.workload import Workload
from simcore.workload.model import PHASES, DegreeParameters, GroupKind

# No option for users: in ASTRA-sim 1.0's HYBRID_MODEL_DATA the data groups are on the first dimension.
DATA_FASTEST = "dp-tp"
GROUP_KINDS: tuple[GroupKind, ...] = (
    "tp", "ep", "dp", "dp_ep", "all", "cp", "dp_shard", "dp_replicate", "cp_a2a", "cp_p2p",
    "ep_intra", "ep_inter",
)  # fmt: skip
_EXPERT_KINDS = {"ep", "dp_ep"}
# Kinds whose members are as far apart as the size of a group of another kind.
BY_REMAINDER: tuple[GroupKind, ...] = ("dp", "dp_ep", "dp_replicate")
# 2^40 ranks would still fold, but no cluster is near that size: more is a mistyped number.
MOST_RANKS = 2**24
# Ranks of an op table or a file of ASTRA-sim 1.0 that states none: ASTRA-sim's examples are for 8 or more.
_LEAST_NPUS = 8
# The rows of the start and the end of the step are among this many first ones.
_PROLOGUE = 16


class Layout(Struct, frozen=True):
    """Degrees of parallelism and the order in which ranks are numbered.

    Rank order `tp-ep-dp-pp`: rank = tp + TP*(dp + DP*pp), dp = ep + EP*edp. Rank order `tp-pp-dp`: rank = tp
    + TP*(pp + PP*dp). DATA_FASTEST, with one stage: rank = dp + DP*tp.
    """

    tp: int
    """The tensor-parallel degree."""
    ep: int
    """The expert-parallel degree."""
    dp: int
    """Ranks that hold the same weights and add up their gradients: data-parallel replicas times cp."""
    pp: int
    """Pipeline stages."""
    rank_order: str = "tp-ep-dp-pp"
    """One of `RANK_ORDERS`, or DATA_FASTEST."""
    cp: int = 1
    """Ranks that share the tokens of one sequence; neighbours on dp are one cp group."""
    shard: int = 0
    """Ranks of a dp_shard group, neighbours on dp that share out weights; 0 where all of dp do. The ranks of
    a dp_replicate group hold equal shares.
    """
    whole_experts: bool = False
    """Whether every rank of a tp group holds experts of its own, none split by tp: expert groups are then
    neighbours on tp and dp. Else they are neighbours on dp, of ranks of one tp, where EP divides DP.
    """
    cp_inner: int = 0
    """Neighbours of a cp group that scatter heads among them, a cp_a2a group; those of a cp_p2p group hold
    the same heads. 0 where there are no such groups.
    """
    ep_node: int = 0
    """Neighbours of an expert group in one node, an ep_intra group; those of an ep_inter group have the same
    place in their nodes. 0 where there are no such groups.
    """

    @property
    def ep_across_tp(self) -> bool:
        """Whether an expert group is EP neighbours of all ranks of a stage, not of those of one tp."""
        return self.tp > 1 and (self.whole_experts or self.dp % self.ep > 0)

    @property
    def replicas(self) -> int:
        """Data-parallel replicas: how many sequences are computed at the same time."""
        return self.dp // self.cp

    @property
    def world(self) -> int:
        return self.tp * self.dp * self.pp

    def position(self, rank: int) -> tuple[int, int, int]:
        """Returns (tp, dp, stage) of a rank."""
        if self.rank_order == DATA_FASTEST:
            return rank // self.dp, rank % self.dp, 0
        rest, tp = divmod(rank, self.tp)
        if self.rank_order == "tp-pp-dp":
            dp, stage = divmod(rest, self.pp)
        else:
            stage, dp = divmod(rest, self.dp)
        return tp, dp, stage

    def rank(self, tp: int, dp: int, stage: int) -> int:
        """Returns the rank at (tp, dp, stage)."""
        if self.rank_order == DATA_FASTEST:
            return dp + self.dp * tp
        if self.rank_order == "tp-pp-dp":
            return tp + self.tp * (stage + self.pp * dp)
        return tp + self.tp * (dp + self.dp * stage)

    def group_size(self, kind: GroupKind) -> int:
        """Returns how many ranks one group of this kind has."""
        if kind == "tp":
            return self.tp
        if kind == "ep":
            return self.ep
        if kind == "dp":
            return self.dp
        if kind == "pp":
            return self.pp
        if kind == "cp":
            return self.cp
        if kind == "offload":
            return 1
        if kind in ("cp_a2a", "cp_p2p", "ep_intra", "ep_inter"):
            return self.steps(kind)[1]
        if kind == "dp_shard":
            return self.shard or self.dp
        if kind == "dp_replicate":
            return self.dp // (self.shard or self.dp)
        if kind == "dp_ep":
            return self.tp * self.dp // self.ep if self.ep_across_tp else self.dp // self.ep
        return self.world

    def groups(self, kind: GroupKind) -> Iterator[list[int]]:
        """Returns all groups of a kind, each as its ranks, ascending. Every rank is in exactly one."""
        for stage in range(1 if kind in ("all", "pp") else self.pp):
            for first in self._first_indices(kind):
                yield sorted(self._members(kind, first, stage))

    def group_of(self, kind: GroupKind, rank: int) -> Iterable[int]:
        """Returns the ranks of one rank's group of a kind, in ascending positions, without listing other
        groups.
        """
        tp, dp, stage = self.position(rank)
        return self._members(kind, tp + self.tp * dp, stage)

    def _members(self, kind: GroupKind, stage_index: int, stage: int) -> Iterable[int]:
        """Returns the ranks of the group of an index inside a stage, tp + TP*dp."""
        if kind == "all":
            return range(self.world)
        if kind == "pp":
            dp, tp = divmod(stage_index, self.tp)
            return [self.rank(tp, dp, other) for other in range(self.pp)]
        return [
            self.rank(member % self.tp, member // self.tp, stage)
            for member in self._group_indices(kind, stage_index)
        ]

    def _group_indices(self, kind: GroupKind, stage_index: int) -> range:
        """Returns the indices inside its stage of the group of such an index."""
        step, count = self.steps(kind)
        if kind in BY_REMAINDER:
            return range(stage_index % (step * count), self.tp * self.dp, step * count)
        first = stage_index - stage_index // step % count * step
        return range(first, first + step * count, step)

    def _first_indices(self, kind: GroupKind) -> Iterable[int]:
        """Returns the first index of each group of a kind in a stage."""
        if kind in ("all", "pp"):
            return range(self.tp * self.dp if kind == "pp" else 1)
        step, count = self.steps(kind)
        end, every = (step * count, step) if kind in BY_REMAINDER else (self.tp * self.dp, step * count)
        return (inside + first for inside in range(step) for first in range(0, end, every))

    def steps(self, kind: GroupKind) -> tuple[int, int]:
        """Returns (step, count) of the indices of a group in its stage.

        A dp, dp_ep or dp_replicate group is those with equal remainders by `step * count`; any other one is
        `count` indices that are `step` apart.
        """
        if kind in ("tp", "dp"):
            return 1, self.tp
        if kind == "cp":
            return self.tp, self.cp
        if kind == "cp_a2a":
            return self.tp, self.cp_inner or 1
        if kind == "cp_p2p":
            return self.tp * (self.cp_inner or 1), self.cp // (self.cp_inner or self.cp)
        if kind == "offload":
            return 1, 1
        if kind in ("dp_shard", "dp_replicate"):
            return self.tp, self.shard or self.dp
        step = 1 if self.ep_across_tp else self.tp
        if kind == "ep_intra":
            return step, self.ep_node or 1
        if kind == "ep_inter":
            return step * (self.ep_node or 1), self.ep // (self.ep_node or self.ep)
        return step, self.ep

    def expert_group_index(self, rank: int) -> int:
        """Returns the index of a rank in its expert group."""
        tp, dp, _ = self.position(rank)
        step, count = self.steps("ep")
        return (tp + self.tp * dp) // step % count

    def neighbour(self, rank: int, stage: int) -> int:
        """Returns the rank of another stage at the same (tp, dp)."""
        tp, dp, _ = self.position(rank)
        return self.rank(tp, dp, stage)


# By degree, what a file states per rank: another degree would change it, and the file does not say how.
_NOT_RESCALED = {
    "tp": "compute times and message sizes are the file's,",
    "pp": "the layers of a stage are the file's,",
    "ep": "compute times and message sizes of the experts are the file's,",
}


def resolve_layout(
    workload: Workload, degrees: DegreeParameters, cluster_npus: int | None
) -> tuple[Layout, list[Diagnostic]]:
    """Returns the layout of a run, from the parameters, else the header, else what docs/semantics.md assumes.

    cluster_npus: NPUs of a cluster that the user gave, None for the default one. Every assumption is a
    diagnostic. Raises `UsageError` naming the numbers that do not fit, `InputError` if all of them are the
    file's.
    """
    diagnostics: list[Diagnostic] = []
    header = workload.header
    check_rank_order(degrees.rank_order)
    world: int | None
    if workload.is_table:
        tp, ep, pp, world = _op_table_degrees(workload, degrees, cluster_npus, diagnostics)
    else:
        tp = _find_degree(workload, degrees, "tp", "tp-missing", "model_parallel_NPU_group", diagnostics)
        ep = _find_degree(workload, degrees, "ep", "ep-missing", "ep", diagnostics)
        pp = _find_degree(workload, degrees, "pp", "pp-missing", "pp", diagnostics)
        world = degrees.world or header.all_gpus
    if world is None:
        world = _assume_world(workload, tp, pp, cluster_npus, diagnostics)
    if world > MOST_RANKS:
        message = f"world {world}: at most {MOST_RANKS} ranks (2^24) are simulated"
        raise _unfit_error(workload, degrees, message, "all_gpus")
    if world % (tp * pp):
        message = (
            f"world {world} is not a multiple of tp {tp} x pp {pp} = {tp * pp}: "
            f"{near_multiples(world, tp * pp)} would fit"
        )
        raise _unfit_error(workload, degrees, message, "all_gpus")
    dp = world // (tp * pp)
    diagnostics += _rescale_warnings(workload, {"tp": tp, "pp": pp, "ep": ep})
    if ep > tp * dp:
        message = f"ep {ep} is above tp {tp} x dp {dp}: ep {tp * dp} taken"
        diagnostics.append(header_diagnostic(workload, "warning", "ep-clamped", message, "ep"))
        ep = tp * dp
    if dp % ep and (tp * dp) % ep:
        message = f"ep {ep} divides neither dp {dp} nor tp {tp} x dp {dp} = {tp * dp}"
        raise _unfit_error(workload, degrees, message, "ep")
    layout = Layout(
        tp, ep, dp, pp, degrees.rank_order, header.cp, header.shard, header.whole_experts, header.cp_inner,
        header.ep_node,
    )  # fmt: skip
    return layout, diagnostics


def _find_degree(
    workload: Workload, degrees: DegreeParameters, name: str, code: str, key: str,
    diagnostics: list[Diagnostic],
) -> int:  # fmt: skip
    """Returns a degree of the parameters, else of the header's key, else 1, which is reported by the code."""
    explicit, of_header = getattr(degrees, name), getattr(workload.header, name)
    if explicit is not None or of_header is not None:
        return int(of_header if explicit is None else explicit)
    message = f"no {key} in the header: {name} 1 assumed"
    if name == "ep" and not any(_EXPERT_KINDS & set(workload.cells(phase).group) for phase in PHASES):
        message += "; no row sends over it"
    brief = f"{name} 1: the header has none"
    diagnostics.append(header_diagnostic(workload, "note", code, message, brief=brief))
    return 1


def _assume_world(
    workload: Workload, tp: int, pp: int, cluster_npus: int | None, diagnostics: list[Diagnostic]
) -> int:
    """Returns the number of ranks where nothing states it, which is reported."""
    dp, why, severity = _assumed_dp(workload, tp * pp, cluster_npus, diagnostics)
    world = tp * dp * pp
    message = f"no all_gpus in the header: dp {dp} assumed ({why}), so world {world}"
    brief = f"dp {dp}{' assumed' * (severity != 'note')}, so world {world}"
    diagnostics.append(header_diagnostic(workload, severity, "all-gpus-missing", message, brief=brief))
    return world


def _rescale_warnings(workload: Workload, degrees: dict[str, int]) -> Iterator[Diagnostic]:
    """Yields a warning for each degree that the rows of a file are not made for. degrees: by name."""
    for name, value in degrees.items():
        stated_degree = getattr(workload.header, name)
        if stated_degree is not None and value != stated_degree:
            message = f"{_NOT_RESCALED[name]} for {name} {stated_degree}: not rescaled to {value}"
            brief = f"rows of {name} {stated_degree}, not rescaled to {value}"
            yield header_diagnostic(workload, "warning", "not-rescaled", message, name, brief)


def _unfit_error(workload: Workload, degrees: DegreeParameters, message: str, key: str) -> Exception:
    """Returns the error for numbers that do not fit: an `InputError` if all of them are the file's."""
    if any(getattr(degrees, name) is not None for name in ("world", "tp", "ep", "pp")):
        return UsageError(message)
    header = workload.header
    column = header.column.get(key, 1)
    return InputError(Diagnostic("error", "degrees-do-not-fit", message, workload.path, header.line, column))


def check_rank_order(order: str) -> None:
    """Raises `UsageError` for an unknown rank order."""
    if order not in RANK_ORDERS:
        printable_order = printable(order, 60)
        raise UsageError(f"--rank-order {printable_order}: one of {', '.join(RANK_ORDERS)} is expected"
                         f"{did_you_mean(order, RANK_ORDERS)}")  # fmt: skip


def header_diagnostic(
    workload: Workload,
    severity: Severity,
    code: str,
    message: str,
    key: str | None = None,
    brief: str = "",
) -> Diagnostic:
    """Returns a diagnostic at a file's header, at one of its keys if the header has it."""
    header = workload.header
    column = header.column.get(key) if key else None
    return Diagnostic(severity, code, message, workload.path, header.line, column, brief)


def near_multiples(value: int, step: int) -> str:
    """Returns the multiples of `step` next to `value`: `12 or 16`."""
    below = value - value % step
    return f"{below} or {below + step}" if below else str(step)


def least_world(model_ranks: int) -> int:
    """Returns the ranks of a file whose format states none: 8, filled up to whole replicas of the model."""
    return -(-_LEAST_NPUS // model_ranks) * model_ranks


def _op_table_degrees(
    workload: Workload, degrees: DegreeParameters, cluster_npus: int | None, diagnostics: list[Diagnostic]
) -> tuple[int, int, int, int]:
    """Returns (tp, ep, pp, world) of an op table, which states no number of ranks.

    All ranks are in one group of the kind whose communication the table lists.
    """
    kinds = {kind for cells in (workload.fwd, workload.ig, workload.wg) for kind in cells.group if kind}
    model_ranks = (degrees.tp or 1) * (degrees.pp or 1)
    world = degrees.world or cluster_npus or least_world(model_ranks)
    if degrees.world is None and cluster_npus:
        # Whole replicas: the remaining NPUs of a cluster are not used.
        world = model_ranks * max(world // model_ranks, 1)
    tp, pp = degrees.tp or 1, degrees.pp or 1
    if kinds == {"tp"} and degrees.tp is None and world % pp == 0:
        tp = world // pp
    elif kinds == {"pp"} and degrees.pp is None and world % tp == 0:
        pp = world // tp
    if degrees.world is None:
        source = f"the cluster has {cluster_npus} NPUs" if cluster_npus else f"default {_LEAST_NPUS} or more"
        message = (
            f"an op table does not tell its ranks: world {world} assumed ({source}), "
            f"so tp {tp}, dp {world // (tp * pp)}, pp {pp}"
        )
        brief = f"world {world} assumed: tp {tp}, dp {world // (tp * pp)}, pp {pp}"
        diagnostics.append(Diagnostic("warning", "ranks-assumed", message, workload.path, brief=brief))
    return tp, 1, pp, world


def with_gathered_buffer(workload: Workload) -> Workload | None:
    """Returns a file whose `grad_gather` is a shard, with the gathered buffer in its place.

    AICB writes the gathered buffer, half of what `grad_param_comm` reduces. None for a file whose rows a run
    changes.
    """
    names = workload.name[:_PROLOGUE]
    if workload.as_read is not None or not {"grad_gather", "grad_param_comm"} <= {*names}:
        return None
    sizes = workload.wg.bytes[:]
    sizes[names.index("grad_gather")] = sizes[names.index("grad_param_comm")] // 2
    return replace(workload, wg=replace(workload.wg, bytes=sizes))


def _assumed_dp(
    workload: Workload, model_ranks: int, cluster_npus: int | None, diagnostics: list[Diagnostic]
) -> tuple[int, str, Severity]:
    """Returns (dp, why, severity) for a file without all_gpus."""
    sizes = {
        name: workload.wg.bytes[row]
        for row, name in enumerate(workload.name[:_PROLOGUE])
        if name in ("grad_param_comm", "grad_gather")
    }
    reduced, gathered = sizes.get("grad_param_comm", 0), sizes.get("grad_gather", 0)
    if gathered and reduced % (2 * gathered) == 0 and reduced // (2 * gathered) > 1:
        dp = reduced // (2 * gathered)
        row = workload.name.index("grad_gather")
        diagnostics.append(
            Diagnostic(
                "warning",
                "gather-is-shard",
                f"not what AICB writes: grad_gather is {group_digits(gathered)} B, a shard of 1/{dp}; AICB "
                f"writes the gathered buffer, {group_digits(reduced // 2)} B by what grad_param_comm "
                "reduces; kept "
                "as written",
                workload.path,
                workload.line[row],
                brief=f"grad_gather is 1/{dp} of what AICB writes",
            )
        )
        line = workload.line[row]
        return (
            dp,
            f"line {line}: grad_gather is 1/{dp} of the parameters that grad_param_comm reduces, a shard",
            "note",
        )
    if cluster_npus is not None and cluster_npus >= model_ranks:
        return cluster_npus // model_ranks, f"the cluster has {cluster_npus} NPUs", "warning"
    if workload.format == "astra-sim-1":
        why = f"{_LEAST_NPUS} NPUs or more, as ASTRA-sim's examples are written for"
        return least_world(model_ranks) // model_ranks, why, "warning"
    return 1, "nothing in the file tells it", "warning"
