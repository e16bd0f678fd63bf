"""A workload as parameters make it: what a workload file can say of them is put into its rows and header."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from simcore.collectives.exact import scaled
from simcore.diagnostics import Diagnostic, UsageError, printable
from simcore.layout import Layout, resolve_layout
from simcore.names import WORKLOAD_DIALECTS, Dialect
from simcore.parameters import FLAGS, Parameters, as_flags, replaced
from simcore.program.blocks import Structure, find_structure, is_embedding
from simcore.program.building import bytes_between_stages, layer_scales_of
from simcore.program.plan import Plan
from simcore.records import replace
from simcore.workload import Cells, Workload

_LARGEST = 2**63 - 1
# Parameter -> field of Header.
_DEGREES = {"world": "all_gpus", "tp": "tp", "ep": "ep", "pp": "pp"}
_ANY_LAYOUT = Layout(1, 1, 1, 1)  # scales of rows do not depend on it
# Parameters that become part of the file; all others are said to be none of it.
_EXPRESSED = ("world", "tp", "ep", "pp", "microbatches", "compute_scale", "layer_scale", "dialect")


def edited(workload: Workload, parameters: Parameters) -> tuple[Workload, list[Diagnostic]]:
    """The workload with the parameters in it, and a diagnostic of what cannot be in it.

    Raises `UsageError` and `InputError` for parameters and a workload that do not fit each other.
    """
    found: list[Diagnostic] = []
    if any(getattr(parameters, field) is not None for field in _DEGREES):
        # The file's own degrees may fit or not: they are written as they are.
        _, assumed = resolve_layout(workload, parameters, None)
        found = [one for one in assumed if one.code == "not-rescaled"]
    structure, _ = find_structure(workload)
    rows = range(len(workload))
    header = workload.header
    for field, name in _DEGREES.items():
        value = getattr(parameters, field)
        if value is not None:
            header = replace(header, **{name: value})
    order: Sequence[int] = rows
    if parameters.microbatches is not None:
        if _has_marked_blocks(workload, structure):
            order = _repeated(rows, structure, parameters.microbatches)
            header = replace(
                header,
                ga=parameters.microbatches,
                checkpoints=_moved(header.checkpoints, order),
                checkpoint_initiates=_moved(
                    header.checkpoint_initiates, order, after=min(header.checkpoints, default=len(workload))
                ),
            )
        else:
            message = "--microbatches: no embedding_layer row begins a block of this file; its rows stay"
            found.append(Diagnostic("warning", "not-in-file", message, workload.path))
    plan = Plan(workload, structure, _ANY_LAYOUT, 1, 0, layer_scales=layer_scales_of(workload, parameters))
    phases = [_cells(plan, cells, order, parameters) for cells in (workload.fwd, workload.ig, workload.wg)]
    result = replace(
        workload,
        dialect=_dialect(workload, parameters),
        header=header,
        name=[workload.name[row] for row in order],
        line=array("q", [workload.line[row] for row in order]),
        fwd=phases[0],
        ig=phases[1],
        wg=phases[2],
        process_ns=array("q", [workload.process_ns[row] for row in order]),
    )
    if header.pp_comm is None and (header.pp or 1) > 1:
        # Where the block that it is taken from is left out, the file states it.
        tp = Layout(header.tp or 1, 1, 1, 1)
        taken, _ = bytes_between_stages(workload, structure, tp)
        if bytes_between_stages(result, find_structure(result)[0], tp)[0] != taken:
            result = replace(result, header=replace(header, pp_comm=taken))
    return result, [*found, *_left_out(workload, parameters)]


def _dialect(workload: Workload, parameters: Parameters) -> Dialect:
    if parameters.dialect is None:
        return workload.dialect
    for known in WORKLOAD_DIALECTS:
        if parameters.dialect == known:
            return known
    expected = " or ".join(WORKLOAD_DIALECTS)
    raise UsageError(f"--dialect {printable(parameters.dialect, 60)}: {expected} is expected")


def _has_marked_blocks(workload: Workload, structure: Structure) -> bool:
    return bool(structure.blocks) and is_embedding(workload.name[structure.blocks[0][0]])


def _repeated(rows: range, structure: Structure, microbatches: int) -> list[int]:
    """The rows with so many blocks: block i is found block i mod their number."""
    blocks = structure.blocks
    order = list(rows[: blocks[0][0]])
    for number in range(microbatches):
        order += blocks[number % len(blocks)]
        if len(order) > _most_rows(rows):
            raise UsageError(
                f"--microbatches {microbatches}: a file of more than {_most_rows(rows)} rows is not written"
            )
    return order + list(rows[blocks[-1][-1] + 1 :])


def _most_rows(rows: range) -> int:
    """Beyond this lies a slip of the keyboard: no reader opens such a file in a minute."""
    return max(10_000_000, len(rows))


def _moved(marked: tuple[int, ...], order: Sequence[int], after: int = -1) -> tuple[int, ...]:
    """Where the marked rows are in the new order; as they were if that is the old one.

    Rows up to `after` lose their mark: what recomputes nothing for want of a checkpoint before it would
    find one before its copies.
    """
    if list(order) == list(range(len(order))) and all(row < len(order) for row in marked):
        return marked
    wanted = {row for row in marked if row > after}
    return tuple(place for place, row in enumerate(order) if row in wanted)


def _cells(plan: Plan, cells: Cells, order: Sequence[int], parameters: Parameters) -> Cells:
    """The cells of the rows in `order`, their compute times scaled as the engine would."""
    times = cells.compute_ns
    if parameters.compute_scale != 1.0 or plan.layer_scales:
        factors = [parameters.compute_scale * plan.layer_scale(row, cells) for row in range(len(times))]
        long = [scaled(ns, factor) for ns, factor in zip(times, factors, strict=True)]
        if max(long, default=0) > _LARGEST:
            raise UsageError("--compute-scale or --layer-scale makes a time of 2^63 ns or more")
        times = array("q", long)
    return Cells(
        array("q", [times[row] for row in order]),
        [cells.collective[row] for row in order],
        [cells.group[row] for row in order],
        array("q", [cells.bytes[row] for row in order]),
        {place for place, row in enumerate(order) if row in cells.asynchronous}
        if cells.asynchronous
        else set(),
    )


def _left_out(workload: Workload, parameters: Parameters) -> list[Diagnostic]:
    rest = parameters
    for flag in FLAGS:
        if flag.field in _EXPRESSED:
            rest = replaced(rest, flag.field, flag.default)
    words = as_flags(rest)
    if not words:
        return []
    message = f"{' '.join(words)}: no part of a workload file; give it again when you open the file"
    return [Diagnostic("warning", "not-in-file", message, workload.path)]
