"""A table on a screen, whatever its rows are of: the interface that the keys of tables use."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, Protocol

from simcore.records import NamedTuple


class ListColumn(NamedTuple):
    """A column of a table."""

    heading: str
    size: int
    """Its cells."""
    left: bool
    """Whether its texts are left-aligned."""
    short: str = ""
    """The heading where a screen has no room for the full one."""
    ends: bool = False
    """Whether a long text is truncated in its middle, because texts differ at their ends."""
    of: str = ""
    """What its figures are of (`a rank`), shown in the rule under the heading; "" where the heading
    says it.
    """

    @property
    def title(self) -> str:
        """Its heading as it is shown."""
        return self.short or self.heading


class Listing(Protocol):
    """Lines in an order, those that a filter leaves. A line is given by its index from the top."""

    key: str
    """What it is sorted by, "" for the order it opens in."""
    descending: bool
    typed: str
    """The filter, "" without one."""
    lines: Sequence[Any]
    """The lines, each made on demand."""

    @property
    def sorted_by(self) -> Mapping[str, tuple[str, bool]]:
        """The key that a column sorts by, and whether its largest comes first; others do not sort."""

    def columns_for(self, width: int) -> list[ListColumn]:
        """Returns the columns that fit a screen of this width."""
        ...

    def texts(self, line: int) -> dict[str, str]:
        """Returns the texts of a line, by heading."""
        ...

    def count_text(self) -> str:
        """Returns how many rows there are."""
        ...

    def left(self) -> str:
        """Returns how many of them the filter leaves."""
        ...

    def order(self) -> tuple[str, str]:
        """Returns the order that it opens in: in words, and in fewer."""
        ...

    def legend(self, columns: Sequence[ListColumn], short: bool) -> str:
        """Returns the meaning of headings that need one."""
        ...

    def sort(self, key: str, descending: bool) -> None:
        """Sorts the lines by a key; "" for the first order."""

    def cannot_sort(self, heading: str) -> str:
        """Returns why a column does not sort now, "" where it does."""
        ...

    def filter(self, typed: str) -> None:
        """Shows only lines that contain every word of `typed`."""

    def find(self, typed: str, line: int, direction: int) -> int | None:
        """Returns the first line that contains every word of `typed`, from `line` on (1) or back (-1),
        wrapping around.
        """
        ...

    def inside(self, typed: str, line: int) -> str:
        """Returns which row of the group of a line matches, where the group's own words do not; "" where
        lines have no groups.
        """
        return ""

    def no_match(self, typed: str) -> str:
        """Returns that no line has these words; without any, why there is no line at all."""
        ...

    def mark(self, line: int) -> Hashable:
        """Returns a mark of what a line is of, to find it again in another order or table of the run."""
        ...

    def line_of(self, mark: Hashable) -> int:
        """Returns the line of a mark now, or what stands for it; 0 where it has none."""
        return next((line for line in range(len(self.lines)) if self.mark(line) == mark), 0)

    def first_line(self, line: int) -> int:
        """Returns the line with the name of what a line is of: itself, where each has a name."""
        return line


def find_from(lines: Sequence[int], targets: Collection[int], line: int, direction: int) -> int | None:
    """Returns the first index in `lines` of a target, from `line` on (1) or back (-1), wrapping around."""
    matching = [index for index, at in enumerate(lines) if at in targets]
    if direction < 0:
        matching.reverse()
    ahead = (index for index in matching if (index - line) * direction >= 0)
    return next(ahead, matching[0] if matching else None)
