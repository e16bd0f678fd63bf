"""What the table of screen 3 is, whatever its rows are of: the one interface that the screen asks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import NamedTuple, Protocol


class Column(NamedTuple):
    """size: in cells. left: whether its texts stand at its left end. short: the heading where a screen has no
    room for it. ends: whether what is too long is cut in its middle, as texts differ at their ends.
    """

    heading: str
    size: int
    left: bool
    short: str = ""
    ends: bool = False

    @property
    def title(self) -> str:
        """What stands over it."""
        return self.short or self.heading


# Headings are abbreviated on screens narrower than that.
SPELLED_FROM = 100


class TablePlace(NamedTuple):
    """A stretch of the timeline, ns. number: of the class of ranks, or the rank's index. stream: whose lane
    it is on, None for the ranks' own.
    """

    number: int
    start_ns: int
    end_ns: int
    stream: str | None = None


class Table(Protocol):
    """Lines in an order, those that are left by a filter. A line is named by its place from the top.

    key, descending: what it is sorted by, "" for the order it opens in. typed: the filter, "" without one.
    each: whether equal ones have lines of their own. hint: what the last row says of the key that changes
    that, "" where there is nothing to take apart.
    """

    key: str
    descending: bool
    typed: str
    each: bool

    @property
    def hint(self) -> str: ...
    @property
    def lines(self) -> Sequence[object]:
        """The lines, each made when it is asked for."""

    @property
    def sorted_by(self) -> Mapping[str, tuple[str, bool]]:
        """The key that a column sorts by, and whether its largest comes first; others do not sort."""

    @property
    def of_path(self) -> Collection[str]:
        """The keys that only the critical path knows."""

    @property
    def subject(self) -> object:
        """What the critical path is looked for of."""

    def apart(self, each: bool) -> Table:
        """The table of the same run, equal ones together or each with a line of its own."""
        ...

    @property
    def can_regroup(self) -> bool:
        """Whether `regrouped` has another table."""
        ...

    def regrouped(self) -> Table | None:
        """The table of the same run grouped by the next thing that it can be by; None where there is none."""
        ...

    def columns_for(self, width: int) -> list[Column]:
        """The columns that fit a screen of this width."""
        ...

    def texts(self, line: int) -> dict[str, str]:
        """The texts of a line, by heading."""
        ...

    def counted(self) -> str:
        """How many rows there are."""
        ...

    def left(self) -> str:
        """How many of them the filter leaves."""
        ...

    def order(self) -> tuple[str, str]:
        """The order that it opens in: in words, and in fewer."""
        ...

    def legend(self, columns: Sequence[Column], short: bool) -> str:
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

    def learn_path(self) -> bool:
        """The figures of the critical path into the lines, where they are known; whether they are."""
        ...

    def find_path(self, cancelled: Callable[[], bool]) -> object:
        """Looks for the critical path, in a worker."""
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

    def place(self, line: int) -> TablePlace | None:
        """The longest span of a line; None where it takes no time in the step."""
        ...

    def origin(self, line: int, width: int) -> tuple[str, list[tuple[str, str]]]:
        """Where the figures of a line come from: a title, and lines of (text, role), `width` cells each."""
        ...


def found_from(lines: Sequence[int], wanted: Collection[int], line: int, direction: int) -> int | None:
    """The first place in `lines` of one that is wanted, from `line` on (1) or back (-1), and round."""
    found = [place for place, at in enumerate(lines) if at in wanted]
    if direction < 0:
        found.reverse()
    ahead = (place for place in found if (place - line) * direction >= 0)
    return next(ahead, found[0] if found else None)


def figure(value: float, size: int) -> str:
    """A figure with three decimals, with fewer where `size` cells have no room for them."""
    for decimals in (3, 2, 1):
        text = f"{value:.{decimals}f}"
        if len(text) <= size:
            return text
    text = f"{value:.0f}"
    return text if len(text) <= size else f"{value:.0e}"


def fitting(columns: Sequence[tuple[str, int, bool, int]], width: int) -> list[Column]:
    """The columns of (heading, size, left, from this width on) that a screen has."""
    return [Column(heading, size, left) for heading, size, left, least in columns if width >= least]
