"""Figures and lines are found whatever words stand around them."""

from __future__ import annotations

import doctest

import pytest

from tests import says


def test_the_figures_of_a_text_are_found_as_its_example_shows() -> None:
    failed, tried = doctest.testmod(says)
    assert (failed, tried) == (0, 1)


def test_a_line_is_found_by_its_parts_in_their_order_and_only_where_it_is_the_one() -> None:
    lines = ["rank 1 waits 2.5 ms for rank 12", "rank 12 waits 12.5 ms for rank 1"]
    assert says.said(lines, "rank 1", "2.5 ms") == lines[0]
    assert says.said(lines, "rank 12", "rank 1") == lines[1]
    for parts in (("rank 1", "5 ms"), ("rank 1",), ("rank 3",)):
        with pytest.raises(AssertionError):
            says.said(lines, *parts)
