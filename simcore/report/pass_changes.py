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


def lines(compared: Compared, asked: PageAsked) -> list[str]:
    """A line a stage, those that change most; nothing where no passes are paired."""
    there = [stage for stage in compared.stages if any(stage.pass_ns(way) is not None for way in _DIRECTIONS)]
    if not there:
        return []
    kept = (
        there if asked.everything else sorted(there, key=lambda pass_change: -_moved(pass_change))[:_STAGES]
    )
    shown = [pair for pair in there if pair in kept]
    both = [change for pair in shown for way in _DIRECTIONS if (change := pair.pass_ns(way)) is not None]
    unit_ns, unit = column_unit(max(ns for change in both for ns in change[1:]))
    fields: list[Field[StagePair]] = [
        Field("stage", lambda pair: str(pair.stage), left=True),
        Field("passes", lambda pair: str(len(pair.passes))),
        *change_fields(lambda pair: pair.pass_ns("forward"), unit_ns, f"forward A, {unit}", "-"),
        *change_fields(lambda pair: pair.pass_ns("backward"), unit_ns, f"backward A, {unit}", "-"),
    ]
    left = len(there) - len(shown)
    more = f" ({plural(left, 'stage')} more: --all)" if left else ""
    title = f"One pass of a micro-batch, communication in it included, the mean of those that both have{more}"
    return [title, *field_lines(fields, shown)]


def values(compared: Compared, asked: PageAsked) -> dict[str, Any]:
    """`stages` of the accounts has them."""
    return {}
