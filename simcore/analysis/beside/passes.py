"""The forward and backward passes of a rank in two runs: which is which."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from simcore.run.track import TimedPass


class MatchedPass(NamedTuple):
    """The same pass in A and in B."""

    a: TimedPass
    b: TimedPass


def matched_passes(a: Iterable[TimedPass], b: Iterable[TimedPass]) -> list[MatchedPass]:
    """The passes that both have: of one direction, micro-batch and part; in the order of A."""
    of_b = {one[:3]: one for one in b}
    return [MatchedPass(one, of_b[one[:3]]) for one in a if one[:3] in of_b]
