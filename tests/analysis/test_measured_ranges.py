"""A stretch of a measured run: its categories sum to its length, and the whole to the rank's times."""

from __future__ import annotations

from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.measured import MeasuredRun
from simcore.measured.summary import rank_times
from simcore.measured.vocabulary import CATEGORIES
from simcore.replay.lanes import operation_ranges
from tests.tui.pseudo_terminal import ROOT


@cache
def seed() -> MeasuredRun:
    """One rank of a measured step."""
    from simcore.sources.inputs import open_input

    run = open_input(str(ROOT / "fixtures/004_megatron_rank7_trace.txt"), None)
    assert isinstance(run, MeasuredRun)
    return run


@settings(max_examples=50)
@given(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)))
def test_the_categories_of_a_stretch_sum_to_its_length(shares: tuple[int, int]) -> None:
    first, last = (seed().length * share // 10**6 for share in sorted(shares))
    found = operation_ranges(seed()).of_class(0, first, last)
    assert sum(found) == last - first
    assert operation_ranges(seed()).of_all(first, last) == found


def test_the_whole_step_has_the_rank_s_times() -> None:
    ranges = operation_ranges(seed())
    for index, rank in enumerate(rank_times(seed())):
        assert dict(zip(CATEGORIES, ranges.of_class(index, 0, seed().length), strict=True)) == rank.ns


def pieces() -> list[tuple[int, int]]:
    """The operations of the seed, which do not overlap."""
    ops = seed().ranks[0].ops
    return list(zip(ops.start, ops.end, strict=True))


def test_the_longest_piece_has_its_category() -> None:
    found, category = operation_ranges(seed()).longest_segment(0, 0, seed().length)
    assert found.count > 3
    assert CATEGORIES[category] == "embedding"
    assert found.ns == max(rank_end - start for start, rank_end in pieces())
    assert operation_ranges(seed()).longest_segment(0, 5, 5)[0].index == -1
