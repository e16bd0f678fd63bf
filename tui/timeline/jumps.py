"""Moves that are not along the axis: by passes, waits, matches and marks; and ranges set in one key."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from simcore.records import NamedTuple
from simcore.trace.findings import Step
from simcore.trace.lane_spans import TIME, ordinal
from simcore.trace.run import path_step
from simcore.units import duration, plural
from tui.frame import in_cells
from tui.timeline.arrangement import SavedArrangement
from tui.timeline.lanes import ALL, LaneKey
from tui.timeline.model import TimelineModel
from tui.timeline.query import Query
from tui.timeline.search import Match, Search
from tui.timeline.window import Mark

# Notices of jumps, as the last row has them.
NO_PATH = "no critical path: the ranks of this run have no common time"
PATH_BEGINS, PATH_ENDS = "the critical path begins here", "the critical path ends here"
RANGE_BEGINS = "a range begins: move to extend it, v ends it, Esc removes it"
THIS_SPAN, WHOLE_STEP = "the span at the cursor", "the whole step"
NO_PASSES = "no micro-batch passes here"
NO_LATER_PASS, NO_EARLIER_PASS = "no later micro-batch pass here", "no earlier micro-batch pass here"
NOTHING_WAITS, NOTHING_WAITS_ANYWHERE = "nothing waits in this lane", "nothing waits in any lane"
NOTHING_HELD, HOLDS_NOTHING = "nothing held this back", "nothing waits for this alone"
NOTHING_SEARCHED = "nothing was searched for: / does"
PAST_LANES, PAST_END, BEFORE_START = "past the last lane", "past the end of the step", "before its start"
OF_THE_FILTER, IN_THE_FILTER = "that the filter leaves", "in what the filter leaves"
WAS_FOLDED, WAS_HIDDEN, ALL_SHOWN = (
    "in streams that were folded",
    "its lane was hidden",
    "all lanes are shown",
)
NO_FREE_LETTER = "all letters are in use: ' lists the marks"


class JumpTarget(NamedTuple):
    """A position to come back to."""

    arranged: SavedArrangement
    """How the lanes were arranged."""
    cursor_ns: int
    """The cursor's time."""
    first_ns: int
    """The start of the window."""
    span_ns: int
    """The length of the window."""


def current_position(model: TimelineModel) -> JumpTarget:
    """Returns the position of the model."""
    window = model.window
    return JumpTarget(model.arrangement.save_state(), model.cursor_ns, window.first_ns, window.span_ns)


def return_to(model: TimelineModel, jump: JumpTarget) -> None:
    """Moves back to a position, restoring lanes, cursor and window."""
    model.arrangement.restore_state(jump.arranged)
    model.cursor_ns = jump.cursor_ns
    model.window = model.window.moved_to(jump.first_ns, jump.span_ns, model.columns)


# -- ranges ----------------------------------------------------------------------------


def toggle_range(model: TimelineModel) -> None:
    """Begins a range at the cursor; a range that follows the cursor ends there."""
    selection = model.selection
    stretch = selection.stretch(model.cursor_ns)
    if selection.follows and stretch is not None and stretch[0] < stretch[1]:
        selection.fix(*stretch)
    else:
        selection.start(model.cursor_ns)
        model.notice = RANGE_BEGINS


def extend_range(model: TimelineModel) -> None:
    """Takes the span at the cursor as the range; then its pass, then the whole step, then the span again."""
    choices: list[tuple[int, int, str]] = []
    lane, index = model.current, model.span
    if index is not None:
        choices.append((lane.spans.start[index], lane.spans.end[index], THIS_SPAN))
    for time_stretch in model.source.of.passes(lane.track_id):
        if time_stretch.start_ns <= model.cursor_ns < time_stretch.end_ns:
            choices.append(time_stretch)
            break
    choices.append((0, model.window.step_ns, WHOLE_STEP))
    stretches = [(first, last) for first, last, _ in choices]
    current_range = model.selection.fixed_range
    choice_index = (stretches.index(current_range) + 1) % len(choices) if current_range in stretches else 0
    first, last, words = choices[choice_index]
    model.selection.fix(first, last)
    model.notice = f"range: {words}"


# -- passes and waits ------------------------------------------------------------------


def step_pass(model: TimelineModel, direction: int) -> None:
    """Moves the cursor to where the next (1) or previous (-1) pass of a micro-batch begins on its ranks."""
    passes = model.source.of.passes(model.current.track_id)
    if not passes:
        model.notice = NO_PASSES
        return
    starts = [time_stretch.start_ns for time_stretch in passes]
    if direction > 0:
        index = bisect_right(starts, model.cursor_ns)
    else:
        index = bisect_left(starts, model.cursor_ns) - 1
    if not 0 <= index < len(passes):
        model.notice = NO_LATER_PASS if direction > 0 else NO_EARLIER_PASS
        return
    time_stretch = passes[index]
    model.jump_to(time_stretch.start_ns)
    model.notice = f"{in_cells(time_stretch.words)}, {duration(time_stretch.end_ns - time_stretch.start_ns)}"


def go_to_longest_wait(model: TimelineModel, everywhere: bool) -> None:
    """Moves the cursor to the longest wait or bubble of its lane, or of all; when repeated, to the next
    longest.

    Behind the last of them come idle stretches, which wait for nobody: host gaps, the time before and after
    the work.
    """
    here = model.current.key._replace(stream=None)
    if everywhere:
        ranking = [(LaneKey((), track_id), wait) for track_id, wait in model.source.of.all_waits()]
    else:
        ranking = [(here, wait) for wait in model.source.of.waits(model.current.track_id)]
    if not ranking:
        model.notice = NOTHING_WAITS_ANYWHERE if everywhere else NOTHING_WAITS
        return
    index = 0
    walk = model.walk
    if walk is not None and walk[1:] == (everywhere, here, model.cursor_ns):
        index = (walk[0] + 1) % len(ranking)
    key, wait = ranking[index]
    model.go_to(key)
    model.jump_to(model.current.spans.start[wait.span])
    model.walk = index, everywhere, model.current.key, model.cursor_ns
    length = model.source.axis.length(-wait.minus_ns)
    wait_count = bisect_left(ranking, True, key=lambda ranked: ranked[1].is_idle)
    count, noun = (wait_count, "wait") if index < wait_count else (len(ranking) - wait_count, "idle stretch")
    index -= 0 if index < wait_count else wait_count
    which = f"{ordinal(index + 1)} longest" if index else "longest"
    where = "all lanes" if everywhere else "this lane"
    prefix = "nothing waits; " if not wait_count else ""
    model.notice = f"{prefix}{which} of {plural(count, noun)} of {where}, {length}"


# -- causes ----------------------------------------------------------------------------


def follow(model: TimelineModel, direction: int) -> None:
    """Moves the cursor to what the span here waited for (-1), or to what it holds back (1)."""
    index = model.span
    lane, words = model.current, model.source.of.words
    steps = (
        [] if index is None else words.find_steps(lane.track_id, lane.stream, index, model.rank, direction)
    )
    if not steps:
        model.notice = NOTHING_HELD if direction < 0 else HOLDS_NOTHING
        if direction < 0 and index is not None:
            model.notice = words.chain_end(lane.track_id, lane.stream, index) or NOTHING_HELD
        return
    _go_along(model, steps[0])
    more = f" (and {len(steps) - 1} more)" if len(steps) > 1 else ""
    model.notice = f"{'waited for' if direction < 0 else 'holds back'} {in_cells(steps[0].words)}{more}"


def toggle_path(model: TimelineModel) -> None:
    """Shows or hides the critical path in the lanes."""
    model.shows_path = not model.shows_path and model.path is not None
    if model.path is None:
        model.notice = NO_PATH
    elif not model.shows_path:
        model.notice = "critical path off"


def step_critical(model: TimelineModel, direction: int) -> None:
    """Moves the cursor to the next (1) or previous (-1) merged segment of the critical path."""
    if model.path is None:
        model.notice = NO_PATH
        return
    step = path_step(model.results, model.cursor_ns, direction)
    if step is None:
        model.notice = PATH_ENDS if direction > 0 else PATH_BEGINS
        return
    # A step along the path needs it visible.
    model.shows_path = True
    _go_along(model, step)
    model.notice = in_cells(step.words)


def _go_along(model: TimelineModel, step: Step) -> None:
    # A lane of one rank is left only for that of another.
    rank = step.rank if step.rank == model.rank else ALL
    model.go_to(LaneKey((), step.track_id, rank, step.stream))
    model.jump_to(step.start_ns)


# -- search ----------------------------------------------------------------------------


def find_position(model: TimelineModel, query: Query) -> tuple[int | None, str]:
    """Returns (the time that a query names, why there is none); None and "" where it names none."""
    step_ns, axis = model.window.step_ns, model.source.axis
    if query.at_percent is not None:
        return min(round(step_ns * query.at_percent / 100), step_ns - 1), ""
    if query.step is not None:
        ends = model.results.figures.origin.step_end_ns
        if not 1 <= query.step <= max(len(ends), 1):
            return None, f"no step {query.step}: the run has {plural(max(len(ends), 1), 'step')}"
        return 0 if query.step == 1 else ends[query.step - 2], ""
    if query.at_ns is None:
        return None, ""
    if axis is not TIME:
        return None, "this run has no times: 50% goes to the middle"
    if query.at_ns >= step_ns:
        return None, f"{duration(query.at_ns)} is past the end of the step, {duration(step_ns)}"
    return query.at_ns, ""


def first_match(model: TimelineModel, search: Search, from_ns: int | None = None) -> Match | None:
    """Moves the cursor to the first match from a time on, by default from the left edge of the view; returns
    None if nothing matches.
    """
    match = search.first(model.window.first_ns if from_ns is None else from_ns, model.current.key)
    return None if match is None else _go_to(model, search, *match)


def next_match(model: TimelineModel, direction: int) -> None:
    """Moves the cursor to the next (1) or previous (-1) match of the last search."""
    search = model.current_search
    if search is None:
        model.notice = NOTHING_SEARCHED
        return
    match = search.next(model.cursor_ns, model.current.key, direction)
    if match is None:
        model.notice = no_match_text(search)
    else:
        _go_to(model, search, *match, zooms=True)


def _go_to(model: TimelineModel, search: Search, match: Match, wrapped: bool, zooms: bool = False) -> Match:
    """Moves the cursor to a match. zooms: whether its span is to be seen, however short it is."""
    lane_matches, before = search.matched_lanes[match.lane], model.cursor_ns
    revealed_text = _reveal_lane(model, lane_matches.lane.key)
    if match.span >= 0:
        length_ns = lane_matches.lane.spans.end[match.span] - match.time_ns if zooms else 0
        model.jump_to(match.time_ns, length_ns)
    model.notice = match_text(search, match) + revealed_text
    if wrapped:
        if match.span < 0:
            model.notice += f", {PAST_LANES}"
        else:
            model.notice += f", {PAST_END if match.time_ns <= before else BEFORE_START}"
    return match


def _reveal_lane(model: TimelineModel, key: LaneKey) -> str:
    """Moves the cursor to a lane; returns in words what had to be shown again for it."""
    arrangement = model.arrangement
    hidden, only = arrangement.hidden_count, arrangement.only
    model.go_to(key)
    if only and not arrangement.only:
        return f", not in {only}: {ALL_SHOWN}"
    return f", {WAS_HIDDEN}" if arrangement.hidden_count < hidden else ""


def match_text(search: Search, match: Match) -> str:
    """Returns `match 3 of 24`, or which lane it is."""
    noun = "lane" if search.of_lanes else "match"
    words = f"{noun} {search.ordinal(match)} of {search.count}"
    if not search.among.is_empty and not search.of_lanes:
        words += f" {OF_THE_FILTER}"
    return f"{words}, {WAS_FOLDED}" if search.searches_folded else words


def no_match_text(search: Search) -> str:
    """Returns why nothing matches."""
    words = search.problem or f"no match for {search.query.text}"
    if not search.problem and not search.among.is_empty:
        words += f" {IN_THE_FILTER}"
    # Waiting in a pipeline has a word of its own: bubble.
    waits = any(word.startswith("wait") for word in search.query.text.split())
    return f"{words} (for a neighbouring stage: bubble)" if waits else words


# -- marks -----------------------------------------------------------------------------


def set_mark(model: TimelineModel) -> None:
    """Sets a mark at the cursor."""
    lane = model.current
    title = model.whose + (f", {lane.title}" if lane.stream is not None else "")
    mark = model.marks.set(model.cursor_ns, lane.key, title)
    model.notice = NO_FREE_LETTER if mark is None else f"mark {mark.letter} is set"


def go_to_mark(model: TimelineModel, mark: Mark) -> None:
    """Moves the cursor to a mark, in time and lane."""
    model.go_to(mark.lane)
    model.jump_to(mark.time_ns)
    model.notice = f"mark {mark.letter}"
