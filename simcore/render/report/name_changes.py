"""The section on differences by name: a table and `by_name` of the JSON, for two runs and for two ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simcore.comparison.words import time_owner_text
from simcore.kernel_names import short_name
from simcore.render.report.section import Field, PageOptions, Section, field_lines, field_values, wrap
from simcore.units import column_unit, group_digits, in_unit

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
        Field(
            "calls A", lambda change: group_digits(change.a.calls), "a_calls", lambda change: change.a.calls
        ),
        Field("B", lambda change: group_digits(change.b.calls), "b_calls", lambda change: change.b.calls),
        Field("time A", lambda change: in_unit(change.a.ns, unit_ns), "a_ns", lambda change: change.a.ns),
        Field("B", lambda change: in_unit(change.b.ns, unit_ns), "b_ns", lambda change: change.b.ns),
        Field("B - A", lambda change: cell(change.ns), "difference_ns", lambda change: change.ns),
        Field("by calls", lambda change: cell(change.calls_ns) if change.extra_calls else "=", "calls_ns"),
        Field(key="each_ns"),
        Field(key="a_total_ns", value=lambda change: change.a.total_ns),
        Field(key="b_total_ns", value=lambda change: change.b.total_ns),
    ]


# Rows for two runs, where the page has other sections, too.
_ROWS = 5


def _name_lines(compared: Comparison, options: PageOptions) -> list[str]:
    """Returns the names that differ most, idle time left out.

    For runs these are a few, with sentences; for two ranks the sentences come first on the page.
    """
    changed_names = [
        change for change in compared.name_changes if change.name and (change.ns or change.extra_calls)
    ]
    if not changed_names:
        return []
    of_runs = compared.ranks is None
    displayed_names = changed_names[: options.rows if not of_runs else None if options.everything else _ROWS]
    remaining_count = len(changed_names) - len(displayed_names)
    more = f" ({remaining_count} more: --all)" if remaining_count else ""
    unit = column_unit(max(max(change.a.ns, change.b.ns) for change in displayed_names))
    sentence_lines = [line for sentence in compared.name_sentences for line in wrap(sentence, "  ", "    ")]
    return [
        f"By name, what differs most, {time_owner_text(compared)}{more}",
        *field_lines(_fields(*unit), displayed_names),
        *(sentence_lines if of_runs else []),
    ]


def _name_values(compared: Comparison, options: PageOptions) -> dict[str, Any]:
    """Returns `by_name`, with idle time: those of an account sum to it. Empty where nothing has names."""
    return {"by_name": field_values(_fields(1, "ns"), compared.name_changes)} if compared.name_changes else {}


NAMES: Section[Comparison] = Section("name-changes", _name_lines, _name_values)
