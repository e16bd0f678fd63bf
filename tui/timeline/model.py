"""What the timeline shows and where the cursor is; every key is a method here, or of `jumps`."""

from __future__ import annotations

from dataclasses import dataclass, field

from simcore.trace.lane_spans import Content
from tui.session import Run
from tui.timeline.arrangement import Arrangement
from tui.timeline.critical import PathLanes
from tui.timeline.filtering import Filter
from tui.timeline.lanes import LaneKey, LaneSource, SpanLane
from tui.timeline.query import Query
from tui.timeline.search import Search
from tui.timeline.window import Marks, Navigation, Selection, Window

# From this many rows on lanes use the free ones: the first lanes show their streams, and all are taller.
ROOM_TO_FILL = 28
# With more lanes all keep their height: a pan must be sent within its budget of bytes and time.
FEW_LANES = 8


@dataclass(slots=True)
class TimelineModel(Navigation):
    """State of the timeline screen."""

    results: Run
    """The run."""
    source: LaneSource = field(init=False)
    """Its lanes."""
    arrangement: Arrangement = field(init=False)
    """Which lanes are shown, in which order, and which has the cursor."""
    rows: int = 20
    """The rows of the lane area, set when drawn, as `columns` is."""
    selection: Selection = field(default_factory=Selection)
    """The range that was set."""
    marks: Marks = field(default_factory=Marks)
    search: Search | None = None
    """The last search."""
    filter: Filter = field(default_factory=Filter)
    """Which spans are drawn."""
    shows_path: bool = False
    """Whether the critical path stands out."""
    notice: str = ""
    """The message of the last key."""
    is_new: bool = True
    """Whether it was never drawn, nor arranged by a session: then lanes unfold where there is room."""
    walk: tuple[int, bool, LaneKey, int] | None = None
    """Which of the longest waits the cursor is at: (index, whether of all lanes, lane, time)."""
    # The path of this run or that there is none, as a tuple once it was looked up.
    _path: tuple[PathLanes | None] | None = None

    def __post_init__(self) -> None:
        self.source = LaneSource(self.results)
        self.arrangement = Arrangement(self.source, self.rows)
        self.window = Window.whole(self.source.length)
        self.cursor_ns = self.window.span_ns // 2

    def show(self, results: Run) -> None:
        """Shows another run of the same workload: positions are kept as shares of the step."""
        source = LaneSource(results)
        old, new = self.window.step_ns, max(source.length, 1)
        self.results, self.source = results, source
        self.selection.scale(old, new)
        self.marks.scale(old, new)
        self.search, self.walk, self._path = None, None, None
        self.filter.forget_lanes()
        self.arrangement.show(source)
        self.show_step(new)

    @property
    def current(self) -> SpanLane:
        """The lane with the cursor."""
        return self.arrangement.current

    @property
    def lanes(self) -> list[SpanLane]:
        """The lanes of the list, those out of view too."""
        return [row.lane for row in self.arrangement.rows]

    @property
    def lane(self) -> int:
        """Index of the lane with the cursor."""
        return self.arrangement.focus

    @lane.setter
    def lane(self, index: int) -> None:
        self.arrangement.focus_row(index)

    @property
    def top(self) -> int:
        """How many lanes are scrolled out above."""
        return self.arrangement.top

    @property
    def unfolded(self) -> set[int]:
        """Groups of ranks whose streams are shown."""
        return self.arrangement.unfolded

    def unfold_first(self, rows: int) -> None:
        """Before the first drawing, opens the streams of the only lane, or of the first lanes that `rows`
        take.
        """
        if self.is_new:
            self.is_new = False
            few = len(self.arrangement.rows) <= FEW_LANES
            if len(self.arrangement.rows) == 1 or (rows >= ROOM_TO_FILL and few):
                self.arrangement.fill(rows)

    def resize(self, columns: int, rows: int) -> None:
        """Sets the size of the lane area."""
        self.columns, self.rows = max(columns, 1), max(rows, 1)
        self.arrangement.resize(self.rows)

    def clock(self, time_ns: int) -> str:
        """Returns a time of the step with the digits that the zoom shows."""
        return self.source.axis.position(time_ns, self.window.span_ns // self.columns)

    @property
    def path(self) -> PathLanes | None:
        """The critical path in the lanes, computed once a run; None where the run has none."""
        if self._path is None:
            lanes = self.source.of
            self._path = (PathLanes(lanes.path()) if lanes.facts.concurrent else None,)
        return self._path[0]

    def new_search(self, query: Query) -> Search:
        """Returns a search through the lanes as they are shown, of what the filter leaves."""
        return Search(self.source, query, self.unfolded, self.filter, self.arrangement.folded_tracks)

    @property
    def current_search(self) -> Search | None:
        """The last search, complete; begun again where other lanes or spans are shown than when it began."""
        search = self.search
        if search is not None:
            if not search.is_of(self.filter, self.unfolded, self.arrangement.folded_tracks):
                search = self.search = self.new_search(search.query)
            while not search.advance(1.0):
                pass
        return search

    # -- lanes -----------------------------------------------------------------------

    def move_lane(self, by: int) -> None:
        """Moves the cursor to another lane, `by` lanes down."""
        self.arrangement.move(by)

    def toggle_fold(self) -> None:
        """Shows or hides what is under the lane of the cursor: its streams, or a group's lanes."""
        self.arrangement.toggle()

    def go_to(self, key: LaneKey) -> None:
        """Moves the cursor to a lane, wherever it is folded or hidden."""
        if key != self.arrangement.rows[self.arrangement.focus].key:
            self.arrangement.show_lane(key)

    @property
    def rank(self) -> int | None:
        """The only rank of the lane with the cursor, None of a lane of several."""
        return self.current.key.rank if self.current.key.rank >= 0 else None

    @property
    def first_rank(self) -> int | None:
        """The rank of the lane with the cursor, or the first of its equal ranks; None of a lane that heads
        others.
        """
        if self.rank is not None or self.current.key.path:
            return self.rank
        return self.source.of.track(self.current.track_id).ranks.first

    @property
    def whose(self) -> str:
        """The ranks whose figures are those of the lane with the cursor."""
        if self.rank is not None:
            return f"rank {self.rank}"
        return " ".join(self.source.lane(self.current.track_id).title.split())

    # -- spans -----------------------------------------------------------------------

    def visible_content(self, lane: SpanLane) -> Content:
        """Returns what the filter leaves of a lane."""
        return self.filter.filter_lane(lane, self.source)

    @property
    def span(self) -> int | None:
        """The span of the lane at the cursor; in a cell that is partly busy, the first that begins there."""
        lane = self.current
        index = lane.content.find_span(self.cursor_ns)
        if index is None:
            edges, column = self.window.edges(self.columns), self.cursor_column
            inside = lane.content.starting_in(edges[column], edges[column + 1])
            return inside[0] if inside else None
        return index

    def focus(self) -> None:
        """Fits the view to the range, or else to the span under the cursor; when repeated, to the
        whole step.
        """
        stretch = self.selection.stretch(self.cursor_ns)
        if stretch is not None and stretch[0] < stretch[1]:
            self.fit(*stretch)
        else:
            self.focus_span()

    def focus_span(self) -> None:
        """Fits the view to the span under the cursor; when repeated, to the whole step."""
        index = self.current.content.find_span(self.cursor_ns)
        if index is None:
            self.show_all()
            return
        spans = self.current.spans
        start, end = spans.start[index], spans.end[index]
        before = self.window
        self.fit(start, end)
        if self.window != Window.whole(before.step_ns):
            self.cursor_ns = start + (end - start) // 2

    def clear_last(self) -> None:
        """Clears the range, or if there is none, the search, or else the filter."""
        if self.selection.clear():
            return
        if self.search is not None:
            self.search = None
        else:
            self.filter.set(Query())

    def show_stretch(self, track_id: int, start_ns: int, end_ns: int, stream: str | None = None) -> None:
        """Moves the cursor to the middle of start_ns..end_ns on the lane of a group of ranks, or of one of
        its streams; the view fits it.
        """
        # Equal ranks that are simulated one by one share a lane.
        self.go_to(LaneKey((), self.source.lane(track_id).track_id, stream=stream))
        span = end_ns - start_ns
        self.cursor_ns = start_ns + span // 2
        self._change(self.window.moved_to(start_ns - span // 4, span + span // 2, self.columns))

    def step_span(self, direction: int) -> None:
        """Moves the cursor to the next (1) or previous (-1) span of its lane, of those that the filter
        leaves.
        """
        content, cursor_ns = self.visible_content(self.current), self.cursor_ns
        start_ns = content.next_start(cursor_ns) if direction > 0 else content.previous_start(cursor_ns)
        index = None if start_ns is None else content.find_span(start_ns)
        if direction < 0 and index is not None and content.find_span(cursor_ns) == index:
            start_ns = content.previous_start(content.spans.start[index])
        if start_ns is not None:
            self.move_to(start_ns)
