"""Lanes that head others, such as a pipeline stage or a parallel group in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simcore.records import Struct
from simcore.trace.lane_spans import Content
from simcore.units import plural, range_if_far_apart, whole_percent
from tui.frame import Line, width_of
from tui.timeline.lanes import LaneKey, LaneSource, SpanLane, format_share
from tui.timeline.query import Query


class Group(Struct, frozen=True):
    """Lanes under one heading."""

    path: tuple[str, ...]
    """The headings down to it."""
    track_ids: tuple[int, ...]
    children: tuple[Group | int, ...]
    """Groups, or ids of tracks."""


def group_tracks(
    source: LaneSource, track_ids: Sequence[int] | None = None, depth: int = 0
) -> tuple[Group | int, ...]:
    """Returns the lanes of a source under their headings; a heading that all lanes share is left out."""
    track_ids = source.track_ids if track_ids is None else track_ids
    by_heading: dict[str, list[int]] = {}
    for track_id in track_ids:
        headings = source.of.track(track_id).headings
        if len(headings) <= depth:
            # Ranks of several groups share one lane: nothing here can be sorted into groups.
            return tuple(track_ids)
        by_heading.setdefault(headings[depth], []).append(track_id)
    if len(by_heading) == 1:
        return group_tracks(source, track_ids, depth + 1)
    items: list[Group | int] = []
    for members in by_heading.values():
        if len(members) == 1:
            items.append(members[0])
        else:
            path = source.of.track(members[0]).headings[: depth + 1]
            items.append(Group(path, tuple(members), group_tracks(source, members, depth + 1)))
    return tuple(items)


def all_groups(items: Sequence[Group | int]) -> Iterator[Group]:
    """Yields every group, each before those in it."""
    for item in items:
        if isinstance(item, Group):
            yield item
            yield from all_groups(item.children)


class GroupLane(SpanLane):
    """A lane that heads others and is drawn as one of them: the one that is sorted first.

    The sum of hundreds of ranks would take seconds, and a span under the cursor is of one rank.
    """

    stream = None

    def __init__(self, source: LaneSource, group: Group, drawn_id: int) -> None:
        """Makes the lane of a group. drawn_id: which of the group's lanes is drawn for it."""
        self._source = source
        self._group = group
        self.track_id = drawn_id
        self.drawn_lane = source.lane(drawn_id)
        self._rank_count = sum(source.count_ranks(track_id) for track_id in group.track_ids)

    @property
    def key(self) -> LaneKey:
        return LaneKey(self._group.path)

    @property
    def track_ids(self) -> tuple[int, ...]:
        """The tracks of the lanes below it."""
        return self._group.track_ids

    @property
    def title(self) -> str:
        return self._group.path[-1]

    @property
    def whose(self) -> str:
        return ", ".join(" ".join(heading.split()) for heading in self._group.path)

    @property
    def count(self) -> str:
        """How many ranks, without the `x` of equal ones, where lanes show their count; else "mean", because
        the lane is drawn as one of them, or "" where its share is a range, which says so itself.
        """
        if self._shows_rank_count:
            return str(self._rank_count)
        return "" if self._share_range("busy") else "mean"

    @property
    def _shows_rank_count(self) -> bool:
        return self._source.of.facts.note_heading[0] == "x"

    @property
    def short_title(self) -> str:
        return self.title.replace("stage ", "s")

    @property
    def busy(self) -> str:
        return self.share("busy")

    def share(self, measure: str) -> str:
        """Returns the share over all of its ranks."""
        source, track_ids = self._source, self._group.track_ids
        if not any(order.id == measure for order in source.orders):
            return self.drawn_lane.busy
        if not self._shows_rank_count and (least_to_most := self._share_range(measure)):
            return least_to_most
        total_ns = sum(
            source.of.measure_ns(measure, track_id) * source.count_ranks(track_id) for track_id in track_ids
        )
        return format_share(total_ns, source.length * self._rank_count)

    def _share_range(self, measure: str) -> str:
        """Returns `24-49%`, where its ranks differ so much that their mean is the share of none of them; else
        "".
        """
        of, length = self._source.of, self._source.length
        if not of.facts.timed:
            return ""
        track_ids = self._group.track_ids
        ends = range_if_far_apart(
            whole_percent(of.measure_ns(measure, track_id), length) for track_id in track_ids
        )
        return "" if ends is None else f"{ends[0]}-{ends[1]}%"

    @property
    def content(self) -> Content:
        return self.drawn_lane.content

    def label(self, op: int, room: int) -> str:
        return self.drawn_lane.label(op, room)

    def matches(self, query: Query) -> bytes:
        return self.drawn_lane.matches(query)

    def detail_lines(self, index: int | None, others: str, width: int, wide: bool) -> list[Line]:
        """Returns what is under the cursor on the lane that is drawn, and how much all lanes differ."""
        lines = self.drawn_lane.detail_lines(index, others, width, wide)
        title = " ".join(self.drawn_lane.title.split())
        lanes = len(self._group.track_ids)
        among = f" in {plural(lanes, 'lane')}" if lanes != self._rank_count else ""
        # In a lane of one rank the share is not that of what is drawn.
        mean = ""
        if not self._shows_rank_count:
            mean = f", busy {apart}" if (apart := self._share_range("busy")) else f", mean busy {self.busy}"
        heading: Line = [(f"{self.whose}: {plural(self._rank_count, 'rank')}", ""), (among + mean, "dim")]
        first, *figures = self._source.heading_lines(heading, self._group.track_ids)
        # The drawn lane is the one that sorts first; where its name is long, ranks that stand out come before
        # it.
        clauses = [*first[len(heading) :], (f"   drawn as {title}", "dim")]
        if mean:
            clauses = [(f", drawn as {title}", "dim"), *first[len(heading) :]]
        first_line = _append_clauses(heading, [[clause] for clause in clauses], width)
        # A figure is its name, its range and its unit.
        figure_lines = [
            _append_clauses([], [line[index : index + 3] for index in range(0, len(line), 3)], width)
            for line in figures
        ]
        return [*lines[:2], first_line, *figure_lines, *lines[2:]]


def _append_clauses(line: Line, clauses: list[Line], width: int) -> Line:
    """Returns a line with as many clauses as fit complete: half of one says something else."""
    for clause in clauses:
        if width_of([*line, *clause]) > width:
            break
        line = [*line, *clause]
    return line
