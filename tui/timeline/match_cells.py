"""The matches of a search in the lanes: which cells of a lane hold one, how they look, how many there are."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import compress, groupby, islice
from operator import gt

from simcore.records import NamedTuple
from simcore.trace.lane_spans import Content
from tui.frame import ASCII, Glyphs, Line, StyledText
from tui.timeline.critical import OFF_PATH
from tui.timeline.lanes import LaneKey, SpanLane
from tui.timeline.search import Search
from tui.timeline.stretches import flag_columns

# Under a block in its own colour an underline is not seen: the block becomes its letter.
UNDERLINED, _REVERSED = " underlined", " reversed"
# Kinds whose glyphs fill a left part of the cell.
_LEFT_PARTS = {"exposed", "host", "copy"}
# Cells at the end of a span with another of its kind behind it.
_BEFORE_GAPS = "▉▖"


class _LaneMatches(NamedTuple):
    """The matches of a lane as stretches of time, ascending and disjoint."""

    content: Content
    match_count: int
    """How many spans match."""
    starts: Sequence[int]
    ends: Sequence[int]


class MatchLanes:
    """The matches of a search, by the lanes that show them; those of a lane are looked up once."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self._lanes: dict[LaneKey, _LaneMatches] = {}

    def count(self, lane: SpanLane) -> int:
        """Returns how many spans of a lane match."""
        return self._of(lane).match_count

    def match_columns(self, lane: SpanLane, edges: Sequence[int]) -> bytearray:
        """Returns for each column between two of the `edges` (ns) 1 if a part of a match is in it."""
        matches = self._of(lane)
        return flag_columns(matches.starts, matches.ends, edges)

    def _of(self, lane: SpanLane) -> _LaneMatches:
        matches = self._lanes.get(lane.key)
        if matches is None or matches.content is not lane.content:
            starts, ends = array("q"), array("q")
            parts = self.search.searched_lanes(lane)
            for part in parts:
                flags, spans = self.search.flags(part), part.spans
                starts.extend(compress(spans.start, flags))
                ends.extend(compress(spans.end, flags))
            count = len(starts)
            if len(parts) > 1:
                order = sorted(range(count), key=starts.__getitem__)
                starts = array("q", map(starts.__getitem__, order))
                ends = array("q", map(ends.__getitem__, order))
            if any(map(gt, ends, islice(starts, 1, None))):
                starts, ends = _merge_overlaps(starts, ends)
            matches = self._lanes[lane.key] = _LaneMatches(lane.content, count, starts, ends)
        return matches


def _merge_overlaps(starts: Sequence[int], ends: Sequence[int]) -> tuple[array[int], array[int]]:
    """Returns stretches, ascending by start, with those that overlap as one: transfers do."""
    merged_starts, merged_ends = array("q"), array("q")
    for start, end in zip(starts, ends, strict=True):
        if merged_ends and start <= merged_ends[-1]:
            merged_ends[-1] = max(merged_ends[-1], end)
        else:
            merged_starts.append(start)
            merged_ends.append(end)
    return merged_starts, merged_ends


class MatchMarker:
    """Marks the cells of lanes that hold a match.

    They are underlined, on the colour of their kind. Their blocks are letters as in ASCII, which say the
    kind. Names and edges keep their glyphs.
    """

    def __init__(self, glyphs: Glyphs, colour: bool) -> None:
        self._glyphs, self._colour = glyphs, colour
        self._marks: dict[tuple[str, bool], tuple[dict[str, StyledText], str]] = {}

    def mark(self, line: Line, flags: bytearray, by_majority: bool) -> Line:
        """Returns a lane's cells with those marked that have a flag. by_majority: what they show, as of a
        lane.
        """
        parts: Line = []
        at = 0
        for text, role in line:
            end, here = at + len(text), 0
            while at < end:
                # Stretches with a match and without one alternate.
                last = flags.find(not flags[at], at, end)
                last = end if last < 0 else last
                part = text[here : here + last - at]
                parts += self._mark_part(part, role, by_majority) if flags[at] else [(part, role)]
                here, at = here + last - at, last
        return parts

    def _mark_part(self, text: str, role: str, by_majority: bool) -> Line:
        if (role, by_majority) not in self._marks:
            self._marks[role, by_majority] = self._make_marks(role, by_majority)
        marks, kept_role = self._marks[role, by_majority]
        parts: Line = []
        for glyph, cells in groupby(text) if marks else ():
            letter, marked_role = marks.get(glyph, (glyph, kept_role))
            letters = letter * len(list(cells))
            if parts and parts[-1][1] == marked_role:
                parts[-1] = parts[-1][0] + letters, marked_role
            else:
                parts.append((letters, marked_role))
        return parts or [(text, kept_role)]

    def _make_marks(self, role: str, by_majority: bool) -> tuple[dict[str, StyledText], str]:
        """Returns (the letter and role of each glyph that fills cells in a role, the role of all others)."""
        glyphs, is_reversed = self._glyphs, role.endswith(_REVERSED)
        marked_role = f"{role.removesuffix(_REVERSED)}{UNDERLINED}"
        if is_reversed or " on " in role:
            # A name, or an edge.
            return {}, f"{marked_role}{_REVERSED * is_reversed}"
        own_kind = "fwd" if role == "recompute" else role if role in ASCII.fills else "exposed"
        # As parts of edges, such glyphs of other kinds are in the colour of any.
        kinds = {kind for kind in ASCII.fills if not self._colour or kind not in _LEFT_PARTS - {own_kind}}
        # Memory has glyphs of compute, too: the own kind of the lane counts, then the first one.
        first_last = [kind for kind in reversed(ASCII.fills) if kind in kinds and kind != "idle"]
        letters = {glyphs.fills[kind]: ASCII.fills[kind] for kind in (*first_last, own_kind)}
        letters[glyphs.partly] = ASCII.partly
        if not by_majority:
            letters[glyphs.busy] = ASCII.busy
        filled_role = f"{marked_role}{_REVERSED * self._colour}"
        marks = {glyph: (letter, filled_role) for glyph, letter in letters.items()}
        if role != OFF_PATH:
            # Not on the colour: the gap behind a span stays. Off the path the colour does not say the kind.
            marks |= dict.fromkeys(_BEFORE_GAPS, (ASCII.fills[own_kind], marked_role))
        return marks, marked_role
