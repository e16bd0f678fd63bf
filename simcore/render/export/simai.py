"""A workload as SimAI / AICB text, which its reader reads back as the same workload.

Parameters that a workload file can express are put into its rows and header. For a model the rows of one
stage are written as in a file: micro-batches as blocks, recomputation marked.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from simcore.collectives.exact import scaled
from simcore.diagnostics import Diagnostic, UsageError, printable
from simcore.layout import Layout, resolve_layout
from simcore.names import WORKLOAD_DIALECTS, Dialect
from simcore.parameters import RunInput, flag_of
from simcore.program.blocks import Structure, find_structure, is_embedding
from simcore.program.building import bytes_between_stages, check_names
from simcore.program.overrides import layer_scales
from simcore.program.plan import Plan
from simcore.program.policies import wrong_dialect
from simcore.records import replace
from simcore.render.export.format import Export, RankFile, Request
from simcore.units import plural
from simcore.workload import Cells, Workload
from simcore.workload.formats.cell import KINDS
from simcore.workload.formats.format import is_comment
from simcore.workload.formats.simai_text import dialect_of
from simcore.workload.model import DegreeParameters, Header, ModelParameters
from simcore.workload.policies import TRANSFORMER

if TYPE_CHECKING:
    from simcore.workload.model import Maker


_LARGEST = 2**63 - 1
# More rows are a typing error: no reader opens such a file in a minute.
_MOST_ROWS = 10_000_000
# Parameter -> field of Header.
_DEGREES = {"world": "all_gpus", "tp": "tp", "ep": "ep", "pp": "pp"}
_ANY_LAYOUT = Layout(1, 1, 1, 1)  # scales of rows do not depend on it
# Parameters that become part of the file; a diagnostic names all others.
_EXPRESSED = ("world", "tp", "ep", "pp", "microbatches", "compute_scale", "layer_scale", "dialect")


def apply_parameters(run_input: RunInput) -> tuple[Workload, list[Diagnostic]]:
    """Returns the workload with the parameters in it, and diagnostics on those that cannot be in it.

    Raises `UsageError` and `InputError` for parameters and a workload that do not fit each other.
    """
    workload, parameters = run_input.opened, run_input.parameters
    diagnostics = _degree_notes(workload, parameters.part(DegreeParameters))
    structure, _ = find_structure(workload)
    degrees = {name: getattr(parameters, field) for field, name in _DEGREES.items()}
    header = replace(workload.header, **{name: value for name, value in degrees.items() if value is not None})
    order: Sequence[int] = range(len(workload))
    if parameters.microbatches is not None:
        if _has_marked_blocks(workload, structure):
            order = _repeat_blocks(range(len(workload)), structure, parameters.microbatches)
            header = _repeated_header(header, order, parameters.microbatches)
        else:
            message = "--microbatches: no embedding_layer row begins a block of this file; its rows stay"
            diagnostics.append(Diagnostic("warning", "not-in-file", message, workload.path))
    scales = layer_scales(parameters.layer_scale)
    check_names(workload, scales)
    plan = Plan(workload, structure, _ANY_LAYOUT, 1, 0, layer_scales=scales)
    fwd, ig, wg = (
        _cells(plan, cells, order, parameters.compute_scale)
        for cells in (workload.fwd, workload.ig, workload.wg)
    )
    result = replace(
        workload,
        dialect=_dialect(workload, parameters.dialect),
        header=header,
        name=[workload.name[row] for row in order],
        line=array("q", [workload.line[row] for row in order]),
        fwd=fwd,
        ig=ig,
        wg=wg,
        process_ns=array("q", [workload.process_ns[row] for row in order]),
    )
    result = _with_stage_bytes(workload, structure, result)
    return result, [*diagnostics, *_left_out_warnings(run_input)]


def _degree_notes(workload: Workload, degrees: DegreeParameters) -> list[Diagnostic]:
    """Returns notes on degrees to which rows are not rescaled."""
    if all(getattr(degrees, field) is None for field in _DEGREES):
        # The degrees of the file itself are written as they are, whether they fit or not.
        return []
    _, assumed = resolve_layout(workload, degrees, None)
    diagnostics = [diagnostic for diagnostic in assumed if diagnostic.code == "not-rescaled"]
    if diagnostics:
        # Imported here: most files are written with their own degrees.
        from simcore.recovery.rescale import can_rescale

        if can_rescale(workload):
            message = "--rescale on writes rows made anew for these degrees"
            diagnostics.append(Diagnostic("note", "rescaled", message, workload.path))
    return diagnostics


def _repeated_header(header: Header, order: Sequence[int], microbatches: int) -> Header:
    """Returns the header of so many blocks. order: the rows of the file in their new order."""
    # Without a checkpoint no row has one before it.
    first = min(header.checkpoints, default=max(order, default=0))
    return replace(
        header,
        ga=microbatches,
        checkpoints=_reindex_marks(header.checkpoints, order),
        checkpoint_initiates=_reindex_marks(header.checkpoint_initiates, order, after=first),
    )


def _with_stage_bytes(workload: Workload, structure: Structure, result: Workload) -> Workload:
    """Returns the result with the bytes between stages in its header, where the block that determines them is
    left out.
    """
    header = result.header
    if header.pp_comm is None and (header.pp or 1) > 1:
        tp = Layout(header.tp or 1, 1, 1, 1)
        stage_bytes, _ = bytes_between_stages(workload, structure, tp)
        if bytes_between_stages(result, find_structure(result)[0], tp)[0] != stage_bytes:
            return replace(result, header=replace(header, pp_comm=stage_bytes))
    return result


def _dialect(workload: Workload, name: str | None) -> Dialect:
    if name is None:
        return workload.dialect
    for dialect in WORKLOAD_DIALECTS:
        if name == dialect:
            return dialect
    raise wrong_dialect(name)


def _has_marked_blocks(workload: Workload, structure: Structure) -> bool:
    return bool(structure.blocks) and is_embedding(workload.name[structure.blocks[0][0]])


def _repeat_blocks(rows: range, structure: Structure, microbatches: int) -> list[int]:
    """Returns the rows with this many blocks: block i is block i mod their number of the file."""
    blocks = structure.blocks
    order = list(rows[: blocks[0][0]])
    most = max(_MOST_ROWS, len(rows))
    rounds, remainder = divmod(microbatches, len(blocks))
    if len(order) + rounds * sum(map(len, blocks)) + sum(map(len, blocks[:remainder])) > most:
        raise UsageError(f"--microbatches {microbatches}: a file of more than {most} rows is not written")
    for microbatch in range(microbatches):
        order += blocks[microbatch % len(blocks)]
    return order + list(rows[blocks[-1][-1] + 1 :])


def _reindex_marks(marked_rows: tuple[int, ...], order: Sequence[int], after: int = -1) -> tuple[int, ...]:
    """Returns the indices of the marked rows in the new order; unchanged where the order is.

    Rows up to `after` lose their mark: a row that recomputes nothing because no checkpoint comes before it
    would find one before its copies.
    """
    if list(order) == list(range(len(order))) and all(row < len(order) for row in marked_rows):
        return marked_rows
    kept_rows = {row for row in marked_rows if row > after}
    return tuple(index for index, row in enumerate(order) if row in kept_rows)


def _cells(plan: Plan, cells: Cells, order: Sequence[int], scale: float) -> Cells:
    """Returns the cells of the rows in `order`, their compute times scaled as the engine would."""
    times = cells.compute_ns
    if scale != 1.0 or plan.layer_scales:
        factors = [scale * plan.layer_scale(row, cells) for row in range(len(times))]
        long = [scaled(ns, factor) for ns, factor in zip(times, factors, strict=True)]
        if max(long, default=0) > _LARGEST:
            raise UsageError("--compute-scale or --layer-scale makes a time of 2^63 ns or more")
        times = array("q", long)
    return Cells(
        array("q", [times[row] for row in order]),
        [cells.collective[row] for row in order],
        [cells.group[row] for row in order],
        array("q", [cells.bytes[row] for row in order]),
        {index for index, row in enumerate(order) if row in cells.asynchronous}
        if cells.asynchronous
        else set(),
    )


def _left_out_warnings(run_input: RunInput) -> list[Diagnostic]:
    expressed = {field: flag_of(field).default for field in _EXPRESSED}
    flags = run_input.with_changes(**expressed).parameters.as_flags()
    if not flags:
        return []
    message = f"{' '.join(flags)}: no part of a workload file; give it again when you open the file"
    return [Diagnostic("warning", "not-in-file", message, run_input.opened.path)]


# The row that starts each micro-batch of a file; rows without cells that replace it where a stage has none,
# and that follow the last layer.
_BLOCK = "embedding_layer"
_FIRST, _LAST = -1, -2
_MARKS = {_FIRST: _BLOCK, _LAST: "final_none"}


def extract_stage(workload: Workload, stage: int) -> Workload:
    """Returns the workload with the rows of `stage` alone, of every micro-batch, in the order of a file.

    Raises `UsageError` for what a file cannot express.
    """
    own_stage = workload.stages[stage]
    block = sorted(row for chunk in own_stage.chunks for row in chunk)
    batches = workload.header.ga or 0
    staged_rows = {
        row for of_one in workload.stages
        for row in (*of_one.prologue, *of_one.loss, *(row for chunk in of_one.chunks for row in chunk))
    }  # fmt: skip
    tail = [row for row in range(len(workload)) if row not in staged_rows]
    if len(block) * batches > _MOST_ROWS:
        raise UsageError(f"{batches} micro-batches: a file of more than {_MOST_ROWS} rows is not written")
    for cells in (workload.fwd, workload.ig):
        if any(row in cells.asynchronous or cells.group[row] in ("cp", "cp_a2a") for row in block):
            raise UsageError(
                "--format simai: collectives beside compute (--cp, --zero 3) have no word in SimAI text"
            )
    for option, cells_there in (
        ("--overlap-tp", workload.split_cells),
        ("--expert-imbalance", workload.uneven),
        ("--dispatch hierarchical", workload.header.ep_node),
        ("--seq-imbalance", workload.packed),
    ):
        if cells_there:
            raise UsageError(
                f"--format simai: {option} has no word in SimAI text, whose rows are those of every rank, "
                "one after another; without it they are written"
            )
    if not any(workload.name[row].startswith(_BLOCK) for row in block):
        # A reader separates micro-batches by this row: without cells it costs nothing.
        block = [_FIRST, *block]
    if block[-1] in workload.recomputed:
        # A row after the layer has to initiate its recomputation.
        block = [*block, _LAST]
    order = [*own_stage.prologue, *block * batches, *own_stage.loss, *tail]
    checkpoints, initiates = _recompute_marks(workload, block, len(own_stage.prologue), batches)
    header = replace(workload.header, checkpoints=checkpoints, checkpoint_initiates=initiates)
    return replace(
        workload,
        header=header,
        name=[_MARKS[row] if row in _MARKS else workload.name[row] for row in order],
        line=array("q", range(1, len(order) + 1)),
        fwd=_pick_cells(workload.fwd, order),
        ig=_pick_cells(workload.ig, order),
        wg=_pick_cells(workload.wg, order),
        process_ns=array("q", [100]) * len(order),
        stages=(),
        recomputed={},
        waits={},
        maker=None,
    )


def _recompute_marks(
    workload: Workload, block: list[int], first: int, batches: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns where each recompute starts, and the row whose backward needs it."""
    index_by_row = {row: index for index, row in enumerate(block)}
    begins, needed = [], []
    for last, rows in workload.recomputed.items():
        if last in index_by_row:
            begins.append(index_by_row[rows[0]])
            needed.append(index_by_row[rows[-1]] + 1)
    checkpoints, initiates = [], []
    for batch in range(batches):
        offset = first + batch * len(block)
        checkpoints += [offset + begin for begin in begins]
        initiates += [offset + row for row in needed]
    return tuple(sorted(checkpoints)), tuple(sorted(initiates))


def _pick_cells(cells: Cells, order: list[int]) -> Cells:
    return Cells(
        array("q", [0 if row in _MARKS else cells.compute_ns[row] for row in order]),
        [None if row in _MARKS else cells.collective[row] for row in order],
        [None if row in _MARKS else cells.group[row] for row in order],
        array("q", [0 if row in _MARKS else cells.bytes[row] for row in order]),
    )


# Field of Header -> key, in the order of AICB.
_KEYS = {
    "tp": "model_parallel_NPU_group",
    "ep": "ep",
    "pp": "pp",
    "vpp": "vpp",
    "ga": "ga",
    "all_gpus": "all_gpus",
}
_LISTS = ("checkpoints", "checkpoint_initiates")
_TOKENS = tuple({kind: token for token, kind in table.items()} for table in KINDS)
_ROWS_PER_CHUNK = 4096


def export(request: Request) -> Export:
    """Returns the workload as text, with the parameters that it can express.

    Raises `UsageError` for what this text cannot contain, and what `apply_parameters` raises.
    """
    # `ExportFormat.takes` has checked the kind.
    opened = cast("Workload", request.opened)
    request.parameters.refuse_others("workload" if opened.maker is None else "model")
    if opened.maker is not None and request.ranks is None and not request.every_rank:
        return export_model(opened.maker, request)
    if request.ranks is not None or request.every_rank or request.per_rank:
        raise UsageError("--format simai: one file holds all ranks, so --ranks and --per-rank do not fit it")
    run_input = RunInput(opened, request.parameters)
    if run_input.parameters.without_lines:
        # Imported here, as below: few files are repaired.
        from simcore.workload.without_lines import without_lines

        repaired = without_lines(opened, run_input.parameters.without_lines)
        run_input = RunInput(repaired, replace(run_input.parameters, without_lines=()))
    if run_input.parameters.rescale == "on":
        return _export_rescaled(run_input)
    return _export(run_input)


def _export_rescaled(run_input: RunInput) -> Export:
    """Returns the rows of an AICB file for other degrees: AICB's own text, unless other parameters change
    them.
    """
    # Imported here: few files are rescaled.
    from simcore.recovery.rescale import rescale_rows

    parameters = run_input.parameters
    result = rescale_rows(run_input.opened, parameters.part(DegreeParameters), parameters.microbatches)
    other_changes = run_input.with_changes(
        rescale="off", world=None, tp=None, ep=None, pp=None, microbatches=None
    )
    if result is None:
        return _export(other_changes)
    if other_changes.parameters.explicit_names:
        return _export(RunInput(result.workload, other_changes.parameters))
    what = f"{plural(len(result.workload), 'row')}, rescaled {result.workload.rescaled}"
    return Export([result.text.encode()], what, result.workload.diagnostics)


def _export(run_input: RunInput) -> Export:
    workload: Workload = run_input.opened
    if workload.format not in ("simai", "astra-sim-1") or workload.policy not in TRANSFORMER:
        kind = workload.format if workload.policy in TRANSFORMER else f"{workload.format} ({workload.policy})"
        raise UsageError(
            f"--format simai: {printable(kind)} is not written as SimAI text; {' and '.join(TRANSFORMER)} are"
        )
    result, diagnostics = apply_parameters(run_input)
    _check_rows_named(result)
    header = _header(result)
    if dialect_of(_keys(header), result) != result.dialect:
        message = (
            f"dialect {result.dialect} does not show in the file: give --dialect {result.dialect} with it"
        )
        diagnostics.append(Diagnostic("warning", "not-in-file", message, workload.path))
    if workload.declared_rows not in (None, len(workload)):
        message = f"{len(result)} rows are stated as they are there; the file stated {workload.declared_rows}"
        diagnostics.append(Diagnostic("note", "row-count-written", message, workload.path, 2, 1))
    chunks = _text_chunks(header, result)
    what = f"{plural(len(result), 'row')} of {result.policy}"
    return Export(chunks, what, tuple(diagnostics), as_read=True)


def export_model(maker: Maker, request: Request) -> Export:
    """Returns the rows of a model as this text: AICB's own file, or those of Megatron.

    With more than one stage it is a folder with a file for each.
    """
    model_parameters = request.parameters.part(ModelParameters)
    aicb_file = maker.text(model_parameters)
    if aicb_file is not None:
        if request.per_rank:
            raise UsageError("--format simai: AICB writes one file, so --per-rank does not fit it")
        text, diagnostics = aicb_file
        return Export(
            [text.encode()], f"{plural(text.count(chr(10)) - 2, 'row')} as AICB writes them", diagnostics
        )
    workload = maker.workload(model_parameters)
    stages = len(workload.stages)
    if stages > 1 and not request.per_rank:
        raise UsageError(
            f"--format simai: a model on {stages} stages is a file for each, whose rows differ: --per-rank, "
            "and -o a folder, would fit"
        )
    diagnostics = (*workload.diagnostics, *_expert_group_warnings(workload))
    if request.per_rank:
        files = [RankFile(f"stage-{stage}.txt", _stage_chunks(workload, stage)) for stage in range(stages)]
        return Export((), f"the rows of {plural(stages, 'stage')}", diagnostics, files=iter(files))
    return Export(_stage_chunks(workload, 0), f"{plural(len(workload), 'row')} of a block", diagnostics)


def _expert_group_warnings(workload: Workload) -> list[Diagnostic]:
    """Returns a warning where a reader of the text takes other expert groups than the model has: along dp
    alone.
    """
    layout, _ = resolve_layout(workload, DegreeParameters(), None)
    of_file = replace(layout, whole_experts=False)
    kinds = {kind for cells in (workload.fwd, workload.ig, workload.wg) for kind in cells.group}
    differences = []
    if "dp_ep" in kinds:
        here, there = layout.group_size("dp_ep"), of_file.group_size("dp_ep")
        if here != there:
            differences.append(
                f"gradients of experts are added up over {plural(there, 'rank')} there, {here} here"
            )
    if "ep" in kinds and layout.ep_across_tp != of_file.ep_across_tp:
        differences.append(f"ranks of an expert group are tp {layout.tp} apart there, neighbours here")
    if not differences:
        return []
    message = f"SimAI counts expert groups along dp, not tp: {'; '.join(differences)}; the step differs by it"
    return [Diagnostic("warning", "not-in-file", message, workload.path)]


def _stage_chunks(workload: Workload, stage: int) -> Iterator[bytes]:
    flat = extract_stage(workload, stage)
    return _text_chunks(_header(flat), flat)


def _check_rows_named(workload: Workload) -> None:
    for row, name in enumerate(workload.name):
        if not name or name.split() != [name] or (row == 0 and is_comment(name)):
            raise UsageError(
                f"--format simai: the row name '{printable(name, 60)}' cannot be written as one word"
            )


def _header(workload: Workload) -> str:
    header = workload.header
    fields = [workload.policy]
    for field, key in _KEYS.items():
        value = getattr(header, field)
        if value is not None:
            fields.append(f"{key}: {value}")
    if header.inference:
        fields.append("mode: 1")
    for key in _LISTS:
        rows: tuple[int, ...] = getattr(header, key)
        if rows or key in header.column:
            fields.append(" ".join(map(str, (f"{key}:", len(rows), *rows))))
    if header.pp_comm is not None:
        fields.append(f"pp_comm: {header.pp_comm}")
    if header.rescaled_from:
        fields.append(f"rescaled_from: {','.join(map(str, header.rescaled_from))}")
    text = " ".join(fields)
    if workload.dialect == "simai" and dialect_of(_keys(text), workload) != "simai":
        # A key that only marks this as a header of AICB.
        text += " vpp: 0"
    return text


def _keys(header: str) -> list[str]:
    return [word[:-1] for word in header.split() if word.endswith(":")]


def _text_chunks(header: str, workload: Workload) -> Iterator[bytes]:
    yield f"{header}\n{len(workload)}\n".encode("utf-8", "surrogateescape")
    rows = range(len(workload))
    for first in rows[::_ROWS_PER_CHUNK]:
        text = "".join(_row(workload, row) for row in rows[first : first + _ROWS_PER_CHUNK])
        yield text.encode("utf-8", "surrogateescape")


def _row(workload: Workload, row: int) -> str:
    cells = [workload.name[row], "-1"]
    for tokens, phase in zip(_TOKENS, (workload.fwd, workload.ig, workload.wg), strict=True):
        token = tokens.get((phase.collective[row], phase.group[row]))
        if token is None:
            raise UsageError(
                f"--format simai: {phase.collective[row]} over a {phase.group[row]} group "
                f"(line {workload.line[row]}) has no word in SimAI text"
            )
        cells += [str(phase.compute_ns[row]), token, str(phase.bytes[row])]
    cells.append(str(workload.process_ns[row]))
    # A line that starts like a comment would be one: such a row continues the line of the row before.
    follows = row + 1 < len(workload) and is_comment(workload.name[row + 1])
    return "\t".join(cells) + ("\t" if follows else "\n")
