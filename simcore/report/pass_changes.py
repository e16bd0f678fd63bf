"""What a forward and a backward pass takes in two runs, stage by stage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simcore.report.changes import change_fields
from simcore.report.section import Field, PageAsked, field_lines
from simcore.units import column_unit, plural

if TYPE_CHECKING:
    from simcore.analysis.beside import StagePair
    from simcore.analysis.two_runs import Compared

_STAGES = 4
_DIRECTIONS = ("forward", "backward")


def _moved(stage: StagePair) -> int:
    changes = (stage.pass_ns(direction) for direction in _DIRECTIONS)
    return sum(abs(change.ns) for change in changes if change is not None)


def lines(found: Compared, asked: PageAsked) -> list[str]:
    """A line a stage, those that change most; nothing where no passes are paired."""
    there = [one for one in found.stages if any(one.pass_ns(way) is not None for way in _DIRECTIONS)]
    if not there:
        return []
    kept = there if asked.everything else sorted(there, key=lambda one: -_moved(one))[:_STAGES]
    shown = [one for one in there if one in kept]
    both = [change for one in shown for way in _DIRECTIONS if (change := one.pass_ns(way)) is not None]
    unit_ns, unit = column_unit(max(ns for change in both for ns in change[1:]))
    fields: list[Field[StagePair]] = [
        Field("stage", lambda one: str(one.stage), left=True),
        Field("passes", lambda one: str(len(one.passes))),
        *change_fields(lambda one: one.pass_ns("forward"), unit_ns, f"forward A, {unit}", "-"),
        *change_fields(lambda one: one.pass_ns("backward"), unit_ns, f"backward A, {unit}", "-"),
    ]
    left = len(there) - len(shown)
    more = f" ({plural(left, 'stage')} more: --all)" if left else ""
    title = f"One pass of a micro-batch, communication in it included, the mean of those that both have{more}"
    return [title, *field_lines(fields, shown)]


def values(found: Compared, asked: PageAsked) -> dict[str, Any]:
    """`stages` of the accounts has them."""
    return {}
