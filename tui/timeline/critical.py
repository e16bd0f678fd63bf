"""The critical path in the lanes: which cells of a lane hold a part of it, and how they look."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from tui.frame import Glyphs, Line
from tui.timeline.lanes import SpanLane

# Cells that are not on the path, and those on it in which mostly something else, or nothing, is done.
OFF_PATH, TRACE = "bubble", "bright"
_NOT_WORK = frozenset({"bubble", "wait", "idle", ""})
# Without colour: instead of a fill its letter in capitals, and instead of what is no work this.
_ANY = "*"
_LETTERS = {
    "fwd": "F", "bwd": "B", "wg": "W", "opt": "O", "exposed": "X", "host": "H",
    "kernel": "K", "copy": "C",
}  # fmt: skip
_NAME_ENDS = "<>"


class PathLanes:
    """Segments of the path as columns, in the order of time, and by the lanes that show them.

    Each segment has a start and an end, ns, the number of the lane that it is shown in, its rank,
    and its stream, "" where only the lane of all streams shows it.
    """

    def __init__(self, segments: Iterable[tuple[int, int, int, int, str]]) -> None:
        self._start, self._end, self._rank = array("q"), array("q"), array("q")
        self._stream: list[str] = []
        self._indices_by_track: dict[int, array[int]] = {}
        for index, (start, end, track_id, rank, stream) in enumerate(segments):
            self._start.append(start)
            self._end.append(end)
            self._rank.append(rank)
            self._stream.append(stream)
            self._indices_by_track.setdefault(track_id, array("q")).append(index)
        self._lanes: dict[tuple[tuple[int, ...], int, str | None], tuple[array[int], array[int]]] = {}

    def stretches(self, lane: SpanLane) -> tuple[array[int], array[int]]:
        """(starts, ends) of the times in which a lane is on the path, ascending and apart; made once a lane.

        The lane of one rank has what the path says of this rank; a heading has all that is below it.
        """
        key = lane.track_ids, lane.key.rank, lane.stream
        if key not in self._lanes:
            self._lanes[key] = self._merge_stretches(*key)
        return self._lanes[key]

    def _merge_stretches(
        self, track_ids: tuple[int, ...], rank: int, stream: str | None
    ) -> tuple[array[int], array[int]]:
        indices = sorted(
            index for track_id in track_ids for index in self._indices_by_track.get(track_id, ())
        )
        starts, ends = array("q"), array("q")
        for index in indices:
            if (rank >= 0 and self._rank[index] != rank) or (stream and self._stream[index] != stream):
                continue
            if ends and ends[-1] == self._start[index]:
                ends[-1] = self._end[index]
            else:
                starts.append(self._start[index])
                ends.append(self._end[index])
        return starts, ends

    def path_columns(self, lane: SpanLane, edges: Sequence[int]) -> bytearray:
        """For each column between two of the `edges` (ns) 1 if a part of the path is in the lane there."""
        starts, ends = self.stretches(lane)
        flags = bytearray(len(edges) - 1)
        first, last = bisect_right(ends, edges[0]), bisect_left(starts, edges[-1])
        if first == last:
            return flags
        if last - first < len(flags):
            for index in range(first, last):
                left = max(bisect_right(edges, starts[index]) - 1, 0)
                right = max(min(bisect_left(edges, ends[index]), len(flags)), left + 1)
                # More columns than nanoseconds: columns of one instant look alike.
                left = bisect_left(edges, edges[left])
                flags[left:right] = b"\1" * (right - left)
            return flags
        # More segments than columns: those of a column are not gone through.
        for column in range(len(flags)):
            at = bisect_right(ends, edges[column], first, last)
            flags[column] = at < last and starts[at] < edges[column + 1]
        return flags


def mark_fills(
    row_cells: list[tuple[str, str]], flags: bytearray, covers_all: bool, glyphs: Glyphs, letters: bool
) -> None:
    """Change the cells on the path; names are written over them later. letters: to tell them by their glyphs.

    Of a lane with gaps the cells between its spans are left alone: its spans alone are on the path.
    """
    if letters:
        letter_by_fill = {glyphs.fills[kind]: letter for kind, letter in _LETTERS.items()}
        letter_by_fill[glyphs.busy] = _LETTERS["exposed"]
    at = flags.find(1)
    while at >= 0:
        text, role = row_cells[at]
        if role in _NOT_WORK:
            if text != " " or covers_all:
                row_cells[at] = _ANY if letters else glyphs.partly, TRACE
        elif letters and text != " ":
            row_cells[at] = letter_by_fill.get(text, _ANY), role
        at = flags.find(1, at + 1)


def mark_names(
    row_cells: list[tuple[str, str]], flags: bytearray, name_columns: Iterable[tuple[int, int]]
) -> None:
    """Without colour: other brackets around the names of spans on the path. named: first column of each with
    its ends, and the one behind it.
    """
    for left, right in name_columns:
        if any(flags[left:right]):
            row_cells[left] = _NAME_ENDS[0], row_cells[left][1]
            row_cells[right - 1] = _NAME_ENDS[1], row_cells[right - 1][1]


def fade_cells(line: Line, flags: bytearray) -> Line:
    """A lane's cells, those that are not on the path without their colours, so that the others stand out."""
    parts: Line = []
    at = 0
    for text, role in line:
        off_role = f"{OFF_PATH} reversed" if role.endswith(" reversed") else OFF_PATH
        end, here = at + len(text), 0
        while at < end:
            # Stretches on the path and off it in turn.
            last = flags.find(not flags[at], at, end)
            last = end if last < 0 else last
            parts.append((text[here : here + last - at], role if flags[at] else off_role))
            here, at = here + last - at, last
    return parts
