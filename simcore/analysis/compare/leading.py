"""Which changes of the accounts go with the difference of two steps, and which go against it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from simcore.analysis.compare.paths import Change

# One that goes against it is worth a word from this part of what goes with it: 1 / 2.
_WORTH_SAYING = 2


class Leading(NamedTuple):
    """most: the largest change that has the sign of B - A. against: the largest of the other sign, None where
    it is less than half of that.
    """

    most: Change
    against: Change | None

    def words(self, figure: Callable[[Change], str]) -> str:
        """`exposed tp +20.833 ms, though exposed dp -30.550 ms, on the mean rank`. figure: of a change."""
        most, against = self
        though = "" if against is None else f", though {against.name} {figure(against)},"
        return f"{most.name} {figure(most)}{though} on the mean rank"


def leading_change(changes: Iterable[Change], difference_ns: int) -> Leading:
    """What explains that B is `difference_ns` longer. Where the steps are equal, or no change has that sign
    (means are rounded), the largest change is most.
    """
    ordered = sorted(changes, key=lambda one: -abs(one.ns))
    most = next((one for one in ordered if one.ns * difference_ns > 0), ordered[0])
    against = next((one for one in ordered if one.ns * most.ns < 0), None)
    matters = against is not None and _WORTH_SAYING * abs(against.ns) >= abs(most.ns)
    return Leading(most, against if matters else None)
