"""Differences of two runs: a figure of A, of B, and B - A."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from simcore.report.section import Field, field_values
from simcore.run.track import OF_PROFILES
from simcore.units import duration, in_unit, number, percent

if TYPE_CHECKING:
    from simcore.analysis.compare import AccountChange

Row = TypeVar("Row")
# The keys of a change.
CHANGE: list[Field[AccountChange]] = [
    Field(key="a_ns"), Field(key="b_ns"), Field(key="difference_ns", value=lambda change: change.ns)
]  # fmt: skip


def change_values(change: AccountChange) -> dict[str, Any]:
    """A change as JSON has it."""
    return field_values(CHANGE, (change,))[0]


def account_values(changes: Sequence[AccountChange]) -> list[dict[str, Any]]:
    """Changes of accounts as JSON has them; those of a profiler alone where there are any."""
    told = [change for change in changes if change.a_ns or change.b_ns or change.name not in OF_PROFILES]
    return field_values([Field(key="account", value=lambda change: change.name), *CHANGE], told)


def change_fields(
    change: Callable[[Row], AccountChange | None], unit_ns: int, first: str, none: str = ""
) -> list[Field[Row]]:
    """A, B and B - A in a unit, an `=` where they are equal. first: heading of A; none: without a change."""

    def cell(figure: Callable[[AccountChange], str]) -> Callable[[Row], str]:
        def text(row: Row) -> str:
            row_change = change(row)
            return none if row_change is None else figure(row_change)

        return text

    def b_less_a(account: AccountChange) -> str:
        if account.ns == 0:
            return "="
        return f"{account.ns / unit_ns:+.3f}" if unit_ns > 1 else f"{account.ns:+d}"

    return [
        Field(first, cell(lambda account: in_unit(account.a_ns, unit_ns))),
        Field("B", cell(lambda account: in_unit(account.b_ns, unit_ns))),
        Field("B - A", cell(b_less_a)),
    ]


def slower_words(a_ns: int, b_ns: int, limit: float) -> str | None:
    """One line where step B is longer than A by more than `limit` percent of A; else None."""
    if (b_ns - a_ns) * 100 <= limit * a_ns:
        return None
    slower = f"{percent(b_ns - a_ns, a_ns)} % slower" if a_ns else "slower"
    steps = f"{duration(a_ns)}, {duration(b_ns)}"
    return f"B is {slower} than A ({steps}): more than --fail-if-slower {number(limit)}%"
