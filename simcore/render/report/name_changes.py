"""What differs between two by name: a table and `by_name` of the JSON, of two runs and of two ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simcore.comparison.words import whose_names
from simcore.kernel_names import short_name
from simcore.render.report.section import Field, PageAsked, Section, field_lines, field_values, wrapped
from simcore.units import column_unit, digits, in_unit

if TYPE_CHECKING:
    from simcore.comparison import Comparison
    from simcore.comparison.name_changes import NameChange

_NAME_CELLS = 36


def _fields(unit_ns: int, unit: str) -> list[Field[NameChange]]:
    def cell(ns: int) -> str:
        return f"{ns / unit_ns:+.3f}" if unit_ns > 1 else f"{ns:+d}"

    return [
        Field(f"name, {unit}", lambda change: short_name(change.name, _NAME_CELLS), left=True),
        Field("account", lambda change: change.account, "account", left=True),
        Field(key="name"),
        Field("calls A", lambda change: digits(change.a.calls), "a_calls", lambda change: change.a.calls),
        Field("B", lambda change: digits(change.b.calls), "b_calls", lambda change: change.b.calls),
        Field("time A", lambda change: in_unit(change.a.ns, unit_ns), "a_ns", lambda change: change.a.ns),
        Field("B", lambda change: in_unit(change.b.ns, unit_ns), "b_ns", lambda change: change.b.ns),
        Field("B - A", lambda change: cell(change.ns), "difference_ns", lambda change: change.ns),
        Field("by calls", lambda change: cell(change.calls_ns) if change.more_calls else "=", "calls_ns"),
        Field(key="each_ns"),
        Field(key="a_total_ns", value=lambda change: change.a.total_ns),
        Field(key="b_total_ns", value=lambda change: change.b.total_ns),
    ]  # fmt: skip


# Of two runs beside other subjects.
_ROWS = 5


def _name_lines(compared: Comparison, asked: PageAsked) -> list[str]:
    """Those that differ most, what is idle left out; of runs a few, and what they say together: of two ranks
    that stands first.
    """
    moved = [change for change in compared.by_name if change.name and (change.ns or change.more_calls)]
    if not moved:
        return []
    of_runs = compared.ranks is None
    shown = moved[: asked.rows if not of_runs else None if asked.everything else _ROWS]
    left = len(moved) - len(shown)
    more = f" ({left} more: --all)" if left else ""
    unit = column_unit(max(max(change.a.ns, change.b.ns) for change in shown))
    said = [line for sentence in compared.by_name_words for line in wrapped(sentence, "  ", "    ")]
    return [
        f"By name, what differs most, {whose_names(compared)}{more}",
        *field_lines(_fields(*unit), shown),
        *(said if of_runs else []),
    ]


def _name_values(compared: Comparison, asked: PageAsked) -> dict[str, Any]:
    """`by_name`, what is idle too: those of an account sum to it. Nothing of what has no names."""
    return {"by_name": field_values(_fields(1, "ns"), compared.by_name)} if compared.by_name else {}


NAMES: Section[Comparison] = Section("name-changes", _name_lines, _name_values)
