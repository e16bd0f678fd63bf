"""What the rows of a file send that a trainer would not, or do not send that it would: told from the rows
alone, whatever made them.
"""

from __future__ import annotations

from collections.abc import Iterator

from simcore.diagnostics import Diagnostic, printable
from simcore.records import replace
from simcore.units import group_digits, plural
from simcore.workload.model import Workload

_GRADIENTS = ("grad_gather", "grad_param_comm", "grad_norm")
# The counts of the experts are sent forward alone.
_FORWARD_ALONE = "mlp_moelayer"
# Rows of layers, and the head: its input is gathered as that of a layer is.
_SENDERS = ("attention", "mlp", "final_column")
# What backward sends where forward sends this.
_OTHER_WAY = {"ALLGATHER": "REDUCESCATTER", "REDUCESCATTER": "ALLGATHER"}


def is_like_aicb(workload: Workload) -> bool:
    """Whether a file states its gradients as AICB does."""
    of_file = workload.dialect == "simai" and workload.maker is None
    return of_file and any(name in workload.name for name in _GRADIENTS)


def forward_senders(workload: Workload) -> list[int]:
    """Rows of attention, mlp and head that send over tp forward, of which a trainer sends as much backward;
    none of a file that is not like AICB's.
    """
    if (workload.header.tp or 1) < 2 or not is_like_aicb(workload):
        return []
    fwd = workload.fwd
    return [
        row
        for row, name in enumerate(workload.name)
        if name.startswith(_SENDERS) and name != _FORWARD_ALONE and fwd.group[row] == "tp" and fwd.bytes[row]
    ]


def backward_unsent(workload: Workload) -> list[int]:
    """Those of `forward_senders` that send nothing backward."""
    return [row for row in forward_senders(workload) if not workload.ig.bytes[row]]


def traffic_warnings(workload: Workload) -> Iterator[Diagnostic]:
    """A warning for what is missing backward, for an all-reduce of 2 bytes of each parameter over tp, and for
    transfers between stages that are no activation by what tp sends of it.
    """
    if not is_like_aicb(workload):
        return
    rows = backward_unsent(workload)
    if rows:
        times = f" ({group_digits(len(rows))} rows, first here)" if len(rows) > 1 else ""
        message = (
            f"{workload.name[rows[0]]} sends over tp forward and nothing backward, where a trainer "
            f"sends as much: backward's tensor-parallel traffic is missing{times}"
        )
        brief = f"no tp traffic backward in {plural(len(rows), 'row')}"
        line = workload.line[rows[0]]
        yield Diagnostic("warning", "backward-unsent", message, workload.path, line, brief=brief)
    reduced = _reduces_parameters(workload)
    if reduced is not None:
        row, parameters = reduced
        message = (
            f"{workload.name[row]} all-reduces 2 bytes of each of the {group_digits(parameters)} "
            "parameters of a "
            f"rank over tp; Megatron sends {parameters_sent(workload)}"
        )
        brief = f"{workload.name[row]} reduces all parameters over tp"
        yield Diagnostic("warning", "all-parameters", message, workload.path, workload.line[row], brief=brief)
    yield from _activation_warnings(workload)


def _activation_warnings(workload: Workload) -> Iterator[Diagnostic]:
    """A warning for a `pp_comm` that is neither the activation that the first row of attention sends over tp
    nor a rank's share of it: either is what files of AICB have.
    """
    header, fwd = workload.header, workload.fwd
    tp, stated_bytes = header.tp or 1, header.pp_comm or 0
    rows = (row for row in forward_senders(workload) if workload.name[row].startswith("attention"))
    row = next(rows, None)
    if row is None or not stated_bytes or (header.pp or 1) < 2:
        return
    tp_bytes, name, line = fwd.bytes[row], workload.name[row], workload.line[row]
    if stated_bytes in (tp_bytes, tp_bytes // tp):
        return
    expected = activation_between_stages(tp_bytes, fwd.collective[row], tp)
    if not expected:
        return
    times = f"{stated_bytes / expected:.3g}"
    # One figure, which the step without `pp_comm` has, too: of two it was asked which is meant.
    share = f"a rank's share, {group_digits(expected)} B, of " if expected != tp_bytes else ""
    message = (
        f"pp_comm is {group_digits(stated_bytes)} B, {times} times what the rows tell: {share}the "
        "activation of "
        f"{group_digits(tp_bytes)} B that {printable(name)} (line {line}) sends over tp; kept as written"
    )
    brief = f"pp_comm {times} x what the rows tell"
    column = header.column.get("pp_comm")
    yield Diagnostic("warning", "pp-comm-differs", message, workload.path, header.line, column, brief)


def activation_between_stages(tp_bytes: int, collective: str | None, tp: int) -> int:
    """Bytes of the activation that a rank sends to the next stage, by what its tp collective sends of it: a
    rank's share of what is gathered or scattered, all of what is reduced.
    """
    return tp_bytes // tp if collective in ("ALLGATHER", "REDUCESCATTER") else tp_bytes


def _is_sharded(workload: Workload) -> bool:
    """Whether activations are cut along the sequence: layers gather and scatter them over tp."""
    return any(workload.fwd.collective[row] != "ALLREDUCE" for row in forward_senders(workload))


def parameters_sent(workload: Workload) -> str:
    """What Megatron sends over tp of the gradients of all parameters, in words; "" of a file that does not
    say that all are sent.
    """
    if not is_like_aicb(workload) or _reduces_parameters(workload) is None:
        return ""
    return "those of norms alone" if _is_sharded(workload) else "none of it"


def without_stated_transfers(workload: Workload) -> Workload | None:
    """A file that leaves to its rows what stages send each other; None of one whose rows say the same."""
    if next(_activation_warnings(workload), None) is None:
        return None
    return replace(workload, header=replace(workload.header, pp_comm=None))


def with_backward_sent(workload: Workload) -> Workload | None:
    """A file whose rows send backward what they send forward, as a trainer does; None where they do."""
    rows = backward_unsent(workload)
    if not rows:
        return None
    ig, fwd = workload.ig, workload.fwd
    collective, group, sizes = list(ig.collective), list(ig.group), ig.bytes[:]
    for row in rows:
        collective[row] = _OTHER_WAY.get(fwd.collective[row] or "", fwd.collective[row])
        group[row], sizes[row] = "tp", fwd.bytes[row]
    return replace(workload, ig=replace(ig, collective=collective, group=group, bytes=sizes))


def without_reduced_parameters(workload: Workload) -> Workload | None:
    """A file without the all-reduce of all parameters over tp; None where it has none."""
    reduced = _reduces_parameters(workload) if is_like_aicb(workload) else None
    if reduced is None:
        return None
    sizes = workload.ig.bytes[:]
    sizes[reduced[0]] = 0
    return replace(workload, ig=replace(workload.ig, bytes=sizes))


def _reduces_parameters(workload: Workload) -> tuple[int, int] | None:
    """(the row whose input gradient does it, the parameters of a rank)."""
    ig, wg, fwd, names = workload.ig, workload.wg, workload.fwd, workload.name
    row = next((row for row, name in enumerate(names) if name == "layernorm"), None)
    reduced = next((row for row, name in enumerate(names) if name in ("grad_param_comm", "grad_norm")), None)
    if row is None or reduced is None or ig.collective[row] != "ALLREDUCE":
        return None
    experts = 0
    if not fwd.bytes[reduced]:
        experts = sum(wg.bytes[row] for row, name in enumerate(names) if name == "moe_grad_norm2")
    parameters = (wg.bytes[reduced] + experts) // 4
    return (row, parameters) if parameters and ig.bytes[row] == 2 * parameters else None


# By code of a warning, the file with which its step would be another one.
OTHER_ROWS = {"all-parameters": without_reduced_parameters, "pp-comm-differs": without_stated_transfers}
