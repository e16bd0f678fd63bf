"""Any keys in any order: the cursor stays in the window and the step, its lane on the screen."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tui.made_runs import lonely, seed, small, some_runs
from tui.frame import BLOCKS, text_of, width_of
from tui.timeline import jumps
from tui.timeline.frame import TimelineFrame
from tui.timeline.lanes import ALL, LaneKey
from tui.timeline.model import TimelineModel
from tui.timeline.query import parse_query
from tui.timeline.search import Search

Action = Callable[[TimelineModel], None]
RUNS = len(some_runs())
SHOWN = (seed, lambda: seed(pp=4), small, lonely, lambda: lonely(1), lambda: lonely(0), lambda: lonely(50))


def act(name: str, *arguments: object) -> Action:
    """An action with a name that reads well in a failing example."""

    def action(model: TimelineModel) -> None:
        getattr(model, name)(*arguments)

    action.__qualname__ = f"{name}{arguments}"
    return action


def jump(move: Callable[..., object], *arguments: object) -> Action:
    """A function of a model as an action."""

    def action(model: TimelineModel) -> None:
        move(model, *arguments)

    action.__qualname__ = f"{move.__name__}{arguments}"
    return action


def searched(model: TimelineModel, text: str) -> None:
    """A search, at its first match."""
    model.search = Search(model.source, parse_query(text), model.unfolded)
    while not model.search.advance(1.0):
        pass
    jumps.first_match(model, model.search)


def filtered(model: TimelineModel, text: str) -> None:
    """A filter."""
    model.filter.set(parse_query(text))


def scrolled(model: TimelineModel, by: int) -> None:
    """The list of lanes, scrolled."""
    model.arrangement.scroll(by)


def marked(model: TimelineModel) -> None:
    """To the last mark, where there is one."""
    if model.marks.last is not None:
        jumps.go_to_mark(model, model.marks.last)


def show(number: int) -> Action:
    """Another run."""

    def action(model: TimelineModel) -> None:
        model.show(SHOWN[number]())

    action.__qualname__ = f"show({number})"
    return action


KEYS = st.sampled_from(
    [
        *(act("zoom", *ratio) for ratio in ((1, 2), (1, 2), (1, 2), (2, 1))),
        *(act("pan", *ratio) for ratio in ((1, 8), (-1, 8), (1, 1), (-1, 1))),
        *(act("move_cursor", by) for by in (1, -1, 1000, -1000)),
        *(act("move_lane", by) for by in (1, -1, 10, -10, 10**6, -(10**6))),
        act("toggle_fold"),
        act("toggle_fold"),
        *(act("step_span", direction) for direction in (1, -1)),
        *(act(name) for name in ("focus", "show_all", "back", "forward", "focus_span", "clear_last")),
        act("center", 3),
        act("go_to", LaneKey((), 0)),
        act("go_to", LaneKey((), 1, 5, "compute")),
        jump(scrolled, 2),
        jump(scrolled, -1),
        *(
            jump(move, *arguments)
            for move, *arguments in (
                (jumps.toggle_range,),
                (jumps.extend_range,),
                (jumps.step_pass, 1),
                (jumps.step_pass, -1),
                (jumps.go_to_longest_wait, True),
                (jumps.go_to_longest_wait, False),
                (jumps.set_mark,),
                (jumps.next_match, 1),
                (jumps.next_match, -1),
                (searched, "mlp"),
                (searched, "send"),
                (searched, "0"),
                (filtered, "bubble"),
                (filtered, "stage 0 forward"),
                (marked,),
            )
        ),
    ]
)
RESIZES = st.builds(
    lambda columns, rows: act("resize", columns, rows), st.integers(0, 300), st.integers(0, 60)
)
SHOWS = st.integers(0, len(SHOWN) - 1).map(show)
ACTIONS = st.lists(KEYS | KEYS | KEYS | RESIZES | SHOWS, max_size=40)


def check(model: TimelineModel) -> None:
    """What must hold after every key."""
    window, step = model.window, max(model.results.simulation.step_time_ns, 1)
    assert window.step_ns == step
    assert 0 <= window.first_ns < window.last_ns <= step
    assert window.first_ns <= model.cursor_ns < window.last_ns
    assert model.columns >= 1
    assert model.rows >= 1
    assert 0 <= model.lane < len(model.lanes)
    assert 0 <= model.top <= model.lane < model.top + model.rows
    assert model.top == 0 or model.top + model.rows <= len(model.lanes), "blank rows below a scrolled list"
    assert 0 <= model.cursor_column < model.columns
    if window.span_ns >= model.columns:
        edges = window.edges(model.columns)
        assert edges[model.cursor_column] <= model.cursor_ns < edges[model.cursor_column + 1]


def check_lanes(model: TimelineModel) -> None:
    """One lane a class, in order, the streams of the unfolded ones below theirs; all of this run."""
    classes = [lane.track_id for lane in model.lanes if lane.stream is None and lane.key.rank == ALL]
    assert classes == list(range(len(model.results.simulation.timeline.classes)))
    assert {lane.track_id for lane in model.lanes if lane.stream is not None} == model.unfolded
    assert [lane.track_id for lane in model.lanes] == sorted(lane.track_id for lane in model.lanes)
    assert all(lane.of.results is model.results for lane in model.lanes)


@settings(max_examples=150)
@given(st.integers(0, RUNS - 1), ACTIONS)
def test_cursor_lane_and_window_stay_valid_after_every_key(start: int, actions: list[Action]) -> None:
    model = TimelineModel(some_runs()[start])
    for action in actions:
        action(model)
        check(model)
        check_lanes(model)


@settings(max_examples=30)
@given(ACTIONS, st.integers(20, 200), st.integers(1, 50))
def test_the_line_of_the_cursor_is_on_the_screen_after_any_keys(
    actions: list[Action], width: int, height: int
) -> None:
    model = TimelineModel(small())
    drawing = TimelineFrame(BLOCKS, colour=True)
    for action in actions:
        action(model)
    lines = drawing.draw(model, width, height)
    check(model)
    assert len(lines) == height
    assert {width_of(line) for line in lines} == {width}
    marked = [line for line in text_of(lines).split("\n") if line.startswith(">")]
    assert len(marked) == (1 if height > 4 else len(marked))


@settings(max_examples=20)
@given(ACTIONS)
def test_what_a_key_leaves_as_it_was_is_what_would_be_drawn_anew(actions: list[Action]) -> None:
    """Planted: labels without the focus; a ruler without its window."""
    model = TimelineModel(seed(pp=4))
    drawing = TimelineFrame(BLOCKS, colour=True)
    lane_down = act("move_lane", 1)
    for action in [one for key in actions for one in (key, lane_down)]:
        action(model)
        # The last line, a legend, is of all lanes that were drawn over the window.
        assert drawing.draw(model, 120, 33)[:-2] == TimelineFrame(BLOCKS, True).draw(model, 120, 33)[:-2]


@settings(max_examples=50)
@given(st.lists(KEYS, max_size=20))
def test_back_undoes_every_change_of_the_view(actions: list[Action]) -> None:
    model = TimelineModel(small())
    model.resize(96, 20)
    whole = model.window
    for action in actions:
        action(model)
    for _ in range(60):
        model.back()
    moved_by_cursor = any(
        name in action.__qualname__
        for action in actions
        for name in (
            "move_cursor",
            "step_span",
            "forward",
            "clear_last",
            "step_pass",
            "longest_wait",
            "match",
            "mark",
            "searched",
        )
    )
    assert model.window == whole or moved_by_cursor
