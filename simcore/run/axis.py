"""How the axis is written: times of the step, or places in an order that has no times."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from simcore.units import duration


def clock(time_ns: int) -> str:
    """A time of the step in groups of three: `6.204 608 123 s`."""
    whole, rest = divmod(time_ns, 10**9)
    digits = f"{rest:09d}"
    return f"{whole}.{digits[:3]} {digits[3:6]} {digits[6:]} s"


class Axis(NamedTuple):
    """units: (its size, its name) of the ruler's labels, the largest first. clock: a place in
    words. length: a stretch in words. title: above the lanes, wide and narrow.
    """

    units: tuple[tuple[int, str], ...]
    clock: Callable[[int], str]
    length: Callable[[int], str]
    title: tuple[str, str]


TIME = Axis(
    ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns")), clock, duration,
    ("  all ranks, computing", " all ranks"),
)  # fmt: skip


def order_axis(slot: int) -> Axis:
    """The axis of a schedule without times: each operation takes `slot` units, whatever it does."""
    return Axis(
        ((slot, "op"),),
        lambda place: f"place {place // slot}",
        lambda length: f"{length / slot:g} places",
        ("  order, without times", " order"),
    )
