"""Exact floors, and scales: a float quotient is off by one ns from about 2^50 on, and near whole numbers.

Times are floors of sums of quotients, and a whole step adds thousands of them. They are taken
in integers: a bandwidth or latency stands for the decimal number that it is written as (its
shortest print), so 53.6870912 bytes/ns (50 GiB/s) moves 2^28 bytes in exactly 5,000,000 ns.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache


@lru_cache(maxsize=256)
def decimal_ratio(value: float) -> tuple[int, int]:
    """Returns `value`, finite and not negative, as numerator and denominator of its shortest decimal print.

    >>> decimal_ratio(53.6870912), decimal_ratio(500), decimal_ratio(1e-06)
    ((536870912, 10000000), (500, 1), (1, 1000000))
    """
    digits, _, exponent = repr(value).partition("e")
    whole, _, fraction = digits.partition(".")
    fraction = fraction.rstrip("0")
    power = int(exponent or 0) - len(fraction)
    numerator = int(whole + fraction)
    return (numerator * 10**power, 1) if power >= 0 else (numerator, 10**-power)


def scaled(ns: int, scale: float) -> int:
    """Returns a duration times a scale, rounded half to even; a scale of 1 leaves large ints exact."""
    return ns if scale == 1.0 else round(ns * scale)


def floor_ns(size: int, bandwidth: float, hops: Iterable[tuple[int, float]] = ()) -> int:
    """Returns floor(sum of hops * latency + size / bandwidth), ns.

    size: bytes. bandwidth: bytes per ns. hops: (number of hops, ns a hop) pairs.
    """
    numerator, denominator = decimal_ratio(bandwidth)
    numerator, denominator = size * denominator, numerator
    for count, latency in hops:
        above, below = decimal_ratio(latency)
        numerator = numerator * below + count * above * denominator
        denominator *= below
    return numerator // denominator
