"""What changes in the critical paths of two runs."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from simcore.diagnostics import printable
from simcore.report.changes import CHANGE, change_fields
from simcore.report.section import Field, PageAsked, field_lines, field_values
from simcore.units import column_unit

if TYPE_CHECKING:
    from simcore.analysis.compare import AccountChange
    from simcore.analysis.two_runs import Compared

_PATH = 5
_NAME_CELLS = 28
_NO_LAYER = "no layer"
# A kind, and a stage or a layer beside it.
_Line = tuple["AccountChange | None", "AccountChange | None"]


def lines(compared: Compared, asked: PageAsked) -> list[str]:
    """What the two are made of: by kind and, where that moves more, by stage or by layer."""
    paths = compared.paths
    if paths is None or not any(change.ns for changes in paths for change in changes):
        return []
    most = None if asked.everything else _PATH

    def moved(changes: list[AccountChange]) -> int:
        return sum(abs(change.ns) for change in changes[:most])

    by_stage = moved(paths.stage) > moved(paths.layer)
    others = [
        change._replace(
            name=f"stage {change.name}" if by_stage else printable(change.name, _NAME_CELLS) or _NO_LAYER
        )
        for change in (paths.stage if by_stage else paths.layer)
    ]
    unit_ns, unit = column_unit(max(compared.a.step_time_ns, compared.b.step_time_ns))
    fields: list[Field[_Line]] = [
        Field(f"kind, {unit}", lambda pair: pair[0].name if pair[0] else "", left=True),
        *change_fields(lambda pair: pair[0], unit_ns, "A"),
        Field("stage" if by_stage else "layer", lambda pair: pair[1].name if pair[1] else "", left=True),
        *change_fields(lambda pair: pair[1], unit_ns, "A"),
    ]
    rows = list(zip_longest(paths.kind[:most], others[:most]))
    more = " (--all has all)" if max(len(paths.kind), len(others)) > len(rows) else ""
    return [f"Critical paths, what changes most{more}", *field_lines(fields, rows)]


def values(compared: Compared, asked: PageAsked) -> dict[str, Any]:
    """`critical_path`, of runs that were matched op by op."""
    paths = compared.paths
    if paths is None:
        return {}

    def changes(name: str, of: list[AccountChange], value: Any) -> list[dict[str, Any]]:
        return field_values([Field(key=name, value=value), *CHANGE], of)

    return {
        "critical_path": {
            "by_kind": changes("kind", paths.kind, lambda change: change.name),
            "by_stage": changes("stage", paths.stage, lambda change: int(change.name)),
            "by_layer": changes("layer", paths.layer, lambda change: change.name or None),
        }
    }
