"""The differences of two runs as plain values: an account in A and in B, and the parts that explain B - A."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from simcore.records import NamedTuple
from simcore.units import signed_duration

# All compute as one account, whatever its phase.
BUSY = "compute"


class AccountChange(NamedTuple):
    """The value of an account in A and in B, ns."""

    name: str
    a_ns: int
    b_ns: int

    @property
    def ns(self) -> int:
        """The difference B - A, ns."""
        return self.b_ns - self.a_ns


class SpanPair(NamedTuple):
    """An op, or a pass, that both runs have, in ns of each step."""

    a_start_ns: int
    """When it starts in A."""
    a_end_ns: int
    """When it ends in A."""
    b_start_ns: int
    """When it starts in B."""


class SpanPairs(Sequence[SpanPair]):
    """Span pairs in columns, by their start in A: those of 500,000 ops take 12 MB, not 80."""

    __slots__ = ("_columns",)

    def __init__(self, pairs: Iterable[SpanPair]) -> None:
        self._columns = [array("q", column) for column in zip(*sorted(pairs), strict=True)]

    def __len__(self) -> int:
        return len(self._columns[0]) if self._columns else 0

    def __iter__(self) -> Iterator[SpanPair]:
        return map(SpanPair, *self._columns) if self._columns else iter(())

    @overload
    def __getitem__(self, index: int) -> SpanPair: ...

    @overload
    def __getitem__(self, index: slice) -> list[SpanPair]: ...

    def __getitem__(self, index: int | slice) -> SpanPair | list[SpanPair]:
        if isinstance(index, slice):
            return [*self][index]
        return SpanPair(*[column[index] for column in self._columns])


class AccountPart(NamedTuple):
    """The part of B - A that one account of PART_ACCOUNTS explains, ns."""

    account: str
    ns: int

    @property
    def words(self) -> str:
        """The part in words: `exposed tp +41.416 ms`."""
        return f"{self.account} {signed_duration(self.ns)}"


# A part is named with the largest one from this share of it on: 1 / 2.
_LARGE_PART = 2
# Parts below the largest over this are not worth a figure.
SMALL_PART = 1000
_MOST_NAMED = 3
# The most parts of a list of them.
_MOST_LISTED = 4


class MainCause(NamedTuple):
    """The parts that explain why B is longer, or shorter."""

    most: AccountPart
    """The largest part that has the sign of B - A."""
    others: tuple[AccountPart, ...]
    """Other parts of that sign, each at least half as large."""
    against: AccountPart | None
    """The largest part of the other sign; None where it is less than half of `most`."""
    rest_ns: int = 0
    """All other parts together, ns."""

    @property
    def named_parts(self) -> tuple[AccountPart, ...]:
        """The parts that `words` names."""
        return (self.most, *self.others, *(() if self.against is None else (self.against,)))

    @property
    def words(self) -> str:
        """The parts in words: `exposed tp +41.416 ms, though exposed dp -30.550 ms, the rest +2.100 ms`. They
        sum to the difference.
        """
        with_it = [part.words for part in (self.most, *self.others)]
        listed = " and ".join([", ".join(with_it[:-1]), with_it[-1]] if with_it[1:] else with_it)
        listed += "" if self.against is None else f", though {self.against.words}"
        return listed + _rest_words(self.rest_ns, self.named_parts)


def format_parts(parts: Iterable[AccountPart]) -> str:
    """Returns the largest parts in words, and the rest of them: `compute -4.526 s, the rest +2.413 s`. They
    sum to the difference.
    """
    ordered = sorted(parts, key=lambda part: -abs(part.ns))
    listed_parts = [
        part for part in ordered[:_MOST_LISTED] if abs(part.ns) * SMALL_PART >= abs(ordered[0].ns)
    ]
    rest_ns = sum(part.ns for part in ordered[len(listed_parts) :])
    return ", ".join([part.words for part in listed_parts]) + _rest_words(rest_ns, listed_parts)


def _rest_words(rest_ns: int, listed_parts: Iterable[AccountPart]) -> str:
    """Returns `, the rest +2.413 s`; "" where that is too small for a figure."""
    least_ns = max((abs(part.ns) for part in listed_parts), default=0) / SMALL_PART
    return f", the rest {signed_duration(rest_ns)}" if rest_ns and abs(rest_ns) >= least_ns else ""


def find_main_cause(parts: Iterable[AccountPart], difference_ns: int) -> MainCause:
    """Returns the parts that explain why B is `difference_ns` longer.

    Where the steps are equal, or no part has the sign of the difference (means are rounded), the largest part
    is `most`. Raises `ValueError` without parts.
    """
    ordered = sorted(parts, key=lambda part: -abs(part.ns))
    if not ordered:
        raise ValueError("found no parts")
    most = next((part for part in ordered if part.ns * difference_ns > 0), ordered[0])
    large_parts = [part for part in ordered if part.ns and _LARGE_PART * abs(part.ns) >= abs(most.ns)]
    same_sign = [part for part in large_parts if part.ns * most.ns > 0 and part is not most]
    against = next((part for part in large_parts if part.ns * most.ns < 0), None)
    leading = MainCause(most, tuple(same_sign[: _MOST_NAMED - 1]), against)
    rest_ns = sum(part.ns for part in ordered) - sum(part.ns for part in leading.named_parts)
    return leading._replace(rest_ns=rest_ns)
