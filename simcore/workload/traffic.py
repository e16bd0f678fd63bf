"""Traffic that a trainer would not send, or would send in addition, found from the rows of a file alone."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.diagnostics import Diagnostic, printable
from simcore.records import replace
from simcore.units import group_digits, plural
from simcore.workload.model import Workload

_GRADIENTS = ("grad_gather", "grad_param_comm", "grad_norm")
# The row that sends the counts of the experts, only in forward.
_FORWARD_ALONE = "mlp_moelayer"
# Rows of layers, and the head, whose input is gathered as that of a layer is.
_SENDERS = ("attention", "mlp", "final_column")
# Collective of forward -> that of backward.
_OTHER_WAY = {"ALLGATHER": "REDUCESCATTER", "REDUCESCATTER": "ALLGATHER"}


def is_like_aicb(workload: Workload) -> bool:
    """Returns whether a file states its gradients as AICB does."""
    of_file = workload.dialect == "simai" and workload.maker is None
    return of_file and any(name in workload.name for name in _GRADIENTS)


def forward_senders(workload: Workload) -> list[int]:
    """Returns the rows of attention, mlp and head that send over tp in forward; a trainer sends as much in
    backward.

    None of a file that is not like AICB's.
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
    """Returns those of `forward_senders` that send nothing in backward."""
    return [row for row in forward_senders(workload) if not workload.ig.bytes[row]]


def traffic_warnings(workload: Workload) -> Iterator[Diagnostic]:
    """Yields warnings on traffic that a trainer would not send.

    They are on what is missing in backward, on an all-reduce of 2 bytes of each parameter over tp, and on
    transfers between stages that do not have the size of the activation that tp sends.
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
    """Yields a warning for an unusual `pp_comm`.

    Files of AICB have the activation that the first row of attention sends over tp, or a rank's share of it.
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
    # Only the figure that the step without `pp_comm` has: with two it is not clear which one is meant.
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
    """Returns the bytes of the activation that a rank sends to the next stage, from those of its tp
    collective: a rank's share of what is gathered or scattered, all of what is reduced.
    """
    return tp_bytes // tp if collective in ("ALLGATHER", "REDUCESCATTER") else tp_bytes


def _is_sharded(workload: Workload) -> bool:
    """Returns whether activations are split along the sequence: layers gather and scatter them over tp."""
    return any(workload.fwd.collective[row] != "ALLREDUCE" for row in forward_senders(workload))


def parameters_sent(workload: Workload) -> str:
    """Returns what Megatron sends over tp of the gradients of all parameters, in words; "" for a file that
    does not state that all are sent.
    """
    if not is_like_aicb(workload) or _reduces_parameters(workload) is None:
        return ""
    return "those of norms alone" if _is_sharded(workload) else "none of it"


def without_stated_transfers(workload: Workload) -> Workload | None:
    """Returns a file whose rows decide what stages send each other; None where they state the same."""
    if next(_activation_warnings(workload), None) is None:
        return None
    return replace(workload, header=replace(workload.header, pp_comm=None))


def with_backward_sent(workload: Workload) -> Workload | None:
    """Returns a file whose rows send in backward what they send in forward, as a trainer does; None where
    they do.
    """
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
    """Returns a file without the all-reduce of all parameters over tp; None where it has none."""
    reduced = _reduces_parameters(workload) if is_like_aicb(workload) else None
    if reduced is None:
        return None
    sizes = workload.ig.bytes[:]
    sizes[reduced[0]] = 0
    return replace(workload, ig=replace(workload.ig, bytes=sizes))


def _reduces_parameters(workload: Workload) -> tuple[int, int] | None:
    """Returns (the row whose input gradient reduces all parameters, the parameters of a rank); None without
    one.
    """
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


# Code of a warning -> the changed file with which the effect of what it warns of is computed.
OTHER_ROWS = {"all-parameters": without_reduced_parameters, "pp-comm-differs": without_stated_transfers}
