"""Differences of two runs as text: a figure of A, of B, and B - A."""

from __future__ import annotations

from simcore.analysis.compare import Change
from simcore.units import change_percent, duration, in_unit, number, percent, signed


def change_figures(change: Change, unit_ns: int) -> list[str]:
    """A, B and B - A in a unit of a table; an `=` where they are equal."""
    return [
        in_unit(change.a_ns, unit_ns),
        in_unit(change.b_ns, unit_ns),
        _difference(change.ns, unit_ns),
    ]


def _difference(ns: int, unit_ns: int) -> str:
    if ns == 0:
        return "="
    return f"{ns / unit_ns:+.3f}" if unit_ns > 1 else f"{ns:+d}"


def difference_of(a_ns: int, b_ns: int) -> str:
    """`-4.075 s (-27.6 %)`: how much longer B is than A."""
    share = change_percent(a_ns, b_ns)
    return signed(b_ns - a_ns) + (f" ({share})" if share else "")


def difference_percent(a_ns: int, b_ns: int) -> float | None:
    """How much longer B is than A, in per cent of it, as JSON has it; None of nothing."""
    return 100 * (b_ns - a_ns) / a_ns if a_ns else None


def slower_words(a_ns: int, b_ns: int, limit: float) -> str | None:
    """One line where step B is longer than A by more than `limit` percent of A; else None."""
    if (b_ns - a_ns) * 100 <= limit * a_ns:
        return None
    slower = f"{percent(b_ns - a_ns, a_ns)} % slower" if a_ns else "slower"
    steps = f"{duration(a_ns)}, {duration(b_ns)}"
    return f"B is {slower} than A ({steps}): more than --fail-if-slower {number(limit)}%"
