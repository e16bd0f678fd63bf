"""The critical path in the lanes: which cells of a lane are on it, and how they look."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

from tui.frame import Glyphs, Line
from tui.timeline.lanes import SpanLane
from tui.timeline.stretches import flag_columns

# Cells that are not on the path, and those on it that mostly hold something else, or nothing.
OFF_PATH, TRACE = "bubble", "bright"
_NOT_WORK = frozenset({"bubble", "wait", "idle", ""})
# Without colour, a cell on the path has its kind's letter as a capital; where no work is done, this.
_ANY = "*"
_LETTERS = {
    "fwd": "F", "bwd": "B", "wg": "W", "opt": "O", "exposed": "X", "host": "H",
    "kernel": "K", "copy": "C", "allocated": "A", "released": "R",
}  # fmt: skip
_NAME_ENDS = "<>"


class PathLanes:
    """Segments of the path as columns, in the order of time, and by the lanes that show them.

    Each segment has a start and an end, ns, the track of the lane that it is shown in, its rank, and its
    stream, "" where only the lane of all streams shows it.
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
        """Returns (starts, ends) of the times in which a lane is on the path, ascending and disjoint;
        computed once a lane.

        The lane of one rank has the path of this rank alone; a heading has that of all lanes below it.
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
        """Returns for each column between two of the `edges` (ns) 1 if a part of the path is in the lane
        there.
        """
        return flag_columns(*self.stretches(lane), edges)


def mark_fills(
    row_cells: list[tuple[str, str]], flags: bytearray, covers_all: bool, glyphs: Glyphs, letters: bool
) -> None:
    """Changes the cells on the path; names are written over them later.

    letters: whether kinds are told by their glyphs instead of colours. Of a lane with gaps the cells between
    its spans are left alone: only its spans are on the path.
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
    """Without colour, puts other brackets around the names of spans on the path.

    name_columns: of each name the first column, with its ends, and the one behind it.
    """
    for left, right in name_columns:
        if any(flags[left:right]):
            row_cells[left] = _NAME_ENDS[0], row_cells[left][1]
            row_cells[right - 1] = _NAME_ENDS[1], row_cells[right - 1][1]


def fade_cells(line: Line, flags: bytearray) -> Line:
    """Returns a lane's cells, those off the path without their colours, so that the others stand out."""
    parts: Line = []
    at = 0
    for text, role in line:
        off_role = f"{OFF_PATH} reversed" if role.endswith(" reversed") else OFF_PATH
        end, here = at + len(text), 0
        while at < end:
            # Stretches on the path and off it alternate.
            last = flags.find(not flags[at], at, end)
            last = end if last < 0 else last
            parts.append((text[here : here + last - at], role if flags[at] else off_role))
            here, at = here + last - at, last
    return parts
