"""Dialect astra-sim-1: which ranks a policy's collectives run over, and the layout that follows from it.

ASTRA-sim 1.0 states no degrees: the policy and the dimensions of the network decide which ranks take part in
a row's collectives. Model and data groups are written as `tp` and `dp` groups of a `Layout`, all ranks as
`all`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

from simcore.diagnostics import Diagnostic, InputError, Severity, UsageError, printable
from simcore.layout import (
    DATA_FASTEST,
    MOST_RANKS,
    Layout,
    check_rank_order,
    header_diagnostic,
    least_world,
    near_multiples,
)
from simcore.names import ASTRA_SIM_2, WORKLOAD_DIALECTS, Dialect
from simcore.records import replace
from simcore.workload import Cells, Workload
from simcore.workload.model import LARGEST, PHASES, DegreeParameters, GroupKind, Phase
from simcore.workload.policies import CUSTOMIZED, DLRM, INFERENCE, MICRO, NO_POLICY, TRANSFORMER

Scope = tuple[GroupKind | None, GroupKind | None, GroupKind | None]

_DATA: Scope = (None, None, "all")
_MODEL: Scope = ("all", "all", None)
_HYBRID: Scope = ("tp", "tp", "dp")
_SCOPES: dict[str, Scope] = {
    "DATA": _DATA,
    MICRO: _DATA,
    "MODEL": _MODEL,
    INFERENCE: _MODEL,
    "HYBRID_DATA_MODEL": _HYBRID,
    "HYBRID_MODEL_DATA": _HYBRID,
    **dict.fromkeys(TRANSFORMER, _HYBRID),
    NO_POLICY: ("all", "all", "all"),
}
# Row 0 of a recommendation model is its embedding: an all-to-all over all ranks.
_DLRM_FIRST: Scope = ("all", "all", "all")
# In a file of several policies tp names the groups on the first dimension, dp those on the others.
_CUSTOMIZED = {"HYBRID_MODEL_DATA": ("dp", "dp", "tp")}


def resolve_dialect(workload: Workload, requested: str | None) -> Dialect:
    """Returns the dialect of a run: the requested one, else that of the file; an op table has only one.

    Raises `UsageError` for another word.
    """
    if requested == ASTRA_SIM_2:
        raise UsageError(f"--dialect {ASTRA_SIM_2}: found a workload file, expected execution traces")
    for dialect in WORKLOAD_DIALECTS:
        if dialect == (workload.dialect if requested is None else requested):
            return workload.dialect if workload.is_table else dialect
    raise wrong_dialect(requested or "")


def wrong_dialect(name: str) -> UsageError:
    """Returns the error for a word that is no dialect of a workload file."""
    expected = f"{', '.join(WORKLOAD_DIALECTS[:-1])} or {WORKLOAD_DIALECTS[-1]}"
    return UsageError(f"--dialect {printable(name, 60)}: {expected} is expected")


def policy_layout(
    workload: Workload,
    degrees: DegreeParameters,
    cluster_npus: int | None,
    first_dimension: Callable[[int], int],
) -> tuple[Layout, list[Diagnostic]]:
    """Returns the layout of a run in dialect astra-sim-1, and what was assumed for it.

    cluster_npus: NPUs of a cluster that the user gave, None for the default one. first_dimension: returns the
    NPUs on the first dimension of the cluster for a number of ranks. Raises `UsageError` naming the numbers
    that do not fit.
    """
    diagnostics: list[Diagnostic] = []
    header = workload.header

    def note(severity: Severity, code: str, message: str, key: str | None = None, brief: str = "") -> None:
        diagnostics.append(header_diagnostic(workload, severity, code, message, key, brief))

    check_rank_order(degrees.rank_order)
    for name in ("pp", "ep"):
        if (getattr(degrees, name) or 1) != 1:
            what = "pipeline" if name == "pp" else "expert groups"
            raise UsageError(
                f"--{name} {getattr(degrees, name)}: dialect astra-sim-1 has no {what}, 1 would fit "
                "(--dialect simai takes the rows as SimAI does)"
            )
        if (getattr(header, name) or 1) != 1:
            note("warning", f"{name}-ignored", f"{name} {getattr(header, name)} is no part of ASTRA-sim 1.0: "
                 "ignored", name)  # fmt: skip
    stated_tp = header.tp if degrees.tp is None else degrees.tp
    world = degrees.world or header.all_gpus
    model_ranks = (stated_tp or 1) if workload.policy in TRANSFORMER else 1
    if world is None and cluster_npus is not None:
        # As many whole model groups as fit; the remaining NPUs are not used.
        world = max(model_ranks, cluster_npus - cluster_npus % model_ranks)
    elif world is None:
        world = least_world(model_ranks)
        note("note", "all-gpus-missing", f"the file does not tell the number of NPUs: {world} assumed; "
             "--world, --dim or --cluster gives it", brief=f"world {world}: the file tells none")  # fmt: skip
    if world > MOST_RANKS:
        raise UsageError(f"world {world}: at most {MOST_RANKS} ranks (2^24) are simulated")
    if workload.policy in TRANSFORMER:
        tp = stated_tp or 1
        if stated_tp is None:
            note("warning", "tp-missing", "no model_parallel_NPU_group in the header: tp 1 assumed, so "
                 "forward and input-gradient collectives run over no ranks; --tp gives it",
                 brief="tp 1 assumed: the header has none")  # fmt: skip
        what = f"tp {tp}"
    else:
        tp, what = _model_ranks(workload.policy, world, first_dimension(world))
    if world % tp:
        raise UsageError(f"world {world} is not a multiple of {what}: {near_multiples(world, tp)} would fit")
    data_first = workload.policy == "HYBRID_MODEL_DATA"
    if data_first:
        tp = world // tp
    if workload.policy not in TRANSFORMER and degrees.tp not in (None, tp):
        raise UsageError(
            f"--tp {degrees.tp}: policy {workload.policy} on {world} NPUs has tp {tp}, by its own rule"
        )
    order = DATA_FASTEST if data_first else degrees.rank_order
    return Layout(tp, 1, world // tp, 1, order), diagnostics


def _model_ranks(policy: str, world: int, first: int) -> tuple[int, str]:
    """Returns (ranks of a group on the first part of the network, what they are) of a policy without a
    header.
    """
    if policy in ("HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA", CUSTOMIZED):
        inner = min(first, world)
        return inner, f"the first dimension's {inner} NPUs, which policy {policy} goes by"
    return (world if _SCOPES.get(policy) == _MODEL else 1), policy


def with_scopes(workload: Workload, layout: Layout) -> Workload:
    """Returns the workload as its policy runs it: groups by the policy, all-gathers by their whole buffer.

    A collective that no rank takes part in keeps its name, and its group is None. Raises InputError for a
    whole buffer that is too large for a column.
    """
    scopes = [_scope(workload, row) for row in range(len(workload))]
    columns = [_scope_cells(workload, phase, scopes, layout) for phase in PHASES]
    # The reader of a file of SimAI's reports that update times do not count; in this dialect they do.
    diagnostics = tuple(
        diagnostic for diagnostic in workload.diagnostics if diagnostic.code != "process-time"
    )
    return replace(
        workload,
        fwd=columns[0],
        ig=columns[1],
        wg=columns[2],
        diagnostics=diagnostics,
        as_read=workload.as_written,
    )


def _scope(workload: Workload, row: int) -> Scope:
    if workload.policy in DLRM:
        return _DLRM_FIRST if row == 0 else _DATA
    if workload.policy == CUSTOMIZED:
        policy = workload.row_policy[row]
        return _CUSTOMIZED.get(policy, _SCOPES[policy])  # type: ignore[return-value]
    return _SCOPES[workload.policy]


def _scope_cells(workload: Workload, phase: Phase, scopes: list[Scope], layout: Layout) -> Cells:
    cells = workload.cells(phase)
    phase_number = PHASES.index(phase)
    groups: list[GroupKind | None] = []
    sizes = array("q")
    for row, (collective, size) in enumerate(zip(cells.collective, cells.bytes, strict=True)):
        group = scopes[row][phase_number] if collective is not None else None
        groups.append(group)
        if collective == "ALLGATHER" and group is not None:
            members = layout.group_size(group)
            if size * members > LARGEST:
                message = f"{phase} ALLGATHER: found a shard of {size} B, expected at most 2^63 - 1 B in all "
                message += f"{members} ranks"
                line = workload.line[row]
                raise InputError(Diagnostic("error", "value-too-large", message, workload.path, line))
            size *= members
        sizes.append(size)
    return Cells(cells.compute_ns, cells.collective, groups, sizes)
