"""Lanes that head others: a pipeline stage, a parallel group in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simcore.records import Struct
from simcore.trace.lane_spans import Content
from simcore.units import far_apart, plural, whole_percent
from tui.frame import Line, width_of
from tui.timeline.lanes import LaneKey, LaneSource, SpanLane, busy_words
from tui.timeline.query import Query


class Group(Struct, frozen=True):
    """Lanes under one heading. path: the headings down to it. below: groups, or numbers of lanes."""

    path: tuple[str, ...]
    numbers: tuple[int, ...]
    below: tuple[Group | int, ...]


def grouped(
    source: LaneSource, numbers: Sequence[int] | None = None, depth: int = 0
) -> tuple[Group | int, ...]:
    """The lanes of a source under their headings; a heading that tells nothing apart is left out."""
    numbers = source.numbers if numbers is None else numbers
    by_heading: dict[str, list[int]] = {}
    for number in numbers:
        headings = source.of.track(number).headings
        if len(headings) <= depth:
            # Ranks of several groups have one lane: nothing here can be sorted into groups.
            return tuple(numbers)
        by_heading.setdefault(headings[depth], []).append(number)
    if len(by_heading) == 1:
        return grouped(source, numbers, depth + 1)
    items: list[Group | int] = []
    for those in by_heading.values():
        if len(those) == 1:
            items.append(those[0])
        else:
            path = source.of.track(those[0]).headings[: depth + 1]
            items.append(Group(path, tuple(those), grouped(source, those, depth + 1)))
    return tuple(items)


def all_groups(below: Sequence[Group | int]) -> Iterator[Group]:
    """Every group, each before those in it."""
    for item in below:
        if isinstance(item, Group):
            yield item
            yield from all_groups(item.below)


class GroupLane(SpanLane):
    """A lane that heads others. It shows one of them for all: the one that is sorted first.

    The sum of hundreds of ranks would take seconds; and a span under the cursor is of one rank.
    """

    stream = None

    def __init__(self, source: LaneSource, group: Group, shown: int) -> None:
        """shown: which of the group's lanes is drawn for it."""
        self._source = source
        self._group = group
        self.number = shown
        self.like = source.lane(shown)
        self._ranks = sum(source.count(number) for number in group.numbers)

    @property
    def key(self) -> LaneKey:
        return LaneKey(self._group.path)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Of the lanes below it."""
        return self._group.numbers

    @property
    def title(self) -> str:
        return self._group.path[-1]

    @property
    def whose(self) -> str:
        return ", ".join(" ".join(heading.split()) for heading in self._group.path)

    @property
    def count(self) -> str:
        """How many ranks, where lanes have their number, without the `x` of equal ones; else what its share
        is, for the lane is drawn as one of them: "" of a range, that says so itself.
        """
        if self._has_ranks_beside:
            return str(self._ranks)
        return "" if self._range("busy") else "mean"

    @property
    def _has_ranks_beside(self) -> bool:
        return self._source.of.facts.beside[0] == "x"

    @property
    def short_title(self) -> str:
        return self.title.replace("stage ", "s")

    @property
    def busy(self) -> str:
        return self.share("busy")

    def share(self, measure: str) -> str:
        """Over all of its ranks."""
        source, numbers = self._source, self._group.numbers
        if not any(order.id == measure for order in source.orders):
            return self.like.busy
        if not self._has_ranks_beside and (least_to_most := self._range(measure)):
            return least_to_most
        whole = sum(source.of.measure_ns(measure, number) * source.count(number) for number in numbers)
        return busy_words(whole, source.length * self._ranks)

    def _range(self, measure: str) -> str:
        """`24-49%`, where its ranks lie so far apart that their mean is of none of them; else ""."""
        of, length = self._source.of, self._source.length
        if not of.facts.timed:
            return ""
        numbers = self._group.numbers
        ends = far_apart(whole_percent(of.measure_ns(measure, number), length) for number in numbers)
        return "" if ends is None else f"{ends[0]}-{ends[1]}%"

    @property
    def content(self) -> Content:
        return self.like.content

    def label(self, op: int, room: int) -> str:
        return self.like.label(op, room)

    def matches(self, query: Query) -> bytes:
        return self.like.matches(query)

    def told(self, index: int | None, others: str, width: int, wide: bool) -> list[Line]:
        """What is under the cursor on the lane that is drawn, and how far all of them lie apart."""
        lines = self.like.told(index, others, width, wide)
        title = " ".join(self.like.title.split())
        lanes = len(self._group.numbers)
        among = f" in {plural(lanes, 'lane')}" if lanes != self._ranks else ""
        # Of a lane a rank the share is not that of what is drawn.
        mean = ""
        if not self._has_ranks_beside:
            mean = f", busy {apart}" if (apart := self._range("busy")) else f", mean busy {self.busy}"
        whose: Line = [(f"{self.whose}: {plural(self._ranks, 'rank')}", ""), (among + mean, "dim")]
        first, *figures = self._source.told(whose, self._group.numbers)
        # The lane that is drawn is the one that sorts first; where its name is long, ranks that stand out are
        # news before that.
        clauses = [*first[len(whose) :], (f"   drawn as {title}", "dim")]
        if mean:
            clauses = [(f", drawn as {title}", "dim"), *first[len(whose) :]]
        said = _whole(whose, [[piece] for piece in clauses], width)
        # A figure is its name, its span and its unit.
        shown = [
            _whole([], [line[index : index + 3] for index in range(0, len(line), 3)], width)
            for line in figures
        ]
        return [*lines[:2], said, *shown, *lines[2:]]


def _whole(line: Line, clauses: list[Line], width: int) -> Line:
    """A line with as many clauses as fit: half of one says something else."""
    for clause in clauses:
        if width_of([*line, *clause]) > width:
            break
        line = [*line, *clause]
    return line
