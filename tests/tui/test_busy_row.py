"""The sums behind the busy row are those of the segments of the accounts, at any time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from simcore.sources.simulated import NAMES
from simcore.trace.accounts import Accounts

_SEGMENTS = st.tuples(st.integers(1, 30), st.integers(0, len(NAMES.all) - 1))


@given(st.lists(_SEGMENTS, max_size=20), st.integers(0, 700))
def test_they_are_the_compute_until_then(segments: list[tuple[int, int]], time_ns: int) -> None:
    accounts, reached, expected = Accounts(NAMES), 0, 0
    accounts.edge.append(0)
    for length, account in segments:
        accounts.book(reached + length, reached + length, account, -1)
        if account < NAMES.first_exposed:
            expected += max(min(reached + length, time_ns) - reached, 0)
        reached += length
    assert accounts.computed_until()(time_ns) == expected
