"""What the table of screen 3 is, whatever its rows are of: the one interface that the screen asks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from simcore.records import NamedTuple
from tui.listing import ListColumn, Listing

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


class Table(Listing, Protocol):
    """The lines of a run. each: whether equal ones have lines of their own. hint: what the last row says of
    the key that changes that, "" where there is nothing to take apart.
    """

    each: bool

    @property
    def hint(self) -> str: ...
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

    def learn_path(self) -> bool:
        """The figures of the critical path into the lines, where they are known; whether they are."""
        ...

    def find_path(self, cancelled: Callable[[], bool]) -> object:
        """Looks for the critical path, in a worker."""
        ...

    def place(self, line: int) -> TablePlace | None:
        """The longest span of a line; None where it takes no time in the step."""
        ...

    def origin(self, line: int, width: int) -> tuple[str, list[tuple[str, str]]]:
        """Where the figures of a line come from: a title, and lines of (text, role), `width` cells each."""
        ...

    def more(self, line: int, width: int) -> list[tuple[str, str]]:
        """What a screen with rows to spare says below that, most useful first."""
        ...


def figure(value: float, size: int) -> str:
    """A figure with three decimals, with fewer where `size` cells have no room for them."""
    for decimals in (3, 2, 1):
        text = f"{value:.{decimals}f}"
        if len(text) <= size:
            return text
    text = f"{value:.0f}"
    return text if len(text) <= size else f"{value:.0e}"


def fitting(
    columns: Sequence[tuple[str, int, bool, int]], width: int, of: Mapping[str, str]
) -> list[ListColumn]:
    """The columns of (heading, size, left, from this width on) that a screen has. of: as in `ListColumn`."""
    return [
        ListColumn(heading, size, left, of=of.get(heading, ""))
        for heading, size, left, least in columns
        if width >= least
    ]
