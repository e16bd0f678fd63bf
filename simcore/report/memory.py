"""Of a model: its throughput, and what a rank of each stage holds in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simcore.report.section import Asked, Field, field_lines, field_values, keys, more_line

if TYPE_CHECKING:
    from simcore.analysis.model_figures import ModelFigures
    from simcore.analysis.run import Run
    from simcore.model.memory import StageMemory

_STAGES = 32
_PARTS = ("weights", "gradients", "optimizer", "activations", "logits", "work", "total")


class _Line:
    """Neighbouring stages that hold the same."""

    def __init__(self, memory: StageMemory) -> None:
        self.memory = memory
        self.last = memory.stage

    @property
    def stages(self) -> str:
        first = self.memory.stage
        return str(first) if first == self.last else f"{first}-{self.last}"

    def cells(self) -> list[str]:
        """GB of each part, and the chunks held."""
        return [*(f"{getattr(self.memory, part) / 1e9:.1f}" for part in _PARTS), str(self.memory.held)]


def lines(run: Run, asked: Asked) -> list[str]:
    """A line a stage, GB; neighbours that hold the same are one line."""
    figures = run.model_figures
    if figures is None:
        return []
    found: list[_Line] = []
    for one in map(_Line, figures.memory):
        if found and found[-1].cells() == one.cells():
            found[-1].last = one.last
        else:
            found.append(one)

    def part(name: str) -> Field[_Line]:
        return Field(name, lambda one: f"{getattr(one.memory, name) / 1e9:.1f}")

    limit = figures.limit
    fields: list[Field[_Line]] = [
        Field("stage", lambda one: one.stages),
        *map(part, _PARTS),
        Field("chunks held", lambda one: str(one.memory.held)),
        Field("", lambda one: "" if one.memory.total <= limit else "does not fit", left=True),
    ]
    title = (
        f"Memory of a rank at its peak, GB, of {limit / 1e9:.1f} GB; contexts of CUDA and NCCL take 1 to 3 "
        "more, fragmentation some percent"
    )
    more = more_line(len(found) - _STAGES, "more stages", "--json has all")
    return [title, *field_lines(fields, found[:_STAGES]), *more]


def values(run: Run, asked: Asked) -> dict[str, Any]:
    """`throughput`, `memory` by stage and `model`; nothing of a run that is not of a model."""
    figures = run.model_figures
    return {} if figures is None else figure_values(figures)


def figure_values(figures: ModelFigures) -> dict[str, Any]:
    """The figures of a model as JSON has them, bytes."""
    stage: list[Field[StageMemory]] = [
        *keys("stage", *_PARTS),
        Field(key="limit", value=lambda one: figures.limit),
        Field(key="fits", value=lambda one: one.total <= figures.limit),
    ]
    model = figures.model
    return {
        "throughput": figures.throughput._asdict(),
        "memory": field_values(stage, figures.memory),
        "model": {
            "parameters": model.parameters,
            "active_parameters": model.active_parameters,
            "name": model.name,
        },
    }
