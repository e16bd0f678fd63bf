"""Figures with their units."""

from array import array
from operator import sub

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.units import (
    add_to_column,
    byte_size,
    change_percent,
    column_unit,
    differences,
    duration,
    format_number,
    percent,
    subtract_column,
    whole_percent,
)

DURATIONS = [
    (0, "0 s"),
    (1, "1 ns"),
    (999, "999 ns"),
    (1000, "1.000 us"),
    (264_017, "264.0 us"),
    (99_999, "99.999 us"),
    (1_000_000, "1.000 ms"),
    (13_973_040_880, "13.973 s"),
    (3_600 * 10**9, "3600.0 s"),
    (-950, "-950 ns"),
    (-1500, "-1.500 us"),
]


@pytest.mark.parametrize(("ns", "text"), DURATIONS)
def test_a_duration_stands_in_the_largest_unit_it_fills(ns: int, text: str) -> None:
    assert duration(ns) == text


SIZES = [
    (0, "0 B"),
    (1, "1 B"),
    (999, "999 B"),
    (1000, "1.0 kB"),
    (16_777_216, "16.8 MB"),
    (75 * 10**12, "75.0 TB"),
]


@pytest.mark.parametrize(("size", "text"), SIZES)
def test_a_size_stands_in_decimal_units(size: int, text: str) -> None:
    assert byte_size(size) == text


def test_numbers_shed_a_needless_fraction_and_nothing_else() -> None:
    assert [format_number(value) for value in (450.0, 0.5, 8, 1e20, 53.6870912)] == [
        "450",
        "0.5",
        "8",
        "1e+20",
        "53.6870912",
    ]


@pytest.mark.parametrize(
    ("largest", "unit"),
    [(0, (1, "ns")), (999, (1, "ns")), (1000, (1000, "us")), (10**6, (10**6, "ms")), (10**12, (10**9, "s"))],
)
def test_a_column_stands_in_the_largest_unit_that_its_largest_figure_fills(
    largest: int, unit: tuple[int, str]
) -> None:
    assert column_unit(largest) == unit


def test_percentages_have_one_decimal() -> None:
    assert (percent(1, 8), percent(0, 0), percent(5, 5)) == ("12.5", "0.0", "100.0")


CHANGES = [
    (200, 190, "-5.0 %"),
    (200, 250, "+25.0 %"),
    (10, 120, "+1100.0 %"),
    (7, 7, "0.0 %"),
    # Too little to show: no sign.
    (10**9, 10**9 + 1, "0.0 %"),
    (10**9, 10**9 - 1, "0.0 %"),
    (2000, 1999, "-0.1 %"),
    (10_000, 10_004, "0.0 %"),
    # Of nothing there is no share.
    (0, 5, ""),
]


@pytest.mark.parametrize(("was", "now", "text"), CHANGES)
def test_a_change_has_a_sign_where_it_shows(was: int, now: int, text: str) -> None:
    assert change_percent(was, now) == text
    assert change_percent(was, now, "%") == text.replace(" ", "")


@given(st.integers(0, 10**15), st.integers(1, 10**15))
def test_whole_percentages_are_rounded_once(part: int, whole: int) -> None:
    """Seen to fail on a rounding of the figure with one decimal: 32.4999 % and 32.5 % were one."""
    found = whole_percent(part, whole)
    assert abs(100 * part - found * whole) * 2 <= whole
    assert [whole_percent(tenths, 1000) for tenths in (324, 325, 335, 0, 1000)] == [32, 32, 34, 0, 100]
    assert whole_percent(325_307, 10**6) == 33
    assert whole_percent(part, 0) == 0


@given(st.lists(st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1)), max_size=20))
def test_differences_are_those_element_by_element(pairs: list[tuple[int, int]]) -> None:
    """Seen to fail: with the bytes of a column read as if the highest came first."""
    later, earlier = (array("q", map(pick, pairs)) for pick in (max, min))
    assert differences(later, earlier) == array("q", map(sub, later, earlier))


@given(st.lists(st.integers(0, 2**31 - 1), max_size=20), st.sampled_from("iq"), st.data())
def test_a_shifted_column_has_each_element_more_by_as_much(
    values: list[int], typecode: str, data: st.DataObject
) -> None:
    """Seen to fail: with ones of 8 B for columns of 4; with parts of a long column of 2**17 B next to ones of
    2**16.
    """
    values = values * data.draw(st.sampled_from((1, 5000)))
    most = (2**31 if typecode == "i" else 2**63) - 1
    by = data.draw(st.integers(-min(values, default=0), most - max(values, default=0)))
    column = array(typecode, values)
    assert add_to_column(column, by) == array(typecode, [value + by for value in values])
    whole = max(values, default=0)
    assert subtract_column(whole, column) == array(typecode, [whole - value for value in values])
