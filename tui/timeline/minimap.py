"""Where the view lies in the step: a bar of half cells below the busy row, or the row itself."""

from __future__ import annotations

from tui.frame import ASCII, Glyphs, Line
from tui.timeline.window import Window


def view_bar(window: Window, columns: int, glyphs: Glyphs) -> Line:
    """The bar, exact to half a cell; ASCII has whole cells alone."""
    if glyphs is ASCII:
        first, last = _covered(window, columns)
        length = last - first
        bar = glyphs.view_left + glyphs.view * (length - 2) + glyphs.view_right if length > 1 else glyphs.view
        return [(" " * first, ""), (bar, "accent")]
    first, last = _covered(window, 2 * columns)
    # Half a cell at an end: the right half of the first one, the left half of the last one.
    left, right = first % 2, last % 2
    if last - first == 1:
        bar = glyphs.view_left if left else glyphs.view_right
    else:
        whole = (last - right - first - left) // 2
        bar = glyphs.view_left * left + glyphs.view * whole + glyphs.view_right * right
    return [(" " * (first // 2), ""), (bar, "accent")]


def view_in(row: str, window: Window, colour: bool) -> Line:
    """The busy row with the view in it: bright in view, dim outside; without colour, reversed in view."""
    first, last = _covered(window, len(row))
    if last - first == len(row):
        return [(row, "bwd")]
    inside, outside = ("bwd", "dim") if colour else ("bwd reversed", "bwd")
    return [(row[:first], outside), (row[first:last], inside), (row[last:], outside)]


def _covered(window: Window, parts: int) -> tuple[int, int]:
    """The first part of the step that the view touches, and the one behind the last."""
    first = window.first_ns * parts // window.step_ns
    return first, max(-(-window.last_ns * parts // window.step_ns), first + 1)
