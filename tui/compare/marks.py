"""Where the lanes of a pair differ, column by column: marked by a letter, and tinted in colour."""

from __future__ import annotations

from bisect import bisect_right

from simcore.run.lanes import COMPUTING
from tui.compare.model import CompareModel
from tui.frame import Line
from tui.timeline.drawing import kinds_of
from tui.timeline.spans import SpanLane

# Where only A computes, only B, or both something else: the mark, its role, and the tint of the lane.
ONLY_A, ONLY_B, MOVED, SAME = "A", "B", "~", " "
ROLES = {ONLY_A: "only-a", ONLY_B: "only-b", MOVED: "moved", SAME: ""}


def marks(model: CompareModel, pair: int, lanes: tuple[SpanLane, SpanLane]) -> str:
    """A mark for each column. `~`: both compute, but of another kind, or what A does there moved."""
    kinds = []
    for side, lane in enumerate(lanes):
        edges = model.shifted(side).edges(model.columns)
        kinds.append(kinds_of(lane.column_sums(edges), model.columns))
    moved = [one for one in model.compared.known_alike(pair) if model.has_moved(one)]
    starts = [one.a_start_ns for one in moved]
    edges = model.shifted(0).edges(model.columns)
    found = []
    for column, (of_a, of_b) in enumerate(zip(*kinds, strict=True)):
        computes = of_a in COMPUTING, of_b in COMPUTING
        if computes == (True, True):
            middle = (edges[column] + edges[column + 1]) // 2
            place = bisect_right(starts, middle) - 1
            has_moved = place >= 0 and moved[place].a_end_ns > middle
            found.append(MOVED if of_a != of_b or has_moved else SAME)
        elif computes == (False, False):
            found.append(SAME)
        else:
            found.append(ONLY_A if computes[0] else ONLY_B)
    return "".join(found)


def marked(found: str) -> Line:
    """The marks as a line of their own."""
    line: Line = []
    for mark in found:
        role = ROLES[mark]
        if line and line[-1][1] == role:
            line[-1] = (line[-1][0] + mark, role)
        else:
            line.append((mark, role))
    return line


def tinted(line: Line, found: str, mark: str) -> Line:
    """A lane's cells with a tint behind those whose column has the mark."""
    tint = f"{ROLES[mark]}-tint"
    cells: Line = []
    column = 0
    for text, role in line:
        for char in text:
            own = f"{role} on {tint}" if found[column] == mark and " " not in role else role
            column += 1
            if cells and cells[-1][1] == own:
                cells[-1] = (cells[-1][0] + char, own)
            else:
                cells.append((char, own))
    return cells


def reversed_at(line: Line, column: int) -> Line:
    """A lane's cells with that of the cursor reversed."""
    cells: Line = []
    for text, role in line:
        if 0 <= column < len(text):
            plain = role.removesuffix(" reversed")
            turned = plain if role != plain else f"{role} reversed"
            cells += [(text[:column], role), (text[column], turned), (text[column + 1 :], role)]
        else:
            cells.append((text, role))
        column -= len(text)
    return [(text, role) for text, role in cells if text]
