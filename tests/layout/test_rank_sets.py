"""Sets of ranks, as JSON and the screen print them."""

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.ranks import Block, RankSet
from tests.layout.rank_text import ranks_of_text

TEXTS = [
    (range(64), "0-63"),
    ([3], "3"),
    ([0, 1], "0-1"),
    ([3, 5], "3,5"),
    ([0, 2, 4], "0+2*3"),
    ([0, 1, 8, 9, 16, 17, 24, 25], "0-1+8*4"),
    ([0, 1, 8, 9], "0-1,8-9"),
    ([0, 2, 10, 18, 26], "0,2,10+8*3"),
    ([0, 1, 2, 5, 7, 9, 10, 11], "0-2,5,7,9-11"),
    ([5, 1, 3, 2], "1-3,5"),
    ([0, 4, 8, 12, 13], "0+4*3,12-13"),
]


@pytest.mark.parametrize(("ranks", "text"), TEXTS)
def test_ranks_are_written_as_ranges_and_strides(ranks: list[int], text: str) -> None:
    assert RankSet.of(ranks).text() == text
    assert repr(RankSet.of(ranks)) == f"RankSet('{text}')"


@settings(max_examples=150)
@given(st.sets(st.integers(0, 60), min_size=1))
def test_a_rank_set_is_the_set_it_was_made_of(ranks: set[int]) -> None:
    found = RankSet.of(ranks)
    assert list(found) == ranks_of_text(found.text()) == sorted(ranks)
    assert (len(found), found.first) == (len(ranks), min(ranks))
    assert {rank for rank in range(-3, 65) if rank in found} == ranks


@settings(max_examples=60)
@given(st.integers(0, 9), st.integers(1, 5), st.integers(0, 4), st.integers(1, 6))
def test_a_block_stands_for_its_repeats(first: int, size: int, gap: int, repeats: int) -> None:
    stride = size + gap
    found = RankSet([Block(first, first + size - 1, stride, repeats)])
    ranks = [first + step * stride + rank for step in range(repeats) for rank in range(size)]
    assert list(found) == ranks
    assert len(found) == len(ranks)
    assert {rank for rank in range(60) if rank in found} == set(ranks)
    assert found == RankSet.of(ranks)


def test_sets_of_the_same_ranks_are_equal_however_they_are_written() -> None:
    one, other = RankSet([Block(0, 3)]), RankSet([Block(0, 1), Block(2, 3)])
    assert one == other
    assert hash(one) == hash(other)
    assert one != RankSet([Block(0, 2)])
    assert one != [0, 1, 2, 3]


def test_a_rank_that_is_named_twice_is_in_the_set_once() -> None:
    found = RankSet.of([3, 3, 5])
    assert (len(found), list(found), found.text()) == (2, [3, 5], "3,5")


def test_a_million_ranks_are_one_block() -> None:
    found = RankSet([Block(0, 10**6 - 1)])
    assert (len(found), 999_999 in found, 10**6 in found) == (10**6, True, False)


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        (range(64), "0-63"),
        ([5, 13, 21], "5, 13, 21"),
        (range(5, 64, 8), "5, 13 ... 61"),
        ([rank for first in range(10, 64, 16) for rank in (first, first + 1)], "10-11, 26-27 ... 58-59"),
        ([3, 5], "3,5"),
        ([7], "7"),
    ],
)
def test_a_pattern_is_said_by_its_ends(ranks: Iterable[int], words: str) -> None:
    assert RankSet.of(ranks).words() == words
