"""The layers that change most from one run to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simcore.diagnostics import printable
from simcore.report.changes import change_fields, change_values
from simcore.report.section import Field, PageAsked, field_lines, field_values
from simcore.units import column_unit

if TYPE_CHECKING:
    from simcore.analysis.compare import LayerChange
    from simcore.analysis.two_runs import Compared

_LAYERS = 3
_NAME_CELLS = 28


def _fields(unit_ns: int, unit: str) -> list[Field[LayerChange]]:
    return [
        Field(f"layer, {unit}", lambda change: printable(change.name, _NAME_CELLS), "name", left=True),
        *change_fields(lambda layer: layer.compute, unit_ns, "compute A"),
        *change_fields(lambda layer: layer.exposed, unit_ns, "exposed A"),
        Field(key="compute", value=lambda change: change_values(change.compute)),
        Field(key="exposed", value=lambda change: change_values(change.exposed)),
    ]


def lines(compared: Compared, asked: PageAsked) -> list[str]:
    """A line a layer that changes; nothing where none does."""
    moved = [layer for layer in compared.layers if layer.moved_ns]
    if not moved:
        return []
    shown = moved if asked.everything else moved[:_LAYERS]
    largest = max(ns for layer in shown for change in (layer.compute, layer.exposed) for ns in change[1:])
    left = len(moved) - len(shown)
    more = f" ({left} more: --all)" if left else ""
    return [f"Layers that change most{more}", *field_lines(_fields(*column_unit(largest)), shown)]


def values(compared: Compared, asked: PageAsked) -> dict[str, Any]:
    """`layers`, of runs that were matched op by op."""
    return {} if compared.matched is None else {"layers": field_values(_fields(1, "ns"), compared.layers)}
