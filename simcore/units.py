"""Figures with their units, as every screen and report prints them."""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

_TIME_UNITS = ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns"))
_BYTE_UNITS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B"))
# From this many points between the least and the greatest of some shares their mean stands for none of them.
_APART = 10
# A figure counts as the largest if it is less by no more than 1/50 of it; a part as `almost all` if the rest
# is no more than 1/100.
_NEAR, _REST = 50, 100
# Up to this many names are listed.
LISTED = 4
Key = TypeVar("Key")


def duration(ns: int) -> str:
    """Returns a duration of `ns` nanoseconds in the largest unit it fills, four figures or more.

    >>> duration(13973040880), duration(264017), duration(-950), duration(0)
    ('13.973 s', '264.0 us', '-950 ns', '0 s')
    """
    if ns == 0:
        return "0 s"
    for size, unit in _TIME_UNITS:
        if abs(ns) >= size:
            return f"{ns} ns" if size == 1 else f"{_four_figures(ns / size)} {unit}"
    raise AssertionError("every whole number but 0 is at least 1 ns")


def duration_range(least_ns: int, most_ns: int) -> str:
    """Returns durations from the least to the most; one figure where both are printed equally.

    >>> duration_range(9_000, 509_000), duration_range(1_800_000, 1_800_100)
    ('9.000 us to 509.0 us', '1.800 ms')
    """
    least, most = duration(least_ns), duration(most_ns)
    return least if least == most else f"{least} to {most}"


def signed_duration(ns: int) -> str:
    """Returns a difference with its sign.

    >>> signed_duration(1200000000), signed_duration(-3), signed_duration(0)
    ('+1.200 s', '-3 ns', '0 s')
    """
    return duration(ns) if ns <= 0 else f"+{duration(ns)}"


def _four_figures(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 100 else f"{value:.1f}"


def column_unit(largest_ns: int) -> tuple[int, str]:
    """Returns (length in ns, name) of the unit for a column whose largest figure is `largest_ns`."""
    return next(((size, unit) for size, unit in _TIME_UNITS if largest_ns >= size), _TIME_UNITS[-1])


def in_unit(ns: int, unit_ns: int, resolution_ns: int = 1) -> str:
    """Returns `ns` as a figure of a column in that unit: three decimals, or as many as the resolution has;
    whole nanoseconds have none.

    >>> in_unit(13973040880, 10**9), in_unit(7, 1), in_unit(2_350_000, 10**6, 10_000)
    ('13.973', '7', '2.35')
    """
    decimals = next((decimals for decimals in range(3) if unit_ns <= resolution_ns * 10**decimals), 3)
    return f"{ns / unit_ns:.{decimals}f}"


def is_whole(text: str, digits: int = 18) -> bool:
    """Returns whether a text is a whole number of at most so many digits, 0 to 9.

    `"²".isdigit()` holds and `int("²")` fails; `int("٣")` is 3, which no format means.
    """
    return text.isascii() and text.isdigit() and len(text) <= digits


def group_digits(value: float) -> str:
    """Returns a number with its digits in groups of three.

    >>> group_digits(134217728), group_digits(1006632.96), group_digits(2000.0)
    ('134 217 728', '1 006 632.96', '2 000')
    """
    return f"{int(value) if value == int(value) else value:,}".replace(",", " ")


def byte_size(size: int) -> str:
    """Returns a number of bytes in decimal units (1 kB = 1000 B).

    >>> byte_size(16777216), byte_size(4)
    ('16.8 MB', '4 B')
    """
    for unit_size, unit in _BYTE_UNITS:
        if size >= unit_size:
            return f"{size} B" if unit_size == 1 else f"{size / unit_size:.1f} {unit}"
    return "0 B"


# Follows a factor on times, which is no factor on speeds.
IN_TIME = " in time"


def format_number(value: float) -> str:
    """Returns a parameter's number without a needless `.0`: 450.0 -> 450, 0.5 -> 0.5.

    >>> format_number(450.0), format_number(0.5), format_number(8)
    ('450', '0.5', '8')
    """
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


# The most characters that somebody types; a number with more comes from a calculation.
_TYPED = 10


def short_number(value: float) -> str:
    """Returns `format_number`, in six figures if the number comes from a calculation: 50 / 0.9 is 55.5556.

    >>> short_number(450.0), short_number(50 / 0.9), short_number(429.4967)
    ('450', '55.5556', '429.4967')
    """
    text = format_number(value)
    return text if len(text) <= _TYPED else format_number(float(f"{value:.6g}"))


def without_noise(product: float) -> float:
    """Returns a product of typed factors as one would type it: the last binary digits are left out.

    >>> without_noise(0.9 * 0.9 * 0.9)
    0.729
    """
    return float(f"{product:.15g}")


# The blank between a figure and its unit, or between the groups of three digits of a number.
_AFTER_FIGURE = re.compile(r"(?<=\d) (?=(?:[mun]?s|[kMGT]?B|%|\d{3})(?!\w))")


def keep_units_unbroken(text: str) -> str:
    """Returns a text with non-breaking blanks between figures and units, and within numbers in groups of
    three.

    >>> keep_units_unbroken("rank 7: 16 777 216 B in 189.1 ms (3 %)").split(" ")
    ['rank', '7:', '16\\xa0777\\xa0216\\xa0B', 'in', '189.1\\xa0ms', '(3\\xa0%)']
    """
    return _AFTER_FIGURE.sub("\u00a0", text)


def plural(count: int, noun: str) -> str:
    """Returns a count with its noun: `1 block`, `2 blocks`, `2 classes`, `2 indices`."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("index"):
        return f"{count} {noun.removesuffix('ex')}ices"
    return f"{count} {noun}{'es' if noun.endswith(('s', 'ch')) else 's'}"


def largest_keys(figures: Mapping[Key, int]) -> list[Key]:
    """Returns the keys of the largest figure and of all within 2 % of it, the largest first; none where all
    are 0.

    >>> largest_keys({"a": 99, "b": 100, "c": 97}), largest_keys({"a": 0})
    (['b', 'a'], [])
    """
    most = max(figures.values(), default=0)
    near = [key for key, figure in figures.items() if most > 0 and _NEAR * (most - figure) <= most]
    return sorted(near, key=lambda key: -figures[key])


def share_word(part: int, whole: int) -> str:
    """Returns the share of a part in a whole as a word: `all`, `almost all` from 99 % on, else `most`.

    >>> share_word(7, 7), share_word(99, 100), share_word(60, 100)
    ('all', 'almost all', 'most')
    """
    return "all" if part >= whole else "almost all" if _REST * (whole - part) <= whole else "most"


def join_names(names: Sequence[str]) -> str:
    """Returns names as an enumeration: `a, b and c`, of more than four `a and 4 others`.

    >>> join_names(["a"]), join_names(["a", "b", "c"]), join_names(list("abcde"))
    ('a', 'a, b and c', 'a and 4 others')
    """
    if len(names) > LISTED:
        return f"{names[0]} and {len(names) - 1} others"
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def join_with_figures(names: Sequence[str], figures: Sequence[str], more: str = "") -> str:
    """Returns names with their figures; each bracket ends in `more`: `a and b (3 s each on rank 1)`.

    >>> join_with_figures(["a"], ["3 s"], " on rank 1")
    'a (3 s on rank 1)'
    >>> join_with_figures(["a", "b"], ["3 s", "3 s"], " on rank 1")
    'a and b (3 s each on rank 1)'
    >>> join_with_figures(["a", "b"], ["3.1 s", "3 s"]), join_with_figures(list("abcde"), list("98877"))
    ('a (3.1 s) and b (3 s)', 'a and 4 others (7 to 9 each)')
    """
    if len(set(figures)) == 1:
        return f"{join_names(names)} ({figures[0]}{' each' if len(names) > 1 else ''}{more})"
    if len(names) > LISTED:
        return f"{join_names(names)} ({figures[-1]} to {figures[0]} each{more})"
    return join_names([f"{name} ({figure}{more})" for name, figure in zip(names, figures, strict=True)])


def short_layout(world: int, unit: str, degrees: Iterable[tuple[str, int | None]]) -> str:
    """Returns `1024: tp 8 dp 8 pp 16`, degrees of 1 left out; `8 ranks` where no degree is known to be
    larger.
    """
    larger = [f"{name} {degree}" for name, degree in degrees if degree is not None and degree > 1]
    return f"{world}: {' '.join(larger)}" if larger else plural(world, unit)


_PLAIN = re.compile(r"([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")


def plain_number(text: str) -> float | None:
    """Returns a number in plain digits (`0.5`, `1e-3`); None for anything else that float() would take."""
    return float(text) if len(text) <= 40 and _PLAIN.fullmatch(text) else None


def whole_percent(part: int, whole: int) -> int:
    """Returns `part` of `whole` in whole percents, rounded half to even; 0 of nothing.

    >>> whole_percent(325307, 1000000), whole_percent(325, 1000), whole_percent(1, 0)
    (33, 32, 0)
    """
    if not whole:
        return 0
    quotient, rest = divmod(100 * part, whole)
    return quotient + (2 * rest + quotient % 2 > whole)


def range_if_far_apart(shares: Iterable[int]) -> tuple[int, int] | None:
    """Returns (least, greatest) of whole percents that are 10 or more apart, so that their mean stands for
    none of them; else None.

    >>> range_if_far_apart([24, 49]), range_if_far_apart([24, 33])
    ((24, 49), None)
    """
    values = tuple(shares)
    least, most = min(values), max(values)
    return (least, most) if most - least >= _APART else None


def percent(part: int, whole: int) -> str:
    """Returns `part` of `whole` as a percentage with one decimal, without the sign; 0.0 of nothing."""
    return f"{100 * part / whole:.1f}" if whole else "0.0"


def change_percent(was: int, now: int, unit: str = " %") -> str:
    """Returns a change as a percentage of `was`, with one decimal and its sign; "" where `was` is 0.

    A change that rounds to 0.0 has no sign.

    >>> change_percent(200, 190), change_percent(200, 250), change_percent(10**6, 999_999)
    ('-5.0 %', '+25.0 %', '0.0 %')
    """
    if not was:
        return ""
    figure = f"{100 * (now - was) / was:+.1f}"
    return f"{'0.0' if figure in ('+0.0', '-0.0') else figure}{unit}"


def difference(a_ns: int, b_ns: int) -> str:
    """Returns how much longer B is than A.

    >>> difference(14767000000, 10692000000), difference(0, 5)
    ('-4.075 s (-27.6 %)', '+5 ns')
    """
    share = change_percent(a_ns, b_ns)
    return signed_duration(b_ns - a_ns) + (f" ({share})" if share else "")


# Bytes of a column that are taken as one number, which the processor's cache holds.
_PART_BYTES = 2**18
# Of them where the same number is added to each element: columns of ones are kept.
_SUM_BYTES = 2**16


def split_by_weight(weights: Sequence[int], size: int) -> list[int]:
    """Returns a size split by weight, by cumulative floors: the parts sum to it exactly."""
    total = sum(weights)
    parts, before, weight = [], 0, 0
    for part_weight in weights:
        weight += part_weight
        until = size * weight // total
        parts.append(until - before)
        before = until
    return parts


def differences(later: array[int], earlier: array[int]) -> array[int]:
    """Returns `later` less `earlier` element by element: columns of "q" of one length, 0 <= earlier <= later.

    A column is taken as one number: that needs a fifth of the time of subtracting element by element.

    >>> differences(array("q", [5, 7]), array("q", [5, 3]))
    array('q', [0, 4])
    """
    return _differences(memoryview(later).cast("B"), memoryview(earlier).cast("B"))


def lengths_between(edges: array[int]) -> array[int]:
    """Returns how far each edge lies behind the one before it: a column of "q" that ascends.

    >>> lengths_between(array("q", [1, 3, 3, 8]))
    array('q', [2, 0, 5])
    """
    view = memoryview(edges).cast("B")
    return _differences(view[edges.itemsize :], view[: -edges.itemsize])


def _differences(later: memoryview, earlier: memoryview) -> array[int]:
    column = array("q")
    # A part at a time: of a million elements the numbers of all would take three times the memory.
    for first in range(0, len(later), _PART_BYTES):
        # No element borrows from the next.
        ends, starts = (part[first : first + _PART_BYTES] for part in (later, earlier))
        part = int.from_bytes(ends, sys.byteorder) - int.from_bytes(starts, sys.byteorder)
        column.frombytes(part.to_bytes(len(ends), sys.byteorder))
    return column


def add_to_column(column: array[int], by: int) -> array[int]:
    """Returns each element plus `by`; no sum may be below 0 or too large for the column.

    >>> add_to_column(array("q", [0, 4]), 3)
    array('q', [3, 7])
    """
    itemsize, size = column.itemsize, len(column) * column.itemsize
    if size <= _SUM_BYTES:
        whole = int.from_bytes(column, sys.byteorder) + by * _ones(len(column), itemsize)
        return array(column.typecode, whole.to_bytes(size, sys.byteorder))
    sums, count = array(column.typecode), _SUM_BYTES // itemsize
    for first in range(0, len(column), count):
        sums += add_to_column(column[first : first + count], by)
    return sums


def select(column: Sequence[int], indices: Sequence[int]) -> array[int]:
    """Returns the entries of a column at some indices, as "q"; successive ones are copied at once.

    >>> select(array("q", [5, 6, 7, 8]), array("i", [1, 2])), select([5, 6, 7], array("i", [2, 0]))
    (array('q', [6, 7]), array('q', [7, 5]))
    """
    count = len(indices)
    if isinstance(indices, array) and count and 0 <= indices[0] == indices[-1] - count + 1:
        # No sum carries into the next entry as long as each is one more than the one before.
        behind, before = (int.from_bytes(part, sys.byteorder) for part in (indices[1:], indices[:-1]))
        one = (1).to_bytes(indices.itemsize, sys.byteorder)
        if behind - before == int.from_bytes(one * (count - 1), sys.byteorder):
            part = column[indices[0] : indices[0] + count]
            return part if isinstance(part, array) and part.typecode == "q" else array("q", part)
    return array("q", map(column.__getitem__, indices))


def subtract_column(whole: int, column: array[int]) -> array[int]:
    """Returns `whole` less each element; none of them may be larger.

    >>> subtract_column(7, array("q", [0, 4]))
    array('q', [7, 3])
    """
    itemsize, size = column.itemsize, len(column) * column.itemsize
    if size <= _SUM_BYTES:
        by_element = whole * _ones(len(column), itemsize) - int.from_bytes(column, sys.byteorder)
        return array(column.typecode, by_element.to_bytes(size, sys.byteorder))
    rests, count = array(column.typecode), _SUM_BYTES // itemsize
    for first in range(0, len(column), count):
        rests += subtract_column(whole, column[first : first + count])
    return rests


def add_at_positions(values: int, positions: int, by: int, like: array[int], count: int) -> array[int]:
    """Returns a column of `count` elements of the type of `like`: `values`, plus `by` at the positions.

    values, positions: columns as one number (`as_number`); positions has 1 at each of them.
    """
    whole = values + by * positions
    return array(like.typecode, whole.to_bytes(count * like.itemsize, sys.byteorder))


def as_number(column: array[int]) -> int:
    """Returns a column as one number: sums of such numbers are sums element by element."""
    return int.from_bytes(column, sys.byteorder)


@lru_cache(256)
def _ones(count: int, itemsize: int) -> int:
    """Returns a column of ones as one number."""
    unit = (1).to_bytes(itemsize, sys.byteorder)
    return int.from_bytes(unit * count, sys.byteorder)
