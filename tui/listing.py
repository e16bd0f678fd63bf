"""What a table on a screen is, whatever its rows are of: the interface that the keys of tables ask."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Protocol

from simcore.records import NamedTuple


class ListColumn(NamedTuple):
    """size: in cells. left: whether its texts stand at its left end. short: the heading where a screen has no
    room for it. ends: whether what is too long is cut in its middle, as texts differ at their ends. of: what
    its figures are of (`a rank`), said in the rule under the heading; "" where the heading says it.
    """

    heading: str
    size: int
    left: bool
    short: str = ""
    ends: bool = False
    of: str = ""

    @property
    def title(self) -> str:
        """What stands over it."""
        return self.short or self.heading


class Listing(Protocol):
    """Lines in an order, those that are left by a filter. A line is named by its place from the top.

    key, descending: what it is sorted by, "" for the order it opens in. typed: the filter, "" without one.
    """

    key: str
    descending: bool
    typed: str

    @property
    def lines(self) -> Sequence[object]:
        """The lines, each made when it is asked for."""

    @property
    def sorted_by(self) -> Mapping[str, tuple[str, bool]]:
        """The key that a column sorts by, and whether its largest comes first; others do not sort."""

    def columns_for(self, width: int) -> list[ListColumn]:
        """The columns that fit a screen of this width."""
        ...

    def texts(self, line: int) -> dict[str, str]:
        """The texts of a line, by heading."""
        ...

    def count_text(self) -> str:
        """How many rows there are."""
        ...

    def left(self) -> str:
        """How many of them the filter leaves."""
        ...

    def order(self) -> tuple[str, str]:
        """The order that it opens in: in words, and in fewer."""
        ...

    def legend(self, columns: Sequence[ListColumn], short: bool) -> str:
        """What a heading means that does not say it."""
        ...

    def sort(self, key: str, descending: bool) -> None:
        """Another order; "" for the first one."""

    def cannot_sort(self, heading: str) -> str:
        """Why a column does not sort now, "" where it does."""
        ...

    def filter(self, typed: str) -> None:
        """Only what holds every word of `typed`."""

    def find(self, typed: str, line: int, direction: int) -> int | None:
        """The first line of what holds every word of `typed`, from `line` on (1) or back (-1), and round."""
        ...

    def inside(self, typed: str, line: int) -> str:
        """Which row of the group of a line has what was typed, where the group's own words have not."""
        ...

    def no_match(self, typed: str) -> str:
        """That no line has these words; without any, why there is no line at all."""
        ...

    def mark(self, line: int) -> Hashable:
        """What a line is of, to be found again in another order or table of the run."""
        ...

    def line_of(self, mark: Hashable) -> int:
        """The line of that now, or what stands for it; 0 where it has none."""
        ...

    def first_line(self, line: int) -> int:
        """The line with the name of what a line is of."""
        ...


def find_from(lines: Sequence[int], targets: Collection[int], line: int, direction: int) -> int | None:
    """The first place in `lines` of one that is wanted, from `line` on (1) or back (-1), and round."""
    matching = [index for index, at in enumerate(lines) if at in targets]
    if direction < 0:
        matching.reverse()
    ahead = (index for index in matching if (index - line) * direction >= 0)
    return next(ahead, matching[0] if matching else None)
