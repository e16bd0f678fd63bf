"""The section on the throughput of a model and the memory of a rank of each stage; for a file the
known part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simcore.diagnostics import printable
from simcore.render.report.section import (
    Field,
    PageOptions,
    Section,
    field_lines,
    field_values,
    keys,
    remaining_line,
)
from simcore.units import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simcore.model.memory import StageMemory
    from simcore.model.sizes import Model
    from simcore.model.trust import PublishedError
    from simcore.trace.contexts import FileMemory, MemoryPeak, ModelFigures
    from simcore.trace.run import Run

_STAGES = 32
# Operations that hold memory at the peak.
_HOLDERS = 8
_OF_FILE = ("weights", "gradients", "optimizer", "total")
_PARTS = ("weights", "gradients", "optimizer", "activations", "logits", "work", "total")
_OF_MODEL = (*_PARTS, "overhead", "needed")
# A pass forward has keys and values in place of gradients and states.
_OF_INFERENCE = ("weights", "cache", "activations", "logits", "total", "overhead", "needed")


class _Line:
    """Consecutive stages with equal memory. parts: the known parts of `memory`."""

    def __init__(self, memory: StageMemory | FileMemory, parts: tuple[str, ...] = _PARTS) -> None:
        self.memory = memory
        self.last = memory.stage
        self.parts = parts

    @property
    def stages(self) -> str:
        first = self.memory.stage
        return str(first) if first == self.last else f"{first}-{self.last}"

    def cells(self) -> list[str]:
        """Returns GB of each part, and the chunks held."""
        return [*(_gb(getattr(self.memory, part)) for part in self.parts), str(self.memory.peak_chunks)]


def _gb(size: int | None) -> str:
    return "" if size is None else f"{size / 1e9:.1f}"


def _merge_equal_stages(all_stages: list[_Line]) -> list[_Line]:
    merged: list[_Line] = []
    for all_stage in all_stages:
        if merged and merged[-1].cells() == all_stage.cells():
            merged[-1].last = all_stage.last
        else:
            merged.append(all_stage)
    return merged


def _fields(parts: tuple[str, ...]) -> list[Field[_Line]]:
    def part(name: str) -> Field[_Line]:
        return Field(name, lambda line: _gb(getattr(line.memory, name)))

    chunks: Field[_Line] = Field("chunks held", lambda line: str(line.memory.peak_chunks))
    return [
        Field("stage", lambda line: line.stages),
        *map(part, parts),
        *([] if parts is _OF_INFERENCE else [chunks]),
    ]


def lines(run: Run, options: PageOptions) -> list[str]:
    """Returns a line for each stage, GB; consecutive stages with equal memory are one line."""
    figures = run.model.model_figures
    if run.figures.snapshot is not None:
        # Its own section has more.
        return []
    if figures is None and run.model.memory_peaks:
        return _peak_lines(run.model.memory_peaks, options)
    if figures is None:
        return _file_lines(run.model.file_memory, run.model.memory_unknown)
    parts = _OF_MODEL if figures.inference is None else _OF_INFERENCE
    merged = _merge_equal_stages([_Line(stage_memory, parts) for stage_memory in figures.memory])
    limit = figures.limit
    misfits = {stage_memory.stage for stage_memory in figures.memory if stage_memory.needed > limit}
    fields: list[Field[_Line]] = [
        *_fields(parts),
        Field("", lambda line: "does not fit" if line.memory.stage in misfits else "", left=True),
    ]
    title = (
        f"Memory of a rank at its peak, GB, of {limit / 1e9:.1f} GB; overhead: contexts, NCCL's buffers, "
        "fragmentation"
    )
    more = remaining_line(len(merged) - _STAGES, "more stages", "--json has all")
    return [title, *field_lines(fields, merged[:_STAGES]), *more]


def _peak_lines(peaks: Sequence[MemoryPeak], options: PageOptions) -> list[str]:
    """Returns a line for each rank whose allocator was recorded, and who holds most at the highest peak."""
    fields: list[Field[MemoryPeak]] = [
        Field("rank", lambda peak: str(peak.rank)),
        Field("allocated", lambda peak: _mb(peak.allocated_bytes)),
        Field("reserved", lambda peak: _mb(peak.reserved_bytes)),
        Field("most reserved", lambda peak: _mb(peak.most_reserved_bytes)),
        Field("at", lambda peak: duration(peak.time_ns)),
        Field("in", lambda peak: printable(peak.operation or "-", 50), left=True),
    ]
    highest = max(peaks, key=lambda peak: peak.allocated_bytes)
    known_bytes = sum(size for _, size in highest.held_by)
    rows = [*highest.held_by[:_HOLDERS], ("before the recording", highest.allocated_bytes - known_bytes)]
    holders: list[Field[tuple[str, int]]] = [
        Field("MB", lambda row: _mb(row[1])),
        Field("allocated in", lambda row: printable(row[0], 60), left=True),
    ]
    return [
        "Memory of a rank at its peak in the step, MB, as its allocator recorded it",
        *field_lines(fields, peaks[:_STAGES]),
        *remaining_line(len(peaks) - _STAGES, "more ranks", "--json has all"),
        f"Held then on rank {highest.rank}",
        *field_lines(holders, [row for row in rows if row[1] > 0]),
        *remaining_line(len(highest.held_by) - _HOLDERS, "more operations", "--json has all"),
    ]


def _mb(size: int) -> str:
    return f"{size / 1e6:.1f}"


def _file_lines(memory: Sequence[FileMemory], unknown: str) -> list[str]:
    """Returns what the rows of a file tell: no limit, no memory of the loss and of single ops.

    unknown: why they tell nothing, "" of a run that has no rows.
    """
    if not memory:
        return [f"Memory of a rank: not known, as {unknown}"] if unknown else []
    about = memory[0].activations is not None
    parts = (*_OF_FILE[:-1], "activations", "total") if about else _OF_FILE
    merged = _merge_equal_stages([_Line(file_memory, parts) for file_memory in memory])
    title = "Memory of a rank, GB, at least: states by the gradients of the file"
    title += "; activations not known: no collective has their size"
    if about:
        title = "Memory of a rank, GB, about: states by the gradients of the file; activations by b s h and "
        title += "layers, none recomputed"
    more = remaining_line(len(merged) - _STAGES, "more stages", "--json has all")
    return [title, *field_lines(_fields(parts), merged[:_STAGES]), *more]


def values(run: Run, options: PageOptions) -> dict[str, Any]:
    """Returns `throughput`, `trust`, `memory` by stage and `model`; for a file `memory` alone, where its rows
    tell it.
    """
    figures = run.model.model_figures
    if figures is not None:
        return figure_values(figures)
    if run.model.memory_peaks:
        return {"memory_peaks": field_values(_PEAK, run.model.memory_peaks)}
    memory = run.model.file_memory
    return {"memory": [_file_values(file_memory) for file_memory in memory]} if memory else {}


_PEAK: list[Field[MemoryPeak]] = [
    *keys("rank", "allocated_bytes", "reserved_bytes", "most_reserved_bytes", "time_ns", "operation"),
    Field(
        key="held_by",
        value=lambda peak: [{"operation": name, "bytes": size} for name, size in peak.held_by],
    ),
]
SECTION: Section[Run] = Section("memory", lines, values)


def _file_values(file_memory: FileMemory) -> dict[str, Any]:
    """Returns the keys of a model's memory for a stage of a file; None for those that no file tells.

    about: parts that are estimates, with the total: recomputed layers need less. at_least: whether the total
    lacks parts.
    """
    known_parts = {part: getattr(file_memory, part, None) for part in _PARTS}
    is_rough = file_memory.activations is not None
    return {
        "stage": file_memory.stage, **known_parts, "limit": None, "fits": None, "at_least": not is_rough,
        "about": ["activations", "total"] if is_rough else [],
    }  # fmt: skip


def _trust_values(trust: PublishedError) -> dict[str, Any]:
    """Returns how far published steps of a kind are off. gpu: None for constants of a file alone."""
    kind = trust.kind._asdict() | {"gpu": trust.kind.gpu or None}
    return kind | {"steps": trust.steps, "median": trust.median, "p90": trust.p90}


def parameter_values(model: Model) -> dict[str, int]:
    """Returns the parameters of a model as JSON has them: all of the checkpoint with its vision tower; those
    of the tower; of layers that predict further tokens, which are not among all; and those of one token.
    """
    return {
        "parameters": model.parameters,
        "vision_parameters": model.vision_parameters,
        "mtp_parameters": model.mtp_parameters,
        "active_parameters": model.active_parameters,
        "active_parameters_without_embedding": model.active_parameters_without_embedding,
    }


def figure_values(figures: ModelFigures) -> dict[str, Any]:
    """Returns the figures of a model as JSON has them, bytes."""
    stage: list[Field[StageMemory]] = [
        *keys("stage", *_OF_MODEL, *(() if figures.inference is None else ("cache",))),
        Field(key="limit", value=lambda stage_memory: figures.limit),
        Field(key="fits", value=lambda stage_memory: stage_memory.needed <= figures.limit),
    ]
    model, trust = figures.model, figures.trust
    return {
        "throughput": figures.throughput._asdict(),
        **({} if figures.inference is None else {"inference": figures.inference._asdict()}),
        **({} if trust is None else {"trust": _trust_values(trust)}),
        "memory": field_values(stage, figures.memory),
        "model": {
            **parameter_values(model),
            "name": model.name,
        },
    }
