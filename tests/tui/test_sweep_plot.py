"""The plane of screen 7: where points lie, what is drawn over what, and how it says so."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from simcore.records import replace
from simcore.sweeping.pareto_front import Rule
from simcore.sweeping.point import Point
from tests.sweep.made import made_point
from tui.frame import ASCII, BLOCKS, text_of, width_of
from tui.sweep.frame import _INDEX_AXIS, planes, plot
from tui.sweep.sweep_result import SweepResult

_WIDTH, _HEIGHT = 60, 15


def found_of(points: list[Point]) -> SweepResult:
    found = SweepResult("x", Rule(("time", "memory")))
    found.add_points(points)
    return found


def grid_of(lines: list[str]) -> list[str]:
    """The cells of the plane, row by row from above."""
    return [line.partition("|")[2] for line in lines if "|" in line]


_POINTS = st.lists(st.tuples(st.integers(1, 10**12), st.integers(1, 100)), min_size=1, max_size=30).map(
    lambda rows: [made_point(number, step, memory) for number, (step, memory) in enumerate(rows)]
)


@given(_POINTS, st.integers(20, 120), st.integers(5, 40), st.sampled_from([ASCII, BLOCKS]))
def test_every_plane_of_any_points_has_its_size(points: list[Point], width: int, height: int, glyphs) -> None:  # type: ignore[no-untyped-def]
    found = found_of(points)
    for plane in planes(found.outcome.front.points):
        lines = plot(found, plane, points[0], points[:2], (width, height), glyphs)
        assert len(lines) <= height
        assert {width_of(line) for line in lines} == {width}
        assert glyphs is BLOCKS or text_of(lines).isascii()


@given(_POINTS)
def test_each_point_of_the_front_is_in_its_cell_and_the_rest_are_counted(points: list[Point]) -> None:
    """Planted: rows upside down; the scale of one axis for the other. Each was found."""
    found = found_of(points)
    plane = planes(found.outcome.front.points)[0]
    lines = text_of(plot(found, plane, None, (), (_WIDTH, _HEIGHT), ASCII)).split("\n")
    grid = grid_of(lines)
    columns = len(grid[0])

    def share(value: float, values: list[float]) -> float:
        least, most = min(values), max(values)
        if least > 0 and most / least > 5:
            value, least, most = math.log(value), math.log(least), math.log(most)
        return 0.5 if most == least else (value - least) / (most - least)

    ups, rights = [plane[0].value(one) for one in points], [plane[1].value(one) for one in points]
    for point in found.outcome.front.front:
        row = (1 - share(plane[0].value(point), ups)) * (len(grid) - 1)
        column = share(plane[1].value(point), rights) * (columns - 1)
        near = [
            grid[y][x]
            for y in range(len(grid)) if abs(y - row) <= 0.51
            for x in range(columns) if abs(x - column) <= 0.51
        ]  # fmt: skip
        assert "*" in near
    others = len(points) - len(found.outcome.front.front)
    assert f"* front {len(found.outcome.front.front)}" in lines[-1]
    assert (f"others {others}" in lines[-1]) == (others > 0)


def test_a_logarithm_is_said_of_the_axis_that_has_one() -> None:
    found = found_of([made_point(0, 10, 10), made_point(1, 100, 20)])
    plane = planes(found.outcome.front.points)[0]
    first = text_of(plot(found, plane, None, (), (_WIDTH, _HEIGHT), ASCII)).split("\n")[0]
    assert "step time (log) over memory" in first
    assert "memory (log)" not in first


def test_planes_are_those_in_which_points_differ() -> None:
    points = [made_point(0, 10, 10), made_point(1, 12, 20)]
    words = [(up.words, right.words) for up, right in planes(points)]
    assert words == [("step time", "memory")]
    priced = [replace(one, tokens_per_s=5.0 + one.index, cost=1.0, gpus=8 + one.index) for one in points]
    words = [(up.words, right.words) for up, right in planes(priced)]
    assert words == [
        ("step time", "memory"), ("tokens/s", "memory"), ("step time", "GPUs"), ("tokens/s", "GPUs"),
        ("step time", "$ a step"), ("tokens/s", "$ a step"),
    ]  # fmt: skip
    # Of different work a step time says nothing, and where nothing else differs the points lie in a row.
    works = [
        replace(one, work=2 + 2 * one.index, memory_peak_bytes=None, layout={"microbatches": 1 + one.index})
        for one in points
    ]
    assert [(up.words, right.words) for up, right in planes(works)] == [
        ("time of a micro-batch", _INDEX_AXIS.words)
    ]
    # With unequal replicas too, all of their micro-batches count.
    unequal = [replace(one, work=1 + one.index) for one in works]
    unequal[0] = replace(unequal[0], work=7)
    assert [up.words for up, _ in planes(unequal)] == ["micro-batches/s of all replicas"]


def test_the_point_of_the_cursor_lies_over_a_mark_and_that_over_the_front() -> None:
    points = [made_point(0, 10, 10), made_point(1, 12, 5)]
    found = found_of(points)
    plane = planes(points)[0]
    grid = "".join(grid_of(text_of(plot(found, plane, points[0], points, (_WIDTH, 9), ASCII)).split("\n")))
    assert grid.count("@") == 1
    assert "B" in grid
    assert "A" not in grid
    assert "*" not in grid
