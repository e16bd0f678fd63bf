"""A workload as SimAI / AICB text: what the reader of that text reads back as the same workload."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from simcore.diagnostics import Diagnostic, UsageError, printable
from simcore.export.edits import edited
from simcore.export.format import Export, RankFile, Request
from simcore.export.stage import of_stage
from simcore.parameters import Parameters
from simcore.units import plural
from simcore.workload.formats.collectives import KINDS
from simcore.workload.formats.format import is_comment
from simcore.workload.formats.simai_text import dialect_of
from simcore.workload.policies import TRANSFORMER

if TYPE_CHECKING:
    from simcore.workload import Workload
    from simcore.workload.model import Maker

# Field of Header -> key, in the order in which AICB writes them.
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
_ROWS_A_PIECE = 4096


def export(request: Request) -> Export:
    """The workload as text, the parameters in it as far as it has words for them.

    Raises `UsageError` for what this text cannot hold, and what `edited` raises.
    """
    opened = cast("Workload", request.opened)
    if opened.maker is not None and request.ranks is None and not request.every_rank:
        return export_model(opened.maker, request)
    if request.ranks is not None or request.every_rank or request.per_rank:
        raise UsageError("--format simai: one file holds all ranks, so --ranks and --per-rank do not fit it")
    # What `ExportFormat.requested` has told apart.
    return _export(opened, request.parameters)


def _export(workload: Workload, parameters: Parameters) -> Export:
    if workload.format not in ("simai", "astra-sim-1") or workload.policy not in TRANSFORMER:
        kind = workload.format if workload.policy in TRANSFORMER else f"{workload.format} ({workload.policy})"
        raise UsageError(
            f"--format simai: {printable(kind)} is not written as SimAI text; {' and '.join(TRANSFORMER)} are"
        )
    result, found = edited(workload, parameters)
    _check_names(result)
    header = _header(result)
    if dialect_of(_keys(header), result) != result.dialect:
        message = (
            f"dialect {result.dialect} does not show in the file: give --dialect {result.dialect} with it"
        )
        found.append(Diagnostic("warning", "not-in-file", message, workload.path))
    if workload.declared_rows not in (None, len(workload)):
        message = f"{len(result)} rows are stated as they are there; the file stated {workload.declared_rows}"
        found.append(Diagnostic("note", "row-count-written", message, workload.path, 2, 1))
    pieces = _pieces(header, result)
    what = f"{plural(len(result), 'row')} of {result.policy}"
    return Export(pieces, what, tuple(found), as_read=True)


def export_model(maker: Maker, request: Request) -> Export:
    """A model's rows as this text: AICB's own file, or those of Megatron, with more than one stage a file
    for each in a folder.
    """
    written = maker.text(request.parameters)
    if written is not None:
        if request.per_rank:
            raise UsageError("--format simai: AICB writes one file, so --per-rank does not fit it")
        text, found = written
        return Export([text.encode()], f"{plural(text.count(chr(10)) - 2, 'row')} as AICB writes them", found)
    workload = maker.workload(request.parameters)
    stages = len(workload.stages)
    if stages > 1 and not request.per_rank:
        raise UsageError(
            f"--format simai: a model on {stages} stages is a file for each, whose rows differ: --per-rank, "
            "and -o a folder, would fit"
        )
    found = workload.diagnostics
    if request.per_rank:
        files = [RankFile(f"stage-{stage}.txt", _pieces_of_stage(workload, stage)) for stage in range(stages)]
        return Export((), f"the rows of {plural(stages, 'stage')}", found, files=iter(files))
    return Export(_pieces_of_stage(workload, 0), f"{plural(len(workload), 'row')} of a block", found)


def _pieces_of_stage(workload: Workload, stage: int) -> Iterator[bytes]:
    flat = of_stage(workload, stage)
    return _pieces(_header(flat), flat)


def _check_names(workload: Workload) -> None:
    for row, name in enumerate(workload.name):
        if not name or name.split() != [name] or (row == 0 and is_comment(name)):
            raise UsageError(
                f"--format simai: the row name '{printable(name, 60)}' cannot be written as one word"
            )


def _header(workload: Workload) -> str:
    header = workload.header
    words = [workload.policy]
    for field, key in _KEYS.items():
        value = getattr(header, field)
        if value is not None:
            words.append(f"{key}: {value}")
    for key in _LISTS:
        rows: tuple[int, ...] = getattr(header, key)
        if rows or key in header.column:
            words.append(" ".join(map(str, (f"{key}:", len(rows), *rows))))
    if header.pp_comm is not None:
        words.append(f"pp_comm: {header.pp_comm}")
    text = " ".join(words)
    if workload.dialect == "simai" and dialect_of(_keys(text), workload) != "simai":
        # Says nothing but that this is a header of AICB.
        text += " vpp: 0"
    return text


def _keys(header: str) -> list[str]:
    return [word[:-1] for word in header.split() if word.endswith(":")]


def _pieces(header: str, workload: Workload) -> Iterator[bytes]:
    yield f"{header}\n{len(workload)}\n".encode("utf-8", "surrogateescape")
    rows = range(len(workload))
    for first in rows[::_ROWS_A_PIECE]:
        text = "".join(_row(workload, row) for row in rows[first : first + _ROWS_A_PIECE])
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
    # A line that begins like a comment would be one: such a row goes on in the line of the row before.
    follows = row + 1 < len(workload) and is_comment(workload.name[row + 1])
    return "\t".join(cells) + ("\t" if follows else "\n")
