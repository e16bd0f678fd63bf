"""Round times along the axis, with their unit."""

from __future__ import annotations

from simcore.run.axis import TIME, Axis
from tui.timeline.window import Window

_STEPS = (1, 2, 5)


def tick_step(span_ns: int, columns: int, least_columns: int) -> int:
    """The least round number of ns (1, 2 or 5 times a power of ten) at least that many columns wide."""
    power = 1
    while True:
        for step in _STEPS:
            if step * power * columns >= least_columns * span_ns:
                return step * power
        power *= 10


def ticks(window: Window, columns: int, axis: Axis = TIME) -> list[tuple[int, str]]:
    """(column, label) of each tick; the first label carries the unit.

    The labels' unit is the one of the window's end, with as many decimals as tell two
    neighbouring ticks apart.
    """
    unit_ns, unit = next(
        (found for found in axis.units if window.last_ns >= found[0] or found[0] == 1), axis.units[-1]
    )
    least = 6
    while True:
        step = tick_step(window.span_ns, columns, least)
        decimals = _decimals(step, unit_ns)
        needed = len(f"{window.last_ns / unit_ns:.{decimals}f} {unit}") + 1
        if needed <= least:
            break
        least = needed
    first = -(-window.first_ns // step) * step
    found: list[tuple[int, str]] = []
    for time_ns in range(first, window.last_ns, step):
        label = f"{time_ns / unit_ns:.{decimals}f}"
        found.append((window.column(time_ns, columns), label if found else f"{label} {unit}"))
    return found


def _decimals(step_ns: int, unit_ns: int) -> int:
    decimals = 0
    while step_ns * 10**decimals % unit_ns:
        decimals += 1
    return decimals
