"""Which parts of the difference of two steps go with it, and which against it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from simcore.analysis.compare.parts import Part

# Beside what explains most, a part is worth a word from this share of it on: 1 / 2.
_WORTH_SAYING = 2
_MOST_SAID = 3


class Leading(NamedTuple):
    """What explains that B is longer, or shorter.

    most: the largest part that has the sign of B - A. beside: others of that sign, at least half as large.
    against: the largest of the other sign, None where it is less than half of `most`.
    """

    most: Part
    beside: tuple[Part, ...]
    against: Part | None

    @property
    def said(self) -> tuple[Part, ...]:
        """The parts that `words` names."""
        return (self.most, *self.beside, *(() if self.against is None else (self.against,)))

    @property
    def words(self) -> str:
        """`exposed tp +41.416 ms, though exposed dp -30.550 ms`."""
        with_it = [part.words for part in (self.most, *self.beside)]
        listed = " and ".join([", ".join(with_it[:-1]), with_it[-1]] if with_it[1:] else with_it)
        return listed + ("" if self.against is None else f", though {self.against.words}")


def leading_parts(parts: Iterable[Part], difference_ns: int) -> Leading:
    """Returns what explains that B is `difference_ns` longer. Where the steps are equal, or no part has that
    sign (means are rounded), the largest part is most. Raises `ValueError` without parts.
    """
    ordered = sorted(parts, key=lambda part: -abs(part.ns))
    if not ordered:
        raise ValueError("found no parts")
    most = next((part for part in ordered if part.ns * difference_ns > 0), ordered[0])
    worth = [part for part in ordered if part.ns and _WORTH_SAYING * abs(part.ns) >= abs(most.ns)]
    beside = [part for part in worth if part.ns * most.ns > 0 and part is not most]
    against = next((part for part in worth if part.ns * most.ns < 0), None)
    return Leading(most, tuple(beside[: _MOST_SAID - 1]), against)
