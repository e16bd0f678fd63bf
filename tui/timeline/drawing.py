"""Turns the spans of a lane into cells: the kind of a column decides its glyph and colour.

Names stand inside spans of five cells and more, truncated at the span's end, never wrapped. Where a span ends
inside a cell stands an eighth block, the left kind in front, the right one behind; a hairline parts two spans
of one kind.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import compress, groupby, takewhile
from operator import itemgetter, ne

from simcore.records import NamedTuple
from simcore.trace.lane_spans import KINDS, NAMELESS, Content, Spans
from tui.frame import ASCII, Glyphs, Line
from tui.timeline.column_kinds import NOTHING, ColumnShares, Edge, count_lone, count_runs, majority_kinds
from tui.timeline.critical import PathLanes, fade_cells, mark_fills, mark_names
from tui.timeline.lanes import SpanLane
from tui.timeline.window import Window

_IDLE = KINDS.index("idle")
# Kinds that run, in contrast to waiting: no cell is blank in which one of these does.
_RUNNING = frozenset(range(len(KINDS))) - NAMELESS
# Where one column in so many differs from both its neighbours, which span has which column is chance.
_LONE_OF = 4
# In colour each run of one kind is a segment to send to the terminal.
_MOST_RUNS = 80
# Edges cost one more segment for each run.
_MOST_RUNS_WITH_EDGES = 40
_OWN_GLYPH = (
    "fwd", "bwd", "wg", "opt", "host", "wait", "bubble", "idle", "kernel", "copy", "allocated", "released",
    "reserved",
)  # fmt: skip
_GLYPH = {name: name if name in _OWN_GLYPH else "exposed" for name in KINDS} | {"recompute": "fwd"}


class LaneCells(NamedTuple):
    """A lane's cells."""

    line: Line
    narrow: bool
    """Whether so many spans are narrower than two columns that it is chance which of them has a column to
    itself.
    """
    plain: Line
    """The cells without names and edges, for the upper rows of a lane of several rows; empty unless
    requested.
    """


def draw_lane(
    lane: SpanLane,
    window: Window,
    columns: int,
    glyphs: Glyphs,
    colour: bool,
    path: PathLanes | None = None,
    tall: bool = False,
    content: Content | None = None,
) -> LaneCells:
    """Returns a lane's cells over the window, `columns` wide, and how they are to be read.

    path: the critical path, if it is to stand out. tall: whether `plain` is needed too. content: what the
    filter leaves of the lane, None for all.
    """
    content = lane.content if content is None else content
    edges = window.edges(columns)
    sums = content.column_sums(edges)
    if window.span_ns < columns:
        _repeat_instants(sums, edges)
    long_spans = _LongSpans.of(content, window, columns)
    narrow = False
    edge_cells: dict[int, _EdgeCell] = {}
    hairlines: list[int] = []
    names: list[_Name] = []
    if lane.by_majority:
        shares = ColumnShares(sums, edges)
        if colour and glyphs is not ASCII:
            majority = shares.majority()
            if count_runs(majority) <= _MOST_RUNS_WITH_EDGES:
                edge_cells = _find_edges(majority, sums, edges)
            kinds, edge_cells = _with_visible_edges(shares, edge_cells, long_spans, window, edges)
        else:
            kinds = shares.shared()
        narrow = _LONE_OF * count_lone(kinds) > columns
        if colour and count_runs(kinds) > _MOST_RUNS:
            kinds, edge_cells = shares.shared(has_few_runs=True), {}
        if colour and glyphs is not ASCII:
            hairlines = _find_hairlines(kinds, long_spans, window, edges)
        row_cells = _kind_cells(kinds, sums, glyphs)
    else:
        kinds = majority_kinds(sums, columns)
        row_cells = _busy_cells(kinds, sums, edges, glyphs)
    names = _find_names(kinds, edge_cells, long_spans, window, edges)
    path_flags = None if path is None else path.path_columns(lane, edges)
    if path_flags is not None:
        mark_fills(row_cells, path_flags, content.covers_all, glyphs, letters=not colour or glyphs is ASCII)
    plain: Line = []
    if tall:
        plain_cells = list(row_cells)
        _put_hairlines(plain_cells, hairlines)
        plain = _merge_roles(plain_cells if colour else [(text, "") for text, _ in plain_cells])
    _write_names(row_cells, names, edge_cells, lane, content, colour)
    _put_hairlines(row_cells, hairlines)
    for column, cell in edge_cells.items():
        row_cells[column] = cell.glyph, cell.role
    for seam in lane.seams:
        if edges[0] < seam < edges[-1]:
            row_cells[bisect_right(edges, seam) - 1] = (glyphs.vertical, "bright")
    if not colour:
        if path_flags is not None:
            mark_names(row_cells, path_flags, [(name.left, name.right) for name in names])
        # One style for all cells: glyphs tell kinds apart, and the row is one segment.
        row_cells = [(text, "") for text, _ in row_cells]
    line = _merge_roles(row_cells)
    if colour and path_flags is not None:
        line = fade_cells(line, path_flags)
        plain = fade_cells(plain, path_flags) if plain else plain
    return LaneCells(line, narrow, plain)


def _merge_roles(row_cells: list[tuple[str, str]]) -> Line:
    """Returns the cells with neighbours of one role merged."""
    return [
        ("".join(text for text, _ in cells), role) for role, cells in groupby(row_cells, key=itemgetter(1))
    ]


def _repeat_instants(sums: dict[int, list[int]], edges: Sequence[int]) -> None:
    """Copies values so that, with more columns than nanoseconds, the columns of one instant are equal."""
    for column in range(len(edges) - 3, -1, -1):
        if edges[column] == edges[column + 1]:
            for values in sums.values():
                values[column] = values[column + 1]


def _kind_cells(kinds: list[int], sums: dict[int, list[int]], glyphs: Glyphs) -> list[tuple[str, str]]:
    """Returns the cells of the columns' kinds: what runs in an idle column leaves a trace, and whatever there
    is in an empty one.
    """
    cell_of = {kind: _cell_of(kind, glyphs) for kind in set(kinds)}
    row_cells = list(map(cell_of.__getitem__, kinds))
    traced = {_IDLE: _RUNNING & sums.keys(), NOTHING: sums.keys() - {_IDLE}}
    for blank in traced.keys() & cell_of.keys():
        values = [(kind, sums[kind]) for kind in traced[blank]]
        if not values:
            continue
        any_ns = list(map(max, zip(*(ns for _, ns in values), strict=True)))
        for column in compress(range(len(kinds)), map(blank.__eq__, kinds)):
            if any_ns[column]:
                running = [one for one in values if one[0] in _RUNNING and one[1][column]] or values
                kind, _ = max(running, key=lambda one: (one[1][column], -one[0]))
                row_cells[column] = glyphs.partly, KINDS[kind]
    return row_cells


def _cell_of(kind: int, glyphs: Glyphs) -> tuple[str, str]:
    if kind in (NOTHING, _IDLE):
        return " ", ""
    return glyphs.fills[_GLYPH[KINDS[kind]]], KINDS[kind]


def _busy_cells(
    kinds: list[int], sums: dict[int, list[int]], edges: Sequence[int], glyphs: Glyphs
) -> list[tuple[str, str]]:
    """Returns the cells of a communication lane: over half of a cell busy, or less; the shortest span leaves
    a trace.
    """
    row_cells = []
    role = ""
    for column, kind in enumerate(kinds):
        if kind == NOTHING:
            # Blanks between spans share their role, which saves one segment each.
            row_cells.append((" ", role))
            continue
        role = KINDS[kind]
        is_busy = 2 * sums[kind][column] > edges[column + 1] - edges[column]
        row_cells.append((glyphs.busy if is_busy else glyphs.partly, role))
    return row_cells


# The last cell of a span whose neighbour is of its kind: the same colour, with a gap at its end.
_PARTED = {"█": "▉", "▇": "▉", "▆": "▉", "▄": "▖", "▅": "▖"}
# Spans from this many columns on are parted from neighbours that are as wide.
_PARTED_FROM = 2


class _LongSpans(NamedTuple):
    """The spans in view that are two columns wide or more and can have a name."""

    spans: Spans
    """All spans of the lane."""
    indices: list[int]
    """Which of them."""
    in_parts: bool
    """Whether cells are drawn from parts of spans that are of other kinds."""

    @classmethod
    def of(cls, content: Content, window: Window, columns: int) -> _LongSpans:
        """Returns those of a lane."""
        spans, least_ns = content.spans, _PARTED_FROM * window.span_ns // columns
        in_parts = content.cell_spans is not spans
        if content.longest_named_ns < least_ns:
            return cls(spans, [], in_parts)
        first = max(bisect_right(spans.start, window.first_ns) - 1, 0)
        inside = range(first, bisect_left(spans.start, window.last_ns))
        start, end, category = spans.start, spans.end, spans.category
        if len(inside) < 4 * columns:
            long_ones = [index for index in inside if end[index] - start[index] >= least_ns]
        else:
            # With many spans in view only the long ones can have a name, with few any.
            by_length = takewhile(lambda index: end[index] - start[index] >= least_ns, content.by_length)
            long_ones = [index for index in by_length if index in inside]
        return cls(spans, [index for index in long_ones if category[index] not in NAMELESS], in_parts)


def _find_hairlines(
    kinds: Sequence[int], long_spans: _LongSpans, window: Window, edges: Sequence[int]
) -> list[int]:
    """Returns the last columns of spans that end where another one of their kind begins; both are two columns
    wide.
    """
    spans, columns = long_spans.spans, len(kinds)
    least_ns = _PARTED_FROM * window.span_ns // columns
    hairlines = []
    for index in long_spans.indices:
        start, kind = spans.start[index], spans.category[index]
        if not (
            index
            and spans.end[index - 1] == start
            and spans.category[index - 1] == kind
            and start - spans.start[index - 1] >= least_ns
        ):
            continue
        column = window.column(start, columns)
        if not 0 < column < columns:
            continue
        # The column in which both meet is of the one that fills most of it.
        column -= 2 * (start - edges[column]) < edges[column + 1] - edges[column]
        if column + 1 < columns and kinds[column] == kinds[column + 1] == kind:
            hairlines.append(column)
    return hairlines


def _put_hairlines(row_cells: list[tuple[str, str]], hairlines: Sequence[int]) -> None:
    """Puts hairlines behind columns: into the blank before or behind a name, or into the cell itself."""
    for column in hairlines:
        (text, role), (following, following_role) = row_cells[column : column + 2]
        if following == " " and following_role.endswith(" reversed"):
            row_cells[column + 1] = "▏", following_role
        elif text == " " and role.endswith(" reversed"):
            row_cells[column] = "▕", role
        else:
            row_cells[column] = _PARTED.get(text, text), role


_EIGHTHS = " ▏▎▍▌▋▊▉█"
# Kinds that are a thin line or nothing: they leave their part of an edge cell empty.
_THIN = frozenset(KINDS.index(name) for name in ("idle", "bubble", "wait", "host", "reserved")) | {NOTHING}
_FULL = frozenset(KINDS.index(name) for name in ("bwd", "wg", "opt", "allocated"))
# Kinds that do not fill a cell: beside a cell of another height a full edge would be a sliver of its own.
_LOW = frozenset(range(len(KINDS))) - _FULL - _THIN
# Runs of one kind have exact ends from this many cells on.
_LONG_ENOUGH = 4


class _EdgeCell(NamedTuple):
    """A cell in which one kind gives way to another."""

    edge: Edge
    glyph: str
    role: str

    def needs_names(self, column: int) -> Iterator[int]:
        """Returns the columns beside it in which a name must stand, which makes a low kind as high as a
        cell.
        """
        left, _, right = self.edge
        if left in _LOW:
            yield column - 1
        if right in _LOW:
            yield column + 1


def _with_visible_edges(
    shares: ColumnShares,
    edge_cells: dict[int, _EdgeCell],
    long_spans: _LongSpans,
    window: Window,
    edges: list[int],
) -> tuple[list[int], dict[int, _EdgeCell]]:
    """Returns (the kind of each column, those of the edges whose kinds are as high as a cell)."""
    # What fills most of the columns says where names will be, nearly always.
    kinds = shares.majority()
    edge_at: dict[int, Edge] | None = None
    while True:
        name_columns: set[int] = set()
        for name in _find_names(kinds, edge_cells, long_spans, window, edges) if edge_cells else ():
            name_columns.update(range(name.left, name.right))
        edge_cells = {
            column: cell
            for column, cell in edge_cells.items()
            if name_columns.issuperset(cell.needs_names(column))
        }
        if edge_at is not None and len(edge_cells) == len(edge_at):
            return kinds, edge_cells
        edge_at = {column: cell.edge for column, cell in edge_cells.items()}
        kinds = shares.shared(edge_at)


def _find_edges(
    kinds: Sequence[int], sums: dict[int, list[int]], edges: Sequence[int]
) -> dict[int, _EdgeCell]:
    """Returns the columns in which the kind on the left gives way to the one on the right.

    One of the two fills some cells: where short ones alternate, edges would say less than they cost. No third
    kind has more than half an eighth of the cell.

    kinds: what fills most of each column. sums: ns of each kind by column.
    """
    edge_cells: dict[int, _EdgeCell] = {}
    columns = range(1, len(kinds) - 1)
    filled = list(map(sum, zip(*sums.values(), strict=True)))
    for column in compress(columns, map(ne, kinds, kinds[2:])):
        left, right = kinds[column - 1], kinds[column + 1]
        if not (
            _is_one_kind(kinds[max(column - _LONG_ENOUGH, 0) : column])
            or _is_one_kind(kinds[column + 1 : column + 1 + _LONG_ENOUGH])
        ):
            continue
        whole = edges[column + 1] - edges[column]
        behind = sums[right][column] if right in sums else 0
        before = sums[left][column] if left in sums else 0
        others = filled[column] - before - behind
        if 16 * others > whole or (right != NOTHING and not behind):
            continue
        part = before if left in sums else whole - others - behind
        eighths = (16 * part + whole) // (2 * whole) if whole else 0
        role = _edge_role(left, right)
        if 0 < eighths < 8 and role:
            edge_cells[column] = _EdgeCell((left, eighths, right), _EIGHTHS[eighths], role)
    return edge_cells


def _is_one_kind(kinds: Sequence[int]) -> bool:
    """Returns whether some columns are of one kind; columns beyond the ends of the row count as equal."""
    return kinds.count(kinds[0]) == len(kinds)


def _edge_role(left: int, right: int) -> str:
    """Returns the style of an edge, "" where both kinds are thin."""
    if right in _THIN:
        return "" if left in _THIN else KINDS[left]
    # A blank sliver at the left: foreground and background are swapped.
    return f"{KINDS[right]} reversed" if left in _THIN else f"{KINDS[left]} on {KINDS[right]}"


# A span has its name inside from this many cells on.
_NAMED_FROM = 5


class _Name(NamedTuple):
    """Where a span has its name."""

    span: int
    """The index of the span."""
    left: int
    """Its first column, which may be an edge."""
    right: int
    """The column behind its last one, which may be an edge."""


def _find_names(
    kinds: list[int],
    edge_cells: Collection[int],
    long_spans: _LongSpans,
    window: Window,
    edges: list[int],
) -> list[_Name]:
    """Returns where wide spans have their names."""
    spans, columns = long_spans.spans, len(kinds)
    least_ns = window.span_ns * _NAMED_FROM // columns
    names = []
    for index in long_spans.indices:
        start, end = max(spans.start[index], window.first_ns), min(spans.end[index], window.last_ns)
        if end - start < least_ns:
            continue
        kind = spans.category[index]
        left, right = window.column(start, columns), min(window.column(end - 1, columns) + 1, columns)
        while left > 0 and edges[left - 1] == edges[left]:
            left -= 1
        # The cells at both ends may belong to a neighbour.
        while left < right and left not in edge_cells and kinds[left] != kind:
            left += 1
        while left < right and right - 1 not in edge_cells and kinds[right - 1] != kind:
            right -= 1
        if long_spans.in_parts:
            left, right = _longest_part(kinds, kind, edge_cells, left, right)
        if right - left >= _NAMED_FROM:
            names.append(_Name(index, left, right))
    return names


def _write_names(
    row_cells: list[tuple[str, str]],
    names: Sequence[_Name],
    edge_cells: Collection[int],
    lane: SpanLane,
    content: Content,
    colour: bool,
) -> None:
    """Writes the name of each wide span over its cells; an edge cell inside a name stays."""
    spans = content.spans
    for index, left, right in names:
        starts_in_cell, ends_in_cell = left in edge_cells, right - 1 in edge_cells
        left, right = left + starts_in_cell, right - ends_in_cell
        name, room = KINDS[spans.category[index]], right - left
        # An edge separates the name as a blank does.
        lead = "" if colour and starts_in_cell else " "
        label = lane.label(spans.op[index], room - len(lead) - (not ends_in_cell))
        if colour:
            row_cells[left:right] = [(char, f"{name} reversed") for char in f"{lead}{label}".ljust(room)]
        else:
            framed = f"[{label.ljust(room - 2)}]"
            row_cells[left:right] = [(char, name) for char in framed]


def _longest_part(
    kinds: list[int], kind: int, edge_cells: Collection[int], left: int, right: int
) -> tuple[int, int]:
    """Returns the longest stretch of cells of one kind from `left` to `right`, the first of equal ones; edges
    end it.

    A name over all of the cells would hide where the span is something else, such as waiting.
    """
    best, first = (left, left), left
    for column in range(left, right + 1):
        if column < right and kinds[column] == kind and (column == first or column not in edge_cells):
            continue
        # The cell behind it belongs to it where it is an edge.
        end = column + (column < right and column in edge_cells)
        if end - first > best[1] - best[0]:
            best = first, end
        first = column if column in edge_cells else column + 1
    return best
