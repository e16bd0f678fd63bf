"""Rows of the list of lanes, and what a list is remembered by."""

from __future__ import annotations

from typing import NamedTuple

from tui.timeline.lanes import LaneSource
from tui.timeline.spans import LaneKey, SpanLane


class Row(NamedTuple):
    """A lane in the list. depth: under how many others. sign: `+` closed, `-` open, blank if neither."""

    lane: SpanLane
    key: LaneKey
    depth: int
    sign: str
    pinned: bool = False


class Memory(NamedTuple):
    """An arrangement to come back to. key: the lane with the cursor. top: how far the list is scrolled."""

    state: dict[str, object]
    key: LaneKey
    top: int


def ranks_of(source: LaneSource) -> list[tuple[int, int, tuple[str, ...]]]:
    """What two runs must share for an arrangement of one to mean the same in the other."""
    return [(number, source.count(number), source.of.headings(number)) for number in source.numbers]
