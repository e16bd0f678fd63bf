"""The rows of the list of lanes: what is opened, pinned, hidden and left out, as rows in their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simcore.run.lanes import Order
from tui.timeline.groups import Group, GroupLane
from tui.timeline.lanes import LaneSource
from tui.timeline.rows import Row
from tui.timeline.spans import ALL, OTHERS, LaneKey


class Listing:
    """Which lanes are shown, and how. order: what they are sorted by.

    _open, _unfolded: groups whose lanes, lanes whose streams are shown. _apart: by group of ranks, the
    ranks that have lanes of their own. _pinned, _hidden: in the order in which they became so. _kept:
    the groups of ranks that the filter leaves, None without one.
    """

    source: LaneSource
    order: Order
    _groups: dict[LaneKey, Group]
    _group_lanes: dict[LaneKey, GroupLane]
    _open: set[LaneKey]
    _unfolded: set[LaneKey]
    _apart: dict[int, dict[int, None]]
    _pinned: dict[LaneKey, None]
    _hidden: dict[LaneKey, None]
    _kept: set[int] | None

    def _number_of(self, key: LaneKey) -> int:
        """The group of ranks that a lane belongs to."""
        found = self.source.of.number_of(key.rank) if key.rank >= 0 else key.number
        return key.number if found is None else found

    def _has_others(self, number: int) -> bool:
        """Whether some ranks of a group have lanes of their own, and some have not."""
        return 0 < len(self._apart.get(number, ())) < self.source.count(number)

    def _pinned_rows(self, key: LaneKey) -> Iterator[Row]:
        if key.path:
            found: Iterator[Row] = self._group_rows(self._groups[key], 0) if key in self._groups else iter(())
        elif key.stream is not None:
            lanes = self.source.streams(self._number_of(key), key.rank)
            found = (Row(lane, lane.key, 0, " ") for lane in lanes if lane.key == key)
        elif key.rank == ALL:
            found = self._ranks_rows(key.number, 0)
        else:
            found = self._single_rows(self._number_of(key), key.rank, 0)
        return (row._replace(pinned=True) for row in found)

    def _below(self, children: Sequence[Group | int], depth: int) -> Iterator[Row]:
        order = self.order
        if order.id:
            children = sorted(children, key=lambda one: self._measure(order, one))
        for one in children:
            key = LaneKey(one.path) if isinstance(one, Group) else LaneKey((), one)
            numbers = one.numbers if isinstance(one, Group) else (one,)
            if key in self._pinned or key in self._hidden:
                continue
            if self._kept is not None and self._kept.isdisjoint(numbers):
                continue
            if isinstance(one, Group):
                yield from self._group_rows(one, depth)
            else:
                yield from self._ranks_rows(one, depth)

    def _measure(self, order: Order, one: Group | int) -> int:
        """A group goes where the first of its lanes does."""
        if not order.id:
            return 0
        numbers = one.numbers if isinstance(one, Group) else (one,)
        return min(self.source.measure(order, number) for number in numbers)

    def _group_rows(self, group: Group, depth: int) -> Iterator[Row]:
        key = LaneKey(group.path)
        if key not in self._group_lanes:
            shown = min(group.numbers, key=lambda number: self._measure(self.order, number))
            self._group_lanes[key] = GroupLane(self.source, group, shown)
        opened = key in self._open
        yield Row(self._group_lanes[key], key, depth, "-" if opened else "+")
        if opened:
            yield from self._below(group.below, depth + 1)

    def _ranks_rows(self, number: int, depth: int) -> Iterator[Row]:
        """The lane of equal ranks, its streams, and those of its ranks that are shown apart."""
        lane, apart = self.source.lane(number), self._apart.get(number, {})
        unfolded = lane.key in self._unfolded
        yield Row(lane, lane.key, depth, "-" if unfolded or apart else "+")
        if unfolded:
            yield from self._stream_rows(number, ALL, depth)
        if apart:
            for rank in [*sorted(apart), OTHERS]:
                if rank != OTHERS or self._has_others(number):
                    key = self.source.lane(number, rank).key
                    if key not in self._pinned and key not in self._hidden:
                        yield from self._single_rows(number, rank, depth + 1)

    def _single_rows(self, number: int, rank: int, depth: int) -> Iterator[Row]:
        left = self.source.count(number) - len(self._apart.get(number, ())) if rank == OTHERS else 0
        lane = self.source.lane(number, rank, left)
        key = lane.key
        unfolded = key in self._unfolded
        yield Row(lane, key, depth, "-" if unfolded else "+")
        if unfolded:
            yield from self._stream_rows(number, rank, depth)

    def _stream_rows(self, number: int, rank: int, depth: int) -> Iterator[Row]:
        for lane in self.source.streams(number, rank):
            if lane.key not in self._pinned and lane.key not in self._hidden:
                yield Row(lane, lane.key, depth + 1, " ")
