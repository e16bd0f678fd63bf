"""The ruler: round times, labels that do not touch each other, and a unit."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.tui.made_runs import line_text, lonely, window_of
from tui.frame import ASCII
from tui.timeline.frame import TimelineFrame
from tui.timeline.margins import tick_step, ticks
from tui.timeline.model import TimelineModel
from tui.timeline.window import Window

UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


@st.composite
def views(draw: st.DrawFn) -> tuple[Window, int]:
    """A window of a step of up to 11 days, and columns no wider than a nanosecond."""
    columns = draw(st.integers(30, 400))
    step = draw(st.integers(columns, 10**15) | st.integers(columns, 10**6))
    span = draw(st.integers(columns, step) | st.integers(columns, min(step, 100 * columns)))
    return Window(draw(st.integers(0, step - span)), span, step), columns


def times_of(found: list[tuple[int, str]]) -> list[Decimal]:
    """The labels as ns."""
    first, unit = found[0][1].split(" ")
    return [Decimal(label) * UNITS[unit] for label in (first, *(label for _, label in found[1:]))]


def is_round(number: Decimal) -> bool:
    """Whether a whole number is 1, 2 or 5 times a power of ten."""
    digits = str(int(number)).rstrip("0")
    return number == int(number) and digits in ("1", "2", "5")


@given(st.integers(1, 10**15), st.integers(1, 400), st.integers(1, 30))
def test_a_tick_step_is_the_least_round_number_that_is_wide_enough(
    span: int, columns: int, least: int
) -> None:
    step = tick_step(span, columns, least)
    assert is_round(Decimal(step))
    assert step * columns >= least * span
    smaller = step // 2 if str(step)[0] != "5" else step // 5 * 2
    assert smaller == 0 or smaller * columns < least * span


@given(views())
def test_the_first_label_has_a_unit_and_the_others_have_none(view: tuple[Window, int]) -> None:
    found = ticks(*view)
    assert found
    assert found[0][1].split(" ")[1] in UNITS
    assert all(" " not in label for _, label in found[1:])


@given(views())
def test_every_label_is_the_exact_time_of_its_tick(view: tuple[Window, int]) -> None:
    window, columns = view
    found = ticks(window, columns)
    for time_ns, (column, _) in zip(times_of(found), found, strict=True):
        assert time_ns == int(time_ns)
        assert window.first_ns <= time_ns < window.last_ns
        assert column == window.column(int(time_ns), columns)


@given(views())
def test_ticks_are_a_round_number_apart_and_none_is_left_out(view: tuple[Window, int]) -> None:
    window, columns = view
    times = times_of(ticks(window, columns))
    if len(times) > 1:
        step = times[1] - times[0]
        assert is_round(step)
        assert all(later - earlier == step for earlier, later in pairwise(times))
        assert times[0] % step == 0
        assert times[0] - step < window.first_ns
        assert times[-1] + step >= window.last_ns


@given(views())
def test_a_label_ends_before_the_next_one_begins(view: tuple[Window, int]) -> None:
    found = ticks(*view)
    for (column, label), (following, _) in pairwise(found):
        assert column + len(label) < following


STEP = 14_774_124_906


def ruler_rows(window: Window, columns: int) -> tuple[str, str]:
    """The two rows of the ruler as drawn over a window of one long layer."""
    model = TimelineModel(lonely(STEP))
    model.window = window
    model.cursor_ns = window.first_ns
    lines = TimelineFrame(ASCII, colour=True).draw(model, columns + 24, 33)
    assert model.columns == columns
    return line_text(lines[2])[24:], line_text(lines[3])[24:]


@st.composite
def long_layer_windows(draw: st.DrawFn) -> Window:
    """A stretch of one long layer, often a very short one."""
    span = draw(st.integers(176, STEP) | st.integers(176, 10**6))
    return window_of(lonely(STEP), draw(st.integers(0, STEP - span)), span)


@given(long_layer_windows(), st.sampled_from([96, 176]))
def test_drawn_labels_stand_at_their_ticks_and_all_but_the_last_are_drawn(
    window: Window, columns: int
) -> None:
    labels, marks = ruler_rows(window, columns)
    found = ticks(window, columns)
    for column, label in found[:-1]:
        assert labels[column : column + len(label)] == label
    drawn = [column for column, mark in enumerate(marks) if mark != "-"]
    assert set(drawn) == {column for column, _ in found} | {0}


def test_a_step_of_14_seconds_has_a_tick_a_second() -> None:
    labels = [label for _, label in ticks(Window.whole(STEP), 96)]
    assert labels[:3] == ["0 s", "1", "2"]


def test_a_microsecond_late_in_the_step_is_labelled_with_as_many_decimals_as_tell_ticks_apart() -> None:
    labels = [label for _, label in ticks(Window(7_385_826_000, 100, 14_774_000_000), 96)]
    assert labels == ["7.38582600 s", "7.38582602", "7.38582604", "7.38582606", "7.38582608"]
