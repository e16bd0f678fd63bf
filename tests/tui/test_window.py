"""The stretch of time on the screen: cells and times are inverse, zoom and pan stay inside the step."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from tui.timeline.window import History, Window

STEPS = st.sampled_from([1, 2, 7, 96, 97, 1000]) | st.integers(1, 10**12)
COLUMNS = st.integers(1, 400)


@st.composite
def windows(draw: st.DrawFn, columns: int = 1) -> Window:
    """Any stretch of any step, at least 1 ns a column (or the whole step)."""
    step = draw(STEPS)
    span = draw(st.integers(min(columns, step), step))
    return Window(draw(st.integers(0, step - span)), span, step)


@st.composite
def views(draw: st.DrawFn) -> tuple[Window, int, int]:
    """A window, its columns, and a time in it."""
    columns = draw(COLUMNS)
    window = draw(windows(columns))
    return window, columns, draw(st.integers(window.first_ns, window.last_ns - 1))


def is_inside(window: Window, columns: int) -> bool:
    """Whether a window lies in its step and is neither too narrow nor too wide."""
    return (
        window.first_ns >= 0
        and window.last_ns <= window.step_ns
        and min(columns, window.step_ns) <= window.span_ns <= window.step_ns
    )


def test_a_step_of_nothing_is_shown_as_one_nanosecond() -> None:
    assert Window.whole(0) == Window(0, 1, 1)
    assert Window.whole(1) == Window(0, 1, 1)
    assert Window.whole(14_774_000_000).last_ns == 14_774_000_000


@given(windows(), COLUMNS)
def test_edges_ascend_from_the_start_of_the_window_to_its_end(window: Window, columns: int) -> None:
    edges = window.edges(columns)
    assert len(edges) == columns + 1
    assert edges[0] == window.first_ns
    assert edges[-1] == window.last_ns
    assert edges == sorted(edges)


@given(views())
def test_no_cell_is_more_than_a_nanosecond_wider_than_another(view: tuple[Window, int, int]) -> None:
    window, columns, _ = view
    edges = window.edges(columns)
    widths = {edges[column + 1] - edges[column] for column in range(columns)}
    assert max(widths) - min(widths) <= 1


@given(views())
def test_the_column_of_a_time_is_the_cell_that_holds_it(view: tuple[Window, int, int]) -> None:
    window, columns, time_ns = view
    assume(window.span_ns >= columns)
    edges = window.edges(columns)
    column = window.column(time_ns, columns)
    assert edges[column] <= time_ns < edges[column + 1]


@given(views())
def test_the_column_of_a_time_holds_it_also_with_more_columns_than_nanoseconds(
    view: tuple[Window, int, int],
) -> None:
    window, columns, time_ns = view
    edges = window.edges(columns)
    column = window.column(time_ns, columns)
    assert 0 <= column < columns
    assert edges[column] <= time_ns < edges[column + 1]


@given(views(), st.integers(1, 10**6))
def test_a_time_outside_the_window_has_a_column_outside_the_screen(
    view: tuple[Window, int, int], off: int
) -> None:
    window, columns, _ = view
    assert window.column(window.first_ns - off, columns) < 0
    assert window.column(window.last_ns + off - 1, columns) >= columns


@given(views(), st.integers(-(10**13), 10**13), st.integers(-5, 10**13))
def test_a_moved_window_stays_inside_the_step(
    view: tuple[Window, int, int], first_ns: int, span_ns: int
) -> None:
    window, columns, _ = view
    moved = window.moved_to(first_ns, span_ns, columns)
    assert moved.step_ns == window.step_ns
    assert is_inside(moved, columns)


@given(views(), st.sampled_from([(1, 2), (2, 1), (1, 10), (3, 1)]))
def test_zoom_stays_inside_the_step(view: tuple[Window, int, int], ratio: tuple[int, int]) -> None:
    window, columns, at_ns = view
    assert is_inside(window.zoomed(at_ns, *ratio, columns), columns)


@given(views())
def test_zooming_in_keeps_the_cursor_in_its_column(view: tuple[Window, int, int]) -> None:
    window, columns, at_ns = view
    zoomed = window.zoomed(at_ns, 1, 2, columns)
    assert zoomed.first_ns <= at_ns < zoomed.last_ns
    assert abs(zoomed.column(at_ns, columns) - window.column(at_ns, columns)) <= 1


@given(views())
def test_zooming_in_to_the_end_moves_the_cursor_by_two_columns_at_most(
    view: tuple[Window, int, int],
) -> None:
    window, columns, at_ns = view
    assume(window.span_ns >= columns)
    column = window.column(at_ns, columns)
    for _ in range(60):
        window = window.zoomed(at_ns, 1, 2, columns)
    assert window.span_ns == min(columns, window.step_ns)
    assert abs(window.column(at_ns, columns) - column) <= 2


@given(views())
def test_zooming_out_keeps_the_cursor_in_its_column_away_from_the_ends(
    view: tuple[Window, int, int],
) -> None:
    window, columns, at_ns = view
    zoomed = window.zoomed(at_ns, 2, 1, columns)
    if zoomed.first_ns > 0 and zoomed.last_ns < zoomed.step_ns:
        assert abs(zoomed.column(at_ns, columns) - window.column(at_ns, columns)) <= 1


@given(views())
def test_enough_zooming_out_shows_the_whole_step(view: tuple[Window, int, int]) -> None:
    window, columns, at_ns = view
    for _ in range(60):
        window = window.zoomed(at_ns, 2, 1, columns)
    assert window == Window.whole(window.step_ns)


@given(views(), st.sampled_from([(1, 8), (-1, 8), (1, 1), (-1, 1)]))
def test_pan_keeps_the_span_and_stays_inside_the_step(
    view: tuple[Window, int, int], ratio: tuple[int, int]
) -> None:
    window, columns, _ = view
    panned = window.panned(*ratio, columns)
    assert panned.span_ns == window.span_ns
    assert is_inside(panned, columns)


@given(views())
def test_pan_there_and_back_again_ends_where_it_began(view: tuple[Window, int, int]) -> None:
    window, columns, _ = view
    there = window.panned(1, 8, columns)
    assume(there.last_ns < there.step_ns)
    assert abs(there.panned(-1, 8, columns).first_ns - window.first_ns) <= 1


def test_a_page_to_the_right_begins_where_the_window_ended() -> None:
    assert Window(100, 50, 1000).panned(1, 1, 10) == Window(150, 50, 1000)
    assert Window(100, 50, 1000).panned(-1, 1, 10) == Window(50, 50, 1000)
    assert Window(20, 50, 1000).panned(-1, 1, 10) == Window(0, 50, 1000)


def numbered(number: int) -> Window:
    """A window that is told from others by its start."""
    return Window(number, 1, 10**9)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_back_and_forward_walk_the_same_windows(visits: list[int]) -> None:
    history = History()
    walk = [numbered(visits[0])]
    for visit in visits[1:]:
        if numbered(visit) != walk[-1]:
            history.leave(walk[-1])
            walk.append(numbered(visit))
    there = [walk[-1]]
    for _ in walk[1:]:
        there.append(history.back(there[-1]))
    assert there == walk[::-1]
    assert history.back(there[-1]) == there[-1]
    back = [there[-1]]
    for _ in walk[1:]:
        back.append(history.forward(back[-1]))
    assert back == walk
    assert history.forward(back[-1]) == back[-1]


def test_a_new_view_forgets_the_ones_forward() -> None:
    history = History()
    history.leave(numbered(1))
    assert history.back(numbered(2)) == numbered(1)
    history.leave(numbered(1))
    assert history.forward(numbered(3)) == numbered(3)


def test_zooming_out_in_the_middle_keeps_the_cursor_in_its_column() -> None:
    window = Window(4000, 1000, 10_000)
    for at_ns in range(4005, 5000, 10):
        assert window.zoomed(at_ns, 2, 1, 100).column(at_ns, 100) == window.column(at_ns, 100)


def test_the_way_back_is_a_hundred_views_long() -> None:
    history = History()
    for number in range(250):
        history.leave(numbered(number))
    window, steps = numbered(250), 0
    while (before := history.back(window)) != window:
        window, steps = before, steps + 1
    assert steps == 100
    assert window == numbered(150)
